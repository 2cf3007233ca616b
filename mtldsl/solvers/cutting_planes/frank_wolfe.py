"""Frank-Wolfe steps of the paper's own ADMM, corrected, for teaching: coordinate ascent on the dual, one plane at a time."""

from __future__ import annotations

import numpy as np

from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.cutting_planes.two_block_admm import TwoBlockADMM
from mtldsl.solvers.solver import Point, Watch

#: Gap of a W-step, relative to c_i G_i(0): epsilon_F in the paper.
ASCENT_TOL = 1e-5


class FrankWolfe:
    """Algorithms 1 and 2 of "Optimizing evaluation metrics for multi-task learning via ADMM" (Ke, Pan, Yin, Huang).

        S = prox_{h / mu}(W + Z / mu)
        w_i = argmin c_i G_i(w) + mu / 2 ||w - b_i||^2,   b_i = s_i - z_i / mu,   by coordinate ascent:
              from the mixture (a, delta) of the W-step before, w = b_i - (c_i / mu) a: take the highest plane (a_k, delta_k) at w,
              (a, delta) <- (1 - g) (a, delta) + g (a_k, delta_k) with the best g in [0, 1],  w = b_i - (c_i / mu) a
        Z = Z + mu (W - S)

    Corrected: the first ascent starts at the true labelling (a = 0, delta = 0) and not at w = 0, which is not a feasible dual point, and
    later ones go on where the one before ended, which the paper does not say and without which none comes far; it stops at the full gap
    c_i (G_i(w) - delta - <a, w>), which the paper cuts short; and the outer loop is stopped by a certificate, not by ||S - W||.
    """

    def __init__(self, form: NormalForm, tol: float, start: Point | None, most_steps: int):
        self.most_steps = most_steps
        self.outer = TwoBlockADMM(form, tol, None if start is None else Point(start.blocks), 1.0, 1.0, 0)
        self.oracle, self.coefficients = self.outer.oracle, self.outer.coefficients
        self.steps = 0
        self.at_zero = self.oracle(np.zeros_like(self.outer.W)).values
        m = len(self.coefficients)
        # the true labelling: planes of slope 0 and height 0
        self.mixture = (
            np.zeros_like(self.outer.W),
            np.zeros(m),
            [[self.oracle.zero(i)] for i in range(m)],
            [[1.0] for _ in range(m)],
        )

    def run(self, max_iter: int, watch: Watch) -> Point:
        outer = self.outer
        next_look = 1
        for iteration in range(1, max_iter + 1):
            outer.S = outer.prox(outer.W + outer.Z / outer.mu)
            W, slope, mixture = self._ascend(outer.S - outer.Z / outer.mu, watch)
            outer.W, outer.Z = W, -self.coefficients[:, None] * slope
            last = iteration == max_iter or watch.expired
            if last or iteration >= next_look:
                next_look = int(1.1 * iteration) + 1
                point = self._point(mixture, iteration)
                if watch(point) or last:
                    break
        return point

    def _ascend(self, B: np.ndarray, watch: Watch):
        """(W, slopes, the planes with their weights) of the W-step of all tasks at once, each until its own gap is closed."""
        m = len(B)
        steps = self.coefficients / self.outer.mu
        slope, delta, stored, weights = self.mixture
        W = B - steps[:, None] * slope
        kept = np.ones(m)
        for _ in range(self.most_steps):
            found = self.oracle(W)
            gap = found.values - delta - np.einsum("ij,ij->i", slope, W)
            open_tasks = np.flatnonzero(gap > ASCENT_TOL * self.at_zero)
            if open_tasks.size == 0 or watch.expired:
                break
            self.steps += 1
            for i in open_tasks:
                change = found.slopes[i] - slope[i]
                curvature = steps[i] * (change @ change)
                g = min(gap[i] / curvature, 1.0) if curvature > 0 else 1.0
                slope[i] += g * change
                delta[i] += g * (found.deltas[i] - delta[i])
                W[i] = B[i] - steps[i] * slope[i]
                if g == 1.0:
                    stored[i], weights[i], kept[i] = [], [], 1.0
                else:
                    kept[i] *= 1.0 - g  # the weights before shrink together
                if kept[i] < 1e-100:
                    weights[i], kept[i] = [kept[i] * weight for weight in weights[i]], 1.0
                stored[i].append(found.stored[i])
                weights[i].append(g / kept[i])
        for i in range(m):
            stored[i], weights[i] = _merged(stored[i], kept[i] * np.array(weights[i]))
        self.mixture = slope, delta, stored, weights
        return W, slope, (stored, weights)

    def _point(self, mixture, iteration: int) -> Point:
        outer = self.outer
        stored, weights = mixture
        point = Point(
            self.oracle.blocks(outer.S),
            [self.oracle.duals(stored, [np.array(w) for w in weights])],
            iteration=iteration,
        )
        point.notes = {
            "oracle_calls": round(self.oracle.calls),
            "planes": sum(map(len, stored)),
            "inner_steps": self.steps,
        }
        return point


def _merged(stored: list, weights: np.ndarray) -> tuple[list, list]:
    """Every plane once, with the sum of its weights; what has lost its weight is forgotten."""
    places: dict[bytes, int] = {}
    planes, sums = [], []
    for plane, weight in zip(stored, weights, strict=True):
        at = places.setdefault(plane.tobytes(), len(planes))
        if at == len(planes):
            planes.append(plane)
            sums.append(0.0)
        sums[at] += weight
    total = sum(sums)
    used = [k for k, weight in enumerate(sums) if weight > 1e-12 * total]
    total = sum(sums[k] for k in used)
    return [planes[k] for k in used], [sums[k] / total for k in used]
