"""Points that the checker moves into the constraints: what float64 cannot hold never counts as held."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.checker.feasibility import made_feasible
from mtldsl.certificates.checker.interval import Interval
from mtldsl.certificates.checker.proof_file import read_proof, write_proof
from mtldsl.certificates.checker.terms import CheckedFunctionTerm

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


def test_a_move_beyond_float64_holds_no_bound():
    """S + K >= 0 >= K and W - S >= 1 ask for W >= 1."""
    held = *MOVED, bounded("at_least", entry("W"), entry("S", None, -1.0), bound=1.0)
    assert violation({"W": 0.0, "S": -1e209, "K": -1e209}, *held) == np.inf
    assert violation({"W": 2.0, "S": 0.5, "K": -0.25}, *held) == 0.0


def test_a_move_beyond_float64_holds_no_ball():
    """|W + S + 1e209| <= 1 beside S >= 0 asks for W <= 1 - 1e209."""
    ball = term(
        "norm_ball",
        [entry("W"), entry("S")],
        1e209,
        of={"word": "frobenius_norm", "parameters": {}},
        radius=1.0,
    )
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


@pytest.mark.parametrize("exact", [False, True])
def test_a_forged_point_below_a_tiny_constraint_proves_nothing(tmp_path, exact):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    tasks = mtl.Tasks.shared(X, X @ np.array([[-1.0], [1.0]]))
    W, size = mtl.Weights(tasks), 1.6e-162
    objective = mtl.squared_loss(W, tasks) + 0.1 * mtl.ridge(W)
    tiny = mtl.minimize(objective, subject_to=[np.array([[size]]) @ W[:1] >= 5.0 * size])
    proof, _ = read_proof(tiny.solve().certificate.save(tmp_path / "honest"))
    proof["point"]["W"] = np.zeros((2, 1))
    verdict = mtl.verify_proof(write_proof(tmp_path / "forged.npz", proof, None), tiny, exact=exact)
    assert verdict.violation > 0.0
    assert not verdict.holds
