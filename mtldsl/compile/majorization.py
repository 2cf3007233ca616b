"""Steps of majorisation-minimisation, kept so that the reference can repeat them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.compile.normal_form import Blocks

__all__ = ["MajorizationStep", "Remembered"]


@dataclass(frozen=True, eq=False)
class MajorizationStep:
    """From `before`, where a convex majoriser of the objective touches it, to `after`, the majoriser's minimiser.

    reweights_losses : whether the losses too were replaced by quadratics, v_i / 2 ||r_i||^2 + constant a task
    accuracy         : relative to the objective, to which the majoriser was minimised; 0 in closed form
    """

    iteration: int
    before: Blocks
    after: Blocks
    reweights_losses: bool
    accuracy: float = 0.0


class Remembered:
    """The first of a run's steps, a random one, and the last."""

    def __init__(self, wanted: bool, reweights_losses: bool):
        self.wanted, self.reweights_losses = wanted, reweights_losses
        self._kept: dict[str, MajorizationStep] = {}
        self._between, self._rng = 0, np.random.default_rng(0)

    def add(self, iteration: int, before: Blocks, after: Blocks, accuracy: float = 0.0) -> None:
        if not self.wanted:
            return
        step = MajorizationStep(
            iteration,
            {name: np.array(block) for name, block in before.items()},
            {name: np.array(block) for name, block in after.items()},
            self.reweights_losses,
            accuracy,
        )
        before_this = self._kept.get("last")
        if before_this is not None and before_this is not self._kept["first"]:
            self._between += 1
            if self._rng.integers(self._between) == 0:  # every one of them is as likely as any other
                self._kept["random"] = before_this
        self._kept.setdefault("first", step)
        self._kept["last"] = step

    @property
    def steps(self) -> tuple[MajorizationStep, ...]:
        """In the order in which they were made."""
        return tuple(sorted(set(self._kept.values()), key=lambda step: step.iteration))
