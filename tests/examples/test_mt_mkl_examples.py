"""The problem file examples/mt_mkl.toml and the block on docs/problem_files.md: read, solved and proven."""

import re
from pathlib import Path

import numpy as np
import pytest

from mtldsl.cli.problem_files.problem_file import load_problem

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
