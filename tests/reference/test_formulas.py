"""The reference's formulas against values worked out by hand: they must not be checked against the atoms alone."""

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import mtldsl.reference.compile  # noqa: F401  (enters the formulas)
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, PrecisionAt, RecallAt, ROCArea
from mtldsl.errors import ModelError
from mtldsl.reference.registry import FORMULAS, formula, formula_of
from tests.loops import for_each

Z, Y, S = np.array([2.0, -1.0, 0.0]), np.array([1.0, 1.0, -1.0]), np.array([1.0, 2.0, 0.5])
LOG = np.log1p(np.exp([-2.0, 1.0, 0.0]))

# residuals r = z - y = (1, -2, 1); margins y z = (2, -1, 0)
LOSSES = {
    "squared_loss": ({}, 0.5 * (1 + 4 + 1), 0.5 * (1 + 8 + 0.5)),
    "sum_of_squares": ({}, 6.0, 9.5),
    "square_root_loss": ({"eps": 0.0}, np.sqrt(6.0), np.sqrt(9.5)),
    "absolute_loss": ({}, 4.0, 1 + 4 + 0.5),
    "quantile_loss": ({"q": 0.8}, 0.2 + 1.6 + 0.2, 0.2 + 3.2 + 0.1),
    "huber_loss": ({"delta": 1.5}, 0.5 + (3 - 1.125) + 0.5, 0.5 + 2 * 1.875 + 0.25),
    "hinge_loss": ({}, 0 + 2 + 1, 0 + 4 + 0.5),
    "squared_hinge_loss": ({}, 0 + 4 + 1, 0 + 8 + 0.5),
    "logistic_loss": ({}, LOG.sum(), LOG @ S),
    "exponential_loss": ({}, np.exp(-2) + np.e + 1, np.exp(-2) + 2 * np.e + 0.5),
    "poisson_loss": (
        {},
        np.exp(2) - 2 + np.exp(-1) + 1 + 1 + 0,
        np.exp(2) - 2 + 2 * np.exp(-1) + 2 + 0.5,
    ),
}


@for_each("word", LOSSES)
def test_loss(word):
    fields, plain, weighted = LOSSES[word]
    atom, z = SimpleNamespace(**fields), cp.Variable(3)
    for s, expected in ((None, plain), (S, weighted)):
        value = FORMULAS[word](z, Y, s, atom)
        z.value = Z
        assert value.is_dcp() and value.is_convex() and value.shape == ()
        assert value.value == pytest.approx(expected, rel=1e-14)


W = np.array([[3.0, 0.0], [-4.0, 0.0]])  # singular values 5 and 0
ROW_WEIGHTS, COLUMN_WEIGHTS = np.array([2.0, 0.5]), np.array([3.0, 1.0])
LAPLACIAN = np.array([[1.0, -1.0], [-1.0, 1.0]])

REGULARIZERS = [
    ("ridge", {"weights": None}, 12.5),
    ("ridge", {"weights": ROW_WEIGHTS[:, None]}, 0.5 * (2 * 9 + 0.5 * 16)),
    ("frobenius_norm", {}, 5.0),
    ("l1_norm", {"weights": None}, 7.0),
    ("l1_norm", {"weights": ROW_WEIGHTS[:, None]}, 8.0),
    ("l1_norm", {"weights": 2.0}, 14.0),
    ("sorted_l1_norm", {"weights": np.array([5.0, 2.0, 1.0, 0.0]), "q": None}, 4 * 5 + 3 * 2),
    ("sorted_l1_norm", {"weights": 2.0, "q": None}, 14.0),
    # Phi(1.959964) = 0.975 and Phi(1.644854) = 0.95: q = 0.2 and four entries
    ("sorted_l1_norm", {"weights": None, "q": 0.2}, 4 * 1.959963984540054 + 3 * 1.6448536269514722),
    ("l21_norm", {"weights": None}, 7.0),
    ("l21_norm", {"weights": ROW_WEIGHTS}, 8.0),
    ("column_group_norm", {"columns": None, "weights": None}, 5.0),
    ("column_group_norm", {"columns": None, "weights": COLUMN_WEIGHTS}, 15.0),
    ("column_group_norm", {"columns": ((1, 0),), "weights": np.array([2.0])}, 10.0),
    ("l12_norm", {"weights": None}, 5.0),
    ("l12_norm", {"weights": COLUMN_WEIGHTS}, 15.0),
    ("l1_inf_norm", {"weights": None}, 7.0),
    ("l1_inf_norm", {"weights": ROW_WEIGHTS}, 8.0),
    ("group_norm", {"groups": [[0, 1]], "weights": None}, 5.0),
    ("group_norm", {"groups": [[1], [0]], "weights": ROW_WEIGHTS}, 2 * 4 + 0.5 * 3),
    ("group_norm", {"groups": [[1]], "weights": None}, 4.0),
    ("tree_norm", {"rows": [[0], [0, 1]], "columns": None, "weights": ROW_WEIGHTS}, 2 * 3 + 0.5 * 5),
    ("tree_norm", {"rows": None, "columns": [[0], [0, 1]], "weights": COLUMN_WEIGHTS}, 3 * 7 + 1 * 7),
    ("trace_norm", {}, 5.0),
    ("squared_trace_norm", {}, 25.0),
    ("graph_laplacian", {"L": LAPLACIAN}, 0.5 * (9 + 16)),
    ("mean_regularizer", {}, 0.5 * 2 * (1.5**2 + 2**2)),
    ("total_variation", {}, 7.0),
    ("kronecker_ridge", {"rows": np.diag([2.0, 1.0]), "columns": np.array([[2.0, 1.0], [1.0, 3.0]])}, 34.0),
    ("feature_covariance_norm", {"covariance": SimpleNamespace(trace=2.5)}, 10.0),
    ("task_covariance_norm", {"covariance": SimpleNamespace(trace=2.5)}, 10.0),
]


@for_each("word, fields, expected", REGULARIZERS)
def test_regularizer(word, fields, expected):
    V = cp.Variable((2, 2))
    value = FORMULAS[word](V, SimpleNamespace(**fields))
    V.value = W
    assert value.is_dcp() and value.is_convex() and value.shape == ()
    assert value.value == pytest.approx(expected, rel=1e-12)


SETS = [
    ("at_least", {"bound": -1.0}, 3.0),
    ("at_least", {"bound": np.array([[1.0, -np.inf], [-np.inf, 0.5]])}, 0.5),
    ("at_least", {"bound": -np.inf}, 0.0),
    ("at_most", {"bound": 1.0}, 2.0),
    ("at_most", {"bound": np.array([[np.inf], [-2.0]])}, 2.0),
    ("equal_to", {"bound": 1.0}, 5.0),
    ("norm_ball", {"of": SimpleNamespace(name="l1_norm", weights=None), "radius": 5.0}, 2.0),
    ("norm_ball", {"of": SimpleNamespace(name="l21_norm", weights=None), "radius": 6.0}, 1.0),
    ("norm_ball", {"of": SimpleNamespace(name="trace_norm"), "radius": 4.5}, 0.5),
    ("norm_ball", {"of": SimpleNamespace(name="frobenius_norm"), "radius": 6.0}, 0.0),
    ("columns_on_simplex", {"total": 1.0}, 4.0),
    ("columns_on_simplex", {"total": 9.0}, 10.0),
]


@for_each("word, fields, expected", SETS)
def test_set(word, fields, expected):
    """The largest violation of its constraints at W."""
    V = cp.Variable((2, 2), value=W)
    constraints = FORMULAS[word](V, SimpleNamespace(**fields))
    assert all(constraint.is_dcp() for constraint in constraints)
    assert max((np.max(c.violation()) for c in constraints), default=0.0) == pytest.approx(
        expected, abs=1e-12
    )


# 2 false positives and 1 false negative among 4 positives and 5 negatives: 3 true positives
METRICS = [
    ("FScore", {"beta": 1.0}, 1 - 3 / (3 + 0.5 * (1 + 2))),
    ("FScore", {"beta": 2.0}, 1 - 5 * 3 / (5 * 3 + 4 * 1 + 2)),
    ("AUC", {}, 1 / 4 * 2 / 5),
    ("ErrorRate", {}, 2 * 3),
    ("PrecisionAt", {"k": 5}, 2 / 5),
    ("PrecisionAt", {"k": 0.55}, 2 / 5),
    ("PrecisionAt", {"k": 4}, -np.inf),
    ("RecallAt", {"k": 5}, 1 / 4),
    ("RecallAt", {"k": 0.3}, -np.inf),
]


@for_each("word, fields, expected", METRICS)
def test_metric(word, fields, expected):
    """Delta of one table, in a row of tables, and 0 of the true labelling."""
    value = FORMULAS[word](np.array([2, 0]), np.array([1, 0]), 4, 5, SimpleNamespace(**fields))
    np.testing.assert_allclose(value, [expected, 0.0], rtol=1e-14)


# Z ranks its positives 2 and -1 against the negative 0: the second pair is short of the margin by 3
HINGES = [
    (AUC(), 1 / 2 * 1 / 1 + 2 * 1),  # best with the second positive flipped, and the negative
    (ErrorRate(), 2 * (0 + 2 + 1)),
    (FScore(), (1 - 1 / (1 + 0.5 * 2)) + 2 * 1),
    (PrecisionAt(1), 0.0 + 2 * 1),  # the first positive alone
    (RecallAt(2), 1 / 2 + 2 * 1),  # the first positive and the negative
    (ROCArea(), (0 + 3) / 2),
]


@for_each("metric, expected", HINGES, ids=lambda value: getattr(value, "name", ""))
def test_structured_hinge(metric, expected):
    z = cp.Variable(3)
    value = FORMULAS["structured_hinge"](z, Y, None, SimpleNamespace(metric=metric))
    z.value = Z
    assert value.is_dcp() and value.is_convex() and value.shape == ()
    assert value.value == pytest.approx(expected, rel=1e-14)


def test_the_gamma_loss():
    """z = (0, log 2), y = (2, 2): 2 - log 2 - 1 and 1 + log 2 - log 2 - 1."""
    z, y = cp.Constant([0.0, np.log(2.0)]), np.array([2.0, 2.0])
    for s, expected in ((None, 1 - np.log(2)), (np.array([3.0, 1.0]), 3 * (1 - np.log(2)))):
        value = FORMULAS["gamma_loss"](z, y, s, SimpleNamespace())
        assert value.is_dcp() and value.value == pytest.approx(expected, rel=1e-14)


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
