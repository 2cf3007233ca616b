"""Tasks: inputs and labels checked, stored, split, scaled; kernels; readers, generators, published data sets."""

from mtldsl.data.label_table import AcrossLabels
from mtldsl.data.schema import require_tasks
from mtldsl.data.task_data import require_in_memory
from mtldsl.data.tasks import Tasks

__all__ = [
    "AcrossLabels",
    "Tasks",
    "require_in_memory",
    "require_tasks",
]
