"""Path of solutions of a model over values of one parameter, each warm-started from the one before."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mtldsl.certificates.certificate import Certificate
from mtldsl.certificates.dual_bound import over
from mtldsl.errors import ModelError, SolverError
from mtldsl.language.scalars import Parameter, put_back
from mtldsl.normal_form.canonicalize import on_weights
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.reductions.from_statistics import FromStatistics, StatisticsRecipe
from mtldsl.normal_form.statement import Statement
from mtldsl.problems.lambda_max import is_factor, lambda_max, require_own
from mtldsl.solution.build import facts_of_loss
from mtldsl.solution.fields import coef_of, intercept_of
from mtldsl.solution.solution import Solution
from mtldsl.solvers.multistart import solve_form
from mtldsl.solvers.run import SolveResult
from mtldsl.solvers.solver import Point
from mtldsl.utils import interrupts
from mtldsl.utils.arrays import as_array
from mtldsl.utils.caching import Store, path_cache
from mtldsl.utils.parallel import one_blas_thread
from mtldsl.utils.progress import progress_bar
from mtldsl.utils.validation import as_list, as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# Limits of a path, and of its grid.


@dataclass(frozen=True)
class PathSettings:
    """Limits of what a path makes of the values before.

    row_ratio            : the rows given over those made, at least; else nothing is won
    decomposition_factor : multiplications of a decomposition, in cubes of the features
    value_passes         : passes over the data for a value
    grid_values          : of a grid where none are given
    grid_ratio           : between its ends
    max_grid_values      : of a grid that is asked for by its size; more of them lie within a thousandth of each other
    """

    row_ratio: float = 2.0
    decomposition_factor: float = 10.0
    value_passes: float = 3.0
    grid_values: int = 20
    grid_ratio: float = 1000.0
    max_grid_values: int = 10_000


SETTINGS = PathSettings()


# --------------------------------------------------------------------------------------------------------------
# Squares of many rows as squares of few along a whole path: after one pass a value costs what the features and tasks do, however many rows there are.


def few_rows_pay(form: NormalForm, values: int) -> bool:
    """Tell whether every loss is a sum of squares, and so many values are cheaper with the decompositions of few rows (`FromStatistics`)."""
    plain = form.entangled_intercepts is None and bool(form.losses)
    return plain and all(_pays(loss, values) for loss in form.losses)


def _proven(outcome: SolveResult, recipe: StatisticsRecipe, tol: float) -> Blocks | None:
    """The weights found on few rows with the intercepts that fit best; None where they are not proven of the rows given.

    Objective and bound may each be off by what sums over the rows have lost, which no certificate of the smaller form can know.
    """
    blocks, found = recipe.with_intercepts(outcome.blocks), outcome.certificate
    size = over(max(abs(found.objective), abs(found.dual_bound)), found.scale)
    misplaced = 2.0 * sum(recipe.misplaced(blocks)) / size
    return blocks if found.within(tol) and abs(found.relative_gap) + misplaced <= tol else None


def _pays(loss: LossTerm, values: int) -> bool:
    tasks = loss.tasks
    if loss.atom.quadratic is None or not tasks.in_memory or tasks.is_sparse:
        return False
    n, d, m = float(tasks.n_samples), tasks.n_features, tasks.n_tasks
    common = loss.is_shared_complete and tasks.sample_weights is None
    grams = 1 if common else m
    rows = n / m if common else n
    made = rows * d * d + grams * SETTINGS.decomposition_factor * d**3
    return rows >= SETTINGS.row_ratio * grams * (d + 1) and made <= SETTINGS.value_passes * values * n * d


def checked_values(problem: Any, parameter: Parameter, values, typed: str = "path") -> list[float]:
    """The values as numbers; ModelError for a parameter of another problem, for none, and where they are not finite and >= 0."""
    require_own(parameter, problem.parameters, f"{typed}({quoted(parameter)}, ...)")
    try:
        listed = list(values) if isinstance(values, Iterator) else values
        numbers = as_array(listed, "", ModelError).astype(float)
        fits = numbers.ndim == 1 and bool(((numbers >= 0) & (numbers < np.inf)).all())
    except ModelError:
        fits = False
    if not fits:
        raise ModelError(
            "the values must be a list of numbers, finite and >= 0, such as [10.0, 1.0, 0.1]",
            term=f"{typed}({parameter.name}, {quoted(values)})",
        ) from None
    if not numbers.size:
        raise ModelError("there are no values", term=f"{typed}({parameter.name}, [])", write_instead="write at least one, such as [1.0]")  # fmt: skip
    return numbers.tolist()


class Solutions(Iterator[Solution]):
    """Solutions of a path, each solved when it is asked for: a generator that says so."""

    def __init__(self, name: str, values: Sequence[float], found: Generator[Solution, None, None]):
        self._name = name
        self._said = f"path of {name} over {len(values)} values, from {values[0]:.4g} to {values[-1]:.4g}"
        self._found = found

    def __next__(self) -> Solution:
        return next(self._found)

    def __getitem__(self, k: Any) -> Solution:
        raise ModelError(
            "the solutions are made one after the other, as they are asked for",
            term=f"path({self._name}, ...)[{k!r}]",
            write_instead=f"write list(problem.path({self._name}, ...))[{k!r}]",
        )

    def close(self) -> None:
        """End the path here, and put the parameter's value back."""
        self._found.close()

    def __repr__(self) -> str:
        return f"<{self._said}: write list(...), or go over it, to solve at each>"


def walk(
    problem: Any,
    parameter: Parameter,
    values: list[float],
    solve_options: dict,
    keep: Callable[[Solution], None],
    progress: bool = False,
) -> Generator[Solution, None, None]:
    """See `Problem.path`. keep : told every solution before it is yielded."""
    last = None
    made: Store = {}
    with put_back([parameter]), progress_bar(parameter.name, len(values), progress) as tell:
        for value in values:
            parameter.value = value
            # between two solves, too, a signal is kept: this point is the last one
            with (
                interrupts.handle_signals(),
                path_cache(made),
            ):  # not beyond: between two values the caller does other things
                best = problem.solve(warm_start=last, **solve_options)
                interrupted = best.interrupted
                # where a penalty of the spectrum is not convex, a solver may not come away again from weights near zero
                may_lock = any(
                    f.atom.separable == "spectrum" and not f.atom.convex for f in problem.form().functions
                )
                if last is not None and not interrupted and may_lock:
                    cold = problem.solve(**solve_options)
                    interrupted = cold.interrupted
                    best = min(best, cold, key=lambda one: (not one.is_certified, one.objective))
                interrupted = interrupted or interrupts.is_signal_pending()
            last = best
            keep(best)
            tell(f"= {value:.4g}, {best.status}, {best.seconds:.2f} s")
            yield best
            if interrupted or best.status == "stopped":
                return


# --------------------------------------------------------------------------------------------------------------
# Which values of parameters are tried: those that are given, or a grid from where the weights vanish.


@dataclass(frozen=True, eq=False)
class ParameterValues:
    """Values of one parameter or several, in the order in which they are solved: the last parameter runs fastest, as a path."""

    values: dict[Parameter, list[float]]
    weaker_is_larger: bool  # whether larger values of the (only) parameter mean less regularisation

    @property
    def parameters(self) -> list[Parameter]:
        return list(self.values)

    @property
    def points(self) -> list[tuple[float, ...]]:
        return list(product(*self.values.values()))


def strengthens_losses(statement: Statement, parameter: Parameter) -> bool:
    """Tell whether larger values of the parameter mean less regularisation: it multiplies losses, or is the radius of a ball."""
    losses = [term for term in statement.objective.terms if term.is_loss]
    widens = any(parameter in constraint.of_radius for constraint in on_weights(statement.constraints))
    return widens or any(parameter in term.coefficient.parameters for term in losses)


def grid_of(problem: Any, lam, values, typed: str) -> ParameterValues:
    """The grid that is meant by `cross_validate(lam, values)`; ModelError with what to write for anything else.

    lam : a Parameter, a list of them with a list of values each, or a dict {Parameter: values}
    """
    if isinstance(lam, Mapping):
        if values is not None:
            raise ModelError(
                "values stand in the dict already",
                term=f"{typed}({{...}}, values)",
                write_instead="leave them out",
            )
        lam, values = list(lam), list(lam.values())
    elif isinstance(lam, Parameter):
        lam, values = [lam], [values]
    else:
        listed = as_list(lam)
        if not listed:
            raise ModelError(
                f"{quoted(lam)} is not a parameter", term=typed, write_instead="write the Parameter of the model, such as lam = Parameter(1.0)"
            )  # fmt: skip
        lam, values = listed, as_list(values) if values is not None else [None] * len(listed)
    if values is None or len(values) != len(lam):
        raise ModelError(
            f"{len(lam)} parameters need a list of values each",
            term=typed,
            write_instead="write {lam: [...], mu: [...]}",
        )
    found: dict[Parameter, list[float]] = {}
    for parameter, own in zip(lam, values, strict=True):
        if own is None and len(lam) > 1:
            raise ModelError(
                "values of several parameters are not chosen by themselves",
                term=typed,
                write_instead="write {lam: [10.0, 1.0], mu: [1.0, 0.1]}",
            )
        own = SETTINGS.grid_values if own is None else own
        found[parameter] = values_of(problem, parameter, own, typed)
    if len(found) != len(lam):
        raise ModelError("a parameter stands twice", term=typed)
    return ParameterValues(found, isinstance(problem, Statement) and strengthens_losses(problem, lam[0]))


def values_of(problem: Any, parameter: Parameter, values, typed: str) -> list[float]:
    """The values that are given, or so many: from lambda_max down to 1/1000 of it for a multiple of the norm, up to 1000 times it for one of
    the losses."""
    count = as_whole(values)
    if count is None:
        return checked_values(problem, parameter, values, typed)
    if not 2 <= count <= SETTINGS.max_grid_values:
        raise ModelError(
            term=f"{typed}({quoted(parameter)}, values={quoted(count)})",
            write_instead=f"write a list of values, or how many, at least 2 and at most {SETTINGS.max_grid_values:,}",
        )
    require_own(parameter, problem.parameters, f"{typed}({quoted(parameter)}, ...)")
    try:
        start, ratio = strongest_value(problem, parameter, SETTINGS.grid_ratio)
    except ModelError as error:
        raise ModelError(
            f"values are not known by themselves ({error.what})",
            term=f"{typed}({parameter.name})",
            write_instead="give them, such as values=[0.1, 1.0, 10.0]",
        ) from error
    if not 0.0 < start < np.inf:
        raise ModelError(
            getattr(start, "note", "") or f"the weights vanish at {parameter.name} = {start:g}",
            term=f"{typed}({parameter.name})",
            write_instead="give values, such as values=[10.0, 1.0, 0.1]",
        )
    up = strengthens_losses(problem, parameter)
    return np.geomspace(float(start), start * ratio if up else start / ratio, count).tolist()


def strongest_value(problem: Any, parameter: Parameter, ratio: float) -> tuple[float, float]:
    """(the value that regularises most, of those worth trying; the ratio of both ends of a grid).

    It is lambda_max, where that is known. Else it is max_i c_i ||X_i||_F^2, over tasks with a loss of coefficient c_i, and the ratio is squared. No
    eigenvalue of X_i^T X_i exceeds that, so that a quadratic penalty of this size shrinks all directions. ModelError for what is not a factor
    of terms.
    """
    try:
        return lambda_max(problem, parameter), ratio
    except ModelError:
        if not is_factor(problem, parameter):
            raise
        with put_back([parameter]):
            parameter.value = 1.0
            losses = problem.form().losses
        squares = [
            float(np.max(np.abs(loss.coefficients) * np.square(loss.tasks.column_lengths).sum(axis=0)))
            for loss in losses
        ]
        largest = max(squares, default=0.0)
        if strengthens_losses(problem, parameter):
            return (1.0 / largest if largest > 0.0 else 0.0), ratio**2
        return largest, ratio**2


# --------------------------------------------------------------------------------------------------------------
# Weights over values of one parameter, each with its proof, and nothing else: what a choice on folds asks of a path. `Problem.solve` makes a whole
# `Solution` of every value, which costs as much as the solve.


@dataclass(frozen=True, eq=False)
class CertifiedPoint:
    """The weights at one value, what was proven of them, and what the next solve begins from. `loss` is as in `Solution`."""

    blocks: Blocks
    coef: np.ndarray
    intercept: np.ndarray | None
    certificate: Certificate
    iterations: int
    state: Point | None
    loss: dict[str, Any]


def certified_points(
    problem: Any, parameter: Parameter, values: Sequence[float], solve_options: dict[str, Any]
) -> Iterator[CertifiedPoint]:
    """The weights at every value, each warm-started from the one before, on few rows for many where that pays for a whole path.

    problem       : a convex Problem
    solve_options : of `Problem.solve`; "solver", "tol" and "max_seconds" are read here
    A signal raises KeyboardInterrupt.
    """
    form, made = problem.form(), Store()
    how: dict[str, Any] = {"max_seconds": None} | solve_options
    how = {name: how[name] for name in ("solver", "tol", "max_seconds")}
    on_few_rows = how["max_seconds"] is None and few_rows_pay(form, len(values))
    last, facts = None, facts_of_loss(problem)
    with put_back([parameter]):
        for parameter.value in map(float, values):
            with interrupts.handle_signals(), path_cache(made), one_blas_thread():
                form = problem.form()
                found = _on_few_rows(form, last, how) if on_few_rows else None
                if found is None:
                    # few rows would not serve the next values better, and their multipliers belong to them alone
                    if on_few_rows:
                        on_few_rows, last = False, None
                    outcome = _outcome(form, last, how)
                    found = outcome, outcome.blocks
                outcome, blocks = found
                if outcome.interrupted or interrupts.is_signal_pending():
                    raise KeyboardInterrupt
            coef = coef_of(problem, blocks)
            intercept = intercept_of(problem, blocks, coef.shape[1])
            last = CertifiedPoint(
                blocks, coef, intercept, outcome.certificate, outcome.iterations, outcome.last_point, facts
            )
            yield last


def _on_few_rows(
    form: NormalForm, start: CertifiedPoint | None, how: dict[str, Any]
) -> tuple[SolveResult, Blocks] | None:
    """The outcome on few rows, and the weights that it proves of all; None where it proves too little. A signal raises KeyboardInterrupt."""
    small, recipe = FromStatistics().apply(form)
    try:
        outcome = _outcome(small, start, how)
    except SolverError:  # few rows hold less of the digits
        return None
    if outcome.interrupted:
        raise KeyboardInterrupt
    blocks = _proven(outcome, recipe, how["tol"])
    return None if blocks is None else (outcome, blocks)


def _outcome(form: NormalForm, start: CertifiedPoint | None, how: dict[str, Any]) -> SolveResult:
    return solve_form(
        form, start, **how, max_iter=None, starts=1, random_state=0, listener=None, options={}, verbose=False
    )
