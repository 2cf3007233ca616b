"""The smooth part of a form - losses, and smooth functions that have no place in the proximal step - on one flat vector.

Each piece is f(A x + a). What is kept of an iterate are its images, arrays affine in x: those of an extrapolated point are
extrapolated too, at no product's price.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.solvers.linear_algebra.gram import bordered_gram, gram_outgrows_inputs, gram_product
from mtldsl.solvers.linear_algebra.layout import Layout

__all__ = ["DataPiece", "FunctionPiece", "GramPiece", "SmoothPart", "block_weights"]

_LARGEST_GRAM = 30_000_000  # entries


class DataPiece:
    """A loss through its predictions."""

    def __init__(self, loss: LossTerm):
        self.loss, self.term = loss, loss

    def image(self, blocks: Blocks) -> np.ndarray:
        return self.loss.predictions(blocks)

    def slope(self, image) -> np.ndarray:
        return self.loss.gradient(image)

    def pull_back(self, slope, into: Blocks) -> None:
        self.loss.add_adjoint(slope, into)


class GramPiece:
    """A quadratic loss through its Gram matrices, with a last row for an intercept: its image is the gradient itself."""

    def __init__(self, loss: LossTerm):
        self.loss = self.term = loss
        tasks, scale = loss.tasks, loss.uniform_scale if loss.uniform_scale is not None else loss.scale
        weights: Any = scale
        weights = weights * loss.atom.quadratic
        self.gram = bordered_gram(loss, weights)
        weighted = weights * tasks.targets
        self.cross = tasks.adjoint(weighted)
        if loss.intercepts:
            self.cross = np.vstack([self.cross, np.add.reduceat(weighted, tasks.offsets[:-1])])

    @classmethod
    def pays(cls, loss: LossTerm) -> bool:
        """Whether products with Gram matrices are cheaper than with the data."""
        if loss.atom.quadratic is None:
            return False
        d, m = loss.map.shape
        one = loss.is_shared_complete and loss.uniform_scale is not None
        rows = loss.tasks.n_samples / m
        if gram_outgrows_inputs(loss, d, copies=2):
            return False
        return d <= 1.5 * rows and (1 if one else m) * d * d <= _LARGEST_GRAM

    def image(self, blocks: Blocks) -> np.ndarray:
        W = self.loss.map.forward(blocks)
        if self.loss.intercepts:
            W = np.vstack([W, sum(blocks[name] for name in self.loss.intercepts)])
        return gram_product(self.gram, W) - self.cross

    def slope(self, image) -> np.ndarray:
        return image

    def pull_back(self, slope, into: Blocks) -> None:
        d = self.loss.map.shape[0]
        self.loss.map.add_adjoint(slope[:d], into)
        for name in self.loss.intercepts:
            into[name] += slope[d:]


class FunctionPiece:
    """A quadratic function of a map: its gradient is affine in x, and is the image."""

    def __init__(self, term: FunctionTerm):
        self.term = term

    def image(self, blocks: Blocks) -> np.ndarray:
        return self.term.coefficient * self.term.atom.gradient(self.term.map.forward(blocks))

    def slope(self, image) -> np.ndarray:
        return image

    def pull_back(self, slope, into: Blocks) -> None:
        self.term.map.add_adjoint(slope, into)


class SmoothPart:
    """The sum of the pieces."""

    def __init__(self, form: NormalForm, moved: list[FunctionTerm]):
        self.form, self.layout = form, Layout(form)
        losses = [GramPiece(loss) if GramPiece.pays(loss) else DataPiece(loss) for loss in form.losses]
        self.pieces = [*losses, *(FunctionPiece(term) for term in moved)]

    def images(self, x) -> list[np.ndarray]:
        blocks = self.layout.blocks(x)
        return [piece.image(blocks) for piece in self.pieces]

    def slopes(self, images) -> list[np.ndarray]:
        return [piece.slope(image) for piece, image in zip(self.pieces, images, strict=True)]

    def gradient(self, slopes) -> np.ndarray:
        x = np.zeros(self.layout.size)
        blocks = self.layout.blocks(x)
        for piece, slope in zip(self.pieces, slopes, strict=True):
            piece.pull_back(slope, blocks)
        return x

    def value(self, images, blocks: Blocks) -> float:
        """Where the losses are known by their predictions."""
        losses = zip(self.pieces, images, strict=True)
        of_losses = sum(piece.loss.value(z) for piece, z in losses if isinstance(piece, DataPiece))
        return of_losses + sum(
            piece.term.value(blocks) for piece in self.pieces if not isinstance(piece, DataPiece)
        )

    def secant(self, change, images, slopes, other_images, other_slopes) -> float:
        """<grad f(x') - grad f(x), x' - x>, `change` being x' - x: twice what f curves along the way, free of cancellation."""
        total = 0.0
        blocks = None
        for piece, z, u, z_, u_ in zip(self.pieces, images, slopes, other_images, other_slopes, strict=True):
            if isinstance(piece, DataPiece):
                total += float(np.vdot(u_ - u, z_ - z))
                continue
            blocks = self.layout.blocks(np.zeros(self.layout.size))
            piece.pull_back(u_ - u, blocks)
            total += sum(float(np.vdot(blocks[name], d)) for name, d in self.layout.blocks(change).items())
        return total

    def loss_duals(self, x, images) -> list[np.ndarray]:
        """Every loss's gradient at its predictions."""
        duals = []
        blocks = self.layout.blocks(x)
        for piece, image in zip(self.pieces[: len(self.form.losses)], images, strict=False):
            z = image if isinstance(piece, DataPiece) else piece.loss.predictions(blocks)  # pyrefly: ignore[missing-attribute]
            duals.append(piece.loss.dual_of(z))  # pyrefly: ignore[missing-attribute]
        return duals


def block_weights(smooth: SmoothPart, x) -> dict[str, float]:
    """Curvature of f at x along its gradient, block by block (relative to each other is all that counts)."""
    layout, images = smooth.layout, smooth.images(x)
    slopes = smooth.slopes(images)
    gradient = smooth.gradient(slopes)
    weights = {}
    for name, at in layout.slices.items():
        if at.stop == at.start:  # a block without columns
            weights[name] = 1.0
            continue
        d = np.zeros(layout.size)
        size = np.linalg.norm(gradient[at])
        d[at] = gradient[at] / size if size > 0 else 1.0 / math.sqrt(at.stop - at.start)
        curvature = _curvature_along(smooth, x, d, images, slopes)
        weights[name] = curvature if curvature > 0 and math.isfinite(curvature) else 1.0
    return weights


def _curvature_along(smooth: SmoothPart, x, d, images, slopes) -> float:
    """By a short step, along which images move by a thousandth of their size."""
    moved = smooth.images(x + d)
    change = [b - a for a, b in zip(images, moved, strict=True)]
    largest = max(np.abs(c).max(initial=0.0) for c in change)
    if largest == 0.0:  # nothing depends on it: inputs that are zero
        return 0.0
    h = 1e-3 / largest
    other = [a + h * c for a, c in zip(images, change, strict=True)]
    return smooth.secant(h * d, images, slopes, other, smooth.slopes(other)) / h**2
