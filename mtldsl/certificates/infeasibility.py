r"""Feasibility of all constraints at once: a point found by projections, or a separating multiplier that disproves one.

Minimise over x  1/2 sum_k ||y_k - P_k(y_k)||^2  with y_k = B_k x + b_k and P_k the projection onto C_k. At a minimum that is not
zero, v_k = y_k - P_k(y_k) obeys  sum_k B_k^T v_k = 0  and

    sum_k [<v_k, b_k> - sup_{z in C_k} <v_k, z>] = sum_k ||v_k||^2 > 0,

which no x that satisfies all constraints allows (Farkas): it is the dual bound of the model that asks for nothing but the
constraints, whose optimum is 0. So it is proven as every bound is (`mtldsl.certificates.dual_bound`), rounding included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from mtldsl.atoms.matrix_function import Set
from mtldsl.certificates.dual_bound import Bound, prove, rounding_of
from mtldsl.certificates.multipliers import SETTINGS, stationarity
from mtldsl.normal_form.form import Blocks, NormalForm

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class FeasibilityResult:
    """Knowledge about the constraints of a model.

    blocks    : the weights that violate them least, of those seen
    violation : by how much they do, in the units typed
    margin    : a proven lower bound on the separation; > 0: no weights satisfy all constraints
    largest   : the size of weights for which that is proven (inf: all)
    least     : a violation that some constraint has at all these weights, at least: the margin over the sum of |multipliers|
    """

    blocks: Blocks
    violation: float
    margin: float
    largest: float = np.inf
    least: float = 0.0

    @property
    def is_disproven(self) -> bool:
        return self.margin > 0.0

    @property
    def is_far_reaching(self) -> bool:
        """Tell whether it is disproven of all weights, or of all but those that are far larger than the nearest ones."""
        size = max((float(np.abs(array).max(initial=0.0)) for array in self.blocks.values()), default=0.0)
        return self.is_disproven and self.largest >= SETTINGS.far_factor * max(size, 1.0)

    @property
    def said(self) -> str:
        """Return what is disproven, in words."""
        which = "no weights" if np.isinf(self.largest) else f"no weights up to {self.largest:.1e}"
        return f"{which} satisfy all constraints at once (proven by multipliers that separate them)"


def feasibility(form: NormalForm, start: Blocks | None = None, in_passing: bool = False) -> FeasibilityResult:
    """Look for weights that satisfy the constraints, from `start` (None: zero); else for a proof that there are none.

    in_passing : by a tenth of the iterations, while a solver may still find such weights
    """
    constraints = tuple(f for f in form.constraints if f.atom.convex)
    sets = [cast(Set, f.atom) for f in constraints]
    only = replace(form, losses=(), functions=constraints, constant=0.0)
    x0 = form.zeros() if start is None else start
    ends = np.cumsum([array.size for array in x0.values()])[:-1]

    def blocks_of(flat) -> Blocks:
        parts = zip(x0.items(), np.split(flat, ends), strict=True)
        return {name: part.reshape(array.shape) for (name, array), part in parts}

    def separation(flat):
        x, gradient = blocks_of(flat), form.zeros()
        total = 0.0
        for f, atom in zip(constraints, sets, strict=True):
            image = f.map.forward(x)
            v = image - atom.project(image)
            total += 0.5 * float(np.vdot(v, v))
            f.map.add_adjoint(v, gradient)
        return total, np.concatenate([gradient[name].ravel() for name in x0])

    first = np.concatenate([array.ravel() for array in x0.values()])
    iterations = SETTINGS.lbfgs_iterations // 10 if in_passing else SETTINGS.lbfgs_iterations
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 0.0, "gtol": 0.0}
    from scipy.optimize import minimize  # slow to import, and rarely needed

    found = minimize(separation, first, jac=True, method="L-BFGS-B", options=options)
    x = {name: np.array(array) for name, array in blocks_of(found.x).items()}
    return FeasibilityResult(x, form.violation(x), *_margin(only, x))


def _margin(only: NormalForm, x: Blocks) -> tuple[float, float, float]:
    """(a lower bound on the separation, the size of weights for which it is proven, what some constraint is violated by there)."""
    images = [f.map.forward(x) for f in only.functions]
    v = [image - cast(Set, f.atom).project(image) for f, image in zip(only.functions, images, strict=True)]
    size = max((float(np.abs(dual).max(initial=0.0)) for dual in v), default=0.0)
    if size == 0.0:
        return 0.0, np.inf, 0.0
    v = [dual / size for dual in v]
    found = [_margin_of(only, x, duals) for duals in (v, _nearer_to_stationary(only, v))]
    return max(found, key=lambda one: one[1] if one[0] > 0.0 else 0.0)


def _margin_of(only: NormalForm, x: Blocks, v: list[np.ndarray]) -> tuple[float, float, float]:
    """The same of multipliers that are given."""
    v = [f.atom.dual_project(dual) for f, dual in zip(only.functions, v, strict=True)]
    total = sum(float(np.abs(dual).sum()) for dual in v)
    everywhere = prove(only, x, [], v)
    if not everywhere.region and (margin := everywhere.value - rounding_of(only, x, everywhere, 0.0)) > 0:
        return margin, np.inf, margin / total
    residual = stationarity(only, [], v)
    least = SETTINGS.reach_factor * max(float(np.abs(array).max(initial=0.0)) for array in x.values())
    slope = sum(float(np.abs(r).sum()) for r in residual.values())
    value = sum(f.dual_value(dual) for f, dual in zip(only.functions, v, strict=True))
    if not np.isfinite(value):
        return 0.0, np.inf, 0.0
    margin = value - rounding_of(only, x, Bound(value, "", (), tuple(v)), 0.0)
    if slope > 0:  # half of what separates them pays for the residual, as far out as it can
        least = max(least, 0.5 * margin / max(slope, _TINY))
        margin -= least * slope
    largest = least if slope > 0 else np.inf
    return (margin, largest, margin / total) if margin > 0 else (0.0, np.inf, 0.0)


def _nearer_to_stationary(only: NormalForm, v: list[np.ndarray]) -> list[np.ndarray]:
    """Multipliers whose entries that are not zero were moved least, so that sum_k B_k^T v_k is rounding of theirs, not of the weights."""
    from scipy.sparse.linalg import LinearOperator, lsqr  # slow to import, and rarely needed

    zero = only.zeros()
    ends = np.cumsum([array.size for array in zero.values()])
    free = np.concatenate([(dual != 0.0).ravel() for dual in v])

    def image(flat) -> np.ndarray:
        parts = zip(zero.items(), np.split(flat, ends[:-1]), strict=True)
        x = {name: part.reshape(array.shape) for (name, array), part in parts}
        return np.concatenate([f.map.linear(x).ravel() for f in only.functions]) * free

    def adjoint(flat) -> np.ndarray:
        parts = np.split(flat * free, np.cumsum([dual.size for dual in v])[:-1])
        duals = [part.reshape(dual.shape) for part, dual in zip(parts, v, strict=True)]
        return np.concatenate([array.ravel() for array in stationarity(only, [], duals).values()])

    flat = np.concatenate([dual.ravel() for dual in v])
    maps = LinearOperator((flat.size, int(ends[-1])), matvec=image, rmatvec=adjoint)  # pyrefly: ignore[unexpected-keyword]
    moved = flat - image(lsqr(maps, flat, atol=1e-15, btol=1e-15, iter_lim=SETTINGS.clip_rounds)[0])
    parts = np.split(moved, np.cumsum([dual.size for dual in v])[:-1])
    return [part.reshape(dual.shape) for part, dual in zip(parts, v, strict=True)]
