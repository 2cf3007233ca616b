"""The reference's side of penalties of the spectrum: convex functions that lie above them and touch,
restrictions to some tasks, and steps whose optimum was established elsewhere.
"""

from dataclasses import replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.spectral_penalties import (
    CappedTraceNorm,
    LogRank,
    SchattenNorm,
    SpectralPenalty,
)
from mtldsl.atoms.regularizers import Rank
from mtldsl.atoms.sets import RankAtMost
from mtldsl.errors import ModelError
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.majorization import (
    convex_forms,
    of_tasks,
    reweighted_losses,
    spectral_value,
    spectral_violation,
    why_not_by_tasks,
)
from mtldsl.reference.registry import formula_of
from mtldsl.reference.solve import solve_reference
from mtldsl.reference.spectral import excess, penalty, ways
from tests.concave_functions import geman, geman_slope, laplace, laplace_slope
from tests.known_optima import fixture
from tests.loops import for_each
from tests.models import with_weights
from tests.registry_cases import with_singular_values


def bent(x):
    """Concave in x, not in sqrt(x), and of infinite slope at zero."""
    return 1.0 - np.exp(-x) + 0.01 * np.sqrt(x)


def bent_slope(x):
    return np.exp(-x) + 0.005 / np.sqrt(x)


def of_rank(s, shape=(5, 4)):
    """With these singular values."""
    return with_singular_values(s, shape, np.random.default_rng(1))


ABOVE = {  # atom -> how many convex functions stand for it
    "log_rank": (LogRank(1e-3), 1),
    "log_rank, exact": (LogRank(0.0), 1),
    "capped": (CappedTraceNorm(1.5, 1e-2), 1),
    "capped, exact": (CappedTraceNorm(1.5), 1),
    "schatten": (SchattenNorm(0.5, 1e-2), 1),
    "schatten, exact": (SchattenNorm(0.5, 0.0), 2),
    "laplace": (SpectralPenalty(laplace, laplace_slope, 1e-2), 1),
    "laplace, exact": (SpectralPenalty(laplace, laplace_slope, 0.0), 1),
    "geman, exact": (SpectralPenalty(geman, geman_slope, 0.0), 1),
    "lifted": (  # r(0) = 2, of every direction that W has not
        SimpleNamespace(
            name="spectral_penalty", eps=0.0, function=lambda x: 2 + geman(x), derivative=geman_slope
        ),
        1,
    ),
    "bent, exact": (SpectralPenalty(bent, bent_slope, 0.0), 2),
    "counted": (SimpleNamespace(name="spectral_penalty", eps=0.0, function=np.sign, derivative=np.zeros_like),
     2),
    "rank": (Rank(), 2),
    "rank <= 2": (RankAtMost(2), 2),
}  # fmt: skip


def stated(way, V):
    """(value, violation) of a way at an array, by cvxpy."""
    X = cp.Variable(V.shape, value=V)
    value = sum((formula_of(f.name, "")(X, f) for f in way.functions), cp.Constant(way.constant))
    sets = [c for f in way.constraints for c in formula_of(f.name, "")(X, f)]
    assert value.is_convex() and cp.Problem(cp.Minimize(value), sets).is_dcp()
    return float(value.value), max((float(np.max(np.abs(c.residual))) for c in sets), default=0.0)


@pytest.mark.slow
@for_each("name", ABOVE)
@for_each("shape", [(5, 4), (4, 6)])
@for_each("s", [[3.0, 1.0], [2.0, 1.6, 0.7, 0.01], []], ids=["low", "full", "zero"])
def test_above_and_touching(name, shape, s):
    """At W0 the two are equal; elsewhere, near and far, the convex one is no less, wherever its constraints are met."""
    atom, count = ABOVE[name]
    if name == "rank <= 2":
        s = s[:2]
    W0 = of_rank(s, shape)
    found = ways(atom, W0, np.random.default_rng(0))
    assert len(found) == count
    rng = np.random.default_rng(2)
    for way in found:
        value, violation = stated(way, W0)
        assert value == pytest.approx(penalty(atom, W0), rel=1e-12, abs=1e-12) and violation <= 1e-13
        for size in (1e-4, 1e-2, 1.0, 10.0):
            V = W0 + size * rng.normal(size=shape)
            for f in way.constraints:  # the nearest point of the subspace
                outside = f.outside @ f.outside.T
                V = V - (V @ outside if f.of_rows else outside @ V)
            value, violation = stated(way, V)
            assert value >= penalty(atom, V) - 1e-9 * (1 + abs(value)) and violation <= 1e-12
            assert excess(atom, V) <= 1e-12  # kept spaces are no larger than the rank allows


def some(m, d=5, n=7, seed=0, **options):
    rng = np.random.default_rng(seed)
    counts = [n + i % 3 for i in range(m)]
    inputs = [rng.normal(size=(k, d)) for k in counts]
    targets = [X @ rng.normal(size=d) + 0.1 * rng.normal(size=len(X)) for X in inputs]
    weights = [rng.uniform(0.5, 2.0, size=k) for k in counts] if options.pop("weighted", False) else None
    return mtl.Tasks.separate(inputs, targets, sample_weights=weights, **options)


def random_blocks(form, rng, size=1.0):
    return {b.name: size * rng.normal(size=b.shape) for b in form.blocks}


def decomposition(tasks):
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S", intercept=True)
    return mtl.minimize(
        3.0 * mtl.square_root_loss(L + S, tasks, eps=0.1)
        + 2.0 * mtl.log_rank(L, eps=1e-2)
        + 0.7 * mtl.capped_trace_norm(2.0 * S - 1.0, 2.0, eps=1e-3)
        + 0.3 * mtl.l12_norm(S),
        subject_to=[S <= 3],
    ).form()


def test_a_quadratic_in_place_of_a_loss_touches_and_lies_above():
    """Above the convex functions of the penalties, and these above the model; of losses with sample weights."""
    form, rng = decomposition(some(4, weighted=True)), np.random.default_rng(1)
    at = random_blocks(form, rng)
    ((text, convex),) = convex_forms(form, at)
    assert text == "2 * log_rank(L) majorised, 0.7 * capped_trace_norm(2 * S - 1, tau=2, eps=0.001) majorised"
    models = to_cvxpy(convex), to_cvxpy(reweighted_losses(convex, at))
    for model in models:
        assert model.problem.is_dcp()
        assert model.objective_value(at) == pytest.approx(form.value(at), rel=1e-12)
    for size in (1e-3, 0.1, 1.0, 5.0):
        other = {name: at[name] + size * step for name, step in random_blocks(form, rng).items()}
        values = [form.value(other), *(model.objective_value(other) for model in models)]
        assert values == sorted(values) and values[2] > values[1] > values[0]


def test_no_quadratic_touches_a_kink():
    tasks, V = with_weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    form = mtl.minimize(2.0 * mtl.square_root_loss(V, tasks) + mtl.log_rank(V)).form()
    with pytest.raises(ModelError, match=r"task '?\w+'? of 2 .* square_root_loss.*residuals are all zero"):
        reweighted_losses(form, {"W": np.array([[1.0, 0.5], [1.0, 1.0], [1.0, 1.0]])})


def test_a_bounded_rank_among_other_terms():
    """Two forms: what is majorised in both, and the space that is kept in each."""
    tasks, V = with_weights(some(4))
    form = mtl.minimize(
        mtl.squared_loss(V, tasks) + mtl.log_rank(V), subject_to=[mtl.rank(V) <= 2, V <= 9]
    ).form()
    at = {"W": of_rank([2.0, 1.0])}
    assert spectral_violation(form, {"W": of_rank([2.0, 1.0, 0.5])}) == pytest.approx(0.5)
    texts = [text for text, _ in convex_forms(form, at)]
    assert texts == [
        f"log_rank(W) majorised, rank(W) <= 2 with its {side} space kept" for side in ("column", "row")
    ]
    for _, convex in convex_forms(form, at):
        point = solve_reference(convex)
        assert point.objective <= form.value(at) and spectral_violation(form, point.blocks) <= 1e-7


@for_each("case", ["alg1_sqrt", "alg1_sq"])
def test_the_majoriser_of_a_known_step(case):
    """At W0 = X_i^T y_i, with the constants left out there."""
    given = fixture("cmtl_9x6")
    inputs, targets = ([np.array(part) for part in given[key]] for key in "Xy")
    tasks = mtl.Tasks.separate(inputs, targets)
    V, eps = mtl.Weights(tasks), given[case]["eps1"]
    loss = mtl.square_root_loss(V, tasks, eps=given[case]["eps2"])
    loss = loss if case == "alg1_sqrt" else mtl.sum_of_squares(V, tasks)
    form = mtl.minimize(loss + given["mu"] * mtl.log_rank(V, eps=eps)).form()
    at = {"W": np.column_stack([X.T @ y for X, y in zip(inputs, targets, strict=True)])}
    ((_, convex),) = convex_forms(form, at)
    majorizer = reweighted_losses(convex, at)
    assert to_cvxpy(majorizer).objective_value(at) == pytest.approx(given[case]["first10"][0], rel=1e-12)
    point = solve_reference(majorizer)
    known = given[case]["surrogate_at_W0"]["optimum"]
    assert point.objective - majorizer.constant == pytest.approx(known, rel=1e-8)
    rest = to_cvxpy(replace(form, functions=())).objective_value(point.blocks) + spectral_value(
        form, point.blocks
    )
    assert rest == pytest.approx(given[case]["first10"][1], rel=1e-8)  # where the step of the trace ended


def coupled(tasks):
    V = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(
        mtl.square_root_loss(V - 1.0, tasks, eps=0.1, mean=True)
        + 2.0 * mtl.log_rank(V, eps=1e-2)
        + 0.5 * mtl.l21_norm(V)
        + 0.2 * mtl.ridge(3.0 * V + 1.0),
        subject_to=[V >= np.linspace(-9, -8, V.shape[0] * V.shape[1]).reshape(V.shape)],  # noqa: SIM300
    ).form()


def shared_with_gaps():
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(9, 6))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    return mtl.Tasks.shared(rng.normal(size=(9, 5)), Y, sample_weights=rng.uniform(0.5, 2, size=9))


@for_each("tasks", [some(6, weighted=True), shared_with_gaps()], ids=["separate", "shared"])
@for_each("model", [coupled, decomposition])
def test_the_model_of_some_tasks_changes_as_the_whole_does(tasks, model):
    """Differences of objectives between points that differ in these columns only."""
    form, rng, which = model(tasks), np.random.default_rng(0), np.array([1, 3, 4])
    at = random_blocks(form, rng)
    ((_, convex),) = convex_forms(form, at)
    assert why_not_by_tasks(convex) is None
    small, here = of_tasks(convex, at, which)
    whole, part = to_cvxpy(convex), to_cvxpy(small)
    before = whole.objective_value(at) - part.objective_value(here)
    for size in (0.1, 1.0, 20.0):
        there = random_blocks(small, rng, size)
        moved = {name: block.copy() for name, block in at.items()}
        for name, block in moved.items():
            block[:, which] = there[name]
        assert whole.objective_value(moved) - part.objective_value(there) == pytest.approx(before, rel=1e-10)
        assert part.violation(there) <= whole.violation(moved) + 1e-12
        assert part.violation(there) > 0 or size < 20


def test_models_that_are_no_model_of_tasks():
    tasks, V = with_weights(some(4))
    loss = mtl.squared_loss(V, tasks) + mtl.log_rank(V)
    for constraint in (V.sum(axis=1) == 0, mtl.l1_norm(V) <= 3):
        form = mtl.minimize(loss, subject_to=[constraint]).form()
        assert why_not_by_tasks(form) == f"{constraint.text} couples tasks"
    low = mtl.minimize(loss, subject_to=[mtl.rank(V) <= 1]).form()
    at = {"W": of_rank([2.0])}
    by_columns, by_rows = (convex for _, convex in convex_forms(low, at))
    assert why_not_by_tasks(by_columns) is None and "couples tasks" in why_not_by_tasks(by_rows)


def test_a_user_may_have_no_slope_at_zero():
    """nan there is no slope: then the column and the row space are kept, or the trace norm is tilted."""
    atom = SimpleNamespace(
        name="spectral_penalty", eps=0.0, function=np.sqrt, derivative=lambda x: 0.5 * np.sqrt(x) / x
    )
    (way,) = ways(atom, of_rank([2.0, 1.0]), np.random.default_rng(0))
    (tilted,) = way.functions
    assert (
        tilted.steepness == pytest.approx(1.0) and np.linalg.norm(tilted.tilt) <= 1e-12
    )  # the trace norm itself
