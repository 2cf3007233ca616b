"""The picture of a tree of tasks: every node at its place, with its weight; nothing overlaps and nothing is cut off."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.display.pictures.tree import nodes_of
from mtldsl.errors import DataError
from mtldsl.report import heatmap, tree_plot
from mtldsl.solution.learned import LearnedWeights
from tests.loops import for_each
from tests.models import with_weights


def theta(groups, tasks, values=None, views=None):
    """Weights of groups {name: positions of its tasks}."""
    inside = [np.isin(np.arange(len(tasks)), group)[:, None].astype(float) for group in groups.values()]
    values = np.linspace(1.0, 0.1, len(groups)) if values is None else np.asarray(values, float)
    views = ("",) * len(groups) if views is None else views
    return LearnedWeights(
        "theta", values, tuple(groups), tuple(tasks), tuple(map(sparse.csr_array, inside)), views
    )


def binary(depth, values=None):
    """A complete binary tree; nodes are named by the way from the root."""
    tasks = [f"{k:0{depth}b}" for k in range(2**depth)]
    groups = {}
    for level in range(depth + 1):
        for k in range(2**level):
            name = f"{k:0{level}b}" if level else "root"
            groups[name] = range(k * 2 ** (depth - level), (k + 1) * 2 ** (depth - level))
    return theta(groups, tasks, values)


def boxes(ax):
    ax.figure.canvas.draw()
    return [text.get_window_extent() for text in ax.texts]


def discs(ax):
    """{(level, row): area} of everything that is neither a hollow circle nor a grey dot."""
    found = {}
    for collection in ax.collections:
        if hasattr(collection, "get_sizes") and len(collection.get_offsets()):
            at = list(map(tuple, collection.get_offsets().tolist()))
            found |= dict(zip(at, np.broadcast_to(collection.get_sizes(), len(at)), strict=True))
    return found


def test_the_tree_is_that_of_the_parents():
    up = {"a": "x", "b": "x", "c": "y", "d": "y", "x": "top", "y": "top"}
    X = np.random.default_rng(0).normal(size=(40, 3))
    tasks, W = with_weights(mtl.Tasks.grouped(X, np.resize([1.0, -1, -1], 40), np.repeat(list("abcd"), 10)))
    solution = mtl.minimize(
        mtl.hinge_loss(W, tasks) + mtl.mkl_norm(W, [mtl.similarities.tree(up)], p=2)
    ).solve()
    nodes = nodes_of(solution.kernel_weights)
    assert {node.name: node.parent and node.parent.name for node in nodes} == up | {"top": None}
    weights = dict(zip(solution.kernel_weights.names, solution.kernel_weights.values, strict=True))
    assert all(solution.kernel_weights.values[node.kernel] == weights[node.name] for node in nodes)


def test_groups_within_groups_in_any_order():
    nodes = nodes_of(theta({"c": [2], "pair": [0, 1], "all": [0, 1, 2, 3], "same": [0, 1]}, "abcd"))
    above = {node.name: node.parent and node.parent.name for node in nodes}
    up = {"pair": "all", "same": "pair", "c": "all", "a": "same", "b": "same", "d": "all"}
    assert above == {"all": None} | up
    assert {node.name: node.depth for node in nodes}["b"] == 3
    assert {node.name for node in nodes if node.kernel is None} == {"a", "b", "d"}
    assert [child.name for child in nodes[0].children] == ["pair", "c", "d"]


def test_groups_that_overlap_or_are_none_are_refused():
    overlap = "'right' and 'left' have some tasks in common, and neither holds the other"
    for groups, message in (
        ({"left": [0, 1], "right": [1, 2]}, overlap),
        ({"all": [0, 1, 2], "left": [0, 1], "right": [1, 2]}, "form no tree"),
    ):
        with pytest.raises(DataError, match=message):
            nodes_of(theta(groups, "abc"))
    whole = theta({"odd": [0, 1]}, "ab")
    for factor in (np.eye(2), np.array([[1.0], [0.5]]), np.zeros((2, 1))):
        with pytest.raises(DataError, match="the similarity 'odd' is not a group of tasks"):
            nodes_of(replace(whole, factors=(sparse.csr_array(factor),)))


def test_several_views_are_drawn_one_at_a_time():
    groups = {"text: all": [0, 1], "image: all": [0, 1], "image: a": [0]}
    two = theta(groups, "ab", views=("text", "image", "image"))
    assert [node.name for node in nodes_of(two, "image")] == ["image: all", "image: a", "b"]
    with pytest.raises(DataError, match=r"write view=\.\.\., one of 'text', 'image'"):
        nodes_of(two)
    with pytest.raises(DataError, match="there is no such view"):
        nodes_of(two, "sound")


def test_every_node_has_its_weight_and_its_place():
    values = np.linspace(0.9, 0.2, 15)
    ax = tree_plot(binary(3, values), title="Eight")
    labels = dict(zip([t.get_text().split("  ")[0] for t in ax.texts], ax.texts, strict=True))
    assert len(labels) == 15 and ax.get_title(loc="left") == "Eight"
    assert labels["root"].get_text() == "root  0.90" and labels["111"].get_text() == "111  0.20"
    # tasks in their order at the last level, groups between their children
    assert [labels[f"{k:03b}"].xy for k in range(8)] == [(3, k) for k in range(8)]
    assert labels["0"].xy == (1, 1.5) and labels["root"].xy == (0, 3.5)
    areas = discs(ax)
    assert areas[(0.0, 3.5)] == max(areas.values())
    assert areas[(3.0, 7.0)] / areas[(0.0, 3.5)] == pytest.approx(0.2 / 0.9)
    assert r"\theta" in ax.child_axes[0].get_xlabel()


def test_a_weight_of_zero_is_hollow_and_a_task_without_one_a_dot():
    ax = tree_plot(theta({"all": [0, 1, 2], "a": [0], "b": [1]}, "abc", [1.0, 0.5, 1e-12]))
    assert sorted(t.get_text() for t in ax.texts) == ["a  0.50", "all  1.0", "b  0", "c"]
    areas = discs(ax)
    assert areas[(1.0, 2.0)] < areas[(1.0, 1.0)] < areas[(1.0, 0.0)] < areas[(0.0, 1.0)]
    nothing = tree_plot(theta({"all": [0, 1]}, "ab", [0.0]))
    assert not nothing.child_axes and [t.get_text() for t in nothing.texts] == ["all  0", "a", "b"]


LONG = "Comprehensive school of the northern district number "


@pytest.mark.slow
@for_each("weights", [
    binary(3),
    binary(7),
    theta({"everyone": range(6), "all but the last of the schools in this list": range(5), "pair": [0, 1]}, [LONG + str(k) for k in range(6)]),
    theta({LONG + "all": range(9), **{f"{LONG} {k}": [k] for k in range(9)}}, "abcdefghi"),
    theta({"a": [0], "b": [1]}, "ab"),
    theta({"one": [0]}, "a"),
], ids=["8", "128", "unbalanced", "long names", "no group", "one task"])  # fmt: skip
def test_no_names_overlap_and_nothing_is_cut_off(weights):
    ax = tree_plot(weights, title="T")
    found, canvas = boxes(ax), ax.figure.bbox
    shrunk = [box.shrunk(0.98, 0.8) for box in found]
    for i, box in enumerate(found):
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1 and canvas.y0 <= box.y0 and box.y1 <= canvas.y1
        assert not any(shrunk[i].overlaps(other) for other in shrunk[:i])
    for bar in ax.child_axes:
        box = bar.get_tightbbox()
        assert canvas.y0 <= box.y0 and not any(box.overlaps(name) for name in found)


@pytest.mark.slow
def test_a_picture_of_many_tasks_is_bounded():
    """It says what it leaves out, and a tree may be as deep as it has leaves."""
    n = 1200
    groups = {"all": range(n)} | {f"group{k}": range(10 * k, 10 * k + 10) for k in range(n // 10)}
    ax = tree_plot(theta(groups, [f"t{k}" for k in range(n)]))
    assert max(ax.figure.get_size_inches()) < 20 and len(ax.texts) < 300
    assert re.search(r"1,200 tasks, every \d+th named", ax.child_axes[0].get_xlabel())
    deep = theta({f"n{k}": range(k, n) for k in range(n)}, [f"t{k}" for k in range(n)])
    assert max(node.depth for node in nodes_of(deep)) == n - 1


@pytest.mark.slow
def test_on_axes_that_are_given_beside_the_similarity(plt):
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    weights = binary(3)
    assert tree_plot(weights, ax=axes[0]) is axes[0]
    ax = heatmap(weights, order=None, ax=axes[1])
    figure.canvas.draw()
    assert figure.get_size_inches().tolist() == [11, 4]
    assert [label.get_text() for label in ax.get_yticklabels()] == list(weights.task_names)
    shown = {t.get_position(): float(t.get_text().replace("−", "-")) for t in ax.texts}
    assert shown[(1, 0)] == pytest.approx(weights.correlation[0, 1], abs=0.005)


def test_what_has_no_weights_is_refused():
    for other in ({"a": "b"}, np.eye(3), mtl.Parameter(1.0)):
        with pytest.raises(DataError, match=r"write tree_plot\(solution.kernel_weights\)"):
            tree_plot(other)
