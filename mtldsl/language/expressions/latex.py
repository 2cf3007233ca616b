"""Numbers, arrays and names as they stand in LaTeX."""

from __future__ import annotations

import numpy as np

from mtldsl.shown.math import escaped
from mtldsl.values.listing import as_list, shape_of
from mtldsl.values.number import as_float, quoted

__all__ = ["constant_latex", "index_latex", "index_text", "number_latex"]


def number_latex(value: float) -> str:
    r"""1e-07 as 10^{-7}, infinity as \infty."""
    text = f"{value:.10g}".replace("inf", r"\infty")
    mantissa, exponential, exponent = text.partition("e")
    if not exponential:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else f"-{power}" if mantissa == "-1" else rf"{mantissa} \cdot {power}"


def constant_latex(value) -> str:
    """A constant as it is printed in a model: numbers in full, arrays by their shape."""
    number, shape = as_float(value), shape_of(value) or ()
    if number is not None:
        return number_latex(number)
    return rf"\mathrm{{array}}({', '.join(str(n) for n in shape)})"


def index_latex(index) -> str:
    r"""A selection of rows or columns as an index: names upright, lists in braces, all of them as a dot.

    >>> print(index_latex(slice(None)), index_latex("a_1"), index_latex(["age", 3]), index_latex(slice(0, 2)))
    \cdot \mathrm{a\_1} \{\mathrm{age}, 3\} 0{:}2
    """
    if isinstance(index, slice):
        return r"\cdot" if index == slice(None) else index_text(index).replace(":", "{:}")
    if isinstance(index, str):
        return r"\mathrm{" + escaped(index).replace(" ", r"\ ") + "}"
    listed = as_list(index)
    if listed is None:
        return escaped(index_text(index))
    if len(listed) > 6:
        return rf"\{{{len(listed)}\ \mathrm{{chosen}}\}}"
    return r"\{" + ", ".join(index_latex(one) for one in listed) + r"\}"


def index_text(index) -> str:
    """A selection as it is printed in a model."""
    if isinstance(index, slice):
        start, stop = ("" if v is None else str(v) for v in (index.start, index.stop))
        return f"{start}:{stop}" + (f":{index.step}" if index.step is not None else "")
    if isinstance(index, np.ndarray):
        index = index.tolist()
    text = quoted(index, 25)
    if len(text) <= 24:
        return text
    shape = shape_of(index)
    return f"<{shape[0]} indices>" if shape and len(shape) == 1 else quoted(index, 24)
