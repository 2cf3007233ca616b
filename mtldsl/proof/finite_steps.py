r"""Steps of a size from a point that is stationary to first order: what infinitely small ones do not see.

A concave penalty may be flat where a point stands and fall off at a kink next to it: of min(sigma, tau) a singular value just above tau
costs as much as one far above, and nothing at zero. There the gradient is zero, and a step of 1 % may bring 10 %. So the objective itself
is evaluated after steps of at most 1 % of the weights' length,

- every singular value of a penalty's argument, and the smallest together, moved: to zero, to the kinks on either side and past them, by 1 %
  of itself and of the largest, as far as that is within reach;
- a singular value that is zero grown along the first singular pair of what the losses pull with;
- the weights as a whole, up and down;
- a few fixed directions, either way.

It is a test, not a proof: a step that lowers the objective shows that a point is not what its name says; that none of these does is no more
than that. Further steps are none of its business: they compare stationary points with each other. Deterministic, and as many steps as their
price allows: of large data only the first of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.system.long_calls import svd

__all__ = ["finite_steps"]

#: Products with the data that the steps may cost together, in multiply-adds; at least and at most so many steps are looked at.
_WORK, _FEWEST, _MOST = 2e9, 40, 160

#: The longest step, relative to the weights.
_REACH = 1e-2

#: Singular values that are moved one by one: the smallest and the largest.
_SINGLES = 6

#: Fixed directions, and their lengths relative to the weights.
_DIRECTIONS, _LENGTHS = 6, (1.0, 0.1)

#: A singular value this small, relative to the largest, is zero.
_ZERO = 1e-10

#: A kink is passed by this share of it: exactly there the slope of neither side is seen.
_PAST = 1e-6


def finite_steps(form: NormalForm, x: Blocks, tol: float) -> tuple[float, Blocks]:
    """(the lowest objective among the steps that miss no constraint by more than tol, the point there); (inf, x) where there is none."""
    most = int(np.clip(_WORK / max(form.data_size, 1), _FEWEST, _MOST))
    reach = _REACH * np.sqrt(sum(np.sum(np.square(x[block.name])) for block in form.weight_blocks))
    lowest, at = np.inf, x
    for _, step in zip(range(most), _in_turn(form, x, reach), strict=False):
        with np.errstate(over="ignore", invalid="ignore"):
            value = form.value(step)
        if value < lowest and form.violation(step) <= tol:
            lowest, at = value, step
    return lowest, at


def _in_turn(form: NormalForm, x: Blocks, reach: float) -> Iterator[Blocks]:
    """One step of each kind after another, so that a limit leaves some of each."""
    kinds = [_of_spectrum(f, x, form, reach) for f in form.functions if not f.atom.convex]
    kinds += [_of_scale(form, x), _fixed(form, x, reach)]
    while kinds:
        for kind in list(kinds):
            step = next(kind, None)
            if step is None:
                kinds.remove(kind)
            else:
                yield step


def _of_spectrum(f: FunctionTerm, x: Blocks, form: NormalForm, reach: float) -> Iterator[Blocks]:
    """Steps of the weights that a penalty is a function of."""
    name = next((name for name in f.map.blocks if f.map.multiple_of(name)), None)
    if name is None or f.map.offset is not None or reach == 0.0:
        return
    multiple, W = abs(f.map.multiple_of(name)), x[name]
    U, s, Vt = svd(W)
    alive = int(np.count_nonzero(s > _ZERO * s.max(initial=0.0)))
    U, s, Vt = U[:, :alive], s[:alive], Vt[:alive]
    for moved in _spectra(s, [kink / multiple for kink in f.atom.kinks], reach):
        if 0.0 < np.linalg.norm(moved - s) <= reach:
            yield x | {name: (U * moved) @ Vt}
    g = form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(x)), g)
    pull = -g[name]  # beside the singular vectors that there are
    pull = pull - U @ (U.T @ pull)
    pull = pull - (pull @ Vt.T) @ Vt
    if np.linalg.norm(pull) > 0:
        P, _, Qt = svd(pull)
        for share in (1.0, 0.1, 0.01):
            yield x | {name: W + share * reach * np.outer(P[:, 0], Qt[0])}


def _spectra(s: np.ndarray, kinks: list[float], reach: float) -> Iterator[np.ndarray]:
    """Singular values next to s > 0, which fall; some out of reach."""
    past = [kink * (1.0 + side * _PAST) for kink in kinks for side in (-1, 1)]
    for kink in past:
        over = (s > kink) & (s <= kink + reach)
        for to in (kink, np.maximum(s - reach / np.sqrt(max(np.count_nonzero(over), 1)), 0.0)):
            yield np.where(over, to, s)
    for rank in range(s.size - 1, -1, -1):
        yield np.where(np.arange(s.size) < rank, s, 0.0)
    order = list(range(s.size))[::-1]
    for j in order if s.size <= 2 * _SINGLES else order[:_SINGLES] + order[-_SINGLES:]:
        for to in (
            max(s[j] - reach, 0.0),
            *past,
            0.99 * s[j],
            s[j] + reach,
            1.01 * s[j],
            max(s[j] - 0.1 * reach, 0.0),
        ):
            moved = s.copy()
            moved[j] = to
            yield moved


def _of_scale(form: NormalForm, x: Blocks) -> Iterator[Blocks]:
    for factor in (1.0 - _REACH, 1.0 + _REACH, 1.0 - 0.1 * _REACH):
        yield x | {block.name: factor * x[block.name] for block in form.weight_blocks}


def _fixed(form: NormalForm, x: Blocks, reach: float) -> Iterator[Blocks]:
    """Dense directions and such of rank one by turns, either way."""
    rng = np.random.default_rng(0)
    for k in range(_DIRECTIONS):
        direction, square = {}, 0.0
        for block in form.weight_blocks:
            p, q = block.shape
            E = rng.normal(size=(p, q)) if k % 2 else np.outer(rng.normal(size=p), rng.normal(size=q))
            E *= np.linalg.norm(x[block.name]) / max(np.linalg.norm(E), 1e-300)
            direction[block.name], square = E, square + np.sum(np.square(E))
        for length in _LENGTHS if square > 0 else ():
            for sign in (1.0, -1.0):
                t = sign * length * reach / np.sqrt(square)
                yield x | {name: x[name] + t * E for name, E in direction.items()}
