"""Problem files with similarities of tasks: groups, kernels from arrays, weights that are learned."""

import numpy as np
import pytest

from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import DataError, ModelError
from tests.loops import for_each

pytestmark = pytest.mark.usefixtures("a_hundred_columns")

CITIES = ["Oslo", "Bergen", "Rome", "Milan"]
KEPT = """
minimize = "C * hinge_loss(W, tasks) + mkl_norm(W, [tree(parents)], theta)"
subject_to = ["p_norm(theta, 2) <= 1"]
[data]
path = "shops.csv"
labels = "bought"
task = "city"
[split]
test_size = 0.25
[learned]
theta = "KernelWeights"
[parameters]
C = 1.0
[groups]
parents = {Oslo = "north", Bergen = "north", Rome = "south", Milan = "south", north = "all", south = "all"}
"""
PARENTS = KEPT[KEPT.index("[groups]") :]
PLAIN = """
minimize = "hinge_loss(W, tasks) + mkl_norm(W, [%s], p=1.5)"
[data]
path = "shops.csv"
labels = "bought"
task = "city"
"""


@pytest.fixture
def write(tmp_path):
    """text -> the path of a problem file beside other files and the rows of four shops, two of them nearly alike"""
    rng = np.random.default_rng(3)
    weights = np.repeat(rng.normal(size=(2, 4)), 2, axis=0) + 0.3 * rng.normal(size=(4, 4))
    rows = ["city,a,b,c,d,bought"]
    for city, w in zip(CITIES, weights, strict=True):
        for x in rng.normal(size=(24, 4)):
            rows.append(f"{city},{','.join(map(str, x))},{1 if x @ w + 0.4 * rng.normal() > 0 else -1}")
    (tmp_path / "shops.csv").write_text("\n".join(rows))
    np.savetxt(tmp_path / "R.csv", 0.5 ** np.abs(np.subtract.outer(range(4), range(4))), delimiter=",")
    for name, content in {"one": "Oslo,north\nBergen", "twice": "Oslo,a\nOslo,b", "empty": ""}.items():
        (tmp_path / f"{name}.csv").write_text(content)

    def written(text):
        path = tmp_path / "p.toml"
        path.write_text(text)
        return path

    return written


def test_a_tree_from_a_file_and_from_positions(write, tmp_path):
    (tmp_path / "tree.csv").write_text(
        "Oslo,north\nBergen, north\nRome,south\n\nMilan,south\nnorth,all\nsouth,all\nall,\n"
    )
    stored = load_problem(write(KEPT.replace(PARENTS, '[groups]\nparents = "tree.csv"\n'))).problem
    listed = load_problem(
        write(KEPT.replace(PARENTS, "[arrays]\nparents = [4, 4, 5, 5, 6, 6, -1]\n"))
    ).problem
    inline = load_problem(write(KEPT)).problem
    W = {"W": np.random.default_rng(0).normal(size=(4, 4))}
    values = [problem.form().value(W) for problem in (stored, listed, inline)]
    assert np.isfinite(values[0]) and values == pytest.approx([values[0]] * 3, rel=1e-12)


SIMILARITIES = [
    ("clusters(labels), individual()", '[groups]\nlabels = ["a", "a", "b", "b"]', ["cluster a", "cluster b", *CITIES]),
    ("clusters(labels), identity()", "[groups]\nlabels = [7, 7, 8, 8]", ["cluster 7", "cluster 8", "identity"]),
    ("clusters(of)", '[groups.of]\nMilan = "x"\nRome = "x"\nBergen = "y"\nOslo = "z"', ["cluster x", "cluster y", "cluster z"]),
    ("laplacian(L, gamma=0.5)", "[arrays]\nL = [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]", ["laplacian"]),
    ("from_kernel(R), union()", '[arrays]\nR = {path = "R.csv"}', ["kernel", "union"]),
    ("identity(columns=[\'a\', \'b\']), identity(columns=rest)", "[arrays]\nrest = [2, 3]", ["['a', 'b']: identity", "[2, 3]: identity"]),
]  # fmt: skip


@pytest.mark.slow
@for_each("typed, tables, names", SIMILARITIES)
def test_groups_and_kernels_of_a_file(write, typed, tables, names):
    solution = load_problem(write(PLAIN % typed + tables)).problem.solve()
    assert solution.status == "optimal" and list(solution.kernel_weights.names) == names
    assert np.linalg.norm(solution.kernel_weights.values, 1.5) == pytest.approx(1.0, rel=1e-6)


WRONG = [
    (KEPT.replace('[learned]\ntheta = "KernelWeights"\n', "").replace('subject_to = ["p_norm(theta, 2) <= 1"]\n', ""),
     "2:69", 'there is no name \'theta\'; declare it in [learned]: theta = "KernelWeights"'),
    (KEPT.replace('subject_to = ["p_norm(theta, 2) <= 1"]\n', ""), "2:13", "p_norm(theta, 2) <= 1"),
    (KEPT.replace('Milan = "south", ', ""), "2:40", "task 'Milan' is not in the tree"),
    (KEPT.replace(', south = "all"}', "}"), "2:40", "stand only as parents, and one root alone may"),
    (KEPT.replace('north = "all"', 'north = 1'), "15:87", "a group is a name in quotes, not a number"),
    (KEPT.replace(PARENTS, "[groups]\nparents = 3\n"), "15:11", "or the path of a CSV file, not a number"),
    (KEPT.replace(PARENTS, '[groups]\nparents = "none.csv"\n'), "15:12", "none.csv: there is no such file"),
    (KEPT.replace(PARENTS, '[groups]\nparents = "one.csv"\n'), "15:12", "line 2 has to hold a name and its group, such as Oslo,north"),
    (KEPT.replace(PARENTS, '[groups]\nparents = "twice.csv"\n'), "15:12", "line 2: 'Oslo' is in a group already"),
    (KEPT.replace(PARENTS, '[groups]\nparents = "empty.csv"\n'), "15:12", "the file is empty"),
    (KEPT.replace("parents = {", "tree = {").replace("tree(parents)", "tree(tree)"), "15:1", "'tree' is a word of the language"),
    (PLAIN % "clusters(labels)" + '[groups]\nlabels = ["a", "b", true, "b"]', "8:21", "a group is a name in quotes, not a truth value"),
    (PLAIN % "clusters(labels)" + '[groups]\nlabels = ["a", "b"]', "2:36", "2 labels for 4 tasks"),
]  # fmt: skip


@pytest.mark.slow
@for_each("text, place, message", WRONG)
def test_a_mistake_is_shown_where_it_stands(write, text, place, message):
    with pytest.raises((DataError, ModelError)) as error:
        load_problem(write(text))
    assert f"p.toml:{place}: " in str(error.value) and message in str(error.value)
