"""Dual coordinate ascent as a solver: what it takes, its options, warm starts and checkpoints."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, TypeGuard, cast

import numpy as np

from mtldsl.atoms.matrix_function import SeparableLoss
from mtldsl.data.task_data import TaskData
from mtldsl.errors import DataError, SolverError
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.cutting_planes.oracle import has_one_maximum_a_task
from mtldsl.solvers.cutting_planes.structural_svm import TasksAscent
from mtldsl.solvers.label_graphs.clique_generation import LabellingAscent
from mtldsl.solvers.sdca.dual_ascent import Ascent, KernelForm, kernel_form
from mtldsl.solvers.solver import Point, Solver, Watch
from mtldsl.utils.files import (
    atomic_file,
    npz_path,
    read_archive,
    reading,
    remove_leftovers,
    require_no_input,
    sole_use,
)
from mtldsl.utils.validation import quoted

__all__ = [
    "SOLVER",
    "Checkpoint",
    "DualAscent",
    "SampleAscent",
]


# --------------------------------------------------------------------------------------------------------------
# Long runs that can be broken off: the multipliers on disk every so often, and found again.


class Checkpoint:
    """Writes the state of a run to one .npz file at most every `every` seconds, and at its end.

    The file belongs to a model and its data: SolverError where it is of another. A file that is not there yet is a fresh start.
    As a context manager it is the only one on its file: SolverError where another run is. A file that cannot be written is said in
    one warning, and tried again later: a run does not end for that.
    """

    def __init__(self, path, identity: dict, every: float = 30.0):
        self.path = npz_path(Path(path))
        try:
            there = self.path.parent.is_dir()
            self.path.exists()
        except OSError as error:  # a name that no file can have
            raise SolverError(
                f"solve(checkpoint={quoted(str(path))}): {error.strerror}", write_instead="name another file"
            ) from None
        if not there:
            raise SolverError(
                f"there is no folder {str(self.path.parent)!r}",
                term=f"solve(checkpoint={str(path)!r})",
                write_instead="make it first",
            )
        try:
            require_no_input(self.path)
        except DataError as error:
            raise error.as_kind(SolverError).about(f"solve(checkpoint={str(path)!r})") from error
        self.identity, self.every, self.written = identity, every, time.perf_counter()
        self.typed = f"solve(checkpoint={str(self.path)!r})"
        self.warned = False
        self.held = ExitStack()

    def __enter__(self) -> Checkpoint:
        taken = SolverError(
            "another run is using that file; wait for its end, or name another file", term=self.typed
        )
        self.held.enter_context(sole_use(self.path, taken))
        remove_leftovers(self.path)
        return self

    def __exit__(self, *error) -> None:
        self.held.close()

    def read(self, like: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray] | None:
        """The arrays last written, None where there is no file. SolverError where they have not the shapes of `like`, or are not finite."""
        if not self.path.exists():
            return None
        typed = self.typed
        try:
            arrays = read_archive(self.path, "a checkpoint", role="own")
            with reading(self.path, "a checkpoint"):
                found = dict(json.loads(str(arrays.pop("identity"))))
        except DataError as error:
            raise SolverError(
                f"not a checkpoint ({error})", term=typed, write_instead="delete it, or name another file"
            ) from error
        for what, value in self.identity.items():
            if found.get(what) != value:
                raise SolverError(
                    f"it was written for another {what}: {_short(found.get(what))}, not {_short(value)}",
                    term=typed,
                    write_instead="name another file",
                )
        for name, array in (like or {}).items():
            if name not in arrays or arrays[name].shape != array.shape or not _is_finite(arrays[name]):
                raise SolverError(
                    f"{name} in it is damaged", term=typed, write_instead="delete it, or name another file"
                )
        return arrays

    def write(self, arrays: dict[str, np.ndarray], *, now: bool = False) -> bool:
        """Write where `every` seconds have passed, or `now`; a run killed meanwhile leaves the file as it was before.

        False where nothing was written.
        """
        if not now and time.perf_counter() - self.written < self.every:
            return False
        self.written = time.perf_counter()
        try:
            with atomic_file(self.path) as file:
                named: dict[str, Any] = arrays
                np.savez(file, identity=np.array(json.dumps(self.identity)), **named)
        except DataError as error:
            if not self.warned:
                self.warned = True
                warnings.warn(f"{self.typed}: {error}; the solve goes on without it", stacklevel=2)
            return False
        self.written = time.perf_counter()
        return True


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())


def _short(value) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= 60 else text[:57] + "...")


# --------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent as a solver: what it takes, its options, warm starts, checkpoints and progress.

#: Below so many scalars in all tasks, passes over samples take less time than setting up Newton systems.
_WORTH_NEWTON = 200_000

#: Passes that cost what Newton steps do: a step has as many products as there are features, in BLAS, and calls that cost so many
#: multiplications of a pass.
_PASSES, _PASSES_A_FEATURE, _OVERHEAD = 20.0, 4.0, 7e4

#: scalars in all tasks up to which Newton systems of dense data are affordable, and up to which their calls are worth more passes
_LARGEST_NEWTON, _SMALL, _MORE_OF_SMALL = 1e8, 1e6, 3.0

#: Tall data whose multipliers are near: features from which on passes that balance intercepts go first; passes for each squared feature over
#: rows, of the patience and of the first turn; the share to which the gap must fall whenever passes double. Measured on 150 to 20,000 rows: what
#: is done within these takes a half to a tenth of the time of Newton steps, what is not up to twice as long.
_BALANCED, _PATIENCE_A_SQUARE, _PASSES_A_SQUARE, _PACE = 100, 0.5, 3.0, 0.1

#: The same on wide data with smooth losses, beside Newton steps: so many passes where a sample costs nothing beside its entries; it costs what so
#: many entries do; and no fewer.
_WIDE_PASSES, _A_SAMPLE, _FEWEST_PASSES = 170.0, 115.0, 20.0

#: Smooth losses on wide data (`_newton_is_faster`): features over rows from which on passes are the faster ones with sparse inputs; the
#: ridge over the mean squared column below which they are; tasks up to which they are with dense inputs, and rows from which on beside an intercept.
_FAR_WIDER, _WEAK, _FEW_TASKS, _LARGE_KERNEL = 4, 0.03, 8, 600


class SampleAscent(Solver):
    """minimize sum_i l_i(<x_i, w_{t_i}>) + c * (kernel regularizer of W): `mkl_norm`, a ridge, quadratics between tasks.

    One coordinate at a time is set to its best value, samples in random order within tasks in random order; between passes theta
    takes a step in closed form: (E.1), longer for weights that keep going the same way, rarer while the gap stands still. Samples at a bound that would stay there are left out (shrinking) until the others have settled.

    shrinking  : leave such samples out for a while
    seed       : of the random order
    checkpoint : file that the multipliers are written to every 30 seconds, and from which the same model goes on
    progress   : print a line after every pass
    """

    name = "dual_ascent"
    summary = "dual ascent on samples, beside mkl_norm and other kernel regularizers"
    options: ClassVar[Mapping[str, object]] = {
        "shrinking": True,
        "seed": 0,
        "checkpoint": None,
        "progress": False,
    }
    writes = ("checkpoint",)

    def refuses(self, form: NormalForm) -> str | None:
        found = kernel_form(form)
        return found if isinstance(found, str) else None

    def yields(self, form: NormalForm) -> str | None:
        """What was measured beside ridges: with a hinge loss it is the fastest, unless in tall data multipliers have far to go; of smooth losses
        see `_newton_is_faster`."""
        found = kernel_form(form)
        if not isinstance(found, KernelForm) or found.name is not None:
            return None
        tasks = found.loss.tasks
        if found.loss.atom.smooth:
            affordable = _newton_is_faster(found)
        else:
            is_tall = tasks.counts.max() > _features_in_use(found)
            if _have_far_to_go(found):
                slow = is_tall and (bool(found.loss.intercepts) or _takes_many_passes(found))
            else:
                slow = is_tall and not _is_tried_first(found)
            affordable = not _is_large(found) and (slow or _links_tasks(found))
        return (
            "coordinate ascent is slower than Newton steps where these are affordable."
            if affordable
            else None
        )

    def patience(self, form: NormalForm) -> int:
        """On tall data fewer passes than Newton steps cost, where multipliers are near: `pace` says whether they get there."""
        found = kernel_form(form)
        if not _is_tried_first(found):
            return super().patience(form)
        return int(_PASSES + _PATIENCE_A_SQUARE * _squares_a_row(found.loss.tasks))

    def pace(self, form: NormalForm) -> float:
        return _PACE if _is_tried_first(kernel_form(form)) else super().pace(form)

    def shift(self, form: NormalForm) -> float:
        """As many passes as cost about what Newton steps do: on small tall data, where multipliers have far to go, and with smooth losses on
        wide data, where rows that resemble each other would take hundreds."""
        found = kernel_form(form)
        if not isinstance(found, KernelForm) or found.name is not None:
            return super().shift(form)
        tasks = found.loss.tasks
        if found.loss.atom.smooth:
            if _links_tasks(found) or _newton_is_faster(found):
                return super().shift(form)
            entries = tasks.entries_a_row
            return max(_WIDE_PASSES * entries / (_A_SAMPLE + entries), _FEWEST_PASSES)
        if _is_tried_first(found):
            few = tasks.n_samples * tasks.n_features <= _SMALL
            return _PASSES * (_MORE_OF_SMALL if few else 1.0) + _PASSES_A_SQUARE * _squares_a_row(tasks)
        if tasks.counts.max() <= _features_in_use(found) or not _have_far_to_go(found):
            return super().shift(form)
        return (
            _PASSES + _PASSES_A_FEATURE * tasks.n_features + _OVERHEAD / (tasks.n_samples * tasks.n_features)
        )

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, shrinking: bool = True, seed: int = 0,
        checkpoint=None, progress: bool = False,
    ) -> Point:  # fmt: skip
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
            raise SolverError(f"seed={seed!r}: write a whole number >= 0")
        found = kernel_form(form)
        assert not isinstance(found, str)  # `refuses` was asked
        ascent = Ascent(found, shrinking=shrinking, random_state=int(seed))
        state = start.state if start is not None and start.state.get("solver") == "dual_ascent" else {}
        if checkpoint is None:
            return _run(ascent, state, tol, max_iter, watch, progress)
        identity = {
            "model": form.typed,
            "data": found.loss.tasks.fingerprint(),
            "numbers": _numbers(found),
        }
        with Checkpoint(checkpoint, identity) as file:
            return _run(ascent, file.read(ascent.state()) or state, tol, max_iter, watch, progress, file)


def _run(ascent: Ascent, state, tol, max_iter, watch, progress, file: Checkpoint | None = None) -> Point:
    if "u" in state and len(state["u"]) == ascent.samples.n:
        ascent.start_from(state["u"], state.get("theta"), state.get("intercepts"))

    def after_epoch(violation: float) -> None:
        if progress:
            print(
                f"pass {ascent.epoch}: {ascent.n_active:,} of {ascent.samples.n:,} samples active, violation {violation:.2e}, "
                f"last gap {ascent.last_gap:.2e}",
                flush=True,
            )
        if file is not None:
            file.write(ascent.state())

    try:
        # nobody to be told: passes of small models may go by several at a time
        return ascent.run(tol, max_iter, watch, after_epoch if progress or file is not None else None)
    finally:
        if file is not None:
            file.write(ascent.state(), now=True)


def _numbers(found: KernelForm) -> str:
    """SHA-256 of what a model is made of besides its text and its data: coefficients, kernels, what is said of their weights."""
    digest = hashlib.sha256(
        repr((found.coefficient, found.norm.p, found.norm.weights_ball, found.loss.intercepts)).encode()
    )
    digest.update(np.ascontiguousarray(found.loss.coefficients).tobytes())
    if isinstance(found.norm.about, np.ndarray):
        digest.update(found.norm.about.tobytes())
    for kernel in found.norm.kernels:
        digest.update(kernel.name.encode())
        for part in (kernel.factor.data, kernel.factor.indices, kernel.factor.indptr, kernel.columns):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _squares_a_row(tasks: TaskData) -> float:
    return tasks.n_features**2 / float(tasks.counts.max())


def _is_tried_first(found: KernelForm | str) -> TypeGuard[KernelForm]:
    """Tell whether passes over tall data are for a loss with kinks whose multipliers are near, and Newton steps for what they leave."""
    if not isinstance(found, KernelForm) or found.name is not None or found.loss.atom.smooth:
        return False
    tasks = found.loss.tasks
    is_worth_it = not found.loss.intercepts or tasks.n_features >= _BALANCED
    is_tall = tasks.counts.max() > _features_in_use(found)
    return is_worth_it and is_tall and not (_is_large(found) or _links_tasks(found) or _have_far_to_go(found))


def _newton_is_faster(found: KernelForm) -> bool:
    """Than passes, with a smooth loss: measured on logistic, squared hinge and Huber losses, generated data of 60 to 20,000 rows.

    Tall data: by 1.3 to 14 times. Sparse wide data: up to twice where the ridge is strong and features are not many times the rows; else passes are
    faster, by up to 80 times, and always with a squared hinge. Dense wide data: Newton steps for all tasks at once in the rows' span are the
    faster ones by 1.2 to 5 times with many tasks, with intercepts in the time of a small kernel matrix, and with losses of residuals; else passes are, by up to 10.
    """
    tasks, atom = found.loss.tasks, cast(SeparableLoss, found.loss.atom)
    rows, d, entropic = int(tasks.counts.max()), _features_in_use(found), atom.entropic
    if _links_tasks(found):
        return entropic or tasks.is_sparse or rows > d
    if rows > d:
        return True
    is_margin = atom.labels == "sign"
    if tasks.is_sparse:
        settles_fast = is_margin and not entropic
        return not (settles_fast or d >= _FAR_WIDER * rows or _is_weak(found))
    if not is_margin or tasks.n_tasks > _FEW_TASKS:
        return True
    return bool(found.loss.intercepts) and rows < _LARGE_KERNEL


def _features_in_use(found: KernelForm) -> int:
    """Features that any sample has: of words, many are in none of the rows that are left."""
    tasks = found.loss.tasks
    return int(np.count_nonzero(tasks.column_lengths.any(axis=1))) if tasks.is_sparse else tasks.n_features


def _is_weak(found: KernelForm) -> bool:
    """Tell whether the ridge is small beside the mean squared column."""
    loss = found.loss
    return found.coefficient * loss.tasks.n_features < _WEAK * float(
        np.mean(np.sum(loss.column_lengths**2, axis=0))
    )


def _links_tasks(found: KernelForm) -> bool:
    """Tell whether the weights of a task depend on those of another."""
    return any(kernel.factor.nnz != kernel.factor.shape[1] for kernel in found.norm.kernels)


def _takes_many_passes(found: KernelForm) -> bool:
    """Tell whether a multiplier's interval is longer than a step of it, 1 / ||x||^2 in units of the ridge, more times than there are features,
    so that passes are more than Newton steps are worth; where these cost next to nothing, so do passes."""
    tasks = found.loss.tasks
    return tasks.n_samples * tasks.n_features >= _WORTH_NEWTON and _have_far_to_go(found)


def _have_far_to_go(found: KernelForm) -> bool:
    loss, tasks = found.loss, found.loss.tasks
    low, high = loss.dual_interval()
    width = float(np.mean(high - low))
    rows = tasks.X.shape[0] * tasks.n_tasks if tasks.is_shared else tasks.n_samples
    length = float(np.sum(loss.column_lengths**2)) / rows
    return width * length > found.coefficient * tasks.n_features


def _is_large(found: KernelForm) -> bool:
    """Tell whether Newton steps in the weights would cost more than passes over the data."""
    tasks = found.loss.tasks
    return tasks.is_sparse or tasks.n_features > 2_000 or tasks.n_samples * tasks.n_features > _LARGEST_NEWTON


# --------------------------------------------------------------------------------------------------------------
# Dual ascent: on planes for structured losses beside a ridge, on samples beside a kernel regularizer, on labellings of a label graph.

_PLANES, _SAMPLES, _LABELLINGS = TasksAscent(), SampleAscent(), LabellingAscent()


class DualAscent(Solver):
    """Three ways to raise the dual value, whose name is the same because the certificate is: see `TasksAscent`, `SampleAscent` and
    `LabellingAscent`.

    A structured loss is a maximum of planes, and its dual a quadratic program over a simplex of planes; a loss that is a sum over samples
    has one multiplier a sample; one of labellings has a random labelling a sample. Options belong to one of the three.
    """

    name = "dual_ascent"
    summary = "dual ascent: on samples beside mkl_norm and other kernel regularizers, on planes for a structured loss beside a ridge, on labellings for clique_hinge"
    options: ClassVar[Mapping[str, object]] = {**_PLANES.options, **_SAMPLES.options, **_LABELLINGS.options}
    writes = _SAMPLES.writes
    takes_spans = True

    def _way(self, form: NormalForm) -> Solver:
        if any(map(has_one_maximum_a_task, form.losses)):
            return _PLANES
        return _LABELLINGS if any(term.atom.labels == "indicators" for term in form.losses) else _SAMPLES

    def refuses(self, form: NormalForm) -> str | None:
        return self._way(form).refuses(form)

    def solves_only(self, form: NormalForm) -> str | None:
        fits = all(f.is_constraint or f.atom.is_smooth or f.atom.weighs_kernels for f in form.functions)
        return (
            None if fits or self._way(form) is _LABELLINGS else "models with quadratic penalties or mkl_norm"
        )

    def yields(self, form: NormalForm) -> str | None:
        return self._way(form).yields(form)

    def patience(self, form: NormalForm) -> int:
        return self._way(form).patience(form)

    def shift(self, form: NormalForm) -> float:
        return self._way(form).shift(form)

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, **options
    ) -> Point:
        way = self._way(form)
        for name, value in options.items():
            if name not in way.options:
                known = ", ".join(f"{key}={default!r}" for key, default in way.options.items())
                raise SolverError(
                    f"this option is not for this model; here dual_ascent takes {known}",
                    term=f"solve(solver='dual_ascent', {name}={value!r})",
                )
        return way.solve(form, tol=tol, max_iter=max_iter, start=start, watch=watch, **options)


SOLVER = DualAscent()
