"""lambda_max: the parameter value at which a norm's weights become exactly zero."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.function import Atom, MatrixFunction
from mtldsl.compile.checks import on_weights
from mtldsl.compile.constants import best_constants
from mtldsl.compile.from_tree import to_normal_form
from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.compile.statement import Statement
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.errors import ModelError
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.expressions.scalar import Parameter, Scalar
from mtldsl.system.threads import fitting_blas_threads
from mtldsl.values.number import quoted

__all__ = ["CriticalValue", "lambda_max"]


class CriticalValue(float):
    """A number with `exact`: whether the weights are zero exactly up to (or from) it, and `note`, which says what it is if not."""

    exact: bool
    note: str

    def __new__(cls, value: float, note: str = ""):
        self = super().__new__(cls, value)
        self.exact, self.note = not note, note
        return self

    def __getnewargs__(self):
        return float(self), self.note

    def __repr__(self) -> str:
        return float.__repr__(self) + (f" ({self.note})" if self.note else "")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)


def lambda_max(statement: Statement, parameter: Parameter) -> CriticalValue:
    """See `Problem.lambda_max`. 0 is optimal iff -sum grad f(0) / c lies in the norm's dual ball of radius lambda."""
    if not any(parameter is own for own in statement.parameters):
        names = ", ".join(p.name for p in statement.parameters) or "none"
        raise ModelError(
            f"this problem has no such parameter; it has {names}", term=f"lambda_max({quoted(parameter)})"
        )
    terms = statement.objective.terms
    scaled = [term for term in terms if parameter in term.coefficient.parameters]
    if not scaled:
        raise ModelError(
            f"the parameter must be a factor of a term; here it occurs inside the terms of "
            f"{statement.objective.text} only",
            term=f"lambda_max({parameter.name})",
        )
    for term in scaled:
        if not _is_proportional(term.coefficient, parameter):
            raise ModelError(
                f"{term.text} is not proportional to {parameter.name}; known for a coefficient "
                f"that is a number > 0 times {parameter.name}",
                term=f"lambda_max({parameter.name})",
            )
    penalties = [term for term in terms if not term.is_loss and not _is_flat_at_zero(term)]
    if not statement.is_convex:
        culprit = next(term for term in terms if not term.atom.convex)
        raise ModelError(
            f"{culprit.text} is not convex, so that zero may be stationary without being optimal",
            term=f"lambda_max({parameter.name})",
        )
    for constraint in on_weights(statement.constraints):
        raise ModelError(
            f"no closed form is known with the constraint {constraint.text}",
            term=f"lambda_max({parameter.name})",
        )
    if len(statement.weights) != 1 or len(penalties) != 1 or not _is_norm(penalties[0].atom):
        kinds = ", ".join(term.atom_text for term in penalties) or "no norm"
        raise ModelError(
            f"known for one weight matrix with one norm (a ridge may stand beside it); "
            f"here: {', '.join(w.name for w in statement.weights)} with {kinds}",
            term=f"lambda_max({parameter.name})",
        )
    (penalty,) = penalties
    losses = [term for term in terms if term.is_loss]
    on_norm, on_losses = penalty in scaled, [term for term in losses if term in scaled]
    if (on_norm and on_losses) or (on_losses and len(on_losses) != len(losses)):
        raise ModelError(
            "the parameter must multiply the norm alone, or all losses alone",
            term=f"lambda_max({parameter.name})",
        )
    if not on_norm and not on_losses:
        raise ModelError(
            f"{scaled[0].text} is flat at zero, so no value of {parameter.name} makes the solution zero",
            term=f"lambda_max({parameter.name})",
        )
    with _at_one(parameter):
        form = to_normal_form(Objective(terms), list(statement.constraints), "", {})
        norm = next(f for f in form.functions if f.atom is penalty.atom)
        if norm.map.identity_of is None:
            raise ModelError(
                f"known for a norm of the weights themselves, not of {penalty.argument.text}",
                term=f"lambda_max({parameter.name})",
            )
        with fitting_blas_threads(form.data_size):
            gradient, kinked = _gradient_at_zero(form, f"lambda_max({parameter.name})")
            critical = norm.dual_gauge(gradient[norm.map.identity_of])
    # zero is optimal where one subgradient at zero is small enough; with several, another may be smaller still
    note = f"{'an upper' if on_norm else 'a lower'} bound: {kinked} has a kink at zero" if kinked else ""
    return CriticalValue(critical if on_norm else (1.0 / critical if critical > 0 else np.inf), note)


def _is_flat_at_zero(term) -> bool:
    """Differentiable at 0 with gradient 0: ridges, quadratic forms, squared norms. Such a term does not move lambda_max."""
    if term.argument.offset is not None and np.any(term.argument.offset):
        return False
    return np.isfinite(term.atom.curvature) or (term.atom.finite_dual and not term.atom.norm)


def _is_norm(atom: Atom) -> bool:
    return isinstance(atom, MatrixFunction) and atom.norm


def _is_proportional(coefficient: Scalar, parameter: Parameter) -> bool:
    """Whether the coefficient is a positive number times the parameter: seen from its values at 1, 2 and 4."""
    before, values = parameter.value, []
    try:
        for parameter.value in (1.0, 2.0, 4.0):
            values.append(coefficient.value)
    except ModelError:  # a division by zero on the way
        return False
    finally:
        parameter.value = before
    return values[0] > 0 and np.allclose(values, values[0] * np.array([1.0, 2.0, 4.0]), rtol=1e-12, atol=0)


class _at_one:
    """The parameter set to 1 inside a with block."""

    def __init__(self, parameter: Parameter):
        self.parameter = parameter

    def __enter__(self):
        self.before, self.parameter.value = self.parameter.value, 1.0

    def __exit__(self, *_):
        self.parameter.value = self.before


def _gradient_at_zero(form: NormalForm, typed: str):
    """(sum of the losses' gradients on every block at W = 0 and, where there are intercepts, at their optimum; the text of a loss of
    which that is one subgradient among several, or "").
    """
    x = best_constants(form) or form.zeros()
    gradient, kinked = form.zeros(), ""
    for loss in form.losses:
        z = loss.predictions(x)
        if not _is_differentiable(loss, z):
            # a structured hinge of which several labellings are the worst at once: what it says is a bound, if nothing else moved
            if not isinstance(loss, StructuredTerm) or loss.intercepts:
                raise ModelError(
                    f"known for losses that are differentiable where the weights are zero"
                    f"{' and the intercepts optimal' if loss.intercepts else ''}; {loss.typed} is not",
                    term=typed,
                )
            kinked = loss.typed
        loss.add_adjoint(loss.gradient(z), gradient)
    return gradient, kinked


def _is_differentiable(loss: LossTerm, z: np.ndarray) -> bool:
    """Whether the gradients on both sides of z agree, along the ones and a few random directions: each side of a kink has its own."""
    rng = np.random.default_rng(0)
    for direction in (1.0, *rng.normal(size=(3, z.size))):
        step = 1e-7 * (1.0 + np.abs(z)) * direction
        before, after = loss.gradient(z - step), loss.gradient(z + step)
        # over so short a step a smooth loss changes its slopes by about 1e-7 of them, a kink by a good part of one
        if np.abs(after - before).max() > 1e-4 * max(np.abs(before).max(), np.abs(after).max()):
            return False
    return True
