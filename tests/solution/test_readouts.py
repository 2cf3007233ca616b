"""What a solution tells beside its weights is a list: each entry fills fields of its own, and a file that lacks a part is refused."""

import json
from dataclasses import fields

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solution.readout import Array, Part, Parts, require_per_task
from mtldsl.solution.readouts import READOUTS
from tests.loops import for_each
from tests.models import shared


def test_every_readout_fills_fields_of_its_own():
    filled = [kept.name for readout in READOUTS for kept in readout.kept]
    assert len(filled) == len(set(filled))
    assert set(filled) <= {field.name for field in fields(mtl.Solution)}


def test_nothing_is_told_of_a_model_that_has_nothing_of_the_kind():
    tasks = mtl.Tasks.shared(np.eye(3), np.array([[1.0, -1], [-1, 1], [1, 1]]))
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.ridge(W)).solve()
    assert solution.learned == {}
    assert (
        solution.label_graph is solution.certified is solution.task_weights is solution.noise_levels is None
    )


class Pair:
    """An object with two arrays."""

    def __init__(self, name, a, b):
        self.name, self.a, self.b = name, a, b

    def stored(self):
        return {"kind": "pair"}, {"a": self.a, "b": self.b}

    @staticmethod
    def keeps(facts):
        return facts["kind"] == "pair"

    @classmethod
    def restored(cls, name, facts, arrays):
        return cls(name, arrays["a"], arrays["b"])


def test_parts_come_back_and_say_which_array_is_lacking():
    parts, plain, arrays = Parts("pairs", "pairs:", (Pair,)), {}, {}
    parts.put({"x": Pair("x", np.ones(2), np.zeros(3))}, plain, arrays)
    assert plain == {"pairs": {"x": {"kind": "pair"}}} and set(arrays) == {"pairs:x:a", "pairs:x:b"}
    again = parts.take(json.loads(json.dumps(plain)), arrays)["x"]
    assert again.name == "x" and again.a.tolist() == [1, 1] and again.b.tolist() == [0, 0, 0]
    assert parts.take({}, {}) == {}
    del arrays["pairs:x:b"]
    with pytest.raises(KeyError, match="pairs:x:b"):
        parts.take(plain, arrays)
    with pytest.raises(ValueError, match="x is of the kind 'triple'"):
        parts.take({"pairs": {"x": {"kind": "triple"}}}, arrays)


def test_a_field_that_is_none_stays_none():
    for kept in (Array("a"), Part("a", "a:", None, None)):
        plain, arrays = {}, {}
        kept.put(None, plain, arrays)
        assert arrays == {} and kept.take(plain, arrays) is None
    with pytest.raises(KeyError):
        Array("a", required=True).take({}, {})


@for_each("array", [np.ones(3), np.array([1, 2]), np.array([1.0, np.nan]), np.ones((1, 2))])
def test_numbers_of_tasks_are_one_a_column(array):
    require_per_task({"coef": np.ones((4, 2)), "levels": np.ones(2)}, "levels")
    require_per_task({"coef": np.ones((4, 2)), "levels": None}, "levels")
    with pytest.raises(ValueError, match="levels is"):
        require_per_task({"coef": np.ones((4, 2)), "levels": array}, "levels")


def rewritten(path, change):
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    plain = json.loads(str(arrays["json"]))
    change(plain)
    np.savez(path, **arrays | {"json": np.array(json.dumps(plain))})


def test_labellings_without_their_graph_are_refused(tmp_path):
    tasks = mtl.Tasks.shared(np.eye(4), np.array([[1.0, -1], [-1, 1], [1, 1], [-1, -1]]))
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges="all")
    path = (
        mtl.minimize(mtl.clique_hinge(U, V, tasks) + mtl.ridge(U) + mtl.ridge(V))
        .solve()
        .save(tmp_path / "cgm")
    )
    assert mtl.Solution.load(path).label_graph is not None
    rewritten(path, lambda plain: plain.update(label_graph=None))
    with pytest.raises(mtl.DataError, match="its loss is 'clique_hinge', and it has no graph of labels"):
        mtl.Solution.load(path)


def test_something_learned_of_an_unknown_kind_is_refused(tmp_path):
    tasks = shared(3)
    W, C = mtl.Weights(tasks), mtl.TaskCovariance(tasks, "C")
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.task_covariance_norm(W, C), [C.trace() <= 1])
    path = problem.solve().save(tmp_path / "covariance")
    rewritten(path, lambda plain: plain["learned"]["C"].update(kind="tensor"))
    with pytest.raises(mtl.DataError, match="C is of the kind 'tensor'"):
        mtl.Solution.load(path)
