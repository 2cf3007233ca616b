"""Which models are one loss beside one kernel regularizer, and that regularizer as an `MKLNorm`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.structures import MKLNorm, TaskKernel
from mtldsl.compile.normal_form import FunctionTerm, LossTerm, NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.system.long_calls import eigh

__all__ = ["KernelForm", "kernel_form"]

#: Quadratics of more tasks than this would need a T x T inverse.
_MOST_TASKS = 2000

#: A quadratic whose smallest eigenvalue is below this, relatively, has no kernel.
_SINGULAR = 1e-12


@dataclass(frozen=True)
class KernelForm:
    """minimize loss + coefficient * norm; `name` is that of the norm's weights, None where the model has none."""

    loss: LossTerm
    norm: MKLNorm
    coefficient: float
    name: str | None


def kernel_form(form: NormalForm) -> KernelForm | str:
    """The form, or one sentence that says why it is none."""
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    loss = facts.loss
    if not loss.atom.separable:
        return f"{loss.typed} is not a sum over samples."
    atom: Any = loss.atom  # separable: such an atom knows its conjugate's parts
    if not atom.entropic and atom.dual_quadratic(_some_labels(loss)) is None:
        return f"the conjugate of {loss.typed} is neither quadratic on an interval nor an entropy."
    if not form.functions:
        return "there is no regularizer whose conjugate is finite."
    for f in form.functions:
        if f.is_constraint:
            return f"{f.typed} is not quadratic in the loss's weights."
    if len(form.functions) == 1 and form.functions[0].atom.weighs_kernels:
        term: Any = form.functions[0]  # it weighs kernels: its atom is an MKLNorm, its weights have names
        return KernelForm(loss, term.atom, term.coefficient, term.names[0])
    return _of_quadratics(form.functions, loss)


def _some_labels(loss: LossTerm) -> np.ndarray:
    """Labels to ask by: whether a conjugate is quadratic does not depend on them, and they may be elsewhere."""
    return loss.tasks.targets if loss.tasks.in_memory else np.ones(1)


@lru_cache(maxsize=8)
def _tasks_alone(T: int) -> MKLNorm:
    """Every form with plain ridges is asked for it, whichever solver takes the form."""
    kernel = TaskKernel("identity", sparse.eye_array(T, format="csr"))
    return MKLNorm((kernel,), about=np.array([1.0]))


def _of_quadratics(functions: tuple[FunctionTerm, ...], loss: LossTerm) -> KernelForm | str:
    """Quadratics 1/2 tr(W L W^T) of the tasks, as the one kernel L^{-1}."""
    T = loss.tasks.n_tasks
    modulus = 0.0
    for f in functions:  # plain ridges, without a T x T matrix
        same = not f.atom.norm and f.atom.finite_dual and f.atom.curvature == f.atom.strong_convexity
        modulus += f.coefficient * f.atom.curvature if same else np.nan
    if np.isfinite(modulus):
        return KernelForm(loss, _tasks_alone(T), modulus, None)
    if T > _MOST_TASKS:
        return f"{functions[0].typed} would need the inverse of a {T} x {T} matrix."
    total = np.zeros((T, T))
    for f in functions:
        L = f.atom.task_quadratic(T)
        if L is None:
            return f"{f.typed} is not quadratic between tasks."
        total += f.coefficient * L
    values, basis = eigh(total)
    if values[0] <= _SINGULAR * values[-1]:
        return "the quadratic penalties are singular: + 1e-6 * ridge(W) would give them an inverse."
    kernel = TaskKernel("inverse", sparse.csr_array(basis / np.sqrt(values)))
    return KernelForm(loss, MKLNorm((kernel,), about=np.array([1.0])), 1.0, None)
