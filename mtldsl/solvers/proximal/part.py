"""The proximal part of a form: on every block the exact prox of the sum of its functions, and who may take part."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum, why_not
from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.solvers.linear_algebra.layout import Layout

__all__ = ["Partition", "ProximalPart", "partition"]


class Partition:
    """Which function goes where. proximal: block -> places in form.functions; moved: places of those in the smooth part."""

    def __init__(self, form: NormalForm):
        self.proximal: dict[str, list[int]] = {block.name: [] for block in form.blocks}
        self.moved: list[int] = []


def _is_smooth(term: FunctionTerm) -> bool:
    return not term.is_constraint and np.isfinite(term.atom.curvature)


def _terms(form: NormalForm, places) -> list:
    return [(form.functions[k].coefficient, form.functions[k].atom) for k in places]


def partition(form: NormalForm) -> Partition | str:
    """Every function to its place, or one sentence about the one that finds none."""
    result = Partition(form)
    for k, term in enumerate(form.functions):
        name = term.map.identity_of
        if name is not None:
            result.proximal[name].append(k)
        elif _is_smooth(term):
            result.moved.append(k)
        else:
            return f"{term.typed} is not smooth, and not a function of one weight matrix itself."
    for name, places in result.proximal.items():
        if not why_not(_terms(form, places)):
            continue
        kept = [k for k in places if not _is_smooth(form.functions[k])]
        reason = why_not(_terms(form, kept))
        if reason:
            typed = ", ".join(form.functions[k].typed for k in kept)
            return f"{typed}: {reason}"
        result.moved += [k for k in places if k not in kept]
        result.proximal[name] = kept
    return result


class ProximalPart:
    """h(x) = sum of the functions on their blocks, prox in the metric that `scales` gives to the blocks."""

    def __init__(self, form: NormalForm, parts: Partition):
        self.form, self.parts, self.layout = form, parts, Layout(form)
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
