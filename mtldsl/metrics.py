"""Public door of the metrics that a structured hinge optimizes: `mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())`."""

from mtldsl.atoms.metrics import *  # noqa: F403
from mtldsl.atoms.metrics import __all__


def __dir__() -> list[str]:
    return __all__
