"""Where the blocks of a form lie in one array: a flat vector of everything, or one column of unknowns a task."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm

__all__ = ["Layout", "places"]


class Layout:
    """All blocks, one after another.

    slices : of every block, in the flat vector of `size` entries, in the order of the form
    rows   : of every block, in the stacked column of one task, `depth` entries, intercepts last
    """

    def __init__(self, form: NormalForm):
        self.shapes = form.shapes
        self.slices = places({name: rows * columns for name, (rows, columns) in self.shapes.items()})
        ordered = sorted(form.blocks, key=lambda block: block.intercept_of is not None)
        self.rows = places({block.name: block.shape[0] for block in ordered})
        self.size = sum(rows * columns for rows, columns in self.shapes.values())
        self.depth = sum(rows for rows, _ in self.shapes.values())
        self.n_tasks = ordered[0].shape[1]

    @property
    def has_columns(self) -> bool:
        """Whether all blocks have a column a task, so that they can be stacked."""
        return all(columns == self.n_tasks for _, columns in self.shapes.values())

    def blocks(self, flat: np.ndarray) -> Blocks:
        """Views of a flat vector."""
        return {name: flat[at].reshape(self.shapes[name]) for name, at in self.slices.items()}

    def flat(self, blocks: Blocks) -> np.ndarray:
        return np.concatenate([np.ravel(blocks[name]) for name in self.shapes])

    def stack(self, blocks: Blocks) -> np.ndarray:
        """(depth, m)."""
        stacked = np.empty((self.depth, self.n_tasks))
        for name, rows in self.rows.items():
            stacked[rows] = blocks[name]
        return stacked

    def unstack(self, stacked: np.ndarray) -> Blocks:
        """Views of stacked columns."""
        return {name: stacked[rows] for name, rows in self.rows.items()}


def places(lengths: dict[str, int]) -> dict[str, slice]:
    """One after another."""
    found, start = {}, 0
    for name, length in lengths.items():
        found[name] = slice(start, start + length)
        start += length
    return found
