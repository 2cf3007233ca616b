"""How much each task counts: the weights that calibrated losses give tasks, and the noise that is left in each."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.solution.later import Later
from mtldsl.solution.readout import Array, Readout, Run, require_per_task

__all__ = ["CALIBRATION", "calibration"]


def calibration(form: NormalForm, blocks: Blocks) -> tuple[np.ndarray, np.ndarray] | None:
    """(task weights (m,), noise levels (m,)) of the first loss that is a function of the norms of tasks' residuals, else None.

    A task's weight v_i is that of the quadratic v_i / 2 ||r_i||^2 which touches its loss from above: the same for all tasks under
    a squared loss, coefficient / ||r_i|| under the square-root loss. Its noise level is the root mean square of its residuals,
    ||r_i|| / sqrt(n_i), n_i the total weight of its samples.
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (15).
    """
    loss = next((loss for loss in form.losses if loss.atom.radial), None)
    if loss is None:
        return None
    return _of_loss(loss, blocks)


def _of_loss(loss: LossTerm, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    norms, totals = np.sqrt(loss.residual_squares(blocks)), loss.tasks.totals
    return loss.coefficients * loss.atom.weight_of_norm(norms), norms / np.sqrt(totals)


def _of_all(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Where each loss has tasks of its own, one number for every task: NaN where its loss is no such function."""
    shares = run.statement.shares
    found = calibration(run.form, run.blocks)
    assert found is not None  # of a loss that is one
    if shares is None:
        return found
    weights, levels = np.full((2, shares.tasks.n_tasks), np.nan)
    for term, columns in zip(shares.terms, shares.columns, strict=True):
        own = [loss for loss in run.form.losses if loss.typed == term.text and loss.atom.radial]
        if own:
            weights[columns], levels[columns] = _of_loss(own[0], run.blocks)
    return weights, levels


def _read(run: Run) -> dict[str, object]:
    if not any(loss.atom.radial for loss in run.form.losses):
        return {}
    levels = Later(lambda: _of_all(run))
    return {"task_weights": Later(lambda: levels.value[0]), "noise_levels": Later(lambda: levels.value[1])}


def _check(fields: dict) -> None:
    for name in ("task_weights", "noise_levels"):
        require_per_task(fields, name, some="kinds" in fields["loss"])


CALIBRATION = Readout(_read, (Array("task_weights"), Array("noise_levels")), _check)
