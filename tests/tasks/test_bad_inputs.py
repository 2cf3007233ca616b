"""Whatever is handed over: the same numbers, or an error of ours that says where; never another number, warning or exception."""

import decimal
import inspect
import warnings
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mtldsl as mtl
from mtldsl import DataError, ModelError, MTLError, Solution, Tasks
from mtldsl.utils.validation import MAX_MAGNITUDE, MIN_MAGNITUDE
from tests.loops import for_each
from tests.tasks.bad_values import REFUSED, VALUES, V
from tests.tasks.same_sums import dense

X, Y = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [-1.0, 1.5]]), np.column_stack([V, 2 * V + 1])
SIGNS = [[1, -1], [-1, 1], [1, 1], [-1, -1]]
TASKS, LABELLED = Tasks.shared(X, Y), Tasks.shared(X, SIGNS)
W, WL = mtl.Weights(TASKS), mtl.Weights(LABELLED)
weights = W  # which a formatter does not take for a constant, to be written on the right
LAM = mtl.Parameter(1.0)
PROBLEM = mtl.minimize(mtl.squared_loss(W, TASKS) + LAM * mtl.ridge(W))
SOLUTION = PROBLEM.solve()
CLASSIFIER = mtl.minimize(mtl.logistic_loss(WL, LABELLED) + mtl.ridge(WL)).solve()
IDS = [0, 0, 1, 1]


def _inputs(meaning):
    """What Tasks make of inputs that mean this; None: nothing."""
    fits = meaning.ndim == 2 and meaning.shape[0] == 4 and meaning.shape[1] > 0
    if not fits or not (np.abs(meaning) <= MAX_MAGNITUDE).all():
        return None
    largest = np.abs(meaning).max(axis=0)
    return None if ((largest > 0) & (largest < MIN_MAGNITUDE)).any() else meaning


def _column_of_frame(value, meaning):
    """A column of a table is a table of one column."""
    return (
        meaning[:, None]
        if type(value).__module__.startswith(("pandas", "polars")) and meaning.ndim == 1
        else meaning
    )


def _labels(meaning):
    if meaning.ndim == 1:
        meaning = meaning[:, None]
    fits = meaning.ndim == 2 and meaning.shape[0] == 4 and meaning.shape[1] > 0
    if not fits or (np.abs(meaning) > MAX_MAGNITUDE).any() or np.isnan(meaning).all(axis=0).any():
        return None
    return meaning


def _weights(meaning):
    if meaning.shape == (4,):
        meaning = np.column_stack([meaning, meaning])
    fits = meaning.shape == (4, 2) and ((meaning >= MIN_MAGNITUDE) & (meaning <= MAX_MAGNITUDE)).all()
    return meaning if fits else None


def _constant(meaning):
    """What something becomes that is added to W (2, 2)."""
    fits = not np.isnan(meaning).any() and (np.isinf(meaning) | (np.abs(meaning) <= MAX_MAGNITUDE)).all()
    try:
        return np.broadcast_to(meaning, (2, 2)) if fits else None
    except ValueError:
        return None


def _label_table(tasks):
    from mtldsl.data.derived import label_table

    return label_table(tasks, tasks.targets)


#: name -> (what is made of the value, as an array; what is expected of what the value means, or None where it must be refused)
READ = {
    "Tasks.shared(v, Y)": (lambda v: dense(Tasks.shared(v, Y).X), _inputs),
    "Tasks.separate([v], ...)": (lambda v: dense(Tasks.separate([v], [V]).stacked), _inputs),
    "Tasks.grouped(v, ...)": (lambda v: dense(Tasks.grouped(v, V, IDS).stacked), _inputs),
    "Tasks.shared(X, v)": (lambda v: _label_table(Tasks.shared(X, v)), _labels),
    "Tasks.shared(..., sample_weights=v)": (lambda v: Tasks.shared(X, Y, sample_weights=v).sample_weights.reshape(2, 4).T, _weights),
    "W + v": (lambda v: (W + v).offset, _constant),
}  # fmt: skip


def answer_of(call, *given, **named):
    """(what a call returns, what it raises of ours, what is wrong with what it raises)"""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return call(*given, **named), None, ""
    except MTLError as error:
        return None, error, "" if str(error).strip() else "an error without words"
    except Exception as error:
        return None, None, f"{type(error).__name__}: {error}"


@pytest.mark.by_default("W + v")
@pytest.mark.parametrize("place", READ)
def test_the_same_numbers_or_an_error(place):
    read, expected = READ[place]
    wrong = []
    for name, (make, meaning) in VALUES.items():
        if name == "None" and "sample_weights" in place:
            continue  # no weights
        value = make()
        wanted = None if meaning is REFUSED else meaning
        if wanted is not None:
            wanted = expected(_column_of_frame(value, wanted) if expected is _inputs else wanted)
        found, error, fault = answer_of(read, value)
        if fault:
            wrong.append(f"{name}: {fault}")
        elif (error is None) != (wanted is not None):
            wrong.append(f"{name}: refused, {error}" if error else f"{name}: taken as {found!r}")
        elif wanted is not None and not np.array_equal(found, wanted, equal_nan=True):
            wrong.append(f"{name}: {found!r} in place of {wanted!r}")
    assert not wrong, "\n".join(wrong)


def _set_parameter(v):
    parameter = mtl.Parameter(1.0)
    parameter.value = v


NUMBERS = {  # places that take nothing but numbers: what float64 does not have is refused
    "Tasks.separate(..., [v])": lambda v: Tasks.separate([X], [v]),
    "Tasks.separate(..., sample_weights=[v])": lambda v: Tasks.separate([X], [V], sample_weights=[v]),
    "Tasks.grouped(X, v, ...)": lambda v: Tasks.grouped(X, v, IDS),
    "transform": TASKS.standardize().transform,
    "predict": SOLUTION.predict,
    "predict([v, v])": lambda v: SOLUTION.predict([v, v]),
    "predict_proba": CLASSIFIER.predict_proba,
    "Parameter": mtl.Parameter,
    "Parameter.value": _set_parameter,
    "lam * v": lambda v: LAM * v,
    "lam - v": lambda v: LAM - v,
    "lam / v": lambda v: LAM / v,
    "W - v": lambda v: W - v,
    "W * v": lambda v: W * v,
    "W / v": lambda v: W / v,
    "W @ v": lambda v: W @ v,
    "W >= v": lambda v: weights >= v,
    "W <= v": lambda v: weights <= v,
    "W == v": lambda v: weights == v,
    "term * v": lambda v: mtl.ridge(W) * v,
    "term / v": lambda v: mtl.ridge(W) / v,
    "term <= v": lambda v: mtl.l1_norm(W) <= v,
    "solve(warm_start={'W': v})": lambda v: PROBLEM.solve(warm_start={"W": v}),
    "solve(tol=v)": lambda v: PROBLEM.solve(tol=v),
    "path": lambda v: list(PROBLEM.path(LAM, v)),
    "path([v])": lambda v: list(PROBLEM.path(LAM, [v])),
    "graph_laplacian(W, v)": lambda v: mtl.graph_laplacian(W, v),
    "kronecker_ridge(W, rows=v)": lambda v: mtl.kronecker_ridge(W, rows=v, columns=np.eye(2)),
    "quantile_loss(q=v)": lambda v: mtl.quantile_loss(W, TASKS, v),
    "huber_loss(delta=v)": lambda v: mtl.huber_loss(W, TASKS, v),
    "split(v)": TASKS.split,
    "make_low_rank(noise=v)": lambda v: mtl.datasets.make_low_rank(2, 4, 3, 1, noise=v),
    "hierarchy(v)": lambda v: mtl.datasets.hierarchy(v, ["a", "b"]),
}
OTHERS = {  # places that take names, lists, words, switches, Tasks, models
    "task_names": lambda v: Tasks.shared(X, Y, task_names=v),
    "feature_names": lambda v: Tasks.shared(X, Y, feature_names=v),
    "task_ids": lambda v: Tasks.grouped(X, V, v),
    "Tasks.separate(v, v)": lambda v: Tasks.separate(v, v),
    "Tasks.separate(v)": lambda v: Tasks.separate(v, [V]),
    "sample_weights=v": lambda v: Tasks.separate([X], [V], sample_weights=v),
    "kernels": lambda v: TASKS.with_kernels({"k": v}),
    "gamma": lambda v: TASKS.with_kernels(("rbf", {"gamma": v})),
    "random_state": lambda v: TASKS.split(0.5, random_state=v),
    "subsample": TASKS.subsample,
    "select": TASKS.select,
    "take_rows": TASKS.take_rows,
    "center": lambda v: TASKS.standardize(center=v),
    "scaled_by": TASKS.scaled_by,
    "score": SOLUTION.score,
    "scores": SOLUTION.scores,
    "score(metric)": lambda v: CLASSIFIER.score(LABELLED, metric=v),
    "tune_threshold": CLASSIFIER.tune_threshold,
    "solution[v]": lambda v: SOLUTION[v],
    "Weights": mtl.Weights,
    "Weights(name)": lambda v: mtl.Weights(TASKS, name=v),
    "Weights(intercept)": lambda v: mtl.Weights(TASKS, intercept=v),
    "NodeWeights": mtl.NodeWeights,
    "EdgeWeights": lambda v: mtl.EdgeWeights(LABELLED, edges=v),
    "KernelWeights": mtl.KernelWeights,
    "Parameter(name)": lambda v: mtl.Parameter(1.0, v),
    "W[v]": lambda v: W[v],
    "W[:, v]": lambda v: W[:, v],
    "W.sum(v)": lambda v: W.sum(v),
    "ridge(v)": lambda v: mtl.ridge(v),
    "squared_loss(v)": lambda v: mtl.squared_loss(v, TASKS),
    "squared_loss(W, v)": lambda v: mtl.squared_loss(W, v),
    "clusters": lambda v: mtl.mkl_norm(W, [mtl.similarities.clusters(v)]),
    "union(columns)": lambda v: mtl.mkl_norm(W, [mtl.similarities.union(columns=v)]),
    "minimize": mtl.minimize,
    "subject_to": lambda v: mtl.minimize(mtl.squared_loss(W, TASKS), subject_to=v),
    "subject_to=[v]": lambda v: mtl.minimize(mtl.squared_loss(W, TASKS), subject_to=[v]),
    "solver": PROBLEM.solve,
    "max_iter": lambda v: PROBLEM.solve(max_iter=v),
    "max_seconds": lambda v: PROBLEM.solve(max_seconds=v),
    "warm_start": lambda v: PROBLEM.solve(warm_start=v),
    "starts": lambda v: PROBLEM.solve(starts=v),
    "path(v)": lambda v: PROBLEM.path(v, [1.0]),
    "lambda_max": PROBLEM.lambda_max,
    "with_tasks": PROBLEM.with_tasks,
    "refit": PROBLEM.refit,
    "to_cvxpy": lambda v: v is None or PROBLEM.to_cvxpy(at=v),
    "cross_check": lambda v: v is None or PROBLEM.cross_check(v),
    "mkl_norm(theta)": lambda v: mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.identity()], v),
    "mkl_norm(p)": lambda v: mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.identity()], p=v),
}
MADE = {  # places that read files or make data
    "density": lambda v: mtl.datasets.make_low_rank(2, 4, 3, 1, density=v),
    "read_mat": mtl.datasets.read_mat,
    "model": lambda v: mtl.model(v, TASKS),
    "Solution.load": Solution.load,
    "stored": mtl.datasets.stored,
    "read_npz": mtl.datasets.read_npz,
    "co_occurrence": mtl.datasets.co_occurrence,
    "hash_columns": lambda v: mtl.datasets.hash_columns(v, 4),
    "make_low_rank(n_tasks)": lambda v: mtl.datasets.make_low_rank(v, 4, 3, 1),
    "make_low_rank(shared)": lambda v: mtl.datasets.make_low_rank(2, 4, 3, 1, shared=v),
    "make_task_tree(variance)": lambda v: mtl.datasets.make_task_tree(1, 4, 1, v, 2, 2),
    "make_label_graph(edges)": lambda v: mtl.datasets.make_label_graph(4, 3, v, 4, 4),
}


def some_of(names, place):
    """A quarter of the names, another one for every place."""
    turn = zlib.crc32(place.encode())
    return [name for name in names if (zlib.crc32(name.encode()) ^ turn) % 4 == 0]


@pytest.mark.slow
@pytest.mark.parametrize("places", [NUMBERS, OTHERS, MADE], ids=["numbers", "others", "made"])
def test_nothing_but_our_errors(places):
    wrong = []
    for place, name in [(one, name) for one in places for name in some_of(VALUES, one)]:
        make, meaning = VALUES[name]
        _, error, fault = answer_of(places[place], make())
        taken = error is None and not fault
        if fault or (taken and place in NUMBERS and meaning is REFUSED):
            wrong.append(f"{place}, {name}: {fault or 'taken'}")
    assert not wrong, "\n".join(wrong)


SAID = {
    "pandas times": (lambda: Tasks.shared(pd.DataFrame({"a": pd.to_datetime(["2020"] * 4)}), Y), DataError, "column 'a' is Datetime"),
    "too small": (lambda: Tasks.shared(X * [1, 1e-200], Y), DataError, "column 1 is 2e-200, whose square is 0"),
    "task_names=5": (lambda: Tasks.shared(X, Y, task_names=5), DataError, "task_names=5: write a list of names"),
    "separate(5, 6)": (lambda: Tasks.separate(5, 6), DataError, "inputs=5; give a list with one array a task"),
    "score(5)": (lambda: SOLUTION.score(5), DataError, r"score\(tasks\): 5 is a int, not Tasks"),
    "indptr": (lambda: Tasks.shared(VALUES["csr: indptr falls"][0](), Y), DataError, "X: the sparse matrix is damaged: indptr falls at row 1"),
    "Parameter(10**400)": (lambda: mtl.Parameter(10**400), ModelError, "Parameter 'lam' cannot be 1000000"),
    "10**400 * lam": (lambda: 10**400 * LAM, ModelError, "is beyond float64"),
    "a timedelta": (lambda: mtl.Parameter(np.timedelta64(3, "D")), ModelError, "cannot be np.timedelta64"),
    "W + text": (lambda: W + "a", ModelError, "'a' is a str, not an array of numbers"),
    "W + lam": (lambda: W + LAM, ModelError, "W \\+ lam: a Parameter may only multiply"),
    "NaT among ids": (lambda: Tasks.grouped(X, V, np.array(["2020", "2021", "NaT", "2020"], dtype="M8[ns]")), DataError, "task_ids: NaT in row 2"),
    "NA in an array of pandas": (lambda: Tasks.grouped(X, V, pd.array([1, 2, pd.NA, 2], dtype="Int64")), DataError, r"task_ids: (nan|<NA>) in row 2"),
    "rounded ids": (lambda: Tasks.grouped(X, V, np.array([1.0, 2.0**53, 2.0, 1.0])), DataError, "task_ids: 9007199254740992.0 in row 1; float64 has not all"),
    "rounded ids among text": (lambda: Tasks.grouped(X, V, ["a", "b", 2.0**60, "a"]), DataError, "in row 2; float64 has not all whole"),
    "a column of NA": (lambda: Tasks.shared(pd.DataFrame({"a": pd.array([pd.NA] * 4, dtype="Int64")}), Y), DataError, "X: nan in row 0, column 'a'"),
    "a large Decimal": (lambda: Tasks.shared(pd.DataFrame({"a": pd.Series([decimal.Decimal(2**53 + 1)] * 4, dtype=pd.ArrowDtype(pa.decimal128(20)))}), Y), DataError, "a whole number that float64 does not have"),
    "labels named alike": (lambda: Tasks.shared(X, pd.DataFrame(Y, columns=["u"] * Y.shape[1])), DataError, "Y: two columns are named 'u'"),
}  # fmt: skip


@for_each("case", SAID)
def test_what_is_said(case):
    call, kind, message = SAID[case]
    with pytest.raises(kind, match=message):
        call()


def test_ids_that_print_alike_are_two_tasks(tmp_path):
    tasks = Tasks.grouped(X, V, [1, "1", 1, "1"])
    assert tasks.task_names == ("1 (int)", "1 (str)")
    np.testing.assert_array_equal(tasks.targets, V[[0, 2, 1, 3]])
    assert tasks.select("1 (str)").counts.tolist() == [2]
    U = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(U, tasks) + mtl.ridge(U)).solve()
    again = Solution.load(solution.save(tmp_path / "s"))
    assert again.task_names == tasks.task_names
    assert again.score(tasks) == solution.score(tasks)


@pytest.mark.slow
@for_each(
    "ids",
    [
        [1, "1", 1, "1"],
        [1, 1, "1", "1"],
        [1, 1.0, "1", 2**70],
        [True, "True", 1, 1.0],
        [np.datetime64("2020-01-01"), "2020-01-01", np.datetime64("2020-01-01"), "b"],
    ],
)
@for_each("size", [1, 2, 4])
def test_stored_ids_are_told_apart_as_in_one_table(ids, size, tmp_path):
    """Also where they come in different chunks."""
    tasks = Tasks.grouped(X, V, ids)
    chunks = ((X[a : a + size], V[a : a + size], ids[a : a + size]) for a in range(0, 4, size))
    there = mtl.datasets.store(chunks, tmp_path / "there")
    assert there.task_names == tasks.task_names
    np.testing.assert_array_equal(there.targets, tasks.targets)
    np.testing.assert_array_equal(there.stacked.toarray(), np.concatenate(tasks.inputs))


@pytest.mark.slow
@for_each("name", VALUES)
def test_chunks_of_anything(name, tmp_path):
    value = VALUES[name][0]()
    with pytest.raises(MTLError):
        mtl.datasets.store(iter([value]), tmp_path / "there")


PAIRS = pd.MultiIndex.from_tuples([("a", 1), ("a", 0)])


@for_each(
    "names, called",
    [([1, "1"], "1 (int), 1 (str)"), ([0, 1], "0, 1"), (np.arange(2), "0, 1"), (PAIRS, "('a', 1), ('a', 0)")],
)
def test_the_columns_to_write_are_those_of_the_table(names, called):
    table = pd.DataFrame(X, columns=names)
    tasks = Tasks.shared(table, Y)
    assert ", ".join(tasks.feature_names) == called
    np.testing.assert_array_equal(tasks.transform(table), X)
    for read in (tasks.transform, mtl.minimize(mtl.squared_loss(mtl.Weights(tasks), tasks)).solve().predict):
        with pytest.raises(DataError, match="in that order: write") as told:
            read(table.iloc[:, ::-1])
        pasted = eval(str(told.value).rpartition("write ")[2], {"X": table.iloc[:, ::-1]})
        np.testing.assert_array_equal(pasted, X)


def test_ids_are_told_apart_as_they_are():
    days = np.array(["2020-01-02", "2020-01-01", "2020-01-02", "2020-01-01"], dtype="M8[D]")
    assert Tasks.grouped(X, V, days).task_names == ("2020-01-02", "2020-01-01")
    for ids, number in ((pd.Series(days), 2), ([2**53, 2**53 + 1, 0.5, 0.5], 3), ((1, "1", 1, "1"), 2), (np.array([1, "1", 1, 1], object), 2)):  # fmt: skip
        assert Tasks.grouped(X, V, ids).n_tasks == number


def test_every_matrix_of_scipy_is_read_as_it_would_add_up():
    read = 0
    for name, (make, meaning) in VALUES.items():
        if name.startswith("sparse") and meaning is not REFUSED and _inputs(meaning) is not None:
            A = make()
            data = None if not hasattr(A, "indptr") else (A.data.copy(), A.indices.copy(), A.indptr.copy())
            Tasks.shared(A, Y)
            if data is not None:  # and is not written to
                read += 1
                for mine, before in zip((A.data, A.indices, A.indptr), data, strict=True):
                    np.testing.assert_array_equal(mine, before)
    assert read >= 3


@pytest.mark.slow
def test_the_words_with_numbers_refuse_all_else():
    """Every parameter of every word; a value meets a quarter of them."""
    wrong = []
    for word in mtl.language.vocabulary.WORDS:
        function = getattr(mtl, word)
        names = list(inspect.signature(function).parameters)
        if names[:1] != ["W"] or word == "mkl_norm":
            continue
        own = [WL, LABELLED] if "tasks" in names else [W]
        for parameter in names[len(own) :]:
            for name in some_of(VALUES, f"{word}({parameter})"):
                given = {parameter: VALUES[name][0]()}
                *_, fault = answer_of(function, *own, **given)
                wrong += [f"{word}({parameter}), {name}: {fault}"] if fault else []
    assert not wrong, "\n".join(wrong)
