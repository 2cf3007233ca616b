"""What the traits of `mtldsl.atoms.function` promise, as functions that raise AssertionError where an atom does not keep it.

A trait says how functions combine or what a solver may take for granted, so a wrong one gives a wrong answer without a word. The laws use
values, proxes and conjugates, which other laws hold to the reference; none of them looks at a trait but its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.function import Loss, MatrixFunction, SeparableLoss, Set
from mtldsl.atoms.parts import ENTRIES, Parts

__all__ = ["LAWS", "TraitLaw", "check", "multipliers_prove", "piece_of"]

SHAPE = (5, 4)
STEPS = (0.3, 1.0, 2.5)


@dataclass(frozen=True)
class TraitLaw:
    """`check(atom)` raises AssertionError; `applies(atom)`: whether the atom declares the trait."""

    name: str
    applies: Callable
    check: Callable


LAWS: list[TraitLaw] = []


def law(applies):
    def enter(check):
        LAWS.append(TraitLaw(check.__name__, applies, check))
        return check

    return enter


def check(atom) -> list[str]:
    """The names of the laws that were run."""
    about = [one for one in LAWS if one.applies(atom)]
    for one in about:
        one.check(atom)
    return [one.name for one in about]


def of_matrix(declares: Callable, prox: bool = False):
    """About functions of a matrix that declare something; `prox`: and have one."""
    return lambda atom: (
        isinstance(atom, MatrixFunction) and (atom.exact_prox or not prox) and bool(declares(atom))
    )


def of_loss(declares: Callable):
    return lambda atom: isinstance(atom, Loss) and bool(declares(atom))


# -------------------------------------------------------------------------------------------------- material


def rng_of(atom, salt: int):
    return np.random.default_rng([zlib.crc32(atom.name.encode()), salt])


def matrices(atom, salt: int = 0) -> list[np.ndarray]:
    """Matrices of one size and of many, with zeros, with ties."""
    rng = rng_of(atom, salt)
    W = rng.normal(size=SHAPE)
    return [
        W,
        4.0 * W,
        W * 10.0 ** np.linspace(-2, 1, SHAPE[1]),
        np.round(2.0 * W) / 2.0,
        np.where(W > 0.3, W, 0.0),
    ]


def piece_of(parts: Parts, shape=SHAPE, outside_is_one: bool = False) -> np.ndarray:
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


def close(found, expected, atol=1e-10):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=atol)


# ------------------------------------------------------------------------------- how functions of a matrix combine


@law(of_matrix(lambda atom: atom.homogeneous, prox=True))
def homogeneous(atom):
    """g(c W) = c g(W) for c > 0, so that prox(c W, c step) = c prox(W, step)."""
    for W in matrices(atom, 1):
        for c in (0.2, 3.0):
            if not isinstance(atom, Set):
                close(atom.value(c * W), c * atom.value(W))
            close(atom.prox(c * W, c * 0.7), c * atom.prox(W, 0.7))


@law(of_matrix(lambda atom: True, prox=True))
def parts(atom):
    """g is a sum over its parts: the prox of one does not see the others."""
    piece = piece_of(atom.parts)
    for W in matrices(atom, 2)[:3]:
        before = atom.prox(W, 0.6)
        for k in np.unique(piece):
            others = np.where(piece == k, W, 3.0 * rng_of(atom, 100 + k).normal(size=SHAPE))
            close(atom.prox(others, 0.6)[piece == k], before[piece == k], atol=1e-9)


@law(of_matrix(lambda atom: atom.scales is not None, prox=True))
def scales(atom):
    """The prox multiplies every part of `scales` by one number >= 0."""
    piece = piece_of(atom.scales, outside_is_one=True)
    for W in matrices(atom, 3):
        for step in STEPS:
            P = atom.prox(W, step)
            assert not np.any(P[W == 0]), "zeros must stay"
            for k in np.unique(piece[W != 0]):
                here = (piece == k) & (W != 0)
                factors = P[here] / W[here]
                assert factors.min() >= 0
                close(factors, np.full(factors.size, factors[0]), atol=1e-9)


@law(of_matrix(lambda atom: atom.order_preserving, prox=True))
def order_preserving(atom):
    """The prox maps the entries of every row by one nondecreasing function: equal ones to equal ones."""
    for W in matrices(atom, 4):
        for step in STEPS:
            P = atom.prox(W, step)
            for w, p in zip(W, P, strict=True):
                order = np.argsort(w, kind="stable")
                rises = np.diff(p[order])
                assert rises.min() >= -1e-12
                assert np.abs(rises[np.diff(w[order]) == 0]).max(initial=0.0) <= 1e-12


@law(of_matrix(lambda atom: atom.ordinal, prox=True))
def ordinal(atom):
    """Subgradients at Y are subgradients wherever rows have the order of Y: after any nondecreasing function of a row's entries."""
    rng = rng_of(atom, 5)
    for W in matrices(atom, 5):
        Y = atom.prox(W, 0.4)
        subgradient = (W - Y) / 0.4
        for _ in range(5):
            knots = np.sort(rng.normal(size=(SHAPE[0], 9)) * 3.0, axis=1)
            flat = np.linspace(Y.min() - 1.0, Y.max() + 1.0, 9)
            V = np.array([np.interp(y, flat, k) for y, k in zip(Y, knots, strict=True)])
            V = np.round(V, 1) if rng.random() < 0.5 else V
            close(atom.prox(V + 0.9 * subgradient, 0.9), V, atol=1e-9)


@law(of_matrix(lambda atom: atom.monotone))
def monotone(atom):
    """A function of absolute values that grows with them."""
    for W in matrices(atom, 6):
        signs = np.sign(rng_of(atom, 7).normal(size=SHAPE))
        close(atom.value(signs * W), atom.value(W))
        for _ in range(5):
            shorter = W * rng_of(atom, 8).uniform(size=SHAPE)
            assert atom.value(shorter) <= atom.value(W) * (1 + 1e-12)


@law(of_matrix(lambda atom: atom.weights_add))
def weights_add(atom):
    """c g_a + c' g_b = g_(c a + c' b), None being all ones."""
    from dataclasses import replace

    a = atom.weights
    b = 0.5 if np.ndim(a) == 0 else rng_of(atom, 9).uniform(size=np.shape(a))
    both = 0.3 * (1.0 if a is None else a) + 0.9 * b
    for W in matrices(atom, 9):
        apart = 0.3 * atom.value(W) + 0.9 * replace(atom, weights=b).value(W)
        close(replace(atom, weights=both).value(W), apart)
    spread = np.broadcast_to(atom.spread(1.0 if a is None else a, SHAPE), SHAPE)
    for W in matrices(atom, 10):  # what has the weight 0 costs nothing
        close(atom.value(np.where(spread == 0, W, 0.0)), 0.0)


# ------------------------------------------------------------------------------------ what solvers take for granted


@law(of_matrix(lambda atom: atom.interval is not None))
def interval(atom):
    """The set {low <= W <= high}: its projection clips."""
    assert isinstance(atom, Set)
    assert atom.separable == "entries"
    for W in matrices(atom, 11):
        np.testing.assert_array_equal(atom.project(W), np.clip(W, *atom.interval))


@law(of_matrix(lambda atom: atom.profile is not None))
def profile(atom):
    """Absolute values, lengths of rows and squares, each with its weights."""
    found = atom.profile
    for W in matrices(atom, 12):
        total = 0.0
        if found.absolute is not None:
            total += np.sum(found.absolute * np.abs(W))
        if found.length is not None:
            total += np.sum(found.length * np.linalg.norm(W, axis=1))
        if found.square is not None:
            total += 0.5 * np.sum(found.square * W**2)
        close(atom.value(W), total)


@law(of_matrix(lambda atom: atom.profile is not None or atom.interval is not None))
def on_rows(atom):
    """The function of some rows, the others being zero."""
    rows = np.array([0, 2, 3])
    small = atom.on_rows(rows, SHAPE)
    assert small.check((3, SHAPE[1])) is None
    for W in matrices(atom, 13):
        alone = np.zeros(SHAPE)
        alone[rows] = W[rows]
        close(small.value(W[rows]), atom.value(alone))
        if atom.exact_prox:
            close(small.prox(W[rows], 0.8), atom.prox(alone, 0.8)[rows])


@law(of_matrix(lambda atom: atom.separable == "entries" and atom.convex and not isinstance(atom, Set)))
def entry_slopes(atom):
    """The derivatives from both sides, entry by entry."""
    for W in matrices(atom, 14):
        h = 1e-7
        for side, slopes in zip((-1.0, 1.0), atom.entry_slopes(W), strict=True):
            slopes = np.broadcast_to(slopes, SHAPE)
            for i, j in np.ndindex(*SHAPE):
                moved = W.copy()
                moved[i, j] += side * h
                close(
                    side * (atom.value(moved) - atom.value(W)) / h,
                    slopes[i, j],
                    atol=2e-6 * (1 + abs(W[i, j])),
                )


@law(of_matrix(lambda atom: atom.separable == "entries", prox=True))
def one_step_an_entry(atom):
    """The prox of a function of the entries takes one step an entry."""
    assert atom.parts == ENTRIES
    for W in matrices(atom, 15):
        steps = rng_of(atom, 15).uniform(0.2, 2.0, size=SHAPE)
        P = atom.prox(W, steps)
        for i, j in np.ndindex(*SHAPE):
            close(P[i, j], atom.prox(W, steps[i, j])[i, j])


@law(of_matrix(lambda atom: atom.k_support is not None))
def k_support(atom):
    """Half a squared k-support norm: the conjugate is half the sum of the k largest squared norms."""
    groups = atom.columns or [[j] for j in range(SHAPE[1])]
    for Z in matrices(atom, 16):
        squares = np.sort([np.sum(Z[:, list(group)] ** 2) for group in groups])[::-1]
        close(atom.conjugate(Z), 0.5 * squares[: atom.k_support].sum())


@law(of_matrix(lambda atom: atom.two_sided_quadratic() is not None))
def two_sided_quadratic(atom):
    """1/2 tr(A W B W^T)."""
    A, B = (S.dense() for S in atom.two_sided_quadratic())
    for W in matrices(atom, 17):
        close(atom.value(W), 0.5 * np.trace(A @ W @ B @ W.T))


@law(of_matrix(lambda atom: isinstance(atom, Set)))
def holds_all(atom):
    """Whether every matrix is in the set."""
    stray = max(atom.violation(size * W) for W in matrices(atom, 18) for size in (1.0, -100.0, 100.0))
    assert (stray <= 1e-9) == atom.holds_all(SHAPE)


@law(of_loss(lambda loss: loss.max_affine))
def max_affine(loss):
    """A maximum of affine functions, zero among them: never below zero, zero where the slope is, straight next to almost every point."""
    rng = rng_of(loss, 19)
    y = labels_for(loss, rng)
    for _ in range(20):
        z = 2.0 * rng.normal(size=y.size)
        value, u = loss.value(z, y), loss.gradient(z, y)
        assert value >= 0
        nearby = 1e-4 * rng.normal(size=y.size)  # a curve would bend by 1e-8
        np.testing.assert_allclose(loss.value(z + nearby, y), value + u @ nearby, rtol=0, atol=1e-11)
        assert np.any(u) or value == 0
        if isinstance(loss, SeparableLoss):
            low, high = (np.broadcast_to(end, y.shape) for end in loss.dual_interval(y))
            assert np.all((low == 0) | (high == 0)), "one end of `dual_interval` is zero"
            assert np.all((u == 0) | (u == low + high))
            close(loss.pointwise(z, y), u * z - loss.pointwise_conjugate(u, y))
    assert loss.conjugate(np.zeros(y.size), y) <= 0


def labels_for(loss, rng) -> np.ndarray:
    if loss.labels == "indicators":
        chosen = rng.integers(0, 2, size=(3, loss.cliques.n_labels))
        return loss.cliques.indicators(chosen).T.ravel()
    if loss.labels == "sign":
        return rng.permutation(np.where(np.arange(12) % 3 == 0, -1.0, 1.0))
    return rng.normal(size=12)


# ------------------------------------------------------------------------------------------------ what follows of them


def multipliers_prove(terms, together, W, step):
    """Optimality of V = together(W, step): the multipliers v_k add up to (W - V) / step and are subgradients at V, by Fenchel's
    equality: g(V) + g*(v) = <v, V>.
    """
    V, multipliers = together(W, step)
    close(sum(multipliers, np.zeros_like(W)), (W - V) / step)
    for (c, atom), v in zip(terms, multipliers, strict=True):
        v = v if isinstance(atom, Set) else v / c
        inside = atom.dual_project(v)
        close(inside, v)
        if isinstance(atom, Set):
            assert atom.violation(V) <= 1e-9
            close(atom.support(inside), np.vdot(V, v), atol=1e-8)
        elif atom.norm:
            assert atom.dual_gauge(inside) <= 1 + 1e-9
            close(atom.value(V), np.vdot(V, v), atol=1e-8)
        else:
            close(atom.value(V) + atom.conjugate(inside), np.vdot(V, v), atol=1e-8)
