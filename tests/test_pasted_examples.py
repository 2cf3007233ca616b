"""Examples of public names run when they are pasted into a fresh interpreter, and those of words use the word in a model."""

import doctest

import pytest

import mtldsl as mtl
from mtldsl import estimators
from tests.loops import for_each

PUBLIC = {
    **{name: getattr(mtl, name) for name in mtl.__all__},
    **{name: getattr(estimators, name) for name in estimators.__all__},
}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples_of(name):
    return doctest.DocTestParser().get_doctest(PUBLIC[name].__doc__ or "", {}, name, None, 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(8))
def test_an_example_runs_by_itself(start):
    failed = {}
    for name in list(PUBLIC)[start::8]:
        said = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
        runner.run(examples_of(name), out=said.append)
        if runner.failures:
            failed[name] = "".join(said)
    assert failed == {}


@for_each("name", [name for name, word in PUBLIC.items() if hasattr(word, "atom")])
def test_the_example_of_a_word_has_it_in_a_model(name):
    typed = "".join(one.source for one in examples_of(name).examples)
    assert f"mtl.{name}(" in typed and "mtl.minimize(" in typed and "solve()" in typed
