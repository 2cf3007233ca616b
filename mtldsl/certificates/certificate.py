r"""The proof: primal value, dual bound, gap and feasibility, recomputed from a point alone.

For   minimize over x   sum_t f_t(A_t x + a_t) + sum_k g_k(B_k x + b_k)   (an indicator g_k for every constraint)
Fenchel duality gives, for every u, v with  sum_t A_t^T u_t + sum_k B_k^T v_k = 0  on every block,

    optimum >= sum_t [<u_t, a_t> - f_t*(u_t)] + sum_k [<v_k, b_k> - g_k*(v_k)].

A solver's multipliers obey neither that equation nor dom f*, dom g* exactly. They are made to, in this order:
1. every u_t, v_k is moved into (the cone spanned by) the domain of its conjugate;
2. they are made stationary (`mtldsl.certificates.multipliers`): on every block the residual of the equation is given to a term that takes
   any multiplier (a norm, a ridge, a ball, a simplex, an equality); on intercepts, and where no term takes it, u is changed
   within its domain instead;
3. all multipliers are scaled by one t in [0, 1] so that every norm's dual constraint holds (t = 0 is always feasible).

Nothing here knows how the point was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mtldsl.certificates.dual_bound import (
    NEGLIGIBLE_ROUNDING_SHARE,
    Bound,
    check_weak_duality,
    dual_bound,
    gradients_of_losses,
    guess,
    objective_scale,
    over,
    prove,
    relative_gap,
    rough_functions,
    rounding_of,
)
from mtldsl.certificates.stationarity import Stationarity, stationarity_of
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.terms.structure_term import Structures, kept_value
from mtldsl.utils.caching import cached_property


@dataclass(frozen=True)
class Certificate:
    """Proof about a point. Gaps may be slightly negative where constraints are violated slightly.

    scale    : the floor of the relative gap's denominator
    rounding : by how much float64 may have misplaced objective and bound (`mtldsl.certificates.dual_bound`)
    proof    : the multipliers behind the bound, and for which weights it holds (None: no bound was formed)
    """

    objective: float
    dual_bound: float
    violation: float
    scale: float
    note: str = ""
    stationarity: Stationarity | None = None  # of a model that is not convex
    constant: float = 0.0  # belongs to objective and bound, and is not a measure of their size
    rounding: float = 0.0
    proof: Bound | None = None

    @property
    def gap(self) -> float:
        return self.objective - self.dual_bound

    @cached_property
    def relative_gap(self) -> float:
        return relative_gap(self.objective - self.constant, self.dual_bound - self.constant, self.scale)

    @property
    def relative_rounding(self) -> float:
        """`rounding` in the units of the relative gap."""
        sizes = abs(self.objective - self.constant), abs(self.dual_bound - self.constant)
        return self.rounding / over(max(sizes), self.scale)

    @property
    def reach(self) -> str:
        """For which weights the bound is proven, in words: "" where for all."""
        return "" if self.proof is None else self.proof.reach

    def remark(self, tol: float) -> str:
        """Return what a reader of the numbers must know: why there is no bound, or that float64 cannot tell, or for which weights it is proven."""
        if self.note:
            return self.note
        if self.relative_rounding > tol and math.isfinite(self.relative_gap):
            return (
                f"float64 may misplace objective and bound by {self.relative_rounding:.0e} of the objective, more than tol={tol:g}: "
                "standardise the features, or take their mean off the labels"
            )
        return self.reach

    def within(self, tol: float) -> bool:
        """Tell whether this proves optimality to a relative gap and a violation of tol, and float64 can tell."""
        return bool(abs(self.relative_gap) <= tol and self.violation <= tol and self.relative_rounding <= tol)

    def is_stationary(self, tol: float) -> bool:
        """Tell whether the model is not convex and this proves a stationary point to a residual and a violation of tol."""
        return bool(
            self.stationarity is not None and self.stationarity.residual <= tol and self.violation <= tol
        )

    @property
    def distance(self) -> float:
        """Return what is compared with tol: the relative gap, or the residual where the model is not convex."""
        return abs(self.relative_gap) if self.stationarity is None else self.stationarity.residual


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
    proof = prove(form, blocks, loss_duals, function_duals) if bound_optimum else None
    bound, note = (-np.inf, "") if proof is None else (float(proof.value), proof.note)
    rounding = 0.0
    if form.is_convex:
        if proof is not None and math.isfinite(bound):
            rounding = rounding_of(form, blocks, proof, objective)
            if violation == 0.0 and bound > objective + rounding:
                check_weak_duality(form, blocks, proof, objective)
            if rounding > NEGLIGIBLE_ROUNDING_SHARE * max(abs(objective), abs(bound)):
                bound -= rounding
        return Certificate(objective, bound, violation, scale, note, None, form.constant, rounding, proof)

    def bound_of_kept(kept: NormalForm) -> float:
        # a solver's multipliers may belong to the matrices before these; at a stationary point those of the gradients are exact
        given = dual_bound(kept, blocks, loss_duals, function_duals)[0]
        if loss_duals is None and function_duals is None and not rough_functions(kept):
            return given  # those of the gradients they are
        return max(given, dual_bound(kept, blocks, None, _balancing(kept, blocks))[0])

    stationarity = stationarity_of(
        form, blocks, structures, bound_of_kept, scale, (loss_duals, function_duals)
    )
    return Certificate(objective, bound, violation, scale, note, stationarity, form.constant, rounding, proof)


def _balancing(form: NormalForm, blocks: Blocks) -> list[np.ndarray]:
    """Gradients of smooth functions, and for the one other function of a block what balances them and the losses' gradients."""
    g = gradients_of_losses(form, blocks)
    duals = [guess(f, blocks) for f in form.functions]
    for f, dual in zip(form.functions, duals, strict=True):
        f.map.add_adjoint(dual, g)
    rough = rough_functions(form)
    for k in rough:
        name = form.functions[k].map.identity_of
        if name is not None and not any(form.functions[j].map.identity_of == name for j in rough if j != k):
            duals[k] = -g[name]
    return duals
