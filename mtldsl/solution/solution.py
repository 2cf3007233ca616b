"""`Solution`, the answer of a solve: weights, their proof, and predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from mtldsl.certificates.attainment import UnattainedInfimum
from mtldsl.certificates.stationarity import NO_GLOBAL, Stationarity
from mtldsl.data.scaling import Scaling
from mtldsl.data.schema import Schema, require_tasks
from mtldsl.data.table_description import NOTHING_KNOWN, DataDescription
from mtldsl.data.tasks import Tasks
from mtldsl.display.displayable import Displayable
from mtldsl.display.sections import Formula, Panel
from mtldsl.errors import DataError, ModelError
from mtldsl.solution import plots, task_predictors
from mtldsl.solution.learned import LearnedMatrix, LearnedWeights, kernel_weights
from mtldsl.solution.learned_label_graph import LearnedGraph
from mtldsl.solution.measures import Measure
from mtldsl.solution.npz_storage import read_fields, write_fields
from mtldsl.solution.predictors import predictor_for, predictor_of
from mtldsl.solution.score import Score, mean_score
from mtldsl.solution.score_intervals import ScoreIntervals, bootstrap_scores, named_score, named_scores
from mtldsl.solution.solution_page import panel_of
from mtldsl.utils.arrays import read_only
from mtldsl.utils.caching import LazyField
from mtldsl.utils.compilation import compiling_too
from mtldsl.utils.validation import as_flag, complete, quoted

if TYPE_CHECKING:
    from mtldsl.certificates.proof_writer import SolutionCertificate
    from mtldsl.data.kernel_map import KernelMap

# --------------------------------------------------------------------------------------------------------------
# The relative duality gap, with the absolute one beside it.


class Gap(float):
    """The relative duality gap as a number, with the absolute one beside it: `gap`, `gap.absolute`, `gap.relative`."""

    absolute: float

    def __new__(cls, relative: float, absolute: float):
        self = super().__new__(cls, relative)
        self.absolute = float(absolute)
        return self

    def __getnewargs__(self):
        return float(self), self.absolute

    @property
    def relative(self) -> float:
        return float(self)


def _scores(tasks: Tasks, fitted: Any, metric, method: str) -> np.ndarray:
    return predictor_of(fitted).scores(tasks, metric, method)


def _thresholds(tasks: Tasks, fitted: Any, metric, typed: str) -> np.ndarray:
    return predictor_of(fitted).tuned_thresholds(tasks, metric, typed)


# --------------------------------------------------------------------------------------------------------------
# A solution in one file: which of its fields are kept, and the way there and back.

#: Fields that a file does not keep.
_NOT_SAVED = (
    "state",
    "multipliers",
    "majorizations",
    "interrupted",
    "proof",
    "verified",
    "compile_seconds",
    "formula",
    "trained_on",
    "cross_check",
    "unattained",
)


#: What estimators of other libraries call it.
_ELSEWHERE = {
    "coef_": "W", "weights": "W", "intercept_": "intercept", "n_iter_": "iterations", "value": "objective", "objective_value": "objective",
    "optval": "objective", "dual_value": "dual_bound", "transform": "decision_function(X)", "fit": "W; it is fitted already",
    "plot": "plot_weights(), plot_convergence() or another of the names that begin with plot_", "summary": 'report("fit.html"), or print(solution)',
    "W_": "W", "w": "W", "theta": "W", "explain": "reason; problem.explain() tells of all solvers", "residuals": "predict(X) and take it off Y",
    "check_bound": "problem.check_bound(solution)", "path": "problem.path(lam)", "cross_validate": "problem.cross_validate(lam)",
    "lambda_max": "problem.lambda_max(lam)", "solve": "problem.solve()",
}  # fmt: skip

#: Computed when they are first read.
_TASK_WEIGHTS: Any = LazyField(lambda: None)
_NOISE_LEVELS: Any = LazyField(lambda: None)
_MULTIPLIERS: Any = LazyField(dict)
_FORMULA: Any = LazyField(lambda: None)


@dataclass(eq=False)  # comparing arrays entry by entry would make `solutions.index(best)` an error
class Solution(Displayable):
    """A point of a problem with its certificate.

    Weights and intercepts are read-only, for the proof is of them: `np.array(s.W)` is a copy to change.

    W            the weights (d, m) of the first loss's predictions: the sum where the model is typed on L + S; of a loss over a graph
                 of labels (d, S), the columns of U, then those of V
    blocks       every unknown by name, intercepts as "W.intercept"; also as attributes: solution.L, solution.S
    intercept    (m,) or None
    objective    the primal value, recomputed from the definitions; dual_bound: a proven lower bound on the optimum
    gap          relative duality gap (objective - dual_bound) / max(|objective|, |dual_bound|); `gap.absolute`
    violation    the largest constraint violation, in the units of the constraint
    status       "optimal" only where gap and violation are proven <= tol; "stationary" where the model is not convex and the
                 residual of `stationarity` is <= tol (a stationary point, no global certificate: the gap, which may stay large, is
                 to a proven lower bound on the global optimum); else "time_limit", "iteration_limit", "stalled",
                 "selected" (a rule of clique generation ended it: see its options),
                 "interrupted", "stopped" (a callback said so), or "uncertified" (no finite bound could be formed; `note` says why),
                 or "unattained" (no weights are best, however small the gap: separable labels and nothing that grows with the weights;
                 `note` names the tasks)
    unattained   of such a model the tasks and a direction in which the objective falls for ever, proven, and `limit`, what it falls to; None otherwise. Not saved
    learned      what is learned beside the weights, {name: LearnedMatrix or LearnedWeights}; also as attributes: solution.Sigma1
    kernel_weights  of `mkl_norm`: the LearnedWeights of its similarities, also where theta is eliminated or given
    stationarity of a model that is not convex: how little each block of unknowns can still lower the objective
    task_weights (m,) the weight that the loss gives each task's squared residuals: all the same for a squared loss, 1 / ||r_i|| for
                 the square-root loss; None where the loss is not a function of the norms of residuals
    noise_levels (m,) the root mean square of each task's residuals, in the units of its labels; None as above
    starts       one dict a start where `solve(starts=...)` was asked for several: objective, status, residual, seconds, best
    multipliers  {term as typed: array}: of a loss flat (N,), task after task, of a function in the shape of its argument, of a loss
                 over a graph of labels (n, S), CSR where the solver has labellings; not saved
    label_graph  of a loss over a graph of labels (`clique_hinge`, `pairwise_log_loss`) the LearnedGraph: which edges have weights, and
                 how strong they are; else None. `graph` is the same as a networkx.Graph
    certified    (n,) of such a loss: whether the maximum over all labellings of a training sample, as it stands in the certificate, is
                 exact; where it is not, what stands there is a proven upper bound; else None
    thresholds   (m,) where `tune_threshold` chose them, else None: predictions are +1 where the score is at least this
    interrupted  whether Ctrl-C or SIGTERM ended the solve; the status is another where the point is certified all the same, or the best
                 of several starts is; not saved
    seconds      of the solve, without compile_seconds: what it took to import the compiler, to compile, and to read what was compiled
                 before. 0 from the second solve of a kind on; not saved
    formula      the model in LaTeX, with what its symbols are; trained_on: the tasks of the first loss; neither is saved
    cross_check  what the reference said of it (`CrossCheck` or `BlockCheck`): see `solve(cross_check=...)`; a sentence where the check that
                 was asked for could not be made; None where nobody asked. Not saved
    history      one dict per look at the certificate: iteration, seconds, objective, dual_bound, violation, relative_gap
    verified     whether status, gap and violation were computed here. For a solution that `load` read they are what the file says, which
                 anybody may have written: it prints "optimal (as saved, not verified)". `problem.solve(warm_start=solution)` proves it
                 anew; a proof that was saved beside it is checked by `mtldsl verify`
    """

    blocks: dict[str, np.ndarray]
    coef: np.ndarray
    intercept: np.ndarray | None
    objective: float
    dual_bound: float
    relative_gap: float
    violation: float
    status: str
    solver: str
    reason: str
    seconds: float
    iterations: int
    tol: float
    note: str = ""
    model: str = ""
    loss: dict = field(default_factory=dict)  # word, parameters and kind of labels of the first loss
    parameters: dict = field(default_factory=dict)
    task_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    scaling: dict | None = None  # mean and scale of standardize(), applied to new inputs
    imputation: dict | None = (
        None  # strategy, and the values that stand in the place of missing inputs, in new ones too
    )
    description: DataDescription = NOTHING_KNOWN  # of the table that it was learned on
    kernel_map: KernelMap | None = None  # the features of Tasks.with_kernels(), made of new inputs
    thresholds: np.ndarray | None = None
    task_weights: np.ndarray | None = _TASK_WEIGHTS
    noise_levels: np.ndarray | None = _NOISE_LEVELS
    starts: list[dict] = field(default_factory=list)
    learned: dict[str, LearnedMatrix | LearnedWeights] = field(
        default_factory=dict
    )  # beside the weights, by name
    stationarity: Stationarity | None = None  # of a model that is not convex
    label_graph: LearnedGraph | None = None  # of a loss over a graph of labels
    certified: np.ndarray | None = None
    history: list[dict] = field(default_factory=list)
    multipliers: dict[str, np.ndarray] = _MULTIPLIERS  # not saved
    majorizations: tuple = field(default=(), repr=False)  # steps for the cross-check to repeat; not saved
    state: object = field(default=None, repr=False)  # for warm starts; not saved
    verified: bool = True  # False where a file said so
    interrupted: bool = field(default=False, repr=False)
    compile_seconds: float = 0.0  # not saved
    proof: SolutionCertificate | None = field(default=None, repr=False)  # not saved
    formula: Formula | None = _FORMULA  # not saved
    trained_on: Tasks | None = field(default=None, repr=False)  # not saved
    unattained: UnattainedInfimum | None = field(default=None, repr=False)  # not saved
    cross_check: Any = field(default=None, repr=False)  # not saved

    def __post_init__(self):
        """Weights as views that cannot be written to: objective and proof are of these numbers. A solver keeps its own arrays."""
        self.blocks = {name: read_only(block) for name, block in self.blocks.items()}
        self.coef, self.intercept = read_only(self.coef), read_only(self.intercept)

    # ------------------------------------------------------------------------ methods that stand in files of their own

    frame = plots.frame
    plot_convergence = plots.plot_convergence
    plot_weights = plots.plot_weights
    plot_scores = plots.plot_scores
    plot_calibration = plots.plot_calibration
    report = plots.report
    kernel_weights = property(kernel_weights)
    graph = property(task_predictors.graph)
    edge_usage = task_predictors.edge_usage

    # -------------------------------------------------------------------------------------------- access

    @property
    def certificate(self) -> SolutionCertificate:
        """Return what was proven, to be saved for others to check: `solution.certificate.save(path)`. DataError for a solution read from a file."""
        if self.proof is None:
            raise DataError(
                "solution.certificate: a saved solution does not hold its proof; solve again, or save the certificate beside it"
            )
        return self.proof

    @property
    def schema(self) -> Schema:
        """Return what later inputs and tasks are held against: the names, sizes and statistics of the training data."""
        shape = self.coef.shape[0], len(self.task_names) or self.coef.shape[1]
        facts = self.scaling
        scaling = None if facts is None else Scaling(np.asarray(facts["mean"]), np.asarray(facts["scale"]))
        fill = None if self.imputation is None else np.asarray(self.imputation["values"], dtype=float)
        return Schema(
            shape, self.feature_names, self.task_names, scaling, self.kernel_map, fill, self.description
        )

    @property
    def W(self) -> np.ndarray:
        return self.coef

    @property
    def gap(self) -> Gap:
        return Gap(self.relative_gap, self.objective - self.dual_bound)

    @property
    def _time_said(self) -> str:
        """`seconds` in words, and beside them those of compiling, where there were any."""
        return f"{self.seconds:.3f} s{compiling_too(self.compile_seconds)}"

    @property
    def is_optimal(self) -> bool:
        return self.status == "optimal"

    @property
    def is_certified(self) -> bool:
        """Tell whether the accuracy asked for is proven: of the optimum, or of a stationary point where the model is not convex.

        For a solution that was loaded: whether the file says so; see `verified`.
        """
        return self.status in ("optimal", "stationary")

    @property
    def spread(self) -> float:
        """(highest - lowest objective) / |lowest| over the starts that ended certified: 0 where all agree, nan without several."""
        found = [row["objective"] for row in self.starts if row["status"] in ("stationary", "optimal")]
        if not found:
            return np.nan
        return float((max(found) - min(found)) / max(abs(min(found)), np.finfo(float).tiny))

    @classmethod
    def _saved(cls) -> list[str]:
        whole: Any = cls
        return [each.name for each in fields(whole) if each.name not in _NOT_SAVED]

    @complete('write solution.save("fit.npz")')
    def save(self, path) -> Path:
        """Write the solution to one .npz file (arrays, and the rest as JSON; no pickle). Returns the path written.

        The file is whole or as it was: it takes the place of an older one only once it is on the disk. DataError where it cannot be written.
        Learned matrices are kept by their eigenvectors. What a warm start needs besides the weights is not kept.
        ModelError where a metric of your own has parameters that JSON cannot hold, and where a kernel is a function of yours.
        """
        return write_fields(path, {name: getattr(self, name) for name in self._saved()})

    @classmethod
    def load(cls, path) -> Self:
        """Read what `save` wrote, by the name given there: `verified` is False. DataError for a file of another kind, damaged bytes, and a
        status that the file's own numbers contradict.

        The module with a metric of your own need not be imported, unless `tune_threshold` is to use that metric.
        """
        found: Any = cls  # a dataclass, which this part of it does not know
        return found(**read_fields(path, set(cls._saved())), verified=False)

    def __getitem__(self, name: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self.blocks:
            raise ModelError(
                f"solution[{quoted(name)}]: no such block; this solution has {', '.join(map(repr, self.blocks))}"
            )
        return self.blocks[name]

    def __getattr__(self, name: str):
        blocks = self.__dict__.get("blocks", {})
        if name in blocks:
            return blocks[name]
        learned = self.__dict__.get("learned", {})
        if name in learned:
            return learned[name]
        instead = _ELSEWHERE.get(name)
        raise AttributeError(
            f"Solution has no attribute or block {name!r}; "
            + (
                f"write {instead if instead.startswith('problem.') else f'solution.{instead}'}"
                if instead
                else f"blocks: {', '.join([*blocks, *learned])}"
            )
        )

    def __getstate__(self) -> dict:
        """For copies and pickles: with all that waits to be computed, without the data."""
        return self.__dict__ | {f.name: getattr(self, f.name) for f in fields(self)} | {"trained_on": None}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __str__(self) -> str:
        status = self.status if self.verified else f"{self.status} (as saved, not verified)"
        if self.stationarity is not None and self.status != "optimal":
            words = NO_GLOBAL if self.status == "stationary" else "not proven stationary"
            proof = f"residual {self.stationarity.residual:.1e} (objective {self.objective:.10g}), {words}"
            return f"{status}: {proof}, violation {self.violation:.1e}, {self.solver}, {self._time_said}"
        proof = (
            f"gap {self.relative_gap:.2e} (objective {self.objective:.10g}, dual bound {self.dual_bound:.10g})"
            if np.isfinite(self.relative_gap)
            else f"objective {self.objective:.10g}, no dual bound: {self.note}"
        )
        away = f"; {self.note}" if self.status == "unattained" and np.isfinite(self.relative_gap) else ""
        return f"{status}: {proof}, violation {self.violation:.1e}, {self.solver}, {self._time_said}{away}"

    def __repr__(self) -> str:
        return f"<Solution {self}>"

    #: what warm starts, proofs and files ask
    _unlisted = frozenset(
        [
            "compile_seconds",
            "description",
            "formula",
            "imputation",
            "kernel_map",
            "loss",
            "scaling",
            "schema",
            "state",
            "tol",
            "trained_on",
        ]
    )

    def _panel(self) -> Panel:
        return panel_of(self)

    # --------------------------------------------------------------------------------------- predictions

    def scores(self, tasks, metric=None) -> np.ndarray:
        """One score per task on a Tasks object: accuracy for labels in {-1, +1}, the concordance of signed times, else the coefficient of
        determination R^2.

        metric : score by this instead, by 1 - Delta: one metric, a list with one a task, or a dict {task name: metric}.
            `FScore(beta)`: the F-score of the predicted labels; `AUC()`: 1 - b c / (Pos Neg) on labels; `ErrorRate()`: the
            accuracy, 1 - Delta / (2 n); `ROCArea()`, `PartialAUC(max_fpr)`: the area under the ROC curve of `decision_function`,
            or a part of it; `AveragePrecision()`, `NDCG()`: of its order; `PrecisionAt(k)` and
            `RecallAt(k)`: of the k samples with the highest `decision_function`; your own metric: 1 - Delta. With a metric, the
            predictions of losses for real numbers are labels too, +1 where they are at least 0.

            Or a measure by name, NaN for a task for which it is not defined: "mse", "nmse", "mae", "r2", "explained_variance" of
            numbers; "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision", "log_loss", "brier" of labels -1 and +1
            (`mtldsl.solution.measures`). They are scikit-learn's, losses as they are, lower for better; sample weights count in them.

        For a loss over a graph of labels the scores are of the labels of the best labellings, and of `decision_function` for metrics of
        rankings. Raw tasks are scaled by the statistics learned in training; tasks that are standardised already are not scaled twice.
        DataError for tasks of another size, with other statistics, or with a task or feature at another position; with a
        metric that is not named, for labels other than -1 and +1, a task of one class, and sample weights. ModelError for something that is not a
        metric of these tasks.
        """
        return self._scores(tasks, metric, "scores")

    def _scores(self, tasks, metric, method: str) -> np.ndarray:
        require_tasks(tasks, f"{method}(tasks)")
        if isinstance(metric, str):
            return named_scores(cast(Any, self), tasks, metric, method)
        return tasks.apply_scoring(_scores, self, metric, method)

    def tune_threshold(self, tasks, metric=None) -> Self:
        """A copy whose `thresholds` (m,) are, for every task, the best of all under the metric on these tasks.

        Give validation data, not those of training. `predict` and `scores` of the copy label +1 where `decision_function`,
        which stays as it is, is at least the threshold; see `mtldsl.solution.thresholds.best_threshold` for where it is placed.

        metric : `FScore(beta)`, `ErrorRate()`, `PrecisionAt(k)` or `RecallAt(k)` (exactly k of these samples labelled +1), or
            your own metric; a list with one a task, or a dict {task name: metric}. None: the metric of the loss that the
            weights were learned with, else FScore().

        ModelError for losses over a graph of labels, for `ROCArea`, which no threshold changes, for metrics that are best where all
        samples have one label, such as `AUC` (b c = 0), and for losses that predict counts; DataError as in `scores`.
        """
        typed = "tune_threshold(tasks)"
        require_tasks(tasks, typed)
        return replace(cast(Any, self), thresholds=tasks.apply_tuning(_thresholds, self, metric, typed))

    @complete("write solution.score(tasks), or solution.score(tasks, metric='f1')")
    def score(self, tasks, metric=None) -> Score:
        """The mean over tasks of `scores`; of measures by name also those of whole rows, and pooled or weighted ones (`f1_micro`).

        It is a float with `by_task`, `left_out` (tasks without a number, such as ROC areas of one class) and `note`, which says so.
        """
        require_tasks(tasks, "score(tasks)")
        if isinstance(metric, str | Measure):
            return named_score(cast(Any, self), tasks, metric, "score")
        return mean_score(self._scores(tasks, metric, "score"), tasks.task_names)

    def bootstrap(
        self,
        tasks,
        metric: str | None = None,
        n: int = 500,
        *,
        level: float = 0.95,
        groups=None,
        random_state=0,
    ) -> ScoreIntervals:
        """Percentile intervals of a score, by task and over all: the same predictions on n samples of the rows, drawn with replacement.

        metric : the name of a measure, as in `score`, or a metric such as `FScore(beta=2)`; None: "accuracy" for labels, "concordance" for times, else "r2"
        groups : (n,) as in `Tasks.folds`; they are drawn whole, where rows of one patient or user are alike
        Give rows that were not learned on. The weights stay as they are: how much these depend on the rows, `problem.bootstrap` tells.

        Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
        """
        require_tasks(tasks, "bootstrap(tasks)")
        return bootstrap_scores(cast(Any, self), tasks, metric, n, level, groups, random_state)

    def decision_function(self, X):
        """X_i w_i + intercept_i: (n, m) for one matrix X; a list of (n_i,) for a list of matrices, one a task.

        For a loss over a graph of labels it is (n, K): by how much the score of the best labelling falls where label k alone is turned, with
        the sign of that label in it, so that its signs are `predict`, but for labels that fall by 0.

        These are also the scores by which samples are ranked, for `ROCArea`, `PrecisionAt` and `RecallAt`; thresholds do not
        change them.

        The statistics of `Tasks.standardize()` are applied to X first, then the kernels of `Tasks.with_kernels()`. For precomputed
        kernels give K (n, training rows) in place of X, or {"name of the kernel": K, ..., "X": the inputs of other kernels}.
        DataError where the columns do not fit: another number, or a table whose column names are not those learned on.
        """
        return predictor_for(self, X).decision_function(X)

    @complete("write solution.predict(X)")
    def predict(self, X, return_certified: bool = False):
        """Labels in {-1, +1} for a classification loss, expected counts for the Poisson loss, else the predictions themselves.

        Shaped like `decision_function`, and of an array or a data frame of Dask an array of Dask. Labels are +1 where that is at least 0, or at least the task's threshold after
        `tune_threshold`. For a loss over a graph of labels: the labelling with the highest score, over the edges whose weights are not
        zero.

        return_certified : of a graph of labels, return (labels, certified (n,)) too: whether each labelling is proven to be the best.
            It is where inference is exact (`solution.label_graph.inference`). ModelError for other losses
        """
        return_certified = as_flag(return_certified, "predict(X, return_certified")
        return predictor_for(self, X).predict(X, return_certified)

    def predict_proba(self, X):
        """P(label = +1) for the logistic loss, shaped like `decision_function`; for `pairwise_log_loss` the marginal of every label.

        The labels that are each more probable than not need not be the most probable labelling, which `predict` gives. ModelError for
        other losses.
        """
        return predictor_for(self, X).predict_proba(X)
