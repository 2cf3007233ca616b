r"""Models without a minimiser: a direction in which the objective falls for ever, found by a linear program and proven here.

The logistic and the exponential loss of a sample fall towards zero as its margin y z grows, and reach it nowhere. Where weights D give

    s_j <x_j, D> >= 0  for every sample of a task,  > 0 for one whose loss falls for ever        (s_j: the side to which the loss falls)

and no penalty or constraint charges for D, F(W + t D) falls strictly in t at every W: no weights are best. Tasks that a penalty between them
leaves common directions alone (a mean, a graph, a chain) are asked together. Samples whose loss rises on
both sides (squares, a Poisson count above zero) ask for <x_j, D> = 0. Hinges have minimisers; beside such losses they take part like them.
Signs are proven in float64 where a margin is larger than its rounding, else in rational numbers, which float64 numbers are.

Beside a bounded penalty that is not convex (a capped trace norm, a bound on the rank) D is W itself on the tasks that it separates:
singular values above the cap grow along that ray, and cost no more. Then nothing is said of other weights than those on the ray.

Source: Albert and Anderson, "On the existence of maximum likelihood estimates in logistic regression models", Biometrika 71 (1984);
Rockafellar, "Convex analysis" (1970), Theorem 8.6 (directions of recession).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.proof.free_directions import is_between_tasks, uncharged_kinds
from mtldsl.proof.separation import Group, Way, rows_of, span_of, ways_of

__all__ = ["Unattained", "falls_for_ever", "unattained"]

#: Margins above this are those of weights that may run away: the logistic loss there is below 2 %. A certificate of some thousand samples may
#: end a run at twice this margin.
_FAR = 4.0

#: Numbers of a task's inputs up to which a linear program is solved, where a run ended without a certificate; and where it may be well, and
#: the program must cost next to nothing (a second at 5,000 x 50).
_LARGEST, _IN_PASSING = 4_000_000, 10_000

#: A multiple of the weights that stands for all of them: singular values only grow on the way there.
_FARTHER, _EQUAL = 1e6, 1e-9


@dataclass(frozen=True, eq=False)
class Unattained:
    """No weights attain the infimum.

    tasks      names of the tasks that are separated
    completely of each, whether all samples are: then its loss falls to zero
    direction  D by block, zero on the other tasks: the objective falls for ever along W + t D
    everywhere whether that is so from every W (a convex model), or from these weights on
    limit      what the objective falls to along that ray from the weights found: the infimum is at most that
    """

    tasks: tuple[str, ...]
    completely: tuple[bool, ...]
    direction: Blocks
    everywhere: bool
    limit: float = np.inf

    def __str__(self) -> str:
        names = ", ".join(map(repr, self.tasks[:5])) + (", ..." if len(self.tasks) > 5 else "")
        one = len(self.tasks) == 1
        if all(self.completely):
            what = f"{'its' if one else 'their'} loss falls towards 0 for ever"
        else:
            what = f"{'its' if one else 'their'} loss falls for ever as weights grow"
        where = "" if self.everywhere else " along the ray through these weights"
        return (
            f"no weights attain the infimum: task{'' if one else 's'} {names} can be separated, and {what}{where}; "
            f"the infimum is at most {self.limit:.6g}; "
            "add a term that grows with the weights, such as + 1e-3 * ridge(W), or a bound such as frobenius_norm(W) <= 10"
        )


def falls_for_ever(form: NormalForm) -> bool:
    """Whether a loss does; all that it takes to ask `unattained` at all."""
    return form.in_memory and any(_takes(loss) for loss in form.losses)


def unattained(form: NormalForm, blocks: Blocks, in_passing: bool = False) -> Unattained | None:
    """A proof that the model has no minimiser, or None where there is none to be found from these weights.

    in_passing : larger tasks are tried with their own weights as the direction alone, and with no linear program
    """
    if not falls_for_ever(form):
        return None
    direction, tasks, completely = form.zeros(), [], []
    at_end = {id(loss): np.array(loss.predictions(blocks)) for loss in form.losses}
    largest = _IN_PASSING if in_passing else _LARGEST
    is_convex = form.is_convex
    for block in form.weight_blocks:
        losses = [loss for loss in form.losses if block.name in loss.map.blocks]
        intercepts = {name for loss in losses for name in loss.intercepts}
        plain = all(_is_plain(loss, block.name) for loss in losses)
        if not any(map(_takes, losses)) or not plain or len(intercepts) > 1:
            continue
        name = next(iter(intercepts), None)
        charged, low, high = _allowed(form, block.name)
        ways = form.remembered.get(("ways", block.name))
        if ways is None:
            ways = ways_of(uncharged_kinds(form, block.name, charged))
            form.remembered["ways", block.name] = ways
        taken, b_low, b_high = (True, 0.0, 0.0) if name is None else _allowed(form, name)
        b_low, b_high = np.where(taken, 0.0, b_low), np.where(taken, 0.0, b_high)
        if not ways and all(loss.atom.labels == "sign" for loss in losses):
            continue  # an intercept alone separates no task with labels of both classes
        predictions = [loss.predictions(blocks) for loss in losses]
        for own_tasks, own_ways in _together(ways, block.shape[1]):
            if len(own_tasks) > 1 and not is_convex:
                continue
            units = [(loss, z, i) for i in own_tasks for loss, z in zip(losses, predictions, strict=True)]
            rows = [rows_of(*unit) for unit in units]
            if max((row.farthest for row in rows), default=0.0) < _FAR:
                continue
            group = Group(
                own_tasks,
                own_ways,
                rows,
                [i for *_, i in units],
                [name in loss.intercepts for loss, *_ in units],
            )
            ends = [way.ends(low, high) for way in own_ways]
            own = [way.own(blocks[block.name]) for way in own_ways]
            beside = np.zeros((3, len(own_tasks)))
            if name is not None:
                beside = np.stack(
                    [
                        np.broadcast_to(one, blocks[name].shape)[0, own_tasks]
                        for one in (b_low, b_high, blocks[name])
                    ]
                )
            D = group.direction(
                np.concatenate([*own, beside[2]]),
                np.concatenate([*(one for one, _ in ends), beside[0]]),
                np.concatenate([*(one for _, one in ends), beside[1]]),
                others=is_convex,
                largest=largest,
            )
            if D is None:
                continue
            parts = np.split(D, np.cumsum([len(one) for one in own]))
            for way, part in zip(own_ways, parts, strict=False):
                direction[block.name][np.ix_(way.rows, way.tasks)] += np.outer(part, way.values)
            if name is not None:
                direction[name][0, own_tasks] = parts[-1]
            found = group.separated(D)
            tasks += [str(losses[0].tasks.task_names[i]) for i, _ in found]
            completely += [complete for _, complete in found]
            group.move(
                D, [at_end[id(loss)] for loss, *_ in units], [span_of(loss, i) for loss, _, i in units]
            )
    if not tasks or not (is_convex or _is_free_ray(form, blocks, direction)):
        return None
    left = sum(loss.value(z) for loss, z in zip(form.losses, at_end.values(), strict=True))
    charged = sum(f.value(blocks) for f in form.functions) + form.constant
    return Unattained(tuple(tasks), tuple(completely), direction, is_convex, float(left + charged))


# ---------------------------------------------------------------------------------------------- what is allowed


def _takes(loss) -> bool:
    return loss.atom.labels != "indicators" and loss.atom.falls(loss.tasks.targets) is not None


def _is_plain(loss, block: str) -> bool:
    """Whether its predictions move with a block as they do with weights: itself, or a sum like L + S."""
    own = [entry for entry in loss.map.entries if entry.block == block]
    plain = len(own) == 1 and own[0].left is None and own[0].right is None and own[0].coefficient > 0.0
    return plain and loss.atom.labels != "indicators" and (own[0].coefficient == 1.0 or not loss.intercepts)


def _together(ways: list[Way], n_tasks: int) -> Iterator[tuple[list[int], list[Way]]]:
    """Tasks that have ways in common, each group with its ways."""
    links = sparse.lil_array((n_tasks, n_tasks), dtype=bool)
    for way in ways:
        if way.tasks.size > 1:
            links[way.tasks[0], way.tasks[1:]] = True
    count, label = connected_components(links.tocsr(), directed=False)
    tasks: list[list[int]] = [[] for _ in range(count)]
    own: list[list[Way]] = [[] for _ in range(count)]
    for i, k in enumerate(label.tolist()):
        tasks[k].append(i)
    for way in ways:
        own[label[way.tasks[0]]].append(way)
    return zip(tasks, own, strict=True)


def _allowed(form: NormalForm, block: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(entries that a function charges for, beside those between tasks; low, high: bounds on the entries of D within which
    none does, 0 or infinite ones)."""
    shape = form.shapes[block]
    low, high, charged = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, bool)
    for f in form.functions:
        if not f.atom.convex and f.atom.is_bounded:
            continue  # for `_is_free_ray`
        interval: Any = f.atom.interval if f.is_constraint and f.map.identity_of == block else None
        if interval is not None:
            low = np.where(np.broadcast_to(np.isfinite(interval[0]), shape), np.maximum(low, 0.0), low)
            high = np.where(np.broadcast_to(np.isfinite(interval[1]), shape), np.minimum(high, 0.0), high)
        elif not is_between_tasks(f, block):
            charged |= _touched(f, block, shape)
    return charged, low, high


def _touched(f: FunctionTerm, block: str, shape: tuple[int, int]) -> np.ndarray:
    """The entries that the function's argument depends on."""
    total = np.zeros(shape)
    for entry in f.map.entries:
        if entry.block == block:
            ones: Any = np.ones(f.map.shape)
            ones = ones if entry.left is None else abs(entry.left).T @ ones
            total = total + (ones if entry.right is None else ones @ abs(entry.right).T)
    return total > 0.0


def _is_free_ray(form: NormalForm, blocks: Blocks, direction: Blocks) -> bool:
    """Whether bounded functions are constant along W + t D, D being W on some tasks: no singular value falls on the way."""
    end = {name: blocks[name] + _FARTHER * direction[name] for name in blocks}
    for f in form.functions:
        if f.atom.convex or not f.atom.is_bounded:
            continue
        if (
            f.map.offset is not None
            or len(f.map.entries) != 1
            or not f.map.multiple_of(f.map.entries[0].block)
        ):
            return False
        here, there = f.map.forward(blocks), f.map.forward(end)
        if f.is_constraint:
            bound: Any = f.atom
            if bound.violation(here) > _EQUAL * np.linalg.norm(here):
                return False
        elif f.atom.value(there) > f.atom.value(here) * (1.0 + _EQUAL):
            return False
    return True
