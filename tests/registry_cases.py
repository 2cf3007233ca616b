"""Every atom's examples as pytest parameters, beside the data that the laws of mtldsl/testing run on."""

import numpy as np
import pytest

import mtldsl.language.vocabulary  # noqa: F401  (every word's atom is registered)
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import MatrixFunction, Regularizer, Set
from mtldsl.extending.laws.law_examples import *  # noqa: F403  # noqa: F403


def near(value, size=1.0, rel=1e-11):
    """Equal up to rounding, which is relative to the terms that the value is the sum of."""
    return pytest.approx(value, abs=rel * (1 + abs(value) + size))


def orthogonal(rng, n) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def with_singular_values(s, shape, rng) -> np.ndarray:
    U, V = (orthogonal(rng, n)[:, : len(s)] for n in shape)
    return (U * np.asarray(s, float)) @ V.T


def dense(matrices) -> list[np.ndarray]:
    return [S.dense() for S in matrices]


def name_of(atom, i) -> str:
    """Its word, and which example it is; a structured hinge says its metric too."""
    return f"{atom.name}-{getattr(atom, 'metric', i)}"


def examples(kind):
    """pytest parameters: every example of every registered atom of a kind, named by its word."""
    return [
        pytest.param(atom, id=name_of(atom, i))
        for name, cls in REGISTRY.items()
        if issubclass(cls, kind)
        for i, atom in enumerate(cls.examples())
    ]


LOSSES, REGULARIZERS, SETS = examples(Loss), examples(Regularizer), examples(Set)
#: those that are convex are regularizers too, their matrices eliminated
STRUCTURES = [
    case for case in examples(Structure) if case.values[0].learns and not case.values[0].weighs_kernels
]
#: that learn weights of given matrices
KERNEL_NORMS = [
    case for case in examples(Structure) if case.values[0].learns and case.values[0].weighs_kernels
]
#: whose one matrix is not an unknown: functions of the weights alone, but not convex ones
REWEIGHTED = [case for case in examples(Structure) if not case.values[0].learns]
MATRIX_FUNCTIONS = REGULARIZERS + SETS + REWEIGHTED
#: not convex: the reference has them in numpy, and cvxpy is never asked
SPECTRAL = [
    case
    for case in examples(MatrixFunction)
    if case.values[0].separable == "spectrum" and not case.values[0].convex
]
#: the same of sizes of entries or rows
CONCAVE = [
    case
    for case in examples(Regularizer)
    if case.values[0].separable in ("entries", "rows") and not case.values[0].convex
]


def convex(cases):
    return [case for case in cases if case.values[0].convex]
