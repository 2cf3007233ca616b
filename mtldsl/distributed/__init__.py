"""Everything about rows on Dask: tasks, loss terms, solvers and scores, behind hooks that tasks answer."""

from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import LocalParts, Part, Parts, TaskSum

__all__ = [
    "DistributedTasks",
    "LocalParts",
    "Part",
    "Parts",
    "TaskSum",
]
