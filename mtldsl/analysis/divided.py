"""What X^T u leaves, divided between several functions as well as can be."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.proof.residual import stationarity

__all__ = ["divided", "is_shared_out"]

#: steps at most, and numbers that all of them together may touch: nobody waits for more
_STEPS, _WORK = 20_000, 1e9

#: what is left of the equation, and the last change of the multipliers, relative to their size, at which a division is done
_DONE = 1e-11

#: every so many steps: above this size, what is left has to fall by this factor, or there is no feasible division
_LOOK, _LARGE, _FALL = 500, 1e-3, 0.9

#: every so many steps the two step lengths are balanced, by a factor that tends to 1
_BALANCE = 25


def is_shared_out(form: NormalForm, free: list[int]) -> bool:
    """Whether the stationarity equation leaves a choice to the multipliers of these functions, or an equation to be solved for them."""
    functions = [form.functions[k] for k in free]
    plain = all(len(f.map.blocks) == 1 and f.map.multiple_of(f.map.blocks[0]) for f in functions)
    reached = [name for f in functions for name in f.map.blocks]
    return not plain or len(set(reached)) < len(reached)


def divided(form: NormalForm, u: list[np.ndarray], v: list[np.ndarray], free: list[int]) -> list[np.ndarray]:
    """Multipliers of all functions, those in `free` such that they prove most; the others are kept.

        maximize over v_k, k free    - sum g_k*(v_k) + <v_k, offset_k>    subject to    sum B_k^T v_k = -s,

    s what X^T u and the kept ones leave: the dual of min <s, x> + sum g_k(B_k x), by the primal-dual steps of that pair. Every v_k lies in the
    domain of g_k* after every step; the equation holds in the limit, and at once where a function with a finite conjugate takes the rest.
    Where no division is feasible the equation fails, which the caller sees.

    Source: Chambolle and Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging", J. Math. Imaging
    and Vision 40 (2011); the balance is that of Goldstein, Li and Yuan, "Adaptive primal-dual splitting methods", NIPS (2015).
    """
    names = [block.name for block in form.weight_blocks]
    terms = [form.functions[k] for k in free]
    kept = [np.zeros(f.map.shape) if k in free else v[k] for k, f in enumerate(form.functions)]
    s = {name: array for name, array in stationarity(form, u, kept).items() if name in names}
    found = _primal_dual(form, terms, s)
    for k, one in zip(free, found, strict=True):
        kept[k] = one
    left = stationarity(form, u, kept)
    for name in names:
        taker = next(
            (
                k
                for k in free
                if form.functions[k].map.multiple_of(name) and form.functions[k].atom.finite_dual
            ),
            None,
        )
        if taker is not None:
            kept[taker] = kept[taker] - left[name] / form.functions[taker].map.multiple_of(name)
    return kept


def _primal_dual(form: NormalForm, terms: list[FunctionTerm], s: Blocks) -> list[np.ndarray]:
    x: Blocks = {name: np.zeros_like(array) for name, array in s.items()}
    v = [np.zeros(f.map.shape) for f in terms]
    length = _length(terms, x)
    size = max((float(np.abs(array).max(initial=0.0)) for array in s.values()), default=0.0)
    size = size or 1.0
    tau = sigma = 0.99 / max(length, 1e-300)
    work = sum(array.size * min(array.shape) for array in v)
    change, before = 0.5, np.inf
    for step in range(min(_STEPS, int(_WORK / max(work, 1)))):
        gradient = {name: array.copy() for name, array in s.items()}
        for f, one in zip(terms, v, strict=True):
            f.map.add_adjoint(one, gradient)
        after = {name: x[name] - tau * gradient[name] for name in x}
        ahead = {name: 2.0 * after[name] - x[name] for name in x}
        new = []
        for f, one in zip(terms, v, strict=True):
            y = one + sigma * f.map.forward(ahead)
            new.append(y - sigma * f.prox(y / sigma, 1.0 / sigma))
        moved = [a - b for a, b in zip(new, v, strict=True)]
        still = max(float(np.abs(one).max(initial=0.0)) for one in moved)
        left = max(float(np.abs(one).max(initial=0.0)) for one in gradient.values())
        if step and max(still, left) <= _DONE * size:
            break
        if step % _LOOK == _LOOK - 1:
            if left > max(_LARGE * size, _FALL * before):
                break
            before = left
        if step % _BALANCE == _BALANCE - 1:
            tau, sigma, change = _balanced(terms, x, after, moved, tau, sigma, change)
        x, v = after, new
    return v


def _balanced(terms, x: Blocks, after: Blocks, moved, tau: float, sigma: float, change: float):
    """Longer steps on the side whose residual is the larger; (tau, sigma, how much the next may change)."""
    step = {name: after[name] - x[name] for name in x}
    primal = {name: array / tau for name, array in step.items()}
    dual = 0.0
    for f, one in zip(terms, moved, strict=True):
        f.map.add_adjoint(one, primal)
        dual += float(np.sum((one / sigma - f.map.linear(step)) ** 2))
    p, d = np.sqrt(sum(float(np.sum(one**2)) for one in primal.values())), np.sqrt(dual)
    if p > 2.0 * d:
        return tau / (1.0 - change), sigma * (1.0 - change), 0.95 * change
    if d > 2.0 * p:
        return tau * (1.0 - change), sigma / (1.0 - change), 0.95 * change
    return tau, sigma, change


def _length(terms: list[FunctionTerm], like: Blocks) -> float:
    """The norm of x -> (B_k x)_k, by power steps from a fixed start; a little too large rather than too small."""
    draw = np.random.default_rng(0)
    x: Blocks = {name: draw.normal(size=array.shape) for name, array in like.items()}
    length = 0.0
    for _ in range(50):
        norm = np.sqrt(sum(float(np.sum(array**2)) for array in x.values()))
        if not norm:
            return 0.0
        x = {name: array / norm for name, array in x.items()}
        image = [f.map.linear(x) for f in terms]
        length = np.sqrt(sum(float(np.sum(np.asarray(one) ** 2)) for one in image))
        back: Blocks = {name: np.zeros_like(array) for name, array in x.items()}
        for f, one in zip(terms, image, strict=True):
            f.map.add_adjoint(np.asarray(one), back)
        x = back
    return 1.01 * length
