"""Tasks whose rows are elsewhere, in parts: what is asked of them is computed where the rows are, and added up in a fixed order."""

from mtldsl.tasks.distributed.parts import LocalParts, Part, Parts
from mtldsl.tasks.distributed.sums import TaskSum
from mtldsl.tasks.distributed.tasks import DistributedTasks

__all__ = ["DistributedTasks", "LocalParts", "Part", "Parts", "TaskSum"]
