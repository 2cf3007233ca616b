"""Training of networks by PyTorch: layers, options, scales, samples and the loop over epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from mtldsl.atoms.atom import checked_number
from mtldsl.atoms.learned_structures.structure import Range, Structure
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.data.derived import label_table
from mtldsl.data.scaling import Scaling
from mtldsl.data.schema import Schema
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, MissingExtraError, ModelError, SolverError
from mtldsl.utils.validation import as_flag

# --------------------------------------------------------------------------------------------------------------
# What networks take: tasks and inputs that are dense, and no features of kernels.


def dense_tasks(tasks, typed: str) -> Tasks:
    """The tasks; DataError where they are not Tasks, sparse, or kernel features."""
    if not isinstance(tasks, Tasks):
        raise DataError(f"{typed}({type(tasks).__name__}): give a Tasks object, Tasks.shared(X, Y)")
    if tasks.is_sparse:
        raise DataError(
            "networks take dense inputs", term=typed, write_instead="write Tasks.shared(X.toarray(), Y)"
        )
    if tasks.kernel_map is not None:
        raise DataError(
            "networks learn features of their own",
            term=typed,
            write_instead="give the tasks without kernels=... or with_kernels(...)",
        )
    return tasks


def dense_inputs(schema: Schema, X) -> np.ndarray:
    """New inputs (n, d) on the scale of training; DataError where they are sparse, or other columns than those learned on."""
    X = schema.columns(X)
    if not isinstance(X, np.ndarray):
        raise DataError("predict: networks take dense inputs", write_instead="write X.toarray()")
    return np.asarray(schema.scaled(X))


def dense_alike(schema: Schema, tasks, typed: str) -> Tasks:
    """The tasks on the scale of those of training; DataError where networks do not take them, or they are others."""
    return schema.alike(dense_tasks(tasks, typed), typed)


# --------------------------------------------------------------------------------------------------------------
# What a network is once it is trained: plain arrays, so that predicting and storing need no PyTorch.


@dataclass(frozen=True, eq=False)
class Layers:
    """x -> h(x) -> h(x) W + intercept, with h(x) = a(... a(x A_1 + c_1) ... A_k + c_k), a the positive part.

    hidden         : pairs A (q, p), c (p,), one a hidden layer; none: h(x) = x, a linear model
    W (p, m)       : the last layer, column i for task i
    intercept (m,) : zeros where there is none
    """

    hidden: tuple[tuple[np.ndarray, np.ndarray], ...]
    W: np.ndarray
    intercept: np.ndarray

    @classmethod
    def random(cls, sizes, n_tasks: int, rng: np.random.Generator) -> Layers:
        """Normal weights that keep signals at their size, and no shifts; sizes are those of x and the hidden layers."""
        hidden = tuple((np.sqrt(2.0 / q) * rng.normal(size=(q, p)), np.zeros(p)) for q, p in pairwise(sizes))
        W = rng.normal(size=(sizes[-1], n_tasks)) / np.sqrt(sizes[-1])
        return cls(hidden, W, np.zeros(n_tasks))

    def features(self, X) -> np.ndarray:
        """h(x) of every row, (n, p)."""
        for A, c in self.hidden:
            X = np.maximum(X @ A + c, 0.0)
        return X

    def outputs(self, X) -> np.ndarray:
        """The outputs of all tasks, (n, m)."""
        return self.features(X) @ self.W + self.intercept


# --------------------------------------------------------------------------------------------------------------
# How networks are built and trained: the options that all of them share, checked when they are typed.


@dataclass(kw_only=True, eq=False)
class NetworkOptions:
    """The options of `MultiTaskNetwork` but for its structure; described there."""

    hidden: tuple[int, ...] = (256, 100)
    weight_decay: float = 0.0
    intercept: bool = True
    standardize: bool = True
    epochs: int = 100
    batch_size: int | None = 64
    learning_rate: float = 1e-3
    patience: int | None = None
    threads: int | None = 1
    random_state: int | np.random.Generator | np.random.SeedSequence | None = None

    def __post_init__(self):
        word = type(self).__name__

        def whole(name, value):
            must_be = "a whole number of at least 1"
            return int(checked_number(word, name, value, lambda v: v >= 1 and v == int(v), must_be))

        for name in ("intercept", "standardize"):
            setattr(self, name, as_flag(getattr(self, name), f"{word}({name}", ModelError))
        try:
            sizes = tuple(self.hidden)
        except TypeError:
            raise ModelError(
                f"{word}(hidden={self.hidden!r}): write the sizes of the layers, hidden=(256, 100)"
            ) from None
        self.hidden = tuple(whole("hidden", size) for size in sizes)
        self.epochs = whole("epochs", self.epochs)
        for name in ("batch_size", "patience", "threads"):
            value = getattr(self, name)
            setattr(self, name, None if value is None else whole(name, value))
        self.weight_decay = checked_number(
            word, "weight_decay", self.weight_decay, lambda v: v >= 0, "a number >= 0"
        )
        self.learning_rate = checked_number(
            word, "learning_rate", self.learning_rate, lambda v: v > 0, "a number > 0", largest=np.inf
        )
        try:
            np.random.default_rng(self.random_state)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{word}(random_state={self.random_state!r}): {error}",
                write_instead="write a whole number >= 0",
            ) from None


# --------------------------------------------------------------------------------------------------------------
# A learned structure on the last layer: checked, and its quadratic form written with PyTorch's operations.


def checked_structure(structure, shape: tuple[int, int], typed: str):
    """The structure; ModelError where it cannot be the penalty of a last layer W of that shape."""
    if structure is None:
        return None
    if not isinstance(structure, Structure):
        raise ModelError(
            f"structure={structure!r} is not a learned structure",
            term=typed,
            write_instead="write "
            "structure=MatrixNormal(eta=1.0, rho=1.0).bound([Range(0.01, 100.0), Range(0.01, 100.0)])",
        )
    if not structure.is_smooth:
        raise ModelError(
            f"structure={structure.name} has no gradient where W has not full rank, and a network is trained by "
            "gradients",
            term=typed,
            write_instead="write MatrixNormal().bound([Range(0.01, 100.0), Range(0.01, 100.0)])",
        )
    matrices = [getattr(structure, f.name) for f in fields(structure) if "matrix" in f.metadata]
    for learned, said in zip(structure.learns, matrices, strict=True):
        side = shape[0] if learned.axis == "features" else shape[1]
        _check_matrix(said, learned, side, structure, typed)
    return structure


def _check_matrix(said, learned, side: int, structure, typed: str) -> None:
    if isinstance(said, SpectralMatrix):
        if said.side != side:
            raise ModelError(
                f"{learned.name} is given as {said.side} x {said.side}, but the last layer has {side} {learned.axis}",
                term=typed,
            )
        if not said.eigenvalues()[0] > 0:
            raise ModelError(f"{learned.name} is given, but not positive definite", term=typed)
        return
    if not isinstance(said, Range):
        raise ModelError(
            f"structure={structure.name} says nothing of {learned.name}",
            term=typed,
            write_instead="write "
            "structure.bound([Range(0.01, 100.0), Range(0.01, 100.0)]), or SpectralMatrix.of(array) in place of a Range",
        )
    for bound, missing in (("lower", not said.lower > 0), ("upper", not said.upper < np.inf)):
        if missing and bound in structure.needs:
            raise ModelError(
                f"{learned.name} has no {bound} bound: {structure.needs[bound].format(name=learned.name)}",
                term=typed,
                write_instead="write Range(0.01, 100.0)",
            )


def kept_quadratic(torch, structure: Structure, shape: tuple[int, int], matrices):
    """W -> structure.value_at(W, matrices) as a function of a tensor, 1/2 tr(A W B W^T) + constant."""
    quadratic = structure.quadratic(shape, matrices)
    rows, columns = _product(torch, quadratic.rows), _product(torch, quadratic.columns)
    return lambda W: 0.5 * (rows(W) * columns(W.T).T).sum() + quadratic.constant


def _product(torch, S: SpectralMatrix):
    """M -> S M, in time linear in the rank of what S holds beside a multiple of the identity."""
    U = torch.tensor(S.basis)
    above = torch.tensor(S.values - S.rest)[:, None]
    return lambda M: U @ (above * (U.T @ M)) + S.rest * M


# --------------------------------------------------------------------------------------------------------------
# Inputs and labels on scales that a network learns well on, and predictions back on those of the labels.


@dataclass(frozen=True, eq=False)
class TrainingStatistics:
    """Statistics of training data: of the inputs over all rows of all tasks, of the labels task by task."""

    inputs: Scaling
    labels: Scaling

    @classmethod
    def of(cls, tasks: Tasks, standardize: bool) -> TrainingStatistics:
        """Means and standard deviations, 1 where something is constant; zeros and ones where standardize is False."""
        d, m = tasks.n_features, tasks.n_tasks
        if not standardize:
            return cls(Scaling(np.zeros(d), np.ones(d)), Scaling(np.zeros(m), np.ones(m)))
        inputs = Scaling.of(tasks.matrices, center=True, scale=True)
        by_task = [Scaling.of([y[:, None]], center=True, scale=True) for y in tasks.per_task(tasks.targets)]
        labels = Scaling(
            np.concatenate([one.mean for one in by_task]), np.concatenate([one.scale for one in by_task])
        )
        return cls(inputs, labels)


# --------------------------------------------------------------------------------------------------------------
# Tasks as rows of inputs that a network sees once, however many tasks have a label there.


class Batch:
    """Samples whose arrays are taken together."""

    def map(self, function) -> Any:
        """The same samples with every array replaced."""
        return type(self)(*map(function, vars(self).values()))

    def rows(self, index) -> Any:
        return self.map(lambda array: array[index])


@dataclass(frozen=True, eq=False)
class SharedBatch(Batch):
    """A label of every task at each row: X (R, d), labels and weights (R, m); weight 0 where a label is missing."""

    X: object
    labels: object
    weights: object

    def squares(self, H, W, intercept):
        """Weighted squared residuals, one a label, of features H (R, p)."""
        return self.weights * (self.labels - (H @ W + intercept)) ** 2


@dataclass(frozen=True, eq=False)
class SeparateBatch(Batch):
    """Each row belongs to one task: X (R, d), labels, weights and the task's position (R,)."""

    X: object
    labels: object
    weights: object
    task: object

    def squares(self, H, W, intercept):
        """Weighted squared residuals, one a label, of features H (R, p)."""
        outputs = (H * W.T[self.task]).sum(1) + intercept[self.task]
        return self.weights * (self.labels - outputs) ** 2


def as_samples(tasks: Tasks, scales: TrainingStatistics, weights=None) -> SharedBatch | SeparateBatch:
    """The tasks on those scales; `weights` (N,) in place of the tasks' sample weights. Rows without any label are left out."""
    mean, scale = (np.repeat(each, tasks.counts) for each in (scales.labels.mean, scales.labels.scale))
    labels = (tasks.targets - mean) / scale
    if weights is None:
        weights = np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights
    if not tasks.is_shared:
        X = scales.inputs.apply(tasks.stacked)
        return SeparateBatch(X, labels, np.array(weights), np.array(tasks.task_of))
    Y, S = (np.nan_to_num(label_table(tasks, flat)) for flat in (labels, np.asarray(weights)))
    labelled = S.any(axis=1)
    return SharedBatch(scales.inputs.apply(tasks.X)[labelled], Y[labelled], S[labelled])


# --------------------------------------------------------------------------------------------------------------
# PyTorch, imported where it is used and not before.


def import_torch(typed: str):
    """The module; MissingExtraError with the line to type where it is not installed."""
    try:
        import torch  # pyrefly: ignore[missing-import]  # an extra, which need not be installed where types are checked
    except ImportError as error:
        raise MissingExtraError(
            f"networks are trained by PyTorch, which cannot be imported ({error})",
            term=typed,
            write_instead='write pip install ".[torch]" in the checkout',
        ) from None
    return torch


# --------------------------------------------------------------------------------------------------------------
# The training loop: steps on batches with the matrices kept, and before each the matrices in closed form.


@dataclass(eq=False)
class TrainedLayers:
    """The layers and matrices of one epoch, the best on validation data where there are any, else the last."""

    layers: Layers
    matrices: tuple
    objective: float
    epoch: int
    history: list[dict] = field(default_factory=list)


def train(start: Layers, samples, validation, structure, options: NetworkOptions, rng) -> TrainedLayers:
    """Minimise the objective that `MultiTaskNetwork` states, from `start`.

    validation : samples whose weights make the sum of their weighted squares what shall be small, or None.
    """
    typed = f"{type(options).__name__}.fit"
    torch = import_torch(typed)
    threads = torch.get_num_threads()
    try:
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        return _TrainingRun(torch, start, samples, validation, structure, options, rng, typed).run()
    finally:
        torch.set_num_threads(threads)


class _TrainingRun:
    def __init__(self, torch, start, samples, validation, structure, options, rng, typed):
        self.torch, self.options, self.rng, self.typed = torch, options, rng, typed
        self.structure, self.shape = structure, start.W.shape
        self.samples = samples.map(torch.from_numpy)
        self.n_labels = int((samples.weights > 0).sum())
        self.validation = None if validation is None else validation.map(torch.from_numpy)
        self.hidden = [(self._unknown(A), self._unknown(c)) for A, c in start.hidden]
        self.W = self._unknown(start.W)
        self.intercept = self._unknown(start.intercept, options.intercept)
        unknowns = [*(array for pair in self.hidden for array in pair), self.W]
        self.optimizer = torch.optim.Adam(
            [*unknowns, self.intercept] if options.intercept else unknowns, lr=options.learning_rate
        )
        # where a structure stands on the last layer, it takes the place of weight decay there
        self.decayed = [A for A, _ in self.hidden] + ([self.W] if structure is None else [])
        self._keep(() if structure is None else structure.start(self.shape))

    def _unknown(self, array, learned: bool = True):
        return self.torch.tensor(array, dtype=self.torch.float64, requires_grad=learned)

    def _keep(self, matrices) -> None:
        self.matrices = matrices
        if self.structure is not None:
            self.penalty = kept_quadratic(self.torch, self.structure, self.shape, matrices)

    def _update(self) -> None:
        if self.structure is None:
            return
        W = self.W.detach().numpy()
        self._require_finite(W)
        with np.errstate(over="ignore"):  # of W that are about to diverge, which the next look then says
            self._keep(self.structure.update(W))

    def _require_finite(self, values) -> None:
        if not np.isfinite(values).all():
            raise SolverError(
                f"the objective is no longer finite in epoch {self.epoch}",
                term=self.typed,
                write_instead=f"write a smaller learning_rate than "
                f"{self.options.learning_rate:g}, or standardize=True",
            )

    # ------------------------------------------------------------------------------------------ the objective

    def loss(self, samples):
        H = samples.X
        for A, c in self.hidden:
            H = self.torch.relu(H @ A + c)
        return samples.squares(H, self.W, self.intercept).sum()

    def penalties(self):
        total = self.torch.zeros((), dtype=self.torch.float64)
        if self.options.weight_decay:
            total = 0.5 * self.options.weight_decay * sum((A**2).sum() for A in self.decayed)
        return total if self.structure is None else total + self.penalty(self.W)

    # ----------------------------------------------------------------------------------------------- the loop

    def run(self) -> TrainedLayers:
        best: Any = None
        best_error, history, began = math.inf, [], perf_counter()
        n_rows = len(self.samples.X)
        batch = n_rows if self.options.batch_size is None else min(self.options.batch_size, n_rows)
        n_steps = self.options.epochs * math.ceil(n_rows / batch)
        step = 0
        for epoch in range(1, self.options.epochs + 1):
            self.epoch = epoch
            order = self.torch.from_numpy(self.rng.permutation(n_rows))
            for rows in order.split(batch):
                self._step(self.samples.rows(rows) if batch < n_rows else self.samples, n_rows / len(rows))
                step += 1
                rate = 0.5 * self.options.learning_rate * (1.0 + math.cos(math.pi * step / n_steps))
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
            look = self._look(perf_counter() - began)
            history.append(look)
            error = look.get("validation", -epoch)  # without validation data, later is better
            if error < best_error:
                best, best_error = self._snapshot(look), error
            elif epoch - best.epoch >= (self.options.patience or math.inf):
                break
        assert best is not None  # there is an epoch, and `_look` lets no error pass that is not finite
        best.history = history
        return best

    def _step(self, samples, share: float) -> None:
        """One step along an unbiased estimate of the objective's gradient, per label."""
        self._update()
        self.optimizer.zero_grad()
        objective = share * self.loss(samples) + self.penalties()
        (objective / self.n_labels).backward()
        self.optimizer.step()

    def _look(self, seconds: float) -> dict:
        with self.torch.no_grad():
            loss, penalty = float(self.loss(self.samples)), float(self.penalties())
            error = None if self.validation is None else float(self.loss(self.validation))
        look = {"epoch": self.epoch, "seconds": seconds, "loss": loss}
        self._require_finite(loss + penalty + (error or 0.0))
        if self.structure is not None:
            W = self.W.detach().numpy()
            before = self.structure.value_at(W, self.matrices)
            self._update()
            look["update_decrease"] = before - self.structure.value_at(W, self.matrices)
            penalty -= look["update_decrease"]
        look |= {"penalty": penalty, "objective": loss + penalty}
        return look if error is None else look | {"validation": error}

    def _snapshot(self, look: dict) -> TrainedLayers:
        def plain(array):
            return np.array(array.detach().numpy())

        layers = Layers(
            tuple((plain(A), plain(c)) for A, c in self.hidden),
            plain(self.W),
            plain(self.intercept),
        )
        return TrainedLayers(layers, self.matrices, look["objective"], look["epoch"])
