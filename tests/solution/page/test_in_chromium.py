"""The page in a browser: at the width of a phone, of a tablet and of a desk nothing runs out of it, and formulas have a size."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import numpy as np
import pytest

import mtldsl as mtl

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (390, 800, 1280)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]

MEASURED = """
<pre id="found"></pre>
<script>
addEventListener("load", () => {
  const found = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    const shown = [...page.querySelectorAll("math,img,h1,h2")].filter(e => e.offsetParent !== null || e.tagName === "math");
    found.push({width: frame.clientWidth, overflow: root.scrollWidth - frame.clientWidth,
      images: [...page.images].every(image => image.complete && image.naturalWidth > 0),
      flat: [...page.querySelectorAll("section math")].filter(e => e.getBoundingClientRect().height < 5).length,
      shown: shown.length});
  }
  document.getElementById("found").textContent = JSON.stringify(found);
});
</script>
"""


def in_browser(html: str, folder) -> list[dict]:
    frames = "".join(
        f'<iframe style="width:{w}px;height:900px;border:0" srcdoc="{escape(html)}"></iframe>' for w in WIDTHS
    )
    page = folder / "frames.html"
    page.write_text(f"<!DOCTYPE html><body>{frames}{MEASURED}</body>", encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000",
         "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return json.loads(unescape(re.search(r'<pre id="found">(.*?)</pre>', done.stdout)[1]))


def test_the_report_fits_every_width(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 40))
    Y = np.sign(X[:, :5] @ rng.normal(size=(5, 12)) + rng.normal(size=(80, 12)))
    names = [f"a label with quite a long name, number {i}" for i in range(12)]
    features = [f"feature_with_a_name_that_cannot_be_broken_{j}" for j in range(40)]
    train, test = mtl.Tasks.shared(X, Y, task_names=names, feature_names=features).split(
        test_size=0.4, random_state=0
    )
    W = mtl.Weights(train, intercept=True)
    problem = mtl.minimize(
        mtl.logistic_loss(W, train) + mtl.Parameter(3.0) * mtl.l21_norm(W), subject_to=[W >= -2]
    )
    solution = problem.solve()
    html = solution.report(tmp_path / "r.html", test, cross_check=problem.cross_check(solution)).read_text()
    for found in in_browser(html, tmp_path):
        assert found["overflow"] <= 0, found
        assert found["images"] and found["flat"] == 0 and found["shown"] > 15, found
