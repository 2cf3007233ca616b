"""The passes of dual coordinate ascent: what every step raises, what must not change a result, and its options."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from tests.loops import for_each
from tests.models import separate, shared

BOTH = [mtl.union(), mtl.individual()]
LABELS = {"hinge_loss": "sign", "squared_hinge_loss": "sign", "logistic_loss": "sign"}


def problem_of(word="hinge_loss", tasks=None, C=2.0, similarities=BOTH, p=2.0, intercept=False):
    tasks = separate(5, labels=LABELS.get(word, "real")) if tasks is None else tasks
    W = mtl.Weights(tasks, intercept=intercept)
    penalty = mtl.ridge(W) if similarities is None else 0.8 * mtl.mkl_norm(W, similarities, p=p)
    return mtl.minimize(C * getattr(mtl, word)(W, tasks) + penalty)


# ---------------------------------------------------------------------------------------------------------- passes


# ----------------------------------------------------------------------------------------------------------- faces


# ----------------------------------------------------------------------------------- what must not change a result


@for_each("word, intercept, density", [
    ("hinge_loss", False, None), ("hinge_loss", True, 0.5), ("logistic_loss", True, None), ("absolute_loss", False, 0.5),
])  # fmt: skip
def test_a_seed_gives_the_very_same_arrays(word, intercept, density):
    tasks = separate(4, labels=LABELS.get(word, "real"), density=density)
    runs = [
        problem_of(word, tasks, intercept=intercept).solve(solver="dual_ascent", tol=1e-7, seed=seed)
        for seed in (3, 3, 4)
    ]
    assert all(run.status == "optimal" for run in runs)
    for name in runs[0].blocks:
        np.testing.assert_array_equal(runs[0].blocks[name], runs[1].blocks[name])
    np.testing.assert_array_equal(runs[0].kernel_weights.values, runs[1].kernel_weights.values)
    assert runs[0].iterations == runs[1].iterations and runs[0].objective == runs[1].objective
    assert not np.array_equal(runs[0].W, runs[2].W)
    assert runs[2].objective == pytest.approx(runs[0].objective, rel=2e-7)


@for_each("word, p", [
    ("hinge_loss", 1.0), ("hinge_loss", 2.0), ("squared_hinge_loss", 1.0), ("squared_hinge_loss", 2.0), ("absolute_loss", 2.0),
])  # fmt: skip
def test_with_and_without_shrinking(word, p):
    problem = problem_of(word, shared(6, n=60, labels=LABELS.get(word, "real")), C=0.3, p=p)
    one, other = (
        problem.solve(solver="dual_ascent", shrinking=shrinking, tol=1e-8) for shrinking in (True, False)
    )
    assert one.status == other.status == "optimal"
    assert one.objective == pytest.approx(other.objective, rel=2e-8)
    least = [min(look["active_samples"] for look in run.history) for run in (one, other)]
    assert least[1] == 240 and (least[0] < 240 or word == "absolute_loss")


@for_each("word", ["hinge_loss", "logistic_loss"])
def test_order_of_rows_and_tasks(word):
    tasks, rng = separate(7, labels="sign"), np.random.default_rng(0)
    inputs, targets = tasks.inputs, tasks.per_task(tasks.targets)
    moved, order = [], [2, 0, 3, 1]
    for t in order:
        rows = rng.permutation(len(targets[t]))
        moved.append((inputs[t][rows], targets[t][rows]))
    one, other = (
        problem_of(word, some, intercept=True).solve(solver="dual_ascent", tol=1e-9)
        for some in (tasks, mtl.Tasks.separate(*zip(*moved, strict=True)))
    )
    assert one.objective == pytest.approx(other.objective, rel=2e-9)
    np.testing.assert_allclose(one.W[:, order], other.W, atol=1e-3)
    theta, rearranged = one.kernel_weights.values, other.kernel_weights.values
    np.testing.assert_allclose(np.append(theta[0], theta[1:][order]), rearranged, atol=1e-3)


def test_a_solve_leaves_the_data_and_a_warm_start_as_they_were():
    tasks = shared(3, n=20, labels="sign", sample_weights=True)
    X, y, s = tasks.X.copy(), tasks.targets.copy(), tasks.sample_weights.copy()
    problem = problem_of(tasks=tasks)
    before = problem.solve(solver="dual_ascent", tol=1e-3)
    state = {name: np.array(value) for name, value in before.state.state.items()}
    blocks = {name: block.copy() for name, block in before.blocks.items()}
    problem.solve(solver="dual_ascent", tol=1e-9, warm_start=before)
    for a, b in (
        (tasks.X, X),
        (tasks.targets, y),
        (tasks.sample_weights, s),
        *((before.blocks[n], blocks[n]) for n in blocks),
    ):
        np.testing.assert_array_equal(a, b)
    for name, value in state.items():
        np.testing.assert_array_equal(before.state.state[name], value)


# ---------------------------------------------------------------------------------------------------------- options


def test_options_belong_to_samples_or_to_planes():
    with pytest.raises(
        SolverError, match=r"pull=1.*not for this model; here dual_ascent takes shrinking=True, seed=0"
    ):
        problem_of().solve(solver="dual_ascent", pull=1)
    tasks = shared(3, n=12, labels="sign")
    W = mtl.Weights(tasks)
    planes = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + mtl.ridge(W))
    for option in ({"shrinking": True}, {"seed": 1}, {"checkpoint": "run"}, {"progress": True}):
        (name,) = option
        with pytest.raises(
            SolverError, match=f"{name}=.*not for this model; here dual_ascent takes (?!shrinking)"
        ) as error:
            planes.solve(solver="dual_ascent", **option)
        assert "pull=" in str(error.value)
    with pytest.raises(SolverError, match="unknown option; dual_ascent takes"):
        problem_of().solve(solver="dual_ascent", shrink=True)
    with pytest.raises(SolverError, match="options belong to one solver"):
        problem_of().solve(shrinking=False)


@for_each("seed", [-1, 1.5, True, None, "0", np.float64(2)])
def test_seeds_that_are_none(seed):
    with pytest.raises(SolverError, match=r"seed=.*whole number >= 0"):
        problem_of().solve(solver="dual_ascent", seed=seed)


@for_each("seed", [np.int64(3), 2**40])
def test_seeds_of_other_kinds(seed):
    assert problem_of().solve(solver="dual_ascent", seed=seed).status == "optimal"


def test_progress_prints_a_line_a_pass(capsys):
    solution = problem_of().solve(solver="dual_ascent", progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == solution.iterations
    assert lines[0].startswith("pass 1: ") and " of 63 samples active, violation " in lines[0]
