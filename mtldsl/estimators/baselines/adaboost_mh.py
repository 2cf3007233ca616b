"""AdaBoost.MH: boosted stumps that answer all labels of a row."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.estimators.baselines.baseline import Baseline, choice, whole
from mtldsl.estimators.baselines.stumps import Stump, Stumps
from mtldsl.system.memory import as_dense

__all__ = ["AdaBoostMH"]


class AdaBoostMH(Baseline):
    """Boosted decision stumps that answer all labels at once (AdaBoost.MH).

        D_1 = 1 / (n K);  h_t the stump with the least Z_t = sum D_t(i, k) exp(-Y_ik a_t h_t(x_i, k)),  Y in {-1, +1}
        D_(t+1)(i, k) = D_t(i, k) exp(-Y_ik a_t h_t(x_i, k)) / Z_t;  scores f = sum over t of a_t h_t;  a label is predicted where f > 0
        the share of labels of the training rows that are wrong is at most Z_1 ... Z_T

    n_rounds         : T >= 1
    confidence_rated : True, a stump answers 1/2 ln(W+ / W-) on each side for each label, W the weights there, smoothed by 1 / (n K), and
                       a_t = 1 (real AdaBoost.MH); False, it answers -1 or +1, with the least weighted error e, and a_t = 1/2 ln((1 - e) / e)
                       (discrete AdaBoost.MH, for one label AdaBoost)

    A stump looks at one feature and has one threshold for all labels. There is nothing random in it, and no other weak learner. Rounds end
    before T where a stump lowers the bound no more: Z_t = 1, or none errs. X and Y are as in `BinaryRelevance`; sparse X is made dense.
    DataError for other labels, a number outside its range, ModelError for another confidence_rated. Attributes after `fit`: stumps_ and
    weights_, a_t; normalizers_, Z_t, whose product is the bound; classes_, label_classes_.

    Source: Schapire and Singer, Improved boosting algorithms using confidence-rated predictions (1999), and BoosTexter (2000); the SMTL
    paper's AdaBoostMH.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import AdaBoostMH
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = AdaBoostMH(n_rounds=3).fit(X, [[0, 1], [0, 1], [0, 0], [1, 0]])
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 0]])
    >>> model.normalizers_.round(3)
    array([0.683, 0.69 , 0.706])
    """

    def __init__(self, *, n_rounds=50, confidence_rated=True):
        self.n_rounds = n_rounds
        self.confidence_rated = confidence_rated

    def _check(self) -> None:
        whole(self, "n_rounds")
        choice(self, "confidence_rated", (True, False))

    def _learn(self, X, Y) -> None:
        X = _dense(X)
        signs = 2.0 * Y - 1.0
        pool = Stumps(X, signs)
        D = np.full(Y.shape, 1.0 / Y.size)
        self.stumps_: list[Stump] = []
        weights, normalizers = [], []
        for _ in range(self.n_rounds):
            stump = pool.best(D, self.confidence_rated)
            agreement = signs * stump(X)
            a = 1.0 if self.confidence_rated else _weight(float(D[agreement < 0].sum()), Y.size)
            D = D * np.exp(-a * agreement)
            Z = float(D.sum())
            if self.stumps_ and Z >= 1.0 - 1e-12:  # nothing is gained any more
                break
            D /= Z
            self.stumps_.append(stump)
            weights.append(a)
            normalizers.append(Z)
            if not self.confidence_rated and (agreement > 0).all():
                break
        self.weights_, self.normalizers_ = np.array(weights), np.array(normalizers)

    def _margins(self, X) -> np.ndarray:
        X = _dense(X)
        return np.sum([a * stump(X) for a, stump in zip(self.weights_, self.stumps_, strict=True)], axis=0)


def _weight(error: float, size: int) -> float:
    """1/2 ln((1 - e) / e); where no label is wrong, as if a thousandth of one were."""
    error = max(error, 1e-3 / size)
    return 0.5 * float(np.log((1.0 - error) / error))


def _dense(X) -> np.ndarray:
    return as_dense(X, "AdaBoostMH: the inputs as a dense table", "select features first", DataError)
