r"""The proof: primal value, dual bound, gap and feasibility, recomputed from a point alone.

For   minimize over x   sum_t f_t(A_t x + a_t) + sum_k g_k(B_k x + b_k)   (an indicator g_k for every constraint)
Fenchel duality gives, for every u, v with  sum_t A_t^T u_t + sum_k B_k^T v_k = 0  on every block,

    optimum >= sum_t [<u_t, a_t> - f_t*(u_t)] + sum_k [<v_k, b_k> - g_k*(v_k)].

A solver's multipliers obey neither that equation nor dom f*, dom g* exactly. They are made to, in this order:
1. every u_t, v_k is moved into (the cone spanned by) the domain of its conjugate;
2. they are made stationary (`mtldsl.proof.multipliers`): on every block the residual of the equation is given to a term that takes
   any multiplier (a norm, a ridge, a ball, a simplex, an equality); on intercepts, and where no term takes it, u is changed
   within its domain instead;
3. all multipliers are scaled by one t in [0, 1] so that every norm's dual constraint holds (t = 0 is always feasible).

Nothing here knows how the point was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.compile.structure_term import Structures, kept_value
from mtldsl.proof.multipliers import make_stationary
from mtldsl.proof.stationarity import Stationarity, stationarity_of

__all__ = ["Certificate", "certify", "dual_bound", "relative_gap"]


@dataclass(frozen=True)
class Certificate:
    """What was proven about a point. Gaps may be slightly negative where constraints are violated slightly."""

    objective: float
    dual_bound: float
    violation: float
    scale: float  # the floor of the relative gap's denominator
    note: str = ""
    stationarity: Stationarity | None = None  # of a model that is not convex
    constant: float = 0.0  # belongs to objective and bound, and is no measure of their size

    @property
    def gap(self) -> float:
        return self.objective - self.dual_bound

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.objective - self.constant, self.dual_bound - self.constant, self.scale)

    def within(self, tol: float) -> bool:
        """Whether this proves optimality to a relative gap and a violation of tol."""
        return bool(abs(self.relative_gap) <= tol and self.violation <= tol)

    def is_stationary(self, tol: float) -> bool:
        """Whether the model is not convex and this proves a stationary point to a residual and a violation of tol."""
        return bool(
            self.stationarity is not None and self.stationarity.residual <= tol and self.violation <= tol
        )

    @property
    def distance(self) -> float:
        """What is compared with tol: the relative gap, or the residual where the model is not convex."""
        return abs(self.relative_gap) if self.stationarity is None else self.stationarity.residual


def relative_gap(objective: float, bound: float, scale: float = 0.0) -> float:
    """(objective - bound) / max(|objective|, |bound|, scale): inf where no finite bound is known."""
    if not (np.isfinite(objective) and np.isfinite(bound)):
        return np.inf
    return (objective - bound) / max(abs(objective), abs(bound), scale, np.finfo(float).tiny)


def certify(
    form: NormalForm,
    blocks: Blocks,
    loss_duals=None,
    function_duals=None,
    *,
    structures: Structures | None = None,
    scale: float | None = None,
    bound_optimum: bool = True,
) -> Certificate:
    """The certificate of a primal point and multipliers (None: gradients of the losses at the point).

    structures    : learned matrices that belong to the point (None: the best ones for its weights)
    bound_optimum : False: no bound on the global optimum, which a model that is not convex can do without until the end
    """
    objective = form.value(blocks) if structures is None else kept_value(form, blocks, structures)
    violation, scale = form.violation(blocks), objective_scale(form) if scale is None else scale
    bound, note = -np.inf, ""
    if bound_optimum:
        bound, note = dual_bound(form, blocks, loss_duals, function_duals)
    if form.is_convex:
        return Certificate(objective, bound, violation, scale, note, constant=form.constant)

    def bound_of_kept(kept: NormalForm) -> float:
        # a solver's multipliers may belong to the matrices before these; at a stationary point those of the gradients are exact
        given = dual_bound(kept, blocks, loss_duals, function_duals)[0]
        if loss_duals is None and function_duals is None and not _rough(kept):
            return given  # those of the gradients they are
        return max(given, dual_bound(kept, blocks, None, _balancing(kept, blocks))[0])

    stationarity = stationarity_of(
        form, blocks, structures, bound_of_kept, scale, (loss_duals, function_duals)
    )
    return Certificate(objective, bound, violation, scale, note, stationarity, form.constant)


def objective_scale(form: NormalForm) -> float:
    """1e-8 of the objective at zero: below this, an optimum counts as zero when a gap is made relative."""
    value = form.value(form.zeros())
    return 1e-8 * abs(value) if np.isfinite(value) else 0.0


def dual_bound(form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None) -> tuple[float, str]:
    """(a proven lower bound on the optimum, "") or (-inf, the reason why none could be formed)."""
    if loss_duals is None:
        loss_duals = [loss.dual_at(blocks) for loss in form.losses]
    if function_duals is None:
        function_duals = [_guess(f, blocks) for f in form.functions]
    u = [loss.dual_project(d) for loss, d in zip(form.losses, loss_duals, strict=True)]
    v = [
        f.atom.dual_project(np.asarray(d, float)) for f, d in zip(form.functions, function_duals, strict=True)
    ]
    stuck = make_stationary(form, u, v)
    if stuck is not None:
        infimum = form.constant - sum(loss.conjugate(np.zeros(loss.tasks.n_samples)) for loss in form.losses)
        if abs(relative_gap(form.value(blocks), infimum, objective_scale(form))) < 0.5:
            return (
                infimum,
                "",
            )  # u = v = 0 is stationary always, and says something where the losses reach their infimum
        return -np.inf, (
            f"no term bounds {stuck} in every direction, and the losses' multipliers alone could not be made stationary; "
            f"a term such as + 1e-6 * ridge({stuck}) makes a bound possible"
        )
    return _best_scaling(form, u, v)


def _balancing(form: NormalForm, blocks: Blocks) -> list[np.ndarray]:
    """Gradients of smooth functions, and for the one other function of a block what balances them and the losses' gradients."""
    g = form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(blocks)), g)
    duals = [_guess(f, blocks) for f in form.functions]
    for f, dual in zip(form.functions, duals, strict=True):
        f.map.add_adjoint(dual, g)
    rough = _rough(form)
    for k in rough:
        name = form.functions[k].map.identity_of
        if name is not None and not any(form.functions[j].map.identity_of == name for j in rough if j != k):
            duals[k] = -g[name]
    return duals


def _rough(form: NormalForm) -> list[int]:
    """The places of the functions that have no gradient."""
    return [k for k, f in enumerate(form.functions) if f.is_constraint or not f.atom.is_smooth]


def _guess(f: FunctionTerm, blocks: Blocks) -> np.ndarray:
    """A function's multiplier where the solver has none: its gradient, 0 where it has none."""
    if f.is_constraint or not f.atom.is_smooth:
        return np.zeros(f.map.shape)
    return f.coefficient * f.atom.gradient(f.map.forward(blocks))


# ----------------------------------------------------------------------------------------------- scaling


def _best_scaling(form: NormalForm, u, v) -> tuple[float, str]:
    """The best dual value over t (u, v), t in [0, largest feasible t]; concave in t."""
    gauge = max((f.dual_gauge(dual) for f, dual in zip(form.functions, v, strict=True)), default=0.0)
    if not np.isfinite(gauge):
        return (
            -np.inf,
            "a multiplier lies outside the domain of its term's conjugate, and no scaling brings it inside",
        )
    largest = 1.0 if gauge <= 1.0 else (1.0 - 4 * np.finfo(float).eps) / gauge
    constants = [loss.offset_predictions() for loss in form.losses]

    def value(t: float) -> float:
        total = form.constant + sum(
            _loss_part(*part, t) for part in zip(form.losses, u, constants, strict=True)
        )
        return total + sum(_function_part(f, dual, t) for f, dual in zip(form.functions, v, strict=True))

    best = max(value(largest), value(0.0) if largest < 1.0 else -np.inf)
    # multipliers of a stationary point need not be near the best ones: those belong to the convex envelope
    if largest < 0.999 or not np.isfinite(best) or not form.is_convex:
        from scipy.optimize import minimize_scalar  # slow to import, and rarely needed near an optimum

        search = minimize_scalar(
            lambda t: -max(value(t), -1e300),
            bounds=(0.0, largest),
            method="bounded",
            options={"maxiter": 16},
        )
        best = max(best, -float(search.fun)) if search.fun < 1e299 else best
    return best, "" if np.isfinite(best) else "the conjugates are infinite at these multipliers"


def _loss_part(loss: LossTerm, dual, constant, t: float) -> float:
    # rounding of t * dual may step out of the domain by one unit in the last place
    scaled = loss.dual_project(t * dual)
    return (0.0 if constant is None else float(np.asarray(scaled) @ constant)) - loss.conjugate(scaled)


def _function_part(f: FunctionTerm, dual, t: float) -> float:
    inner = 0.0 if f.map.offset is None else float(np.vdot(t * dual, f.map.offset))
    return inner - f.conjugate(t * dual)
