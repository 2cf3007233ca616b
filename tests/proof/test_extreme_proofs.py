"""Proofs that no solver writes, and moved points: maps that name a block twice, numbers whose products float64 does not hold."""

import copy
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.certificates.checker.feasibility import made_feasible
from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.function_formulas import QuadraticFormula
from mtldsl.certificates.checker.interval import Interval, product, round_to_float
from mtldsl.certificates.checker.loss_formulas import ROW_LOSSES, RowLossFormula
from mtldsl.certificates.checker.norm_formulas import TreeFormula
from mtldsl.certificates.checker.proof_file import DataArrays, read_proof, write_proof
from mtldsl.certificates.checker.structured_formulas import LabelGraphFormula
from mtldsl.certificates.checker.terms import CheckedFunctionTerm
from tests import models
from tests.loops import for_each
from tests.models import with_weights

_EXACT = (False, True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(a proof of squared losses alone, its data, the optimum)."""
    tasks, W = with_weights(models.shared(0, n=9))
    solution = mtl.minimize(mtl.squared_loss(W, tasks)).solve(tol=1e-9)
    path = solution.certificate.save(tmp_path_factory.mktemp("saved") / "proof", data=True)
    return *read_proof(path), solution.objective


def _of_no_weights(proof, data):
    """A copy whose point is zero, and whose multipliers prove the objective there where they meet their equation."""
    forged = copy.deepcopy(proof)
    forged["point"] = {name: np.zeros(x.shape) for name, x in proof["point"].items()}
    forged["losses"][0]["multipliers"] = -data[0].targets
    return forged


@for_each("shares", [(1.0, -0.5), (0.3, 0.2), (2.0, -2.0)])
def test_a_block_named_twice_moves_predictions_by_the_sum(saved, tmp_path, shares):
    proof, data, optimum = saved
    forged = _of_no_weights(proof, data)
    entries = forged["losses"][0]["map"]["entries"]
    forged["losses"][0]["map"]["entries"] = [entries[0] | {"coefficient": share} for share in shares]
    for exact in _EXACT:
        verdict = mtl.verify_proof(write_proof(tmp_path / "twice", forged, data), exact=exact)
        least = optimum if sum(shares) else 0.5 * np.square(data[0].targets).sum()
        assert least * (1 - 1e-6) <= verdict.low <= least * (1 + 1e-9), str(verdict)


def test_a_product_below_float64_still_moves_predictions(saved, tmp_path):
    """Weights as large as it takes fit the labels: the objective at weights of zero bounds nothing."""
    proof, (own,), optimum = saved
    small = DataArrays(own.inputs * 2.0**-600, own.targets, own.counts, own.shared)
    forged = _of_no_weights(proof, [small])
    forged["data"][0]["hashes"] = small.hashes()
    forged["losses"][0]["map"]["entries"][0]["coefficient"] = 2.0**-700
    for exact in _EXACT:
        verdict = mtl.verify_proof(write_proof(tmp_path / "small", forged, [small]), exact=exact)
        assert verdict.region or verdict.low <= optimum * (1 + 1e-9), str(verdict)


@for_each("scale", [1.0, 1e170, 1e-200])
def test_a_form_that_is_not_convex_has_no_bound(scale):
    """An infinite size times a zero is NaN, which no comparison sees; a product below float64 is zero."""
    indefinite, positive = np.array([[1.0, 2.0], [2.0, 1.0]]) * scale, np.eye(2)
    for rows, columns in ((indefinite, positive), (positive, indefinite)):
        for exact in _EXACT:
            with np.errstate(all="ignore"), pytest.raises(UnsupportedFormula):
                QuadraticFormula({"rows": rows, "columns": columns}, (2, 2), exact)


def test_what_a_form_lacks_is_not_rounded_to_nothing():
    """Its eigenvalues are negative by 1e-11 of their size, and the product of that and a size is below float64."""
    nearly = np.diag([1.0, -1e-11]) * 1e-200
    form = QuadraticFormula({"rows": nearly, "columns": nearly}, (2, 2), True)
    assert form.short.high > 0


def test_a_violation_below_float64_is_one(saved, tmp_path):
    """1e-300 W >= 0 is missed by 1e-400, and (1e100 W + 1)^2 is zero there: 1/2 is the optimum."""
    proof, _, _ = saved
    own = DataArrays(np.array([[1e100]]), np.array([-1.0]), np.array([1]), True)
    map = {
        "entries": [{"block": "W", "coefficient": 1.0, "left": None, "right": None}],
        "shape": [1, 1],
        "offset": None,
    }
    scaled = map | {"entries": [map["entries"][0] | {"coefficient": 1e-300}]}
    forged = proof | {
        "blocks": [{"name": "W", "shape": [1, 1]}],
        "data": [{"hashes": own.hashes(), "shared": True}],
        "point": {"W": np.array([[-1e-100]])},
        "region": None,
        "losses": [proof["losses"][0] | {"map": map, "coefficients": np.ones(1), "multipliers": np.zeros(1)}],
        "functions": [
            {"word": "at_least", "typed": "W >= 0", "parameters": {"bound": np.zeros((1, 1))}, "map": scaled}
            | {"coefficient": 1.0, "convex": True, "multipliers": np.zeros((1, 1))}
        ],
    }
    for exact in _EXACT:
        verdict = mtl.verify_proof(write_proof(tmp_path / "missed", forged, [own]), exact=exact)
        assert verdict.violation > 0 and not verdict.holds, str(verdict)


def test_fractions_are_rounded_to_the_side_that_is_asked():
    numbers = np.array([Fraction(1, 3), Fraction(-1, 10**400), Fraction(1, 10**400), Fraction(1, 2)])
    for side in (-1, 1):
        for near, number in zip(round_to_float(numbers, side).tolist(), numbers, strict=True):
            assert (Fraction(near) - number) * side >= 0 and (number != 0.5 or near == 0.5)


@for_each("seed", range(12))
def test_products_of_numbers_below_the_normal_ones_are_enclosed(seed):
    """The rounding of 1e300 x is a share of it, and that share of x = 1e-322 alone is zero."""
    rng = np.random.default_rng(seed)
    A, x = 1e300 * rng.normal(size=(1, 400)), 1e-322 * rng.normal(size=(400, 1))
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(A[0].tolist(), x[:, 0].tolist(), strict=True))
    for factor in (A, sparse.csr_array(A), Interval.of(A)):
        found = product(factor, Interval.of(x))
        assert found.low.item() <= exact <= found.high.item()


def test_a_sum_that_leaves_float64_on_its_way_has_no_bound():
    """1e308 + 1e308 - 1e308 - 1e308 is zero, and infinite in float64."""
    numbers = Interval.of(1e154 * np.array([[1.0], [1.0], [-1.0], [-1.0]]))
    for factor in (np.full((1, 4), 1e154), Interval.of(np.full((1, 4), 1e154))):
        with np.errstate(all="ignore"):
            found = product(factor, numbers)
        assert found.low <= 0.0 <= found.high


def test_a_norm_whose_squares_leave_float64_is_not_small():
    """The rest of the inner group is NaN, and nothing of it may count as used up."""
    tree = TreeFormula({"rows": [[0], [0, 1]], "weights": np.ones(2)}, (2, 2), False)
    Z = np.array([[1e160, 1e160], [0.0, 0.0]])
    with np.errstate(all="ignore"):
        squares = tree._squares(Interval.of(Z))
        assert not tree._is_held(squares, 1e-300)
        with pytest.raises(UnsupportedFormula):
            tree.gauge(Interval.of(Z))
    small = tree.gauge(Interval.of(Z / 1e160))
    assert np.sqrt(2.0) / 2.0 <= small.high <= np.sqrt(2.0)


def test_labels_of_other_rows_are_not_one_row():
    """Two classes that lack other rows have as many labels: side by side they are of other samples."""
    labels, counts, one = np.array([1.0, -1.0, -1.0, 1.0]), np.array([2, 2]), Interval.of(np.ones(2))
    mask = np.array([[True, False], [True, True], [False, True]])
    own = DataArrays(np.ones((3, 1)), labels, counts, True, mask)
    for word in ROW_LOSSES:
        with pytest.raises(UnsupportedFormula):
            RowLossFormula(word, one, own, False)


def test_a_graph_of_labels_is_of_shared_inputs():
    """The one label that a task has would count as that of all samples."""
    own = DataArrays(np.ones((2, 1)), np.array([1.0, -1.0]), np.array([1, 1]), False)
    with pytest.raises(UnsupportedFormula, match="shared"):
        LabelGraphFormula(
            "clique_hinge", {"members": [], "n_labels": 2}, Interval.of(np.ones(1)), own, False, None
        )


def test_no_number_is_told_that_no_formula_reads(tmp_path):
    """Ranks make the weights of `q`, and labels the classes: a file that says others is not quoted."""
    tasks, W = with_weights(models.shared(15, labels="classes"))
    problem = mtl.minimize(mtl.softmax_loss(W, tasks) + mtl.sorted_l1_norm(W, q=0.1))
    proof, data = read_proof(problem.solve().certificate.save(tmp_path / "own", data=True))
    forged = copy.deepcopy(proof)
    forged["losses"][0]["parameters"]["n_classes"] = 77
    forged["functions"][0]["parameters"]["q"] = 0.77
    verdict = mtl.verify_proof(write_proof(tmp_path / "told", forged, data), problem)
    assert verdict.confirmed and verdict.model_is_named and "77" not in verdict.model


HUGE = np.array([[1e100]])


def entry(block, left=None, coefficient=1.0):
    return {"block": block, "coefficient": coefficient, "left": left, "right": None}


def term(word, entries, offset=None, **parameters):
    map = {"entries": entries, "shape": (1, 1), "offset": None if offset is None else np.array([[offset]])}
    described = {"word": word, "map": map, "coefficient": 1.0, "parameters": parameters, "multipliers": None}
    return CheckedFunctionTerm(described, exact=False)


def bounded(word, *entries, bound=0.0):
    return term(word, list(entries), bound=np.array([[bound]]))


def violation(x, *sets) -> float:
    """What is missed at the moved point of 1 x 1 blocks."""
    point = {name: Interval.of(np.array([[value]])) for name, value in x.items()}
    with np.errstate(all="ignore"):  # as in a check
        return float(made_feasible(point, sets)[1])


#: 1e100 (S + K) >= 0 is missed by so much that the move has no size in float64
MOVED = bounded("at_least", entry("S", HUGE), entry("K", HUGE)), bounded("at_most", entry("K"))


def test_a_move_beyond_float64_holds_no_bound_and_no_ball():
    """S + K >= 0 >= K and W - S >= 1 ask for W >= 1; |W + S + 1e209| <= 1 beside S >= 0 asks for W <= 1 - 1e209."""
    held = *MOVED, bounded("at_least", entry("W"), entry("S", None, -1.0), bound=1.0)
    assert violation({"W": 0.0, "S": -1e209, "K": -1e209}, *held) == np.inf
    assert violation({"W": 2.0, "S": 0.5, "K": -0.25}, *held) == 0.0
    of = {"word": "frobenius_norm", "parameters": {}}
    ball = term("norm_ball", [entry("W"), entry("S")], 1e209, of=of, radius=1.0)
    assert violation({"W": 0.0, "S": -1e209, "K": -1e209}, *MOVED, ball) == np.inf


def test_rows_whose_products_underflow_are_not_moved():
    """1.6e-162 W >= 8e-162 asks for W >= 5; the square of 1.6e-162 is 4.9e-324 in float64, twice too large."""
    held = bounded("at_least", entry("W", np.array([[1.6e-162]])), bound=8e-162)
    assert violation({"W": 0.0}, held) > 0.0


def test_rows_whose_product_cancels_are_moved_together():
    """W = 1e165 asks for S = -1e-5, through a product of rows that float64 takes for zero."""
    held = (
        bounded("equal_to", entry("W", np.array([[1e-170]])), entry("S")),
        bounded("equal_to", entry("W", np.array([[1e-155]])), bound=1e10),
    )
    assert violation({"W": 0.0, "S": 0.0}, *held) > 0.0
