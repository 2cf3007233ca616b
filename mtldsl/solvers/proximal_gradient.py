"""Proximal gradient methods, for smooth losses and functions whose sum has an exact proximal step."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.accelerated_gradient import AcceleratedGradient
from mtldsl.solvers.proximal_part import ProximalPart, partition
from mtldsl.solvers.smooth_part import SmoothPart
from mtldsl.solvers.solver import Point, Watch

__all__ = ["SOLVER", "ProximalGradient"]


class ProximalGradient:
    """minimize f(x) + h(x): f smooth (losses), h with an exact prox on every block."""

    name = "proximal_gradient"
    summary = "accelerated proximal gradient: smooth losses, functions whose sum has an exact proximal step"
    options = {}  # noqa: RUF012
    max_iter = 100_000

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not loss.atom.smooth:
                return f"{loss.typed} is not smooth."
        parts = partition(form)
        return parts if isinstance(parts, str) else None

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        parts = partition(form)
        smooth = SmoothPart(form, [form.functions[k] for k in parts.moved])
        x = np.zeros(smooth.layout.size) if start is None else smooth.layout.flat(start.blocks)
        return AcceleratedGradient(smooth, ProximalPart(form, parts), x).run(max_iter, watch)[0]


SOLVER = ProximalGradient()
