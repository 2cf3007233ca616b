"""The oracle: the model in scaled unknowns, stated in cvxpy from the printed definitions and solved by Clarabel.

Least squares are solved in rational arithmetic as well. Nothing of mtldsl is used. Only its *point* is believed: moved into the constraints and evaluated by `formulas` in extended
precision, it attains a value that the optimum cannot lie above, however Clarabel found it.
"""

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from tests.fuzz.exact import exact_blocks
from tests.fuzz.feasible import repaired
from tests.fuzz.formulas import LONG, objective, planes
from tests.fuzz.label_graphs import GRAPH_LOSSES, graph_statement
from tests.fuzz.recipes import NOT_CONVEX, Constraint, Expression, Loss, Model
from tests.fuzz.scaling import QUADRATIC, Scaling, at_constants, scaling_of


@dataclass(frozen=True)
class Oracle:
    status: str  # Clarabel's word
    blocks: dict | None  # a feasible point, in extended precision
    attained: float  # its objective; inf where there is none
    scale: float  # the objective at the best constants


def consult(model: Model, seconds: float = 20.0) -> Oracle:
    scaling = scaling_of(model)
    statement = _Statement(model, scaling)
    status = "failed"
    for accuracy in (1e-11, 1e-9, 1e-7):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                status = statement.solve(accuracy, seconds)
        except (cp.error.SolverError, ValueError, ArithmeticError) as error:
            status = f"failed: {error}"[:80]
        if status in ("optimal", "infeasible"):
            break
    best, attained = None, np.inf
    exact = exact_blocks(model)
    for blocks in _points(model, scaling, statement.blocks(), exact) if model.feasible else ():
        blocks = repaired(model, blocks)
        value = float(objective(model, blocks))
        if value < attained:
            best, attained = blocks, value
    return Oracle("optimal" if exact is not None else status, best, attained, float(scaling.value))


def _points(model: Model, scaling: Scaling, *found):
    """The best constants, what was found, and of a model that is not convex its nearest matrices of lower rank."""
    yield at_constants(model, scaling.constants)
    for blocks in found:
        if blocks is None:
            continue
        yield blocks
        if not model.is_convex:
            (name, *_) = model.blocks
            U, s, V = np.linalg.svd(np.asarray(blocks[name], float), full_matrices=False)
            for rank in range(len(s)):
                yield blocks | {name: np.asarray(U[:, :rank] * s[:rank] @ V[:rank], LONG)}


class _Statement:
    """minimize F(entries * V) / value"""

    def __init__(self, model: Model, scaling: Scaling):
        self.model, self.scaling = model, scaling
        self.V = {name: cp.Variable(shape) for name, shape in model.shapes.items()}
        self.b = {name: cp.Variable(model.shape[1]) for name, has in model.blocks.items() if has}
        self.extra: list = []  # constraints that values need
        terms = [self._loss(loss) for loss in model.losses]
        terms += [self._penalty(p) for p in model.penalties if p.coefficient > 0 and p.word not in NOT_CONVEX]
        constraints = [one for c in model.constraints for one in self._constraint(c)]
        self.problem = cp.Problem(cp.Minimize(sum(terms)), constraints + self.extra)

    def solve(self, accuracy: float, seconds: float) -> str:
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), accuracy)
        self.problem.solve(solver=cp.CLARABEL, ignore_dpp=True, max_iter=300, time_limit=seconds, **options)
        return self.problem.status

    def blocks(self) -> dict | None:
        if any(v.value is None for v in (*self.V.values(), *self.b.values())):
            return None
        s = self.scaling
        found = {name: s.entries[name] * np.asarray(v.value, LONG) for name, v in self.V.items()}
        for name, v in self.b.items():
            b = s.constants + s.units * np.asarray(v.value, LONG)
            for i, centre in enumerate(s.centres):  # all blocks stand in the loss's sum
                b[i] -= sum(np.dot(centre, W[:, i]) for W in found.values() if W.ndim == 2)
            found[f"{name}.intercept"] = b
        return found

    def _expression(self, expression: Expression, factor=1.0):
        """factor * expression"""
        total = 0.0
        for part in expression.parts:
            scaled = cp.multiply(
                _double(LONG(factor) * LONG(part.coefficient) * self.scaling.entries[part.block]),
                self.V[part.block],
            )
            scaled = scaled if part.left is None else part.left @ scaled
            total = total + (scaled if part.right is None else scaled @ part.right)
        return (
            total
            if expression.offset is None
            else total + _double(LONG(factor) * np.asarray(expression.offset, LONG))
        )

    def _loss(self, loss: Loss):
        s, total = self.scaling, 0.0
        if loss.word in GRAPH_LOSSES:
            return graph_statement(
                self.model, loss, s.entries, self.V, float(LONG(loss.coefficient) / s.value)
            )
        for i, (X, y, weights) in enumerate(self.model.data[loss.data].tasks()):
            unit = s.units[i]
            inputs = (np.asarray(X, LONG) - s.centres[i]) / unit
            z = sum(
                _double(inputs * s.entries[p.block][:, i]) @ self.V[p.block][:, i]
                for p in loss.argument.parts
            )
            z = z + sum(self.b[p.block][i] for p in loss.argument.parts if p.block in self.b)
            weights = np.ones(len(y), LONG) if weights is None else np.asarray(weights, LONG)
            c = LONG(loss.coefficient) / (weights.sum() if loss.mean else 1) / s.value
            y = np.asarray(y, LONG)
            target = (y - s.constants[i]) / unit if loss.word not in MARGINS else y
            total = total + MARGINS.get(loss.word, _of_residuals)(
                self, loss, z, target, weights, c, unit, s.constants[i]
            )
        return total

    def _penalty(self, p):
        k = LONG(p.coefficient) / self.scaling.value
        E = self._expression(p.argument, np.sqrt(k) if p.word in QUADRATIC else k)
        return PENALTIES[p.word](self, E, **p.options)

    def _constraint(self, c: Constraint) -> list:
        size = max(self.scaling.entries[p.block].max() for p in c.argument.parts)
        if c.argument.plain and c.kind in ("at_least", "at_most"):
            entries = self.scaling.entries[c.argument.plain]
            bound, V = _double(LONG(c.bound) / entries), self.V[c.argument.plain]
            return [bound <= V] if c.kind == "at_least" else [bound >= V]
        if c.kind == "equal_to":
            return [self._expression(c.argument, 1 / size) == _double(LONG(c.bound) / size)]
        E = self._expression(c.argument, 1 / LONG(c.bound))
        if c.kind == "columns_on_simplex":
            return [self.V[c.argument.plain] >= 0, cp.sum(E, axis=0) == 1]
        return [PENALTIES[c.kind](self, E) <= 1]


def _double(array):
    return np.asarray(array, float)


def _of_residuals(statement, loss, z, y, s, c, unit, _):
    """Losses of residuals r = unit * (z - y), with weights s and the coefficient c."""
    r = z - _double(y)
    if loss.word in ("squared_loss", "sum_of_squares"):
        half = LONG(0.5) if loss.word == "squared_loss" else LONG(1)
        return cp.sum_squares(cp.multiply(_double(np.sqrt(half * c * s) * unit), r))
    if loss.word == "square_root_loss":
        eps = loss.options.get("eps", 0.0)
        scaled = cp.multiply(_double(c * np.sqrt(s) * unit), r)
        return cp.norm(cp.hstack([scaled, float(c * LONG(eps))]) if eps else scaled, 2)
    if loss.word == "absolute_loss":
        return _double(c * s * unit) @ cp.abs(r)
    if loss.word == "quantile_loss":
        q = loss.options.get("q", 0.5)
        return _double(c * s * unit) @ cp.maximum(-q * r, (1.0 - q) * r)
    delta = (
        LONG(loss.options.get("delta", 1.0)) / unit
    )  # the smaller of linear and quadratic parts: min over a of a^2/2 + delta |r - a|
    a = cp.Variable(r.shape)
    return cp.sum_squares(cp.multiply(_double(np.sqrt(c * s / 2) * unit), a)) + _double(
        c * s * unit * unit * delta
    ) @ cp.abs(r - a)


def _logistic(statement, loss, z, y, s, c, *_):
    return _double(c * s) @ cp.logistic(-cp.multiply(_double(y), z))


def _hinge(statement, loss, z, y, s, c, *_):
    margin = cp.pos(1.0 - cp.multiply(_double(y), z))
    if loss.word == "squared_hinge_loss":
        return cp.sum_squares(cp.multiply(_double(np.sqrt(c * s)), margin))
    return _double(c * s) @ margin


def _poisson(statement, loss, z, y, s, c, unit, constant):
    return (
        _double(c * s * np.exp(constant)) @ cp.exp(z)
        - _double(c * s * y) @ z
        - float(np.sum(c * s * y) * constant)
    )


def _structured(statement, loss, z, y, s, c, *_):
    metric, y = loss.options["metric"], _double(y)
    if metric == "ROCArea":
        high, low = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        pairs = [cp.pos(1.0 - 2.0 * (z[int(i)] - z[int(j)])) for i in high for j in low]
        return float(c / len(pairs)) * sum(pairs)
    deltas, slopes = zip(*planes(metric, y), strict=True)
    return float(c) * cp.max(np.array(deltas) + np.array(slopes) @ z)


MARGINS = {
    "logistic_loss": _logistic, "hinge_loss": _hinge, "squared_hinge_loss": _hinge, "poisson_loss": _poisson,
    "structured_hinge": _structured,
}  # fmt: skip


def _factor(matrix) -> np.ndarray:
    values, vectors = np.linalg.eigh(np.asarray(matrix, float))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _weighted(norms, weights):
    return cp.sum(norms) if weights is None else np.asarray(weights, float) @ norms


def _groups(E, columns=None):
    groups = [[j] for j in range(E.shape[1])] if columns is None else columns
    return [E[:, g] for g in groups]


def _k_support(statement, E, r, columns=None):
    parts = _groups(E, columns)
    eta = cp.Variable(len(parts), nonneg=True)
    statement.extra += [eta <= 1, cp.sum(eta) <= r]
    return 0.5 * sum(cp.quad_over_lin(cp.vec(part, order="F"), eta[g]) for g, part in enumerate(parts))


def _entries(E, weights):
    return E if weights is None else cp.multiply(weights, E)


PENALTIES = {
    "ridge": lambda _, E, weights=None: (
        0.5 * cp.sum_squares(_entries(E, None if weights is None else np.sqrt(weights)))
    ),
    "frobenius_norm": lambda _, E: cp.norm(E, "fro"),
    "l1_norm": lambda _, E, weights=None: cp.sum(cp.abs(_entries(E, weights))),
    "l21_norm": lambda _, E, weights=None: _weighted(cp.norm(E, 2, axis=1), weights),
    "l12_norm": lambda _, E, weights=None: _weighted(cp.norm(E, 2, axis=0), weights),
    "l1_inf_norm": lambda _, E, weights=None: _weighted(cp.max(cp.abs(E), axis=1), weights),
    "group_norm": lambda _, E, groups, weights=None: _weighted(
        cp.hstack([cp.norm(E[g, :], "fro") for g in groups]), weights
    ),
    "column_group_norm": lambda _, E, columns=None: sum(cp.norm(part, "fro") for part in _groups(E, columns)),
    "half_squared_group_norm": lambda _, E, columns=None: (
        0.5 * cp.square(sum(cp.norm(part, "fro") for part in _groups(E, columns)))
    ),
    "half_squared_k_support_norm": _k_support,
    "trace_norm": lambda _, E: cp.normNuc(E),
    "squared_trace_norm": lambda _, E: cp.square(cp.normNuc(E)),
    "feature_covariance_norm": lambda _, E, trace: cp.square(cp.normNuc(E)) / trace,
    "task_covariance_norm": lambda _, E, trace: cp.square(cp.normNuc(E)) / trace,
    "graph_laplacian": lambda _, E, L: 0.5 * cp.sum_squares(E @ _factor(L)),
    "kronecker_ridge": lambda _, E, rows, columns: (
        0.5 * cp.sum_squares(_factor(rows).T @ E @ _factor(columns))
    ),
    "mean_regularizer": lambda _, E: (
        0.5 * cp.sum_squares(E - E @ np.full((E.shape[1], E.shape[1]), 1.0 / E.shape[1]))
    ),
    "total_variation": lambda _, E: (
        cp.sum(cp.abs(E[:, 1:] - E[:, :-1])) if E.shape[1] > 1 else cp.Constant(0.0)
    ),
}
