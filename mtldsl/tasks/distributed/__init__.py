"""Tasks whose rows are elsewhere, in parts: what is asked of them is computed where the rows are, and added up in a fixed order."""

from mtldsl.tasks.distributed.given import of_arrays, of_frame
from mtldsl.tasks.distributed.parts import LocalParts, Part, Parts
from mtldsl.tasks.distributed.sums import TaskSum
from mtldsl.tasks.distributed.tasks import DistributedTasks
from mtldsl.tasks.tasks import Tasks

__all__ = ["DistributedTasks", "LocalParts", "Part", "Parts", "TaskSum"]

# the constructors of tasks that this room adds to the class that it is built on
Tasks.elsewhere.update(arrays=of_arrays, frame=of_frame)
