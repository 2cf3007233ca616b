"""The page that the landing page links: made from the session of docs/start.md, whole, with its first tile."""

import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import example_page as made

ROOT = Path(__file__).parents[2]


def test_the_landing_page_links_it():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f'href="{made.NAME}"' in text
    assert '"example_page"' in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")


def test_it_is_made_once(tmp_path, monkeypatch):
    times = []
    monkeypatch.setattr(made, "page", lambda: times.append(1) or "x")
    path = made.write(tmp_path)
    assert made.write(tmp_path) == path and len(times) == 1 and path.read_text() == "x"
    os.utime(path, (0, 0))
    made.write(tmp_path)
    assert len(times) == 2


@pytest.mark.slow
def test_it_is_what_the_text_makes():
    html = made.page()
    assert "Certified: the optimum, proven; the cross-check agrees" in html
    assert re.search(r"F1, mean of 10 tasks, held out</dt><dd>0\.\d{3}<", html)
    assert "better than a guess" in html and html.count("<img") >= 3
