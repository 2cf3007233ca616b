"""Rounds of ADMM between functions with an exact prox and the planes met so far, whether rows are here or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.prox.composition import prox_of_sum
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.cutting_planes.oracle import Bundle
from mtldsl.solvers.numerics import operator_splitting
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation


@dataclass(frozen=True)
class PlaneRoundsSettings:
    """Limits of rounds.

    memory_steps  : that an extrapolation draws on, at most: older ones belong to a poorer model
    zero_norm     : below which a matrix counts as zero: quotients would overflow
    balance_ratio : of residuals, from which on the penalty changes
    """

    memory_steps: int = 5
    zero_norm: float = 1e-150
    balance_ratio: float = 5.0


SETTINGS = PlaneRoundsSettings()


class PlaneRounds:
    """minimize h(S) + sum_i c_i model_i(w_i) subject to W = S, tasks first; model_i is the maximum of the planes of a bundle.

    W begins where the last planes were found.  memory : steps that an extrapolation draws on, 0 for none
    """

    def __init__(self, form: NormalForm, oracle: Any, bundle: Bundle, W: np.ndarray, memory: int = 0):
        self.form, self.oracle, self.bundle = form, oracle, bundle
        self.coefficients, self.d = oracle.coefficients, oracle.tasks.n_features
        self.terms = [(f.coefficient, f.atom) for f in form.functions]
        self.sum_prox: Any = prox_of_sum(self.terms)  # refuses() lets through only sums that have one
        self.anderson = AndersonExtrapolation(min(memory, SETTINGS.memory_steps)) if memory > 0 else None
        self.W = self.S = self.before = W
        self.Z = -self.coefficients[:, None] * bundle.slopes()
        self.mu = self.first_mu = self._first_penalty()

    def _first_penalty(self) -> float:
        """Multipliers over weights: those of norms are as large as their coefficients, those are a step to where a plane is zero."""
        rows, last = np.arange(len(self.W)), self.bundle.counts - 1
        slopes = self.bundle.planes[rows, last]
        heights = np.abs(self.bundle.deltas[rows, last] + np.einsum("ij,ij->i", slopes, self.W))
        lengths = np.linalg.norm(slopes, axis=1)
        reach = np.divide(heights, lengths, out=np.zeros_like(lengths), where=lengths > 0).mean()
        norms = sum(c for c, atom in self.terms if atom.norm)
        size = norms if norms > 0 else float(np.mean(self.coefficients * lengths))
        return size / reach if reach > 0 and size > 0 else 1.0

    def round(self, relaxation: float) -> None:
        """One round; S is kept as it was, for the balance of residuals."""
        mu = self.mu
        self.before, self.S = self.S, self.prox(self.W + self.Z / mu)
        B = relaxation * self.S + (1.0 - relaxation) * self.W - self.Z / mu
        if self.anderson is not None:
            B = self.anderson.step((self.W - self.Z / mu).ravel(), B.ravel(), 1.0).reshape(B.shape)
        self.W, _ = self.bundle.proximal_steps(B, self.coefficients / mu)
        self.Z = -self.coefficients[:, None] * self.bundle.slopes()

    def prox(self, V: np.ndarray) -> np.ndarray:
        """The prox of the functions on the weights; the intercepts are free."""
        S = V.copy()
        if self.terms:
            S[:, : self.d] = self.sum_prox.prox(V[:, : self.d].T, 1.0 / self.mu).T
        return S

    def functions(self, V: np.ndarray) -> float:
        """The value of the functions."""
        x = self.oracle.blocks(V)
        return sum(f.value(x) for f in self.form.functions)

    def shares(self) -> list[np.ndarray] | None:
        """One multiplier for each of several functions; a single one takes what the loss leaves."""
        if len(self.terms) < 2:
            return None
        return self.sum_prox((self.W + self.Z / self.mu)[:, : self.d].T, 1.0 / self.mu)[1]

    def balance(self) -> None:
        """Double or halve the penalty where one normalised residual is five times the other."""
        size, of_dual = max(np.linalg.norm(self.W), np.linalg.norm(self.S)), np.linalg.norm(self.Z)
        if not (size > SETTINGS.zero_norm and of_dual > SETTINGS.zero_norm):  # at zero, neither says anything
            return
        primal = np.linalg.norm(self.W - self.S) / size
        dual = self.mu * np.linalg.norm(self.S - self.before) / of_dual
        if max(primal, dual) > SETTINGS.balance_ratio * min(primal, dual):
            mu = self.mu * (2.0 if primal > dual else 0.5)
            widest = operator_splitting.SETTINGS.penalty_range_factor
            if not self.first_mu / widest <= mu <= self.first_mu * widest:
                return
            self.mu = mu
            if self.anderson is not None:
                self.anderson.reset()
