"""The normal form: blocks, losses, and functions of linear maps of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.normal_form.term import Block, Blocks, FunctionTerm, LossTerm
from mtldsl.utils.caching import cached_property
from mtldsl.utils.memory import require_memory

# --------------------------------------------------------------------------------------------------------------
# The normal form: weight blocks + a sum of (coefficient, atom, linear map on blocks).
#
#     minimize over blocks x   sum_t f_t(A_t x) + sum_k c_k g_k(B_k x)      (losses, regularizers; a constraint is a g_k that is an indicator)
#
# It is all that solvers, the certificate and the reference see of a model. Coefficients are numbers here: a `Parameter` is read at the
# moment the form is made.


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
        """Tell whether this process holds the rows of all losses."""
        return not self.elsewhere

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
        """Return what was found out about this form, and about others of one statement that differ from it in the sizes of coefficients alone."""
        return {}

    def __getstate__(self) -> dict:
        """Without what was found out, which may hold functions that no file takes."""
        return {key: value for key, value in self.__dict__.items() if key != "remembered"}

    def share(self, remembered: dict) -> None:
        """`remembered` is that of the forms of this statement's shape before it."""
        self.__dict__["remembered"] = remembered

    @cached_property
    def value_at_zero(self) -> float:
        """The objective at weights of zero, constraints aside."""
        zeros = self.zeros()
        losses = sum(loss.value_at_zero(zeros) for loss in self.losses)
        return float(losses + sum(f.value(zeros) for f in self.functions)) + self.constant

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
        require_memory(
            4.0 * 8.0 * sum(float(rows) * columns for rows, columns in shapes),
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


# --------------------------------------------------------------------------------------------------------------
# What many solvers take and nothing else: a loss of one weight matrix itself, beside functions of that matrix.

#: How a function may read the matrix: as it is; as a multiple of it; as a multiple plus a constant; in any way.
Reads = Literal["itself", "multiple", "affine", "anything"]


@dataclass(frozen=True, eq=False)
class SingleBlock:
    """The facts: the losses, the name and shape of their matrix, and the name of its intercept's block, None without one."""

    losses: tuple[LossTerm, ...]
    name: str
    shape: tuple[int, int]
    intercept: str | None

    @property
    def loss(self) -> LossTerm:
        """The first loss; where there may be one only, this one."""
        return self.losses[0]


def single_loss(form: NormalForm) -> LossTerm | str:
    """The one loss, or a sentence that says what is wrong."""
    if not form.losses:
        return "no loss has a coefficient > 0."
    return form.losses[0] if len(form.losses) == 1 else f"{form.losses[1].typed} is a second loss."


def single_block(
    form: NormalForm, functions: Reads = "itself", *, several_losses: bool = False
) -> SingleBlock | str:
    """The facts, or a sentence that says what is wrong.

    functions      : how they may read the matrix
    several_losses : or none

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
    >>> W = mtl.Weights(tasks, intercept=True)
    >>> facts = single_block(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form())
    >>> facts.name, facts.shape, facts.intercept, facts.loss.typed
    ('W', (3, 2), 'W.intercept', 'squared_loss(W, tasks)')
    >>> single_block(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W[1:])).form())
    'l1_norm(W[1:, :]) is not a function of W itself.'
    """
    loss = single_loss(form)
    if not several_losses and isinstance(loss, str):
        return loss
    if len(form.weight_blocks) != 1:
        names = ", ".join(block.name for block in form.weight_blocks)
        return f"there are {len(form.weight_blocks)} weight matrices: {names}."
    (block,) = form.weight_blocks
    for loss in form.losses:
        if loss.map.identity_of != block.name:
            return f"{loss.typed} is a loss of combinations of {block.name}, not of {block.name} itself."
    for f in form.functions:
        if not _reads(f, block.name, functions):
            return f"{f.typed} is not a function of {block.name} itself."
    intercept = next((name for loss in form.losses for name in loss.intercepts), None)
    return SingleBlock(form.losses, block.name, block.shape, intercept)


def _reads(f: FunctionTerm, block: str, how: Reads) -> bool:
    if how == "itself":
        return f.map.identity_of == block
    is_multiple = f.map.multiple_of(block) != 0.0
    return how == "anything" or (is_multiple and (how == "affine" or f.map.offset is None))
