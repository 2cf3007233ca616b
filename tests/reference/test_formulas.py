"""Where the reference keeps its formulas. What they say is held to atoms and plain formulas by laws."""

import pytest

import mtldsl.reference.compile  # noqa: F401  (enters the formulas)
from mtldsl.errors import ModelError
from mtldsl.reference.registry import formula, formula_of, spectrum, spectrum_of, structure, structure_of
from mtldsl.reference.structures import block_bound
from tests.loops import for_each


@for_each(
    "again, what",
    [
        (formula("ridge"), "formulas are called 'ridge'"),
        (structure("matrix_normal", bound=block_bound), "structures are called 'matrix_normal'"),
        (spectrum("rank", slope=None), "penalties of the spectrum are called 'rank'"),
    ],
)
def test_a_word_has_one_formula(again, what):
    with pytest.raises(ValueError, match=f"two reference {what}"):
        again(lambda W, *given: W)


@for_each(
    "look_up, what",
    [
        (formula_of, "has no formula for"),
        (structure_of, "has no learned structure"),
        (spectrum_of, "has no penalty of the spectrum"),
    ],
)
def test_a_word_without_a_formula_is_refused_as_typed(look_up, what):
    with pytest.raises(ModelError, match=rf"2 \* prior\(W\): the reference {what} 'prior'"):
        look_up("prior", "2 * prior(W)")
