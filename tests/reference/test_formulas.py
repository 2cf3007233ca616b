"""Formulas of the reference that have no second statement, by hand; all others are held to the plain ones (tests/definitions) by the laws of atoms."""

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import mtldsl.reference.compile  # noqa: F401  (enters the formulas)
from mtldsl.errors import ModelError
from mtldsl.reference.registry import FORMULAS, formula, formula_of
from tests.loops import for_each

W = np.array([[3.0, 0.0], [-4.0, 0.0]])  # singular values 5 and 0
#: Balls have no plain formula: they are typed as comparisons.
BALLS = [
    ("norm_ball", {"of": SimpleNamespace(name="l1_norm", weights=None), "radius": 5.0}, 2.0),
    ("norm_ball", {"of": SimpleNamespace(name="l21_norm", weights=None), "radius": 6.0}, 1.0),
    ("norm_ball", {"of": SimpleNamespace(name="trace_norm"), "radius": 4.5}, 0.5),
    ("norm_ball", {"of": SimpleNamespace(name="frobenius_norm"), "radius": 6.0}, 0.0),
]


@for_each("word, fields, expected", BALLS)
def test_ball(word, fields, expected):
    """The largest violation of its constraints at W."""
    V = cp.Variable((2, 2), value=W)
    constraints = FORMULAS[word](V, SimpleNamespace(**fields))
    assert all(constraint.is_dcp() for constraint in constraints)
    assert max((np.max(c.violation()) for c in constraints), default=0.0) == pytest.approx(
        expected, abs=1e-12
    )


@for_each(
    "at, expected",
    [
        (W, 4.0),  # of rank one: the largest entry
        (np.eye(2), 1.0),
        (np.array([[1.0, 1.0], [1.0, -1.0]]), np.sqrt(2.0)),  # a Hadamard matrix of side n: sqrt(n)
        (np.array([[1.0, 1.0], [0.0, 1.0]]), 2 / np.sqrt(3)),  # the triangle of side two
        (np.zeros((2, 2)), 0.0),
    ],
)
def test_the_max_norm(at, expected):
    assert FORMULAS["max_norm"](cp.Constant(at), SimpleNamespace()).value == pytest.approx(
        expected, rel=1e-8, abs=1e-12
    )
    V = cp.Variable((2, 2))
    assert FORMULAS["max_norm"](V, SimpleNamespace()).is_convex()


@for_each(
    "word, fields, expected",
    [
        ("squared_cluster_norm", {"lower": 0.0, "upper": np.inf, "trace": 2.5}, 10.0),
        ("squared_cluster_norm", {"lower": 0.5, "upper": 2.0, "trace": 100.0}, 12.5),
        ("latent_group_norm", {"groups": [[0], [0, 1]], "weights": None}, 5.0),
        ("latent_group_norm", {"groups": [[0], [1], [0, 1]], "weights": np.array([1.0, 1.0, 9.0])}, 7.0),
    ],
)
def test_a_minimum_over_variables_of_its_own(word, fields, expected):
    assert FORMULAS[word](cp.Constant(W), SimpleNamespace(**fields)).value == pytest.approx(
        expected, rel=1e-10
    )
    assert FORMULAS[word](cp.Variable((2, 2)), SimpleNamespace(**fields)).is_convex()


def test_a_word_has_one_formula():
    with pytest.raises(ValueError, match="two reference formulas are called 'ridge'"):
        formula("ridge")(lambda W, atom: W)


def test_a_word_without_a_formula_is_refused_as_typed():
    with pytest.raises(ModelError, match=r"2 \* frob\(W\): the reference has no formula for 'frob'"):
        formula_of("frob", "2 * frob(W)")
