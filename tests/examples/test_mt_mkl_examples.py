"""The problem file examples/mt_mkl.toml and the one on docs/problem_files.md: read, solved, proven, and equal to what Python types."""

import re
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import MTLError
from mtldsl.files.problem_file import load_problem

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "mt_mkl.toml"


@pytest.fixture(scope="module")
def solved():
    file = load_problem(FILE)
    return file, file.problem.solve(**file.solve)


@pytest.mark.slow
def test_the_file_is_proven_and_agrees_with_the_reference(solved):
    """The file is solved with a proof and agrees with the reference."""
    file, solution = solved
    assert solution.is_optimal and solution.solver == "dual_ascent"
    assert file.problem.cross_check(solution, **file.check).agrees


def test_every_node_of_the_tree_in_the_file_has_a_weight(solved):
    file, solution = solved
    assert sorted(solution.theta.names) == sorted(
        [*file.tasks_train.task_names, "rodents", "primates", "mammals", "insects", "animals"]
    )
    assert (solution.theta.values > 0).all()  # p = 2 leaves none at zero where every group has data
    np.testing.assert_allclose(np.linalg.norm(solution.theta.values), 1.0, rtol=1e-9)


def test_python_types_the_same_model(solved):
    """Its tree as a list of positions, theta eliminated, the rows split by hand."""
    file, solution = solved
    tasks = file.tasks_train
    nodes = [*tasks.task_names, "rodents", "primates", "mammals", "insects", "animals"]
    groups = {"mouse": "rodents", "rat": "rodents", "human": "primates", "chimp": "primates", "fly": "insects", "bee": "insects",
              "rodents": "mammals", "primates": "mammals", "mammals": "animals", "insects": "animals"}  # fmt: skip
    positions = [nodes.index(groups[node]) if node in groups else -1 for node in nodes]
    W = mtl.Weights(tasks)
    typed = mtl.minimize(0.1 * mtl.hinge_loss(W, tasks) + mtl.mkl_norm(W, mtl.tree(positions), p=2)).solve(
        tol=1e-7
    )
    # each objective is above the one optimum by at most its own gap, 1e-6 and 1e-7
    np.testing.assert_allclose(solution.objective, typed.objective, rtol=1.1e-6)


def test_tasks_that_share_more_nodes_are_more_alike(solved):
    _, solution = solved
    at = {name: k for k, name in enumerate(solution.theta.task_names)}
    alike = solution.theta.similarity
    for near, far in (("rat", "human"), ("human", "fly")):
        assert alike[at["mouse"], at[near]] > alike[at["mouse"], at[far]]


def block_about_weights() -> str:
    page = (ROOT / "docs" / "problem_files.md").read_text()
    (block,) = (
        found for found in re.findall(r"```ini\n(.*?)```", page, re.DOTALL) if "KernelWeights" in found
    )
    return block


def written(folder: Path, model: str) -> Path:
    rng = np.random.default_rng(0)
    rows = [
        (town, *rng.normal(size=3).round(3))
        for town in ("Oslo", "Bergen", "Rome", "Milan")
        for _ in range(12)
    ]
    lines = [f"{town},{a},{b},{1 if a + 0.5 * noise > 0 else -1}" for town, a, b, noise in rows]
    (folder / "towns.csv").write_text("\n".join(["town,a,b,answer", *lines]) + "\n")
    path = folder / "towns.toml"
    path.write_text(model + '\n[data]\npath = "towns.csv"\ntask = "town"\nlabels = "answer"\n')
    return path


@pytest.mark.slow
def test_the_block_on_the_page_is_a_model(tmp_path):
    file = load_problem(written(tmp_path, block_about_weights()))
    solution = file.problem.solve()
    assert solution.is_optimal and file.problem.cross_check(solution).agrees
    assert solution.theta.names[0] == "union" and solution.theta.names[-1] == "laplacian"
    assert len(solution.theta.names) == 1 + 7 + 1


def test_a_leaf_that_is_no_task_is_named(tmp_path):
    with pytest.raises(MTLError, match=r"towns\.toml:1.*(Osl\b|Oslo)"):
        load_problem(written(tmp_path, block_about_weights().replace("Oslo =", "Osl =")))
