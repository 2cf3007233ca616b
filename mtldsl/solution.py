"""The answer: weights, their proof, and predictions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mtldsl.errors import DataError, ModelError
from mtldsl.tasks.inputs import as_design
from mtldsl.tasks.names import elsewhere, unlike
from mtldsl.tasks.scaling import Scaling

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


@dataclass(eq=False)  # comparing arrays entry by entry would make `solutions.index(best)` an error
class Solution:
    """A point of a problem with its certificate.

    W            the weights (d, m) of the first loss's predictions: the sum where the model is typed on L + S
    blocks       every unknown by name, intercepts as "W.intercept"; also as attributes: solution.L, solution.S
    intercept    (m,) or None
    objective    the primal value, recomputed from the definitions; dual_bound: a proven lower bound on the optimum
    gap          relative duality gap (objective - dual_bound) / max(|objective|, |dual_bound|); `gap.absolute`
    violation    the largest constraint violation, in the units of the constraint
    status       "optimal" only where gap and violation are proven <= tol; else "time_limit", "iteration_limit", "stalled",
                 "interrupted", or "uncertified" (no finite bound could be formed; `note` says why)
    history      one dict per look at the certificate: iteration, seconds, objective, dual_bound, violation, relative_gap
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
    history: list[dict] = field(default_factory=list)
    state: object = field(default=None, repr=False)  # for warm starts; not saved

    # -------------------------------------------------------------------------------------------- access

    @property
    def W(self) -> np.ndarray:
        return self.coef

    @property
    def gap(self) -> Gap:
        return Gap(self.relative_gap, self.objective - self.dual_bound)

    @property
    def is_optimal(self) -> bool:
        return self.status == "optimal"

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.blocks:
            raise ModelError(
                f"solution[{name!r}]: no such block; this solution has {', '.join(map(repr, self.blocks))}"
            )
        return self.blocks[name]

    def __getattr__(self, name: str):
        blocks = self.__dict__.get("blocks", {})
        if name in blocks:
            return blocks[name]
        raise AttributeError(f"Solution has no attribute or block {name!r}; blocks: {', '.join(blocks)}")

    def __str__(self) -> str:
        proof = (
            f"gap {self.relative_gap:.2e} (objective {self.objective:.10g}, dual bound {self.dual_bound:.10g})"
            if np.isfinite(self.relative_gap)
            else f"objective {self.objective:.10g}, no dual bound: {self.note}"
        )
        return f"{self.status}: {proof}, violation {self.violation:.1e}, {self.solver}, {self.seconds:.3f} s"

    def __repr__(self) -> str:
        return f"<Solution {self}>"

    # --------------------------------------------------------------------------------------- predictions

    def decision_function(self, X):
        """X_i w_i + intercept_i: (n, m) for one matrix X; a list of (n_i,) for a list of matrices, one a task.

        The statistics of `Tasks.standardize()` are applied to X first. DataError where the columns do not fit: another number,
        or a table whose column names are not those learned on.
        """
        if isinstance(X, (list, tuple)) and len(X) and not np.isscalar(X[0]) and np.ndim(X[0]) == 2:
            if len(X) != self.coef.shape[1]:
                raise DataError(
                    f"predict: {len(X)} input matrices for {self.coef.shape[1]} tasks; give one a task"
                )
            shift = np.zeros(len(X)) if self.intercept is None else self.intercept
            return [self._inputs(Xi) @ self.coef[:, i] + shift[i] for i, Xi in enumerate(X)]
        z = self._inputs(X) @ self.coef
        return z if self.intercept is None else z + self.intercept

    def _inputs(self, X):
        if hasattr(X, "task_names"):
            raise DataError(
                "predict(tasks): give the inputs, tasks.X or tasks.inputs; score(tasks) compares with labels"
            )
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

    def predict(self, X):
        """Labels in {-1, +1} for a classification loss, expected counts for the Poisson loss, else the predictions themselves."""
        decide = self._loss_atom().decide
        z = self.decision_function(X)
        return [decide(zi) for zi in z] if isinstance(z, list) else decide(z)

    def predict_proba(self, X):
        """P(label = +1) for the logistic loss, shaped like `decision_function`. ModelError for other losses."""
        atom = self._loss_atom()
        if not hasattr(atom, "probability"):
            raise ModelError(
                f"predict_proba: {atom.name} models no probabilities; use logistic_loss, or decision_function"
            )
        z = self.decision_function(X)
        return [atom.probability(zi) for zi in z] if isinstance(z, list) else atom.probability(z)

    def _loss_atom(self):
        from mtldsl.atoms.function import REGISTRY

        return REGISTRY[self.loss["word"]](**self.loss["parameters"])

    def scores(self, tasks) -> np.ndarray:
        """One score per task on a Tasks object: accuracy for labels in {-1, +1}, else the coefficient of determination R^2.

        Raw tasks are scaled by the statistics learned in training; tasks that are standardised already are not scaled twice.
        DataError for tasks of another size, with other statistics, or with a task or feature at another position.
        """
        if tasks.n_features != self.coef.shape[0] or tasks.n_tasks != self.coef.shape[1]:
            raise DataError(
                f"score: the tasks are {tasks.n_features} features x {tasks.n_tasks} tasks, the weights "
                f"{self.coef.shape[0]} x {self.coef.shape[1]}"
            )
        self._refuse_strangers(tasks)
        if self.scaling is not None and tasks.scaling is None:
            z = np.concatenate(self.decision_function(tasks.inputs))
        else:
            z = tasks.forward(self.coef)
            z = z if self.intercept is None else z + np.repeat(self.intercept, tasks.counts)
        prediction, y = self._loss_atom().decide(z), tasks.targets
        parts = zip(tasks.per_task(prediction), tasks.per_task(y), strict=True)
        if self.loss["labels"] == "sign":
            return np.array([np.mean(p == t) for p, t in parts])
        return np.array([_r2(p, t) for p, t in parts])

    def _refuse_strangers(self, tasks) -> None:
        for what, learned, given in (
            ("feature", self.feature_names, tasks.feature_names),
            ("task", self.task_names, tasks.task_names),
        ):
            name = elsewhere(given, learned)
            if name is not None:
                raise DataError(
                    f"score: {what} {name!r} is number {given.index(name)} here, but was {learned.index(name)} in training; "
                    f"give the {what}s in the order {_shown(learned)}"
                )
        if tasks.scaling is not None and not (
            self.scaling is not None and tasks.scaling == self._statistics()
        ):
            raise DataError(
                "score: these tasks were standardised with statistics other than the training tasks'; give raw tasks, or "
                "test.scaled_by(train.scaling)"
            )

    def score(self, tasks) -> float:
        """The mean over tasks of `scores`."""
        return float(np.mean(self.scores(tasks)))

    # -------------------------------------------------------------------------------------------- storage

    def save(self, path) -> Path:
        """Write the solution to one .npz file (arrays, and the rest as JSON; no pickle). Returns the path written."""
        path = Path(path)
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        arrays = {f"block:{name}": array for name, array in self.blocks.items()} | {"coef": self.coef}
        if self.intercept is not None:
            arrays["intercept"] = self.intercept
        plain = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("blocks", "coef", "intercept", "state")
        }
        arrays["json"] = np.array(json.dumps({"format": "mtldsl-solution-1", **plain}, default=_to_plain))
        np.savez_compressed(path, **arrays)
        return path

    @classmethod
    def load(cls, path) -> Solution:
        """Read what `save` wrote, by the name given there. DataError for a file of another kind."""
        path = Path(path)
        if not path.exists() and path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        try:
            with np.load(path, allow_pickle=False) as stored:
                plain = json.loads(str(stored["json"]))
                arrays = {name: stored[name] for name in stored.files if name != "json"}
        except (KeyError, ValueError, OSError) as error:
            raise DataError(f"Solution.load({str(path)!r}): not a saved solution ({error})") from error
        if plain.pop("format", None) != "mtldsl-solution-1":
            raise DataError(f"Solution.load({str(path)!r}): unknown format")
        blocks = {name.removeprefix("block:"): a for name, a in arrays.items() if name.startswith("block:")}
        plain["task_names"], plain["feature_names"] = (
            tuple(plain["task_names"]),
            tuple(plain["feature_names"]),
        )
        return cls(blocks=blocks, coef=arrays["coef"], intercept=arrays.get("intercept"), **plain)


def _shown(names) -> str:
    return ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)


def _r2(prediction, y) -> float:
    spread = np.sum((y - y.mean()) ** 2)
    return float(1.0 - np.sum((y - prediction) ** 2) / spread) if spread > 0 else float("nan")


def _to_plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")
