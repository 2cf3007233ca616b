"""Models of papers, by their names in the package, at a strength that means about the same on all data."""

from __future__ import annotations

import numpy as np

from .critical import dual_norm, slopes

__all__ = ["MODELS", "NOT_CONVEX", "parameters"]

#: name -> (a loss with the same kind of targets, strengths, with an intercept, most scalars of data)
MODELS: dict[str, tuple[str, tuple[float, ...], bool, float]] = {
    "Robust-MTL": ("sum_of_squares", (0.3, 0.05, 0.01), False, 1e7),
    "rMTFL": ("sum_of_squares", (0.3, 0.05, 0.01), False, 1e7),
    "Dirty model": ("squared", (0.3, 0.05, 0.01), False, 1e7),
    "CMTFL": ("square_root", (0.3, 0.1, 0.02), True, 1e7),
    "Square-root trace norm": ("square_root", (0.3, 0.1, 0.02), False, 1e7),
    "NC-CMTL": ("square_root", (0.3, 0.1, 0.02), False, 1e7),
    "NC-MTL": ("sum_of_squares", (0.1, 0.01), False, 1e7),
    "MTFL": ("sum_of_squares", (0.1, 1e-3, 1e-5), False, 1e7),
    "MTRL": ("sum_of_squares", (0.1, 1e-3, 1e-5), False, 1e7),
    "FETR": ("sum_of_squares", (1.0, 0.01), False, 3e6),
    "MT-MKL": ("hinge", (0.1, 1.0, 30.0), False, 1e7),
    "Regularized MTL": ("hinge", (0.1, 1.0, 30.0), False, 1e7),
    "StructSVM": ("structured_auc", (3.0, 30.0), False, 3e6),
    "CGM": ("hinge", (0.1, 0.01), False, 1e6),
    "HLLM-L1": ("logistic", (0.1, 0.01), False, 1e6),
}
NOT_CONVEX = ("NC-CMTL", "NC-MTL", "FETR")
OVER_LABELS = ("CGM", "HLLM-L1")  # one X, at most 7 labels, and a column of ones


def parameters(name: str, tasks, strength: float, intercept: bool) -> dict[str, float]:
    """Strengths are shares of the dual norm at zero for norms, of the data's size for quadratic terms."""
    size = sum(float(np.vdot(X, X)) for X in tasks.inputs)
    per_row, per_column = size / tasks.n_samples, size / tasks.n_features / tasks.n_tasks

    def share(*words: str):
        G = tasks.adjoint(slopes(MODELS[name][0], intercept, tasks))
        return [strength * dual_norm(word, G, None) for word in words]

    if name in _NORMS:
        return dict(zip(_NORMS[name][0], share(*_NORMS[name][1]), strict=True))
    return {
        "MTFL": lambda: {"gamma": strength * per_column},
        "MTRL": lambda: {"gamma": strength * per_column},
        "FETR": lambda: {"eta": strength, "rho": strength},
        "MT-MKL": lambda: {"C": strength / per_row},
        "Regularized MTL": lambda: {"lam0": per_row / strength, "lam1": per_row / strength},
        "StructSVM": lambda: {"lam": strength / per_row * tasks.n_samples / tasks.n_tasks},
        "CGM": lambda: {"lam": strength * per_row / 10},
        "HLLM-L1": lambda: {"lam": strength * per_row / 10, "mu": strength * per_row / 100},
    }[name]()


#: name -> (parameters, norms whose duals measure them)
_NORMS = {
    "Robust-MTL": (("rho1", "rho2"), ("trace", "l12")),
    "rMTFL": (("rho1", "rho2"), ("l21", "l12")),
    "Dirty model": (("rho1", "rho2"), ("l1_inf", "l1")),
    "CMTFL": (("rho",), ("l21",)),
    "Square-root trace norm": (("rho",), ("trace",)),
    "NC-CMTL": (("mu",), ("trace",)),
    "NC-MTL": (("mu",), ("trace",)),
}
