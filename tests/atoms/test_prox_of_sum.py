"""The prox of a sum: proven by its multipliers, and compared with a generic splitting method."""

from __future__ import annotations

import numpy as np
import pytest

from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum, why_not
from mtldsl.atoms.regularizers import (
    FrobeniusNorm,
    GraphLaplacian,
    GroupNorm,
    L1InfNorm,
    L1Norm,
    L12Norm,
    L21Norm,
    MeanRegularizer,
    Ridge,
    SquaredTraceNorm,
    TotalVariation,
    TraceNorm,
)
from mtldsl.atoms.sets import AtLeast, AtMost, ColumnsOnSimplex, EqualTo, NormBall
from tests.loops import for_each

rng = np.random.default_rng(0)
PER_ENTRY = rng.uniform(0.1, 1.0, size=(5, 4))
ONE_SIDED = np.where(rng.uniform(size=(5, 4)) < 0.5, 0.0, -np.inf)

COMBINED = {
    "l1 + l21": [(0.3, L1Norm()), (0.5, L21Norm())],
    "l21 + l1, other order": [(0.5, L21Norm()), (0.3, L1Norm())],
    "weighted l1 + weighted l21": [
        (0.3, L1Norm(weights=PER_ENTRY)),
        (0.5, L21Norm(weights=[1, 0, 2, 0.5, 1])),
    ],
    "l1 + l12": [(0.3, L1Norm()), (0.5, L12Norm())],
    "l1 + l1_inf": [(0.3, L1Norm(weights=PER_ENTRY)), (0.5, L1InfNorm())],
    "l1_inf + l21": [(0.5, L1InfNorm(weights=[1, 0, 2, 0.5, 1])), (0.3, L21Norm())],
    "l1 + l1_inf + l21 + groups + frobenius": [
        (0.4, FrobeniusNorm()),
        (0.2, GroupNorm([[0, 3], [1, 2]])),
        (0.2, L21Norm()),
        (0.3, L1InfNorm()),
        (0.1, L1Norm()),
    ],
    "nested groups": [(0.3, GroupNorm([[0, 1, 4], [2, 3]])), (0.5, GroupNorm([[0, 1], [3]]))],
    "trace + frobenius": [(0.6, TraceNorm()), (0.4, FrobeniusNorm())],
    "trace + frobenius ball + ridge": [
        (0.6, TraceNorm()),
        (1.0, NormBall(FrobeniusNorm(), 0.7)),
        (0.5, Ridge()),
    ],
    "l1 twice, both weighted": [
        (0.3, L1Norm(weights=PER_ENTRY)),
        (0.2, L1Norm(weights=[1.0, 0.0, 2.0, 1.0])),
    ],
    "l21 twice": [(0.3, L21Norm(weights=[1, 0, 2, 0, 1])), (0.2, L21Norm(weights=[1, 1, 0, 0, 3]))],
    "same groups twice": [
        (0.3, GroupNorm([[0], [1, 2]])),
        (0.2, GroupNorm([[0], [1, 2]], weights=[0.0, 2.0])),
    ],
    "trace twice": [(0.3, TraceNorm()), (0.2, TraceNorm())],
    "ridge + l21": [(0.7, Ridge()), (0.5, L21Norm())],
    "two ridges + trace": [(0.7, Ridge()), (0.2, Ridge(weights=3.0)), (0.5, TraceNorm())],
    "entrywise ridge + l1": [
        (0.7, Ridge(weights=PER_ENTRY)),
        (0.4, L1Norm()),
        (1.0, Ridge(weights=[1.0, 0, 0, 2.0])),
    ],
    "entrywise ridge + l1 + bounds": [
        (0.7, Ridge(weights=PER_ENTRY)),
        (0.4, L1Norm(weights=PER_ENTRY)),
        (1.0, AtLeast(-0.2)),
        (1.0, AtMost(0.3)),
    ],
    "ridges alone": [(0.7, Ridge(weights=PER_ENTRY)), (0.4, Ridge())],
    "ridge + squared trace": [(0.7, Ridge()), (0.1, SquaredTraceNorm())],
    "ridge + simplex": [(0.7, Ridge()), (1.0, ColumnsOnSimplex())],
    "ridge + graph": [(0.7, Ridge()), (0.4, GraphLaplacian.examples()[0])],
    "nonnegative + l21": [(1.0, AtLeast(0.0)), (0.5, L21Norm())],
    "nonnegative + l12": [(0.5, L12Norm()), (1.0, AtLeast(0.0))],
    "nonnegative + l1 + l1_inf": [(0.5, L1InfNorm()), (1.0, AtLeast(0.0)), (0.2, L1Norm())],
    "partly nonnegative + l21 + frobenius": [
        (1.0, AtLeast(ONE_SIDED)),
        (0.4, L21Norm()),
        (0.3, FrobeniusNorm()),
    ],
    "nonpositive + groups": [(1.0, AtMost(0.0)), (0.4, GroupNorm([[0, 1], [2, 4]]))],
    "l1 + bounds away from zero": [(0.4, L1Norm()), (1.0, AtLeast(0.3)), (1.0, AtMost(0.9))],
    "bounds twice": [
        (1.0, AtLeast(-0.3)),
        (1.0, AtLeast(PER_ENTRY - 0.8)),
        (1.0, AtMost(0.6)),
        (1.0, AtMost(0.6)),
    ],
    "equality + l1": [(0.4, L1Norm()), (1.0, EqualTo(PER_ENTRY))],
    "total variation + l1": [
        (0.5, TotalVariation()),
        (0.2, L1Norm(weights=[[1.0], [0.0], [2.0], [1.0], [0.5]])),
    ],
    "total variation + l1 + bounds": [
        (0.5, TotalVariation()),
        (0.2, L1Norm()),
        (1.0, AtLeast(0.1)),
        (1.0, AtMost(0.5)),
    ],
    "total variation + l1_inf + l21": [(0.5, TotalVariation()), (0.2, L1InfNorm()), (0.3, L21Norm())],
    "total variation + everything": [
        (0.3, TotalVariation()),
        (0.1, L1Norm()),
        (1.0, AtLeast(0.0)),
        (0.2, GroupNorm([[0, 1], [2, 3]])),
        (0.2, FrobeniusNorm()),
        (0.5, Ridge()),
    ],
    "one alone": [(0.4, MeanRegularizer())],
    "one set alone": [(1.0, NormBall(L1Norm(), 2.0))],
    "nothing": [],
}


def is_set(atom):
    return hasattr(atom, "project")


@for_each("step", [0.3, 1.0, 2.5])
@for_each("terms", COMBINED.values(), ids=COMBINED.keys())
def test_multipliers_prove_the_prox(terms, step):
    """sum v_k = (W - V) / step with v_k a subgradient of term k at V (Fenchel's equality) is optimality."""
    W = np.random.default_rng(1).normal(size=(5, 4))
    together = prox_of_sum(terms)
    assert why_not(terms) == ""
    V, multipliers = together(W, step)
    np.testing.assert_array_equal(together.prox(W, step), V)
    assert len(multipliers) == len(terms)
    np.testing.assert_allclose(sum(multipliers, np.zeros_like(W)), (W - V) / step, rtol=0, atol=1e-13)
    for (c, atom), v in zip(terms, multipliers, strict=True):
        if is_set(atom):
            assert atom.violation(V) <= 1e-13
            assert atom.support(v) == pytest.approx(np.vdot(V, v), abs=1e-12)
        else:
            z = v / c
            projected = atom.dual_project(z)
            np.testing.assert_allclose(projected, z, rtol=0, atol=1e-13)
            if atom.norm:
                assert atom.dual_gauge(projected) <= 1 + 1e-12
                assert atom.value(V) == pytest.approx(np.vdot(V, z), abs=1e-12)
            else:
                assert atom.value(V) + atom.conjugate(projected) == pytest.approx(np.vdot(V, z), abs=1e-12)


@for_each(
    ("terms", "message"),
    [
        (
            [(1, L21Norm()), (1, L12Norm())],
            "l21_norm and l12_norm have no common closed-form prox: rows and columns",
        ),
        ([(1, L12Norm()), (1, GroupNorm([[0]]))], "l12_norm and group_norm"),
        ([(1, L1InfNorm()), (1, L12Norm())], "l1_inf_norm and l12_norm"),
        (
            [(1, L1Norm()), (1, TraceNorm())],
            "l1_norm and trace_norm have no common closed-form prox: singular values",
        ),
        ([(1, TraceNorm()), (1, AtLeast(0.0))], "trace_norm and at_least"),
        ([(1, TraceNorm()), (1, SquaredTraceNorm())], "squared_trace_norm combines with ridges only"),
        ([(1, SquaredTraceNorm()), (1, FrobeniusNorm())], "squared_trace_norm combines with ridges only"),
        ([(1, MeanRegularizer()), (1, L21Norm())], "mean_regularizer combines with ridges only"),
        ([(1, NormBall(L1Norm(), 1.0)), (1, L1Norm())], "l1_norm(...) <= 1 combines with ridges only"),
        (
            [(1, AtLeast(0.5)), (1, L21Norm())],
            "at_least and l21_norm have no common closed-form prox: only bounds at 0",
        ),
        ([(1, AtMost(1.0)), (1, FrobeniusNorm())], "at_most is not positively homogeneous"),
        (
            [(1, AtLeast(1.0)), (1, AtMost(0.5))],
            "at_least and at_most have no common closed-form prox: no matrix",
        ),
        ([(1, TotalVariation()), (1, L12Norm())], "total_variation and l12_norm"),
        (
            [(1, TotalVariation()), (1, L1Norm(weights=[1.0, 2.0, 1.0, 1.0]))],
            "treats the entries of a row differently",
        ),
        (
            [(1, TotalVariation()), (1, AtLeast(np.arange(4.0)))],
            "at_least treats the entries of a row differently",
        ),
        (
            [(1, GroupNorm([[0, 1]])), (1, GroupNorm([[1, 2]]))],
            "their groups overlap without one holding the other",
        ),
        ([(1, Ridge(weights=PER_ENTRY)), (1, L21Norm())], "ridge with unequal weights and l21_norm"),
        (
            [(1, NormBall(FrobeniusNorm(), 1.0)), (1, NormBall(FrobeniusNorm(), 2.0))],
            "frobenius_norm(...) <= 1 and frobenius_norm(...) <= 2",
        ),
    ],
)
def test_what_cannot_be_combined_is_named(terms, message):
    assert prox_of_sum(terms) is None
    assert message in why_not(terms)
    assert prox_of_sum(terms[::-1]) is None
