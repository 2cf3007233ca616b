"""Values that a user may hand over by mistake, or that stand at the edge of what is right; each with what it means.

`VALUES` maps a name to (make, meaning): `make()` is the value, new at each call, of four rows where it has rows; `meaning` says which
real numbers it holds - an array of floats with NaN where something is missing - or REFUSED where it holds none, or float64 has not got
them.
"""

import datetime
import decimal
import fractions
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

REFUSED = None
nan = np.nan
V = np.array([1.0, -2.0, 3.0, 0.5])  # a vector that is right
M = np.column_stack([V, V[::-1] + 0.25])  # a matrix that is right
ZEROS = [[0.0, 0.0]] * 3
VALUES: dict[str, tuple] = {}
KINDS: dict[str, tuple] = {}  # of those that are made of any array: (how, meaning of the array)


def _add(name, make, meaning):
    assert name not in VALUES
    VALUES[name] = (make, meaning)


def _both(name, of, meaning_of):
    """The vector and the matrix of one kind."""
    KINDS[name] = (of, meaning_of)
    for shape, numbers in (("vector", V), ("matrix", M)):
        meaning = meaning_of(numbers)
        _add(f"{name}, {shape}", lambda of=of, numbers=numbers: of(numbers.copy()), meaning)


def _with(kind, value):
    """The numbers as Python objects or another type, with one of them replaced."""

    def of(numbers):
        array = numbers.astype(kind)
        array[(2,) * 1 + (0,) * (array.ndim - 1)] = value
        return array

    return of


def _meant(value):
    def of(numbers):
        numbers = numbers.copy()
        numbers[(2,) * 1 + (0,) * (numbers.ndim - 1)] = value
        return numbers

    return of


def same(numbers):
    return numbers


def refused(numbers):
    return REFUSED


def _hidden(numbers):
    return np.ma.array(numbers, mask=_meant(True)(np.zeros(numbers.shape, bool)))


def _gap(numbers):
    return _meant(nan)(4 * numbers)


def _some_signs(numbers):
    return _meant(nan)((numbers > 0).astype(float))


# ---------------------------------------------------------------------------------- right, in many clothes
_both("float64", same, same)
_both("float32", lambda a: a.astype(np.float32), same)
_both("float16", lambda a: a.astype(np.float16), same)
_both("longdouble", lambda a: a.astype(np.longdouble), same)
_both("Fortran order", np.asfortranarray, same)
_both("reversed strides", lambda a: a[::-1].copy()[::-1], same)
_both("big-endian", lambda a: a.astype(">f8"), same)
_both("read-only", lambda a: (a.setflags(write=False), a)[1], same)
_both("list", lambda a: a.tolist(), same)
_both("tuple", lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a), same)
_both("list of numpy scalars", lambda a: [list(r) for r in a] if a.ndim == 2 else list(a), same)
_both("objects that are floats", lambda a: a.astype(object), same)
_both("np.matrix", lambda a: np.matrix(a if a.ndim == 2 else a[:, None]), lambda a: a.reshape(4, -1))
_both("masked, nothing hidden", lambda a: np.ma.array(a, mask=False), same)
_both("int64", lambda a: (4 * a).astype(np.int64), lambda a: 4 * a)
_both("int8", lambda a: (4 * a).astype(np.int8), lambda a: 4 * a)
_both("uint64", lambda a: np.abs(4 * a).astype(np.uint64), lambda a: np.abs(4 * a))
_both("Python ints", lambda a: (4 * a).astype(int).tolist(), lambda a: 4 * a)
_both("bool", lambda a: a > 0, lambda a: (a > 0).astype(float))
_both("Python bools", lambda a: (a > 0).tolist(), lambda a: (a > 0).astype(float))
_both("Decimals", lambda a: np.vectorize(lambda v: decimal.Decimal(float(v)), otypes=[object])(a), same)
_both("Fractions", lambda a: np.vectorize(lambda v: fractions.Fraction(float(v)), otypes=[object])(a), same)
_both("2^53 as int64", _with(np.int64, 2**53), lambda a: _meant(2.0**53)(np.trunc(a)))
_both("2^53 + 2 as int64", _with(np.int64, 2**53 + 2), lambda a: _meant(2.0**53 + 2)(np.trunc(a)))
_both("2^80 as a Python int", _with(object, 2**80), _meant(2.0**80))
_both("numpy memmap", lambda a: _mapped(a), same)
_both("__array__", lambda a: SimpleArray(a), same)

# ------------------------------------------------------------------------------------------- right, as tables
_both("pandas", lambda a: _pandas(a), same)
_both("pandas Float64", lambda a: _pandas(a, "Float64"), same)
_both("pandas Int64", lambda a: _pandas(4 * a, "Int64"), lambda a: 4 * a)
_both("pandas boolean", lambda a: _pandas(a > 0, "boolean"), lambda a: (a > 0).astype(float))
_both("pandas objects", lambda a: _pandas(a, object), same)
_both("pandas sparse", lambda a: _pandas(a).astype(pd.SparseDtype(float, 0.0)), same)
_both("pandas float16", lambda a: _pandas(a, "float16"), same)
_both("pandas pyarrow", lambda a: _pandas(a, "float64[pyarrow]"), same)
_both("polars", lambda a: _polars(a), same)
_both("polars Float32", lambda a: _polars(a, pl.Float32), same)
_both("polars Int64", lambda a: _polars(4 * a, pl.Int64), lambda a: 4 * a)
_both("polars Boolean", lambda a: _polars(a > 0, pl.Boolean), lambda a: (a > 0).astype(float))
_both("polars Decimal", lambda a: _polars(a, pl.Decimal(10, 4)), same)

# ------------------------------------------------------------------------------------------- something missing
_both("NaN", _with(float, nan), _meant(nan))
_both("None among floats", lambda a: _with(object, None)(a).tolist(), _meant(nan))
_both("None among objects", _with(object, None), _meant(nan))
_both("pd.NA among objects", _with(object, pd.NA), _meant(nan))
_both("Decimal NaN", _with(object, decimal.Decimal("NaN")), _meant(nan))
_both("masked", _hidden, _meant(nan))
_both("masked ints", lambda a: _hidden((4 * a).astype(int)), _gap)
_both("masked in a list", lambda a: list(_hidden(a)), _meant(nan))
_both("pandas Int64 with NA", lambda a: _pandas(_gap(a), "Int64"), _gap)
_both("pandas boolean with NA", lambda a: _pandas(_with(object, pd.NA)(a > 0), "boolean"), _some_signs)
_both("pandas objects with NA", lambda a: _pandas(_with(object, pd.NA)(a), object), _meant(nan))
_both("pandas pyarrow with NA", lambda a: _pandas(_with(object, None)(a), "float64[pyarrow]"), _meant(nan))
_both("polars with null", lambda a: _polars(_with(object, None)(a)), _meant(nan))
_both("polars Int64 with null", lambda a: _polars(_with(object, None)((4 * a).astype(int)), pl.Int64), _gap)
_both("polars Null", lambda a: _polars(np.full(a.shape, None), pl.Null), lambda a: np.full(a.shape, nan))

# -------------------------------------------------------------------------------------------- times, not numbers
_days = np.array(["2020-01-01", "2021-05-05", "NaT", "2022-02-02"], dtype="M8[ns]")
_spans = _days - _days[0]
for unit in ("ns", "D"):
    _both(f"datetime64[{unit}]", lambda a, u=unit: _shaped(_days.astype(f"M8[{u}]"), a), refused)
    _both(f"timedelta64[{unit}]", lambda a, u=unit: _shaped(_spans.astype(f"m8[{u}]"), a), refused)
_both("list of datetime64", lambda a: list(_days) if a.ndim == 1 else [[d, d] for d in _days], refused)
_both("masked datetime64", lambda a: np.ma.array(_shaped(_days, a), mask=True), refused)
_both("Timestamps as objects", lambda a: _with(object, pd.Timestamp("2020-01-01"))(a), refused)
_both("NaT as object", lambda a: _with(object, pd.NaT)(a), refused)
_both("np.datetime64 as object", lambda a: _with(object, np.datetime64("2020-01-01"))(a), refused)
_both("np.timedelta64 as object", lambda a: _with(object, np.timedelta64(5, "s"))(a), refused)
_both("date", lambda a: _with(object, datetime.date(2020, 1, 1))(a), refused)
_both("datetime", lambda a: _with(object, datetime.datetime(2020, 1, 1))(a).tolist(), refused)
_both("timedelta", lambda a: _with(object, datetime.timedelta(1))(a), refused)
_both("time", lambda a: _with(object, datetime.time(1))(a), refused)
_both("pandas datetime", lambda a: _pandas(_shaped(_days, a)), refused)
_both("pandas datetime UTC", lambda a: _beside(pd.Series(_days).dt.tz_localize("UTC"), a), refused)
_both("pandas timedelta", lambda a: _pandas(_shaped(_spans, a)), refused)
_both("pandas period", lambda a: _beside(pd.Series(pd.period_range("2020", periods=4)), a), refused)
for _kind, _value in (
    (pl.Date, datetime.date(2020, 1, 1)), (pl.Datetime, datetime.datetime(2020, 1, 1)),
    (pl.Duration, datetime.timedelta(1)), (pl.Time, datetime.time(1)),
    (pl.List, [1.0, 2.0]), (pl.Struct, {"x": 1.0}), (pl.Object, object()),
):  # fmt: skip
    _both(f"polars {_kind.__name__}", lambda a, k=_kind, v=_value: _beside(_series(v, k), a), refused)

# --------------------------------------------------------------------------------------- text, categories, others
_both("text", lambda a: np.full(a.shape, "a"), refused)
_both("digits as text", lambda a: a.astype(str), refused)
_both("digits as text in a list", lambda a: a.astype(str).tolist(), refused)
_both("one number as text", lambda a: _with(object, "1.5")(a), refused)
_both("one number as text in a list", lambda a: _with(object, "1.5")(a).tolist(), refused)
_both("bytes", lambda a: a.astype("S"), refused)
_both("variable text", lambda a: np.array(a.astype(str), dtype=np.dtypes.StringDType()), refused)
_both("pandas text", lambda a: _pandas(a.astype(str)), refused)
_both("pandas string", lambda a: _pandas(a.astype(str), "string"), refused)
_both("pandas category of text", lambda a: _pandas(np.full(a.shape, "a"), "category"), refused)
_both("pandas category of numbers", lambda a: _pandas(a, "category"), refused)
_both("pandas complex", lambda a: _pandas(a + 1j), refused)
_both("pandas interval", lambda a: _beside(pd.Series(pd.interval_range(0, 4)), a), refused)
_both("polars text", lambda a: _polars(a.astype(str), pl.String), refused)
_both("polars categories", lambda a: _polars(np.full(a.shape, "a", dtype=object), pl.Categorical), refused)
_both("polars Enum", lambda a: _polars(np.full(a.shape, "a", dtype=object), pl.Enum(["a"])), refused)
_both("polars lazy", lambda a: _polars(a).lazy() if a.ndim == 2 else pl.DataFrame({"a": a}).lazy(), refused)
_both("complex", lambda a: a + 1j, refused)
_both("complex without imaginary part", lambda a: a.astype(complex), refused)
_both("one complex", lambda a: _with(object, 1j)(a), refused)
_both(
    "structured",
    lambda a: np.array([(float(r), 1.0) for r in np.ravel(a)[:4]], dtype=[("x", float), ("y", float)]),
    refused,
)
_both("void", lambda a: np.zeros(a.shape, dtype="V8"), refused)
_both("objects", lambda a: _with(object, object())(a), refused)
_both("a list in an object array", lambda a: _with(object, _boxed([1.0]))(a), refused)
_both("an array in an object array", lambda a: _with(object, _boxed(np.array([1.0])))(a), refused)
_both("a Decimal that signals", lambda a: _with(object, decimal.Decimal("sNaN"))(a), refused)
_add("ragged lists", lambda: [[1.0, 2.0], [3.0], [4.0, 5.0], [6.0]], REFUSED)
_add("ragged deep", lambda: [[[1.0]], [[2.0, 3.0]], [1.0], 4.0], REFUSED)
_add("list of arrays of other lengths", lambda: [np.ones(2), np.ones(3), np.ones(1), np.ones(2)], REFUSED)
_add("dict of columns", lambda: {"a": V.tolist(), "b": V.tolist()}, REFUSED)
_add("empty dict", dict, REFUSED)
_add("set", lambda: {1.0, 2.0, 3.0, 4.0}, REFUSED)
_add("generator", lambda: (v for v in V), REFUSED)
_add("None", lambda: None, REFUSED)
_add("a string", lambda: "abcd", REFUSED)
_add("a number as text", lambda: "5", REFUSED)
_add("some bytes", lambda: b"abcd", REFUSED)
_add("an object", object, REFUSED)
_add("a class", lambda: np.ndarray, REFUSED)
_add("a function", lambda: np.sin, REFUSED)
_add("Ellipsis", lambda: Ellipsis, REFUSED)
_add("a namespace", lambda: SimpleNamespace(shape=(4, 2), dtype=float), REFUSED)
_add("an __array__ that raises", lambda: Raising(), REFUSED)
_add("range", lambda: range(1, 5), np.arange(1.0, 5.0))

# ---------------------------------------------------------------------------------------- shapes and single numbers
_add("empty list", list, np.empty(0))
_add("list of empty lists", lambda: [[], [], [], []], np.empty((4, 0)))
_add("no rows", lambda: np.empty((0, 2)), np.empty((0, 2)))
_add("no columns", lambda: np.empty((4, 0)), np.empty((4, 0)))
_add("empty pandas", pd.DataFrame, np.empty((0, 0)))
_add("empty polars", pl.DataFrame, np.empty((0, 0)))
_add("3-d", lambda: np.ones((4, 2, 2)), np.ones((4, 2, 2)))
_add("0-d", lambda: np.array(2.0), np.array(2.0))
_add("one row too many", lambda: np.ones((5, 2)), np.ones((5, 2)))
_add("a number", lambda: 5.0, np.array(5.0))
_add("an int", lambda: 5, np.array(5.0))
_add("a numpy number", lambda: np.float32(0.5), np.array(0.5))
_add("a Fraction", lambda: fractions.Fraction(1, 2), np.array(0.5))
_add("a Decimal", lambda: decimal.Decimal("0.5"), np.array(0.5))
_add("a number < 0", lambda: -1.0, np.array(-1.0))
_add("zero", lambda: 0, np.array(0.0))
_add("True", lambda: True, np.array(1.0))
_add("np.True_", lambda: np.True_, np.array(1.0))
_add("a complex number", lambda: 1j, REFUSED)
_add("a numpy complex number", lambda: np.complex128(1), REFUSED)
_add("a datetime64", lambda: np.datetime64("2020-01-01"), REFUSED)
_add("a NaT", lambda: np.datetime64("NaT"), REFUSED)
_add("a timedelta64", lambda: np.timedelta64(3, "D"), REFUSED)
_add("a timedelta64 without unit", lambda: np.timedelta64(3), REFUSED)
_add("a Timestamp", lambda: pd.Timestamp("2020-01-01"), REFUSED)
_add("a date", lambda: datetime.date(2020, 1, 1), REFUSED)
_add("pd.NA", lambda: pd.NA, np.array(nan))
_add("pd.NaT", lambda: pd.NaT, REFUSED)
_add("nan", lambda: nan, np.array(nan))
_add("inf", lambda: np.inf, np.array(np.inf))
_add("-inf", lambda: -np.inf, np.array(-np.inf))
_add("np.ma.masked", lambda: np.ma.masked, np.array(nan))
_add("10^400", lambda: 10**400, REFUSED)
_add("-10^400", lambda: -(10**400), REFUSED)
_add("2^53 + 1", lambda: 2**53 + 1, REFUSED)
_add("Fraction 10^400", lambda: fractions.Fraction(10**400), REFUSED)
_add("Fraction 10^-400", lambda: fractions.Fraction(1, 10**400), REFUSED)
_add("Decimal 1e400", lambda: decimal.Decimal("1e400"), REFUSED)
_add("longdouble 1e400", lambda: np.longdouble("1e400"), REFUSED)
_add("longdouble 1e-400", lambda: np.longdouble("1e-400"), REFUSED)
_add("1e308", lambda: 1e308, np.array(1e308))
_add("5e-324", lambda: 5e-324, np.array(5e-324))

# -------------------------------------------------------------------------------- beyond float64, or its squares
_both("inf", _with(float, np.inf), _meant(np.inf))
_both("-inf", _with(float, -np.inf), _meant(-np.inf))
_both("1e200", _with(float, 1e200), _meant(1e200))
_both("-1e308", _with(float, -1e308), _meant(-1e308))
_both("inf as float32", _with(np.float32, np.inf), _meant(np.inf))
_both("1e-200 throughout", lambda a: 1e-200 * a, lambda a: 1e-200 * a)
_both("subnormal", lambda a: np.full(a.shape, 5e-324), lambda a: np.full(a.shape, 5e-324))
_both("2^53 + 1 as int64", _with(np.int64, 2**53 + 1), refused)
_both("-2^53 - 1 as int64", _with(np.int64, -(2**53) - 1), refused)
_both("2^63 + 1 as uint64", lambda a: _with(np.uint64, 2**63 + 1)(np.abs(a)), refused)
_both("2^53 + 1 among floats", lambda a: _with(object, 2**53 + 1)(a).tolist(), refused)
_both("2^53 + 1 among objects", _with(object, 2**53 + 1), refused)
_both("10^400 among objects", _with(object, 10**400), refused)
_both("10^400 in a list", lambda a: _with(object, 10**400)(a).tolist(), refused)
_both("longdouble 1e400 in an array", lambda a: _with(np.longdouble, np.longdouble("1e400"))(a), refused)
_both("longdouble 1e-400 in an array", lambda a: _with(np.longdouble, np.longdouble("1e-400"))(a), refused)
_both("longdouble inf", lambda a: _with(np.longdouble, np.inf)(a), _meant(np.inf))
_both("pandas 2^53 + 1", lambda a: _pandas(_with(np.int64, 2**53 + 1)(a)), refused)
_both("pandas Int64 2^53 + 1 with NA", lambda a: _pandas(_large_or_gone(a), "Int64"), refused)
_both("polars 2^53 + 1", lambda a: _polars(_with(np.int64, 2**53 + 1)(a), pl.Int64), refused)
_both("polars Int128", lambda a: _polars(_with(object, 2**70 + 1)(a.astype(int)), pl.Int128), refused)

# ------------------------------------------------------------------------------------------------- sparse matrices
for _format in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
    _add(f"sparse {_format}", lambda f=_format: sparse.csr_array(M).asformat(f), M)
_add("sparse csr_matrix", lambda: sparse.csr_matrix(M), M)
_int8 = sparse.coo_array((np.full(2, 100, np.int8), ([0, 0], [1, 1])), shape=(4, 2))
_add("sparse int8 with duplicates", _int8.copy, np.array([[0, 200.0], *ZEROS]))
_add("sparse bool", lambda: sparse.csr_array(M > 0), (M > 0).astype(float))
for _name, _parts, _rows in (
    ("unsorted", ([2.0, 1.0, 3.0], [1, 0, 1], [0, 2, 3, 3, 3]), [[1, 2], [0, 3]]),
    ("with duplicates", ([2.0, 1.0, 3.0], [1, 1, 1], [0, 2, 3, 3, 3]), [[0, 3], [0, 3]]),
    ("with room to spare", ([2.0, 1.0, 7.0], [1, 0, 9], [0, 1, 2, 2, 2]), [[0, 2], [1, 0]]),
):
    _add(f"sparse {_name}", lambda parts=_parts: _csr(*parts), np.array([*_rows, *ZEROS[:2]], dtype=float))
_add("sparse all zero", lambda: sparse.csr_array((4, 2)), np.zeros((4, 2)))
for _name, _value in (("NaN", nan), ("inf", np.inf), ("1e200", 1e200), ("1e-200", 1e-200)):
    _add(f"sparse {_name}", lambda v=_value: _csr([v], [0], [0, 1, 1, 1, 1]), np.array([[_value, 0], *ZEROS]))
_add("sparse complex", lambda: sparse.csr_array(M + 1j), REFUSED)
_add("sparse 2^53 + 1", lambda: _csr(np.array([2**53 + 1]), [0], [0, 1, 1, 1, 1]), REFUSED)
_add("sparse 1-d", lambda: sparse.coo_array(V), V)
_add("sparse 3-d", lambda: sparse.coo_array(np.ones((4, 2, 2))), np.ones((4, 2, 2)))
_add("sparse without columns", lambda: sparse.csr_array((4, 0)), np.empty((4, 0)))
_add("csr: index too large", lambda: _csr([1.0], [9], [0, 1, 1, 1, 1]), REFUSED)
_add("csr: index < 0", lambda: _csr([1.0], [-1], [0, 1, 1, 1, 1]), REFUSED)
_add("csr: indptr falls", lambda: _csr([1.0, 2.0], [0, 1], [0, 2, 1, 2, 2]), REFUSED)
_add("csr: indptr too long", lambda: _csr([1.0], [0], [0, 1, 1, 1, 1, 1]), REFUSED)
_add("csr: indptr too short", lambda: _csr([1.0], [0], [0, 1]), REFUSED)
_add("csr: indptr ends too high", lambda: _csr([1.0], [0], [0, 1, 1, 1, 99]), REFUSED)
_add("csr: indptr begins at 1", lambda: _csr([1.0, 2.0], [0, 1], [1, 1, 1, 1, 2]), REFUSED)
_add("csr: indptr < 0", lambda: _csr([1.0], [0], [0, -5, 1, 1, 1]), REFUSED)
_add("csr: fewer values than indices", lambda: _csr([1.0], [0, 1], [0, 1, 2, 2, 2]), REFUSED)
_add("csr: indices are floats", lambda: _csr([1.0], np.array([0.5]), [0, 1, 1, 1, 1]), REFUSED)
_add("csc: row index too large", lambda: _damaged("csc", indices=99), REFUSED)
_add("csc: indptr falls", lambda: _damaged("csc", indptr=-3), REFUSED)
_add("bsr: block index too large", lambda: _damaged("bsr", indices=99), REFUSED)
_add("coo: row too large", lambda: _damaged_coo(99), REFUSED)
_add("coo: column < 0", lambda: _damaged_coo(-1, axis=1), REFUSED)
_add("coo: lengths differ", lambda: _damaged_coo(None), REFUSED)


def _beside(column, like):
    """A column, or a table of it and of numbers."""
    if like.ndim == 1:
        return column
    if isinstance(column, pd.Series):
        return pd.DataFrame({"a": column, "b": like[:, 0]})
    return pl.DataFrame([column, pl.Series("b", like[:, 0])])


def _series(value, kind):
    return pl.Series("a", [value] * 4, dtype=kind if kind is pl.Object else None)


def _large_or_gone(numbers):
    return np.where(numbers == 3.0, 2**53 + 1, pd.NA)


def _boxed(value):
    box = np.empty((), dtype=object)
    box[()] = value
    return box


def _shaped(column, like):
    return column.copy() if like.ndim == 1 else np.column_stack([column] * like.shape[1])


def _pandas(array, dtype=None):
    if array.ndim == 1:
        return pd.Series(array, dtype=dtype)
    return pd.DataFrame({f"c{k}": pd.Series(column, dtype=dtype) for k, column in enumerate(array.T)})


def _polars(array, dtype=None):
    def series(name, values):
        return pl.Series(name, values.tolist(), dtype=dtype, strict=False)

    if array.ndim == 1:
        return series("c", array)
    return pl.DataFrame([series(f"c{k}", column) for k, column in enumerate(array.T)])


def _mapped(array):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # what is mapped stays readable
        np.save(f"{folder}/a.npy", array)
        return np.load(f"{folder}/a.npy", mmap_mode="r")


class SimpleArray:
    """An object of another package: what numpy makes an array of."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numbers, dtype=dtype)


class Raising:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on the accelerator")


def _csr(data, indices, indptr):
    X = sparse.csr_array((4, 2))
    X.data, X.indices, X.indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    return X


def _damaged(format, **entries):
    X = sparse.csr_array(M).asformat(format)
    for name, value in entries.items():
        getattr(X, name)[1] = value
    return X


def _damaged_coo(value, axis=0):
    X = sparse.coo_array(M)
    if value is None:
        X.data = X.data[:-1]
    else:
        X.coords[axis][0] = value
    return X
