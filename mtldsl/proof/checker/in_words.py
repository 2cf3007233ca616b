"""The model that a proof is about, in words: made of the numbers that are checked, and not of the text that the file has beside them."""

from __future__ import annotations

import numpy as np

__all__ = ["in_words"]


def in_words(proof: dict) -> str:
    """The terms of a normal form, with their coefficients and parameters.

    A number stands as it is, an array as its range, and the matrices of a map as A and B.
    """
    terms = [_loss(one) for one in proof["losses"]]
    terms += [_function(one) for one in proof["functions"] if not _is_set(one)]
    if proof["constant"]:
        terms.append(f"{proof['constant']:.10g}")
    held = [_function(one) for one in proof["functions"] if _is_set(one)]
    subject_to = f" subject to {', '.join(held)}" if held else ""
    blocks = ", ".join(
        f"{one['name']} ({one['shape'][0]:,} x {one['shape'][1]:,})" for one in proof["blocks"]
    )
    return f"minimize {' + '.join(terms)}{subject_to} over {blocks}"


def _is_set(one: dict) -> bool:
    return one["word"] in ("norm_ball", "at_least", "at_most", "equal_to", "columns_on_simplex")


def _loss(one: dict) -> str:
    arguments = [
        _map(one["map"], one["intercepts"]),
        f"data {one['data'] + 1}",
        *_parameters(one["parameters"]),
    ]
    return f"{_range(one['coefficients'])} {one['word']}({', '.join(arguments)})"


def _function(one: dict) -> str:
    text = f"{one['word']}({', '.join([_map(one['map'], []), *_parameters(one['parameters'])])})"
    return text if _is_set(one) else f"{one['coefficient']:.10g} {text}"


def _map(map: dict, intercepts: list[str]) -> str:
    parts = []
    for e in map["entries"]:
        text = e["block"] if e["coefficient"] == 1.0 else f"{e['coefficient']:.10g} {e['block']}"
        text = text if e["left"] is None else f"A @ {text}"
        parts.append(text if e["right"] is None else f"{text} @ B")
    parts += intercepts
    return " + ".join(parts if map["offset"] is None else [*parts, f"an offset of {_range(map['offset'])}"])


def _parameters(parameters: dict) -> list[str]:
    return [f"{name}={_value(value)}" for name, value in parameters.items() if value is not None]


def _value(value) -> str:
    if isinstance(value, dict):
        inside = {name: one for name, one in value.items() if name not in ("word", "metric", "parameters")}
        return f"{value.get('word') or value.get('metric')}({', '.join(_parameters(value.get('parameters') or inside))})"
    if isinstance(value, np.ndarray):
        return _range(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]" if len(value) <= 4 else f"{len(value):,} entries"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _range(array: np.ndarray) -> str:
    least, most = float(np.min(array)), float(np.max(array))
    return f"{least:.10g}" if least == most else f"{least:.6g} to {most:.6g}"
