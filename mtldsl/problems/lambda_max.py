"""lambda_max: the parameter value at which a norm's weights become exactly zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.atoms.prox.composition import prox_of_sum, unsupported_reason
from mtldsl.errors import ModelError
from mtldsl.language.objective import Term
from mtldsl.language.scalars import Parameter, Scalar, put_back
from mtldsl.normal_form.canonicalize import on_weights, to_normal_form
from mtldsl.normal_form.form import NormalForm
from mtldsl.normal_form.statement import Statement
from mtldsl.normal_form.term import FunctionTerm
from mtldsl.problems.critical_values import AllowedSigns, critical_multiple, pull_of, scale_of, slopes_at_zero
from mtldsl.solution.score import NotedNumber
from mtldsl.utils.parallel import one_blas_thread
from mtldsl.utils.validation import complete, quoted

# --------------------------------------------------------------------------------------------------------------
# Is what was given for a parameter one of the problem's?


def require_own(given: object, parameters: Sequence[Parameter], typed: str) -> None:
    """ModelError unless it is one of them itself: two parameters may have one name.

    >>> require_own("mu", [Parameter(1.0, name="mu")], "path('mu', ...)")
    Traceback (most recent call last):
    mtldsl.errors.ModelError: path('mu', ...): 'mu' is the name of a parameter; give the Parameter itself, problem.parameters[0]
    """
    if any(given is own for own in parameters):
        return
    for k, own in enumerate(parameters):
        if isinstance(given, str) and own.name == given:
            raise ModelError(
                f"{given!r} is the name of a parameter",
                term=typed,
                write_instead=f"give the Parameter itself, problem.parameters[{k}]",
            )
    names = ", ".join(own.name for own in parameters) or "none"
    raise ModelError(f"this problem has no such parameter; it has {names}", term=typed)


# --------------------------------------------------------------------------------------------------------------
# The dual norm of a sum of norms that have no common proximal step, from both sides.
#
# With N = sum_k N_k, the dual norm of P is t = max <P, W> over N(W) <= 1, and 1 / t the least N(W) with <P, W> = 1. ADMM finds it with a copy
# of W a norm; any W tells a lower bound, <P, W> / N(W), and any P = sum_k Z_k an upper one, the largest dual norm N_k of its Z_k.
# Source: Boyd, Parikh, Chu, Peleato and Eckstein, "Distributed optimization and statistical learning via the alternating direction method of
# multipliers", Foundations and Trends in Machine Learning 3 (2010), sections 3.4 and 7.1.


@dataclass(frozen=True)
class LambdaMaxSettings:
    """Limits of the two bounds.

    agreement_tol   : relative distance of the bounds at the end
    max_steps       : or so many steps
    balance_steps   : steps after which the bounds are looked at and the penalty is set anew
    settling_steps  : steps after which the penalty stays
    bisection_steps : halvings of the interval: to rounding
    backoff_shares  : directions along which losses may fall faster than norms rise: proximal steps this part below where one norm alone gives zero
    """

    agreement_tol: float = 1e-9
    max_steps: int = 3000
    balance_steps: int = 20
    settling_steps: int = 1000
    bisection_steps: int = 60
    backoff_shares: tuple[float, ...] = (0.02, 0.2, 0.5)


SETTINGS = LambdaMaxSettings()


def dual_norm_of_sum(P: np.ndarray, norms: Sequence[FunctionTerm]) -> tuple[float, float]:
    """(a lower bound, an upper bound). Every norm has an exact prox.

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 1))))
    >>> from mtldsl.normal_form.canonicalize import to_normal_form
    >>> form = to_normal_form(mtl.group_norm(W, [[0, 1], [1, 2]]), [], "", {})
    >>> low, high = dual_norm_of_sum(np.array([[0.0], [1.0], [0.0]]), form.functions)  # half of it in either group
    >>> bool(low <= 0.5 <= high), round(high, 6)
    (True, 0.5)
    """
    size = float(np.linalg.norm(P))
    if size == 0.0:
        return 0.0, 0.0
    takes = np.stack([norm.atom.dual_project(np.ones(P.shape)) != 0 for norm in norms])
    free = np.where(takes.any(axis=0), 0.0, P)  # entries that no norm is about
    if free.any() and not any(norm.atom.value(free) for norm in norms):
        return np.inf, np.inf
    P, K, low, high = P / size, len(norms), 0.0, np.inf
    W, scaled, rho = (
        P.copy(),
        np.zeros((K, *P.shape)),
        sum(norm.coefficient * norm.atom.value(P) for norm in norms),
    )
    for step in range(1, SETTINGS.max_steps + 1):
        copies = np.stack([norm.prox(W - u, 1.0 / rho) for norm, u in zip(norms, scaled, strict=True)])
        before, mean = W, (copies + scaled).mean(axis=0)
        W = mean + (1.0 - np.vdot(P, mean)) * P
        scaled += copies - W
        if step % SETTINGS.balance_steps:
            continue
        low = max(low, 1.0 / sum(norm.coefficient * norm.atom.value(W) for norm in norms))
        high = min(high, _upper(P, norms, -rho * scaled, takes))
        if high < np.inf and high - low <= SETTINGS.agreement_tol * high:
            break
        apart, moved = np.linalg.norm(copies - W), np.sqrt(K) * np.linalg.norm(W - before)
        if step <= SETTINGS.settling_steps and not 0.2 * moved <= apart <= 5.0 * moved:
            factor = 2.0 if apart > moved else 0.5
            rho, scaled = rho * factor, scaled / factor
    return size * low, size * high


def _upper(P, norms, slopes, takes) -> float:
    """The largest dual norm of parts that add up to P: slopes of the norms, and what is missing shared out to those that take it."""
    slopes = np.stack([norm.atom.dual_project(part) for norm, part in zip(norms, slopes, strict=True)])
    share = float(np.vdot(P, slopes.sum(axis=0)))
    if share <= 0.0:
        return np.inf
    parts = slopes / share
    parts += takes * ((P - parts.sum(axis=0)) / np.maximum(takes.sum(axis=0), 1))
    if np.abs(parts.sum(axis=0) - P).max() > SETTINGS.agreement_tol:  # P is one long
        return np.inf
    return max(norm.dual_gauge(part) for norm, part in zip(norms, parts, strict=True))


# --------------------------------------------------------------------------------------------------------------
# Where zero weights are optimal under several norms of one matrix: by the prox of their sum where it is exact, else from both sides.


def critical_of_sum(
    pull: np.ndarray, scaled: Sequence[FunctionTerm], fixed: Sequence[FunctionTerm]
) -> tuple[float, float, str]:
    """(low, high, why they differ): below low, zero does not minimise t sum of scaled + sum of fixed - <pull, W>; from high on, it does.

    Zero minimises it iff it is the proximal step from `pull`, and is so for all larger t then.
    """
    high = min((norm.dual_gauge(pull) for norm in scaled), default=np.inf)
    terms = [(norm.coefficient, norm.atom) for norm in fixed]
    reason = unsupported_reason([*terms, *((norm.coefficient, norm.atom) for norm in scaled)])
    if reason and not fixed and all(norm.atom.exact_prox for norm in scaled):
        low, high = dual_norm_of_sum(pull, scaled)
        return low, high, reason.rstrip(".")
    if reason:
        return min(_lowest(pull, scaled, fixed, high), high), high, reason.rstrip(".")

    def is_zero(t: float) -> bool:
        prox = prox_of_sum([*terms, *((t * norm.coefficient, norm.atom) for norm in scaled)] if t else terms)
        assert prox is not None
        return not np.any(prox.prox(pull, 1.0))

    if terms and is_zero(0.0):
        return 0.0, 0.0, ""
    if high == np.inf:  # none of them holds all that pulls by itself; together they may
        high = float(np.linalg.norm(pull))
        while not is_zero(high):
            high *= 4.0
            if high > 1e30:
                return np.inf, np.inf, ""
    low, top = 0.0, high
    for _ in range(SETTINGS.bisection_steps):
        middle = 0.5 * (low + top)
        low, top = (low, middle) if is_zero(middle) else (middle, top)
    return top, top, ""


def _lowest(pull: np.ndarray, scaled, fixed, high: float) -> float:
    found = 0.0
    for norm in (*scaled, *fixed):
        gauge = norm.dual_gauge(pull)
        for below in SETTINGS.backoff_shares:
            step = (1.0 - below) * (gauge if np.isfinite(gauge) else high)
            D = norm.prox(pull, step) if norm.atom.exact_prox else pull
            rise = sum(one.coefficient * one.atom.value(D) for one in scaled)
            if 0.0 < rise < np.inf:
                held = sum(one.coefficient * one.atom.value(D) for one in fixed)
                found = max(found, (float(np.vdot(pull, D)) - held) / rise)
    return found


class CriticalValue(NotedNumber):
    """A number with `exact`: whether the weights are zero exactly up to (or from) it; `note`, which says what it is if not; and `bounds`, a
    lower and an upper bound of the exact value, one of which it is.
    """

    exact: bool
    note: str
    bounds: tuple[float, float]

    def __new__(cls, value: float, note: str = "", bounds: tuple[float, float] | None = None):
        self = super().__new__(cls, value)
        self.exact, self.note = not note, note
        self.bounds = (float(value), float(value)) if bounds is None else bounds
        return self

    def __getnewargs__(self):
        return float(self), self.note, self.bounds


@complete("write problem.lambda_max(lam), with a Parameter of this problem")
def lambda_max(statement: Statement, parameter: Parameter) -> CriticalValue:
    """The critical value of a parameter: where the weights of its norm become exactly zero.

    For lam * norm + losses the solution is zero iff lam >= lambda_max; for lam * losses + norm iff lam <= lambda_max.
    Known for one weight matrix and one norm (a ridge may stand beside it, bounds such as W >= 0 on the entries, and norm balls), in the time
    of at most five products with the data; beside losses that are differentiable at zero, for several norms too, of which the parameter
    multiplies one, some or all. An intercept is optimised first.

    It is a float with `.exact`, `.note` and `.bounds`, a lower and an upper bound. It is exact where the losses are differentiable at
    zero. At a kink (a hinge or quantiles with an intercept, F-scores), for a spectral norm beside bounds or another norm, it is the bound
    up to which zero is surely optimal: `.exact` is False and `.note` says so. Beside half a squared norm alone (`mkl_norm`, `ridge`) no value
    makes the weights zero; then it is a scale: at k times it (1/k of it, if it multiplies the losses) the weights explain at
    most 1/k of the losses. ModelError, saying what is in the way, for other models.
    """
    # 0 is optimal iff minus some slopes of the losses lie in the norm's dual ball of radius lambda, but for entries that bounds hold back
    require_own(parameter, statement.parameters, f"lambda_max({quoted(parameter)})")
    typed, terms = f"lambda_max({parameter.name})", statement.objective.terms
    scaled = [term for term in terms if parameter in term.coefficient.parameters]
    quadratics = [term for term in terms if not term.is_loss and _is_half_a_squared_norm(term)]
    penalties = [term for term in terms if not term.is_loss and not _is_flat_at_zero(term)]
    has_scale = not penalties and len(quadratics) == 1
    penalties = quadratics if has_scale else penalties
    instead = f"give the values of a path yourself: problem.path({parameter.name}, [...])"
    what = _why_unknown(statement, parameter, scaled, penalties, has_scale)
    if what:
        raise ModelError(what, term=typed, write_instead=instead)
    on_norm = any(term in scaled for term in penalties)
    with put_back([parameter]), one_blas_thread():
        parameter.value = 1.0
        form = to_normal_form(statement.objective, list(statement.constraints), "", {})
        norms = [next(f for f in form.functions if f.typed == term.text) for term in penalties]
        for term, norm in zip(penalties, norms, strict=True):
            if norm.map.identity_of is None:
                raise ModelError(
                    f"known for a norm of the weights themselves, not of {term.argument.text}",
                    term=typed,
                    write_instead=instead,
                )
        norm, block = norms[0], str(norms[0].map.identity_of)
        sets, at_zero = slopes_at_zero(form, typed)
        if has_scale:
            scale = scale_of(sets, norm, block, form, at_zero, typed)
            of = "at k times it" if on_norm else "at 1/k of it"
            note = f"a scale: no value makes the weights zero; {of} they explain at most 1/k of the losses"
            return CriticalValue(scale if on_norm else _inverse(scale), note)
        signs = _signs(form, block)
        if len(norms) == 1:
            low, high, kinked = critical_multiple(sets, norm, block, form.zeros(), signs)
            why = f"{kinked} has a kink at zero" if kinked else f"bounds hold back {penalties[0].atom_text}"
            low, why = (high, "") if high - low <= SETTINGS.agreement_tol * high else (low, why)
            return _critical_value(low, high, why, on_norm, penalties)
        kinked = next((s.typed for s in sets if s.typed), "")
        if kinked:
            names = ", ".join(term.atom_text for term in penalties)
            raise ModelError(
                f"known beside one norm, since {kinked} has a kink at zero; here: {names}",
                term=typed,
                write_instead=instead,
            )
        if signs.bind and not all(norm.atom.monotone for norm in norms):
            raise ModelError(
                "known beside several norms where no bounds hold back entries, or where the norms depend on absolute values alone",
                term=typed,
                write_instead=instead,
            )
        changing = [term in scaled or not on_norm for term in penalties]
        low, high, why = critical_of_sum(
            signs.allowed(pull_of(sets, block, form.zeros())),
            [norm for norm, own in zip(norms, changing, strict=True) if own],
            [norm for norm, own in zip(norms, changing, strict=True) if not own],
        )
        shown = [term for term, own in zip(penalties, changing, strict=True) if own]
        return _critical_value(low, high, why, on_norm, shown)


def is_factor(statement: Statement, parameter: Parameter) -> bool:
    """Tell whether the parameter multiplies penalties alone, or losses alone; a radius does neither."""
    terms = statement.objective.terms
    scaled = [term for term in terms if parameter in term.coefficient.parameters]
    is_radius = any(parameter in c.of_radius for c in on_weights(statement.constraints))
    are_proportional = all(_is_proportional(term.coefficient, parameter) for term in scaled)
    return bool(scaled) and not is_radius and are_proportional and len({term.is_loss for term in scaled}) == 1


def _why_unknown(
    statement: Statement, parameter: Parameter, scaled: list[Term], penalties: list[Term], has_scale: bool
) -> str:
    """Return what is in the way; "" where the value is known, or the normal form says more."""
    terms, losses = statement.objective.terms, [term for term in statement.objective.terms if term.is_loss]
    if any(parameter in c.of_radius for c in on_weights(statement.constraints)):
        return f"{parameter.name} is a radius: the weights vanish where it is 0, and only there, so go from small to large"
    if not scaled:
        text = statement.objective.text
        return f"the parameter must be a factor of a term; here it occurs inside the terms of {text} only"
    for term in scaled:
        if not _is_proportional(term.coefficient, parameter):
            known = f"known for a coefficient that is a number > 0 times {parameter.name}"
            return f"{term.text} is not proportional to {parameter.name}; {known}"
    if not statement.is_convex:
        parts = (*terms, *on_weights(statement.constraints))
        culprit = next(part for part in parts if not part.atom.convex)
        return f"{culprit.text} is not convex, so that zero may be stationary without being optimal"
    worst = next((term.atom_text for term in terms if term.worst), None)
    if worst is not None:
        return f"{worst} has a kink at zero, where several tasks are the worst"
    for constraint in on_weights(statement.constraints):
        if why := _why_not_zero(constraint):
            return why
    are_norms = all(isinstance(term.atom, MatrixFunction) and term.atom.norm for term in penalties)
    if len(statement.weights) != 1 or not (has_scale or (penalties and are_norms)):
        names = ", ".join(w.name for w in statement.weights)
        kinds = ", ".join(term.atom_text for term in penalties) or "no norm"
        return f"known for one weight matrix with norms (a ridge may stand beside them); here: {names} with {kinds}"
    on_norm, on_losses = (any(term in scaled for term in own) for own in (penalties, losses))
    if on_losses and (on_norm or not all(term in scaled for term in losses)):
        return "the parameter must multiply the norm alone, or all losses alone"
    if not on_norm and not on_losses:
        why = f"so no value of {parameter.name} makes the solution zero"
        return f"{scaled[0].text} is flat at zero, {why}"
    return ""


def _why_not_zero(constraint) -> str:
    """Return why zero is not known to be allowed: it is by bounds on entries of the weights themselves, and by balls around zero; "" there."""
    if constraint.atom.holds_around_zero and constraint.argument.offset is None:
        return ""
    interval = constraint.atom.interval
    itself = [part for part in constraint.argument.parts if part.left is None and part.right is None]
    plain = len(itself) == len(constraint.argument.parts) == 1 and itself[0].coefficient.value == 1.0
    if interval is None or not plain or constraint.argument.offset is not None:
        return f"known beside bounds on the weights' entries and balls around zero, not beside the constraint {constraint.text}"
    if np.any(np.asarray(interval[0]) > 0) or np.any(np.asarray(interval[1]) < 0):
        return f"{constraint.text} does not allow the weights to be zero"
    return ""


def _critical_value(low: float, high: float, why: str, on_norm: bool, penalties: list[Term]) -> CriticalValue:
    """The value of the parameter where its norms, or with `on_norm` False its losses, stand at these multiples; why : the two differ."""
    if low == np.inf:
        value, shown = np.inf if on_norm else 0.0, " + ".join(term.atom_text for term in penalties)
        note = f"no value makes the weights zero: {shown} costs nothing at other weights too"
        return CriticalValue(value, note, (value, value))
    if on_norm:
        note = f"an upper bound: {why}; not zero below {low:.6g}"
        return CriticalValue(high, note if why else "", (low, high))
    low, high = _inverse(high), _inverse(low)
    return CriticalValue(low, f"a lower bound: {why}; not zero above {high:.6g}" if why else "", (low, high))


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0 else np.inf


def _signs(form: NormalForm, block: str) -> AllowedSigns:
    """Which entries the model's bounds let rise from zero, and which fall."""
    shape = form.shapes[block]
    rise, fall = np.ones(shape, dtype=bool), np.ones(shape, dtype=bool)
    intervals = [constraint.atom.interval for constraint in form.constraints]  # None of balls around zero
    for low, high in filter(None, intervals):
        rise &= np.asarray(high) > 0
        fall &= np.asarray(low) < 0
    return AllowedSigns(None if rise.all() else rise, None if fall.all() else fall)


def _is_half_a_squared_norm(term) -> bool:
    """Tell whether its conjugate is half a squared norm, known in closed form: ridges, and penalties that weigh kernels."""
    atom = term.atom
    if not isinstance(atom, MatrixFunction) or (
        term.argument.offset is not None and np.any(term.argument.offset)
    ):
        return False
    return atom.weighs_kernels or (
        atom.entry_quadratic is not None and bool(np.all(np.asarray(atom.entry_quadratic) > 0))
    )


def _is_flat_at_zero(term) -> bool:
    """Differentiable at 0 with gradient 0: ridges, quadratic forms, squared norms. Such a term does not move lambda_max."""
    if term.argument.offset is not None and np.any(term.argument.offset):
        return False
    return np.isfinite(term.atom.curvature) or (term.atom.finite_dual and not term.atom.norm)


def _is_proportional(coefficient: Scalar, parameter: Parameter) -> bool:
    """Tell whether the coefficient is a positive number times the parameter: seen from its values at 1, 2 and 4."""
    values = []
    try:
        with put_back([parameter]):
            for parameter.value in (1.0, 2.0, 4.0):
                values.append(coefficient.value)
    except ModelError:  # a division by zero on the way
        return False
    return values[0] > 0 and np.allclose(values, values[0] * np.array([1.0, 2.0, 4.0]), rtol=1e-12, atol=0)
