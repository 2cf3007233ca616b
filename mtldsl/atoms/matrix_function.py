"""Base classes of regularizers and constraint sets: functions of a weight block, with the traits that solvers and calculus ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from mtldsl.atoms.atom import (
    COLUMNS,
    ENTRIES,
    MATRIX,
    ROWS,
    Atom,
    RowProfile,
    Separability,
    in_parentheses,
)

_PARTS: dict[str | None, Separability] = {"entries": ENTRIES, "rows": ROWS, "columns": COLUMNS}


class MatrixFunction(Atom):
    """A function g of a matrix W (p, q), convex where `convex`: a regularizer or the indicator of a set.

    For the certificate it tells three things about the domain of its conjugate:
    `conjugate(Z)`, +inf outside; `dual_project(Z)`, a point of the *cone spanned by* dom g* near Z; `dual_gauge(Z)`, the smallest
    t >= 0 with Z in t * dom g* (0 where dom g* is everything or a cone that holds Z, +inf where no multiple holds it).
    """

    #: what it is a sum over, or a function of: "entries" | "rows" | "columns" | "spectrum" | "matrix" | None
    separable: ClassVar[str | None] = None
    #: `prox` is there, and is the minimiser
    exact_prox: ClassVar[bool] = True
    #: by so much of it the value, found by an iteration, may be too large (never too small)
    accuracy: ClassVar[float] = 0.0
    #: dual_gauge is finite for every Z: this term can take up any multiplier
    absorbs: ClassVar[bool] = True
    #: a structure whose matrix is not an unknown, but says where a majorising quadratic touches
    is_reweighted: ClassVar[bool] = False
    #: a structure that learns the weights of given kernels between tasks
    weighs_kernels: ClassVar[bool] = False
    #: m where adding m/2 ||W||_F^2 makes a function convex that is not (inf: none does)
    weak_convexity: ClassVar[float] = 0.0
    #: modulus with respect to the Frobenius norm
    strong_convexity: ClassVar[float] = 0.0
    #: the conjugate itself is finite everywhere (dual_gauge is always 0)
    finite_dual: ClassVar[bool] = False
    #: a norm or a seminorm: positively homogeneous, conjugate = indicator of the dual ball
    norm: ClassVar[bool] = False
    #: Lipschitz constant of the gradient, where there is one (inf: none, or not smooth)
    curvature: ClassVar[float] = np.inf
    #: also a term of a precision that is learned, l1_norm(Sigma2)
    of_precisions: ClassVar[bool] = False
    #: singular values > 0 at which a function of the spectrum has a kink
    kinks: ClassVar[tuple[float, ...]] = ()

    #: a function of the singular values, or of sizes of entries or rows, that grows with each and stays bounded, or a set of all
    #: matrices of some ranks
    is_bounded: ClassVar[bool] = False

    #: zero on whole groups of columns, named in its field `columns` (None: those of the argument)
    groups_columns: ClassVar[bool] = False
    # What a sum with other functions needs to know (`calculus/prox_of_sum.py` says why). Who says nothing still combines with ridges.

    #: depends on the absolute values of entries only, and increases with them
    monotone: ClassVar[bool] = False
    #: prox maps the entries of every row by one nondecreasing function
    order_preserving: ClassVar[bool] = False
    #: subgradients depend only on the order of the entries in every row
    ordinal: ClassVar[bool] = False
    #: it is concave in sizes, so that `tangent_norm` has an answer
    has_tangent_norms: ClassVar[bool] = False
    #: g(W^T) = g(W)
    transpose_invariant: ClassVar[bool] = False
    #: what to write for a transpose where `of_transpose` has no answer; {0} stands for W of W^T, {word} for this word
    instead_of_transpose: ClassVar[str] = ""
    #: in its field `weights` it is linear: c g_a + c' g_b = g_(c a + c' b), None being all ones
    weights_add: ClassVar[bool] = False

    @property
    def shown(self) -> str:
        """Return what it is called in messages."""
        return self.name

    @property
    def homogeneous(self) -> bool:
        """Tell whether g(c W) = c g(W) for all c > 0: norms and cones."""
        return self.norm

    @property
    def parts(self) -> Separability:
        """Parts of W that g is a sum over: one term a part."""
        return _PARTS.get(self.separable, MATRIX)

    @property
    def scales(self) -> Separability | None:
        """Parts of W each of which the prox multiplies by one number >= 0; None: it does more than that."""
        return ENTRIES if self.monotone else None

    @property
    def interval(self) -> tuple | None:
        """(low, high) of a set {low <= W <= high}, entry by entry; else None."""
        return None

    @property
    def profile(self) -> RowProfile | None:
        """The absolute values, lengths of rows and squares that g is a weighted sum of, where it is one; else None."""
        return None

    @property
    def entry_quadratic(self) -> float | np.ndarray | None:
        """a, a number or an array that broadcasts to W, where g(W) = 1/2 sum_ij a_ij W_ij^2; else None."""
        found = self.profile
        return (
            None if found is None or found.absolute is not None or found.length is not None else found.square
        )

    @property
    def k_support(self) -> int | None:
        """k where g(W) = 1/2 N(norms)^2, N the k-support norm of the Frobenius norms of its groups of `columns`; else None."""
        return None

    def entry_slopes(self, W) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives from the left and from the right in every entry, of a function that is separable in "entries"."""
        if type(self).gradient is MatrixFunction.gradient:
            raise NotImplementedError(
                f'{self.name} is separable in "entries": write entry_slopes(W), or gradient(W) if it has one everywhere'
            )
        slope = self.gradient(W)
        return slope, slope

    def row_groups(self, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray] | None:
        """(the group of every row, the groups' weights a) where g(W) = sum over groups k of a_k ||W[k, :]||_F for W of that shape and
        every row is in a group; else None."""
        return None

    def spread(self, per_part, shape) -> np.ndarray:
        """One number for each of its weights -> an array that broadcasts against W."""
        return per_part

    def lineality(self, n_columns: int) -> np.ndarray | None:
        """(n_columns, c) the orthonormal b of all g(W + a b^T) = g(W), for every a, where dom g* spans all that is orthogonal to them; None
        where what it spans is a set of entries, or unknown."""
        return None

    def cancelling(self, W) -> float:
        """The absolute values that `value` is a sum of, beside itself, where it is an uneven quadratic: as large as its steepest direction makes
        them. One that squares differences has less."""
        return 0.5 * self.curvature * float(np.vdot(W, W)) if np.isfinite(self.curvature) else 0.0

    def on_rows(self, rows, shape: tuple[int, int]) -> MatrixFunction | None:
        """The function of these rows alone, of an argument of this shape whose other rows are zero; None: it says of none."""
        return None

    def two_sided_quadratic(self) -> tuple | None:
        """The `SpectralMatrix` pair (A, B) where g(W) = 1/2 tr(A W B W^T), else None."""
        return None

    @property
    def is_smooth(self) -> bool:
        """Tell whether there is a gradient everywhere."""
        return bool(np.isfinite(self.curvature))

    def gradient(self, W) -> np.ndarray:
        """The gradient, where `is_smooth`."""
        raise NotImplementedError

    def latex(self, argument: str) -> str:
        """The formula of an argument: in parentheses where an index or a power follows it."""
        followed = "{}_" in self.formula or "{}^" in self.formula
        return super().latex(in_parentheses(argument) if followed else argument)

    def value(self, W) -> float:
        raise NotImplementedError

    def outside(self, W) -> np.ndarray | None:
        """Return what of W (p, q) lies outside the domain, by so little that `value` takes it for rounding; None: nothing."""
        return None

    def prox(self, W, step) -> np.ndarray:
        """argmin over V of step * g(V) + 1/2 ||V - W||_F^2."""
        raise NotImplementedError

    def conjugate(self, Z) -> float:
        """g*(Z) = sup over W of <Z, W> - g(W), in closed form."""
        raise NotImplementedError

    def dual_gauge(self, Z) -> float:
        """The smallest t >= 0 with Z in t * dom g*: 0 where `finite_dual`."""
        if not self.finite_dual:
            raise NotImplementedError
        return 0.0

    def dual_project(self, Z) -> np.ndarray:
        return Z

    def of_transpose(self, shape: tuple[int, int]) -> MatrixFunction | None:
        """The function h of the language with h(W) = g(W^T) for W of this shape; None: there is none."""
        return self if self.transpose_invariant else None

    def relaxed(self, factor: float) -> MatrixFunction:
        """The same with an eps that is `factor` times as large, where `is_reweighted` and the function allows one."""
        return self

    def tangent_norm(self, W) -> MatrixFunction:
        """The convex function that touches g at W and lies above it, but for a constant; of `has_tangent_norms` alone."""
        raise NotImplementedError

    def on_columns(self, columns, shape: tuple[int, int]) -> MatrixFunction | None:
        """The function of these columns alone, where g is a sum over the columns of an argument of this shape; None: it says of none."""
        return None

    def task_quadratic(self, n_columns: int) -> np.ndarray | None:
        """The matrix L (n_columns, n_columns) where g(W) = 1/2 tr(W L W^T), else None."""
        return None

    def check(self, shape: tuple[int, int]) -> str | None:
        """None where the function fits an argument of this shape, else one sentence that says what does not fit."""
        return None

    def stated(self, shape: tuple[int, int]) -> Self:
        """The same function of arguments of this shape with all its numbers written out, as a saved proof states it."""
        return self


class Regularizer(MatrixFunction):
    """A penalty g(W) >= 0 with g(0) = 0, convex where `convex`."""

    def column_gauges(self, Z) -> np.ndarray | None:
        """`dual_gauge` of every column of Z by itself, where g is a sum over columns; else None."""
        return None

    def dual_norm(self, Z) -> float:
        """sup of <Z, W> over g(W) <= 1, where g is a norm."""
        if not self.norm:
            raise TypeError(f"{self.name} is not a norm")
        return self.dual_gauge(Z)

    def ball(self, radius: float) -> Set | None:
        """The set {W : g(W) <= radius} where it is one of the language, else None."""
        return None


class Set(MatrixFunction):
    """A closed set C, convex where `convex`; as a function, its indicator. `prox` is the projection, `conjugate` the support function."""

    @property
    def holds_around_zero(self) -> bool:
        """Tell whether all matrices near zero are in C, so that C has no say where zero is optimal."""
        return False

    def holds_all(self, shape: tuple[int, int]) -> bool:
        """Tell whether every matrix of this shape is in C, so that the constraint says nothing."""
        return False

    def violation(self, W) -> float:
        """Return how far W is outside, in the units of the constraint as typed: 0 inside."""
        raise NotImplementedError

    def project(self, W) -> np.ndarray:
        """The nearest point of C in the Frobenius norm."""
        raise NotImplementedError

    def support(self, Z) -> float:
        """sup of <Z, W> over W in C (+inf where unbounded)."""
        raise NotImplementedError

    def value(self, W) -> float:
        return 0.0

    def prox(self, W, step) -> np.ndarray:
        return self.project(W)

    def conjugate(self, Z) -> float:
        return self.support(Z)


# --------------------------------------------------------------------------------------------------------------
# Functions whose conjugate says nothing.


class WithoutConjugate:
    """The dual of a function that grows more slowly than every norm: its conjugate is -g(0) at zero and +inf elsewhere,
    so that no multiplier but zero bounds anything.
    """

    absorbs: ClassVar[bool] = False

    if TYPE_CHECKING:  # what the function itself gives

        def value(self, W) -> float: ...

    def conjugate(self, Z) -> float:
        """sup over W of <Z, W> - g(W)."""
        return np.inf if np.any(Z) else -self.value(np.zeros(np.shape(Z)))

    def dual_gauge(self, Z) -> float:
        return np.inf if np.any(Z) else 0.0

    def dual_project(self, Z) -> np.ndarray:
        return np.zeros(np.shape(Z))
