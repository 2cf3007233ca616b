"""Workload of a cvxpy backend on a form, in scalars of data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from mtldsl.normal_form.form import LossTerm, NormalForm

from . import formulas  # noqa: F401  (every atom's formula is registered)
from .label_graph import labellings_size
from .registry import formula_of_loss, needs_semidefinite_cone

__all__ = ["nonzeros", "workload"]

#: Exponential cones make a sample about this many times more expensive, and again beside a semidefinite cone
#: (measured on the digits: 1,348 rows of logistic loss with a trace norm take two to seven minutes, 100 rows
#: seconds).
EXPONENTIAL_COST, BESIDE_SEMIDEFINITE_COST = 10, 3

#: The planes of structured hinges are found in some 30 to 60 solves (measured on the digits, ten tasks: 100 rows take
#: 3 s with l1, 6 s with l21 and 45 s with a trace norm; 33 rows with a trace norm, stated in full, 27 s).
PLANES_COST = 30

#: A scalar of data under a loss of labellings, and one of the scores of every labelling, are so many scalars of data (measured: 20
#: samples of 294 features and 6 labels take 25 s, 100 of 10 features 11 s, 500 of 10 features and 4 labels 8 s); of a likelihood twice.
OF_LABELLINGS_COST, LABELLING_COST, LIKELIHOOD_COST = 10, 5, 2


def workload(form: NormalForm) -> int:
    """Nonzero scalars of input data; under losses with exponential cones they count 10 times, under structured hinges
    30 times, under losses of labellings 10 times with all labellings beside them, and these 3 times as much again beside a trace norm.
    """
    stated = {term: formula_of_loss(term) for term in form.losses}
    beside = (
        BESIDE_SEMIDEFINITE_COST
        if any(needs_semidefinite_cone(f.atom, f.typed) for f in form.functions)
        else 1
    )
    total = 0
    for term in form.losses:
        formula = stated[term]
        if formula.of_labellings:
            size = OF_LABELLINGS_COST * nonzeros(term) + LABELLING_COST * labellings_size(term)
            total += size * (LIKELIHOOD_COST if formula.exponential else 1) * beside
            continue
        cost = PLANES_COST if formula.by_planes else EXPONENTIAL_COST if formula.exponential else None
        total += nonzeros(term) * (1 if cost is None else cost * beside)
    return total


def nonzeros(term: LossTerm) -> int:
    """The number of nonzeros of the inputs, over all tasks."""
    return sum(X.nnz if sp.issparse(X) else int(np.count_nonzero(X)) for X in term.tasks.inputs)
