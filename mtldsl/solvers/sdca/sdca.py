"""Dual coordinate ascent as a solver: what it takes, its options, warm starts and checkpoints."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mtldsl.errors import DataError, SolverError
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.cutting_planes import structural_svm
from mtldsl.solvers.cutting_planes.oracle import has_one_maximum_a_task
from mtldsl.solvers.cutting_planes.structural_svm import StructuralSVM
from mtldsl.solvers.label_graphs.clique_generation import ascend_labellings
from mtldsl.solvers.label_graphs.labeling_ascent import clique_form
from mtldsl.solvers.sdca.dual_ascent import DualAscentRun, kernel_form
from mtldsl.solvers.solver import Method, MethodSolver, Point, Watch
from mtldsl.utils.arrays import digest
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


def identity_of(form: NormalForm) -> dict[str, str]:
    """The model as typed, its data by checksums of the partitions, and all its numbers: the same in every process, and known without a pass."""
    losses = [(one.atom, one.coefficients, one.map, one.intercepts) for one in form.losses]
    functions = [(one.atom, one.coefficient, one.map) for one in form.functions]
    tables: list[Any] = [one.tasks for one in form.losses]
    data = [tasks.fingerprint() if tasks.in_memory else tasks.parts.mark for tasks in tables]
    numbers = digest(losses, functions, form.blocks, form.constant)
    return {"model": form.typed, "data": digest(data), "numbers": numbers}


# --------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent on samples: warm starts, checkpoints and progress.


def ascend_samples(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch, shrinking: bool = True, seed: int = 0,
    checkpoint=None, progress: bool = False,
) -> Point:  # fmt: skip
    """minimize sum_i l_i(<x_i, w_{t_i}>) + c * (kernel regularizer of W): `mkl_norm`, a ridge, quadratics between tasks.

    One coordinate at a time is set to its best value, samples in random order within tasks in random order; between passes theta
    takes a step in closed form: (E.1), longer for weights that keep going the same way, rarer while the gap stands still. Samples at a bound that would stay there are left out (shrinking) until the others have settled.

    shrinking  : leave such samples out for a while
    seed       : of the random order
    checkpoint : file that the multipliers are written to every 30 seconds, and from which the same model goes on
    progress   : print a line after every pass
    """
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SolverError(f"seed={seed!r}: write a whole number >= 0")
    found = kernel_form(form)
    assert not isinstance(found, str)  # `refuses` was asked
    ascent = DualAscentRun(found, shrinking=shrinking, random_state=int(seed))
    state = start.state if start is not None and start.state.get("solver") == "dual_ascent" else {}
    if checkpoint is None:
        return _run(ascent, state, tol, max_iter, watch, progress)
    with Checkpoint(checkpoint, identity_of(form)) as file:
        return _run(ascent, file.read(ascent.state()) or state, tol, max_iter, watch, progress, file)


def _run(
    ascent: DualAscentRun, state, tol, max_iter, watch, progress, file: Checkpoint | None = None
) -> Point:
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


# --------------------------------------------------------------------------------------------------------------
# Dual ascent: on planes for structured losses beside a ridge, on samples beside a kernel regularizer, on labellings of a label graph.


#: Way -> its options.
_OPTIONS: Mapping[str, Mapping[str, object]] = {
    "planes": {"pull": 0.25},
    "samples": {"shrinking": True, "seed": 0, "checkpoint": None, "progress": False},
    "labellings": {"seed": 0},
}


def _way_for(form: NormalForm) -> str:
    """Return the way for losses of this kind."""
    if any(map(has_one_maximum_a_task, form.losses)):
        return "planes"
    return "labellings" if any(term.atom.labels == "indicators" for term in form.losses) else "samples"


def _labellings_refusal(form: NormalForm) -> str | None:
    found = clique_form(form)
    return found if isinstance(found, str) else None


def _samples_refusal(form: NormalForm) -> str | None:
    found = kernel_form(form)
    return found if isinstance(found, str) else None


METHODS = (
    Method(
        "planes",
        "weights of the planes of every task",
        structural_svm.unsupported_reason,
        lambda form, tol, most, start, watch, pull=0.25: (
            StructuralSVM(form, tol, start, pull).run(most, watch),
            True,
        ),
    ),
    Method(
        "labellings",
        "a random labelling per sample",
        _labellings_refusal,
        lambda *run, **options: (ascend_labellings(*run, **options), True),
    ),
    Method(
        "samples",
        "one multiplier per sample",
        _samples_refusal,
        lambda *run, **options: (ascend_samples(*run, **options), True),
    ),
)


class DualAscent(MethodSolver):
    """Three ways to raise the dual value, whose name is the same because the certificate is: see `StructuralSVM`, `ascend_samples` and
    `ascend_labellings`.

    A structured loss is a maximum of planes, and its dual a quadratic program over a simplex of planes; a loss that is a sum over samples
    has one multiplier a sample; one of labellings has a random labelling a sample. Options belong to one of the three.
    """

    name = "dual_ascent"
    summary = "dual ascent: on samples beside mkl_norm and other kernel regularizers, on planes for a structured loss beside a ridge, on labellings for clique_hinge"
    options: ClassVar[Mapping[str, object]] = {k: v for own in _OPTIONS.values() for k, v in own.items()}
    writes = ("checkpoint",)
    takes_spans = True
    methods = METHODS

    def refuses(self, form: NormalForm) -> str | None:
        way = _way_for(form)
        return next(one.refuses(form) for one in METHODS if one.name == way)

    def solves_only(self, form: NormalForm) -> str | None:
        fits = all(f.is_constraint or f.atom.is_smooth or f.atom.weighs_kernels for f in form.functions)
        fits |= _way_for(form) == "labellings"
        return None if fits else "models with quadratic penalties or mkl_norm"

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, **options
    ) -> Point:
        taken = _OPTIONS[_way_for(form)]
        for name, value in options.items():
            if name not in taken:
                known = ", ".join(f"{key}={default!r}" for key, default in taken.items())
                raise SolverError(
                    f"this option is not for this model; here dual_ascent takes {known}",
                    term=f"solve(solver='dual_ascent', {name}={value!r})",
                )
        return super().solve(form, tol=tol, max_iter=max_iter, start=start, watch=watch, **options)


SOLVER = DualAscent()
