"""The minimizer of the functions of a model beside the planes met so far: computed here, without a look at the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum
from mtldsl.compile.normal_form import NormalForm
from mtldsl.proof.bound import dual_bound
from mtldsl.solvers.planes.bundle import Bundle

__all__ = ["PlaneModel", "modulus_of"]

#: Rounds between two looks at the model's own gap, and the most of them; the share of the gap that the model may leave.
_LOOK, _MOST, _SHARE = 10, 300, 0.1

#: Quotient of residuals from which on the penalty changes; over-relaxation; accuracy of the quadratic programs.
_UNBALANCED, _RELAXATION, _QP = 5.0, 1.6, 1e-13


def modulus_of(form: NormalForm) -> float | None:
    """r, where the functions are r / 2 ||W||^2 together; else None."""
    total = 0.0
    for f in form.functions:
        squares = f.atom.entry_quadratic
        if squares is None or np.ptp(squares) > 0.0:
            return None
        total += f.coefficient * float(np.ravel(squares)[0])
    return total if total > 0.0 else None


class PlaneModel:
    """minimize h(S) + sum_i c_i model_i(w_i) subject to W = S (tasks first): one quadratic program a task beside squares alone, else the rounds
    of `TwoBlocks`, which go on from where they ended at the last look.

    duals, shares : the multipliers at the last minimizer, of the loss and of the functions
    """

    def __init__(
        self,
        form: NormalForm,
        oracle: Any,
        bundle: Bundle,
        first: np.ndarray,
        modulus: float | None,
        blocks: Callable,
    ):
        self.form, self.oracle, self.bundle, self.modulus, self.blocks = form, oracle, bundle, modulus, blocks
        self.terms = [(f.coefficient, f.atom) for f in form.functions]
        self.sum_prox: Any = prox_of_sum(self.terms)  # refuses() lets through only sums that have one
        self.d = form.shapes[form.weight_blocks[0].name][0]
        self.c = oracle.coefficients
        self.W = self.S = first.copy()
        self.Z, self.mu = -self.c[:, None] * bundle.slopes(), self._first_penalty()
        self.bound, self.duals, self.shares = -math.inf, bundle.duals(), None
        self.programs = self.looks = 0

    def _first_penalty(self) -> float:
        """Multipliers over weights: the size of a norm's multipliers, or of slopes, over a step to where the first planes are zero."""
        last = self.bundle.counts - 1
        rows = np.arange(len(last))
        lengths = np.linalg.norm(self.bundle.planes[rows, last], axis=1)
        reach = np.divide(
            self.bundle.deltas[rows, last], lengths, out=np.zeros_like(lengths), where=lengths > 0
        ).mean()
        norms = sum(c for c, atom in self.terms if atom.norm)
        size = norms if norms > 0 else float(np.mean(self.c * lengths))
        return size / reach if reach > 0 and size > 0 else 1.0

    def minimize(self, objective: float) -> np.ndarray:
        """S (m, D); objective: of the best point so far, which tells how exact it has to be."""
        self.looks += 1
        if self.modulus is not None:
            self.programs += 1
            W, _ = self.bundle.proximal_steps(np.zeros_like(self.W), self.c / self.modulus, _QP)
            self.duals = self.bundle.duals()
            return W
        for k in range(1, _MOST + 1):
            moved = self._round()
            self.programs += 1
            if k % _LOOK:
                continue
            here = self._value()
            bound = self._bound()
            self.bound = max(self.bound, bound)
            if here - bound <= _SHARE * (objective - self.bound):
                break
            if k % (2 * _LOOK) == 0:
                self._balance(moved)
        return self.S

    @property
    def programs_a_look(self) -> float:
        return self.programs / max(self.looks, 1)

    def _round(self) -> float:
        """How far S moved."""
        mu, before = self.mu, self.S
        self.S = self._prox(self.W + self.Z / mu)
        B = _RELAXATION * self.S + (1.0 - _RELAXATION) * self.W - self.Z / mu
        self.W, _ = self.bundle.proximal_steps(B, self.c / mu, _QP)
        self.Z = -self.c[:, None] * self.bundle.slopes()
        return float(np.linalg.norm(self.S - before))

    def _prox(self, V: np.ndarray) -> np.ndarray:
        """The prox of the functions on the weights; the intercepts are free."""
        S = V.copy()
        S[:, : self.d] = self.sum_prox.prox(V[:, : self.d].T, 1.0 / self.mu).T
        return S

    def _value(self) -> float:
        x = self.blocks(self.S)
        return float(self.c @ self.bundle.values(self.S)) + sum(f.value(x) for f in self.form.functions)

    def _bound(self) -> float:
        self.duals = self.bundle.duals()
        if len(self.terms) > 1:
            self.shares = self.sum_prox((self.W + self.Z / self.mu)[:, : self.d].T, 1.0 / self.mu)[1]
        return dual_bound(self.form, self.blocks(self.S), [self.duals], self.shares)[0]

    def _balance(self, moved: float) -> None:
        """Double or halve the penalty where one residual is many times the other."""
        size, of_dual = max(np.linalg.norm(self.W), np.linalg.norm(self.S)), np.linalg.norm(self.Z)
        if not (size > 0.0 and of_dual > 0.0):
            return
        primal, dual = np.linalg.norm(self.W - self.S) / size, self.mu * moved / of_dual
        if max(primal, dual) > _UNBALANCED * min(primal, dual):
            self.mu *= 2.0 if primal > dual else 0.5
