"""The regularizer of multi-task multiple kernel learning: similarities between tasks, combined with weights that are learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from mtldsl.atoms.atom import in_parentheses, register
from mtldsl.atoms.learned_structures.kernel_weights import best_weights, in_range
from mtldsl.atoms.learned_structures.structure import Learned, Structure, TriangularFactor
from mtldsl.atoms.learned_structures.task_kernels import KernelCell, KernelWeightBall, TaskKernel, cells_of
from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.errors import ModelError
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.parallel import on_one_blas_thread


@dataclass(frozen=True)
class KernelNormSettings:
    """Limits of the norm of many kernels.

    outside_share : part of W outside the range of the kernels that counts as rounding
    kept_matrices : matrices that are kept with their best weights
    pivot_ratio   : least ratio of pivots at which a Cholesky factor tells the range of a kernel
    """

    outside_share: float = 1e-8
    kept_matrices: int = 3
    pivot_ratio: float = 1e-7


SETTINGS = KernelNormSettings()


@register
@dataclass(frozen=True, eq=False)
class MKLNorm(Structure, Regularizer):
    r"""Multi-task multiple kernel learning: 1/2 sum_m ||W_m||^2_{Q_m} / theta_m over the best parts W = sum_m W_m, theta learned.

    Every similarity m says by a kernel R_m = Q_m^{-1} between the T tasks which of them are alike; theta_m, learned, says how much that
    counts. W (d, T) is the sum of the parts; as a function of W it is 1/2 tr(W K^+ W^T) with K = sum_m theta_m R_m, +inf where W
    leaves the range of K. A similarity may be about some features only (a view): then the same holds on its rows of W.

    Parameters
    ----------
    similarities : list of `TaskSimilarity`
        `union()`, `individual()`, `identity()`, `clusters(...)`, `tree(...)`, `laplacian(...)`, `evgeniou_pontil(...)`,
        `domain_adaptation()`, `from_kernel(R)`, `from_similarity(Q)`; helpers that stand for several, one an indicator, count as
        several.
    theta : `KernelWeights`, or array (M,) of weights >= 0 that are given
        Where it is an unknown, the model bounds it: `p_norm(theta, p) <= 1`.
    p : number in [1, inf], in place of theta
        The same with theta eliminated: half a squared norm of W. p = 1 leaves some weights at zero; p = inf means theta = 1.

    Raises
    ------
    ModelError
        Where theta has no bound, a similarity is not positive semidefinite or does not fit the tasks, or a feature is in none.

    Notes
    -----
    Convex in W and theta together. Closed form (E.1): theta_m = a_m^{1/(p+1)} / (sum_k a_k^{p/(p+1)})^{1/p}, a_m = ||W_m||^2_{Q_m}.
    Conjugate of the eliminated form: 1/2 ||b||_{p*} with b_m = tr(Z R_m Z^T) and 1/p + 1/p* = 1 (Problem 3). Value and prox of it
    need the best theta for W: an interior point method in M unknowns. Rank-one kernels cost a vector each.
    Source: Widmer, Kloft, Goernitz and Raetsch, "Multi-task multiple kernel learning" (MT-MKL), Problems 1 to 3 and (E.1).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> together = TaskKernel("union", sparse.csr_array([[1.0], [1.0]]))
    >>> apart = [TaskKernel(f"task{t}", sparse.csr_array(np.eye(2)[:, [t]])) for t in range(2)]
    >>> norm = MKLNorm((together, *apart), p=1.0)
    >>> W = np.array([[1.0, 1.0], [2.0, 2.0]])  # two equal tasks: all weight on what they share
    >>> round(norm.value(W), 9), norm.update(W)[0].round(6) + 0.0
    (2.5, array([1., 0., 0.]))
    """

    kernels: tuple[TaskKernel, ...]
    p: float = 2.0
    about: KernelWeightBall | np.ndarray | None = field(default=None, metadata={"matrix": 0})

    name: ClassVar[str] = "mkl_norm"
    instead_of_transpose: ClassVar[str] = "mkl_norm({0}, similarities), whose similarities are of columns"
    unchecked: ClassVar[str] = (
        "its value is a minimum over kernel weights, found by an iteration that has its own tolerance"
    )
    meaning: ClassVar[str] = (
        r"multi-task multiple kernel learning: $K_\theta = \sum_k \theta_k R_k$, with the similarities "
        "$R_k$ between tasks, and $^+$ the pseudoinverse"
    )
    formula: ClassVar[str] = r"\tfrac12 \operatorname{tr}\big({} K_\theta^{+} {}^\top\big)"
    learns: ClassVar[tuple[Learned, ...]] = (Learned("theta", "similarities", "weights"),)
    symbols: ClassVar[dict[str, str]] = {"theta": r"\theta"}
    weighs_kernels: ClassVar[bool] = True
    finite_dual: ClassVar[bool] = True

    @classmethod
    def examples(cls):
        unit = sparse.csr_array(np.eye(4))
        pairs = sparse.csr_array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        everyone = TaskKernel("union", sparse.csr_array(np.ones((4, 1))))
        tree = (
            everyone,
            *(TaskKernel(f"pair{k}", pairs[:, [k]]) for k in range(2)),
            *(TaskKernel(f"task{t}", unit[:, [t]]) for t in range(4)),
        )
        dense = TaskKernel(
            "near", sparse.csr_array(np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(range(4), range(4)))))
        )
        first, last = np.arange(3), np.arange(3, 5)
        views = (
            replace(everyone, columns=first),
            replace(dense, columns=first),
            replace(dense, name="last", columns=last),
        )
        return [
            cls(tree),
            cls(tree, p=1.0),
            cls((dense, TaskKernel("own", unit)), p=3.0),
            cls(tree, p=np.inf),
            cls(views, p=1.5),
            cls((everyone, *tree[1:3])),  # a singular kernel: W has to be equal inside the pairs
            cls((dense, everyone), about=np.array([0.5, 2.0])),
            cls((dense, everyone), about=KernelWeightBall(2.0, 3.0)),
        ]

    @classmethod
    def typed_fields(cls):
        """The kernels are typed as similarities, of which they are made."""
        return [one for one in super().typed_fields() if one.name == "p"]

    # ------------------------------------------------------------------------------------------------- what it is of

    @property
    def weights_ball(self) -> KernelWeightBall | None:
        """Return what theta may be; None where it is given."""
        if isinstance(self.about, np.ndarray):
            return None
        return KernelWeightBall(self.p) if self.about is None else self.about

    def bound(self, descriptions) -> MKLNorm:
        (about,) = descriptions
        return replace(self, about=about, p=about.p if isinstance(about, KernelWeightBall) else self.p)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the weights, kernel by kernel."""
        return tuple(kernel.name for kernel in self.kernels)

    @property
    def views(self) -> tuple[str, ...]:
        """Return what features every kernel is about, "" for all."""
        return tuple(kernel.view for kernel in self.kernels)

    def cells(self, n_rows: int) -> tuple[KernelCell, ...]:
        """The rows of W, parted by the kernels that act on them."""
        if n_rows not in self._cells:
            self._cells[n_rows] = cells_of(self.kernels, n_rows)
        return self._cells[n_rows]

    @cached_property
    def _cells(self) -> dict:
        return {}

    def check(self, shape):
        n_rows, n_tasks = shape
        for kernel in self.kernels:
            if kernel.n_tasks != n_tasks:
                return f"the similarity {kernel.name!r} is of {kernel.n_tasks} tasks, but the argument has {n_tasks} columns"
            if kernel.columns is not None and (kernel.columns.size == 0 or kernel.columns[-1] >= n_rows):
                return f"the similarity {kernel.name!r} is about features outside the {n_rows} rows of the argument"
        covered = np.zeros(n_rows, dtype=bool)
        for cell in self.cells(n_rows):
            covered[cell.rows] = True
        if not covered.all():
            return (
                f"feature {int(np.argmin(covered))} is in no similarity, so that its weights would have to be zero; "
                "add one without columns=..., or leave the feature out"
            )
        return None

    def latex(self, argument, symbols=None):
        theta = (symbols or {}).get("theta", r"\theta")
        inside = in_parentheses(argument)
        text = rf"\tfrac12 \operatorname{{tr}}\big({inside} K_{{{theta}}}^{{+}} {inside}^\top\big)"
        if symbols:
            return text
        p = r"\infty" if np.isinf(self.p) else f"{self.p:g}"
        return rf"\min_{{\theta \geq 0, \|\theta\|_{{{p}}} \leq 1}} {text}"

    # ------------------------------------------------------------------------------------------------------ kept

    def start(self, shape):
        ball = self.weights_ball
        return (np.asarray(self.about) if ball is None else ball.uniform(len(self.kernels)),)

    def update(self, W):
        return (self._weights(W, 0.0),)

    def value_at(self, W, matrices: tuple[np.ndarray, ...]) -> float:
        (theta,) = matrices
        forms = [_inverse_form(cell, theta, W[cell.rows]) for cell in self.cells(len(W))]
        beyond = sum(float(np.vdot(outside, outside)) for _, outside in forms if outside is not None)
        if beyond > SETTINGS.outside_share**2 * float(np.vdot(W, W)):
            return np.inf
        return sum(value for value, _ in forms)

    def outside(self, W):
        theta, found = self._weights(W, 0.0), np.zeros(np.shape(W))
        for cell in self.cells(len(W)):
            _, outside = _inverse_form(cell, theta, W[cell.rows])
            if outside is not None:
                found[cell.rows] += outside
        return found

    def sizes(self, Z) -> np.ndarray:
        """b_m = tr(Z R_m Z^T) of every kernel."""
        b = np.zeros(len(self.kernels))
        for cell in self.cells(len(Z)):
            b[cell.members] += cell.sizes(Z[cell.rows])
        return b

    # ------------------------------------------------------------------------------------------------ eliminated

    def value(self, W):
        if not np.any(W):
            return 0.0
        return self.value_at(W, self.update(W))

    def prox(self, W, step):
        theta = self._weights(W, step)
        V = np.array(W, float)
        for cell in self.cells(len(V)):
            if step > 0.0 and cell.nodes.are_few:
                V[cell.rows] -= step * cell.nodes.at(cell.of_columns(theta), step).form(V[cell.rows])[1].T
                continue
            K = cell.kernel(theta)
            shifted = K + step * np.eye(len(K))
            if step == 0.0:  # the limit: the nearest point in the range of K, which may be singular
                V[cell.rows] = V[cell.rows] @ (K @ np.linalg.pinv(K, hermitian=True))
            else:
                V[cell.rows] = np.linalg.solve(shifted, K @ V[cell.rows].T).T
        return V

    def conjugate(self, Z):
        b, ball = self.sizes(Z), self.weights_ball
        return 0.5 * (float(np.asarray(self.about) @ b) if ball is None else ball.support(b))

    def _weights(self, W, delta: float) -> np.ndarray:
        """Those that are given, else the best ones in the ball."""
        ball = self.weights_ball
        if ball is None:
            return np.asarray(self.about)
        if delta > 0.0:
            return self._best(W, ball, delta)
        # a solver, its certificate and its guesses ask for the same weights: the last ones are kept
        for known, theta in self._last["seen"]:
            if np.array_equal(known, W):
                return theta.copy()
        theta = self._best(W, ball, 0.0)
        older = self._last["seen"][: SETTINGS.kept_matrices - 1]
        self._last["seen"] = (np.array(W, float), theta.copy()), *older
        return theta

    @cached_property
    def _last(self) -> dict[str, tuple]:
        return {"seen": ()}

    @on_one_blas_thread
    def _best(self, W, ball: KernelWeightBall, delta: float) -> np.ndarray:
        pairs = []
        for cell in self.cells(len(W)):
            rows = W[cell.rows]
            if delta == 0.0:
                cell, rows = in_range(cell, rows)
            pairs.append((cell, rows))
        return best_weights(pairs, len(self.kernels), ball, delta)


def _inverse_form(cell: KernelCell, theta, W) -> tuple[float, np.ndarray | None]:
    """(1/2 tr(W K^+ W^T), what of W lies outside the range of K, None where that is all matrices)."""
    try:
        if cell.nodes.are_few:
            few = cell.nodes.at(cell.of_columns(theta))
            if few.is_well_conditioned:
                return few.form(W)[0], None
    except np.linalg.LinAlgError:
        pass
    K = cell.kernel(theta)
    try:
        factor = TriangularFactor(K)
        if factor.pivots.min() > SETTINGS.pivot_ratio * factor.pivots.max():
            half = factor.half(W.T)
            return 0.5 * float(np.vdot(half, half)), None
    except np.linalg.LinAlgError:
        pass
    values, basis = np.linalg.eigh(K)
    held = values > 1e-14 * len(K) * max(values[-1], np.finfo(float).tiny)
    along = W @ basis
    value = 0.5 * float(np.sum(np.sum(along[:, held] ** 2, axis=0) / values[held]))
    return value, along[:, ~held] @ basis[:, ~held].T


def checked_weights(theta, n: int, typed: str) -> np.ndarray:
    """Given kernel weights as an array (n,); ModelError where they are none."""
    array = read_dense(theta, f"{typed}: given weights", ModelError)
    if array.shape != (n,) or not np.isfinite(array).all() or array.min() < 0 or not array.any():
        raise ModelError(
            f"given weights must be {n} finite numbers >= 0, one a similarity and not all zero, such as np.ones({n})",
            term=typed,
        )
    return array
