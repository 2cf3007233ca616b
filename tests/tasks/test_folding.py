"""Folds and splits: every row once, groups together, labels spread evenly, promises kept, mistakes named."""

import numpy as np
import pytest

from mtldsl import DataError
from mtldsl.data.splits import fold_numbers
from mtldsl.data.tasks import Tasks
from tests.loops import for_each


def rare_labels(seed=0, n=400, m=12, missing=0.2) -> np.ndarray:
    """(n, m) of -1, +1 and NaN, from common factors; the shares of positives go from 1.5 % to 30 %."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 3)) @ rng.normal(size=(3, m)) + rng.normal(size=(n, m))
    cuts = [np.quantile(z, 1 - share) for z, share in zip(scores.T, np.geomspace(0.015, 0.3, m), strict=True)]
    Y = np.where(scores > cuts, 1.0, -1.0)
    Y[rng.random(Y.shape) < missing] = np.nan
    return Y


def shared(Y, **options) -> Tasks:
    """Tasks whose only feature is the number of the row."""
    return Tasks.shared(np.arange(float(len(Y)))[:, None], Y, **options)


def unevenness(Y, fold, k) -> float:
    """By what share of its fair part a fold misses a class of a task, on average."""
    classes = np.concatenate([Y == 1.0, Y == -1.0], axis=1).astype(float)
    fair = classes.sum(axis=0) / k
    return float(np.mean([np.abs(classes[fold == j].sum(axis=0) - fair) / fair for j in range(k)]))


def test_every_row_is_tested_once_and_trained_on_otherwise():
    Y = rare_labels()
    found, (same, other) = shared(Y).folds(5), (fold_numbers(shared(Y), 5, random_state=k) for k in (0, 1))
    assert np.array_equal(same, fold_numbers(shared(Y), 5)) and not np.array_equal(same, other)
    tested = np.concatenate([test.X[:, 0] for _, test in found])
    assert sorted(tested) == list(range(len(Y)))
    for train, test in found:
        assert sorted(np.concatenate([train.X[:, 0], test.X[:, 0]])) == list(range(len(Y)))
        rows = test.X[:, 0].astype(int)
        assert test.counts.tolist() == (~np.isnan(Y[rows])).sum(axis=0).tolist()


@for_each("seed", range(5))
def test_rare_labels_are_spread_twice_as_evenly_as_by_chance(seed):
    Y, k = rare_labels(seed), 5
    by_chance = [unevenness(Y, np.random.default_rng(s).permutation(len(Y)) % k, k) for s in range(10)]
    fold = fold_numbers(shared(Y), k)
    assert unevenness(Y, fold, k) < 0.5 * np.mean(by_chance)
    assert np.ptp(np.bincount(fold, minlength=k)) <= 0.05 * len(Y)
    for y in Y.T:  # a class with a row for every fold is in every fold
        for sign in (-1.0, 1.0):
            assert len(np.unique(fold[y == sign])) == min(k, int(np.sum(y == sign)))


def test_folds_without_stratification_differ_by_one_row():
    Y = rare_labels()
    fold = fold_numbers(shared(Y), 7, stratify=False)
    assert np.ptp(np.bincount(fold)) <= 1
    assert unevenness(Y, fold, 7) > 1.5 * unevenness(Y, fold_numbers(shared(Y), 7), 7)


def test_missing_labels_are_spread_too():
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(100, 3))
    Y[10:, 0] = np.nan  # ten rows of a hundred have the first label
    fold = fold_numbers(shared(Y), 5)
    assert np.bincount(fold[:10], minlength=5).tolist() == [2, 2, 2, 2, 2]


def test_groups_stay_together_and_labels_are_spread_over_them():
    Y = rare_labels(3)
    rng = np.random.default_rng(3)
    groups = np.array([f"patient {i}" for i in rng.integers(0, 80, len(Y))])
    fold = fold_numbers(shared(Y), 4, groups=groups)
    assert set(fold) == {0, 1, 2, 3}
    for one in np.unique(groups):
        assert len(set(fold[groups == one])) == 1
    by_chance = [
        unevenness(Y, rng.permutation(80)[np.unique(groups, return_inverse=True)[1]] % 4, 4)
        for _ in range(10)
    ]
    assert unevenness(Y, fold, 4) < min(by_chance)


def separate(counts=(20, 11, 7), seed=0) -> Tasks:
    rng = np.random.default_rng(seed)
    labels = [np.where(np.arange(n) < max(n // 3, 2), 1.0, -1.0) for n in counts]
    return Tasks.separate([rng.normal(size=(n, 2)) for n in counts], labels)


def test_separate_inputs_are_dealt_class_by_class():
    tasks = separate((20, 10, 15))
    for train, test in tasks.folds(5):
        assert (train.counts + test.counts).tolist() == [20, 10, 15]
        assert test.counts.tolist() == [4, 2, 3]
    positives = [[int((y > 0).sum()) for y in test.per_task(test.targets)] for _, test in tasks.folds(5)]
    assert np.ptp(positives, axis=0).tolist() == [1, 1, 0]
    tested = np.concatenate([np.concatenate(test.inputs) for _, test in tasks.folds(5)])
    assert len(np.unique(tested, axis=0)) == 45


@for_each(
    "call, says",
    [
        (lambda t: t.folds(1), "folds(k=1): write a whole number of at least 2"),
        (lambda t: t.folds(2.0), "folds(k=2.0)"),
        (lambda t: t.folds(7), "there are 6 rows; write k = 2 to 6"),
        (lambda t: t.folds(3, groups=[0, 0, 0, 1, 1, 1]), "there are 2 groups; write k = 2 to 2"),
        (lambda t: t.folds(2, groups=[0, 1]), "there are 2 groups, and there are 6 rows; give (6,)"),
        (lambda t: t.folds(2, groups="ab"), "groups are not a list"),
        (lambda t: t.folds(2, groups=[0, 1, None, 1, 0, 0]), "the group of row 2 is missing"),
        (lambda t: t.folds(2, stratify="yes"), "write stratify=True or stratify=False"),
        (lambda t: t.folds(2, random_state=-1), "random_state=-1"),
        (lambda t: t.folds(3), "task 'b' has 2 labelled rows, and none in 1 of the 3 folds"),
        (lambda t: t.split(0.5, groups=[0] * 6), "in a single group, which cannot be on both sides"),
        (lambda t: t.split(0.5, stratify=1), "write stratify=True or stratify=False"),
    ],
)
def test_mistakes_are_named(call, says):
    Y = np.array([[1.0, 1.0], [2.0, 0.5], [3.0, np.nan], [4.0, np.nan], [5.0, np.nan], [6.0, np.nan]])
    with pytest.raises(DataError) as error:
        call(shared(Y, task_names=["a", "b"]))
    assert says in str(error.value)


@pytest.mark.parametrize("test_size", [0.2, 0.5])
def test_a_stratified_split_has_the_same_shares_of_classes(test_size):
    Y = rare_labels(5)
    _, test = shared(Y).split(test_size, random_state=0, stratify=True)
    rows = test.X[:, 0].astype(int)
    assert abs(len(rows) - test_size * len(Y)) <= 0.03 * len(Y)
    for y in Y.T:
        for sign in (-1.0, 1.0):
            there = int((y == sign).sum())
            assert abs((y[rows] == sign).sum() - test_size * there) <= max(2.0, 0.05 * there)


@for_each("stratify", [False, True])
@for_each("seed", range(4))
def test_a_split_by_groups_keeps_its_promises(stratify, seed):
    rng = np.random.default_rng(seed)
    Y = -np.ones((60, 2))
    Y[[0, 59], 0] = 1.0  # two positives: one for either side
    Y[rng.random(60) < 0.3, 1] = 1.0
    groups = np.repeat(np.arange(20), 3)
    train, test = shared(Y).split(0.2, random_state=seed, groups=groups, stratify=stratify)
    of_train, of_test = (set(groups[side.X[:, 0].astype(int)]) for side in (train, test))
    assert not of_train & of_test and of_train | of_test == set(range(20))
    for side in (train, test):
        assert all({-1.0, 1.0} == set(y) for y in side.per_task(side.targets))
    assert 9 <= len(test.X) <= 15 or not stratify


def test_a_split_of_separate_inputs_by_groups():
    tasks = separate((20, 12, 12))
    groups = np.concatenate([np.arange(20) % 8, np.arange(12) % 8, np.arange(12) % 8])
    train, test = tasks.split(0.3, random_state=0, groups=groups)
    seen = [set(map(tuple, np.concatenate(side.inputs))) for side in (train, test)]
    rows = np.concatenate(tasks.inputs)
    for one in range(8):
        members = set(map(tuple, rows[groups == one]))
        assert members <= seen[0] or members <= seen[1]
    assert all({-1.0, 1.0} == set(y) for side in (train, test) for y in side.per_task(side.targets))
