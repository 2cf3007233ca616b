"""What later inputs and tasks are held against: the names and the order of what was learned on."""

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
from mtldsl.tasks.schema import Schema, is_list_of_matrices

X = np.random.default_rng(0).normal(size=(8, 3))
Y = np.random.default_rng(1).normal(size=(8, 2))
TASKS = mtl.Tasks.shared(pd.DataFrame(X, columns=["a", "b", "c"]), pd.DataFrame(Y, columns=["u", "v"]))


def test_features_in_another_order_are_refused():
    schema, turned = Schema.of(TASKS), pd.DataFrame(X, columns=["c", "b", "a"])
    with pytest.raises(mtl.DataError, match="columns 'c', 'b', 'a'; they must be those learned on"):
        schema.inputs(turned)
    order = (
        "feature 'c' is number 0 here, but was 2 in training; give the features in the order 'a', 'b', 'c'"
    )
    with pytest.raises(mtl.DataError, match=f"^scores: .*{order}"):
        schema.alike(mtl.Tasks.shared(turned, Y), "scores")


def test_one_matrix_is_not_a_list_of_matrices():
    for given in (X, X.tolist(), [], [[1.0, 2.0]], (1.0, 2.0)):
        assert not is_list_of_matrices(given)
    for given in ([X, X], (X,), [X.tolist()], [{"near": X}], [pd.DataFrame(X)]):
        assert is_list_of_matrices(given)
