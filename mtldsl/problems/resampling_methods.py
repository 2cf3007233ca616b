"""What is asked of a model on other rows than all of its own: cross-validation, and how sure its weights and its choices are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtldsl.atoms.metrics.metric import Metric
from mtldsl.language.scalars import Parameter
from mtldsl.problems.parallel_fits import in_parts
from mtldsl.utils.progress import defaults
from mtldsl.utils.validation import complete

if TYPE_CHECKING:
    from mtldsl.problems.cross_validation_result import CrossValidation
    from mtldsl.problems.resampling import StabilitySelection, WeightIntervals

__all__ = [
    "Resampled",
]


class Resampled:
    """Part of `Problem`."""

    @complete("write problem.cross_validate(lam, [1.0, 0.1], folds=5), with a Parameter of this problem")
    def cross_validate(
        self,
        lam,
        values=None,
        folds=5,
        metric: str | Metric | None = None,
        *,
        n_jobs: int | None = None,
        refit: bool | str = True,
        random_state=0,
        one_class: str = "skip",
        stratify: bool = True,
        groups=None,
        progress: bool = False,
        **solve_options,
    ) -> CrossValidation:
        """Which value of a parameter predicts best: each is learned on all folds but one and scored on that one.

        lam       : a Parameter of the model; several, with their values: {lam: [...], mu: [...]}
        values    : those to try, in the order of a warm-started path on every fold; a number: so many. None: 20 from `lambda_max` down to a
                    thousandth of it for `loss + lam * norm`, up to a thousand times it for `norm + C * loss`
        folds     : how many (as in `Tasks.folds`, with stratify, groups and random_state), or pairs (rows to train on, rows to test on),
                    the rows of the shared X, or the labelled rows of separate inputs, task after task
        metric    : the name of a measure, as in `Solution.score`, or a metric such as `FScore(beta=2)`; None: "accuracy" for labels, else "r2"
        n_jobs    : folds at a time, in processes of joblib's (-1: one a core), or in what `joblib.parallel_config` says, such as Dask's
                    workers; None: one after another, or as many as it says. The result does not depend on it
        refit     : solve on all data at the best value (True), at the one of the one-standard-error rule ("one_se"), or not (False)
        one_class : what becomes of a task whose labels in a training fold are of one class, where the loss needs two, or that has none:
                    "skip", the others are learned, and it is NaN there; "constant", it is predicted to be of that class; both with a
                    OneClassWarning; "error", DataError
        progress  : a bar on standard error, or a line a fold where standard error is not a terminal; the logger "mtldsl" has these lines at
                    level DEBUG in any case
        solve_options : of every `solve`, such as tol and max_seconds

        Ctrl-C raises `Interrupted`: its `completed` is the result of the folds that were complete, without a refit.
        Parameters are put back; `result.solution.parameters` tells what the refit has. A lam that multiplies a norm beside losses that are
        sums over samples weighs less on all data than on a fold of them; with `mean=True` it weighs the same.

        ModelError for what is not a parameter or a metric, where values are not given and `lambda_max` is not known, and where a task has
        to be left out of a model that says something of each; DataError as in `Tasks.folds`.

        >>> import numpy as np, mtldsl as mtl
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 20))
        >>> tasks = mtl.Tasks.shared(X, X[:, :2] @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3)))
        >>> W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
        >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
        >>> problem.cross_validate(lam, [30.0, 10.0, 1.0], folds=3, metric="mse")
        mse (lower is better), mean of 3 folds and its standard error, 3 tasks
               lam       mean        se
                30     1.5082    0.0990
                10     1.1702    0.0814  best, one standard error
                 1     1.6538    0.0269
        """
        with in_parts("cross_validate", "fold", "folds") as made, defaults(cross_check="never"):
            from mtldsl.problems.cross_validation import cross_validate

            return cross_validate(
                self, lam, values, folds, metric, n_jobs=n_jobs, refit=refit, random_state=random_state, one_class=one_class,
                stratify=stratify, groups=groups, progress=progress, solve_options=solve_options, made=made,
            )  # fmt: skip

    def bootstrap(
        self,
        n: int = 100,
        *,
        level: float = 0.95,
        groups=None,
        n_jobs: int | None = None,
        random_state=0,
        progress: bool = False,
        **solve_options,
    ) -> WeightIntervals:
        """Percentile intervals of the weights: the model learned on n samples of its rows, drawn with replacement, as many as there are.

        Shared inputs are drawn by rows, separate ones within every task; groups, (n,) as in `Tasks.folds`, whole. They say how much the
        weights of this (regularised) model depend on which rows came; they are not intervals of the weights without a penalty.
        A task of one class in a sample is not learned there, where the loss needs two; it is counted. n_jobs and progress as in
        `cross_validate`.

        Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.

        >>> import numpy as np, mtldsl as mtl
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 2))
        >>> tasks = mtl.Tasks.shared(X, 3.0 * X[:, :1] + rng.normal(size=(60, 1)))
        >>> W = mtl.Weights(tasks)
        >>> mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).bootstrap(50)
        95 % percentile intervals of 2 x 1 weights from 50 samples of the rows: 1 of 2 without 0
        """
        with in_parts("bootstrap", "sample", "samples") as made, defaults(cross_check="never"):
            from mtldsl.problems.resampling import bootstrap_weights

            return bootstrap_weights(
                self, n, level, groups, n_jobs, random_state, progress, solve_options, made
            )

    def stability_selection(
        self,
        lam: Parameter,
        values=None,
        *,
        n: int = 100,
        threshold: float = 0.75,
        expected_false: float | None = 1.0,
        groups=None,
        n_jobs: int | None = None,
        random_state=0,
        progress: bool = False,
        **solve_options,
    ) -> StabilitySelection:
        """Which features a sparse model chooses again and again: on n halves of the rows, over values of lam.

        values         : as in `cross_validate`
        threshold      : the share of halves, above 0.5, in which a feature has to be chosen at one of the values
        expected_false : values count from the most regularised on, as long as the bound q^2 / ((2 threshold - 1) d) on the expected number
                         of wrongly selected features is at most this; None: all count
        n_jobs, progress : as in `cross_validate`
        Halves are drawn in complementary pairs (Shah and Samworth 2013), the labels of every task spread over both; groups stay together.

        Source: Meinshausen and Buehlmann, "Stability selection", Journal of the Royal Statistical Society B 72, 2010.

        >>> import numpy as np, mtldsl as mtl
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 30))
        >>> tasks = mtl.Tasks.shared(X, X[:, :2] @ rng.normal(size=(2, 4)) + rng.normal(size=(100, 4)))
        >>> W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
        >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
        >>> sorted(problem.stability_selection(lam, n=20).selected)
        ['x0', 'x1']
        """
        with (
            in_parts("stability_selection", "pair of halves", "pairs of halves") as made,
            defaults(cross_check="never"),
        ):
            from mtldsl.problems.resampling import stability_selection

            return stability_selection(
                self, lam, values, n, threshold, expected_false, groups, n_jobs, random_state, progress, solve_options, made
            )  # fmt: skip
