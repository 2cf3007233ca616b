"""The program that reads a MATLAB file for `array_files`, in a process of its own: python mat_process.py FILE BYTES SECONDS.

scipy's compiled reader follows the sizes that a file claims, and ends its process on some damaged ones. To the standard output goes a
pickle of the variables by name, or of the error that there was. It imports nothing of mtldsl.
"""

import pickle
import sys
from types import SimpleNamespace


def limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system; the parent's patience is one
        return
    for which, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def plain(value):
    """A variable without scipy's own classes: an array, CSC, an array of objects for cells; of what is none of these its type alone."""
    import numpy as np
    from scipy import sparse

    if sparse.issparse(value):
        value = sparse.csc_array(value)
        value.check_format(full_check=True)
        return value
    if not isinstance(value, np.ndarray):
        return SimpleNamespace(dtype=type(value).__name__, shape=())
    if value.dtype.names is not None:
        return SimpleNamespace(dtype=str(value.dtype), shape=())
    if value.dtype != object:
        return np.array(value)
    cells = np.empty(value.shape, dtype=object)
    for place in np.ndindex(value.shape):
        cells[place] = plain(value[place])
    return cells


def main(path: str, memory: str, seconds: str) -> None:
    limit(int(memory), int(seconds))
    from scipy.io import loadmat

    answer: dict | str
    try:
        answer = {name: plain(value) for name, value in loadmat(path).items() if name[:2] != "__"}
    except NotImplementedError:
        answer = "MATLAB files of version 7.3 cannot be read; save it with -v7"
    except MemoryError:
        answer = "cannot be read as a MATLAB file: it needs more memory than there is"
    except Exception as error:  # of damaged bytes, of any kind
        answer = f"cannot be read as a MATLAB file: {error or type(error).__name__}"
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
