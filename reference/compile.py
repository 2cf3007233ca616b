"""Compiler of a normal form into a cvxpy problem, plain or with variables for every term.

Two shapes of the same problem. Plain: the formulas are stated on the blocks themselves, as one would type
them by hand. Split: every loss and every function gets variables of its own for its argument, tied to the
blocks by an equality, because the multiplier of that equality is what a certificate needs: minus a
subgradient of the term.

A structured hinge of more than `metrics.SETTINGS.stated_rows` samples, or over more labellings than `label_graph` states, is a maximum of too many planes to state. It is
given by those found so far, so that `problem` is a relaxation until `CvxpyModel.solve` has found all that matter;
its multipliers are those of its planes.
"""

from __future__ import annotations

from typing import Any, cast

import cvxpy as cp
import numpy as np

from mtldsl.normal_form.form import LossTerm, NormalForm
from mtldsl.reference.metrics import is_stated, metrics_of
from mtldsl.reference.planes import LabelingPlanes

from . import formulas  # noqa: F401  (every atom's formula is registered)
from .label_graph import labellings_size, needs_planes, refuse, sample_weights
from .maps import image, predictions
from .model import CvxpyModel
from .planes import HingePlaneTable
from .registry import formula_of, formula_of_loss, needs_semidefinite_cone
from .workload import nonzeros


def to_cvxpy(form: NormalForm, *, split: bool = False) -> CvxpyModel:
    """The cvxpy problem of a normal form; `split=True` gives every term variables of its own (see above).

    Raises ModelError where an atom has no formula in the reference, or a loss more labellings than can be stated.
    """
    variables = {block.name: cp.Variable(block.shape, name=block.name) for block in form.blocks}
    for variable in variables.values():
        if variable.size == 0:  # the weights of a graph without edges: no solve gives them a value
            variable.value = np.zeros(variable.shape)
    model = CvxpyModel(None, variables, [])

    def argument(expression, name, into):
        if not split:
            return expression
        variable = cp.Variable(expression.shape, name=name)
        model.links.append((variable, expression))
        into.append(variable == expression)
        return variable

    objective = cp.Constant(form.constant)
    for t, term in enumerate(form.losses):
        refuse(term)
        if _needs_planes(term) or needs_planes(term):
            kind = LabelingPlanes if needs_planes(term) else HingePlaneTable
            planes = kind(term, variables, f"hinges{t}")
            model.planes.append(planes)
            model.loss_ties += [planes] if split else []
            objective += planes.objective
            continue
        model.data_size += nonzeros(term) + labellings_size(term)
        model.states_hinges |= bool(metrics_of(term))
        objective += _loss(term, argument(predictions(term, variables), f"predictions{t}", model.loss_ties))
    for k, term in enumerate(form.functions):
        W = argument(image(term.map, variables), f"argument{k}", model.function_ties)
        stated = formula_of(term.atom.name, term.typed)
        if needs_semidefinite_cone(term.atom, term.typed):
            model.semidefinite_side = max(model.semidefinite_side, sum(W.shape))
        if term.is_constraint:
            model.sets += stated(W, term.atom)
        elif stated.own_variables:
            model.statements.append(stated.own_variables(W, term.atom))
            objective += float(term.coefficient) * model.statements[-1].value
        else:
            objective += float(term.coefficient) * stated(W, term.atom)
    model.problem = cp.Problem(cp.Minimize(objective))
    if model.planes and model.violation(form.zeros()) == 0.0:
        model._look(form.zeros(), [])
    model._state()
    return model


def _needs_planes(term: LossTerm) -> bool:
    """Tell whether one of the tasks is too large for its structured hinge to be stated."""
    of_tasks = metrics_of(term)
    targets = np.split(np.asarray(term.tasks.targets, float), np.cumsum(term.tasks.counts)[:-1])
    return bool(of_tasks) and not all(map(is_stated, of_tasks, targets))


def _loss(term: LossTerm, z: cp.Expression) -> cp.Expression:
    """sum over tasks of coefficient * loss; for a sum over samples the coefficients become sample weights. The largest of them, where that
    is asked for."""
    stated, is_largest = formula_of_loss(term), term.atom.name == "worst_task"
    counts, weights = np.asarray(term.tasks.counts), term.tasks.sample_weights
    targets, coefficients = np.asarray(term.tasks.targets, float), np.asarray(term.coefficients, float)
    if stated.of_labellings or stated.of_rows:
        return stated(z, targets, sample_weights(term), term.atom)
    if stated.sum_over_samples and not is_largest:
        per_sample = np.repeat(coefficients, counts) * (1.0 if weights is None else weights)
        if np.all(per_sample == per_sample[0]):
            return float(per_sample[0]) * stated(z, targets, None, term.atom)
        return stated(z, targets, per_sample, term.atom)
    losses, end = [], np.cumsum(counts)
    for i, start in enumerate(end - counts):
        rows = slice(int(start), int(end[i]))
        s = None if weights is None else weights[rows]
        atom = cast(Any, term.atom).of if is_largest else term.atom.of_task(i)
        losses.append(float(coefficients[i]) * stated(z[rows], targets[rows], s, atom))
    return cp.maximum(*losses) if is_largest and len(losses) > 1 else sum(losses)
