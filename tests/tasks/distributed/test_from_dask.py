"""Rows on Dask are the tasks that the same rows are in memory; wrong ones are named with partition and row."""

import subprocess
import sys
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mtldsl import DataError, Tasks
from mtldsl.datasets import from_parts
from mtldsl.distributed.constructors import PartitionRows
from mtldsl.distributed.dask_inputs import of_loaders
from mtldsl.distributed.distributed_tasks import gram_of
from mtldsl.distributed.partitions import RowParts
from tests.loops import for_each
from tests.tasks.same_sums import assert_same_sums

RNG = np.random.default_rng(2)
X = RNG.normal(size=(90, 4))
Y = np.where(RNG.normal(size=(90, 2)) > 0, 1.0, -1.0)
Y[RNG.random(Y.shape) < 0.2] = np.nan
Y[:30, 1] = np.nan  # nothing of the second task in the first partition
WEIGHTS = RNG.random(90) + 0.5
IDS = np.repeat([7, 5, 9], [40, 20, 30])
TABLE = Tasks.shared(X, Y, sample_weights=WEIGHTS, task_names=["a", "b"])
LONG = Tasks.grouped(X, Y[:, 0], IDS, feature_names=list("pqrs"))
same = partial(assert_same_sums, abs=1e-11)


def frame():
    return pd.DataFrame(X, columns=list("pqrs")).assign(y=Y[:, 0], z=Y[:, 1], task=IDS, weight=WEIGHTS)


@pytest.mark.by_default("threads-None")
@pytest.mark.parametrize("keep", [None, False])
def test_arrays(engine, keep):
    made = Tasks.from_dask(
        da.from_array(X, chunks=(30, 3)), da.from_array(Y, chunks=(45, 1)), sample_weights=WEIGHTS, task_names=["a", "b"], keep=keep
    )  # fmt: skip
    assert not made.in_memory and made.is_weighted and made.parts.n_parts == 3 and made.parts.passes == 1
    assert made.parts.keep is (keep is None)
    same(made, TABLE)
    same(made.standardize(), TABLE.standardize())
    drawn = made.subsample(90)
    assert drawn.X.tolist() == X.tolist() and drawn.targets.tolist() == TABLE.targets.tolist()
    assert drawn.sample_weights.tolist() == TABLE.sample_weights.tolist()


@pytest.mark.slow
@for_each("rows", [1, 2, 13])  # 90 parts, more than are summed at once
def test_the_bits_do_not_depend_on_who_computes(each_cluster, rows):
    with distributed.Client(each_cluster) as client:
        made = Tasks.from_dask(da.from_array(X, chunks=(rows, 4)), Y)
        by_two = made.gram()
        parts = client.gather(client.compute(made.parts.nodes()))
    assert RowParts(parts).run(gram_of, False).of_all(2).tobytes() == by_two.tobytes()


@pytest.mark.slow
def test_a_data_frame(engine):
    cut = dd.from_pandas(frame(), npartitions=4)
    same(Tasks.from_dask_dataframe(cut, list("pqrs"), "y", task="task"), LONG)
    table = Tasks.from_dask_dataframe(cut, list("pqrs"), ["y", "z"], sample_weights="weight")
    same(table, Tasks.shared(frame()[list("pqrs")], frame()[["y", "z"]]))
    assert table.label_facts.weights.sum() == pytest.approx(TABLE.sample_weights.sum())


def test_sparse_chunks():
    thin = np.where(np.abs(X) > 1, X, 0.0)
    made = Tasks.from_dask(da.from_array(thin, chunks=(30, 4)).map_blocks(sparse.csr_array), Y)
    assert made.is_sparse
    same(made, Tasks.shared(sparse.csr_array(thin), Y))


def made(X=X, Y=Y, **options):
    return Tasks.from_dask(da.from_array(X, chunks=(30, 4)), da.from_array(Y, chunks=(30, -1)), **options)


def put(values, at, value):
    values = values.copy()
    values[at] = value
    return values


WRONG = [
    (lambda: made(put(X, (47, 2), np.nan)), r"^partition 1: X: nan in row 17, column 2"),
    (lambda: made(Y=put(Y, (61, 1), np.inf)), r"^partition 2: Y: infinite label in row 1, task 1"),
    (lambda: made(sample_weights=put(WEIGHTS, 31, -1.0)), r"^partition 1: sample_weights: -1.0 in row 1; weights must be finite and > 0"),
    (lambda: made(Y=put(Y, (35, 0), 3.0)).require_labels("sign", "h"), "label 3 in task 'task0', partition 1, row 5"),
    (lambda: made(Y=put(Y, np.s_[:, 1], np.nan)), "task 'task1' has no labelled row"),
    (lambda: made(Y=Y * np.nan), "no row of any partition has a label"),
    (lambda: made(Y=Y[:60]), "X has 90 rows but Y has 60"),
    (lambda: Tasks.from_dask(X, Y), "X is a ndarray, not an array of Dask"),
]  # fmt: skip


@pytest.mark.slow
@for_each(("call", "message"), WRONG)
def test_what_is_wrong_is_named_with_partition_and_row(engine, call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_a_column_is_small_only_where_it_is_so_in_all_partitions():
    tiny = X.copy()
    tiny[:30, 1] = 1e-200
    assert Tasks.from_dask(da.from_array(tiny, chunks=(30, 4)), Y).n_features == 4
    tiny[:, 1] = 1e-200
    with pytest.raises(DataError, match="the largest entry of x1 is 1e-200"):
        Tasks.from_dask(da.from_array(tiny, chunks=(30, 4)), Y)


def test_columns_of_a_data_frame_that_cannot_be_meant():
    cut = dd.from_pandas(frame(), npartitions=2)
    for features, labels, task, said in (
        (["p", "x"], "y", None, "features: there is no column 'x'"),
        (["p", "y"], "y", None, "the column 'y' is named as features and as labels"),
        (["p"], [], None, "labels: no column is named"),
        (["p"], ["y", "z"], "task", "2 columns of labels beside a column of task ids"),
    ):
        with pytest.raises(DataError, match=said):
            Tasks.from_dask_dataframe(cut, features, labels, task)
    with pytest.raises(DataError, match="not a data frame of Dask"):
        Tasks.from_dask_dataframe(frame(), ["p"], "y")


NAMES = [pd.DataFrame(X, columns=list(text)) for text in ("pqrs", "pqsr")]
LABELS = pd.DataFrame(Y, columns=["y", "z"])
APART = [
    ((PartitionRows(X, Y), PartitionRows(X[:, :3], Y)), r"^partition 1: X has 3 columns, but 4 in partition 0"),
    ((PartitionRows(X, Y), PartitionRows(X, Y[:, :1])), r"^partition 1: Y has 1 columns, but 2 in partition 0"),
    ((PartitionRows(X, Y), PartitionRows(X, Y[:, 0], IDS)), r"^partition 1: one has task ids"),
    ((PartitionRows(X, Y), PartitionRows(X, Y, None, WEIGHTS)), "sample weights are in one of partition 0 and partition 1"),
    ((PartitionRows(NAMES[0], Y), PartitionRows(NAMES[1], Y)), r"^partition 1: the columns of X have other names, or another order"),
    ((PartitionRows(X, Y), *(PartitionRows(one, Y) for one in NAMES)), r"^partition 2: the columns of X have other names, or another order, than in partition 1"),
    ((PartitionRows(X, LABELS), PartitionRows(X, LABELS[["z", "y"]])), r"^partition 1: the columns of Y have other names, or another order, than in partition 0"),
    ((PartitionRows(NAMES[0], LABELS[::-1]),), r"^partition 0: X and Y have the same index in another order"),
    ((PartitionRows(NAMES[0], LABELS, None, LABELS.abs()[["z", "y"]]),), r"^partition 0: sample_weights: column 'z' is number 0, and number 1"),
    ((X,), r"^partition 0: the loader returned a ndarray"),
]  # fmt: skip


@for_each(("rows", "message"), APART)
def test_partitions_that_do_not_go_together(rows, message):
    with pytest.raises(DataError, match=message):
        of_loaders([dask.delayed(one) for one in rows])


def changing():
    """Random numbers without a seed."""
    return X + np.random.default_rng().normal(size=X.shape), Y


@pytest.mark.slow
def test_a_partition_that_changes_between_passes_is_named(engine):
    made = of_loaders([dask.delayed((X, Y)), changing], names=["a.npz", "b.npz"], keep=False)
    with pytest.raises(DataError, match=r"^b.npz: its numbers are not those of the first pass"):
        made.gram()
    kept = of_loaders([dask.delayed((X, Y)), changing], keep=True)
    assert kept.gram().shape == (2, 4, 4)


def test_rows_that_change_places_between_passes_are_noticed():
    """Rows with one 1 each have equal sums, in whatever order they come."""
    orders = iter([np.arange(8000), np.arange(8000)[::-1]])
    table = np.eye(8)[np.arange(8000) % 8]
    made = from_parts([lambda: (table[next(orders)], np.arange(8000.0))], keep=False)
    with pytest.raises(DataError, match=r"^partition 0: its numbers are not those of the first pass"):
        made.gram()


def test_data_frames_keep_their_names_and_their_rows():
    columns, labels = (dd.from_pandas(one, npartitions=3) for one in (NAMES[0], LABELS))
    made = Tasks.from_dask(columns, labels)
    assert made.feature_names == tuple("pqrs") and made.task_names == ("y", "z")
    same(made, Tasks.shared(NAMES[0], LABELS))
    turned = dd.from_pandas(LABELS[::-1], npartitions=3, sort=False)
    with pytest.raises(DataError, match=r"^partition 1: X and Y have the same index in another order"):
        Tasks.from_dask(columns, turned)


@for_each(("columns", "count"), [(NAMES[0], 0), (NAMES[0].astype(object), 0)])
def test_a_partition_without_rows_adds_nothing(columns, count):
    made = from_parts([lambda: (NAMES[0], Y), lambda: (columns[:count], Y[:count])])
    same(made, Tasks.shared(NAMES[0], Y))


def test_an_error_of_a_partition_is_named():
    def broken():
        raise ValueError("no such shop")

    with pytest.raises(
        DataError, match=r"^b: ValueError was raised: no such shop; mend what makes"
    ) as caught:
        from_parts([lambda: (X, Y), broken], names=["a", "b"])
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(DataError, match=r"^the work on a partition: ValueError was raised: no such shop"):
        from_parts([dask.delayed(broken)()])


def out_of_memory(part):
    if part.index == 1:
        raise MemoryError("of a test")


def test_too_little_memory_is_named_with_its_partition(engine):
    from mtldsl import SolverError

    made = Tasks.from_dask(da.from_array(X, chunks=(30, 4)), Y)
    with pytest.raises(
        SolverError, match=r"^partition 1: too little memory on its worker \(of a test\); cut the data"
    ):
        made.parts.run(out_of_memory)


@pytest.mark.process
def test_a_first_use_leaves_the_settings_of_dask():
    script = """
import dask.array as da, numpy as np, mtldsl as mtl
for _ in range(2):
    tasks = mtl.Tasks.from_dask(da.from_array(np.eye(4), chunks=(2, 4)), [1.0, 2.0, 3.0, 4.0])
    assert tasks.cross().sum() == 10.0
import dask
assert dask.config.get("distributed.comm.timeouts.connect")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
