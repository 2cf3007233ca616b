"""The CGM paper's own ascent, stochastic proximal dual coordinate ascent (SPDCA), made correct: for teaching and for comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.solvers.design.kernel_arguments import InferencePlan
from mtldsl.solvers.label_graphs import labeling_ascent, pricing
from mtldsl.solvers.label_graphs.labeling_ascent import LabelingDual
from mtldsl.solvers.label_graphs.pricing import Pricing
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class SmoothedSettings:
    """Constants of the smoothed ascent.

    smoothing_share : of the coefficient of the penalty on the cliques: sigma where none is given
    history_epochs  : up to which every epoch has a row in the history
    history_percent : of the epochs before, between two rows from then on
    """

    smoothing_share: float = 0.1
    history_epochs: int = 100
    history_percent: int = 2


SETTINGS = SmoothedSettings()


class SmoothedAscent(LabelingDual):
    """The dual of  min a/2 ||U||^2 + b Omega_r(V) + sigma/2 ||V||^2 + sum_i w_i H_i(U, V), by one step a sample.

    A step goes from the whole mixture of a sample towards its most violated labelling. Its length is the best for a lower bound of the
    dual value that the modulus of the penalty gives: min(a, sigma), the paper's min(1, sigma / lam). sigma stays what it is, so that
    what is reached is the optimum of another problem; where the penalty leaves no clique out, sigma is 0 and the modulus min(a, b).

    Source: CGM, equation (11) and Algorithm 2, corrected: the multipliers start at the true labellings and stay probabilities, norms are
    those of differences of features, 1 / (lam n) stands where it belongs, weights are the gradient of the conjugate.
    """

    def __init__(self, model, seed: int = 0, state: dict | None = None, sigma: float | None = None):
        self.sigma = (
            (SETTINGS.smoothing_share * model.b if sigma is None else sigma) if model.selects else 0.0
        )
        self.modulus = min(model.a, self.sigma if model.selects else model.b)
        self.seen_losses = np.nan
        super().__init__(model, seed, state)

    def activate(self, active) -> None:
        super().activate(active)
        self.tau = self.sigma / self.model.b  # around zero, so that Z is the same

    def recentre(self) -> None:
        """Never: that is the proximal point method, which the paper has not."""

    def epoch(self) -> float:
        """Every sample once, in random order. Returns the sum of the samples' gaps as they were visited."""
        from mtldsl.solvers.label_graphs.labeling_kernels import step_each

        _, entries, decoder = self._inference()
        gap, self.seen_losses, full = 0.0, 0.0, 0
        for visits in self.visits(decoder):
            search = InferencePlan(entries, *decoder.choice, decoder.plan, *decoder.scratch())  # type: ignore[call-arg]  # two and two
            rows, cliques, penalty, weights, mixtures = self.arguments()
            gap_of_these, losses, full_of_these = step_each(
                visits, rows, cliques, penalty, self.modulus, weights, mixtures, tuple(search), labeling_ascent.SETTINGS.labelling_tol,
            )  # fmt: skip
            gap, full = gap + gap_of_these, full + full_of_these
            self.seen_losses += losses
        self._settle(full)
        return float(gap)

    def smoothed(self, primal: float) -> dict:
        """The smoothed problem's objective and its bound with the active cliques, and f_h as the paper's Algorithm 2 computes it.

        f_h adds up losses that were seen at other weights than the penalty: one at a time, while an epoch went on.
        """
        rows = self.edge_rows()
        smoothing = 0.5 * self.sigma * float(np.sum(rows**2))
        quadratic = 0.5 * self.model.a * float(np.sum(self.Z[: self._nodes] ** 2))
        return {
            "sigma": self.sigma,
            "smoothed_objective": primal + smoothing,
            "smoothed_bound": self.raised(),
            "paper_objective": self.seen_losses + quadratic + self._penalty(rows) + smoothing,
        }


class SmoothedPricing(Pricing):
    """Cliques join where their smoothed weights would not be zero; every epoch is shown, with the smoothed problem beside the model's.

    Ends as "stalled" where the smoothed problem is solved and the model is not: the gap that is left is that of sigma.
    """

    ascent: SmoothedAscent

    def run(self, max_iter: int, watch: Watch) -> Point:
        ascent, before, enough = self.ascent, None, False
        inner, next_look = 0.1, 1
        least = pricing.SETTINGS.restricted_tol_share * self.tol
        while True:
            ascent.epoch()
            done = watch.expired or ascent.epochs >= max_iter
            if ascent.epochs < next_look and not done:
                continue
            next_look = ascent.epochs + 1
            if ascent.epochs > SETTINGS.history_epochs:
                next_look += ascent.epochs * SETTINGS.history_percent // 100
            value, norms = ascent.primal(), ascent.clique_norms()
            bound, share = ascent.dual(norms)
            self.best, self.bound, self.blocks = (
                min(self.best, value),
                max(self.bound, bound),
                ascent.blocks(),
            )
            notes = ascent.smoothed(value)
            point = self._point(share)
            point.notes.update(notes)
            if watch(point) or done:
                return point
            left = (notes["smoothed_objective"] - notes["smoothed_bound"]) / max(abs(value), 1e-300)
            if left > inner:
                continue
            joining = self._joining(norms)
            enough = enough or self._is_enough(value, before, joining)
            if enough or not joining.size:
                if left <= least:
                    point.stopped = "selected" if enough else "stalled"
                    return point
                inner = least
                continue
            gap = (self.best - self.bound) / max(abs(self.best), 1e-300)
            inner = max(pricing.SETTINGS.restricted_gap_share * gap, least)
            before = value
            self._join(joining)

    def _missing(self, norms) -> np.ndarray:
        """Tell whether a clique is inactive and would have weights in the smoothed problem, for all cliques."""
        from mtldsl.solvers.label_graphs.labeling_kernels import shares

        ascent = self.ascent
        if ascent.sigma == 0.0:
            return super()._missing(norms)
        order, eta = np.argsort(-norms, kind="stable"), np.empty(norms.size)
        shares(norms, order, ascent.model.r, ascent.tau, eta)
        eta[ascent.active] = 0.0
        return (eta > 1e-12) & (norms > 0.0)
