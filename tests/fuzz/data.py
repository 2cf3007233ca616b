"""Random data: what makes columns, labels and samples hard."""

import numpy as np

from tests.fuzz.recipes import Data

#: pandas' time stamps in nanoseconds, Unix time in us and ms: where they lie, and how far they spread (some hundred days)
STAMPS = {"ns": (1.7e18, 3e16), "us": (1.7e15, 3e13), "ms": (1.7e12, 3e10), "days ns": (1.7e18, 86_400e9)}

SCALES = ("plain", "mild", "decades", "pair", "tiny", *STAMPS, "zero", "duplicate", "collinear")


def draw_data(
    rng: np.random.Generator, d: int, m: int, labels: str, intercept: bool
) -> tuple[Data, list[str]]:
    """Tasks over d features, and words that say how they were made."""
    scale = str(rng.choice(SCALES, p=_shares({"plain": 2.0})))
    rows = str(rng.choice(["many", "few", "one"], p=[0.72, 0.2, 0.08]))
    shared = bool(rng.random() < 0.55)
    tags = [scale, "shared" if shared else "separate"] + ([] if rows == "many" else [f"{rows} rows"])
    least = 1 if labels != "sign" else 2
    high = {"many": 24, "few": max(d, least + 1), "one": least}[rows]
    low = {"many": 8, "few": least, "one": least}[rows]
    counts = [int(rng.integers(low, high + 1)) for _ in range(1 if shared else m)]
    recipe = _columns(rng, d, scale)
    designs = [recipe(n) for n in counts]
    kind = str(
        rng.choice(
            ["signal", "noise", "offset", "large", "small", "constant"], p=[0.55, 0.1, 0.12, 0.09, 0.09, 0.05]
        )
    )
    kind = kind if labels == "real" else "signal"
    if kind == "offset" and not intercept:
        kind = "signal"
    if kind != "signal":
        tags.append(f"{kind} labels")
    W = rng.normal(size=(d, m)) * (rng.random((d, m)) < 0.8)
    inputs = designs * m if shared else designs
    targets = [_labels(rng, _standard(X) @ w, labels, kind) for X, w in zip(inputs, W.T, strict=True)]
    if shared and len(targets[0]) > 4 and rng.random() < 0.3:
        tags.append("missing")
        targets = [_with_missing(rng, y, labels) for y in targets]
    weights = None
    if rng.random() < 0.25:
        spread = float(rng.choice([0.3, 3.0]))
        tags.append("weights" if spread < 1 else "wild weights")
        weights = [10.0 ** rng.uniform(-spread, spread, size=len(y)) for y in targets]
    if shared:
        return Data(
            designs[0],
            np.column_stack(targets),
            None if weights is None else np.column_stack(weights),
            labels,
        ), tags
    return Data(designs, targets, weights, labels), tags


def _shares(favoured: dict[str, float]) -> np.ndarray:
    shares = np.array([favoured.get(name, 1.0) for name in SCALES])
    return shares / shares.sum()


def _columns(rng, d: int, scale: str):
    """rows -> inputs (n, d)"""
    sizes = np.ones(d)
    if scale == "mild":
        sizes = 10.0 ** rng.uniform(-3, 3, d)
    elif scale == "decades":
        sizes = 10.0 ** rng.uniform(-12, 12, d)
    elif scale == "pair":
        sizes = rng.choice([1.0, float(rng.choice([1e12, 1e9, 1e6]))], d)
    elif scale == "tiny":
        sizes = rng.choice([1e-9, 1e4], d)
    stamp = int(rng.integers(d))
    other, third = rng.permutation(d)[:2] if d > 1 else (0, 0)

    def inputs(n: int) -> np.ndarray:
        X = rng.normal(size=(n, d)) * sizes
        if scale in STAMPS:
            start, spread = STAMPS[scale]
            X[:, stamp] = np.round(start + spread * rng.random(n))
        elif scale == "zero":
            X[:, stamp] = 0.0
        elif scale == "duplicate" and d > 1:
            X[:, other] = X[:, third]
        elif scale == "collinear" and d > 2:
            X[:, stamp] = X[:, (stamp + 1) % d] + X[:, (stamp + 2) % d]
        return X

    return inputs


def _standard(X: np.ndarray) -> np.ndarray:
    """Columns of size 1, so that every one matters for the labels."""
    centred = X - X.mean(axis=0) if len(X) > 1 else X
    size = np.abs(centred).max(axis=0)
    return np.divide(centred, size, out=np.zeros_like(X), where=size > 0)


def _labels(rng, signal: np.ndarray, labels: str, kind: str) -> np.ndarray:
    n = len(signal)
    noisy = signal + 0.3 * rng.normal(size=n)
    if labels == "sign":
        y = np.where(noisy >= np.median(noisy), 1.0, -1.0)
        y[np.argmin(noisy)] = -1.0
        y[np.argmax(noisy)] = 1.0
        return y
    if labels == "count":
        return rng.poisson(np.exp(np.clip(noisy, -2, 3))).astype(float)
    return {
        "signal": noisy, "noise": rng.normal(size=n), "offset": 10.0 ** rng.uniform(4, 12) + noisy,
        "large": 10.0 ** rng.uniform(3, 9) * noisy, "small": 10.0 ** rng.uniform(-9, -3) * noisy,
        "constant": np.full(n, float(rng.choice([0.0, 1.0, -3.5]))),
    }[kind]  # fmt: skip


def _with_missing(rng, y: np.ndarray, labels: str) -> np.ndarray:
    gone = rng.random(len(y)) < 0.25
    gone[:2] = False
    if labels == "sign":  # both classes stay
        gone[[np.argmin(y), np.argmax(y)]] = False
    return np.where(gone, np.nan, y)
