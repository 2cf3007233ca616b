"""The default run touches every word, every solver, every kind of error and every door, whatever has a mark that leaves it out.

A mark stands where its test does: `slow`, `process`, `cluster`, `reference`, `browser` say what a test needs, and `by_default("case", ...)`
names the cases of a long test that run all the same.
"""

import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import mtldsl.errors
from mtldsl.atoms.atom import REGISTRY
from mtldsl.extending.law import Case
from mtldsl.language.vocabulary import SIMILARITIES, UNKNOWNS, WORDS
from mtldsl.solvers.routes import SOLVERS
from tests.conftest import COLLECTED, is_named
from tests.loops import values_of
from tests.models import MODELS

#: marks of what the default run leaves out
LEFT_OUT = ("slow", "process", "cluster", "reference", "browser")

DOORS = Path(__file__).parent / "doors"

FILES = set(Path(__file__).parent.rglob("test_*.py"))


@pytest.fixture
def by_default(request):
    """The cases of the default run."""
    items = request.config.stash[COLLECTED]
    if len({item.path for item in items} & FILES) < 0.9 * len(FILES):  # some need an optional package
        pytest.skip("only part of the tests was collected")
    return [
        item
        for item in items
        if hasattr(item, "function") and not any(map(item.get_closest_marker, LEFT_OUT))
    ]


@pytest.fixture
def everything(request):
    """All cases that were collected."""
    return [item for item in request.config.stash[COLLECTED] if hasattr(item, "function")]


@cache
def source(function) -> str:
    return inspect.getsource(function)


def parameters(items):
    """All values of parameters, those that a test loops over too; of a law's cases their subjects."""
    given = [value for item in items if hasattr(item, "callspec") for value in item.callspec.params.values()]
    loops = {item.function: values_of(item.function) for item in items}
    given += [value for found in loops.values() for values in found.values() for value in values]
    cases = [one for value in given if isinstance(value, list) for one in value if isinstance(one, Case)]
    return given + [case.subject for case in cases]


def words_in(items) -> set[str]:
    """All that looks like a name in the functions, in parameters that are texts or atoms, and in the models that are named there."""
    texts = {source(item.function) for item in items}
    for value in parameters(items):
        if isinstance(value, str):
            texts |= {value, source(MODELS[value])} if value in MODELS else {value}
        elif isinstance(getattr(value, "name", None), str):
            texts |= {value.name}
    return set().union(*(re.findall(r"\w+", text) for text in texts))


def test_every_word(by_default):
    """The laws run over every atom, and every word of the language is in some test."""
    atoms = {value.name for value in parameters(by_default) if hasattr(type(value), "examples")}
    assert set(REGISTRY) - atoms == set()
    assert {*WORDS, *SIMILARITIES, *UNKNOWNS} - words_in(by_default) == set()


def test_every_solver(by_default):
    assert set(SOLVERS) - words_in(by_default) == set()


def test_every_door(by_default):
    """Each door of the table of quirks is tried with data."""
    files = {item.path for item in by_default}
    assert set(DOORS.glob("test_*.py")) <= files


def test_every_class_of_error(by_default):
    """Some test expects it to be raised."""
    public = {name for name in mtldsl.errors.__all__ if name.endswith("Error")}
    raising = set()
    for item in by_default:
        if "raises(" in source(item.function):
            raising |= set(re.findall(r"\w+Error\b", source(item.function)))
    raising |= {value.__name__ for value in parameters(by_default) if isinstance(value, type)}
    assert public - raising == set()


def test_cases_by_default_are_there(everything):
    """A name that stands in `by_default` is that of a case."""
    named, there = {}, {}
    for item in everything:
        mark = item.get_closest_marker("by_default")
        if mark is not None:
            key = item.path, item.originalname
            named[key] = set(mark.args)
            there.setdefault(key, set()).add(item.callspec.id)
    lost = {
        key: sorted(name for name in names if not any(is_named(case, name) for case in there[key]))
        for key, names in named.items()
    }
    assert {key: names for key, names in lost.items() if names} == {}
