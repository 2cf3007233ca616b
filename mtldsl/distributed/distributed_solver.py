"""Base class of solvers by passes over rows elsewhere, their checkpoint folder, and their subproblem."""

from __future__ import annotations

import json
import math
import re
import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from rich import filesize

from mtldsl.certificates.dual_bound import dual_bound
from mtldsl.errors import DataError, SolverError
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.normal_form.reductions.from_statistics import FromStatistics
from mtldsl.normal_form.terms.row_statistics import has_one_gram
from mtldsl.solvers.routes import accepting_routes
from mtldsl.solvers.run import run_routes
from mtldsl.solvers.sdca.sdca import Checkpoint, identity_of
from mtldsl.solvers.solver import Point, Solver, Watch
from mtldsl.utils.files import reading
from mtldsl.utils.validation import as_path, quoted

# --------------------------------------------------------------------------------------------------------------
# What solvers by passes over rows that are elsewhere have in common: which models they are for.


@dataclass(frozen=True)
class DistributedSettings:
    """Numbers of solvers by passes.

    pass_flops            : that a pass over rows elsewhere counts as
    checkpoint_passes     : passes after which what is beside the rows is written; without anything there, what is here is written at each
    min_inner_tol         : accuracy of an inner solve
    max_inner_tol         : and at least
    unprovable_tol        : below this, so near to rounding, a solver may find what it cannot prove
    unprovable_iterations : that it takes at most then
    """

    pass_flops: float = 2e6
    checkpoint_passes: int = 5
    min_inner_tol: float = 1e-13
    max_inner_tol: float = 1e-3
    unprovable_tol: float = 1e-12
    unprovable_iterations: int = 100


SETTINGS = DistributedSettings()


class DistributedSolver(Solver):
    """A solver for losses whose rows are elsewhere, and only for these.

    run        : what one solve of it is
    checkpoint : folder that weights, penalties and the multipliers of the rows are written to, and from which the same model goes on
    """

    needs_rows = False
    options: ClassVar[Mapping[str, object]] = {"checkpoint": None}
    writes = ("checkpoint",)
    max_iter = 1000
    usual: ClassVar[tuple[int, int]]

    def __init__(self, run: type[DistributedRun]):
        self.run = run

    def flops(self, form: NormalForm) -> float:
        """A pass over the rows counts the same whatever there is to compute: 100 of them without progress end a first slot."""
        return SETTINGS.pass_flops

    def refuses(self, form: NormalForm) -> str | None:
        if not form.losses:
            return "no loss has a coefficient > 0."
        here = (f"the rows of {loss.typed} are here." for loss in form.losses if loss.tasks.in_memory)
        return next(here, None) or self.refuses_elsewhere(form)

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        """`refuses` of a form whose rows are all elsewhere."""
        raise NotImplementedError

    def usual_passes(self, form: NormalForm) -> tuple[int, int]:
        """(least, most) that a solve takes, as measured."""
        return self.usual

    def solves_only(self, form: NormalForm) -> str | None:
        return "rows that are elsewhere" if form.in_memory else None

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, checkpoint: CheckpointFolder | None = None
    ) -> Point:  # fmt: skip
        return self.run(form, start, checkpoint).solve(max_iter, watch)


class DistributedRun:
    """One solve: where it is, and what a checkpoint keeps of that.

    x      : the weights;  inner : the problem here between two passes, with the multipliers of the functions
    rows   : what lies beside the rows;  passes : over them so far
    left   : the state of a checkpoint of the same solver; None where there is none
    """

    solver: ClassVar[str]

    def __init__(self, form: NormalForm, start: Point | None, file: CheckpointFolder | None):
        self.form, self.file = form, file
        self.x: Blocks = form.zeros() if start is None else dict(start.blocks)
        self.inner = Subproblem(form, None if start is None else start.function_duals)
        self.rows, self.passes = None, 0
        state = {} if start is None else start.state
        self.left = state if state.get("solver") == self.solver and "numbers" in state else None

    def keep(self, numbers: dict[str, float], others: Blocks | None = None, now: bool = False) -> None:
        """Write it, where there is a folder and it is time (`CheckpointFolder.keep`)."""
        if self.file is not None:
            self.rows = self.file.keep(self, numbers, others or {}, now)

    def inner_error(self, x: Blocks, duals: Sequence, objective: float) -> float:
        """The objective times the square of the relative gap that is proven there, at most 1: what inner solves may miss is a share of it."""
        size = max(abs(objective), float(np.finfo(float).tiny))
        bound = dual_bound(self.form, x, duals, self.inner.duals)[0]
        gap = min((objective - bound) / size, 1.0) if math.isfinite(bound) else 1.0
        return gap * gap * size

    def solve(self, max_iter: int, watch: Watch) -> Point:
        """Passes until the watch is satisfied."""
        raise NotImplementedError


def sum_over_samples(form: NormalForm) -> LossTerm | str:
    """The one loss, a sum over samples; or a sentence that says why there is none."""
    if len(form.losses) != 1:
        return "there is not exactly one loss."
    (loss,) = form.losses
    if not loss.atom.separable:
        return f"{loss.typed} is not a sum over samples: it would need all rows of a task at once."
    return f"{form.entangled_intercepts}." if form.entangled_intercepts else loss


# --------------------------------------------------------------------------------------------------------------
# Solves of rows that are elsewhere, in a folder: what the process here knows, and where the workers wrote what lies beside the rows.

_OF_ROWS = re.compile(r"rows-([0-9a-f]{16})-\d+\.npz")


class CheckpointFolder:
    """The folder of `solve(checkpoint=...)`: `solve.npz`, and a file of every partition with the state that workers keep beside its rows.

    It belongs to a model, its numbers and its data: SolverError where it is of others. As a context manager it is the only one on its folder.
    """

    def __init__(self, folder, form: NormalForm):
        self.path, self.form = _folder(folder), form
        self.typed = f"solve(checkpoint={str(folder)!r})"
        self.file = Checkpoint(self.path / "solve.npz", identity_of(form))
        self.parts = cast(Any, form.elsewhere[0].tasks).parts
        self.passes, self.mark, self.rows, self.is_unseen = 0, "", None, False

    def __enter__(self) -> CheckpointFolder:
        self.file.__enter__()
        try:
            self.file.read(self._like())  # of another model: before anything is computed
        except BaseException:
            self.file.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        self.file.__exit__(*error)

    def _like(self) -> dict[str, np.ndarray]:
        return {f"block:{name}": np.zeros(shape) for name, shape in self.form.shapes.items()}

    # ---------------------------------------------------------------------------------------- what was written

    def point(self) -> Point | None:
        """Return where the solve that wrote it was, None where there is nothing yet. `state` is for the solver that is named in it."""
        arrays = self.file.read(self._like())
        if arrays is None:
            return None
        try:
            with reading(self.file.path, "a checkpoint"):
                about = json.loads(str(arrays["about"]))
                duals = [arrays.get(f"dual:{k}") for k in range(about["duals"])]
                state = {"solver": str(about["solver"]), "numbers": dict(about["numbers"]), "rows": None}
                mark = about["rows"]
        except DataError as error:
            raise SolverError(
                f"the checkpoint cannot be read ({error})",
                term=self.typed,
                write_instead="delete it, or name another folder",
            ) from error
        blocks = {name: arrays[f"block:{name}"] for name in self.form.shapes}
        others = {
            name.removeprefix("other:"): one for name, one in arrays.items() if name.startswith("other:")
        }
        state["blocks"] = others
        if mark is not None:
            state["rows"] = self._read_rows(str(mark))
        return Point(blocks, None, duals or None, state=state)

    def _read_rows(self, mark: str) -> Any:
        try:
            self.rows = self.parts.read_states(str(self.path), mark)
        except DataError as error:
            self._say(f"what was beside the rows is lost, and begins anew ({error})")
            return None
        self.mark = mark
        return self.rows

    # ------------------------------------------------------------------------------------------------- writing

    def keep(self, run: DistributedRun, numbers: dict[str, float], others: Blocks, now: bool) -> Any:
        """Asked after each pass of a run; returns the states of the rows to go on with, which have the same bits.

        numbers : penalties and the like;  others : further arrays;  now : at the end of the run
        """
        self.passes += 1
        if run.rows is not None and self.passes % SETTINGS.checkpoint_passes and not now:
            return run.rows
        mark, rows = self._written(run.rows)
        duals = run.inner.duals
        known = duals is not None and all(one is None or isinstance(one, np.ndarray) for one in duals)
        listed = list(duals or ()) if known else []
        about = {"solver": run.solver, "numbers": numbers, "rows": mark, "duals": len(listed)}
        arrays: dict[str, Any] = {f"block:{name}": block for name, block in run.x.items()}
        arrays |= {f"other:{name}": block for name, block in others.items()}
        arrays |= {f"dual:{k}": one for k, one in enumerate(listed) if one is not None}
        if self.file.write({**arrays, "about": np.array(json.dumps(about))}, now=True):
            self._remove_others(mark)
        return rows

    def _written(self, rows: Any) -> tuple[str | None, Any]:
        """(under which mark states are in the folder, None where they are not; the states)."""
        if rows is None or self.is_unseen:
            return None, rows
        if rows is self.rows:
            return self.mark, rows
        mark = secrets.token_hex(8)
        try:
            self.rows, self.mark = self.parts.write_states(rows, str(self.path), mark), mark
        except (DataError, TypeError) as error:
            self.is_unseen = True
            self._say(f"weights are written, but not what is beside the rows: {error}")
            return None, rows
        return mark, self.rows

    def _remove_others(self, mark: str | None) -> None:
        for path in self.path.iterdir():
            found = _OF_ROWS.fullmatch(path.name)
            if found and found[1] != mark:
                path.unlink(missing_ok=True)

    def _say(self, text: str) -> None:
        warnings.warn(f"{self.typed}: {text}", stacklevel=2)


def _folder(given) -> Path:
    """Made where it is not there yet."""
    typed = f"solve(checkpoint={quoted(str(given))})"
    try:
        path = as_path(given, typed).absolute()
        path.mkdir(exist_ok=True)
    except (OSError, ValueError) as error:
        raise SolverError(
            f"the folder cannot be made ({getattr(error, 'strerror', None) or error})",
            term=typed,
            write_instead="name a folder, in one that is there: rows are elsewhere, and their workers write into it",
        ) from None
    return path


# --------------------------------------------------------------------------------------------------------------
# The problem here between two passes: squares of a few rows beside the functions of the model, with whatever solver is fastest for it.


class Subproblem:
    """Solves of one shape, each from the weights of the one before. `duals`: the multipliers of the functions at the last of them."""

    def __init__(self, form: NormalForm, duals: list | None = None):
        blocks = tuple(block for block in form.blocks if block.intercept_of is None)
        self.form = NormalForm(blocks, (), form.functions, form.typed)
        self.remembered: dict = {}
        self.duals = duals

    def solve(
        self, terms: Sequence[LossTerm], start: Blocks, missing: float, functions: float | None = None
    ) -> Blocks:
        """The weights; the objective may be off by `missing`, as far as float64 goes. functions: their value at the start, where it is known."""
        form = replace(self.form, losses=tuple(terms))
        form.share(self.remembered)
        weights = {block.name: start[block.name] for block in form.blocks}
        known = sum(f.value(weights) for f in form.functions) if functions is None else functions
        here = max(abs(sum(term.value_at(weights) for term in terms) + known), float(np.finfo(float).tiny))
        tol = min(max(missing / here, SETTINGS.min_inner_tol), SETTINGS.max_inner_tol)
        outcome = run_routes(
            form, solver=next(accepting_routes(form)), tol=tol, max_iter=SETTINGS.unprovable_iterations if tol < SETTINGS.unprovable_tol else None, max_seconds=None,
            start=Point(weights), options={}, simple_guesses=False,
        )  # fmt: skip
        self.duals = outcome.duals[1]
        return dict(outcome.blocks)


# --------------------------------------------------------------------------------------------------------------
# Where the rows of a model are, what is computed there, and what moves.


def whereabouts(loss: LossTerm, form: NormalForm) -> str:
    """A few sentences on a loss of a form."""
    tasks: Any = loss.tasks
    parts, (d, m) = tasks.parts, (tasks.n_features, tasks.n_tasks)
    place = f"those of {loss.typed} are in {parts.n_parts} parts ({parts.where}, workers: {parts.n_workers});"
    if FromStatistics().accepts(form) is None:
        grams = 1 if has_one_gram(tasks) else m
        return (
            f"{place} one pass tells their second moments, {filesize.decimal(8 * (grams * (d + 1) ** 2 + (d + 2) * m))} from every worker, and everything else "
            "is computed here."
        )
    if has_one_maximum_a_task(loss):
        scores = int(max(tasks.counts))
        return (
            f"{place} a look is two passes, which send {filesize.decimal(32 * (d + 1) * m)} to every worker and bring {filesize.decimal(32 * m * (d + 6))} from each; between "
            f"them the scores of every task go to one worker, {filesize.decimal(33 * scores)} of the largest, and its labellings go back; functions and "
            "constraints are dealt with here."
        )
    sent, back = 8 * (d + 1) * m, 8 * m * (2 * d + 14)
    return (
        f"{place} predictions, proximal steps and multipliers stay there; a pass sends {filesize.decimal(sent)} to every worker and brings {filesize.decimal(back)} from each, "
        f"with Newton's Hessians {filesize.decimal(back + 8 * m * (d + 1) ** 2)}; functions and constraints are dealt with here."
    )
