"""Checks of what a user types: numbers, positions, names, flags, paths and seeds."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Number, Rational, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError, ModelError, MTLError, Spelled

# --------------------------------------------------------------------------------------------------------------
# Calls without what they need: Python's TypeError as an error that says what to write.

_F = TypeVar("_F", bound=Callable[..., Any])


def complete(write: str, error: type[MTLError] = ModelError) -> Callable[[_F], _F]:
    """Decorator: a call whose arguments do not fit the signature is `error`, with `write` as what to write instead.

    >>> @complete("write double(2)")
    ... def double(x):
    ...     return 2 * x
    >>> double()
    Traceback (most recent call last):
    mtldsl.errors.ModelError: double(): missing a required argument: 'x'; write double(2)
    """

    def decorated(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except TypeError:
                try:
                    inspect.signature(function).bind(*args, **kwargs)
                except TypeError as wrong:
                    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                    raise error(f"{wrong}", term=f"{name}()", write_instead=write) from None
                raise

        return call  # type: ignore[return-value]

    return decorated


# --------------------------------------------------------------------------------------------------------------
# One number as a user may write it: a float64 with the same value, or the reason why it is none.

#: What to write in place of what is not a number.
INSTEAD = {
    "text": "encode text and categories as numbers first (for example one column per category)",
    "times": 'give the time since a start, such as (t - t.min()) / np.timedelta64(1, "D")',
    "range": "rescale, for example X / np.abs(X).max(axis=0)",
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
        raise UnreadableError("is beyond float64, whose numbers end at 1.8e308", INSTEAD["range"])
    whole: Any = value
    if _is_spelt_whole(value) and int(whole) != int(number):
        raise UnreadableError(
            "is a whole number that float64 does not have (it has all up to 2^53 = 9007199254740992)",
            "subtract a constant or divide by a unit first",
        )
    if number == 0.0 and value != 0:
        raise UnreadableError("is too small for float64, whose numbers begin at 4.9e-324", INSTEAD["range"])
    return number


def _is_spelt_whole(value) -> bool:
    """Tell whether every digit of a whole number is there; Decimal("1e30") is a power of ten."""
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent  # a letter where it is NaN or infinite
        return isinstance(exponent, int) and exponent <= 0 and value == value.to_integral_value()
    return isinstance(value, Rational | np.integer) and value.denominator == 1


def as_float(value) -> float | None:
    """Return what `read_number` reads, but no boolean; None for everything else."""
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


def as_count(
    value, typed: str, least: int = 1, argument: str = "", most: int | None = None, instead: str = ""
) -> int:
    """A whole number of at least `least`; DataError for all else. `typed` is such as "folds(k".

    instead : what else may be written, such as "0 for none"

    >>> as_count(1, "folds(k", 2)
    Traceback (most recent call last):
    mtldsl.errors.DataError: folds(k=1): write a whole number of at least 2
    """
    number = as_whole(value)
    if number is None or number < least or (most is not None and number > most):
        largest = "" if most is None else f" and at most {most}"
        raise DataError(
            term=f"{typed}={quoted(value)}" + ")" * typed.count("("),
            write_instead=f"write a whole number of at least {least}{largest}{f', or {instead}' * bool(instead)}",
            argument=argument,
        )
    return number


def is_scalar(value) -> bool:
    """Tell whether this was meant as one number, though float64 may not have it."""
    if isinstance(value, bool | np.bool_ | np.timedelta64 | np.complexfloating):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "fiu" and not np.ma.isMaskedArray(value)
    return isinstance(value, Real | np.number | Decimal)


#: texts of what is missing, as spreadsheets, databases, R, numpy and pandas write it; None is not among them, which may be a category
MISSING_TEXTS = frozenset(("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NaT", "null", "NULL", "#N/A", "<NA>"))


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


# --------------------------------------------------------------------------------------------------------------
# Lists as a user may write them, and positions in one.


def as_list(value) -> list | None:
    """The entries of a list, tuple, array, column, range or iterator; None for what is none of these.

    Text would give its letters, sets no order, dicts and tables their names, sparse matrices what their arrays say, damaged or not.
    """
    if isinstance(value, str | bytes | bytearray | Mapping | set | frozenset) or not isinstance(
        value, Iterable
    ):
        return None
    shape = getattr(value, "shape", (1,))
    fits = isinstance(shape, tuple) and (
        len(shape) == 1 or (len(shape) > 1 and isinstance(value, np.ndarray))
    )
    if not fits or sparse.issparse(value):
        return None
    try:
        return list(value)
    except MTLError:
        raise
    except Exception:  # whatever a stranger's iterator raises
        return None


def shape_of(value) -> tuple[int, ...] | None:
    """The shape that numpy would give it, read off without making an array; None where it has none."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    if not isinstance(value, list | tuple):
        return ()
    inner = {shape_of(one) for one in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(next(iter(inner), ()) or ()))


def as_positions(index, size: int, typed: str, error: type[MTLError]) -> np.ndarray:
    """The positions, 0 to size - 1, that are meant by a whole number, a slice, a list of numbers, or a mask of `size` booleans.

    `error`, which begins with `typed`, for all else, and for positions that there are not. Negative ones count from the end.
    """
    if isinstance(index, slice):
        try:
            return np.arange(size)[index]
        except (TypeError, ValueError) as problem:
            raise error(f"{quoted(index)}: {problem}", term=typed) from None
    if isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu" and index.size:
        out = (index < -size) | (index >= size)  # a long array is not walked entry by entry
        if not out.any():
            return index.astype(int) % size
    given = [index] if as_whole(index) is not None else as_list(index)
    if given is None:
        raise error(
            f"{quoted(index)}: write positions, whole numbers from 0 to {size - 1}, a slice, or a mask of {size} booleans",
            term=typed,
        )
    if given and all(isinstance(one, bool | np.bool_) for one in given):
        if len(given) != size:
            raise error(
                f"a mask of {len(given)} booleans for {size}", term=typed, write_instead="give one each"
            )
        return np.flatnonzero(given)
    for one in given:
        whole = as_whole(one)
        if whole is None:
            raise error(
                f"{quoted(one)} is not a position",
                term=typed,
                write_instead=f"write whole numbers from 0 to {size - 1}, or a mask of {size} booleans",
            )
        if not -size <= whole < size:
            raise error(f"index {whole} is out of range for size {size}", term=typed)
    return np.array([int(one) % size for one in given], dtype=int)


def groups_of_labels(labels: Sequence) -> str:
    """Advice where one label per row, or column, was given in place of groups: the lists that these stand for; "" where they are none.

    >>> groups_of_labels(np.array([0, 0, 1, 1])), groups_of_labels([[0, 1], 2])
    ('; one label each, these would be the groups [[0, 1], [2, 3]]', '')
    """
    found: dict[Any, list[int]] = {}
    for k, label in enumerate(labels):
        if not isinstance(label, str | Integral):
            return ""
        found.setdefault(plain(label), []).append(k)
    if len(found) in (0, len(labels)):  # positions or names, each once
        return ""
    return f"; one label each, these would be the groups {quoted(list(found.values()), 80)}"


# --------------------------------------------------------------------------------------------------------------
# Names of tasks and columns: text, and different for what is different.


def distinct_names(values: Sequence[Hashable]) -> list[str]:
    """Each value as text; with its type where values that differ have the same text. Equal values keep equal names.

    >>> distinct_names([1, "1", "b"]), distinct_names(["a", "a"])
    (['1 (int)', '1 (str)', 'b'], ['a', 'a'])
    """
    values = [plain(value) for value in values]
    return distinct_texts([(str(value), type(value).__name__) for value in values])


def distinct_texts(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The same, of (text, type) of every value."""
    shared = Counter(text for text, _ in set(pairs))
    return [f"{text} ({kind})" if shared[text] > 1 else text for text, kind in pairs]


def listed(names: Iterable, most: int = 8) -> str:
    """The first names, for a message.

    >>> listed(["a", "b", "c"], 2)
    "'a', 'b', ..."
    """
    names = list(names)
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def nearest(typed: str, known: Iterable[str], what: str, most: int = 8) -> str:
    """Advice for a name that is none of those known: the one that may be meant, else the first of them.

    >>> nearest("ages", ["age", "size"], "feature"), nearest("x", ["age", "size"], "feature")
    ("did you mean 'age'?", "the features are 'age', 'size'")
    """
    composed = as_composed(typed)
    alike = next((name for name in known if as_composed(name) == composed), None)
    if alike is not None:
        return f"did you mean {alike!r}? Both look alike, but have accents in one sign with their letter, or in one of their own"
    near = difflib.get_close_matches(typed, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"the {what}s are {listed(known, most)}"


def as_composed(text: str) -> str:
    """Text with every accent in one sign with its letter, as most programs write it (Unicode's form NFC)."""
    return unicodedata.normalize("NFC", text)


def plain(value):
    """Python's own number or text in place of numpy's."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufUS" else value


# --------------------------------------------------------------------------------------------------------------
# Options that are one of a few: switches, and words of a list.


def as_flag(value, typed: str, error: type[MTLError] = DataError) -> bool:
    """True or False; `error` for all else, which Python would take for one of them. `typed` is such as "solve(verbose"."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    name = typed.rpartition("(")[2].rpartition(", ")[2]
    raise error(
        term=Spelled(f"{typed}={quoted(value)})", f"{name} = {quoted(value)}"),
        write_instead="write " + Spelled.option(name, "True") + " or " + Spelled.option(name, "False"),
        argument=name,
    )


def one_of(value, known: Iterable[str], typed: str, error: type[MTLError] = DataError) -> str:
    """The word, where it is one of those known. `typed` is such as "store(dtype"."""
    if isinstance(value, str) and value in known:
        return str(value)
    name = typed.rpartition("(")[2].rpartition(", ")[2]
    raise error(f"{typed}={quoted(value)}): write one of {', '.join(map(repr, known))}", argument=name)


# --------------------------------------------------------------------------------------------------------------
# Paths of files and folders.


def as_path(value, typed: str) -> Path:
    """The path; DataError where it is neither text nor a path. `typed` is such as "stored(folder)"."""
    if isinstance(value, str | os.PathLike) and str(value):
        return Path(value)
    raise DataError(
        f"{quoted(value)} is not a path", term=typed, write_instead="write text, or a pathlib.Path"
    )


# --------------------------------------------------------------------------------------------------------------
# Where randomness begins: `random_state`, as every function takes it.


def generator(random_state, typed: str, error: type[MTLError] = DataError) -> np.random.Generator:
    """A generator seeded by None or a whole number >= 0, or the numpy generator that is given; else `error`."""
    return np.random.default_rng(check_seed(random_state, typed, error))


def check_seed(random_state, typed: str, error: type[MTLError] = DataError):
    """Return what `generator` begins with; `error` where it cannot."""
    given = isinstance(random_state, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence)
    if given or random_state is None:
        return random_state
    seed = as_whole(random_state)
    if seed is None or seed < 0:
        raise error(
            f"{typed}(random_state={quoted(random_state)}): write a whole number >= 0, or None",
            argument="random_state",
        )
    return seed


# --------------------------------------------------------------------------------------------------------------
# How large and how small numbers of data may be: sums of products of a few of them must stay inside float64.

#: The square of 1e155 is infinite in float64; solvers multiply by weights and step sizes, too. (numpy scalars: float32
#: compared with a Python number would make that a float32 first.)
MAX_MAGNITUDE = np.float64(1e100)
#: The square of 1e-163 is 0.
MIN_MAGNITUDE = np.float64(1e-100)


def refuse_large_matrix(matrix: np.ndarray, name: str, typed: str, error: type[MTLError]) -> None:
    """`error`, which quotes two of them, where entries of a matrix are so large that float64 has not its eigenvalues."""
    sizes = np.abs(matrix)
    if sizes.max(initial=0.0) > MAX_MAGNITUDE:
        (i, j), (k, m) = (
            np.unravel_index(at, sizes.shape)
            for at in (sizes.argmax(), np.where(sizes > 0, sizes, np.inf).argmin())
        )
        raise error(
            f"{name}[{i}, {j}] is {matrix[i, j]:g}, beside {matrix[k, m]:g} at [{k}, {m}], and products of such numbers are not in float64",
            term=typed,
            write_instead=f"divide {name} by its largest entry, and multiply the coefficient of the term by it, at most {MAX_MAGNITUDE:g}",
        )
