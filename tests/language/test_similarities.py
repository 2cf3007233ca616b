"""Similarities between tasks as a user states them: the kernels that they make, and what they refuse."""

import networkx as nx
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError
from tests.language.typed import assert_refused, mistakes
from tests.loops import for_each

NAMES = ("a", "b", "c")


def tasks_of(names=NAMES, features=("x", "y", "z", "u")):
    rng = np.random.default_rng(0)
    Y = np.where(rng.normal(size=(6, len(names))) > 0, 1.0, -1.0)
    return mtl.Tasks.shared(
        rng.normal(size=(6, len(features))), Y, task_names=list(names), feature_names=list(features)
    )


TASKS = tasks_of()


def indicator(*members):
    one = np.array([float(name in members) for name in NAMES])
    return np.outer(one, one)


INDIVIDUAL = {name: indicator(name) for name in NAMES}
PATH = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
R = np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]])
#: one indicator a node, the root first, the tasks last
NODES = {"top": np.ones((3, 3)), "ab": indicator("a", "b"), **INDIVIDUAL}
CLUSTERS = {"cluster p": indicator("a", "c"), "cluster q": indicator("b")}
SMOOTHED = {"laplacian": np.linalg.inv(np.eye(3) + 0.5 * PATH)}


@for_each("similarity, expected", [
    (mtl.similarities.union(), {"union": np.ones((3, 3))}),
    (mtl.similarities.individual(), INDIVIDUAL),
    (mtl.similarities.identity(), {"identity": np.eye(3)}),
    (mtl.similarities.evgeniou_pontil(2.0, 4), {"evgeniou_pontil": 0.5 + np.eye(3) / 4}),
    (mtl.similarities.domain_adaptation(), {"domain_adaptation": 1.0 + np.eye(3)}),
    (mtl.similarities.clusters(["p", "q", "p"]), CLUSTERS),
    (mtl.similarities.clusters({"c": "p", "b": "q", "a": "p"}), CLUSTERS),
    (mtl.similarities.tree({"a": "ab", "b": "ab", "ab": "top", "c": "top", "top": None}), NODES),
    # a root without a line of its own
    (mtl.similarities.tree({"a": "ab", "b": "ab", "ab": "top", "c": "top"}), NODES),
    (mtl.similarities.tree(nx.DiGraph([("top", "ab"), ("top", "c"), ("ab", "a"), ("ab", "b")])), NODES),
    (mtl.similarities.tree([3, 3, 4, 4, -1]),
     {"node4": NODES["top"], "node3": NODES["ab"], **INDIVIDUAL}),
    (mtl.similarities.tree([3, 3, -1, -1]), {"node3": indicator("a", "b"), **INDIVIDUAL}),  # a forest
    (mtl.similarities.tree({name: None for name in NAMES}), INDIVIDUAL),
    (mtl.similarities.laplacian(PATH, gamma=0.5), SMOOTHED),
    (mtl.similarities.laplacian(nx.path_graph(list(NAMES)), gamma=0.5), SMOOTHED),
    (mtl.similarities.laplacian(nx.path_graph(3), gamma=0.5), SMOOTHED),
    (mtl.similarities.laplacian(PATH, gamma=0), {"laplacian": np.eye(3)}),
    (mtl.similarities.from_kernel(R), {"kernel": R}),
    (mtl.similarities.from_kernel(indicator("a", "b")), {"kernel": indicator("a", "b")}),
    (mtl.similarities.from_similarity(R), {"similarity": np.linalg.inv(R)}),
])  # fmt: skip
def test_kernels(similarity, expected):
    kernels = {kernel.name: kernel for kernel in similarity.kernels(TASKS, "typed")}
    assert list(kernels) == list(expected)
    for name, kernel in kernels.items():
        np.testing.assert_allclose(kernel.matrix, expected[name], atol=1e-13)


def test_a_kernel_of_rank_one_is_stored_as_such():
    (kernel,) = mtl.similarities.from_kernel(indicator("a", "b")).kernels(TASKS, "")
    assert kernel.factor.shape == (3, 1)


@for_each(
    "columns, positions",
    [(slice(1, 3), [1, 2]), (["u", "x"], [0, 3]), ("z", [2]), ([2, -1], [2, 3]), (None, None)],
)
def test_columns(columns, positions):
    for similarity in (
        mtl.similarities.union(columns),
        mtl.similarities.individual(columns=columns),
        mtl.similarities.laplacian(np.eye(3), columns=columns),
    ):
        for kernel in similarity.kernels(TASKS, "typed"):
            assert (None if kernel.columns is None else kernel.columns.tolist()) == positions


def test_printed_as_typed():
    shown = [
        mtl.similarities.union(), mtl.similarities.individual(columns="z"), mtl.similarities.evgeniou_pontil(1, 0.5), mtl.similarities.clusters(["aab"] * 3),
        mtl.similarities.tree([-1]), mtl.similarities.laplacian(np.eye(2), 3), mtl.similarities.from_kernel(np.eye(2)), mtl.similarities.from_similarity(np.eye(2)),
    ]  # fmt: skip
    assert list(map(repr, shown)) == [
        "union()", "individual(columns='z')", "evgeniou_pontil(lam0=1, lam1=0.5)", "clusters(1 groups of 3 tasks)",
        "tree(1 node)", "laplacian(array(2, 2), gamma=3)", "from_kernel(array(2, 2))", "from_similarity(array(2, 2))",
    ]  # fmt: skip


#: as soon as it is typed: helper, what is quoted, the advice
AT_ONCE = """
mtl.similarities.clusters('aab') | clusters('aab') | clusters(['a', 'a', 'b'])
mtl.similarities.clusters(3) | clusters(3) | one label a task
mtl.similarities.tree('ab') | tree(parents) | root: None
mtl.similarities.tree([0.5, -1]) | tree(parents) | -1 for the root
mtl.similarities.tree([]) | tree(parents) | -1 for the root
mtl.similarities.tree(nx.DiGraph([("r", "a"), ("r", "b"), ("q", "b"), ("r", "q")])) | node 'b' has two parents
mtl.similarities.evgeniou_pontil(0, 1) | evgeniou_pontil | lam0 | a finite number > 0
mtl.similarities.evgeniou_pontil(1, -1) | evgeniou_pontil | lam1 | a finite number > 0
mtl.similarities.laplacian(np.eye(3), -1) | laplacian | gamma | a finite number >= 0
mtl.similarities.laplacian(-np.eye(3)) | laplacian(array(3, 3), gamma=1) | semidefinite
mtl.similarities.from_kernel([[1, 2], [0, 1]]) | from_kernel(array(2, 2)) | symmetric
mtl.similarities.from_kernel([[1, 2], [2, 1]]) | from_kernel(array(2, 2)) | semidefinite
mtl.similarities.from_kernel(np.zeros((3, 3))) | from_kernel(array(3, 3)) | leave it out
mtl.similarities.from_similarity(np.ones((3, 3))) | from_similarity(array(3, 3)): Q is singular | write from_kernel(R)
mtl.similarities.from_similarity(np.diag([1.0, 1.0, 1e-17])) | write from_kernel(R)
mtl.similarities.from_similarity([[1, 2], [2, 1]]) | from_similarity( | semidefinite
"""


@for_each("typed, said", mistakes(AT_ONCE))
def test_refused_as_soon_as_typed(typed, said):
    assert_refused(typed, said, globals())


#: where it meets the tasks
WITH_TASKS = {
    "kernel of other tasks": (mtl.similarities.from_kernel(np.eye(2)), r"from_kernel\(array\(2, 2\)\) is of 2 tasks, but there are 3", "a row and a column for every task"),
    "clusters of other tasks": (mtl.similarities.clusters(["p", "q"]), "2 labels for 3 tasks", "give one label a task"),
    "a parent that is not a node": (mtl.similarities.tree({"a": "top", "b": "topp", "c": "top", "top": None}), r"'topp' stand only as parents", "None for the root"),
    "clusters without a task": (mtl.similarities.clusters({"a": 1, "b": 1}), r"clusters\(...\): task 'c' is missing", "name every task once"),
    "clusters of a stranger": (mtl.similarities.clusters({"a": 1, "b": 1, "c": 2, "d": 2}), "there is no task 'd'", "the tasks are 'a', 'b', 'c'"),
    "graph without a task": (mtl.similarities.laplacian(nx.path_graph(["a", "b"])), "task 'c' is missing", "name every task once"),
    "graph of strangers": (mtl.similarities.laplacian(nx.path_graph(["a", "b", "c", "d"])), "no task 'd'", "the tasks are"),
    "tree without a task": (mtl.similarities.tree({"a": "top", "b": "top", "top": None}), "task 'c' is not in the tree", r"\{'c': 'group', 'group': None\}"),
    "tree with a barren node": (mtl.similarities.tree({"a": "top", "b": "top", "c": "top", "top": None, "x": "top"}), "node 'x' has no child and is not a task", "the leaves have to be the tasks"),
    "tree with a task inside": (mtl.similarities.tree({"a": "b", "b": "top", "c": "top", "top": None}), "task 'b' has children", "the tasks have to be the leaves"),
    "tree in a circle": (mtl.similarities.tree({"a": "p", "b": "p", "c": "p", "p": "q", "q": "p"}), "go round in a circle", "one node has to be the root"),
    "tree of too few": (mtl.similarities.tree([-1, -1]), "2 nodes for 3 tasks", "the first 3 are the tasks"),
    "tree with a parent nowhere": (mtl.similarities.tree([3, 3, 7, -1]), "the parent of node 2 is 7", "a position up to 3, or -1"),
    "no such view": (mtl.similarities.union(columns="text"), r"union\(columns='text'\): there is no view or feature 'text'", "there are no views, and the features 'x', 'y'"),
    "no such feature": (mtl.similarities.union(columns=["x", "w"]), "there is no feature 'w'", "the features are 'x', 'y', 'z', 'u'"),
    "positions outside": (mtl.similarities.union(columns=[9]), r"union\(columns=\[9\]\)", "there are 4 features"),
    "no feature": (mtl.similarities.union(columns=slice(2, 2)), "is about no feature", "leave columns=... out"),
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
    R = _of(mtl.similarities.laplacian(graph), 2, 0, 3, 1)
    assert R[0, 1] > 0.1 and R[2:].sum() == pytest.approx(2.0)
    assert _of(mtl.similarities.laplacian(nx.Graph([(10, 20), (30, 40)])), 10, 20, 30, 40)[0, 1] > 0.1


def test_labelled_tables_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    names = ["c", "b", "a"]
    R = pandas.DataFrame(np.diag([100.0, 1.0, 2.0]), index=names, columns=names)
    assert _of(mtl.similarities.from_kernel(R), "a", "b", "c").diagonal().tolist() == pytest.approx(
        [2.0, 1.0, 100.0]
    )
    assert _of(mtl.similarities.from_similarity(R), "a", "b", "c").diagonal().tolist() == pytest.approx(
        [0.5, 1.0, 0.01]
    )
    labels = pandas.Series(["p", "q", "p"], index=["a", "b", "c"])
    assert _of(mtl.similarities.clusters(labels), "c", "a", "b").tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    with pytest.raises(mtl.ModelError, match="rows and columns have different labels"):
        _of(
            mtl.similarities.from_kernel(pandas.DataFrame(np.eye(3), index=names, columns=list("abc"))),
            "a",
            "b",
            "c",
        )
