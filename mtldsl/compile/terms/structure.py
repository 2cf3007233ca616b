"""A learned structure in a model: its penalty on the weights, and the matrices that it learns by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.regularizers import KroneckerRidge
from mtldsl.atoms.structures import SpectralMatrix, Structure
from mtldsl.compile.normal_form import FunctionTerm, NormalForm

__all__ = ["StructureTerm", "Structures", "kept_value", "learned_matrices", "structure_terms"]

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


def kept_value(form: NormalForm, x, named: Structures) -> float:
    """The objective at weights and matrices."""
    losses = sum(loss.value(loss.predictions(x)) for loss in form.losses)
    functions = sum(
        f.value_at(x, named) if isinstance(f, StructureTerm) else f.value(x) for f in form.functions
    )
    return float(losses + functions) + form.constant
