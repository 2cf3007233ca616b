"""What an estimator costs beside the solve: overhead of fit, pickles, one row predicted, a loop like a server's; and what choosing a
parameter costs beside GridSearchCV.

    python benchmarks/estimators.py [--write] [--search] [--data NAME]
        --write  : results/estimators.md
        --search : the sections of choosing a parameter alone, in their place
        --data   : one section of them: digits, wine, "breast cancer" or emotions, in its place

All times are CPU seconds of this process, the least of several rounds, one BLAS thread: nothing here waits for anything. scikit-learn's
LogisticRegression (one label) and MultiOutputClassifier (all labels) answer the same rows beside.
"""

from __future__ import annotations

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pickle
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import StandardScaler

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.estimators import MultiTaskClassifier, MultiTaskClassifierCV, MultiTaskRegressor
from mtldsl.problems import path
from mtldsl.problems.problem import Problem
from mtldsl.solvers import monitor, starts

RESULTS = Path(__file__).parent / "results" / "estimators.md"
SEARCH = "## A parameter chosen on folds, beside GridSearchCV"
SAID = (
    "30 values from `lambda_max` to a thousandth of it, the same 5 folds, tol=1e-4 "
    "and refit for both: 151 fits. `MultiTaskClassifierCV` follows a path on every fold, `GridSearchCV` fits `MultiTaskClassifier` anew for every "
    "value. On the digits both chose the same value. Every fit of both carries its certificate. Mean scores differ most next to `lambda_max`, where weights are "
    "nearly zero and tol leaves open which of the scores is the largest. Asked: 5 times as fast. The floor is what no search can share between its "
    "fits: the steps of the solvers, begun where the path leads, and the certificate of each of 151 points (a product with the data, one "
    "with its transpose and some passes over the labels; of squares with a few rows in place of the data, which have the same squares). The column 'at most' is GridSearchCV's time over this floor alone: as fast as it would be if "
    "all else - tasks, forms, solutions, scores, the choice - took no time."
)
#: seconds of a search below which it is timed more than once
_QUICK = 5.0
#: models whose parameter is chosen on the digits
SEARCHED = (
    "squared_loss(W, tasks) + lam * l21_norm(W)",
    "squared_loss(W, tasks) + lam * l1_norm(W)",
    "squared_loss(W, tasks) + lam * trace_norm(W)",
    "logistic_loss(W, tasks) + lam * l21_norm(W)",
    "logistic_loss(W, tasks) + lam * ridge(W)",
    "hinge_loss(W, tasks) + lam * ridge(W)",
)


def least(call, rounds: int = 15, clear: bool = False) -> float:
    """The least CPU seconds of a call, after one to warm up.

    clear : clear away outside the clock what calls leave behind: tens of megabytes, whose freeing else falls on whoever comes next; not of small
            data, since it empties the processor's caches
    """
    call()
    found = []
    for _ in range(rounds):
        if clear:
            gc.collect()
        began = time.process_time()
        kept = call()
        found.append(time.process_time() - began)
        del kept
    return min(found)


def timed(call) -> tuple:
    """(its CPU seconds, what it answers)."""
    began = time.process_time()
    answer = call()
    return time.process_time() - began, answer


def data(n, d, m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X @ (rng.normal(size=(d, 2)) @ rng.normal(size=(2, m))) + rng.normal(size=(n, m))
    return X, Z


def overhead(n, d, m, classification) -> dict:
    """A fit by an estimator against the same statement typed on `Tasks` that are made anew, as a fit has to; the solve itself, which is the same
    in both, is left out of both: `Problem.solve` answers at once with what it answered before."""
    X, Z = data(n, d, m)
    Y = (Z > 0).astype(int) if classification else Z
    lam = 0.05 * n
    estimator = (MultiTaskClassifier if classification else MultiTaskRegressor)(lam=lam, tol=1e-4)

    def by_hand():
        tasks = mtl.Tasks.shared(X, 2.0 * Y - 1.0 if classification else Y)
        W = mtl.Weights(tasks, intercept=True)
        loss = mtl.logistic_loss(W, tasks) if classification else mtl.squared_loss(W, tasks)
        return mtl.minimize(loss + lam * mtl.l21_norm(W)).solve(tol=1e-4)

    whole = least(lambda: estimator.fit(X, Y), 5)
    solution, solve = estimator.solution_, Problem.solve
    Problem.solve = lambda *_, **__: solution
    try:
        large = n >= 100_000
        fit, typed = least(lambda: estimator.fit(X, Y), clear=large), least(by_hand, clear=large)
    finally:
        Problem.solve = solve
    return {
        "what": f"{'labels' if classification else 'numbers'}, {n:,} x {d} x {m}",
        "whole": whole,
        "fit": fit,
        "typed": typed,
        "over": fit - typed,
        "copy": least(lambda: (np.array(X), np.array(Z))),
    }


def served(d, m, rows=10_000) -> list[dict]:
    """One row at a time: all labels of it, by each."""
    X, Z = data(2_000, d, m)
    Y = (Z > 0).astype(int)
    ours = MultiTaskClassifier(lam=20.0, tol=1e-4).fit(X, Y)
    one = MultiTaskClassifier(lam=20.0, tol=1e-4).fit(X, Y[:, 0])
    theirs = MultiOutputClassifier(LogisticRegression(C=0.05)).fit(X, Y)
    theirs_one = LogisticRegression(C=0.05).fit(X, Y[:, 0])
    stream = np.random.default_rng(1).normal(size=(rows, d))
    found = []
    for name, model, most in (
        (f"MultiTaskClassifier, {m} labels", ours, rows),
        ("MultiTaskClassifier, 1 label", one, rows),
        ("LogisticRegression, 1 label", theirs_one, rows),
        (f"MultiOutputClassifier, {m} labels", theirs, rows // 10),
    ):
        spent = {}
        for method in ("predict", "predict_proba"):
            answer = getattr(model, method)
            answer(stream[:1])
            began = time.process_time()
            for i in range(most):
                answer(stream[i : i + 1])
            spent[method] = (time.process_time() - began) * rows / most
        found.append({"what": name, **spent, "all": least(lambda model=model: model.predict(stream), 5)})
    return found


def pickles() -> list[dict]:
    found = []
    for d, m in ((50, 14), (1_000, 100)):
        X, Z = data(500, d, m)
        for name, model in (
            ("MultiTaskClassifier", MultiTaskClassifier(lam=20.0, tol=1e-4).fit(X, (Z > 0).astype(int))),
            (
                "MultiOutputClassifier",
                MultiOutputClassifier(LogisticRegression(C=0.05)).fit(X, (Z > 0).astype(int)),
            ),
        ):
            text = pickle.dumps(model)
            found.append({
                "what": f"{name}, {d} x {m}", "bytes": len(text), "weights": 8 * (d + 1) * m,
                "load": least(lambda text=text: pickle.loads(text), 30),
            })  # fmt: skip
    return found


def scaled(load) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def emotions() -> tuple[np.ndarray, np.ndarray]:
    tasks = datasets.load_emotions()
    return StandardScaler().fit_transform(np.asarray(tasks.X)), (
        tasks.targets.reshape(tasks.n_tasks, -1).T > 0
    ).astype(int)


#: what is chosen on, and a word on it
DATA = {
    "digits": (lambda: load_digits(return_X_y=True), "scikit-learn's digits (1,797 rows, 64 features, 10 classes)"),
    "wine": (lambda: scaled(load_wine), "scikit-learn's wine (178 rows, 13 features scaled, 3 classes)"),
    "breast cancer": (
        lambda: scaled(load_breast_cancer), "scikit-learn's breast cancer (569 rows, 30 features scaled, 2 classes)",
    ),
    "emotions": (emotions, "Emotions (593 rows, 72 features scaled, 6 labels; the score is that all six are right)"),
}  # fmt: skip


def searched(model: str, name: str = "digits") -> dict:
    """The same values, folds, tolerance (that of `MultiTaskClassifierCV`; the plain estimator's own is finer) and refit for both; on the digits the value chosen has to be the same, and its score but for two rows of a fold."""
    X, y = DATA[name][0]()
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    values = MultiTaskClassifierCV(model, n_values=30, eps=1e-3, cv=folds).fit(X, y).values_
    search = GridSearchCV(MultiTaskClassifier(model, tol=1e-4), {"lam": values}, cv=folds)
    theirs, grid = timed(lambda: search.fit(X, y))
    rounds = 3 if theirs < _QUICK else 1  # of both, since others use the processor too
    theirs = min([theirs, *(timed(lambda: search.fit(X, y))[0] for _ in range(rounds - 1))])
    ours = least(lambda: MultiTaskClassifierCV(model, values=values, cv=folds, tol=1e-4).fit(X, y), rounds)
    own = MultiTaskClassifierCV(model, values=values, cv=folds, tol=1e-4).fit(X, y)
    if name == "digits":
        assert own.best_value_ == grid.best_params_["lam"], model
        assert abs(own.best_score_ - grid.best_score_) <= 2 / len(y), model
    spent = parts_of(lambda: MultiTaskClassifierCV(model, values=values, cv=folds, tol=1e-4).fit(X, y))
    apart = own.cv_results_["mean_test_score"] - grid.cv_results_["mean_test_score"]
    return {"model": model, "grid": theirs, "own": ours, "best": own.best_value_,
            "theirs": grid.best_params_["lam"],
            "scores": (own.best_score_, grid.best_score_), "apart": float(np.abs(apart).max()), **spent}  # fmt: skip


def parts_of(call) -> dict:
    """CPU seconds of a call inside of solvers, certificates aside, and inside of certificates: what no search can share between its fits."""
    spent, certify, whole = {"solvers": 0.0, "certificates": 0.0}, monitor.certify, starts.run_routes
    run_of_value = path._watched  # along a fold's path; the last fit is a drive

    def counted(name, function):
        def run(*given, **named):
            began = time.process_time()
            try:
                return function(*given, **named)
            finally:
                spent[name] += time.process_time() - began

        return run

    monitor.certify, starts.run_routes = counted("certificates", certify), counted("solvers", whole)
    path._watched = counted("solvers", run_of_value)
    try:
        call()
    finally:
        monitor.certify, starts.run_routes, path._watched = certify, whole, run_of_value
    spent["solvers"] -= spent["certificates"]
    return spent


def search_lines(name: str = "digits") -> list[str]:
    lines = [SEARCH, "", SAID, ""] if name == "digits" else [f"### On {name}", ""]
    seconds = (
        f"Load of the machine at the start (one core, shared with other work): {os.getloadavg()[0]:.1f}."
    )
    lines += [
        f"{DATA[name][1]}. {seconds}",
        "",
        "| model | GridSearchCV, s | MultiTaskClassifierCV, s | times as fast | lam chosen, CV / grid | its score, CV / grid | most that mean scores differ at any value | 5 times? | its solvers, s | its certificates, s | at most |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for model in SEARCHED:
        row = searched(model, name)
        times = row["grid"] / row["own"]
        lines.append(
            f"| `{model}` | {row['grid']:.2f} | {row['own']:.2f} | {times:.1f} | {row['best']:.4g} / {row['theirs']:.4g} "
            f"| {row['scores'][0]:.4f} / {row['scores'][1]:.4f} | {row['apart']:.4f} | {'yes' if times >= 5 else 'no'} "
            f"| {row['solvers']:.2f} | {row['certificates']:.2f} | {row['grid'] / (row['solvers'] + row['certificates']):.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


def in_place(text: str, name: str, lines: list[str]) -> str:
    """The page with this section of choosing a parameter in the place of the old one, or at its end."""
    head, _, rest = text.partition(SEARCH)
    first, *others = (SEARCH + rest).split("\n### On ") if rest else ("",)
    sections = {"digits": first, **{other.split("\n")[0]: "### On " + other for other in others}}
    sections[name] = "\n".join(lines)
    return (
        head.rstrip()
        + "\n\n"
        + "\n\n".join(section.strip() for section in sections.values() if section)
        + "\n"
    )


def report() -> str:
    lines = [
        "# What an estimator costs beside the solve",
        "",
        "`python benchmarks/estimators.py --write`. CPU times, the least of several rounds, one BLAS thread; two cores that others used too.",
        "",
        "## A fit beside `solve()`",
        "",
        "Both make their `Tasks` from the same arrays. The solve itself is the same in both and left out of both. Asked: at most 1 ms and one copy of the data.",
        "",
        "| data | the whole fit, ms | its part beside the solve, ms | the statement typed by hand, ms | over, ms | a copy of the data, ms | 1 ms + a copy? |",
        "|---|---|---|---|---|---|---|",
    ]
    for classification in (False, True):
        for shape in ((100, 10, 3), (2_000, 50, 10), (20_000, 100, 10), (100_000, 100, 4)):
            row = overhead(*shape, classification)
            held = "yes" if row["over"] <= 1e-3 + row["copy"] else "no"
            numbers = " | ".join(
                f"{1e3 * row[name]:.2f}" for name in ("whole", "fit", "typed", "over", "copy")
            )
            lines.append(f"| {row['what']} | {numbers} | {held} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "## A loop of 10,000 rows, one at a time",
        "",
        "50 features, float64 rows of numpy. MultiOutputClassifier: 1,000 rows, times ten. Asked: .1 ms a row.",
        "",
        "| model | predict, µs a row | predict_proba, µs a row | all rows in one call, ms |",
        "|---|---|---|---|",
    ]
    for row in served(50, 14):
        lines.append(
            f"| {row['what']} | {100 * row['predict']:.1f} | {100 * row['predict_proba']:.1f} | {1e3 * row['all']:.2f} |"
        )
        print(lines[-1], flush=True)
    lines += [
        "",
        "## Files",
        "",
        "Asked: read in 5 ms.",
        "",
        "| model | bytes | of which weights | read, ms |",
        "|---|---|---|---|",
    ]
    for row in pickles():
        lines.append(f"| {row['what']} | {row['bytes']:,} | {row['weights']:,} | {1e3 * row['load']:.3f} |")
        print(lines[-1], flush=True)
    for name in DATA:
        lines += ["", *search_lines(name)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    wanted = [sys.argv[sys.argv.index("--data") + 1]] if "--data" in sys.argv else list(DATA)
    if "--search" in sys.argv or "--data" in sys.argv:
        for name in wanted:
            text = in_place(RESULTS.read_text(encoding="utf-8"), name, search_lines(name))
            if "--write" in sys.argv:
                RESULTS.write_text(text, encoding="utf-8")
    else:
        text = report()
        if "--write" in sys.argv:
            RESULTS.write_text(text, encoding="utf-8")
