"""What a check of a saved proof found."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Verdict"]


@dataclass
class Verdict:
    """What was found: the optimum lies in [low, high].

    model     : the model that it is the optimum of, in words made of the numbers that were checked
    confirmed : the claim holds: a relative gap of at most `tol`, for the weights of `region`, at a point that violates nothing by more
                than `tol`
    violation : an upper bound of what the (repaired) point still violates; `high` is then of the constraints relaxed by so much
    region    : {block: B} where `low` is proven for entries of that block up to B (an array) in absolute value only
    unchecked : words without a formula here: nothing is proven
    """

    model: str
    low: float
    high: float
    confirmed: bool
    claimed: dict
    violation: float = 0.0
    region: dict[str, np.ndarray] = field(default_factory=dict)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    exact: bool = False
    tol: float = 1e-6
    scale: float = 0.0
    constant: float = 0.0
    model_is_named: bool = False
    model_is_compared: bool = False
    data_are_named: bool = False

    @property
    def size(self) -> float:
        """What gaps are relative to: the larger end without the constant, and no less than `scale`."""
        return self._size(self.low)

    def _size(self, low: float) -> float:
        ends = [abs(end - self.constant) for end in (low, self.high) if np.isfinite(end)]
        return max(*ends, self.scale, np.finfo(float).tiny) if ends else np.inf

    def gap_of(self, low: float) -> float:
        """The relative gap that another lower end would leave."""
        return (self.high - low) / self._size(low) if np.isfinite(self.high - low) else np.inf

    @property
    def relative_gap(self) -> float:
        return self.gap_of(self.low)

    @property
    def holds(self) -> bool:
        """Whether the claim is confirmed for all weights, and of the constraints as they stand."""
        return self.confirmed and not self.region and self.violation == 0

    @property
    def whose(self) -> str:
        """Whose model and whose data it is about, where they are not the user's."""
        if self.model_is_compared:
            return ""
        data = "the data are those that you named" if self.data_are_named else "and so are the data"
        return f"the model is the one that the proof states, {data}; name your problem to have them compared: {self.model}"

    def as_plain(self) -> dict:
        """As JSON can hold it: infinite ends are None."""
        low, high = (end if np.isfinite(end) else None for end in (self.low, self.high))
        return {
            "model": self.model, "low": low, "high": high, "confirmed": self.confirmed, "holds": self.holds, "exact": self.exact,
            "relative_gap": self.relative_gap if np.isfinite(self.relative_gap) else None, "violation": self.violation,
            "region": {name: bound.tolist() for name, bound in self.region.items()}, "unchecked": self.unchecked,
            "notes": self.notes, "claimed": self.claimed, "tol": self.tol, "model_is_named": self.model_is_named,
            "data_are_named": self.data_are_named,
        }  # fmt: skip

    def __str__(self) -> str:
        if self.unchecked:
            return "\n".join([*(f"not checked: {what}" for what in self.unchecked), *self.notes])
        said = [
            f"optimum in [{_outward(self.low, -1)}, {_outward(self.high, 1)}], relative gap {self.relative_gap:.1e} (up to {self.tol:.1e} is confirmed)"
        ]
        said += [
            f"for all {name} with entries up to {_range(bound)} in absolute value"
            for name, bound in self.region.items()
        ]
        if self.violation > 0:
            said.append(
                f"the point violates constraints by at most {self.violation:.1e}: the upper end is for the constraints relaxed by that"
            )
        said += self.notes
        said += [self.whose] if self.whose else []
        within = " and ".join(
            ["for these weights alone"] * bool(self.region)
            + ["to the violation above"] * (self.violation > 0)
        )
        confirmed = "the claim is confirmed" + (f", {within}" if within else "")
        said.append(confirmed if self.confirmed else "the claim is NOT confirmed")
        if within and self.confirmed:
            said.append(self.advice)
        return "\n".join(said)

    @property
    def advice(self) -> str:
        """What to type where a claim is confirmed with a restriction."""
        ways = ["mtldsl verify --within takes that for enough (exit code 0)"]
        if self.region:
            names = " and ".join(self.region)
            added = " + ".join(f"1e-6 * ridge({name})" for name in self.region)
            ways.append(
                f"no term bounds {names} and columns of the data nearly depend on each other: with + {added} in the model it holds for all weights"
            )
        if self.violation > 0:
            ways.append(
                "a smaller tol at the solve, such as tol=1e-9, brings the point nearer to the constraints"
            )
        return "; ".join(ways)


def _range(bound: np.ndarray) -> str:
    least, most = float(np.min(bound)), float(np.max(bound))
    return f"{least:.3g}" if least == most else f"bounds from {least:.3g} to {most:.3g}, an entry each"


def _outward(x: float, side: int) -> str:
    """15 digits, rounded away from the other end."""
    text = f"{x:.15g}"
    if np.isfinite(x) and side * float(text) < side * x:
        text = f"{x:.17g}"
    return text
