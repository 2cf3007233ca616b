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


def test_a_solve_leaves_the_data_and_a_warm_start_as_they_were():
    tasks = shared(3, n=20, labels="sign", sample_weights=True)
    problem = problem_of(tasks=tasks)
    before = problem.solve(solver="dual_ascent", tol=1e-3)
    given = [tasks.X, tasks.targets, tasks.sample_weights, *before.blocks.values()]
    given += before.state.state.values()
    copies = [np.array(one) for one in given]
    problem.solve(solver="dual_ascent", tol=1e-9, warm_start=before)
    for one, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(one, copy)


# ---------------------------------------------------------------------------------------------------------- options


def test_options_belong_to_samples_or_to_planes():
    said = r"pull=1.*not for this model; here dual_ascent takes shrinking=True, seed=0"
    with pytest.raises(SolverError, match=said):
        problem_of().solve(solver="dual_ascent", pull=1)
    tasks = shared(3, n=12, labels="sign")
    W = mtl.Weights(tasks)
    planes = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + mtl.ridge(W))
    for name, value in {"shrinking": True, "seed": 1, "checkpoint": "run", "progress": True}.items():
        said = f"{name}=.*not for this model; here dual_ascent takes (?!shrinking).*pull="
        with pytest.raises(SolverError, match=said):
            planes.solve(solver="dual_ascent", **{name: value})
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
