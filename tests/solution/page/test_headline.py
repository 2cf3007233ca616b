"""The first lines of a page: the score that was learned for, beside the better constant, with an interval and the judgement in words."""

import re
from html import unescape

import numpy as np
import pytest
from sklearn.metrics import f1_score, r2_score

import mtldsl as mtl
from mtldsl.display.html import Page, PageSection, figure, html_page
from mtldsl.report import plot_weights
from mtldsl.solution.headline_sections import ReportContext, lead, numbers
from mtldsl.solution.score_sections import scores
from mtldsl.solution.solution_page import html_report
from tests.loops import for_each
from tests.models import shared


def made(noise=0.5, n=400, m=3, cut=-0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = np.where(X @ rng.normal(size=(5, m)) + noise * rng.normal(size=(n, m)) > cut, 1.0, -1.0)
    return mtl.Tasks.shared(X, Y).split(test_size=0.4, random_state=0)


def fitted(train, loss=mtl.logistic_loss, lam=1.0, tol=1e-6, **words):
    W = mtl.Weights(train, intercept=True)
    return mtl.minimize(loss(W, train, **words) + lam * mtl.ridge(W)).solve(tol=tol)


def columns(tasks):
    return tasks.per_task(tasks.targets)


def test_the_first_tile_is_the_score_beside_the_best_guess():
    """F1 of "never +1" is 0: everything is better. Most labels here are +1, and "always +1" has a high F1."""
    train, test = made()
    solution = fitted(train)
    facts = ReportContext(solution, test)
    tile, words = numbers(facts)[0], lead(facts)
    found = solution.scores(test, "f1")
    always = np.mean([f1_score(y > 0, np.ones(len(y))) for y in columns(test)])
    assert tile.name == "F1, mean of 3 tasks, held out" and tile.value == f"{np.mean(found):.3f}"
    assert always > 0.5 and f"a guess has {always:.3f}" in tile.means and tile.tone == "good"
    low, high = map(float, re.search(r"95 % interval: (\S+) to (\S+);", tile.means).groups())
    assert low < np.mean(found) < high
    said = " ".join(words)
    assert "better than a guess" in words[0] and solution.solver not in said and "_" not in said
    assert "3 tasks, 5 features, learned from 240 rows; solved in" in said
    assert "On 160 rows that were not learned on, its F1, in the mean of 3 tasks, is" in said


def test_a_rare_label_is_not_guessed_by_never_saying_it():
    train, test = made(noise=60.0, cut=75.0)
    tile = numbers(ReportContext(fitted(train), test))[0]
    always = np.mean([f1_score(y > 0, np.ones(len(y))) for y in columns(test)])
    assert 0.1 < always < 0.4 and f"a guess has {always:.3f}" in tile.means and tile.tone != "good"
    assert "not shown to be better" in tile.means or "WORSE than a guess" in tile.means


def test_a_model_that_is_worse_than_the_mean_says_so():
    train, test = shared(4, n=300).split(test_size=0.5, random_state=0)
    against = mtl.Tasks.shared(-test.X, np.column_stack(columns(test)))
    solution = fitted(train, mtl.squared_loss)
    facts = ReportContext(solution, against)
    tile, pairs = numbers(facts)[0], zip(columns(against), solution.predict(-test.X).T, strict=True)
    assert tile.tone == "wrong" and "WORSE than a guess" in tile.means
    assert tile.value == f"{np.mean([r2_score(y, p) for y, p in pairs]):.3f}"
    assert "WORSE than a guess" in lead(facts)[0]


@pytest.mark.slow
def test_the_metric_learned_for_or_chosen_by_comes_first():
    train, test = made(n=80)
    learned = fitted(train, mtl.structured_hinge, tol=1e-2, metric=mtl.metrics.FScore(beta=2.0))
    assert numbers(ReportContext(learned, test, bootstrap=20))[0].name.startswith(
        "FScore(beta=2.0), mean of 3"
    )
    W, lam = mtl.Weights(train, intercept=True), mtl.Parameter(1.0, "lam")
    problem = mtl.minimize(mtl.logistic_loss(W, train) + lam * mtl.ridge(W))
    chosen = problem.cross_validate(lam, values=[3.0, 1.0], folds=2, metric="roc_auc")
    facts = ReportContext(problem.solve(), test, cross_validation=chosen, bootstrap=20)
    assert numbers(facts)[0].name.startswith("ROC area, mean of 3")
    assert [one.name for one in facts.measures[0]] == ["ROC area", "F1", "accuracy"]
    first = numbers(ReportContext(learned, test, metrics=("accuracy",), bootstrap=20))[0]
    assert first.name.startswith("accuracy, mean")


def test_without_held_out_rows_there_is_no_score_on_top():
    train, _ = made()
    facts = ReportContext(fitted(train))
    tile = numbers(facts)[0]
    assert (tile.name, tile.value) == ("score on new rows", "not known")
    assert "no rows were held out" in tile.means
    assert lead(facts)[0] == "Nothing is known of how well it predicts new rows: none were held out."


@pytest.mark.slow
def test_samples_are_an_option(tmp_path):
    train, test = made(n=150)
    solution = fitted(train)

    def page(**options):
        return solution.report(tmp_path / "a.html", test, **options).read_text()

    bare = page(bootstrap=0)
    assert "Without intervals (bootstrap=0)" in bare and f"{solution.scores(test, 'f1')[0]:.3f} [" not in bare
    assert "without an interval, nobody knows whether that is chance" in bare
    few, found = page(bootstrap=20, random_state=7), solution.bootstrap(test, "f1", 20, random_state=7)
    assert "95 % intervals, from 20 samples" in few and f"{found.low:.3f} to {found.high:.3f}" in few
    assert page(bootstrap=20, random_state=7) == few
    assert "better than a guess" in page(bootstrap=20, random_state=np.random.default_rng(0))
    for wrong in ({"bootstrap": 1}, {"bootstrap": -3}, {"bootstrap": 2.5}, {"random_state": "seed"}):
        with pytest.raises(mtl.DataError, match=next(iter(wrong))):
            page(**wrong)


def test_a_pair_of_tables_is_answered_in_words(tmp_path):
    train, test = made()
    with pytest.raises(mtl.DataError) as error:
        fitted(train).report(tmp_path / "a.html", (test.X, np.column_stack(columns(test))))
    assert str(error.value) == (
        "report(file, tasks): the rows to score are Tasks, not a pair of tables; write report(file, Tasks.shared(X, Y)), with the names of "
        "the tasks that were learned"
    )


def test_a_solve_that_was_stopped_says_how_much_may_be_missing():
    train, test = made()
    W = mtl.Weights(train)
    solution = mtl.minimize(mtl.absolute_loss(W, train) + mtl.trace_norm(W)).solve(max_iter=1, tol=1e-12)
    said = " ".join(lead(ReportContext(solution, test)))
    assert not solution.is_certified and "The solve ended before the proof did" in said


def test_a_page_from_a_file_claims_no_proof_and_no_score(tmp_path):
    train, _ = made()
    loaded = mtl.Solution.load(fitted(train).save(tmp_path / "w.npz"))
    tiles = {tile.name: tile for tile in numbers(ReportContext(loaded))}
    assert (
        "from the optimum, at most" not in tiles
        and "not verified here" in tiles["gap, as its file says"].means
    )
    assert tiles["score on new rows"].value == "not known"
    said = "Nothing is said here of how well it predicts: no rows with labels were given."
    assert lead(ReportContext(loaded))[0] == said


@pytest.mark.slow
def test_an_interval_without_its_score_is_not_on_top(tmp_path):
    """R^2 of a sample of five labels, nearly equal, divides by next to nothing; the mean over tasks follows the worst."""
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(30, 3)) for _ in range(12)]
    w = rng.normal(size=3)
    tasks = mtl.Tasks.separate(inputs, [X @ w + rng.normal(size=len(X)) for X in inputs])
    train, test = tasks.split(test_size=0.15, random_state=0)
    facts = ReportContext(fitted(train, mtl.squared_loss), test)
    r2, mae = facts.measures[0]
    assert not r2.sound and mae.sound and facts.first is mae
    assert numbers(facts)[0].name == "mean absolute error, mean of 12 tasks, held out"
    html = facts.solution.report(tmp_path / "r.html", test).read_text()
    assert "The mean R² has no interval: that of the samples is wide and biased" in html
    asked = numbers(ReportContext(facts.solution, test, metrics=("r2",)))[0]
    assert asked.name.startswith("R²") and "too few labels in some tasks for an interval" in asked.means


@pytest.mark.parametrize(("rows", "shown"), [(8, False), (10, True)])
def test_a_mean_r2_of_few_labels_has_no_interval(rows, shown):
    train, test = made()
    solution = fitted(train, mtl.squared_loss)
    r2 = next(
        one for one in ReportContext(solution, test.take_rows(slice(rows)), metrics=("r2",)).measures[0]
    )
    assert r2.sound == shown


@pytest.fixture(scope="module")
def one_of_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([X[:, 0] + 0.1 * rng.normal(size=300), rng.normal(size=300)])
    return mtl.Tasks.shared(X, Y, task_names=["learnable", "noise"]).split(test_size=0.4, random_state=0)


def written(train, test, lam, metrics=()) -> str:
    W = mtl.Weights(train, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.l1_norm(W)).solve()
    return html_report(ReportContext(solution, test, metrics=metrics, bootstrap=60))


@pytest.mark.slow
@for_each("metric, name", [("r2", "R²"), ("mae", "mean absolute error")])
def test_noise_is_named_and_what_was_learned_is_not(one_of_noise, metric, name):
    """Where less is better, the upper end of the interval counts."""
    page = written(*one_of_noise, 1.0, [metric])
    assert f"By {name}, it is not shown to be better than a guess in 1 of 2 tasks: 'noise'." in unescape(page)


def test_weights_of_zero_are_a_guess(one_of_noise):
    page = written(*one_of_noise, 1e6)
    assert "not shown to be better than a guess in 2 of 2 tasks: 'learnable', 'noise'." in unescape(page)


@pytest.mark.slow
def test_the_worst_tasks_are_those_with_the_largest_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    Y = X @ rng.normal(size=(2, 45)) + np.linspace(0.1, 5.0, 45) * rng.normal(size=(80, 45))
    train, test = mtl.Tasks.shared(X, Y).split(test_size=0.4, random_state=0)
    facts = ReportContext(fitted(train, mtl.squared_loss), test, metrics=("mae",), bootstrap=0)
    names = [row[0] for row in scores(facts).panels[0].tables[0].rows]
    assert names[0] == test.task_names[np.argmax(facts.measures[0][0].by_task)]
    assert names[19] == test.task_names[np.argmin(facts.measures[0][0].by_task)]


def test_a_title_breaks_between_the_words_of_a_class():
    page = html_page(Page("GroupedMultiTaskRegressorCV: <3 tasks>", "held"))
    assert "<h1>Grouped<wbr>Multi<wbr>Task<wbr>Regressor<wbr>CV: &lt;3 tasks&gt;</h1>" in page
    assert "<title>GroupedMultiTaskRegressorCV: &lt;3 tasks&gt;</title>" in page


@for_each("tasks, wide", [(3, False), (30, True)])
def test_a_map_of_many_tasks_keeps_its_size_on_a_phone(tasks, wide):
    names = [f"school {k}" for k in range(tasks)]
    drawn = figure(lambda: plot_weights(np.ones((4, tasks)), list("abcd"), names, order=None), "weights")
    page = html_page(Page("title", "held", sections=[PageSection("Weights", figures=[drawn])]))
    assert drawn.is_wide == wide == ('<img class="wide" src="data:image/svg' in page)
    assert ("<img src=" in page) != wide
