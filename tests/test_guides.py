"""The guides of docs/guides/, and the pages beside them: their sessions run as they stand, and their links lead somewhere."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.language.constraints import Constraint, RangeConstraint
from mtldsl.language.objective import Objective
from tests.loops import for_each
from tests.test_docs import ROOT, sessions

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in GUIDES if page.name != "README.md"], ids=lambda page: page.stem
)
def test_sessions_of_the_guide_run(page):
    if page.stem == "beyond_one_machine":
        pytest.importorskip("dask.array")
    assert sessions(page) >= 10


def anchors(page: Path) -> set[str]:
    """The headings as repository hosts and the site name them: lower case, spaces to hyphens, no other signs."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


@for_each("page", [*GUIDES, *PAGES], ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page):
    """But for pictures, which are drawn when the site is built."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:", "pictures/", "../pictures/")):
            continue
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {target} is not there"
        if heading and file.suffix == ".md":
            assert heading in anchors(file), f"{page.name}: {target}: {sorted(anchors(file))}"


def pictures():
    """docs/_ext/pictures, as the site imports it."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    folder = str(ROOT / "docs" / "_ext")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import pictures
    import pictures.profiles
    import pictures.weights

    return pictures


def test_every_picture_is_drawn_and_every_drawing_shown():
    shown = set()
    for page in (ROOT / "docs").rglob("*.md"):
        if not any(
            part.startswith("_") or part in ("lessons", "api", "repository")
            for part in page.relative_to(ROOT / "docs").parts
        ):
            shown |= set(re.findall(r"!\[[^\]]+\]\((?:\.\./)?pictures/(\w+)\.png\)", page.read_text()))
    assert shown == set(pictures().drawings())


@pytest.mark.slow
def test_pictures_are_drawn_once(tmp_path):
    drawn = pictures().draw(tmp_path, names=("losses", "solvers"))
    before = {path: path.stat().st_mtime_ns for path in drawn}
    assert len(drawn) == 2 and all(path.stat().st_size > 5_000 for path in drawn)
    again = pictures().draw(tmp_path, names=("losses", "solvers"))
    assert {path: path.stat().st_mtime_ns for path in again} == before


@pytest.mark.slow
def test_a_penalty_whose_assumption_holds_is_the_best():
    weights = pictures().weights
    kinds, table = weights.errors()
    best = dict(zip(kinds, [weights.COMPARED[j] for j in table.argmin(axis=1)], strict=True))
    ridge = table[-1, weights.COMPARED.index("ridge")]
    assert best.pop("many features each, nothing shared") and ridge <= table[-1].min() + 0.01
    assert best == {
        "the same few features": "l21_norm",
        "mixtures of two patterns": "trace_norm",
        "alike, a little different": "mean_regularizer",
        "two known groups": "graph_laplacian",
        "a few features each, nothing shared": "l1_norm",
    }


def cells(line: str) -> list[str]:
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def test_figures_of_the_comparison_are_those_of_the_corpus():
    """Family by family, of the judging half, as `benchmarks/results/corpus.md` has them."""
    corpus = (ROOT / "benchmarks" / "results" / "corpus.md").read_text()
    judging = corpus[corpus.index("## Judging half") :]
    there = judging[judging.index("| family | problems | auto solves") :].split("\n\n")[0].splitlines()[2:]
    means = {cells(line)[0]: cells(line)[5].split(",")[1].strip() for line in there}
    page = (ROOT / "docs" / "comparison.md").read_text()
    said = page[page.index("Geometric means by family") : page.index("Below 1 mtldsl is faster")]
    assert dict(re.findall(r"`(\w+)` (\d\.\d+)", said)) == {k: v for k, v in means.items() if v != "-"}


def test_what_is_said_of_auto_is_what_the_corpus_says():
    corpus = (ROOT / "benchmarks" / "results" / "corpus.md").read_text()
    judging = corpus[corpus.index("## Judging half") :]
    row = re.search(r"^\| 0\.0001 \| (\d+ of \d+) \| \d+ \| (\d+ %) / 100 %", judging, re.MULTILINE)
    assert row
    text = (ROOT / "docs" / "solvers.md").read_text()
    said = re.search(r"`auto` solved (\d+ of \d+) problems.* our best route on (\d+ %)", text)
    assert said and said.groups() == row.groups()


PAGE = Path(__file__).parents[1] / "docs" / "choosing.md"
WHAT_IS_SHARED = PAGE.read_text().split("## 2.")[1].split("## 3.")[0]
CELLS = [line.split(" | ")[1] for line in WHAT_IS_SHARED.splitlines() if line.startswith("| ")][2:]

TASKS = mtl.Tasks.shared(np.eye(6, 4), np.eye(6, 3), task_names=list("abc"))
W, P, Q, L_, S = (mtl.Weights(TASKS, name=name) for name in "WPQLS")
NAMES = {
    "mtl": mtl, "W": W, "P": P, "Q": Q, "L": np.eye(3), "S": S, "w": mtl.Weights(TASKS, name="w", shared=True), "r": 2, "groups": [[0, 1], [2, 3]],
    "lower": 0.1, "upper": 1.0, "trace": 2.0, "parents": {"a": "x", "b": "x", "c": "all", "x": "all"},
    "loss": mtl.squared_loss(W, TASKS, mean=True), "Omega": mtl.TaskCovariance(TASKS),
    "Sigma1": mtl.FeaturePrecision(TASKS), "Sigma2": mtl.TaskPrecision(TASKS),
}  # fmt: skip
TREES = {"rows": [[0, 1], [2, 3], [0, 1, 2, 3]], "columns": [[0, 1], [0, 1, 2]]}


def value_of(text):
    """What is written, with `L` a matrix of weights where it is penalised, and a tree of rows or of columns."""
    side = re.search(r"(rows|columns)=tree", text)
    names = NAMES | {"tree": TREES[side[1]]} if side else NAMES
    names = names | {"L": L_} if "(L)" in text else names
    words = {name: getattr(mtl, name) for name in re.findall(r"(?<![.\w])\w+(?=\()", text)}
    return eval(text, {**words, **names})  # our own page


@for_each("cell", CELLS)
def test_what_the_table_says_can_be_written(cell):
    spans = re.findall(r"`([^`]+)`", cell)
    values = [value_of(text) for text in spans if re.search(r"\(|[<>]", text)]
    kept = [one for one in values if isinstance(one, Constraint | RangeConstraint)]
    for term in [one for one in values if isinstance(one, Objective)] or [mtl.ridge(W)]:
        of = {"P": P + Q, "L": L_ + S}.get(next((n for n in "PL" if f"({n})" in term.text), ""), W)
        lossless = not any(one.is_loss for one in term.terms)
        whole = mtl.squared_loss(of, TASKS) + term if lossless else term
        learned = [
            one
            for one in kept
            if not isinstance(one, RangeConstraint) or str(one).split()[0].split(".")[0] in term.text
        ]
        mtl.minimize(whole, subject_to=learned).form()
