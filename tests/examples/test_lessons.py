"""The lessons, examples/NN_*.py: how they are written, and what those on graphs and kernels say. .ci/run runs them and their solutions."""

import ast
import io
import re
import runpy
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.cli.problem_files.problem_file import load_problem
from tests.loops import for_each

ROOM = Path(__file__).parents[2] / "examples"
LESSONS = sorted(ROOM.glob("[0-9][0-9]_*.py"))
WITH_EXERCISES = [path for path in LESSONS if int(path.name[:2]) <= 14]


def texts(lesson: Path):
    """(line, reST) of the docstring and of every comment that the gallery shows as text: those right below `# %%`."""
    source = lesson.read_text(encoding="utf-8")
    yield 1, ast.get_docstring(ast.parse(source), clean=False)
    lines = source.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# %%"):
            end = next((k for k in range(i + 1, len(lines)) if not lines[k].startswith("#")), len(lines))
            yield i + 1, "\n".join([line[4:].strip(), *(text[2:] for text in lines[i + 1 : end])])


def test_there_are_lessons():
    assert [int(path.name[:2]) for path in LESSONS] == list(range(1, len(LESSONS) + 1))
    assert len(LESSONS) >= 24 and len(WITH_EXERCISES) == 14


@pytest.mark.by_default("08_features_and_tasks")
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_the_gallery_can_show_the_text(lesson):
    """A title with a line below it, and reST without a warning: the site is built with warnings as errors."""
    core = pytest.importorskip("docutils.core")
    title, line, *_ = ast.get_docstring(ast.parse(lesson.read_text(encoding="utf-8"))).splitlines()
    assert title.startswith(f"{int(lesson.name[:2])}. ") and line == "=" * len(title)
    assert len(title) <= 36, "the site's side bar has room for so many letters"
    for at, text in texts(lesson):
        said = io.StringIO()
        core.publish_doctree(text, settings_overrides={"warning_stream": said, "report_level": 2})
        assert not said.getvalue(), f"{lesson.name}, the text at line {at}: {said.getvalue()}"


@pytest.mark.slow
@for_each("lesson", WITH_EXERCISES, ids=lambda path: path.stem)
def test_every_exercise_is_open_and_has_a_solution_with_mistakes(lesson):
    tree = ast.parse(lesson.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    asked = [
        mark.args[0].id
        for check in functions.values()
        for mark in check.decorator_list
        if isinstance(mark, ast.Call) and getattr(mark.func, "id", None) == "exercise"
    ]
    assert len(asked) >= 2, "two or three exercises a lesson"
    solutions = runpy.run_path(str(ROOM / "solutions" / lesson.name))
    for name in asked:
        docstring, body = functions[name].body
        assert isinstance(docstring.value.value, str) and body.value.value is ..., f"{name} is not open"
        assert callable(solutions[name]) and solutions[name].__doc__, f"{name}: the solution says why"
        assert len(solutions[name].mistakes) >= 1, f"{name}: a check that nothing fails proves nothing"


LAM = 0.05


@pytest.mark.slow
def test_the_relaxation_and_its_bound_are_below_every_graph():
    """Lesson 19, as the package solves it."""
    tasks = datasets.make_label_graph(4, 3, [(0, 1), (0, 2)], n_train=14, n_test=2, random_state=4).train
    pairs = list(combinations(range(4), 2))
    graphs = {
        graph: mtl.model("Structured SVM", tasks, lam=LAM, edges=list(graph)).solve(tol=1e-6)
        for size in range(len(pairs) + 1)
        for graph in combinations(pairs, size)
    }
    strict = 0
    for r in range(1, len(pairs) + 1):
        relaxed = mtl.model("CGM", tasks, lam=LAM, r=r).solve(tol=1e-6)
        best = min(one.objective for graph, one in graphs.items() if len(graph) <= r)
        assert relaxed.is_optimal and relaxed.dual_bound <= best
        strict += relaxed.objective < 0.99 * best
    assert strict >= 1  # a relaxation that never was lower would be the integer problem
    np.testing.assert_allclose(relaxed.objective, graphs[tuple(pairs)].objective, rtol=2e-6)  # r = q: a ridge


@pytest.mark.slow
def test_the_rule_selects_the_star_and_refits_the_true_graph():
    """Lesson 18, with fewer rows."""
    star = datasets.make_label_graph(n_train=500, n_test=500, label_noise=0.05, random_state=0)
    problem = mtl.model("CGM", star.train, lam=0.01, r=2)
    selected = problem.solve("clique_generation", graph_selection=True, cliques_per_round=2, tol=1e-3)
    assert selected.status == "selected" and selected.gap > 0.1
    assert sorted(selected.graph.edges) == sorted(star.graph.edges)
    refit = problem.refit(selected).solve(tol=1e-4)
    given = mtl.model("Structured SVM", star.train, lam=0.01, edges=star.graph).solve(tol=1e-4)
    np.testing.assert_allclose(refit.objective, given.objective, rtol=2e-4)
    alone = mtl.model("No edges", star.train, lam=0.01).solve(tol=1e-2)
    assert 1 - refit.score(star.test) < 0.7 * (1 - alone.score(star.test))


ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "mt_mkl.toml"


@pytest.mark.slow
def test_the_file_is_proven_and_its_weights_follow_its_tree():
    file = load_problem(FILE)
    solution = file.problem.solve(**file.solve)
    assert solution.is_optimal and solution.solver == "dual_ascent"
    assert file.problem.cross_check(solution, **file.check).agrees
    theta = solution.theta
    groups = ["rodents", "primates", "mammals", "insects", "animals"]
    assert sorted(theta.names) == sorted([*file.tasks_train.task_names, *groups])
    assert (theta.values > 0).all()  # p = 2 leaves none at zero where every group has data
    np.testing.assert_allclose(np.linalg.norm(theta.values), 1.0, rtol=1e-9)
    at = {name: k for k, name in enumerate(theta.task_names)}
    for near, far in (("rat", "human"), ("human", "fly")):  # tasks that share more nodes are more alike
        assert theta.similarity[at["mouse"], at[near]] > theta.similarity[at["mouse"], at[far]]


@pytest.mark.slow
def test_the_block_on_the_page_is_a_model(tmp_path):
    page = (ROOT / "docs" / "problem_files.md").read_text()
    blocks = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    (model,) = (block for block in blocks if "KernelWeights" in block)
    rng = np.random.default_rng(0)
    towns = [town for town in ("Oslo", "Bergen", "Rome", "Milan") for _ in range(12)]
    rows = [(town, *rng.normal(size=3).round(3)) for town in towns]
    lines = [f"{town},{a},{b},{1 if a + 0.5 * noise > 0 else -1}" for town, a, b, noise in rows]
    (tmp_path / "towns.csv").write_text("\n".join(["town,a,b,answer", *lines]) + "\n")
    path = tmp_path / "towns.toml"
    path.write_text(model + '\n[data]\npath = "towns.csv"\ntask = "town"\nlabels = "answer"\n')
    file = load_problem(path)
    solution = file.problem.solve()
    assert solution.is_optimal and file.problem.cross_check(solution).agrees
    assert solution.theta.names[0] == "union" and solution.theta.names[-1] == "laplacian"
    assert len(solution.theta.names) == 1 + 7 + 1
