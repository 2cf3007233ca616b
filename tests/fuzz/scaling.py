"""The sizes of a model's unknowns and values: what makes its statement for Clarabel well scaled."""

from dataclasses import dataclass

import numpy as np

from tests.fuzz.feasible import repaired
from tests.fuzz.formulas import LONG, objective
from tests.fuzz.recipes import Model

#: words of degree two
QUADRATIC = {
    "ridge", "half_squared_group_norm", "half_squared_k_support_norm", "squared_trace_norm", "graph_laplacian", "feature_covariance_norm", "task_covariance_norm",
    "mean_regularizer", "kronecker_ridge",
}  # fmt: skip


@dataclass(frozen=True)
class Scaling:
    """W = entries * V for every block; predictions of task i are constants[i] + units[i] * (scaled ones)."""

    entries: dict[str, np.ndarray]
    centres: list[np.ndarray]  # of every task's columns; zero without an intercept
    constants: np.ndarray
    units: np.ndarray
    value: LONG  # of the objective at the best constants


def best_constants(model: Model) -> np.ndarray:
    """(m,) of every task a constant prediction that is about the best one; zeros without an intercept."""
    m = model.shape[1]
    data, constants = model.data[0], np.zeros(m, LONG)
    if not any(model.blocks.values()):
        return constants
    for i, (_, y, s) in enumerate(data.tasks()):
        y = np.asarray(y, LONG)
        weights = np.ones(len(y), LONG) if s is None else np.asarray(s, LONG)
        mean = np.sum(weights * y) / weights.sum()
        if data.labels == "real":
            constants[i] = mean if np.ptp(y) > 0 else y[0]
        elif data.labels == "count":
            constants[i] = np.log(max(mean, LONG(1e-3)))
    return constants


def at_constants(model: Model, constants: np.ndarray) -> dict:
    blocks = {name: np.zeros(shape, LONG) for name, shape in model.shapes.items()}
    return blocks | {f"{name}.intercept": constants for name, has in model.blocks.items() if has}


def scaling_of(model: Model) -> Scaling:
    constants = best_constants(model)
    value = abs(objective(model, repaired(model, at_constants(model, constants))))
    value = value if np.isfinite(value) and value > 0 else LONG(1)
    m, centres, units, columns = model.shape[1], [], np.ones(model.shape[1], LONG), []
    for i, (X, y, _) in enumerate(model.data[0].tasks()):
        X = np.asarray(X, LONG)
        centres.append(X.mean(axis=0) if any(model.blocks.values()) else np.zeros(X.shape[1], LONG))
        columns.append(np.abs(X - centres[-1]).max(axis=0))
        if model.data[0].labels == "real":
            spread = np.abs(np.asarray(y, LONG) - constants[i]).max()
            units[i] = spread if spread > 0 else 1
    entries = {}
    for name in model.blocks:
        # over a graph of labels all tasks share their inputs
        size = np.column_stack(
            [_quotient(units[i % m], columns[i % m]) for i in range(model.shapes[name][1])]
        )
        for limit in _limits(model, name, value):
            size = np.minimum(size, limit)
        entries[name] = np.where(np.isfinite(size), size, 1)
    return Scaling(entries, centres, constants, units, value)


def _quotient(a, b):
    return np.where(b > 0, a / np.where(b > 0, b, 1), np.inf)


def _limits(model: Model, name: str, value: LONG):
    """What terms and constraints on the block itself let its entries be, each by itself."""
    for p in model.penalties:
        if p.argument.plain == name and p.coefficient > 0 and "weights" not in p.options:
            if p.word in ("mean_regularizer", "total_variation", "graph_laplacian"):
                continue
            yield (
                np.sqrt(2 * value / LONG(p.coefficient))
                if p.word in QUADRATIC
                else value / LONG(p.coefficient)
            )
    for c in model.constraints:
        if c.argument.plain == name and c.kind not in ("at_least", "at_most", "equal_to"):
            yield LONG(c.bound)
