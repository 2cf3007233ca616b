"""A small independent checker of saved proofs: the objective at the point and the bound of the multipliers, in intervals that hold.

It reads a file that `mtldsl.proof.saved` wrote and the data, and imports nothing of the solvers, the atoms or the compiler: its formulas
are its own. Every number of the file is an exact real number here. What multipliers miss of the rules of duality (docs/mathematics.md,
section 2) is put right in real numbers, of which enclosures are known: multipliers are moved into the domains of the conjugates,
the residual of the stationarity equation is given to a term that takes it, and all are scaled into the dual balls. Where no term takes a
residual it is paid for by max |<residual, x>| over a box, and the verdict says "for all weights up to ...".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtldsl.errors import DataError, ProofError
from mtldsl.proof.canonical_data import DataArrays
from mtldsl.proof.checked_functions import NotChecked
from mtldsl.proof.checked_terms import FunctionTerm, LossTerm
from mtldsl.proof.enclosures import Interval
from mtldsl.proof.proof_file import read_proof
from mtldsl.proof.repairs import made_feasible

__all__ = ["Verdict", "verify_proof"]

#: products of numbers that the exact check makes at most
_MOST_EXACT = 20_000_000


@dataclass
class Verdict:
    """What was found: the optimum lies in [low, high].

    confirmed : the claim holds: a relative gap of at most the file's tol, at a point that violates nothing by more than tol
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

    @property
    def relative_gap(self) -> float:
        size = max(abs(self.low), abs(self.high), float(self.claimed.get("scale", 0.0)), np.finfo(float).tiny)
        return (self.high - self.low) / size if np.isfinite(self.high - self.low) else np.inf

    def as_plain(self) -> dict:
        """As JSON can hold it: infinite ends are None."""
        low, high = (end if np.isfinite(end) else None for end in (self.low, self.high))
        return {
            "model": self.model, "low": low, "high": high, "confirmed": self.confirmed, "exact": self.exact,
            "relative_gap": self.relative_gap if np.isfinite(self.relative_gap) else None, "violation": self.violation,
            "region": {name: bound.tolist() for name, bound in self.region.items()}, "unchecked": self.unchecked,
            "notes": self.notes, "claimed": self.claimed,
        }  # fmt: skip

    def __str__(self) -> str:
        if self.unchecked:
            return "\n".join([*(f"not checked: {what}" for what in self.unchecked), *self.notes])
        said = [
            f"optimum in [{_outward(self.low, -1)}, {_outward(self.high, 1)}], relative gap {self.relative_gap:.1e}"
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
        said.append("the claim is confirmed" if self.confirmed else "the claim is NOT confirmed")
        return "\n".join(said)


def _range(bound: np.ndarray) -> str:
    least, most = float(np.min(bound)), float(np.max(bound))
    return f"{least:.3g}" if least == most else f"bounds from {least:.3g} to {most:.3g}, an entry each"


def _outward(x: float, side: int) -> str:
    """15 digits, rounded away from the other end."""
    text = f"{x:.15g}"
    if np.isfinite(x) and side * float(text) < side * x:
        text = f"{x:.17g}"
    return text


def verify_proof(path, *data, exact: bool = False) -> Verdict:
    """Check a saved proof against the data: `Tasks`, `DataArrays` or a list of these; none where the proof holds its data.

    exact: in rational numbers, for small problems

    DataError where the file is not a proof, the data are not those that the proof is about (the message names the array), or `exact`
    is asked of a large problem.

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3))
    >>> tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, 2)))
    >>> W = mtl.Weights(tasks)
    >>> solution = mtl.minimize(mtl.squared_loss(W, tasks) + 3 * mtl.trace_norm(W)).solve()
    >>> path = solution.certificate.save(pathlib.Path(tempfile.mkdtemp()) / "proof.npz")
    >>> verdict = mtl.verify_proof(path, tasks)
    >>> verdict.confirmed, verdict.low <= solution.objective <= verdict.high + 1e-12
    (True, True)
    """
    proof, stored = read_proof(path)
    given = [DataArrays.of_tasks(one) if hasattr(one, "is_shared") else one for one in _flat(data)]
    matched = _matched(proof, stored, given, path)
    if exact:
        work = sum(
            one.inputs.shape[0] * one.inputs.shape[1] * max(1, proof["blocks"][0]["shape"][1])
            for one in matched
        )
        if work > _MOST_EXACT:
            raise DataError(
                f"verify({str(path)!r}, exact=True): {work:,} products of rational numbers are too many (up to {_MOST_EXACT:,}); "
                "leave out exact"
            )
    try:
        with np.errstate(all="ignore"):  # an overflow is an infinite end, which is said
            return _Check(proof, matched, exact).verdict()
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        ArithmeticError,
        np.linalg.LinAlgError,
    ) as error:
        raise DataError(
            f"verify({str(path)!r}): parts of the proof do not fit each other ({error})"
        ) from error


def _flat(data) -> list:
    return [one for item in data for one in (item if isinstance(item, (list, tuple)) else [item])]


def _matched(proof, stored, given, path) -> list[DataArrays]:
    """The data of every entry of proof["data"]; DataError that names the array which differs."""
    pool = [(one, one.hashes()) for one in [*given, *stored]]
    found = []
    for k, described in enumerate(proof["data"]):
        wanted = described["hashes"]
        fitting = [one for one, hashes in pool if hashes == wanted and one.shared == described["shared"]]
        if not fitting:
            if not pool:
                raise DataError(
                    f"verify({str(path)!r}): the proof does not hold its data; give the tasks, or a file with them "
                    f"({', '.join(wanted)})"
                )
            nearest = max(
                (hashes for _, hashes in pool), key=lambda h: sum(h.get(n) == v for n, v in wanted.items())
            )
            wrong = sorted(n for n in wanted.keys() | nearest.keys() if wanted.get(n) != nearest.get(n)) or [
                "the layout"
            ]
            of = f" of data set {k + 1} of {len(proof['data'])}" if len(proof["data"]) > 1 else ""
            raise DataError(
                f"verify({str(path)!r}): {', '.join(wrong)}{of} differs from what the proof is about (SHA-256)"
            )
        found.append(fitting[0])
    return found


class _Check:
    def __init__(self, proof, data, exact: bool):
        self.proof, self.exact, self.data = proof, exact, data

    def verdict(self) -> Verdict:
        proof = self.proof
        found = Verdict(proof["model"], -np.inf, np.inf, False, proof["claimed"], exact=self.exact)
        refused = [
            f"{one['word']}: not convex, no bound to verify"
            for one in proof["functions"]
            if not one["convex"]
        ]
        self.losses, self.functions = [], []
        for described in proof["losses"]:
            self._read(
                refused, self.losses, lambda d=described: LossTerm(d, self.data[d["data"]], self.exact)
            )
        for described in proof["functions"]:
            if described["convex"]:
                self._read(refused, self.functions, lambda d=described: FunctionTerm(d, self.exact))
        if not refused:
            try:
                found.high, found.violation = self.primal(found)
                found.low = self.dual(found)
            except NotChecked as error:
                refused.append(str(error))
        if refused:
            found.low, found.high, found.unchecked = -np.inf, np.inf, list(dict.fromkeys(refused))
            return found
        self._judge(found)
        return found

    def _read(self, refused, into, make) -> None:
        try:
            into.append(make())
        except NotChecked as error:
            refused.append(str(error))

    def _judge(self, found: Verdict) -> None:
        claimed, tol = found.claimed, float(found.claimed["tol"])
        found.low = -np.inf if np.isnan(found.low) else found.low
        found.high = np.inf if np.isnan(found.high) else found.high
        slack = tol * max(abs(found.low), abs(found.high), float(claimed.get("scale", 0.0)))
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
        found.confirmed = not wrong and abs(found.relative_gap) <= tol and found.violation <= tol
        if not (found.confirmed or wrong or found.exact) and found.violation <= tol:
            found.notes.append(
                "intervals of float64 may be too wide for these numbers; in fractions they are not: --exact, exact=True"
            )

    # ------------------------------------------------------------------------------------------- upper end

    def primal(self, found: Verdict) -> tuple[float, float]:
        x = {
            one["name"]: Interval.of(self.proof["point"][one["name"]], self.exact)
            for one in self.proof["blocks"]
        }
        x, violation = made_feasible(x, [f for f in self.functions if f.part.is_set])
        total = Interval.of(float(self.proof["constant"]), self.exact)
        for loss in self.losses:
            total = total + loss.part.value(loss.predictions(x))
        for f in self.functions:
            if not f.part.is_set:
                total = total + f.part.value(f.map.forward(x)) * f.c
        self.x = x
        return _float(total.high, 1), _float(violation, 1)

    # ------------------------------------------------------------------------------------------- lower end

    def residual(self, u, v):
        r = {one["name"]: Interval.of(np.zeros(one["shape"]), self.exact) for one in self.proof["blocks"]}
        for loss, dual in zip(self.losses, u, strict=True):
            loss.add_adjoint(dual, r)
        for f, dual in zip(self.functions, v, strict=True):
            f.map.add_adjoint(dual, r)
        return r

    def dual(self, found: Verdict) -> float:
        u = [loss.part.inside(loss.u) for loss in self.losses]
        v = [f.part.inside(f.v / f.c) * f.c for f in self.functions]
        left = {
            one["name"]: np.ones(one["shape"], dtype=bool) for one in self.proof["blocks"]
        }  # entries that no term has taken
        self._balance_intercepts(u, left)
        r = self.residual(u, v)
        for k in sorted(range(len(v)), key=lambda k: not self.functions[k].part.finite_dual):
            self._give(k, v, r, left)
        paid = self._pay(r, left, found)
        gauges = [f.part.gauge(dual / f.c).high.item() for f, dual in zip(self.functions, v, strict=True)]
        if not np.isfinite(np.array(gauges, dtype=float)).all():  # NaN too, which no comparison sees
            return -np.inf
        gauge = max(gauges, default=0)
        t = Interval.of(1.0, self.exact)
        if gauge > 1:
            t = t / Interval.of(gauge, self.exact)
            t = Interval(t.low, t.low)
        total = Interval.of(float(self.proof["constant"]), self.exact) - paid * t
        for loss, dual in zip(self.losses, u, strict=True):
            total = total - loss.part.conjugate(dual, t)
            if loss.map.offset is not None:
                total = total + (dual * loss.scores(loss.map.offset)).sum() * t
        for f, dual in zip(self.functions, v, strict=True):
            cost = f.part.conjugate(dual / f.c) * f.c
            total = total - (cost * t if f.part.degree == 1 else cost * t.square())
            if f.part.short is not None and f.part.short.high > 0:
                total = total - f.part.lost(self._reach_of_image(f.map, found)) * f.c
            if f.map.offset is not None:
                total = total + (dual * f.map.offset).sum() * t
        return _float(total.low, -1)

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
        changed = left[block][rows]
        changed[:, columns] &= ~takes
        left[block][rows] = changed

    def _pay(self, r, left, found: Verdict) -> Interval:
        """max |<what is left, x>| over a box, which the verdict names."""
        total = Interval.of(0.0, self.exact)
        for name, entries in left.items():
            rest = abs(r[name]).high * entries
            if np.all(rest == 0):
                continue
            bound = self._reach(name)
            found.region[name] = bound
            total = total + (Interval(rest, rest) * bound).sum()
        return total

    def _reach(self, name: str) -> np.ndarray:
        """The file's region, no smaller than the point; without one, a thousand times the largest entry of the point."""
        point = np.abs(np.asarray(self.proof["point"][name], float))
        given = (self.proof.get("region") or {}).get(name)
        if given is not None and np.shape(given) == point.shape and np.isfinite(given).all():
            return np.maximum(np.asarray(given, float), point)
        return np.full(point.shape, 2.0 ** np.ceil(np.log2(1000.0 * max(point.max(initial=0.0), 1.0))))

    def _reach_of_image(self, map, found: Verdict) -> np.ndarray:
        """An upper bound of the absolute values of a map over the region, which the verdict then names."""
        total = np.zeros(map.shape) if map.offset is None else np.asarray(abs(map.offset).high, float)
        for e in map.entries:
            part = found.region[e["block"]] = self._reach(e["block"])
            part = part if e["left"] is None else abs(e["left"]) @ part
            part = part if e["right"] is None else part @ abs(e["right"])
            total = total + abs(e["coefficient"]) * part * (1.0 + 1e-9)
        return total

    def _balance_intercepts(self, u, left) -> None:
        """Make the multipliers of every task sum to zero over the losses that share an intercept, by what one loss takes."""
        for name in {name for loss in self.losses for name in loss.intercepts}:
            sharing = [t for t, loss in enumerate(self.losses) if name in loss.intercepts]
            totals = None
            for t in sharing:
                sums = u[t].sums(self.losses[t].data.offsets[:-1])
                totals = sums if totals is None else totals + sums
            for i in range(totals.shape[0]):
                for t in sharing:
                    moved = self.losses[t].part.shifted(u[t], i, totals[i], len(sharing) == 1)
                    if moved is not None:  # zero as real numbers, whatever an enclosure of the sum says
                        u[t], left[name][0, i] = moved, False
                        break


def _float(end, side: int) -> float:
    """A float64 number on that side."""
    x = float(end)
    exact = np.asarray(end).dtype == object
    return (
        float(np.nextafter(x, side * np.inf))
        if exact and (end.item() - type(end.item())(x)) * side > 0
        else x
    )
