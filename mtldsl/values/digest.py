"""A number for a value of many parts, the same in every process and on every machine."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["digest"]


def digest(*values: Any) -> str:
    """SHA-256 of plain values, arrays, sparse matrices, functions (by their names), and of lists, dicts and objects of these.

    An object is what it was made of: its class, and the attributes that bear the names of the arguments of its `__init__`, or the fields of
    a dataclass. What it has remembered since does not count.

    >>> digest(1.0, {"a": np.eye(2)}) == digest(1.0, {"a": np.eye(2)}), digest([1, 2]) == digest([[1], 2])
    (True, False)
    """
    total = hashlib.sha256()
    for value in values:
        _add(total, value)
    return total.hexdigest()


def _add(total, value) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        total.update(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fiubcSU":
        total.update(f"array {value.dtype.str} {value.shape};".encode())
        total.update(np.ascontiguousarray(value).tobytes())
    elif sparse.issparse(value):
        rows: Any = sparse.csr_array(value)
        _several(total, "sparse", (rows.shape, rows.data, rows.indices, rows.indptr))
    elif isinstance(value, dict):
        _several(total, "dict", [one for pair in value.items() for one in pair])
    elif isinstance(value, tuple | list | np.ndarray):
        _several(total, "list", value)
    elif isinstance(value, set | frozenset):
        _several(total, "set", sorted(map(digest, value)))
    elif callable(value) and hasattr(value, "__qualname__"):
        total.update(f"function {value.__module__}.{value.__qualname__};".encode())
    else:
        kind = type(value)
        _several(total, f"{kind.__module__}.{kind.__qualname__}", _made_of(value))


def _several(total, what: str, values) -> None:
    total.update(f"{what} {len(values)}(".encode())
    for one in values:
        _add(total, one)
    total.update(b")")


def _made_of(value) -> list:
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    else:
        names = [
            name
            for name, about in inspect.signature(type(value)).parameters.items()
            if about.kind not in (about.VAR_POSITIONAL, about.VAR_KEYWORD)
        ]
    return [one for name in names for one in (name, getattr(value, name, None))]
