"""Check of a proof that was read: both ends of the interval in which the optimum lies, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtldsl.certificates.checker.balancing import balance_multipliers
from mtldsl.certificates.checker.feasibility import made_feasible
from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.interval import Interval, round_to_float
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.loss_formulas import RowLossFormula
from mtldsl.certificates.checker.proof_schema import in_words
from mtldsl.certificates.checker.row_spans import give_spans, row_kinds, seen_by_others
from mtldsl.certificates.checker.terms import CheckedFunctionTerm, CheckedLossTerm
from mtldsl.errors import ProofError

# --------------------------------------------------------------------------------------------------------------
# What a check of a saved proof found.


@dataclass
class Verdict:
    """Result of a check: the optimum lies in [low, high].

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
        """Return what gaps are relative to: the larger end without the constant, and no less than `scale`."""
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
        """Tell whether the claim is confirmed for all weights, and of the constraints as they stand."""
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
            "relative_gap": self.relative_gap if np.isfinite(self.relative_gap) else None,
            "violation": self.violation if np.isfinite(self.violation) else None,
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
        if self.violation == np.inf:
            said.append("by how much the point violates constraints is beyond float64: there is no upper end")
        elif self.violation > 0:
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
        """Return what to type where a claim is confirmed with a restriction."""
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


# --------------------------------------------------------------------------------------------------------------
# The two ends of what a saved proof proves: the objective at its point, and the bound of its multipliers, in intervals that hold.


class _OutOfConeError(Exception):
    pass


def words_without_formula(proof: dict, data) -> list[str]:
    """The terms of a proof, or of one that is about to be written, that this checker cannot read."""
    return list(dict.fromkeys(_terms_of(proof, data, False)[2]))


def _terms_of(proof: dict, data, exact: bool) -> tuple[list, list, list[str]]:
    """(the losses, the functions that are convex, why others of them cannot be read)."""
    losses, functions, refused = [], [], []
    for one in (*proof["losses"], *proof["functions"]):
        try:
            if "convex" not in one:
                losses.append(CheckedLossTerm(one, data[one["data"]], exact))
            elif one["convex"]:
                functions.append(CheckedFunctionTerm(one, exact))
            else:
                refused.append(f"{one['word']}: not convex, no bound to verify")
        except UnsupportedFormula as error:
            refused.append(str(error))
    return losses, functions, refused


class Check:
    """A proof whose parts are of their kinds (`proof_schema`), its data, and the relative gap `tol` up to which its claim is confirmed.

    tol: None where the user named none: that of the file, or the default where this is smaller
    """

    def __init__(self, proof, data, exact: bool, tol: float | None):
        self.proof, self.exact, self.data = proof, exact, data
        self.own_tol, self.most = tol is not None, SETTINGS.default_tol if tol is None else tol
        of_file = proof["claimed"]["tol"]
        self.tol = self.most if self.own_tol or of_file >= self.most else of_file
        self.moved = 0.0  # by how much moving the point and the multipliers widened the interval

    def verdict(self) -> Verdict:
        proof = self.proof
        found = Verdict(in_words(proof), -np.inf, np.inf, False, proof["claimed"], exact=self.exact)
        found.constant, found.tol = proof["constant"], self.tol
        self.losses, self.functions, refused = _terms_of(proof, self.data, self.exact)
        intercepts = {name for one in proof["losses"] for name in one["intercepts"]}
        refused += [
            f"{one['word']} of an intercept"
            for one in proof["functions"]
            if any(e["block"] in intercepts for e in one["map"]["entries"])
        ]
        if not refused:
            try:
                found.high, found.violation = self.primal()
                found.scale = self.scale()
                found.low = self.dual(found)
            except UnsupportedFormula as error:
                refused.append(str(error))
        if refused:
            found.low, found.high, found.unchecked = -np.inf, np.inf, list(dict.fromkeys(refused))
            return found
        self._judge(found)
        return found

    def _allowed(self, found: Verdict, cost: float = 0.0) -> float:
        """The tolerance; of the file's own, which is of its own point and multipliers, and what it costs to move them to where all holds."""
        return (
            self.tol
            if self.own_tol
            else max(self.tol, min(self.most, self.tol + (self.moved + cost) / found.size))
        )

    def _judge(self, found: Verdict) -> None:
        claimed, tol = found.claimed, found.tol
        found.low = -np.inf if np.isnan(found.low) else found.low
        found.high = np.inf if np.isnan(found.high) else found.high
        slack = tol * found.size
        if found.low > found.high and found.violation == 0:
            raise ProofError(
                f"internal error of the checker: the lower end {found.low:.17g} is above the upper one, {found.high:.17g}. "
                "Please report the proof"
            )
        wrong = []
        if not claimed["dual_bound"] <= found.high + slack:
            wrong.append(f"the claimed bound {claimed['dual_bound']:.10g} is above the optimum")
        if not claimed["objective"] >= found.low - slack:
            wrong.append(f"the claimed objective {claimed['objective']:.10g} is below the optimum")
        found.notes += wrong
        found.tol = self._allowed(found)
        found.confirmed = not wrong and abs(found.relative_gap) <= found.tol and found.violation <= tol
        if not (found.confirmed or wrong or found.exact) and found.violation <= tol:
            found.notes.append(
                "intervals of float64 may be too wide for these numbers; in fractions they are not: --exact, exact=True"
            )

    # ------------------------------------------------------------------------------------------- upper end

    def primal(self) -> tuple[float, float]:
        x = {
            one["name"]: Interval.of(self.proof["point"][one["name"]], self.exact)
            for one in self.proof["blocks"]
        }
        moved, violation = made_feasible(x, [f for f in self.functions if f.part.is_set])
        if violation == np.inf:
            return np.inf, np.inf
        high = float(round_to_float(self.objective(moved).high, 1))
        if moved is not x and violation == 0.0:
            self.moved = max(0.0, high - float(round_to_float(self.objective(x).high, 1)))
        return high, violation

    def objective(self, x) -> Interval:
        """The objective, constraints aside; anything where float64 does not hold the arguments of a term."""
        total = Interval.of(self.proof["constant"], self.exact)
        for loss in self.losses:
            total = total + loss.part.value(_require_finite(loss.predictions(x)))
        for f in self.functions:
            if not f.part.is_set:
                total = total + f.part.value(_require_finite(f.map.forward(x))) * f.c
        return total

    def scale(self) -> float:
        """Below this, an optimum counts as zero when a gap is made relative: a small part of the objective at weights of zero.

        The file may say less, and not more.
        """
        zero = {name: Interval.of(np.zeros(x.shape), self.exact) for name, x in self.proof["point"].items()}
        try:
            at_zero = self.objective(zero) - self.proof["constant"]
        except (OverflowError, UnsupportedFormula):
            return 0.0
        most = SETTINGS.zero_share * float(np.asarray(abs(at_zero).low))
        given = self.proof["claimed"]["scale"]
        return min(most, given) if given is not None and given >= 0.0 and np.isfinite(most) else 0.0

    # ------------------------------------------------------------------------------------------- lower end

    def residual(self, u, v):
        r = {one["name"]: Interval.of(np.zeros(one["shape"]), self.exact) for one in self.proof["blocks"]}
        for loss, dual in zip(self.losses, u, strict=True):
            loss.add_adjoint(dual, r)
        for f, dual in zip(self.functions, v, strict=True):
            f.map.add_adjoint(dual, r)
        return r

    def dual(self, found: Verdict) -> float:
        """The bound for all weights, of multipliers drawn towards zero as little as that takes; else the one over a region."""
        lows = []
        for share in SETTINGS.multiplier_shares:
            region: dict = {}
            lows.append((self._dual_in_cone(region, share), region))
            if not share and not region:
                return lows[0][0]
            cost = lows[0][0] - lows[-1][0]
            if not region and found.gap_of(lows[-1][0]) <= self._allowed(found, max(cost, 0.0)):
                self.moved += max(cost, 0.0)
                return lows[-1][0]
        low, found.region = lows[0]
        return low

    def _dual_in_cone(self, region: dict, share: float) -> float:
        for _ in range(SETTINGS.left_out_rounds):
            try:
                return self._dual(region, share)
            except _OutOfConeError:
                region.clear()
        return -np.inf

    def _dual(self, region: dict, share: float) -> float:
        u = [loss.part.inside(loss.u * (1.0 - share) if share else loss.u) for loss in self.losses]
        v = [f.part.inside(f.v / f.c * (1.0 - share) if share else f.v / f.c) * f.c for f in self.functions]
        left = {
            one["name"]: np.ones(one["shape"], dtype=bool) for one in self.proof["blocks"]
        }  # entries that no term has taken
        self._balance_intercepts(u, left)
        u, spans = self._balance_weights(u, v, left)
        r = self.residual(u, v)
        # those that take all first, and bounds last, whose multipliers have one sign
        turns = [0 if f.part.finite_dual else 1 if f.part.is_cone_free else 2 for f in self.functions]
        for k in sorted(range(len(v)), key=turns.__getitem__):
            self._give(k, v, r, left)
        for name, kind in spans:
            rest = r[name][kind.rows] * left[name][kind.rows].astype(float)
            if len(kind.rows) and (not kind.span.shape[1] or give_spans(kind, rest, v, self.functions)):
                left[name][kind.rows] = False
        for k in range(len(v)):
            self._check_signs(k, v)
        paid = self._pay(r, left, region)
        gauges = [f.part.gauge(dual / f.c).high.item() for f, dual in zip(self.functions, v, strict=True)]
        if not np.isfinite(np.array(gauges, dtype=float)).all():  # NaN too, which no comparison sees
            return -np.inf
        gauge = max(gauges, default=0)
        t = Interval.of(1.0, self.exact)
        if gauge > 1:
            t = t / Interval.of(gauge, self.exact)
            t = Interval(t.low, t.low)
        total = Interval.of(self.proof["constant"], self.exact) - paid * t
        for loss, dual in zip(self.losses, u, strict=True):
            total = total - loss.part.conjugate(dual, t)
            if loss.map.offset is not None:
                total = total + (dual * loss.scores(loss.map.offset)).sum() * t
        for f, dual in zip(self.functions, v, strict=True):
            cost = f.part.conjugate(dual / f.c) * f.c
            total = total - (cost * t if f.part.degree == 1 else cost * t.square())
            if f.part.short is not None and f.part.short.high > 0:
                total = total - f.part.lost(self._reach_of_image(f.map, region)) * f.c
            if f.map.offset is not None:
                total = total + (dual * f.map.offset).sum() * t
        return float(round_to_float(total.low, -1))

    def _give(self, k: int, v, r, left) -> None:
        """To function k the residual of the entries that it can take and that none has taken."""
        f, picked = self.functions[k], self.functions[k].map.picked()
        if picked is None:
            return
        block, c, rows, columns = picked
        takes = f.part.takes & left[block][rows][:, columns]
        if not takes.any():
            return
        part = r[block][rows][:, columns] * takes.astype(float)
        v[k] = v[k] - part / c
        self._take(left, picked, takes)
        self._check_signs(k, v)

    def _check_signs(self, k: int, v) -> None:
        """_OutOfConeError where a bound's multiplier may have another sign than it must: that one is left out then."""
        f = self.functions[k]
        wrong = f.part.out_of_cone(v[k])
        if wrong.any():
            f.part.left_out = f.part.left_out | wrong
            raise _OutOfConeError

    def _balance_weights(self, u, v, left):
        """(multipliers of losses, [(block, rows)] whose residual is orthogonal to all that no function sees, as real numbers)."""
        untaken = {name: entries.copy() for name, entries in left.items()}
        for f in self.functions:
            picked = f.map.picked()
            if picked is not None:
                self._take(untaken, picked, f.part.takes)
        intercepts = {name: ~left[name][0] for loss in self.losses for name in loss.intercepts}
        kinds = {
            name: row_kinds(name, self.functions, entries)
            for name, entries in untaken.items()
            if name not in intercepts and entries.any()
        }
        if not any(kinds.values()):
            return u, []
        r = self.residual(u, v)

        def seen(name: str, row: int, by_task: np.ndarray) -> bool:
            return seen_by_others(self.functions, v, name, row, by_task)

        u, done = balance_multipliers(self.losses, kinds, seen, intercepts, u, r, self.exact)
        for name, held in intercepts.items():
            left[name][0] &= [(name, -1 - i) not in done for i in range(len(held))]
        return u, [
            (name, kind.within([row for row in kind.rows.tolist() if (name, row) in done]))
            for name, own in kinds.items()
            for kind in own
        ]

    def _take(self, left, picked, takes) -> None:
        block, _, rows, columns = picked
        changed = left[block][rows]
        changed[:, columns] &= ~takes
        left[block][rows] = changed

    def _pay(self, r, left, region: dict) -> Interval:
        """max |<what is left, x>| over a box, which the verdict names."""
        total = Interval.of(0.0, self.exact)
        for name, entries in left.items():
            rest = abs(r[name]).high * entries
            if np.all(rest == 0):
                continue
            bound = self._reach(name)
            region[name] = bound
            total = total + (Interval(rest, rest) * bound).sum()
        return total

    def _reach(self, name: str) -> np.ndarray:
        """The file's region, where it is no smaller than a hundred times the point, and what it takes to move predictions by a hundred times
        the labels' size: the least that a verdict is about, whatever the file says.
        """
        given = self.proof["region"][name]
        least = SETTINGS.reach_factor * np.maximum(np.abs(self.proof["point"][name]), self._unit(name))
        return least if given is None else np.maximum(given, least)

    def _unit(self, name: str) -> np.ndarray:
        """Return what every weight of a block is, roughly, where it moves predictions by the size of the labels."""
        effects, labels = np.zeros(self.proof["point"][name].shape), 0.0
        for loss in self.losses:
            effect = loss.effect(name)
            if effect is not None:
                effects, labels = effects + effect, labels + float(np.square(loss.data.targets).sum())
        labels = labels if labels > 0 else float(sum(len(loss.data.targets) for loss in self.losses))
        return np.sqrt(np.divide(labels, effects, out=np.ones_like(effects), where=effects > 0))

    def _reach_of_image(self, map, region: dict) -> np.ndarray:
        """An upper bound of the absolute values of a map over the region, which the verdict then names."""
        total = np.zeros(map.shape) if map.offset is None else np.asarray(abs(map.offset).high, float)
        for e in map.entries:
            part = region[e["block"]] = self._reach(e["block"])
            part = part if e["left"] is None else abs(e["left"]) @ part
            part = part if e["right"] is None else part @ abs(e["right"])
            total = total + abs(e["coefficient"]) * part * (1.0 + 1e-9)
        return total

    def _balance_intercepts(self, u, left) -> None:
        """Make the multipliers of every task sum to zero over the losses that share intercepts, by what one loss takes.

        No map is of an intercept (`verdict` and the schema refuse it): nothing else is in its equation.
        """
        sharing_of: dict[
            tuple, list[str]
        ] = {}  # the losses that share intercepts -> these, whose equations are one
        for name in self.proof["point"]:
            sharing = tuple(t for t, loss in enumerate(self.losses) if name in loss.intercepts)
            if sharing:
                sharing_of.setdefault(sharing, []).append(name)
        for sharing, names in sharing_of.items():
            totals = None
            for t in sharing:
                sums = u[t].sums(self.losses[t].data.starts)
                totals = sums if totals is None else totals + sums
            assert totals is not None  # the name is of one of the losses
            (first, *others) = sharing
            part = self.losses[first].part
            if isinstance(part, RowLossFormula):
                together = None if others else part.balanced(u[first], totals)
                if together is not None and set(self.losses[first].intercepts) == set(names):
                    u[first] = together
                    for name in names:
                        left[name][0] = False
                continue
            for i in range(totals.shape[0]):
                for t in sharing:
                    if set(self.losses[t].intercepts) != set(names):
                        continue  # that would move another equation
                    moved = self.losses[t].part.shifted(u[t], i, totals[i], len(sharing) == 1)
                    if moved is not None:  # zero as real numbers, whatever an enclosure of the sum says
                        u[t] = moved
                        for name in names:
                            left[name][0, i] = False
                        break


def _require_finite(argument: Interval) -> Interval:
    """The same; OverflowError where an end is not finite."""
    if not argument.is_finite:
        raise OverflowError("the arguments of a term are beyond float64")
    return argument
