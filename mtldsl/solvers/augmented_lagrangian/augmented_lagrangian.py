"""The method of multipliers with semismooth Newton steps: losses with kinks beside anything that has an exact prox."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from mtldsl.atoms.prox.composition import unsupported_reason
from mtldsl.normal_form.form import LossTerm, NormalForm, single_block
from mtldsl.solvers.augmented_lagrangian.augmented_lagrangian_run import AugmentedLagrangianRun, is_untied
from mtldsl.solvers.augmented_lagrangian.equality_constraints import EqualityConstrainedRun, takes
from mtldsl.solvers.route_table import ModelFacts
from mtldsl.solvers.solver import (
    FLOPS_PER_CALL,
    MATRIX_SPEEDUP,
    Method,
    MethodSolver,
    Point,
    Watch,
    product_flops,
)


@dataclass(frozen=True)
class AugmentedLagrangianSettings:
    """Constants of the flops that are expected.

    conjugate_gradient_steps : of a Newton step on tied tasks, about
    newton_steps             : of a whole run where tasks are not tied, about
    tied_newton_steps        : where they are, at most
    """

    conjugate_gradient_steps: int = 30
    newton_steps: float = 40.0
    tied_newton_steps: float = 150.0


SETTINGS = AugmentedLagrangianSettings()


def _untied_refusal(form: NormalForm) -> str | None:
    return None if is_untied(form) else "tasks are tied, or the loss is not a sum over samples."


def _by_interior_points(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point | None, bool]:
    run = AugmentedLagrangianRun(form, tol, start)
    return run.by_interior_points(max_iter, watch) if run.has_interior else (None, False)


METHODS = (
    Method(
        "equations",
        "interior points beside equations between tasks",
        lambda form: None if isinstance(single_block(form), str) else "there are no equations between tasks.",
        lambda form, tol, most, start, watch: (EqualityConstrainedRun(form, tol).run(most, watch), True),
    ),
    Method(
        "interior_point",
        "interior points, task after task",
        _untied_refusal,
        _by_interior_points,
    ),
    Method(
        "newton",
        "semismooth Newton steps",
        lambda form: None,
        lambda form, tol, most, start, watch: (
            AugmentedLagrangianRun(form, tol, start).run(most, watch),
            True,
        ),
    ),
)


class AugmentedLagrangian(MethodSolver):
    """The proximal method of multipliers, with Newton steps in the weights.

    Scores z = X W + b and a copy of W are split off; an outer step minimises the augmented Lagrangian over the weights (`newton`), in
    which losses with kinks are smooth, and the multipliers step. No step is a step of first order: badly conditioned data cost no more.
    Where tasks are not tied, interior points (`interior`) do the same.

    Source: Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming", Math. Oper. Res. 1
    (1976); Li, Sun and Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM J. Optim.
    28 (2018).
    """

    name = "multipliers"
    summary = "method of multipliers with Newton steps: losses with kinks, functions whose sum has an exact proximal step"
    max_iter: ClassVar[int] = 10_000
    takes_spans = True
    methods = METHODS

    def refuses(self, form: NormalForm) -> str | None:
        facts = single_block(form)
        if isinstance(facts, str):
            return None if takes(form) else facts
        if not _has_kinks(facts.loss):
            missing = (
                "has no exact step in its scores" if facts.loss.atom.max_affine else "is not piecewise linear"
            )
            return f"{facts.loss.typed} {missing}."
        if not form.functions:
            return "there is no regularizer."
        return unsupported_reason([(f.coefficient, f.atom) for f in form.functions]) or None

    def flops(self, form: NormalForm) -> float:
        """Those of a Newton step: every task's Gram matrix and its factor; of tied tasks, conjugate gradients."""
        facts = ModelFacts.of(form)
        if facts.tasks > 1 and facts.penalty not in ("ridge", "entries") and facts.loss == "piecewise_linear":
            return SETTINGS.conjugate_gradient_steps * (FLOPS_PER_CALL + 2.0 * product_flops(facts))
        side = min(facts.samples, facts.features)
        matrices = facts.product * side + facts.tasks * side**3 / 3.0
        return FLOPS_PER_CALL + matrices / MATRIX_SPEEDUP

    def expected_flops(self, form: NormalForm) -> float:
        """Those of its usual Newton steps, where every sample has a loss of its own."""
        facts = ModelFacts.of(form)
        if facts.loss != "piecewise_linear":
            return math.inf
        is_apart = facts.penalty in ("ridge", "entries")
        return (SETTINGS.newton_steps if is_apart else SETTINGS.tied_newton_steps) * self.flops(form)

    def solves_only(self, form: NormalForm) -> str | None:
        return None if any(map(_has_kinks, form.losses)) else "models with piecewise linear losses"


def _has_kinks(loss: LossTerm) -> bool:
    return loss.is_piecewise_linear or loss.has_score_steps


SOLVER = AugmentedLagrangian()
