"""What later inputs and tasks are held against: one set of rules for solutions and networks."""

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
from mtldsl.tasks.schema import Schema, is_list_of_matrices

X = np.random.default_rng(0).normal(size=(8, 3))
Y = np.random.default_rng(1).normal(size=(8, 2))
TASKS = mtl.Tasks.shared(pd.DataFrame(X, columns=["a", "b", "c"]), pd.DataFrame(Y, columns=["u", "v"]))


def test_inputs_come_on_the_scale_of_training():
    standardised = TASKS.standardize()
    np.testing.assert_allclose(Schema.of(standardised).inputs(X), standardised.X)
    np.testing.assert_array_equal(Schema.of(TASKS).inputs(X), X)
    near = TASKS.with_kernels({"near": ("rbf", {"gamma": 0.5})})
    np.testing.assert_allclose(Schema.of(near).inputs(X), near.X, atol=1e-8)


def test_other_columns_and_other_tasks_are_refused():
    schema = Schema.of(TASKS)
    turned = pd.DataFrame(X, columns=["c", "b", "a"])
    for what, message in (
        (TASKS, r"predict\(tasks\): give the inputs"),
        (turned, "X has the columns 'c', 'b', 'a'; they must be those learned on"),
        (X[:, :2], r"X has shape \(8, 2\), but the weights were learned on 3 features"),
    ):
        with pytest.raises(mtl.DataError, match=message):
            schema.inputs(what)
    with pytest.raises(mtl.DataError, match="1 input matrices for 2 tasks; give one a task"):
        schema.require_one_each([X])
    for tasks, message in (
        (
            mtl.Tasks.shared(turned, Y),
            "feature 'c' is number 0 here, but was 2 in training; give the features in the order 'a', 'b', 'c'",
        ),
        (TASKS.select(["u"]), "the tasks are 3 features x 1 tasks, the weights 3 x 2"),
        (TASKS.standardize(), "standardised with statistics other than the training tasks'"),
        (TASKS.with_kernels("linear"), "features of these tasks are of other kernels"),
    ):
        with pytest.raises(mtl.DataError, match=f"^scores: .*{message}"):
            schema.alike(tasks, "scores")


def test_raw_tasks_are_scaled_as_in_training():
    standardised = TASKS.standardize()
    schema = Schema.of(standardised)
    assert schema.alike(standardised, "scores") is standardised
    np.testing.assert_allclose(schema.alike(TASKS, "scores").X, standardised.X)


@pytest.mark.parametrize("given", [X, X.tolist(), [], [[1.0, 2.0]], (1.0, 2.0)])
def test_one_matrix_is_not_a_list_of_matrices(given):
    assert not is_list_of_matrices(given)


@pytest.mark.parametrize("given", [[X, X], (X,), [X.tolist()], [{"near": X}], [pd.DataFrame(X)]])
def test_a_list_of_matrices(given):
    assert is_list_of_matrices(given)
