"""lambda_max: the parameter value at which a norm's weights become exactly zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtldsl.compile.from_tree import to_normal_form
from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.errors import ModelError
from mtldsl.language.objective import Objective
from mtldsl.language.scalar import Parameter

if TYPE_CHECKING:
    from mtldsl.problem import Problem

__all__ = ["lambda_max"]


def lambda_max(problem: Problem, parameter: Parameter) -> float:
    """See `Problem.lambda_max`. 0 is optimal iff -sum grad f(0) / c lies in the norm's dual ball of radius lambda."""
    terms = problem.objective.terms
    scaled = [term for term in terms if parameter in term.coefficient.parameters]
    if not scaled:
        raise ModelError(
            f"lambda_max({parameter.name}): the parameter does not occur in {problem.objective.text}"
        )
    penalties = [term for term in terms if not term.is_loss and not _is_flat_at_zero(term)]
    if problem.constraints:
        raise ModelError(
            f"lambda_max({parameter.name}): no closed form is known with the constraint {problem.constraints[0].text}"
        )
    if len(problem.weights) != 1 or len(penalties) != 1 or not penalties[0].atom.norm:
        kinds = ", ".join(term.atom_text for term in penalties) or "no norm"
        raise ModelError(
            f"lambda_max({parameter.name}): known for one weight matrix with one norm (a ridge may stand beside it); "
            f"here: {', '.join(w.name for w in problem.weights)} with {kinds}"
        )
    (penalty,) = penalties
    losses = [term for term in terms if term.is_loss]
    on_norm, on_losses = penalty in scaled, [term for term in losses if term in scaled]
    if (on_norm and on_losses) or (on_losses and len(on_losses) != len(losses)):
        raise ModelError(
            f"lambda_max({parameter.name}): the parameter must multiply the norm alone, or all losses alone"
        )
    if not on_norm and not on_losses:
        raise ModelError(
            f"lambda_max({parameter.name}): {scaled[0].text} is flat at zero, so no value of {parameter.name} makes the solution zero"
        )
    with _at_one(parameter):
        form = to_normal_form(Objective(terms), [], "")
        norm = next(f for f in form.functions if f.atom is penalty.atom)
        if norm.map.identity_of is None:
            raise ModelError(
                f"lambda_max({parameter.name}): known for a norm of the weights themselves, not of {penalty.argument.text}"
            )
        gradient = _gradient_at_zero(form)
        critical = norm.dual_gauge(gradient[norm.map.identity_of])
    return critical if on_norm else (1.0 / critical if critical > 0 else np.inf)


def _is_flat_at_zero(term) -> bool:
    """Differentiable at 0 with gradient 0: ridges, quadratic forms, squared norms. Such a term does not move lambda_max."""
    return np.isfinite(term.atom.curvature) or (term.atom.finite_dual and not term.atom.norm)


class _at_one:
    """The parameter set to 1 inside a with block."""

    def __init__(self, parameter: Parameter):
        self.parameter = parameter

    def __enter__(self):
        self.before, self.parameter.value = self.parameter.value, 1.0

    def __exit__(self, *_):
        self.parameter.value = self.before


def _gradient_at_zero(form: NormalForm):
    """sum of the losses' gradients on every block at W = 0 and, where there are intercepts, at their optimum."""
    x = form.zeros()
    for block in form.blocks:
        if block.intercept_of is not None:
            for loss in form.losses:
                if block.name in loss.intercepts:
                    x[block.name][0] = _best_intercepts(loss)
    gradient = form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(x)), gradient)
    return gradient


def _best_intercepts(loss: LossTerm) -> np.ndarray:
    """argmin over a constant prediction, task by task: convex in one variable."""
    from scipy.optimize import minimize_scalar

    weights = loss.tasks.sample_weights
    best = np.empty(loss.tasks.n_tasks)
    for i, y in enumerate(loss.tasks.per_task(loss.tasks.targets)):
        s = None if weights is None else loss.tasks.per_task(weights)[i]
        if loss.atom.quadratic is not None:
            best[i] = np.average(y, weights=s)
            continue
        value = lambda b, y=y, s=s: loss.atom.value(np.full(y.shape, b), y, s)  # noqa: E731
        best[i] = minimize_scalar(value, bracket=(-1.0, 1.0), tol=1e-14).x
    return best
