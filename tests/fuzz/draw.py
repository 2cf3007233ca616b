"""seed -> a random model, the same on every machine."""

from dataclasses import replace

import numpy as np

from tests.fuzz.data import draw_data
from tests.fuzz.label_graphs import draw_label_graph
from tests.fuzz.recipes import NOT_CONVEX, Constraint, Expression, Loss, Model, Part, Penalty

LOSSES = {
    "real": ["squared_loss", "squared_loss", "sum_of_squares", "square_root_loss", "absolute_loss", "quantile_loss", "huber_loss"],
    "sign": ["hinge_loss", "hinge_loss", "squared_hinge_loss", "logistic_loss", "logistic_loss", "structured_hinge"],
    "count": ["poisson_loss"],
}  # fmt: skip

PENALTIES = [
    "ridge", "frobenius_norm", "l1_norm", "l21_norm", "l12_norm", "l1_inf_norm", "group_norm", "column_group_norm",
    "half_squared_group_norm", "half_squared_k_support_norm", "trace_norm", "squared_trace_norm", "graph_laplacian",
    "mean_regularizer", "total_variation", "kronecker_ridge",
]  # fmt: skip

#: words with a matrix that is learned, eliminated in closed form
LEARNED = ["feature_covariance_norm", "task_covariance_norm"]

#: words that a constant bounds
BALLS = ["l1_norm", "l21_norm", "trace_norm", "frobenius_norm"]


def draw(seed: int) -> Model:
    rng = np.random.default_rng([15, seed])
    if seed % 20 == 12:
        return draw_label_graph(rng, seed)
    labels = str(rng.choice(["real", "sign", "count"], p=[0.55, 0.33, 0.12]))
    word = str(rng.choice(LOSSES[labels]))
    structured = word == "structured_hinge"
    d, m = int(rng.integers(1, 6)), int(rng.choice([1, 2, 3, 4], p=[0.25, 0.3, 0.3, 0.15]))
    two = bool(rng.random() < 0.2)
    intercept = bool(rng.random() < 0.4)
    data, tags = draw_data(rng, d, m, labels, intercept)
    options = _loss_options(rng, word)
    if structured:  # small enough for the list of all labellings; samples have no weights
        data = _first_rows(data, 6)
        intercept = intercept and options["metric"] in ("FScore", "AUC", "ErrorRate")
    if seed % 9 == 4:
        data, tags = replace(data, sparse=True), [*tags, "sparse"]
    blocks = {"L": intercept, "S": False} if two else {"W": intercept}
    whole = _sum_of(list(blocks))
    mean = bool(rng.random() < 0.2)
    losses = [Loss(word, options, _coefficient(rng, 0.15), mean, whole, 0)]
    penalties, regularized = _penalties(rng, blocks, (d, m))
    constraints, feasible, kind = _constraints(rng, blocks, (d, m))
    if seed % 10 == 7:  # a tenth of the models learn a matrix, or are of low rank without being convex
        penalties, constraints, feasible = [_special(rng, next(iter(blocks)))], [], True
        kind, regularized = [], []
    tags += [word, *({"two blocks"} if two else ()), *({"intercept"} if intercept else ()), *kind]
    tags += [p.word for p in penalties] or ["no term"]
    return Model(
        seed, blocks, (data,), tuple(losses), tuple(penalties), tuple(constraints), feasible,
        (*tags, *regularized),
    )  # fmt: skip


def _first_rows(data, n: int):
    def cut(y):  # at most n labelled rows, both classes among them
        kept = np.flatnonzero(~np.isnan(y))
        low, high = kept[np.argmin(y[kept])], kept[np.argmax(y[kept])]
        chosen = [low, high, *[i for i in kept if i not in (low, high)]][:n]
        return np.where(np.isin(np.arange(len(y)), chosen), y, np.nan)

    if data.is_shared:
        return replace(data, Y=np.column_stack([cut(y) for y in data.Y.T]), weights=None)
    return replace(data, Y=[cut(y) for y in data.Y], weights=None)


def _loss_options(rng, word: str) -> dict:
    if word == "quantile_loss":
        return {"q": float(rng.choice([0.1, 0.5, 0.93]))}
    if word == "huber_loss":
        return {"delta": float(10.0 ** rng.uniform(-2, 1))}
    if word == "square_root_loss" and rng.random() < 0.3:
        return {"eps": float(10.0 ** rng.uniform(-3, 0))}
    if word == "structured_hinge":
        return {
            "metric": str(rng.choice(["FScore", "AUC", "ErrorRate", "ROCArea", "PrecisionAt", "RecallAt"]))
        }
    return {}


def _coefficient(rng, wild: float) -> float:
    """1, some size, or a huge or tiny one."""
    kind = rng.random()
    if kind < wild:
        return float(10.0 ** rng.uniform(-9, 9))
    return float(10.0 ** rng.uniform(-2, 2)) if kind < 0.8 else 1.0


def _plain(name: str) -> Expression:
    return Expression(name, (Part(name),))


def _sum_of(names: list[str]) -> Expression:
    return Expression(" + ".join(names), tuple(Part(name) for name in names))


def _argument(rng, name: str, shape: tuple[int, int]) -> Expression:
    """The block, or now and then a part or an image of it."""
    d, m = shape
    kind = str(
        rng.choice(
            ["plain", "rows", "columns", "image", "minus", "times"], p=[0.76, 0.06, 0.05, 0.05, 0.04, 0.04]
        )
    )
    if kind == "rows" and d > 1:
        k = int(rng.integers(1, d))
        return Expression(f"{name}[:{k}, :]", (Part(name, left=np.eye(d)[:k]),))
    if kind == "columns" and m > 1:
        return Expression(f"{name}[:, [0]]", (Part(name, right=np.eye(m)[:, :1]),))
    if kind == "image":
        B = rng.normal(size=(m, max(m - 1, 1))).round(2)
        return Expression(f"{name} @ B", (Part(name, right=B),), constants={"B": B})
    if kind == "minus":
        W0 = rng.normal(size=(d, m)).round(2)
        return Expression(f"{name} - W0", (Part(name),), -W0, {"W0": W0})
    if kind == "times":
        return Expression(f"2.5 * {name}", (Part(name, 2.5),))
    return _plain(name)


def _penalties(rng, blocks: dict, shape) -> tuple[list[Penalty], list[str]]:
    found, tags = [], []
    for name in blocks:
        how = str(rng.choice(["none", "flat", "one", "two"], p=[0.14, 0.1, 0.5, 0.26]))
        if how == "none":
            tags.append(f"no term on {name}")
            continue
        if how == "flat":  # directions that nothing bounds
            tags.append(f"{name} not bounded by its terms")
            if rng.random() < 0.5:
                weights = np.where(rng.random((shape[0], shape[1])) < 0.5, 0.0, 1.0)
                found.append(Penalty("l1_norm", {"weights": weights}, _coefficient(rng, 0.2), _plain(name)))
            else:
                found.append(Penalty("mean_regularizer", {}, _coefficient(rng, 0.2), _plain(name)))
            continue
        for _ in range(1 if how == "one" else 2):
            word = str(rng.choice(PENALTIES))
            argument = _argument(rng, name, shape)
            size = shape
            if argument.parts[0].left is not None:
                size = (argument.parts[0].left.shape[0], size[1])
            if argument.parts[0].right is not None:
                size = (size[0], argument.parts[0].right.shape[1])
            coefficient = 0.0 if rng.random() < 0.04 else _coefficient(rng, 0.3)
            found.append(Penalty(word, _penalty_options(rng, word, size), coefficient, argument))
    return found, tags


def _penalty_options(rng, word: str, shape) -> dict:
    p, q = shape
    if word == "group_norm":
        cut = int(rng.integers(1, p)) if p > 1 else 1
        return {"groups": [g for g in (list(range(cut)), list(range(cut, p))) if g]}
    if word == "half_squared_k_support_norm":
        return {"r": int(rng.integers(1, q + 1))}
    if word == "graph_laplacian":
        edges = np.triu(rng.random((q, q)) * (rng.random((q, q)) < 0.7), 1).round(3)
        edges = edges + edges.T
        return {"L": np.diag(edges.sum(axis=0)) - edges}
    if word == "kronecker_ridge":
        A, B = rng.normal(size=(p, p)), rng.normal(size=(q, q))
        return {"rows": (A @ A.T + np.eye(p)).round(6), "columns": (B @ B.T + 0.1 * np.eye(q)).round(6)}
    if word in ("l21_norm", "l12_norm", "l1_inf_norm") and rng.random() < 0.15:
        n = q if word == "l12_norm" else p
        return {"weights": np.where(rng.random(n) < 0.3, 0.0, rng.uniform(0.5, 2.0, n).round(3))}
    return {}


def _special(rng, name: str) -> Penalty:
    word = str(rng.choice([*LEARNED, *NOT_CONVEX]))
    options = {
        "feature_covariance_norm": {"trace": float(10.0 ** rng.uniform(-2, 2))},
        "task_covariance_norm": {"trace": float(10.0 ** rng.uniform(-2, 2))},
        "log_rank": {"eps": float(rng.choice([0.0, 1e-2]))},
        "capped_trace_norm": {
            "tau": float(10.0 ** rng.uniform(-1, 1)),
            "eps": float(rng.choice([0.0, 1e-2])),
        },
        "schatten_norm": {"p": float(rng.choice([0.5, 0.9])), "eps": 1e-2},
    }[word]
    return Penalty(word, options, _coefficient(rng, 0.1), _plain(name))


def _constraints(rng, blocks: dict, shape) -> tuple[list[Constraint], bool, list[str]]:
    """Constraints on one block, whether they can be met, and a word for them."""
    if rng.random() > 0.3:
        return [], True, []
    name = str(rng.choice(list(blocks)))
    d, m = shape
    W = _plain(name)
    kind = str(rng.choice(["signs", "box", "ball", "signs and ball", "simplex", "sums", "rows equal", "infeasible"],
                          p=[0.2, 0.14, 0.24, 0.1, 0.12, 0.08, 0.06, 0.06]))  # fmt: skip
    size = float(10.0 ** rng.uniform(-1, 1)) if rng.random() < 0.6 else float(10.0 ** rng.uniform(-9, 11))
    ball = Constraint(str(rng.choice(BALLS)), W, size)
    if kind == "signs":
        return [Constraint("at_least", W, 0.0)], True, [kind]
    if kind == "box":
        return [Constraint("at_least", W, -size), Constraint("at_most", W, 0.7 * size)], True, [kind]
    if kind == "ball":
        if len(blocks) == 2 and rng.random() < 0.4:
            ball = Constraint(ball.kind, _sum_of(list(blocks)), size)
        return [ball], True, [kind]
    if kind == "signs and ball":
        return [Constraint("at_least", W, 0.0), ball], True, [kind]
    if kind == "simplex":
        return [Constraint("columns_on_simplex", W, size)], True, [kind]
    if kind == "sums":
        sums = Expression(f"{name}.sum(axis=0)", (Part(name, left=np.ones((1, d))),))
        return [Constraint("equal_to", sums, float(rng.choice([0.0, 1.0])))], True, [kind]
    if kind == "rows equal":
        row = Expression(f"{name}[[0], :]", (Part(name, left=np.eye(d)[:1]),))
        return [Constraint("equal_to", row, float(rng.choice([0.0, 1.0, -2.0])))], True, [kind]
    pairs = [
        [Constraint("at_least", W, 1.0), Constraint("at_most", W, 0.5)],
        [Constraint("at_least", W, size), Constraint("frobenius_norm", W, 0.5 * size)],
        [Constraint("columns_on_simplex", W, size), Constraint("l1_norm", W, 0.5 * size)],
        [Constraint("columns_on_simplex", W, size), Constraint("at_most", W, 0.5 * size / d)],
    ]
    return pairs[int(rng.integers(len(pairs)))], False, [kind]
