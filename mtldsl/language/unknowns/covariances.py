"""Precisions and covariances of features and of tasks: the matrices that FETR, MTFL and MTRL learn."""

from __future__ import annotations

from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.tasks import Tasks

__all__ = ["FeatureCovariance", "FeaturePrecision", "TaskCovariance", "TaskPrecision"]


class FeaturePrecision(LearnedUnknown):
    """The precision of the features, Sigma1 (d, d), learned beside W (d, m); its inverse is their covariance.

    It stands in `matrix_normal(W, Sigma1, Sigma2)`, and constraints bound its eigenvalues: `Sigma1 >> 0.01`, `Sigma1 << 100`
    mean 0.01 I <= Sigma1 <= 100 I. On the solution: `solution.Sigma1.precision`, `.covariance`, `.correlation`.

    >>> from mtldsl import FeaturePrecision
    >>> import numpy as np, mtldsl as mtl
    >>> Sigma1 = FeaturePrecision(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    >>> Sigma1.shape, Sigma1 >> 0.01
    ((3, 3), Sigma1 >> 0.01)
    """

    axis, kind = "features", "precision"

    def __init__(self, tasks: Tasks, name: str = "Sigma1"):
        super().__init__(tasks, name)


class TaskPrecision(LearnedUnknown):
    """The precision of the tasks, Sigma2 (m, m), learned beside W (d, m); see `FeaturePrecision`.

    >>> from mtldsl import TaskPrecision
    >>> import numpy as np, mtldsl as mtl
    >>> TaskPrecision(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))) << 100
    Sigma2 << 100
    """

    axis, kind = "tasks", "precision"

    def __init__(self, tasks: Tasks, name: str = "Sigma2"):
        super().__init__(tasks, name)


class FeatureCovariance(LearnedUnknown):
    """The covariance of the features, D (d, d), learned beside W (d, m): MTFL's.

    It stands in `feature_covariance_norm(W, D)`, and a constraint bounds its trace: `D.trace() <= 1`.

    >>> from mtldsl import FeatureCovariance
    >>> import numpy as np, mtldsl as mtl
    >>> FeatureCovariance(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))).trace() <= 1
    D.trace() <= 1
    """

    axis, kind = "features", "covariance"

    def __init__(self, tasks: Tasks, name: str = "D"):
        super().__init__(tasks, name)


class TaskCovariance(LearnedUnknown):
    """The covariance of the tasks, Omega (m, m), learned beside W (d, m): MTRL's.

    It stands in `task_covariance_norm(W, Omega)`, and a constraint bounds its trace: `Omega.trace() <= 1`.

    >>> from mtldsl import TaskCovariance
    >>> import numpy as np, mtldsl as mtl
    >>> TaskCovariance(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))).shape
    (2, 2)
    """

    axis, kind = "tasks", "covariance"

    def __init__(self, tasks: Tasks, name: str = "Omega"):
        super().__init__(tasks, name)
