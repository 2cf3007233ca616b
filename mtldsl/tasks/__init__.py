"""The data: m tasks over the same d features. Other rooms need the names below; here every file imports only files below it."""

from mtldsl.tasks.across import AcrossLabels
from mtldsl.tasks.data import require_in_memory
from mtldsl.tasks.given import require_tasks
from mtldsl.tasks.tasks import Tasks

__all__ = ["AcrossLabels", "Tasks", "require_in_memory", "require_tasks"]
