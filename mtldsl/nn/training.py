"""The training loop: steps on batches with the matrices kept, then the matrices in closed form, epoch by epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.nn.layers import Layers
from mtldsl.nn.options import NetworkOptions
from mtldsl.nn.penalty import kept_quadratic
from mtldsl.nn.torch_module import import_torch, torch_threads

__all__ = ["Trained", "train"]


@dataclass(eq=False)
class Trained:
    """The layers and matrices of one epoch, the best on validation data where there are any, else the last."""

    layers: Layers
    matrices: tuple
    objective: float
    epoch: int
    history: list[dict] = field(default_factory=list)


def train(start: Layers, samples, validation, structure, options: NetworkOptions, rng) -> Trained:
    """Minimise the objective that `MultiTaskNetwork` states, from `start`.

    validation : samples whose weights make the sum of their weighted squares what shall be small, or None.
    """
    typed = f"{type(options).__name__}.fit"
    torch = import_torch(typed)
    with torch_threads(torch, options.threads):
        return _Training(torch, start, samples, validation, structure, options, rng, typed).run()


class _Training:
    def __init__(self, torch, start, samples, validation, structure, options, rng, typed):
        self.torch, self.options, self.rng, self.typed = torch, options, rng, typed
        self.structure, self.shape, self.activation = structure, start.W.shape, start.activation
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
        function = getattr(self.torch, self.activation)
        H = samples.X
        for A, c in self.hidden:
            H = function(H @ A + c)
        return samples.squares(H, self.W, self.intercept).sum()

    def penalties(self):
        total = self.torch.zeros((), dtype=self.torch.float64)
        if self.options.weight_decay:
            total = 0.5 * self.options.weight_decay * sum((A**2).sum() for A in self.decayed)
        return total if self.structure is None else total + self.penalty(self.W)

    # ----------------------------------------------------------------------------------------------- the loop

    def run(self) -> Trained:
        best: Trained | None = None
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
                for group in self.optimizer.param_groups:
                    group["lr"] = (
                        0.5 * self.options.learning_rate * (1.0 + math.cos(math.pi * step / n_steps))
                    )
            look = self._look(perf_counter() - began)
            history.append(look)
            error = look.get("validation", -epoch)  # without validation data, later is better
            if error < best_error:
                best, best_error = self._snapshot(look), error
            elif (
                best is not None
                and self.options.patience is not None
                and epoch - best.epoch >= self.options.patience
            ):
                break
        assert best is not None  # there is an epoch, and `_look` lets no error pass that is not finite
        best.history = history
        return best

    def _step(self, samples, share: float) -> None:
        """One step along an unbiased estimate of the objective's gradient, per label."""
        if self.options.update == "step":
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

    def _snapshot(self, look: dict) -> Trained:
        def plain(array):
            return np.array(array.detach().numpy())

        layers = Layers(
            tuple((plain(A), plain(c)) for A, c in self.hidden),
            plain(self.W),
            plain(self.intercept),
            self.activation,
        )
        return Trained(layers, self.matrices, look["objective"], look["epoch"])
