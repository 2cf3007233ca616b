"""Solvers of linear and conic programs: HiGHS on the linear program of a task, Clarabel and SCS on the reference's formulation."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .critical import QUANTILE
from .peer import Peer, PeerProblem

__all__ = ["conic", "peers"]

_MOST = 3e6  # scalars of data that a linear or conic program is made of


def peers(problem: PeerProblem) -> dict[str, Peer]:
    """Linear programs, task after task: a loss of two slopes beside an l1 norm."""
    slopes = {"hinge": (0.0, 1.0), "absolute": (1.0, 1.0), "quantile": (1 - QUANTILE, QUANTILE)}
    if problem.loss not in slopes or not problem.penalized_by("l1"):
        return {}
    if not problem.sparse and problem.tasks.n_samples * problem.d > _MOST:
        return {}
    above, below = slopes[problem.loss]
    lam = problem.lam["l1"]
    programs: list = []

    def prepare():
        programs.clear()
        for X, y in problem.each():
            programs.append(_program(X, y, lam, problem.b, problem.loss == "hinge", above, below))

    def of(method):
        def fit(rung, goal):
            from scipy.optimize import linprog

            W, b = np.zeros((problem.d, problem.m)), np.zeros(problem.m)
            for i, (c, A, target, bounds) in enumerate(programs):
                options = {"primal_feasibility_tolerance": rung, "dual_feasibility_tolerance": rung}
                found = linprog(c, A_eq=A, b_eq=target, bounds=bounds, method=method, options=options).x
                W[:, i] = found[: problem.d] - found[problem.d : 2 * problem.d]
                b[i] = found[2 * problem.d] if problem.b else 0.0
            return W, b

        return Peer("scipy", (1e-4, 1e-7, 1e-9), fit, prepare)

    return {"highs-simplex": of("highs-ds"), "highs-interior": of("highs-ipm")}


def _program(X, y, lam, intercept, margins, above, below):
    """min lam (p + q) + above s + below t  subject to  X (p - q) + b = y + s - t; margins: y x in place of x, 1 in place of y."""
    X = sp.csr_matrix(X)
    n, d = X.shape
    signs = y if margins else np.ones(n)
    X, target = sp.diags(signs) @ X, (np.ones(n) if margins else y)
    free = [sp.csr_matrix(signs[:, None])] if intercept else []
    A = sp.hstack([X, -X, *free, -sp.identity(n), sp.identity(n)], format="csc")
    c = np.concatenate([np.full(2 * d, lam), np.zeros(len(free)), np.full(n, above), np.full(n, below)])
    bounds = np.array([[0, np.inf]] * (2 * d) + [[-np.inf, np.inf]] * len(free) + [[0, np.inf]] * (2 * n))
    return c, A, target, bounds


def conic(instance) -> dict[str, Peer]:
    """Clarabel and SCS; what cvxpy does before them (and would do again for every fit) is not timed."""
    model, tasks = instance.stated.model, instance.stated.tasks
    if model.loss.startswith("structured") or "CGM" in model.paper or "HLLM" in model.paper:
        return {}  # stated by planes, one program after the other: the route "cvxpy" of our own shows it
    if tasks.n_samples * tasks.n_features > _MOST and not tasks.is_sparse:
        return {}
    held: dict = {}

    def of(backend, package, rungs, options):
        def prepare():
            held[backend] = instance.fresh().problem.to_cvxpy()
            held[backend].problem.get_problem_data(backend)

        def fit(rung, goal):
            model = held[backend]
            model.problem.solve(solver=backend, **options(rung))
            values = {name: variable.value for name, variable in model.variables.items()}
            return values, None

        return Peer(package, rungs, fit, prepare)

    def clarabel(rung):
        return {"tol_gap_rel": rung, "tol_gap_abs": rung, "tol_feas": min(rung, 1e-6)}

    def scs(rung):
        return {"eps_rel": rung, "eps_abs": rung, "max_iters": 1_000_000}

    return {
        "clarabel": of("CLARABEL", "clarabel", (1e-4, 1e-6, 1e-9), clarabel),
        "scs": of("SCS", "scs", (1e-3, 1e-4, 1e-5, 1e-6, 1e-8), scs),
    }
