"""A form split into a smooth part with its pieces and a part with an exact proximal step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtldsl.atoms.prox.composition import prox_of_sum, unsupported_reason
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.solvers.design.sufficient_statistics import (
    bordered_gram,
    gram_outgrows_inputs,
    gram_product,
    quadratic_weights,
)
from mtldsl.solvers.linear_systems.task_matrices import BlockLayout
from mtldsl.solvers.solver import MATRIX_SPEEDUP

#: Entries of all tasks' Gram matrices, up to which they stand in the place of the data.
MAX_GRAM_ENTRIES = 30_000_000


# --------------------------------------------------------------------------------------------------------------
# The proximal part of a form: on every block the exact prox of the sum of its functions, and who may take part.


class FunctionPartition:
    """Which function goes where. proximal: block -> places in form.functions; moved: places of those in the smooth part."""

    def __init__(self, form: NormalForm):
        self.proximal: dict[str, list[int]] = {block.name: [] for block in form.blocks}
        self.moved: list[int] = []


def _is_smooth(term: FunctionTerm) -> bool:
    return not term.is_constraint and np.isfinite(term.atom.curvature)


def _terms(form: NormalForm, places) -> list:
    return [(form.functions[k].coefficient, form.functions[k].atom) for k in places]


def partition(form: NormalForm) -> FunctionPartition | str:
    """Every function to its place, or one sentence about the one that finds none."""
    result = FunctionPartition(form)
    for k, term in enumerate(form.functions):
        name = term.map.identity_of
        if name is not None:
            result.proximal[name].append(k)
        elif _is_smooth(term):
            result.moved.append(k)
        else:
            return f"{term.typed} is not smooth, and not a function of one weight matrix itself."
    for name, places in result.proximal.items():
        if not unsupported_reason(_terms(form, places)):
            continue
        kept = [k for k in places if not _is_smooth(form.functions[k])]
        reason = unsupported_reason(_terms(form, kept))
        if reason:
            typed = ", ".join(form.functions[k].typed for k in kept)
            return f"{typed}: {reason}"
        result.moved += [k for k in places if k not in kept]
        result.proximal[name] = kept
    return result


class ProximalPart:
    """h(x) = sum of the functions on their blocks, prox in the metric that `scales` gives to the blocks."""

    def __init__(self, form: NormalForm, parts: FunctionPartition):
        self.form, self.parts, self.layout = form, parts, BlockLayout(form)
        self.proxes: dict[str, Any] = {  # none is None: `partition` asked
            name: prox_of_sum(_terms(form, places)) for name, places in parts.proximal.items() if places
        }

    def prox(self, x, steps: dict[str, float]) -> np.ndarray:
        """argmin over v of h(v) + sum over blocks of ||v - x||^2 / (2 step)."""
        result = x.copy()
        for name, prox in self.proxes.items():
            shape = self.layout.shapes[name]
            result[self.layout.slices[name]] = prox.prox(
                x[self.layout.slices[name]].reshape(shape), steps[name]
            ).ravel()
        return result

    def multipliers(self, x, steps: dict[str, float], blocks: Blocks) -> list[np.ndarray]:
        """One for every function of the form: shares of (x - prox(x)) / step, gradients at `blocks` for those moved."""
        duals: list = [None] * len(self.form.functions)
        for name, prox in self.proxes.items():
            shape = self.layout.shapes[name]
            _, shares = prox(x[self.layout.slices[name]].reshape(shape), steps[name])
            for k, share in zip(self.parts.proximal[name], shares, strict=True):
                duals[k] = share
        for k in self.parts.moved:
            term = self.form.functions[k]
            duals[k] = term.coefficient * term.atom.gradient(term.map.forward(blocks))
        return duals

    def flat_multipliers(self, duals) -> np.ndarray:
        """Their sum on every block: a subgradient of h."""
        total = np.zeros(self.layout.size)
        for name, places in self.parts.proximal.items():
            for k in places:
                total[self.layout.slices[name]] += np.ravel(duals[k])
        return total

    def value(self, blocks: Blocks) -> float:
        """Without the constraints, which a prox point obeys."""
        places = [k for places in self.parts.proximal.values() for k in places]
        return sum(self.form.functions[k].value(blocks) for k in places)


# --------------------------------------------------------------------------------------------------------------
# The smooth part of a form - losses, and smooth functions that have no place in the proximal step - on one flat vector.
#
# Each piece is f(A x + a). What is kept of an iterate are its images, arrays affine in x: those of an extrapolated point are
# extrapolated too, at no product's price.


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
        tasks, weights = loss.tasks, quadratic_weights(loss)
        self.gram = bordered_gram(loss, weights)
        weighted = weights * tasks.targets
        self.cross = tasks.adjoint(weighted)
        if loss.intercepts:
            self.cross = np.vstack([self.cross, np.add.reduceat(weighted, tasks.offsets[:-1])])

    @classmethod
    def pays(cls, loss: LossTerm) -> bool:
        """Tell whether products with Gram matrices are cheaper than the two with the data."""
        if loss.atom.quadratic is None or gram_outgrows_inputs(loss):
            return False
        d, m = loss.map.shape
        one = loss.is_shared_complete and loss.uniform_scale is not None
        entries = loss.tasks.entries_a_row * loss.tasks.n_samples / m
        price = MATRIX_SPEEDUP if loss.tasks.is_sparse else 1.0
        return d * d <= 1.5 * price * entries and (1 if one else m) * d * d <= MAX_GRAM_ENTRIES

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
        self.form, self.layout = form, BlockLayout(form)
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
