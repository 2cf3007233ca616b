"""STN: one network a task, to compare with networks whose hidden layers all tasks share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mtldsl.nn.dense import dense_alike, dense_tasks
from mtldsl.nn.multi_task import MultiTaskNetwork
from mtldsl.nn.options import NetworkOptions
from mtldsl.nn.predictor import Predictor
from mtldsl.tasks import Tasks
from mtldsl.tasks.schema import Schema

__all__ = ["SingleTaskNetworks"]


@dataclass(kw_only=True, eq=False)
class SingleTaskNetworks(NetworkOptions, Predictor):
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
