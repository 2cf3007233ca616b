"""The data: m tasks over the same d features. `Tasks` is all that other rooms need, and to know it when they see it."""

from mtldsl.tasks.given import require_tasks
from mtldsl.tasks.tasks import Tasks

__all__ = ["Tasks", "require_tasks"]
