"""MultiTaskKFold inside scikit-learn's tools."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mtldsl.data.splits import fold_numbers
from mtldsl.data.tasks import Tasks
from mtldsl.estimators import MultiTaskKFold
from tests.loops import for_each
from tests.tasks.test_folding import rare_labels


def numbers(splitter, y, groups=None) -> np.ndarray:
    fold = np.full(len(y), -1)
    for k, (train, test) in enumerate(splitter.split(np.zeros((len(y), 1)), y, groups)):
        assert (fold[test] == -1).all() and sorted([*train, *test]) == list(range(len(y)))
        fold[test] = k
    assert (fold >= 0).all()
    return fold


@for_each("kind", ["signs", "text", "0/1", "frame", "nullable"])
def test_folds_are_those_of_tasks_for_labels_of_every_kind(kind):
    Y = rare_labels(2)
    there = ~np.isnan(Y)
    y = {
        "signs": Y,
        "text": np.where(there, np.where(Y > 0, "yes", "no"), None).astype(object),
        "0/1": np.where(there, Y > 0, np.nan),
        "frame": pd.DataFrame(Y > 0).astype(object).where(there),
        "nullable": pd.DataFrame(np.where(there, Y > 0, np.nan)).astype("Int64"),
    }[kind]
    assert np.array_equal(
        numbers(MultiTaskKFold(5), y), fold_numbers(Tasks.shared(np.zeros((len(Y), 1)), Y), 5)
    )


def test_folds_of_several_classes_are_as_even_as_stratified():
    y = np.repeat(["a", "b", "c"], [50, 23, 9])
    fold = numbers(MultiTaskKFold(4), y)
    theirs = numbers(StratifiedKFold(4), y)
    for one in "abc":
        ours = np.bincount(fold[y == one], minlength=4)
        assert np.ptp(ours) <= np.ptp(np.bincount(theirs[y == one], minlength=4))


def test_it_is_cloned_printed_and_seeded():
    splitter = MultiTaskKFold(3, random_state=7)
    assert (
        splitter.get_n_splits() == 3 and "n_splits=3" in repr(splitter) and "random_state=7" in repr(splitter)
    )
    y = rare_labels()
    assert np.array_equal(numbers(splitter, y), numbers(MultiTaskKFold(3, random_state=7), y))
    assert not np.array_equal(numbers(splitter, y), numbers(MultiTaskKFold(3), y))
    assert clone(splitter, safe=False).n_splits == 3


@for_each(
    "make, says",
    [
        (lambda: MultiTaskKFold(1), "MultiTaskKFold(n_splits=1)"),
        (lambda: MultiTaskKFold(5), "there are 4 rows; write n_splits = 2 to 4"),
        (lambda: MultiTaskKFold(2, stratify=None), "stratify=True or stratify=False"),
        (lambda: MultiTaskKFold(2, random_state="a"), "random_state='a'"),
    ],
)
def test_mistakes_are_value_errors(make, says):
    with pytest.raises(ValueError) as caught:
        list(make().split(np.zeros((4, 1)), [0, 1, 0, 1]))
    assert says in str(caught.value)


def test_groups_reach_it_where_metadata_are_routed():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    seen = []

    class Watching(MultiTaskKFold):
        def split(self, X, y=None, groups=None):
            seen.append(groups)
            yield from super().split(X, y, groups)

    groups = np.arange(40) // 4
    with config_context(enable_metadata_routing=True):
        cross_val_score(Ridge(), X, X[:, 0], cv=Watching(3), params={"groups": groups}, error_score="raise")
    assert np.array_equal(seen[0], groups)
