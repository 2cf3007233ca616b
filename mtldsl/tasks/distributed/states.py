"""What a run keeps beside the rows of a part, as a file: plain numbers, read without unpickling anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.system.archives import read_archive
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.reading import reading

__all__ = ["read_state", "state_path", "write_state"]

_WHAT = "a state of the rows"


def state_path(folder: str, mark: str, part: int) -> Path:
    """The file of one part in one writing."""
    return Path(folder) / f"rows-{mark}-{part}.npz"


def write_state(path: Path, state) -> None:
    """Numbers, arrays, None, and tuples, lists and dicts of these, whole or not at all. DataError where the file cannot be written, TypeError for
    other states.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "one.npz"
    >>> write_state(path, {"u": np.arange(3.0), "step": (2, None)})
    >>> read_state(path)
    {'u': array([0., 1., 2.]), 'step': (2, None)}
    """
    arrays: dict[str, Any] = {}
    shape = json.dumps(_shape(state, arrays))
    with atomic_file(path) as file:
        np.savez(file, shape=np.array(shape), **arrays)


def read_state(path: Path) -> Any:
    """What `write_state` wrote, bit by bit. DataError for other files."""
    arrays = read_archive(path, _WHAT, role="own")
    with reading(path, _WHAT):
        return _filled(json.loads(str(arrays.pop("shape"))), arrays)


def _shape(state, arrays: dict[str, Any]) -> Any:
    """The state as plain text, with arrays by their names in the archive."""
    if isinstance(state, np.ndarray) and state.dtype.kind in "fiub":
        name = f"array_{len(arrays)}"
        arrays[name] = state
        return {"array": name}
    if isinstance(state, np.generic):
        state = state.item()
    if state is None or isinstance(state, bool | int | float | str):
        return {"plain": state}
    if isinstance(state, dict) and all(isinstance(key, str) for key in state):
        return {"dict": [[key, _shape(one, arrays)] for key, one in state.items()]}
    if type(state) in (tuple, list):
        return {type(state).__name__: [_shape(one, arrays) for one in state]}
    raise TypeError(f"a {type(state).__name__} beside the rows cannot be written as numbers")


def _filled(shape: dict, arrays: dict[str, np.ndarray]) -> Any:
    ((kind, value),) = shape.items()
    if kind == "array":
        return arrays[value]
    if kind == "plain":
        return value
    if kind == "dict":
        return {key: _filled(one, arrays) for key, one in value}
    if kind in ("tuple", "list"):
        return {"tuple": tuple, "list": list}[kind](_filled(one, arrays) for one in value)
    raise DataError(f"{kind!r} is not what a state is made of")
