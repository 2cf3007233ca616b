"""scikit-learn's handwritten digits as ten one-vs-rest tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.tasks import Tasks

__all__ = ["load_digits"]


def load_digits() -> Tasks:
    """1,797 pictures of 8 x 8 pixels; task "digit k" asks whether the picture is a k (+1) or not (-1).

    Pixels are divided by 16, so that they are in [0, 1]. All tasks share X (1797, 64). Three pixels are 0 in every picture.
    Source: scikit-learn's `load_digits`, the test part of UCI's optical recognition of handwritten digits.

    >>> from mtldsl import datasets
    >>> tasks = datasets.load_digits()
    >>> tasks.n_tasks, tasks.X.shape, tasks.task_names[3], tasks.feature_names[9]
    (10, (1797, 64), 'digit 3', 'pixel 1,1')
    """
    from sklearn.datasets import load_digits as load

    data: Any = load()
    return Tasks.shared(
        data.data / 16.0,
        np.where(data.target[:, None] == np.arange(10), 1.0, -1.0),
        task_names=[f"digit {k}" for k in range(10)],
        feature_names=[f"pixel {row},{column}" for row in range(8) for column in range(8)],
    )
