"""Metrics that a user writes: mistakes are found where they are typed, and what an own oracle says is checked by the certificate."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.where(X @ rng.normal(size=(4, 3)) + 0.5 * rng.normal(size=(60, 3)) > 0.4, 1.0, -1.0)
TASKS = mtl.Tasks.shared(X, Y)


def balanced(self, b, c, positives, negatives):
    return 0.5 * (b / negatives + c / positives)


def solve(**members):
    W = mtl.Weights(TASKS)
    metric = type("Mine", (mtl.Metric,), members)()
    return mtl.minimize(mtl.l21_norm(W) + 5 * mtl.structured_hinge(W, TASKS, metric=metric)).solve()


@for_each(
    "delta, message",
    [
        (lambda self, b, c, p, n: max(b, c), r"Mine\(\): its delta fails with ValueError"),
        (lambda self, b, c, p, n: 1.0, r"its delta is 1 at b=0, c=0 of \d+ positives"),
        (lambda self, b, c, p, n: b / n - 0.5 * c / p, r"its delta is -0\.\d+ at b=0, c=1"),
        (lambda self, b, c, p, n: np.where(b > 3, np.nan, b), r"its delta is nan at b=4, c=0"),
    ],
)
def test_a_delta_that_is_no_loss_is_refused_where_it_is_typed(delta, message):
    W = mtl.Weights(TASKS)
    with pytest.raises(mtl.ModelError, match=message):
        mtl.structured_hinge(W, TASKS, metric=type("Mine", (mtl.Metric,), {"delta": delta})())


@for_each("delta", [lambda self, b, c, p, n: b + c, lambda self, b, c, p, n: np.maximum(b, c)])
def test_whole_numbers_are_numbers(delta):
    assert solve(delta=delta).is_optimal


BELIEVED = r"best_counts or limits found a labelling worth 0 where b=\d+, c=\d+ is worth 1"
WRONG = [
    ({}, "the class Mine has no delta; write delta"),
    ({"delta": balanced, "best_counts": lambda self, of_negatives, of_positives, p, n: (0, 0)}, BELIEVED),
    ({"delta": balanced, "limits": lambda self, p, n: (-1.0, 1.0)}, BELIEVED),
    ({"delta": balanced, "best_counts": lambda self, of_negatives, of_positives, p, n: (1000, 0)},
     "best_counts gave b=1000, c=0, but"),
]  # fmt: skip


@for_each("members, message", WRONG)
def test_an_own_oracle_is_checked_and_not_believed(members, message):
    with pytest.raises(mtl.ModelError, match=message):
        solve(**members)


def test_a_metric_is_no_term():
    parameter = mtl.Parameter(1.0)
    for typed in (lambda m: 2 * m, lambda m: m + mtl.metrics.AUC(), lambda m: parameter * m, lambda m: m / 2):
        with pytest.raises(
            mtl.ModelError, match=r"FScore\(\) is a metric, no term of a model: write structured_hinge"
        ):
            typed(mtl.metrics.FScore())


def test_a_warm_start_leaves_the_solution_it_starts_from_alone():
    W, lam = mtl.Weights(TASKS), mtl.Parameter(2.0)
    problem = mtl.minimize(mtl.l21_norm(W) + lam * mtl.structured_hinge(W, TASKS))
    first = problem.solve()
    lam.value = 3.0
    again = [problem.solve(warm_start=first) for _ in range(3)]
    assert len({s.objective for s in again}) == 1 and len({s.iterations for s in again}) == 1
