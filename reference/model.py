"""A cvxpy problem and how it is solved: planes of structured hinges are added while they matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np

from mtldsl.normal_form.form import Blocks
from mtldsl.utils import interrupts

from .planes import HingePlaneTable, Plane


@dataclass(frozen=True)
class PlaneSolveSettings:
    """Limits of solves with more and more planes."""

    relaxation_tol: float = 1e-9  # relative excess over the relaxation's optimum at which planes are enough
    # parts of the way from the best point to where a solve came to rest at which planes are looked for too
    step_shares: tuple[float, ...] = (0.5, 0.2)
    rough_tol: float = 1e-4  # relative excess down to which solves may be rough
    solve_rounds: int = 500  # solves of one model, far more than any was seen to take
    # inaccurate solves in a row without a better point after which the backend can do no more
    vain_rounds: int = 3


SETTINGS = PlaneSolveSettings()


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
    loss_ties: list[cp.Constraint | HingePlaneTable] = field(default_factory=list)
    function_ties: list[cp.Constraint] = field(default_factory=list)
    semidefinite_side: int = 0  # side of the largest semidefinite cone, 0 where there is none
    data_size: int = 0  # nonzero scalars of the inputs, over all losses that are stated in full
    states_hinges: bool = False  # structured hinges are stated in full, with many rows each
    planes: list[HingePlaneTable] = field(default_factory=list)  # of the losses that are not stated
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
        """Tell whether some structured hinges are given by planes: then solve with `solve` of this object."""
        return bool(self.planes)

    def assign(self, blocks: Blocks) -> list[tuple[HingePlaneTable, tuple[int, Plane]]]:
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
        `HingePlaneTable.duals` for those of structured hinges that are given by planes.
        """
        if not (self.loss_ties or self.function_ties):
            return None
        of_losses = [
            tie.duals() if isinstance(tie, HingePlaneTable) else _multiplier(tie) for tie in self.loss_ties
        ]
        of_functions = [_multiplier(tie) for tie in self.function_ties]
        if any(dual is None for dual in (*of_losses, *of_functions)):
            return None
        return [
            dual.reshape(-1) if isinstance(dual, np.ndarray) else dual for dual in of_losses
        ], of_functions

    def solve(
        self,
        *,
        tight: float = SETTINGS.relaxation_tol,
        rough: dict | None = None,
        run: Callable = cp.Problem.solve,
        **options,
    ) -> str:
        """`problem.solve(**options)`, again with more planes until none is missing. Returns cvxpy's status;
        "user_limit" where planes are still missing after SETTINGS.solve_rounds solves, or after SETTINGS.vain_rounds inaccurate ones.

        tight : none is missing where the objective is above the relaxation's optimum by this much, relatively
        rough : options in place of some for the first solves, as long as that difference is above SETTINGS.rough_tol
        run   : what solves a cvxpy problem, with the options; at a time limit, the best point seen is kept
        """
        now, self.iterations = {**options, **(rough or {})} if self.planes else options, 0
        vain = 0
        for _ in range(SETTINGS.solve_rounds):
            try:
                run(self.problem, **now)
            except interrupts.TimeIsUp:
                if self.best[1] is None:
                    raise
                break
            status, stats = self.problem.status, self.problem.solver_stats
            self.iterations += int((stats and stats.num_iters) or 0)
            if not self.planes or any(variable.value is None for variable in self.variables.values()):
                return status
            before, (gap, fresh) = self.best[0], self.refine(tight)
            vain = 0 if status == cp.OPTIMAL or self.best[0] < before else vain + 1
            done = not fresh or vain >= SETTINGS.vain_rounds
            if now is options and (gap <= tight or not fresh):
                return status
            if now is options and done:
                break
            if gap <= SETTINGS.rough_tol or done:
                now, vain = options, 0
        self.assign(self.best[1])
        return cp.USER_LIMIT

    def refine(self, tight: float = SETTINGS.relaxation_tol) -> tuple[float, bool]:
        """After a solve: how far the objective is above the relaxation's optimum, relatively; and, where that is
        more than `tight`, whether planes were found that `problem` now has too.

        Planes are looked for where the solve came to rest and, so that few solves are needed, on the way there from
        the best point seen.
        """
        relaxed, here, found = self.problem.value, self.blocks(), []
        if not np.isfinite(
            relaxed
        ):  # a weight of a quotient is a rounding below zero: such variables are put right
            for statement in self.statements:
                statement.settle()
            relaxed = float(self.problem.objective.value)
        value = self._look(here, found)
        gap = (value - relaxed) / max(abs(value), np.finfo(float).tiny)
        if gap <= tight:
            return gap, False
        _, best = self.best
        for step in SETTINGS.step_shares:
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
        ties = [tie for tie in (*self.loss_ties, *self.function_ties) if not isinstance(tie, HingePlaneTable)]
        cuts = [planes.constrain() for planes in self.planes]
        own = [tie for statement in self.statements for tie in statement.ties]
        self.problem = cp.Problem(self.problem.objective, [*self.sets, *ties, *cuts, *own])


def _multiplier(tie: cp.Constraint) -> np.ndarray | None:
    return None if tie.dual_value is None else -np.asarray(tie.dual_value, float)
