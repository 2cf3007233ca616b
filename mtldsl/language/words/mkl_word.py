"""The word `mkl_norm`: its similarities become kernels between the tasks of W, and theta an unknown, a given array, or p."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mtldsl.atoms.structures import MKLNorm, TaskKernel
from mtldsl.atoms.structures.mkl_norm import checked_weights
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constants import constant_text
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.scalar import ONE, Scalar
from mtldsl.language.spelling import declared_in, made
from mtldsl.language.unknowns.kernel_weights import KernelWeights, checked_exponent
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import shown
from mtldsl.language.unknowns.task_similarity import TaskSimilarity
from mtldsl.values.number import as_float, quoted

__all__ = ["mkl_norm"]

#: Similarities are printed one by one up to this many characters.
_SHOWN = 80


@dataclass(frozen=True)
class _Sides:
    """What the rows and the columns of an expression are called."""

    feature_names: tuple[str, ...]
    task_names: tuple[str, ...]
    views: dict[str, slice]

    @property
    def n_tasks(self) -> int:
        return len(self.task_names)


def mkl_norm(W: Affine, similarities, theta=None, p=None) -> Objective:
    similarities = [similarities] if isinstance(similarities, TaskSimilarity) else similarities
    typed = _typed(W, similarities, theta, p)
    if not isinstance(similarities, (list, tuple)) or not similarities:
        hint = "; theta comes third" if isinstance(similarities, (LearnedUnknown, int, float)) else ""
        raise ModelError(f"similarities must be a list such as [union(), individual()]{hint}", term=typed)
    for one in similarities:
        if callable(one):
            name = getattr(one, "__name__", "union")
            raise ModelError(
                f"{name} is a helper that makes a similarity", term=typed, write_instead=f"write {name}()"
            )
        if not isinstance(one, TaskSimilarity):
            raise ModelError(
                f"{shown(one)} is not a similarity of tasks",
                term=typed,
                write_instead="write union(), individual(), tree(parents), ..., and a matrix as "
                "from_kernel(R) or from_similarity(Q)",
            )
    if (theta is None) == (p is None):
        raise ModelError(
            "give either theta, KernelWeights that the model bounds by p_norm(theta, 2) <= 1, or p, as in "
            "mkl_norm(W, similarities, p=2)" + declared_in("KernelWeights", "theta"),
            term=typed,
        )
    sides = _sides(W)
    kernels = tuple(kernel for one in similarities for kernel in one.kernels(sides, typed))
    kernels = _told_apart(kernels)
    atom = MKLNorm(kernels, 2.0 if p is None else checked_exponent(p, typed))
    problem = atom.check(W.shape)
    if problem:
        raise ModelError(f"{problem}", term=typed)
    learned, symbols = (), None
    if theta is not None:
        if isinstance(theta, KernelWeights) and theta.similarities:
            number = sum(len(one.kernels(sides, typed)) for one in theta.similarities)
            if number != len(kernels):
                raise ModelError(
                    f"{theta.text} was made for other similarities, which are {number} kernels, and these are {len(kernels)}",
                    term=typed,
                    write_instead="write KernelWeights(similarities) with these",
                )
        theta = _checked_theta(theta, len(kernels), typed)
        learned = (theta,)
        symbols = {"theta": theta.latex if isinstance(theta, KernelWeights) else r"\theta"}
    return Objective([Term(ONE, atom, W, typed, atom.latex(W.latex, symbols), learned=learned)])


def _checked_theta(theta, n: int, typed: str) -> KernelWeights | np.ndarray:
    if isinstance(theta, KernelWeights):
        if theta.number not in (None, n):
            raise ModelError(
                f"{theta.text} holds {theta.number} weights, but the similarities are {n} kernels (helpers such as individual() "
                f"and tree(...) stand for several)",
                term=typed,
                write_instead=f"write KernelWeights({n}), or KernelWeights(similarities)",
            )
        return theta
    if isinstance(theta, (Scalar, Affine, Objective, LearnedUnknown, str)):
        raise ModelError(
            "theta must be "
            + made("KernelWeights", n)
            + f", or an array of {n} given weights; this is {shown(theta)}",
            term=typed,
        )
    if isinstance(theta, (int, float)) and not isinstance(theta, bool):
        raise ModelError(
            f"the third argument is theta, the weights; the exponent has a name: write p={quoted(theta)}",
            term=typed,
        )
    return checked_weights(theta, n, typed)


def _typed(W: Affine, similarities, theta, p) -> str:
    parts = [W.text, _list_text(similarities)]
    if theta is not None:
        parts.append(getattr(theta, "text", None) or _short(theta))
    if p is not None:
        number = as_float(p)
        parts.append(f"p={quoted(p) if number is None else f'{number:g}'}")
    return f"mkl_norm({', '.join(parts)})"


def _list_text(similarities) -> str:
    if not isinstance(similarities, (list, tuple)):
        return shown(similarities)
    texts = [
        one.text if isinstance(one, TaskSimilarity) else getattr(one, "__name__", None) or shown(one)
        for one in similarities
    ]
    whole = f"[{', '.join(texts)}]"
    return whole if len(whole) <= _SHOWN else f"[{texts[0]}, ... {len(texts)} similarities]"


def _short(value) -> str:
    try:
        return constant_text(value)
    except (TypeError, ValueError):
        return shown(value)


def _sides(W: Affine) -> _Sides:
    """Names of rows and columns: those of features and tasks where the expression keeps them, else their numbers."""
    part, (n_rows, n_columns) = W.parts[0], W.shape
    tasks = part.weights.tasks
    kept = part.left is None
    rows = tuple(tasks.feature_names) if kept else tuple(f"row{j}" for j in range(n_rows))
    columns = tuple(tasks.task_names) if part.right is None else tuple(f"column{t}" for t in range(n_columns))
    return _Sides(rows, columns, getattr(tasks, "views", {}) if kept else {})


def _told_apart(kernels: tuple[TaskKernel, ...]) -> tuple[TaskKernel, ...]:
    """Weights need names of their own: the second of a name is called "name (2)"."""
    seen: dict[str, int] = {}
    found = []
    for kernel in kernels:
        count = seen[kernel.name] = seen.get(kernel.name, 0) + 1
        found.append(kernel if count == 1 else replace(kernel, name=f"{kernel.name} ({count})"))
    return tuple(found)
