"""What follows of traits (proxes of sums) is proven, and the laws of traits, which test_registry.py runs, see atoms that declare wrongly."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import mtldsl
from mtldsl.atoms import regularizers
from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum, why_not
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.function import Regularizer, SeparableLoss, Set
from mtldsl.atoms.parts import COLUMNS, ROWS, RowProfile
from mtldsl.atoms.regularizers import L1Norm, L12Norm, L21Norm, TotalVariation
from mtldsl.testing.law import LawError, cases_of
from mtldsl.testing.laws.traits import LAWS
from tests.atoms.proven_prox import multipliers_prove
from tests.loops import for_each
from tests.registry_cases import MATRIX_FUNCTIONS

COMPOSABLE = [case for case in MATRIX_FUNCTIONS if case.values[0].exact_prox and case.values[0].convex]


@pytest.mark.slow
@for_each("first", COMPOSABLE)
def test_whatever_composes_composes_exactly(first):
    """Every pair of examples that the traits let through: the multipliers prove the prox of the sum."""
    W, proven = np.random.default_rng(5).normal(size=(5, 4)), 0
    for second in (case.values[0] for case in COMPOSABLE):
        terms = [(0.4, first), (0.7, second)]
        assert bool(why_not(terms)) == bool(why_not(terms[::-1]))
        if not why_not(terms):
            multipliers_prove(terms, prox_of_sum(terms), W, (0.3, 1.5)[proven % 2])
            proven += 1
    assert proven, "a ridge at least composes with everything"


# ------------------------------------------------------------------------------------------- atoms that declare wrongly


def lying(base, **wrong):
    """An instance of a class like `base` that says something else of itself."""
    return type("Lying", (base,), {k: property(lambda self, v=v: v) for k, v in wrong.items()})


@dataclass(frozen=True, eq=False)
class _Skewed(Regularizer):
    """sum of W + 2 max(W, 0): smaller on one side, and no norm."""

    name: ClassVar[str] = "skewed"
    separable: ClassVar[str] = "entries"

    def value(self, W):
        return float(np.sum(np.abs(W) + 2.0 * np.maximum(W, 0.0)))

    def prox(self, W, step):
        return np.where(W > 0, np.maximum(W - 3.0 * step, 0.0), np.minimum(W + step, 0.0))

    def entry_slopes(self, W):
        return np.full(W.shape, -1.0), np.full(W.shape, 3.0)  # wrong but at zero


@dataclass(frozen=True, eq=False)
class _SquareLoss(SeparableLoss):
    """1/2 max(0, 1 - y z)^2 that calls itself piecewise linear."""

    name: ClassVar[str] = "square_loss"
    labels: ClassVar[str] = "sign"
    max_affine: ClassVar[bool] = True

    def pointwise(self, z, y):
        return 0.5 * np.maximum(1.0 - y * z, 0.0) ** 2

    def slope(self, z, y):
        return -y * np.maximum(1.0 - y * z, 0.0)

    def dual_quadratic(self, y):
        return y, 1.0

    def dual_interval(self, y):
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)


@dataclass(frozen=True, eq=False)
class _Box(Set):
    """-1 <= W <= 1."""

    name: ClassVar[str] = "box"
    separable: ClassVar[str] = "entries"
    says: tuple = field(default=(-1.0, 1.0))

    @property
    def interval(self):
        return self.says

    def project(self, W):
        return np.clip(W, -1.0, 1.0)

    def violation(self, W):
        return float(np.max(np.abs(W) - 1.0, initial=0.0))

    def on_rows(self, rows, shape):
        return self


class _SquaredWeights(L21Norm):
    """sum_r a_r^2 ||W_r||."""

    def cell_norms(self, W):
        return self.weights * super().cell_norms(W)


IDENTITY = SpectralMatrix.multiple_of_identity
WRONG = {
    "homogeneous": lying(regularizers.Ridge, homogeneous=True)(),
    "parts": lying(L21Norm, parts=COLUMNS)(),
    "scales": lying(L12Norm, scales=ROWS)(),
    "order_preserving": lying(L12Norm, order_preserving=True)(),
    "ordinal": lying(L1Norm, ordinal=True)(),
    "monotone": lying(TotalVariation, monotone=True)(),
    "weights_add": _SquaredWeights(np.arange(5.0)),
    "interval": _Box((-1.0, 2.0)),
    "profile": lying(L21Norm, profile=RowProfile(absolute=1.0))(),
    "on_rows": lying(L21Norm, on_rows=lambda rows, shape: L21Norm(np.ones(5)))(np.arange(5.0)),
    "entry_slopes": _Skewed(),
    "separable_in_entries": lying(L21Norm, separable="entries")(),
    "k_support": lying(regularizers.HalfSquaredGroupNorm, k_support=2)(),
    "row_groups": lying(L21Norm, row_groups=lambda shape: (np.array([0, 0, 1, 1, 1]), np.ones(2)))(),
    "two_sided_quadratic": lying(
        regularizers.Ridge, two_sided_quadratic=lambda: (IDENTITY(2.0, 5), IDENTITY(1.0, 4))
    )(),
    "holds_around_zero": lying(
        _Box, holds_around_zero=True, violation=lambda W: float(np.abs(W - 1.0).max())
    )(),
    "holds_all": lying(_Box, holds_all=lambda shape: True)(),
    "max_affine": _SquareLoss(),
}


@for_each("law", LAWS, ids=lambda law: law.name)
def test_a_law_sees_who_declares_wrongly(law):
    (case,) = cases_of([law], WRONG[law.name.removeprefix("declared_")], "a liar")
    with pytest.raises(LawError, match=f"a liar breaks {law.name}"):
        case.run()


def test_honest_atoms_of_the_same_kind_pass():
    """It is the trait that is found wrong above, not how the atom was made."""
    for atom in (_Box(), type("Honest", (L21Norm,), {})()):
        for case in cases_of(LAWS, atom, "an honest atom"):
            case.run()


# ------------------------------------------------------------------------------------------------------ who asks what

ROOMS = ("atoms/calculus", "compile", "solvers", "analysis")
KINDS = {"Loss", "Regularizer", "Set", "Structure", "MatrixFunction", "SeparableLoss"}


def asked_of_atoms(source: str) -> list[str]:
    """Comparisons of an atom's word with text, and questions for an atom's class that is not a kind, in a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("atom.name"):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            subject, asked = map(ast.unparse, node.args)
            if subject.endswith("atom") and asked not in KINDS | {"StructureTerm"}:
                found.append(ast.unparse(node))
    return found


@pytest.mark.slow
def test_solvers_and_calculus_ask_for_traits_not_for_words():
    root = Path(mtldsl.__file__).parent
    files = [path for room in ROOMS for path in (root / room).rglob("*.py")]
    assert len(files) > 80
    found = {str(path): asked_of_atoms(path.read_text()) for path in files}
    assert {path: asked for path, asked in found.items() if asked} == {}


def test_the_question_for_a_word_is_seen():
    assert asked_of_atoms('if f.atom.name == "ridge": pass') == ["f.atom.name == 'ridge'"]
    assert asked_of_atoms("isinstance(loss.atom, HingeLoss)") == ["isinstance(loss.atom, HingeLoss)"]
    assert asked_of_atoms("isinstance(loss.atom, Set)") == []
