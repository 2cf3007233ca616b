"""Parameters of losses, penalties and sets that are refused as typed, with what to write instead."""

import numpy as np
import pytest

from mtldsl.atoms.losses import HuberLoss, QuantileLoss, SquareRootLoss
from mtldsl.atoms.regularizers import (
    FrobeniusNorm,
    GraphLaplacian,
    GroupNorm,
    L1InfNorm,
    L1Norm,
    L12Norm,
    L21Norm,
    Ridge,
    TraceNorm,
)
from mtldsl.atoms.regularizers.group_norms import TreeNorm
from mtldsl.atoms.sets import AtLeast, AtMost, ColumnsOnSimplex, EqualTo, NormBall
from mtldsl.errors import ModelError
from tests.loops import for_each

INF, NAN = np.inf, np.nan
REFUSED = [
    (lambda: HuberLoss(delta=0.0), "delta=0.0", "> 0"),
    (lambda: HuberLoss(delta=-1), "delta=-1", "> 0"),
    (lambda: HuberLoss(delta=INF), "delta=inf", "finite"),
    (lambda: HuberLoss(delta="1"), "delta='1'", "number"),
    (lambda: HuberLoss(delta=np.array([1.0, 2.0])), "delta=array([1., 2.])", "number"),
    (lambda: SquareRootLoss(eps=-1e-3), "eps=-0.001", ">= 0"),
    (lambda: SquareRootLoss(eps=INF), "eps=inf", "finite"),
    (lambda: SquareRootLoss(eps=np.array([1.0, 2.0])), "eps=array([1., 2.])", "number"),
    (lambda: QuantileLoss(q=0), "q=0", "0 < q < 1"),
    (lambda: QuantileLoss(q=1.0), "q=1.0", "0 < q < 1"),
    (lambda: QuantileLoss(q=NAN), "q=nan", "0 < q < 1"),
    (lambda: QuantileLoss(q=True), "q=True", "0 < q < 1"),
    (lambda: QuantileLoss(q=None), "q=None", "0 < q < 1"),
    (lambda: L1Norm(weights=-1.0), "l1_norm(..., weights=-1.0)", "is -1.0; weights must be finite and >= 0"),
    (lambda: L21Norm(weights=[1.0, NAN]), "l21_norm(", "the weight at 1 is nan"),
    (lambda: Ridge(weights=[[1.0, 2.0], [3.0, -4.0]]), "ridge(", "the weight at (1, 1) is -4.0"),
    (lambda: L12Norm(weights=[[1.0]]), "l12_norm(", "have 2 axes; write a number or a one-dimensional"),
    (lambda: L1InfNorm(weights="heavy"), "l1_inf_norm(..., weights='heavy'): the weights are not numbers"),
    (lambda: GroupNorm([[0, 1], [1, 2]]), "row 1 is in groups 0 and 1; the groups must be disjoint"),
    (lambda: GroupNorm([[0, 0]]), "row 0 is twice in group 0"),
    (lambda: GroupNorm([[0, -1]]), "group 0 holds row -1; row indices are counted from 0"),
    (lambda: GroupNorm([[0.5]]), "group 0 holds 0.5; rows are names, or whole numbers"),
    (lambda: GroupNorm([[0], []]), "group 1 is empty"),
    (lambda: GroupNorm([]), "there are no groups"),
    (lambda: GroupNorm([0, 1]), "group 0 is 0; write a list per group"),
    (lambda: GroupNorm(np.array([0, 0, 1, 1])), "group 0 is 0; write a list per group, such as [[0, 1], [2, 3]]; one label each, these would be the groups [[0, 1], [2, 3]]"),
    (lambda: TreeNorm(rows=np.array([2, 5, 2])), "group 0 is 2; write a list per group", "these would be the groups [[0, 2], [1]]"),
    (lambda: GroupNorm("ab"), "groups is a list of lists"),
    (lambda: GroupNorm([[0]], weights=[1.0, 2.0]), "2 weights for 1 groups"),
    (lambda: GraphLaplacian([[1.0, 2.0], [2.0, 1.0]]), "L has the eigenvalue -1, so the term is not convex"),
    (lambda: GraphLaplacian([[1.0, 2.0], [0.0, 1.0]]),
     "not symmetric: L[0, 1] = 2 but L[1, 0] = 0; write (L"),
    (lambda: GraphLaplacian([[1.0, NAN], [NAN, 1.0]]), "L[0, 1] is nan"),
    (lambda: GraphLaplacian([[1.0, 2.0]]), "L has shape (1, 2); it must be square"),
    (lambda: GraphLaplacian("path"), "'path' is a str, not an array of numbers"),
    (lambda: AtLeast(NAN), ">= nan", "finite"),
    (lambda: AtLeast(INF), ">= inf", "-inf means: no bound there"),
    (lambda: AtMost([[0.0, 1.0], [NAN, 1.0]]), "at (1, 0) is nan", "inf means: no bound there"),
    (lambda: AtMost([0.0, -INF]), "at 1 is -inf", "inf means: no bound there"),
    (lambda: EqualTo([0.0, INF]), "at 1 is inf", "finite numbers"),
    (lambda: EqualTo("one"), "== 'one'", "number"),
    (lambda: AtLeast([[1.0], [1.0, 2.0]]), ">= [[1.0], [1.0, 2.0]]", "array of numbers"),
    (lambda: NormBall(L1Norm(), -1.0), "radius=-1.0", ">= 0"),
    (lambda: NormBall(L21Norm(), NAN), "radius=nan", "finite"),
    (lambda: NormBall(TraceNorm(), INF), "radius=inf", "finite"),
    (lambda: NormBall(FrobeniusNorm(), [1.0]), "radius=[1.0]", "number"),
    (lambda: ColumnsOnSimplex(0.0), "total=0.0", "> 0"),
    (lambda: ColumnsOnSimplex(total="1"), "total='1'", "number"),
]  # fmt: skip


@for_each("case", REFUSED)
def test_wrong_parameters_are_refused_as_typed(case):
    make, *pieces = case
    with pytest.raises(ModelError) as refusal:
        make()
    assert all(piece in str(refusal.value) for piece in pieces), refusal.value
