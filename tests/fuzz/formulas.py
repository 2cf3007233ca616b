"""What every word means, from its printed definition, in extended precision: the values that all claims are held to.

Blocks are {name: (d, m)} and {name + ".intercept": (m,)}, numpy's longdouble (64 bits of mantissa on x86).
"""

from itertools import product

import numpy as np

from tests.fuzz.label_graphs import GRAPH_LOSSES, graph_value
from tests.fuzz.recipes import Constraint, Expression, Loss, Model, Part

LONG = np.longdouble


def evaluate(expression: Expression, blocks: dict) -> np.ndarray:
    total = LONG(0)
    for part in expression.parts:
        value = np.asarray(blocks[part.block], LONG)
        value = value if part.left is None else np.asarray(part.left, LONG) @ value
        value = value if part.right is None else value @ np.asarray(part.right, LONG)
        total = total + LONG(part.coefficient) * value
    return total if expression.offset is None else total + np.asarray(expression.offset, LONG)


def objective(model: Model, blocks: dict) -> LONG:
    total = LONG(0)
    for loss in model.losses:
        total += LONG(loss.coefficient) * loss_value(model, loss, blocks)
    for p in model.penalties:
        total += LONG(p.coefficient) * PENALTIES[p.word](evaluate(p.argument, blocks), **p.options)
    return total


def predictions(model: Model, loss: Loss, blocks: dict) -> list[np.ndarray]:
    W = evaluate(loss.argument, blocks)
    shift = [
        sum(
            (
                np.asarray(blocks[part.block + ".intercept"], LONG).ravel()[i]
                for part in loss.argument.parts
                if model.blocks[part.block]
            ),
            LONG(0),
        )
        for i in range(W.shape[1])
    ]
    data = model.data[loss.data].tasks()
    return [np.asarray(X, LONG) @ W[:, i] + shift[i] for i, (X, _, _) in enumerate(data)]


def rounding_of_objective(model: Model, blocks: dict) -> float:
    """How far the objective may be off in double precision: every prediction is so by some units in the last place of its terms."""
    rng, total = np.random.default_rng(0), LONG(0)
    for loss in model.losses:
        if loss.word in GRAPH_LOSSES:
            total += LONG(1e-13) * LONG(loss.coefficient) * graph_value(model, loss, blocks)
            continue
        z = predictions(model, loss, blocks)
        sizes = sizes_of_predictions(model, loss, blocks)
        plain = loss_value(model, loss, blocks, z)
        changes = []
        for _ in range(8):
            moved = [a + 2e-15 * h * rng.choice([-1.0, 1.0], len(h)) for a, h in zip(z, sizes, strict=True)]
            changes.append(abs(loss_value(model, loss, blocks, moved) - plain))
        total += LONG(loss.coefficient) * 4 * max(changes)
    for p in model.penalties:
        image, size = evaluate(p.argument, blocks), _absolute(p.argument, blocks)
        if p.word in (
            "graph_laplacian",
            "kronecker_ridge",
        ):  # of a W that L takes to zero, all of W L is rounding
            absolute = {name: np.abs(matrix) for name, matrix in p.options.items()}
            total += LONG(p.coefficient) * LONG(64 * 2.0**-52) * PENALTIES[p.word](size, **absolute)
        plain = PENALTIES[p.word](image, **p.options)
        changes = []
        for _ in range(8):
            moved = image + 2e-15 * size * rng.choice([-1.0, 1.0], size.shape)
            changes.append(abs(PENALTIES[p.word](moved, **p.options) - plain))
        total += LONG(p.coefficient) * 4 * max(changes)
    return float(total) if np.isfinite(total) else np.inf


def _absolute(expression: Expression, blocks: dict) -> np.ndarray:
    """The expression with absolute values in place of all numbers in it."""
    absolute = {name: np.abs(np.asarray(block, LONG)) for name, block in blocks.items()}
    parts = [
        Part(
            p.block,
            abs(p.coefficient),
            *(None if side is None else np.abs(side) for side in (p.left, p.right)),
        )
        for p in expression.parts
    ]
    offset = None if expression.offset is None else np.abs(expression.offset)
    return evaluate(Expression("", tuple(parts), offset), absolute)


def sizes_of_predictions(model: Model, loss: Loss, blocks: dict) -> list[np.ndarray]:
    """|X| |W| + |b| + |y|: what the rounding of predictions and residuals is proportional to."""
    absolute = {name: np.abs(np.asarray(block, LONG)) for name, block in blocks.items()}
    W = _absolute(loss.argument, blocks)
    intercepts = [
        absolute[f"{p.block}.intercept"].ravel() for p in loss.argument.parts if model.blocks[p.block]
    ]
    data = enumerate(model.data[loss.data].tasks())
    return [
        np.abs(np.asarray(X, LONG)) @ W[:, i] + sum(b[i] for b in intercepts) + np.abs(y)
        for i, (X, y, _) in data
    ]


def loss_value(model: Model, loss: Loss, blocks: dict, z=None) -> LONG:
    if loss.word in GRAPH_LOSSES:
        return graph_value(model, loss, blocks)
    total = LONG(0)
    z = predictions(model, loss, blocks) if z is None else z
    for i, (_, y, s) in enumerate(model.data[loss.data].tasks()):
        weights = np.ones(len(y), LONG) if s is None else np.asarray(s, LONG)
        value = LOSSES[loss.word](z[i], np.asarray(y, LONG), weights, **loss.options)
        total += value / weights.sum() if loss.mean else value
    return total


def violation(model: Model, blocks: dict) -> float:
    return float(max((_violation(c, evaluate(c.argument, blocks)) for c in model.constraints), default=0.0))


def _violation(c: Constraint, W: np.ndarray) -> LONG:
    if c.kind == "at_least":
        return np.max(np.maximum(np.asarray(c.bound, LONG) - W, 0))
    if c.kind == "at_most":
        return np.max(np.maximum(W - np.asarray(c.bound, LONG), 0))
    if c.kind == "equal_to":
        return np.max(np.abs(W - np.asarray(c.bound, LONG)))
    if c.kind == "columns_on_simplex":
        return max(np.max(np.maximum(-W, 0)), np.max(np.abs(W.sum(axis=0) - LONG(c.bound))))
    return max(PENALTIES[c.kind](W) - LONG(c.bound), LONG(0))


def _softplus(x):
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _poisson(z, y, s):
    with np.errstate(over="ignore"):
        return np.sum(s * (np.exp(z) - y * z))


def _huber(z, y, s, delta=1.0):
    r, delta = np.abs(z - y), LONG(delta)
    return np.sum(s * np.where(r <= delta, r * r / 2, delta * r - delta * delta / 2))


def _quantile(z, y, s, q=0.5):
    q = LONG(q)
    return np.sum(s * np.maximum(q * (y - z), (q - 1) * (y - z)))


def planes(metric: str, y: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """(Delta(y, y'), y' - y) of every labelling y'; where one sample is to be labelled +1, of those and of the true one."""
    found, positives, negatives = [], int(np.sum(y > 0)), int(np.sum(y < 0))
    for labelling in product([-1.0, 1.0], repeat=len(y)):
        other = np.array(labelling)
        b, c = int(np.sum((y < 0) & (other > 0))), int(np.sum((y > 0) & (other < 0)))
        a = positives - c
        if metric in ("PrecisionAt", "RecallAt") and a + b != 1 and b + c > 0:
            continue
        delta = {
            "FScore": 1.0 - 2.0 * a / (a + b + positives),
            "AUC": b * c / (positives * negatives),
            "ErrorRate": 2.0 * (b + c),
            "PrecisionAt": float(b) if b + c else 0.0,
            "RecallAt": c / positives,
        }[metric]
        found.append((delta, other - np.asarray(y, float)))
    return found


def _structured_hinge(z, y, s, metric="FScore"):
    if metric == "ROCArea":
        pairs = np.maximum(0, 1 - 2 * (z[y > 0][:, None] - z[y < 0][None, :]))
        return pairs.sum() / LONG(pairs.size)
    return max(LONG(delta) + np.dot(np.asarray(a, LONG), z) for delta, a in planes(metric, y))


LOSSES = {
    "squared_loss": lambda z, y, s: np.sum(s * (z - y) ** 2) / 2,
    "sum_of_squares": lambda z, y, s: np.sum(s * (z - y) ** 2),
    "square_root_loss": lambda z, y, s, eps=0.0: np.sqrt(np.sum(s * (z - y) ** 2) + LONG(eps) ** 2),
    "absolute_loss": lambda z, y, s: np.sum(s * np.abs(z - y)),
    "quantile_loss": _quantile,
    "huber_loss": _huber,
    "hinge_loss": lambda z, y, s: np.sum(s * np.maximum(0, 1 - y * z)),
    "squared_hinge_loss": lambda z, y, s: np.sum(s * np.maximum(0, 1 - y * z) ** 2),
    "logistic_loss": lambda z, y, s: np.sum(s * _softplus(-y * z)),
    "poisson_loss": _poisson,
    "structured_hinge": _structured_hinge,
}


def _weights(weights):
    return LONG(1) if weights is None else np.asarray(weights, LONG)


def _norms(W, axis):
    return np.sqrt(np.sum(W * W, axis=axis))


def _singular_values(W) -> np.ndarray:
    """In double precision, at the matrix's own size: an error of some 1e-16 of the largest."""
    size = np.abs(W).max(initial=0)
    return (
        size * np.linalg.svd(np.asarray(W / size, float), compute_uv=False) if size > 0 else np.zeros(1, LONG)
    )


def _spectrum(function):
    """The penalty of all d singular values of W (d, m), those beyond m being zero."""

    def value(W, **options):
        s = np.zeros(len(W), LONG)
        found = _singular_values(W)[: len(W)]
        s[: len(found)] = found
        return np.sum(function(s, **{name: LONG(option) for name, option in options.items()}))

    return value


def _column_groups(W, columns):
    groups = [[j] for j in range(W.shape[1])] if columns is None else columns
    return np.array([np.sqrt(np.sum(W[:, g] ** 2)) for g in groups])


def _k_support(W, r, columns=None):
    """min over eta in [0, 1]^q, sum eta <= r, of 1/2 sum a^2 / eta: the largest a get 1, the others share."""
    a = np.sort(_column_groups(W, columns))[::-1]
    if len(a) <= r:
        return np.sum(a * a) / 2
    best = LONG(np.inf)
    for p in range(
        r
    ):  # p groups have eta = 1, the others eta in proportion to a: sum of a to divide over r - p
        tail = np.sum(a[p:])
        if tail == 0 or a[p] * (r - p) <= tail * (1 + LONG(1e-15)):
            best = min(best, (np.sum(a[:p] ** 2) + tail**2 / (r - p)) / 2)
    return best


PENALTIES = {
    "ridge": lambda W, weights=None: np.sum(_weights(weights) * W * W) / 2,
    "frobenius_norm": lambda W: np.sqrt(np.sum(W * W)),
    "l1_norm": lambda W, weights=None: np.sum(_weights(weights) * np.abs(W)),
    "l21_norm": lambda W, weights=None: np.sum(_weights(weights) * _norms(W, 1)),
    "l12_norm": lambda W, weights=None: np.sum(_weights(weights) * _norms(W, 0)),
    "l1_inf_norm": lambda W, weights=None: np.sum(_weights(weights) * np.abs(W).max(axis=1)),
    "group_norm": lambda W, groups, weights=None: np.sum(
        _weights(weights) * np.array([np.sqrt(np.sum(W[g] ** 2)) for g in groups])
    ),
    "column_group_norm": lambda W, columns=None: np.sum(_column_groups(W, columns)),
    "half_squared_group_norm": lambda W, columns=None: np.sum(_column_groups(W, columns)) ** 2 / 2,
    "half_squared_k_support_norm": _k_support,
    "trace_norm": lambda W: np.sum(_singular_values(W)),
    "squared_trace_norm": lambda W: np.sum(_singular_values(W)) ** 2,
    "feature_covariance_norm": lambda W, trace: np.sum(_singular_values(W)) ** 2 / LONG(trace),
    "task_covariance_norm": lambda W, trace: np.sum(_singular_values(W)) ** 2 / LONG(trace),
    "log_rank": _spectrum(lambda s, eps: np.log1p(np.sqrt(s * s + eps))),
    "capped_trace_norm": _spectrum(lambda s, tau, eps: np.minimum(np.sqrt(s * s + eps), tau)),
    "schatten_norm": _spectrum(lambda s, p, eps: (s * s + eps) ** (p / 2)),
    "graph_laplacian": lambda W, L: np.sum((W @ np.asarray(L, LONG)) * W) / 2,
    "kronecker_ridge": lambda W, rows, columns: (
        np.sum((np.asarray(rows, LONG) @ W @ np.asarray(columns, LONG)) * W) / 2
    ),
    "mean_regularizer": lambda W: np.sum((W - W.mean(axis=1, keepdims=True)) ** 2) / 2,
    "total_variation": lambda W: np.sum(np.abs(W[:, 1:] - W[:, :-1])),
}
