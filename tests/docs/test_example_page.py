"""The page that the landing page links: made from the session of docs/start.md, whole, with its first tile."""

import os
import re
import sys
from doctest import DocTestParser, DocTestRunner
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import example_page as made

from tests.test_docs import OPTIONS

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


def test_a_session_runs_in_silence_and_leaves_its_names(capsys):
    assert made.session(">>> a = 1\n>>> print(a + 1)\n2\n", "page.md")["a"] == 1
    assert capsys.readouterr().out == ""


def _as_written(text: str, source: str) -> dict:
    """`made.session`, which holds what is printed to the text, too."""
    test = DocTestParser().get_doctest(text, {}, source, source, 0)
    failed, attempted = DocTestRunner(optionflags=OPTIONS).run(test, clear_globs=False)
    assert failed == 0 and attempted >= 15, "see the captured output"
    return test.globs


@pytest.mark.slow
def test_it_is_what_the_text_makes(monkeypatch):
    """The session of docs/start.md runs as it stands."""
    monkeypatch.setattr(made, "session", _as_written)
    html = made.page()
    assert "Certified: the optimum, proven; the cross-check agrees" in html
    assert re.search(r"F1, mean of 10 tasks, held out</dt><dd>0\.\d{3}<", html)
    assert "better than a guess" in html and html.count("<img") >= 3
