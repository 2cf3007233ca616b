"""Everything about rows on Dask: tasks, loss terms, solvers and scores, behind hooks that tasks answer."""

from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import PartitionTasks, RowParts, TaskSum

__all__ = [
    "DistributedTasks",
    "PartitionTasks",
    "RowParts",
    "TaskSum",
]
