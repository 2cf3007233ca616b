"""Kernel weights that were learned beside the weights, as the solution shows them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.structures import MKLNorm
from mtldsl.compile.terms.structure import StructureTerm, structure_terms
from mtldsl.errors import DataError, ModelError
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.solution.learned_matrix import LearnedMatrix, correlation_of
from mtldsl.solution.readout import Run
from mtldsl.system.archives import checked_csr, require_shapes
from mtldsl.system.memory import require_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearnedWeights", "OverKernels"]

#: More names than this are not printed.
_PRINTED = 20

#: A multiplier this small, relative to the largest, is zero.
_ZERO = 1e-9


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
    def read(cls, run: Run) -> dict[str, LearnedWeights]:
        """The weights of every term that weighs kernels, by name: also those that the model gives or has eliminated."""
        terms = [term for term in structure_terms(run.form) if term.atom.weighs_kernels]
        named = {term.names[0]: term for term in terms if term.names[0] in run.structures}
        return {name: cls._of(run, term, run.structures[name]) for name, term in named.items()}

    @classmethod
    def _of(cls, run: Run, term: StructureTerm, theta) -> LearnedWeights:
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

    @staticmethod
    def keeps(facts: dict) -> bool:
        return facts["kind"] == "weights"

    @classmethod
    def restored(cls, name: str, facts: dict, parts: dict[str, np.ndarray]) -> LearnedWeights:
        """What `stored` kept. ValueError where its parts do not belong together."""
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
        from mtldsl.pictures.laminar import nodes_of
        from mtldsl.pictures.tree import tree_plot
        from mtldsl.pictures.weights import plot_weights

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
        largest = np.argsort(-self.values, kind="stable")[:_PRINTED]
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
    """How many multipliers of the losses are not zero; those of a splitting method are so to its accuracy only."""
    # of a structured loss they may be labellings, of rows elsewhere sums over them
    if loss_duals is None or not all(hasattr(u, "__array__") for u in loss_duals):
        return None
    return sum(
        int(np.sum(np.abs(u) > _ZERO * np.max(np.abs(u), initial=0.0))) for u in map(np.asarray, loss_duals)
    )


class OverKernels:
    """Part of `Solution`, which has `learned`."""

    learned: dict[str, LearnedMatrix | LearnedWeights]

    @property
    def kernel_weights(self) -> LearnedWeights:
        """The weights of the task similarities of `mkl_norm`. ModelError where the model has no such term, or several."""
        found = {name: one for name, one in self.learned.items() if isinstance(one, LearnedWeights)}
        if len(found) != 1:
            several = (
                f"{len(found)} such terms; write solution.learned[...] with one of {list(found)}"
                if found
                else "no mkl_norm"
            )
            raise ModelError(f"solution.kernel_weights: the model has {several}")
        return next(iter(found.values()))
