"""Beside `partial_fit`: ours, scikit-learn's SGDClassifier and SGDRegressor, and Dask-ML, on the same rows in the same chunks.

    python benchmarks/partial_fit.py             # writes results/partial_fit.md; some ten minutes
    python benchmarks/partial_fit.py --quick

The objective is the same for all: sum_i loss(y_i, <w, x_i>) + alpha n / 2 ||w||^2, no intercept (scikit-learn's alpha = 1e-4; Dask-ML's C = 1 / (alpha n)). A run ends
where its objective is within 1e-3, then 1e-4, of the optimum, relative, which was found beforehand to 1e-9. Chunks are in memory. CPU seconds are those of
this process with all its threads, without the evaluations of the objective after each epoch that tell when an `SGD` is there; ours and Dask-ML's stop by themselves, at the
largest tolerance of a list with which they are there. SGD is given the best of a grid of learning rates and schedules, found with knowledge of the optimum on the same data; ours has
nothing to choose. A pass is one look at all chunks; ours counts the one that checks the rows. At most 50 epochs.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from itertools import product

import numpy as np

ALPHA, FEATURES, CHUNKS, EPOCHS, TARGETS = 1e-4, 30, 20, 50, (1e-3, 1e-4)
LOSSES = {"logistic": "log_loss", "hinge": "hinge", "squares": "squared_error"}
DATA = ("independent columns", "correlated columns")
#: schedules and first steps of SGD; "optimal" has no step of its own
RATES = [
    ("optimal", 0.01), ("invscaling", 1e-2), ("invscaling", 1e-1), ("constant", 1e-4), ("constant", 1e-3), ("constant", 1e-2),
]  # fmt: skip
TOLERANCES = (1e-3, 1e-5, 1e-8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true", help="few rows, to the screen")
    chosen = parser.parse_args()
    from machine import RESULTS, stamp

    warnings.simplefilter("ignore")  # of runs that end by the number of their steps
    n = 1_000 if chosen.quick else chosen.rows
    rows: list[list] = []
    for data, loss in product(DATA, LOSSES):
        case = Case(data, loss, n)
        for name, run in ALTERNATIVES.items():
            for target in TARGETS:
                rows.append([data, loss, name, target, *run(case, target)])
                print(*rows[-1], file=sys.stderr, flush=True)
        text = [
            "# Beside `partial_fit`", "", stamp("scikit-learn", "dask", "dask-ml", "dask-glm"), "", __doc__.split("\n\n")[-1].strip(), "",
            f"{n:,} rows, {FEATURES} features, {CHUNKS} chunks, one task. {dask_ml_said()}", "", *tables(rows),
        ]  # fmt: skip
        if not chosen.quick:  # what is done stays, however long the rest takes
            (RESULTS / "partial_fit.md").write_text("\n".join(text) + "\n")
    print("\n".join(text) if chosen.quick else RESULTS / "partial_fit.md")


class Case:
    """The chunks, and the optimum."""

    def __init__(self, data: str, loss: str, n: int):
        rng = np.random.default_rng(11)
        X = rng.normal(size=(n, FEATURES))
        if data == "correlated columns":  # neighbours by 0.9, scales from 0.1 to 3
            for j in range(1, FEATURES):
                X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
            X *= np.geomspace(0.1, 3.0, FEATURES)
        z = X @ rng.normal(size=FEATURES) / X.std(axis=0).mean() / 3.0
        noise = rng.normal(size=n)
        y = z + noise if loss == "squares" else np.where(z + noise > 0, 1.0, -1.0)
        self.loss, self.rho, self.n = loss, ALPHA * n, n
        self.X, self.y = X, y
        self.sgd: dict[float, tuple] = {}  # found so far, by target
        self.chunks = [
            (np.ascontiguousarray(X[rows]), y[rows]) for rows in np.array_split(np.arange(n), CHUNKS)
        ]
        self.best = solved(in_memory(self), loss, self.rho, 1e-9).objective

    def short_of(self, w) -> float:
        """Relative distance from the optimum."""
        z = self.X @ np.ravel(w)
        margin = self.y * z
        value = {
            "logistic": lambda: np.logaddexp(0.0, -margin).sum(),
            "hinge": lambda: np.maximum(1.0 - margin, 0.0).sum(),
            "squares": lambda: 0.5 * ((self.y - z) ** 2).sum(),
        }[self.loss]() + 0.5 * self.rho * float(np.ravel(w) @ np.ravel(w))
        return value / self.best - 1.0


# ours ---------------------------------------------------------------------------------------------------------------------------------


def in_memory(case: Case):
    import mtldsl as mtl

    return mtl.Tasks.shared(case.X, case.y)


def solved(tasks, loss: str, rho: float, tol: float):
    import mtldsl as mtl

    word = {"logistic": mtl.logistic_loss, "hinge": mtl.hinge_loss, "squares": mtl.squared_loss}[loss]
    W = mtl.Weights(tasks)
    return mtl.minimize(word(W, tasks) + rho * mtl.ridge(W)).solve(tol=tol)


def _chunk(case: Case, k: int):
    X, y = case.chunks[k]
    return X, y[:, None]


def ours(case: Case, target: float):
    """(CPU seconds, passes, how far from the optimum, what was set): the certificate alone says when to stop."""
    import mtldsl as mtl

    def run():
        tasks = mtl.datasets.from_parts([partial(_chunk, case, k) for k in range(CHUNKS)])
        return tasks, solved(tasks, case.loss, case.rho, target)

    run()  # compiles
    seconds, (tasks, solution) = timed(run)
    return seconds, tasks.parts.passes, case.short_of(solution.W), f"proven to {solution.gap:.0e}"


def timed(action):
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


# SGD, chunk by chunk ------------------------------------------------------------------------------------------------------------------


def sgd(case: Case, target: float):
    """The best setting of the grid for this target."""
    if target not in case.sgd:
        case.sgd[target] = _best_sgd(case, target)
    return case.sgd[target]


def _best_sgd(case: Case, target: float):
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    kind = SGDRegressor if case.loss == "squares" else SGDClassifier
    best = None
    for (rate, step), average in product(RATES, (False, True)):
        options = {"loss": LOSSES[case.loss], "alpha": ALPHA, "fit_intercept": False, "random_state": 0}
        model = kind(**options, learning_rate=rate, eta0=step, average=average)
        spent, epochs, gap = 0.0, 0, np.inf
        order = np.random.default_rng(0)
        while epochs < EPOCHS and gap > target and not (best and spent >= best[0]):
            known = {} if case.loss == "squares" else {"classes": np.array([-1.0, 1.0])}
            seconds, _ = timed(lambda: _epoch(model, case, order.permutation(CHUNKS), known))  # noqa: B023
            spent, epochs = spent + seconds, epochs + 1
            gap = case.short_of(model.coef_)
            if not np.isfinite(gap):
                break
        if gap <= target and (best is None or spent < best[0]):
            best = (spent, epochs, gap, f"{rate}, step {step:g}{', averaged' * average}")
    return best or (np.nan, EPOCHS, np.nan, f"no setting of {2 * len(RATES)} is there")


def _epoch(model, case: Case, order, known: dict) -> None:
    for k in order:
        model.partial_fit(*case.chunks[k], **known)


# Dask-ML ------------------------------------------------------------------------------------------------------------------------------


def dask_ml_said() -> str:
    try:
        import dask_ml
        import dask_ml.linear_model
        import dask_ml.wrappers
    except Exception as error:
        return f"Dask-ML cannot be imported here, so it is left out: {type(error).__name__}: {error}."
    return f"Dask-ML {dask_ml.__version__}."


def incremental(case: Case, target: float):
    """dask_ml.wrappers.Incremental: the same SGD, fed by Dask, at the setting that SGD chose."""
    if "left out" in dask_ml_said():
        return np.nan, 0, np.nan, "not installed"
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    chosen = sgd(case, target)
    if np.isnan(chosen[0]):
        return chosen
    rate, _, rest = chosen[3].partition(", step ")
    step, _, averaged = rest.partition(",")
    kind = SGDRegressor if case.loss == "squares" else SGDClassifier
    inner = kind(
        loss=LOSSES[case.loss], alpha=ALPHA, fit_intercept=False, random_state=0, learning_rate=rate, eta0=float(step), average=bool(averaged)
    )  # fmt: skip
    X, y = (da.from_array(one, chunks=(-(-case.n // CHUNKS), *one.shape[1:])) for one in (case.X, case.y))
    model = Incremental(inner, shuffle_blocks=True, random_state=0, assume_equal_chunks=True)
    known = {} if case.loss == "squares" else {"classes": [-1.0, 1.0]}
    spent, gap = 0.0, np.inf
    for epoch in range(1, EPOCHS + 1):
        try:
            seconds, _ = timed(lambda: model.partial_fit(X, y, **known))
        except Exception as error:
            return np.nan, epoch, np.nan, f"{type(error).__name__}: {str(error)[:80]}"
        spent += seconds
        gap = case.short_of(model.estimator_.coef_)
        if gap <= target:
            return spent, epoch, gap, chosen[3]
    return np.nan, EPOCHS, gap, chosen[3]


def dask_glm(case: Case, target: float):
    """dask_ml.linear_model: lbfgs and the like, over chunks."""
    if "left out" in dask_ml_said():
        return np.nan, 0, np.nan, "not installed"
    if case.loss == "hinge":
        return np.nan, 0, np.nan, "has no hinge"
    from dask_ml.linear_model import LinearRegression, LogisticRegression

    kind = LinearRegression if case.loss == "squares" else LogisticRegression
    # its sum of squares is without the half: twice ours
    strength = 2.0 * case.rho if case.loss == "squares" else case.rho
    best, failed = None, ""
    for solver, tol in product(("lbfgs", "proximal_grad"), TOLERANCES):
        looks = [0]
        X, y = counted(case, looks)
        model = kind(C=1.0 / strength, fit_intercept=False, solver=solver, max_iter=100, tol=tol)
        try:
            seconds, _ = timed(lambda: model.fit(X, y))  # noqa: B023
        except Exception as error:
            failed = f"{solver}: {type(error).__name__}: {str(error)[:80]}"
            continue
        gap = case.short_of(model.coef_)
        if gap <= target:
            best = (seconds, looks[0] / CHUNKS, gap, f"{solver}, tol {tol:g}")
            break
    return best or (np.nan, 0, np.nan, failed or "no solver is there in 100 iterations")


def counted(case: Case, looks: list):
    """Arrays of Dask that count how often a chunk of X is asked for."""
    import dask.array as da
    from dask.delayed import delayed

    def chunk(k):
        looks[0] += 1
        return case.chunks[k][0]

    blocks = [
        da.from_delayed(delayed(chunk, pure=False)(k), one.shape, dtype=float)
        for k, (one, _) in enumerate(case.chunks)
    ]
    y = case.y if case.loss == "squares" else (case.y > 0).astype(float)
    return da.concatenate(blocks), da.from_array(y, chunks=(tuple(len(one) for one, _ in case.chunks),))


ALTERNATIVES = {
    "mtldsl": ours,
    "scikit-learn partial_fit": sgd,
    "Dask-ML Incremental": incremental,
    "Dask-ML linear_model": dask_glm,
}


def tables(rows: list[list]) -> list[str]:
    out = []
    for data, loss in dict.fromkeys((row[0], row[1]) for row in rows):
        out += [
            f"## {loss}, {data}",
            "",
            "| | to | CPU seconds | passes | reached | |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for _, _, name, target, seconds, passes, gap, said in [r for r in rows if r[:2] == [data, loss]]:
            cells = (
                ["-"] * 3 if np.isnan(seconds) else [f"{seconds:.2f}", f"{passes:.0f}", f"{max(gap, 0):.0e}"]
            )
            out.append(f"| {name} | {target:g} | {' | '.join(cells)} | {said} |")
        out.append("")
    return out


if __name__ == "__main__":
    main()
