"""Check of every solve against the statement as typed: objective and violation are evaluated a second time."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from mtldsl.certificates.plain.plain_values import (
    TypedPoint,
    matrix_of,
)
from mtldsl.errors import CrossCheckError, LostClusterError, ModelError
from mtldsl.language.constraints import RangeConstraint
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.substitution import intercepts_of
from mtldsl.normal_form.form import NormalForm
from mtldsl.normal_form.statement import Statement
from mtldsl.normal_form.terms.structure_term import StructureTerm, function_value
from mtldsl.solution.solution import Solution

#: Difference relative to the sum of the terms' absolute values that is agreement; sums in two orders differ by less.
AGREEMENT_TOL = 1e-9

#: Below this numbers have fewer digits than others, or are zero.
UNDERFLOW_SIZE = 1e-290


log = logging.getLogger("mtldsl")

_EPS = float(np.finfo(float).eps)

_ADVICE = (
    "this is a fault of mtldsl, or of a word of your own: mtldsl.testing.check_atom finds out about the latter; else please report the "
    "model"
)


def _fault(term: str, what: str) -> CrossCheckError:
    """The error that says what is wrong with a term, and whose fault it is."""
    return CrossCheckError(what, term=term, write_instead=_ADVICE)


def agree_with_statement(statement: Statement, form: NormalForm, solution: Solution) -> None:
    """Raise CrossCheckError, with the solution as `.solution`, where the statement as typed has another objective or another violation at the
    solution's weights than the solve claims, or where `solution.W` is not what was typed. The error names the term.

    One look: a product with the data and a formula a term. What differs by more than 1e-9 is held to a bound of its rounding first.
    """
    try:
        _StatementComparison(statement, form, solution).run()
    except CrossCheckError as error:
        error.solution = solution
        raise


def require_own_weights(statement: Any, form: NormalForm, solution: Solution) -> None:
    """Raise ModelError where what a file says of `solution.W` or `solution.intercept` is not what the losses make of its blocks."""
    try:
        _StatementComparison(statement, form, solution).weights()
    except CrossCheckError as error:
        raise ModelError(
            "solution.W or solution.intercept contradicts the solution's own blocks: its file was changed",
            term=error.term,
            write_instead="solve again, problem.solve(warm_start=solution)",
        ) from None


class _StatementComparison:
    def __init__(self, statement: Statement, form: NormalForm, solution: Solution):
        self.statement, self.form, self.solution = statement, form, solution
        self.point = TypedPoint(solution.blocks, solution.learned)
        self.terms: Any = statement.objective.terms
        self.constraints: Any = statement.constraints
        self.own: dict[str, float] = {}  # of the normal form's terms, where they are asked for
        self.checks: dict[int, Any] = {}  # of losses whose rows are not in memory, by term
        self.is_cut_short = solution.status in ("time_limit", "interrupted") or solution.interrupted

    def run(self) -> None:
        try:
            if not self._has_no_time:
                self._objective()
            self._violation()
            self.weights()
            if not self._has_no_time:
                self._unused()
        except LostClusterError as error:  # what was solved is not lost with it
            log.warning("the second evaluation of the objective could not be made: %s", error)
        except KeyError as lacking:
            raise _fault(
                str(self.statement), f"the solution has no {lacking.args[0]!r}, which stands in the model"
            ) from None

    @property
    def _has_no_time(self) -> bool:
        """Tell whether a run was cut short whose rows are not in memory: there a pass may take minutes. Few rows are read but after a signal."""
        late = self.solution.interrupted or self.solution.status == "interrupted"
        checks = filter(None, map(self._in_parts, self.terms))
        return any(late or (self.is_cut_short and not check.is_few) for check in checks)

    def _in_parts(self, term: Any) -> Any:
        """Return the check of a loss that counts, by its tasks themselves; None where this one is to be made here."""
        if not term.is_loss or term.coefficient.value == 0.0 or 0 in term.argument.shape:
            return None
        if id(term) not in self.checks:
            self.checks[id(term)] = term.tasks.statement_check(self.form, term, self.point)
        return self.checks[id(term)]

    # ----------------------------------------------------------------------------------------------- objective

    def _objective(self) -> None:
        claimed = self.solution.objective
        values = [self._value(term) for term in self.terms]
        total, size = sum(values), sum(map(abs, values))
        if abs(total - claimed) <= AGREEMENT_TOL * size + UNDERFLOW_SIZE:
            return
        if not math.isfinite(claimed) and (not math.isfinite(total) or self.is_cut_short):
            return
        roundings = [self._rounding(term) for term in self.terms]
        if any(
            map(self._in_parts, self.terms)
        ):  # what is claimed of few rows is off by what their sums have lost
            roundings = [one + self.solution.certificate.rounding / len(roundings) for one in roundings]
        if abs(total - claimed) <= AGREEMENT_TOL * size + sum(roundings):
            return
        self._blame(values, roundings)

    def _value(self, term: Any) -> float:
        check = self._in_parts(term)
        found = check.value() if check else self.point.value(term, self._kernels(term))
        return self._claimed()[_key(term, self.terms)] if found is None else found

    def _rounding(self, term: Any) -> float:
        check = self._in_parts(term)
        return check.rounding() if check else self.point.rounding(term, self._kernels(term))

    def _kernels(self, term: Any) -> Any:
        """Return the weights of `mkl_norm` that have no name: they are eliminated, or given."""
        if term.is_loss or not getattr(term.atom, "weighs_kernels", False):
            return None
        others = [t for t in self.terms if not (t.is_loss or t.of_learned or 0 in t.argument.shape)]
        k = [t for t in others if t.coefficient.value > 0].index(term) if term.coefficient.value > 0 else -1
        return self.solution.learned.get(f"kernel weights of term {k}")

    def _claimed(self) -> dict[str, float]:
        """Return {term as typed: what it is in the normal form}."""
        if not self.own:
            form, x = self.form, self.solution.blocks
            named: Any = {
                name: getattr(one, "spectral", getattr(one, "values", None))
                for name, one in self.solution.learned.items()
            }
            losses: Any = form.losses
            for loss in losses:
                value = loss.value_at(x) if loss.tasks.in_memory else loss.claim(x)
                self.own[loss.typed] = self.own.get(loss.typed, 0.0) + value
            for f in form.functions:
                self.own[f.typed] = self.own.get(f.typed, 0.0) + function_value(f, x, named)
        return self.own

    def _blame(self, values: list[float], roundings: list[float]) -> None:
        typed: dict[str, list[float]] = {}
        for term, value, rounding in zip(self.terms, values, roundings, strict=True):
            sums = typed.setdefault(_key(term, self.terms), [0.0, 0.0])
            sums[0] += value
            sums[1] += rounding
        claimed, worst = self._claimed(), ("", 0.0, 0.0, 0.0)
        for text, (value, rounding) in typed.items():
            own = claimed.get(text, 0.0) + (self.form.constant if _is_given(text, self.terms) else 0.0)
            off = abs(own - value) - rounding - AGREEMENT_TOL * abs(value)
            if off > worst[1] or not math.isfinite(off):
                worst = (text, off if math.isfinite(off) else math.inf, value, own)
        total = sum(values)
        if worst[0]:
            raise _fault(
                worst[0],
                f"as typed this term is {worst[2]:.12g} at the solution, and the solve took it for {worst[3]:.12g}; the objective is "
                f"{total:.12g}, not {self.solution.objective:.12g}",
            )
        raise _fault(
            f"minimize {self.statement.objective.text}",
            f"as typed the objective is {total:.12g} at the solution, and the solve claims {self.solution.objective:.12g}; the terms agree one "
            "by one, so these are not the weights that the claim is about",
        )

    # ------------------------------------------------------------------------------------- blocks that are all zero

    def _unused(self) -> None:
        """Compare arguments of losses, and values of other terms, at random numbers in the place of blocks that are zero: there, whatever is done
        with a block is right. What is learned has no value at such a point, and is left out. A run that was cut short has no time for it.

        It is a look at the normal form, not at the solution: once for the same blocks and parameters.
        """
        blocks = self.solution.blocks
        empty = [name for name, block in blocks.items() if not block.any()]
        if self.is_cut_short or not empty:
            return
        key = "unused", tuple(empty), tuple(parameter.value for parameter in self.statement.parameters)
        if key in self.form.remembered:
            return
        rng = np.random.default_rng(0)
        x = dict(blocks) | {name: rng.normal(size=blocks[name].shape) for name in empty}
        point, where = (
            TypedPoint(x, {}),
            f"at random numbers in the place of {' and '.join(empty)}, which the solve left at zero",
        )
        for term in self.terms:
            if term.is_loss and term.atom.labels != "indicators":  # whose normal form has columns of its own
                self._same_argument(term, point, where)
        claimed: dict[str, float] = {}
        with np.errstate(all="ignore"):
            for f in self.form.functions:
                if not (isinstance(f, StructureTerm) or f.is_constraint):
                    claimed[f.typed] = claimed.get(f.typed, 0.0) + f.value(x)
        for text in claimed:
            terms = [term for term in self.terms if term.text == text and not term.learned]
            values: Any = [point.value(term) for term in terms]
            if not values or None in values or not np.isfinite([claimed[text], *values]).all():
                continue
            off, size = abs(sum(values) - claimed[text]) - UNDERFLOW_SIZE, sum(map(abs, values))
            allowed = AGREEMENT_TOL * size
            if off > allowed and off > allowed + sum(map(point.rounding, terms)):
                raise _fault(
                    text,
                    f"as typed this term is {sum(values):.12g} {where}, and the normal form takes it for {claimed[text]:.12g}",
                )
        self.form.remembered[key] = True

    def _same_argument(self, term: Any, point: TypedPoint, where: str) -> None:
        """Check that the weights and intercepts of a loss are those of its terms in the normal form."""
        x: Any = point.blocks
        W, sizes = (matrix_of(term.argument.tree, x, sizes) for sizes in (False, True))
        b, b_sizes = (point.intercept(term, sizes) for sizes in (False, True))
        for loss in self.form.losses:
            if loss.typed != term.text:
                continue
            own = sum(x[name][0] for name in loss.intercepts) if loss.intercepts else None
            same = _are_near(loss.map.forward(x), W, sizes) and (own is None) == (b is None)
            if not (same and (b is None or _are_near(own, b, b_sizes))):
                raise _fault(
                    term.text, f"as typed its weights are others than those of the normal form {where}"
                )

    # --------------------------------------------------------------------------------------------- constraints

    def _violation(self) -> None:
        plain = [c for c in self.constraints if not isinstance(c, RangeConstraint)]
        outside = [self.point.violation(c) for c in plain]
        claimed, worst = self.solution.violation, max(outside, default=0.0)
        if abs(worst - claimed) > AGREEMENT_TOL * abs(worst):
            for c, own in zip(plain, outside, strict=True):
                if own - claimed > AGREEMENT_TOL * own + self.point.rounding_of_violation(c):
                    raise _fault(
                        c.text,
                        f"the solution violates it by {own:.6g}, and the solve claims {claimed:.6g} at most",
                    )
            # a run that was cut short may not have come to look at its constraints
            is_claimed = math.isfinite(claimed) or not self.is_cut_short
            if is_claimed and claimed > worst + sum(self.point.rounding_of_violation(c) for c in plain):
                raise _fault(
                    "; ".join(c.text for c in plain) or str(self.statement),
                    f"the solve claims that a constraint is violated by {claimed:.6g}, and as typed it is by {worst:.6g}",
                )
        for c in self.constraints:
            if isinstance(c, RangeConstraint):
                self._range(c)

    def _range(self, c: Any) -> None:
        """Check that bounds on what is learned hold to rounding; its term may have the coefficient 0."""
        found: Any = self.solution.learned.get(c.unknown.name)
        if found is None:
            return
        if c.bound == "norm":
            values = np.asarray(found.values)
            p = getattr(c, "p", None)
            size = float(np.max(values, initial=0.0))
            outside = -float(np.min(values)) if p is None else float(np.linalg.norm(values, p)) - c.value
        else:
            values = found.eigenvalues()
            size = float(values[-1])
            sides = {
                "lower": c.value - values[0],
                "upper": size - c.value,
                "trace": float(values.sum()) - c.value,
            }
            outside = sides[c.bound]
        if outside > AGREEMENT_TOL * (c.value if c.bound != "lower" else max(c.value, 1e-3 * size)):
            raise _fault(c.text, f"what was learned violates it by {outside:.6g}")

    # ------------------------------------------------------------------------------------------------- weights

    def weights(self) -> None:
        """Check that `solution.W` and `solution.intercept` are those of the losses as typed."""
        shares = self.statement.shares
        terms = (
            [(self.statement.first_loss, slice(None))]
            if shares is None
            else zip(shares.terms, shares.columns, strict=True)
        )
        for term, columns in terms:
            W = matrix_of(term.argument.tree, self.point.blocks)
            self._same(
                term,
                self.solution.coef[:, columns],
                W,
                lambda tree=term.argument.tree: matrix_of(tree, self.point.blocks, sizes=True),
            )
            for name in list(intercepts_of(term.argument))[:1]:
                b, own = np.ravel(self.point.blocks[name]), self.solution.intercept
                given = None if own is None else own[columns][: b.size]
                self._same(term, given, b, lambda b=b: np.abs(b))

    def _same(self, term: Any, given: Any, typed: np.ndarray, sizes) -> None:
        off = np.inf if given is None or given.shape != typed.shape else np.abs(given - typed)
        if np.all(off <= AGREEMENT_TOL * np.abs(typed)) or np.all(off <= 1e3 * _EPS * sizes()):
            return
        raise _fault(
            term.text, "solution.W or solution.intercept is not what this loss makes of the solution's blocks"
        )


def _are_near(own: Any, typed: Any, sizes: Any) -> bool:
    """Tell whether numbers are the same but for rounding."""
    return bool(np.all(np.abs(own - typed) <= AGREEMENT_TOL * sizes + UNDERFLOW_SIZE))


def _key(term: Any, terms: Any) -> str:
    """Return the text of a term; of a norm of what is learned, that of the term which it is a part of in the normal form."""
    if not term.of_learned:
        return term.text
    return next(t.text for t in terms if any(one is term.argument for one in t.learned))


def _is_given(text: str, terms: Any) -> bool:
    """Tell whether all matrices of a term are given: then a constant belongs to it."""
    return any(
        t.text == text and t.learned and not any(isinstance(m, LearnedUnknown) for m in t.learned)
        for t in terms
    )
