"""Learned structures with their matrices kept, from their definitions; their blocks as semidefinite programs of their own.

W (d, m) and matrices, one for each that the atom has, learned or given, in the atom's order. Nothing here knows a closed form
of an update: the best matrix of a block is what cvxpy finds, and the lower bound of a block is Lagrange's.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from mtldsl.errors import ModelError, SolverError

from . import backends
from .registry import structure, structure_of
from .regularizers import factor


@dataclass(frozen=True)
class StructureSettings:
    """Sizes that choose a backend, and rounding of learned matrices."""

    # side n up to which Clarabel comes first, which factorises a matrix of side n^2 / 2 (measured, log-determinant and both bounds: side 21
    # takes 1 s, 30 takes 4 s, 40 takes 14 s); above it SCS, one eigendecomposition an iteration
    interior_point_rows: int = 45
    cheap_rows: int = 21  # side up to which nothing is left untried
    zero_variance_share: float = 1e-14  # variance that is zero, of the largest
    zero_weight_share: float = 1e-7  # part of W that is zero where a covariance gives it no variance


SETTINGS = StructureSettings()


#: What the backends are asked for: where Clarabel cannot do the first, which it says, it does the second (measured: 1e-12 and
#: 1e-9 of the optimum).
ATTEMPTS = {
    "clarabel": [{"tol_gap_abs": eps, "tol_gap_rel": eps, "tol_feas": eps} for eps in (1e-11, 1e-8)],
    "scs": [{"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 10_000}],
}


# ------------------------------------------------------------------------------------------- the definitions


def _is_number(quantity) -> bool:
    return not isinstance(quantity, cp.Expression) or quantity.is_constant()


def _array(quantity) -> np.ndarray:
    return np.asarray(quantity.value if isinstance(quantity, cp.Expression) else quantity, float)


def _log_det(S):
    return cp.log_det(S) if not _is_number(S) else np.linalg.slogdet(_array(S))[1]


def _matrix_normal_bound(k, W, matrices, atom) -> float:
    """With M = eta W Sigma2 W^T (k = 1: eta W^T Sigma1 W) and c = rho m (rho d), the block is, up to the other log-determinant,
    tr(S M) - c log|S| over l I <= S <= u I.

    For any P, N >= 0 it is at least inf over S > 0 of tr(S (M + N - P)) - c log|S| + l tr P - u tr N, that is
    c n - c n log c + c log|M + N - P| + l tr P - u tr N. At the minimiser P - N = M - c S^-1; so the positive and the negative
    part of that are taken at the given S.

    With the norm lam ||S||_1 there are no bounds, and tr(S U) <= lam ||S||_1 where |U_ij| <= lam: U takes the place of N - P, and is
    c S^-1 - M as far as it may be.
    """
    S, other = (_array(matrices[j]) for j in (k, 1 - k))
    along = W if k == 0 else W.T
    n, c, box = len(S), atom.rho * along.shape[1], _bounds(atom, k)
    M = atom.eta * along @ other @ along.T
    if _l1(atom)[k] > 0:
        lam = _l1(atom)[k]
        more, of_bounds = np.clip(c * np.linalg.inv(S) - M, -lam, lam), 0.0
    else:
        residuals, V = np.linalg.eigh(M - c * np.linalg.inv(S))
        P, N = ((V * np.maximum(sign * residuals, 0.0)) @ V.T for sign in (1.0, -1.0))
        more, of_bounds = N - P, box.lower * np.trace(P) - box.upper * np.trace(N)
    sign, log_det = np.linalg.slogdet(M + more)
    if sign <= 0:  # S so near to singular that its inverse is lost
        return -np.inf
    bound = c * (n - n * np.log(c) + log_det) + of_bounds
    return float(bound - atom.rho * n * np.linalg.slogdet(other)[1])


def _matrix_normal_scale(k, W, matrices, atom) -> np.ndarray:
    """(M / c + I / u)^-1 + l I, with M and c as above: of the minimiser it is one half to twice, eigenvalue by eigenvalue, however
    far l and u are from each other. In its units a backend gains digits (measured: two to four, with u = 10^4 l).
    """
    along, box = W if k == 0 else W.T, _bounds(atom, k)
    if _l1(atom)[k] > 0:  # the norm is of the entries as they are
        return np.eye(len(along))
    M, identity = along @ _array(matrices[1 - k]) @ along.T, np.eye(len(along))
    return (
        np.linalg.inv(atom.eta * M / (atom.rho * along.shape[1]) + identity / box.upper)
        + box.lower * identity
    )


@structure("matrix_normal", bound=_matrix_normal_bound, scale=_matrix_normal_scale)
def matrix_normal(W, matrices, atom):
    """eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|), convex in each of the three alone; with lam_k ||Sigma_k||_1
    where the model has such a norm
    """
    unknown = [
        name for name, q in zip(("W", "Sigma1", "Sigma2"), (W, *matrices), strict=True) if not _is_number(q)
    ]
    if len(unknown) > 1:
        raise ModelError(
            f"matrix_normal(W, Sigma1, Sigma2) is not convex in {' and '.join(unknown)} together",
            write_instead="give arrays for all but one of them",
        )
    (Sigma1, Sigma2), (d, m) = matrices, W.shape
    if not unknown:
        form = cp.Constant(np.vdot(_array(Sigma1) @ _array(W), _array(W) @ _array(Sigma2)))
    elif unknown == ["Sigma1"]:
        form = cp.trace(Sigma1 @ (_array(W) @ _array(Sigma2) @ _array(W).T))
    elif unknown == ["Sigma2"]:
        form = cp.trace(Sigma2 @ (_array(W).T @ _array(Sigma1) @ _array(W)))
    else:
        form = cp.sum_squares(factor(_array(Sigma1)).T @ W @ factor(_array(Sigma2)))
    norms = [
        lam * (np.abs(_array(S)).sum() if _is_number(S) else cp.sum(cp.abs(S)))
        for lam, S in zip(_l1(atom), matrices, strict=True)
        if lam > 0
    ]
    return atom.eta * form - atom.rho * (m * _log_det(Sigma1) + d * _log_det(Sigma2)) + sum(norms)


def _l1(atom) -> tuple[float, float]:
    """The coefficients of the matrices' l1 norms, where the model has any."""
    return getattr(atom, "l1", (0.0, 0.0))


def _trace_bound(k, W, matrices, atom) -> float:
    """tr(W^T C^-1 W) tr C >= (sum of the singular values of W)^2 by Cauchy and Schwarz, for every C."""
    return float(np.linalg.norm(W, "nuc") ** 2 / _bounds(atom, k).trace)


def _covariance_scale(k, W, matrices, atom) -> np.ndarray:
    """(W W^T)^(1/2) on the matrix's side, of which the minimiser is a multiple: in its units all eigenvalues of that are alike, and
    directions that no weights have are left out, in which an interior point method could only near zero.
    """
    U, sizes, _ = np.linalg.svd(W if atom.learns[k].axis == "features" else W.T, full_matrices=False)
    return (U * sizes * (_bounds(atom, k).trace / sizes.sum())) @ U.T


def inverse_form(W, C):
    """tr(W^T C^-1 W), +inf where W leaves the range of C; convex in W and C together."""
    if not _is_number(C):
        return cp.matrix_frac(W if isinstance(W, cp.Expression) else cp.Constant(W), C)
    variances, V = np.linalg.eigh(_array(C))
    held = variances > SETTINGS.zero_variance_share * variances[-1]
    inside, outside = (V[:, held] / np.sqrt(variances[held])).T, V[:, ~held].T
    if not _is_number(W):
        form = cp.sum_squares(inside @ W)
        return form if held.all() else form + cp.transforms.indicator([outside @ W == 0])
    leaves = np.linalg.norm(outside @ _array(W)) > SETTINGS.zero_weight_share * np.linalg.norm(_array(W))
    return cp.Constant(np.inf if leaves else np.sum((inside @ _array(W)) ** 2))


@structure("feature_covariance_norm", bound=_trace_bound, scale=_covariance_scale, inverse=True)
def feature_covariance_norm(W, matrices, atom):
    """tr(W^T D^-1 W)"""
    return inverse_form(W, *matrices)


@structure("task_covariance_norm", bound=_trace_bound, scale=_covariance_scale, inverse=True)
def task_covariance_norm(W, matrices, atom):
    """tr(W Omega^-1 W^T)"""
    return inverse_form(W.T, *matrices)


# ------------------------------------------------------------------------------------ what the model says of them


def _described(atom) -> list:
    """Return what the model says of every matrix of an atom: bounds, or the matrix itself."""
    return [getattr(atom, field.name) for field in fields(atom) if "matrix" in field.metadata]


def _bounds(atom, k: int):
    """lower, upper and trace of matrix k; ModelError where it is given, not learned."""
    described = _described(atom)[k]
    if not hasattr(described, "lower"):
        raise ModelError(
            f"matrix {k} is given, not learned, so that there is no block of it; ask for another k",
            term=atom.name,
        )
    return described


def range_constraints(S, atom, k: int, identity=None) -> list[cp.Constraint]:
    """lower I <= S <= upper I and tr S <= trace, as far as the model has these bounds on matrix k; `identity` stands for I in
    other units.
    """
    box, identity = _bounds(atom, k), np.eye(S.shape[0]) if identity is None else identity
    if box.lower == box.upper:  # no semidefinite cone: it would have no interior
        return [box.lower * identity == S]
    stated = [S >> box.lower * identity]
    stated += [S << box.upper * identity] if np.isfinite(box.upper) else []
    stated += [cp.trace(np.linalg.inv(identity) @ S) <= box.trace] if np.isfinite(box.trace) else []
    return stated


# ------------------------------------------------------------------------------------------------- the blocks


class BlockOptimum(NamedTuple):
    """Result of cvxpy for one learned matrix, everything else given."""

    value: float  # of the structure, recomputed at `matrix`, which is feasible: never below the minimum
    matrix: np.ndarray
    status: str  # cvxpy's word: "optimal", "optimal_inaccurate"


def objective(atom, W, matrices) -> float:
    """The structure with its matrices kept, at arrays W (d, m) and `matrices`, from its definition."""
    stated = structure_of(atom.name, atom.name)
    return float(stated(np.asarray(W, float), tuple(map(_array, matrices)), atom).value)


def block_optimum(atom, k: int, W, matrices) -> BlockOptimum:
    """min over matrix k of the structure, W and the other matrices given: (value, matrix, status), by cvxpy.

    atom     : the structure, with what the model says of its matrices
    matrices : arrays, one for each; that in place k only tells the side, and with it which backend comes first

    The value is that of a feasible matrix, so never below the minimum but for rounding, and above it by 4e-8 or less,
    relatively (measured: 1e-12 to 6e-9 up to side 40, 4e-8 for a covariance whose eigenvalues span five orders of magnitude). Worse,
    as `block_bound` tells: what SCS finds above side 45 with many eigenvalues at bounds far apart (3e-4).

    Raises ModelError where matrix k is given, not learned, and SolverError where no backend came back with a matrix.
    """
    W, matrices = np.asarray(W, float), [_array(S) for S in matrices]
    stated, box, side = structure_of(atom.name, atom.name), _bounds(atom, k), len(matrices[k])
    V, L, unit = W, np.eye(side), np.eye(side)
    if stated.scale is not None and box.lower < box.upper and np.any(W):
        # S = L T L^T: up to a constant the same structure, of W in other coordinates
        values, vectors = np.linalg.eigh(stated.scale(k, W, matrices, atom))
        if stated.inverse:
            held = values > SETTINGS.zero_variance_share * side * values[-1]
            values, vectors = values[held], vectors[:, held]
        root = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
        L, into = vectors * root, vectors / root if stated.inverse else vectors * root
        V = into.T @ W if atom.learns[k].axis == "features" else W @ into
        unit = np.linalg.inv(L.T @ L)
    T = cp.Variable(unit.shape, symmetric=True, name=f"{atom.name}_{k}")
    value = stated(V, (*matrices[:k], T, *matrices[k + 1 :]), atom)
    problem = cp.Problem(cp.Minimize(value), range_constraints(T, atom, k, unit))
    found, failures = [], []
    for name in _order(side):
        for options in ATTEMPTS[name] if side <= SETTINGS.cheap_rows else ATTEMPTS[name][-1:]:
            if found and side > SETTINGS.cheap_rows:
                break
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # "may be inaccurate": the status says so
                    backends.solve(problem, solver=name.upper(), **options)
            except cp.error.SolverError as error:
                failures.append(f"{name}: {error}")
                continue
            if T.value is None:
                failures.append(f"{name}: {problem.status}")
                continue
            matrix = _move_into_range(L @ T.value @ L.T, box)
            kept = (*matrices[:k], matrix, *matrices[k + 1 :])
            found.append(BlockOptimum(objective(atom, W, kept), matrix, problem.status))
            if problem.status == cp.OPTIMAL and np.isfinite(found[-1].value):
                return min(found, key=lambda block: block.value)
    if not found:
        raise SolverError(f"{atom.name}, matrix {k}: cvxpy found no minimum ({'; '.join(failures)})")
    return min(found, key=lambda block: block.value)


def block_bound(atom, k: int, W, matrices) -> float:
    """A lower bound of that minimum, by Lagrange duality from `matrices[k]` alone: equal to it where that is the minimiser.

    Numpy only, one eigendecomposition: for sides that are too large for a semidefinite program. It holds up to the rounding of
    its sums (measured: 5e-13 of the value at side 2,000, in 5 s). Raises ModelError where matrix k is given.
    """
    return structure_of(atom.name, atom.name).bound(
        k, np.asarray(W, float), [_array(S) for S in matrices], atom
    )


def _order(side: int) -> list[str]:
    return ["clarabel", "scs"] if side <= SETTINGS.interior_point_rows else ["scs", "clarabel"]


def _move_into_range(S, box) -> np.ndarray:
    """A backend's matrix, moved by its inaccuracy into the bounds."""
    values, V = np.linalg.eigh(0.5 * (S + S.T))
    values = np.clip(values, box.lower, box.upper)
    if values.sum() > box.trace:
        values *= box.trace / values.sum()
    return (V * values) @ V.T
