"""What stands beside the unknowns in an expression: constants, matrix factors, selections by position or name."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.errors import ModelError
from mtldsl.memory import require_memory

__all__ = ["add_offsets", "as_factor", "as_matrix", "chain", "constant_text", "index_text", "selector"]


def as_matrix(value, shape, typed) -> np.ndarray | None:
    """A float array broadcast to `shape`; None where `value` is no array of numbers; ModelError where it does not fit."""
    if isinstance(value, (str, bytes)) or value is None:
        return None
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if np.isnan(array).any():
        raise ModelError(f"{typed}: the constant contains NaN")
    require_memory(
        16.0 * np.prod(np.array(shape, float)),
        f"{typed}: a constant of shape {shape}",
        "give weights of fewer features or tasks",
        ModelError,
    )
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ModelError(
            f"{typed}: a constant of shape {array.shape} does not fit the shape {shape}"
        ) from None


def as_factor(value, typed):
    """A matrix factor: dense float array or CSR; None where `value` is not a matrix."""
    if sparse.issparse(value):
        return value.tocsr().astype(float)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if array.ndim != 2:
        raise ModelError(f"{typed}: @ needs a matrix (2-D array), not an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{typed}: the matrix contains NaN or infinity")
    return array


def selector(index, size, names, typed):
    """CSR matrix that picks rows; None for the full slice. Names of features or tasks may stand for positions."""
    if isinstance(index, slice) and index == slice(None):
        return None
    try:
        if isinstance(index, str):
            index = [list(names).index(index)]
        elif isinstance(index, (list, tuple)) and any(isinstance(i, str) for i in index):
            index = [list(names).index(i) if isinstance(i, str) else i for i in index]
        picked = np.atleast_1d(np.arange(size)[index])
    except ValueError:
        raise ModelError(f"{typed}: no name {index!r} among {', '.join(map(str, names[:8]))}...") from None
    except IndexError:
        raise ModelError(f"{typed}: index {index!r} is out of range for size {size}") from None
    if picked.ndim != 1 or picked.size == 0:
        raise ModelError(f"{typed}: {index!r} selects nothing; select at least one")
    ones = np.ones(picked.size)
    return sparse.csr_array((ones, (np.arange(picked.size), picked)), shape=(picked.size, size))


def index_text(index) -> str:
    if isinstance(index, slice):
        start, stop = ("" if v is None else str(v) for v in (index.start, index.stop))
        return f"{start}:{stop}" + (f":{index.step}" if index.step is not None else "")
    if isinstance(index, np.ndarray):
        index = index.tolist()
    text = repr(index)
    return text if len(text) <= 24 else f"<{len(index)} indices>"


def constant_text(value) -> str:
    """A constant as it is printed in a model: numbers in full, arrays by their shape."""
    if np.ndim(value) == 0 and not sparse.issparse(value):
        return f"{float(value):.10g}"
    return "array({})".format(", ".join(str(n) for n in np.shape(value)))


def add_offsets(a, b, sign):
    """a + sign * b, where None stands for zero."""
    if b is None:
        return a
    return sign * b if a is None else a + sign * b


def chain(a, b):
    """a @ b, where None stands for the identity."""
    if a is None or b is None:
        return b if a is None else a
    return a @ b
