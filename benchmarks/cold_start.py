"""The first solve of a fresh process with an empty compilation cache, for every named model and every family of terms.

python benchmarks/cold_start.py          # writes benchmarks/results/cold_start.md; some minutes
python benchmarks/cold_start.py hinge    # only those with "hinge" in their names, printed

The data are small, so that what is measured is getting ready: the compiler imported, kernels compiled. Seconds are of the
processor, on one thread, without what starting Python and importing the package takes, which stands above the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from machine import RESULTS, stamp

HEAD = """
import json, time, warnings
started = time.process_time()
import numpy as np, mtldsl as mtl
from mtldsl.utils import compilation as compiling
imported = time.process_time()
rng = np.random.default_rng(0)
n, d, m = 60, 8, 4
Z = rng.normal(size=(n, d)) @ np.outer(rng.normal(size=d), rng.normal(size=m)) + rng.normal(size=(n, m))
X = rng.normal(size=(n, d))
Z = X @ np.outer(rng.normal(size=d), rng.normal(size=m)) + 0.5 * rng.normal(size=(n, m))
S = np.where(Z > np.median(Z, axis=0), 1.0, -1.0)
labels = {"real": Z, "sign": S, "count": rng.poisson(np.exp(0.3 * Z)).astype(float), "positive": np.exp(0.3 * Z)}
def shared(kind, X=X):
    return mtl.Tasks.shared(X, labels[kind])
def separate(kind):
    return mtl.Tasks.separate([X + 0.01 * i for i in range(m)], list(labels[kind].T))
"""
TAIL = """
began = time.process_time()
told = []
with compiling.announced(told.append):
    solution = problem.solve()
done = time.process_time()
again = time.process_time()
second = problem.solve()
print(json.dumps({"imported": imported, "importing": imported - started, "first": done - began, "second": time.process_time() - again,
    "compiled": len(told), "compiling": solution.compile_seconds, "solver": solution.solver, "status": solution.status,
    "kernels": told}))
"""

_LOSSES = {
    "squared_loss": "real",
    "square_root_loss": "real",
    "huber_loss": "real",
    "absolute_loss": "real",
    "quantile_loss": "real",
    "logistic_loss": "sign",
    "hinge_loss": "sign",
    "squared_hinge_loss": "sign",
    "exponential_loss": "sign",
    "poisson_loss": "count",
    "gamma_loss": "positive",
}
_NORMS = {"ridge": "ridge(W)", "l1": "l1_norm(W)", "l21": "l21_norm(W)", "trace": "trace_norm(W)"}
_OTHERS = {
    "l1_inf_norm": "l1_inf_norm(W)",
    "l12_norm": "l12_norm(W)",
    "group_norm": "group_norm(W, [[0, 1, 2], [3, 4]])",
    "sorted_l1_norm": "sorted_l1_norm(W)",
    "max_norm": "max_norm(W)",
    "total_variation": "total_variation(W)",
    "graph_laplacian": "graph_laplacian(W, W.shape[1] * np.eye(W.shape[1]) - 1.0)",
    "schatten_norm": "schatten_norm(W, 0.5)",
    "mkl_norm": "mkl_norm(W, [mtl.similarities.union(), mtl.similarities.individual()], p=2)",
}
_METRICS = (
    "FScore()",
    "AUC()",
    "ErrorRate()",
    "BalancedError()",
    "Jaccard()",
    "GMean()",
    "ROCArea()",
    "PartialAUC(0.3)",
    "AveragePrecision()",
    "NDCG()",
    "PrecisionAt(10)",
    "RecallAt(10)",
)


def families() -> dict[str, str]:
    """Name -> code that makes `problem`."""
    cases = {}

    def add(
        name: str, kind: str, loss: str, other: str, tasks: str = "shared", intercept: bool = False
    ) -> None:
        cases[name] = (
            f"tasks = {tasks}({kind!r}); W = mtl.Weights(tasks, intercept={intercept}); problem = mtl.minimize("
            f"mtl.{loss} + 0.7 * mtl.{other})"
        )

    for loss, kind in _LOSSES.items():
        for short, norm in _NORMS.items():
            word = loss.removesuffix("_loss")
            arguments = "W, tasks, 0.3" if loss == "quantile_loss" else "W, tasks"
            add(f"{word} + {short}", kind, f"{loss}({arguments})", norm)
            if loss in ("squared_loss", "logistic_loss", "hinge_loss"):
                add(f"{word} + {short}, intercept", kind, f"{loss}({arguments})", norm, "shared", True)
                add(f"{word} + {short}, separate inputs", kind, f"{loss}({arguments})", norm, "separate")
    for short, norm in _OTHERS.items():
        add(f"squared + {short}", "real", "squared_loss(W, tasks)", norm)
        add(f"hinge + {short}", "sign", "hinge_loss(W, tasks)", norm)
    for metric in _METRICS:
        for short, norm in _NORMS.items():
            if metric in _METRICS[:2] or short in ("ridge", "l1"):
                add(
                    f"structured hinge, {metric} + {short}",
                    "sign",
                    f"structured_hinge(W, tasks, metric=mtl.{metric})",
                    norm,
                )
    for short, norm in (("l21", "l21_norm(W)"), ("l1", "l1_norm(W)")):
        code = f"tasks = shared('sign', sparse.csr_array(X)); W = mtl.Weights(tasks); problem = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.{norm})"
        cases[f"logistic + {short}, CSR"] = "from scipy import sparse; " + code
        cases[f"squared + {short}, CSR"] = "from scipy import sparse; " + code.replace(
            "logistic", "squared"
        ).replace("'sign'", "'real'")
    cases["hinge + ridge, CSR"] = (
        "from scipy import sparse; tasks = shared('sign', sparse.csr_array(X)); W = mtl.Weights(tasks); problem = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.ridge(W))"
    )
    return cases


def named() -> dict[str, str]:
    """The models of papers, with parameters at which no weights are zero."""
    from mtldsl.problems.named_models import MODELS

    cases = {}
    for each in MODELS:
        kind = "sign" if "hinge" in each.statement or each.edges is not None else "real"
        values = {name: 0.9 - 0.2 * i for i, name in enumerate(each.parameters)} | {"r": 1}
        if each.edges is not None and "mu" in values:
            values["mu"] = 0.02
        values = {name: values[name] for name in each.parameters} | dict(each.defaults)
        cases[each.name] = f"problem = mtl.model({each.name!r}, shared({kind!r}), **{values!r})"
    return cases


def measured(code: str) -> dict:
    with tempfile.TemporaryDirectory() as cache:
        one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        done = subprocess.run(
            [sys.executable, "-c", HEAD + code + TAIL],
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": cache} | one_thread,
        )
    if done.returncode:
        raise RuntimeError(f"{code}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    asked = sys.argv[1:]
    groups = {"Models of papers": named(), "Families": families()}
    lines, starts, imports, slowest = [], [], [], 0.0
    for group, cases in groups.items():
        lines += [
            "",
            f"## {group}",
            "",
            "| model | first solve, s | of it getting ready, s | functions compiled | second solve, s | solver |",
        ]
        lines += ["|---|---|---|---|---|---|"]
        for name, code in cases.items():
            if asked and not any(one in name for one in asked):
                continue
            row = measured(code)
            starts.append(row["imported"])
            imports.append(row["importing"])
            slowest = max(slowest, row["first"])
            lines.append(
                f"| {name} | {row['first']:.2f} | {row['compiling']:.2f} | {row['compiled']} | {row['second']:.3f} | {row['solver']} |"
            )
            print(lines[-1], "" if row["status"] in ("optimal", "stationary") else row["status"], flush=True)
            if asked:
                print("   ", " ".join(row["kernels"]))
    if asked:
        return
    head = [
        "# The first solve of a fresh process", "", stamp("numba"), "",
        f"Starting Python and importing mtldsl and numpy took {min(starts):.2f} s before that, of which the imports {min(imports):.2f} s. The slowest first solve: {slowest:.2f} s.",
    ]  # fmt: skip
    (RESULTS / "cold_start.md").write_text("\n".join([*head, *lines, ""]))


if __name__ == "__main__":
    main()
