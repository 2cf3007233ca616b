"""What an atom is: one mathematical function as a class on plain arrays, with traits that solvers ask for.

Three kinds meet here. A `Loss` is a function of predictions; a `Regularizer` is a function of a weight block; a `Set` is the
indicator of a constraint. All are frozen dataclasses: their fields are the parameters a user may type after the argument,
so that printing, the signature of the word, the catalogue and the reference all read the same place.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from typing import ClassVar, TypeVar

import numpy as np

from mtldsl.atoms.parts import COLUMNS, ENTRIES, MATRIX, ROWS, Parts, RowProfile

__all__ = ["REGISTRY", "Atom", "Loss", "MatrixFunction", "Regularizer", "SeparableLoss", "Set", "register"]

REGISTRY: dict[str, type[Atom]] = {}

_A = TypeVar("_A", bound="Atom")


def register(cls: type[_A]) -> type[_A]:
    """Class decorator: enter an atom under its word. Tests, the catalogue and the capability table read this registry."""
    if cls.name in REGISTRY:
        raise ValueError(f"two atoms are called {cls.name!r}")
    REGISTRY[cls.name] = cls
    return cls


@dataclass(frozen=True, eq=False)
class Atom:
    """Base of all atoms. `name` is the word a user types; `formula` is LaTeX in which {} stands for the argument."""

    name: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    convex: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> list[Atom]:
        """Instances on which every law of tests/atoms/test_registry.py is run (matrices there are 5 x 4, vectors have 12 entries)."""
        return [cls()]

    @classmethod
    def typed_fields(cls) -> list[Field]:
        """The parameters that a user may type after the argument (a structure is told the rest by the model)."""
        return [field for field in fields(cls) if not {"matrix", "told"} & set(field.metadata)]

    def arguments(self) -> dict[str, object]:
        """The parameters that differ from their defaults, as typed after the argument."""
        typed = {}
        for field in self.typed_fields():
            value = getattr(self, field.name)
            default = field.default if field.default is not MISSING else MISSING
            same = default is value or (np.isscalar(value) and np.isscalar(default) and value == default)
            if not same:
                typed[field.name] = value
        return typed

    def latex(self, argument: str) -> str:
        return self.formula.replace("{}", argument)


# ---------------------------------------------------------------------------------------------------- losses


class Loss(Atom):
    """A convex function f(z) of one task's predictions z (n,), given its targets y (n,).

    `s` holds one positive weight per sample (None: all one); the law "sample weights equal replication" defines what it means.
    A loss never sees the weights W or the inputs X. Coefficients in front of a loss are applied by the compiler.
    """

    labels: ClassVar[str] = (
        "real"  # "real", "sign" for {-1, +1}, "count" for 0, 1, 2, ..., "positive" for > 0, "indicators" of labellings (`LabelGraphLoss`)
    )
    smooth: ClassVar[bool] = False  # has a gradient everywhere
    curvature: ClassVar[float] = (
        np.inf
    )  # Lipschitz constant of the gradient in one prediction (inf: none, or not smooth)
    quadratic: ClassVar[float | None] = None  # q where f(z) = q/2 sum (z - y)^2, else None
    separable: ClassVar[bool] = (
        False  # a sum over samples: may be called on the stacked samples of all tasks at once
    )
    bounded_below: ClassVar[float] = 0.0  # every loss of the language is at least this
    radial: ClassVar[bool] = (
        False  # concave in the weighted sum of squared residuals, a function of nothing else
    )
    of_residuals: ClassVar[bool] = False  # a function of z - y alone
    weighs_samples: ClassVar[bool] = True  # samples may carry weights
    exact_prox: ClassVar[bool] = True  # False: a proximal step takes Newton's method on every sample
    max_affine: ClassVar[bool] = (
        False  # a maximum of affine functions, zero among them, the highest of which is found exactly
    )
    takes_intercept: ClassVar[bool] = (
        True  # a constant added to all predictions makes a difference, but no trivial solution
    )

    @property
    def has_prox(self) -> bool:
        """Whether `prox` is there."""
        return type(self).prox is not Loss.prox

    def of_task(self, i: int) -> Loss:
        """The loss of task i, where tasks have losses of their own."""
        return self

    def for_tasks(self, names, class_sizes) -> Loss:
        """The loss with its parameters fitted to the tasks' names and (positives, negatives); ModelError where they do not fit."""
        return self

    def value(self, z, y, s=None) -> float:
        """f(z)."""
        raise NotImplementedError

    def gradient(self, z, y, s=None) -> np.ndarray:
        """The gradient where smooth; elsewhere a subgradient (then it is also `dual_point`)."""
        raise NotImplementedError

    def prox(self, z, y, step, s=None) -> np.ndarray:
        """argmin over x of step * f(x) + 1/2 ||x - z||^2."""
        raise NotImplementedError

    def conjugate(self, u, y, s=None) -> float:
        """f*(u) = sup over z of <u, z> - f(z), in closed form; +inf outside its domain."""
        raise NotImplementedError

    def dual_project(self, u, y, s=None) -> np.ndarray:
        """A point of dom f* near u (u itself where it lies inside)."""
        raise NotImplementedError

    def dual_point(self, z, y, s=None) -> np.ndarray:
        """A feasible dual vector made from predictions: a (sub)gradient at z."""
        return self.dual_project(self.gradient(z, y, s), y, s)

    def majorizer_weight(self, z, y, s=None) -> float | None:
        """v where v/2 sum_j s_j (x_j - y_j)^2 + constant is above f everywhere and touches it at x = z; None where no such is known."""
        if not self.radial:
            return None
        r = z - y
        return float(self.weight_of_norm(np.linalg.norm(r if s is None else np.sqrt(s) * r)))

    def value_of_norm(self, t):
        """f as a function of t = sqrt(sum_j s_j (z_j - y_j)^2), where `radial`; elementwise."""
        raise NotImplementedError

    def weight_of_norm(self, t):
        """The derivative of `value_of_norm` over t, which is `majorizer_weight`; inf where t = 0 is a kink."""
        raise NotImplementedError

    def conjugate_of_norm(self, n):
        """f*(u) - <u, y> as a function of n = ||u / sqrt(s)||, where `radial` and no sum over samples; dom f* is n <= 1."""
        raise NotImplementedError

    def decide(self, z) -> np.ndarray:
        """What `predict` returns from predictions z: the sign for labels in {-1, +1}, else z."""
        return np.where(z >= 0, 1.0, -1.0) if self.labels == "sign" else z


class SeparableLoss(Loss):
    """f(z) = sum_j s_j l(z_j, y_j): a subclass gives the scalar function l and everything else follows.

    Where `max_affine`, l(z, y) = max(0, one affine function of z): its slope is 0 or the other end of `dual_interval`.
    """

    separable: ClassVar[bool] = True
    entropic: ClassVar[bool] = (
        False  # l*(u, y) is the binary entropy of -y u, negated: a log a + (1 - a) log(1 - a)
    )

    @property
    def has_prox(self) -> bool:
        own = type(self).pointwise_prox is not SeparableLoss.pointwise_prox
        return own if type(self).prox is SeparableLoss.prox else super().has_prox

    def pointwise(self, z, y):
        """l(z, y), elementwise."""
        raise NotImplementedError

    def slope(self, z, y):
        """A subgradient of l in z (its derivative where smooth), elementwise."""
        raise NotImplementedError

    def pointwise_prox(self, z, y, step):
        """argmin over x of step * l(x, y) + (x - z)^2 / 2, elementwise; `step` is a scalar or an array."""
        raise NotImplementedError

    def pointwise_conjugate(self, u, y):
        """l*(u, y) for u inside `dual_interval`, elementwise (outside, the value is never used)."""
        b, c = self.dual_quadratic(y)
        return u * (0.5 * c * u + b)

    def dual_interval(self, y):
        """(low, high): the closed interval dom l*(., y), broadcastable against y."""
        return -np.inf, np.inf

    def dual_quadratic(self, y):
        """(b, c) where l*(u, y) = b u + c u^2 / 2 on `dual_interval`, c a number >= 0; None where it is no such function."""
        return None

    def value(self, z, y, s=None) -> float:
        l = self.pointwise(z, y)
        return float(np.sum(l) if s is None else np.dot(s, l))

    def gradient(self, z, y, s=None):
        g = self.slope(z, y)
        return g if s is None else s * g

    def prox(self, z, y, step, s=None):
        return self.pointwise_prox(z, y, step if s is None else step * s)

    def conjugate(self, u, y, s=None) -> float:
        u = u if s is None else u / s
        inside = np.clip(u, *self.dual_interval(y))
        # s * c / s may differ from c by a unit in the last place: for that, no projected point is outside
        if np.any(np.abs(u - inside) > 4 * np.finfo(float).eps * np.abs(inside)):
            return np.inf
        l = self.pointwise_conjugate(inside, y)
        return float(np.sum(l) if s is None else np.dot(s, l))

    def dual_project(self, u, y, s=None):
        low, high = self.dual_interval(y)
        return np.clip(u, low, high) if s is None else s * np.clip(u / s, low, high)


# ------------------------------------------------------------------------------- functions of a weight block


class MatrixFunction(Atom):
    """A function g of a matrix W (p, q), convex where `convex`: a regularizer or the indicator of a set.

    For the certificate it tells three things about the domain of its conjugate:
    `conjugate(Z)`, +inf outside; `dual_project(Z)`, a point of the *cone spanned by* dom g* near Z; `dual_gauge(Z)`, the smallest
    t >= 0 with Z in t * dom g* (0 where dom g* is everything or a cone that holds Z, +inf where no multiple holds it).
    """

    separable: ClassVar[str | None] = None  # "entries" | "rows" | "columns" | "spectrum" | "matrix" | None
    exact_prox: ClassVar[bool] = True
    accuracy: ClassVar[float] = (
        0.0  # by so much of it the value, found by an iteration, may be too large (never too small)
    )
    absorbs: ClassVar[bool] = True  # dual_gauge is finite for every Z: this term can take up any multiplier
    is_reweighted: ClassVar[bool] = (
        False  # a structure whose matrix is not an unknown, but says where a majorising quadratic touches
    )
    weighs_kernels: ClassVar[bool] = (
        False  # a structure that learns the weights of given kernels between tasks
    )
    weak_convexity: ClassVar[float] = (
        0.0  # m where adding m/2 ||W||_F^2 makes a function convex that is not (inf: none does)
    )
    strong_convexity: ClassVar[float] = 0.0  # modulus with respect to the Frobenius norm
    finite_dual: ClassVar[bool] = False  # the conjugate itself is finite everywhere (dual_gauge is always 0)
    norm: ClassVar[bool] = (
        False  # a norm or a seminorm: positively homogeneous, conjugate = indicator of the dual ball
    )
    curvature: ClassVar[float] = (
        np.inf
    )  # Lipschitz constant of the gradient, where there is one (inf: none, or not smooth)
    kinks: ClassVar[
        tuple[float, ...]
    ] = ()  # singular values > 0 at which a function of the spectrum has a kink

    groups_columns: ClassVar[bool] = (
        False  # zero on whole groups of columns, named in its field `columns` (None: those of the argument)
    )

    # What a sum with other functions needs to know (`prox_of_sum` says why). Who says nothing still combines with ridges.
    monotone: ClassVar[bool] = (
        False  # depends on the absolute values of entries only, and increases with them
    )
    order_preserving: ClassVar[bool] = (
        False  # prox maps the entries of every row by one nondecreasing function
    )
    ordinal: ClassVar[bool] = False  # subgradients depend only on the order of the entries in every row
    weights_add: ClassVar[bool] = (
        False  # in its field `weights` it is linear: c g_a + c' g_b = g_(c a + c' b), None being all ones
    )

    @property
    def homogeneous(self) -> bool:
        """Whether g(c W) = c g(W) for all c > 0: norms and cones."""
        return self.norm

    @property
    def parts(self) -> Parts:
        """Parts of W that g is a sum over: one term a part."""
        return {"entries": ENTRIES, "rows": ROWS, "columns": COLUMNS}.get(self.separable, MATRIX)

    @property
    def scales(self) -> Parts | None:
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
        slope = self.gradient(W)
        return slope, slope

    def spread(self, per_part, shape) -> np.ndarray:
        """One number for each of its weights -> an array that broadcasts against W."""
        return per_part

    def on_rows(self, rows, shape: tuple[int, int]) -> MatrixFunction | None:
        """The function of these rows alone, of an argument of this shape whose other rows are zero; None: it says of none."""
        return None

    def two_sided_quadratic(self) -> tuple | None:
        """The `SpectralMatrix` pair (A, B) where g(W) = 1/2 tr(A W B W^T), else None."""
        return None

    @property
    def is_smooth(self) -> bool:
        """Whether there is a gradient everywhere."""
        return bool(np.isfinite(self.curvature))

    def gradient(self, W) -> np.ndarray:
        """The gradient, where `is_smooth`."""
        raise NotImplementedError

    def value(self, W) -> float:
        raise NotImplementedError

    def prox(self, W, step) -> np.ndarray:
        """argmin over V of step * g(V) + 1/2 ||V - W||_F^2."""
        raise NotImplementedError

    def conjugate(self, Z) -> float:
        """g*(Z) = sup over W of <Z, W> - g(W), in closed form."""
        raise NotImplementedError

    def dual_gauge(self, Z) -> float:
        raise NotImplementedError

    def dual_project(self, Z) -> np.ndarray:
        return Z

    def on_columns(self, columns, shape: tuple[int, int]) -> MatrixFunction | None:
        """The function of these columns alone, where g is a sum over the columns of an argument of this shape; None: it says of none."""
        return None

    def task_quadratic(self, n_columns: int) -> np.ndarray | None:
        """The matrix L (n_columns, n_columns) where g(W) = 1/2 tr(W L W^T), else None."""
        return None

    def check(self, shape: tuple[int, int]) -> str | None:
        """None where the function fits an argument of this shape, else one sentence that says what does not fit."""
        return None

    def stated(self, shape: tuple[int, int]) -> MatrixFunction:
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
        """The set {W : g(W) <= radius} where it has an exact projection, else None."""
        return None


class Set(MatrixFunction):
    """A closed set C, convex where `convex`; as a function, its indicator. `prox` is the projection, `conjugate` the support function."""

    def holds_all(self, shape: tuple[int, int]) -> bool:
        """Whether every matrix of this shape is in C, so that the constraint says nothing."""
        return False

    def violation(self, W) -> float:
        """How far W is outside, in the units of the constraint as typed: 0 inside."""
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
