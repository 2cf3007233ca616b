"""The law behind the certificate's allowance for rounding: float64 values and conjugates of every atom beside enclosures in fractions.

The allowance is `ROUNDING_UNITS` eps times the sum of the absolute values that a term is made of (mtldsl/certificates/dual_bound.py). The truth here is
that of the independent checker in rational arithmetic, so that neither side shares a formula.
"""

import numpy as np
import pytest

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses import LabelGraphLoss, StructuredHinge
from mtldsl.atoms.losses.multiclass import RowLoss
from mtldsl.atoms.matrix_function import MatrixFunction, Regularizer, Set
from mtldsl.certificates.checker.function_formulas import FUNCTIONS
from mtldsl.certificates.checker.interval import Interval
from mtldsl.certificates.checker.loss_formulas import (
    SCALAR_LOSSES,
    CoxLossFormula,
    RowLossFormula,
    SquareRootLossFormula,
    SumLossFormula,
)
from mtldsl.certificates.checker.proof_file import DataArrays
from mtldsl.certificates.checker.proof_schema import LOSSES
from mtldsl.certificates.checker.structured_formulas import LabelGraphFormula, StructuredHingeFormula
from mtldsl.certificates.dual_bound import ROUNDING_UNITS
from mtldsl.certificates.proof_writer import _parameters, _plain, _plain_loss
from tests.loops import for_each
from tests.registry_cases import targets

EPS = np.finfo(float).eps

#: atoms that are not measured, and why: those of which no bound is claimed, and those that say that the checker has no formula
UNCOVERED = {
    "pairwise_log_loss": "its conjugate is a maximum of entropy, found by an iteration; value and bound are checked through the proofs",
    **{name: cls.unchecked or "not convex: no bound is claimed" for name, cls in REGISTRY.items()
       if issubclass(cls, (Loss, MatrixFunction)) and (cls.unchecked or not cls.examples()[0].convex)},
}  # fmt: skip

#: atoms whose value is a minimum, of which the checker has an upper bound by a guess, and no enclosure
BOUNDED = {"latent_group_norm", "squared_cluster_norm"}

SCALES = ("ordinary", "columns from 1e-6 to 1e6", "entries from 1e-6 to 1e6")


def _scaled(x, scale, rng):
    if scale == SCALES[1] and x.ndim == 2:
        return x * 10.0 ** rng.uniform(-6, 6, x.shape[1])
    return x if scale == SCALES[0] else x * 10.0 ** rng.uniform(-6, 6, x.shape)


def _names(kind):
    left_out = UNCOVERED.keys() | BOUNDED
    return [name for name, cls in sorted(REGISTRY.items()) if issubclass(cls, kind) and name not in left_out]


def test_every_atom_is_measured_or_named():
    known = {*LOSSES, *FUNCTIONS}
    assert LOSSES.keys() >= SCALAR_LOSSES.keys()
    atoms = {name for name, cls in REGISTRY.items() if issubclass(cls, (Loss, MatrixFunction))}
    assert atoms - known == UNCOVERED.keys() - {"pairwise_log_loss"}
    assert known >= BOUNDED


def _part(atom, data):
    one = Interval.of(np.ones(1), True)
    if isinstance(atom, StructuredHinge):
        return StructuredHingeFormula([_plain(atom.metric)], one, data, True, None)
    if atom.name == "square_root_loss":
        return SquareRootLossFormula(Interval.of(atom.eps, True), one, data, True)

    if atom.name == "cox_loss":
        return CoxLossFormula(one, data, True)
    if isinstance(atom, RowLoss):
        return RowLossFormula(atom.name, one, data, True)

    def number(x):
        return Interval.of(float(getattr(atom, x)) if isinstance(x, str) else x, True)

    return SumLossFormula(SCALAR_LOSSES[atom.name](number), one, data, True)


def _off(value: float, truth: Interval) -> float:
    """How far a float is from an enclosure of what it should be."""
    low, high = float(truth.low), float(truth.high)
    return max(low - value, value - high, 0.0)


@pytest.mark.slow
@for_each("scale", SCALES)
@for_each("name", _names(Loss))
def test_losses(name, scale):
    for k, atom in enumerate(REGISTRY[name].examples()):
        rng = np.random.default_rng(k)
        if isinstance(atom, LabelGraphLoss):
            _label_graph(atom, scale, rng)
            continue
        y = targets(atom, rng, 12)
        z = _scaled(rng.normal(size=12), scale, rng)
        if atom.labels == "real":
            y = _scaled(y, scale, rng)
        if name in ("poisson_loss", "exponential_loss", "gamma_loss"):
            z = np.clip(z, -50.0, 50.0)
        counts = np.array([12])
        if isinstance(atom, RowLoss):
            K = atom.n_classes
            y, counts = (
                np.where(np.arange(K)[:, None] == np.arange(12 // K) % K, 1.0, -1.0).ravel(),
                np.full(K, 12 // K),
            )
        part = _part(atom, DataArrays(np.zeros((counts[0], 1)), y, counts, True))
        u = atom.dual_point(z, y)
        value, conjugate = atom.value(z, y), atom.conjugate(u, y)
        size = abs(value) + abs(conjugate) + np.abs(u) @ (np.abs(z) + np.abs(y))
        assert _off(value, part.value(Interval.of(z, True))) <= ROUNDING_UNITS * EPS * size
        if isinstance(atom, StructuredHinge) and not atom.metric.exact_conjugate:
            continue  # its conjugate is a linear program: what is proven of it is a witness's
        exact = Interval.of(u, True)
        inside = part.inside(exact)
        moved = float(np.max(np.abs((inside - exact).middle), initial=0.0))
        assert moved <= ROUNDING_UNITS * EPS * max(
            1.0, np.abs(u).max()
        )  # what float64 calls inside the domain is, but for rounding
        assert _off(conjugate, part.conjugate(inside, Interval.of(1.0, True))) <= ROUNDING_UNITS * EPS * size


def _label_graph(atom, scale, rng):
    cliques = atom.cliques
    labels = rng.integers(0, 2, size=(6, cliques.n_labels))
    scores = _scaled(rng.normal(size=(6, cliques.n_entries)), scale, rng)
    y = cliques.indicators(labels).T.ravel()
    data = DataArrays(
        np.zeros((6, 1)), np.where(labels.T > 0, 1.0, -1.0).ravel(), np.full(cliques.n_labels, 6), True
    )
    parameters = {
        "n_labels": cliques.n_labels,
        "members": cliques.members,
        "loss": _plain_loss(getattr(atom, "loss", "hamming")),
    }
    part = LabelGraphFormula(atom.name, parameters, Interval.of(np.ones(1), True), data, True, None)
    z = atom.flat(scores)
    value = atom.value(z, y)
    assert _off(value, part.value(Interval.of(z, True))) <= ROUNDING_UNITS * EPS * (
        abs(value) + np.abs(scores).sum()
    )


@pytest.mark.slow
@for_each("scale", SCALES)
@for_each("name", _names(MatrixFunction))
def test_functions_of_matrices(name, scale):
    for k, atom in enumerate(REGISTRY[name].examples()):
        rng = np.random.default_rng(k)
        W, Z = (_scaled(rng.normal(size=(5, 4)), scale, rng) for _ in range(2))
        part = FUNCTIONS[name]({**_parameters(atom.stated((5, 4))), "word": name}, (5, 4), True)
        Z = np.asarray(atom.dual_project(Z), float)
        if isinstance(atom, Regularizer):
            for V in (W, W[:, :1] + 1e-9 * W, W[:, :1] + 0.0 * W):  # columns that nearly cancel, and that do
                value = atom.value(V)
                size = abs(value) + atom.cancelling(V)
                assert _off(value, part.value(Interval.of(V, True))) <= ROUNDING_UNITS * EPS * size
        elif isinstance(atom, Set):
            violation = atom.violation(W)
            bound = np.asarray(getattr(atom, "bound", 0.0), float)
            size = (
                violation
                + np.abs(W).sum()
                + np.abs(bound[np.isfinite(bound)]).max(initial=0.0)
                + getattr(atom, "radius", 0.0)
                + getattr(atom, "total", 0.0)
            )
            assert _off(violation, part.violation(Interval.of(W, True))) <= ROUNDING_UNITS * EPS * size
        if getattr(atom, "norm", False):
            gauge = atom.dual_gauge(Z)
            exact = part.gauge(part.inside(Interval.of(Z, True)))
            assert gauge == np.inf or _off(gauge, exact) <= ROUNDING_UNITS * EPS * max(gauge, np.abs(Z).max())
            continue
        conjugate = atom.conjugate(Z)
        if not np.isfinite(conjugate):
            continue  # outside by more than rounding: nothing is claimed
        size = abs(conjugate) + np.abs(Z).ravel() @ np.abs(W).ravel() + _flat(atom, Z) + _supports(atom, Z)
        exact = part.conjugate(part.inside(Interval.of(Z, True)))
        assert _off(conjugate, exact) <= ROUNDING_UNITS * EPS * size


@pytest.mark.slow
@for_each("exact", [False, True])
@for_each("name", sorted(BOUNDED))
def test_guesses_are_upper_bounds_and_near(name, exact):
    for k, atom in enumerate(REGISTRY[name].examples()):
        rng = np.random.default_rng(k)
        few = rng.normal(size=(5, 4)) * (rng.uniform(size=(5, 1)) < 0.6)
        for W in (
            rng.normal(size=(5, 4)),
            few,
            np.outer(rng.normal(size=5), rng.normal(size=4)),
            np.zeros((5, 4)),
        ):
            part = FUNCTIONS[name](_parameters(atom), (5, 4), exact)
            value, found = atom.value(W), float(part.value(Interval.of(W, exact)).high)
            assert value * (1.0 - 1e-12) <= found <= value * (1.0 + 1e-9) + 1e-150
            if name == "latent_group_norm":
                shown, truth = atom.dual_gauge(W), part.gauge(Interval.of(W, exact))
            else:
                shown, truth = atom.conjugate(W), part.conjugate(Interval.of(W, exact))
            assert shown * (1.0 - 1e-12) <= float(truth.high) <= shown * (1.0 + 1e-9) + 1e-150


def _flat(atom, Z) -> float:
    """What the flattest direction of a quadratic makes of a multiplier."""
    modulus = getattr(atom, "strong_convexity", 0.0)
    return float(np.vdot(Z, Z)) / (2.0 * modulus) if modulus > 0 else 0.0


def _supports(atom, Z) -> float:
    """<|bound|, |Z|> of a support function."""
    bound = np.asarray(atom.bound if isinstance(atom, Set) and hasattr(atom, "bound") else 0.0, float)
    return float(np.sum(np.where(np.isfinite(bound), np.abs(bound), 0.0) * np.abs(Z)))
