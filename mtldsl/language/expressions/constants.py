"""What stands beside the unknowns in an expression: constants, matrix factors, selections by position or name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import ModelError
from mtldsl.language.expressions.scalar import is_foreign
from mtldsl.language.spelling import INFINITY
from mtldsl.system.memory import require_memory
from mtldsl.values.listing import as_list, as_positions, shape_of
from mtldsl.values.number import as_float, quoted
from mtldsl.values.size import LARGEST
from mtldsl.values.sparse_matrix import read_dense, require_sound

__all__ = ["add_offsets", "as_factor", "as_matrix", "chain", "constant_text", "selector"]


def as_matrix(value, shape, typed) -> np.ndarray | None:
    """A float array broadcast to `shape`; None where `value` is of the language itself; ModelError where it is not an array of numbers, or
    does not fit.
    """
    if not is_foreign(value):
        return None
    array = read_dense(value, f"{typed}: the constant", ModelError)
    if np.isnan(array).any():
        raise ModelError("the constant contains NaN", term=typed)
    require_memory(
        16.0 * np.prod(np.array(shape, float)),
        f"{typed}: a constant of shape {shape}",
        "give weights of fewer features or tasks",
        ModelError,
    )
    if ((np.abs(array) > LARGEST) & np.isfinite(array)).any():
        raise ModelError(
            f"the constant has numbers beyond {LARGEST:g}",
            term=typed,
            write_instead="write smaller ones, or " + INFINITY + " for no bound",
        )
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ModelError(
            f"a constant of shape {array.shape} does not fit the shape {shape}", term=typed
        ) from None


def as_factor(value, typed):
    """A matrix factor: dense float array or CSR; None where `value` is of the language itself; ModelError where it is not a matrix."""
    if not is_foreign(value):
        return None
    what, is_sparse = f"{typed}: the matrix", sparse.issparse(value)
    array: Any = require_sound(value, what, ModelError) if is_sparse else read_dense(value, what, ModelError)
    if array.ndim != 2:
        raise ModelError(f"@ needs a matrix (2-D array), not an array of shape {array.shape}", term=typed)
    if not np.isfinite(array.data if is_sparse else array).all():
        raise ModelError("the matrix contains NaN or infinity", term=typed)
    if (np.abs(array.data if is_sparse else array) > LARGEST).any():
        raise ModelError(
            f"the matrix has numbers beyond {LARGEST:g}", term=typed, write_instead="write smaller ones"
        )
    return array.astype(float).tocsr() if is_sparse else array


def selector(index, size, position_of: Callable[[str], int], typed):
    """CSR matrix that picks rows; None for the full slice. Names may stand for positions, which `position_of` knows."""
    if isinstance(index, slice) and index == slice(None):
        return None
    listed = [index] if isinstance(index, str) else index if isinstance(index, slice) else as_list(index)
    if isinstance(listed, list) and any(isinstance(one, str) for one in listed):
        listed = [position_of(one) if isinstance(one, str) else one for one in listed]
    picked = as_positions(index if listed is None else listed, size, typed, ModelError)
    if picked.size == 0:
        raise ModelError(f"{quoted(index)} selects nothing", term=typed, write_instead="select at least one")
    ones = np.ones(picked.size)
    return sparse.csr_array((ones, (np.arange(picked.size), picked)), shape=(picked.size, size))


def constant_text(value) -> str:
    """A constant as it is printed in a model: numbers in full, arrays by their shape."""
    if not is_foreign(value):
        return quoted(value)
    number, shape = as_float(value), shape_of(value)
    if number is not None:
        return f"{number:.10g}"
    return "array({})".format(", ".join(map(str, shape))) if shape else quoted(value)


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
