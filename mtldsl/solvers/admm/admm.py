"""The alternating direction method of multipliers, for every convex sum of the language."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar

from mtldsl.atoms.prox.composition import unsupported_reason
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.admm.iteration import ADMMIteration, flops_of_iteration
from mtldsl.solvers.cutting_planes.frank_wolfe import FrankWolfe
from mtldsl.solvers.cutting_planes.lifted_admm import LiftedRun
from mtldsl.solvers.cutting_planes.oracle import (
    has_one_maximum_a_task,
    has_oracle,
)
from mtldsl.solvers.cutting_planes.two_block_admm import TwoBlockADMM
from mtldsl.solvers.nonconvex.spectral_admm import SpectralADMM
from mtldsl.solvers.route_table import ModelFacts
from mtldsl.solvers.solver import MATRIX_SPEEDUP, Method, MethodSolver, Point, Watch


@dataclass(frozen=True)
class ADMMSettings:
    """Iterations that most runs take.

    usual_iterations : however badly columns are conditioned
    kink_iterations  : where the loss has kinks and the penalty is none of entries or rows: 20 to 550
    """

    usual_iterations: int = 100
    kink_iterations: int = 400


SETTINGS = ADMMSettings()


INNER = ("planes", "frank_wolfe")


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


def _has_planes(form: NormalForm) -> bool:
    return any(map(has_one_maximum_a_task, form.losses))


def _planes_refusal(form: NormalForm) -> str | None:
    return why_not_two_blocks(form) if _has_planes(form) else "no loss is a maximum of planes per task."


def _run_of(kind: type, *options: str):
    """Run of a class that takes some of ADMM's options."""
    return lambda form, tol, most, start, watch, **given: (
        kind(form, tol, start, *(given[name] for name in options)).run(most, watch),
        True,
    )


METHODS = (
    Method(
        "spectral",
        "one function of the spectrum that is not convex",
        lambda form: "the model is convex." if form.is_convex else None,
        _run_of(SpectralADMM),
    ),
    Method(
        "planes",
        "two blocks, a model of planes per task and the weights",
        _planes_refusal,
        _run_of(TwoBlockADMM, "relaxation", "pull", "anderson_memory"),
    ),
    Method(
        "lifted",
        "planes per task as one more term with a prox",
        lambda form: None if _has_planes(form) else "no loss is a maximum of planes per task.",
        _run_of(LiftedRun, "relaxation", "anderson_memory"),
    ),
    Method(
        "splitting",
        "one copy per term, factorized once",
        lambda form: None,
        _run_of(ADMMIteration, "relaxation", "anderson_memory"),
    ),
)


class ADMM(MethodSolver):
    """Over-relaxed ADMM with residual balancing and Anderson acceleration.

    With the copies w = K x + k of `SplitForm`, penalties M = diag, and u = multipliers / M, one iteration on s = w + u is

        w = prox_h(s),   x = argmin q(x) + 1/2 ||K x + k - (2 w - s)||_M^2,   s <- s + relaxation (K x + k - w):

    Douglas-Rachford splitting, a fixed-point iteration in s alone, which is what Anderson acceleration needs.

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
    methods = METHODS

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
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        return True

    def flops(self, form: NormalForm) -> float:
        return flops_of_iteration(form)

    def expected_flops(self, form: NormalForm) -> float:
        """Those of its systems' factors, and of its usual iterations; no limit beside kinks of losses and of penalties both."""
        facts = ModelFacts.of(form)
        has_kinks = facts.loss == "piecewise_linear"
        if facts.loss == "structured" or (
            has_kinks and facts.penalty in ("entries", "rows", "groups", "columns")
        ):
            return math.inf
        side = min(facts.samples, facts.features)
        systems = 1 if facts.shares_inputs else facts.tasks
        factors = facts.product * side * systems / facts.tasks + systems * side**3 / 3.0
        return factors / MATRIX_SPEEDUP + (
            SETTINGS.kink_iterations if has_kinks else SETTINGS.usual_iterations
        ) * flops_of_iteration(form)

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
        for name, value, kind, is_meant, write_instead in (
            ("relaxation", relaxation, Real, lambda x: 0.0 < x < 2.0, "a number between 0 and 2, such as 1.6"),
            ("anderson_memory", anderson_memory, Integral, lambda x: x >= 0, "a whole number >= 0, 0 for no acceleration"),
            ("pull", pull, Real, lambda x: 0.0 < x <= 1.0, "a number in (0, 1], such as 1.0"),
            ("inner_steps", inner_steps, Integral, lambda x: x >= 1, "a positive whole number, such as 200"),
        ):  # fmt: skip
            if not (isinstance(value, kind) and is_meant(value)):
                raise SolverError(f"{name}={value!r}: write {write_instead}")
        if inner not in INNER:
            raise SolverError(f"inner={inner!r}: write one of {', '.join(map(repr, INNER))}")
        if inner == "frank_wolfe" and form.is_convex:
            obstacle = why_not_two_blocks(form)
            if obstacle:
                raise SolverError(
                    f"inner='frank_wolfe' is the paper's algorithm for one structured loss: {obstacle}"
                )
            return FrankWolfe(form, tol, start, inner_steps).run(max_iter, watch)
        return super().solve(
            form, tol=tol, max_iter=max_iter, start=start, watch=watch, relaxation=relaxation,
            anderson_memory=anderson_memory, pull=pull,
        )  # fmt: skip


SOLVER = ADMM()
