"""What a network is once it is trained: plain arrays, so that predicting and storing need no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["ACTIVATIONS", "Layers"]

#: name -> (the function, variance of its argument's weights times the number of inputs that keeps signals at their size)
ACTIVATIONS = {"relu": (lambda A: np.maximum(A, 0.0), 2.0), "tanh": (np.tanh, 1.0)}


@dataclass(frozen=True, eq=False)
class Layers:
    """x -> h(x) -> h(x) W + intercept, with h(x) = a(... a(x A_1 + c_1) ... A_k + c_k) for an activation a.

    hidden         : pairs A (q, p), c (p,), one a hidden layer; none: h(x) = x, a linear model
    W (p, m)       : the last layer, column i for task i
    intercept (m,) : zeros where there is none
    """

    hidden: tuple[tuple[np.ndarray, np.ndarray], ...]
    W: np.ndarray
    intercept: np.ndarray
    activation: str

    @classmethod
    def random(cls, sizes, n_tasks: int, activation: str, rng: np.random.Generator) -> Layers:
        """Normal weights of standard deviation sqrt(gain / inputs), and no shifts; sizes are those of x and the hidden layers."""
        gain = ACTIVATIONS[activation][1]
        hidden = tuple((np.sqrt(gain / q) * rng.normal(size=(q, p)), np.zeros(p)) for q, p in pairwise(sizes))
        W = rng.normal(size=(sizes[-1], n_tasks)) / np.sqrt(sizes[-1])
        return cls(hidden, W, np.zeros(n_tasks), activation)

    def features(self, X) -> np.ndarray:
        """h(x) of every row, (n, p)."""
        function = ACTIVATIONS[self.activation][0]
        for A, c in self.hidden:
            X = function(X @ A + c)
        return X

    def outputs(self, X) -> np.ndarray:
        """The outputs of all tasks, (n, m)."""
        return self.features(X) @ self.W + self.intercept

    def output_of(self, X, task: int) -> np.ndarray:
        """The outputs of one task, (n,)."""
        return self.features(X) @ self.W[:, task] + self.intercept[task]
