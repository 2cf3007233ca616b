r"""The proof: primal value, dual bound, gap and feasibility, recomputed from a point alone.

For   minimize over x   sum_t f_t(A_t x + a_t) + sum_k g_k(B_k x + b_k)   (an indicator g_k for every constraint)
Fenchel duality gives, for every u, v with  sum_t A_t^T u_t + sum_k B_k^T v_k = 0  on every block,

    optimum >= sum_t [<u_t, a_t> - f_t*(u_t)] + sum_k [<v_k, b_k> - g_k*(v_k)].

A solver's multipliers obey neither that equation nor dom f*, dom g* exactly. They are made to, in this order:
1. every u_t, v_k is moved into (the cone spanned by) the domain of its conjugate;
2. on every intercept the entries of u are shifted, within their domain, until they sum to zero;
3. on every other block the residual of the equation is given to a term that takes any multiplier (a norm, a ridge, a ball, a
   simplex, an equality), or, where no term does, is removed from u by least squares;
4. all multipliers are scaled by one t in [0, 1] so that every norm's dual constraint holds (t = 0 is always feasible).

Nothing here knows how the point was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm

__all__ = ["Certificate", "certify", "dual_bound", "relative_gap"]

# A stationarity residual this small against its own terms is rounding, not infeasibility.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Certificate:
    """What was proven about a point. Gaps may be slightly negative where constraints are violated slightly."""

    objective: float
    dual_bound: float
    violation: float
    scale: float  # the floor of the relative gap's denominator
    note: str = ""

    @property
    def gap(self) -> float:
        return self.objective - self.dual_bound

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.objective, self.dual_bound, self.scale)

    def within(self, tol: float) -> bool:
        """Whether this proves optimality to a relative gap and a violation of tol."""
        return bool(abs(self.relative_gap) <= tol and self.violation <= tol)


def relative_gap(objective: float, bound: float, scale: float = 0.0) -> float:
    """(objective - bound) / max(|objective|, |bound|, scale): inf where no finite bound is known."""
    if not (np.isfinite(objective) and np.isfinite(bound)):
        return np.inf
    return (objective - bound) / max(abs(objective), abs(bound), scale, np.finfo(float).tiny)


def certify(
    form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None, *, scale: float | None = None
) -> Certificate:
    """The certificate of a primal point and multipliers (None: gradients of the losses at the point)."""
    objective, violation = form.value(blocks), form.violation(blocks)
    bound, note = dual_bound(form, blocks, loss_duals, function_duals)
    return Certificate(objective, bound, violation, objective_scale(form) if scale is None else scale, note)


def objective_scale(form: NormalForm) -> float:
    """1e-8 of the objective at zero: below this, an optimum counts as zero when a gap is made relative."""
    value = form.value(form.zeros())
    return 1e-8 * abs(value) if np.isfinite(value) else 0.0


def dual_bound(form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None) -> tuple[float, str]:
    """(a proven lower bound on the optimum, "") or (-inf, the reason why none could be formed)."""
    if loss_duals is None:
        loss_duals = [loss.gradient(loss.predictions(blocks)) for loss in form.losses]
    if function_duals is None:
        function_duals = [np.zeros(f.map.shape) for f in form.functions]
    u = [
        loss.dual_project(np.asarray(dual, float)) for loss, dual in zip(form.losses, loss_duals, strict=True)
    ]
    v = [
        f.atom.dual_project(np.asarray(dual, float))
        for f, dual in zip(form.functions, function_duals, strict=True)
    ]
    for block in form.blocks:
        if block.intercept_of is not None and not _balance_intercept(form, block.name, u):
            return -np.inf, f"the multipliers of {block.name} could not be balanced"
    takers = {block.name: _taker(form, block.name) for block in form.blocks if block.intercept_of is None}
    for name, taker in takers.items():
        if taker is None and not _solve_by_least_squares(form, name, u, v):
            return -np.inf, (
                f"no term bounds {name} in every direction, and the losses' multipliers alone could not be made stationary; "
                f"a term such as + 1e-6 * ridge({name}) makes a bound possible"
            )
    residual, _ = _stationarity(form, u, v)
    for name, taker in takers.items():
        if taker is not None:
            v[taker] = v[taker] - residual[name]
    return _best_scaling(form, u, v)


def _stationarity(form: NormalForm, u, v) -> tuple[Blocks, Blocks]:
    """(sum A^T u + sum B^T v, the same with absolute values: what rounding is measured against) on every block."""
    residual = form.zeros()
    for loss, dual in zip(form.losses, u, strict=True):
        loss.add_adjoint(dual, residual)
    size = {name: np.abs(r).max(initial=0.0) for name, r in residual.items()}
    for f, dual in zip(form.functions, v, strict=True):
        f.map.add_adjoint(dual, residual)
        for name in f.map.blocks:
            size[name] = max(size[name], np.abs(dual).max(initial=0.0))
    return residual, size


def _taker(form: NormalForm, block: str) -> int | None:
    """The function that can take any multiplier on this block: one with an everywhere finite conjugate if there is one."""
    candidates = [
        k
        for k, f in enumerate(form.functions)
        if f.map.identity_of == block and (f.atom.finite_dual or (f.atom.absorbs and _takes_all_entries(f)))
    ]
    return max(candidates, key=lambda k: form.functions[k].atom.finite_dual, default=None)


def _takes_all_entries(f: FunctionTerm) -> bool:
    """`absorbs` is said without knowing the shape: a group_norm may leave the last rows of this argument unpenalised."""
    return bool(np.isfinite(f.atom.dual_gauge(np.ones(f.map.shape))))


# ----------------------------------------------------------------------------------------------- repairs


def _balance_intercept(form: NormalForm, name: str, u) -> bool:
    """Make u sum to zero in every task over the losses that share this intercept, staying inside dom f*."""
    losses = [t for t, loss in enumerate(form.losses) if name in loss.intercepts]
    if len(losses) != 1:
        return not losses
    (t,) = losses
    loss, dual = form.losses[t], u[t]
    offsets = loss.tasks.offsets
    if loss.atom.separable:
        low, high = loss.dual_interval()
        u[t] = np.concatenate(
            [
                _shift_to_zero_sum(dual[a:b], low[a:b], high[a:b])
                for a, b in zip(offsets[:-1], offsets[1:], strict=True)
            ]
        )
    else:
        # a ball around 0 contains the centred vector whenever it contains the vector
        means = np.add.reduceat(dual, offsets[:-1]) / loss.tasks.counts
        u[t] = loss.dual_project(dual - np.repeat(means, loss.tasks.counts))
    sums = np.add.reduceat(u[t], offsets[:-1])
    return bool(
        np.all(np.abs(sums) <= _ROUNDING * np.add.reduceat(np.abs(u[t]), offsets[:-1]) + np.finfo(float).tiny)
    )


def _shift_to_zero_sum(u, low, high) -> np.ndarray:
    """clip(u + c, low, high) with the c that makes it sum to zero: the sum is monotone and piecewise linear in c.

    Where no c does (an interval without 0 among them), the sum comes as near to zero as it can.
    """
    total = lambda c: float(np.clip(u + c, low, high).sum())  # noqa: E731
    breaks = np.unique(np.concatenate([(low - u)[np.isfinite(low)], (high - u)[np.isfinite(high)], [0.0]]))
    first, last = 0, breaks.size - 1
    while last - first > 1:  # the neighbouring breakpoints between which the sum changes sign
        middle = (first + last) // 2
        first, last = (middle, last) if total(breaks[middle]) <= 0 else (first, middle)
    a, b = total(breaks[first]), total(breaks[last])
    if a > 0:  # only the entries without a lower limit move further down
        c = breaks[first] - a / max(np.sum(np.isneginf(low)), 1)
    elif b <= 0:
        c = breaks[last] - b / max(np.sum(np.isposinf(high)), 1)
    else:
        c = breaks[first] - a * (breaks[last] - breaks[first]) / (b - a)
    shifted = np.clip(u + c, low, high)
    # the interpolation is exact but for rounding, which entries strictly inside take up
    free = (shifted > low) & (shifted < high)
    if free.any():
        shifted[free] -= shifted.sum() / free.sum()
    return np.clip(shifted, low, high)


def _solve_by_least_squares(form: NormalForm, block: str, u, v) -> bool:
    """Change u as little as possible, on entries strictly inside their domain, until the block's residual is rounding."""
    losses = [
        t for t, loss in enumerate(form.losses) if loss.map.identity_of == block and loss.atom.separable
    ]
    if not losses:
        return _is_rounding(form, block, u, v)
    t = losses[0]
    loss = form.losses[t]
    low, high = loss.dual_interval()
    offsets, inputs = loss.tasks.offsets, loss.tasks.inputs
    for _ in range(8):
        if _is_rounding(form, block, u, v):
            return True
        residual = _stationarity(form, u, v)[0][block]
        dual = u[t].copy()
        for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
            free = (dual[a:b] > low[a:b]) & (dual[a:b] < high[a:b])
            X = inputs[i][free]
            X = X.toarray() if hasattr(X, "toarray") else X
            target = residual[:, i]
            if loss.intercepts:  # keep the sum of u
                X, target = np.column_stack([X, np.ones(len(X))]), np.append(target, 0.0)
            dual[a:b][free] -= np.linalg.lstsq(X.T, target, rcond=None)[0]
        u[t] = loss.dual_project(dual)
    return _is_rounding(form, block, u, v)


def _is_rounding(form: NormalForm, block: str, u, v) -> bool:
    residual, size = _stationarity(form, u, v)
    inputs = sum(
        np.abs(loss.tasks.adjoint(np.abs(dual))).max() for loss, dual in zip(form.losses, u, strict=True)
    )
    return bool(np.abs(residual[block]).max() <= _ROUNDING * max(size[block], inputs))


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
        total = sum(_loss_part(*part, t) for part in zip(form.losses, u, constants, strict=True))
        return total + sum(_function_part(f, dual, t) for f, dual in zip(form.functions, v, strict=True))

    best = max(value(largest), value(0.0) if largest < 1.0 else -np.inf)
    if largest < 0.999 or not np.isfinite(best):
        from scipy.optimize import minimize_scalar  # slow to import, and rarely needed near an optimum

        search = minimize_scalar(
            lambda t: -max(value(t), -1e300), bounds=(0.0, largest), method="bounded", options={"maxiter": 16}
        )
        best = max(best, -float(search.fun)) if search.fun < 1e299 else best
    return best, "" if np.isfinite(best) else "the conjugates are infinite at these multipliers"


def _loss_part(loss: LossTerm, dual, constant, t: float) -> float:
    # rounding of t * dual may step out of the domain by one unit in the last place
    scaled = loss.dual_project(t * dual)
    return (0.0 if constant is None else float(scaled @ constant)) - loss.conjugate(scaled)


def _function_part(f: FunctionTerm, dual, t: float) -> float:
    inner = 0.0 if f.map.offset is None else float(np.vdot(t * dual, f.map.offset))
    return inner - f.conjugate(t * dual)
