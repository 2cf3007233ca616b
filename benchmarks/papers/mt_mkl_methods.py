"""The methods of the paper's Figure 1(b) as models, solved over a grid of C; the C with the best AUC on held-out rows is chosen."""

from __future__ import annotations

import time

import numpy as np

import mtldsl as mtl
from benchmarks.papers.mt_mkl_data import Part, auc, off_diagonal, roc

__all__ = [
    "COLUMNS",
    "EXTRAS",
    "GRID",
    "HIERARCHIES",
    "KEY",
    "METHODS",
    "USES_HIERARCHY",
    "above",
    "run_method",
]

#: C by half powers of ten: 1e-6, 3.2e-6, ..., 10
GRID = tuple(float(f"{10.0**k:.3g}") for k in np.arange(-6.0, 1.25, 0.5))
#: Relative gap asked for (at the smallest C the penalty is a two-hundredth of the objective), and seconds after which a fit is taken as it is.
TOL, MOST_SECONDS = 1e-6, 30.0
#: theta below this share of the largest counts as zero.
NEGLIGIBLE = 1e-4

KEY = ("study", "seed", "hierarchy", "method")
COLUMNS = (
    *KEY, "C", "validation_auc", "auc", "status", "gap", "seconds", "iterations", "nodes", "alike", "alignment", "chosen", "theta", "tpr",
)  # fmt: skip


def _tree(part: Part, hierarchy: str):
    if hierarchy != "unit trace":
        return [mtl.similarities.tree(part.hierarchies[hierarchy])]
    below = [
        leaves_below(part.hierarchies["true"], node, part.train.task_names)
        for node in part.hierarchies["true"]
    ]
    return [mtl.similarities.from_kernel(np.outer(one, one) / one.sum()) for one in below]


def leaves_below(parents: dict, node: str, tasks) -> np.ndarray:
    """(T,) 1 for the tasks below a node, else 0."""
    return np.array([float(node in above(parents, task)) for task in tasks])


def above(parents: dict, node: str) -> list[str]:
    """The node, its parent, ..., the root."""
    found = [node]
    while (parent := parents[found[-1]]) is not None:
        found.append(parent)
    return found


def _union(part: Part, hierarchy: str):
    return [mtl.similarities.union()]


def _individual(part: Part, hierarchy: str):
    return [mtl.similarities.individual()]


def _true(part: Part, hierarchy: str):
    # mu_s . mu_t / d: what the mus are like is known, and nothing is learned about the tasks
    return [mtl.similarities.from_kernel(part.similarity / part.train.n_features)]


#: method -> (similarities, p); p = inf: all weights are 1
METHODS = {
    "MT-MKL p=1": (_tree, 1.0),
    "MT-MKL p=2": (_tree, 2.0),
    "MT-MKL p=3": (_tree, 3.0),
    "Vanilla": (_tree, np.inf),
    "Union": (_union, np.inf),
    "Individual": (_individual, np.inf),
}
#: Not in the paper: the similarity that made the data as the one kernel.
EXTRAS = {"True similarity": (_true, np.inf)}
#: "unit trace": the true tree, each node's indicator divided by the number of tasks below it, so that all kernels have the trace 1
HIERARCHIES = ("true", "inferred", "unit trace")
USES_HIERARCHY = tuple(name for name, (similarities, _) in METHODS.items() if similarities is _tree)


def problem_of(method: str, part: Part, hierarchy: str):
    """(problem, C)"""
    similarities, p = (METHODS | EXTRAS)[method]
    W, C = mtl.Weights(part.train, intercept=part.intercept), mtl.Parameter(1.0, name="C")
    penalty = mtl.mkl_norm(W, similarities(part, hierarchy), p=p)
    return mtl.minimize(C * mtl.hinge_loss(W, part.train) + penalty), C


def run_method(method: str, part: Part, hierarchy: str, grid=GRID) -> list[dict]:
    """A row for every C, from the smallest on; `chosen` is 1 at the C with the best AUC on the validation rows (of equals the
    smallest), which also has theta and the ROC curve on the test rows."""
    problem, C = problem_of(method, part, hierarchy)
    rows, best, kept = [], -np.inf, None
    for value in grid:
        C.value, began = value, time.process_time()
        # each from the solver's own start: p = 1 sets weights to 0, from which a path does not come away soon
        solution = problem.solve(tol=TOL, max_seconds=MOST_SECONDS)
        seconds = time.process_time() - began
        learned, W = solution.kernel_weights, solution.W
        validation = auc(W, part.validation)
        if validation > best:
            best, kept = validation, (len(rows), W, learned)
        rows.append(
            {
                "C": f"{value:g}",
                "validation_auc": f"{validation:.5f}",
                "auc": f"{auc(W, part.test):.5f}",
                "status": solution.status,
                "gap": f"{solution.gap:.1e}",
                "seconds": f"{seconds:.3f}",
                "iterations": solution.iterations,
                "nodes": int(np.sum(learned.values > NEGLIGIBLE * learned.values.max())),
                "alike": _alike(learned.similarity, part.similarity),
                "alignment": _alignment(learned.similarity, part.similarity),
                "chosen": 0,
                "theta": "",
                "tpr": "",
            }
        )
    at, W, learned = kept
    named = zip(learned.names, learned.values, strict=True)
    rows[at] |= {
        "chosen": 1,
        "theta": ";".join(f"{name}={value:.4g}" for name, value in named),
        "tpr": " ".join(f"{value:.4f}" for value in roc(W, part.test)),
    }
    return rows


def _alike(learned, true) -> str:
    """Correlation of the learned with the true similarity over pairs of tasks; empty where all pairs are alike."""
    if true is None or np.ptp(off_diagonal(learned)) == 0:
        return ""
    return f"{np.corrcoef(off_diagonal(learned), off_diagonal(true))[0, 1]:.4f}"


def _alignment(learned, true) -> str:
    """Their cosine as vectors, diagonals and levels included."""
    if true is None:
        return ""
    return f"{np.sum(learned * true) / np.linalg.norm(learned) / np.linalg.norm(true):.4f}"
