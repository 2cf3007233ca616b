"""The data sets: which half each belongs to, and what a model gets of them: inputs in one of three scalings, and targets of four kinds.

The split is by data set, fixed here: thresholds in the package may be set on the tuning half; what is claimed is read off the judging half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from . import generated

__all__ = ["SCALINGS", "SETS", "DataSet", "Raw", "tasks_of"]

SCALINGS = ("raw", "standard", "unit")


@dataclass(frozen=True)
class Raw:
    """Inputs and targets before any scaling: one X with Y (n, m), NaN where a label is missing; or lists, a task each."""

    X: object
    Y: object

    @property
    def separate(self) -> bool:
        return isinstance(self.X, list)


@dataclass(frozen=True)
class DataSet:
    """A data set with what the choice of problems needs to know before it is loaded: rows, features, tasks, layout."""

    name: str
    half: str
    load: Callable[[], Raw]
    n: int
    d: int
    m: int
    layout: str = "dense"  # dense, csr, separate, missing
    labels: bool = False
    real: bool = True

    @property
    def size(self) -> int:
        """Scalars that one pass for all tasks multiplies."""
        return self.n * self.d * (1 if self.layout == "separate" else self.m)


# ------------------------------------------------------------------------------------------------- loading


def _published(name: str, *arguments) -> Callable[[], Raw]:
    def load() -> Raw:
        from mtldsl import datasets

        return raw_of(getattr(datasets, f"load_{name}")(*arguments))

    return load


def raw_of(tasks) -> Raw:
    """What `Tasks` holds, as plain arrays."""
    if tasks.is_shared:
        Y = np.full((tasks.n_tasks, tasks.X.shape[0]), np.nan)
        Y[slice(None) if tasks.mask is None else tasks.mask.T] = (
            tasks.targets.reshape(Y.shape) if tasks.mask is None else tasks.targets
        )
        return Raw(tasks.X, Y.T)
    return Raw(list(tasks.inputs), np.split(np.asarray(tasks.targets), tasks.offsets[1:-1]))


def _sklearn(name: str) -> Callable[[], Raw]:
    def load() -> Raw:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X, y = np.asarray(X, float), np.asarray(y, float)
        if name in ("diabetes", "linnerud"):
            return Raw(X, y.reshape(len(X), -1))
        if name == "breast_cancer":
            return Raw(X, np.where(y > 0, 1.0, -1.0)[:, None])
        return Raw(X, np.where(y[:, None] == np.unique(y), 1.0, -1.0))  # one task a class

    return load


def _real() -> list[DataSet]:
    return [
        DataSet("school", "tuning", _published("school"), 15362, 28, 139, "separate"),
        DataSet("emotions", "tuning", _published("emotions"), 593, 72, 6, labels=True),
        DataSet("segmentation", "tuning", _published("segmentation"), 2310, 19, 7, labels=True),
        DataSet("atp1d", "tuning", _published("multi_target", "atp1d"), 337, 411, 6),
        DataSet("digits", "tuning", _sklearn("digits"), 1797, 64, 10, labels=True),
        DataSet("diabetes", "tuning", _sklearn("diabetes"), 442, 10, 1),
        DataSet("wine", "tuning", _sklearn("wine"), 178, 13, 3, labels=True),
        DataSet("sarcos", "judging", _published("sarcos"), 4449, 21, 7),
        DataSet("flags", "judging", _published("flags"), 194, 43, 7, labels=True),
        DataSet("scene", "judging", _published("scene"), 2407, 294, 6, labels=True),
        DataSet("enb", "judging", _published("multi_target", "enb"), 768, 8, 2),
        DataSet("andro", "judging", _published("multi_target", "andro"), 49, 30, 6),
        DataSet("breast_cancer", "judging", _sklearn("breast_cancer"), 569, 30, 1, labels=True),
        DataSet("linnerud", "judging", _sklearn("linnerud"), 20, 3, 3),
    ]


def _generated() -> list[DataSet]:
    def one(name, half, maker, n, d, m, layout="dense", labels=False, **options):
        seed = sum(map(ord, name))

        def load() -> Raw:
            return Raw(*getattr(generated, maker)(n, d, m, seed, labels=labels, **options))

        return DataSet(name, half, load, n, d, m, layout, labels, real=False)

    return [
        one("ar_wide", "tuning", "autoregressive", 200, 2000, 1),
        one("ar_wide_tasks", "judging", "autoregressive", 150, 1500, 20),
        one("ar_wide_one", "judging", "autoregressive", 300, 1200, 1),
        one("ar_tall", "judging", "autoregressive", 5000, 100, 1),
        one("ar_tall_tasks", "tuning", "autoregressive", 4000, 60, 12),
        one("twins", "judging", "duplicates", 400, 240, 5),
        one("twins_one", "tuning", "duplicates", 300, 150, 1),
        one("skewed", "judging", "ill_conditioned", 1000, 120, 4),
        one("skewed_labels", "tuning", "ill_conditioned", 700, 90, 3, labels=True),
        one("sparse_wide", "tuning", "sparse", 1500, 8000, 1, "csr", density=0.005),
        one("sparse_wide_more", "judging", "sparse", 1000, 5000, 1, "csr", density=0.01),
        one("sparse_labels", "judging", "sparse", 6000, 800, 4, "csr", labels=True, density=0.02),
        one("sparse_many", "tuning", "sparse", 1000, 600, 40, "csr", labels=True, density=0.02),
        one("sparse_text", "tuning", "sparse", 3000, 4000, 1, "csr", labels=True, density=0.006),
        one("many_tasks", "judging", "autoregressive", 300, 40, 500),
        one("tasks_200", "tuning", "autoregressive", 400, 25, 200),
        one("holes", "tuning", "missing", 500, 50, 15, "missing", share=0.4),
        one("holes_labels", "judging", "missing", 800, 80, 8, "missing", labels=True, share=0.3),
        one("apart", "judging", "separate", 3000, 40, 40, "separate"),
        one("apart_labels", "tuning", "separate", 2400, 60, 12, "separate", labels=True),
        one("rare", "judging", "imbalanced", 1500, 100, 14, labels=True),
        one("rarer", "tuning", "imbalanced", 500, 70, 60, labels=True),
    ]


SETS: dict[str, DataSet] = {each.name: each for each in _real() + _generated()}

# ------------------------------------------------------------------------------------------------ scalings


def _scaled_inputs(X, scaling: str, statistics):
    if scaling == "raw":
        return X
    shift, scale = statistics
    if sp.issparse(X):  # zeros stay zeros
        return sp.csr_matrix(X @ sp.diags(1.0 / scale))
    return (X - shift) / scale


def _statistics(X, scaling: str):
    if sp.issparse(X):
        squares = np.sqrt(np.asarray(X.multiply(X).mean(axis=0))).ravel()
        largest = abs(X).max(axis=0).toarray().ravel()
        scale = squares if scaling == "standard" else largest
        return 0.0, np.where(scale > 0, scale, 1.0)
    shift = X.mean(axis=0) if scaling == "standard" else X.min(axis=0)
    scale = X.std(axis=0) if scaling == "standard" else X.max(axis=0) - X.min(axis=0)
    return shift, np.where(scale > 1e-12 * np.abs(X).max(axis=0).clip(1e-300), scale, 1.0)


def _targets(y, kind: str, scaling: str, labels: bool):
    """Targets of one task; NaN stays NaN."""
    known = y[np.isfinite(y)]
    if kind == "labels":
        if labels:
            return y
        signs = np.where(y > np.median(known), 1.0, -1.0)
        return np.where(np.isfinite(y), signs, np.nan)
    score = (y - known.mean()) / (known.std() or 1.0)
    if kind == "counts":
        return np.round(np.exp(0.7 * np.clip(score, -3, 3)))
    if kind == "amounts":
        return np.exp(0.5 * np.clip(score, -3, 3))
    if scaling == "raw" or labels:
        return y
    return score if scaling == "standard" else (y - known.min()) / ((known.max() - known.min()) or 1.0)


def tasks_of(data: DataSet, raw: Raw, scaling: str, kind: str, one: bool = False, constant: bool = False):
    """`Tasks` for a model: kind is "real", "labels", "counts" or "amounts"; one: the first task alone; constant: a column of ones more."""
    import mtldsl as mtl

    if one:
        raw = Raw(raw.X[0], raw.Y[0][:, None]) if raw.separate else Raw(raw.X, raw.Y[:, :1])
        if np.isnan(raw.Y).any():
            there = np.isfinite(raw.Y[:, 0])
            raw = Raw(raw.X[there], raw.Y[there])
    inputs = raw.X if raw.separate else [raw.X]
    inputs = [X.astype(float) if sp.issparse(X) else np.asarray(X, float) for X in inputs]
    if scaling != "raw":
        together = sp.vstack(inputs) if sp.issparse(inputs[0]) else np.vstack(inputs)
        statistics = _statistics(together, scaling)
        inputs = [_scaled_inputs(X, scaling, statistics) for X in inputs]
    if constant:
        inputs = [np.hstack([X, np.ones((len(X), 1))]) for X in inputs]
    if raw.separate:
        return mtl.Tasks.separate(inputs, [_targets(y, kind, scaling, data.labels) for y in raw.Y])
    columns = [_targets(y, kind, scaling, data.labels) for y in np.asarray(raw.Y, float).T]
    return mtl.Tasks.shared(inputs[0], np.column_stack(columns))


def resized(data: DataSet, **shape) -> DataSet:
    """The same data set with what was found out about its shape."""
    return replace(data, **shape)
