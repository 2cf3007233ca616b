"""The folds of `Tasks.folds` as scikit-learn's tools take them: cv=MultiTaskKFold()."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import _num_samples

from mtldsl.data.splits import group_ids, require_units, stratified_folds
from mtldsl.estimators.estimator_inputs import refuse_unpaired
from mtldsl.estimators.label_tables import to_spread
from mtldsl.utils.validation import as_count, as_flag, generator


class MultiTaskKFold(BaseCrossValidator):
    """Folds for tables of labels with gaps, of which some labels are rare: scikit-learn's splitters take no NaN in y and stratify one label.

    n_splits     : the number of folds, at least 2
    stratify     : spread every column's labels, and each of its classes, as evenly as can be (iterative stratification);
                   False: rows are dealt at random
    random_state : a whole number, or None for other folds with every call

    y is (n,) or (n, m), of numbers or classes, None and NaN for missing ones; groups, where they are given, stay together.
    A column with so many values that each has fewer than n_splits rows on average is one of numbers: of these only who has one is spread.
    ValueError for fewer rows, or groups, than folds.
    Source: Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD 2011.

    >>> import numpy as np
    >>> from mtldsl.estimators import MultiTaskKFold
    >>> y = np.array([[1, 0], [1, 0], [0, np.nan], [0, 1], [0, 1], [0, np.nan]])
    >>> [sorted(map(str, y[test, 1])) for _, test in MultiTaskKFold(2).split(y, y)]
    [['0.0', '1.0', 'nan'], ['0.0', '1.0', 'nan']]
    """

    # groups that a tool was given reach `split` without being asked for, as for scikit-learn's group splitters
    __metadata_request__split = {"groups": True}  # noqa: RUF012  scikit-learn's spelling

    def __init__(self, n_splits=5, *, stratify=True, random_state=0):
        self.n_splits, self.stratify, self.random_state = n_splits, stratify, random_state

    def split(self, X, y=None, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (rows to train on, rows to test on), as positions; every row is tested once."""
        k = as_count(self.n_splits, "MultiTaskKFold(n_splits", 2)
        stratify = as_flag(self.stratify, "MultiTaskKFold(stratify")
        rng = generator(self.random_state, "MultiTaskKFold")
        refuse_unpaired(X, y=y, groups=groups)
        n = _num_samples(X)
        units = group_ids(groups, n, "MultiTaskKFold.split(X, y, groups)")
        require_units(n, units, k, "MultiTaskKFold(n_splits")
        labels = to_spread(y, k) if stratify and y is not None else np.empty((n, 0))
        numbers = stratified_folds(labels, k, stratify, units, rng)
        for fold in range(k):
            yield np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """The number of folds."""
        return as_count(self.n_splits, "MultiTaskKFold(n_splits", 2)
