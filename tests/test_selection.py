"""The default run still touches every word, every solver, every mixed model and every class of error, whatever `tests.selection` leaves out."""

import inspect
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import mtldsl.errors
from mtldsl.atoms.function import REGISTRY
from mtldsl.language.words.vocabulary import SIMILARITIES, UNKNOWNS, WORDS
from mtldsl.solvers.registry import SOLVERS
from mtldsl.testing.law import Case
from tests.conftest import COLLECTED
from tests.models import MODELS
from tests.selection import FEW, chosen

FILES = set(Path(__file__).parent.rglob("test_*.py"))


@pytest.fixture
def by_default(request):
    """The cases of the default run."""
    items = request.config.stash[COLLECTED]
    if len({item.path for item in items} & FILES) < 0.9 * len(FILES):  # some need an optional package
        pytest.skip("only part of the tests was collected")
    return [item for item in items if hasattr(item, "function") and item.get_closest_marker("slow") is None]


@cache
def source(function) -> str:
    return inspect.getsource(function)


def parameters(items):
    given = [value for item in items if hasattr(item, "callspec") for value in item.callspec.params.values()]
    return [value.subject if isinstance(value, Case) else value for value in given]


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


def test_every_solver_and_every_model(by_default):
    """Each solver against the reference on some model, and each model with some solver."""
    given = {value for value in parameters(by_default) if isinstance(value, str)}
    assert set(SOLVERS) - words_in(by_default) == set()
    assert set(MODELS) - given == set()


def test_every_class_of_error(by_default):
    """Some test expects it to be raised."""
    public = {name for name in mtldsl.errors.__all__ if name.endswith("Error")}
    raising = set()
    for item in by_default:
        if "raises(" in source(item.function):
            raising |= set(re.findall(r"\w+Error\b", source(item.function)))
    raising |= {value.__name__ for value in parameters(by_default) if isinstance(value, type)}
    assert public - raising == set()


def test_the_rule():
    """Six of 6 x 4 combinations hold every value of both. What need not occur is there eight times."""
    grid = [(a, b) for a in "abcdef" for b in "wxyz"]
    kept = chosen(grid, lambda case: (set(case), set()), str, Counter())
    assert len(kept) == 6 and set("".join(map("".join, kept))) == set("abcdefwxyz")
    drawn, all_drawn = Counter(), []
    for _ in range(4):
        some = chosen(range(4 * FEW), lambda case: (set(), {case}), str, drawn)
        assert len(some) == len(set(some)) == FEW
        all_drawn += some
    assert sorted(all_drawn) == list(range(4 * FEW))  # other ones in each test
    both = chosen(grid, lambda case: ({case[0]}, {case[1]}), str, Counter())
    assert {a for a, _ in both} == set("abcdef") and len(both) <= FEW
