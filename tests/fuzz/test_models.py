"""The first 100 random models of `.ci/run` (`--fuzz N`: N of them) are answered truthfully; and the judge who says so is not a fool."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from tests.fuzz import judge as judging
from tests.fuzz.draw import draw
from tests.fuzz.exact import exact_blocks
from tests.fuzz.formulas import objective
from tests.fuzz.judge import Case, judge
from tests.fuzz.oracle import _Statement, consult
from tests.fuzz.scaling import scaling_of
from tests.fuzz.typed import problem_of
from tests.loops import for_each

#: models that the oracle does not help with: their answers are still held to every point that is known
LEAST_SHARE_WITH_ORACLE = 0.9

#: models that show how often the oracle helps: each process judges its own part of them once more
SEEDS_OF_ORACLE = range(12)

#: seconds each model gets
MAX_SECONDS = 1.0


@cache
def case(seed) -> Case:
    return judge(seed, max_seconds=MAX_SECONDS)


def pytest_generate_tests(metafunc):
    if "fuzz_seed" in metafunc.fixturenames:
        metafunc.parametrize("fuzz_seed", range(metafunc.config.getoption("--fuzz")))


@pytest.mark.slow
def test_a_random_model_is_answered_truthfully(fuzz_seed):
    found = case(fuzz_seed)
    said = [f"{kind} ({judging.FINDINGS[kind]}): {text}" for kind, text in found.findings.items()]
    assert not said, f"tests.fuzz.judge.judge({fuzz_seed}): {said}\n{', '.join(found.tags)}\n{found.text}"


@pytest.mark.slow
def test_the_oracle_helps():
    cases = [case(seed) for seed in SEEDS_OF_ORACLE]
    share = np.mean([one.has_oracle for one in cases])
    assert share >= LEAST_SHARE_WITH_ORACLE, [one.seed for one in cases if not one.has_oracle]


def _judged(monkeypatch, seed, change):
    """What is found where the answer to a seed is changed before it is judged."""
    ask = judging._solve

    def solve(*args):
        solution = ask(*args)
        return SimpleNamespace(**{
            name: getattr(solution, name) for name in ("status", "objective", "dual_bound", "blocks", "note")
        } | change(solution))  # fmt: skip

    monkeypatch.setattr(judging, "_solve", solve)
    return set(judge(seed).findings)


HONEST = 0


def less_than_optimal(solution):
    blocks = {name: 1.01 * block for name, block in solution.blocks.items()}
    return {"blocks": blocks, "objective": float(judging.objective(draw(HONEST), blocks))}


@pytest.mark.slow
@for_each(
    "finding, change",
    [
        ("false bound", lambda s: {"dual_bound": s.objective * (1 + 1e-7)}),
        ("false optimal", less_than_optimal),
        ("wrong objective", lambda s: {"objective": s.objective * (1 - 1e-9)}),
    ],
)
def test_a_claim_that_is_false_is_found(monkeypatch, finding, change):
    assert not judge(HONEST).findings
    assert _judged(monkeypatch, HONEST, change) == {finding}


def test_a_constraint_that_is_missed_is_found(monkeypatch):
    seed = next(seed for seed in range(200) if "signs" in draw(seed).tags and draw(seed).feasible)

    def shifted(solution):
        blocks = {name: block - 1e-3 for name, block in solution.blocks.items()}
        return {"blocks": blocks, "status": "optimal"}

    assert "violated" in _judged(monkeypatch, seed, shifted)


def test_weights_beyond_those_of_the_proof_are_no_evidence(monkeypatch):
    """Columns are collinear to the last digit: the optimum has weights of 1e15, which the note leaves out; without the note it counts."""
    assert not judge(420976).findings
    assert _judged(monkeypatch, 420976, lambda s: {"note": ""}) == {"false bound", "false optimal"}


@pytest.mark.slow
def test_values_of_one_unit_in_the_last_place_are_no_fault():
    assert not judge(421247).findings


def test_a_word_of_infeasibility_is_checked(monkeypatch):
    seed = next(seed for seed in range(400) if not draw(seed).feasible)
    blocks = {name: np.zeros(draw(seed).shape) for name in draw(seed).blocks}
    blocks |= {f"{name}.intercept": np.zeros(draw(seed).shape[1]) for name in draw(seed).blocks}
    answer = SimpleNamespace(status="optimal", objective=1.0, dual_bound=1.0, blocks=blocks)
    monkeypatch.setattr(judging, "_solve", lambda *args: answer)
    assert "optimal where infeasible" in judge(seed).findings


def test_the_same_seed_is_the_same_model():
    assert str(problem_of(draw(5))) == str(problem_of(draw(5)))
    for one, other in zip(draw(5).data[0].tasks(), draw(5).data[0].tasks(), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_the_oracle_is_indifferent_to_the_units_of_columns():
    model = next(
        one
        for one in map(draw, range(3000))
        if "plain" in one.tags and "no term on W" in one.tags and "squared_loss" in one.tags
    )
    data = model.data[0]
    units = 10.0 ** np.linspace(-12, 12, model.shape[0])
    scaled = replace(data, X=data.X * units if data.is_shared else [X * units for X in data.X])
    plain, other = consult(model), consult(replace(model, data=(scaled,)))
    assert plain.status == other.status == "optimal"
    assert other.attained == pytest.approx(plain.attained, rel=1e-9)


@pytest.mark.slow
def test_the_oracle_meets_the_rational_solution():
    model = next(
        one for one in map(draw, range(600)) if exact_blocks(one) is not None and "days ns" in one.tags
    )
    exact = objective(model, exact_blocks(model))
    statement = _Statement(model, scaling_of(model))
    statement.solve(1e-11, 10.0)
    assert float(objective(model, statement.blocks())) == pytest.approx(float(exact), rel=1e-10)
    for shift in (1 - 1e-5, 1 + 1e-5):
        assert objective(model, {name: shift * block for name, block in exact_blocks(model).items()}) > exact
