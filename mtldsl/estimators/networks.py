"""Estimators of networks: one with a structured last layer for all tasks, and one for each task."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.data.schema import Schema, is_list_of_matrices
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.estimators.network_training import (
    Layers,
    NetworkOptions,
    TrainingStatistics,
    as_samples,
    checked_structure,
    dense_alike,
    dense_inputs,
    dense_tasks,
    train,
)
from mtldsl.solution.learned import correlation_of
from mtldsl.solution.score import r_squared

# --------------------------------------------------------------------------------------------------------------
# The face that trained networks share: predictions in the units of the labels, and scores.


class NetworkPredictor:
    """Predictions and scores; a subclass says what comes out of its layers."""

    _schema: Schema | None = None  # of the class: not trained yet

    def _outputs(self, X) -> np.ndarray:
        """(n, m) in units of the labels."""
        raise NotImplementedError

    def _output_of(self, X, task: int) -> np.ndarray:
        """(n,) in units of the task's labels."""
        return self._outputs(X)[:, task]

    def _fitted(self, method: str) -> Schema:
        if self._schema is None:
            raise ModelError(
                f"{type(self).__name__}.{method}: not trained yet", write_instead="call fit(tasks) first"
            )
        return self._schema

    def predict(self, X):
        """(n, m) for one matrix X (n, d); a list of (n_i,) for a list of m matrices, one a task. In units of the labels.

        Where the tasks of `fit` were standardised, their statistics are applied to X first. ModelError before `fit`; DataError
        where the columns do not fit: another number, or a table whose column names are not those learned on.
        """
        schema = self._fitted("predict")
        if is_list_of_matrices(X):
            schema.require_one_each(X)
            return [self._output_of(dense_inputs(schema, Xi), i) for i, Xi in enumerate(X)]
        return self._outputs(dense_inputs(schema, X))

    def scores(self, tasks: Tasks) -> np.ndarray:
        """The coefficient of determination R^2 of every task, (m,): 1 minus its normalised mean squared error.

        NaN for a task whose labels are all the same. Raw tasks are scaled by the statistics learned in training; tasks that
        are standardised already are not scaled twice. ModelError before `fit`; DataError for tasks of another size, with other
        statistics, or with a task or feature at another position.
        """
        tasks = dense_alike(self._fitted("scores"), tasks, "scores")
        labels = tasks.per_task(tasks.targets)
        return np.array([r_squared(z, y) for z, y in zip(self._predicted(tasks), labels, strict=True)])

    def score(self, tasks: Tasks) -> float:
        """The mean over tasks of `scores`."""
        return float(np.mean(self.scores(tasks)))

    def _predicted(self, tasks: Tasks) -> list[np.ndarray]:
        """Predictions for tasks on the scale of training: one vector a task."""
        if not tasks.is_shared:
            return [self._output_of(X, i) for i, X in enumerate(tasks.inputs)]
        Z, mask = self._outputs(tasks.X), tasks.mask
        return list(Z.T) if mask is None else [z[kept] for z, kept in zip(Z.T, mask.T, strict=True)]


# --------------------------------------------------------------------------------------------------------------
# MTN and MTN-FETR: hidden layers that all tasks share, and a linear last layer with or without learned covariances.


@dataclass(kw_only=True, eq=False)
class MultiTaskNetwork(NetworkOptions, NetworkPredictor):
    r"""Regression with hidden layers h that all tasks share and a linear last layer W (p, m): MTN, or MTN-FETR with a structure.

    minimize over h, W, b    sum_i sum_j s_ij (y_ij - h(x_ij)^T w_i - b_i)^2  +  c/2 sum_k ||A_k||^2  +  g(W)

    All three parts are *sums*, not means: i over tasks, j over the labelled rows of task i, s_ij the sample weights (1 where there
    are none), A_k the matrices of the hidden layers. g is

    - c/2 ||W||^2 for structure=None (MTN);
    - min over the structure's matrices for a `Structure` (MTN-FETR, for `MatrixNormal`): eta tr(Sigma1 W Sigma2 W^T)
      - rho (m log|Sigma1| + p log|Sigma2|), where the features are the p units of the last hidden layer.

    With standardize=True, y and x are in standard deviations of the training data, so that eta, rho and c mean the same for
    every data set; predictions are in the units of the labels. Labels -1 and +1 are taken as numbers.

    Parameters
    ----------
    hidden : sizes of the hidden layers, default (256, 100) as in the paper; () is a linear model
    structure : a learned structure with its bounds, `MatrixNormal(eta=1.0).bound([Range(0.01, 100.0), Range(0.01, 100.0)])`
    weight_decay : c above, default 0
    intercept : whether the last layer has an intercept b (m,), which is not penalised; default True
    standardize : whether inputs and labels are standardised by statistics of the training data; default True
    epochs : passes over the rows, default 100
    batch_size : rows a step, default 64; None: all of them
    learning_rate : of Adam at the start, default 1e-3; it falls to 0 along half a cosine over all epochs
    patience : with validation data, epochs without a better one after which training ends; None (default): all epochs
    threads : of PyTorch while it trains, default 1, since steps are small; None: as it is configured
    random_state : of the first weights and of the order of rows; the same gives the same network on the same machine

    Attributes
    ----------
    layers : the network as plain arrays, `layers.hidden`, `layers.W`, `layers.intercept`, on the standardised scales
    W (p, m) : its last layer
    matrices : the structure's matrices, as its closed form gives them for W (`SpectralMatrix`); () without one
    correlations : {"Sigma1": (p, p), "Sigma2": (m, m)}, the inverse precisions as correlations
    objective : the value of the objective above
    epoch : the epoch of these layers; the best on validation data, where there are any, else the last
    history : a dict per epoch: epoch, seconds, loss, penalty, objective after the update of the matrices, update_decrease (by
        how much the last update of the epoch lowered the objective, >= 0 up to rounding), validation (the mean over tasks of the
        mean squared error on the scale of training; the variance of training labels is 1 there where standardize=True)

    Raises
    ------
    ModelError
        For options out of their range, a structure without bounds or without a gradient, and before `fit`.
    DataError
        For sparse inputs, and validation tasks that are not those of training.
    MissingExtraError
        Where PyTorch is not installed.
    SolverError
        Where training diverges.

    Notes
    -----
    Adam steps on batches with the matrices kept, where g is a quadratic form of W, take turns with the closed-form update of all
    matrices together, before every step: a step then goes along the gradient of the objective with the matrices eliminated. (Updated after
    every epoch alone, they hold W near the subspace that it had when they were found: after 40 epochs on 2,669 rows of SARCOS that ended
    at the higher objective for all four pairs of eta and rho tried.) The hidden units are rectified linear ones. The objective is not
    convex, and nothing is proven about the point found.
    Where the tasks are fewer than the features, what the joint minimiser learns goes to Sigma1 as far as its bounds allow, and
    only then to Sigma2; read the two together.
    Source: Zhao, Stretcu, Smola and Gordon, "Efficient multitask feature and relationship learning", UAI 2019, Section 5; the
    paper does not say how training and updates take turns, nor its activation.

    Examples
    --------
    >>> from mtldsl.nn import MatrixNormal, Range
    >>> structure = MatrixNormal(eta=0.5).bound([Range(0.01, 100.0), Range(0.01, 100.0)])
    >>> MultiTaskNetwork(hidden=(30, 10), structure=structure, random_state=0).hidden
    (30, 10)
    >>> MultiTaskNetwork(epochs=0)
    Traceback (most recent call last):
    mtldsl.errors.ModelError: MultiTaskNetwork(..., epochs=0): epochs must be a whole number of at least 1
    """

    structure: Structure | None = None

    def fit(self, tasks: Tasks, validation: Tasks | None = None) -> MultiTaskNetwork:
        """Train on the tasks, shared or separate, with or without missing labels; returns self.

        validation : tasks like these, not trained on: the layers of the epoch with the smallest error on them are kept.
        """
        typed = f"{type(self).__name__}.fit"
        tasks = dense_tasks(tasks, typed)
        sizes = (tasks.n_features, *self.hidden)
        checked_structure(self.structure, (sizes[-1], tasks.n_tasks), typed)
        schema, scales, held_out = Schema.of(tasks), TrainingStatistics.of(tasks, self.standardize), None
        if validation is not None:
            validation = dense_alike(schema, validation, f"{typed}: validation")
            share = 1.0 / (
                validation.n_tasks * validation.counts
            )  # weighted squares add up to a mean of means
            held_out = as_samples(validation, scales, np.repeat(share, validation.counts))
        rng = np.random.default_rng(self.random_state)
        start = Layers.random(sizes, tasks.n_tasks, rng)
        trained = train(start, as_samples(tasks, scales), held_out, self.structure, self, rng)
        self._schema, self._scales = schema, scales
        self.layers, self.matrices, self.objective = trained.layers, trained.matrices, trained.objective
        self.epoch, self.history = trained.epoch, trained.history
        return self

    @property
    def W(self) -> np.ndarray:
        self._fitted("W")
        return self.layers.W

    @property
    def correlations(self) -> dict[str, np.ndarray]:
        """The correlations of the inverse of every precision, by the matrix's name; {} without a structure."""
        self._fitted("correlations")
        learns = () if self.structure is None else self.structure.learns
        return {
            one.name: correlation_of((S.power(-1.0) if one.kind == "precision" else S).dense())
            for one, S in zip(learns, self.matrices, strict=True)
        }

    def _outputs(self, X) -> np.ndarray:
        labels = self._scales.labels
        return labels.mean + labels.scale * self.layers.outputs(self._scales.inputs.apply(X))


# --------------------------------------------------------------------------------------------------------------
# STN: one network a task, to compare with networks whose hidden layers all tasks share.


@dataclass(kw_only=True, eq=False)
class SingleTaskNetworks(NetworkOptions, NetworkPredictor):
    """A network of its own for every task, with nothing shared: STN. Options as in `MultiTaskNetwork`, but for the structure.

    Each minimises the objective of a `MultiTaskNetwork` with structure=None on its one task; `objective` is their sum, and
    `networks` are they, in the order of the tasks. Inputs are standardised by the rows of each task. With validation data,
    every network stops by its own task.

    Raises
    ------
    ModelError, DataError, MissingExtraError, SolverError
        As `MultiTaskNetwork`.

    Notes
    -----
    Source: the comparison "STN" of Zhao, Stretcu, Smola and Gordon, UAI 2019, Section 6.2.

    Examples
    --------
    >>> SingleTaskNetworks(hidden=(30, 10), random_state=0).epochs
    100
    """

    def fit(self, tasks: Tasks, validation: Tasks | None = None) -> SingleTaskNetworks:
        """Train one network a task; returns self."""
        typed = f"{type(self).__name__}.fit"
        schema = Schema.of(dense_tasks(tasks, typed))
        if validation is not None:
            validation = dense_alike(schema, validation, f"{typed}: validation")
        options: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(NetworkOptions)}
        generators = np.random.default_rng(self.random_state).spawn(tasks.n_tasks)
        networks = []
        for i, generator in enumerate(generators):
            options["random_state"] = generator
            network = MultiTaskNetwork(**options)
            networks.append(
                network.fit(tasks.select([i]), None if validation is None else validation.select([i]))
            )
        self.networks, self._schema = tuple(networks), schema
        self.objective = float(sum(network.objective for network in networks))
        return self

    def _outputs(self, X) -> np.ndarray:
        return np.column_stack([self._output_of(X, i) for i in range(len(self.networks))])

    def _output_of(self, X, task: int) -> np.ndarray:
        return self.networks[task]._output_of(X, 0)
