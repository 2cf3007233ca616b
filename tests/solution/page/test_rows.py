"""Which rows a page is scored on, and how it stands beside one model per task."""

import re

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solution.headline_sections import ReportContext, lead, numbers, shortened, verdict
from mtldsl.solution.solution_page import _shown_good


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    names = [f"shop {i}" for i in range(4)]
    inputs = [rng.normal(size=(40, 2)) for _ in names]
    labels = [X @ [2.0, 1.0] + rng.normal(size=len(X)) for X in inputs]
    return mtl.Tasks.separate(inputs, labels, task_names=names).split(test_size=0.4, random_state=0)


def solved(tasks, lam=0.1):
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)).solve(tol=1e-5)


@pytest.fixture(scope="module")
def solution(data):
    return solved(data[0])


def test_tasks_are_matched_by_name(data, solution):
    here = data[1].select(["shop 3", "shop 1"])
    facts = ReportContext(solution, here, metrics=("mae",), bootstrap=0, separate=solution)
    one = facts.first
    np.testing.assert_allclose(one.by_task, solution.scores(data[1], "mae")[[3, 1]])
    assert float(one.separate) == float(one.overall[0]) and facts.n_seen == 0
    assert "2 tasks of 4 have no rows here, and are not scored." in lead(facts)


def test_rows_that_were_learned_on_are_said_to_be(data, solution):
    facts = ReportContext(solution, data[0], bootstrap=20)
    assert lead(facts)[0].startswith("WARNING: on 96 rows that it was learned on, which flatters it")
    assert "rows learned on" in numbers(facts)[0].name and numbers(facts)[0].tone == "neutral"
    assert not _shown_good(facts, facts.first)
    both = [np.vstack(pair) for pair in zip(data[0].inputs, data[1].inputs, strict=True)]
    labels = [np.concatenate(pair) for pair in zip(*(one.per_task(one.targets) for one in data), strict=True)]
    mixed = ReportContext(
        solution, mtl.Tasks.separate(both, labels, task_names=data[0].task_names), bootstrap=0
    )
    assert lead(mixed)[0].startswith("On 160 rows that you gave (96 equal rows that were learned on)")


def test_rows_beside_a_file_are_those_that_were_given(data, solution, tmp_path):
    loaded = mtl.Solution.load(solution.save(tmp_path / "w.npz"))
    facts = ReportContext(loaded, data[1], bootstrap=0)
    assert lead(facts)[0].startswith("On 64 rows that you gave, its")
    assert "cross-check not stored in the file" in verdict(facts)[0]
    assert "not learned on" in lead(ReportContext(loaded, data[1], bootstrap=0, held_out=True))[0]


def test_a_negative_number_that_shows_no_digit_has_no_sign():
    assert [shortened(each) for each in (-0.0, -0.0004, -0.0005001)] == ["0.000", "0.000", "-0.001"]


def test_a_rival_that_scores_higher_is_not_hidden(data, solution):
    weak = solved(data[0], lam=30.0)
    facts = ReportContext(weak, data[1], bootstrap=20, separate=solution)
    assert "which is higher: better than this model" in lead(facts)[0]
    assert numbers(facts)[0].tone == "neutral" and not _shown_good(facts, facts.first)
    strong = ReportContext(solution, data[1], bootstrap=20, separate=weak)
    assert "which is" not in lead(strong)[0] and numbers(strong)[0].tone == "good"


def test_headline_and_tile_tell_the_same(data, solution):
    facts = ReportContext(solution, data[1], bootstrap=20)
    first = facts.first
    object.__setattr__(first, "better", np.array([1.0, 0.0, 0.0, 0.0]))
    assert "better than a guess in the mean, and by itself in 1 of 4 tasks" in lead(facts)[0]
    tile = next(tile for tile in numbers(facts) if tile.name == "shown task by task to beat a guess")
    assert re.match("1 of 4", tile.value) and "on the rows of one task alone" in tile.means


def test_an_interval_without_its_own_score_is_left_out(data, solution):
    from mtldsl.solution.score_intervals import _holding_ends
    from mtldsl.solution.score_sections import scores

    ends = np.array([[-3.7, 0.4, 1 - 2e-16], [0.67, 0.6, 1 - 2e-16]])  # a perfect score, but for rounding
    low, high = _holding_ends(np.array([0.7, 0.5, 1.0]), *ends)
    assert np.isnan(low[0]) and np.isnan(high[0]) and [*low[1:], *high[1:]] == [*ends[0, 1:], *ends[1, 1:]]
    facts = ReportContext(solution, data[1].take_rows([np.arange(4)] * 4), metrics=("r2",), bootstrap=20)
    object.__setattr__(facts.first, "overall", (0.7, -3.68, 0.67, 0.0, 1.0))
    panel = scores(facts).panels[0]
    assert panel.tables[0].rows[-1][2] == "0.700" and np.isnan(facts.first.low).all()
    assert any("has no interval: that of the samples is wide and biased" in note for note in panel.notes)


def test_long_names_of_tasks_do_not_collide():
    pytest.importorskip("matplotlib")
    from mtldsl.display.pictures.heatmap import plot_weights

    names, long = ["flu", "sepsis", "relapse", "allergy"], ["a long name of a feature", "another"]
    for tasks, features, turn in ((names, long, 90), (["a", "b", "c", "d"], ["x", "y"], 0)):
        ax = plot_weights(np.ones((2, 4)), features, tasks, order=None)
        assert {label.get_rotation() for label in ax.get_xticklabels()} == {turn}
