"""The site has a page for every public name; docstrings, which are plain text, are written as what Sphinx reads."""

import doctest
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mtldsl
from tests.loops import for_each

pytest.importorskip("sphinx")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import api_pages
import prose

MODULES = ("mtldsl", "mtldsl.estimators", "mtldsl.report", "mtldsl.datasets", "mtldsl.nn", "mtldsl.extending", "mtldsl.testing")  # fmt: skip


@pytest.mark.by_default("mtldsl.nn")
@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_page(module):
    paged = {id(api_pages.resolve(name)) for group in api_pages.groups() for name in group.names}
    public = import_module(module).__all__
    assert public
    missing = [name for name in public if id(getattr(import_module(module), name)) not in paged]
    assert not missing


def test_a_public_name_that_nobody_placed_is_an_error(monkeypatch):
    monkeypatch.setattr(mtldsl, "__all__", [*mtldsl.__all__, "brand_new"])
    monkeypatch.setattr(mtldsl, "brand_new", object(), raising=False)
    with pytest.raises(ValueError, match="brand_new"):
        api_pages.groups()


def test_pages_are_named_once():
    names = [api_pages.shown_as(name) for group in api_pages.groups() for name in group.names]
    assert len(names) == len(set(names)) > 120


def test_the_examples_of_the_converter_hold():
    assert doctest.testmod(prose).failed == 0


@for_each("text, lines", [
    ("||W||_2 of x_ * y", [r"\|\|W\|\|\_2 of x\_ \* y", ""]),
    ("the `W` of *every* task", ["the ``W`` of *every* task", ""]),
    ("before:\n\n    min f\n\n    max g", ["before:", "", ".. code-block:: text", "", "    min f", "", "    max g", ""]),
    ("X, Y   : numpy\n         or scipy\nlam    : > 0", ["``X``, ``Y``", "    numpy", "    or scipy", "``lam``", "    > 0", ""]),
    ("W        the weights\nb (m,)   no entry: two words", [r"W        the weights", r"b (m,)   no entry: two words", ""]),
    (">>> 1 * 2\n2", [">>> 1 * 2", "2", ""]),
    ("- one\n  more\n- *two*", ["- one", "  more", "- *two*", ""]),
    ("Parameters\n----------\na_b : number\n    of `a`", ["Parameters", "----------", "a_b : number", "    of ``a``", ""]),
])  # fmt: skip
def test_plain_text_becomes_what_it_looks_like(text, lines):
    assert prose.to_rst(text) == lines
