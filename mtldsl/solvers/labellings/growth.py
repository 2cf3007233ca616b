"""Which cliques join next, and when enough have."""

from __future__ import annotations

import numpy as np

from mtldsl.inference import Cliques
from mtldsl.solvers.labellings.ascent import Ascent
from mtldsl.solvers.labellings.restricted import Restricted
from mtldsl.solvers.solver import Point, Watch

__all__ = ["Growth"]

#: The restricted problem is solved to this share of the gap that is left over all cliques, and of tol at least.
_INNER, _OF_TOL = 0.25, 0.4
#: Where no clique is missing any more, to this share of tol.
_ENOUGH = 0.95
#: The first problem, and those by whose drops of the objective a graph is selected.
_FIRST, _SELECTING = 0.1, 2e-3
#: A round that lowers the objective by less than this share of the largest drop ends the selection of a graph (CGM, section 4).
_DROP = 0.1


def _places(state: dict, cliques: Cliques) -> np.ndarray:
    """Those of the cliques that a warm start has, by position; it may be of a model with other candidates."""
    place = {members: c for c, members in enumerate(cliques.members)}
    return np.array([place[members] for members in state["members"] if members in place], dtype=np.int64)


class Growth:
    def __init__(
        self,
        ascent: Ascent,
        tol: float,
        max_edges,
        graph_selection,
        per_round,
        state: dict | None,
        grows=True,
    ):
        self.ascent, self.tol = ascent, tol
        self.max_edges = ascent.model.n_cliques if max_edges is None else max_edges
        self.graph_selection, self.per_round = graph_selection, per_round
        self.rounds = 0
        self.added = np.full(ascent.model.n_cliques, -1)  # the round in which each clique joined
        self.joined: list = []  # labels of the cliques that joined in this round
        first = np.arange(ascent.model.n_cliques)
        if grows and (ascent.model.selects or max_edges is not None or graph_selection):
            first = (
                first[:0] if state is None else _places(state, ascent.model.loss.cliques)[: self.max_edges]
            )
        self.added[first] = 0
        ascent.activate(first)
        if state is not None:
            ascent.start_from(state)
        self.restricted = Restricted(ascent)
        self.best, self.bound = np.inf, -np.inf
        self.drops: list[float] = []

    def run(self, max_iter: int, watch: Watch) -> Point:
        ascent, before = self.ascent, None
        inner = max(_SELECTING, self.tol) if self.graph_selection else _FIRST
        while True:
            value = self._solved(inner, max_iter, watch)
            norms = ascent.clique_norms()
            bound, share = ascent.dual(norms)
            self.best, self.bound = min(self.best, value), max(self.bound, bound)
            point = self._point(share)
            if watch(point) or self.restricted.told_to_stop or watch.expired or ascent.epochs >= max_iter:
                return point
            joining = self._joining(norms)
            if self._is_enough(value, before, joining):
                # the graph is chosen: what is left is to solve for it
                left = self.added < self.rounds
                if self._fell_too_little() and self.rounds:
                    self.added[~left] = -1
                    ascent.activate(ascent.active[left[ascent.active]])
                    self.restricted.gap = np.inf
                if self.restricted.gap > self.tol:
                    self._solved(_ENOUGH * self.tol, max_iter, watch)
                    point = self._point(ascent.dual(ascent.clique_norms())[1])
                    watch(point)
                if self.restricted.gap <= self.tol:
                    point.stopped = "selected"
                return point
            gap = (self.best - self.bound) / max(abs(self.best), 1e-300)
            inner = max(_INNER * gap, _OF_TOL * self.tol)
            if self.graph_selection:
                inner = min(inner, max(_SELECTING, self.tol))
            if not joining.size:  # what is left is the gap of this problem
                inner = min(_ENOUGH * self.tol, 0.5 * self.restricted.gap)
                continue
            before = value
            self._join(joining)

    def _solved(self, inner: float, max_iter: int, watch: Watch) -> float:
        def look() -> bool:
            self.blocks = self.restricted.blocks
            return watch(self._point(self.ascent.dual(self.ascent.clique_norms())[1]))

        lowest = self.restricted.solve(inner, self.best, max_iter, watch, look)
        self.blocks = self.restricted.blocks
        return lowest

    def _join(self, joining) -> None:
        self.rounds += 1
        self.added[joining] = self.rounds
        self.joined = [list(self.ascent.model.loss.cliques.members[c]) for c in joining]
        self.ascent.activate(np.concatenate([self.ascent.active, joining]))

    def _missing(self, norms) -> np.ndarray:
        """Whether a clique is inactive and violates, for all cliques."""
        ascent = self.ascent
        outside = np.ones(norms.size, dtype=bool)
        outside[ascent.active] = False
        level = 0.0
        if ascent.active.size >= ascent.model.r and ascent.active.size:
            level = np.sort(norms[ascent.active])[::-1][ascent.model.r - 1]
        return outside & (norms > level * (1.0 + 1e-12))

    def _joining(self, norms) -> np.ndarray:
        """The inactive cliques that violate most, the worst first."""
        ascent = self.ascent
        candidates = np.flatnonzero(self._missing(norms))
        count = self.per_round or max(2, ascent.active.size // 2)
        room = self.max_edges - ascent.active.size
        return candidates[np.argsort(-norms[candidates], kind="stable")][: max(min(count, room), 0)]

    def _is_enough(self, value: float, before: float | None, joining) -> bool:
        """Whether a rule of the user's ends the growth."""
        if before is not None:
            self.drops.append(before - value)
        if self.graph_selection and (not joining.size or self._fell_too_little()):
            return True
        return self.max_edges < self.ascent.model.n_cliques and self.ascent.active.size >= self.max_edges

    def _fell_too_little(self) -> bool:
        """The rule of CGM: then the cliques of the last round are not worth their place."""
        return self.graph_selection and bool(self.drops) and self.drops[-1] < _DROP * max(0.0, *self.drops)

    def _point(self, share: float) -> Point:
        ascent = self.ascent
        members = [ascent.model.loss.cliques.members[c] for c in ascent.active]
        state = {"solver": "labellings", "added": self.added.copy(), "members": members, **ascent.state}
        notes = {
            "edges": int(ascent.active.size), "round": self.rounds, "joined": self.joined, "inference": ascent.decoder.method,
            "treewidth": int(ascent.decoder.treewidth),
        }  # fmt: skip
        self.joined = []
        return Point(self.blocks, [ascent.mixture(share)], None, ascent.epochs, state, notes)
