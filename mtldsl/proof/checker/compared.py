"""Two normal forms as plain data, compared: the one that a proof is about, and the one that the user names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["difference"]

#: what of a term is of the model; the rest is of the proof, or text for people
_OF_LOSSES = ("word", "parameters", "coefficients", "data", "map", "intercepts")
_OF_FUNCTIONS = ("word", "parameters", "coefficient", "map", "convex")


def difference(own: dict, other: dict) -> str | None:
    """The first thing in which `other` is not `own`, up to the order of blocks, terms and data; None where they are the same.

    Both are canonical: `schema.checked_form` made them.
    """
    if own["constant"] != other["constant"]:
        return f"the constant is {other['constant']:.17g}, not {own['constant']:.17g}"
    parts = {
        "the block": (own["blocks"], other["blocks"]),
        "the data set": (own["data"], other["data"]),
        "the loss": (_losses(own), _losses(other)),
        "the function": (_functions(own), _functions(other)),
    }
    for what, (mine, its) in parts.items():
        left = list(its)
        for one in mine:
            k = next((k for k, candidate in enumerate(left) if _equal(one, candidate)), None)
            if k is None:
                return f"{what} {_called(one)} is not in it, or with other numbers"
            del left[k]
        if left:
            return f"{what} {_called(left[0])} is in it besides"
    return None


def _losses(form) -> list[dict]:
    return [
        {name: one[name] for name in _OF_LOSSES} | {"data": form["data"][one["data"]]}
        | {"intercepts": sorted(one["intercepts"]), "map": _sorted_map(one["map"])}
        for one in form["losses"]
    ]  # fmt: skip


def _functions(form) -> list[dict]:
    return [
        {name: one[name] for name in _OF_FUNCTIONS} | {"map": _sorted_map(one["map"])}
        for one in form["functions"]
    ]


def _sorted_map(map: dict) -> dict:
    return map | {"entries": sorted(map["entries"], key=lambda e: e["block"])}


def _called(one: dict) -> str:
    return str(one.get("word") or one.get("name") or ", ".join(sorted(one["hashes"])))


def _equal(a: Any, b: Any) -> bool:
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.issparse(a) and sparse.issparse(b) and a.shape == b.shape and (a != b).nnz == 0
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and bool(np.array_equal(a, b))
    return type(a) is type(b) and a == b
