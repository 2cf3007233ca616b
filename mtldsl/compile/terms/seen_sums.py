"""What a pass tells of multipliers, as sums over the rows of one part: all that a proof asks of them (`RowDual.seen`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.compile.terms.row_slabs import Slab, slabs_of

if TYPE_CHECKING:
    from mtldsl.tasks.distributed.parts import Part

__all__ = ["SeenSums"]

#: Sums over samples, a row of `SeenSums` each.
_NAMES = ("sums", "labels", "squares", "work", "conjugate", "at_zero")


class SeenSums:
    """The sums for a loss that is a sum over samples; multipliers above zero stand apart from the others where `by_sign`."""

    def __init__(self, part: Part, n_tasks: int, atom: Any, coefficients: np.ndarray, by_sign: bool):
        self.atom, self.by_sign, self.n_tasks, self.which = atom, by_sign, n_tasks, part.which
        sides, own = 1 + by_sign, part.which.size
        self.rows = slabs_of(part, coefficients, sides)
        self.totals = np.zeros((sides, len(_NAMES), own))
        self.values = np.zeros(own)
        self._room = np.empty((2, len(_NAMES), 0))

    def add(self, slab: Slab, u: np.ndarray) -> None:
        """Multipliers u, and the value at the slab's predictions."""
        atom, z, y, s = self.atom, slab.z, slab.y, slab.s
        values = atom.pointwise(z, y)
        self.values[slab.which] += slab.sums(values if s is None else s * values)
        if u.size > self._room.shape[2]:
            self._room = np.empty((2, len(_NAMES), u.size))
        entries, above = self._room[:, :, : u.size]
        sizes, labels = np.abs(u), np.abs(y)
        entries[0] = u
        np.multiply(sizes, labels, out=entries[1])
        np.multiply(u, u, out=entries[2])
        np.multiply(sizes, np.maximum(np.abs(z), labels, out=labels), out=entries[3])
        entries[4], outside = self._conjugates(u, y, s)
        entries[5] = self._at_zero(y, s)
        if not self.by_sign:
            self._sum(0, slab, entries, outside)
            self.rows.pull(slab, u[None])
            return
        positive = (u > 0.0).astype(float)
        np.multiply(entries, positive, out=above)
        entries -= above
        self.rows.pull(slab, np.stack([above[0], entries[0]]))
        self._sum(0, slab, above, outside & (u > 0.0) if outside.any() else outside)
        self._sum(1, slab, entries, outside & (u <= 0.0) if outside.any() else outside)

    def _sum(self, side: int, slab: Slab, entries, outside) -> None:
        self.totals[side][:, slab.which] += slab.sums(entries)
        if outside.any():
            lost = slab.which[slab.sums(outside.astype(int)) > 0]
            self.totals[side, _NAMES.index("conjugate"), lost] = np.inf

    def _conjugates(self, u, y, s) -> tuple[Any, np.ndarray]:
        """(of every multiplier, which of them are outside the conjugate's domain)."""
        inside, outside = self.atom.within(u if s is None else u / s, y)
        found = self.atom.pointwise_conjugate(inside, y)
        return found if s is None else s * found, outside

    def _at_zero(self, y, s) -> Any:
        """Conjugates of zero, which depend on nothing but the label, and often not on that."""
        if self.atom.of_residuals:
            found = self.atom.pointwise_conjugate(np.zeros(1), np.zeros(1))[0]
        elif self.atom.labels == "sign":
            below, above = self.atom.pointwise_conjugate(np.zeros(2), np.array([-1.0, 1.0]))
            found = below if below == above else np.where(y > 0.0, above, below)
        else:
            found = self.atom.pointwise_conjugate(np.zeros_like(y), y)
        return found if s is None or (np.ndim(found) == 0 and found == 0.0) else s * found

    def seen(self) -> dict[str, np.ndarray]:
        """`RowDual.seen`, with zeros for tasks that the part has not, and `value` (m,)."""
        sides, d = self.totals.shape[0], self.rows.d
        found: dict[str, Any] = {name: np.zeros((sides, self.n_tasks)) for name in _NAMES}
        for name, own in zip(_NAMES, self.totals.transpose(1, 0, 2), strict=True):
            found[name][:, self.which] = own
        found["adjoint"], found["value"] = np.zeros((sides, d, self.n_tasks)), np.zeros(self.n_tasks)
        found["adjoint"][:, :, self.which] = self.rows.adjoints()
        found["value"][self.which] = self.values
        return found
