"""Forgeries of what the checker shows of all weights: constraints that tell alike directions apart, and columns that nearly depend on others."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.proof.checker.proof_file import read_proof, write_proof
from tests import models
from tests.loops import for_each


@pytest.mark.slow
@for_each("held", ["a row", "a sum", "a difference", "two blocks"])
def test_alike_directions_that_a_constraint_tells_apart(tmp_path, held):
    """One of two equal columns has to be large: the other takes it back, and no multiplier may prove otherwise."""
    own = models.shared(13)
    X = np.column_stack([own.X, own.X[:, 0]])
    tasks = mtl.Tasks.shared(X, own.targets.reshape(models.M, -1).T)
    W, S = mtl.Weights(tasks), mtl.Weights(tasks, name="S")
    A = np.zeros((1, 7))
    A[0, :2] = 1.0, 2.0
    constraint = {
        "a row": [W[:1] >= 5],
        "a sum": [A @ W >= 5],
        "a difference": [W[:1] - W[6:] >= 5],
        "two blocks": [W + S >= 5],
    }[held]
    predicted = W + S if held == "two blocks" else W
    problem = mtl.minimize(mtl.squared_loss(predicted, tasks), subject_to=constraint)
    free = mtl.minimize(mtl.squared_loss(W, tasks)).solve(tol=1e-9)
    proof = read_proof(problem.solve(tol=1e-6).certificate.save(tmp_path / "honest"))[0]
    for size, exact in ((1e-12, False), (1.0, False), (1.0, True)):
        forged = copy.deepcopy(proof)
        (one,) = forged["functions"]
        one["multipliers"] = np.full(one["multipliers"].shape, -size)
        verdict = mtl.verify_proof(write_proof(tmp_path / "forged", forged, None), problem, exact=exact)
        assert verdict.region or verdict.low <= free.objective * (1 + 1e-9), str(verdict)
        assert not verdict.holds or verdict.relative_gap <= 1e-4


@for_each("noise", [0.0, 1e-16, 1e-13, 1e-10])
def test_columns_that_nearly_depend_prove_nothing_false(tmp_path, noise):
    """The infimum fits the noise, with weights as large as that takes: what is said of all weights holds of these too."""
    own = models.shared(14, n=9)
    rng = np.random.default_rng(0)
    X = np.column_stack([own.X, own.X[:, 0] * (1.0 + noise * rng.normal(size=9))])
    tasks = mtl.Tasks.shared(X, own.targets.reshape(models.M, -1).T)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks))
    verdict = mtl.verify_proof(problem.solve(tol=1e-6).certificate.save(tmp_path / "near"), problem)
    Q = np.linalg.qr(np.column_stack([own.X, (X[:, 6] - X[:, 0]) / (noise or 1.0)]))[0][
        :, : 6 + bool((X[:, 6] != X[:, 0]).any())
    ]
    Y = tasks.targets.reshape(models.M, -1).T
    infimum = 0.5 * np.sum(np.square(Y - Q @ (Q.T @ Y)))
    assert verdict.region or verdict.low <= infimum * (1 + 1e-9), str(verdict)
