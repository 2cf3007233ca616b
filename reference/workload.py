"""Workload of a cvxpy backend on a form, in scalars of data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mtldsl.normal_form.form import LossTerm, NormalForm

from . import formulas  # noqa: F401  (every atom's formula is registered)
from .label_graph import labellings_size
from .registry import formula_of_loss, needs_semidefinite_cone


@dataclass(frozen=True)
class WorkloadSettings:
    """Cost of a scalar of data under a loss, in plain scalars."""

    # exponential cones (measured on the digits: 1,348 rows of logistic loss with a trace norm take two to seven minutes, 100 rows seconds)
    exponential_factor: int = 10
    semidefinite_factor: int = 3  # the same again beside a semidefinite cone
    # structured hinges, whose planes are found in some 30 to 60 solves (measured on the digits, ten tasks: 100 rows take 3 s with l1, 6 s
    # with l21 and 45 s with a trace norm; 33 rows with a trace norm, stated in full, 27 s)
    planes_factor: int = 30
    # losses of labellings (measured: 20 samples of 294 features and 6 labels take 25 s, 100 of 10 features 11 s, 500 of 10 features and 4
    # labels 8 s)
    labelling_data_factor: int = 10
    labelling_factor: int = 5  # one of the scores of every labelling
    likelihood_factor: int = 2  # likelihoods, beside that


SETTINGS = WorkloadSettings()


def workload(form: NormalForm) -> int:
    """Nonzero scalars of input data; under losses with exponential cones they count 10 times, under structured hinges
    30 times, under losses of labellings 10 times with all labellings beside them, and these 3 times as much again beside a trace norm.
    """
    stated = {term: formula_of_loss(term) for term in form.losses}
    beside = (
        SETTINGS.semidefinite_factor
        if any(needs_semidefinite_cone(f.atom, f.typed) for f in form.functions)
        else 1
    )
    total = 0
    for term in form.losses:
        formula = stated[term]
        if formula.of_labellings:
            size = SETTINGS.labelling_data_factor * nonzeros(term)
            size += SETTINGS.labelling_factor * labellings_size(term)
            total += size * (SETTINGS.likelihood_factor if formula.exponential else 1) * beside
            continue
        cost = 1
        if formula.by_planes or formula.exponential:
            cost = (SETTINGS.planes_factor if formula.by_planes else SETTINGS.exponential_factor) * beside
        total += nonzeros(term) * cost
    return total


def nonzeros(term: LossTerm) -> int:
    """The number of nonzeros of the inputs, over all tasks."""
    return sum(X.nnz if sp.issparse(X) else int(np.count_nonzero(X)) for X in term.tasks.inputs)
