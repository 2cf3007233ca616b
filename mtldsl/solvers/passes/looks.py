"""What Newton steps by passes compute where the rows are: value, gradient and Hessian of a loss, or of its Moreau envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtldsl.compile.terms.row_slabs import Slab, slabs_of
from mtldsl.compile.terms.seen_sums import SeenSums

if TYPE_CHECKING:
    from mtldsl.tasks.distributed.parts import Part

__all__ = ["hessian_shares", "look", "look_from", "step"]

#: The shift of a prediction, relative to its size, over which the slope of a proximal step is measured.
_SHIFT = 1e-6

#: A Hessian is estimated by so many samples a feature at least, and this share of them: off by some tenth, it costs a Newton step or two more, and
#: fifteen sixteenths of its price less (measured). A share above the last is all of them.
_A_FEATURE, _SHARE, _NEARLY_ALL = 50.0, 1.0 / 16.0, 0.5

#: The seed of the random numbers that choose rows, beside the number of the part.
_SEED = 7


def hessian_shares(counts: np.ndarray, n_features: int) -> np.ndarray:
    """(m,) of every task's samples, the share that its Hessian is estimated by.

    >>> hessian_shares(np.array([100, 100_000, 10_000_000]), 99)
    array([1.    , 0.0625, 0.0625])
    """
    shares = np.maximum(_A_FEATURE * (n_features + 1) / counts, _SHARE)
    return np.where(shares > _NEARLY_ALL, 1.0, shares)


def look(part: Part, n_tasks: int, atom, coefficients, V, b, by_sign: bool, shares) -> dict:
    """Sums over one part's rows, of a smooth loss; the Hessian by `shares` (m,) of them."""
    sums = SeenSums(part, n_tasks, atom, coefficients, by_sign)
    V, b, shares = part.columns(V), b[part.which], shares[part.which]
    every = bool((shares == 1.0).all())
    for slab in sums.rows.slabs(V, b):
        if every:
            sums.rows.weigh(slab, atom.hessian(slab.z, slab.y, slab.s))
        sums.add(slab, atom.gradient(slab.z, slab.y, slab.s))
    grams = sums.rows.grams() if every else _estimated(part, atom, coefficients, V, b, shares)
    return _told(part, sums, grams, float(sums.values.sum()), 0.0)


def _estimated(part: Part, atom, coefficients, V, b, shares) -> dict[int, np.ndarray]:
    """The Hessians by some rows, the same at every pass and on every worker."""
    from mtldsl.tasks.distributed.parts import Part

    rng, tasks = np.random.default_rng([_SEED, part.index]), part.tasks
    if tasks.is_shared:
        n = tasks.X.shape[0]
        chosen = _drawn(rng, n, shares.max())
        few = tasks if len(chosen) == n else tasks.take_rows(chosen)
        times = np.full(tasks.n_tasks, n / len(chosen))
    else:
        rows = [_drawn(rng, n, share) for n, share in zip(tasks.counts.tolist(), shares, strict=True)]
        few = tasks.take_rows(rows)
        times = tasks.counts / few.counts
    own = np.zeros_like(coefficients)
    own[part.which] = coefficients[part.which] * times
    found = slabs_of(Part(few, part.which, part.index), own, 1)
    for slab in found.slabs(V, b):
        found.weigh(slab, atom.hessian(slab.z, slab.y, slab.s))
    return found.grams()


def _drawn(rng, size: int, share: float) -> np.ndarray:
    wanted = int(np.ceil(share * size))
    return np.sort(rng.permutation(size)[:wanted]) if wanted < size else np.arange(size)


def step(
    part: Part, u, n_tasks: int, atom, coefficients, V, b, by_sign: bool, penalty: float, stepped_from: float | None
):  # fmt: skip
    """(u, sums over one part's rows): zeros at first, then a step made with the penalty of the steps before."""
    stepped = np.zeros(part.tasks.n_samples)  # what was held is what another pass may ask for again
    return stepped, _around(
        part, u, stepped, n_tasks, atom, coefficients, V, b, by_sign, penalty, stepped_from
    )


def look_from(part: Part, u, n_tasks: int, atom, coefficients, V, b, by_sign: bool, penalty: float) -> dict:
    """The sums at multipliers that stay as they are."""
    return _around(part, u, None, n_tasks, atom, coefficients, V, b, by_sign, penalty, None)


def _around(
    part: Part, u, stepped, n_tasks: int, atom, coefficients, V, b, by_sign: bool, penalty: float, stepped_from: float | None
) -> dict:  # fmt: skip
    """Sums over one part's rows, of a loss with kinks at multipliers u; where they step, they are written into `stepped` first."""
    sums, envelope, moved = SeenSums(part, n_tasks, atom, coefficients, by_sign), 0.0, 0.0
    held = np.zeros(part.tasks.n_samples) if u is None else u
    for slab in sums.rows.slabs(part.columns(V), b[part.which]):
        own = slab.take(held)
        if stepped_from is not None:
            own = _envelope(atom, slab, own, stepped_from)[1]
        if stepped is not None:
            slab.put(stepped, own)
        z, new = _envelope(atom, slab, own, penalty)
        away, change = z - slab.z - own / penalty, new - own
        envelope += atom.value(z, slab.y, slab.s) + 0.5 * penalty * float(away @ away)
        envelope -= 0.5 / penalty * float(own @ own)
        moved += float(change @ change)
        sums.rows.weigh(slab, _curved(atom, slab, own, z, penalty))
        sums.add(slab, new)
    return _told(part, sums, sums.rows.grams(), envelope, moved)


def _envelope(atom, slab: Slab, u, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """(the proximal point, the multipliers there)."""
    v = slab.z + u / penalty
    z = atom.prox(v, slab.y, 1.0 / penalty, slab.s)
    return z, atom.dual_project(penalty * (v - z), slab.y, slab.s)


def _curved(atom, slab: Slab, u, z, penalty: float) -> np.ndarray:
    """The generalised second derivative of the envelope: the proximal step's slope by a difference; what is next to nothing is nothing."""
    shift = _SHIFT * (1.0 + np.abs(slab.z))
    ahead = atom.prox(slab.z + u / penalty + shift, slab.y, 1.0 / penalty, slab.s)
    weights = np.clip(penalty * (1.0 - (ahead - z) / shift), 0.0, penalty)
    weights[weights < 1e-3 * penalty] = 0.0
    return weights


def _told(part: Part, sums: SeenSums, grams: dict[int, np.ndarray], envelope: float, moved: float) -> dict:
    hessian = {int(part.which[i]): G for i, G in grams.items()}
    return {"seen": sums.seen(), "hessian": hessian, "envelope": envelope, "moved": moved}
