"""The program that reads a MATLAB file for `array_files`, in a process of its own: python mat_process.py FILE BYTES SECONDS.

scipy's compiled reader follows the sizes that a file claims, and ends its process on some damaged ones. To the standard output go the
length of a JSON description in 8 bytes, the description, and the bytes of all arrays. It imports nothing of mtldsl.
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


class MatVariables:
    """Variables as plain descriptions; their arrays, contiguous, in `arrays`."""

    def __init__(self):
        self.arrays, self.at = [], 0

    def described(self, value) -> dict:
        import numpy as np
        from scipy import sparse

        if sparse.issparse(value):
            value = value.tocsc()
            value.check_format(full_check=True)
            parts = {key: self.described(getattr(value, key)) for key in ("data", "indices", "indptr")}
            return {"kind": "sparse", "shape": value.shape, **parts}
        if not isinstance(value, np.ndarray):
            return {"kind": "other", "dtype": type(value).__name__}
        if value.dtype == object:
            return {"kind": "cells", "shape": value.shape, "items": [*map(self.described, value.ravel())]}
        if value.dtype.names is not None:
            return {"kind": "other", "dtype": str(value.dtype)}
        value = np.ascontiguousarray(value)
        about = {"kind": "array", "dtype": value.dtype.str, "shape": value.shape, "at": self.at}
        self.arrays.append(value)
        self.at += value.nbytes
        return about


def main(path: str, memory: str, seconds: str) -> None:
    limit(int(memory), int(seconds))
    from scipy.io import loadmat

    content = MatVariables()
    try:
        variables = loadmat(path)
        about = {name: content.described(value) for name, value in variables.items() if name[:2] != "__"}
        answer = {"variables": about}
    except NotImplementedError:
        answer = {"error": "MATLAB files of version 7.3 cannot be read; save it with -v7"}
        content.arrays = []
    except MemoryError:
        answer = {"error": "cannot be read as a MATLAB file: it needs more memory than there is"}
        content.arrays = []
    except Exception as error:  # of damaged bytes, of any kind
        answer = {"error": f"cannot be read as a MATLAB file: {error or type(error).__name__}"}
        content.arrays = []
    text = json.dumps(answer).encode()
    out = sys.stdout.buffer
    out.write(len(text).to_bytes(8, "little") + text)
    for array in content.arrays:
        out.write(array.tobytes())
    out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
