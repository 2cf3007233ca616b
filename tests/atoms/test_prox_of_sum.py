"""The prox of a sum: proven by its multipliers, and compared with a generic splitting method."""

import numpy as np

from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.prox.composition import prox_of_sum, unsupported_reason
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
from mtldsl.atoms.sets import AtLeast, AtMost, ColumnsOnSimplex, EqualTo
from tests.atoms.proven_prox import multipliers_prove
from tests.loops import for_each

rng = np.random.default_rng(0)
PER_ENTRY = rng.uniform(0.1, 1.0, size=(5, 4))
ONE_SIDED = np.where(rng.uniform(size=(5, 4)) < 0.5, 0.0, -np.inf)

ATOMS = {
    "l1": L1Norm(), "l1_entries": L1Norm(weights=PER_ENTRY),
    "l1_columns": L1Norm(weights=[1.0, 0.0, 2.0, 1.0]),
    "l1_rows": L1Norm(weights=[[1.0], [0.0], [2.0], [1.0], [0.5]]), "l21": L21Norm(),
    "l21_weighted": L21Norm(weights=[1, 0, 2, 0.5, 1]), "l21_others": L21Norm(weights=[1, 1, 0, 0, 3]),
    "l12": L12Norm(), "l1_inf": L1InfNorm(), "l1_inf_weighted": L1InfNorm(weights=[1, 0, 2, 0.5, 1]),
    "large_groups": GroupNorm([[0, 1, 4], [2, 3]]), "pairs": GroupNorm([[0, 1], [2, 3]]),
    "small_groups": GroupNorm([[0, 1], [3]]), "other_groups": GroupNorm([[0], [1, 2]]),
    "other_groups_weighted": GroupNorm([[0], [1, 2]], weights=[0.0, 2.0]), "frobenius": FrobeniusNorm(),
    "frobenius_ball": NormBall(FrobeniusNorm(), 0.7), "larger_ball": NormBall(FrobeniusNorm(), 2.0),
    "l1_ball": NormBall(L1Norm(), 2.0), "trace": TraceNorm(), "squared_trace": SquaredTraceNorm(),
    "tv": TotalVariation(), "ridge": Ridge(), "ridge_3": Ridge(weights=3.0),
    "ridge_entries": Ridge(weights=PER_ENTRY), "ridge_columns": Ridge(weights=[1.0, 0, 0, 2.0]),
    "mean": MeanRegularizer(), "graph": GraphLaplacian.examples()[0], ">= 0": AtLeast(0.0),
    ">= 0 in part": AtLeast(ONE_SIDED), ">= -0.2": AtLeast(-0.2), ">= 0.1": AtLeast(0.1),
    ">= 0.3": AtLeast(0.3), ">= 1": AtLeast(1.0), ">= columns": AtLeast(np.arange(4.0)),
    ">= entries": AtLeast(PER_ENTRY - 0.8), "<= 0": AtMost(0.0), "<= 0.5": AtMost(0.5),
    "<= 0.9": AtMost(0.9), "= entries": EqualTo(PER_ENTRY), "simplex": ColumnsOnSimplex(),
}  # fmt: skip
#: coefficients of the first, the second ... function; of a set the coefficient is of no matter
COEFFICIENTS = (0.4, 0.2, 0.5, 0.3, 0.1, 0.6)
COMBINED = [
    "l1 + l21", "l21 + l1", "l1_entries + l21_weighted", "l1 + l12", "l1_entries + l1_inf", "l1_inf_weighted + l21",
    "frobenius + other_groups + l21 + l1_inf + l1", "large_groups + small_groups", "trace + frobenius",
    "trace + frobenius_ball + ridge", "l1_entries + l1_columns", "l21_weighted + l21_others",
    "other_groups + other_groups_weighted", "trace + trace", "ridge + l21", "ridge + ridge_3 + trace",
    "ridge_entries + l1 + ridge_columns", "ridge_entries + l1_entries + >= -0.2 + <= 0.5", "ridge_entries + ridge",
    "ridge + squared_trace", "ridge + simplex", "ridge + graph", ">= 0 + l21", "l12 + >= 0", "l1_inf + >= 0 + l1",
    ">= 0 in part + l21 + frobenius", "<= 0 + small_groups", "l1 + >= 0.3 + <= 0.9", ">= -0.2 + >= entries + <= 0.5 + <= 0.5",
    "l1 + = entries", "tv + l1_rows", "tv + l1 + >= 0.1 + <= 0.5", "tv + l1_inf + l21",
    "tv + l1 + >= 0 + pairs + frobenius + ridge", "mean", "l1_ball", "",
]  # fmt: skip


def terms_of(names: str) -> list:
    atoms = [ATOMS[name] for name in names.split(" + ") if name]
    return list(zip(COEFFICIENTS, atoms, strict=False))


@for_each("step", [0.3, 1.0, 2.5])
@for_each("names", COMBINED)
def test_multipliers_prove_the_prox(names, step):
    W, terms = np.random.default_rng(1).normal(size=(5, 4)), terms_of(names)
    together = prox_of_sum(terms)
    assert unsupported_reason(terms) == ""
    V, multipliers = together(W, step)
    np.testing.assert_array_equal(together.prox(W, step), V)
    assert len(multipliers) == len(terms)
    multipliers_prove(terms, together, W, step, accuracy=1e-13)


@for_each(
    "names, message",
    [
        ("l21 + l12", "l21_norm and l12_norm have no common closed-form prox: rows and columns"),
        ("l1 + trace", "l1_norm and trace_norm have no common closed-form prox: singular values"),
        ("trace + squared_trace", "squared_trace_norm combines with ridges only"),
        ("mean + l21", "mean_regularizer combines with ridges only"),
        ("l1_ball + l1", "l1_norm(...) <= 2 combines with ridges only"),
        (">= 0.3 + l21", "at_least and l21_norm have no common closed-form prox: only bounds at 0"),
        ("<= 0.9 + frobenius", "at_most is not positively homogeneous"),
        (">= 1 + <= 0.5", "at_least and at_most have no common closed-form prox: no matrix"),
        ("tv + l1_columns", "treats the entries of a row differently"),
        ("tv + >= columns", "at_least treats the entries of a row differently"),
        ("pairs + other_groups", "their groups overlap without one holding the other"),
        ("ridge_entries + l21", "ridge with unequal weights and l21_norm"),
        ("frobenius_ball + larger_ball", "frobenius_norm(...) <= 0.7 and frobenius_norm(...) <= 2"),
    ],
)
def test_what_cannot_be_combined_is_named(names, message):
    terms = terms_of(names)
    assert prox_of_sum(terms) is None
    assert message in unsupported_reason(terms)
    assert prox_of_sum(terms[::-1]) is None
