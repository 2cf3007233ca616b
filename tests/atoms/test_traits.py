"""What follows of traits (proxes of sums) is proven, and the laws of traits, which test_registry.py runs, see atoms that declare wrongly."""

import ast
from pathlib import Path

import numpy as np
import pytest

import mtldsl
from mtldsl.atoms import regularizers
from mtldsl.atoms.atom import COLUMNS, ROWS, RowProfile
from mtldsl.atoms.losses import AbsoluteLoss, SquaredHingeLoss
from mtldsl.atoms.prox.composition import prox_of_sum, unsupported_reason
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers import L1Norm, L12Norm, L21Norm, TotalVariation
from mtldsl.atoms.sets import AtLeast
from mtldsl.extending.law import LawError, cases_of
from mtldsl.extending.laws.trait_laws import LAWS
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
        assert bool(unsupported_reason(terms)) == bool(unsupported_reason(terms[::-1]))
        if not unsupported_reason(terms):
            multipliers_prove(terms, prox_of_sum(terms), W, (0.3, 1.5)[proven % 2])
            proven += 1
    assert proven, "a ridge at least composes with everything"


def lying(base, **wrong):
    """An instance of a class like `base` that says something else of itself."""
    return type("Lying", (base,), {k: property(lambda self, v=v: v) for k, v in wrong.items()})


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
    "interval": lying(AtLeast, interval=(0.0, 2.0))(0.0),
    "profile": lying(L21Norm, profile=RowProfile(absolute=1.0))(),
    "on_rows": lying(L21Norm, on_rows=lambda rows, shape: L21Norm(np.ones(5)))(np.arange(5.0)),
    # right at zero, and only there
    "entry_slopes": lying(L1Norm, entry_slopes=lambda W: (np.full(W.shape, -1.0), np.full(W.shape, 1.0)))(),
    "separable_in_entries": lying(L21Norm, separable="entries")(),
    "k_support": lying(regularizers.HalfSquaredGroupNorm, k_support=2)(),
    "row_groups": lying(L21Norm, row_groups=lambda shape: (np.array([0, 0, 1, 1, 1]), np.ones(2)))(),
    "two_sided_quadratic": lying(
        regularizers.Ridge, two_sided_quadratic=lambda: (IDENTITY(2.0, 5), IDENTITY(1.0, 4))
    )(),
    "holds_around_zero": lying(AtLeast, holds_around_zero=True)(0.5),
    "holds_all": lying(AtLeast, holds_all=lambda shape: True)(0.0),
    "zero_interval": lying(AbsoluteLoss, zero_interval=lambda y: (y - 1.0, y + 1.0))(),
    "max_affine": lying(SquaredHingeLoss, max_affine=True)(),
}


@for_each("law", LAWS, ids=lambda law: law.name)
def test_a_law_sees_who_declares_wrongly(law):
    (case,) = cases_of([law], WRONG[law.name.removeprefix("declared_")], "a liar")
    with pytest.raises(LawError, match=f"a liar breaks {law.name}"):
        case.run()


def test_honest_atoms_of_the_same_kind_pass():
    """It is the trait that is found wrong above, not how the atom was made."""
    for atom in (lying(AtLeast)(0.0), lying(L21Norm)()):
        for case in cases_of(LAWS, atom, "an honest atom"):
            case.run()


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
