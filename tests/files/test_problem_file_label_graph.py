"""Problem files over a graph of labels: how weights are declared, examples/cgm.toml from end to end, and what is refused where."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import DataError, ModelError
from tests.loops import for_each

pytestmark = pytest.mark.usefixtures("a_hundred_columns")

FILE = Path(__file__).parents[2] / "examples" / "cgm.toml"
DATA = """
[data]
dataset = "label_graph"
n_labels = 4
n_features = 3
edges = [[0, 1], [0, 2]]
n_train = 40
n_test = 1
random_state = 0
"""
STATED = 'minimize = "clique_hinge(U, V, tasks) + 0.1 * ridge(U) + 0.1 * ridge(V)"\n' + DATA


@for_each(
    "declared, members",
    [
        ('"EdgeWeights"', ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
        ('{kind = "EdgeWeights", edges = "all"}', ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
        ('{kind = "EdgeWeights", edges = [["y0", "y2"], [3, 1]]}', ((0, 2), (1, 3))),
        ('{edges = [["y0", "y2", "y3"]]}', ((0, 2, 3),)),
        ('{kind = "EdgeWeights", edges = []}', ()),
    ],
)
def test_edges_are_declared_with_the_weights(load, declared, members):
    file = load(STATED + f'[weights]\nU = {{kind = "NodeWeights"}}\nV = {declared}\n')
    nodes, edges = file.problem.weights
    assert nodes.shape == (3, 8) and edges.cliques.members == members and edges.tasks is file.tasks_train
    if not members:
        assert file.problem.solve(tol=1e-2).graph.number_of_edges() == 0


WEIGHTS = '[weights]\nU = "NodeWeights"\nV = "EdgeWeights"\n'
WRONG = [
    ("", "1:26", 'there is no name \'U\'; declare it in [weights]: U = "NodeWeights"'),
    ('[weights]\nU = "NodeWeights"\n', "1:29", 'there is no name \'V\'; declare it in [weights]: V = "EdgeWeights"'),
    ('[weights]\nU = "NodeWeight"\nV = "EdgeWeights"\n', "12:6", "no weights of the kind 'NodeWeight'; did you mean 'NodeWeights'?"),
    ('[weights]\nU = 3\nV = "EdgeWeights"\n', "12:5", 'of a graph of labels U = "NodeWeights" or U = "EdgeWeights"'),
    ('[weights]\nU = {kind = "NodeWeights", intercept = 1}\nV = "EdgeWeights"\n', "12:40", "intercept must be true or false"),
    ('[weights]\nU = "NodeWeights"\nV = {kind = "EdgeWeights", intercept = true}\n', "13:28", "EdgeWeights have no intercept; give the inputs a column of ones"),
    ('[weights]\nU = {kind = "NodeWeights", edges = "all"}\nV = "EdgeWeights"\n', "12:28", 'edges are those of V = {kind = "EdgeWeights", edges = ...}'),
    ('[weights]\nU = "NodeWeights"\nV = {kind = "EdgeWeights", edges = "none"}\n', "13:37", 'edges must be "all", or a list of pairs of labels such as'),
    ('[weights]\nU = "NodeWeights"\nV = {kind = "EdgeWeights", edges = [["y0", "y9"]]}\n', "13:36", "'y9' in ['y0', 'y9'] is not a label; there are 'y0', 'y1'"),
    ('[weights]\nU = "NodeWeights"\nV = {kind = "EdgeWeights", edges = [["y0"]]}\n', "13:36", "['y0'] has 1 labels; an edge has two"),
    ('[weights]\nU = "NodeWeights"\nV = {kind = "EdgeWeights", edges = [[0, 1], [1, 0]]}\n', "13:36", "the edge [1, 0] stands twice"),
    ('[weights]\nU = "NodeWeights"\nV = {kind = "EdgeWeights", edge = "all"}\n', "13:28", "has no key 'edge'; did you mean 'edges'?"),
    ('[weights]\nU = {}\nV = "EdgeWeights"\n', "1:13", 'write U = "NodeWeights" in [weights]'),
    ('[weights]\nU = "NodeWeights"\nV = {}\n', "1:13", 'V = "EdgeWeights" in [weights]'),
]  # fmt: skip


@for_each("tables, place, message", WRONG)
def test_a_mistake_is_shown_where_it_stands(load, tables, place, message):
    with pytest.raises((ModelError, DataError)) as error:
        load(STATED + tables)
    assert f"p.toml:{place}: " in str(error.value) and message in str(error.value), str(error.value)


def test_a_named_model_with_edges_of_its_own(load):
    file = load(
        'model = "Structured SVM"\n'
        + DATA
        + '[weights]\nV = {edges = [["y0", "y1"]]}\n[parameters]\nlam = 0.1\n'
    )
    assert [w.name for w in file.problem.weights] == ["U", "V"]
    assert file.problem.weights[1].cliques.members == ((0, 1),)


@pytest.fixture(scope="module")
def solved():
    file = load_problem(FILE)
    return file, file.problem.solve(**file.solve)


@pytest.mark.slow
def test_the_example_is_proven_and_agrees_with_the_enumeration(solved):
    file, solution = solved
    assert solution.is_optimal and solution.solver == "clique_generation" and solution.certified.all()
    assert file.problem.cross_check(solution, **file.check).agrees
    graph = solution.label_graph  # its strongest edges are those that made the data
    assert {graph.labels_of(c) for c in graph.used[:3].tolist()} == {("y0", "y1"), ("y0", "y2"), ("y0", "y3")}
    # as the comment in the file says: two more, weaker ones
    assert len(graph.used) == 5 and graph.weights[graph.used[3]] < graph.weights[graph.used[2]] / 2


@pytest.mark.slow
def test_the_report_has_the_graph(solved, capsys):
    _, solution = solved
    assert main(["solve", str(FILE), "--no-check"]) == 0
    out = capsys.readouterr().out
    section = out[out.index("Label graph") :]
    assert "5 of 10 candidates have weights" in section
    assert "75 of 75 maxima over labellings in the certificate are exact" in section
    assert "enumeration of all labellings, treewidth 2 (min-fill): exact" in section
    lines = [line for line in section.splitlines() if line.strip().startswith(("y0 –", "y1 –", "y3 –"))]
    assert len(lines) == 5 and lines[0].split()[:3] == ["y0", "–", "y2"]
    assert "Υ(y) − Υ(yᵢ)" in out.split("Data")[0]

    assert main(["solve", str(FILE), "--no-check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["solution"]["label_graph"]
    assert (found["labels"], found["candidates"], found["edges"]) == (5, 10, 5)
    assert found["certified"] == {"exact": 75, "rows": 75}
    first = found["listed"][0]
    graph = solution.graph.edges["y0", "y2"]
    assert first["labels"] == ["y0", "y2"] and first["weight"] == pytest.approx(graph["weight"], rel=1e-3)
    assert first["attraction"] == pytest.approx(graph["attraction"], abs=0.02)
    usage = solution.edge_usage(load_problem(FILE).tasks_train)
    assert first["usage"] == pytest.approx(usage["y0", "y2"], abs=0.02) and usage["y0", "y2"] == max(
        usage.values()
    )


@pytest.mark.slow
def test_the_report_of_standardised_tasks_and_of_no_edges(load, capsys, tmp_path):
    load(STATED.replace("[data]", "[data]\nstandardize = true") + WEIGHTS)
    assert main(["solve", str(tmp_path / "p.toml"), "--no-check", "--tol", "1e-2"]) == 0
    assert "6 of 6 candidates have weights" in capsys.readouterr().out
    load(STATED + '[weights]\nU = "NodeWeights"\nV = {edges = []}\n')
    path = tmp_path / "r.html"
    arguments = ["solve", str(tmp_path / "p.toml"), "--no-check", "--tol", "1e-2", "--output", str(path)]
    assert main(arguments) == 0
    assert "0 of 0 candidates have weights" in capsys.readouterr().out
    assert "Label graph" in path.read_text()


def test_a_run_that_selects_a_graph_says_so(capsys):
    arguments = ["solve", str(FILE), "--no-check", "--solver", "clique_generation", "--set", "max_edges=2"]
    assert main(arguments) == 1  # the gap that was asked for is not reached
    out = capsys.readouterr().out
    assert "stopped by the rule for a small graph" in out and "2 of 10 candidates have weights" in out


def test_the_block_on_the_page_is_a_model(load, tmp_path):
    page = (FILE.parents[1] / "docs" / "problem_files.md").read_text()
    (block,) = (one for one in re.findall(r"```ini\n(.*?)```", page, re.DOTALL) if "NodeWeights" in one)
    rng = np.random.default_rng(0)
    rows = ["a,b,sea,beach,city,snow"]
    rows += [",".join(map(str, [*rng.normal(size=2).round(3), *rng.choice([-1, 1], 4)])) for _ in range(30)]
    (tmp_path / "places.csv").write_text("\n".join(rows))
    file = load(block + '[data]\npath = "places.csv"\nlabels = ["sea", "beach", "city", "snow"]\n')
    solution = file.problem.solve(tol=1e-4)
    assert solution.is_optimal and solution.label_graph.cliques.members == ((0, 1), (0, 3), (2, 3))
    assert solution.label_graph.shares.sum() <= 2 + 1e-9
