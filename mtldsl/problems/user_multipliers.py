"""Multipliers that a user gives or a solution holds, read and shared out among functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.certificates.dual_bound import Bound
from mtldsl.certificates.multipliers import stationarity
from mtldsl.errors import ModelError
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.validation import MAX_MAGNITUDE, quoted

# --------------------------------------------------------------------------------------------------------------
# What X^T u leaves, divided between several functions as well as can be.


@dataclass(frozen=True)
class UserMultiplierSettings:
    """Limits of the division of multipliers.

    max_steps         : steps: nobody waits for more
    max_entries       : numbers that all steps together may touch
    division_tol      : what is left of the equation, and the last change of the multipliers, relative to their size, at the end
    feasibility_steps : steps between two looks at what is left
    residual_share    : above this size, what is left has to fall
    travel_share      : below this size, too, where multipliers no longer change: weights move too little to change them again
    residual_factor   : by this factor, or there is no better division
    balance_steps     : steps after which the two step lengths are balanced, by a factor that tends to 1
    """

    max_steps: int = 30_000
    max_entries: float = 1e9
    division_tol: float = 1e-11
    feasibility_steps: int = 500
    residual_share: float = 1e-3
    travel_share: float = 1e-6
    residual_factor: float = 0.9
    balance_steps: int = 25


SETTINGS = UserMultiplierSettings()


def is_shared_out(form: NormalForm, free: list[int]) -> bool:
    """Tell whether the stationarity equation leaves a choice to the multipliers of these functions, or an equation to be solved for them."""
    functions = [form.functions[k] for k in free]
    plain = all(len(f.map.blocks) == 1 and f.map.multiple_of(f.map.blocks[0]) for f in functions)
    reached = [name for f in functions for name in f.map.blocks]
    return not plain or len(set(reached)) < len(reached)


def divide_multipliers(
    form: NormalForm, u: list[np.ndarray], v: list[np.ndarray], free: list[int]
) -> list[np.ndarray]:
    """Multipliers of all functions, those in `free` such that they prove most; the others are kept.

        maximize over v_k, k free    - sum g_k*(v_k) + <v_k, offset_k>    subject to    sum B_k^T v_k = -s,

    s what X^T u and the kept ones leave: the dual of min <s, x> + sum g_k(B_k x), by the primal-dual steps of that pair. Every v_k lies in the
    domain of g_k* after every step; the equation holds in the limit, and at once where a function with a finite conjugate takes the rest.
    Where no division is feasible the equation fails, which the caller sees.

    Source: Chambolle and Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging", J. Math. Imaging
    and Vision 40 (2011); the balance is that of Goldstein, Li and Yuan, "Adaptive primal-dual splitting methods", NIPS (2015).
    """
    names = [block.name for block in form.weight_blocks]
    terms = [form.functions[k] for k in free]
    kept = [np.zeros(f.map.shape) if k in free else v[k] for k, f in enumerate(form.functions)]
    s = {name: array for name, array in stationarity(form, u, kept).items() if name in names}
    found = _primal_dual(terms, s)
    for k, one in zip(free, found, strict=True):
        kept[k] = one
    left = stationarity(form, u, kept)
    for name in names:
        taker = next(
            (
                k
                for k in free
                if form.functions[k].map.multiple_of(name) and form.functions[k].atom.finite_dual
            ),
            None,
        )
        if taker is not None:
            kept[taker] = kept[taker] - left[name] / form.functions[taker].map.multiple_of(name)
    return kept


def _primal_dual(terms: list[FunctionTerm], s: Blocks) -> list[np.ndarray]:
    x: Blocks = {name: np.zeros_like(array) for name, array in s.items()}
    v = [np.zeros(f.map.shape) for f in terms]
    size = max((float(np.abs(array).max(initial=0.0)) for array in s.values()), default=0.0)
    size = size or 1.0
    tau = sigma = 0.99 / max(_length(terms), 1e-300)
    work = sum(array.size * min(array.shape) for array in v)
    change, before = 0.5, np.inf
    for step in range(min(SETTINGS.max_steps, int(SETTINGS.max_entries / max(work, 1)))):
        gradient = {name: array.copy() for name, array in s.items()}
        for f, one in zip(terms, v, strict=True):
            f.map.add_adjoint(one, gradient)
        after = {name: x[name] - tau * gradient[name] for name in x}
        ahead = {name: 2.0 * after[name] - x[name] for name in x}
        new = []
        for f, one in zip(terms, v, strict=True):
            y = one + sigma * f.map.forward(ahead)
            new.append(y - sigma * f.prox(y / sigma, 1.0 / sigma))
        moved = [a - b for a, b in zip(new, v, strict=True)]
        still = max(float(np.abs(one).max(initial=0.0)) for one in moved)
        left = max(float(np.abs(one).max(initial=0.0)) for one in gradient.values())
        if step and max(still, left) <= SETTINGS.division_tol * size:
            break
        if step % SETTINGS.feasibility_steps == SETTINGS.feasibility_steps - 1:
            stays = still <= SETTINGS.division_tol * size and left <= SETTINGS.travel_share * size
            if (left > SETTINGS.residual_share * size or stays) and left > SETTINGS.residual_factor * before:
                break
            before = left
        if step % SETTINGS.balance_steps == SETTINGS.balance_steps - 1:
            tau, sigma, change = _balanced(terms, x, after, moved, tau, sigma, change)
        x, v = after, new
    return v


def _balanced(terms, x: Blocks, after: Blocks, moved, tau: float, sigma: float, change: float):
    """Longer steps on the side whose residual is the larger; (tau, sigma, how much the next may change)."""
    step = {name: after[name] - x[name] for name in x}
    primal = {name: array / tau for name, array in step.items()}
    dual = 0.0
    for f, one in zip(terms, moved, strict=True):
        f.map.add_adjoint(one, primal)
        dual += float(np.sum((one / sigma - f.map.linear(step)) ** 2))
    p, d = np.sqrt(sum(float(np.sum(one**2)) for one in primal.values())), np.sqrt(dual)
    if p > 2.0 * d:
        return tau / (1.0 - change), sigma * (1.0 - change), 0.95 * change
    if d > 2.0 * p:
        return tau * (1.0 - change), sigma / (1.0 - change), 0.95 * change
    return tau, sigma, change


def _length(terms: list[FunctionTerm]) -> float:
    """The norm of x -> (B_k x)_k at most: of a matrix the root of its largest column sum times its largest row sum."""

    def norm(factor) -> float:
        sizes = abs(factor)
        columns, rows = (np.max(np.asarray(sizes.sum(axis=k)), initial=0.0) for k in (0, 1))
        return float(np.sqrt(columns * rows))

    lengths = np.zeros(len(terms))
    for k, f in enumerate(terms):
        for entry in f.map.entries:
            factors = [norm(side) for side in (entry.left, entry.right) if side is not None]
            lengths[k] += abs(entry.coefficient) * np.prod(factors)
    return float(np.linalg.norm(lengths))


# --------------------------------------------------------------------------------------------------------------
# Points and multipliers as somebody types them, in the shapes that a form has.


def blocks_of(form: NormalForm, given: Any) -> Blocks:
    """A point from a matrix, {block: array} or a Solution; intercepts that are not given are 0."""
    given = getattr(given, "blocks", given)
    weights = [block.name for block in form.weight_blocks]
    if not isinstance(given, Mapping):
        if isinstance(given, tuple) and len(given) == len(form.shapes) > 1 and np.ndim(given[0]) == 2:
            raise ModelError(
                "several arrays are given, and not which is which",
                write_instead="write {" + ", ".join(f"{name!r}: ..." for name in form.shapes) + "}",
            )
        if len(weights) > 1:
            raise ModelError(
                f"this model has {' and '.join(weights)}",
                write_instead="write {" + ", ".join(f"{name!r}: ..." for name in weights) + "}",
            )
        given = {weights[0]: given}
    strange = [name for name in given if name not in form.shapes]
    if strange:
        raise ModelError(
            f"there is no block {quoted(strange[0])}; this model has {', '.join(map(repr, form.shapes))}"
        )
    missing = [name for name in weights if name not in given]
    if missing:
        raise ModelError(f"the block {missing[0]!r} is not given")
    x = form.zeros()
    for name, array in given.items():
        array = read_finite(array, f"value: {name}", np.finfo(float).max)
        if array.shape != form.shapes[name] and array.size == np.prod(form.shapes[name]) and array.ndim == 1:
            array = array.reshape(form.shapes[name])
        if array.shape != form.shapes[name]:
            turned = array.ndim == 2 and array.shape == form.shapes[name][::-1]
            raise ModelError(
                f"{name} has shape {array.shape}; it must be {form.shapes[name]}"
                + (": a row a feature, a column a task" if turned else ""),
                write_instead="write the transpose, .T" if turned else "",
            )
        x[name] = array
    return x


def read_finite(given: Any, what: str, largest: float = MAX_MAGNITUDE) -> np.ndarray:
    """Numbers as somebody types them; ModelError where one is NaN, infinite or beyond the largest."""
    array = read_dense(given, what, ModelError)
    strange = np.argwhere(~(np.abs(array) <= largest))
    if len(strange):
        place = tuple(strange[0].tolist())
        raise ModelError(
            f"the entry at {place} is {array[place]}", term=what, write_instead=f"write finite numbers up to {largest:.3g}"
        )  # fmt: skip
    return array


def split_multipliers(form: NormalForm, given: Any) -> tuple[Any, dict[str, Any]]:
    """(what is given of the losses, of the functions): of a Solution those that its certificate rests on, of a dict by the terms' names."""
    if hasattr(given, "certificate") and hasattr(given, "blocks"):
        proof = proof_of(form, given, "check_bound(solution)")
        given = {loss.typed: one for loss, one in zip(form.losses, proof.loss_duals, strict=True)}
        given |= {f.typed: one for f, one in zip(form.functions, proof.function_duals, strict=True)}
    if not isinstance(given, Mapping):
        return given, {}
    functions = {f.typed for f in form.functions} - {loss.typed for loss in form.losses}
    own = {name: one for name, one in given.items() if name in functions}
    return {name: one for name, one in given.items() if name not in own}, own


def proof_of(form: NormalForm, solution: Any, term: str) -> Bound:
    """The multipliers that a solution's certificate rests on. ModelError where it has none, or where it is a solution of another model."""
    kept = solution.certificate
    if kept.form is not None and _kind(kept.form) != _kind(form):
        raise ModelError(
            f"this is a solution of another model or of other data: {_told(kept.form)}, and here is {_told(form)}",
            term=term,
        )
    bound = kept.certificate.proof
    if kept.form is None or bound is None or not bound.loss_duals:
        raise ModelError(
            f"there are no multipliers: {kept.certificate.note or 'no bound was formed'}", term=term
        )
    return bound


def _kind(form: NormalForm) -> tuple:
    """Return what two statements of one model have in common: terms, unknowns and the rows of every task; not the values of parameters."""
    terms = [term.typed for term in (*form.losses, *form.functions)]
    return terms, form.shapes, [loss.tasks.counts.tolist() for loss in form.losses]


def _told(form: NormalForm) -> str:
    rows = ", ".join(f"{loss.tasks.n_samples:,} rows" for loss in form.losses)
    shapes = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in form.shapes.items())
    return f"{' + '.join(term.typed for term in (*form.losses, *form.functions))} ({shapes}, {rows})"


def by_loss(form: NormalForm, given: Any) -> list:
    """Return what was given for every loss: one thing where there is one loss, else a dict by the terms as typed."""
    if not isinstance(given, Mapping):
        if len(form.losses) > 1:
            raise ModelError(
                f"this model has {len(form.losses)} losses",
                write_instead="write {" + ", ".join(f"{loss.typed!r}: ..." for loss in form.losses) + "}",
            )
        return [given]
    names = [loss.typed for loss in form.losses]
    strange = next((name for name in given if name not in names), None)
    missing = next((name for name in names if name not in given), None)
    if strange is not None or missing is not None:
        if strange is not None and all(name in form.losses[0].tasks.task_names for name in given):
            raise ModelError(
                f"{strange!r} is a task",
                write_instead="write a list, the vectors in the order of tasks.task_names",
            )
        raise ModelError(
            f"there is no loss {strange!r}"
            if strange is not None
            else f"the multipliers of {missing} are not given",
            write_instead=f"write {{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )
    return [given[name] for name in names]


def multipliers_of(loss: LossTerm, given: Any) -> np.ndarray:
    """(N,) from that, a list of (n_i,) a task, or a table (n, m) where inputs are shared. ModelError for another shape, NaN and numbers beyond 1e100."""
    u = _flat(loss, given)
    strange = np.flatnonzero(~(np.abs(u) <= MAX_MAGNITUDE))
    if strange.size:
        task, row = loss.tasks.place(int(strange[0]))
        raise ModelError(
            f"the multiplier of task {loss.tasks.task_names[task]!r}, row {row} is {u[strange[0]]}",
            write_instead=f"write finite numbers up to {MAX_MAGNITUDE:.3g}",
        )
    return u


def _is_vector(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, str) and all(map(np.isscalar, given))


def _flat(loss: LossTerm, given: Any) -> np.ndarray:
    tasks = loss.tasks
    shapes = f"({tasks.n_samples},), a list of one vector a task"
    if tasks.is_shared:
        shapes += f", or ({tasks.X.shape[0]}, {tasks.n_tasks})"
        if tasks.mask is not None:
            shapes += "; labels that are missing have none, in a table anything"
    vectors = isinstance(given, Sequence) and not isinstance(given, str) and all(map(_is_vector, given))
    rows = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    if vectors and len(given) not in (tasks.n_tasks, tasks.n_samples, rows):
        raise ModelError(
            f"{tasks.n_tasks} tasks, and the list has {len(given)} vectors; multipliers of {loss.typed} are {shapes}"
        )
    if vectors and len(given) == tasks.n_tasks:
        parts = [read_dense(one, "check_bound: u", ModelError) for one in given]
        for i, (one, n) in enumerate(zip(parts, tasks.counts, strict=True)):
            if len(one) != n:
                raise ModelError(
                    f"task {tasks.task_names[i]!r} has {n} rows, and {len(one)} multipliers are given"
                )
        return np.concatenate(parts)
    u = read_dense(given, "check_bound: u", ModelError)
    if u.shape == (tasks.n_samples,):
        return u
    if tasks.is_shared and u.shape == (tasks.X.shape[0], tasks.n_tasks):
        if tasks.mask is None:
            return u.T.ravel()
        return u.T[tasks.mask.T]
    raise ModelError(f"u has shape {u.shape}; multipliers of {loss.typed} are {shapes}")
