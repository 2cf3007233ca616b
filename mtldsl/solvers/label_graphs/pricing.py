"""Restricted problems of clique generation, the growth of their cliques by price, and Newton steps on mixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.atoms.losses.multiclass import on_simplex
from mtldsl.solvers.label_graphs.labeling_ascent import LabelingDual
from mtldsl.solvers.numerics.conjugate_gradients import conjugate_gradients
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class PricingSettings:
    """Limits of steps on faces, of the restricted problem, and of what joins it.

    cg_steps             : conjugate gradients in one step on a face
    cg_share             : of the residual, which ends them
    flat_share           : of the steepest curvature: below it the dual is flat but for rounding
    face_min_epochs      : between two steps on faces
    face_max_epochs      : the same where they do not pay
    face_start_epochs    : before the first one
    face_gain_ratio      : of a step's rise of the dual value to the last epoch's, from which on it pays
    look_ratio           : of the gap seen during an epoch to the one asked for, below which the objective is computed
    look_epochs          : after which it is computed anyway
    centre_start_epochs  : from one centre to the next, at first
    centre_max_epochs    : the same at most: weights of a rough solution make a bad centre
    idle_centres         : without a lower gap, after which a centre stays twice as long
    proximal_gap_share   : of the gap without the proximal term: with it, the problem is solved well
    report_epochs        : after which the caller is shown a point, whether the problem is solved or not
    restricted_gap_share : of the gap left over all cliques, to which the restricted problem is solved
    restricted_tol_share : the least of that, as a share of tol
    final_tol_share      : of tol, where no clique is missing any more
    growth_start_tol     : gap of the first problem
    selection_tol        : gap of those by whose drops of the objective a graph is selected
    drop_share           : of the largest drop of the objective: a round that lowers it by less ends the selection of a graph (CGM, section 4)
    """

    cg_steps: int = 20
    cg_share: float = 0.1
    flat_share: float = 1e-14
    face_min_epochs: int = 1
    face_max_epochs: int = 32
    face_start_epochs: int = 8
    face_gain_ratio: float = 2.0
    look_ratio: float = 2.0
    look_epochs: int = 8
    centre_start_epochs: int = 2
    centre_max_epochs: int = 16
    idle_centres: int = 40
    proximal_gap_share: float = 0.1
    report_epochs: int = 200
    restricted_gap_share: float = 0.25
    restricted_tol_share: float = 0.4
    final_tol_share: float = 0.95
    growth_start_tol: float = 0.1
    selection_tol: float = 2e-3
    drop_share: float = 0.1


SETTINGS = PricingSettings()


# --------------------------------------------------------------------------------------------------------------
# All weights of all samples at once: a step on the face of the simplices where the random labellings are.


class FaceSteps:
    """Newton's method by conjugate gradients on the weights that are positive, their sum in every sample kept.

    One sample at a time converges slowly where samples pull the same weights; most have settled on one labelling by then, and the
    quadratic of the others is small. A step that leaves a simplex is projected back, and shortened until the dual value rises.
    """

    def __init__(self, ascent: LabelingDual):
        self.ascent, self.pause, self.next = ascent, SETTINGS.face_min_epochs, SETTINGS.face_start_epochs

    def after_epoch(self, gain: float) -> None:
        """A step where it is time for one; `gain` is what the epoch has added to the dual value."""
        if self.ascent.epochs < self.next:
            return
        own = self.step()
        pays = own > SETTINGS.face_gain_ratio * max(gain, 0.0)
        self.pause = (
            max(SETTINGS.face_min_epochs, self.pause // 2)
            if pays
            else min(SETTINGS.face_max_epochs, 2 * self.pause)
        )
        self.next = self.ascent.epochs + self.pause

    def step(self) -> float:
        """Return what it adds to the dual value."""
        a = self.ascent
        used = a.alpha > 0.0
        rows = np.flatnonzero(used.sum(axis=1) > 1)
        if not rows.size:
            return 0.0
        face = _CliqueFace(a, rows, used[rows])
        way = face.direction()
        before, start = a.raised(), a.multipliers
        length = 1.0
        for _ in range(8):
            alpha = face.projected(face.alpha + length * way)
            moved = start - face.image(alpha - face.alpha)
            rise = a.raised(moved, face.promised(alpha)) - before
            if rise > 0.0:
                a.alpha[face.places] = alpha
                a.multipliers = moved
                a.recompute()
                return rise
            length *= 0.25
        return 0.0


class _CliqueFace:
    def __init__(self, ascent: LabelingDual, rows, used):
        self.a, self.X, self.truth = ascent, ascent.X[rows], ascent.truth[rows]
        self.row, slot = np.nonzero(used)
        self.starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        self.places = rows[self.row], slot
        self.labels = ascent.labels[self.places]
        n_entries, chosen = ascent.cliques.n_entries, ascent.cliques.chosen(self.labels)
        places, ends = self.row[:, None] * n_entries + chosen, np.arange(len(chosen) + 1) * chosen.shape[1]
        # (labellings, rows x entries): which entries of its row a labelling chooses
        self.choices = sparse.csr_array(
            (np.ones(places.size), places.ravel(), ends), (len(chosen), len(rows) * n_entries)
        )
        self.choosers = self.choices.T  # to make it takes longer than a product with it
        self.weight = ascent.weights[self.places[0]]
        self.delta = ascent.atom.delta(self.labels, ascent.truth[self.places[0]])
        self.alpha = ascent.alpha[self.places]
        self.factors = ascent.entry_factors()

    def direction(self) -> np.ndarray:
        """Conjugate gradients for the quadratic that the dual is while the shares of cliques stay."""
        slope = self._centred(self.weight * (self.delta + self._scores(self.a.weight_rows())))
        flat = SETTINGS.flat_share * self._steepest()
        return conjugate_gradients(
            self._bent, slope, tol=SETTINGS.cg_share, most=SETTINGS.cg_steps, flat=flat
        )

    def _steepest(self) -> float:
        """The largest curvature along one weight, of which rounding leaves a share in flat directions."""
        lengths = np.einsum("ij,ij->i", self.X, self.X)[self.row]
        return float(np.max(self.weight**2 * lengths)) * float(self.factors.max(initial=0.0))

    def _bent(self, direction) -> np.ndarray:
        rows = self.image(direction) * self.factors[:, None]
        return self._centred(self.weight * self._scores(rows))

    def _centred(self, values) -> np.ndarray:
        """With the mean of every sample taken off: weights keep their sum."""
        counts = np.diff(self.starts)
        return values - np.repeat(np.add.reduceat(values, self.starts[:-1]) / counts, counts)

    def _scores(self, rows) -> np.ndarray:
        """The score of every labelling with the weights (S, d)."""
        return self.choices @ self.a.cliques.within(self.X @ rows.T, self.truth).ravel()

    def image(self, change) -> np.ndarray:
        """(S, d) what a change of the weights of labellings takes off the multipliers."""
        table = (self.choosers @ (change * self.weight)).reshape(len(self.X), -1)
        table = self.a.cliques.within(table, self.truth)
        return self.a.seen_by_edges(table.T @ self.X)

    def projected(self, alpha) -> np.ndarray:
        """The nearest weights that are probabilities in every sample."""
        counts = np.diff(self.starts)
        table = np.full((len(counts), counts.max()), -np.inf)
        there = np.arange(table.shape[1]) < counts[:, None]
        table[there] = alpha
        weights = on_simplex(table)
        return (weights / weights.sum(axis=1, keepdims=True))[there]

    def promised(self, alpha) -> float:
        """By how much the expected losses differ from those now."""
        return float((self.weight * self.delta) @ (alpha - self.alpha))


# --------------------------------------------------------------------------------------------------------------
# The problem with the active cliques alone, solved to a gap: passes over samples, steps on faces, and the proximal centre behind them.


class RestrictedMaster:
    """The problem of the active cliques, and what its last `solve` left.

    gap : the relative one;  blocks : weights with the lowest objective;  told_to_stop : by the caller's look
    """

    def __init__(self, ascent: LabelingDual):
        self.ascent, self.faces = ascent, FaceSteps(ascent)
        self.gap, self.told_to_stop = np.inf, False
        self.blocks: Any = None  # of the first solve on, Blocks

    def solve(self, inner: float, scale: float, max_iter: int, watch: Watch, look: Callable) -> float:
        """Epochs until the relative gap is below `inner`; returns the lowest objective seen. scale: an objective known before, or inf."""
        ascent, lowest, highest = self.ascent, np.inf, -np.inf
        began = improved = last_look = ascent.epochs
        stays, smallest, next_look = SETTINGS.centre_start_epochs, np.inf, began + SETTINGS.report_epochs
        while True:
            before = ascent.raised()
            seen = ascent.epoch()
            self.faces.after_epoch(ascent.raised() - before)
            size = min(scale, lowest)
            near = seen <= SETTINGS.look_ratio * inner * (abs(size) if np.isfinite(size) else 1.0)
            done = watch.expired or ascent.epochs >= max_iter
            if near or done or ascent.epochs - last_look >= SETTINGS.look_epochs:
                last_look, value = ascent.epochs, ascent.primal()
                if value < lowest:
                    lowest, self.blocks = value, ascent.blocks()
                highest = max(highest, ascent.dual()[0])
                self.gap = (lowest - highest) / max(abs(lowest), 1e-300)
                if self.gap <= inner or done:
                    return lowest
                if ascent.epochs >= next_look:
                    next_look = ascent.epochs + max(SETTINGS.report_epochs, (ascent.epochs - began) // 2)
                    self.told_to_stop = look()
                    if self.told_to_stop:
                        return lowest
                # the centre is what is left to move
                if seen < SETTINGS.proximal_gap_share * (lowest - highest):
                    ascent.loosen()
                if self.gap < 0.7 * smallest:
                    improved, smallest = ascent.epochs, self.gap
                elif ascent.epochs - improved > SETTINGS.idle_centres * stays:
                    improved, stays = ascent.epochs, min(2 * stays, SETTINGS.centre_max_epochs)
            if ascent.epochs % stays == 0:
                ascent.recentre()


# --------------------------------------------------------------------------------------------------------------
# Which cliques join next, and when enough have.


def _places(state: dict, cliques: Cliques) -> np.ndarray:
    """Those of the cliques that a warm start has, by position; it may be of a model with other candidates."""
    place = {members: c for c, members in enumerate(cliques.members)}
    return np.array([place[members] for members in state["members"] if members in place], dtype=np.int64)


class Pricing:
    def __init__(
        self,
        ascent: LabelingDual,
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
        self.restricted = RestrictedMaster(ascent)
        self.best, self.bound = np.inf, -np.inf
        self.drops: list[float] = []

    def run(self, max_iter: int, watch: Watch) -> Point:
        ascent, before = self.ascent, None
        inner = max(SETTINGS.selection_tol, self.tol) if self.graph_selection else SETTINGS.growth_start_tol
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
                    self._solved(SETTINGS.final_tol_share * self.tol, max_iter, watch)
                    point = self._point(ascent.dual(ascent.clique_norms())[1])
                    watch(point)
                if self.restricted.gap <= self.tol:
                    point.stopped = "selected"
                return point
            gap = (self.best - self.bound) / max(abs(self.best), 1e-300)
            inner = max(SETTINGS.restricted_gap_share * gap, SETTINGS.restricted_tol_share * self.tol)
            if self.graph_selection:
                inner = min(inner, max(SETTINGS.selection_tol, self.tol))
            if not joining.size:  # what is left is the gap of this problem
                inner = min(SETTINGS.final_tol_share * self.tol, 0.5 * self.restricted.gap)
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
        """Tell whether a clique is inactive and violates, for all cliques."""
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
        """Tell whether a rule of the user's ends the growth."""
        if before is not None:
            self.drops.append(before - value)
        if self.graph_selection and (not joining.size or self._fell_too_little()):
            return True
        return self.max_edges < self.ascent.model.n_cliques and self.ascent.active.size >= self.max_edges

    def _fell_too_little(self) -> bool:
        """The rule of CGM: then the cliques of the last round are not worth their place."""
        return (
            self.graph_selection
            and bool(self.drops)
            and self.drops[-1] < SETTINGS.drop_share * max(0.0, *self.drops)
        )

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
