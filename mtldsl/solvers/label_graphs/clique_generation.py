"""Clique generation as a solver: what it takes, its options; its rounds are in `pricing`, its ascent in `labeling_ascent`."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.label_graphs.labeling_ascent import CliqueForm, LabelingDual, clique_form
from mtldsl.solvers.label_graphs.pricing import Pricing
from mtldsl.solvers.label_graphs.spdca import SmoothedAscent, SmoothedPricing
from mtldsl.solvers.solver import Point, Solver, Watch

_METHODS = ("pairwise", "spdca")


class CliqueGeneration(Solver):
    """Solve with the cliques there are; add those whose dual scores ||Z_c|| violate most; until none does, or a rule says enough.

    max_edges         : stop before there are more cliques than this
    graph_selection   : stop when a round lowers the objective by less than a tenth of the largest drop so far (CGM, section 4)
    cliques_per_round : how many join at once; None: two, then as many as half of those there are
    seed              : of the order in which samples are visited
    method            : "pairwise", steps between two labellings of a sample, with exact line search and a centre that follows the weights;
                        or "spdca", the paper's Algorithm 2 corrected, for teaching: one step a sample of a length that only the modulus
                        of the penalty says, and fixed smoothing. Its history has beside the certificate the smoothed problem's objective
                        and bound, and the paper's f_h, which is neither
    sigma             : of "spdca" alone, the weight of sigma/2 ||V||^2, the smoothing; None: a tenth of the coefficient of the penalty on V

    Where a rule ends it the status is "selected": the point is proven to the gap that it says, with the bound over all cliques.
    Where the penalty leaves no clique out (a ridge, or r as large as their number) all are there from the start.

    Source: CGM, section 4 and its Algorithm 1, with the corrections of the spec.
    """

    name = "clique_generation"
    summary = "clique generation: dual ascent on labellings, with the cliques of a label graph added as the dual asks for them"
    options: ClassVar[Mapping[str, object]] = {
        "max_edges": None, "graph_selection": False, "cliques_per_round": None, "seed": 0, "method": "pairwise", "sigma": None,
    }  # fmt: skip
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"method": _METHODS}

    def refuses(self, form: NormalForm) -> str | None:
        found = clique_form(form)
        return found if isinstance(found, str) else None

    def solves_only(self, form: NormalForm) -> str | None:
        of_labellings = any(loss.atom.labels == "indicators" for loss in form.losses)
        return None if of_labellings else "clique_hinge models"

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch,
        max_edges: int | None = None, graph_selection: bool = False, cliques_per_round: int | None = None, seed: int = 0,
        method: str = "pairwise", sigma: float | None = None,
    ) -> Point:  # fmt: skip
        _require_whole("max_edges", max_edges, 0, ", or None")
        _require_whole("cliques_per_round", cliques_per_round, 1, ", or None")
        _require_whole("seed", seed, 0)
        if not isinstance(graph_selection, bool | np.bool_):
            raise SolverError(
                term=f"solve(graph_selection={graph_selection!r})", write_instead="write True or False"
            )
        model = clique_form(form)
        assert not isinstance(model, str)  # `refuses` was asked
        state = start.state if start is not None and start.state.get("solver") == "labellings" else None
        _check_method(model, method, sigma)
        growth, ascent = (
            (Pricing, LabelingDual(model, seed, state))
            if method == "pairwise"
            else (SmoothedPricing, SmoothedAscent(model, seed, state, sigma))
        )
        return growth(ascent, tol, max_edges, graph_selection, cliques_per_round, state).run(max_iter, watch)


def _require_whole(name: str, value, least: int, beside: str = "") -> None:
    """Raise SolverError for anything but a whole number, or None where the text `beside` allows it."""
    if not (value is None and beside) and (
        not isinstance(value, Integral) or isinstance(value, bool) or value < least
    ):
        raise SolverError(
            term=f"solve({name}={value!r})", write_instead=f"write a whole number >= {least}{beside}"
        )


def _check_method(model: CliqueForm, method, sigma) -> None:
    if method not in _METHODS:
        raise SolverError(
            "unknown method",
            term=f"solve(solver='clique_generation', method={method!r})",
            write_instead=f"write one of {', '.join(map(repr, _METHODS))}",
        )
    if method == "spdca" and model.intercept is not None:
        raise SolverError(
            "the paper's method has no intercepts",
            term="solve(solver='clique_generation', method='spdca')",
            write_instead="write method='pairwise', or give the inputs a column of ones",
        )
    if method == "spdca" and model.loss.atom.whole is not None:
        raise SolverError(
            f"the paper's method is of costs of single labels, and here is loss={model.loss.atom.loss!r}",
            term="solve(solver='clique_generation', method='spdca')",
            write_instead="write method='pairwise'",
        )
    if sigma is None:
        return
    if method != "spdca":
        raise SolverError(
            "only method='spdca' smooths",
            term=f"solve(solver='clique_generation', sigma={sigma!r})",
            write_instead="write method='spdca', or leave sigma out",
        )
    if not isinstance(sigma, Real) or isinstance(sigma, bool) or not 0.0 < float(sigma) < np.inf:
        raise SolverError(term=f"solve(sigma={sigma!r})", write_instead="write a number > 0, or None")
    if not model.selects:
        raise SolverError(
            "the penalty on the edges' weights leaves no clique out, so nothing is smoothed",
            term=f"solve(sigma={sigma!r})",
            write_instead="leave sigma out",
        )


SOLVER = CliqueGeneration()


# --------------------------------------------------------------------------------------------------------------
# Dual ascent on labellings with all cliques of the model from the start: the way of `dual_ascent` for losses over a graph of labels.


def ascend_labellings(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch, seed: int = 0
) -> Point:
    """Steps of `clique_generation` between two additions of cliques; see `mtldsl.solvers.label_graphs.labeling_ascent.LabelingDual`.

    seed : of the order in which samples are visited
    """
    _require_whole("seed", seed, 0)
    state = start.state if start is not None and start.state.get("solver") == "labellings" else None
    model = clique_form(form)
    assert not isinstance(model, str)  # `refuses` was asked
    ascent = LabelingDual(model, seed, state)
    return Pricing(ascent, tol, None, False, None, None, grows=False).run(max_iter, watch)
