"""One number as a user may write it: a float64 with the same value, or the reason why it is none."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Number, Rational, Real

import numpy as np

__all__ = [
    "INSTEAD",
    "UnreadableError",
    "as_float",
    "as_whole",
    "is_missing",
    "is_scalar",
    "quoted",
    "read_number",
]

#: What to write in place of what is not a number.
INSTEAD = {
    "text": "encode text and categories as numbers first (for example one column per category)",
    "times": 'give the time since a start, such as (t - t.min()) / np.timedelta64(1, "D")',
    "complex": "give real ones, such as A.real, or real and imaginary parts as two columns",
}


class UnreadableError(ValueError):
    """Why a value is not a number, as the predicate of a sentence: "is text"; and what to write `instead`."""

    def __init__(self, reason: str, instead: str = ""):
        super().__init__(reason)
        self.instead = instead


def read_number(value) -> float:
    """The real number as a float, NaN and infinity too; UnreadableError where float64 has no such number.

    Decimal fractions become the nearest float64, as literals do; a whole number has to be one, and nothing finite becomes infinite or 0.
    Booleans count as 0 and 1.
    """
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0 and not np.ma.isMaskedArray(value):
        value = value[()]
    if isinstance(value, str | bytes | bytearray):
        raise UnreadableError("is text", INSTEAD["text"])
    if isinstance(value, np.datetime64 | np.timedelta64) or hasattr(value, "isoformat"):
        raise UnreadableError("is a time", INSTEAD["times"])
    if isinstance(value, complex | np.complexfloating):
        raise UnreadableError("is a complex number", INSTEAD["complex"])
    if not isinstance(value, Real | np.number | np.bool_ | Decimal):
        raise UnreadableError(f"is a {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    except (TypeError, ValueError):
        raise UnreadableError(f"is a {type(value).__name__} without a value") from None
    if np.isinf(number) and not _is_infinite(value):
        raise UnreadableError("is beyond float64, whose numbers end at 1.8e308")
    if (
        isinstance(value, Rational | np.integer)
        and value.denominator == 1
        and int(value.numerator) != int(number)
    ):
        raise UnreadableError(
            "is a whole number that float64 does not have (it has all up to 2^53 = 9007199254740992)",
            "subtract a constant or divide by a unit first",
        )
    if number == 0.0 and value != 0:
        raise UnreadableError("is too small for float64, whose numbers begin at 4.9e-324")
    return number


def as_float(value) -> float | None:
    """What `read_number` reads, but no boolean; None for everything else."""
    if type(value) is float or value is None:
        return value
    if isinstance(value, bool | np.bool_) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return None
    try:
        return read_number(value)
    except UnreadableError:
        return None


def as_whole(value) -> int | None:
    """A whole number as an int, of Python's or numpy's types for them; None for everything else, also for 2.0, True and times."""
    if type(value) is int or value is None:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_ | np.timedelta64)
    return int(value) if whole else None


def is_scalar(value) -> bool:
    """Whether this was meant as one number, though float64 may not have it."""
    if isinstance(value, bool | np.bool_ | np.timedelta64 | np.complexfloating):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "fiu" and not np.ma.isMaskedArray(value)
    return isinstance(value, Real | np.number | Decimal)


def is_missing(value) -> bool:
    """None, NaN, NaT, pandas' NA, numpy's masked: what stands where nothing is known."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:  # NaN is the value that differs from itself; what is not a number is not asked
        return isinstance(value, Number | np.generic) and bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        return False


def quoted(value, length: int = 40) -> str:
    """A value as it is quoted in a message: on one line, and not the whole of a long one."""
    try:
        with np.errstate(all="ignore"):  # float16 overflows on its way to being printed
            text = " ".join(repr(value).split())
    except Exception:  # what cannot be printed, such as a damaged sparse matrix
        text = f"<{type(value).__name__}>"
    return text if len(text) <= length else text[: length - 3] + "..."


def _is_infinite(value) -> bool:
    return isinstance(value, float | np.floating | Decimal) and bool(abs(value) == np.inf)
