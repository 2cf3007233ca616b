"""Everything about rows on Dask: tasks, loss terms, solvers, scores. Tasks answer for them; no other room asks where rows are."""

from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import LocalParts, Part, Parts, TaskSum

__all__ = [
    "DistributedTasks",
    "LocalParts",
    "Part",
    "Parts",
    "TaskSum",
]
