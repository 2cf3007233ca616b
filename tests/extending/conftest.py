"""Words and solvers that a test registers do not stay for other tests."""

import sys

import pytest

from mtldsl.extending import registration


@pytest.fixture(autouse=True)
def forgotten_afterwards():
    words, solvers = set(registration._OWN_WORDS), set(registration._OWN_SOLVERS)
    yield
    for name in set(registration._OWN_WORDS) - words:
        registration.unregister(name)
    for name in set(registration._OWN_SOLVERS) - solvers:
        registration.unregister_solver(name)
    sys.modules.pop("my_words", None)
