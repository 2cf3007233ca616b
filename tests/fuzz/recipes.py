"""What a random model is, as plain data: typed in the language by `typed`, evaluated by `formulas`, stated for Clarabel by `oracle`."""

from dataclasses import dataclass, field

import numpy as np

#: words of the spectrum that are not convex
NOT_CONVEX = ("log_rank", "capped_trace_norm", "schatten_norm")


@dataclass(frozen=True)
class Part:
    """coefficient * left @ block @ right; None is the identity."""

    block: str
    coefficient: float = 1.0
    left: np.ndarray | None = None
    right: np.ndarray | None = None


@dataclass(frozen=True)
class Expression:
    """A sum of parts + offset, and how it is typed (with `constants` by name)."""

    text: str
    parts: tuple[Part, ...]
    offset: np.ndarray | None = None
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def plain(self) -> str | None:
        """The block's name where the expression is just that block."""
        (part, *others) = self.parts
        alone = not others and self.offset is None and part.coefficient == 1.0
        return part.block if alone and part.left is None and part.right is None else None


@dataclass(frozen=True)
class Data:
    """m tasks: one X for all or a list of them; targets (n, m) with NaN where missing, or a list of (n_i,)."""

    X: np.ndarray | list[np.ndarray]
    Y: np.ndarray | list[np.ndarray]
    weights: np.ndarray | list[np.ndarray] | None
    labels: str  # "real", "sign", "count"
    sparse: bool = False  # handed over as CSR

    @property
    def is_shared(self) -> bool:
        return isinstance(self.X, np.ndarray)

    @property
    def n_features(self) -> int:
        return (self.X if self.is_shared else self.X[0]).shape[1]

    @property
    def n_tasks(self) -> int:
        return self.Y.shape[1] if self.is_shared else len(self.X)

    def tasks(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """(inputs, labels, sample weights) of every task, its labelled rows only."""
        found = []
        for i in range(self.n_tasks):
            X = self.X if self.is_shared else self.X[i]
            y = self.Y[:, i] if self.is_shared else self.Y[i]
            s = self.weights
            if s is not None:
                s = s[i] if isinstance(s, list) else s if s.ndim == 1 else s[:, i]
            kept = ~np.isnan(y)
            found.append((X[kept], y[kept], None if s is None else s[kept]))
        return found


@dataclass(frozen=True)
class Loss:
    word: str
    options: dict
    coefficient: float
    mean: bool
    argument: Expression
    data: int  # which of the model's data


@dataclass(frozen=True)
class Penalty:
    word: str
    options: dict
    coefficient: float
    argument: Expression


@dataclass(frozen=True)
class Constraint:
    """kind: at_least, at_most, equal_to (`bound`), a norm's word (`bound` is the radius), columns_on_simplex (`bound` is the total)."""

    kind: str
    argument: Expression
    bound: float | np.ndarray


@dataclass(frozen=True)
class Model:
    seed: int
    blocks: dict[str, bool]  # name -> has an intercept
    data: tuple[Data, ...]
    losses: tuple[Loss, ...]
    penalties: tuple[Penalty, ...]
    constraints: tuple[Constraint, ...]
    feasible: bool  # known by construction
    tags: tuple[str, ...]  # how the data were made: what a table of results is sorted by

    @property
    def shape(self) -> tuple[int, int]:
        return self.data[0].n_features, self.data[0].n_tasks

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """The shape of every block: a column a task, but over a graph of K labels 2 a label and 4 a pair of them."""
        d, m = self.shape
        if set(self.blocks) == {"U", "V"}:
            return {"U": (d, 2 * m), "V": (d, 2 * m * (m - 1))}
        return dict.fromkeys(self.blocks, (d, m))

    @property
    def is_convex(self) -> bool:
        return not any(p.word in NOT_CONVEX and p.coefficient > 0 for p in self.penalties)
