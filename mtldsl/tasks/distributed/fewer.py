"""Some of the tasks or features of every part."""

from __future__ import annotations

import numpy as np

from mtldsl.tasks.distributed.parts import Part

__all__ = ["with_features", "with_tasks"]


def with_tasks(part: Part, index: np.ndarray) -> Part | None:
    """The part with these of all tasks, which are then called by their positions in `index`; None where it has none of them."""
    place = {int(i): k for k, i in enumerate(index)}
    local = [k for k, i in enumerate(part.which.tolist()) if i in place]
    if not local:
        return None
    which = np.array([place[int(part.which[k])] for k in local])
    order = np.argsort(which)
    return Part(part.tasks.select([local[k] for k in order]), which[order], part.index, part.first_row)


def with_features(part: Part, index: np.ndarray) -> Part:
    """The part with these features, in that order."""
    return Part(part.tasks.select_features(index), part.which, part.index, part.first_row)
