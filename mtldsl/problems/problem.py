"""`Problem` and `minimize(objective, subject_to=[...])`: the model as an object that can be printed, explained, solved and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext

from mtldsl.data.schema import require_tasks
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError, SolverError, quote_in_errors
from mtldsl.language.constraints import Constraint, RangeConstraint
from mtldsl.language.expressions import Affine
from mtldsl.language.objective import Objective
from mtldsl.language.scalars import Parameter, Scalar
from mtldsl.language.substitution import replace_tasks
from mtldsl.normal_form.statement import Statement
from mtldsl.problems.cross_check import attach
from mtldsl.problems.cross_validation import cross_validate
from mtldsl.problems.lambda_max import lambda_max
from mtldsl.problems.path import Solutions, values_of, walk
from mtldsl.problems.resampling import bootstrap, stability_selection
from mtldsl.problems.statement_check import agree_with_statement
from mtldsl.problems.user_bounds import check_bound, conditions, value
from mtldsl.solution.build import solution_of
from mtldsl.solution.fields import SolvedModel
from mtldsl.solution.solution import Solution
from mtldsl.solvers.explanation import Explanation
from mtldsl.solvers.multistart import seen_by_solvers, solve_form
from mtldsl.solvers.routes import answers, refuse_parameters
from mtldsl.solvers.run import checked_jobs, checked_limits
from mtldsl.utils import compilation, interrupts
from mtldsl.utils.parallel import jobs, one_blas_thread
from mtldsl.utils.progress import (
    Listener,
    as_cross_check,
    line_of,
    of_callback,
    propagate_callback_errors,
    say,
)
from mtldsl.utils.validation import as_flag, as_list, complete, quoted


def require_solution(value, typed: str) -> None:
    if value is not None and not isinstance(value, Solution):
        raise ModelError(
            f"{quoted(value)} is a {type(value).__name__}, not a Solution",
            term=typed,
            write_instead="write what solve() returned",
        )


@complete(
    "write minimize(objective, subject_to=[W >= 0]), with terms added: squared_loss(W, tasks) + 0.1 * l1_norm(W)"
)
def minimize(objective: Objective, subject_to: Iterable[Constraint | RangeConstraint] = ()) -> Problem:
    """The problem  minimize objective  subject to every constraint.

    objective  : a sum of losses and regularizers, made by the words of the language
    subject_to : constraints such as W >= 0, W.sum(axis=0) == 1, l1_norm(W) <= 3

    Raises ModelError, before any number is crunched, for a model that is not convex or not well formed.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
    >>> print(problem)
    minimize    squared_loss(W, tasks) + l1_norm(W)
    >>> solution = problem.solve()
    >>> solution.status, round(solution.objective, 6)
    ('optimal', 3.0)
    >>> solution.W.round(6) + 0.0
    array([[2., 0.],
           [0., 0.],
           [0., 0.]])
    """
    if not isinstance(objective, Objective):
        shown = objective.text if isinstance(objective, Affine | Scalar) else quoted(objective, 60)
        hint = "a sum of losses and regularizers such as squared_loss(W, tasks) + 0.1 * l1_norm(W)"
        raise ModelError(f"the objective must be {hint}", term=f"minimize({shown})")
    if isinstance(subject_to, (Constraint, RangeConstraint, bool)):
        raise ModelError(f"subject_to={subject_to!r}: write a list, subject_to=[{subject_to!r}]")
    if isinstance(subject_to, Objective):
        raise ModelError(
            "the second argument is the list of constraints; terms are added",
            term=f"minimize(..., {subject_to.text})",
            write_instead=f"write minimize({objective.text} + {subject_to.text})",
        )
    constraints = None if isinstance(subject_to, Affine) else as_list(subject_to)
    if constraints is None:
        raise ModelError(
            f"subject_to={quoted(subject_to)}: write a list of constraints, such as subject_to=[W >= 0]"
        )
    for constraint in constraints:
        if not isinstance(constraint, (Constraint, RangeConstraint)):
            raise ModelError(
                f"subject_to contains {quoted(constraint)}, which is not a constraint",
                write_instead="write comparisons such as W >= 0 or l1_norm(W) <= 3",
            )
    return Problem(objective, constraints)


class Problem(Statement):
    """A multi-task model, convex unless a term says otherwise. Made by `minimize`; see there."""

    def __init__(self, objective: Objective, constraints: list[Constraint | RangeConstraint]):
        super().__init__(objective, constraints)
        self._last: Solution | None = None

    def with_tasks(self, tasks: Tasks, *, some: bool = False) -> Problem:
        """The same model on other data with the same features and tasks. ModelError where the model uses several Tasks.

        some : the tasks may be some of those of this model, such as `tasks.select(...)`; ModelError where a term says something of each
               task (weights of tasks, a graph of them) or mixes them, so that it is not clear what it says of fewer
        """
        require_tasks(tasks, "with_tasks(tasks)", ModelError)
        some = as_flag(some, "with_tasks(tasks, some", ModelError)
        objective, constraints = replace_tasks(self.objective, self.constraints, tasks, some)
        return Problem(objective, constraints)

    # ---------------------------------------------------------------------------------------- solving

    def explain(self) -> Explanation:
        """Every solver: chosen, possible or refused, each with its reason in one line."""
        form = self.form()
        notes = (loss.tasks.storage_note(loss, form) for loss in form.losses)
        return Explanation(str(self), tuple(answers(seen_by_solvers(form))), " ".join(filter(None, notes)))

    def solve(
        self,
        solver: str = "auto",
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        warm_start: Solution | dict | None = None,
        starts: int = 1,
        random_state=0,
        n_jobs: int | None = None,
        cross_check: bool | str | None = None,
        verbose: bool = False,
        callback: Callable[[dict], object] | None = None,
        **options,
    ) -> Solution:
        """Solve to a certified relative duality gap of tol, with constraints met to tol.

        solver      : "auto" (the fastest that fits; if it stalls, the next), or a name listed by `explain()`
        max_iter    : iterations of each solver (None: the solver's own limit)
        max_seconds : wall-clock limit, as the user sees it: compiling, which a first solve does, counts in it, and not in
                      `solution.seconds`; `solution.compile_seconds` stands beside
        verbose     : says a line for every look at the certificate, one for every function that is compiled, and one for every start
                      of several (a bar in a terminal), on standard error; the same lines go to the logger
                      "mtldsl" at level DEBUG. Where rows are elsewhere, it says after the first pass over them what they will take; without
                      verbose that is a warning of the logger, where it is more than a minute
        callback    : called with every look as a dict: solver, iteration, seconds, objective, bound (the best proven so far), gap, violation,
                      and more (where rows are elsewhere: passes, pass_seconds, passes_left, seconds_left); where it returns
                      something true, the solve ends with the best point and the status "stopped"
        warm_start  : a Solution of a problem with the same blocks, or a dict {block name: array}
        starts      : of a model that is not convex, from how many starts to solve it: the solver's own (or warm_start) and random
                      ones, seeded by random_state; the best is returned, and `solution.starts` tells what came of each. max_seconds
                      is for each start
        n_jobs      : threads for tasks that share nothing, where a solver takes such tasks one by one (-1: one a core); elsewhere it says in
                      how many threads large products are computed, or changes nothing. No bit of the solution depends on it. None: as
                      many threads for products as BLAS has, and tasks one after another
        cross_check : True: the reference solves the model too, as in `cross_check()`; "subsample": on few rows where there are many; "never".
                      None: as `mtl.defaults(cross_check=...)` says, which is "never" at first: cvxpy needs thirty milliseconds to state
                      what is solved in one. What came of it is `solution.cross_check`. CrossCheckError where the two disagree,
                      with both sides in its text and the solution as `.solution`. max_seconds is for the solve and the check together
        options     : of the solver named, e.g. solve(solver="cvxpy", backend="scs"); unknown ones are refused
        checkpoint  : where rows are elsewhere, with any solver: a folder that the run is written to as it goes on. The same call - in
                      another process, with another cluster - goes on from there. SolverError where it is of another model, of other
                      numbers or other data. Elsewhere it is an option of "dual_ascent", and names a file

        Ctrl-C, and likewise SIGTERM, returns the best point so far with its certificate and status "interrupted"; a second one within
        ten seconds raises KeyboardInterrupt. Signals that the program handles itself, and threads other than the main one, are left
        alone.
        Objective and violation are evaluated a second time, from the model as typed by plain formulas (docs/reliability.md).

        Raises ModelError where no solver takes the model, SolverError for wrong options, CrossCheckError, with the solution as
        `.solution`, where the second evaluation says otherwise than the first.
        """
        tol, max_iter, max_seconds, verbose = checked_limits(tol, max_iter, max_seconds, verbose)
        threads, before = checked_jobs(n_jobs), compilation.spent()
        asked = None if cross_check is None else as_cross_check(cross_check, "solve")
        listener = _listener(verbose, callback)
        refuse_parameters(options, [parameter.name for parameter in self.parameters])
        with (
            interrupts.handle_signals(),
            compilation.announce_compilation(lambda name: say(f"{'compiling':>20} {name} ..."))
            if verbose
            else nullcontext(),
        ):
            form = self.form()
            with one_blas_thread(), jobs(threads), propagate_callback_errors():
                outcome = solve_form(
                    form, solver=solver, tol=tol, max_iter=max_iter, max_seconds=max_seconds, warm_start=warm_start,
                    starts=starts, random_state=random_state, listener=listener, options=options, verbose=verbose,
                )  # fmt: skip
                solution = solution_of(SolvedModel(self, form, outcome), tol)
            solution.compile_seconds = compilation.spent() - before
            solution.interrupted = outcome.interrupted or interrupts.is_signal_pending()
            self._keep(solution)
            attach(self, solution, asked, max_seconds)
            with one_blas_thread():
                agree_with_statement(self, form, solution)
            solution.interrupted = solution.interrupted or interrupts.is_signal_pending()
        return solution

    @complete("write problem.path(lam, [1.0, 0.1]), with a Parameter of this problem")
    def path(
        self, parameter: Parameter, values: Iterable[float] | int, progress: bool = False, **solve_options
    ) -> Iterator[Solution]:
        """Solutions over values of one parameter, each warm-started from the one before; where a penalty of the spectrum is not convex
        from the solver's own start too, and the better is kept. Ctrl-C, and likewise SIGTERM, ends the path after the point that it
        interrupted.

        values   : numbers, or how many, from where the weights are zero (`lambda_max`) to a thousandth of it, as `mtldsl path --values 20`
        progress : a bar on standard error, or a line a value where standard error is not a terminal
        Each is solved when it is asked for: write `for solution in problem.path(lam, 20)`, or `list(...)` for all of them.
        The parameter's value is put back at the end. `solution.parameters` tells which value a solution belongs to.
        """
        numbers = values_of(self, parameter, values, "path")
        loud = as_flag(progress, "path(lam, values, progress", ModelError)
        found = walk(self, parameter, numbers, solve_options, self._keep, loud)
        return Solutions(parameter.name, numbers, found)

    def refit(self, solution: Solution | None = None, edges=None) -> Problem:
        """The same model on the edges that a solution has chosen: `EdgeWeights` of these alone, and a ridge with the same coefficient in
        place of the penalty that chose them. Its solution predicts better than that of the penalised model, whose weights are shrunk.

        solution : of this problem (None: the last one); edges: None for all whose weights are not zero, a number for so many of the
        strongest, or a list or graph of others.

        ModelError where the model has no `EdgeWeights`, or a term on them that has no counterpart on fewer edges.
        Source: CGM, section 4; refitting is recommended by the spec (lower error in every experiment).
        """
        from mtldsl.problems.refit import refit_objective

        require_solution(solution, "refit(solution)")
        solution = solution if solution is not None else self._fresh()
        if solution is None:
            raise ModelError(
                "this problem has not been solved at its present parameters",
                term="refit()",
                write_instead="write refit(solution)",
            )
        with quote_in_errors("refit(solution)"):
            objective = refit_objective(self.objective, self.constraints, solution.label_graph, edges)
        return Problem(objective, list(self.constraints))

    # -------------------------------------------------------------------------------------- other rows

    # methods that stand in files of their own
    lambda_max = lambda_max
    value = value
    check_bound = check_bound
    conditions = conditions
    cross_validate = cross_validate
    bootstrap = bootstrap
    stability_selection = stability_selection

    # -------------------------------------------------------------------------------------- values and bounds

    def dual_value(self, u) -> float:
        """The dual function at multipliers u of the loss: a lower bound on the optimum, -inf where a condition fails (`check_bound` says which)."""
        return self.check_bound(u).value

    # -------------------------------------------------------------------------------------- the reference

    def to_cvxpy(self, at: Solution | None = None):
        """The reference formulation as a cvxpy model: `.problem`, and `.variables` by block name.

        at : of a model that is not convex, the solution at which it is made so: learned matrices are kept, and functions of the
             spectrum replaced by convex ones that touch them there from above. ModelError without it.

        Structured hinges of more than 40 samples have too many planes to state: then `.problem` is a relaxation until the
        model's own `solve()`, which adds planes until none is violated.
        """
        from mtldsl.problems.cross_check_blocks import convex_form
        from mtldsl.reference.compile import to_cvxpy

        require_solution(at, "to_cvxpy(at)")
        return to_cvxpy(convex_form(self.form(), at))

    def cross_check(self, solution: Solution | None = None, **options):
        """Solve with the independent reference too and compare; see `mtldsl.problems.cross_check.cross_check`.

        A model that is not convex is compared block by block. The solution keeps what came of it as `solution.cross_check`.
        """
        from mtldsl.problems.cross_check import cross_check

        require_solution(solution, "cross_check(solution)")
        solution = solution if solution is not None else self._fresh()
        found = cross_check(self, solution, **options)
        if solution is not None:
            solution.cross_check = found
        return found

    def _fresh(self) -> Solution | None:
        """The last solution, where the parameters have not changed since."""
        if self._last is not None and self._last.parameters == {p.name: p.value for p in self.parameters}:
            return self._last
        return None

    def __getattr__(self, name: str):
        advice = _ELSEWHERE.get(name)
        if advice is None:
            return super().__getattribute__(name)  # Python's own error
        raise AttributeError(f"Problem has no attribute {name!r}: write {advice}", name=name, obj=None)

    def _keep(self, solution: Solution) -> None:
        self._last = solution


#: What estimators of other libraries, and cvxpy's problems, have, and what is written here.
_ELSEWHERE = {
    "fit": "problem.solve(); for fit and predict in one object see mtldsl.estimators",
    "predict": "problem.solve().predict(X)",
    "score": "problem.solve().score(tasks)",
    "objective_value": "problem.solve().objective",
    "variables": "problem.weights",
    "status": "problem.solve().status",
    "coef_": "problem.solve().W",
    "summary": "print(problem), or problem.explain()",
    "report": 'problem.solve().report("fit.html", tasks=held_out)',
    "W": "problem.solve().W",
}


def _listener(verbose: bool, callback) -> Listener | None:
    """Who is told of every look; SolverError for a callback that cannot be called."""
    if callback is None:
        return (lambda record: say(line_of(record))) if verbose else None
    if not callable(callback):
        raise SolverError(
            term=f"solve(callback={quoted(callback)})", write_instead="write a function that takes a dict"
        )
    own = of_callback(callback)

    def both(record: dict):
        say(line_of(record))
        return own(record)

    return both if verbose else own
