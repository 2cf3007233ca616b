"""Films of a solve: the frames are what the solver has then, and the files can be played without a network."""

from types import SimpleNamespace

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

pytest.importorskip("matplotlib").use("Agg")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
NUMBERS = mtl.Tasks.shared(X, X @ RNG.normal(size=(4, 3)) + RNG.normal(size=(30, 3)))
SIGNS = mtl.Tasks.shared(X, np.where(NUMBERS.targets.reshape(3, -1).T > 0, 1, -1))


def lasso():
    W = mtl.Weights(NUMBERS)
    return mtl.minimize(mtl.squared_loss(W, NUMBERS) + 5 * mtl.l1_norm(W) + 5 * mtl.trace_norm(W))


def hinge():
    W = mtl.Weights(SIGNS)
    return mtl.minimize(mtl.ridge(W) + mtl.hinge_loss(W, SIGNS))


@pytest.mark.slow
@pytest.mark.parametrize("problem, solver", [(lasso(), "admm"), (hinge(), "dual_ascent")])
def test_frames_are_one_run_and_each_proves_its_interval(problem, solver):
    shown = mtl.report.film(problem, solver, tol=1e-6)
    last = shown.solutions[-1]
    assert shown.solver == solver and last.status == "optimal" and len(shown) == len(shown.steps) > 5
    assert [one.iterations for one in shown.solutions] == list(shown.steps)
    for one in shown.solutions:
        assert one.dual_bound <= last.objective * (1 + 1e-9) and one.objective >= last.dual_bound * (1 - 1e-9)
    seen = {}
    problem.solve(solver, tol=1e-6, callback=lambda look: seen.update({look["iteration"]: look["objective"]}))
    at = set(seen) & set(shown.steps)  # the looks of one uninterrupted run
    assert at and all(
        np.isclose(shown.solutions[shown.steps.index(k)].objective, seen[k], rtol=1e-9) for k in at
    )


def test_auto_films_the_solver_that_ends_the_solve():
    problem = lasso()
    assert mtl.report.film(problem, steps=[1, 2]).solver == problem.solve().solver


@pytest.mark.slow
def test_a_gif_and_a_page_have_every_frame(tmp_path):
    from PIL import Image

    shown = mtl.report.film(lasso(), "admm", steps=[1, 2, 5])
    with Image.open(shown.save(tmp_path / "film.gif", dpi=40)) as gif:
        assert gif.n_frames == 3 and gif.size == (384, 168)
    page = shown.save(str(tmp_path / "film.html"), dpi=40).read_text()
    assert page.count("data:image/png") == 4 and 'max="2"' in page  # the first one stands in the page as well
    assert "http" not in page and "After 5 iterations" in page and "trace_norm" in page
    assert "srcdoc=" in shown._repr_html_()


@pytest.mark.slow
def test_a_still_goes_into_two_axes_of_a_slide():
    import matplotlib.pyplot as plt

    W = mtl.Weights(two := mtl.Tasks.shared(X[:, :2], NUMBERS.targets[:30, None]))
    shown = mtl.report.film(mtl.minimize(mtl.squared_loss(W, two) + 2 * mtl.l1_norm(W)), "admm")
    figure, axes = plt.subplots(1, 2)
    left, right = shown.still(-1, axes)
    assert left is axes[0] and "level lines" in left.get_title(loc="left")
    assert (
        f"iteration {shown.steps[-1]}: " in right.get_title(loc="left") and right.get_xlabel() == "iteration"
    )
    np.testing.assert_allclose(left.lines[0].get_xydata()[-1], shown.solutions[-1].W.ravel())
    plt.close(figure)


@pytest.mark.slow
def test_a_panel_of_one_s_own_is_given_every_solution(tmp_path):
    seen = []
    shown = mtl.report.film(
        lasso(), "admm", steps=[1, 3], panel=lambda ax, solution: seen.append((ax, solution))
    )
    shown.save(tmp_path / "film.gif", dpi=30)
    assert [one for _, one in seen] == list(shown.solutions)


def test_an_objective_outside_constraints_is_no_upper_bound():
    """An objective outside the constraints is not called an upper bound."""
    from mtldsl.pictures.film_panels import proven_of

    outside = SimpleNamespace(objective=2.0, violation=0.1, tol=1e-6)
    inside = SimpleNamespace(objective=2.0, violation=0.0, tol=1e-6)
    assert proven_of(outside, 1.0) == "optimum ≥ 1; objective 2, constraints missed by 0.1"
    assert proven_of(inside, 1.0) == "1 ≤ optimum ≤ 2"
    assert proven_of(inside, -np.inf) == "objective 2"


@for_each(
    "how, words",
    [
        ({"steps": [3, 2]}, "ascending whole numbers"),
        ({"steps": []}, "ascending whole numbers"),
        ({"steps": 5}, "ascending whole numbers"),
        ({"steps": [0, 1]}, "ascending whole numbers"),
        ({"panel": 3}, "a function of"),
    ],
)
def test_what_cannot_be_filmed_is_a_typed_error(how, words):
    with pytest.raises(mtl.DataError, match=words):
        mtl.report.film(lasso(), "admm", **how)


def test_what_cannot_be_saved_is_a_typed_error(tmp_path):
    shown = mtl.report.film(lasso(), "admm", steps=[1, 2])
    for ask, words in (
        (lambda: shown.save(tmp_path / "film.mp4"), "a .gif or a .html"),
        (lambda: shown.save(tmp_path / "film.gif", seconds=0), "positive number"),
        (lambda: shown.still(2), "frames 0 to 1"),
        (lambda: shown.still(0, [1]), "two matplotlib Axes"),
        (lambda: mtl.report.film(lasso().solve()), "it takes a problem"),
    ):
        with pytest.raises(mtl.DataError, match=words):
            ask()
