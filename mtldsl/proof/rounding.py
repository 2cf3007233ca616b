"""How far float64 may misplace an objective and a bound, and who is to blame where they contradict each other by more."""

from __future__ import annotations

import math

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.errors import ProofError
from mtldsl.proof.bound import UNITS, Bound
from mtldsl.proof.residual import stationarity

__all__ = ["refute", "rounding_of"]

_EPS = float(np.finfo(float).eps)


def rounding_of(form: NormalForm, blocks: Blocks, proof: Bound, objective: float) -> float:
    """64 eps times the sum of the absolute values that objective and bound are sums of, for the price of neither.

    These are both themselves (sums of parts of one sign, but for what follows); <|u|, |y|> of a loss and what its predictions are
    sums of (`LossTerm.magnitude`); once, not 64 times, the same of slopes at kinks (`LossTerm.slopes_at_kinks`); <|v|, |B x|> of a
    function and, where it is an uneven quadratic, what its steepest direction makes of B x and its flattest of v.
    """
    total = abs(form.constant) + abs(objective) + abs(proof.value)
    for loss, u in zip(form.losses, proof.loss_duals, strict=True):
        total += loss.magnitude(u, blocks)
        steepest = loss.slopes_at_kinks(blocks)
        if steepest is not None:
            total += loss.magnitude(steepest, blocks) / UNITS
    for f, v in zip(form.functions, proof.function_duals, strict=True):
        total += _of_function(f, v, f.map.forward(blocks))
    return UNITS * _EPS * total if math.isfinite(total) else math.inf


def _of_function(f: FunctionTerm, v, image) -> float:
    total = float(np.abs(v).ravel() @ np.abs(image).ravel())
    total += f.coefficient * f.atom.cancelling(image)
    modulus = f.coefficient * f.atom.strong_convexity
    return total + (float(np.vdot(v, v)) / (2.0 * modulus) if modulus > 0 else 0.0)


def _outside(form: NormalForm, blocks: Blocks, proof: Bound) -> float:
    """sum of |<v, what of B x lies outside the domain>|: what objectives there lack, of weights that rounding has moved out."""
    total = 0.0
    for f, v in zip(form.functions, proof.function_duals, strict=True):
        outside = f.atom.outside(f.map.forward(blocks))
        total += 0.0 if outside is None else abs(float(np.vdot(v, outside)))
    return total


def refute(form: NormalForm, blocks: Blocks, proof: Bound, objective: float) -> None:
    """ProofError where a bound lies above the objective of weights within all constraints, by more than rounding.

    F(x) - D is a sum of terms that cannot be negative: f(z) + f*(u) - <u, z>, and <r, x>. The one that is stands in the message.
    """
    rounding = rounding_of(form, blocks, proof, objective)
    if not proof.value > objective + rounding:
        return
    rounding += _outside(form, blocks, proof)
    if not proof.value > objective + rounding:
        return
    surplus = {}
    for loss, u in zip(form.losses, proof.loss_duals, strict=True):
        z = loss.predictions(blocks)
        surplus[loss.typed] = loss.value(z) + loss.conjugate(u) - loss.along(u, z)
    for f, v in zip(form.functions, proof.function_duals, strict=True):
        surplus[f.typed] = f.value(blocks) + f.conjugate(v) - float(np.vdot(v, f.map.forward(blocks)))
    residual = stationarity(form, proof.loss_duals, proof.function_duals)
    for name, r in residual.items():
        surplus[f"the stationarity equation of {name}"] = float(np.vdot(r, blocks[name]))
    worst = min(surplus, key=lambda name: surplus[name])
    raise ProofError(
        f"internal error of mtldsl: the bound {proof.value:.17g} lies {proof.value - objective:.1e} above the attained objective "
        f"{objective:.17g}, more than rounding ({rounding:.1e}); {worst} is short by {-surplus[worst]:.1e}: a conjugate or a proximal step "
        "of it is wrong. If it is a word of your own, mtldsl.testing.check_atom finds which; else please report the model"
    )
