"""Words and solvers that a test registers do not stay for other tests."""

import sys

import pytest

from mtldsl.extending import own_solvers, own_words


@pytest.fixture(autouse=True)
def forgotten_afterwards():
    words, solvers = set(own_words._OWN), set(own_solvers._OWN)
    yield
    for name in set(own_words._OWN) - words:
        own_words.unregister(name)
    for name in set(own_solvers._OWN) - solvers:
        own_solvers.unregister_solver(name)
    sys.modules.pop("my_words", None)
