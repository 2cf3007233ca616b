"""Constructors of `Tasks` from Dask: the door to `mtldsl.tasks.distributed`, which is imported when one of them is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mtldsl.tasks.data import TaskData

__all__ = ["FromDask"]

_DISTRIBUTED = "mtldsl.tasks.distributed.given"


class FromDask(TaskData):
    """What Dask has, as tasks. They are `Tasks`, too, and hold no rows."""

    @classmethod
    def from_dask(
        cls, X, Y, *, sample_weights=None, task_names=None, feature_names=None, keep: bool | None = None
    ) -> Any:  # fmt: skip
        """Arrays of Dask, cut by rows into chunks: more rows than this machine has memory for. Extra `dask`.

        X              : (n, d) array of Dask; chunks of its columns are joined, chunks may be sparse
        Y              : (n, m) or (n,), cut as X is, or to be cut so; NaN: that row is not in that task
        sample_weights : (n,) or (n, m), > 0
        keep           : whether rows stay in the workers' memory (None: where they take half of it at most), else they are computed anew
                         at each pass, and must be the same each time

        One pass over the rows, on the workers, checks them as `Tasks.shared` does; DataError names the partition and the row. The work is
        done by the active `distributed.Client`, or else by threads of this process. The rows stay where they are: `tasks.X`, `tasks.targets`
        and the like are DataError here.
        """
        return import_module(_DISTRIBUTED).of_arrays(X, Y, sample_weights, task_names, feature_names, keep)

    @classmethod
    def from_dask_dataframe(
        cls, df, features, labels, task=None, sample_weights=None, *, keep: bool | None = None
    ) -> Any:  # fmt: skip
        """Columns of a data frame of Dask; each of its partitions is one. Extra `dask`.

        features       : names of numeric columns; None: all that are nothing else
        labels         : the column of labels, or one column per task; missing: that row is not in that task
        task           : the column of task ids of one long table, as in `Tasks.grouped`; tasks keep the order of first appearance
        sample_weights : the column of weights, > 0
        keep           : as in `from_dask`
        """
        return import_module(_DISTRIBUTED).of_frame(df, features, labels, task, sample_weights, keep)
