"""Terms of learned structures, and the steps of majorization that a cross-check looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers.quadratic import KroneckerRidge
from mtldsl.normal_form.form import Blocks, FunctionTerm, NormalForm

# --------------------------------------------------------------------------------------------------------------
# Steps of majorisation-minimisation, kept so that the reference can repeat them.


@dataclass(frozen=True, eq=False)
class MajorizationStep:
    """From `before`, where a convex majoriser of the objective touches it, to `after`, the majoriser's minimiser.

    reweights_losses : whether the losses too were replaced by quadratics, v_i / 2 ||r_i||^2 + constant a task
    accuracy         : relative to the objective, to which the majoriser was minimised; 0 in closed form
    """

    iteration: int
    before: Blocks
    after: Blocks
    reweights_losses: bool
    accuracy: float = 0.0


class MajorizationLog:
    """The first of a run's steps, a random one, and the last."""

    def __init__(self, wanted: bool, reweights_losses: bool):
        self.wanted, self.reweights_losses = wanted, reweights_losses
        self._kept: dict[str, MajorizationStep] = {}
        self._between, self._rng = 0, np.random.default_rng(0)

    def add(self, iteration: int, before: Blocks, after: Blocks, accuracy: float = 0.0) -> None:
        if not self.wanted:
            return
        step = MajorizationStep(
            iteration,
            {name: np.array(block) for name, block in before.items()},
            {name: np.array(block) for name, block in after.items()},
            self.reweights_losses,
            accuracy,
        )
        before_this = self._kept.get("last")
        if before_this is not None and before_this is not self._kept["first"]:
            self._between += 1
            if self._rng.integers(self._between) == 0:  # every one of them is as likely as any other
                self._kept["random"] = before_this
        self._kept.setdefault("first", step)
        self._kept["last"] = step

    @property
    def steps(self) -> tuple[MajorizationStep, ...]:
        """In the order in which they were made."""
        return tuple(sorted(set(self._kept.values()), key=lambda step: step.iteration))


# --------------------------------------------------------------------------------------------------------------
# A learned structure in a model: its penalty on the weights, and the matrices that it learns by name.

#: the matrices, or the weights of given ones, of a point, by name
Structures = dict[str, SpectralMatrix | np.ndarray]


@dataclass(frozen=True, eq=False)
class StructureTerm(FunctionTerm):
    """coefficient * structure(map(x)), its matrices eliminated; `names` are those of its matrices, None for one that is given."""

    atom: Structure
    names: tuple[str | None, ...] = ()

    @property
    def structure(self) -> Structure:
        return self.atom

    def update(self, x) -> Structures:
        """The best matrices for the weights x."""
        return self.named(self.structure.update(self.map.forward(x)))

    def named(self, matrices) -> Structures:
        return {name: S for name, S in zip(self.names, matrices, strict=True) if name is not None}

    def matrices(self, named: Structures) -> tuple[Any, ...]:
        """Those learned and those given, in the structure's order."""
        start = self.structure.start(self.map.shape)
        return tuple(
            given if name is None else named[name] for name, given in zip(self.names, start, strict=True)
        )

    def value_at(self, x, named: Structures) -> float:
        """With its matrices kept."""
        return self.coefficient * self.structure.value_at(self.map.forward(x), self.matrices(named))

    def kept(self, named: Structures) -> tuple[FunctionTerm, float]:
        """(the quadratic function that is left with the matrices kept, its constant)."""
        quadratic = self.structure.quadratic(self.map.shape, self.matrices(named))
        atom = KroneckerRidge(quadratic.rows, quadratic.columns)
        return FunctionTerm(
            atom, self.coefficient, self.map, self.typed
        ), self.coefficient * quadratic.constant


def structure_terms(form: NormalForm) -> list[StructureTerm]:
    return [f for f in form.functions if isinstance(f, StructureTerm)]


def learned_matrices(form: NormalForm, x) -> Structures:
    """The best matrices of every structure for the weights x."""
    return {name: S for term in structure_terms(form) for name, S in term.update(x).items()}


def function_value(f: FunctionTerm, x: Blocks, named: Structures) -> float:
    """The value at weights and the matrices of that name; with its own at their best where one is not given."""
    known = isinstance(f, StructureTerm) and all(name in named for name in f.names if name)
    return f.value_at(x, named) if isinstance(f, StructureTerm) and known else f.value(x)


def kept_value(form: NormalForm, x: Blocks, named: Structures) -> float:
    """The objective at weights and matrices."""
    losses = sum(loss.value(loss.predictions(x)) for loss in form.losses)
    return float(losses + sum(function_value(f, x, named) for f in form.functions)) + form.constant
