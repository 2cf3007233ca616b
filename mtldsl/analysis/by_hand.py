"""Values and bounds that somebody computed by hand: each term, each condition, and by how much it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.analysis.given_by_hand import blocks_of, by_loss, multipliers_of
from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.errors import ModelError
from mtldsl.proof.bound import prove
from mtldsl.proof.multipliers import make_stationary
from mtldsl.proof.residual import stationarity
from mtldsl.shown.panel import GOOD, WRONG, Panel, Table
from mtldsl.shown.shown import Shown
from mtldsl.values.sparse_matrix import read_dense

__all__ = ["BoundCheck", "Condition", "check_bound", "value_at"]

#: What a condition may fail by, relative to the size of what it is about: more than rounding, less than a mistake.
_ALLOWED = 1e-9


@dataclass(frozen=True)
class Condition:
    """One condition of a bound. by : how much it fails by, relative; where: the entry at which it fails most, in words."""

    what: str
    by: float
    where: str = ""

    @property
    def holds(self) -> bool:
        return self.by <= _ALLOWED


@dataclass(frozen=True, repr=False)
class BoundCheck(Shown):
    """What multipliers prove, as `problem.check_bound` found it.

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
        """Whether every condition holds, so that `value` is a lower bound on the optimum."""
        return all(one.holds for one in self.conditions)

    def rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                one.what,
                "holds" if one.holds else "FAILS",
                "" if one.holds else f"{one.by:.1e}",
                "" if one.holds else one.where,
            )
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


def value_at(form: NormalForm, given: Any, tol: float) -> float:
    """See `Problem.value`."""
    x = blocks_of(form, given)
    return form.value(x) if form.violation(x) <= tol * max(1.0, _size(x)) else np.inf


def check_bound(
    form: NormalForm, model: str, given: Any, functions: Mapping[str, Any] | None, repair: bool
) -> BoundCheck:
    """See `Problem.check_bound`."""
    if not form.is_convex:
        raise ModelError(
            "this model is not convex: multipliers prove no bound on its optimum", term="check_bound(u)"
        )
    if form.elsewhere:
        raise ModelError(
            f"the rows of {form.elsewhere[0].typed} are elsewhere, and its multipliers with them", term="check_bound(u)",
            write_instead="take tasks.subsample(rows)",
        )  # fmt: skip
    u = [multipliers_of(loss, one) for loss, one in zip(form.losses, by_loss(form, given), strict=True)]
    v, chosen = _of_functions(form, u, functions or {})
    conditions, value = _judged(form, u, v)
    hint = "" if chosen else _hint(form, u, value)
    if not repair:
        return BoundCheck(model, value, conditions, hint=hint)
    bound = prove(form, form.zeros(), u, v if chosen else None)
    within = all(one.holds for one in _in_function_domains(form, v))
    repairs = tuple(_repairs(form, u, bound, within))
    return BoundCheck(model, value, conditions, bound.value, repairs, hint)


def _judged(form: NormalForm, u, v) -> tuple[tuple[Condition, ...], float]:
    """(all conditions, the dual value: -inf where one fails)."""
    conditions = (*_in_domains(form, u), *_stationary(form, u, v), *_in_function_domains(form, v))
    return conditions, _dual_value(form, u, v) if all(one.holds for one in conditions) else -np.inf


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
    """(multipliers of the functions, whether some were given): those that are not given take what is left of the stationarity equation."""
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
            else read_dense(given[f.typed], f"check_bound: {f.typed}", ModelError)
        )
        if array.shape != f.map.shape:
            raise ModelError(
                f"{f.typed} has multipliers of shape {f.map.shape}, not {array.shape}", term="check_bound"
            )
        v.append(array)
    free = [k for k, f in enumerate(form.functions) if f.typed not in given]
    if len(free) == 1 and _is_identity(form.functions[free[0]]):
        f = form.functions[free[0]]
        block = f.map.blocks[0]
        v[free[0]] = v[free[0]] - stationarity(form, u, v)[block] / f.map.multiple_of(block)
    elif free and not given:
        make_stationary(form, [one.copy() for one in u], v)
    return v, bool(given)


def _is_identity(f: FunctionTerm) -> bool:
    return len(f.map.blocks) == 1 and bool(f.map.multiple_of(f.map.blocks[0]))


# ------------------------------------------------------------------------------------------------------ conditions


def _in_domains(form: NormalForm, u) -> Iterator[Condition]:
    for loss, one in zip(form.losses, u, strict=True):
        away = np.abs(one - np.asarray(loss.dual_project(one)))
        yield Condition(
            f"multipliers of {loss.typed} lie in the domain of its conjugate", float(away.max() / max(np.abs(one).max(), 1e-300)),
            _row(loss, int(away.argmax())),
        )  # fmt: skip


def _stationary(form: NormalForm, u, v) -> Iterator[Condition]:
    residual = stationarity(form, u, v)
    for block in form.blocks:
        r = residual[block.name]
        size = max(sum(float(np.abs(one).max(initial=0.0)) for one in (*u, *v)), 1e-300)
        if block.intercept_of is None:
            size *= max((float(loss.column_lengths.max()) for loss in form.losses), default=1.0)
            what = f"stationary in {block.name}: X^T u and the multipliers of the functions add up to 0"
        else:
            size *= max(loss.tasks.n_samples for loss in form.losses)
            what = f"stationary in {block.name}: multipliers of every task add up to 0"
        i, j = np.unravel_index(int(np.abs(r).argmax()), r.shape)
        yield Condition(what, float(np.abs(r).max() / size), f"[{i}, {j}], where {r[i, j]:.3g} is left")


def _in_function_domains(form: NormalForm, v) -> Iterator[Condition]:
    for f, one in zip(form.functions, v, strict=True):
        if f.atom.norm:
            gauge = f.dual_gauge(one)
            yield Condition(
                f"multipliers of {f.typed}: their dual norm is at most {f.coefficient:g}", max(float(gauge) - 1.0, 0.0),
                f"a dual norm of {gauge * f.coefficient:.6g}",
            )  # fmt: skip
        else:
            inside = np.isfinite(f.conjugate(one))
            away = (
                0.0
                if inside
                else float(
                    np.abs(one - np.asarray(f.atom.dual_project(one))).max() / max(np.abs(one).max(), 1e-300)
                )
            )
            yield Condition(
                f"the conjugate of {f.typed} is finite",
                0.0 if inside else max(away, 2.0 * _ALLOWED),
                "its multipliers",
            )


def _dual_value(form: NormalForm, u, v) -> float:
    total = form.constant
    for loss, one in zip(form.losses, u, strict=True):
        inside = loss.dual_project(one)
        constant = loss.offset_predictions()
        total += (0.0 if constant is None else loss.along(inside, constant)) - loss.conjugate(inside)
    for f, one in zip(form.functions, v, strict=True):
        total += 0.0 if f.map.offset is None else float(np.vdot(one, f.map.offset))
        total -= 0.0 if f.atom.norm else f.conjugate(one)
    return float(total)


def _repairs(form: NormalForm, u, bound, within: bool) -> Iterator[str]:
    """What was done to the multipliers, as far as their own change tells."""
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


def _row(loss: LossTerm, flat: int) -> str:
    task, row = loss.tasks.place(flat)
    return f"task {loss.tasks.task_names[task]!r}, row {row}"


def _size(x: Blocks) -> float:
    return max((float(np.abs(array).max(initial=0.0)) for array in x.values()), default=0.0)
