"""Problems whose optima were established elsewhere: files beside the checkout."""

import json
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from tests.models import with_weights

FIXTURES = Path(__file__).parents[2] / "shared" / "fixtures"


def fixture(name: str) -> dict:
    """What stands in a file; the test that asks is skipped where there is none."""
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return json.loads(path.read_text())


#: the files of structured hinges, the metrics in them by the papers' names, and the norms
STRUCTURED = ("auc_l1_n10", "auc_l1_n60", "auc_trace_n10", "f1_l21_n10", "hamming_l1_n10", "rocarea_l21_n40")
METRICS = {
    "auc_product": lambda beta: mtl.metrics.AUC(), "hamming2": lambda beta: mtl.metrics.ErrorRate(),
    "rocarea_pairwise": lambda beta: mtl.metrics.ROCArea(),
    "f_beta": lambda beta: mtl.metrics.FScore(beta=np.sqrt(beta)),  # the paper's beta is the square of the usual one
}  # fmt: skip
NORMS = {"l1": mtl.l1_norm, "l21": mtl.l21_norm, "trace": mtl.trace_norm}


def structured(name: str):
    """(content of a file of a structured hinge, its problem)"""
    given = fixture(f"smtl_{name}")
    tasks, W = with_weights(mtl.Tasks.shared(np.array(given["X"]), np.array(given["Y"], float).T))
    metric = METRICS[given["metric"]](given["metric_param"])
    hinges = given["lam"] * mtl.structured_hinge(W, tasks, metric=metric)
    return given, mtl.minimize(NORMS[given["regularizer"]](W) + hinges)
