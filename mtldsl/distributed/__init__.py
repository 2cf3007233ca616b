"""Files that stay where they are: read in parts by Dask's workers at each pass, or once and kept there."""

from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import LocalParts, Part, Parts, TaskSum

__all__ = [
    "DistributedTasks",
    "LocalParts",
    "Part",
    "Parts",
    "TaskSum",
]
