"""The alternating direction method of multipliers, for every convex sum of the language."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import ClassVar

import numpy as np

from mtldsl.atoms.prox.composition import unsupported_reason
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.admm.iteration import Iteration
from mtldsl.solvers.augmented_lagrangian.prox_parts import is_piecewise_linear
from mtldsl.solvers.cutting_planes.frank_wolfe import FrankWolfe
from mtldsl.solvers.cutting_planes.lifted_admm import LiftedRun
from mtldsl.solvers.cutting_planes.oracle import (
    FEW_FEATURES,
    FIRST_ROUNDS,
    has_one_maximum_a_task,
    has_oracle,
)
from mtldsl.solvers.cutting_planes.two_block_admm import TwoBlocks
from mtldsl.solvers.linear_systems.regularized_system import has_large_systems, outgrows_inputs
from mtldsl.solvers.nonconvex.spectral_admm import Nonconvex
from mtldsl.solvers.proximal_gradient import prox_newton as proximal_newton
from mtldsl.solvers.proximal_gradient import rotated_squares
from mtldsl.solvers.proximal_gradient.composite import partition
from mtldsl.solvers.solver import Point, Solver, Watch

__all__ = ["ADMM", "SOLVER"]

INNER = ("planes", "frank_wolfe")

#: Planes of a loss with exact steps in its scores, which wait: where planes are the faster ones, the gap falls to a fifth by round 32 and
#: whenever rounds double after that (measured: .02 to .09 at 3 lambda_max, where planes take half to twice the others' time; .1 to .4 at
#: 30 and .5 to .8 at 300, where they take 1 to more than 10 times).
_PLANES_ROUNDS, _PLANES_PACE = 24, 0.2
#: Iterations of a first turn where Newton steps wait that take the model too; and rounds where steps in the scores of more than a few features do.
#: Measured on 900 to 4,000 rows of 30 to 100 features: what takes fewer takes 1 / 3 to 1.5 times as long by planes, what takes hundreds 2 to 20 times.
_SHIFT, _ROUNDS = 600, 60
#: rows over features up to which that holds (measured at 8 and 15): a step in the scores of many rows costs as much as dozens of rounds, and
#: planes that begin slowly take an eighth of its time (28 and 53, F-score at 100 lambda_max)
_FEW_ROWS = 20


class ADMM(Solver):
    """Over-relaxed ADMM with residual balancing and Anderson acceleration.

    With the copies w = K x + k of `Split`, penalties M = diag, and u = multipliers / M, one iteration on s = w + u is

        w = prox_h(s),   x = argmin q(x) + 1/2 ||K x + k - (2 w - s)||_M^2,   s <- s + relaxation (K x + k - w):

    Douglas-Rachford splitting, a fixed-point iteration in s alone, which is what Anderson acceleration needs. Where the pace
    foretells a long run (piecewise linear models, mostly), the method of multipliers with Newton steps takes over.

    A structured hinge is a maximum of planes that an oracle finds one by one, and its copies are the tasks' weights (`planes/`): beside
    functions with a common prox in ADMM between these two blocks, beside anything else as one more term with a prox.

    relaxation      : between 0 and 2; 1 is plain ADMM
    anderson_memory : steps that an extrapolation draws on; 0 switches it off
    pull            : with planes, where between the best point (0) and the model's (1) the oracle is asked
    inner           : "planes", or "frank_wolfe": for teaching, the coordinate ascent of the paper on multi-task structured losses
    inner_steps     : with "frank_wolfe", the most steps of one W-step (the paper takes 5000)
    Raises SolverError for other values.

    Source: Boyd, Parikh, Chu, Peleato and Eckstein, "Distributed optimization and statistical learning via the alternating
    direction method of multipliers", Foundations and Trends in Machine Learning 3 (2011).
    """

    name = "admm"
    summary = "ADMM: any sum of losses, regularizers and constraints with cheap proximal steps"
    options: ClassVar[Mapping[str, object]] = {
        "relaxation": 1.6,
        "anderson_memory": 10,
        "pull": 1.0,
        "inner": "planes",
        "inner_steps": 200,
    }
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"inner": INNER}
    takes_nonconvex = True
    takes_spans = True

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if has_oracle(loss):
                continue
            if not loss.atom.convex:
                return f"{loss.typed} is not convex."
            if loss.atom.quadratic is None and not loss.atom.has_prox:
                return f"{loss.typed} is not quadratic and has no proximal step."
        for f in form.functions:
            if not f.atom.exact_prox:
                kind = "has" if f.atom.convex else "is not convex and has"
                return f"{f.typed} {kind} no exact proximal step."
        planes = [loss for loss in form.losses if has_one_maximum_a_task(loss)]
        if planes and not form.is_convex:
            culprit = next(f for f in form.functions if not f.atom.convex)
            return f"{planes[0].typed} is a maximum of planes, and {culprit.typed} beside it is not convex."
        return None

    def yields(self, form: NormalForm) -> str | None:
        """Return where a solver without linear systems, if one accepts, should go first."""
        reweighted = [f for f in form.functions if f.atom.is_reweighted]
        if reweighted:
            return f"{reweighted[0].typed} is smooth, and reweighting it descends in every step"
        slow = [loss for loss in form.losses if not loss.atom.exact_prox]
        if slow:
            return f"a proximal step of {slow[0].typed} takes Newton's method on every sample"
        if rotated_squares.unsupported_reason(form) is None:
            return "with squares on one X and functions of singular values, splitting in the coordinates of X's own is cheaper"
        unknowns = sum(block.shape[0] for block in form.blocks)
        by_planes = any(map(has_one_maximum_a_task, form.losses)) and why_not_two_blocks(form) is None
        if has_large_systems(form) and not by_planes:  # which have no systems but those of planes
            return (
                f"its linear systems, for {unknowns} unknowns a task, cost more than products with the data"
            )
        if outgrows_inputs(form) and not isinstance(partition(form), str):
            return (
                f"its linear systems, for {unknowns} unknowns, need more memory than the sparse inputs leave"
            )
        ridges = [
            f
            for f in form.functions
            if f.atom.entry_quadratic is not None and np.min(f.atom.entry_quadratic) > 0.0
        ]
        if ridges and form.constraints and _has_one_hessian(form):
            return f"{ridges[0].typed} bends squares that have one Hessian for all tasks: gradient steps are cheaper, and their pace depends on less"
        curved = [loss for loss in form.losses if loss.atom.smooth and loss.atom.quadratic is None]
        smooth = len(curved) > 0 and all(loss.atom.smooth for loss in form.losses)
        if smooth and not isinstance(partition(form), str):
            return f"{curved[0].typed} is smooth and not quadratic: gradient and Newton steps need no proximal step of it"
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        return True

    def patience(self, form: NormalForm) -> int:
        if not _steps_wait(form):
            return super().patience(form)
        return _PLANES_ROUNDS if _planes_are_many(form) else FIRST_ROUNDS

    def pace(self, form: NormalForm) -> float:
        return _PLANES_PACE if _steps_wait(form) and _planes_are_many(form) else super().pace(form)

    def shift(self, form: NormalForm) -> float:
        """Measured on piecewise linear losses beside norms that tie tasks: where it is the faster one, it is done after some hundreds of
        iterations; where it is not, after thousands, and Newton steps from where it stands are few."""
        if _steps_wait(form) and form.losses[0].tasks.n_features > FEW_FEATURES:
            return _ROUNDS
        if (
            len(form.losses) != 1
            or not is_piecewise_linear(form.losses[0])
            or isinstance(single_block(form), str)
        ):
            return super().shift(form)
        others = unsupported_reason([(f.coefficient, f.atom) for f in form.functions])
        return super().shift(form) if others or not form.functions else _SHIFT

    def solve(
        self,
        form: NormalForm,
        *,
        tol: float,
        max_iter: int,
        start: Point | None,
        watch: Watch,
        relaxation: float = 1.6,
        anderson_memory: int = 10,
        pull: float = 1.0,
        inner: str = "planes",
        inner_steps: int = 200,
    ) -> Point:
        if not 0.0 < relaxation < 2.0:
            raise SolverError(f"relaxation={relaxation!r}: write a number between 0 and 2, such as 1.6")
        if not (isinstance(anderson_memory, Integral) and anderson_memory >= 0):
            raise SolverError(
                f"anderson_memory={anderson_memory!r}: write a whole number >= 0, 0 for no acceleration"
            )
        if not 0.0 < pull <= 1.0:
            raise SolverError(f"pull={pull!r}: write a number in (0, 1], such as 1.0")
        if not (isinstance(inner_steps, Integral) and inner_steps >= 1):
            raise SolverError(f"inner_steps={inner_steps!r}: write a positive whole number, such as 200")
        if inner not in INNER:
            raise SolverError(f"inner={inner!r}: write one of {', '.join(map(repr, INNER))}")
        if not form.is_convex:
            return Nonconvex(form, tol, start).run(max_iter, watch)
        obstacle = why_not_two_blocks(form)
        if inner == "frank_wolfe":
            if obstacle:
                raise SolverError(
                    f"inner='frank_wolfe' is the paper's algorithm for one structured loss: {obstacle}"
                )
            return FrankWolfe(form, tol, start, inner_steps).run(max_iter, watch)
        if any(map(has_one_maximum_a_task, form.losses)):
            if obstacle:
                return LiftedRun(form, tol, start, relaxation, anderson_memory).run(max_iter, watch)
            return TwoBlocks(form, tol, start, relaxation, pull, anderson_memory).run(max_iter, watch)
        return Iteration(form, tol, start, relaxation, anderson_memory).run(max_iter, watch)


def _planes_are_many(form: NormalForm) -> bool:
    tasks = form.losses[0].tasks
    return tasks.n_features > FEW_FEATURES and max(tasks.counts) <= _FEW_ROWS * tasks.n_features


def _steps_wait(form: NormalForm) -> bool:
    return len(form.losses) == 1 and form.losses[0].has_score_steps and why_not_two_blocks(form) is None


def _has_one_hessian(form: NormalForm) -> bool:
    """Tell whether the model is squares on one X beside functions with a common prox."""
    if not all(loss.atom.quadratic is not None for loss in form.losses):
        return False
    parts = partition(form)
    return (
        not isinstance(parts, str)
        and proximal_newton.unsupported_reason(form, parts.moved) is None
        and proximal_newton.systems(form) == 1
    )


def why_not_two_blocks(form: NormalForm) -> str | None:
    """None for one loss with an oracle, of one weight matrix, under functions of that matrix whose sum has an exact prox."""
    for loss in form.losses:
        if not has_oracle(loss):
            return f"{loss.typed} is neither structured_hinge nor hinge_loss."
    facts = single_block(form)
    return (
        facts
        if isinstance(facts, str)
        else unsupported_reason([(f.coefficient, f.atom) for f in form.functions]) or None
    )


SOLVER = ADMM()
