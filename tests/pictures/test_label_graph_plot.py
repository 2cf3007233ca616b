"""Pictures of label graphs: every edge at its place with its weight and colour, names that do not overlap, and which edge came when."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import mtldsl as mtl
from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.learned_label_graph import LearnedGraph
from tests.fresh import loaded_by
from tests.loops import for_each


def graph(names, edges, added=None):
    """The graph of edges {clique: (weight, attraction)}."""
    members = tuple(edges)
    pairs = sorted({pair for clique in members for pair in combinations(clique, 2)})
    attraction = [max(edges[c][1] for c in members if set(pair) <= set(c)) for pair in pairs]
    return LearnedGraph(
        tuple(names), Cliques(len(names), members), np.array([w for w, _ in edges.values()]), np.ones(len(names)),
        np.array(pairs).reshape(-1, 2), np.array(attraction) - 0.5, np.array(attraction, float),
        added=None if added is None else np.array(added),
    )  # fmt: skip


STAR = graph(
    "abcdef", {(0, 1): (4.0, 1.0), (0, 2): (2.0, 0.0), (0, 3): (1.0, 0.5), (1, 2): (0.0, 0.5)}, [1, 1, 2, -1]
)


def places(ax):
    return {text.get_text(): tuple(np.round(text.xy, 6)) for text in ax.texts}


def line(ax, *names):
    at = places(ax)
    drawn = {frozenset(map(tuple, np.round(one.get_xydata(), 6))): one for one in ax.get_lines()}
    return drawn[frozenset(at[name] for name in names)]


def test_widths_are_weights_and_colours_tell_attraction():
    ax = mtl.report.graph_plot(STAR, title="T")
    assert ax.get_title(loc="left") == "T" and sorted(places(ax)) == list("abcdef")
    assert len(ax.get_lines()) == 3  # the edge without weight is none
    widths = [line(ax, "a", other).get_linewidth() for other in "bcd"]
    assert widths[0] == 2 * widths[1] == 4 * widths[2]
    red, blue, purple = (to_rgb(line(ax, "a", other).get_color()) for other in "bcd")
    assert red[0] > 2 * red[2] and blue[2] > 2 * blue[0] and 0.5 < purple[0] / purple[2] < 1.5
    assert "3 of 4 edges; width: weight, 4 at most" in ax.child_axes[0].get_xlabel()
    ax = mtl.report.graph_plot(graph("abc", {(0, 1, 2): (1.0, 1.0), (0, 1): (1.0, 1.0)}))
    assert len(ax.get_lines()) == 3  # a clique of three is the edges among them
    assert line(ax, "a", "b").get_linewidth() >= line(ax, "a", "c").get_linewidth()
    ax = mtl.report.graph_plot(graph("abc", {(0, 1): (0.0, 0.5)}))
    assert not ax.get_lines() and not ax.child_axes and "no edge" in [text.get_text() for text in ax.texts]


def test_labels_with_strong_edges_are_neighbours_on_the_circle():
    rng = np.random.default_rng(0)
    names = [f"l{k}" for k in range(8)]
    edges = {pair: (0.05 * rng.random() + 0.01, 0.5) for pair in combinations(range(8), 2)}
    edges[(0, 5)], edges[(2, 7)] = (3.0, 1.0), (2.0, 1.0)
    order = mtl.report.label_order(graph(names, edges)).tolist()
    assert sorted(order) == list(range(8))
    for i, j in ((0, 5), (2, 7)):
        assert abs(order.index(i) - order.index(j)) == 1
    at = places(mtl.report.graph_plot(graph(names, edges), order=names))
    angle = [np.arctan2(*at[name]) % (2 * np.pi) for name in names]
    np.testing.assert_allclose(angle, 2 * np.pi * np.arange(8) / 8, atol=1e-5)  # from the top, clockwise


def test_places_may_be_given_and_are_the_same_every_time():
    given = {name: (k, k * k) for k, name in enumerate("abcdef")}
    at = places(mtl.report.graph_plot(STAR, layout=given))
    assert at["a"][1] < at["c"][1] < at["f"][1] == 1.0
    first, second = (places(mtl.report.graph_plot(STAR, layout="spring")) for _ in range(2))
    assert first == second
    near, far = (np.hypot(*np.subtract(first["a"], first[other])) for other in "bd")
    assert near < far  # the stronger the shorter


def overlapping(ax) -> list[tuple[str, str]]:
    """Names whose outlines meet; those at an angle by the corners of their turned boxes."""
    from matplotlib.path import Path as Outline

    ax.figure.canvas.draw()
    outlines = []
    for text in ax.texts:
        angle = text.get_rotation()
        text.set_rotation(0)
        box = text.get_window_extent()
        text.set_rotation(angle)
        turned = text.get_window_extent()
        middle = np.array([turned.x0 + turned.x1, turned.y0 + turned.y1]) / 2
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        corners = 0.47 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [box.width, 0.8 * box.height]
        outline = Outline(corners @ np.array([[c, s], [-s, c]]) + middle, closed=False)
        outlines.append((text.get_text(), outline))
    pairs = combinations(outlines, 2)
    return [(a, b) for (a, one), (b, other) in pairs if one.intersects_path(other, filled=True)]


SHORT, LONG = "y{}", "a label with a rather long name {}"


@pytest.mark.slow
@for_each("n, name", [(2, LONG), (6, SHORT), (16, LONG), (17, LONG), (60, SHORT)])
def test_names_do_not_overlap_and_nothing_is_cut_off(n, name):
    rng = np.random.default_rng(n)
    pairs = [(i, j) for i, j in combinations(range(n), 2) if j == i + 1 or rng.random() < 4 / n]
    edges = {pair: (rng.random() ** 3, rng.random()) for pair in pairs}
    ax = mtl.report.graph_plot(graph([name.format(k) for k in range(n)], edges), title="A title")
    assert overlapping(ax) == []
    canvas = ax.figure.bbox
    (bar,) = ax.child_axes
    for box in [text.get_window_extent() for text in ax.texts] + [bar.get_tightbbox(), ax.get_tightbbox()]:
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1 and canvas.y0 <= box.y0 and box.y1 <= canvas.y1
    assert not any(bar.get_tightbbox().overlaps(text.get_window_extent()) for text in ax.texts)


def test_it_draws_into_axes_that_are_given(plt):
    figure, (left, right) = plt.subplots(1, 2, layout="constrained")
    assert mtl.report.graph_plot(STAR, ax=left) is left and len(left.get_lines()) == 3
    size = tuple(figure.get_size_inches())
    tasks = mtl.Tasks.shared([[1.0]] * 4, [[1, -1], [1, 1], [-1, 1], [-1, -1]])
    assert mtl.report.co_occurrence_plot(tasks, ax=right) is right and tuple(figure.get_size_inches()) == size


def test_what_does_not_fit_is_refused():
    for typed, message in (
        ({"layout": "round"}, 'layout=\'round\': write "circle", "spring"'),
        ({"layout": {"a": (0, 0)}}, "layout: 'b' has no place"),
        ({"order": ["a", "b"]}, "write every one of 6 labels once"),
        ({"order": [0, 0, 1, 2, 3, 4]}, "write every one of 6 labels once"),
    ):
        with pytest.raises(DataError, match=message):
            mtl.report.graph_plot(STAR, **typed)
    W = mtl.Weights(tasks := mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    plain = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    for draw in (mtl.report.graph_plot, mtl.report.graph_strip, mtl.report.label_order):
        with pytest.raises(ModelError, match="squared_loss is not a loss over a graph of labels"):
            draw(plain)
        with pytest.raises(DataError, match=rf"{draw.__name__}\(int\): write {draw.__name__}\(solution\)"):
            draw(3)
    many = graph("ab", {(0, 1): (1.0, 0.5)})
    for typed, titles, message in (
        ([], None, "there is no solution to draw"),
        ([many, STAR], None, "over different labels"),
        ([STAR, STAR], ["one"], "1 titles for 2 solutions"),
    ):
        with pytest.raises(DataError, match=message):
            mtl.report.graph_strip(typed, titles=titles)


def test_co_occurrence_in_the_order_of_the_graph():
    """Labels that go together are neighbours without an order."""
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((50, 3)) < 0.5, 1.0, -1.0)
    tasks = mtl.Tasks.shared(np.ones((50, 1)), Y, task_names=["a", "b", "c"])
    ax = mtl.report.co_occurrence_plot(tasks, order=["c", "a", "b"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a", "b"]
    shown = {tuple(map(int, text.get_position()[::-1])): text.get_text() for text in ax.texts}
    Z = Y[:, [2, 0, 1]] > 0
    shares = np.array([[Z[Z[:, i], j].mean() for j in range(3)] for i in range(3)])
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array())[off], shares[off])
    written = np.where(off, shares, Z.mean(axis=0)[:, None])
    assert shown == {(i, j): f"{100 * written[i, j]:.0f}" for i in range(3) for j in range(3)}
    alike = mtl.Tasks.shared(np.ones((50, 1)), np.column_stack([Y, Y[:, 1]]), task_names=list("abcd"))
    names = [label.get_text() for label in mtl.report.co_occurrence_plot(alike).get_yticklabels()]
    assert abs(names.index("b") - names.index("d")) == 1


def test_the_rounds_of_one_solution():
    figure = mtl.report.graph_strip(STAR)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["round 1\n+ a–b, a–c", "round 2\n+ a–d"]
    first, second = figure.axes
    assert len(first.get_lines()) == 2 and len(second.get_lines()) == 3
    assert places(first) == places(second)
    old, new = to_rgb(line(second, "a", "b").get_color()), to_rgb(line(second, "a", "d").get_color())
    assert np.ptp(old) < 0.1 < np.ptp(new)  # grey, and a colour
    with pytest.raises(ModelError, match=r'does not tell in which round.*solver="clique_generation"'):
        mtl.report.graph_strip(replace(STAR, added=None))


def test_several_solutions_side_by_side():
    sparse = graph("abcdef", {(0, 1): (4.0, 1.0), (0, 2): (0.0, 0.0)})
    figure = mtl.report.graph_strip({"strong": sparse, "weak": STAR}, per_row=1)
    one, two = figure.axes
    assert one.get_title(loc="left") == "strong\n+ a–b" and two.get_title(loc="left") == "weak\n+ a–c, a–d"
    assert one.get_position().y0 > two.get_position().y1  # one below the other
    many = graph("abcdef", {pair: (1.0, 0.5) for pair in combinations(range(6), 2)})
    assert mtl.report.graph_strip([many]).axes[0].get_title(loc="left") == "1\n+ 15 edges"


def test_drawing_is_imported_only_where_it_is_asked_for():
    assert not {"matplotlib", "networkx"} & loaded_by("pictures")
