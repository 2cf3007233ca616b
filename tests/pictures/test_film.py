"""Films of a solve: the frames are what the solver has then, and the files can be played without a network."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

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
@for_each("problem, solver", [(lasso(), "admm"), (hinge(), "dual_ascent")])
def test_frames_are_one_run_and_each_proves_its_interval(problem, solver):
    """Its looks are those of one uninterrupted run."""
    shown = mtl.report.film(problem, solver, tol=1e-6)
    last = shown.solutions[-1]
    assert shown.solver == solver and last.status == "optimal" and len(shown) == len(shown.steps) > 5
    assert [one.iterations for one in shown.solutions] == list(shown.steps)
    for one in shown.solutions:
        assert one.dual_bound <= last.objective * (1 + 1e-9) and one.objective >= last.dual_bound * (1 - 1e-9)
    seen = {}
    problem.solve(solver, tol=1e-6, callback=lambda look: seen.update({look["iteration"]: look["objective"]}))
    filmed = {k: one.objective for k, one in zip(shown.steps, shown.solutions, strict=True) if k in seen}
    assert filmed and np.allclose(list(filmed.values()), [seen[k] for k in filmed], rtol=1e-9, atol=0.0)


@pytest.mark.slow
def test_a_gif_and_a_page_have_every_frame(tmp_path):
    """A panel of one's own is given every solution."""
    from PIL import Image

    shown = mtl.report.film(lasso(), "admm", steps=[1, 2, 5])
    with Image.open(shown.save(tmp_path / "film.gif", dpi=40)) as gif:
        assert gif.n_frames == 3 and gif.size == (384, 168)
    page = shown.save(str(tmp_path / "film.html"), dpi=40).read_text()
    assert page.count("data:image/png") == 4 and 'max="2"' in page  # the first one stands in the page as well
    assert "http" not in page and "After 5 iterations" in page and "trace_norm" in page
    assert "srcdoc=" in shown._repr_html_()
    seen = []
    shown = mtl.report.film(lasso(), steps=[1, 3], panel=lambda ax, solution: seen.append(solution))
    shown.save(tmp_path / "film.gif", dpi=30)
    assert seen == list(shown.solutions) and shown.solver == lasso().solve().solver  # of "auto"


@pytest.mark.slow
def test_a_still_goes_into_two_axes_of_a_slide(plt):
    W = mtl.Weights(two := mtl.Tasks.shared(X[:, :2], NUMBERS.targets[:30, None]))
    shown = mtl.report.film(mtl.minimize(mtl.squared_loss(W, two) + 2 * mtl.l1_norm(W)), "admm")
    _, axes = plt.subplots(1, 2)
    left, right = shown.still(-1, axes)
    assert left is axes[0] and "level lines" in left.get_title(loc="left")
    assert f"iteration {shown.steps[-1]}: " in right.get_title(loc="left")
    assert right.get_xlabel() == "iteration"
    np.testing.assert_allclose(left.lines[0].get_xydata()[-1], shown.solutions[-1].W.ravel())


def test_what_cannot_be_filmed_is_a_typed_error(tmp_path):
    shown = mtl.report.film(lasso(), "admm", steps=[1, 2])
    for ask, words in (
        *((lambda steps=steps: mtl.report.film(lasso(), "admm", steps=steps), "ascending whole numbers") for steps in ([3, 2], [], 5, [0, 1])),
        (lambda: mtl.report.film(lasso(), "admm", panel=3), "a function of"),
        (lambda: mtl.report.film(lasso().solve()), "it takes a problem"),
        (lambda: shown.save(tmp_path / "film.mp4"), "a .gif or a .html"),
        (lambda: shown.save(tmp_path / "film.gif", seconds=0), "positive number"),
        (lambda: shown.still(2), "frames 0 to 1"),
        (lambda: shown.still(0, [1]), "two matplotlib Axes"),
    ):  # fmt: skip
        with pytest.raises(mtl.DataError, match=words):
            ask()
