"""Algorithm 1 of the paper on calibrated learning (NC-CMTL) as printed, for teaching: its faults can be seen in the history."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.solvers.design.sufficient_statistics import radial_data
from mtldsl.solvers.nonconvex.reweighting import Reweighting
from mtldsl.solvers.solver import Point, Watch

#: The paper's eps_2 ("eps in MATLAB") where the loss has none.
MACHINE_EPS = np.finfo(float).eps
#: The paper's convergence test (20).
CHANGE_TOL = 1e-6


def algorithm_1(form: NormalForm, x: Blocks, *, max_iter: int, watch: Watch) -> Point:
    """(v_i X_i^T X_i + 2 mu D) w_i = v_i X_i^T y_i again and again, until the surrogate (19) changes by less than 1e-6.

    Its faults: D and v_i are inverted where a singular value or a residual is almost zero, so that a tiny eps loses the answer to
    rounding; a residual that has become zero, or a rank that is lost, never comes back; and (20) compares two surrogates, which
    differ in every step, in place of the objective.
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, Algorithm 1.
    """
    data = radial_data(form)
    model = Reweighting(form, data)
    model.eps = 0.0 if data.loss.atom.smooth else MACHINE_EPS
    at, before, values = model.evaluate(x[data.block]), np.inf, []
    for iteration in range(1, max_iter + 1):
        (a, rest), v = model.spectral_weights(at), model.task_weights(at)
        U = at.basis
        D = (U * (a - rest)) @ U.T + rest * np.eye(len(U))
        W = np.empty(data.shape)
        for chunk in data.chunks:
            for place, i in enumerate(chunk.tasks):
                R = chunk.R if chunk.R.ndim == 2 else chunk.R[place]
                try:
                    W[:, i] = np.linalg.solve(v[i] * R.T @ R + D, v[i] * R.T @ chunk.q[place])
                except np.linalg.LinAlgError:
                    raise SolverError(
                        f"method='algorithm_1': in iteration {iteration} the system of task {i} is singular, as may be expected "
                        "of the printed form",
                        write_instead="write method='newton'",
                    ) from None
        at = model.evaluate(W)
        values.append(at.value)
        surrogate = 0.5 * float(v @ at.norms**2) + 0.5 * float(np.vdot(W, D @ W))
        done = (
            iteration > 1 and abs(before - surrogate) <= CHANGE_TOL * abs(before)
        ) or iteration == max_iter
        before = surrogate
        point = Point(data.blocks(at.W), iteration=iteration, notes={"objectives": values})
        if done or iteration.bit_count() == 1 or watch.expired:
            values = []
            if watch(point) or done or watch.expired:
                break
    return point
