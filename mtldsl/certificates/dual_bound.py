"""Dual bound that multipliers prove, the relative gap, and the size of rounding in both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtldsl.certificates.multipliers import (
    SETTINGS,
    losses_work,
    make_stationary,
    region,
    stationarity,
)
from mtldsl.errors import ProofError
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm

# --------------------------------------------------------------------------------------------------------------
# The relative duality gap, and the size below which an optimum counts as zero when a gap is made relative.


#: the smallest number by which anything can be divided
TINY = float(np.finfo(float).tiny)

_EPS = float(np.finfo(float).eps)


def relative_gap(objective: float, bound: float, scale: float = 0.0) -> float:
    """(objective - bound) / max(|objective|, |bound|, scale): inf where no finite bound is known."""
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    return (objective - bound) / over(max(abs(objective), abs(bound)), scale)


def over(size: float, scale: float) -> float:
    """Return what a gap of terms of this size is divided by."""
    return max(size, scale, TINY)


def objective_scale(form: NormalForm) -> float:
    """1e-8 of the objective at weights of zero: below this, an optimum counts as zero when a gap is made relative.

    Where there are intercepts, they are zero or the medians of the labels, whichever is lower: labels of 1e12 + signal are not a
    reason to call an objective of the signal's size zero.
    """
    zeros, values = form.zeros(), [abs(form.value_at_zero)]
    for loss in form.losses:
        if loss.intercepts and loss.atom.labels == "real":
            for name in loss.intercepts:
                zeros[name][0] = _medians(loss)
            with np.errstate(over="ignore", invalid="ignore"):
                values.append(abs(form.value(zeros)))
    finite = [value for value in values if np.isfinite(value)]
    return SETTINGS.zero_share * min(finite) if finite else 0.0


def _medians(loss: LossTerm) -> np.ndarray:
    """(m,) of every task's labels. Their means, where rows are elsewhere: these are known."""
    tasks: Any = loss.tasks
    if not tasks.in_memory:
        return tasks.label_sums()[0] / tasks.counts
    if tasks.is_shared and tasks.mask is None:
        return np.median(tasks.targets.reshape(tasks.n_tasks, -1), axis=1)
    return np.array([np.median(y) for y in tasks.per_task(tasks.targets)])


# --------------------------------------------------------------------------------------------------------------
# A lower bound on the optimum, and the multipliers that prove it.

#: units in the last place that a term may be off by, beside the sum of the absolute values in it (a law over all atoms measures it)
ROUNDING_UNITS = 64

#: rounding below this part of the objective is not taken off the bound
NEGLIGIBLE_ROUNDING_SHARE = 1e-12


#: so much of the largest scaling stays inside the domains after rounding
_INSIDE_SHARE = 1.0 - 4.0 * _EPS


@dataclass(frozen=True, eq=False)
class Bound:
    """A proven lower bound, and its proof.

    value           : -inf where none could be formed; `note` says why
    loss_duals      : u_t, function_duals : v_k, as they stand in the inequality: stationary, scaled, inside their domains
    paid            : by how much the bound was lowered for what is left of the stationarity equation
    region          : {block: B} where no term bounds a block: there the bound is proven for all weights of absolute values up to B
    intercepts      : those of these blocks that are intercepts, which nothing ever bounds
    """

    value: float
    note: str = ""
    loss_duals: tuple = ()
    function_duals: tuple = ()
    paid: float = 0.0
    region: dict[str, np.ndarray] = field(default_factory=dict)
    intercepts: tuple[str, ...] = ()

    @property
    def reach(self) -> str:
        """For which weights the bound is proven, in words: "" where for all (and intercepts up to 100 times the solution's)."""
        names = " and ".join(name for name in self.region if name not in self.intercepts)
        if not names:
            return ""
        return f"no term bounds {names}: proven for all {names} up to {SETTINGS.reach_factor:,.0f} times the size of the solution's"


def dual_bound(form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None) -> tuple[float, str]:
    """(a proven lower bound on the optimum, "") or (-inf, the reason why none could be formed)."""
    bound = prove(form, blocks, loss_duals, function_duals)
    return bound.value, bound.note


def prove(form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None) -> Bound:
    """The bound that multipliers of a point prove (None: gradients at the point)."""
    if loss_duals is None:
        loss_duals = [loss.dual_at(blocks) for loss in form.losses]
    if function_duals is None:
        function_duals = [guess(f, blocks) for f in form.functions]
    u = [loss.dual_project(d) for loss, d in zip(form.losses, loss_duals, strict=True)]
    v = [
        f.atom.dual_project(np.asarray(d, float)) for f, d in zip(form.functions, function_duals, strict=True)
    ]
    stuck, left = make_stationary(form, u, v)
    if stuck is not None:
        return _infimum_of_losses(form, blocks, stuck)
    bound = _best_scaling(form, u, v)
    return _paid(bound, form, blocks, u, left) if left and np.isfinite(bound.value) else bound


def _infimum_of_losses(form: NormalForm, blocks: Blocks, stuck: str) -> Bound:
    """u = v = 0 is stationary always, and says something where the losses are nearer to their infimum than to weights of zero."""
    infimum = form.constant - sum(loss.conjugate(loss.no_multipliers()) for loss in form.losses)
    if abs(relative_gap(form.value(blocks), infimum, abs(form.value_at_zero))) < 0.5:
        return _of_no_multipliers(form, infimum)
    return Bound(
        -np.inf,
        f"no term bounds {stuck} in every direction, and the losses' multipliers alone could not be made stationary; "
        f"a term such as + 1e-6 * ridge({stuck}) makes a bound possible",
    )


def _paid(bound: Bound, form: NormalForm, blocks: Blocks, u, free: dict) -> Bound:
    """The bound, lowered by what the residual on free blocks may do within a stated region; free: as `make_stationary` says."""
    work = losses_work(form, blocks, u)
    reach = {name: region(name, blocks, size, work[name]) for name, (_, size) in free.items()}
    paid = sum(float(np.sum(np.abs(residual) * reach[name])) for name, (residual, _) in free.items())
    intercepts = tuple(block.name for block in form.blocks if block.intercept_of is not None)
    return replace(bound, value=bound.value - paid, paid=paid, region=reach, intercepts=intercepts)


def gradients_of_losses(form: NormalForm, blocks: Blocks) -> Blocks:
    """The sum of A^T times the losses' gradients, on every block."""
    total = form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(blocks)), total)
    return total


def guess(f: FunctionTerm, blocks: Blocks) -> np.ndarray:
    """A function's multiplier where the solver has none: its gradient, 0 where it has none."""
    if _is_rough(f):
        return np.zeros(f.map.shape)
    return f.coefficient * f.atom.gradient(f.map.forward(blocks))


def rough_functions(form: NormalForm) -> list[int]:
    """The places of the functions that have no gradient."""
    return [k for k, f in enumerate(form.functions) if _is_rough(f)]


def _is_rough(f: FunctionTerm) -> bool:
    return f.is_constraint or not f.atom.is_smooth


# ----------------------------------------------------------------------------------------------- scaling


def _best_scaling(form: NormalForm, u, v) -> Bound:
    """The best dual value over t (u, v), t in [0, largest feasible t]; concave in t."""
    gauge = max((f.dual_gauge(dual) for f, dual in zip(form.functions, v, strict=True)), default=0.0)
    if not math.isfinite(gauge):
        return Bound(
            -np.inf,
            "a multiplier lies outside the domain of its term's conjugate, and no scaling brings it inside",
        )
    largest = 1.0 if gauge <= 1.0 else _INSIDE_SHARE / gauge
    constants = [loss.offset_predictions() for loss in form.losses]

    def scaled(t: float) -> tuple:
        # rounding of t * dual may step out of the domain by one unit in the last place
        return tuple(
            [
                loss.dual_project(dual if t == 1.0 else t * dual)
                for loss, dual in zip(form.losses, u, strict=True)
            ]
        )

    def value(t: float, losses: tuple | None = None) -> float:
        total = form.constant
        for loss, dual, constant in zip(
            form.losses, scaled(t) if losses is None else losses, constants, strict=True
        ):
            total += (0.0 if constant is None else loss.along(dual, constant)) - loss.conjugate(dual)
        for f, dual in zip(form.functions, v, strict=True):
            total += f.dual_value(t * dual)
        return total

    losses = scaled(largest)
    at, best = largest, value(largest, losses)
    if largest < 1.0 and (other := _at_zero(form)) > best:
        at, best = 0.0, other
    # multipliers of a stationary point need not be near the best ones: those belong to the convex envelope
    if largest < 0.999 or not math.isfinite(best) or not form.is_convex:
        at, best = _highest(value, largest, at, best)
    if not math.isfinite(best):
        return Bound(best, "the conjugates are infinite at these multipliers")
    return Bound(best, "", losses if at == largest else scaled(at), tuple([at * dual for dual in v]))


def _highest(value: Callable[[float], float], largest: float, at: float, best: float) -> tuple[float, float]:
    """(where, the highest value seen) of a concave function on [0, largest]; `at`, with the value `best`, is an end of it.

    Where it still rises at its end, that is all.
    """
    near = (1.0 - SETTINGS.back_step_share) * largest
    if at == largest and np.isfinite(best) and value(near) <= best:
        return at, best
    at, best = max((at, best), (0.0, value(0.0)), key=lambda seen: seen[1])
    from scipy.optimize import minimize_scalar  # slow to import, and rarely needed near an optimum

    # over shares of the interval, whose length may be below the search's own tolerance
    def falling(share: float) -> float:
        return -max(value(share * largest), -1e300)

    search: Any = minimize_scalar(falling, bounds=(0.0, 1.0), method="bounded", options={"maxiter": 16})
    if search.fun < 1e299 and -float(search.fun) > best:
        at, best = float(search.x) * largest, -float(search.fun)
    return at, best


def infimum(form: NormalForm) -> Bound:
    """Return what multipliers of zero prove, for no product with the data: the sum of the terms' infima, less what rounding may hide of it."""
    value = _at_zero(form)
    if not math.isfinite(value):
        return Bound(-np.inf, "the terms have no infimum")
    value -= ROUNDING_UNITS * _EPS * (abs(value) + abs(form.constant))
    return _of_no_multipliers(form, value)


def _of_no_multipliers(form: NormalForm, value: float) -> Bound:
    zeros = tuple(loss.no_multipliers() for loss in form.losses)
    return Bound(value, "", zeros, tuple(np.zeros(f.map.shape) for f in form.functions))


def _at_zero(form: NormalForm) -> float:
    """Return what multipliers of zero prove: the sum of the terms' infima."""
    parts = (*form.losses, *form.functions)
    return form.constant - sum(part.conjugate_at_zero for part in parts)


# --------------------------------------------------------------------------------------------------------------
# How far float64 may misplace an objective and a bound, and who is to blame where they contradict each other by more.


def rounding_of(form: NormalForm, blocks: Blocks, proof: Bound, objective: float) -> float:
    """64 eps times the sum of the absolute values that objective and bound are sums of, for the price of neither.

    These are both themselves (sums of parts of one sign, but for what follows); <|u|, |y|> of a loss and what its predictions are
    sums of (`LossTerm.magnitude`); once, not 64 times, the same of slopes at kinks (`LossTerm.slopes_at_kinks`); <|v|, |B x|> of a
    function and, where it is an uneven quadratic, what its steepest direction makes of B x and its flattest of v.
    """
    total = abs(form.constant) + abs(objective) + abs(proof.value)
    for loss, u in zip(form.losses, proof.loss_duals, strict=True):
        total += loss.magnitude(u, blocks)
        steepest = loss.slopes_at_kinks(blocks)
        if steepest is not None:
            total += loss.magnitude(steepest, blocks) / ROUNDING_UNITS
    for f, v in zip(form.functions, proof.function_duals, strict=True):
        total += _of_function(f, v, f.map.forward(blocks))
    return ROUNDING_UNITS * _EPS * total if math.isfinite(total) else math.inf


def _of_function(f: FunctionTerm, v, image) -> float:
    total = float(np.abs(v).ravel() @ np.abs(image).ravel())
    total += f.coefficient * f.atom.cancelling(image)
    modulus = f.coefficient * f.atom.strong_convexity
    return total + (float(np.vdot(v, v)) / (2.0 * modulus) if modulus > 0 else 0.0)


def check_weak_duality(form: NormalForm, blocks: Blocks, proof: Bound, objective: float) -> None:
    """ProofError where a bound lies above the objective of weights within all constraints, by more than rounding.

    F(x) - D is a sum of terms that cannot be negative: f(z) + f*(u) - <u, z>, and <r, x>. The one that is stands in the message.
    """
    rounding = rounding_of(form, blocks, proof, objective)
    if not proof.value > objective + rounding:
        return
    # what objectives there lack, of weights that rounding has moved out of a domain
    for f, v in zip(form.functions, proof.function_duals, strict=True):
        outside = f.atom.outside(f.map.forward(blocks))
        rounding += 0.0 if outside is None else abs(float(np.vdot(v, outside)))
    if not proof.value > objective + rounding:
        return
    surplus = {}
    for loss, u in zip(form.losses, proof.loss_duals, strict=True):
        z = loss.predictions(blocks)
        surplus[loss.typed] = loss.value(z) + loss.conjugate(u) - loss.along(u, z)
    for f, v in zip(form.functions, proof.function_duals, strict=True):
        surplus[f.typed] = f.value(blocks) + f.conjugate(v) - float(np.vdot(v, f.map.forward(blocks)))
    residual = stationarity(form, proof.loss_duals, proof.function_duals)
    for name, r in residual.items():
        surplus[f"the stationarity equation of {name}"] = float(np.vdot(r, blocks[name]))
    worst = min(surplus, key=lambda name: surplus[name])
    raise ProofError(
        f"internal error of mtldsl: the bound {proof.value:.17g} lies {proof.value - objective:.1e} above the attained objective "
        f"{objective:.17g}, more than rounding ({rounding:.1e}); {worst} is short by {-surplus[worst]:.1e}: a conjugate or a proximal step "
        "of it is wrong. If it is a word of your own, mtldsl.testing.check_atom finds which; else please report the model"
    )
