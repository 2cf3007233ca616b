"""What is looked at beside a solver's own points, and proven when no solver goes on: guesses, lines, bounds of runs that were cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.proof.bound import infimum
from mtldsl.proof.certificate import Certificate, certify, dual_bound
from mtldsl.solvers.best_point import Kept, guesses
from mtldsl.solvers.evidence import Evidence
from mtldsl.solvers.rays import Lines, best_between
from mtldsl.system import stops

__all__ = ["Closing"]

R = TypeVar("R")

#: a bound is computed even after Ctrl-C up to this many scalars of data (measured: a second where multipliers need least squares)
_QUICK_TO_BOUND = 1_000_000

#: Lines are searched while the relative gap is above this: nearer to the end they would gain little.
_FAR = 1e-2

#: What is searched, and what is proven, after the end of the time limit or a signal takes so many seconds more.
_LAST_SEARCH = _LAST_BOUND = 0.15

_NO_BOUND = "stopped before a bound was computed"


class Closing(Evidence):
    """Evidence that grows without a solver, by steps that a stop from outside cuts short."""

    def __init__(self, form: NormalForm, tol: float, max_seconds: float | None):
        super().__init__(form, tol, max_seconds)
        self.last: Kept | None = None  # what is known of the last point that was shown
        self.left = ""  # what ended it from outside: "interrupted", "time_limit" or "stopped" by who listens
        self.lines = Lines(form)
        self._guesses: Iterator[Kept] = iter(())

    def expect_guesses(self, start: Blocks | None, simple: bool = True) -> None:
        """Points that need no solver: no other point is returned unless it is better. They are looked at when a solver begins whose points may
        lie above them, else where a run ends without a proof; their certificates wait until they are asked for."""
        self._guesses = guesses(self.form, start, simple)

    def look_at_guesses(self) -> None:
        """At those that have not been looked at."""
        for guess in self._guesses:
            self.best.offer(guess, self.bound)

    def search_at_the_end(self) -> None:
        """Lines, of a run that ends without a proof; after a signal no more is computed than needed."""
        if not self.lines.can_be_searched or self.left == "interrupted" or self.certificate.within(self.tol):
            return
        late = self.left or self.expired
        try:
            with stops.time_limit(_LAST_SEARCH if late else self.remaining, late=not late), stops.at_once():
                self._search_lines(self.last if self._is_far else None)
        except KeyboardInterrupt as stop:
            self.leave(stop)

    def _search_lines(self, shown: Kept | None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # a line may lead far out
            for blocks in self.lines.plain():
                self._offer(blocks)
            lowest = self.best.lowest
            if shown is not None and lowest.objective < shown.objective < np.inf:
                # what was just shown lies too far out, in a direction that may be good
                between = best_between(self.form, lowest.blocks, shown.blocks)
                if between is not None:
                    self._offer(between)

    @property
    def _is_far(self) -> bool:
        return abs(self.certificate.relative_gap) > _FAR

    def _offer(self, blocks: Blocks) -> None:
        one = Kept.guess(self.form, blocks)
        with stops.kept():
            self.best.offer(one, self.bound)

    def bound_optimum(self) -> None:
        """How far, in a model that is not convex, below the point the global optimum may lie at most.

        Not beyond the time limit: what is left then is said without such a bound, where it may take long.
        """
        if self.form.is_convex or not np.isfinite(self.kept.objective):
            return
        self.note = _NO_BOUND
        if self.left or self.expired:
            self._prove_late(self.kept)
            return
        try:
            with stops.time_limit(self.remaining), stops.at_once():
                self.bound, self.note = dual_bound(self.form, self.kept.blocks)
        except KeyboardInterrupt as stop:
            self.leave(stop)

    def leave(self, stop: KeyboardInterrupt) -> None:
        """What ended it, for the status. Raises a second signal."""
        if stops.insisted():
            raise stop
        self.left = "time_limit" if isinstance(stop, stops.TimeIsUp) else "interrupted"

    @property
    def _is_quick_to_bound(self) -> bool:
        return self.form.data_size <= _QUICK_TO_BOUND

    def settle(self) -> None:
        """What is not known yet of the best point, where it is a guess or no solver came to the end of a first look."""
        if not self.certificate.within(self.tol):
            self.look_at_guesses()
        kept = self.kept
        if not kept.is_guess or (self.form.is_convex and np.isfinite(self.bound)):
            return
        late = self.left in ("time_limit", "interrupted")
        if late and self.form.is_convex:
            self._prove_late(kept)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            seen = self._at_once(self._seen) if late else self._seen()
        if seen is None:
            return
        self.best.kept = replace(
            kept,
            objective=seen.objective,
            violation=seen.violation,
            stationarity=seen.stationarity,
            rounding=seen.rounding,
        )
        if self.bound == -np.inf:
            self.bound, self.note, self.proof = seen.dual_bound, seen.note or self.note, seen.proof
            if np.isfinite(self.bound):
                self.note = ""

    def _seen(self) -> Certificate:
        kept = self.kept
        return certify(
            self.form, kept.blocks, structures=kept.structures, scale=self.scale, bound_optimum=self.form.is_convex
        )  # fmt: skip

    def _prove_late(self, kept: Kept) -> None:
        """A bound of a run that was cut off before it had one: of the gradients at its best point where that can be had at once, at least
        what multipliers of zero prove. Where nothing rings, in a thread, only what is quick for its size is tried."""
        self.note = _NO_BOUND
        least = self._at_once(lambda: infimum(self.form))
        if least is not None and np.isfinite(least.value):
            self.bound, self.note, self.proof = least.value, "", least
            if (
                abs(self.certificate.relative_gap) <= _FAR
            ):  # near the end rounding counts, of which it knows less
                self.bound, self.note, self.proof = -np.inf, _NO_BOUND, None
        if not (stops.can_ring() or self._is_quick_to_bound):
            return
        if not self.form.is_convex:
            found = self._at_once(lambda: dual_bound(self.form, kept.blocks)[0])
            if found is not None and found > self.bound:
                self.bound, self.note, self.proof = found, "", None
            return
        seen = self._at_once(
            lambda: certify(self.form, kept.blocks, structures=kept.structures, scale=self.scale)
        )
        if seen is not None and seen.dual_bound > self.bound:
            self.bound, self.note, self.proof = seen.dual_bound, "", seen.proof
            self.best.kept = replace(kept, rounding=seen.rounding)

    def _at_once(self, function: Callable[[], R]) -> R | None:
        """What it returns, where that takes no longer than a run that is over may still take."""
        try:
            with (
                stops.time_limit(_LAST_BOUND, late=False),
                stops.at_once(),
                np.errstate(over="ignore", invalid="ignore"),
            ):
                return function()
        except stops.TimeIsUp:
            return None
        except KeyboardInterrupt as stop:
            self.leave(stop)
            return None
