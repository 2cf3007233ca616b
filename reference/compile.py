"""A normal form as a cvxpy problem.

Two shapes of the same problem. Plain: the formulas are stated on the blocks themselves, as one would type
them by hand. Split: every loss and every function gets variables of its own for its argument, tied to the
blocks by an equality, because the multiplier of that equality is what a certificate needs: minus a
subgradient of the term.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.compile.normal_form import Blocks, LinearMap, LossTerm, NormalForm

from . import losses, regularizers, sets  # noqa: F401  (importing them enters their formulas)
from .registry import formula_of

__all__ = ["CvxpyModel", "to_cvxpy", "workload"]

#: Exponential cones make a sample about this many times more expensive, and again beside a semidefinite cone
#: (measured on the digits: 1,348 rows of logistic loss with a trace norm take two to seven minutes, 100 rows
#: seconds).
EXPONENTIAL_COST, BESIDE_SEMIDEFINITE_COST = 10, 3


@dataclass
class CvxpyModel:
    """A cvxpy problem, and what is needed to read it in terms of the normal form it came from."""

    problem: cp.Problem
    variables: dict[str, cp.Variable]  # block name -> variable
    sets: list[cp.Constraint]  # the constraints that the user typed
    links: list[tuple[cp.Variable, cp.Expression]] = field(default_factory=list)  # argument, its definition
    loss_ties: list[cp.Constraint] = field(default_factory=list)
    function_ties: list[cp.Constraint] = field(default_factory=list)
    semidefinite_side: int = 0  # side of the largest semidefinite cone, 0 where there is none
    data_size: int = 0  # nonzero scalars of the inputs, over all losses

    @property
    def is_quadratic(self) -> bool:
        """A linear or quadratic program, which OSQP takes."""
        return self.problem.is_qp()

    def assign(self, blocks: Blocks) -> None:
        for name, variable in self.variables.items():
            variable.value = np.asarray(blocks[name], float)
        for variable, expression in self.links:
            variable.value = expression.value

    def objective_value(self, blocks: Blocks) -> float:
        """The objective at given arrays, evaluated by cvxpy."""
        self.assign(blocks)
        return float(self.problem.objective.value)

    def violation(self, blocks: Blocks) -> float:
        """The largest violation of a typed constraint at given arrays, evaluated by cvxpy."""
        self.assign(blocks)
        return max((float(np.max(constraint.violation())) for constraint in self.sets), default=0.0)

    def blocks(self) -> Blocks:
        """The variables' values after a solve."""
        return {name: np.asarray(variable.value, float) for name, variable in self.variables.items()}

    def duals(self) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
        """(loss_duals, function_duals) after a solve of the split problem: a subgradient of every term."""
        ties = [*self.loss_ties, *self.function_ties]
        if not ties or any(tie.dual_value is None for tie in ties):
            return None
        loss_duals = [-np.asarray(tie.dual_value, float).reshape(-1) for tie in self.loss_ties]
        return loss_duals, [-np.asarray(tie.dual_value, float) for tie in self.function_ties]


def to_cvxpy(form: NormalForm, *, split: bool = False) -> CvxpyModel:
    """The cvxpy problem of a normal form; `split=True` gives every term variables of its own (see above).

    Raises ModelError where an atom has no formula in the reference.
    """
    variables = {block.name: cp.Variable(block.shape, name=block.name) for block in form.blocks}
    model = CvxpyModel(None, variables, [])
    ties = []

    def argument(expression, name, into):
        if not split:
            return expression
        variable = cp.Variable(expression.shape, name=name)
        tie = variable == expression
        model.links.append((variable, expression))
        into.append(tie)
        ties.append(tie)
        return variable

    objective = cp.Constant(0.0)
    for t, term in enumerate(form.losses):
        model.data_size += _nonzeros(term)
        objective += _loss(term, argument(_predictions(term, variables), f"predictions{t}", model.loss_ties))
    for k, term in enumerate(form.functions):
        W = argument(_image(term.map, variables), f"argument{k}", model.function_ties)
        stated = formula_of(term.atom.name, term.typed)
        if stated.semidefinite:
            model.semidefinite_side = max(model.semidefinite_side, sum(W.shape))
        if term.is_constraint:
            model.sets += stated(W, term.atom)
        else:
            objective += float(term.coefficient) * stated(W, term.atom)
    model.problem = cp.Problem(cp.Minimize(objective), model.sets + ties)
    return model


def workload(form: NormalForm) -> int:
    """Nonzero scalars of input data; under losses with exponential cones they count 10 times, beside a trace
    norm 30.
    """
    stated = {term: formula_of(term.atom.name, term.typed) for term in (*form.losses, *form.functions)}
    costly = EXPONENTIAL_COST
    if any(formula.semidefinite for formula in stated.values()):
        costly *= BESIDE_SEMIDEFINITE_COST
    return sum((costly if stated[term].exponential else 1) * _nonzeros(term) for term in form.losses)


def _nonzeros(term: LossTerm) -> int:
    return sum(X.nnz if sp.issparse(X) else int(np.count_nonzero(X)) for X in term.tasks.inputs)


def _image(linear_map: LinearMap, variables: dict[str, cp.Variable]) -> cp.Expression:
    """The map on the variables: the sum of coefficient * left @ block @ right, plus the offset."""
    total = None
    for entry in linear_map.entries:
        image = variables[entry.block]
        if entry.left is not None:
            image = cp.Constant(entry.left) @ image
        if entry.right is not None:
            image = image @ cp.Constant(entry.right)
        if entry.coefficient != 1.0:
            image = float(entry.coefficient) * image
        total = image if total is None else total + image
    if linear_map.offset is not None:
        offset = np.asarray(linear_map.offset, float)
        total = cp.Constant(offset) if total is None else total + offset
    if total is None:  # W - W
        return cp.Constant(np.zeros(linear_map.shape))
    return total + np.zeros(linear_map.shape) if total.shape != tuple(linear_map.shape) else total


def _predictions(term: LossTerm, variables: dict[str, cp.Variable]) -> cp.Expression:
    """The flat predictions, task after task: one block-diagonal matrix on the stacked columns of W."""
    inputs = sp.block_diag([sp.csr_array(X) for X in term.tasks.inputs], format="csr")
    z = cp.Constant(inputs) @ cp.vec(_image(term.map, variables), order="F")
    counts = np.asarray(term.tasks.counts)
    task_of_row = np.repeat(np.arange(len(counts)), counts)
    for name in term.intercepts:
        z = z + cp.vec(variables[name], order="F")[task_of_row]
    return z


def _loss(term: LossTerm, z: cp.Expression) -> cp.Expression:
    """sum over tasks of coefficient * loss; for a sum over samples the coefficients become sample weights."""
    stated = formula_of(term.atom.name, term.typed)
    counts, weights = np.asarray(term.tasks.counts), term.tasks.sample_weights
    targets, coefficients = np.asarray(term.tasks.targets, float), np.asarray(term.coefficients, float)
    if stated.sum_over_samples:
        per_sample = np.repeat(coefficients, counts) * (1.0 if weights is None else weights)
        if np.all(per_sample == per_sample[0]):
            return float(per_sample[0]) * stated(z, targets, None, term.atom)
        return stated(z, targets, per_sample, term.atom)
    total, end = cp.Constant(0.0), np.cumsum(counts)
    for i, start in enumerate(end - counts):
        rows = slice(int(start), int(end[i]))
        s = None if weights is None else weights[rows]
        total += float(coefficients[i]) * stated(z[rows], targets[rows], s, term.atom)
    return total
