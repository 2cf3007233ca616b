"""A bound above an attained objective is an internal error that names the term, and rounding alone never is one."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import ProofError
from mtldsl.atoms.losses import SquaredLoss
from mtldsl.atoms.regularizers import L1Norm
from mtldsl.proof.certificate import Certificate, certify


def lasso():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 4)), rng.normal(size=(20, 2)))
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))


def test_a_wrong_conjugate_is_named(monkeypatch):
    problem = lasso()
    solution = problem.solve(tol=1e-8)
    monkeypatch.setattr(SquaredLoss, "conjugate", lambda self, u, y, s=None: 1.1 * float(0.5 * u @ u + u @ y))
    with pytest.raises(
        ProofError, match=r"lies .* above the attained objective .*squared_loss\(W, tasks\) is short by"
    ):
        certify(problem.form(), solution.blocks)
    with pytest.raises(ProofError, match="squared_loss"):
        problem.solve()


def test_a_wrong_value_is_named(monkeypatch):
    problem = lasso()
    solution = problem.solve(tol=1e-8)
    monkeypatch.setattr(L1Norm, "value", lambda self, W: 0.5 * float(np.abs(W).sum()))
    with pytest.raises(ProofError, match=r"l1_norm\(W\) is short by"):
        certify(problem.form(), solution.blocks)


def test_what_float64_cannot_tell_is_not_optimal():
    certain = Certificate(objective=1.0, dual_bound=1.0, violation=0.0, scale=0.0, rounding=1e-9)
    assert certain.within(1e-8) and not certain.within(1e-10)
    assert "float64 may misplace" in certain.remark(1e-10) and certain.remark(1e-8) == ""
