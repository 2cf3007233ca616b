r"""Sylvester equations of the weights' step with every matrix kept: K W + sum_k A_k W B_k = C, by five methods.

| method | what it does | price |
|---|---|---|
| simultaneous_diagonalization | A^{-1/2} K A^{-1/2} = Q diag(a) Q^T, B = R diag(b) R^T: divide by a_i + b_j | d^3 + m^3 |
| sylvester | A^{-1} K W + W B = A^{-1} C by Bartels and Stewart | d^3 + m^3, larger constants |
| closed_form | the Kronecker system as it stands | (d m)^3 |
| gradient_descent | the best fixed step, 2 / (smallest + largest eigenvalue) | condition number |
| conjugate_gradient | preconditioned task by task | square root of the condition number |

The first two need one K for all tasks and one pair (A, B).
Source: Zhao et al., "Efficient multitask feature and relationship learning", UAI 2019, sec. 4.1; the first is not in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix, two_sided_product
from mtldsl.errors import SolverError
from mtldsl.solvers.design.sufficient_statistics import QuadraticData
from mtldsl.solvers.numerics.conjugate_gradients import conjugate_gradients
from mtldsl.utils.interrupts import eigh, eigvalsh
from mtldsl.utils.memory import require_memory


@dataclass(frozen=True)
class SylvesterSettings:
    """Sizes up to which a method pays.

    spectrum_features       : up to which an eigendecomposition is cheaper than conjugate gradients (measured with 20 tasks)
    condition_ratio         : of a covariance's eigenvalues, up to which its inverse may enter a system
    preconditioner_features : up to which conjugate gradients are preconditioned by a factorization a task
    """

    spectrum_features: int = 1200
    condition_ratio: float = 1e8
    preconditioner_features: int = 3000


SETTINGS = SylvesterSettings()


@dataclass(frozen=True, eq=False)
class SylvesterPenalty:
    """1/2 <V, A V B> of V = W + offset. `inverts_covariance`: A or B is the inverse of a covariance, which may be singular."""

    rows: SpectralMatrix
    columns: SpectralMatrix
    offset: np.ndarray | None = None
    inverts_covariance: bool = False

    def product(self, W) -> np.ndarray:
        return two_sided_product(self.rows, W, self.columns)


def unsupported_reason(method: str, data: QuadraticData, penalties: list[SylvesterPenalty]) -> str | None:
    """One sentence where the method does not fit this step."""
    if method in ("sylvester", "closed_form", "gradient_descent") and not all(map(_is_regular, penalties)):
        return "a learned covariance is singular, or nearly"
    if method in ("simultaneous_diagonalization", "sylvester"):
        if not data.is_shared:
            return "it needs inputs that all tasks share, with every label present"
        if len(penalties) != 1:
            return (
                f"it needs one quadratic penalty between features and tasks, and there are {len(penalties)}"
            )
    return None


def fitting_method(data: QuadraticData, penalties: list[SylvesterPenalty]) -> str:
    """The fastest that fits: measured in benchmarks/papers/fetr.py."""
    if (
        unsupported_reason("simultaneous_diagonalization", data, penalties) is None
        and data.shape[0] <= SETTINGS.spectrum_features
    ):
        return "simultaneous_diagonalization"
    d, m = data.shape
    return "closed_form" if d * m <= 300 and all(map(_is_regular, penalties)) else "conjugate_gradient"


def solve_weights(
    method: str,
    data: QuadraticData,
    penalties: list[SylvesterPenalty],
    start: np.ndarray,
    accuracy: float = 1e-13,
) -> np.ndarray:
    """The minimiser W; `start` and `accuracy` are for the two methods that iterate. SolverError where the method does not fit."""
    reason = unsupported_reason(method, data, penalties)
    if reason is not None:
        raise SolverError(f"w_step={method!r}: {reason}", write_instead="write w_step='auto'")
    target = data.cross - sum(p.product(p.offset) for p in penalties if p.offset is not None)
    return METHODS[method](data, penalties, target, start, accuracy)


# ------------------------------------------------------------------------------------------------ methods


def _simultaneous_diagonalization(data, penalties, target, start, accuracy):
    (penalty,) = penalties
    root = penalty.rows.power(-0.5)
    values, Q = eigh(root.apply(root.apply(data.gram).T))
    turned = Q.T @ root.apply(target)
    B = penalty.columns
    solved = turned / (values[:, None] + B.rest) if B.n_rest else np.zeros_like(turned)
    if B.values.size:
        inner = turned @ B.basis
        with np.errstate(invalid="ignore"):
            along = inner / (values[:, None] + B.values)
        solved = solved + (along - (solved @ B.basis if B.n_rest else 0.0)) @ B.basis.T
    return root.apply(Q @ solved)


def _sylvester(data, penalties, target, start, accuracy):
    (penalty,) = penalties
    inverse = penalty.rows.power(-1.0)
    return linalg.solve_sylvester(inverse.apply(data.gram), penalty.columns.dense(), inverse.apply(target))


def _closed_form(data, penalties, target, start, accuracy):
    d, m = data.shape
    require_memory(
        3 * 8 * (d * m) ** 2,
        f'w_step="closed_form": its system of {d * m:,} unknowns',
        'write w_step="auto"',
    )
    system: Any = linalg.block_diag(*np.broadcast_to(data.gram, (m, d, d)))
    for penalty in penalties:
        system += np.kron(penalty.columns.dense(), penalty.rows.dense())
    scale = 1.0 / np.sqrt(np.diag(system))  # columns in different units are not a lack of rank
    factor = linalg.cho_factor(scale[:, None] * system * scale)
    return (scale * linalg.cho_solve(factor, scale * target.T.ravel())).reshape(m, d).T


def _gradient_descent(data, penalties, target, start, accuracy):
    grams = [data.gram] if data.is_shared else data.gram
    spectra = np.array([eigvalsh(gram)[[0, -1]] for gram in grams])
    pairs = [(p.rows.eigenvalues(), p.columns.eigenvalues()) for p in penalties]
    lowest = max(spectra[:, 0].min(), 0.0) + sum(a[0] * b[0] for a, b in pairs)
    highest = spectra[:, 1].max() + sum(a[-1] * b[-1] for a, b in pairs)
    step, W, size = 2.0 / (lowest + highest), start, np.linalg.norm(target)
    # contraction (k - 1) / (k + 1) in every step, k = highest / lowest
    most = int(np.ceil(np.log(1.0 / accuracy) * 0.5 * (highest / max(lowest, 1e-300) + 1.0))) + 10
    for _ in range(min(most, 1_000_000)):
        gradient = data.product(W) + sum(p.product(W) for p in penalties) - target
        if np.linalg.norm(gradient) <= accuracy * size:
            break
        W = W - step * gradient
    return W


def _conjugate_gradient(data, penalties, target, start, accuracy):
    most = 10 * target.size + 100
    if all(map(_is_regular, penalties)):
        return conjugate_gradients(
            lambda W: data.product(W) + sum(p.product(W) for p in penalties), target,
            tol=accuracy, most=most, precondition=_task_preconditioner(data, penalties), start=start, rounding=accuracy,
        )  # fmt: skip
    # a singular covariance leaves A or B infinite: over V, W = A^{-1/2} V B^{-1/2}
    penalty, *more = [p for p in penalties if not _is_regular(p)]
    others = [p for p in penalties if p is not penalty]
    if more:
        raise SolverError(
            'two learned covariances are both singular, or nearly: no step of solver="alternating" is exact',
            write_instead='write solver="admm"',
        )
    left, right = penalty.rows.power(-0.5), penalty.columns.power(-0.5)

    def product(V):
        W = two_sided_product(left, V, right)
        return two_sided_product(left, data.product(W) + sum(p.product(W) for p in others), right) + V

    turned = two_sided_product(left, target, right)
    V = conjugate_gradients(product, turned, tol=accuracy, most=most)
    return two_sided_product(left, V, right)


def _task_preconditioner(data: QuadraticData, penalties: list[SylvesterPenalty]):
    """W -> (K_i + sum_k (B_k)_ii A_k)^{-1} w_i, one factorization a task; W itself where that is too expensive."""
    d, m = data.shape
    if d > SETTINGS.preconditioner_features or m * d * d > 50_000_000:
        return np.copy
    systems = np.array(np.broadcast_to(data.gram, (m, d, d)))
    for penalty in penalties:
        B = penalty.columns
        diagonal = np.square(B.basis) @ (B.values - B.rest) + B.rest
        systems += diagonal[:, None, None] * penalty.rows.dense()
    inverses = np.linalg.inv(systems)
    return lambda W: np.matmul(inverses, np.ascontiguousarray(W.T)[:, :, None])[:, :, 0].T


def _is_regular(penalty: SylvesterPenalty) -> bool:
    """Tell whether no covariance behind it is singular, or so nearly that its inverse spoils a system."""
    spectra = [S.eigenvalues() for S in (penalty.rows, penalty.columns)]
    if not all(np.isfinite(values[-1]) for values in spectra):
        return False
    return not penalty.inverts_covariance or all(v[-1] < SETTINGS.condition_ratio * v[0] for v in spectra)


METHODS = {
    "simultaneous_diagonalization": _simultaneous_diagonalization,
    "sylvester": _sylvester,
    "closed_form": _closed_form,
    "gradient_descent": _gradient_descent,
    "conjugate_gradient": _conjugate_gradient,
}
