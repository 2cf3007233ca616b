"""The reference of models over a graph of labels: optima known from elsewhere, its limits, and constraint generation."""

import json
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.proof.certificate import certify
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.label_graph import (
    LARGEST_LOOKED_AT,
    LARGEST_STATED,
)
from mtldsl.reference.solve import solve_reference
from tests.loops import for_each

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"


def fixture(name):
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return json.loads(path.read_text())


def model_of(known, edges, penalty):
    """clique_hinge + lam ridge(U) + lam * penalty(V)."""
    tasks = mtl.Tasks.shared(np.array(known["X"]), 2.0 * np.array(known["Y"]) - 1.0)
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    return mtl.minimize(mtl.clique_hinge(U, V, tasks) + known["lam"] * (mtl.ridge(U) + penalty(V)))


def support(r):
    return lambda V: mtl.half_squared_k_support_norm(V, r)


def pairs(known):
    return [tuple(edge) for edge in known["edges"]]


def _groups_of_edges(known):
    """The groups of edges of l21sq_groups as groups of columns, four an edge."""
    return [
        [4 * e + v for e in group for v in range(4)] for group in known["objective"]["l21sq_groups"]["groups"]
    ]


#: name in the fixtures -> model
KNOWN = {
    "ssvm_no_edges": lambda known: model_of(known, [], mtl.ridge),
    "ssvm_edges": lambda known: model_of(known, pairs(known), mtl.ridge),
    "ssvm_all_edges": lambda known: model_of(known, "all", mtl.ridge),
    "l21sq_edges_r1": lambda known: model_of(known, pairs(known), mtl.half_squared_group_norm),
    "relaxation6_r1": lambda known: model_of(known, "all", support(1)),
    "relaxation6_r2": lambda known: model_of(known, "all", support(2)),
    "l21sq_groups": lambda known: model_of(
        known, pairs(known), lambda V: mtl.half_squared_group_norm(V, columns=_groups_of_edges(known))
    ),
    "ssvm_3clique": lambda known: model_of(
        known, [tuple(clique) for clique in known["objective"]["ssvm_3clique"]["cliques"]], mtl.ridge
    ),
}
CASES = [("cgm_n8_K3", key) for key in KNOWN if key != "ssvm_3clique"] + [
    ("cgm_n12_K4", key) for key in KNOWN
]


@for_each("name, key", CASES)
def test_known_optima(name, key):
    """To 1e-8, with a bound from the multipliers of the ties: the fixtures are given to nine digits."""
    known = fixture(name)
    form = KNOWN[key](known).form()
    point = solve_reference(form)
    expected = known["objective"][key]["clarabel_primal"]
    assert point.objective == pytest.approx(expected, abs=1e-8)
    found = certify(form, point.blocks, point.loss_duals, point.function_duals)
    assert found.objective == pytest.approx(expected, abs=1e-8)
    assert expected - 1e-8 <= found.dual_bound <= expected + 1e-8
    if "v_norms" in known["objective"][key]:
        V = point.blocks["V"].reshape(form.shapes["V"][0], -1, 4)
        norms = np.linalg.norm(V, axis=(0, 2))
        np.testing.assert_allclose(norms, known["objective"][key]["v_norms"], atol=1e-4)


# ---------------------------------------------------------------------------------------------------- its limits


def of_size(K, n=4):
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((n, K)) < 0.5, 1.0, -1.0)
    Y[0], Y[1] = 1.0, -1.0
    tasks = mtl.Tasks.shared(rng.normal(size=(n, 2)), Y)
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, [(0, 1)])
    return mtl.minimize(mtl.clique_hinge(U, V, tasks) + 0.1 * mtl.ridge(U) + 0.1 * mtl.ridge(V))


def likelihood_of_size(K, n=4):
    tasks = next(weights.tasks for weights in of_size(K, n).weights if weights.name == "U")
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, [(0, 1)])
    return mtl.minimize(mtl.pairwise_log_loss(U, V, tasks) + 0.1 * mtl.ridge(U) + 0.1 * mtl.ridge(V))


@pytest.mark.slow
def test_too_many_labels_are_refused_before_a_solve():
    """More labels than can be looked at are refused before anything is solved."""
    for problem, message in (
        (
            of_size(15),
            r"clique_hinge\(U, V, tasks\).*looks at every.*15 labels have 2\^15.*tasks.select\(range\(14\)\)",
        ),
        (
            likelihood_of_size(7),
            r"pairwise_log_loss.*states every.*7 labels have 2\^7.*tasks.select\(range\(6\)\)",
        ),
    ):
        for call in (problem.to_cvxpy, problem.cross_check, lambda problem=problem: problem.solve("cvxpy")):
            with pytest.raises(mtl.ModelError, match=message):
                call()
    assert of_size(6).solve("cvxpy").status == "optimal"


def test_too_many_samples_are_refused_and_checked_on_some():
    """More samples than can be stated are refused and cross checked on some."""
    n = LARGEST_STATED // 4 + 1
    problem = likelihood_of_size(2, n)
    with pytest.raises(mtl.ModelError, match=r"tasks.subsample\(25000\)"):
        problem.to_cvxpy()
    many = of_size(12, LARGEST_LOOKED_AT // 2**12 + 1)
    with pytest.raises(mtl.ModelError, match=r"tasks.subsample\(976\)"):
        many.to_cvxpy()
    check = of_size(2, n).cross_check(max_size=20_000)
    assert check.agrees and "rows a task" in check.scope, check


# ------------------------------------------------------------------------------------------- constraint generation


def by_planes(form, monkeypatch):
    """The same form solved with planes, however few its labellings are."""
    monkeypatch.setattr("mtldsl.reference.label_graph.MOST_LABELS", 0)
    model = to_cvxpy(form, split=True)
    assert model.is_relaxation and "is a relaxation" in repr(model)
    return solve_reference(form, model=model)


@pytest.mark.by_default("none-[0.5, 2.0, 1.0, 0.0]")
@pytest.mark.parametrize(
    "edges, loss",
    [
        ("none", [0.5, 2.0, 1.0, 0.0]),
        ("some", "hamming"),
        ("some", [0.5, 2.0, 1.0, 0.0]),
        ("some", "zero_one"),
        ("some", mtl.FScore()),
    ],
    ids=str,
)
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


@pytest.mark.slow
def test_seven_labels_and_more_agree_with_the_solver():
    K, n, rng = 7, 12, np.random.default_rng(7)
    X = rng.normal(size=(n, 3))
    Y = np.where(
        X @ rng.normal(size=(3, K)) + rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, K)) > 0, 1.0, -1.0
    )
    Y[0], Y[1] = 1.0, -1.0
    tasks = mtl.Tasks.shared(X, Y)
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks)
    problem = mtl.minimize(
        mtl.clique_hinge(U, V, tasks) + 0.1 * (mtl.ridge(U) + mtl.half_squared_group_norm(V))
    )
    reference, fast = problem.solve("cvxpy", tol=1e-7), problem.solve(tol=1e-6)
    assert reference.status == fast.status == "optimal" and fast.solver == "clique_generation"
    assert fast.objective == pytest.approx(reference.objective, rel=2e-6)
    assert fast.dual_bound <= reference.objective * (1 + 1e-9) and reference.dual_bound <= fast.objective
