"""Numbers, arrays and names as they stand in LaTeX."""

from __future__ import annotations

import re

from mtldsl.values.listing import shape_of
from mtldsl.values.number import as_float

__all__ = ["constant_latex", "escaped", "number_latex"]


def number_latex(value: float) -> str:
    r"""1e-07 as 10^{-7}, infinity as \infty."""
    text = f"{value:.10g}".replace("inf", r"\infty")
    mantissa, exponential, exponent = text.partition("e")
    if not exponential:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else f"-{power}" if mantissa == "-1" else rf"{mantissa} \cdot {power}"


def escaped(name: str) -> str:
    """A name inside LaTeX's math mode."""
    return re.sub(r"([_#%&$])", r"\\\1", re.sub(r"[\\{}^~<>']", "", name))


def constant_latex(value) -> str:
    """A constant as it is printed in a model: numbers in full, arrays by their shape."""
    number, shape = as_float(value), shape_of(value) or ()
    if number is not None:
        return number_latex(number)
    return rf"\mathrm{{array}}({', '.join(str(n) for n in shape)})"
