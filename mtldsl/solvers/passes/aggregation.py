"""Safe aggregation: how far the steps of several parts, added up, may overshoot, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.structures import MKLNorm
from mtldsl.solvers.passes.local_ascent import which_of

__all__ = ["curvatures", "places_of_tasks", "safe_factors"]

#: The share of a task's rows that lie near a kink, as a guess.
_NEAR = 0.3

#: A kernel of so few nodes that are in several parts is bounded node by node.
_ONE_BY_ONE = 2


def places_of_tasks(tasks: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """(the tasks that have rows in each part, (m,) the squares of all inputs of every task); one pass, the first time that it is asked for."""
    known = tasks.__dict__.get("_places_of_tasks")
    if known is None:
        found, squares = tasks.parts.run(which_of, tasks.n_tasks)
        known = tasks.__dict__["_places_of_tasks"] = [found[k] for k in sorted(found)], squares
    return known


def curvatures(loss: Any) -> np.ndarray:
    """(m,) about what the second derivative of every task's loss is, in a direction of average length: `_NEAR` of the rows, each with
    that of a loss whose slope changes by its coefficient over the size of a label."""
    tasks = loss.tasks
    squares = np.maximum(places_of_tasks(tasks)[1], np.finfo(float).tiny)
    facts = tasks.label_facts
    spread = np.sqrt(np.maximum(facts.squares / facts.counts, np.finfo(float).tiny))
    return _NEAR * loss.coefficients * squares / tasks.n_features / spread


def safe_factors(norm: MKLNorm, n_features: int, which: list[np.ndarray]) -> list[np.ndarray]:
    """s (k,) of every cell's nodes with   ||sum_p z_p||^2_R <= sum_p ||z_p||^2_{R'},   R' with s_j b_j b_j^T in the place of b_j b_j^T.

    For one node, ||sum_p z_p||^2 <= s sum_p ||z_p||^2 with s the number of parts that have a task of it (Cauchy-Schwarz). For a kernel
    B B^T with dense B every node is in every part; there s is the largest eigenvalue of sum_p P_p, P_p the projection on the
    rows of B that belong to tasks of part p: the least number for which it holds.

    Source: the safe bound sigma' = gamma K of CoCoA+ (Ma et al., ICML 2015, Lemma 4), of a node's parts instead of all; sigma'_min there.
    """
    n_tasks = norm.kernels[0].n_tasks
    member = sparse.csr_array(
        (np.ones(sum(map(len, which))), np.concatenate(which), np.cumsum([0, *map(len, which)])), (len(which), n_tasks)
    )  # fmt: skip
    factors = []
    for cell in norm.cells(n_features):
        touched = sparse.csr_array(cell.factor != 0.0).astype(float)
        s = np.asarray(((member @ touched) > 0.0).sum(axis=0), float).ravel()
        s = np.maximum(s, 1.0)
        for k in range(len(cell.members)):
            own = np.flatnonzero(cell.owner == k) if len(cell.members) < len(cell.owner) else np.array([k])
            if own.size > _ONE_BY_ONE and s[own].min() > 1.0:
                s[own] = np.minimum(_least_factor(cell.factor[:, own].toarray(), which), s[own].max())
        factors.append(s)
    return factors


def _least_factor(B: np.ndarray, which: list[np.ndarray]) -> float:
    total = np.zeros((B.shape[1], B.shape[1]))
    whole = sum(one.size == len(B) for one in which)
    for one in which:
        if one.size < len(B):
            values, basis = np.linalg.eigh(B[one] @ B[one].T)
            held = values > 1e-12 * values[-1]
            half = (B[one].T @ basis[:, held]) / np.sqrt(values[held])
            total += half @ half.T
    others = float(np.linalg.eigvalsh(total)[-1]) if whole < len(which) else 0.0
    return max((whole + others) * (1.0 + 1e-9), 1.0)
