"""The page of a solution: complete, self-contained, accessible, and true to the numbers."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import mtldsl as mtl

pytest.importorskip("matplotlib")


class _Page(HTMLParser):
    VOID = frozenset({"meta", "img", "br", "mspace"})

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    Y = np.sign(X @ rng.normal(size=(6, 3)) + 0.8 * rng.normal(size=(120, 3)) - 0.8)
    return mtl.Tasks.shared(X, Y, task_names=["a", "<script>", "c"]).split(test_size=0.3, random_state=0)


@pytest.fixture(scope="module")
def model(parts):
    W, lam = mtl.Weights(parts[0], intercept=True), mtl.Parameter(1.0, "lam")
    loss = mtl.structured_hinge(W, parts[0], metric=mtl.FScore(beta=2.0))
    return lam, mtl.minimize(loss + lam * mtl.l21_norm(W) + 0.1 * mtl.ridge(W))


@pytest.fixture(scope="module")
def page(parts, model, tmp_path_factory):
    lam, problem = model
    solution = problem.solve(tol=1e-6)
    path = solution.report(
        tmp_path_factory.mktemp("page") / "fit", parts[1], title="Held out", cross_check=problem.cross_check(solution),
        cross_validation=problem.cross_validate(lam, values=[3.0, 1.0], folds=2), path=list(problem.path(lam, [3.0, 1.0])),
    )  # fmt: skip
    assert path.suffix == ".html"
    return solution, path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_verdict_stands_first(page):
    solution, html = page
    text = _Page(html).text
    assert solution.is_certified
    assert text.index("Certified: the optimum, proven; the cross-check agrees") < text.index(
        "How well it predicts"
    )
    assert f"{solution.relative_gap:.1e}" in text and f"{solution.objective:.6g}" in text


def test_nothing_is_fetched(page):
    _, html = page
    found = _Page(html)
    assert not found.all("script") and not found.all("link")
    assert all(img["src"].startswith("data:image/svg+xml;base64,") for img in found.all("img"))
    assert not re.search(r"url\(|@import|src=\"http", html)


def test_pictures_have_words_and_headings_have_order(page):
    found = _Page(page[1])
    images = found.all("img")
    assert len(images) >= 5 and all(len(img["alt"]) > 10 for img in images)
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and set(levels) == {1, 2}
    targets = {attrs["id"] for _, attrs in found.tags if "id" in attrs}
    assert {a["href"].removeprefix("#") for a in found.all("a")} == targets
    assert found.all("html")[0]["lang"] == "en"


def test_scores_are_those_of_the_held_out_rows(page, parts):
    solution, html = page
    text = _Page(html).text
    assert "Measured on rows that were not learned on." in text
    for metric in (mtl.FScore(beta=2.0), "f1", "roc_auc", "accuracy"):
        for score in solution.scores(parts[1], metric):
            assert f"{score:.3f} [" in text, metric
    y = parts[1].per_task(parts[1].targets)[0]
    majority = 1.0 if np.mean(parts[0].per_task(parts[0].targets)[0]) >= 0 else -1.0
    assert f"{np.mean(y == majority):.3f}" in text


def test_names_of_strangers_are_text(page):
    assert "&lt;script&gt;" in page[1] and "<script>" not in page[1]


@pytest.mark.slow
def test_control_characters_are_spelled_out(tmp_path):
    tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)), task_names=["a\u202eb", "c"])
    html = (
        mtl.minimize(mtl.squared_loss(W := mtl.Weights(tasks), tasks) + mtl.ridge(W))
        .solve()
        .report(tmp_path / "r.html", title="x\x1b[2J")
    )
    text = html.read_text()
    assert "\u202e" not in text and "\x1b" not in text and r"a\u202eb" in text and r"x\x1b[2J" in text


def test_every_section_is_there(page):
    text = _Page(page[1]).text
    for heading in (
        "What was learned", "Cross-check", "How the parameter was chosen", "The path of 2 solutions", "How the solve went", "The data",
        "The model", "Solvers", "How to repeat it",
    ):  # fmt: skip
        assert heading in text
    assert "Learned from" in text and "Scored on" in text and page[0].trained_on.fingerprint() in text


@pytest.mark.slow
def test_rows_of_training_flatter_and_the_page_says_so(model, tmp_path):
    html = model[1].solve(tol=1e-4).report(tmp_path / "r.html").read_text()
    assert "the rows that it was learned on, which flatters it" in html
    assert "not cross-checked" in html


@pytest.mark.slow
def test_what_is_not_certified_is_not_green(model, tmp_path):
    solution = model[1].solve(solver="admm", max_iter=1, tol=1e-12)
    html = solution.report(tmp_path / "r.html").read_text()
    assert "NOT certified: iteration limit" in html and 'class="banner wrong"' in html


@pytest.mark.slow
def test_a_loaded_solution_says_that_nobody_verified_it(page, parts, tmp_path):
    loaded = mtl.Solution.load(page[0].save(tmp_path / "w.npz"))
    html = loaded.report(tmp_path / "r.html", parts[1]).read_text()
    assert (
        "As its file says, not verified here: optimal" in html
        and "a guess is the same label for every row, the one that scores better on these rows" in html
    )
    assert 'class="banner neutral"' in html


@pytest.mark.slow
def test_numbers_have_their_own_measures(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(4, 2)) + rng.normal(size=(60, 2)))
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 5.0 * mtl.l21_norm(W)).solve()
    text = _Page(solution.report(tmp_path / "r.html").read_text()).text
    assert "R²" in text and "mean absolute error" in text
    assert f"{solution.scores(tasks)[0]:.3f} [" in text and "Certified: the optimum" in text


@pytest.mark.slow
def test_learned_matrices_are_drawn(tmp_path):
    rng = np.random.default_rng(2)
    tasks = mtl.Tasks.shared(rng.normal(size=(30, 4)), rng.normal(size=(30, 3)))
    W, S = mtl.Weights(tasks), mtl.TaskPrecision(tasks, name="S")
    problem = mtl.minimize(
        mtl.squared_loss(W, tasks) + mtl.matrix_normal(W, np.eye(4), S), subject_to=[S >> 0.1, S << 10]
    )
    solution = problem.solve()
    html = solution.report(tmp_path / "r.html", cross_check=problem.cross_check(solution)).read_text()
    found = _Page(html)
    assert "Learned beside the weights" in found.text and any(
        "a picture of S" in i["alt"] for i in found.all("img")
    )
    assert "a stationary point; no proof of a global optimum exists" in found.text


@pytest.mark.slow
def test_without_matplotlib_there_are_no_pictures(model, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    html = model[1].solve(tol=1e-3).report(tmp_path / "r.html").read_text()
    assert not _Page(html).all("img") and "How well it predicts" in html


def test_a_file_that_cannot_be_written_is_named(model, tmp_path):
    with pytest.raises(mtl.DataError, match="absent"):
        model[1].solve(tol=1e-3).report(tmp_path / "absent" / "r.html")


@pytest.mark.slow
def test_a_large_learned_matrix_is_told_by_its_strongest_pairs(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, 14)) + rng.normal(size=(60, 14)))
    W, S = mtl.Weights(tasks), mtl.TaskPrecision(tasks, name="S")
    problem = mtl.minimize(
        mtl.squared_loss(W, tasks) + mtl.matrix_normal(W, np.eye(3), S), subject_to=[S >> 0.1, S << 10]
    )
    solution = problem.solve()
    found = _Page(solution.report(tmp_path / "r.html").read_text())
    correlation = np.abs(np.triu(solution.S.correlation, 1))
    i, j = np.unravel_index(correlation.argmax(), correlation.shape)
    assert "LearnedMatrix" not in found.text
    assert f"{tasks.task_names[i]} {tasks.task_names[j]} {solution.S.correlation[i, j]:+.2f}" in found.text
    assert "more pairs are not shown" in found.text and "proven gap" not in found.text


@pytest.mark.slow
def test_a_picture_of_strange_names_is_drawn_without_a_warning(tmp_path):
    import warnings

    rng = np.random.default_rng(0)
    names = ["a name that goes on and on to its end, " + c for c in "日本語"]
    tasks = mtl.Tasks.shared(rng.normal(size=(40, 4)), np.sign(rng.normal(size=(40, 3))), task_names=names)
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)).solve()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(name in solution.report(tmp_path / "r.html").read_text() for name in names)


@pytest.mark.slow
def test_thresholds_are_told(page, parts, tmp_path):
    (solution, _), held_out = page, parts[1]
    assert (
        "tuned threshold"
        not in _Page(solution.report(tmp_path / "p.html", held_out, bootstrap=0).read_text()).text
    )
    tuned = solution.tune_threshold(held_out)
    text = _Page(tuned.report(tmp_path / "t.html", held_out, bootstrap=0).read_text()).text
    low, high = tuned.thresholds.min(), tuned.thresholds.max()
    assert (
        f"Labels are +1 from a tuned threshold on, a task's own: a score of {low:.3g} to {high:.3g}, in place of 0."
        in text
    )
