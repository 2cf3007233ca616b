"""Dual ascent on labellings with all cliques of the model from the start: the way of `dual_ascent` for losses over a graph of labels."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import ClassVar

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError
from mtldsl.solvers.labellings.ascent import Ascent
from mtldsl.solvers.labellings.clique_form import clique_form
from mtldsl.solvers.labellings.growth import Growth
from mtldsl.solvers.solver import Point, Solver, Watch

__all__ = ["LabellingAscent"]


class LabellingAscent(Solver):
    """What `clique_generation` does between two additions of cliques; see `mtldsl.solvers.labellings.ascent.Ascent`.

    seed : of the order in which samples are visited
    """

    name = "dual_ascent"
    summary = "dual ascent on labellings, for clique_hinge"
    options: ClassVar[Mapping[str, object]] = {"seed": 0}

    def refuses(self, form: NormalForm) -> str | None:
        found = clique_form(form)
        return found if isinstance(found, str) else None

    def yields(self, form: NormalForm) -> str | None:
        return "clique_generation starts with few cliques, and adds those that are missed."

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, seed: int = 0
    ) -> Point:
        if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
            raise SolverError(term=f"solve(seed={seed!r})", write_instead="write a whole number >= 0")
        state = start.state if start is not None and start.state.get("solver") == "labellings" else None
        model = clique_form(form)
        assert not isinstance(model, str)  # `refuses` was asked
        return Growth(Ascent(model, seed, state), tol, None, False, None, None, grows=False).run(
            max_iter, watch
        )
