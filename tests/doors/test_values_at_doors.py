"""A table of quirks of data and doors in memory: each cell is the value of plain data, or one typed error; whoever adds a door adds its row."""

import inspect
import re
import warnings
from datetime import date
from functools import cached_property, partial

import dask
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

import mtldsl as mtl
import mtldsl.estimators
import mtldsl.estimators.baselines
from mtldsl.errors import DataError
from tests.loops import for_each
from tests.models import with_weights
from tests.tasks.bad_values import KINDS as KINDS_OF_ARRAYS
from tests.tasks.bad_values import same

RNG = np.random.default_rng(0)
N = 24
X = RNG.integers(-16, 17, size=(N, 3)) / 8.0  # float16 has them all
NUMBERS = np.round(8 * X @ RNG.normal(size=(3, 2))) / 8.0
CLASSES = (X @ RNG.normal(size=(3, 2)) + 0.3 * RNG.normal(size=(N, 2)) > 0).astype(float)
WEIGHTS = RNG.integers(1, 5, size=N).astype(float)
IDS = np.tile(["a", "b", "c"], N // 3)
GONE = np.zeros(X.shape, dtype=bool)
GONE[3, 1] = True
MIXED = RNG.permutation(N)


def tasks_of(tasks):
    inputs = tasks.X if tasks.is_shared else tasks.stacked
    inputs = inputs.toarray() if sparse.issparse(inputs) else inputs
    weights = np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights
    return [inputs, tasks.targets, weights, np.asarray(tasks.counts)]


class Door:
    """A way in: which data it takes, and what can be compared of what it makes of them."""

    def __init__(self, answer, labels, takes="Xyw", many=True):
        self.answer, self.labels, self.takes, self.many = answer, labels, takes, many

    @cached_property
    def usual(self):
        """What it makes of the plain data."""
        return self.answer(**self.plain())

    def plain(self):
        Y = NUMBERS if self.labels == "numbers" else CLASSES
        given = {"X": X, "y": Y if self.many else Y[:, 0], "w": WEIGHTS, "g": IDS}
        return {name: value for name, value in given.items() if name in self.takes}


def of_estimator(make, labels, grouped=False):
    """What a fitted estimator says of plain inputs."""

    def answer(X=X, y=None, w=None, g=None):  # the inputs that are asked about are always plain
        given = {"groups": g} if grouped else {}
        fitted = make().fit(X, y, **given, **({} if w is None else {"sample_weight": w}))
        beside = {"groups": IDS} if grouped else {}
        margins = hasattr(fitted, "decision_function")
        found = (fitted.decision_function if margins else fitted.predict)(globals()["X"], **beside)
        # labels of other names are told by which is the larger
        return [
            np.asarray(found, dtype=float)
            if labels == "numbers" or margins
            else np.asarray(found) == np.unique(found)[-1]
        ]

    return answer


def estimators():
    """Every public estimator of the package that predicts, by name."""
    found = {}
    for room in (mtldsl.estimators, mtldsl.estimators.baselines):
        kinds = (getattr(room, name) for name in room.__all__)
        found |= {
            kind.__name__: kind
            for kind in kinds
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and hasattr(kind, "predict")
        }
    return found


#: every estimator: (its options, its labels, what it takes). A new one must have its row.
TIGHT = {"tol": 1e-9}
CHOICE = TIGHT | {"values": [1.0], "cv": 2}
ROWS = {
    "MultiTaskRegressor": (TIGHT, "numbers", "Xyw"),
    "MultiTaskRegressorCV": (CHOICE, "numbers", "Xyw"),
    "GroupedMultiTaskRegressor": (TIGHT, "numbers", "Xywg"),
    "GroupedMultiTaskRegressorCV": (CHOICE, "numbers", "Xywg"),
    "MultiTaskClassifier": (TIGHT, "classes", "Xyw"),
    "MultiTaskClassifierCV": (CHOICE, "classes", "Xyw"),
    "GroupedMultiTaskClassifier": (TIGHT, "classes", "Xywg"),
    "GroupedMultiTaskClassifierCV": (CHOICE, "classes", "Xywg"),
    "KernelMultiTaskClassifier": (TIGHT, "classes", "Xyw"),
    "LabelGraphClassifier": ({"lam": 0.1, "tol": 1e-9}, "classes", "Xyw"),
    **dict.fromkeys(
        [
            "AdaBoostMH", "BinaryRelevance", "EnsembleOfClassifierChains", "HOMER", "LEAD", "LabelPowerset",
            "MLCSSP", "MMOC", "PLEM", "PLST", "RAkEL",
        ],
        ({}, "complete", "Xy"),
    ),
}  # fmt: skip


def separate(X, y, w):
    return tasks_of(mtl.Tasks.separate([X, globals()["X"]], [y, NUMBERS[:, 1]], sample_weights=[w, WEIGHTS]))


class NoCell(Exception):
    """The door does not take this kind of thing at all, and says so in its signature."""


def elsewhere(X, y):
    """Arrays of Dask, which are made of arrays of numpy alone."""
    if not all(isinstance(one, np.ndarray) and one.ndim and one.dtype.names is None for one in (X, y)):
        raise NoCell
    parts = [da.from_array(one, chunks=(8, *one.shape[1:])) for one in (X, y)]
    with dask.config.set(scheduler="synchronous"):
        tasks, W = with_weights(mtl.Tasks.from_dask(*parts))
        return [mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve().W]


def learned():
    tasks, W = with_weights(mtl.Tasks.shared(X, NUMBERS))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()


SOLUTION = learned()
DOORS = {
    "Tasks.shared": Door(lambda X, y, w: tasks_of(mtl.Tasks.shared(X, y, sample_weights=w)), "numbers"),
    "Tasks.separate": Door(separate, "numbers", many=False),
    "Tasks.grouped": Door(
        lambda X, y, w, g: tasks_of(mtl.Tasks.grouped(X, y, g, sample_weights=w)), "numbers", "Xywg", many=False
    ),
    "Tasks.from_dask": Door(elsewhere, "numbers", "Xy"),
    "Solution.score": Door(lambda X, y, w: [SOLUTION.scores(mtl.Tasks.shared(X, y, sample_weights=w))], "numbers"),
    "Solution.predict": Door(lambda X: [SOLUTION.predict(X)], "numbers", "X"),
}  # fmt: skip
for name, (options, labels, takes) in ROWS.items():
    make = partial(estimators()[name], **options)
    grouped = "g" in takes
    DOORS[f"{name}.fit"] = Door(of_estimator(make, labels, grouped), labels, takes, many=not grouped)

    def predicts(X, make=make, grouped=grouped, labels=labels, cache={}):  # noqa: B006  fitted once
        if "fitted" not in cache:
            Y = NUMBERS if labels == "numbers" else CLASSES
            given = {"groups": IDS} if grouped else {}
            cache["fitted"] = make().fit(globals()["X"], Y[:, 0] if grouped else Y, **given)
        rows = X.shape[0] if hasattr(X, "shape") and len(X.shape) else N
        return [
            np.asarray(cache["fitted"].predict(X, **({"groups": IDS[:rows]} if grouped else {})), dtype=float)
        ]

    DOORS[f"{name}.predict"] = Door(predicts, labels, "X")


def test_every_estimator_has_its_row():
    assert set(ROWS) == set(estimators())


# ------------------------------------------------------------------------------------------------- quirks
FRAME = pd.DataFrame(X, columns=["u", "v", "w"])


def put(values, one, where=(3, 1)):
    """A table of objects with another entry."""
    table = np.array(values, dtype=object)
    table[where[: table.ndim]] = one
    return table


#: what may be made of any array of numbers, and the same numbers are meant
ALIKE = {quirk: of for quirk, (of, meaning) in KINDS_OF_ARRAYS.items() if meaning is same} | {
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "pandas, own index": lambda a: table(a, index=MIXED),
    "pandas float32": lambda a: table(a, dtype="float32"),
    "pyarrow": lambda a: pa.table({f"c{k}": column for k, column in enumerate(a.T)}) if a.ndim == 2 else pa.chunked_array([a]),
}  # fmt: skip

TEXT, TIMES, SHAPE, LENGTH, ORDER = (
    r"text|not numeric|bytes", r"time|dates", r"shape", r"rows|samples|shape", "another order",
)  # fmt: skip
BIG = 2**53 + 1

#: the same of what no door takes for inputs: quirk -> (how it is made of X, a piece of the error)
REFUSED_X = {
    "masked": (lambda a: np.ma.masked_array(a, GONE), "nan in row 3"),
    "NaN": (lambda a: np.where(GONE, np.nan, a), "nan in row 3"),
    "None": (lambda a: put(a, None), "nan in row 3"),
    "pd.NA": (lambda a: pd.DataFrame(put(a, pd.NA)), "nan in row 3"),
    "pandas Float64 with NA": (lambda a: pd.DataFrame(a, dtype="Float64").mask(GONE), "nan in row 3"),
    "polars null": (lambda a: pl.DataFrame(put(a, None).tolist(), orient="row"), "nan in row 3"),
    "infinity": (lambda a: np.where(GONE, np.inf, a), "inf in row 3"),
    "1e200": (lambda a: np.where(GONE, 1e200, a), "products of such numbers"),
    "float128 beyond": (lambda a: np.where(GONE, np.longdouble("1e400"), a.astype(np.longdouble)), "beyond float64"),
    "text digits": (lambda a: a.astype(str), TEXT),
    "one text digit": (lambda a: put(a, "1.5"), TEXT),
    "bytes": (lambda a: a.astype("S"), TEXT),
    "pandas category": (lambda a: pd.DataFrame(a).astype({1: "category"}), TEXT),
    "polars text": (lambda a: pl.DataFrame(a).cast(pl.String), TEXT),
    "datetime64": (lambda a: (8 * a).astype(int).astype("M8[D]"), TIMES),
    "timedelta64": (lambda a: (8 * a).astype(int).astype("m8[D]"), TIMES),
    "a date": (lambda a: put(a, date(2020, 1, 1)), TIMES),
    "int64 above 2^53": (lambda a: np.where(GONE, BIG, a.astype(int)), r"2\^53"),
    "complex": (lambda a: a.astype(complex), "complex"),
    "structured": (lambda a: np.rec.fromarrays(a.T), "structured"),
    "a dict entry": (lambda a: put(a, {"a": 1}), "is a dict"),
    "a dict": (lambda a: {"u": a[:, 0]}, "is a dict"),
    "a set": (lambda a: set(a[:, 0].tolist()), "is a set"),
    "an iterator": (lambda a: iter(a), "iterator|generator"),
    "a text": (lambda a: "1, 2", "is a str"),
    "nothing": (lambda a: None, "is a NoneType|is None"),
    "ragged": (lambda a: [*a[:-1].tolist(), [1.0]], "not an array of numbers"),
    "0-d": (lambda a: np.array(1.0), SHAPE),
    "1-d": (lambda a: a[:, 0], SHAPE),
    "3-d": (lambda a: a[:, :, None], SHAPE),
    "no columns": (lambda a: a[:, :0], "no columns"),
    "duplicate names": (lambda a: pd.DataFrame(a, columns=["u", "v", "u"]), "two columns are named 'u'"),
    "a damaged matrix": (lambda a: damaged(a), "damaged"),
    "sparse complex": (lambda a: sparse.csr_array(a * 1j), "complex"),
    "sparse NaN": (lambda a: sparse.csr_array(np.where(GONE, np.nan, a)), "nan in row 3"),
}  # fmt: skip


def damaged(a):
    matrix = sparse.csr_array(a)
    matrix.indices[0] = 9
    return matrix


#: alike for inputs alone, which have other forms: quirk -> (how it is made, which numbers it is)
ALIKE_X = {
    "int": (lambda a: a.astype(int), lambda a: a.astype(int).astype(float)),
    "int8": (lambda a: (8 * a).astype(np.int8), lambda a: 8 * a),
    "bool": (lambda a: a > 0, lambda a: (a > 0).astype(float)),
    "2^53 itself": (lambda a: np.where(a > 0, 3, a.astype(int)), lambda a: np.where(a > 0, 3.0, a.astype(int))),
    "csr": (sparse.csr_array, lambda a: a),
    "csc": (sparse.csc_array, lambda a: a),
    "coo": (sparse.coo_array, lambda a: a),
    "list of arrays": (list, lambda a: a),
}  # fmt: skip

#: labels: quirk -> (how it is made of y, what is meant of numbers: an array's maker or a piece of an error; the same of classes;
#: of classes none of which may be missing)
KINDS, NOT_LEARNED = ["numbers", "classes", "complete"], "NaN"
GAP = (lambda a: np.where(gone(a), np.nan, a),) * 2 + (NOT_LEARNED,)


def gone(a):
    hidden = np.zeros(np.shape(a), dtype=bool)
    hidden[3] = True
    return hidden if np.ndim(a) == 1 else hidden & (np.arange(a.shape[1]) == 0)


def table(a, *args, **options):
    return pd.DataFrame(a, *args, **options) if np.ndim(a) == 2 else pd.Series(a, *args, **options)


def classes(a):
    return a > 0


LABELS = {
    "masked": (lambda a: np.ma.masked_array(np.where(gone(a), -999.0, a), gone(a)), *GAP),
    "masked int": (lambda a: np.ma.masked_array(np.where(gone(a), 7, classes(a)), gone(a)), *[lambda a: np.where(gone(a), np.nan, classes(a) * 1.0)] * 2, NOT_LEARNED),
    "NaN": (lambda a: np.where(gone(a), np.nan, a), *GAP),
    "None": (lambda a: np.where(gone(a), None, a), *GAP),
    "pd.NA": (lambda a: np.where(gone(a), pd.NA, a.astype(object)), *GAP),
    "pandas Float64 with NA": (lambda a: table(a, dtype="Float64").mask(gone(a)), *GAP),
    "bool": (classes, *[lambda a: classes(a) * 1.0] * 3),
    "int": (lambda a: classes(a) * 3, *[lambda a: classes(a) * 3.0] * 3),
    "text digits": (lambda a: np.where(classes(a), "1", "0"), TEXT, *[lambda a: classes(a) * 1.0] * 2),
    "text": (lambda a: np.where(classes(a), "yes", "no"), TEXT, *[lambda a: classes(a) * 1.0] * 2),
    "category": (lambda a: table(np.where(classes(a), "yes", "no")).astype("category"), TEXT, *[lambda a: classes(a) * 1.0] * 2),
    "bytes": (lambda a: np.where(classes(a), b"yes", b"no"), TEXT, TEXT, TEXT),
    "text beside a number": (lambda a: put(a, "1"), *[TEXT] * 3),
    "datetime64": (lambda a: classes(a).astype(int).astype("M8[D]"), *[TIMES] * 3),
    "timedelta64": (lambda a: classes(a).astype(int).astype("m8[D]"), *[TIMES] * 3),
    "pandas dates": (lambda a: table(classes(a).astype(int).astype("M8[s]")), *[TIMES] * 3),
    "a date": (lambda a: put(a, date(2020, 1, 1)), *[TIMES] * 3),
    "complex": (lambda a: a.astype(complex), *["complex"] * 3),
    "int64 above 2^53": (lambda a: np.where(classes(a), BIG, BIG + 1), r"2\^53", *[lambda a: 1.0 - classes(a)] * 2),
    "infinity": (lambda a: np.where(gone(a), np.inf, a), *["infinit"] * 3),
    "1e200": (lambda a: np.where(gone(a), 1e200, a), "labels are at most", *["Unknown label type"] * 2),
    "0-d": (lambda a: np.array(1.0), *[SHAPE] * 3),
    "3-d": (lambda a: np.stack([a] * 2, axis=-1)[..., None], *[SHAPE] * 3),
    "an empty list": (lambda a: [], *[LENGTH] * 3),
    "one row less": (lambda a: a[:-1], *[LENGTH] * 3),
    "a dict": (lambda a: {"u": a}, *["is a dict"] * 3),
    "a text": (lambda a: "yes", *["is a str"] * 3),
    "ragged": (lambda a: [*a[:-1].tolist(), [1.0, 2.0, 3.0]], *["not an array of"] * 3),
}  # fmt: skip

WEIGHT = {
    "masked": (lambda a: np.ma.masked_array(a, np.arange(N) == 3), "nan in row 3"),
    "NaN": (lambda a: np.where(np.arange(N) == 3, np.nan, a), "nan in row 3"),
    "text digits": (lambda a: a.astype(str), TEXT),
    "bytes": (lambda a: a.astype("S"), TEXT),
    "datetime64": (lambda a: a.astype(int).astype("M8[D]"), TIMES),
    "complex": (lambda a: a.astype(complex), "complex"),
    "above 2^53": (lambda a: a.astype(int) + BIG, r"2\^53"),
    "infinity": (lambda a: np.where(np.arange(N) == 3, np.inf, a), "inf in row 3"),
    "below zero": (lambda a: -a, r"row 0"),
    "one less": (lambda a: a[:-1], LENGTH),
    "three columns": (lambda a: np.stack([a] * 3, axis=1), SHAPE),
    "category": (lambda a: pd.Series(a).astype("category"), TEXT),
}
TASK = {
    "masked": (lambda a: np.ma.masked_array(a, np.arange(N) == 3), "masked entry in row 3"),
    "None": (lambda a: np.where(np.arange(N) == 3, None, a), "None in row 3"),
    "pd.NA": (lambda a: pd.Series(a).where(np.arange(N) != 3), "in row 3"),
    "one less": (lambda a: a[:-1], LENGTH),
    "two columns": (lambda a: pd.DataFrame({"u": a, "v": a}), "columns|shape"),
    "another order": (lambda a: pd.Series(a).sample(frac=1, random_state=0), ORDER),
}


def looked(door, given, plain=None):
    """(the cell, its error): "same", "other", or the error of these data, beside what the door makes of the plain ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = door.answer(**given)
        except DataError as error:
            return "refused", str(error)
        except NoCell:
            raise
        except Exception as error:
            return "bare", f"{type(error).__name__}: {error}"
        meant = door.usual if plain is None else door.answer(**plain)
    same = all(a.shape == b.shape and np.allclose(a, b, atol=1e-5, rtol=1e-5, equal_nan=True) for a, b in zip(found, meant, strict=True))  # fmt: skip
    return ("same" if same else "other"), ""


def refused(door, given, piece):
    cell, text = looked(door, given)
    return cell == "refused" and re.search(piece, text) is not None, f"{cell}: {text}"


def at_doors(slot, ask, turn=None):
    """What is not right: ask(door) -> (right, what was seen) of every door that takes the slot. With a turn, one of eight fits."""
    wrong = []
    for k, (name, door) in enumerate((name, door) for name, door in DOORS.items() if slot in door.takes):
        if turn is not None and name.endswith(".fit") and (k // 2 + turn) % 8:
            continue
        try:
            right, seen = ask(door)
        except NoCell:
            continue
        if not right:
            wrong.append(f"{name}: {seen}")
    return wrong


def changed(door, slot, make):
    plain = door.plain()
    beside = {"X": pd.DataFrame(X)} if slot == "g" else {}
    return plain | beside | {slot: make(plain[slot])}


#: group -> [(slot, quirk, how it is made, what is meant at doors of numbers, of classes, of complete classes)]: a piece of an error, the maker
#: of an array, or None for the same
GROUPS = {
    "inputs refused": [("X", quirk, make, [piece] * 3) for quirk, (make, piece) in REFUSED_X.items()],
    **{f"same {slot}": [(slot, quirk, make, [None] * 3) for quirk, make in ALIKE.items()] for slot in "Xyw"},
    "inputs of other types": [("X", quirk, make, [meant] * 3) for quirk, (make, meant) in ALIKE_X.items()],
    "labels": [("y", quirk, make, meant) for quirk, (make, *meant) in LABELS.items()],
    "weights": [("w", quirk, make, [piece] * 3) for quirk, (make, piece) in WEIGHT.items()],
    "ids of tasks": [("g", quirk, make, [piece] * 3) for quirk, (make, piece) in TASK.items()],
}


@pytest.mark.by_default("same w", "weights", "ids of tasks")
@pytest.mark.parametrize("group", GROUPS)
def test_every_quirk_at_every_door(group):
    wrong = []
    for turn, (slot, quirk, make, meant) in enumerate(GROUPS[group]):

        def ask(door, slot=slot, make=make, meant=meant):
            expected, given = meant[KINDS.index(door.labels)], changed(door, slot, make)
            if isinstance(expected, str):
                return refused(door, given, expected)
            cell = looked(door, given, None if expected is None else changed(door, slot, expected))
            return cell[0] == "same", cell

        every_fit = all(isinstance(one, str) for one in meant)
        wrong += [f"{quirk}: {one}" for one in at_doors(slot, ask, None if every_fit else turn)]
    assert not wrong, "\n".join(wrong)


@for_each("kept", ["all rows", "some rows"])
@for_each("slot", ["y", "w", "g"])
def test_rows_in_another_order(slot, kept):
    """Of X and what stands beside it the same rows, and of some rows of a table those that both kept."""

    def ask(door):
        if kept == "all rows":
            given = changed(door, "X", pd.DataFrame)
            given[slot] = table(given[slot]).sample(frac=1, random_state=1)
            return refused(door, given, ORDER)
        given = {one: table(value).drop(2) for one, value in door.plain().items()}
        given[slot] = table(door.plain()[slot]).drop(9)
        return refused(door, given, "in common")

    assert not at_doors(slot, ask)


@for_each("slot", ["w", "g"])
def test_rows_in_another_order_beside_inputs_without_an_index(slot):
    """Labels and what stands beside them are held to each other."""

    def ask(door):
        given = changed(door, "y", table)
        given[slot] = table(given[slot]).sample(frac=1, random_state=1)
        return refused(door, given, ORDER)

    assert not at_doors(slot, ask)


@pytest.mark.slow
def test_a_table_beside_no_table_is_matched_by_position():
    """An index that X does not have says nothing of the order of rows."""

    def ask(door):
        later = table(door.plain()["y"]).set_axis(range(100, 100 + N), axis=0)
        cell = looked(door, door.plain() | {"X": pd.DataFrame(X), "y": later})
        return cell[0] == "same", cell

    assert not at_doors("y", ask)


def test_rows_of_tasks_without_a_word_of_tasks_are_told():
    told = [name for name, (_, _, takes) in ROWS.items() if "g" in takes]
    assert told
    for name in told:
        options, labels, _ = ROWS[name]
        y = (NUMBERS if labels == "numbers" else CLASSES)[:, 0]
        with pytest.warns(mtldsl.estimators.OneTaskWarning, match=r"neither task= nor groups="):
            estimators()[name](**options).fit(X, y)


@for_each("made", [lambda A, W: A @ W, lambda A, W: A.dot(W), lambda A, W: A @ (2 * W), lambda A, W: A.iloc[0] @ W, lambda A, W: A @ mtl.ridge(W)])  # fmt: skip
def test_a_pandas_table_left_of_a_product_says_what_to_write(made):
    tasks = mtl.Tasks.shared(X, NUMBERS)
    with pytest.raises(mtl.ModelError, match=r"write A.to_numpy\(\)"):
        made(FRAME, mtl.Weights(tasks))
