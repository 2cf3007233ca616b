"""The reference of models over a graph of labels: optima known from elsewhere, its limits, and constraint generation."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.certificate import certify
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.label_graph import SETTINGS
from mtldsl.reference.solve import solve_reference
from tests.known_optima import fixture
from tests.label_graph_models import CASES, known, model
from tests.loops import for_each


def in_groups(name):
    """(problem, optimum) of the fixture whose penalty is over groups of edges, of four columns each."""
    read = fixture(name)
    X, Y = np.array(read["X"]), 2.0 * np.array(read["Y"]) - 1.0
    known = read["objective"]["l21sq_groups"]
    groups = [[4 * edge + v for edge in group for v in range(4)] for group in known["groups"]]
    penalty = lambda V: mtl.half_squared_group_norm(V, columns=groups)  # noqa: E731
    edges = [tuple(edge) for edge in read["edges"]]
    return model(X, Y, edges, a=read["lam"], penalty=penalty), known["clarabel_primal"]


@pytest.mark.slow
@for_each("name, key", [*CASES, ("cgm_n8_K3", "in groups"), ("cgm_n12_K4", "in groups")])
def test_known_optima(name, key):
    """To 1e-8, with a bound from the multipliers of the ties: the fixtures are given to nine digits."""
    problem, expected = in_groups(name) if key == "in groups" else known(name, key)
    form = problem.form()
    point = solve_reference(form)
    assert point.objective == pytest.approx(expected, abs=1e-8)
    found = certify(form, point.blocks, point.loss_duals, point.function_duals)
    assert found.objective == pytest.approx(expected, abs=1e-8)
    assert expected - 1e-8 <= found.dual_bound <= expected + 1e-8


def of_size(K, n=4, word=mtl.clique_hinge):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((n, K)) < 0.5, 1.0, -1.0)
    Y[0], Y[1] = 1.0, -1.0
    tasks = mtl.Tasks.shared(rng.normal(size=(n, 2)), Y)
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, [(0, 1)])
    return mtl.minimize(word(U, V, tasks) + 0.1 * mtl.ridge(U) + 0.1 * mtl.ridge(V))


@pytest.mark.slow
def test_too_many_labels_are_refused_before_a_solve():
    looked_at = (
        r"clique_hinge\(U, V, tasks\).*looks at every.*15 labels have 2\^15.*tasks.select\(range\(14\)\)"
    )
    stated = r"pairwise_log_loss.*states every.*7 labels have 2\^7.*tasks.select\(range\(6\)\)"
    for problem, message in ((of_size(15), looked_at), (of_size(7, word=mtl.pairwise_log_loss), stated)):
        for call in (problem.to_cvxpy, problem.cross_check, lambda problem=problem: problem.solve("cvxpy")):
            with pytest.raises(mtl.ModelError, match=message):
                call()
    assert of_size(6).solve("cvxpy").status == "optimal"


def test_too_many_samples_are_refused_and_checked_on_some():
    n = SETTINGS.stated_labellings // 4 + 1
    problem = of_size(2, n, mtl.pairwise_log_loss)
    with pytest.raises(mtl.ModelError, match=r"tasks.subsample\(25000\)"):
        problem.to_cvxpy()
    many = of_size(12, SETTINGS.plane_labellings // 2**12 + 1)
    with pytest.raises(mtl.ModelError, match=r"tasks.subsample\(976\)"):
        many.to_cvxpy()
    check = of_size(2, n).cross_check(max_size=20_000)
    assert check.agrees and "rows a task" in check.scope, check


def by_planes(form, monkeypatch):
    """The same form solved with planes, however few its labellings are."""
    monkeypatch.setattr("mtldsl.reference.label_graph.SETTINGS", replace(SETTINGS, stated_labels=0))
    model = to_cvxpy(form, split=True)
    assert model.is_relaxation and "is a relaxation" in repr(model)
    return solve_reference(form, model=model)


@pytest.mark.by_default("none-[0.5, 2.0, 1.0, 0.0]")
@pytest.mark.parametrize("edges, loss", [
    ("none", [0.5, 2.0, 1.0, 0.0]), ("some", "hamming"), ("some", [0.5, 2.0, 1.0, 0.0]),
    ("some", "zero_one"), ("some", mtl.metrics.FScore()),
], ids=str)  # fmt: skip
def test_constraint_generation_is_the_statement_in_full(edges, loss, monkeypatch):
    rng = np.random.default_rng(3)
    X, s = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, size=12)
    Y = np.where(X @ rng.normal(size=(3, 4)) + rng.normal(size=(12, 1)) > 0, 1.0, -1.0)
    tasks = mtl.Tasks.shared(X, Y, sample_weights=s)
    U, V = (
        mtl.NodeWeights(tasks, intercept=True),
        mtl.EdgeWeights(tasks, [(0, 1), (1, 3), (0, 2, 3)] * (edges == "some")),
    )
    objective = mtl.clique_hinge(U, V, tasks, loss=loss) + 0.1 * mtl.ridge(U) + 0.1 * mtl.trace_norm(V)
    form = mtl.minimize(objective, subject_to=[U <= 0.7]).form()
    stated, planes = solve_reference(form), by_planes(form, monkeypatch)
    assert planes.objective == pytest.approx(stated.objective, rel=1e-7)
    found = certify(form, planes.blocks, planes.loss_duals, planes.function_duals)
    assert found.dual_bound == pytest.approx(stated.objective, rel=1e-5)
