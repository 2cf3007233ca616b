"""Choice of a parameter that is proven: no value in an interval has an error on the folds that is lower by more than a regret.

Between two fits every held-out score is bounded (`mtldsl.problems.error_bounds`). An interval whose best possible score beats the best fit by
more than the regret is halved while that helps, and then gets a fit in its middle.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.language.scalars import Parameter
from mtldsl.problems.choice_certificates import ChoiceCertificates, FoldArrays
from mtldsl.problems.cross_validation_result import CrossValidation, ProvenRegret, Trial
from mtldsl.problems.error_bounds import Bracket, Fit, FoldBounds, ParameterForm, extreme_answers
from mtldsl.problems.folds import Fold, model_on_tasks
from mtldsl.problems.lambda_max import require_own
from mtldsl.problems.parallel_fits import PartsProgress
from mtldsl.problems.path import ParameterValues, strengthens_losses
from mtldsl.solution.measures import Measure
from mtldsl.solution.predictors import predictor_of
from mtldsl.solution.score import counted_measures, evaluate, mean_score
from mtldsl.solution.solution import Solution
from mtldsl.utils import interrupts
from mtldsl.utils.caching import Store, path_cache
from mtldsl.utils.progress import progress_bar
from mtldsl.utils.validation import as_float, as_list, as_whole, quoted


@dataclass(frozen=True)
class ChoiceSettings:
    """Limits of the search."""

    tol: float = 1e-9  # relative gap of every fit where none is asked for: a wider one widens every bound
    max_fits: int = 1000  # values, where no number is given
    radius_ratio: float = (
        1.5  # of the balls at the ends of an interval over that in its middle, above which halving it helps
    )
    kept_bytes: int = (
        2**30
    )  # of weights and multipliers of all fits, above which none are kept for a saved proof
    min_log_width: float = (
        1e-7  # intervals narrower than this stay as they are: their scores are equal to rounding
    )


SETTINGS = ChoiceSettings()


@dataclass(frozen=True)
class ConvexMeasure:
    """A measure of a task as a number of the mean of a convex function of label and score.

    function, slope : of labels and scores;  number : of the labels and the mean
    """

    function: Callable
    slope: Callable
    number: Callable[[np.ndarray, float], float]


def _squares(number: Callable[[np.ndarray, float], float]) -> ConvexMeasure:
    return ConvexMeasure(lambda y, z: (z - y) ** 2, lambda y, z: 2.0 * (z - y), number)


CONVEX_MEASURES: dict[str, ConvexMeasure] = {
    "mse": _squares(lambda y, mean: mean),
    "nmse": _squares(lambda y, mean: mean / y.var()),
    "r2": _squares(lambda y, mean: 1.0 - mean / y.var()),
    "mae": ConvexMeasure(lambda y, z: np.abs(z - y), lambda y, z: np.sign(z - y), lambda y, mean: mean),
}


def _is_monotone(by: Measure) -> bool:
    """Tell whether an answer that comes nearer to its label never makes the measure worse: of all of ours but one, and of no other metric."""
    metric = getattr(by, "metric", None)
    return by.name != "explained_variance" and (
        metric is None or type(metric).__module__.startswith("mtldsl.")
    )


@dataclass(frozen=True)
class ChoiceRequest:
    """Choice that is asked for: a regret over an interval of a parameter's values, from `max_fits` values at most."""

    parameter: Parameter
    between: tuple[float, float]
    regret: float
    max_fits: int
    weaker_is_larger: bool

    def values(self, values: Iterable[float]) -> ParameterValues:
        """Values from the most regularised one on."""
        return ParameterValues(
            {self.parameter: sorted(values, reverse=not self.weaker_is_larger)}, self.weaker_is_larger
        )


@dataclass(frozen=True, eq=False)
class Cell:
    """An interval of values within a bracket of two fits, and what scores are possible in it."""

    low: float
    high: float
    bracket: tuple[float, float]
    best: float
    worst: float
    radius: tuple[float, float]

    @staticmethod
    def is_wide(low: float, high: float) -> bool:
        """Tell whether there is room for another value between the two."""
        return math.log(high / low) > SETTINGS.min_log_width


class FoldFits:
    """The fits of one fold, and the bounds between them."""

    def __init__(self, problem: Any, parameter: Parameter, tasks: Tasks, part: Fold, between, typed: str):
        model, (own,) = copy.deepcopy((problem, [parameter]), {id(tasks): tasks})
        self.tasks, self.part, self.typed = tasks, part, typed
        self.train = part.train(tasks)
        self.model, self.parameter = model_on_tasks(model, self.train, part.learned), own
        self.form = ParameterForm(self.model, own, between, typed)
        self.made: Store = {}
        self.solutions: dict[float, Solution] = {}
        self.fits: dict[float, Fit] = {}
        self._brackets: dict[tuple[float, float], Bracket] = {}
        self.bounds: FoldBounds | None = None
        self.predictor: Any = None

    def solve(self, value: float, near: float | None, by: Measure, options: dict[str, Any]) -> Trial:
        """Fit at a value, from the solution at another. KeyboardInterrupt after a signal."""
        self.parameter.value = value
        with path_cache(self.made):
            solution = self.model.solve(warm_start=None if near is None else self.solutions[near], **options)
        if solution.interrupted or interrupts.is_signal_pending():
            raise KeyboardInterrupt
        if self.bounds is None:
            self.bounds = FoldBounds(self.form, self.part.inputs(self.tasks, solution))
            self.predictor = predictor_of(solution)
        form = self.model.form()
        self.fits[value] = self.bounds.fit(form, value, solution.blocks, solution.proof.certificate.proof)
        self.solutions[value] = solution
        score = self.part.score(self.tasks, solution, by, self.typed)
        return Trial((value,), score, solution.status, solution.seconds)

    def arrays(self, value: float) -> FoldArrays:
        """Weights, intercepts and the multipliers of the first loss at a value: what a saved proof holds."""
        assert self.bounds is not None
        fit, intercept = self.fits[value], self.form.intercept
        b = None if intercept is None else self.solutions[value].blocks[intercept][0]
        return fit.vectors[0], b, fit.u[0]

    def forget_all_but(self, values: set[float]) -> None:
        """Keep the fits at these values alone."""
        for value in self.fits.keys() - values:
            del self.fits[value], self.solutions[value]
        self._brackets = {ends: one for ends, one in self._brackets.items() if values.issuperset(ends)}

    def possible(
        self, low: float, high: float, bracket, by: Measure
    ) -> tuple[float, float, tuple[float, float]]:
        """(the best possible score at any value in [low, high], the worst, the radii of the balls)."""
        assert self.bounds is not None
        if bracket not in self._brackets:
            self._brackets[bracket] = Bracket(self.bounds, *(self.fits[one] for one in bracket))
        found = self._brackets[bracket].bounds(low, high)
        ends = []
        for z in (found.low, found.high):
            answers = self.predictor.answers(z, by.needs, self.typed)
            truth, each, weights = self.part.of_all_tasks(self.tasks, answers, by.needs)
            ends.append(each)
        extremes = extreme_answers(truth, ends[0], ends[1], by.needs)
        counted = counted_measures(by)
        if counted is None or weights is not None:
            best, worst = (
                float(evaluate(by, truth, each, self.part.names, table=self.tasks.is_shared, weights=weights, typed=self.typed))
                for each in extremes
            )  # fmt: skip
            return best, worst, found.radius
        by_task = [self._by_task(by, counted, truth, each) for each in extremes]
        convex = CONVEX_MEASURES.get(by.name)
        are_scores = all(np.array_equal(a, b) for a, b in zip(answers, found.high, strict=True))
        if convex is not None and are_scores and self.part.learned.all():
            means = found.least_means(truth, convex.function, convex.slope)
            for i, (y, mean) in enumerate(zip(truth, means, strict=True)):
                if not np.isnan(by_task[0][i] + mean):
                    number = convex.number(y[~np.isnan(y)], max(mean, 0.0))
                    by_task[0][i] = by.direction * min(by.direction * by_task[0][i], by.direction * number)
        best, worst = (float(mean_score(one, self.part.names)) for one in by_task)
        return best, worst, found.radius

    def _by_task(self, by: Measure, counted, truth, predicted) -> np.ndarray:
        """(m,) the score of every task; NaN where it has none."""
        found = np.full(len(truth), np.nan)
        for i, (y, p) in enumerate(zip(truth, predicted, strict=True)):
            there = ~(np.isnan(y) | np.isnan(p))
            if by.is_defined(y[there]):
                found[i] = counted(y[there], p[there], np.ones((1, int(there.sum()))))[0]
        return found


def _mean(scores: Sequence[float]) -> float:
    """The mean over the folds that have a number, which labels alone decide; NaN where none has."""
    known = [score for score in scores if not math.isnan(score)]
    return sum(known) / len(known) if known else math.nan


class ProvenChoice:
    """The search for a value over all folds."""

    def __init__(
        self,
        asked: ChoiceRequest,
        folds: Sequence[FoldFits],
        by: Measure,
        options: dict[str, Any],
        tell: Callable[[str], None],
    ):
        self.asked, self.folds, self.by = asked, folds, by
        self.options, self._tell = {"tol": SETTINGS.tol} | options, tell
        self.trials: dict[float, list[Trial]] = {}
        self._heap: list[tuple[float, int, Cell]] = []
        self._order = itertools.count()
        self.best = -math.inf  # times the direction, in which higher is better
        self._kept: dict[float, list[FoldArrays]] | None = {}  # None where they are too large

    def run(self) -> None:
        """Fit at both ends, then where a better value is possible."""
        low, high = self.asked.between
        self._fit(low, None)
        self._fit(high, low)
        if not math.isfinite(self.best):
            return  # no fold has a number: who asks for the best value is told so
        self._divide([], [(low, high, (low, high))])
        while self._heap and len(self.trials) < self.asked.max_fits:
            cell = self._heap[0][2]
            if self._gain(cell) <= self.asked.regret:
                break
            shrinks = (
                cell.radius[1] > SETTINGS.radius_ratio * cell.radius[0]
            )  # halves have much smaller balls
            if shrinks and cell.is_wide(cell.low, cell.high):
                middle = math.sqrt(cell.low * cell.high)
                halves = [(cell.low, middle, cell.bracket), (middle, cell.high, cell.bracket)]
                self._divide([cell], halves)
            elif cell.is_wide(*cell.bracket):
                self._refine(cell.bracket)
            else:
                break  # fits that are equal to rounding do not decide: ties, or scores of zero

    @property
    def cells(self) -> list[Cell]:
        """All intervals, in order."""
        return sorted((cell for _, _, cell in self._heap), key=lambda cell: cell.low)

    def certificates(
        self, problem: Any, tasks: Tasks, chosen: float, score: float
    ) -> ChoiceCertificates | None:
        """Return what a saved proof is written from; None where it is too large to be kept."""
        if self._kept is None:
            return None
        intervals = np.array([(cell.low, cell.high, *cell.bracket) for cell in self.cells]).reshape(-1, 4)
        parts = [fold.part for fold in self.folds]
        used = {*intervals[:, 2:].ravel().tolist(), chosen}
        kept = {value: arrays for value, arrays in self._kept.items() if value in used}
        return ChoiceCertificates(
            problem, self.asked.parameter, tasks, parts, self.by.name, kept, intervals, chosen, score, max(self.asked.regret, self.proven().value)
        )  # fmt: skip

    def proven(self) -> ProvenRegret:
        """Return what is proven so far."""
        cells = self.cells
        regret = max((self._gain(cell) for cell in cells), default=math.inf)
        intervals = np.array([(cell.low, cell.high, cell.best, cell.worst) for cell in cells]).reshape(-1, 4)
        return ProvenRegret(
            self.asked.regret,
            max(regret, 0.0),
            self.asked.between,
            intervals,
            len(self.trials) * len(self.folds),
        )

    def _gain(self, cell: Cell) -> float:
        """By how much a value in it may be better than the best one so far."""
        return self.by.direction * cell.best - self.best

    def _fit(self, value: float, near: float | None) -> None:
        found = [fold.solve(value, near, self.by, self.options) for fold in self.folds]
        if self._kept is not None:
            own = [fold.arrays(value) for fold in self.folds]
            size = sum(part.nbytes for arrays in own for part in arrays if part is not None)
            if size * (len(self._kept) + 1) > SETTINGS.kept_bytes:
                self._kept = None
            else:
                self._kept[value] = own
        self.trials[value] = found  # last: after a signal all that belongs to a value is there
        mean = _mean([float(trial.score) for trial in found])
        if not math.isnan(mean):
            self.best = max(self.best, self.by.direction * mean)
        self._tell(f"{self.by.name} {mean:.4g} at {value:.4g}")

    def _divide(self, cells: list[Cell], parts: list[tuple[float, float, tuple[float, float]]]) -> None:
        """Put (low, high, bracket) in the place of cells; all at once, so that the interval is covered at any time."""
        replaced = set(cells)
        heap = [entry for entry in self._heap if entry[2] not in replaced]
        for low, high, bracket in parts:
            found = [fold.possible(low, high, bracket, self.by) for fold in self.folds]
            best, worst = _mean([one[0] for one in found]), _mean([one[1] for one in found])
            radius = sum(one[2][0] for one in found), sum(one[2][1] for one in found)
            cell = Cell(low, high, bracket, best, worst, radius)
            heap.append((-self.by.direction * best, next(self._order), cell))
        heapq.heapify(heap)
        self._heap = heap

    def _refine(self, bracket: tuple[float, float]) -> None:
        """A fit in the middle of those intervals of a bracket that are open; these then are between that fit and a neighbour."""
        regret = self.asked.regret
        cells = [cell for _, _, cell in self._heap if cell.bracket == bracket and self._gain(cell) > regret]
        middle = math.sqrt(min(cell.low for cell in cells) * max(cell.high for cell in cells))
        self._fit(middle, min(bracket, key=lambda end: abs(math.log(end / middle))))
        sides = [
            (low, high, (bracket[0], middle) if high <= middle else (middle, bracket[1]))
            for cell in cells
            for low, high in ((cell.low, min(cell.high, middle)), (max(cell.low, middle), cell.high))
            if low < high
        ]
        self._divide(cells, sides)
        open_cells = [cell for _, _, cell in self._heap if self._gain(cell) > regret]
        for fold in self.folds:
            fold.forget_all_but({value for cell in open_cells for value in cell.bracket})


def choose_proven(
    asked: ChoiceRequest, problem: Any, tasks: Tasks, parts: Sequence[Fold], by: Measure, options: dict[str, Any], told: tuple, progress: bool,
    made: PartsProgress,
) -> CrossValidation:  # fmt: skip
    """The scores at all values that were fitted, and what is proven of all others.

    told : the notes, the text of the model and the hashes of the folds, as the result has them
    made : gets every value that was fitted; after a signal the result is what is proven by then
    """
    typed = f"cross_validate({asked.parameter.name}, regret={asked.regret:g})"
    if not _is_monotone(by):
        raise ModelError(
            f"{by.name} may fall where every prediction comes nearer to its label, and is not bounded row by row", term=typed,
            write_instead=f"write another metric, such as metric={'r2' if by.needs == 'values' else 'f1'!r}",
        )  # fmt: skip
    folds = [FoldFits(problem, asked.parameter, tasks, part, asked.between, typed) for part in parts]

    def proven_so_far() -> CrossValidation:
        grid = asked.values(search.trials)
        trials = [[search.trials[value][k] for (value,) in grid.points] for k in range(len(parts))]
        found = CrossValidation.of(grid, by, parts, trials, *told)
        if math.isfinite(search.best):
            score = float(found.mean[found.points.index(found.best)])
            kept = search.certificates(problem, tasks, found.best_value, score)
            found.proof = replace(search.proven(), certificates=kept)
        return found

    with progress_bar(f"choosing {asked.parameter.name}, value", asked.max_fits, progress) as tell:

        def tell_fit(said: str) -> None:
            made.found.append(said)
            tell(said)

        search = ProvenChoice(asked, folds, by, options, tell_fit)
        made.expect(None, lambda _: proven_so_far() if search.cells else None, ("value", "values"))
        search.run()
    return proven_so_far()


def checked_choice(
    problem: Any, lam: Any, values: Any, between: Any, regret: Any, max_fits: Any, options: dict[str, Any], typed: str
) -> ChoiceRequest | None:  # fmt: skip
    """Return what is asked for by regret and between; None without them. ModelError with what to write for anything else."""

    def refuse(what: str, said: str, write_instead: str) -> ModelError:
        return ModelError(what, term=f"{typed}({said})", write_instead=write_instead)

    if regret is None:
        for name, value in (("between", between), ("max_fits", max_fits)):
            if value is not None:
                raise refuse(
                    f"{name} is of a proven choice",
                    f"lam, {name}={quoted(value)}",
                    f"write regret=0.005 beside it, or leave {name} out",
                )
        return None
    bound, most = as_float(regret), SETTINGS.max_fits if max_fits is None else as_whole(max_fits)
    if bound is None or not 0.0 < bound < math.inf:
        raise refuse(
            "the regret is a number above 0, in the units of the metric",
            f"lam, regret={quoted(regret)}",
            "write such as regret=0.005",
        )
    if most is None or most < 2:
        raise refuse(
            "a proof needs two values at least",
            f"lam, max_fits={quoted(max_fits)}",
            "write a whole number above 1, or leave it out",
        )
    listed = list(lam) if isinstance(lam, dict) else as_list(lam)
    if listed is not None and len(listed) == 1:
        values = lam[listed[0]] if isinstance(lam, dict) else values
        lam = listed[0]
    if not isinstance(lam, Parameter):
        raise refuse(
            "a regret is proven for one parameter",
            f"{quoted(lam)}, regret={bound:g}",
            "choose one parameter after the other",
        )
    require_own(lam, problem.parameters, f"{typed}({quoted(lam)}, ...)")
    if values is not None:
        raise refuse(
            "all values of an interval are covered, and none are listed", f"{lam.name}, {quoted(values)}, regret={bound:g}",
            "write between=(1e-3, 1e3) in place of values",
        )  # fmt: skip
    ends = [as_float(one) for one in as_list(between) or []]
    low, high = ends if len(ends) == 2 else (None, None)
    if low is None or high is None or not 0.0 < low < high < math.inf:
        raise refuse(
            "the interval is two numbers, 0 < low < high",
            f"{lam.name}, between={quoted(between)}",
            "write such as between=(1e-3, 1e3)",
        )
    if options.get("max_seconds") is not None:
        raise refuse(
            "a fit that is cut short proves little",
            f"{lam.name}, max_seconds=...",
            "write max_fits, the number of values at most",
        )
    return ChoiceRequest(lam, (low, high), bound, most, strengthens_losses(problem, lam))
