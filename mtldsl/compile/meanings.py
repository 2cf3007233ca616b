"""What an atom is, in a few words with $LaTeX$, for the list below a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from mtldsl.atoms.function import Atom
from mtldsl.language.expressions.latex import number_latex
from mtldsl.values.number import as_float

__all__ = ["meaning_of"]


def meaning_of(atom: Atom) -> str:
    """Words with $LaTeX$: the atom's `meaning` with its parameters in it, or the beginning of its documentation.

    >>> from mtldsl.atoms.losses import QuantileLoss
    >>> meaning_of(QuantileLoss(q=0.9))
    'the quantile loss, $\\\\rho_{0.9}(r) = \\\\max(0.9\\\\, r,\\\\, (0.9 - 1)\\\\, r)$'
    """
    words = _own_meaning(type(atom)) or _beginning(atom.summary())
    words = re.sub(r"<(\w+)>", lambda field: _number(getattr(atom, field[1])), words)
    return words + _weights(getattr(atom, "weights", None)) + _metrics(getattr(atom, "metric", None))


def _own_meaning(cls: type[Atom]) -> str:
    """What the class says of itself, and not of one that it is made from under another name."""
    of = next((one for one in cls.__mro__ if "meaning" in vars(one)), None)
    return cls.meaning if of is not None and getattr(of, "name", "") == cls.name else ""


def _beginning(summary: str) -> str:
    """
    >>> _beginning("The Ky Fan norm: the sum of the k largest singular values. Source: Fan."), _beginning("Sizes; of all.")
    ('the Ky Fan norm', 'Sizes; of all')
    """
    words = re.split(r"[:.](?:\s|$)", summary, maxsplit=1)[0].strip()
    words = re.sub(r"^(The|A|An)\b", lambda article: article[0].lower(), words)
    return words.replace("$", "").strip() or "a term of one's own"


def _number(value: Any) -> str:
    number = as_float(value)
    return str(value) if number is None else number_latex(number)


def _weights(weights: Any) -> str:
    if weights is None:
        return ""
    low, high = float(np.min(weights)), float(np.max(weights))
    if low == high:
        return f", each with the weight $a = {number_latex(low)}$"
    return f", with weights $a$ from ${number_latex(low)}$ to ${number_latex(high)}$"


def _metrics(metric: Any) -> str:
    if metric is None:
        return ""
    if not isinstance(metric, Iterable):
        return rf"; $\Delta$ is {meaning_of(metric)}"
    return r"; $\Delta$ is for every task another: " + ", ".join(dict.fromkeys(map(meaning_of, metric)))
