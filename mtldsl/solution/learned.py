"""Matrices, kernel weights and calibration that were learned beside the weights, as a solution shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix, SymmetricMatrix
from mtldsl.errors import DataError, ModelError
from mtldsl.language.constraints import RangeConstraint, ranges_of
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.normal_form.canonicalize import learned_row_names
from mtldsl.normal_form.form import Blocks, LossTerm
from mtldsl.normal_form.terms.structure_term import StructureTerm, structure_terms
from mtldsl.solution.fields import SolvedModel
from mtldsl.utils.caching import Lazy
from mtldsl.utils.files import checked_csr, require_shapes
from mtldsl.utils.memory import require_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --------------------------------------------------------------------------------------------------------------
# How much each task counts: the weights that calibrated losses give tasks, and the noise that is left in each.


def _of_loss(loss: LossTerm, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """(task weights (m,), noise levels (m,)) of a loss that is a function of the norms of tasks' residuals.

    A task's weight v_i is that of the quadratic v_i / 2 ||r_i||^2 which touches its loss from above: the same for all tasks under
    a squared loss, coefficient / ||r_i|| under the square-root loss. Its noise level is the root mean square of its residuals,
    ||r_i|| / sqrt(n_i), n_i the total weight of its samples.
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (15).
    """
    norms, totals = np.sqrt(loss.residual_squares(blocks)), loss.tasks.totals
    return loss.coefficients * loss.atom.weight_of_norm(norms), norms / np.sqrt(totals)


def _of_all(run: SolvedModel, radial: list[LossTerm]) -> tuple[np.ndarray, np.ndarray]:
    """Those of the first such loss; where each loss has tasks of its own, one number for every task: NaN where its loss is none."""
    shares = run.statement.shares
    if shares is None:
        return _of_loss(radial[0], run.blocks)
    weights, levels = np.full((2, shares.tasks.n_tasks), np.nan)
    for term, columns in zip(shares.terms, shares.columns, strict=True):
        own = [loss for loss in radial if loss.typed == term.text]
        if own:
            weights[columns], levels[columns] = _of_loss(own[0], run.blocks)
    return weights, levels


def calibration_fields(run: SolvedModel) -> dict[str, Any]:
    """{field of Solution: value} of a solve; {} where no loss is a function of the norms of residuals."""
    radial = [loss for loss in run.form.losses if loss.atom.radial]
    if not radial:
        return {}
    levels = Lazy(lambda: _of_all(run, radial))
    return {"task_weights": Lazy(lambda: levels.value[0]), "noise_levels": Lazy(lambda: levels.value[1])}


# --------------------------------------------------------------------------------------------------------------
# A matrix that was learned beside the weights, as the solution shows it.

_KINDS = ("precision", "covariance")


@dataclass(frozen=True)
class LearnedSettings:
    """Limits of what is shown of learned parts.

    printed_names   : names of a matrix; of more none is printed
    printed_weights : weights of kernels
    zero_share      : multiplier over the largest that is zero
    rank_tol        : singular value over the largest that is zero
    """

    printed_names: int = 10
    printed_weights: int = 20
    zero_share: float = 1e-9
    rank_tol: float = 1e-6


SETTINGS = LearnedSettings()


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
    def read(cls, run: SolvedModel) -> dict[str, LearnedMatrix]:
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
            one.name: cls(one.name, one.axis, one.kind, learned_row_names(statement.objective, one), spectral)
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
        from mtldsl.display.pictures.heatmap import heatmap

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

    @classmethod
    def restored(cls, name: str, facts: dict, parts: dict[str, np.ndarray]) -> LearnedMatrix:
        """Return what `stored` kept. ValueError where its parts do not belong together."""
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
        if len(self.names) > SETTINGS.printed_names:
            return repr(self)
        width = max(map(len, self.names))
        cell = max(width, 5)
        rows = ["  ".join([" " * width, *(f"{name:>{cell}}" for name in self.names)])]
        for name, row in zip(self.names, self.correlation, strict=True):
            rows.append("  ".join([f"{name:<{width}}", *(f"{value:>+{cell}.2f}" for value in row)]))
        return "\n".join([f"correlation of {self.axis} (from the learned {self.kind} {self.name})", *rows])


# --------------------------------------------------------------------------------------------------------------
# Kernel weights that were learned beside the weights, as the solution shows them.


@dataclass(frozen=True, eq=False)
class LearnedWeights:
    """The weights theta of task similarities, learned or given: `solution.kernel_weights`, and under theta's own name.

    values     (M,) theta, >= 0
    names      of the similarities, kernel by kernel
    similarity (T, T) the effective kernel between tasks, sum_m theta_m R_m, over the similarities that are about all features; with
               several views, `similarity_of(view)`
    correlation  the same with ones on its diagonal
    task_names of its rows and columns
    support    how many samples have a multiplier that is not zero (support vectors); None where the solver has no multipliers

    >>> from scipy import sparse
    >>> weights = LearnedWeights("theta", np.array([0.6, 0.8]), ("union", "identity"), ("a", "b"),
    ...                          (sparse.csr_array(np.ones((2, 1))), sparse.csr_array(np.eye(2))), ("", ""))
    >>> weights.similarity
    array([[1.4, 0.6],
           [0.6, 1.4]])
    >>> print(weights)
    theta (weights of task similarities)
    identity  0.8
    union     0.6
    """

    name: str
    values: np.ndarray
    names: tuple[str, ...]
    task_names: tuple[str, ...]
    factors: tuple  # B_m (T, r) of every similarity, CSR
    views: tuple[str, ...]  # of every similarity, what features it is about; "" for all
    support: int | None = None

    @classmethod
    def read(cls, run: SolvedModel) -> dict[str, LearnedWeights]:
        """The weights of every term that weighs kernels, by name: also those that the model gives or has eliminated."""
        terms = [term for term in structure_terms(run.form) if term.atom.weighs_kernels]
        named = {term.names[0]: term for term in terms if term.names[0] in run.structures}
        return {name: cls._of(run, term, run.structures[name]) for name, term in named.items()}

    @classmethod
    def _of(cls, run: SolvedModel, term: StructureTerm, theta) -> LearnedWeights:
        terms, support = run.statement.objective.terms, _support(run.outcome.duals[0])
        typed = next(t for t in terms if t.atom_text == term.typed or t.text == term.typed)
        name = next((one.name for one in typed.learned if isinstance(one, LearnedUnknown)), "theta")
        part, n_columns = typed.argument.parts[0], typed.argument.shape[1]
        tasks = part.weights.tasks
        columns = tasks.task_names if part.right is None else [f"column{t}" for t in range(n_columns)]
        atom = cast(MKLNorm, term.atom)  # `weighs_kernels`
        factors = tuple(kernel.factor for kernel in atom.kernels)
        return cls(name, theta, atom.names, tuple(columns), factors, atom.views, support)

    @property
    def shape(self) -> tuple[int]:
        return self.values.shape

    @property
    def similarity(self) -> np.ndarray:
        """ModelError where different similarities are about different features and none about all: there is one for every view."""
        if len(set(self.views)) == 1:
            return self._sum(range(len(self.values)))
        chosen = [m for m, view in enumerate(self.views) if not view]
        if not chosen:
            views = ", ".join(map(repr, dict.fromkeys(self.views)))
            raise ModelError(
                f"{self.name}.similarity: there is one for every view",
                write_instead=f"write .similarity_of(view) with one of {views}",
            )
        return self._sum(chosen)

    def similarity_of(self, view: str) -> np.ndarray:
        """(T, T) of the similarities about one view; those about all features count in it too."""
        chosen = [m for m, own in enumerate(self.views) if own in ("", view)]
        if not any(self.views[m] == view for m in chosen):
            known = ", ".join(map(repr, dict.fromkeys(filter(None, self.views)))) or "none"
            raise ModelError(
                f"{self.name}.similarity_of({view!r}): there is no such view; the views are {known}"
            )
        return self._sum(chosen)

    def _sum(self, chosen) -> np.ndarray:
        n = len(self.task_names)
        require_memory(
            2 * 8 * n**2, f"the similarity of {n:,} tasks as a dense matrix", "use .values and .factors"
        )
        scaled = [np.sqrt(self.values[m]) * self.factors[m] for m in chosen if self.values[m]]
        if not scaled:
            return np.zeros((n, n))
        stacked = sparse.csr_array(sparse.hstack(scaled, format="csr"))
        return (stacked @ stacked.T).toarray()

    @property
    def correlation(self) -> np.ndarray:
        return correlation_of(self.similarity)

    def stored(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(plain facts, arrays) to keep in a file."""
        facts = {
            "kind": "weights",
            "name": self.name,
            "names": self.names,
            "task_names": self.task_names,
            "views": self.views,
            "support": self.support,
        }
        ends = np.cumsum([0, *(factor.shape[1] for factor in self.factors)])
        stacked = sparse.csr_array(sparse.hstack(self.factors, format="csr"))
        parts = {
            "values": self.values,
            "ends": ends,
            "data": stacked.data,
            "indices": stacked.indices,
            "indptr": stacked.indptr,
        }
        return facts, parts

    @classmethod
    def restored(cls, name: str, facts: dict, parts: dict[str, np.ndarray]) -> LearnedWeights:
        """Return what `stored` kept. ValueError where its parts do not belong together."""
        shape, ends = (len(facts["task_names"]), int(parts["ends"][-1])), parts["ends"]
        count = len(facts["names"])
        require_shapes(values=(parts["values"], (count,)), ends=(ends, (count + 1,)))
        if len(facts["views"]) != count or ends[0] != 0 or (np.diff(ends) < 0).any():
            raise ValueError("its similarities do not belong together")
        stacked = checked_csr(parts["data"], parts["indices"], parts["indptr"], shape).tocsc()
        factors = tuple(sparse.csr_array(stacked[:, a:b]) for a, b in pairwise(ends.tolist()))
        names = tuple(facts["names"]), tuple(facts["task_names"])
        return cls(
            facts["name"], parts["values"], *names, factors, tuple(facts["views"]), facts.get("support")
        )

    def frame(self, view: str = "weights"):
        """A labelled pandas DataFrame of the "weights", or of the "similarity" or "correlation" of the tasks."""
        from pandas import DataFrame

        if view == "weights":
            return DataFrame({"similarity": self.names, "weight": self.values})
        if view not in ("similarity", "correlation"):
            raise ModelError(f"{self.name}.frame({view!r}): write 'weights', 'similarity' or 'correlation'")
        return DataFrame(getattr(self, view), index=list(self.task_names), columns=list(self.task_names))

    def plot(self, ax: Axes | None = None, **options) -> Axes:
        """The weights: as a tree of tasks where the similarities are its groups, else as bars; on these matplotlib Axes (None: in a new
        figure), with the options of `mtl.report.tree_plot` or `mtl.report.plot_weights`."""
        from mtldsl.display.pictures.heatmap import plot_weights
        from mtldsl.display.pictures.tree import nodes_of, tree_plot

        try:
            nodes_of(self, options.get("view"))
        except DataError:
            return plot_weights(self.values[:, None], self.names, [self.name], task=0, ax=ax, **options)
        return tree_plot(self, ax=ax, **options)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __repr__(self) -> str:
        return (
            f"<LearnedWeights {self.name}: {len(self.values)} similarities of {len(self.task_names)} tasks>"
        )

    def __str__(self) -> str:
        largest = np.argsort(-self.values, kind="stable")[: SETTINGS.printed_weights]
        width = max(len(self.names[m]) for m in largest)
        lines = [f"{self.names[m]:<{width}}  {self.values[m]:.4g}" for m in largest]
        rest = len(self.values) - len(largest)
        return "\n".join(
            [
                f"{self.name} (weights of task similarities)",
                *lines,
                *([f"... and {rest} smaller ones"] if rest else []),
            ]
        )


def _support(loss_duals) -> int | None:
    """Return how many multipliers of the losses are not zero; those of a splitting method are so to its accuracy only."""
    # of a structured loss they may be labellings, of rows elsewhere sums over them
    if loss_duals is None or not all(hasattr(u, "__array__") for u in loss_duals):
        return None
    return sum(
        int(np.sum(np.abs(u) > SETTINGS.zero_share * np.max(np.abs(u), initial=0.0)))
        for u in map(np.asarray, loss_duals)
    )


def kernel_weights(solution: Any) -> LearnedWeights:
    """Return the weights of the task similarities of `mkl_norm`. ModelError where the model has no such term, or several."""
    found = {name: one for name, one in solution.learned.items() if isinstance(one, LearnedWeights)}
    if len(found) != 1:
        several = (
            f"{len(found)} such terms; write solution.learned[...] with one of {list(found)}"
            if found
            else "no mkl_norm"
        )
        raise ModelError(f"solution.kernel_weights: the model has {several}")
    return next(iter(found.values()))
