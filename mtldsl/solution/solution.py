"""The answer: weights, their proof, and predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.atoms.metrics import FScore
from mtldsl.errors import DataError, ModelError
from mtldsl.proof.stationarity import NO_GLOBAL, Stationarity
from mtldsl.solution.kernel_weights import LearnedWeights
from mtldsl.solution.label_graph import LearnedGraph
from mtldsl.solution.label_scores import scores_of_labels
from mtldsl.solution.label_solution import OverLabels, is_list_of_matrices
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.solution.scoring import checked_metrics, r_squared, score_of
from mtldsl.solution.storage import read_fields, write_fields
from mtldsl.solution.thresholds import best_threshold
from mtldsl.system.memory import require_memory
from mtldsl.tasks import require_tasks
from mtldsl.tasks.inputs import as_design
from mtldsl.tasks.names import elsewhere, unlike
from mtldsl.tasks.scaling import Scaling
from mtldsl.values.number import quoted
from mtldsl.values.option import as_flag

if TYPE_CHECKING:
    from mtldsl.proof.saved import SolutionCertificate
    from mtldsl.tasks.kernel_map import KernelMap

__all__ = ["Gap", "Solution"]


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


#: Fields that a file does not keep.
_NOT_SAVED = ("state", "multipliers", "majorizations", "interrupted", "proof", "verified")


@dataclass(eq=False)  # comparing arrays entry by entry would make `solutions.index(best)` an error
class Solution(OverLabels):
    """A point of a problem with its certificate.

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
                 "interrupted", or "uncertified" (no finite bound could be formed; `note` says why)
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
    kernel_map: KernelMap | None = None  # the features of Tasks.with_kernels(), made of new inputs
    thresholds: np.ndarray | None = None
    task_weights: np.ndarray | None = None
    noise_levels: np.ndarray | None = None
    starts: list[dict] = field(default_factory=list)
    learned: dict[str, LearnedMatrix | LearnedWeights] = field(
        default_factory=dict
    )  # beside the weights, by name
    stationarity: Stationarity | None = None  # of a model that is not convex
    label_graph: LearnedGraph | None = None  # of a loss over a graph of labels
    certified: np.ndarray | None = None
    history: list[dict] = field(default_factory=list)
    multipliers: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # not saved
    majorizations: tuple = field(default=(), repr=False)  # steps for the cross-check to repeat; not saved
    state: object = field(default=None, repr=False)  # for warm starts; not saved
    verified: bool = True  # False where a file said so
    interrupted: bool = field(default=False, repr=False)
    proof: SolutionCertificate | None = field(default=None, repr=False)  # not saved

    # -------------------------------------------------------------------------------------------- access

    @property
    def certificate(self) -> SolutionCertificate:
        """What was proven, to be saved for others to check: `solution.certificate.save(path)`. DataError for a solution read from a file."""
        if self.proof is None:
            raise DataError(
                "solution.certificate: a saved solution does not hold its proof; solve again, or save the certificate beside it"
            )
        return self.proof

    @property
    def W(self) -> np.ndarray:
        return self.coef

    @property
    def kernel_weights(self) -> LearnedWeights:
        """The weights of the task similarities of `mkl_norm`. ModelError where the model has no such term, or several."""
        found = [name for name, one in self.learned.items() if isinstance(one, LearnedWeights)]
        if len(found) != 1:
            several = (
                f"{len(found)} such terms; write solution.learned[...] with one of {found}"
                if found
                else "no mkl_norm"
            )
            raise ModelError(f"solution.kernel_weights: the model has {several}")
        return self.learned[found[0]]

    @property
    def gap(self) -> Gap:
        return Gap(self.relative_gap, self.objective - self.dual_bound)

    @property
    def is_optimal(self) -> bool:
        return self.status == "optimal"

    @property
    def is_certified(self) -> bool:
        """Whether the accuracy asked for is proven: of the optimum, or of a stationary point where the model is not convex.

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
        raise AttributeError(
            f"Solution has no attribute or block {name!r}; blocks: {', '.join([*blocks, *learned])}"
        )

    def __str__(self) -> str:
        status = self.status if self.verified else f"{self.status} (as saved, not verified)"
        if self.stationarity is not None and self.status != "optimal":
            words = NO_GLOBAL if self.status == "stationary" else "not proven stationary"
            proof = f"residual {self.stationarity.residual:.1e} (objective {self.objective:.10g}), {words}"
            return f"{status}: {proof}, violation {self.violation:.1e}, {self.solver}, {self.seconds:.3f} s"
        proof = (
            f"gap {self.relative_gap:.2e} (objective {self.objective:.10g}, dual bound {self.dual_bound:.10g})"
            if np.isfinite(self.relative_gap)
            else f"objective {self.objective:.10g}, no dual bound: {self.note}"
        )
        return f"{status}: {proof}, violation {self.violation:.1e}, {self.solver}, {self.seconds:.3f} s"

    def __repr__(self) -> str:
        return f"<Solution {self}>"

    # --------------------------------------------------------------------------------------- predictions

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
        if self.label_graph is not None:
            return self._labellings().margins(self._matrix(X, "decision_function"))
        if is_list_of_matrices(X):
            if len(X) != self.coef.shape[1]:
                raise DataError(
                    f"predict: {len(X)} input matrices for {self.coef.shape[1]} tasks; give one a task"
                )
            shift = np.zeros(len(X)) if self.intercept is None else self.intercept
            return [self._inputs(Xi) @ self.coef[:, i] + shift[i] for i, Xi in enumerate(X)]
        inputs = self._inputs(X)
        n, m = inputs.shape[0], self.coef.shape[1]
        require_memory(
            16.0 * n * m,
            f"predict: {n:,} rows for {m:,} tasks",
            "predict part by part, such as predict(X[:100_000])",
            DataError,
        )
        z = inputs @ self.coef
        return z if self.intercept is None else z + self.intercept

    def _inputs(self, X):
        if hasattr(X, "task_names"):
            raise DataError(
                "predict(tasks): give the inputs, tasks.X or tasks.inputs; score(tasks) compares with labels"
            )
        if self.kernel_map is not None:
            return self.kernel_map.transform(X, "predict: X")
        X, columns = as_design(X, "predict: X")
        wrong = unlike(self.feature_names, columns)
        if wrong is not None:
            raise DataError(f"predict: X has the columns {_shown(columns)}; {wrong}")
        if X.shape[1] != self.coef.shape[0]:
            raise DataError(
                f"predict: X has shape {X.shape}, but the weights were learned on {self.coef.shape[0]} features; "
                f"give a matrix of n rows and {self.coef.shape[0]} columns"
            )
        return X if self.scaling is None else self._statistics().apply(X)

    def _statistics(self) -> Scaling:
        return Scaling(np.asarray(self.scaling["mean"]), np.asarray(self.scaling["scale"]))

    def predict(self, X, return_certified: bool = False):
        """Labels in {-1, +1} for a classification loss, expected counts for the Poisson loss, else the predictions themselves.

        Shaped like `decision_function`. Labels are +1 where that is at least 0, or at least the task's threshold after
        `tune_threshold`. For a loss over a graph of labels: the labelling with the highest score, over the edges whose weights are not
        zero.

        return_certified : of a graph of labels, return (labels, certified (n,)) too: whether each labelling is proven to be the best.
            It is where inference is exact (`solution.label_graph.inference`). ModelError for other losses
        """
        return_certified = as_flag(return_certified, "predict(X, return_certified")
        if self.label_graph is not None:
            found = self._labellings().decode(self._matrix(X, "predict"))
            labels = 2.0 * found.labels - 1.0
            return (labels, found.certified) if return_certified else labels
        if return_certified:
            self._label_graph("predict(X, return_certified=True)")
        z = self.decision_function(X)
        if isinstance(z, list):
            return [
                self._decide(zi, None if self.thresholds is None else self.thresholds[i])
                for i, zi in enumerate(z)
            ]
        return self._decide(z, self.thresholds)

    def _decide(self, z, threshold):
        return self._loss_atom().decide(z) if threshold is None else np.where(z >= threshold, 1.0, -1.0)

    def predict_proba(self, X):
        """P(label = +1) for the logistic loss, shaped like `decision_function`; for `pairwise_log_loss` the marginal of every label.

        The labels that are each more probable than not need not be the most probable labelling, which `predict` gives. ModelError for
        other losses.
        """
        if self.label_graph is not None:
            if self.loss["word"] != "pairwise_log_loss":
                raise ModelError(
                    f"predict_proba: {self.loss['word']} models no probabilities; use pairwise_log_loss, or decision_function"
                )
            return self._labellings().probabilities(self._matrix(X, "predict_proba"))
        atom = self._loss_atom()
        if not hasattr(atom, "probability"):
            raise ModelError(
                f"predict_proba: {atom.name} models no probabilities; use logistic_loss, or decision_function"
            )
        z = self.decision_function(X)
        return [atom.probability(zi) for zi in z] if isinstance(z, list) else atom.probability(z)

    def _loss_atom(self):
        from mtldsl.atoms.function import REGISTRY

        # a metric says how weights were found, not how they predict; its class need not be known here
        parameters = {name: value for name, value in self.loss["parameters"].items() if name != "metric"}
        return REGISTRY[self.loss["word"]](**parameters)

    def _flat_scores(self, tasks, typed: str) -> np.ndarray:
        """The decision function of Tasks, (N,); DataError where they are not those of training."""
        tasks = self._as_in_training(tasks, typed)
        z = tasks.forward(self.coef)
        return z if self.intercept is None else z + np.repeat(self.intercept, tasks.counts)

    def _as_in_training(self, tasks, typed: str):
        """Tasks with the features that the weights are of; DataError where they are not those of training."""
        require_tasks(tasks, typed)
        if tasks.kernel_map is not None and tasks.kernel_map != self.kernel_map:
            raise DataError(
                f"{typed}: the features of these tasks are of other kernels, or of the rows of other tasks, than those of "
                "training; give raw tasks, or test.with_kernels(train.kernel_map)"
            )
        raw = self.kernel_map is not None and tasks.kernel_map is None
        features = len(self.kernel_map.feature_names) if raw else self.coef.shape[0]
        n_tasks = self.coef.shape[1] if self.label_graph is None else len(self.label_graph.names)
        if tasks.n_features != features or tasks.n_tasks != n_tasks:
            raise DataError(
                f"{typed}: the tasks are {tasks.n_features} features x {tasks.n_tasks} tasks, the weights "
                f"{features} x {n_tasks}"
            )
        self._refuse_strangers(tasks, typed, self.kernel_map.feature_names if raw else self.feature_names)
        if self.scaling is not None and tasks.scaling is None:
            tasks = tasks.scaled_by(self._statistics())
        return tasks.with_kernels(self.kernel_map) if raw else tasks

    def scores(self, tasks, metric=None) -> np.ndarray:
        """One score per task on a Tasks object: accuracy for labels in {-1, +1}, else the coefficient of determination R^2.

        metric : score by this instead, by 1 - Delta: one metric, a list with one a task, or a dict {task name: metric}.
            `FScore(beta)`: the F-score of the predicted labels; `AUC()`: 1 - b c / (Pos Neg) on labels; `ErrorRate()`: the
            accuracy, 1 - Delta / (2 n); `ROCArea()`: the area under the ROC curve of `decision_function`; `PrecisionAt(k)` and
            `RecallAt(k)`: of the k samples with the highest `decision_function`; your own metric: 1 - Delta. With a metric, the
            predictions of losses for real numbers are labels too, +1 where they are at least 0.

        For a loss over a graph of labels the scores are of the labels of the best labellings, and of `decision_function` for metrics of
        rankings. Raw tasks are scaled by the statistics learned in training; tasks that are standardised already are not scaled twice.
        DataError for tasks of another size, with other statistics, or with a task or feature at another position; with a
        metric, for labels other than -1 and +1, a task of one class, and sample weights. ModelError for something that is not a
        metric of these tasks.
        """
        return self._scores(tasks, metric, "scores")

    def _scores(self, tasks, metric, method: str) -> np.ndarray:
        typed = f"{method}(tasks)"
        require_tasks(tasks, typed)
        if self.label_graph is not None:
            return scores_of_labels(self._labellings(), self._as_in_training(tasks, method), metric, typed)
        parts = tasks.per_task(self._flat_scores(tasks, method)), tasks.per_task(tasks.targets)
        if metric is not None:
            self._require_labels_predicted(typed)
            metrics = checked_metrics(metric, tasks, typed)
            cuts = np.zeros(tasks.n_tasks) if self.thresholds is None else self.thresholds
            return np.array(
                [score_of(*of_task, typed=typed) for of_task in zip(metrics, *parts, cuts, strict=True)]
            )
        cuts = [None] * tasks.n_tasks if self.thresholds is None else self.thresholds
        pairs = [(self._decide(z, cut), y) for z, y, cut in zip(*parts, cuts, strict=True)]
        if self.loss["labels"] == "sign" or self.thresholds is not None:
            return np.array([np.mean(p == y) for p, y in pairs])
        return np.array([r_squared(p, y) for p, y in pairs])

    def tune_threshold(self, tasks, metric=None) -> Solution:
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
        if self.label_graph is not None:
            raise ModelError(
                f"{typed}: {self.loss['word']} decides a labelling as a whole, so that no label has a threshold of its own; to make "
                "some mistakes dearer, write clique_hinge(U, V, tasks, loss=[...]) with the cost of each label"
            )
        self._require_labels_predicted(typed)
        parts = tasks.per_task(self._flat_scores(tasks, "tune_threshold")), tasks.per_task(tasks.targets)
        if metric is None:
            metric = self.loss["parameters"].get("metric", FScore())
        metrics = checked_metrics(metric, tasks, typed)
        thresholds = [
            best_threshold(z, y, of_task, typed, name)
            for z, y, of_task, name in zip(*parts, metrics, tasks.task_names, strict=True)
        ]
        return replace(self, thresholds=np.array(thresholds))

    def _require_labels_predicted(self, typed: str) -> None:
        predicted = {"count": "counts", "positive": "amounts"}.get(self.loss["labels"])
        if predicted:
            raise ModelError(
                f"{typed}: {self.loss['word']} predicts {predicted}, and a metric is of labels -1 and +1"
            )

    def _refuse_strangers(self, tasks, typed: str, feature_names: tuple[str, ...]) -> None:
        for what, learned, given in (
            ("feature", feature_names, tasks.feature_names),
            ("task", self.task_names, tasks.task_names),
        ):
            name = elsewhere(given, learned)
            if name is not None:
                raise DataError(
                    f"{typed}: {what} {name!r} is number {given.index(name)} here, but was {learned.index(name)} in training; "
                    f"give the {what}s in the order {_shown(learned)}"
                )
        if tasks.scaling is not None and not (
            self.scaling is not None and tasks.scaling == self._statistics()
        ):
            raise DataError(
                f"{typed}: these tasks were standardised with statistics other than the training tasks'; give raw tasks, or "
                "test.scaled_by(train.scaling)"
            )

    def score(self, tasks, metric=None) -> float:
        """The mean over tasks of `scores`."""
        return float(np.mean(self._scores(tasks, metric, "score")))

    # -------------------------------------------------------------------------------------------- storage

    def save(self, path) -> Path:
        """Write the solution to one .npz file (arrays, and the rest as JSON; no pickle). Returns the path written.

        The file is whole or as it was: it takes the place of an older one only once it is on the disk. DataError where it cannot be written.
        Learned matrices are kept by their eigenvectors. What a warm start needs besides the weights is not kept.
        ModelError where a metric of your own has parameters that JSON cannot hold, and where a kernel is a function of yours.
        """
        return write_fields(
            path, {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_SAVED}
        )

    @classmethod
    def load(cls, path) -> Solution:
        """Read what `save` wrote, by the name given there: `verified` is False. DataError for a file of another kind, damaged bytes, and a
        status that the file's own numbers contradict.

        The module with a metric of your own need not be imported, unless `tune_threshold` is to use that metric.
        """
        stored = read_fields(path)
        unknown = sorted(stored.keys() - {f.name for f in fields(cls) if f.name not in _NOT_SAVED})
        if unknown:
            raise DataError(
                f"Solution.load({str(path)!r}): it holds {unknown[0]!r}, which this version of mtldsl does not know; it was "
                "saved by a newer one"
            )
        return cls(**stored, verified=False)


def _shown(names) -> str:
    return ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
