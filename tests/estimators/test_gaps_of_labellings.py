"""A graph of labels learned from rows with missing labels: of a weight of zero, or with gaps."""

import numpy as np
import pytest

from mtldsl.errors import DataError
from mtldsl.estimators import LabelGraphClassifier


def labels_with_gaps(share, n=60):
    """(inputs, labels with NaN, all labels): the third label is whether the first two agree, give or take."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(n, 3))
    whole = (inputs @ rng.normal(size=(3, 3)) > 0).astype(float)
    whole[:, 2] = (whole[:, 0] == whole[:, 1]) ^ (rng.random(n) < 0.05)
    return inputs, np.where(rng.random(whole.shape) < share, np.nan, whole), whole


@pytest.mark.slow
def test_the_estimator_learns_from_rows_with_gaps():
    """More rows, though with gaps, are at least as good as those that are complete."""
    inputs, labels, whole = labels_with_gaps(0.3, n=120)
    found = LabelGraphClassifier(lam=0.1).fit(inputs, labels)
    assert found.solution_.is_optimal
    predicted = found.predict(inputs)
    assert predicted.shape == whole.shape and np.isin(predicted, (0, 1)).all()
    assert np.mean(predicted == whole) > 0.8
    rest = np.isnan(labels).any(axis=1)
    assert 60 < rest.sum() < 110
    few = LabelGraphClassifier(lam=0.1).fit(inputs[~rest], labels[~rest])
    assert np.mean(predicted[rest] == whole[rest]) >= np.mean(few.predict(inputs)[rest] == whole[rest])


@pytest.mark.slow
def test_a_weight_of_zero_is_a_missing_label():
    inputs, labels, whole = labels_with_gaps(0.2)
    there = ~np.isnan(labels)
    by_weight = LabelGraphClassifier(lam=0.1).fit(inputs, whole, sample_weight=2.0 * there)
    by_gap = LabelGraphClassifier(lam=0.1).fit(inputs, labels, sample_weight=np.full(60, 2.0))
    np.testing.assert_array_equal(by_weight.solution_.coef, by_gap.solution_.coef)
    with pytest.raises(DataError, match="several values in row 0"):
        LabelGraphClassifier(lam=0.1).fit(inputs, whole, sample_weight=1.0 + np.arange(3.0) * there)
