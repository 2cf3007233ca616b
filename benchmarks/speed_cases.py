"""What is not a comparison of solvers on one problem: fixed costs, paths, sparse wide data, memory, threads, the same bits twice.

    python benchmarks/speed_cases.py            # writes benchmarks/results/speed_cases.md
    python benchmarks/speed_cases.py --only memory threads

Comparisons with other packages, problem by problem, are in `corpus/`. CPU seconds on one BLAS thread, the least of several runs, unless a line says
otherwise; each section runs in a process of its own, after one small solve (imports, compilation).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SECTIONS = ("fixed", "path", "wide", "memory", "threads", "bits", "floor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--section", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.section:
        name, *arguments = chosen.section.split(":")
        print(json.dumps(globals()[name](*arguments)))
        return
    from machine import RESULTS, stamp

    page = RESULTS / "speed_cases.md"
    kept = _sections(page) if page.exists() else {}
    for name in chosen.only:
        print(f"{name} ...", file=sys.stderr)
        kept[name] = _table(globals()[f"{name}_rows"]())
    text = ["# Fixed costs, memory, threads", "", stamp("scikit-learn", "numba"), ""]
    for name in SECTIONS:
        if name in kept:
            text += [f"## {name}", "", TITLES[name], "", kept[name].strip(), ""]
    page.write_text("\n".join(text))
    print(page)


TITLES = {
    "fixed": "Milliseconds of a whole `solve()` of 50 x 5 x 3, statement and data at hand, certificate included (tol 1e-6).",
    "path": "Milliseconds a value of a path of 100 values from lambda_max to its thousandth, certificates included (tol 1e-4), and scikit-learn's path "
    "with the same values and tolerance, which has no certificate to show.",
    "wide": "5,000 x 1,800 binary features (4 % nonzero, CSR), 160 rare labels.",
    "memory": "Peak of the resident memory during a solve, beside what is resident before it, as a multiple of the data's own size.",
    "threads": "20,000 x 600 x 60, squares + l21 norm and logistic + ridge: seconds of a clock with one BLAS thread, and with what the package decides; busy: as many "
    "processes that spin as there are cores run beside it.",
    "bits": "Two processes, the same input: whether weights and iterations agree bit for bit.",
    "floor": "Structured hinge + ridge on Emotions (features in [0, 1]): CPU seconds to 1e-4, and as a multiple of the floor (one X W, one X^T U and one sort of the "
    "scores found a round, times the rounds). Until this table the sort was one of zeros, half as dear a floor, so that older multiples are "
    "about twice as large.",
}


def _sections(page: Path) -> dict[str, str]:
    """What an earlier run wrote, section by section."""
    found = {}
    for part in page.read_text().split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        found[name] = body.strip().removeprefix(TITLES.get(name, "")).strip()
    return found


def _table(rows: list[dict]) -> str:
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join(lines + ["| " + " | ".join(_text(row[c]) for c in columns) + " |" for row in rows])


def _text(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _apart(section: str, threads: int | None = 1, timeout: float = 300.0):
    """What a section returns in a process of its own; None where it takes longer."""
    env = dict(os.environ)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        env.pop(name, None)
        if threads is not None:
            env[name] = str(threads)
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--section", section],
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _least(action, repeats: int, clock=time.process_time) -> float:
    seconds = []
    for _ in range(repeats):
        started = clock()
        action()
        seconds.append(clock() - started)
    return min(seconds)


# fixed costs ------------------------------------------------------------------------------------------------------------------------

MODELS = {
    "squares + ridge": ("squared_loss(W, tasks) + 5 * ridge(W)", 1.0),
    "squares + l1": ("squared_loss(W, tasks) + 5 * l1_norm(W)", 1.0),
    "squares + l21": ("squared_loss(W, tasks) + 5 * l21_norm(W)", 1.0),
    "logistic + ridge": ("logistic_loss(W, tasks) + ridge(W)", 4.0),
    "logistic + l1": ("logistic_loss(W, tasks) + 2 * l1_norm(W)", 4.0),
    "logistic + l21": ("logistic_loss(W, tasks) + 2 * l21_norm(W)", 4.0),
    "hinge + ridge": ("hinge_loss(W, tasks) + ridge(W)", None),
    "hinge + l1": ("hinge_loss(W, tasks) + 2 * l1_norm(W)", None),
    "F-score + l1": ("structured_hinge(W, tasks, metric=FScore()) + .2 * l1_norm(W)", 8.0),
    "F-score + ridge": ("structured_hinge(W, tasks, metric=FScore()) + .2 * ridge(W)", 8.0),
}


def fixed_rows() -> list[dict]:
    found = _apart("fixed")
    return [
        {"model": name, "ms a solve": found[name], "asked": "" if asked is None else f"<= {asked:g}"}
        for name, (_, asked) in MODELS.items()
    ]


def fixed() -> dict[str, float]:
    import numpy as np

    import mtldsl as mtl

    rng = np.random.default_rng(0)
    X, signal = rng.normal(size=(50, 5)), rng.normal(size=(5, 3))
    scores = X @ signal + rng.normal(size=(50, 3))
    found = {}
    for name, (text, _) in MODELS.items():
        Y = scores if name.startswith("squares") else np.where(scores > np.quantile(scores, 0.7), 1.0, -1.0)
        tasks = mtl.Tasks.shared(X, Y)
        problem = mtl.minimize(
            eval(text, vars(mtl) | vars(mtl.metrics) | {"W": mtl.Weights(tasks), "tasks": tasks})
        )
        if problem.solve().status != "optimal":
            raise SystemExit(f"{name} is not solved")
        found[name] = 1e3 * _least(lambda p=problem: [p.solve() for _ in range(20)], 5) / 20
    return found


# paths ------------------------------------------------------------------------------------------------------------------------------


def path_rows() -> list[dict]:
    return _apart("path")


def path() -> list[dict]:
    import numpy as np
    from sklearn.datasets import load_diabetes, load_linnerud
    from sklearn.linear_model import enet_path, lasso_path

    import mtldsl as mtl

    X, y = load_diabetes(return_X_y=True)
    Z, T = (np.asarray(part, float) for part in load_linnerud(return_X_y=True))
    rng = np.random.default_rng(0)
    rows = []
    for name, A, B, norm in (
        ("lasso, diabetes 442 x 10", X, y[:, None], "l1_norm"),
        ("multi-task lasso, diabetes with 5 noisy copies of its target", X, y[:, None] + 20 * rng.normal(size=(442, 5)), "l21_norm"),
        ("multi-task lasso, linnerud 20 x 3 x 3", Z, T, "l21_norm"),
    ):  # fmt: skip
        A, B = A - A.mean(axis=0), B - B.mean(axis=0)
        tasks = mtl.Tasks.shared(A, B)
        W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * getattr(mtl, norm)(W))
        values = float(problem.lambda_max(lam)) * np.logspace(0, -3, 100)
        alphas = values / (len(A) * float(_loss_scale()))
        ours = _least(lambda p=problem, lam=lam, v=values: list(p.path(lam, v, tol=1e-4)), 5)
        theirs = lasso_path if B.shape[1] == 1 else enet_path
        target = B[:, 0] if B.shape[1] == 1 else B
        extra = {} if B.shape[1] == 1 else {"l1_ratio": 1.0}
        other = _least(lambda f=theirs, A=A, t=target, a=alphas, e=extra: f(A, t, alphas=a, tol=1e-4, **e), 5)
        rows.append(
            {
                "data": name,
                "ours, ms a value": 10 * ours,
                "scikit-learn, ms a value": 10 * other,
                "asked": "<= .3",
            }
        )
    return rows


def _loss_scale() -> float:
    """squared_loss at a residual of 1, in the units of scikit-learn's 1/2: 2 where it is the plain square."""
    import numpy as np

    import mtldsl as mtl

    tasks = mtl.Tasks.shared(np.ones((1, 1)), np.ones((1, 1)))
    return 2.0 * mtl.minimize(mtl.squared_loss(mtl.Weights(tasks), tasks)).form().value(
        {"W": np.zeros((1, 1))}
    )


# sparse, wide, many labels ----------------------------------------------------------------------------------------------------------


def _wide():
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    n, d, m = 5000, 1800, 160
    words = 1.0 / np.arange(1, d + 1) ** 0.7
    words *= 0.04 * d / words.sum()
    X = sp.csr_array((rng.random((n, d)) < np.minimum(words, 0.6)).astype(float))
    signal = np.where(rng.random((d, m)) < 0.02, rng.exponential(2.0, size=(d, m)), 0.0)
    scores = X @ signal + rng.gumbel(size=(n, m))
    rates = 0.05 / np.arange(1, m + 1) ** 0.5
    return X, np.where(
        scores > [np.quantile(s, 1 - r) for s, r in zip(scores.T, rates, strict=True)], 1.0, -1.0
    )


def wide_rows() -> list[dict]:
    rows = []
    for what in (
        "lambda_max",
        "logistic:l21_norm:1e-3",
        "logistic:l1_norm:1e-3",
        "hinge:l1_norm:1e-1",
        "hinge:l1_norm:1e-3",
    ):
        found = _apart(f"wide:{what}", timeout=240)
        rows.append(found or {"what": what, "CPU s": "more than 240", "result": "not finished"})
    return rows


def wide(what: str, norm: str = "", tol: str = "") -> dict:
    import mtldsl as mtl

    X, Y = _wide()
    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    if what == "lambda_max":
        problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W))
        seconds = _least(lambda: problem.lambda_max(lam), 3)
        products = _least(lambda: [X.T @ (X @ Y[: X.shape[1]]) for _ in range(1)], 3)
        return {
            "what": "lambda_max of logistic + l21 with intercepts",
            "CPU s": seconds,
            "result": f"{seconds / products * 2:.1f} products with the data (asked: 5)",
        }
    loss = {"logistic": mtl.logistic_loss, "hinge": mtl.hinge_loss}[what]
    problem = mtl.minimize(loss(W, tasks) + lam * getattr(mtl, norm)(W))
    top = problem.lambda_max(lam)
    lam.value = 0.1 * float(top)
    started = time.process_time()
    solution = problem.solve(tol=float(tol), max_seconds=220)
    return {
        "what": f"{what} + {norm} with intercepts at .1 lambda_max, tol {tol}",
        "CPU s": time.process_time() - started,
        "result": f"{solution.status}, gap {solution.gap:.1e}, {solution.solver}",
    }


# memory -----------------------------------------------------------------------------------------------------------------------------

FAMILIES = {
    "ridge": "squared_loss(W, tasks) + 100 * ridge(W)",
    "lasso": "squared_loss(W, tasks) + lam * l1_norm(W)",
    "multi-task lasso": "squared_loss(W, tasks) + lam * l21_norm(W)",
    "trace norm": "squared_loss(W, tasks) + lam * trace_norm(W)",
    "logistic + l21": "logistic_loss(W, tasks) + lam * l21_norm(W)",
    "logistic + ridge": "logistic_loss(W, tasks) + 100 * ridge(W)",
    "hinge + ridge": "hinge_loss(W, tasks) + 100 * ridge(W)",
    "hinge + l1": "hinge_loss(W, tasks) + lam * l1_norm(W)",
    "F-score + l1": "structured_hinge(W, tasks, metric=FScore()) + lam * l1_norm(W)",
}


def memory_rows() -> list[dict]:
    rows = []
    for family in FAMILIES:
        row = {"family": family}
        for kind in ("dense", "CSR"):
            found = _apart(f"memory:{family}:{kind}", timeout=150)
            row[kind] = "more than 150 s" if found is None else found
        rows.append(row | {"asked": "<= 1.3"})
    return rows


def memory(family: str, kind: str) -> float:
    import numpy as np
    import scipy.sparse as sp

    import mtldsl as mtl

    rng = np.random.default_rng(0)
    solve = _memory_problem(family)
    solve(rng.normal(size=(60, 8)), rng, mtl)  # imports and compiles
    if kind == "dense":
        X = rng.normal(size=(20_000, 500))
        size = X.nbytes
    else:
        solve(sp.random_array((60, 8), density=0.5, rng=rng, format="csr"), rng, mtl)
        X = sp.random_array((100_000, 2_000), density=0.05, rng=rng, format="csr")
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    solve(X, rng, mtl)
    return (_resident("VmHWM") - before) / size


def _memory_problem(family: str):
    def solve(X, rng, mtl):
        import numpy as np

        W0 = np.zeros((X.shape[1], 3))
        W0[:6] = rng.normal(size=(6, 3))
        scores = X @ W0 + 0.1 * rng.normal(size=(X.shape[0], 3))
        Y = scores if "squared" in FAMILIES[family] else np.where(scores > 0.2, 1.0, -1.0)
        tasks = mtl.Tasks.shared(X, Y)
        W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
        problem = mtl.minimize(
            eval(FAMILIES[family], vars(mtl) | vars(mtl.metrics) | {"W": W, "tasks": tasks, "lam": lam})
        )
        if "lam" in FAMILIES[family]:
            top = problem.lambda_max(lam)
            lam.value = 0.1 * float(top)
        problem.solve(tol=1e-3, max_seconds=100)

    return solve


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise SystemExit(f"/proc/self/status has no {field}")


# threads ----------------------------------------------------------------------------------------------------------------------------


def threads_rows() -> list[dict]:
    rows = []
    for model in ("squares", "logistic"):
        row: dict = {"model": model}
        for busy in (False, True):
            beside = [_spinning() for _ in range(os.cpu_count() or 1)] if busy else []
            try:
                one, own = (
                    min(_apart(f"threads:{model}", threads) for _ in range(2)) for threads in (1, None)
                )
            finally:
                for process in beside:
                    process.kill()
            name = "busy" if busy else "idle"
            row |= {
                f"{name}: one thread, s": one,
                f"{name}: as decided, s": own,
                f"{name}: times faster": one / own,
            }
        rows.append(row | {"asked": "idle >= 1.5, busy >= .9"})
    return rows


def _spinning() -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def threads(model: str) -> float:
    import numpy as np

    import mtldsl as mtl

    rng = np.random.default_rng(0)
    X, W0 = rng.normal(size=(20_000, 600)), rng.normal(size=(600, 60)) * (rng.random((600, 1)) < 0.2)
    scores = X @ W0 + rng.normal(size=(20_000, 60))
    Y = scores if model == "squares" else np.sign(scores)
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(
        mtl.squared_loss(W, tasks) + 3000 * mtl.l21_norm(W)
        if model == "squares"
        else mtl.logistic_loss(W, tasks) + 1000 * mtl.ridge(W)
    )
    return _least(lambda: problem.solve(tol=1e-4), 2, time.perf_counter)


# the same bits ----------------------------------------------------------------------------------------------------------------------


def bits_rows() -> list[dict]:
    rows = []
    for name in ("NC-CMTL, 600 tasks", "hinge + trace", "logistic + l21", "F-score + l21"):
        one, other = _apart(f"bits:{name}", None), _apart(f"bits:{name}", None)
        rows.append(
            {
                "model": name,
                "iterations": f"{one[1]}, {other[1]}",
                "the same bits": "yes" if one == other else "NO",
            }
        )
    return rows


def bits(name: str) -> list:
    import hashlib

    import numpy as np

    import mtldsl as mtl

    rng = np.random.default_rng(0)
    if name.startswith("NC"):
        Xs = [rng.normal(size=(30, 20)) for _ in range(600)]
        U, V = rng.normal(size=(20, 3)), rng.normal(size=(3, 600))
        ys = [X @ (U @ V[:, i]) + rng.normal(size=30) for i, X in enumerate(Xs)]
        tasks = mtl.Tasks.separate(Xs, ys) if hasattr(mtl.Tasks, "separate") else mtl.Tasks(Xs, ys)
        W = mtl.Weights(tasks)
        problem = mtl.minimize(mtl.square_root_loss(W, tasks) + 2 * mtl.log_rank(W))
    else:
        X = rng.normal(size=(400, 30))
        tasks = mtl.Tasks.shared(
            X, np.where(X @ rng.normal(size=(30, 6)) + rng.normal(size=(400, 6)) > 1, 1.0, -1.0)
        )
        W = mtl.Weights(tasks, intercept=True)
        loss, norm = name.split(" + ")
        term = {
            "hinge": lambda: mtl.hinge_loss(W, tasks),
            "logistic": lambda: mtl.logistic_loss(W, tasks),
            "F-score": lambda: 40 * mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore()),
        }[loss]()
        problem = mtl.minimize(term + 5 * getattr(mtl, f"{norm}_norm")(W))
    solution = problem.solve(tol=1e-6, max_seconds=100)
    return [hashlib.sha256(np.ascontiguousarray(solution.W).tobytes()).hexdigest(), solution.iterations]


# structured hinge + ridge ----------------------------------------------------------------------------------------------------------


def floor_rows() -> list[dict]:
    return _apart("floor")


def floor() -> list[dict]:
    import numpy as np
    from structured_hinge import _arrays

    import mtldsl as mtl
    from mtldsl import datasets

    X, Y = _arrays(datasets.load_emotions())
    tasks = mtl.Tasks.shared(X, Y)
    rows = []
    for metric in ("FScore", "AUC"):
        for norm in ("ridge", "l1_norm"):
            W, C = mtl.Weights(tasks), mtl.Parameter(1.0)
            term = mtl.structured_hinge(W, tasks, metric=getattr(mtl, metric)())
            problem = mtl.minimize(getattr(mtl, norm)(W) + C * term)
            for strength in (1.0, 10.0, 100.0):
                top = 1.0 if norm == "ridge" else float(problem.lambda_max(C))
                C.value = strength * top
                solution = problem.solve(tol=1e-4, max_seconds=60)
                seconds = _least(lambda p=problem: p.solve(tol=1e-4, max_seconds=60), 2)
                V = np.asarray(solution.W)
                U = X @ V  # scores as they are: a sort of equal numbers is none
                rounds = solution.iterations
                lowest = rounds * _least(lambda V=V, U=U: (X @ V, X.T @ U, np.sort(U, axis=0)), 20)
                rows.append({
                    "model": f"{metric} + {norm}", "C": f"{strength:g}" + (" lambda_max" if norm != "ridge" else ""),
                    "CPU s": seconds, "rounds": rounds, "times the floor": seconds / lowest,
                    "result": f"{solution.status}, {solution.solver}",
                })  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
