"""The largest of the tasks' losses: its proximal step and conjugate against cvxpy, models of it against the reference, and what is refused."""

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.normal_form.canonicalize import to_normal_form
from mtldsl.reference import formulas  # noqa: F401  (every atom's formula is registered)
from mtldsl.reference.registry import FORMULAS
from tests.loops import for_each
from tests.models import separate, shared, with_weights

LOSSES = {
    "squared_loss": "real", "absolute_loss": "real", "huber_loss": "real", "quantile_loss": "real",
    "logistic_loss": "sign", "hinge_loss": "sign", "squared_hinge_loss": "sign",
    "exponential_loss": "sign", "poisson_loss": "count", "gamma_loss": "positive",
}  # fmt: skip
DATA = {
    "mean": lambda labels: (shared(0, n=12, labels=labels), True),
    "weighted": lambda labels: (shared(1, n=14, labels=labels, missing=0.2, sample_weights=True), False),
}


def term_of(word, data="weighted"):
    tasks, mean = DATA[data](LOSSES[word])
    W = mtl.Weights(tasks)
    objective = mtl.worst_task(getattr(mtl, word)(W, tasks, mean=mean)) + mtl.ridge(W)
    return to_normal_form(objective, [], "", {}).losses[0]


def stated(term, z):
    """max over tasks of coefficient * loss, by the reference's formulas alone."""
    ends = np.cumsum(term.tasks.counts)
    weights = term.tasks.sample_weights
    found = []
    for i, end in enumerate(ends):
        rows = slice(int(end - term.tasks.counts[i]), int(end))
        s = None if weights is None else weights[rows]
        loss = FORMULAS[term.atom.of.name](z[rows], term.tasks.targets[rows], s, term.atom.of)
        found.append(float(term.coefficients[i]) * loss)
    return cp.maximum(*found)


@pytest.mark.by_default("absolute_loss")
@pytest.mark.parametrize("word", LOSSES)
def test_prox_is_the_minimiser_and_meets_the_conjugate(word):
    term, rng = term_of(word), np.random.default_rng(3)
    z, step = rng.normal(size=term.tasks.n_samples), 0.7
    v = term.prox(z, step)
    assert term.value(v) == pytest.approx(float(stated(term, cp.Constant(v)).value), rel=1e-10)
    u = (z - v) / step
    young = term.value(v) + term.conjugate(term.dual_project(u)) - u @ v
    assert abs(young) <= 1e-7 * max(1.0, abs(term.value(v)))  # equality proves both
    conjugate = term.conjugate(u)
    for _ in range(20):  # and elsewhere the inequality
        other = v + rng.normal(size=v.size) * 10 ** rng.uniform(-3, 0)
        assert term.value(other) + conjugate - u @ other >= -1e-7


@for_each("word", ["squared_loss", "hinge_loss", "huber_loss"])
def test_the_conjugate_is_the_supremum(word):
    term, rng = term_of(word, "mean"), np.random.default_rng(4)
    spread = np.repeat(rng.dirichlet(np.ones(term.tasks.n_tasks)), term.tasks.counts)
    u = term.dual_project(0.9 * spread * term.each.gradient(rng.normal(size=term.tasks.n_samples)))
    z = cp.Variable(u.size)
    supremum = cp.Problem(cp.Maximize(u @ z - stated(term, z))).solve(solver=cp.CLARABEL)
    assert term.conjugate(u) == pytest.approx(supremum, rel=1e-5, abs=1e-6)


@pytest.mark.slow
@for_each("word", LOSSES)
def test_multipliers_are_moved_into_the_domain(word):
    term, rng = term_of(word), np.random.default_rng(5)
    u = term.dual_project(30.0 * rng.normal(size=term.tasks.n_samples))
    assert np.isfinite(term.conjugate(u))
    assert np.allclose(term.dual_project(u), u)
    balanced = term.balanced(u)
    assert np.abs(term.sums(balanced)).max() <= 1e-12 * np.abs(u).max() * u.size
    assert np.isfinite(term.conjugate(balanced))


@pytest.mark.by_default("squared_loss-True")
@pytest.mark.parametrize(
    "word, intercept",
    [("squared_loss", True), ("logistic_loss", False), ("hinge_loss", True), ("absolute_loss", False)],
)
def test_models_are_proven_and_agree_with_the_reference(word, intercept):
    tasks, mean = DATA["mean" if intercept else "weighted"](LOSSES[word])
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(mtl.worst_task(getattr(mtl, word)(W, tasks, mean=mean)) + 0.05 * mtl.trace_norm(W))
    solution = problem.solve()
    assert solution.status == "optimal" and solution.solver == "admm"
    assert problem.cross_check(solution).agrees


@for_each("word,far", [("huber_loss", 1e6), ("squared_loss", 1e4), ("absolute_loss", 1e3)])
def test_labels_far_from_zero_cost_no_iterations(word, far):
    """They are moved to zero, as in the sum of the losses: ADMM was not near after a minute."""
    near = shared(0, n=12)
    tasks, W = with_weights(mtl.Tasks.shared(near.X, near.targets.reshape(-1, 12).T + far), intercept=True)
    loss = mtl.worst_task(getattr(mtl, word)(W, tasks))
    solution = mtl.minimize(loss + 0.1 * mtl.trace_norm(W)).solve(max_iter=500)
    assert solution.status == "optimal" and np.abs(solution.intercept - far).max() < 10.0


def test_beside_other_losses_and_constraints():
    tasks, W = with_weights(separate(2), intercept=True)
    loss = mtl.squared_loss(W, tasks, mean=True)
    problem = mtl.minimize(mtl.worst_task(loss) + 0.3 * loss + 0.1 * mtl.l21_norm(W), subject_to=[W >= -1])
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees


def test_the_worst_task_does_better_and_the_sum_worse():
    tasks, W = with_weights(separate(3))
    loss, ball = mtl.squared_loss(W, tasks, mean=True), [mtl.trace_norm(W) <= 1.0]

    def losses(solution):
        return [
            0.5 * np.mean((X @ solution.W[:, i] - y) ** 2)
            for i, (X, y) in enumerate(zip(tasks.inputs, tasks.per_task(tasks.targets), strict=True))
        ]

    fair = losses(mtl.minimize(mtl.worst_task(loss), subject_to=ball).solve())
    plain = losses(mtl.minimize(loss, subject_to=ball).solve())
    assert max(fair) < 0.99 * max(plain) and sum(fair) > sum(plain)


def test_as_text_formula_file_and_path(tmp_path):
    tasks = separate(4)
    W, lam = mtl.Weights(tasks), mtl.Parameter(0.5, name="lam")
    problem = mtl.minimize(lam * mtl.worst_task(2 * mtl.squared_loss(W, tasks)) + mtl.l21_norm(W))
    assert str(problem) == "minimize    lam * 2 * worst_task(squared_loss(W, tasks)) + l21_norm(W)"
    assert r"\max_i" in problem.latex()
    values = [s.objective for s in problem.path(lam, [0.01, 0.1, 1.0])]
    assert values == sorted(values)
    solution = problem.solve()
    loaded = mtl.Solution.load(solution.save(tmp_path / "worst"))
    assert np.array_equal(loaded.predict(tasks.inputs)[0], solution.predict(tasks.inputs)[0])


def test_what_is_refused():
    tasks = separate(6)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    loss = mtl.squared_loss(W, tasks)
    for inside, says in [
        (loss + mtl.absolute_loss(W, tasks), "must be one loss"),
        (mtl.ridge(W), "must be one loss"),
        (W, "must be a loss"),
        (mtl.square_root_loss(W, tasks), "is not a sum over samples"),
        (mtl.worst_task(loss), "one number already"),
    ]:
        with pytest.raises(mtl.ModelError, match=says):
            mtl.worst_task(inside)
    with pytest.raises(mtl.ModelError, match="missing a required argument"):
        mtl.worst_task()
    with pytest.raises(mtl.ModelError, match="is not convex"):
        mtl.minimize(mtl.ridge(W) - mtl.worst_task(loss))
    problem = mtl.minimize(mtl.worst_task(loss) + lam * mtl.l21_norm(W))
    with pytest.raises(mtl.ModelError, match="has a kink at zero"):
        problem.lambda_max(lam)
