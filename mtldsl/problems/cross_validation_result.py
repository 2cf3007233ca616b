"""Result of a cross-validation: scores of values on folds, as text and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mtldsl.display.displayable import Displayable
from mtldsl.display.pictures.curves import plot_cross_validation
from mtldsl.display.sections import GOOD, NEUTRAL, Panel, Table
from mtldsl.errors import DataError, ModelError
from mtldsl.problems.folds import Fold
from mtldsl.problems.path import ParameterValues
from mtldsl.solution.measures import Measure, mean_and_error
from mtldsl.solution.score import Score

if TYPE_CHECKING:
    from pathlib import Path

    from mtldsl.problems.choice_certificates import ChoiceCertificates
    from mtldsl.solution.solution import Solution

# --------------------------------------------------------------------------------------------------------------
# What cross-validation found: every score, the values that are best, as a table, as text, as a picture.


class Trial(NamedTuple):
    """One value on one fold."""

    point: tuple[float, ...]
    score: Score
    status: str
    seconds: float


@dataclass(frozen=True, eq=False)
class ProvenRegret:
    """Proof that no value in an interval is better than the best one by more than a regret, on these folds and in this measure.

    asked     : the regret that was asked for;  value : the one that is proven
    between   : (low, high) of the parameter
    intervals : (k, 4) low, high, the best and the worst possible score of any value between them; they cover `between`
    fits      : how many models were learned, on all folds together
    certificates : what `save` writes; None in a copy, and where weights and multipliers of all fits are too large to be kept
    """

    asked: float
    value: float
    between: tuple[float, float]
    intervals: np.ndarray
    fits: int
    certificates: ChoiceCertificates | None = field(default=None, repr=False)

    def save(self, path) -> Path:
        """Write the proof to one .npz file, which `mtldsl verify` and `verify_proof` check. Returns the path written.

        The file holds SHA-256 hashes of the data, the rows of the folds, weights and multipliers of fits, and intervals. Its regret is the
        one that the checker finds. ModelError where the model is not one loss and one ridge of one matrix, or the checker has no such measure.
        """
        if self.certificates is None:
            raise ModelError(
                "the weights and multipliers of all fits were not kept: this is a copy, or they are too large",
                term=f"proof.save({str(path)!r})", write_instead="choose again, with a larger regret or on tasks.subsample(rows)",
            )  # fmt: skip
        return self.certificates.save(path)

    def __reduce__(self):
        """Copies and pickles keep the numbers, not the data."""
        return ProvenRegret, (self.asked, self.value, self.between, self.intervals, self.fits)

    @property
    def is_reached(self) -> bool:
        """Tell whether what was asked for is proven."""
        return self.value <= self.asked


@dataclass(eq=False)
class CrossValidation(Displayable):
    """The scores of values of parameters on folds.

    names        the parameters; `points`, their values that were tried, a tuple each, in the order in which they were solved
    metric       the name of the measure; higher_is_better as it says
    scores       (folds, points) the mean over tasks on each fold, tasks without a number left out
    mean, se     (points,) over folds, and the standard error of that mean: the deviation over folds / sqrt(folds)
    best         the point with the best mean; the first of several, which is the most regularised where values are chosen here
    one_se       the most regularised value whose mean is within one standard error of the best one's; None over several parameters
    best_value   best as a number, for one parameter; likewise one_se_value
    table        a dict a fold, task and point: fold, task (None for measures of whole rows), the parameters by name, score, tested
                 (labels that were scored), learned, status, seconds; `frame()` is the same as a pandas DataFrame
    left_out     of each fold, the tasks that were not learned on it; notes are these as text
    divided      of each fold, a hash of the labels and of the rows on either side: `mtl.compare` takes equal ones alone
    solution     the solution on all data at the value that `refit` says, else None
    proof        with `regret=...` what is proven of all values of an interval, a `ProvenRegret`; else None
    """

    names: tuple[str, ...]
    points: list[tuple[float, ...]]
    metric: str
    higher_is_better: bool
    scores: np.ndarray
    table: list[dict[str, Any]]
    left_out: list[list[str]]
    notes: list[str]
    n_tasks: int
    weaker_is_larger: bool
    model: str = ""
    solution: Solution | None = None
    unscored: dict[str, int] = field(default_factory=dict)
    divided: tuple[str, ...] = ()
    proof: ProvenRegret | None = None

    @classmethod
    def of(
        cls,
        grid: ParameterValues,
        by: Measure,
        parts: Sequence[Fold],
        trials: list[list[Trial]],
        notes,
        model,
        divided: Sequence[str] = (),
    ) -> CrossValidation:
        names = tuple(parameter.name for parameter in grid.parameters)
        rows, unscored = [], dict[str, int]()
        for fold, (part, found) in enumerate(zip(parts, trials, strict=True)):
            tested = part.n_tested
            for trial in found:
                rows += _rows_of(fold, part, trial, names, tested)
            for name in found[0].score.left_out:
                unscored[name] = unscored.get(name, 0) + 1
        return cls(
            names, grid.points, by.name, by.higher_is_better, np.array([[float(t.score) for t in found] for found in trials]),
            rows, [part.left_out for part in parts], notes, len(parts[0].names), grid.weaker_is_larger, model, None, unscored, tuple(divided),
        )  # fmt: skip

    @property
    def n_folds(self) -> int:
        return len(self.scores)

    @property
    def mean(self) -> np.ndarray:
        """(points,) over the folds that have a number."""
        return mean_and_error(self.scores)[0]

    @property
    def se(self) -> np.ndarray:
        """(points,) NaN where fewer than two folds have a number."""
        return mean_and_error(self.scores)[1]

    @property
    def _best(self) -> int | None:
        if np.isnan(self.mean).all():
            return None
        return int(np.nanargmax(self.mean if self.higher_is_better else -self.mean))

    @property
    def best(self) -> tuple[float, ...]:
        """DataError where no fold has a number."""
        if self._best is None:
            raise DataError(
                f"no fold has a number of {self.metric}: in each, the tested labels of every task are all the same, or one alone",
                term=f"cross_validate({', '.join(self.names)}, metric={self.metric!r})",
                write_instead="write fewer folds, or a metric that needs one label, such as 'accuracy' or 'mse'",
            )
        return self.points[self._best]

    @property
    def best_value(self) -> float:
        return self._only(self.best, "best_value")

    @property
    def one_se(self) -> tuple[float, ...] | None:
        if len(self.names) > 1:
            return None
        best, at = self.best, self._best
        slack = np.nan_to_num(self.se[at])
        near = (
            self.mean >= self.mean[at] - slack
            if self.higher_is_better
            else self.mean <= self.mean[at] + slack
        )
        values = np.array([value for (value,) in self.points])[near]
        return (float(values.min() if self.weaker_is_larger else values.max()),) if values.size else best

    @property
    def one_se_value(self) -> float:
        return self._only(self.one_se, "one_se_value")

    def _only(self, point, what: str) -> float:
        if point is None or len(point) != 1:
            raise ValueError(f"{what} is of one parameter, and there are {len(self.names)}; see .best")
        return point[0]

    def frame(self):
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.table)

    def plot(self, ax=None):
        """The mean and its standard error over the values (of two parameters, a map of means), on these or new matplotlib Axes, which are
        returned; see `mtl.report.plot_cross_validation`. MissingExtraError where matplotlib is not installed."""
        return plot_cross_validation(self, ax=ax)

    def __repr__(self) -> str:
        """A line for every value, with what is best marked, and what was left out below."""
        lines = [self._measured]
        if self.proof is not None:
            return "\n".join([*lines, *self._notes()])
        width = max(10, *(len(name) + 2 for name in self.names))
        lines.append("".join(f"{name:>{width}}" for name in self.names) + f"{'mean':>11}{'se':>10}")
        for point, mean, se, marks in self._rows():
            values = "".join(f"{value:>{width}.4g}" for value in point)
            lines.append(f"{values}{mean:>11.4f}{se:>10.4f}  {marks}".rstrip())
        return "\n".join([*lines, *self._notes()])

    def _panel(self) -> Panel:
        """The same as a table; the verdict is the value that is best."""
        rows = [
            (*(f"{value:.4g}" for value in point), f"{mean:.4f}", f"{se:.4f}", marks)
            for point, mean, se, marks in self._rows()
        ]
        best = () if self._best is None else self.points[self._best]
        verdict = ", ".join(f"{name} = {value:.4g}" for name, value in zip(self.names, best, strict=False))
        return Panel(
            "Cross-validation", verdict, GOOD if best else NEUTRAL, self._measured,
            tables=[Table((*self.names, "mean", "standard error", ""), rows)], notes=self._notes(),
        )  # fmt: skip

    @property
    def _measured(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        return f"{self.metric} ({better} is better), mean of {self.n_folds} folds and its standard error, {self.n_tasks} task{'s' * (self.n_tasks > 1)}"

    def _rows(self):
        """(point, mean, standard error, what is said of it) of every point."""
        for k, (point, mean, se) in enumerate(zip(self.points, self.mean, self.se, strict=True)):
            is_near = self._best is not None and point == self.one_se
            yield point, mean, se, ", ".join(["best"] * (k == self._best) + ["one standard error"] * is_near)

    def _notes(self) -> list[str]:
        notes = [self.describe_proof()] if self.proof is not None else []
        open_ = sum(row["status"] not in ("optimal", "stationary") for row in self.table)
        if open_:
            notes.append(
                f"not solved to the tolerance: {open_} of {len(self.table)} rows of the table, see status"
            )
        if self.notes:
            notes.append("not learned: " + "; ".join(self.notes))
        return notes + self.describe_unscored()

    def describe_proof(self) -> str:
        """Return in one sentence what is proven of all values; "" where nothing is."""
        proof = self.proof
        if proof is None or self._best is None:
            return ""
        (name,), (low, high) = self.names, proof.between
        better = "higher" if self.higher_is_better else "lower"
        missed = "" if proof.is_reached else f", though {proof.asked:.4g} was asked for"
        return (
            f"proven: for no {name} between {low:.4g} and {high:.4g} is {self.metric} on these folds {better} than that of "
            f"{name} = {self.best_value:.4g}, {self.mean[self._best]:.4g}, by more than {_rounded_up(proof.value)}{missed} "
            f"({proof.fits} fits, {len(proof.intervals)} intervals)"
        )

    def describe_unscored(self) -> list[str]:
        """A sentence on the tasks that the measure says nothing of in some folds, as there is no +1 in them, or nothing else."""
        if not self.unscored:
            return []
        folds = ", ".join(
            f"{name!r} in {count} of {self.n_folds} folds" for name, count in self.unscored.items()
        )
        return [f"without a number: {folds}"]


def _rows_of(fold: int, part: Fold, trial: Trial, names, tested) -> list[dict[str, Any]]:
    parameters = dict(zip(names, trial.point, strict=True))
    tail = {"status": trial.status, "seconds": trial.seconds}
    by_task = trial.score.by_task
    if by_task is None:
        whole = {"fold": fold, "task": None, **parameters, "score": float(trial.score), "tested": sum(tested)}
        return [whole | {"learned": bool(part.learned.all())} | tail]
    return [
        {"fold": fold, "task": name, **parameters, "score": float(score), "tested": n, "learned": bool(there)}
        | tail
        for name, score, n, there in zip(part.names, by_task, tested, part.learned, strict=True)
    ]


def _rounded_up(value: float) -> str:
    """Return four digits, no less than the value."""
    text = f"{value:.4g}"
    return text if float(text) >= value else f"{value + 10.0 ** (math.floor(math.log10(value)) - 3):.4g}"
