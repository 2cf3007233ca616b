"""The program that reads a MATLAB file for `array_files`, in a process of its own: python mat_process.py FILE BYTES SECONDS.

scipy's compiled reader follows the sizes that a file claims, and ends its process on some damaged ones. To the standard output goes an
archive of NumPy with a JSON description and all arrays. It imports nothing of mtldsl.
"""

import json
import sys


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


def described(value, arrays: list) -> int | dict:
    """A variable as JSON holds it; its arrays go to the list, and their numbers stand for them."""
    import numpy as np
    from scipy import sparse

    if sparse.issparse(value):
        value = value.tocsc()
        value.check_format(full_check=True)
        parts = [described(one, arrays) for one in (value.data, value.indices, value.indptr)]
        return {"sparse": parts, "shape": value.shape}
    if not isinstance(value, np.ndarray):
        return {"other": type(value).__name__}
    if value.dtype == object:
        return {"cells": [described(one, arrays) for one in value.ravel()], "shape": value.shape}
    if value.dtype.names is not None:
        return {"other": str(value.dtype)}
    arrays.append(np.ascontiguousarray(value))
    return len(arrays) - 1


def main(path: str, memory: str, seconds: str) -> None:
    limit(int(memory), int(seconds))
    import numpy as np
    from scipy.io import loadmat

    arrays: list = []
    try:
        variables = {name: value for name, value in loadmat(path).items() if name[:2] != "__"}
        answer = {"variables": {name: described(value, arrays) for name, value in variables.items()}}
    except NotImplementedError:
        answer = {"error": "MATLAB files of version 7.3 cannot be read; save it with -v7"}
    except MemoryError:
        answer = {"error": "cannot be read as a MATLAB file: it needs more memory than there is"}
    except Exception as error:  # of damaged bytes, of any kind
        answer = {"error": f"cannot be read as a MATLAB file: {error or type(error).__name__}"}
    np.savez(sys.stdout.buffer, *([] if "error" in answer else arrays), about=np.array(json.dumps(answer)))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
