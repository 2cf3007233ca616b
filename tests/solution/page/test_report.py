"""The page of a solution: complete, self-contained, accessible, and true to the numbers."""

import re
import sys
import warnings

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.display.html import html_of
from mtldsl.display.sections import Panel, Table
from tests.page_text import PageText

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    Y = np.sign(X @ rng.normal(size=(6, 3)) + 0.8 * rng.normal(size=(120, 3)) - 0.8)
    return mtl.Tasks.shared(X, Y, task_names=["a", "<script>", "c"]).split(test_size=0.3, random_state=0)


@pytest.fixture(scope="module")
def model(parts):
    W, lam = mtl.Weights(parts[0], intercept=True), mtl.Parameter(1.0, "lam")
    loss = mtl.structured_hinge(W, parts[0], metric=mtl.metrics.FScore(beta=2.0))
    return lam, mtl.minimize(loss + lam * mtl.l21_norm(W) + 0.1 * mtl.ridge(W))


@pytest.fixture(scope="module")
def page(parts, model, tmp_path_factory):
    lam, problem = model
    solution = problem.solve(tol=1e-6)
    told = {
        "cross_check": problem.cross_check(solution),
        "cross_validation": problem.cross_validate(lam, values=[3.0, 1.0], folds=2),
        "path": list(problem.path(lam, [3.0, 1.0])),
    }
    path = solution.report(tmp_path_factory.mktemp("page") / "fit", parts[1], title="Held out", bootstrap=20, **told)  # fmt: skip
    assert path.suffix == ".html"
    return solution, path.read_text(encoding="utf-8")


SECTIONS = (
    "What was learned", "Cross-check", "How the parameter was chosen", "The path of 2 solutions", "How the solve went", "The data",
    "The model", "Solvers", "How to repeat it", "Learned from", "Scored on", "Measured on 36 rows that were not learned on.",
)  # fmt: skip


@pytest.mark.slow
def test_the_score_comes_first_then_the_proof_then_sections(page, parts):
    """Names of strangers are text, and scores are those of the held out rows."""
    solution, html = page
    text = PageText(html).text
    order = [
        "On 36 rows that were not learned on",
        "Certified: the optimum, proven; the cross-check agrees",
        "How well it predicts",
    ]
    assert solution.is_certified and sorted(order, key=text.index) == order
    assert f"{solution.relative_gap:.1e}" in text and f"{solution.objective:.6g}" in text
    assert [each for each in (*SECTIONS, solution.trained_on.fingerprint()) if each not in text] == []
    assert "&lt;script&gt;" in html and "<script>" not in html
    for metric in (mtl.metrics.FScore(beta=2.0), "f1", "roc_auc", "accuracy"):
        for score in solution.scores(parts[1], metric):
            assert f"{score:.3f} [" in text, metric
    first, held_out = (one.per_task(one.targets)[0] for one in parts)
    assert f"{np.mean(held_out == (1.0 if np.mean(first) >= 0 else -1.0)):.3f}" in text


@pytest.mark.slow
def test_pictures_have_words_and_nothing_is_fetched(page):
    """Headings have an order, too."""
    found = PageText(page[1])
    images = found.all("img")
    assert not found.all("script") and not found.all("link")
    assert all(img["src"].startswith("data:image/svg+xml;base64,") for img in images)
    assert not re.search(r"url\(|@import|src=\"http", page[1])
    assert len(images) >= 5 and all(len(img["alt"]) > 10 for img in images)
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and set(levels) == {1, 2}
    targets = {attrs["id"] for _, attrs in found.tags if "id" in attrs}
    assert {a["href"].removeprefix("#") for a in found.all("a")} == targets
    assert found.all("html")[0]["lang"] == "en"


@pytest.mark.slow
def test_rows_of_training_flatter_and_the_page_says_so(model, tmp_path):
    html = (
        model[1].solve(tol=1e-4).report(tmp_path / "r.html", title="a < b\x1b[2J", bootstrap=20).read_text()
    )
    assert "the rows that it was learned on, which flatters it" in html and "not cross-checked" in html
    assert (
        "\x1b" not in html and r"<title>a &lt; b\x1b[2J</title>" in html
    )  # control characters are spelled out


@pytest.mark.slow
def test_what_is_not_certified_is_not_green(model, tmp_path):
    solution = model[1].solve(solver="admm", max_iter=1, tol=1e-12)
    html = solution.report(tmp_path / "r.html", bootstrap=0).read_text()
    assert "NOT certified: iteration limit" in html and 'class="banner wrong"' in html


@pytest.mark.slow
def test_a_loaded_solution_says_that_nobody_verified_it(page, parts, tmp_path):
    loaded = mtl.Solution.load(page[0].save(tmp_path / "w.npz"))
    html = loaded.report(tmp_path / "r.html", parts[1], bootstrap=20).read_text()
    assert "As its file says, not verified here: optimal" in html and 'class="banner neutral"' in html
    assert "A guess is the same label for every row, the one that scores better on these rows" in html


@pytest.mark.slow
def test_without_matplotlib_there_are_no_pictures(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    html = model[1].solve(tol=1e-3).report(tmp_path / "r.html", bootstrap=0).read_text()
    assert not PageText(html).all("img") and "How well it predicts" in html


def test_an_ending_of_another_format_is_refused(model, tmp_path):
    solution = model[1].solve(tol=1e-3)
    for name in ("r.pdf", "r.txt", "r.json", "r.PNG"):
        with pytest.raises(mtl.DataError, match=r"page of HTML.*write '.*r\.html'"):
            solution.report(tmp_path / name, bootstrap=0)
        assert not (tmp_path / name).exists()
    assert solution.report(tmp_path / "r.HTM", bootstrap=0).exists()


def test_a_table_wider_than_the_page_says_that_it_scrolls():
    def page(columns):
        return html_of(Panel("", tables=[Table(["measure"] * columns, [["0.627 [0.465, 0.745]"] * columns])]))

    kinds = [re.findall(r'<p class="(hint[a-z ]*)">', page(columns)) for columns in (2, 4, 5, 7, 9)]
    assert kinds == [[], ["hint"], ["hint wide"], ["hint wider"], ["hint widest"]]


def test_only_long_words_of_a_table_may_be_broken():
    rows = [["Comprehensive school 3", "a_name_that_cannot_be_broken", "0.5"]]
    page = html_of(Panel("", tables=[Table(["task", "feature", "score"], rows)]))
    kinds = re.findall(r"<td([^>]*)>", page)
    assert kinds == ["", ' class="long"', ' class="number"']


@pytest.mark.slow
def test_learned_matrices_are_drawn_and_told_by_their_pairs(tmp_path):
    """Numbers have measures of their own; of 14 tasks the matrix is told by its strongest pairs too."""
    for m in (3, 14):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(60, 3))
        tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, m)) + rng.normal(size=(60, m)))
        W, S = mtl.Weights(tasks), mtl.TaskPrecision(tasks, name="S")
        objective = mtl.squared_loss(W, tasks) + mtl.matrix_normal(W, np.eye(3), S)
        solution = mtl.minimize(objective, subject_to=[S >> 0.1, S << 10]).solve()
        found = PageText(solution.report(tmp_path / "r.html", bootstrap=20).read_text())
        assert "Learned beside the weights" in found.text and "LearnedMatrix" not in found.text
        assert "a stationary point; no proof of a global optimum exists" in found.text
        assert "R²" in found.text and "mean absolute error" in found.text and "proven gap" not in found.text
        assert f"{solution.scores(tasks)[0]:.3f} [" in found.text
        assert any("a picture of S" in img["alt"] for img in found.all("img"))
    correlation = np.triu(solution.S.correlation, 1)
    i, j = np.unravel_index(np.abs(correlation).argmax(), correlation.shape)
    assert f"{tasks.task_names[i]} {tasks.task_names[j]} {correlation[i, j]:+.2f}" in found.text
    assert "more pairs are not shown" in found.text


@pytest.mark.slow
def test_a_picture_of_strange_names_is_drawn_without_a_warning(tmp_path):
    rng = np.random.default_rng(0)
    names = ["a name that goes on and on to its end, " + c for c in "日本語"] + ["a\u202eb"]
    tasks = mtl.Tasks.shared(rng.normal(size=(40, 4)), np.sign(rng.normal(size=(40, 4))), task_names=names)
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)).solve()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = solution.report(tmp_path / "r.html", bootstrap=20).read_text()
    assert all(name in html for name in names[:3]) and "\u202e" not in html and r"a\u202eb" in html


@pytest.mark.slow
def test_thresholds_are_told(page, parts, tmp_path):
    def text(solution):
        return PageText(solution.report(tmp_path / "p.html", parts[1], bootstrap=0).read_text()).text

    tuned = page[0].tune_threshold(parts[1])
    low, high = tuned.thresholds.min(), tuned.thresholds.max()
    said = f"where its score reaches the tuned threshold of its task: {low:.3g} to {high:.3g}, where 0 is untuned."
    assert "tuned threshold" not in text(page[0]) and said in text(tuned)


@pytest.mark.slow
def test_alarms_of_rare_labels_are_those_of_scikit_learn(tmp_path):
    """Per 1,000 rows, at the tuned thresholds; labels that are not rare have no such table."""
    from sklearn.metrics import precision_score, recall_score

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    Z = X @ rng.normal(size=(4, 2)) + 0.3 * rng.normal(size=(400, 2))
    for share, rare in ((0.08, True), (0.45, False)):
        Y = np.where(np.quantile(Z, 1 - share, axis=0) < Z, 1.0, -1.0)
        train, test = mtl.Tasks.shared(X, Y).split(test_size=0.5, random_state=0)
        W = mtl.Weights(train, intercept=True)
        solution = mtl.minimize(mtl.logistic_loss(W, train) + mtl.ridge(W)).solve().tune_threshold(train)
        text = PageText(solution.report(tmp_path / "r.html", test, bootstrap=0).read_text()).text
        assert ("alarms, per 1,000 rows" in text) == rare
        for i, y in enumerate(test.per_task(test.targets)):
            called = solution.predict(test.X)[:, i]
            rates = (f"{1000 * np.mean(one > 0):,.0f}" for one in (y, called))
            judged = (f"{measure(y, called):.3f}" for measure in (precision_score, recall_score))
            assert (" ".join((*rates, *judged)) in text) == rare
