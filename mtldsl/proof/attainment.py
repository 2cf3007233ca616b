r"""Models without a minimiser: a direction in which the objective falls for ever, found by a linear program and proven here.

The logistic and the exponential loss of a sample fall towards zero as its margin y z grows, and reach it nowhere. Where weights D give

    s_j <x_j, D> >= 0  for every sample of a task,  > 0 for one whose loss falls for ever        (s_j: the side to which the loss falls)

and no penalty or constraint charges for D, F(W + t D) falls strictly in t at every W: no weights are best. Samples whose loss rises on
both sides (squares, a Poisson count above zero) ask for <x_j, D> = 0. Hinges have minimisers; beside such losses they take part like them.
Signs are proven in float64 where a margin is larger than its rounding, else in rational numbers, which float64 numbers are.

Beside a bounded penalty that is not convex (a capped trace norm, a bound on the rank) D is W itself on the tasks that it separates:
singular values above the cap grow along that ray, and cost no more. Then nothing is said of other weights than those on the ray.

Source: Albert and Anderson, "On the existence of maximum likelihood estimates in logistic regression models", Biometrika 71 (1984);
Rockafellar, "Convex analysis" (1970), Theorem 8.6 (directions of recession).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, NormalForm
from mtldsl.proof.separation import OneTask, rows_of, span_of

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
    return not form.elsewhere and any(_takes(loss) for loss in form.losses)


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
        low, high = _allowed(form, block.name)
        b_low, b_high = _allowed(form, name) if name is not None else (np.zeros((1, block.shape[1])),) * 2
        if not np.any(low < high) and all(loss.atom.labels == "sign" for loss in losses):
            continue  # an intercept alone separates no task with labels of both classes
        predictions = [loss.predictions(blocks) for loss in losses]
        for i in range(block.shape[1]):
            rows = [rows_of(loss, z, i) for loss, z in zip(losses, predictions, strict=True)]
            if max((row.farthest for row in rows), default=0.0) < _FAR:
                continue
            task = OneTask(rows, [name in loss.intercepts for loss in losses])
            ends = np.append(low[:, i], b_low[0, i]), np.append(high[:, i], b_high[0, i])
            own = np.append(blocks[block.name][:, i], 0.0 if name is None else blocks[name][0, i])
            D = task.direction(own, *ends, others=is_convex, largest=largest)
            if D is not None:
                direction[block.name][:, i] = D[:-1]
                if name is not None:
                    direction[name][0, i] = D[-1]
                tasks.append(str(losses[0].tasks.task_names[i]))
                completely.append(task.is_complete(D))
                task.move(D, [at_end[id(loss)] for loss in losses], [span_of(loss, i) for loss in losses])
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
    return plain and loss.atom.labels != "indicators"


def _allowed(form: NormalForm, block: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the entries of D within which no function charges for it: 0 or infinite ones."""
    shape = form.shapes[block]
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    for f in form.functions:
        if not f.atom.convex and f.atom.is_bounded:
            continue  # for `_is_free_ray`
        interval: Any = f.atom.interval if f.is_constraint and f.map.identity_of == block else None
        if interval is not None:
            low = np.where(np.broadcast_to(np.isfinite(interval[0]), shape), np.maximum(low, 0.0), low)
            high = np.where(np.broadcast_to(np.isfinite(interval[1]), shape), np.minimum(high, 0.0), high)
            continue
        touched = _touched(f, block, shape)
        low, high = np.where(touched, 0.0, low), np.where(touched, 0.0, high)
    return low, high


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
