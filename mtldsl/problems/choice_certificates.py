"""Certificates of a proven choice: the fits and intervals of a search, written as a file that `mtldsl verify` checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.certificates.checker.choice_file import choice_as_read, rows_of, unsupported, write_choice
from mtldsl.certificates.checker.data_match import check_described_choice
from mtldsl.certificates.checker.proof_file import DataArrays, as_read
from mtldsl.certificates.proof_writer import describe_family
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.language.scalars import Parameter
from mtldsl.problems.folds import Fold, model_on_tasks

#: weights, intercepts and the multipliers of the loss, of a fit on a fold
FoldArrays = tuple[np.ndarray, np.ndarray | None, np.ndarray]


@dataclass(frozen=True, eq=False)
class ChoiceCertificates:
    """Fits and intervals that prove a choice, with the problem and the folds that they are of.

    fits      : of each value, the arrays of all folds
    intervals : (k, 4) low, high, and the values of the two fits that bound the scores in between
    """

    problem: Any
    parameter: Parameter
    tasks: Tasks
    parts: Sequence[Fold]
    metric: str
    fits: dict[float, list[FoldArrays]]
    intervals: np.ndarray
    chosen: float
    score: float
    regret: float

    def save(self, path) -> Path:
        """Write what the checker reads, with the regret that the checker finds. ModelError for models and folds that it does not read."""
        typed = f"proof.save({str(path)!r})"
        sets: list[DataArrays] = []
        form, grows = describe_family(self.problem, self.parameter, sets)
        form = as_read(form)
        if why := self._refusal(form, grows, sets):
            raise ModelError(
                f"no checker reads a choice of this kind: {why}",
                term=typed,
                write_instead="save one of loss + lam * ridge(W), of data without sample weights, by such as accuracy, f1, roc_auc or mse",
            )
        values = sorted({*self.intervals[:, 2:].ravel().tolist(), self.chosen})
        kept = [self.fits[value] for value in values]
        has_intercepts = kept[0][0][1] is not None
        choice = {
            "form": form, "parameter": self.parameter.name, "grows": grows, "metric": self.metric, "values": np.array(values),
            "folds": [{"train": part.kept.astype(np.uint8), "held_out": part.held_out.astype(np.uint8)} for part in self.parts],
            "weights": [np.stack([fit[k][0] for fit in kept]) for k in range(len(self.parts))],
            "intercepts": [np.stack([fit[k][1] for fit in kept]) for k in range(len(self.parts))] if has_intercepts else None,  # type: ignore[misc]
            "multipliers": [np.stack([fit[k][2] for fit in kept]) for k in range(len(self.parts))],
            "intervals": np.column_stack([self.intervals[:, :2], np.searchsorted(values, self.intervals[:, 2:])]),
            "claimed": {
                "low": float(self.intervals[0, 0]), "high": float(self.intervals[-1, 1]), "chosen": self.chosen, "score": self.score, "regret": _rounded_up(self.regret),
            },
        }  # fmt: skip
        found = check_described_choice(choice_as_read(choice), sets[0], typed)
        if not np.isfinite(found.regret):
            raise ModelError("the checker proves no regret of these fits", term=typed, write_instead="write a smaller tol, such as tol=1e-12")  # fmt: skip
        choice["claimed"] |= {"regret": _rounded_up(found.regret)}
        return write_choice(path, choice)

    def _refusal(self, form: dict, grows: str, sets: list[DataArrays]) -> str:
        """Return why the checker does not read it; "" where it does."""
        if why := unsupported(form, self.metric):
            return why
        if not grows:
            return f"{self.parameter.name} multiplies neither the loss alone nor the ridge alone"
        if self.tasks.sample_weights is not None:
            return "the data have sample weights"
        (data,) = sets
        for k, part in enumerate(self.parts):
            if not part.learned.all():
                return f"fold {k} leaves out the tasks {', '.join(map(repr, part.left_out))}"
            own = describe_family(
                model_on_tasks(self.problem, part.train(self.tasks), part.learned), self.parameter
            )[0]
            if not np.array_equal(own["losses"][0]["coefficients"], form["losses"][0]["coefficients"]):
                return "the loss is a mean, which weighs other rows in every fold: write mean=False"
            learned, rows = own["data"][0]["hashes"], rows_of(data, part.kept.astype(bool)).hashes()
            if any(learned[name] != rows[name] for name in learned.keys() & rows.keys()):
                return f"the rows that fold {k} learns on were scaled or filled in anew"
        return ""


def _rounded_up(regret: float) -> float:
    """A regret with room for another order of sums."""
    return regret * (1.0 + 1e-9) + 1e-12
