"""A form split into a smooth part with its pieces and a part with an exact proximal step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.prox.composition import prox_of_sum, unsupported_reason
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.solvers.linear_systems.task_matrices import BlockLayout

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


@dataclass(frozen=True)
class Piece:
    """f of an image that is affine in x: blocks -> image -> slope, value; and slope, blocks -> the slope's part added to these."""

    image: Callable[[Blocks], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    value: Callable[[np.ndarray], float]
    pull_back: Callable[[np.ndarray, Blocks], None]

    @classmethod
    def of_loss(cls, loss: LossTerm) -> Piece:
        """A loss through its predictions."""
        return cls(loss.predictions, loss.gradient, loss.value, loss.add_adjoint)

    @classmethod
    def of_function(cls, term: FunctionTerm) -> Piece:
        """A smooth function of a map."""
        c, atom, map = term.coefficient, term.atom, term.map
        return cls(map.forward, lambda V: c * atom.gradient(V), lambda V: c * atom.value(V), map.add_adjoint)


class SmoothPart:
    """The sum of the pieces, losses first."""

    def __init__(self, form: NormalForm, moved: list[FunctionTerm]):
        self.form, self.layout = form, BlockLayout(form)
        self.pieces = [*map(Piece.of_loss, form.losses), *map(Piece.of_function, moved)]

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

    def value(self, images) -> float:
        return sum(piece.value(image) for piece, image in zip(self.pieces, images, strict=True))

    def secant(self, images, slopes, other_images, other_slopes) -> float:
        """<grad f(x') - grad f(x), x' - x>: twice what f curves along the way, free of cancellation."""
        pairs = zip(images, slopes, other_images, other_slopes, strict=True)
        return sum(float(np.vdot(u_ - u, z_ - z)) for z, u, z_, u_ in pairs)

    def loss_duals(self, images) -> list[np.ndarray]:
        """Every loss's gradient at its predictions."""
        return [loss.dual_of(z) for loss, z in zip(self.form.losses, images, strict=False)]


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
    return smooth.secant(images, slopes, other, smooth.slopes(other)) / h**2
