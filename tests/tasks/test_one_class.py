"""Tasks of one class: left out with a warning that names them."""

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
    apart = mtl.Tasks.separate([np.eye(2), np.eye(2)[:1]], [[1.0, -1.0], [1.0]], task_names=["a", "b"])
    with pytest.warns(OneClassWarning):
        assert apart.without_one_class().task_names == ("a",)
