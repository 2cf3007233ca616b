"""Tasks are alike: their names, and their sums over all rows."""

import numpy as np
import pytest
from scipy import sparse


def dense(A):
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def assert_same_sums(made, tasks, feature_names=True, **tolerance):
    """Tasks, wherever their rows are, have the names, the counts and the products of others in memory."""
    assert made.task_names == tasks.task_names
    assert not feature_names or made.feature_names == tasks.feature_names
    assert made.counts.tolist() == tasks.counts.tolist() and made.n_missing == tasks.n_missing
    grams = np.stack([Z.T @ Z for Z in map(dense, tasks.inputs)])
    assert made.gram() == pytest.approx(grams, **tolerance)
    assert made.cross() == pytest.approx(tasks.cross(), **tolerance)
