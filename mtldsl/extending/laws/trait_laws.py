"""The laws of traits: what an atom declares in `mtldsl.atoms.matrix_function`, by which solvers choose and proxes compose.

A wrong trait gives a wrong answer without a word. The laws use values, proxes and conjugates, which other laws hold to the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mtldsl.atoms.atom import ENTRIES, Separability
from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.matrix_function import MatrixFunction, Set
from mtldsl.extending.law import Law, holds, law, same_arrays
from mtldsl.extending.laws.law_examples import (
    WEIGHTS_SHAPE,
    covered,
    limit,
    loss_data,
    quotient,
    random,
    weights,
)

LAWS: list[Law] = []

#: Steps of proximal operators.
STEPS = (0.3, 1.0, 2.5)


def _declaring(declares: Callable, prox: bool = False):
    """Function decorator: a law about functions of a matrix that declare something; `prox`: and have one."""

    def applies(atom) -> bool:
        return covered(atom) and (atom.exact_prox or not prox) and bool(declares(atom))

    return law(LAWS, MatrixFunction, applies)


def _matrices(atom, salt: int) -> list[np.ndarray]:
    """Matrices of one size and of many, with zeros, with ties."""
    found = weights(atom, salt)
    W = found["middling"]
    chosen = ("middling", "of many scales", "zero column", "zero row", "zero")
    return [*(found[name] for name in chosen), np.round(2.0 * W) / 2.0, np.where(W > 0.3, W, 0.0)]


def _close(found, expected, what: str, atol: float = 1e-10) -> None:
    same_arrays(found, expected, what, rtol=1e-9, atol=atol)


def pieces(parts: Separability, shape=WEIGHTS_SHAPE, outside_is_one: bool = False) -> np.ndarray:
    """(p, q) the number of every entry's part; lines in no group are pieces by themselves, or together one."""

    def lines(axis, n):
        if axis == "each":
            return np.arange(n)
        if axis == "all":
            return np.zeros(n, int)
        owner = np.full(n, -1) if outside_is_one else -1 - np.arange(n)
        for g, group in enumerate(axis):
            owner[list(group)] = g
        return owner

    rows, columns = lines(parts.rows, shape[0]), lines(parts.columns, shape[1])
    return np.unique(np.add.outer(1000 * rows, columns), return_inverse=True)[1].reshape(shape)


# --------------------------------------------------------------------------------------- how functions combine


@_declaring(lambda atom: atom.homogeneous, prox=True)
def declared_homogeneous(atom):
    """g(c W) = c g(W) for c > 0, so that prox(c W, c step) = c prox(W, step)."""
    for W in _matrices(atom, 1):
        for c in (0.2, 3.0):
            if not isinstance(atom, Set):
                _close(atom.value(c * W), c * atom.value(W), f"value of {c} W")
            _close(atom.prox(c * W, c * 0.7), c * atom.prox(W, 0.7), f"prox of {c} W")


@_declaring(lambda atom: True, prox=True)
def declared_parts(atom):
    """g is a sum over its `parts`: the prox of one does not see the others."""
    piece = pieces(atom.parts)
    for W in _matrices(atom, 2)[:4]:
        before = atom.prox(W, 0.6)
        for k in np.unique(piece):
            others = np.where(piece == k, W, 3.0 * random(atom, 100 + int(k)).normal(size=WEIGHTS_SHAPE))
            _close(atom.prox(others, 0.6)[piece == k], before[piece == k], f"prox of part {k}", atol=1e-9)


@_declaring(lambda atom: atom.scales is not None, prox=True)
def declared_scales(atom):
    """The prox multiplies every part of `scales` by one number >= 0."""
    piece = pieces(atom.scales, outside_is_one=True)
    for W in _matrices(atom, 3):
        for step in STEPS:
            P = atom.prox(W, step)
            holds(not np.any(P[W == 0]), "a zero does not stay zero")
            for k in np.unique(piece[W != 0]):
                here = (piece == k) & (W != 0)
                factors = P[here] / W[here]
                holds(factors.min() >= 0, f"part {k} is multiplied by {factors.min():g}")
                _close(factors, np.full(factors.size, factors[0]), f"factors of part {k}", atol=1e-9)


@_declaring(lambda atom: atom.order_preserving, prox=True)
def declared_order_preserving(atom):
    """The prox maps the entries of every row by one nondecreasing function: equal ones to equal ones."""
    for W in _matrices(atom, 4):
        for step in STEPS:
            for w, p in zip(W, atom.prox(W, step), strict=True):
                order = np.argsort(w, kind="stable")
                rises = np.diff(p[order])
                holds(rises.min(initial=0.0) >= -1e-12, "two entries of a row change places")
                ties = np.abs(rises[np.diff(w[order]) == 0])
                holds(ties.max(initial=0.0) <= 1e-12, "two equal entries of a row become different")


@_declaring(lambda atom: atom.ordinal, prox=True)
def declared_ordinal(atom):
    """Subgradients at Y are subgradients wherever rows have the order of Y: after any nondecreasing function of a row's entries."""
    rng = random(atom, 5)
    for W in _matrices(atom, 5):
        Y = atom.prox(W, 0.4)
        subgradient = (W - Y) / 0.4
        for digits in (1, 1, 12, 12):  # with ties and without
            knots = np.sort(3.0 * rng.normal(size=(WEIGHTS_SHAPE[0], 9)), axis=1)
            flat = np.linspace(Y.min() - 1.0, Y.max() + 1.0, 9)
            V = np.array([np.interp(y, flat, k) for y, k in zip(Y, knots, strict=True)]).round(digits)
            _close(atom.prox(V + 0.9 * subgradient, 0.9), V, "prox from a subgradient's end", atol=1e-9)


@_declaring(lambda atom: atom.monotone)
def declared_monotone(atom):
    """A function of absolute values that grows with them."""
    rng = random(atom, 6)
    for W in _matrices(atom, 6):
        value = atom.value(W)
        _close(
            atom.value(rng.choice([-1.0, 1.0], size=WEIGHTS_SHAPE) * W),
            value,
            "value with other signs",
            1e-9 + 10 * atom.accuracy,
        )
        for _ in range(5):
            shorter = atom.value(W * rng.uniform(size=WEIGHTS_SHAPE))
            holds(
                shorter <= value * (1 + 1e-12 + 2 * atom.accuracy),
                f"{shorter:g} of shorter entries is above {value:g}",
            )


@_declaring(lambda atom: atom.weights_add)
def declared_weights_add(atom):
    """c g_a + c' g_b = g_(c a + c' b), a and b being `weights`, None all ones; what has the weight 0 costs nothing."""
    a = 1.0 if atom.weights is None else atom.weights
    b = 0.5 if np.ndim(a) == 0 else random(atom, 7).uniform(size=np.shape(a))
    free = np.broadcast_to(atom.spread(a, WEIGHTS_SHAPE), WEIGHTS_SHAPE) == 0
    for W in _matrices(atom, 7):
        apart = 0.3 * atom.value(W) + 0.9 * replace(atom, weights=b).value(W)
        _close(replace(atom, weights=0.3 * a + 0.9 * b).value(W), apart, "value with the sum of the weights")
        _close(atom.value(np.where(free, W, 0.0)), 0.0, "value of what has no weight")


# ------------------------------------------------------------------------------- what solvers take for granted


@_declaring(lambda atom: atom.interval is not None)
def declared_interval(atom):
    """The set {low <= W <= high}, entry by entry: its projection clips."""
    holds(isinstance(atom, Set), "only a set has an interval")
    holds(atom.separable == "entries", 'an interval is separable in "entries"')
    for W in _matrices(atom, 8):
        _close(atom.project(W), np.clip(W, *atom.interval), "projection", atol=0.0)


@_declaring(lambda atom: atom.profile is not None)
def declared_profile(atom):
    """Absolute values, lengths of rows and squares, each with its weights."""
    found = atom.profile
    for W in _matrices(atom, 9):
        total = 0.0
        if found.absolute is not None:
            total += np.sum(found.absolute * np.abs(W))
        if found.length is not None:
            total += np.sum(found.length * np.linalg.norm(W, axis=1))
        if found.square is not None:
            total += 0.5 * np.sum(found.square * W**2)
        _close(atom.value(W), total, "value")


@_declaring(lambda atom: atom.profile is not None or atom.interval is not None)
def declared_on_rows(atom):
    """`on_rows` is the function of some rows, the others being zero."""
    rows = np.array([0, 2, 3])
    small = atom.on_rows(rows, WEIGHTS_SHAPE)
    holds(small.check((3, WEIGHTS_SHAPE[1])) is None, "it does not take the rows")
    for W in _matrices(atom, 10):
        alone = np.zeros(WEIGHTS_SHAPE)
        alone[rows] = W[rows]
        _close(small.value(W[rows]), atom.value(alone), "value")
        if atom.exact_prox:
            _close(small.prox(W[rows], 0.8), atom.prox(alone, 0.8)[rows], "prox")


@_declaring(lambda atom: atom.separable == "entries" and atom.convex and not isinstance(atom, Set))
def declared_entry_slopes(atom):
    """The derivatives from both sides, entry by entry: finite differences, or where they end as the step goes to zero."""
    h = 1e-7
    for W in _matrices(atom, 11):
        rounding = 1e-15 * (1.0 + abs(atom.value(W))) / h
        for side, slopes in zip((-1.0, 1.0), atom.entry_slopes(W), strict=True):
            slopes = np.broadcast_to(slopes, WEIGHTS_SHAPE)
            for at in np.ndindex(*WEIGHTS_SHAPE):
                difference = quotient(atom, W, at, side * h)
                if abs(difference - slopes[at]) > 1e-9 * abs(slopes[at]) + rounding + 1e-6:
                    difference = limit([quotient(atom, W, at, side * step) for step in (1e-3, 1e-5, h)])
                _close(difference, slopes[at], f"slope at {at}", atol=rounding + 1e-6)


@_declaring(lambda atom: atom.separable == "entries", prox=True)
def declared_separable_in_entries(atom):
    """The prox of a function of the entries takes one step an entry."""
    holds(atom.parts == ENTRIES, "its parts are not the entries")
    for W in _matrices(atom, 12)[:3]:
        steps = random(atom, 12).uniform(0.2, 2.0, size=WEIGHTS_SHAPE)
        P = atom.prox(W, steps)
        for at in np.ndindex(*WEIGHTS_SHAPE):
            _close(P[at], atom.prox(W, steps[at])[at], f"prox at {at}")


@_declaring(lambda atom: atom.k_support is not None)
def declared_k_support(atom):
    """Half a squared k-support norm: the conjugate is half the sum of the k largest squared norms."""
    groups = atom.columns or [[j] for j in range(WEIGHTS_SHAPE[1])]
    for Z in _matrices(atom, 13):
        squares = np.sort([np.sum(Z[:, list(group)] ** 2) for group in groups])[::-1]
        _close(atom.conjugate(Z), 0.5 * squares[: atom.k_support].sum(), "conjugate")


@_declaring(lambda atom: atom.row_groups(WEIGHTS_SHAPE) is not None)
def declared_row_groups(atom):
    """A weighted sum of the Frobenius norms of groups of rows."""
    owner, per_group = atom.row_groups(WEIGHTS_SHAPE)
    for W in _matrices(atom, 17):
        norms = [np.linalg.norm(W[owner == k]) for k in range(len(per_group))]
        _close(atom.value(W), per_group @ norms, "value")


@_declaring(lambda atom: atom.two_sided_quadratic() is not None)
def declared_two_sided_quadratic(atom):
    """1/2 tr(A W B W^T)."""
    A, B = (S.dense() for S in atom.two_sided_quadratic())
    for W in _matrices(atom, 14):
        _close(atom.value(W), 0.5 * np.trace(A @ W @ B @ W.T), "value")


@_declaring(lambda atom: isinstance(atom, Set))
def declared_holds_all(atom):
    """Tell whether every matrix is in the set."""
    farthest = max(atom.violation(size * W) for W in _matrices(atom, 15) for size in (1.0, -100.0, 100.0))
    holds((farthest <= 1e-9) == atom.holds_all(WEIGHTS_SHAPE), f"the farthest matrix is {farthest:g} outside")


@_declaring(lambda atom: isinstance(atom, Set) and atom.holds_around_zero)
def declared_holds_around_zero(atom):
    """All matrices near zero are in the set."""
    farthest = max(atom.violation(size * W) for W in _matrices(atom, 18) for size in (1e-6, -1e-6))
    holds(farthest == 0.0, f"a matrix near zero is {farthest:g} outside")


def _is_two_lines(loss) -> bool:
    return isinstance(loss, SeparableLoss) and loss.zero_interval(np.ones(1)) is not None


@law(LAWS, Loss, _is_two_lines)
def declared_zero_interval(loss):
    """Two lines with the slopes of `dual_interval`, and zeros between them."""
    _, z, y, _ = loss_data(loss, "unweighted", 19)
    (a, b), (low, high) = loss.zero_interval(y), loss.dual_interval(y)
    lines = np.maximum(low * (z - a), 0.0) + np.maximum(high * (z - b), 0.0)
    _close(loss.pointwise(z, y), lines, "values from two lines")


@law(LAWS, Loss, lambda loss: loss.max_affine)
def declared_max_affine(loss):
    """A maximum of affine functions, zero among them: never below zero, and straight next to almost every point."""
    rng, z, y, _ = loss_data(loss, "unweighted", 16)
    for _ in range(20):
        z = 2.0 * rng.normal(size=y.size)
        value, u = loss.value(z, y), loss.gradient(z, y)
        holds(value >= 0, f"it is {value:g}")
        nearby = 1e-4 * rng.normal(size=y.size)  # a curve would bend by 1e-8
        same_arrays(loss.value(z + nearby, y), value + u @ nearby, "value nearby", rtol=0.0, atol=1e-11)
        holds(np.any(u) or value == 0, f"flat where it is {value:g}")
        if isinstance(loss, SeparableLoss):
            low, high = (np.broadcast_to(end, y.shape) for end in loss.dual_interval(y))
            holds(np.all((low == 0) | (high == 0)), "neither end of `dual_interval` is zero")
            holds(np.all((u == 0) | (u == low + high)), "a slope is neither zero nor the other end")
            _close(loss.pointwise(z, y), u * z - loss.pointwise_conjugate(u, y), "values from planes")
    holds(loss.conjugate(np.zeros(y.size), y) <= 0, "zero is not among the affine functions")
