"""Constraint sets: bounds on entries, equality, bounded rank, and columns on a simplex."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ENTRIES, broadcasts, in_parentheses, is_same_along_rows, register
from mtldsl.atoms.matrix_function import Set, WithoutConjugate
from mtldsl.atoms.prox.shrinkage import water_level
from mtldsl.atoms.prox.spectral_matrix import map_singular_values, singular_values
from mtldsl.errors import ModelError
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.validation import quoted

# --------------------------------------------------------------------------------------------------------------
# Entrywise comparisons with constants: what `W >= bound`, `W <= bound` and `W == bound` become.


class _BoundSet(Set):
    """A subclass has a field `bound`, a number or an array that broadcasts to the shape of W."""

    bound: float | np.ndarray
    separable: ClassVar[str] = "entries"
    symbol: ClassVar[str] = ""
    no_bound: ClassVar[float | None] = None  # the infinity that means "no bound here"

    @property
    def interval(self) -> tuple:
        raise NotImplementedError

    @property
    def homogeneous(self) -> bool:
        """A cone: every end is 0, or there is none."""
        return all(bool(np.all((np.asarray(end) == 0) | np.isinf(end))) for end in self.interval)

    @property
    def scales(self):
        return ENTRIES if self.homogeneous else None

    @property
    def order_preserving(self) -> bool:
        return is_same_along_rows(self.bound)

    def on_rows(self, rows, shape):
        return self._part(rows, shape)

    def on_columns(self, columns, shape):
        return self._part((slice(None), columns), shape)

    def _part(self, of, shape):
        return (
            self if np.ndim(self.bound) == 0 else replace(self, bound=np.broadcast_to(self.bound, shape)[of])
        )

    def __post_init__(self):
        object.__setattr__(self, "bound", _checked(self.bound, self.symbol, self.no_bound))

    def check(self, shape):
        if broadcasts(self.bound, shape):
            return None
        return (
            f"a bound of shape {np.shape(self.bound)} does not broadcast to the argument's shape "
            f"{tuple(shape)}; write a number or an array of that shape"
        )

    def latex(self, argument):
        shown = "B" if isinstance(self.bound, np.ndarray) else f"{self.bound:g}"
        return self.formula.replace("B", shown).replace("{}", argument)


class _OneSidedSet(_BoundSet):
    """`side` = +1: W >= bound, whose multipliers are <= 0; `side` = -1: W <= bound, multipliers >= 0."""

    absorbs: ClassVar[bool] = False
    side: ClassVar[float] = 0.0

    def violation(self, W):
        return float(np.max(self.side * (self.bound - W), initial=0.0))

    def support(self, Z):
        if self.dual_gauge(Z) > 0:
            return np.inf
        # where there is no bound the multiplier is 0, and 0 * inf is not a number
        return float(np.sum(np.where(np.isfinite(self.bound), self.bound, 0.0) * Z))

    def dual_gauge(self, Z):
        return 0.0 if np.array_equal(self.dual_project(Z), Z) else np.inf

    def dual_project(self, Z):
        one_sided = np.minimum(Z, 0.0) if self.side > 0 else np.maximum(Z, 0.0)
        return np.where(np.isfinite(self.bound), one_sided, 0.0)


@register
@dataclass(frozen=True, eq=False)
class AtLeast(_OneSidedSet):
    r"""The matrices with W >= bound, entry by entry; typed `W >= bound`.

    Parameters
    ----------
    bound : number or array that broadcasts to the shape of W
        -inf where an entry has no bound.

    Raises
    ------
    ModelError
        Where a bound is NaN or +inf, or does not broadcast to the argument's shape.

    Notes
    -----
    Projection: max(W, bound). Support function: <bound, Z> where Z <= 0, and Z = 0 where there is no bound;
    +inf elsewhere. Violation: the largest (bound - W)_+.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[-1.0, 2.0], [0.5, -3.0]])
    >>> AtLeast(0.0).project(W)
    array([[0. , 2. ], [0.5, 0. ]])
    >>> AtLeast([0.0, -np.inf]).violation(W)
    1.0
    """

    bound: float | np.ndarray

    name: ClassVar[str] = "at_least"
    formula: ClassVar[str] = r"{} \geq B"
    symbol: ClassVar[str] = ">="
    no_bound: ClassVar[float] = -np.inf
    side: ClassVar[float] = 1.0

    @classmethod
    def examples(cls):
        per_entry = np.arange(20.0).reshape(5, 4) / 10 - 1.0
        return [
            cls(0.0),
            cls(-0.5),
            cls(per_entry),
            cls(np.array([0.0, -np.inf, 0.5, -1.0])),
        ]

    @property
    def interval(self):
        return self.bound, np.inf

    def project(self, W):
        return np.maximum(W, self.bound)


@register
@dataclass(frozen=True, eq=False)
class AtMost(_OneSidedSet):
    r"""The matrices with W <= bound, entry by entry; typed `W <= bound`.

    Parameters
    ----------
    bound : number or array that broadcasts to the shape of W
        +inf where an entry has no bound.

    Raises
    ------
    ModelError
        Where a bound is NaN or -inf, or does not broadcast to the argument's shape.

    Notes
    -----
    Projection: min(W, bound). Support function: <bound, Z> where Z >= 0, and Z = 0 where there is no bound;
    +inf elsewhere. Violation: the largest (W - bound)_+.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[-1.0, 2.0], [0.5, -3.0]])
    >>> AtMost(0.25).project(W)
    array([[-1.  ,  0.25], [ 0.25, -3.  ]])
    >>> AtMost(0.25).violation(W)
    1.75
    """

    bound: float | np.ndarray

    name: ClassVar[str] = "at_most"
    formula: ClassVar[str] = r"{} \leq B"
    symbol: ClassVar[str] = "<="
    no_bound: ClassVar[float] = np.inf
    side: ClassVar[float] = -1.0

    @classmethod
    def examples(cls):
        per_entry = 1.0 - np.arange(20.0).reshape(5, 4) / 10
        return [
            cls(0.0),
            cls(0.5),
            cls(per_entry),
            cls(np.array([[0.0], [np.inf], [0.5], [-1.0], [np.inf]])),
        ]

    @property
    def interval(self):
        return -np.inf, self.bound

    def project(self, W):
        return np.minimum(W, self.bound)


@register
@dataclass(frozen=True, eq=False)
class EqualTo(_BoundSet):
    r"""The one matrix W = bound; typed `W == bound`. With an expression on the left it is a linear equality,
    such as `W.sum(axis=0) == 1`.

    Parameters
    ----------
    bound : number or array that broadcasts to the shape of W
        The value of every entry.

    Raises
    ------
    ModelError
        Where a value is not finite or does not broadcast to the argument's shape.

    Notes
    -----
    Projection: bound. Support function: <bound, Z>, finite for every Z. Violation: the largest |W - bound|.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[-1.0, 2.0], [0.5, -3.0]])
    >>> EqualTo([1.0, 0.0]).project(W)
    array([[1., 0.], [1., 0.]])
    >>> EqualTo([1.0, 0.0]).violation(W)
    3.0
    """

    bound: float | np.ndarray

    name: ClassVar[str] = "equal_to"
    formula: ClassVar[str] = r"{} = B"
    symbol: ClassVar[str] = "=="
    finite_dual: ClassVar[bool] = True

    @classmethod
    def examples(cls):
        per_entry = np.arange(20.0).reshape(5, 4) - 9.0
        return [cls(0.0), cls(1.5), cls(per_entry), cls(np.array([1.0, -1.0, 0.0, 2.0]))]

    @property
    def interval(self):
        return self.bound, self.bound

    def project(self, W):
        return np.array(np.broadcast_to(self.bound, W.shape))

    def violation(self, W):
        return float(np.max(np.abs(W - self.bound), initial=0.0))

    def support(self, Z):
        return float(np.sum(self.bound * Z))


def _checked(bound, symbol: str, no_bound: float | None) -> float | np.ndarray:
    """A float or a read-only float64 copy; ModelError where an entry is NaN or an infinity nothing obeys."""
    typed = f"... {symbol} {quoted(bound)}"
    checked = read_dense(bound, f"{typed}: the right-hand side", ModelError)
    bad = ~np.isfinite(checked) & (True if no_bound is None else checked != no_bound)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at {place[0] if len(place) == 1 else place}" if place else ""
        instead = "" if no_bound is None else f" ({no_bound:g} means: no bound there)"
        raise ModelError(
            f"the right-hand side{where} is {checked[place]}",
            term=typed,
            write_instead=f"write finite numbers{instead}",
        )
    if checked.ndim == 0:
        return float(checked)
    checked.flags.writeable = False
    return checked


# --------------------------------------------------------------------------------------------------------------
# Matrices of low rank: what `rank(W) <= r` becomes.


@register
@dataclass(frozen=True, eq=False)
class RankAtMost(WithoutConjugate, Set):
    r"""The matrices of rank <= r, not convex; typed `rank(W) <= r`.

    Parameters
    ----------
    radius : whole number >= 1, the rank r

    Raises
    ------
    ModelError
        Where r is not a whole number >= 1.

    Notes
    -----
    Projection: the r largest singular values are kept (Eckart and Young; where the r-th and the next are equal there are several,
    and this is one of them). Violation: the norm of the others.
    Source: Izenman, "Reduced-rank regression for the multivariate linear model", J. Multivariate Anal. 5 (1975).

    Examples
    --------
    >>> import numpy as np
    >>> RankAtMost(1).project(np.diag([3.0, 1.0])).diagonal()
    array([3., 0.])
    >>> RankAtMost(1).violation(np.diag([3.0, 1.0]))
    1.0
    """

    radius: float

    name: ClassVar[str] = "rank_at_most"
    formula: ClassVar[str] = r"\operatorname{rank}({}) \leq \rho"
    separable: ClassVar[str] = "spectrum"
    convex: ClassVar[bool] = False
    weak_convexity: ClassVar[float] = np.inf
    is_bounded: ClassVar[bool] = True

    @property
    def rank(self) -> int:
        """Return how many singular values need not be zero."""
        return int(self.radius)

    def __post_init__(self):
        r = self.radius
        whole = not isinstance(r, bool) and np.isfinite(r) and r == int(r)
        if not (whole and r >= 1):
            raise ModelError(
                f"rank(...) <= {r if isinstance(r, bool) else f'{r:g}'}: a rank is bounded by a whole number >= 1, as in rank(W) <= 3"
            )
        object.__setattr__(self, "radius", int(self.radius))

    @classmethod
    def examples(cls):
        return [cls(1), cls(2), cls(4)]

    def project(self, W):
        return map_singular_values(W, lambda s: np.where(np.arange(s.size) < self.radius, s, 0.0))

    def violation(self, W):
        return float(np.linalg.norm(singular_values(W)[self.radius :]))

    def support(self, Z):
        """+inf but at zero: multiples of matrices of rank one are in the set."""
        return self.conjugate(Z)

    def holds_all(self, shape):
        return self.radius >= min(shape)

    def latex(self, argument):
        return self.formula.replace(r"\rho", str(self.radius)).replace("{}", argument)


# --------------------------------------------------------------------------------------------------------------
# The simplex, column by column.


@register
@dataclass(frozen=True, eq=False)
class ColumnsOnSimplex(Set):
    r"""The matrices whose columns are >= 0 and each sum to `total`: every task's weights are shares.

    Typing `W >= 0` together with `W.sum(axis=0) == total` means the same.

    Parameters
    ----------
    total : number > 0, default 1.0

    Raises
    ------
    ModelError
        Where total is not a finite number > 0.

    Notes
    -----
    Projection: (w_i - t_i)_+ for each column, with the t_i that makes it sum to total, found by sorting.
    Support function: total times the sum over columns of their largest entry. Violation: the largest of
    (-W_ij)_+ and |sum of a column - total|.
    Source: Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in
    high dimensions", ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[0.5, 3.0], [0.25, 0.0], [-1.0, 0.0]])
    >>> ColumnsOnSimplex().project(W)
    array([[0.625, 1. ], [0.375, 0. ], [0. , 0. ]])
    >>> ColumnsOnSimplex().violation(W)
    2.0
    """

    total: float = 1.0

    name: ClassVar[str] = "columns_on_simplex"
    instead_of_transpose: ClassVar[str] = "two constraints, {0} >= 0 and {0}.sum(axis=1) == 1"
    meaning: ClassVar[str] = "every column is nonnegative and has the sum <total>"
    formula: ClassVar[str] = r"({})_i \geq 0,\; \mathbf{1}^\top ({})_i = \tau \;\; \forall i"
    separable: ClassVar[str] = "columns"
    finite_dual: ClassVar[bool] = True

    def __post_init__(self):
        self.keep_number("total", lambda t: t > 0, "a finite number > 0, such as total=1.0")

    @classmethod
    def examples(cls):
        return [cls(), cls(0.3), cls(10.0)]

    def latex(self, argument):
        return self.formula.replace(r"\tau", f"{self.total:g}").replace("({})", in_parentheses(argument))

    def on_columns(self, columns, shape):
        return self

    def project(self, W):
        # The projection does not change with a constant added to a column; without it nothing cancels.
        lowered = W - W.max(axis=0)
        return np.maximum(lowered - water_level(lowered, self.total), 0.0)

    def violation(self, W):
        return float(max(np.max(-W, initial=0.0), np.abs(W.sum(axis=0) - self.total).max(initial=0.0)))

    def support(self, Z):
        return float(self.total * Z.max(axis=0).sum())
