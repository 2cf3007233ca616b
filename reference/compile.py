"""A normal form as a cvxpy problem.

Two shapes of the same problem. Plain: the formulas are stated on the blocks themselves, as one would type
them by hand. Split: every loss and every function gets variables of its own for its argument, tied to the
blocks by an equality, because the multiplier of that equality is what a certificate needs: minus a
subgradient of the term.

A structured hinge of more than `structured.LARGEST_STATED` samples is a maximum of too many planes to state. It is
given by those found so far, so that `problem` is a relaxation until `CvxpyModel.solve` has found all that matter;
its multipliers are those of its planes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.system import stops

from . import (  # noqa: F401  (they enter their formulas)
    column_groups,
    kernels,
    label_graph,
    losses,
    metrics,
    regularizers,
    sets,
    spectral,
    structured,
    structures,
)
from .label_graph import labellings_size, refuse, sample_weights
from .maps import image, predictions
from .planes import Plane, Planes
from .registry import formula_of
from .structured import is_stated, metrics_of

__all__ = ["CvxpyModel", "nonzeros", "to_cvxpy", "workload"]

#: Exponential cones make a sample about this many times more expensive, and again beside a semidefinite cone
#: (measured on the digits: 1,348 rows of logistic loss with a trace norm take two to seven minutes, 100 rows
#: seconds).
EXPONENTIAL_COST, BESIDE_SEMIDEFINITE_COST = 10, 3

#: The planes of structured hinges are found in some 30 to 60 solves (measured on the digits, ten tasks: 100 rows take
#: 3 s with l1, 6 s with l21 and 45 s with a trace norm; 33 rows with a trace norm, stated in full, 27 s).
PLANES_COST = 30

#: A scalar of data under a loss of labellings, and one of the scores of every labelling, are so many scalars of data (measured: 20
#: samples of 294 features and 6 labels take 25 s, 100 of 10 features 11 s, 500 of 10 features and 4 labels 8 s); of a likelihood twice.
OF_LABELLINGS_COST, LABELLING_COST, LIKELIHOOD_COST = 10, 5, 2


#: Planes are enough where the objective is above the relaxation's optimum by no more than this, relatively.
TIGHT = 1e-9

#: How far from the best point to where a solve came to rest planes are looked for too.
STEPS = (0.5, 0.2)

#: Solves may be rough until the objective is above the relaxation's optimum by no more than this, relatively.
ROUGH = 1e-4

#: Solves of one model at most; far more than any was seen to take.
MOST_ROUNDS = 500


#: So many inaccurate solves in a row without a better point, and the backend can do no more.
MOST_IN_VAIN = 3


@dataclass(repr=False)
class CvxpyModel:
    """A cvxpy problem, and what is needed to read it in terms of the normal form it came from.

    `problem` is the whole model, with one exception: a structured hinge of a task with more than 40 samples is in it
    with the planes found so far (`is_relaxation`). Call `solve(...)` of the model in place of `problem.solve(...)`:
    it takes the same options, adds planes and solves again until none is missing. `problem` is a new object
    afterwards, whose optimum is that of the model.
    """

    problem: cp.Problem
    variables: dict[str, cp.Variable]  # block name -> variable
    sets: list[cp.Constraint]  # the constraints that the user typed
    links: list[tuple[cp.Variable, cp.Expression]] = field(default_factory=list)  # argument, its definition
    loss_ties: list[cp.Constraint | Planes] = field(default_factory=list)
    function_ties: list[cp.Constraint] = field(default_factory=list)
    semidefinite_side: int = 0  # side of the largest semidefinite cone, 0 where there is none
    data_size: int = 0  # nonzero scalars of the inputs, over all losses that are stated in full
    states_hinges: bool = False  # structured hinges are stated in full, with many rows each
    planes: list[Planes] = field(default_factory=list)  # of the losses that are not stated
    statements: list = field(default_factory=list)  # of functions in variables of their own
    best: tuple[float, Blocks | None] = (
        np.inf,
        None,
    )  # the lowest objective seen while planes are sought, and where
    iterations: int = 0  # of the backend, in the last `solve`

    def __repr__(self) -> str:
        names = ", ".join(self.variables)
        if not self.is_relaxation:
            return f"<cvxpy model of {names}: .problem states all of it>"
        return (
            f"<cvxpy model of {names}: .problem is a relaxation, with some of the planes of structured hinges; "
            "call .solve(), not .problem.solve()>"
        )

    @property
    def is_quadratic(self) -> bool:
        """A linear or quadratic program, which OSQP takes."""
        return self.problem.is_qp()

    @property
    def is_relaxation(self) -> bool:
        """Whether some structured hinges are given by planes: then solve with `solve` of this object."""
        return bool(self.planes)

    def assign(self, blocks: Blocks) -> list[tuple[Planes, tuple[int, Plane]]]:
        """Give all variables their values at a point; returns the planes that are highest there."""
        for name, variable in self.variables.items():
            variable.value = np.asarray(blocks[name], float)
        for variable, expression in self.links:
            variable.value = expression.value
        for statement in self.statements:
            statement.settle()
        return [(planes, pair) for planes in self.planes for pair in planes.highest()]

    def objective_value(self, blocks: Blocks) -> float:
        """The objective at given arrays, evaluated by cvxpy (structured hinges of larger tasks by their oracle, not
        by the planes found so far).
        """
        self.assign(blocks)
        return float(self.problem.objective.value)

    def violation(self, blocks: Blocks) -> float:
        """The largest violation of a typed constraint at given arrays, evaluated by cvxpy."""
        self.assign(blocks)
        return max((float(np.max(constraint.violation())) for constraint in self.sets), default=0.0)

    def blocks(self) -> Blocks:
        """The variables' values after a solve."""
        return {name: np.asarray(variable.value, float) for name, variable in self.variables.items()}

    def duals(self) -> tuple[list, list[np.ndarray]] | None:
        """(loss_duals, function_duals) after a solve of the split problem: a subgradient of every term; see
        `Planes.duals` for those of structured hinges that are given by planes.
        """
        if not (self.loss_ties or self.function_ties):
            return None
        of_losses = [tie.duals() if isinstance(tie, Planes) else _multiplier(tie) for tie in self.loss_ties]
        of_functions = [_multiplier(tie) for tie in self.function_ties]
        if any(dual is None for dual in (*of_losses, *of_functions)):
            return None
        return [dual if isinstance(dual, list) else dual.reshape(-1) for dual in of_losses], of_functions

    def solve(
        self, *, tight: float = TIGHT, rough: dict | None = None, run: Callable = cp.Problem.solve, **options
    ) -> str:
        """`problem.solve(**options)`, again with more planes until none is missing. Returns cvxpy's status;
        "user_limit" where planes are still missing after MOST_ROUNDS solves, or after MOST_IN_VAIN inaccurate ones.

        tight : none is missing where the objective is above the relaxation's optimum by this much, relatively
        rough : options in place of some for the first solves, as long as that difference is above ROUGH
        run   : what solves a cvxpy problem, with the options; at a time limit, the best point seen is kept
        """
        now, self.iterations = {**options, **(rough or {})} if self.planes else options, 0
        vain = 0
        for _ in range(MOST_ROUNDS):
            try:
                run(self.problem, **now)
            except stops.TimeIsUp:
                if self.best[1] is None:
                    raise
                break
            status, stats = self.problem.status, self.problem.solver_stats
            self.iterations += int((stats and stats.num_iters) or 0)
            if not self.planes or any(variable.value is None for variable in self.variables.values()):
                return status
            before, (gap, fresh) = self.best[0], self.refine(tight)
            vain = 0 if status == cp.OPTIMAL or self.best[0] < before else vain + 1
            done = not fresh or vain >= MOST_IN_VAIN
            if now is options and (gap <= tight or not fresh):
                return status
            if now is options and done:
                break
            if gap <= ROUGH or done:
                now, vain = options, 0
        self.assign(self.best[1])
        return cp.USER_LIMIT

    def refine(self, tight: float = TIGHT) -> tuple[float, bool]:
        """After a solve: how far the objective is above the relaxation's optimum, relatively; and, where that is
        more than `tight`, whether planes were found that `problem` now has too.

        Planes are looked for where the solve came to rest and, so that few solves are needed, on the way there from
        the best point seen.
        """
        relaxed, here, found = self.problem.value, self.blocks(), []
        value = self._look(here, found)
        gap = (value - relaxed) / max(abs(value), np.finfo(float).tiny)
        if gap <= tight:
            return gap, False
        _, best = self.best
        for step in STEPS:
            self._look({name: best[name] + step * (here[name] - best[name]) for name in here}, found)
        fresh = [planes.add([pair for source, pair in found if source is planes]) for planes in self.planes]
        if not any(fresh):  # as near as the backend's accuracy allows
            self.assign(here)
            return gap, False
        self._state()
        return gap, True

    def _look(self, blocks: Blocks, found: list) -> float:
        """The objective at a point; its planes are appended to `found`."""
        found += self.assign(blocks)
        value = float(self.problem.objective.value)
        if value < self.best[0]:
            self.best = value, {name: np.array(array) for name, array in blocks.items()}
        return value

    def _state(self) -> None:
        """`problem` with the planes that there are now."""
        ties = [tie for tie in (*self.loss_ties, *self.function_ties) if not isinstance(tie, Planes)]
        cuts = [planes.constrain() for planes in self.planes]
        own = [tie for statement in self.statements for tie in statement.ties]
        self.problem = cp.Problem(self.problem.objective, [*self.sets, *ties, *cuts, *own])


def _multiplier(tie: cp.Constraint) -> np.ndarray | None:
    return None if tie.dual_value is None else -np.asarray(tie.dual_value, float)


def to_cvxpy(form: NormalForm, *, split: bool = False) -> CvxpyModel:
    """The cvxpy problem of a normal form; `split=True` gives every term variables of its own (see above).

    Raises ModelError where an atom has no formula in the reference, or a loss more labellings than can be stated.
    """
    variables = {block.name: cp.Variable(block.shape, name=block.name) for block in form.blocks}
    for variable in variables.values():
        if variable.size == 0:  # the weights of a graph without edges: no solve gives them a value
            variable.value = np.zeros(variable.shape)
    model = CvxpyModel(None, variables, [])

    def argument(expression, name, into):
        if not split:
            return expression
        variable = cp.Variable(expression.shape, name=name)
        model.links.append((variable, expression))
        into.append(variable == expression)
        return variable

    objective = cp.Constant(form.constant)
    for t, term in enumerate(form.losses):
        refuse(term)
        if _needs_planes(term):
            planes = Planes(term, variables, f"hinges{t}")
            model.planes.append(planes)
            model.loss_ties += [planes] if split else []
            objective += planes.objective
            continue
        model.data_size += nonzeros(term) + labellings_size(term)
        model.states_hinges |= bool(metrics_of(term))
        objective += _loss(term, argument(predictions(term, variables), f"predictions{t}", model.loss_ties))
    for k, term in enumerate(form.functions):
        W = argument(image(term.map, variables), f"argument{k}", model.function_ties)
        stated = formula_of(term.atom.name, term.typed)
        if stated.semidefinite:
            model.semidefinite_side = max(model.semidefinite_side, sum(W.shape))
        if term.is_constraint:
            model.sets += stated(W, term.atom)
        elif stated.own_variables:
            model.statements.append(stated.own_variables(W, term.atom))
            objective += float(term.coefficient) * model.statements[-1].value
        else:
            objective += float(term.coefficient) * stated(W, term.atom)
    model.problem = cp.Problem(cp.Minimize(objective))
    if model.planes and model.violation(form.zeros()) == 0.0:
        model._look(form.zeros(), [])
    model._state()
    return model


def _needs_planes(term: LossTerm) -> bool:
    """Whether one of the tasks is too large for its structured hinge to be stated."""
    of_tasks = metrics_of(term)
    targets = np.split(np.asarray(term.tasks.targets, float), np.cumsum(term.tasks.counts)[:-1])
    return bool(of_tasks) and not all(map(is_stated, of_tasks, targets))


def workload(form: NormalForm) -> int:
    """Nonzero scalars of input data; under losses with exponential cones they count 10 times, under structured hinges
    30 times, under losses of labellings 10 times with all labellings beside them, and these 3 times as much again beside a trace norm.
    """
    stated = {term: formula_of(term.atom.name, term.typed) for term in (*form.losses, *form.functions)}
    beside = BESIDE_SEMIDEFINITE_COST if any(formula.semidefinite for formula in stated.values()) else 1
    total = 0
    for term in form.losses:
        formula = stated[term]
        if formula.of_labellings:
            size = OF_LABELLINGS_COST * nonzeros(term) + LABELLING_COST * labellings_size(term)
            total += size * (LIKELIHOOD_COST if formula.exponential else 1) * beside
            continue
        cost = PLANES_COST if formula.by_planes else EXPONENTIAL_COST if formula.exponential else None
        total += nonzeros(term) * (1 if cost is None else cost * beside)
    return total


def nonzeros(term: LossTerm) -> int:
    """The number of nonzeros of the inputs, over all tasks."""
    return sum(X.nnz if sp.issparse(X) else int(np.count_nonzero(X)) for X in term.tasks.inputs)


def _loss(term: LossTerm, z: cp.Expression) -> cp.Expression:
    """sum over tasks of coefficient * loss; for a sum over samples the coefficients become sample weights."""
    stated = formula_of(term.atom.name, term.typed)
    counts, weights = np.asarray(term.tasks.counts), term.tasks.sample_weights
    targets, coefficients = np.asarray(term.tasks.targets, float), np.asarray(term.coefficients, float)
    if stated.of_labellings:
        return stated(z, targets, sample_weights(term), term.atom)
    if stated.sum_over_samples:
        per_sample = np.repeat(coefficients, counts) * (1.0 if weights is None else weights)
        if np.all(per_sample == per_sample[0]):
            return float(per_sample[0]) * stated(z, targets, None, term.atom)
        return stated(z, targets, per_sample, term.atom)
    total, end = cp.Constant(0.0), np.cumsum(counts)
    for i, start in enumerate(end - counts):
        rows = slice(int(start), int(end[i]))
        s = None if weights is None else weights[rows]
        total += float(coefficients[i]) * stated(z[rows], targets[rows], s, term.atom.of_task(i))
    return total
