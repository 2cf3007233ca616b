"""Similarities between tasks as a user states them: the kernels that they make, and what they refuse."""

import networkx as nx
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError
from tests.loops import for_each

NAMES = ("a", "b", "c")


def tasks_of(names=NAMES, features=("x", "y", "z", "u")):
    rng = np.random.default_rng(0)
    Y = np.where(rng.normal(size=(6, len(names))) > 0, 1.0, -1.0)
    return mtl.Tasks.shared(
        rng.normal(size=(6, len(features))), Y, task_names=list(names), feature_names=list(features)
    )


TASKS = tasks_of()


def matrices(similarity) -> dict[str, np.ndarray]:
    return {kernel.name: kernel.matrix for kernel in similarity.kernels(TASKS, "typed")}


def indicator(*members):
    one = np.array([float(name in members) for name in NAMES])
    return np.outer(one, one)


def same(found, expected):
    assert list(found) == list(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-13)


# --------------------------------------------------------------------------------------------------- the kernels


def test_of_all_tasks():
    same(matrices(mtl.union()), {"union": np.ones((3, 3))})
    same(matrices(mtl.individual()), {name: indicator(name) for name in NAMES})
    same(matrices(mtl.identity()), {"identity": np.eye(3)})
    same(matrices(mtl.evgeniou_pontil(2.0, 4)), {"evgeniou_pontil": 0.5 + np.eye(3) / 4})
    same(matrices(mtl.domain_adaptation()), {"domain_adaptation": 1.0 + np.eye(3)})


@for_each("labels", [["p", "q", "p"], {"c": "p", "b": "q", "a": "p"}])
def test_clusters(labels):
    found = matrices(mtl.clusters(labels))
    expected = {"cluster p": indicator("a", "c"), "cluster q": indicator("b")}
    same(dict(sorted(found.items())), expected)


TREES = {
    "names": {"a": "ab", "b": "ab", "ab": "top", "c": "top", "top": None},
    "positions": [3, 3, 4, 4, -1],
    "graph": nx.DiGraph([("top", "ab"), ("top", "c"), ("ab", "a"), ("ab", "b")]),
    "root without a line of its own": {"a": "ab", "b": "ab", "ab": "top", "c": "top"},
}


@for_each("case", TREES)
def test_tree(case):
    """One indicator a node, the root first, the tasks last."""
    top, inner = ("node4", "node3") if case == "positions" else ("top", "ab")
    expected = {top: np.ones((3, 3)), inner: indicator("a", "b"), **{name: indicator(name) for name in NAMES}}
    same(matrices(mtl.tree(TREES[case])), expected)


def test_a_forest_and_a_tree_of_tasks_alone():
    same(matrices(mtl.tree([3, 3, -1, -1])), {"node3": indicator("a", "b"), **matrices(mtl.individual())})
    same(matrices(mtl.tree({name: None for name in NAMES})), matrices(mtl.individual()))


@for_each("named", ["array", "names", "positions"])
def test_laplacian(named):
    """(I + gamma L)^{-1} of the path a - b - c."""
    L = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    given = {"array": L, "names": nx.path_graph(list(NAMES)), "positions": nx.path_graph(3)}[named]
    same(matrices(mtl.laplacian(given, gamma=0.5)), {"laplacian": np.linalg.inv(np.eye(3) + 0.5 * L)})
    same(matrices(mtl.laplacian(given, gamma=0)), {"laplacian": np.eye(3)})


def test_from_kernel_and_from_similarity():
    R = np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]])
    same(matrices(mtl.from_kernel(R)), {"kernel": R})
    same(matrices(mtl.from_similarity(R)), {"similarity": np.linalg.inv(R)})
    singular = indicator("a", "b")
    same(matrices(mtl.from_kernel(singular)), {"kernel": singular})
    assert mtl.from_kernel(singular).kernels(TASKS, "")[0].factor.shape == (
        3,
        1,
    )  # rank one is stored as such


@for_each(
    "columns, positions",
    [
        (slice(1, 3), [1, 2]),
        (["u", "x"], [0, 3]),
        ("z", [2]),
        ([2, -1], [2, 3]),
        (None, None),
    ],
)
def test_columns(columns, positions):
    for similarity in (
        mtl.union(columns),
        mtl.individual(columns=columns),
        mtl.laplacian(np.eye(3), columns=columns),
    ):
        for kernel in similarity.kernels(TASKS, "typed"):
            assert (None if kernel.columns is None else kernel.columns.tolist()) == positions


def test_printed_as_typed():
    shown = [
        mtl.union(), mtl.individual(columns="z"), mtl.evgeniou_pontil(1, 0.5), mtl.clusters(["aab"] * 3),
        mtl.tree([-1]), mtl.laplacian(np.eye(2), 3), mtl.from_kernel(np.eye(2)), mtl.from_similarity(np.eye(2)),
    ]  # fmt: skip
    assert list(map(repr, shown)) == [
        "union()", "individual(columns='z')", "evgeniou_pontil(lam0=1, lam1=0.5)", "clusters(1 groups of 3 tasks)",
        "tree(1 node)", "laplacian(array(2, 2), gamma=3)", "from_kernel(array(2, 2))", "from_similarity(array(2, 2))",
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------- the refusals

#: as soon as it is typed: helper, what is quoted, the advice
AT_ONCE = {
    "clusters of a word": (
        lambda: mtl.clusters("aab"),
        r"clusters\('aab'\)",
        r"clusters\(\['a', 'a', 'b'\]\)",
    ),
    "clusters of a number": (lambda: mtl.clusters(3), r"clusters\(3\)", "one label a task"),
    "tree of a word": (lambda: mtl.tree("ab"), r"tree\(parents\)", "root: None"),
    "tree of floats": (lambda: mtl.tree([0.5, -1]), r"tree\(parents\)", "-1 for the root"),
    "tree of nothing": (lambda: mtl.tree([]), r"tree\(parents\)", "-1 for the root"),
    "evgeniou_pontil": (lambda: mtl.evgeniou_pontil(0, 1), "evgeniou_pontil.*lam0", "a finite number > 0"),
    "evgeniou_pontil, own": (
        lambda: mtl.evgeniou_pontil(1, -1),
        "evgeniou_pontil.*lam1",
        "a finite number > 0",
    ),
    "laplacian, gamma": (lambda: mtl.laplacian(np.eye(3), -1), "laplacian.*gamma", "a finite number >= 0"),
    "laplacian, indefinite": (
        lambda: mtl.laplacian(-np.eye(3)),
        r"laplacian\(array\(3, 3\), gamma=1\)",
        "semidefinite",
    ),
    "kernel, not symmetric": (
        lambda: mtl.from_kernel([[1, 2], [0, 1]]),
        r"from_kernel\(array\(2, 2\)\)",
        "symmetric",
    ),
    "kernel, indefinite": (
        lambda: mtl.from_kernel([[1, 2], [2, 1]]),
        r"from_kernel\(array\(2, 2\)\)",
        "semidefinite",
    ),
    "kernel, zero": (
        lambda: mtl.from_kernel(np.zeros((3, 3))),
        r"from_kernel\(array\(3, 3\)\)",
        "leave it out",
    ),
    "similarity, singular": (
        lambda: mtl.from_similarity(np.ones((3, 3))),
        r"from_similarity\(array\(3, 3\)\): Q is singular",
        r"write from_kernel\(R\)",
    ),
    "similarity, indefinite": (
        lambda: mtl.from_similarity([[1, 2], [2, 1]]),
        r"from_similarity\(",
        "semidefinite",
    ),
}


@for_each("case", AT_ONCE)
def test_refused_as_soon_as_typed(case):
    make, quoted, advice = AT_ONCE[case]
    with pytest.raises(ModelError, match=quoted) as raised:
        make()
    assert raised.match(advice)


@for_each("Q", [np.diag([1.0, 1.0, 0.0]), np.diag([1.0, 1.0, 1e-17]), indicator("a", "b")])
def test_every_singular_similarity_is_sent_to_from_kernel(Q):
    with pytest.raises(ModelError, match=r"from_kernel\(R\)"):
        mtl.from_similarity(Q)


#: where it meets the tasks
WITH_TASKS = {
    "kernel of other tasks": (mtl.from_kernel(np.eye(2)), r"from_kernel\(array\(2, 2\)\) is of 2 tasks, but there are 3", "a row and a column for every task"),
    "clusters of other tasks": (mtl.clusters(["p", "q"]), "2 labels for 3 tasks", "give one label a task"),
    "a parent that is not a node": (mtl.tree({"a": "top", "b": "topp", "c": "top", "top": None}), r"'topp' stand only as parents", "None for the root"),
    "clusters without a task": (mtl.clusters({"a": 1, "b": 1}), r"clusters\(...\): task 'c' is missing", "name every task once"),
    "clusters of a stranger": (mtl.clusters({"a": 1, "b": 1, "c": 2, "d": 2}), "there is no task 'd'", "the tasks are 'a', 'b', 'c'"),
    "graph without a task": (mtl.laplacian(nx.path_graph(["a", "b"])), "task 'c' is missing", "name every task once"),
    "graph of strangers": (mtl.laplacian(nx.path_graph(["a", "b", "c", "d"])), "no task 'd'", "the tasks are"),
    "tree without a task": (mtl.tree({"a": "top", "b": "top", "top": None}), "task 'c' is not in the tree", r"\{'c': 'group', 'group': None\}"),
    "tree with a barren node": (mtl.tree({"a": "top", "b": "top", "c": "top", "top": None, "x": "top"}), "node 'x' has no child and is not a task", "the leaves have to be the tasks"),
    "tree with a task inside": (mtl.tree({"a": "b", "b": "top", "c": "top", "top": None}), "task 'b' has children", "the tasks have to be the leaves"),
    "tree in a circle": (mtl.tree({"a": "p", "b": "p", "c": "p", "p": "q", "q": "p"}), "go round in a circle", "one node has to be the root"),
    "tree of too few": (mtl.tree([-1, -1]), "2 nodes for 3 tasks", "the first 3 are the tasks"),
    "tree with a parent nowhere": (mtl.tree([3, 3, 7, -1]), "the parent of node 2 is 7", "a position up to 3, or -1"),
    "no such view": (mtl.union(columns="text"), r"union\(columns='text'\): there is no view or feature 'text'", "there are no views, and the features 'x', 'y'"),
    "no such feature": (mtl.union(columns=["x", "w"]), "there is no feature 'w'", "the features are 'x', 'y', 'z', 'u'"),
    "positions outside": (mtl.union(columns=[9]), r"union\(columns=\[9\]\)", "there are 4 features"),
    "no feature": (mtl.union(columns=slice(2, 2)), "is about no feature", "leave columns=... out"),
}  # fmt: skip


@for_each("case", WITH_TASKS)
def test_refused_where_it_meets_the_tasks(case):
    """The term is quoted as typed, whatever the helper has to say."""
    similarity, said, advice = WITH_TASKS[case]
    W = mtl.Weights(TASKS)
    with pytest.raises(ModelError, match=r"mkl_norm\(W, \[") as raised:
        mtl.mkl_norm(W, [similarity], p=2)
    assert raised.match(said) and raised.match(advice)


def _of(similarity, *names):
    tasks = mtl.Tasks.grouped(np.eye(2 * len(names)), [1.0, -1.0] * len(names), np.repeat(names, 2))
    return similarity.kernels(tasks, "")[0].matrix


def test_a_graph_is_of_task_ids_not_of_positions():
    graph = nx.Graph([(2, 0)])
    graph.add_nodes_from(range(4))
    R = _of(mtl.laplacian(graph), 2, 0, 3, 1)
    assert R[0, 1] > 0.1 and R[2:].sum() == pytest.approx(2.0)
    assert _of(mtl.laplacian(nx.Graph([(10, 20), (30, 40)])), 10, 20, 30, 40)[0, 1] > 0.1


def test_labelled_tables_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    names = ["c", "b", "a"]
    R = pandas.DataFrame(np.diag([100.0, 1.0, 2.0]), index=names, columns=names)
    assert _of(mtl.from_kernel(R), "a", "b", "c").diagonal().tolist() == pytest.approx([2.0, 1.0, 100.0])
    assert _of(mtl.from_similarity(R), "a", "b", "c").diagonal().tolist() == pytest.approx([0.5, 1.0, 0.01])
    labels = pandas.Series(["p", "q", "p"], index=["a", "b", "c"])
    assert _of(mtl.clusters(labels), "c", "a", "b").tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    with pytest.raises(mtl.ModelError, match="rows and columns have different labels"):
        _of(mtl.from_kernel(pandas.DataFrame(np.eye(3), index=names, columns=list("abc"))), "a", "b", "c")


def test_a_node_has_one_parent():
    graph = nx.DiGraph([("r", "a"), ("r", "b"), ("q", "b"), ("r", "q")])
    with pytest.raises(mtl.ModelError, match="node 'b' has two parents"):
        mtl.tree(graph)
