"""Checks of a user's own point: its value, the bound of its multipliers, and optimality conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.certificates.dual_bound import NEGLIGIBLE_ROUNDING_SHARE, ROUNDING_UNITS, prove
from mtldsl.certificates.multipliers import magnitudes, make_stationary, residual_shares, stationarity
from mtldsl.data.task_data import require_in_memory
from mtldsl.display.displayable import Displayable
from mtldsl.display.sections import GOOD, WRONG, Panel, Table, aligned_lines
from mtldsl.errors import ModelError, quote_in_errors
from mtldsl.normal_form.form import NormalForm
from mtldsl.problems.user_multipliers import (
    blocks_of,
    by_loss,
    divide_multipliers,
    is_shared_out,
    multipliers_of,
    proof_of,
    read_finite,
    split_multipliers,
)
from mtldsl.utils.validation import as_flag, as_float, quoted

# --------------------------------------------------------------------------------------------------------------
# What is told of a bound that somebody computed by hand.


#: A condition that fails by more, relative to the size of what it is about, is a mistake; below, it is rounding.
CONDITION_TOL = 1e-9

#: Below this, it is what a solver left.
SOLVER_TOL = 1e-4


@dataclass(frozen=True)
class Condition:
    """One condition of a bound. by : how much it fails by, relative; where: the entry at which it fails most, in words."""

    what: str
    by: float
    where: str = ""

    @property
    def holds(self) -> bool:
        return self.by <= CONDITION_TOL


@dataclass(frozen=True, repr=False)
class BoundCheck(Displayable):
    """Proof by multipliers, as `problem.check_bound` found it.

    value      : the dual value; -inf where a condition fails
    conditions : all of them, those that fail with where and by how much
    repaired   : the bound that these multipliers prove once they are made feasible, and how that was done, in sentences; None where it
                 was not asked for
    hint       : what these multipliers may have been meant to be
    """

    model: str
    value: float
    conditions: tuple[Condition, ...]
    repaired: float | None = None
    repairs: tuple[str, ...] = ()
    hint: str = ""

    @property
    def holds(self) -> bool:
        """Tell whether every condition holds, so that `value` is a lower bound on the optimum."""
        return all(one.holds for one in self.conditions)

    def rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (one.what, "holds", "", "") if one.holds else (one.what, "FAILS", f"{one.by:.1e}", one.where)
            for one in self.conditions
        ]

    def __str__(self) -> str:
        lines = [
            f"{verdict:<6} {what}" + (f": by {by}, at {where}" if by else "")
            for what, verdict, by, where in self.rows()
        ]
        return "\n".join([*lines, *self._verdict()])

    __repr__ = __str__

    def _verdict(self) -> list[str]:
        said = (
            f"All conditions hold: no weights have an objective below {self.value:.10g}."
            if self.holds
            else "A condition fails: these multipliers, as they are, prove nothing."
        )
        mended = (
            []
            if self.repaired is None
            else [*self.repairs, f"So mended, they prove the bound {self.repaired:.10g}."]
        )
        return [said, *mended, *([self.hint] if self.hint else [])]

    def _panel(self) -> Panel:
        return Panel(
            "Bound", "proven" if self.holds else "nothing proven", GOOD if self.holds else WRONG, self._verdict()[0],
            tables=[Table(("condition", "", "by", "where"), self.rows())], notes=self._verdict()[1:],
            folded=[Panel("The model", text=self.model)],
        )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------
# Values and bounds that somebody computed by hand: each term, each condition, and by how much it fails.


def value(problem: Any, W, tol: float = 1e-6) -> float:
    """The objective at weights: a matrix (d, m), {block: array} where there are several or an intercept (W.intercept; 0 if not given), or a
    Solution.

    tol : by how much, relative to the largest weight, a constraint may be violated, as in `solve`; above, the value is inf
    ModelError for other shapes, NaN and infinities. A value beyond float64 is inf.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0], [0.0]]))
    >>> W = mtl.Weights(tasks)
    >>> mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).value([[1.0], [0.0]])
    1.5
    """
    allowed = as_float(tol)
    if allowed is None or not 0.0 <= allowed < 1.0:
        raise ModelError(
            "tol is what a constraint may be violated by, 0 or more and below 1, such as 1e-6",
            term=f"value(W, tol={quoted(tol)})",
        )
    form = problem.form()
    with quote_in_errors("value(W)"):
        x = blocks_of(form, W)
    with np.errstate(over="ignore", invalid="ignore"):
        size = max((float(np.abs(array).max(initial=0.0)) for array in x.values()), default=0.0)
        found = form.value(x) if form.violation(x) <= allowed * max(1.0, size) else np.inf
    return np.inf if np.isnan(found) else found  # beyond float64


def check_bound(
    problem: Any, u, functions: Mapping[str, Any] | None = None, repair: bool = False
) -> BoundCheck:
    """Tell whether multipliers prove a lower bound on the optimum: every condition, where it fails and by how much.

        minimize f(X w) + g(w) >= -f*(u) - g*(v),  u in dom f*,  X^T u + v = 0,  v in dom g*;  with an intercept sum_j u_j = 0 in every task

    u         : of the loss: flat (N,) task after task, a list of (n_i,) a task, or (n, m) beside shared inputs; {term as typed: ...} of several.
                At the optimum it is a gradient of the loss at the predictions. Or a solution: the multipliers that its certificate rests on
    functions : {term as typed: v} of regularizers and constraints; those that are not given take what X^T u leaves, several of them in the
                division that proves most
    repair    : tell too what bound they prove once they are made feasible, and what has to be done for it

    ModelError for other shapes, solutions of other models, models that are not convex, and rows that are elsewhere.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0], [0.0]]))
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
    >>> problem.check_bound([-1.0, 0.0]).value
    1.5
    >>> print(problem.check_bound([-2.0, 0.0], repair=True))
    holds  multipliers of squared_loss(W, tasks) lie in the domain of its conjugate
    holds  stationary in W: X^T u and the multipliers of the functions add up to 0
    FAILS  multipliers of l1_norm(W): their dual norm is at most 1: by 1.0e+00, at a dual norm of 2
    A condition fails: these multipliers, as they are, prove nothing.
    All were multiplied by 0.5, so that the dual norms hold.
    So mended, they prove the bound 1.5.
    """
    form, model, repair = problem.form(), str(problem), as_flag(repair, "check_bound(u, repair")
    if not form.is_convex:
        raise ModelError(
            "this model is not convex: multipliers prove no bound on its optimum", term="check_bound(u)"
        )
    for loss in form.losses:
        require_in_memory(
            loss.tasks, "its multipliers with them", "check_bound(u)", rows=f"the rows of {loss.typed}",
            write_instead="take tasks.subsample(rows)",
        )  # fmt: skip
    given, own = split_multipliers(form, u)
    functions = own | dict(functions or {})
    with quote_in_errors("check_bound(u)"):
        u = [multipliers_of(loss, one) for loss, one in zip(form.losses, by_loss(form, given), strict=True)]
    v, known = _of_functions(form, u, functions)
    conditions, value = _judged(form, u, v)
    hint = _nearly(conditions) if functions else _hint(form, u, value) or _nearly(conditions)
    if not known:
        names = " and ".join(f.typed for f in form.functions)
        hint = f"No division of X^T u between {names} was found that passes. {hint}".strip()
    if not repair and value == -np.inf:
        return BoundCheck(model, value, conditions, hint=hint)
    tried = [prove(form, form.zeros(), u, v)]
    if not (known or functions):  # u changes by its repair, and what was the nearest division with it
        tried.append(prove(form, form.zeros(), u))
    bound = max(tried, key=lambda one: one.value)
    repaired = bound.value
    if np.isfinite(repaired):
        repaired -= _rounding(_dual_parts(form, bound.loss_duals, bound.function_duals), repaired)
        # what conditions hold to, large multipliers make visible
        value = min(value, repaired)
    if not repair:
        return BoundCheck(model, value, conditions, hint=hint)
    within = all(one.holds for one in _in_function_domains(form, v))
    repairs = tuple(_repairs(form, u, bound, within))
    return BoundCheck(model, value, conditions, repaired, repairs, hint)


def _judged(form: NormalForm, u, v) -> tuple[tuple[Condition, ...], float]:
    """(all conditions, the dual value: -inf where one fails)."""
    conditions = (*_in_domains(form, u), *_stationary(form, u, v), *_in_function_domains(form, v))
    if not all(one.holds for one in conditions):
        return conditions, -np.inf
    parts = _dual_parts(form, [loss.dual_project(one) for loss, one in zip(form.losses, u, strict=True)], v)
    value = sum(parts)
    return conditions, value - _rounding(parts, value) if np.isfinite(value) else -np.inf


def _nearly(conditions) -> str:
    """Multipliers as a solver leaves them are stationary to its accuracy only: said where nothing else fails."""
    failing = [one for one in conditions if not one.holds]
    if failing and all(one.what.startswith("stationary") and one.by < SOLVER_TOL for one in failing):
        return "They are nearly stationary: repair=True makes them so, and check_bound(solution) takes those that a certificate rests on."
    return ""


def _hint(form: NormalForm, u, value: float) -> str:
    """The two signs are mixed up easily: said where u lies outside the domains and -u inside, or -u proves more than u = 0 and u less."""
    rule = "at the optimum u is the gradient of the loss at the predictions, not its negative."
    turned = [-one for one in u]
    if not all(one.holds for one in _in_domains(form, u)):
        inside = all(one.holds for one in _in_domains(form, turned))
        return f"-u lies in the domain: {rule}" if inside else ""
    nothing = [np.zeros_like(one) for one in u]
    at_zero = _judged(form, nothing, _of_functions(form, nothing, {})[0])[1]
    if value >= at_zero:
        return ""
    other = _judged(form, turned, _of_functions(form, turned, {})[0])[1]
    less = f"u = 0 proves more, {at_zero:.10g}. " if np.isfinite(value) and np.isfinite(at_zero) else ""
    if other <= max(value, at_zero):
        return less.strip()
    return f"{less}-u proves {other:.10g}: {rule}"


def _of_functions(form: NormalForm, u, given: Mapping[str, Any]) -> tuple[list[np.ndarray], bool]:
    """(multipliers of the functions, whether they are what they have to be): those that are not given take what is left of the stationarity
    equation, divided between them such that they prove most. False where no feasible division was found: then the nearest, which says what fails.
    """
    names = [f.typed for f in form.functions]
    strange = next((name for name in given if name not in names), None)
    if strange is not None:
        raise ModelError(
            f"there is no function {strange!r}", term="check_bound(u, functions)",
            write_instead=f"write one of {', '.join(map(repr, names))}",
        )  # fmt: skip
    v = []
    for f in form.functions:
        array = (
            np.zeros(f.map.shape)
            if f.typed not in given
            else read_finite(given[f.typed], f"check_bound: {f.typed}")
        )
        if array.shape != f.map.shape:
            raise ModelError(
                f"{f.typed} has multipliers of shape {f.map.shape}, not {array.shape}", term="check_bound"
            )
        v.append(array)
    free = [k for k, f in enumerate(form.functions) if f.typed not in given]
    if not is_shared_out(form, free):  # every one has a block to itself, and takes what is left there
        left = stationarity(form, u, v)
        for k in free:
            f = form.functions[k]
            v[k] = v[k] - left[f.map.blocks[0]] / f.map.multiple_of(f.map.blocks[0])
        return v, True
    best = divide_multipliers(form, u, v, free)
    if given or _passes(form, u, best):
        return best, True
    make_stationary(form, [one.copy() for one in u], best)  # one function takes what is left
    return best, _passes(form, u, best)


def _passes(form: NormalForm, u, v) -> bool:
    """Tell whether multipliers of the functions are stationary with X^T u, and inside their domains."""
    weights = [
        one for one, block in zip(_stationary(form, u, v), form.blocks, strict=True) if not block.intercept_of
    ]
    return all(one.holds for one in (*weights, *_in_function_domains(form, v)))


# ------------------------------------------------------------------------------------------------------ conditions


def _in_domains(form: NormalForm, u) -> Iterator[Condition]:
    for loss, one in zip(form.losses, u, strict=True):
        away = np.abs(one - np.asarray(loss.dual_project(one)))
        task, row = loss.tasks.place(int(away.argmax()))
        yield Condition(
            f"multipliers of {loss.typed} lie in the domain of its conjugate", float(away.max() / max(np.abs(one).max(), 1e-300)),
            f"task {loss.tasks.task_names[task]!r}, row {row}",
        )  # fmt: skip


def _stationary(form: NormalForm, u, v) -> Iterator[Condition]:
    residual, sizes = stationarity(form, u, v), magnitudes(form, u, v)
    for block in form.blocks:
        r = residual[block.name]
        shares = residual_shares(r, sizes[block.name])  # so that a feature of a large unit exempts no other
        what = (
            f"stationary in {block.name}: X^T u and the multipliers of the functions add up to 0"
            if block.intercept_of is None
            else f"stationary in {block.name}: multipliers of every task add up to 0"
        )
        i, j = np.unravel_index(int(shares.argmax()), r.shape)
        yield Condition(what, float(shares[i, j]), f"[{i}, {j}], where {r[i, j]:.3g} is left")


def _in_function_domains(form: NormalForm, v) -> Iterator[Condition]:
    for f, one in zip(form.functions, v, strict=True):
        if f.atom.norm:
            gauge = f.dual_gauge(one)
            yield Condition(
                f"multipliers of {f.typed}: their dual norm is at most {f.coefficient:g}", max(float(gauge) - 1.0, 0.0),
                f"a dual norm of {gauge * f.coefficient:.12g}",
            )  # fmt: skip
        else:
            away = 0.0
            if not np.isfinite(f.conjugate(one)):
                moved = np.abs(one - np.asarray(f.atom.dual_project(one))).max() / max(
                    np.abs(one).max(), 1e-300
                )
                away = max(float(moved), 2.0 * CONDITION_TOL)
            yield Condition(f"the conjugate of {f.typed} is finite", away, "its multipliers")


def _dual_parts(form: NormalForm, u, v) -> list[float]:
    """The numbers that add up to the dual value; none of a bound without multipliers."""
    parts = [form.constant]
    for loss, one in zip(form.losses, u, strict=bool(u)):
        constant = loss.offset_predictions()
        parts += [0.0 if constant is None else loss.along(one, constant), -loss.conjugate(one)]
    for f, one in zip(form.functions, v, strict=bool(v)):
        parts.append(0.0 if f.map.offset is None else float(np.vdot(one, f.map.offset)))
        parts.append(0.0 if f.atom.norm else -f.conjugate(one))
    return [float(part) for part in parts]


def _rounding(parts: list[float], value: float) -> float:
    """By how much float64 may misplace a sum of such parts: much where large ones cancel, and else, as of a certificate, nothing."""
    found = ROUNDING_UNITS * float(np.finfo(float).eps) * sum(map(abs, parts))
    return found if found > NEGLIGIBLE_ROUNDING_SHARE * abs(value) else 0.0


def _repairs(form: NormalForm, u, bound, within: bool) -> Iterator[str]:
    """Return what was done to the multipliers, as far as their own change tells."""
    if not bound.loss_duals:
        yield f"No bound could be formed: {bound.note or 'multipliers of zero are all that is left'}."
        return
    for loss, before, after in zip(form.losses, u, bound.loss_duals, strict=True):
        after, projected = np.asarray(after), np.asarray(loss.dual_project(before))
        moved = float(np.abs(projected - before).max())
        if moved > 0.0:
            yield f"Multipliers of {loss.typed} were moved into the domain of its conjugate, by {moved:.2g} at most."
        length = float(projected @ projected)
        t = float(after @ projected) / length if length else 0.0
        if length and np.abs(after - t * projected).max() > 1e-12 * np.abs(projected).max():
            yield f"Those of {loss.typed} were shifted so that every task's add up to 0 (an intercept), or a function can take the rest."
        if t < 1.0 - 1e-12:
            why = "the multiple that proves most" if within else "so that the dual norms hold"
            yield f"All were multiplied by {t:.6g}, {why}."


# --------------------------------------------------------------------------------------------------------------
# The optimality system of a solution, term by term.

_TERM_HEAD = ("term", "value", "conjugate", "<u, z>", "gap")


@dataclass(frozen=True, repr=False)
class Conditions(Displayable):
    """terms: (term, value f(z), conjugate f*(u), <u, z>, the Fenchel gap f(z) + f*(u) - <u, z>); the gaps add up to the duality gap, and u is a
    subgradient at z where its gap is 0.  equations: (block, what is left of sum A^T u + sum B^T v = 0).  bounds: (constraint, violation)."""

    terms: tuple[tuple[str, float, float, float, float], ...]
    equations: tuple[tuple[str, float], ...]
    bounds: tuple[tuple[str, float], ...]
    gap: float
    tol: float

    @property
    def hold(self) -> bool:
        """Tell whether all of it holds to the tolerance of the solve."""
        scale = max(sum(abs(row[1]) for row in self.terms), 1e-300)
        return self.gap <= self.tol * scale and all(violation <= self.tol for _, violation in self.bounds)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (name, f"{value:.6g}", f"{conjugate:.6g}", f"{along:.6g}", f"{gap:.1e}")
            for name, value, conjugate, along, gap in self.terms
        ]

    def _panel(self) -> Panel:
        equations = [
            (f"stationary in {name}: sum A'u + sum B'v = 0", f"{left:.1e}") for name, left in self.equations
        ]
        rows = [*equations, *((f"feasible: {name}", f"{violation:.1e}") for name, violation in self.bounds)]
        return Panel(
            "Optimality conditions", "hold" if self.hold else "do not hold", GOOD if self.hold else WRONG,
            f"duality gap {self.gap:.3g}: the sum of the terms' own",
            tables=[Table(_TERM_HEAD, self.rows()), Table(("condition", "off by"), rows)],
        )  # fmt: skip

    def __str__(self) -> str:
        lines = aligned_lines([_TERM_HEAD, *self.rows()])
        lines += [f"stationary in {name}: off by {left:.1e}" for name, left in self.equations]
        lines += [f"feasible: {name}: off by {violation:.1e}" for name, violation in self.bounds]
        return "\n".join([*lines, f"duality gap {self.gap:.3g}, the sum of the terms' own"])

    __repr__ = __str__


def conditions(problem: Any, solution) -> Conditions:
    """The optimality system of a solution, term by term: value, conjugate, Fenchel gap; stationarity of every block; every constraint.

    The gaps of the terms add up to the duality gap, so that the table says where it comes from.
    """
    proof = getattr(solution, "certificate", None)
    if proof is None:
        raise ModelError(
            f"{type(solution).__name__} is not a solution with a certificate",
            term="conditions(solution)",
            write_instead="write conditions(problem.solve()); multipliers of your own go to check_bound(u)",
        )
    bound = proof_of(problem.form(), solution, "conditions(solution)")
    form, x, parts = proof.form, proof.blocks, []
    for loss, u in zip(form.losses, bound.loss_duals, strict=True):
        z = loss.predictions(x)
        parts.append((loss.typed, loss.value(z), loss.conjugate(u), loss.along(u, z)))
    for f, v in zip(form.functions, bound.function_duals, strict=True):
        # of a norm 0 in the dual ball, where a certificate has it
        conjugate = 0.0 if f.atom.norm else f.conjugate(v)
        parts.append((f.typed, f.value(x), conjugate, np.vdot(v, f.map.forward(x))))
    terms = [
        (name, float(value), float(conjugate), float(along), float(value + conjugate - along))
        for name, value, conjugate, along in parts
    ]
    residual = stationarity(form, bound.loss_duals, bound.function_duals)
    equations = tuple((name, float(np.abs(r).max(initial=0.0))) for name, r in residual.items())
    bounds = tuple((f.typed, float(f.violation(x))) for f in form.constraints)
    return Conditions(tuple(terms), equations, bounds, solution.objective - solution.dual_bound, solution.tol)
