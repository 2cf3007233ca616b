"""Tasks are alike: their names, and their sums over all rows."""

import numpy as np
import pytest
from scipy import sparse


def assert_same_sums(made, tasks, feature_names=True, **tolerance):
    """Tasks, wherever their rows are, have the names, the counts and the products of others in memory."""
    assert made.task_names == tasks.task_names
    assert not feature_names or made.feature_names == tasks.feature_names
    assert made.counts.tolist() == tasks.counts.tolist() and made.n_missing == tasks.n_missing
    dense = [Z.toarray() if sparse.issparse(Z) else Z for Z in tasks.inputs]
    assert made.gram() == pytest.approx(np.stack([Z.T @ Z for Z in dense]), **tolerance)
    assert made.cross() == pytest.approx(tasks.cross(), **tolerance)
