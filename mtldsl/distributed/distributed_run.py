"""Run of a solve of rows elsewhere: forecast, kept in a folder, and made on few rows where squares allow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from mtldsl.distributed.distributed_solver import CheckpointFolder
from mtldsl.distributed.forecast import Forecast
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.reductions.from_statistics import FromStatistics, StatisticsRecipe, can_be_reflected
from mtldsl.solvers.multistart import solve_form, starting_point
from mtldsl.solvers.routes import accepting_routes, get_solver
from mtldsl.solvers.run import COARSE_INTERCEPTS, ReducedForm, SolveResult
from mtldsl.utils import progress
from mtldsl.utils.progress import say

#: How a solve ends that nothing from outside has cut short.
_ENDED = ("optimal", "stationary", "stalled", "uncertified")


def on_few_rows(form: NormalForm) -> NormalForm | None:
    """The form of a few rows in place of those that are elsewhere; None where its losses do not allow it."""
    return FromStatistics().apply(form)[0] if FromStatistics().accepts(form) is None else None


def solve_distributed(
    function: Callable[..., SolveResult], form: NormalForm, warm_start, how: dict[str, Any]
) -> SolveResult:
    """The outcome of `Tasks.apply_solving`, with a checkpoint or without; `function` solves a form as it is."""
    rows = max(cast(Any, loss.tasks).n_rows for loss in form.elsewhere)
    # whoever tells what passes over the rows will take; the lines of looks are written by the listener
    forecast = Forecast(rows, how["tol"], how["listener"], say if how["verbose"] else None)
    how["listener"] = forecast
    with progress.listen_to_passes(forecast):
        options, starts = how["options"], how["starts"]
        given = options.get("checkpoint")
        how["options"] = {key: value for key, value in options.items() if key != "checkpoint"}
        if given is None:
            return _solved(function, form, warm_start, how, None)
        if starts != 1:
            raise SolverError(
                f"solve(checkpoint=..., starts={starts!r}): a checkpoint is of one start",
                write_instead="write starts=1",
            )
        with CheckpointFolder(given, form) as folder:
            return _solved(function, form, warm_start, how, folder)


def _solved(
    function: Callable[..., SolveResult],
    form: NormalForm,
    warm_start,
    how: dict[str, Any],
    folder: CheckpointFolder | None,
) -> SolveResult:
    if FromStatistics().accepts(form) is None:
        return _gathered(form, warm_start, how)
    if folder is None:
        return function(form, warm_start, how)
    if how["solver"] == "auto" and not how["options"]:
        names = list(accepting_routes(ReducedForm(form).form))
        if not any("checkpoint" in get_solver(name).options for name in names):
            raise SolverError(
                f"no solver that takes this model writes checkpoints ({', '.join(names) or 'none takes it'})",
                term="solve(checkpoint=...)",
                write_instead="leave it out",
            )
    return function(
        form, warm_start, how | {"options": how["options"] | {"checkpoint": folder}}, folder.point()
    )


def _gathered(form: NormalForm, warm_start, how: dict[str, Any]) -> SolveResult:
    """On a few rows made of sums of products; where float64 cannot tell on these, on those made by reflections, in one more pass."""
    first = starting_point(form, warm_start)
    progress.expect("squares", (1, 1))
    here, recipe = FromStatistics().apply(form)
    outcome = _on_few_rows(here, recipe, None if first is None else first.blocks, how)
    hidden = outcome.certificate.relative_rounding > how["tol"]
    if not hidden or outcome.interrupted or outcome.status not in _ENDED or not can_be_reflected(form):
        return outcome
    limit = how["max_seconds"]
    left = None if limit is None else limit - outcome.seconds
    if left is not None and left <= 0.0:
        return outcome
    here, reflected = FromStatistics(reflected=True).apply(form)
    if reflected is recipe:
        return outcome
    again = _on_few_rows(here, reflected, outcome.blocks, how | {"max_seconds": left})
    seconds, iterations = outcome.seconds + again.seconds, outcome.iterations + again.iterations
    return replace(again, seconds=seconds, iterations=iterations)


def _on_few_rows(
    here: NormalForm, recipe: StatisticsRecipe, start: Blocks | None, how: dict[str, Any]
) -> SolveResult:
    """Return the answer for the rows given that few rows lead to. Intercepts are rounded; what sums over these rows may hide is told."""
    start = None if start is None else {block.name: start[block.name] for block in here.blocks}
    outcome = solve_form(here, warm_start=start, **how)
    blocks = recipe.with_intercepts(outcome.blocks)
    above, rounding = recipe.misplaced(blocks)
    found = outcome.certificate
    certificate = replace(
        found,
        objective=found.objective + above,
        dual_bound=found.dual_bound - rounding,
        rounding=found.rounding + rounding,
    )
    status, tells = outcome.status, certificate.relative_rounding <= how["tol"]
    if (status == "optimal" and not certificate.within(how["tol"])) or (status == "stationary" and not tells):
        status = "stalled"
        certificate = replace(certificate, note=COARSE_INTERCEPTS if tells else "")
    return replace(
        outcome, blocks=blocks, certificate=certificate, status=status, duals=(None, outcome.duals[1])
    )
