r"""First-order conditions with multipliers, for models in which losses have kinks or penalties are not convex.

A point x is stationary where there are u_t in the subdifferential of loss t at its predictions, and v_k in that of function k at
the image of its map, with sum_t A_t^T u_t + sum_k B_k^T v_k = 0 on every block. A solver's multipliers obey none of this exactly.
They are made to obey the equation - one function of every block takes what is left - and then measured: u lies in the
subdifferential of f at z exactly if z = prox(z + tau u), so that

    || z - prox_{tau f}(z + tau u) || / (tau ||u||)

is the distance, to first order, in multipliers and in predictions alike. For a function that is not convex tau is small: then only
what is near counts. The log-rank at W = U diag(s) V^T, for one, has the subgradients U diag(1 / (1 + s)) V^T + Z with Z
orthogonal to U and V on either side and ||Z||_2 <= 1.

Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, problem (7); Rockafellar and Wets, "Variational analysis"
(1998), Theorem 10.1.
"""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm

__all__ = ["FLOOR", "first_order_residuals"]

_TINY = np.finfo(float).tiny

#: Gradients below this share of the losses' gradient at zero count as that large: where all vanish, each is rounding of the others.
FLOOR = 1e-6

#: tau of a function that is not convex, as shares of what it is for others: a step of the first may still cross a kink right beside the
#: point, and the shorter one does not; where every step is too long, v is not a subgradient.
_NEAR = 1e-3, 1e-5


def first_order_residuals(
    form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None
) -> dict[str, float] | None:
    """What is missing of the conditions, by term as typed and "balance" for the equation; None where a term has neither a gradient
    nor an exact prox, or two terms of a block lack a multiplier.
    """
    x, g = blocks, form.zeros()
    found: dict[str, float] = {}
    of_losses, magnitudes = form.zeros(), form.zeros()
    for t, loss in enumerate(form.losses):
        z = loss.predictions(x)
        if loss.atom.smooth:
            u = loss.gradient(z)
        else:
            given = None if loss_duals is None else loss_duals[t]
            u = loss.gradient(z) if given is None else np.asarray(loss.dual_project(given))
            apart = _loss_distance(loss, z, u, loss.gradient(loss.predictions(form.zeros())))
            if apart is None:
                return None
            found[loss.typed] = apart
        loss.add_adjoint(u, of_losses)
        for (
            name
        ) in loss.intercepts:  # where multipliers balance each other, their sum is not a measure of size
            magnitudes[name] += np.add.reduceat(np.abs(u), loss.tasks.offsets[:-1])[None, :]
    floor = max(FLOOR * form.slope_at_zero, _TINY)
    sizes = {name: float(np.linalg.norm(part)) for name, part in of_losses.items()}
    for name, part in of_losses.items():
        g[name] += part
    v = _known(form, x, function_duals)
    for f, dual in zip(form.functions, v, strict=True):
        if dual is not None:
            into = form.zeros()
            f.map.add_adjoint(dual, into)
            for name, part in into.items():
                g[name] += part
                sizes[name] = max(sizes[name], float(np.linalg.norm(part)))
    rough = [k for k, f in enumerate(form.functions) if f.is_constraint or not f.atom.is_smooth]
    left = 0.0
    for name, residual in g.items():
        own = [k for k in rough if form.functions[k].map.multiple_of(name)]
        missing = [k for k in own if v[k] is None]
        if len(missing) > 1:
            return None
        if own:
            taker = missing[0] if missing else own[-1]
            before = 0.0 if v[taker] is None else v[taker]
            v[taker] = before - residual / form.functions[taker].map.multiple_of(name)
        else:
            size = max(*sizes.values(), float(np.linalg.norm(magnitudes[name])), floor)
            left = max(left, float(np.linalg.norm(residual)) / size)
    if any(v[k] is None for k in rough):
        return None
    found["balance"] = left
    largest = max(*sizes.values(), floor)
    for k in rough:
        f, w = form.functions[k], form.functions[k].map.forward(x)
        if not f.atom.exact_prox:
            return None
        length = max(float(np.linalg.norm(w)), f.map.usual_length(x)) or 1.0
        found[f.typed] = _distance(f, w, v[k], length, largest, max(form.slope_at_zero, _TINY))
    return found


def _loss_distance(loss: LossTerm, z, u, usual) -> float | None:
    """The distance of u from the subdifferential of a loss at z, the largest over tasks: each has a scale of its own. None without a prox.

    usual : the loss's gradient at zero, in relation to which a multiplier may vanish
    """
    by_task = loss.atom.separable or loss.takes_steps_by_task  # else there is one step for all
    starts = loss.tasks.offsets[:-1] if by_task else np.zeros(1, int)

    def norms(flat):
        return np.sqrt(np.add.reduceat(np.square(flat), starts))

    lengths, sizes = norms(z) + norms(loss.tasks.targets), np.maximum(norms(u), FLOOR * norms(usual))
    steps = lengths / np.maximum(sizes, _TINY)
    step = np.repeat(steps, loss.tasks.counts) if by_task else steps[0]
    try:
        apart = norms(z - loss.prox(z + step * u, step))
    except NotImplementedError:
        return None
    return float(np.max(apart / np.maximum(lengths, _TINY)))


def _known(form: NormalForm, x: Blocks, function_duals) -> list:
    known: list[np.ndarray | None] = []
    for k, f in enumerate(form.functions):
        if not f.is_constraint and f.atom.is_smooth:
            known.append(f.coefficient * f.atom.gradient(f.map.forward(x)))
        else:
            given = None if function_duals is None else function_duals[k]
            known.append(None if given is None else np.asarray(given, float))
    return known


def _distance(f, w, v, length: float, largest: float, usual: float) -> float:
    """The distance of v from the subdifferential of a function at w, relative to the largest gradient, or of w from where v belongs,
    relative to `length`: the image itself may be nothing but what rounding leaves of zero."""
    size = max(float(np.linalg.norm(v)), largest, _TINY)
    # far steps see what is not near: for a function that is not convex they are short even where v vanishes
    taus = [length / size] if f.atom.convex else [near * length / max(size, usual) for near in _NEAR]
    return min(float(np.linalg.norm(w - f.prox(w + tau * v, tau))) / (tau * size) for tau in taus)
