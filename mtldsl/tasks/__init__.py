"""The data: m tasks over the same d features. `Tasks` is all that other rooms need."""

from mtldsl.tasks.tasks import Tasks

__all__ = ["Tasks"]
