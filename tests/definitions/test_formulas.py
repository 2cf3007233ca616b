"""Every word has one plain formula, and it says what the word's class says, on every example of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.inference.cliques import GAP
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import MatrixFunction, Set
from mtldsl.atoms.metrics import Metric
from mtldsl.certificates.plain import plain_values  # noqa: F401  (all formulas are entered)
from mtldsl.certificates.plain.plain_formula import DEFINITIONS
from mtldsl.certificates.plain.plain_metrics import structured_hinge
from mtldsl.certificates.plain.plain_penalties import singular_values, spectrum_of
from mtldsl.language.vocabulary import METRICS, WORDS
from tests.loops import for_each
from tests.registry_cases import examples, targets

#: A ball is typed as a comparison, whose two sides are evaluated (`TypedPoint`).
COMPARISONS = {"norm_ball"}


def test_every_word_has_a_plain_formula():
    own = {name for name, cls in REGISTRY.items() if cls.__module__.startswith("mtldsl.")}
    typed = {
        name for name, word in WORDS.items() if getattr(word, "atom", word).__module__.startswith("mtldsl.")
    }
    lacking = sorted((own | typed) - set(DEFINITIONS) - COMPARISONS)
    assert not lacking, (
        f"write a plain formula of {', '.join(lacking)} in mtldsl/certificates/plain/ (docs/adding_a_word.md)"
    )
    assert set(DEFINITIONS) <= own, "a formula of a word that there is not"


@for_each("atom", examples(Loss))
@for_each("scale", [0.3, 3.0])
def test_losses_are_their_formulas(atom, scale):
    rng, definition = np.random.default_rng(7), DEFINITIONS[atom.name]
    y = targets(atom, rng, 12)
    z = scale * rng.normal(size=12)
    if definition.kind == "samples":
        s = rng.uniform(0.5, 2.0, 12)
        total = np.sum(s * definition.function(z, y, atom))
        total = total if definition.of_sum is None else definition.of_sum(total, atom)
        assert total == pytest.approx(atom.value(z, y, s), rel=1e-12)
    elif definition.kind == "task":
        assert definition.function(z, y, None, atom) == pytest.approx(atom.value(z, y), rel=1e-12, abs=1e-14)
    elif definition.kind == "classes":
        scores, true = scale * rng.normal(size=(9, atom.n_classes)), rng.integers(0, atom.n_classes, 9)
        signs = np.where(np.arange(atom.n_classes) == true[:, None], 1.0, -1.0)
        own = atom.value(scores.T.ravel(), signs.T.ravel(), None)
        assert np.sum(definition.function(scores, true, atom)) == pytest.approx(own, rel=1e-12)
    else:
        n, cliques = 8, atom.cliques
        scores = scale * rng.normal(size=(n, cliques.n_entries))
        truth = rng.integers(0, 2, (n, cliques.n_labels))
        for known in (truth, np.where(rng.random(truth.shape) < 0.3, GAP, truth)):
            own = atom.value_of_samples(scores, known.astype(np.uint8))
            np.testing.assert_allclose(definition.function(scores, known, atom), own, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@for_each("atom", examples(MatrixFunction))
@for_each("kind", ["dense", "low rank", "sparse", "zero"])
def test_penalties_and_sets_are_their_formulas(atom, kind):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(5, 4))
    if kind == "low rank":
        W = np.outer(W[:, 0], W[0])
    elif kind == "sparse":
        W[rng.random(W.shape) < 0.6] = 0.0
    elif kind == "zero":
        W[:] = 0.0
    if atom.name in COMPARISONS or (atom.name == "mkl_norm" and kind != "dense"):
        return
    definition = DEFINITIONS[atom.name]
    if isinstance(atom, Set):
        assert definition.function(W, atom) == pytest.approx(atom.violation(W), rel=1e-12, abs=1e-14)
        return
    if definition.kind == "kept":
        if atom.name == "mkl_norm" and np.isinf(atom.value(W)):
            return
        matrices = atom.update(W)
        given = matrices if atom.weighs_kernels else tuple(map(spectrum_of, matrices))
        assert definition.function(W, given, atom) == pytest.approx(
            atom.value_at(W, matrices), rel=1e-9, abs=1e-12
        )
        return
    if definition.kind == "between":
        low, high = definition.function(W, atom)
        assert (
            low * (1.0 - 1e-12) <= atom.value(W) <= high * (1.0 + atom.accuracy) and high - low <= 1e-3 * high
        )
        return
    found = definition.function(W, atom) if definition.kind == "matrix" else None
    if found is None:
        found = np.sum(definition.function(np.append(singular_values(W), 0.0), atom))
    accuracy = max(1e-11, definition.within, atom.accuracy)
    assert found == pytest.approx(atom.value(W), rel=accuracy, abs=1e-13)


@for_each("atom", examples(Metric))
def test_metrics_are_their_formulas(atom):
    rng, definition = np.random.default_rng(1), DEFINITIONS[atom.name]
    if definition.kind == "tables":
        b, c = np.arange(8)[None, :], np.arange(6)[:, None]
        with np.errstate(all="ignore"):
            found = definition.function(b, c, 5, 7, atom)
        np.testing.assert_allclose(
            np.broadcast_to(found, (6, 8)), atom.table(b, c, 5, 7), rtol=1e-13, atol=1e-13
        )
    for positives, negatives in ((5, 7), (1, 6), (6, 1), (40, 160)):
        y = rng.permutation(np.append(np.ones(positives), -np.ones(negatives)))
        hinge = mtl.structured_hinge.atom(metric=atom)
        if atom.check(positives, negatives) is not None:
            continue
        for scale in (0.0, 0.01, 0.3, 5.0):
            z = scale * rng.normal(size=y.size)
            assert structured_hinge(z, y, None, hinge) == pytest.approx(
                hinge.value(z, y), rel=1e-11, abs=1e-13
            )


def test_a_metric_that_takes_a_word_s_name_is_its_own():
    class FScore(Metric):
        def delta(self, b, c, positives, negatives):
            return 0.25 * ((b + c) > 0)

    y = np.array([1.0, -1.0, -1.0])
    assert METRICS["FScore"] is not FScore
    assert structured_hinge(np.zeros(3), y, None, SimpleNamespace(metric=FScore())) == 0.25


def test_graphs_that_are_too_large_are_left_out(monkeypatch):
    from mtldsl.certificates.plain import plain_losses as plain_labellings

    (atom,) = [one.values[0] for one in examples(Loss) if one.id == "clique_hinge-0"]
    scores, truth = np.zeros((3, atom.cliques.n_entries)), np.zeros((3, atom.cliques.n_labels), int)
    for costs in ("hamming", "zero_one"):
        one = replace(atom, loss=costs)
        assert DEFINITIONS["clique_hinge"].function(scores, truth, one) is not None
        monkeypatch.setattr(
            plain_labellings, "SETTINGS", replace(plain_labellings.SETTINGS, labelling_entries=10)
        )
        assert DEFINITIONS["clique_hinge"].function(scores, truth, one) is None
        monkeypatch.undo()
