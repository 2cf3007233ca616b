"""`check_word`: nothing is missing of the words of the language, and all that is of a new one is named, with its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.function import REGISTRY, SeparableLoss
from mtldsl.atoms.parameters import checked_number
from mtldsl.definitions.formula import DEFINITIONS, defined
from mtldsl.proof.checker.losses import SCALAR_LOSSES
from mtldsl.proof.checker.schema import LOSSES
from mtldsl.solvers.registry import SOLVERS
from mtldsl.testing import check_word
from mtldsl.testing.word import WordReport
from tests.loops import for_each


@dataclass(frozen=True, eq=False)
class TubeLoss(SeparableLoss):
    r"""Residuals up to a width are free: sum_j s_j max(0, |z_j - y_j| - width).

    Notes
    -----
    Source: Vapnik, "The nature of statistical learning theory", Springer 1995.

    >>> TubeLoss(width=0.5).value(np.array([3.0, 1.2]), np.array([1.0, 1.0]))
    1.5
    """

    width: float = 0.1

    name: ClassVar[str] = "tube_loss"
    formula: ClassVar[str] = r"\sum_j \max\big(0, |({})_j - y_{ij}| - \varepsilon\big)"
    of_residuals: ClassVar[bool] = True

    def __post_init__(self):
        width = checked_number(self.name, "width", self.width, lambda e: e >= 0, "a number >= 0")
        object.__setattr__(self, "width", width)

    @classmethod
    def examples(cls):
        return [cls(), cls(width=0.0), cls(width=1.5)]

    def pointwise(self, z, y):
        return np.maximum(np.abs(z - y) - self.width, 0.0)

    def slope(self, z, y):
        return np.where(np.abs(z - y) > self.width, np.sign(z - y), 0.0)

    def pointwise_prox(self, z, y, step):
        return np.clip(z, np.minimum(y - self.width, z + step), np.maximum(y + self.width, z - step))

    def pointwise_conjugate(self, u, y):
        return u * y + self.width * np.abs(u)

    def dual_interval(self, y):
        return -1.0, 1.0


class ShallowTube(TubeLoss):
    __doc__ = TubeLoss.__doc__  # with a conjugate that is wrong

    def pointwise_conjugate(self, u, y):
        return u * y


def reference(z, y, s, atom):
    excess = cp.pos(cp.abs(z - y) - atom.width)
    return cp.sum(excess) if s is None else cp.sum(cp.multiply(s, excess))


@pytest.fixture
def register():
    """`mtl.register`; what it entered is taken out afterwards."""
    entered = []

    def enter(cls, **marks):
        word = mtl.register(cls, reference=reference, sum_over_samples=True, **marks)
        entered.append(cls.name)
        return word

    yield enter
    for name in entered:
        mtl.unregister(name)


def pieces(report: WordReport) -> dict[str, str]:
    return {piece.what: piece.file for piece in report.missing}


def test_check_word_finds_every_word_complete():
    """The laws run over all words in tests/atoms/test_registry.py."""
    lacking = [
        str(report)
        for name in REGISTRY
        if not (report := check_word(name, laws=False, solvers=False)).complete
    ]
    assert not lacking, "\n\n".join(lacking)


@pytest.mark.slow
def test_check_word_names_what_a_word_loses_and_why():
    lost = {one.solver: one for one in check_word("absolute_loss", laws=False).lost}
    assert lost["proximal_gradient"].trait == "smooth = False" and "admm" not in lost
    assert lost["closed_form"].trait == "quadratic = None"
    assert {one.solver: one.trait for one in check_word("max_norm", laws=False).lost}[
        "admm"
    ] == "exact_prox = False"
    assert not {one.solver for one in check_word("squared_loss", laws=False).lost} & {
        "closed_form",
        "admm",
        "lbfgs",
    }


@pytest.mark.slow
def test_check_word_of_an_own_loss_asks_for_nothing_more(register):
    """All laws hold, and a model with it is solved and cross-checked."""
    word = register(TubeLoss)
    report = check_word("tube_loss")
    assert report.complete and report.own and report.checks > 50
    assert "proximal_gradient: tube_loss is not smooth. The trait: smooth = False." in str(report)
    assert {one.solver for one in report.lost} < set(SOLVERS)
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(12, 3)), rng.normal(size=(12, 2)))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(word(W, tasks, width=0.2) + 0.5 * mtl.l21_norm(W))
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees


def test_check_word_names_all_that_a_package_word_lacks(register, monkeypatch):
    """The class says that it is of the package: formulas of its second evaluation, checker, stub and page are asked for."""
    register(TubeLoss)
    monkeypatch.setattr(TubeLoss, "__module__", "mtldsl.atoms.losses.absolute")
    report = check_word("tube_loss", laws=False, solvers=False)
    assert not report.own and not report.complete
    assert pieces(report) == {
        "plain formula": "mtldsl/definitions/plain_losses.py",
        "parameters in proofs": "mtldsl/proof/checker/schema.py",
        "checker formula": "mtldsl/proof/checker/losses.py",
        "types": "mtldsl/__init__.pyi",
        "row of words": "docs/words.md",
    }
    assert '@defined("tube_loss", "samples") def tube_loss(z, y, atom)' in str(report)
    assert "python -m mtldsl.catalogue.stub" in str(report)

    monkeypatch.setitem(SCALAR_LOSSES, "tube_loss", None)
    monkeypatch.setitem(LOSSES, "tube_loss", None)
    monkeypatch.setattr("mtldsl.definitions.formula.DEFINITIONS", {**DEFINITIONS, "tube_loss": defined})
    assert set(pieces(check_word("tube_loss", laws=False, solvers=False))) == {"types", "row of words"}


def test_check_word_names_a_reference_that_is_missing(register, monkeypatch):
    from mtldsl.reference.registry import FORMULAS

    register(TubeLoss)
    with monkeypatch.context() as without:
        without.delitem(FORMULAS, "tube_loss")
        report = check_word("tube_loss", laws=False, solvers=False)
    assert pieces(report) == {"reference function": "reference/losses.py"}


@pytest.mark.slow
def test_check_word_tells_of_laws_that_do_not_hold(register):
    register(ShallowTube)
    report = check_word("tube_loss", solvers=False)
    assert not report.complete and report.checks == 0 and not report.missing
    assert "conjugate" in report.broken and "checks fail" in str(report)


@for_each(
    ("name", "says"),
    [
        ("absolut_loss", "did you mean 'absolute_loss'?"),
        ("nuclear_norm", "did you mean 'trace_norm'?"),
        (3, "as text"),
    ],
)
def test_check_word_refuses_what_is_no_word(name, says):
    with pytest.raises(mtl.ModelError) as caught:
        check_word(name)
    assert says in str(caught.value)
