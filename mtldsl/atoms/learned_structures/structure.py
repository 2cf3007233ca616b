"""Base class of learned structures: penalties on W whose quadratic form is learned, in closed form, from W itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import in_parentheses
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix, two_sided_product
from mtldsl.atoms.regularizers.quadratic import checked_symmetric
from mtldsl.utils.parallel import on_one_blas_thread

Matrices = tuple[SpectralMatrix, ...]


@dataclass(frozen=True)
class Learned:
    """One matrix that a structure learns: its name as usually typed, its axis, and what it is."""

    name: str  # "Sigma1"
    axis: str  # "features" (d x d) or "tasks" (m x m)
    kind: str  # "precision" or "covariance"


@dataclass(frozen=True)
class Range:
    """lower * I <= S <= upper * I, tr S <= trace: what constraints say of a learned matrix."""

    lower: float = 0.0
    upper: float = np.inf
    trace: float = np.inf


@dataclass(frozen=True, eq=False)
class Quadratic:
    """W -> 1/2 tr(A W B W^T) + constant: a structure with its matrices kept."""

    rows: SpectralMatrix  # A (p, p)
    columns: SpectralMatrix  # B (q, q)
    constant: float = 0.0

    def product(self, W) -> np.ndarray:
        """A W B, the gradient."""
        return two_sided_product(self.rows, W, self.columns)

    def value(self, W) -> float:
        return 0.5 * float(np.vdot(W, self.product(W))) + self.constant


class Structure(MatrixFunction):
    """g(W) = min over S of `value_at(W, S)`: quadratic in W for S kept, a closed form in S for W kept.

    As a matrix function it is the *profile*, S eliminated. A field with metadata {"matrix": k} holds what the model says of
    matrix k: a `Range`, or a given matrix (then it is fixed), or None before the model is compiled.

    Laws: value(W) == value_at(W, update(W)); update_one(k, W, S) is the minimiser over S_k alone; quadratic(W.shape, S).value(W)
    == value_at(W, S); gradient(W) == quadratic(W.shape, update(W)).product(W) where `is_smooth`.
    """

    learns: ClassVar[tuple[Learned, ...]] = ()
    flip_flops: ClassVar[bool] = False  # has an update by sample estimates
    symbols: ClassVar[dict[str, str]] = {}  # a matrix's name -> its LaTeX in `formula`
    needs: ClassVar[dict[str, str]] = {}  # fields of Range that must be given -> why

    def latex(self, argument: str, symbols: dict[str, str] | None = None) -> str:
        """symbols: a matrix's name -> how the model writes it, where that is not the usual way."""
        text = self.formula
        if symbols:
            usual = {self.symbols[name]: symbol for name, symbol in symbols.items()}
            text = re.sub("|".join(map(re.escape, usual)), lambda found: usual[found[0]], text)
        return text.replace("{}", in_parentheses(argument))

    @property
    def said(self) -> list:
        """Return what the model says of each matrix: a `Range`, or the array that is given."""
        return [getattr(self, f.name) for f in fields(self) if "matrix" in f.metadata]

    def bound(self, descriptions) -> Structure:
        """This structure with what the model says of each matrix: a `Range`, or a symmetric positive definite array."""
        names = [f.name for f in fields(self) if "matrix" in f.metadata]
        said = [
            about
            if isinstance(about, Range)
            else checked_symmetric(about, f"{self.name}.bound(...)", positive=True)
            for about in descriptions
        ]
        return replace(self, **dict(zip(names, said, strict=True)))

    def start(self, shape: tuple[int, int]) -> Matrices:
        """Return where an alternation starts that is given no weights."""
        raise NotImplementedError

    def update(self, W) -> Matrices:
        """The minimiser of value_at(W, S) over all matrices together."""
        raise NotImplementedError

    def update_one(self, k: int, W, matrices: Matrices) -> Matrices:
        """The minimiser over matrix k, the others kept; of one alone it is that over all."""
        if len(self.learns) > 1:
            raise NotImplementedError
        return self.update(W)

    def least_over(self, k: int, W, matrices: Matrices) -> float:
        """The minimum over matrix k, the others kept, or a lower bound of it."""
        return self.value_at(W, self.update_one(k, W, matrices))

    def flip_flop(self, k: int, W, matrices: Matrices, fudge: float) -> Matrices:
        """The update of matrix k by the flip-flop algorithm, where `flip_flops`."""
        raise NotImplementedError

    def on_smaller_side(self, shape: tuple[int, int]) -> Structure:
        """The same function of W (p, q), learning a matrix on the smaller side of W, where there is one."""
        return self

    def value_at(self, W, matrices: Matrices) -> float:
        """The penalty with its matrices kept."""
        raise NotImplementedError

    def quadratic(self, shape: tuple[int, int], matrices: Matrices) -> Quadratic:
        """`value_at` as a quadratic of W, a matrix of that shape."""
        raise NotImplementedError

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        """The value and the gradient of the profile, where `is_smooth`."""
        matrices = self.update(W)
        return self.value_at(W, matrices), self.quadratic(np.shape(W), matrices).product(W)

    def gradient(self, W) -> np.ndarray:
        return self.value_and_gradient(W)[1]


# --------------------------------------------------------------------------------------------------------------
# Eigenvalues of two precisions within their bounds, for given singular values of the weights between them.


def clipped_ratio(numerator: float, denominator, box: Range) -> np.ndarray:
    """clip(numerator / denominator, lower, upper), upper where the denominator is 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(
            np.maximum(numerator / denominator, box.lower), box.upper
        )  # np.clip is slow to call


def give_way(
    s, ratio: float, few: tuple[int, Range], many: tuple[int, Range]
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the matrix whose log-determinant counts less, then of the other."""
    (count, box), (other_count, other) = few, many
    t = ratio * s**2
    first = clipped_ratio(count, other.upper * t, box)
    return first, clipped_ratio(other_count, first * t, other)


# --------------------------------------------------------------------------------------------------------------
# Cholesky factors, without what importing scipy.linalg costs everyone who never needs one.


class TriangularFactor:
    """K = L L^T, L lower triangular; numpy.linalg.LinAlgError where K is not positive definite to rounding."""

    def __init__(self, K: np.ndarray):
        self.L = np.linalg.cholesky(K)

    @property
    def pivots(self) -> np.ndarray:
        return np.diagonal(self.L)

    def half(self, B: np.ndarray) -> np.ndarray:
        """L^{-1} B: B^T K^{-1} B = half^T half."""
        return self._solve(B, 0)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """K^{-1} B."""
        return self.back(self.half(B))

    def back(self, half: np.ndarray) -> np.ndarray:
        """L^{-T} half."""
        return self._solve(half, 1)

    # LAPACK's triangular solve wakes threads for 4 x 4 already: 30 ms of two cores, where one needs microseconds
    @on_one_blas_thread
    def _solve(self, B: np.ndarray, transposed: int) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return solve_triangular(self.L, B, lower=True, trans=transposed, check_finite=False)
