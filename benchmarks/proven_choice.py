"""Price of a choice of lam that is proven: fits and CPU seconds, beside a path of 100 values that proves nothing.

python benchmarks/proven_choice.py      writes benchmarks/results/proven_choice.md
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable

import numpy as np
from machine import RESULTS, stamp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import StandardScaler

import mtldsl as mtl

BETWEEN = (1e-3, 1e3)
VALUES = np.geomspace(1e3, 1e-3, 100)

#: fits of the prototype, which has the ball of one end at a time: half of the rows held out, by regret
BEFORE = {"breast cancer": {0.02: 21, 0.01: 40, 0.005: 47}, "digit 8": {0.02: 127, 0.01: 307, 0.005: 366}}


def halves(X: np.ndarray, Y: np.ndarray) -> tuple[mtl.Tasks, list]:
    """The prototype's split: one half held out, columns standardized on the other, and a column of ones that is penalized too."""
    index = np.random.default_rng(0).permutation(len(Y))
    train, held_out = index[: len(Y) // 2], index[len(Y) // 2 :]
    scaled = StandardScaler().fit(X[train]).transform(X)
    return mtl.Tasks.shared(np.c_[scaled, np.ones(len(Y))], Y), [(train, held_out)]


def whole(X: np.ndarray, Y: np.ndarray) -> mtl.Tasks:
    """All rows in units of their spread."""
    return mtl.Tasks.shared(StandardScaler().fit_transform(X), Y)


def cpu(work: Callable):
    """(what it returns, its CPU seconds)."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def row(name: str, tasks: mtl.Tasks, loss, metric: str, regret: float, folds, intercept: bool) -> str:
    """Measure one choice, and the path on the same folds."""
    W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0)
    problem = mtl.minimize(loss(W, tasks) + lam * mtl.ridge(W))
    options = {"folds": folds, "metric": metric, "refit": False}
    problem.cross_validate(lam, [1.0, 0.5], **options)  # compiles
    found, proven = cpu(lambda: problem.cross_validate(lam, between=BETWEEN, regret=regret, **options))
    _, path = cpu(lambda: problem.cross_validate(lam, VALUES, **options))
    proof = found.proof
    before = BEFORE.get(name, {}).get(regret, "") if isinstance(folds, list) else ""
    k = found.n_folds
    return (
        f"| {name} | {metric} | {k} | {regret:g} | {proof.value:.2g} | {proof.fits // k} | {before} | {len(proof.intervals)} "
        f"| {proven:.2f} | {path:.2f} | {proven / path:.1f} |"
    )


def main() -> None:
    cancer, digits, diabetes = load_breast_cancer(), load_digits(), load_diabetes()
    malignant = (2.0 * cancer.target - 1.0)[:, None]
    eight = np.where(digits.target == 8, 1.0, -1.0)[:, None]
    lines = [
        "# Price of a choice that is proven",
        "",
        stamp(),
        "Ridge, lam from 0.001 to 1,000; one BLAS thread. `before` are the fits with balls of single fits, the rows of the first part as there: half held out, no intercept.",
        "The path has 100 values on the same folds, to its own tolerance of 1e-6, and proves nothing of others.",
        "",
        "| data | metric | folds | regret asked | proven | values fitted | before | intervals | CPU seconds | of the path | ratio |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    cases: list[tuple] = []
    for name, X, Y in (("breast cancer", cancer.data, malignant), ("digit 8", digits.data, eight)):
        tasks, folds = halves(X, Y)
        cases += [
            (name, tasks, mtl.logistic_loss, "accuracy", r, folds, False) for r in (0.02, 0.01, 0.005, 0.0025)
        ]
    five = [
        (
            "breast cancer",
            whole(cancer.data, malignant),
            mtl.logistic_loss,
            ["accuracy", "f1", "roc_auc", "log_loss"],
        ),
        ("diabetes", whole(diabetes.data, diabetes.target[:, None]), mtl.squared_loss, ["r2"]),
    ]
    for name, tasks, loss, metrics in five:
        cases += [(name, tasks, loss, metric, 0.01, 5, True) for metric in metrics]
    for case in cases:
        lines.append(row(*case))
        (RESULTS / "proven_choice.md").write_text("\n".join(lines) + "\n")
        print(lines[-1], flush=True)


if __name__ == "__main__":
    main()
