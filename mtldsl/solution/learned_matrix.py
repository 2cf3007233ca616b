"""A matrix that was learned beside the weights, as the solution shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.calculus.symmetric_matrix import SymmetricMatrix
from mtldsl.compile.checks import names_in
from mtldsl.errors import ModelError
from mtldsl.language.unknowns.ranges import RangeConstraint, ranges_of
from mtldsl.solution.readout import Run
from mtldsl.system.archives import require_shapes
from mtldsl.system.memory import require_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearnedMatrix", "correlation_of"]

_KINDS = ("precision", "covariance")

#: More names than this are not printed.
_PRINTED = 10


def correlation_of(covariance) -> np.ndarray:
    """A covariance divided by the standard deviations of its rows and columns; NaN beside a variance of 0."""
    deviations = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.clip(covariance / np.outer(deviations, deviations), -1.0, 1.0)
    correlation[np.diag_indices_from(correlation)] = 1.0
    return correlation


@dataclass(frozen=True, eq=False)
class LearnedMatrix:
    """A learned precision or covariance of features or tasks: `solution.Sigma1`, `solution.Omega`.

    precision, covariance, correlation  arrays (n, n); the learned one of the first two, its inverse, and the covariance divided
                                        by the standard deviations of its row and column
    names     of rows and columns
    axis      "features" or "tasks"
    kind      what the model learned, "precision" or "covariance"; also `np.asarray(solution.Sigma1)`
    spectral  its eigenvectors and eigenvalues, in memory linear in n: `spectral.basis`, `.values`, `.rest`

    A precision and a covariance are determined up to the scale that they share with the other matrix of the model: compare
    correlations. ModelError where a singular covariance is to be inverted, SolverError where (n, n) does not fit into memory.

    >>> import numpy as np
    >>> S = LearnedMatrix("Sigma2", "tasks", "precision", ("a", "b"), SpectralMatrix.of(np.array([[2.0, -1.0], [-1.0, 2.0]])))
    >>> S.correlation.round(12)
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> print(S)
    correlation of tasks (from the learned precision Sigma2)
             a      b
    a    +1.00  +0.50
    b    +0.50  +1.00
    """

    name: str
    axis: str
    kind: str
    names: tuple[str, ...]
    spectral: SpectralMatrix

    @classmethod
    def read(cls, run: Run) -> dict[str, LearnedMatrix]:
        """Every matrix that a model learned, by name; those whose bounds leave one matrix only too."""
        statement = run.statement
        matrices = [unknown for unknown in statement.learned if unknown.kind in _KINDS]
        if not matrices:
            return {}
        found = dict(run.structures)
        ranges = ranges_of(c for c in statement.constraints if isinstance(c, RangeConstraint))
        for unknown in matrices:
            about = ranges.get(unknown)
            if about is not None and about.lower == about.upper:  # nothing is left to learn
                found[unknown.name] = SpectralMatrix.multiple_of_identity(about.lower, unknown.side)
        return {
            one.name: cls(one.name, one.axis, one.kind, names_in(statement.objective, one), spectral)
            for one in matrices
            if isinstance(
                spectral := found.get(one.name), SpectralMatrix
            )  # its term may have the coefficient 0
        }

    @property
    def shape(self) -> tuple[int, int]:
        return self.spectral.shape

    @property
    def precision(self) -> np.ndarray:
        return self._dense(inverse=self.kind == "covariance")

    @property
    def covariance(self) -> np.ndarray:
        return self._dense(inverse=self.kind == "precision")

    @property
    def correlation(self) -> np.ndarray:
        """NaN beside a feature or task of variance 0."""
        return correlation_of(self.covariance)

    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues of the matrix that was learned, smallest first."""
        return self.spectral.eigenvalues()

    def plot(self, ax: Axes | None = None, **options) -> Axes:
        """The correlations as a map, on these matplotlib Axes (None: in a new figure); options as in `mtl.report.heatmap`."""
        from mtldsl.pictures.heatmap import heatmap

        return heatmap(self, ax=ax, **options)

    def frame(self, view: str = "correlation"):
        """A labelled pandas DataFrame of the "correlation", "covariance" or "precision"; ImportError where pandas is absent."""
        from pandas import DataFrame

        if view not in ("correlation", "covariance", "precision"):
            raise ModelError(
                f"{self.name}.frame({view!r}): there is no such view",
                write_instead="write 'correlation', 'covariance' or 'precision'",
            )
        return DataFrame(getattr(self, view), index=list(self.names), columns=list(self.names))

    def stored(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(plain facts, arrays) to keep in a file."""
        facts = {"axis": self.axis, "kind": self.kind, "names": self.names, "rest": self.spectral.rest}
        arrays = {"basis": self.spectral.basis, "values": self.spectral.values}
        if isinstance(self.spectral, SymmetricMatrix):
            arrays["entries"] = self.spectral.entries
        return facts, arrays

    @staticmethod
    def keeps(facts: dict) -> bool:
        return facts["kind"] in _KINDS

    @classmethod
    def restored(cls, name: str, facts: dict, parts: dict[str, np.ndarray]) -> LearnedMatrix:
        """What `stored` kept. ValueError where its parts do not belong together."""
        side, basis, values = len(facts["names"]), parts["basis"], parts["values"]
        require_shapes(values=(values, (None,)), basis=(basis, (side, len(values))))
        if facts["axis"] not in ("features", "tasks"):
            raise ValueError(f"it is a {facts['kind']!r} of {facts['axis']!r}")
        spectral = SpectralMatrix(parts["basis"], parts["values"], float(facts["rest"]))
        if "entries" in parts:
            require_shapes(entries=(parts["entries"], (side, side)))
            spectral = SymmetricMatrix(parts["basis"], parts["values"], 0.0, parts["entries"])
        return cls(name, facts["axis"], facts["kind"], tuple(facts["names"]), spectral)

    def _dense(self, inverse: bool) -> np.ndarray:
        side = self.spectral.side
        require_memory(
            3 * 8 * side**2, f"{self.name} as a dense matrix of {side:,} x {side:,}", "use .spectral"
        )
        if inverse and not self.spectral.is_positive:
            raise ModelError(
                f"this {self.kind} is singular ({self.axis} without variance of their own), so it has no inverse",
                term=self.name,
                write_instead=f"use .{self.kind} or .correlation",
            )
        return (self.spectral.power(-1.0) if inverse else self.spectral).dense()

    def __array__(self, dtype=None, copy=None):
        array = self._dense(inverse=False)
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"<LearnedMatrix {self.name}: {self.kind} of {self.shape[0]} {self.axis}>"

    def __str__(self) -> str:
        if len(self.names) > _PRINTED:
            return repr(self)
        width = max(map(len, self.names))
        cell = max(width, 5)
        rows = ["  ".join([" " * width, *(f"{name:>{cell}}" for name in self.names)])]
        for name, row in zip(self.names, self.correlation, strict=True):
            rows.append("  ".join([f"{name:<{width}}", *(f"{value:>+{cell}.2f}" for value in row)]))
        return "\n".join([f"correlation of {self.axis} (from the learned {self.kind} {self.name})", *rows])
