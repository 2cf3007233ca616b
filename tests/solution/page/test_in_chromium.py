"""The page in a browser: at the width of a phone, of a tablet and of a desk nothing runs out of it, and formulas have a size."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.browser import CHROMIUM, CONTRAST, DARK, LIGHT, harness, measured
from tests.loops import for_each

WIDTHS = (390, 800, 1280)

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


def in_browser(html: str, folder) -> list[dict]:
    page = folder / "frames.html"
    page.write_text(harness([("srcdoc", html, width) for width in WIDTHS]), encoding="utf-8")
    return measured(page.as_uri(), folder / "profile")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 40))
    Y = np.sign(X[:, :5] @ rng.normal(size=(5, 12)) + rng.normal(size=(80, 12)))
    names = [f"a label with quite a long name, number {i}" for i in range(11)] + [80 * "y"]
    features = [f"feature_with_a_name_that_cannot_be_broken_{j}" for j in range(40)]
    train, test = mtl.Tasks.shared(X, Y, task_names=names, feature_names=features).split(
        test_size=0.4, random_state=0
    )
    W = mtl.Weights(train, intercept=True)
    problem = mtl.minimize(
        mtl.logistic_loss(W, train) + mtl.Parameter(3.0) * mtl.l21_norm(W), subject_to=[W >= -2]
    )
    solution = problem.solve()
    return solution.report(
        folder / "r.html", test, title="A title with a word that cannot be broken: " + 60 * "x", cross_check=problem.cross_check(solution)
    ).read_text()  # fmt: skip


def test_the_report_fits_every_width(page, tmp_path):
    for found in in_browser(page, tmp_path):
        assert found["overflow"] <= 0, found
        assert found["images"] and found["flat"] == 0 and found["shown"] > 15, found


@for_each("scheme, paper", [(LIGHT, "rgb(255, 255, 255)"), (DARK, "rgb(15, 20, 25)")])
def test_text_can_be_read_by_day_and_by_night(page, tmp_path, scheme, paper):
    """4.5 to 1 between every text and what it stands on, as WCAG 2 asks for at AA."""
    (tmp_path / "r.html").write_text(page.replace("</body>", CONTRAST), encoding="utf-8")
    (found,) = measured((tmp_path / "r.html").as_uri(), tmp_path / "profile", scheme)
    assert found["paper"] == paper and found["texts"] > 200
    assert found["lowest"][0] >= 4.5, found
