"""First sections of a solution's page: verdict, numbers, data, model, solvers, check, and how to repeat it."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.derived import label_table
from mtldsl.data.input_checks import is_numbered
from mtldsl.data.summary import panel_of
from mtldsl.data.tasks import Tasks
from mtldsl.display.html import Figure, KeyFigure, PageSection, figure
from mtldsl.display.sections import GOOD, NEUTRAL, WRONG, Panel
from mtldsl.errors import MissingExtraError
from mtldsl.solution.measures import MEASURES, SETTINGS, Measure, name_of
from mtldsl.solution.predictors import predictor_class, sign_tasks
from mtldsl.solution.score import Score, as_measure
from mtldsl.solution.score_intervals import ScoredMeasure, choose_measures, class_vectors, shortened
from mtldsl.solution.task_predictors import PerTaskPredictor
from mtldsl.solvers.explanation import Explanation
from mtldsl.solvers.multistart import seen_by_solvers
from mtldsl.solvers.routes import answers
from mtldsl.utils.validation import as_whole

# --------------------------------------------------------------------------------------------------------------
# Rows that are scored: of which tasks they are, and how many of them were learned from.


def of_tasks(solution: Any, tasks: Tasks | None, by_name: bool = False) -> Any:
    """Return the solution of the tasks that have rows here, in their order; as it is where they are all, or not told apart by name.

    by_name : names that are numbers, too, are those of the solution, and no positions
    """
    learned = solution.task_names
    if tasks is None or tasks.task_names == learned or not set(tasks.task_names) <= set(learned):
        return solution
    if predictor_class(solution.loss) is not PerTaskPredictor:
        return solution
    if is_numbered(tasks.task_names) and not by_name:
        return solution
    at = [learned.index(name) for name in tasks.task_names]
    parts = {name: getattr(solution, name) for name in ("intercept", "thresholds")}
    parts = {name: None if part is None else part[at] for name, part in parts.items()}
    return replace(solution, coef=solution.coef[:, at], task_names=tasks.task_names, **parts)


def seen_rows(solution: Any, tasks: Tasks, learned: Tasks | None) -> int | None:
    """Return how many of these rows have the inputs and labels of rows that were learned from; None where that cannot be known."""
    if learned is None or not tasks.in_memory or solution.kernel_map is not None:
        return None
    like = solution.schema.alike(tasks, "report(tasks)")
    known = set(_keys(learned, like.is_shared))
    return sum(key in known for key in _keys(like, like.is_shared))


def _keys(tasks: Tasks, table: bool) -> Iterator[tuple]:
    """Yield a number a row: of a table with all its labels, else with the name and the label of its task."""
    if table and tasks.is_shared:
        yield from _hashed("", tasks.X, label_table(tasks, tasks.targets))
        return
    for name, X, y in zip(tasks.task_names, tasks.inputs, tasks.per_task(tasks.targets), strict=True):
        yield from _hashed(name, X, y[:, None])


def _hashed(name: str, X, Y: np.ndarray) -> Iterator[tuple]:
    labels = np.where(np.isnan(Y), np.inf, Y + 0.0)
    rows: Any = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=float) + 0.0
    for k, of_row in enumerate(labels):
        inputs = rows[[k]].toarray() if sparse.issparse(rows) else rows[k]
        yield name, hash(inputs.tobytes()), hash(of_row.tobytes())


# --------------------------------------------------------------------------------------------------------------
# What a page is made of.


def draw_figures(*wanted) -> list[Figure]:
    """Those of (draw, alternative text, caption) that can be drawn: without matplotlib a page has no pictures."""
    try:
        return [figure(*one) for one in wanted]
    except MissingExtraError:
        return []


@dataclass(frozen=True)
class ReportContext:
    """The solution, the rows on which it is scored, and what else was found out about it.

    tasks            : rows to score, of all tasks or some, in any order; None: those of training, which the page says
    separate         : a solution of one model per task, learned on the same rows, to be compared with; None: no comparison
    cross_check      : what `problem.cross_check` returned, a sentence why there is none, or None
    cross_validation : what `problem.cross_validate` returned, or None
    path             : solutions of a path
    metrics          : names of measures to be shown; none: those that suit the labels
    bootstrap        : samples of the rows behind every interval, drawn from random_state; 0: no intervals
    held_out         : whether the caller divided the rows itself, so that those scored are new; False: rows are compared
    positive         : {task: the class that +1 stands for}
    by_name          : whether tasks here are the solution's of the same name, though it be a number
    chosen_by        : the measure that a parameter was chosen by, its name, or the score of a function that knows no tasks, where
                       cross_validation is not here to tell
    repeat           : the line that makes the same solution again;  more: sections for the end
    """

    solution: Any
    tasks: Tasks | None = None
    cross_check: Any = None
    cross_validation: Any = None
    path: Sequence[Any] = ()
    repeat: str = ""
    title: str = ""
    more: Sequence[PageSection] = ()
    metrics: Sequence[str] = ()
    bootstrap: int = 200
    random_state: Any = 0
    separate: Any = None
    held_out: bool = False
    positive: Mapping[str, str] = field(default_factory=dict)
    chosen_by: str | Measure | ScoredMeasure | None = None
    by_name: bool = False

    @cached_property
    def training(self) -> Tasks | None:
        """The rows that were learned on; None for a solution from a file, and for rows that are elsewhere."""
        tasks = self.solution.trained_on
        return None if tasks is None or not tasks.in_memory else tasks

    @property
    def scored(self) -> Tasks | None:
        return self.training if self.tasks is None else self.tasks

    @cached_property
    def judged(self) -> Any:
        """The solution of the tasks that are scored."""
        return of_tasks(self.solution, self.tasks, self.by_name)

    @cached_property
    def n_seen(self) -> int | None:
        """Return how many of the rows scored are among those learned from; None where that is not known."""
        if self.tasks is None or self.held_out:
            return None if self.tasks is None else 0
        return seen_rows(self.judged, self.tasks, self._learned)

    @property
    def flatters(self) -> bool:
        """Tell whether all rows scored are among those learned from."""
        return self.tasks is None or self.n_seen == self.n_rows

    @property
    def n_rows(self) -> int:
        """Rows that are scored."""
        tasks = self.scored
        if tasks is None:
            return 0
        return tasks.X.shape[0] if tasks.is_shared and tasks.in_memory else tasks.n_samples

    @property
    def rows(self) -> str:
        """The rows that are scored, in words."""
        if self.tasks is None:
            return "the rows that it was learned on, which flatters it"
        count = several(self.n_rows, "row")
        if self.flatters:
            return f"{count} that it was learned on, which flatters it"
        if self.n_seen == 0:
            return f"{count} that were not learned on"
        equal = f" ({self.n_seen:,} equal rows that were learned on)" if self.n_seen else ""
        return f"{count} that you gave{equal}"

    @property
    def _learned(self) -> Tasks | None:
        """The rows of the tasks that are scored, as they were learned from."""
        if self.training is None or self.judged is self.solution:
            return self.training
        return self.training.select(list(self.judged.task_names))

    @cached_property
    def signs(self) -> np.ndarray:
        """(m,) which tasks have labels -1 and +1."""
        return sign_tasks(self.judged.loss, len(self.judged.task_names) or self.judged.coef.shape[1])

    @property
    def classes(self) -> bool:
        """Tell whether any has."""
        return bool(self.signs.any())

    @cached_property
    def measures(self) -> tuple[list[ScoredMeasure], list[str]]:
        """(the measures of the rows that are scored, first how many classes are right, or the one that was asked for, learned for or chosen by; why others have none)."""
        if self.scored is None:
            return [], []
        learned = self._learned or self.scored
        return choose_measures(
            self.judged,
            self.scored,
            learned,
            self._wanted(),
            self.signs,
            self.bootstrap,
            self.random_state,
            None if self.separate is None else of_tasks(self.separate, self.tasks, self.by_name),
        )

    @property
    def first(self) -> ScoredMeasure | None:
        """Return what the page begins with: what was asked for; else the first of the usual measures whose interval can be believed."""
        found = self.measures[0]
        believed = found if self._asked() else [one for one in found if one.sound]
        return (believed or found or [None])[0]

    def _asked(self) -> list:
        """The share of classes that are right, where there are classes; metrics that were asked for, learned for, or chosen by."""
        own = self.solution.loss.get("parameters", {}).get("metric")
        chosen = getattr(self.cross_validation, "metric", self.chosen_by)
        known = isinstance(chosen, Measure | ScoredMeasure) or chosen in MEASURES
        asked = list(self.metrics) or ([own] if isinstance(own, Metric) else [chosen] if known else [])
        return [*self._predicted_classes, *asked]

    @cached_property
    def _predicted_classes(self) -> list[ScoredMeasure]:
        """The share of rows whose class is right, where all tasks are the classes of one column."""
        if self.scored is None or len(self.judged.description.labels) != 1:
            return []
        found = class_vectors(self.judged, self.scored, self._learned, as_whole(self.bootstrap) or 0)
        alone = (
            {}
            if self.separate is None
            else class_vectors(of_tasks(self.separate, self.tasks, self.by_name), self.scored, None, 0)
        )
        beside = {name: Score(one.overall[0]) for name, (_, one) in alone.items()}
        return [replace(one, separate=beside.get(name)) for name, (_, one) in found.items()]

    def _wanted(self) -> list:
        """Names and metrics."""
        first = self._asked()
        if self.metrics:
            return first
        known = {
            name_of(one.by if isinstance(one, ScoredMeasure) else as_measure(one, "report")) for one in first
        }
        usual = ["f1", "roc_auc", "accuracy"] if self.classes else []
        numbers = ["concordance"] if self.judged.loss["labels"] == "time" else ["r2", "mae"]
        usual += [] if self.signs.all() else numbers
        return [*first, *(name for name in usual if name_of(as_measure(name, "report")) not in known)]


# --------------------------------------------------------------------------------------------------------------
# What a solution was made from and how to make it again: data, model, solvers, versions.

#: What the numbers depend on.
_PACKAGES = ("mtldsl", "numpy", "scipy", "cvxpy", "numba", "scikit-learn")


def check(facts: ReportContext) -> PageSection | None:
    """The independent reference beside the solver."""
    found = facts.cross_check
    if found is None:
        return None
    if not hasattr(found, "agrees"):
        return PageSection("Cross-check", [f"There is none: {found}."])
    text = (
        "cvxpy solved the same model from formulas of its own, and both answers were held against each other."
    )
    return PageSection("Cross-check", [text], [found._panel()])


def validation(facts: ReportContext) -> PageSection | None:
    """Return how a parameter was chosen."""
    found = facts.cross_validation
    if found is None:
        return None
    drawn = draw_figures((
        found.plot, f"{found.metric} over the values of {', '.join(found.names)}; the same numbers stand in the table", ""
    ))  # fmt: skip
    return PageSection("How the parameter was chosen", panels=[found._panel()], figures=drawn)


def data(facts: ReportContext) -> PageSection:
    """The training rows, and those that are scored."""
    panels = []
    trained = facts.solution.trained_on
    if trained is not None:
        panels.append(replace(panel_of(trained), title="Learned from"))
    if facts.tasks is not None:
        panels.append(replace(panel_of(facts.tasks), title="Scored on"))
    text = [] if panels else ["The solution was read from a file, which does not hold its data."]
    return PageSection("The data", text, panels)


def model(facts: ReportContext) -> PageSection:
    """The formula, its symbols, and the model as typed."""
    solution = facts.solution
    typed = typed_model(solution)
    if solution.formula is None:
        return PageSection("The model", panels=[Panel("", text=typed)])
    panel = Panel("", formula=solution.formula, folded=[Panel("As typed", text=typed)])
    return PageSection("The model", panels=[panel])


def typed_model(solution: Any) -> str:
    """The model as typed, and a line a parameter."""
    values = (f"{name} = {value:g}" for name, value in solution.parameters.items())
    return "\n".join([solution.model, *values])


def solvers(facts: ReportContext) -> PageSection | None:
    """Which solver was taken, and why not the others; opened on demand."""
    solution = facts.solution
    if solution.proof is None:
        return None
    found = Explanation(solution.model, tuple(answers(seen_by_solvers(solution.proof.form))))
    return PageSection(
        "Solvers", [f"Solved by {solution.solver}: {solution.reason}"], [found._panel()], folded=True
    )


def repeat(facts: ReportContext) -> PageSection:
    """Versions, the data's fingerprint, and the line to type."""
    solution = facts.solution
    rows = packages()
    rows += [
        ("tolerance", f"{solution.tol:g}"),
        ("objective", f"{solution.objective:.10g}"),
        ("solver", solution.solver),
    ]
    if facts.training is not None:
        rows.append(("data (SHA-256)", facts.training.fingerprint()))
    typed = facts.repeat or f'problem.solve(solver="{solution.solver}", tol={solution.tol:g})'
    return PageSection(
        "How to repeat it", panels=[Panel("", facts=rows, text=typed)], folded=True, printed=True
    )


def packages() -> list[tuple[str, str]]:
    """(name, version) of what the numbers depend on."""
    rows = [("Python", platform.python_version()), ("system", platform.platform())]
    for name in _PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return rows


# --------------------------------------------------------------------------------------------------------------
# What stands on top of a page: how well it predicts, how far it is proven, in words and in a few numbers.


def verdict(facts: ReportContext) -> tuple[str, str]:
    """(what is proven, its tone)."""
    solution, check = facts.solution, facts.cross_check
    said, tone = "Certified: the optimum, proven", GOOD
    if not solution.is_certified:
        said, tone = f"NOT certified: {solution.status.replace('_', ' ')}", WRONG
    elif solution.status == "stationary":
        said = "Certified: a stationary point; no proof of a global optimum exists for this model"
    if not solution.verified:
        said, tone = f"As its file says, not verified here: {solution.status}", NEUTRAL
    if check is None:
        unknown = "not cross-checked" if solution.verified else "cross-check not stored in the file"
        return f"{said}; {unknown}", tone
    if not hasattr(check, "agrees"):
        return f"{said}; NOT cross-checked", tone
    where = "" if check.scope == "the whole problem" else " on a subsample"
    if not check.agrees:
        return f"{said}; the cross-check DISAGREES{where}", WRONG
    return f"{said}; the cross-check agrees{where}", tone


def lead(facts: ReportContext) -> list[str]:
    """Sentences below the verdict, the score first."""
    said = [*_judged(facts), *_unfinished(facts)]
    solution = facts.solution
    what = f"{several(len(solution.task_names), 'task')}, {several(len(solution.W), 'feature')}"
    trained = facts.training
    rows = ""
    if trained is not None:
        n = trained.X.shape[0] if trained.is_shared else trained.n_samples
        rows = f", learned from {several(n, 'row')}"
    return [*said, f"{what}{rows}; solved in {solution._time_said}."]


def numbers(facts: ReportContext) -> list[KeyFigure]:
    """The tiles: the score first, then the proof."""
    solution, check = facts.solution, facts.cross_check
    tiles = _of_scores(facts)
    used = int(np.count_nonzero(np.any(solution.W != 0, axis=1)))
    tiles.append(KeyFigure("features used", f"{used:,} of {len(solution.W):,}", "those whose weights are not all zero"))  # fmt: skip
    if not solution.verified:
        tiles.append(KeyFigure("gap, as its file says", f"{solution.relative_gap:.1e}", "not verified here: the file does not hold the proof's data"))  # fmt: skip
    elif solution.status == "stationary" and solution.stationarity is not None:
        tiles.append(KeyFigure("residual", f"{solution.stationarity.residual:.1e}", "proven: how far from a stationary point, which has zero"))  # fmt: skip
    elif np.isfinite(solution.relative_gap):
        tiles.append(KeyFigure("from the optimum, at most", _percent(solution.relative_gap), "proven: no other weights have an objective that is lower by more"))  # fmt: skip
    if solution.violation:
        tiles.append(KeyFigure("constraints", f"{solution.violation:.1e}", "how far the worst one is missed"))
    if hasattr(check, "agrees"):
        differ = f"; the objectives differ by {check.difference:+.1e}" if hasattr(check, "difference") else ""
        tiles.append(KeyFigure("second opinion", "agrees" if check.agrees else "DISAGREES", f"another program solved the same model{differ}", NEUTRAL if check.agrees else WRONG))  # fmt: skip
    return tiles


def _of_scores(facts: ReportContext) -> list[KeyFigure]:
    first = facts.first
    if first is None or facts.tasks is None:
        return [KeyFigure("score on new rows", "not known", _why_not(facts, first))]
    score, low, high, guess, better = first.overall
    of = f", mean of {first.mean_of:,} tasks" if first.mean_of else ""
    means = []
    if not first.sound:
        means.append("too few labels in some tasks for an interval")
    elif not np.isnan(low):
        means.append(f"{100 * SETTINGS.level_share:g} % interval: {shortened(low)} to {shortened(high)}")
    if first.separate is not None:
        means.append(first.beside_separate)
    if not np.isnan(guess):
        means += [f"a guess has {shortened(guess)}", _compare_to_guess(first)]
    tone = NEUTRAL if np.isnan(better) or better == 0 else GOOD if better > 0 else WRONG
    tone = NEUTRAL if tone == GOOD and (first.beaten or facts.flatters) else tone
    rows = (
        "rows learned on" if facts.flatters else "held out" if facts.n_seen == 0 else "on rows that you gave"
    )
    tiles = [KeyFigure(f"{first.name}{of}, {rows}", shortened(score), "; ".join(means), tone)]
    count, known = first.beats
    if known > 1:
        rest = "" if count == known else "; of the others chance may be the reason"
        tiles.append(KeyFigure("shown task by task to beat a guess", f"{count:,} of {known:,} tasks", f"by {first.name}, on the rows of one task alone{rest}"))  # fmt: skip
    return tiles


def _why_not(facts: ReportContext, first: ScoredMeasure | None) -> str:
    if facts.tasks is not None:
        return "the rows that were held out could not be scored: see below"
    if first is None:
        return "no rows with labels were given to score it on"
    return "no rows were held out; how well it fits the rows it was learned on stands below"


def _judged(facts: ReportContext) -> list[str]:
    first = facts.first
    if facts.scored is None:
        return ["Nothing is said here of how well it predicts: no rows with labels were given."]
    if facts.tasks is None:
        return ["Nothing is known of how well it predicts new rows: none were held out."]
    if first is None:
        return []
    score, low, high, guess, _ = first.overall
    mean = f", in the mean of {first.mean_of:,} tasks," if first.mean_of else ""
    ends = "" if np.isnan(low) or not first.sound else f" ({shortened(low)} to {shortened(high)})"
    said = f"{'WARNING: on' if facts.flatters else 'On'} {facts.rows}, its {first.name}{mean} is {shortened(score)}{ends}"
    said += "" if np.isnan(guess) else f", a guess has {shortened(guess)}: {_compare_to_guess(first)}"
    beside, learned = first.beside_separate, len(facts.solution.task_names)
    found = [f"{said}." + (f" {beside[0].upper()}{beside[1:]}." if beside else "")]
    n = learned - len(facts.judged.task_names)
    if n:
        have, are = ("has", "is") if n == 1 else ("have", "are")
        found.append(f"{several(n, 'task')} of {learned:,} {have} no rows here, and {are} not scored.")
    return found


def _unfinished(facts: ReportContext) -> list[str]:
    solution = facts.solution
    if solution.is_certified or not solution.verified:
        return []
    if solution.status == "unattained":
        return [f"{solution.note[:1].upper()}{solution.note[1:]}."]
    if np.isfinite(solution.relative_gap):
        return [f"The solve ended before the proof did: another solution may be better, by {100 * solution.relative_gap:.2g} % of the objective at most."]  # fmt: skip
    return ["The solve ended before the proof did: how much better another solution may be is not known."]


def _compare_to_guess(first: ScoredMeasure) -> str:
    """Tell whether it is better than a guess, in words."""
    score, _, _, guess, better = first.overall
    if np.isnan(better):
        gain = first.by.direction * (score - guess)
        return "without an interval, nobody knows whether that is chance" if gain > 0 else "no better than a guess"  # fmt: skip
    count, known = first.beats
    if better > 0 and count < known > 1:
        return f"better than a guess in the mean, and by itself in {count:,} of {known:,} tasks"
    return {1.0: "better than a guess", 0.0: "not shown to be better than a guess"}.get(better, "WORSE than a guess")  # fmt: skip


def _percent(share: float) -> str:
    """
    >>> _percent(1.3e-5), _percent(0.0), _percent(1e-14)
    ('0.0013 %', '0 %', 'below 0.000001 %')
    """
    if 0 < share < 1e-8:
        return "below 0.000001 %"
    return f"{np.format_float_positional(float(f'{100 * share:.2g}'), trim='-')} %"


def several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
