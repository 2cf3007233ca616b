"""The data: m tasks over the same d features. Other rooms need `Tasks`, `AcrossLabels` and `require_tasks`; here every file imports only files below it."""

from mtldsl.tasks.across import AcrossLabels
from mtldsl.tasks.distributed import DistributedTasks
from mtldsl.tasks.given import require_tasks
from mtldsl.tasks.tasks import Tasks

__all__ = ["AcrossLabels", "DistributedTasks", "Tasks", "require_tasks"]
