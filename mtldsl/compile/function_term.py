"""A regularizer or a constraint of the normal form: an atom on a linear map of the blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.function import MatrixFunction, Set
from mtldsl.compile.linear_map import Blocks, LinearMap
from mtldsl.system.kept import cached_property

__all__ = ["FunctionTerm"]


@dataclass(frozen=True, eq=False)
class FunctionTerm:
    """coefficient * atom(map(x)): a regularizer, or (coefficient 1) the indicator of a constraint."""

    atom: MatrixFunction
    coefficient: float
    map: LinearMap
    typed: str

    @cached_property
    def is_constraint(self) -> bool:
        return isinstance(self.atom, Set)

    def value(self, x: Blocks) -> float:
        return 0.0 if self.is_constraint else self.coefficient * self.atom.value(self.map.forward(x))

    def value_at_zero(self, zeros: Blocks) -> float:
        """The same at blocks of zeros."""
        return 0.0 if self.atom.norm and self.map.offset is None else self.value(zeros)

    def violation(self, x: Blocks) -> float:
        return self.atom.violation(self.map.forward(x)) if isinstance(self.atom, Set) else 0.0

    def prox(self, V, step) -> np.ndarray:
        """The prox of coefficient * atom, on the image of the map."""
        return self.atom.prox(V, step * self.coefficient)

    def conjugate(self, V) -> float:
        if isinstance(self.atom, Set):
            return self.atom.support(V)
        return self.coefficient * self.atom.conjugate(V / self.coefficient)

    @cached_property
    def conjugate_at_zero(self) -> float:
        return 0.0 if self.atom.norm else self.conjugate(np.zeros(self.map.shape))

    def dual_gauge(self, V) -> float:
        return self.atom.dual_gauge(V / self.coefficient)
