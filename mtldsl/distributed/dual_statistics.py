"""Sums of a loss over the rows of one part: values, gradients, curvatures and multipliers, some samples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.normal_form.terms.row_statistics import gram_with_ones
from mtldsl.utils.parallel import slabs

if TYPE_CHECKING:
    from mtldsl.data.tasks import Tasks
    from mtldsl.distributed.partitions import PartitionTasks


def adjoints_of(tasks: Tasks, vectors: np.ndarray) -> np.ndarray:
    """(k, d, m) X_i^T u_i of k vectors u (k, N); where tasks share all rows, by one product, since reading X is what takes time."""
    if not tasks.is_shared or tasks.mask is not None:
        return np.stack([tasks.adjoint(u) for u in vectors])
    table = np.asarray(vectors.reshape(len(vectors) * tasks.n_tasks, -1) @ tasks.X)
    return table.reshape(len(vectors), tasks.n_tasks, -1).transpose(0, 2, 1)


def weighted_grams(tasks: Tasks, weights: np.ndarray) -> dict[int, np.ndarray]:
    """{task: (d+1, d+1) X_i^T diag(weights) X_i beside a column of ones} of those that have samples with weight >= 0."""
    found = {}
    for i, own in enumerate(tasks.per_task(weights)):
        if tasks.mask is not None:
            labelled, own = own, np.zeros(len(tasks.mask))
            own[tasks.mask[:, i]] = labelled
        if own.any():
            found[i] = gram_with_ones(tasks.X if tasks.is_shared else tasks.inputs[i], own)
    return found


@dataclass(eq=False)
class Slab:
    """Some samples of a part: what is made of them stays in a core's cache.

    flat   : where they are among the part's
    tasks  : positions of their tasks among the part's;  starts : where the samples of each begin
    s      : coefficients times sample weights; None where all are one
    """

    flat: slice
    tasks: slice
    starts: np.ndarray
    z: np.ndarray
    y: np.ndarray
    s: np.ndarray | None

    def sums(self, array: np.ndarray) -> np.ndarray:
        """(..., k) sums of an array (..., n) over the samples of each of its tasks."""
        return np.add.reduceat(array, self.starts, axis=-1)


#: Sums over samples, a row of `DualStatistics` each.
_NAMES = ("sums", "labels", "squares", "work", "conjugate", "at_zero")


class DualStatistics:
    """Sums for a loss that is a sum over samples, at weights V (d, m) and intercepts b (m,): all that a proof asks of its multipliers
    (`DistributedDual.seen`). Those above zero stand apart from the others where `by_sign`.
    """

    def __init__(
        self, part: PartitionTasks, n_tasks: int, atom: Any, coefficients: np.ndarray, V, b, by_sign: bool
    ):
        self.tasks, self.which, self.atom, self.n_tasks = part.tasks, part.which, atom, n_tasks
        own, counts = coefficients[part.which], part.tasks.counts
        self.z = part.tasks.forward(part.columns(V)) + np.repeat(b[part.which], counts)
        self.s = part.tasks.sample_weights
        if (own != 1.0).any():
            self.s = np.repeat(own, counts) * (1.0 if self.s is None else self.s)
        sides, k = 1 + by_sign, own.size
        self.multipliers = np.zeros((sides, self.z.size))
        self.totals, self.values = np.zeros((sides, len(_NAMES), k)), np.zeros(k)

    def slabs(self) -> Iterator[Slab]:
        """All samples in turn."""
        offsets = self.tasks.offsets
        for flat in slabs(self.z.size):
            flat = slice(flat.start, min(flat.stop, self.z.size))
            tasks = slice(
                int(np.searchsorted(offsets, flat.start, "right")) - 1,
                int(np.searchsorted(offsets, flat.stop, "left")),
            )
            starts = np.maximum(offsets[tasks], flat.start) - flat.start
            yield Slab(
                flat, tasks, starts, self.z[flat], self.tasks.targets[flat], None if self.s is None else self.s[flat]
            )  # fmt: skip

    def add(self, slab: Slab, u: np.ndarray) -> None:
        """Multipliers u, and the value at the slab's predictions."""
        atom, z, y, s = self.atom, slab.z, slab.y, slab.s
        scale = 1.0 if s is None else s
        self.values[slab.tasks] += slab.sums(scale * atom.pointwise(z, y))
        sizes, labels = np.abs(u), self.atom.label_sizes(y)
        inside, outside = atom.within(u if s is None else u / s, y)
        entries = np.empty((len(_NAMES), u.size))
        entries[0], entries[1], entries[2] = u, sizes * labels, u * u
        entries[3] = sizes * np.maximum(np.abs(z), labels)
        entries[4], entries[5] = scale * atom.pointwise_conjugate(inside, y), scale * self._at_zero(y)
        above = (u > 0.0).astype(float)
        for side, own in enumerate([above, 1.0 - above] if len(self.multipliers) == 2 else [np.ones(1)]):
            some = entries * own
            self.multipliers[side, slab.flat] = some[0]
            self.totals[side][:, slab.tasks] += slab.sums(some)
            if outside.any():
                conjugates = self.totals[side, _NAMES.index("conjugate"), slab.tasks]
                conjugates[slab.sums(outside * own) > 0.0] = np.inf

    def _at_zero(self, y: np.ndarray) -> np.ndarray:
        """Conjugates of zero, which depend on nothing but the label."""
        if self.atom.labels != "sign":
            return self.atom.pointwise_conjugate(np.zeros_like(y), y)
        below, above = self.atom.pointwise_conjugate(np.zeros(2), np.array([-1.0, 1.0]))
        return np.where(y > 0.0, above, below)

    def seen(self) -> dict[str, np.ndarray]:
        """`DistributedDual.seen`, with zeros for tasks that the part has not, and `value` (m,)."""
        sides = len(self.multipliers)
        found: dict[str, Any] = {name: np.zeros((sides, self.n_tasks)) for name in _NAMES}
        for name, own in zip(_NAMES, self.totals.transpose(1, 0, 2), strict=True):
            found[name][:, self.which] = own
        found["adjoint"] = np.zeros((sides, self.tasks.n_features, self.n_tasks))
        found["adjoint"][:, :, self.which] = adjoints_of(self.tasks, self.multipliers)
        found["value"] = np.zeros(self.n_tasks)
        found["value"][self.which] = self.values
        return found
