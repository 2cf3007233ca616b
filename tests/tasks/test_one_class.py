"""Tasks of one class: left out with a warning that names them, refused by losses with the way out."""

import warnings

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.tasks.one_class import OneClassWarning


def test_they_are_left_out_and_named():
    Y = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, np.nan], [1.0, -1.0, 1.0]])
    tasks = mtl.Tasks.shared(np.eye(3), Y, task_names=["two", "never", "always"])
    with pytest.warns(
        OneClassWarning,
        match=r"2 of 3 tasks have labels of one class alone and are left out: 'never', 'always'",
    ):
        left = tasks.without_one_class()
    assert left.task_names == ("two",) and left.targets.tolist() == [1.0, -1.0, 1.0] and left.X is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert left.without_one_class() is left


def test_of_separate_inputs_too():
    tasks = mtl.Tasks.separate([np.eye(2), np.eye(2)[:1]], [[1.0, -1.0], [1.0]], task_names=["a", "b"])
    with pytest.warns(OneClassWarning):
        assert tasks.without_one_class().task_names == ("a",)


def test_losses_of_labels_say_how_to_leave_them_out():
    tasks = mtl.Tasks.shared(np.eye(2), np.array([[1.0, 1.0], [-1.0, 1.0]]))
    with pytest.raises(mtl.DataError, match=r"task 'task1' has one class only.*tasks\.without_one_class\(\)"):
        mtl.logistic_loss(mtl.Weights(tasks), tasks)


def test_where_none_is_left_it_is_an_error():
    with pytest.raises(mtl.DataError, match="all 1 tasks have labels of one class alone"):
        mtl.Tasks.shared(np.eye(2), [1.0, 1.0]).without_one_class()
