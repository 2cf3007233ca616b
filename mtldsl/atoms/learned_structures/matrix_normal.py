"""FETR's penalty: the precision matrices of features and of tasks, learned together with the weights."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from mtldsl.atoms.atom import SET_BY_MODEL, register
from mtldsl.atoms.learned_structures.structure import (
    Learned,
    Matrices,
    Quadratic,
    Range,
    Structure,
    clipped_ratio,
    give_way,
)
from mtldsl.atoms.matrix_function import WithoutConjugate
from mtldsl.atoms.prox.graphical_lasso import SparseInverse, graphical_lasso
from mtldsl.atoms.prox.spectral_matrix import (
    SpectralMatrix,
    SymmetricMatrix,
    singular_values,
    thin_svd,
    two_sided_product,
)

#: A matrix that is given counts as the identity, in coordinates where it is.
_GIVEN = Range(1.0, 1.0)


_POSITIVE = "a number > 0; a Parameter stands before the word, lam * matrix_normal(...)"


@register
@dataclass(frozen=True, eq=False)
class MatrixNormal(Structure):
    r"""Matrix-normal prior of W with learned precisions: eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|).

    Sigma1 (d, d), a `FeaturePrecision`, and Sigma2 (m, m), a `TaskPrecision`, are learned with W (d, m) within the bounds that
    the model states, `Sigma1 >> l` and `Sigma1 << u`; an array in place of either fixes it. Their inverses are the covariances
    of features and of tasks; (c Sigma1, Sigma2 / c) means the same, so read correlations, not scales.

    Parameters
    ----------
    eta : number > 0, default 1
        The coefficient of the quadratic form.
    rho : number > 0, default 1
        The coefficient of the log-determinants.

    Raises
    ------
    ModelError
        Where eta or rho is not positive, where a learned matrix has no bounds (the objective is unbounded below without an
        upper one: W = 0, Sigma1 = t I, t -> infinity), and where a given matrix is not symmetric positive definite.

    Notes
    -----
    Not convex, but for W, Sigma1 and Sigma2 each by itself; also not where one of the two matrices is given. With
    W = U diag(s) V^T and t = eta s^2 / rho, the minimiser over both is Sigma1 = U diag(a) U^T, Sigma2 = V diag(b) V^T, where for
    d >= m: a = clip(m / (u2 t), l1, u1) and b = clip(d / (a t), l2, u2) (the roles exchanged for d < m), and eigenvalues
    without a partner are u1 or u2. That leaves a penalty psi on the singular values: quadratic, logarithmic, quadratic,
    logarithmic, quadratic. Conjugate: of the quadratic pieces alone, since the others are concave; so the dual bound of a model
    is one of its convex envelope.
    Source: Zhao, Stretcu, Smola and Gordon, "Efficient multitask feature and relationship learning", UAI 2019, eq. (3) and
    Algorithms 1 and 2; the joint minimiser is not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> structure = MatrixNormal().bound([Range(0.01, 100.0), Range(0.01, 100.0)])
    >>> W = np.diag([2.0, 0.5])
    >>> Sigma1, Sigma2 = structure.update(W)
    >>> Sigma1.dense().diagonal().round(6), Sigma2.dense().diagonal().round(6)
    (array([0.01, 0.08]), array([ 50., 100.]))
    >>> bool(np.isclose(structure.value(W), structure.value_at(W, (Sigma1, Sigma2))))
    True
    """

    eta: float = 1.0
    rho: float = 1.0
    features: Range | SpectralMatrix = field(default=SET_BY_MODEL, metadata={"matrix": 0})
    tasks: Range | SpectralMatrix = field(default=SET_BY_MODEL, metadata={"matrix": 1})

    name: ClassVar[str] = "matrix_normal"
    instead_of_transpose: ClassVar[str] = (
        "matrix_normal({0}, Sigma1, Sigma2), Sigma1 of features and Sigma2 of tasks"
    )
    meaning: ClassVar[str] = "the negative logarithm of a matrix-normal prior, up to constants"
    formula: ClassVar[str] = (
        r"\eta \operatorname{tr}(\Sigma_1 {} \Sigma_2 {}^\top) - \rho (m \log|\Sigma_1| + d \log|\Sigma_2|)"
    )
    learns: ClassVar[tuple[Learned, ...]] = (
        Learned("Sigma1", "features", "precision"),
        Learned("Sigma2", "tasks", "precision"),
    )
    symbols: ClassVar[dict[str, str]] = {"Sigma1": r"\Sigma_1", "Sigma2": r"\Sigma_2"}
    needs: ClassVar[dict[str, str]] = {
        "upper": "the objective is unbounded below, since {name} = t I with t -> infinity lets -log|{name}| fall without end",
        "lower": "{name} may become singular, and then large weights cost nothing in some direction",
    }
    is_smooth: ClassVar[bool] = True
    flip_flops: ClassVar[bool] = True
    exact_prox: ClassVar[bool] = False
    finite_dual: ClassVar[bool] = True

    def __post_init__(self):
        for name in ("eta", "rho"):
            self.keep_number(name, lambda v: v > 0, _POSITIVE)

    @classmethod
    def examples(cls):
        given = np.array([[2.0, 0.5, 0, 0], [0.5, 1.0, 0.2, 0], [0, 0.2, 1.5, -0.3], [0, 0, -0.3, 0.8]])
        wide, narrow = Range(0.05, 20.0), Range(0.5, 3.0)
        return [
            cls().bound([wide, wide]),
            cls(eta=0.7, rho=1.3).bound([narrow, wide]),
            cls(rho=0.4).bound([wide, SpectralMatrix.of(given)]),
            cls().bound([SpectralMatrix.of(np.diag([1.0, 2.0, 0.5, 1.5, 3.0])), narrow]),
            cls(eta=2.0).bound([Range(1.5, 1.5), SpectralMatrix.of(given)]),
        ]

    def latex(self, argument, symbols=None):
        """With the values of eta and rho, and brackets around the difference."""
        text = super().latex(argument, symbols)
        for name, value in ((r"\eta", self.eta), (r"\rho", self.rho)):
            text = text.replace(f"{name} ", "" if value == 1.0 else rf"{value:g} \, ", 1)
        return rf"\left[{text}\right]"

    # ----------------------------------------------------------------------------------------- what is given

    @property
    def convex(self) -> bool:
        """Only where nothing is left to learn."""
        return all(box is not None and box.lower == box.upper for box in self._boxes)

    @cached_property
    def _boxes(self) -> tuple[Range, Range]:
        return _box(self.features), _box(self.tasks)

    @cached_property
    def _roots(self) -> tuple[SpectralMatrix | None, SpectralMatrix | None]:
        """The square roots of the matrices that are given."""
        return _given_power(self.features, 0.5), _given_power(self.tasks, 0.5)

    @cached_property
    def _inverse_roots(self) -> tuple[SpectralMatrix | None, SpectralMatrix | None]:
        first, second = self._roots
        return _given_power(first, -1.0), _given_power(second, -1.0)

    def _given_constant(self, d: int, m: int) -> float:
        """-rho (m log|Sigma1| + d log|Sigma2|) of the matrices that are given."""
        given = [
            (S, count) for S, count in zip(self.said, (m, d), strict=True) if isinstance(S, SpectralMatrix)
        ]
        return -self.rho * sum(count * S.log_det() for S, count in given)

    # ------------------------------------------------------------------------------------------- the profile

    def value(self, W) -> float:
        s = singular_values(two_sided_product(self._roots[0], W, self._roots[1]))
        return self._of_pairs(s, *self._eigenvalues(s, *W.shape), *W.shape)

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        """Both from one singular value decomposition."""
        d, m = W.shape
        U, s, Vt = thin_svd(two_sided_product(self._roots[0], W, self._roots[1]))
        a, b = self._eigenvalues(s, d, m)
        gradient = (U * (2.0 * self.eta * a * b * s)) @ Vt
        return self._of_pairs(s, a, b, d, m), two_sided_product(self._roots[0], gradient, self._roots[1])

    def turning_weights(self, W) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """(U, V, w, rest): the gradient is U diag(w s) V^T, and `rest` is the weight of singular values that are zero.

        Turning a singular pair (i) towards another (j) meets the curvature (w_i s_i - w_j s_j) / (s_i - s_j), not the far larger
        a_i b_j of the quadratic with the matrices kept: min(w_i, w_j) is of its order. In coordinates in which given matrices
        are the identity.
        """
        U, s, Vt = thin_svd(two_sided_product(self._roots[0], W, self._roots[1]))
        a, b = self._eigenvalues(s, *W.shape)
        rest = self._boxes[0].upper * self._boxes[1].upper
        return U, Vt.T, 2.0 * self.eta * a * b, 2.0 * self.eta * rest

    def _of_pairs(self, s, a, b, d: int, m: int) -> float:
        """The value at singular values s whose eigenvalues are a and b."""
        pairs = self.eta * a * b * s**2 - self.rho * (m * np.log(a) + d * np.log(b))
        return float(pairs.sum()) + self._unpaired(d, m, s.size)

    def _unpaired(self, d: int, m: int, n_pairs: int) -> float:
        """Return what eigenvalues without a partner, all at their upper bound, and given matrices add."""
        free, of_tasks = self._boxes
        unpaired = m * (d - n_pairs) * np.log(free.upper) + d * (m - n_pairs) * np.log(of_tasks.upper)
        return self._given_constant(d, m) - self.rho * float(unpaired)

    def _eigenvalues(self, s, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """(a, b) of every singular value: minimisers of eta a b s^2 - rho (m log a + d log b) over the box.

        In logarithms a convex problem: where a b t exceeds the smaller of m and d, the matrix with the smaller count gives
        way, down to its lower bound; only then the other one.
        """
        first, second = self._boxes
        if d < m:
            b, a = give_way(s, self.eta / self.rho, (d, second), (m, first))
        else:
            a, b = give_way(s, self.eta / self.rho, (m, first), (d, second))
        return a, b

    def conjugate(self, Z) -> float:
        d, m = Z.shape
        z = singular_values(two_sided_product(self._inverse_roots[0], Z, self._inverse_roots[1]))
        best = np.full(z.size, -np.inf)
        for curvature, constant, low, high in self._quadratic_pieces(d, m):
            s = np.clip(z / (2.0 * curvature), low, high)
            best = np.maximum(best, z * s - curvature * s**2 - constant)
        return float(best.sum()) - self._unpaired(d, m, z.size)

    def _quadratic_pieces(self, d: int, m: int) -> list[tuple[float, float, float, float]]:
        """(curvature, constant, low, high): psi(s) = curvature s^2 + constant on [low, high]; concave in between."""
        pairs = [(m, self._boxes[0]), (d, self._boxes[1])]
        (few, first), (many, second) = reversed(pairs) if d < m else pairs
        products = (first.upper * second.upper, first.lower * second.upper, first.lower * second.lower)
        ends = [0.0, few / products[0], few / products[1], many / products[1], many / products[2], np.inf]
        sizes = np.sqrt(self.rho / self.eta * np.array(ends))
        logs = (
            few * np.log(first.upper) + many * np.log(second.upper),
            few * np.log(first.lower) + many * np.log(second.upper),
            few * np.log(first.lower) + many * np.log(second.lower),
        )
        return [
            (self.eta * product, -self.rho * log, sizes[2 * k], sizes[2 * k + 1])
            for k, (product, log) in enumerate(zip(products, logs, strict=True))
        ]

    # ------------------------------------------------------------------------------------------ the matrices

    def start(self, shape) -> Matrices:
        """The identity, or the nearest matrix within the bounds."""
        given = (self.features, self.tasks)
        return tuple(
            S if isinstance(S, SpectralMatrix)
            else SpectralMatrix.multiple_of_identity(np.clip(1.0, S.lower, S.upper), side)
            for S, side in zip(given, shape, strict=True)
        )  # fmt: skip

    def update(self, W) -> Matrices:
        d, m = W.shape
        U, s, Vt = thin_svd(two_sided_product(self._roots[0], W, self._roots[1]))
        a, b = self._eigenvalues(s, d, m)
        learned = (
            SpectralMatrix(U, a, self._boxes[0].upper),
            SpectralMatrix(Vt.T, b, self._boxes[1].upper),
        )
        given = (self.features, self.tasks)
        return tuple(
            S if isinstance(S, SpectralMatrix) else new for S, new in zip(given, learned, strict=True)
        )

    def update_one(self, k: int, W, matrices: Matrices) -> Matrices:
        """Algorithm 1 (k = 0) and Algorithm 2 (k = 1) of the paper: eigenvectors of W Sigma2 W^T, eigenvalues
        clip(rho m / (eta nu), l, u), which is u for nu = 0.
        """
        if isinstance((self.features, self.tasks)[k], SpectralMatrix):
            return matrices
        (U, s), box, count = self._spectrum(k, W, matrices), self._boxes[k], W.shape[1 - k]
        new = SpectralMatrix(U, clipped_ratio(self.rho * count, self.eta * s**2, box), box.upper)
        return _replaced(k, matrices, new)

    def _spectrum(self, k: int, W, matrices: Matrices) -> tuple[np.ndarray, np.ndarray]:
        """U, s with U diag(s^2) U^T = W Sigma2 W^T (k = 0) or W^T Sigma1 W (k = 1)."""
        other = matrices[1 - k].power(0.5)
        U, s, _ = thin_svd(
            two_sided_product(None, W, other) if k == 0 else two_sided_product(other, W, None).T
        )
        return U, s

    def flip_flop(self, k: int, W, matrices: Matrices, fudge: float) -> Matrices:
        """The flip-flop algorithm's update of matrix k: its sample estimate with a fudge factor, moved into the bounds.

        Sigma1^{-1} = eta W Sigma2 W^T / (rho m) + fudge I, Sigma2^{-1} = eta W^T Sigma1 W / (rho d) + fudge I. Minimises nothing.
        Source: Dutilleul, "The MLE algorithm for the matrix normal distribution", J. Stat. Comput. Simul. 64 (1999); the factor is
        that of Zhang and Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010.
        """
        U, s, box = *self._spectrum(k, W, matrices), self._boxes[k]
        share = self.eta / (self.rho * W.shape[1 - k])
        with np.errstate(divide="ignore"):  # without the factor a covariance may be singular
            values = np.clip(1.0 / (share * np.append(s**2, 0.0) + fudge), box.lower, box.upper)
        return _replaced(k, matrices, SpectralMatrix(U, values[:-1], float(values[-1])))

    def value_at(self, W, matrices: Matrices) -> float:
        d, m = W.shape
        Sigma1, Sigma2 = matrices
        # through the roots, since in Sigma1 itself eigenvalues far apart cancel
        trace = float(np.square(two_sided_product(Sigma1.power(0.5), W, Sigma2.power(0.5))).sum())
        return self.eta * trace - self.rho * (m * Sigma1.log_det() + d * Sigma2.log_det())

    def quadratic(self, shape, matrices: Matrices) -> Quadratic:
        Sigma1, Sigma2 = matrices
        constant = -self.rho * (Sigma2.side * Sigma1.log_det() + Sigma1.side * Sigma2.log_det())
        return Quadratic(Sigma1.scaled(2.0 * self.eta), Sigma2, constant)


def _box(S: Range | SpectralMatrix) -> Range:
    return _GIVEN if isinstance(S, SpectralMatrix) else S


def _given_power(S: Range | SpectralMatrix | None, power: float) -> SpectralMatrix | None:
    return S.power(power) if isinstance(S, SpectralMatrix) else None


def _replaced(k: int, matrices: Matrices, new: SpectralMatrix) -> Matrices:
    return (new, matrices[1]) if k == 0 else (matrices[0], new)


# --------------------------------------------------------------------------------------------------------------
# A matrix-normal prior one precision of which is learned sparse: `matrix_normal(W, Sigma1, Sigma2) + lam * l1_norm(Sigma2)`.


@dataclass(frozen=True, eq=False)
class SparseMatrixNormal(WithoutConjugate, MatrixNormal):
    r"""Matrix-normal prior with a sparse precision: eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|) + l1 ||S||_1.

    S is Sigma1 or Sigma2, learned with W (d, m); the other one is given. The norm is over all entries of S, the diagonal too: it keeps S
    from growing without end, as the log-determinant keeps it from becoming singular, so that S needs no bounds.
    What a user types is `matrix_normal(W, Sigma1, Sigma2) + lam * l1_norm(Sigma2)`; the model makes this of it.

    Parameters
    ----------
    l1 : two numbers >= 0, one of which is > 0
        The coefficients of ||Sigma1||_1 and ||Sigma2||_1.

    Notes
    -----
    Not convex, but for W and S each by itself. S for W kept is a graphical lasso, found to rounding, with a duality gap; it is unique,
    so that the profile (S at its best) is smooth in W, with the gradient 2 eta Sigma1 W Sigma2. The profile grows like a logarithm: its
    conjugate is finite at 0 alone.
    Source: Goncalves, Von Zuben and Banerjee, "Multi-task sparse structure learning with Gaussian copula models", JMLR 17 (2016);
    Zhang and Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> structure = SparseMatrixNormal(l1=(0.0, 1.0)).bound([SpectralMatrix.of(np.eye(3)), Range()])
    >>> W = np.array([[2.0, 2.0, 0.0], [1.0, 1.5, 0.2], [0.0, 0.3, 1.0]])
    >>> _, Sigma2 = structure.update(W)
    >>> Sigma2.dense().round(3)
    array([[ 0.926, -0.567,  0.   ],
           [-0.567,  0.757,  0.   ],
           [ 0.   ,  0.   ,  1.471]])
    >>> bool(np.isclose(structure.value(W), structure.value_at(W, structure.update(W))))
    True
    """

    l1: tuple[float, float] = field(default=(0.0, 0.0), metadata={"told": True})

    convex: ClassVar[bool] = False
    needs: ClassVar[dict[str, str]] = {}
    flip_flops: ClassVar[bool] = False
    finite_dual: ClassVar[bool] = False

    @classmethod
    def of(cls, structure: MatrixNormal, l1: tuple[float, float]) -> SparseMatrixNormal:
        """The same prior with these coefficients of the norms."""
        return cls(**{f.name: getattr(structure, f.name) for f in fields(structure)}, l1=l1)

    @classmethod
    def examples(cls):
        given = np.array([[2.0, 0.5, 0, 0], [0.5, 1.0, 0.2, 0], [0, 0.2, 1.5, -0.3], [0, 0, -0.3, 0.8]])
        spread = np.diag([1.0, 2.0, 0.5, 1.5, 3.0])
        return [
            cls(l1=(0.0, 0.8)).bound([SpectralMatrix.of(np.eye(5)), Range()]),
            cls(eta=0.7, rho=1.3, l1=(0.0, 3.0)).bound([SpectralMatrix.of(spread), Range()]),
            cls(eta=2.0, rho=0.4, l1=(0.5, 0.0)).bound([Range(), SpectralMatrix.of(given)]),
        ]

    @property
    def _learned(self) -> int:
        """Which matrix is learned: 0 or 1."""
        return 0 if self.l1[0] > 0 else 1

    @cached_property
    def _last(self) -> dict[tuple, SparseInverse]:
        """Return what was found for the last weights: value, gradient and proof ask for the same."""
        return {}

    def _solved(self, W) -> SparseInverse:
        """The learned matrix for W, and its gap in the units of the problem divided by rho times the side of the other matrix."""
        W = np.ascontiguousarray(W, float)
        key = (W.shape, W.tobytes())
        found = self._last.get(key)
        if found is None:
            found = self._found(W)
            self._last.clear()
            self._last[key] = found
        return found

    def _found(self, W) -> SparseInverse:
        k, given = self._learned, cast(SpectralMatrix, (self.features, self.tasks)[1 - self._learned])
        root = given.power(0.5)
        half = two_sided_product(root, W, None) if k == 1 else two_sided_product(None, W, root).T
        count = self.rho * half.shape[0]
        return graphical_lasso(self.eta / count * (half.T @ half), self.l1[k] / count)

    # ------------------------------------------------------------------------------------------- the profile

    def value(self, W) -> float:
        return self.value_at(W, self.update(W))

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        return Structure.value_and_gradient(self, W)  # by the learned matrix: no singular values say it

    # ------------------------------------------------------------------------------------------ the matrices

    def update(self, W) -> Matrices:
        return self._with(self._solved(W).matrix)

    def update_one(self, k: int, W, matrices: Matrices) -> Matrices:
        return self.update(W) if k == self._learned else matrices

    def least_over(self, k: int, W, matrices: Matrices) -> float:
        """A lower bound of the minimum over matrix k, by duality."""
        found = self._solved(W)
        count = self.rho * W.shape[1 - self._learned]
        return self.value_at(W, self._with(found.matrix)) - count * found.gap

    def _with(self, S: np.ndarray) -> Matrices:
        learned = SymmetricMatrix.of(S)
        given = cast(SpectralMatrix, (self.features, self.tasks)[1 - self._learned])
        return (learned, given) if self._learned == 0 else (given, learned)

    def _norms(self, matrices: Matrices) -> float:
        return self.l1[self._learned] * float(np.abs(matrices[self._learned].dense()).sum())

    def value_at(self, W, matrices: Matrices) -> float:
        return super().value_at(W, matrices) + self._norms(matrices)

    def quadratic(self, shape, matrices: Matrices):
        quadratic = super().quadratic(shape, matrices)
        return type(quadratic)(quadratic.rows, quadratic.columns, quadratic.constant + self._norms(matrices))
