"""The normal form: weight blocks + a sum of (coefficient, atom, linear map on blocks).

    minimize over blocks x   sum_t f_t(A_t x) + sum_k c_k g_k(B_k x)      (losses, regularizers; a constraint is a g_k that is an indicator)

It is all that solvers, the certificate and the reference see of a model. Coefficients are numbers here: a `Parameter` is read at the
moment the form is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.function import Regularizer
from mtldsl.compile.function_term import FunctionTerm
from mtldsl.compile.linear_map import Block, Blocks, Entry, LinearMap, picks
from mtldsl.compile.loss_term import LossTerm
from mtldsl.system.kept import cached_property
from mtldsl.system.memory import require_memory

__all__ = ["Block", "Blocks", "Entry", "FunctionTerm", "LinearMap", "LossTerm", "NormalForm", "picks"]


#: What the sizes of coefficients do not change.
_COMMON = ("is_convex", "shapes", "weight_blocks", "data_size")

#: So many unknowns fit into any memory.
_FEW = 10_000


@dataclass(frozen=True, eq=False)
class NormalForm:
    """The whole problem. `functions` holds the regularizers, then the constraints; terms with coefficient 0 are not in it."""

    blocks: tuple[Block, ...]
    losses: tuple[LossTerm, ...]
    functions: tuple[FunctionTerm, ...]
    typed: str
    constant: float = 0.0  # belongs to the objective

    @cached_property
    def is_convex(self) -> bool:
        return all(f.atom.convex for f in self.functions)

    @property
    def regularizers(self) -> tuple[FunctionTerm, ...]:
        return tuple(f for f in self.functions if isinstance(f.atom, Regularizer))

    @cached_property
    def constraints(self) -> tuple[FunctionTerm, ...]:
        return tuple(f for f in self.functions if f.is_constraint)

    @property
    def in_memory(self) -> bool:
        """Whether this process holds the rows of all losses."""
        return all(loss.tasks.in_memory for loss in self.losses)

    @cached_property
    def elsewhere(self) -> tuple[LossTerm, ...]:
        """The losses whose rows are not in this process."""
        return tuple(loss for loss in self.losses if not loss.tasks.in_memory)

    @cached_property
    def entangled_intercepts(self) -> str | None:
        """Which intercepts cannot be eliminated, each with its own loss; None where all can."""
        for loss in self.losses:
            if len(loss.intercepts) > 1:
                return f"{loss.typed} has several intercepts"
        names = [name for loss in self.losses for name in loss.intercepts]
        return "several losses share an intercept" if len(set(names)) < len(names) else None

    @cached_property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return {block.name: block.shape for block in self.blocks}

    @cached_property
    def slope_at_zero(self) -> float:
        """The norm of the losses' gradient at zero: the size that gradients of this data have."""
        g, zero = self.zeros(), self.zeros()
        for loss in self.losses:
            loss.add_adjoint(loss.gradient(loss.predictions(zero)), g)
        return float(np.sqrt(sum(np.vdot(part, part) for part in g.values())))

    @cached_property
    def remembered(self) -> dict:
        """What was found out about this form, and about others of one statement that differ from it in the sizes of coefficients alone."""
        return {}

    def share(self, remembered: dict) -> None:
        """`remembered`, and with it what forms of this statement's shape have in common, is that of the forms before it."""
        self.__dict__["remembered"] = remembered
        common = remembered.get("common")
        if common is None:
            common = remembered["common"] = {name: getattr(self, name) for name in _COMMON}
        self.__dict__.update(common)

    @cached_property
    def value_at_zero(self) -> float:
        """The objective at weights of zero, constraints aside."""
        zeros = self.zeros()
        losses = sum(loss.value_at_zero(zeros) for loss in self.losses)
        return float(losses + sum(f.value_at_zero(zeros) for f in self.functions)) + self.constant

    @cached_property
    def data_size(self) -> int:
        """Scalars of the losses' inputs, zeros included: multiplications in one pass over the data for one task's weights."""
        return sum(loss.tasks.n_samples * loss.tasks.n_features for loss in self.losses)

    @cached_property
    def weight_blocks(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.intercept_of is None)

    @cached_property
    def _fits(self) -> bool:
        """SolverError where a solve, which holds a few points, would not fit into memory; asked once."""
        shapes = [block.shape for block in self.blocks]
        unknowns = sum(float(rows) * columns for rows, columns in shapes)
        if unknowns <= _FEW:
            return True
        require_memory(
            4.0 * 8.0 * unknowns,
            f"a model with {' + '.join(f'{rows:,} x {columns:,}' for rows, columns in shapes)} unknowns",
            "select features, or hash or project them, or take fewer tasks, first",
        )
        return True

    def require_memory(self) -> None:
        """SolverError where a solve would not fit into memory."""
        assert self._fits

    def zeros(self) -> Blocks:
        return {block.name: np.zeros(block.shape) for block in self.blocks if self._fits}

    def value(self, x: Blocks) -> float:
        """The objective, constraints aside."""
        losses = sum(loss.value_at(x) for loss in self.losses)
        return float(losses + sum(f.value(x) for f in self.functions)) + self.constant

    def violation(self, x: Blocks) -> float:
        """The largest violation over all constraints, each in its own units as typed."""
        return max((f.violation(x) for f in self.constraints), default=0.0) if self.constraints else 0.0
