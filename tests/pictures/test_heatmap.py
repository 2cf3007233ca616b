"""Heatmaps and traces: what is drawn is read back from the picture; the order against every order that the tree allows."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import linkage, to_tree
from scipy.spatial.distance import squareform

from mtldsl.errors import DataError, MissingExtraError, MTLError
from mtldsl.report import clustered_order, heatmap, trace_plot, tree_plot
from mtldsl.solution.learned import LearnedWeights
from tests.loops import for_each


def random_correlation(n, seed=0, rank=3):
    F = np.random.default_rng(seed).normal(size=(n, rank))
    C = F @ F.T + 0.5 * np.eye(n)
    v = np.diag(C)
    R = C / np.sqrt(np.outer(v, v))
    np.fill_diagonal(R, 1.0)
    return 0.5 * (R + R.T)


def written(labels):
    return [label.get_text() for label in labels]


def orders_of(node):
    """Every order of the leaves that a tree allows."""
    if node.is_leaf():
        return [[node.id]]
    left, right = orders_of(node.left), orders_of(node.right)
    return [first + second for a in left for b in right for first, second in ((a, b), (b, a))]


@for_each("seed", range(20))
def test_no_order_that_the_tree_allows_has_closer_neighbours(seed):
    R = random_correlation(7, seed)
    allowed = orders_of(to_tree(linkage(squareform(1 - R, checks=False), method="average")))
    apart = [np.sum(1 - R[order[:-1], order[1:]]) for order in allowed]
    order = clustered_order(R).tolist()
    assert len(allowed) == 2**6 and order in allowed
    np.testing.assert_allclose(apart[allowed.index(order)], min(apart), rtol=1e-12)


def test_a_tree_as_deep_as_it_has_leaves():
    """Average linkage joins these rows one by one, the farthest last."""
    at = 1.3 ** -np.arange(60.0)
    R = np.exp(-np.abs(at[:, None] - at))
    assert clustered_order(R).tolist() == list(range(60))


@for_each("n", [9, 1002])
def test_groups_that_oppose_each_other_stay_apart(n):
    """The best order is not sought for a thousand rows."""
    group = np.random.default_rng(4).permutation(np.resize([1.0, -1.0], n))
    order = clustered_order(0.5 * np.outer(group, group) + 0.5 * np.eye(n))
    assert sorted(order.tolist()) == list(range(n))
    assert np.count_nonzero(np.diff(group[order])) == 1


@for_each("order", ["clustered", None, [4, 2, 0, 1, 3, 6, 5]])
def test_every_number_stands_under_its_two_names(order):
    R, names = random_correlation(7), [f"torque {i}" for i in range(7)]
    ax = heatmap(R, names, order=order)
    rows, columns = written(ax.get_yticklabels()), written(ax.get_xticklabels())
    assert rows == columns and sorted(rows) == names
    expected = clustered_order(R) if order == "clustered" else order or range(7)
    assert rows == [names[i] for i in expected]
    assert len(ax.texts) == 7 * 6
    for text in ax.texts:
        j, i = map(round, text.get_position())
        expected = R[names.index(rows[i]), names.index(columns[j])]
        assert float(text.get_text().replace("−", "-")) == pytest.approx(expected, abs=0.00501)
    drawn = ax.images[0].get_array()
    at = [names.index(name) for name in rows]
    off = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose(drawn.data[off], R[np.ix_(at, at)][off], rtol=1e-12)
    np.testing.assert_array_equal(drawn.mask, ~off)


def test_a_learned_matrix_brings_its_names():
    learned = SimpleNamespace(correlation=random_correlation(4), names=("a", "b", "c", "d"))
    assert sorted(written(heatmap(learned).get_yticklabels())) == ["a", "b", "c", "d"]
    assert sorted(written(heatmap(learned, ["w", "x", "y", "z"]).get_yticklabels())) == ["w", "x", "y", "z"]
    assert written(heatmap(learned.correlation, order=None).get_yticklabels()) == ["1", "2", "3", "4"]


@pytest.mark.slow
@for_each("n, step", [(40, 1), (41, 2), (139, 4)])
def test_of_many_names_some_are_written_and_in_their_place(n, step):
    R, names = random_correlation(n), [f"school {i}" for i in range(n)]
    ax = heatmap(R, names)
    at = clustered_order(R)
    assert written(ax.get_yticklabels()) == [names[i] for i in at[::step]]
    assert ax.get_yticks().tolist() == list(range(0, n, step))
    assert not ax.texts
    assert bool(ax.get_xlabel()) == (step > 1)


@pytest.mark.slow
@for_each("factor, limit", [(1.0, 1.0), (0.3, 0.3), (0.04, 0.05), (0.0, 0.05)])
def test_the_colour_scale_is_centred_on_the_largest_entry(factor, limit):
    """A limit that is given is used; red is positive and blue negative."""
    R = factor * np.array([[0, 0.99, 0], [0.99, 0, -0.5], [0, -0.5, 0]]) + np.eye(3)
    assert heatmap(R).images[0].get_clim() == (-limit, limit)
    ax = heatmap(R, limit=0.25, title="tasks")
    assert ax.images[0].get_clim() == (-0.25, 0.25) and ax.get_title(loc="left") == "tasks"
    red, _, blue = ax.images[0].to_rgba(np.array([0.25, 0.0, -0.25]))[:, :3]
    assert red[0] > 2 * red[2] and blue[2] > 2 * blue[0]


@pytest.mark.slow
@for_each("length", [3, 200])
def test_nothing_is_cut_off_in_its_own_figure(length):
    names = [f"{i}".rjust(length, "m") for i in range(10)]
    ax = heatmap(random_correlation(10), names, title="tasks", order=None)
    ax.figure.canvas.draw()
    inner, outer = ax.figure.get_tightbbox(), ax.figure.bbox_inches
    assert inner.x0 > 0 and inner.y0 > 0 and inner.x1 < outer.x1 and inner.y1 < outer.y1
    assert len(set(written(ax.get_yticklabels()))) == 10


def test_an_axes_that_is_given_is_drawn_on(plt):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    size = figure.get_size_inches().tolist()
    assert heatmap(random_correlation(4), ax=axes[1]) is axes[1]
    assert axes[1].images and not axes[0].images
    assert figure.get_size_inches().tolist() == size
    assert trace_plot(run([2.0, 1.0]), ax=axes[0]) is axes[0] and axes[0].lines and not axes[1].lines


NOT_A_CORRELATION = {
    "wide": (np.ones((2, 3)), r"square.*\(2, 3\)"),
    "empty": (np.ones((0, 0)), "square"),
    "a vector": (np.ones(3), "square"),
    "words": ([["a", "b"], ["c", "d"]], "array of numbers"),
    "NaN": ([[1, np.nan], [np.nan, 1]], "row 0, column 1 is nan"),
    "a covariance": (np.diag([1.0, 4.0]), r"row 1 has 4.*np\.outer"),
    "skew": ([[1, 0.5], [0.4, 1]], "symmetric, but row 0, column 1 has 0.5 and row 1, column 0 0.4"),
    "above 1": ([[1, 1.2], [1.2, 1]], "between -1 and 1"),
}


@for_each("matrix, message", NOT_A_CORRELATION.values(), ids=NOT_A_CORRELATION)
def test_what_is_no_correlation_matrix_is_refused(matrix, message):
    with pytest.raises(DataError, match=message):
        heatmap(matrix)
    with pytest.raises(DataError, match=message):
        clustered_order(matrix)


@for_each(
    "given, message",
    [
        ({"names": ["a", "b"]}, "there are 2, but the matrix is 3 x 3"),
        ({"order": "alphabetical"}, "order='alphabetical': write"),
        ({"order": [0, 1, 1]}, "not a permutation of 0 to 2"),
        ({"order": [0.0, 1.0, 2.0]}, "not a permutation of 0 to 2"),
        ({"limit": 0}, "limit=0: write a number above 0"),
        ({"limit": True}, "limit=True: write"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        heatmap(np.eye(3), **given)


def run(objectives, seconds=0.1):
    return [{"iteration": k, "seconds": seconds * k, "objective": f} for k, f in enumerate(objectives)]


def lines(ax):
    return {line.get_label(): (line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.lines}


def test_one_run_above_its_own_best_or_a_bound():
    """Outside the domain there is nothing to draw, and 0 has no logarithm."""
    ax = trace_plot(run([np.inf, 5.0, 3.0, 2.5, 2.0]), title="SARCOS")
    assert list(lines(ax).values()) == [([1, 2, 3], [3.0, 1.0, 0.5])]
    assert ax.get_yscale() == "log" and ax.get_xscale() == "linear" and ax.get_title(loc="left") == "SARCOS"
    assert ax.get_legend() is None and ax.get_xlabel() == "iteration"
    assert list(lines(trace_plot(run([5.0, 3.0]), best=2.0)).values()) == [([0, 1], [3.0, 1.0])]


def test_several_runs_above_the_best_of_all():
    ax = trace_plot({"block": run([5.0, 3.0]), "lbfgs": run([4.0, -1.0])})
    assert lines(ax) == {"block": ([0, 1], [6.0, 4.0]), "lbfgs": ([0], [5.0])}
    assert written(ax.get_legend().get_texts()) == ["block", "lbfgs"]


def test_against_seconds():
    alike = trace_plot({"a": run([3.0, 1.0]), "b": run([3.0, 2.0], 1.0)}, against="seconds", best=0.0)
    assert alike.get_xscale() == "linear" and lines(alike)["b"] == ([0, 1.0], [3.0, 2.0])
    apart = trace_plot({"a": run([3.0, 1.0]), "b": run([3.0, 2.0], 10.0)}, against="seconds", best=0.0)
    assert apart.get_xscale() == "log" and lines(apart)["b"] == ([10.0], [2.0])


@for_each(
    "history, options, message",
    [
        ([], {}, "history has no look with a finite objective"),
        ({}, {}, "there is no run"),
        ({"block": run([np.inf])}, {}, r"history\['block'\] has no look with a finite"),
        ([{"iteration": 0}], {}, r"history\[0\] has no 'objective'"),
        ([{"iteration": 0, "objective": 1.0}], {"against": "seconds"}, r"history\[0\] has no 'seconds'"),
        (["iteration"], {}, r"history\[0\] has no 'iteration'"),
        (run([1.0, np.nan]), {}, r"history\[1\] has the objective NaN"),
        (run([2.0, 1.0]), {"best": 1.5}, "best=1.5: a run reached 1, which is lower"),
        (run([1.0]), {"against": "time"}, "against='time': write"),
    ],
)
def test_a_history_that_cannot_be_drawn_is_refused(history, options, message):
    with pytest.raises(DataError, match=message):
        trace_plot(history, **options)


WEIGHTS = LearnedWeights(
    "theta", np.ones(1), ("all",), ("a", "b"), (sparse.csr_array(np.ones((2, 1))),), ("",)
)


@for_each(
    "draw", [lambda: heatmap(np.eye(3)), lambda: trace_plot(run([2.0, 1.0])), lambda: tree_plot(WEIGHTS)]
)
def test_without_matplotlib_the_extra_is_named(monkeypatch, draw):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "\.\[plots\]"') as raised:
        draw()
    assert isinstance(raised.value, MTLError) and isinstance(raised.value, ImportError)
