"""The largest of the tasks' losses: a word around a loss."""

from __future__ import annotations

from dataclasses import replace

from mtldsl.errors import ModelError
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.words.learned_argument import short
from mtldsl.tasks import require_in_memory
from mtldsl.values.arguments import complete

__all__ = ["worst_task"]


@complete("write worst_task(logistic_loss(W, tasks, mean=True))")
def worst_task(loss: Objective) -> Objective:
    r"""The largest of the tasks' losses in the place of their sum: max_i loss_i(w_i), which is max over p in the simplex of sum_i p_i loss_i.

    Minimax multi-task learning, also known as group distributionally robust optimization: no task is given up for the others.

    Parameters
    ----------
    loss : one loss that is a sum over samples, such as logistic_loss(W, tasks, mean=True)
        With `mean=True` tasks are compared by their mean losses; else a task of many samples has a large loss. A factor stays a factor.

    Raises
    ------
    ModelError
        Where it is not one loss, not a sum over samples, or of rows that are elsewhere.

    Notes
    -----
    Convex, not smooth. Its multipliers are those of the tasks' losses, each weighed by its share p_i.
    Source: Mehta, Lee and Gray, "Minimax multi-task learning and a generalized loss-compositional paradigm for MTL", NIPS 2012; Sagawa, Koh,
    Hashimoto and Liang, "Distributionally robust neural networks for group shifts", ICLR 2020.

    Examples
    --------
    >>> import numpy as np
    >>> import mtldsl as mtl
    >>> tasks = mtl.Tasks.separate([np.ones((2, 1))] * 2, [np.array([0.0, 0.0]), np.array([4.0, 4.0])])
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.worst_task(mtl.squared_loss(W, tasks, mean=True)) + 10 * mtl.frobenius_norm(W))
    >>> print(problem)
    minimize    worst_task(squared_loss(W, tasks, mean=True)) + 10 * frobenius_norm(W)
    >>> problem.solve().objective
    8.0
    """
    if not isinstance(loss, Objective):
        raise ModelError(
            "what stands inside must be a loss",
            term=f"worst_task({short(loss)})",
            write_instead="write worst_task(squared_loss(W, tasks))",
        )
    typed = f"worst_task({loss.text})"
    if len(loss.terms) != 1 or not loss.terms[0].is_loss:
        raise ModelError(
            "what stands inside must be one loss; other terms are added outside",
            term=typed,
            write_instead="write worst_task(squared_loss(W, tasks)) + 0.1 * ridge(W)",
        )
    (term,) = loss.terms
    assert term.tasks is not None
    if term.worst:
        raise ModelError("the largest of the tasks' losses is one number already", term=typed)
    if not getattr(term.atom, "separable", False):
        raise ModelError(
            f"{term.atom.name} is not a sum over samples, and the largest of such losses over tasks is not in the language",
            term=typed,
            write_instead="take squared_loss, absolute_loss, huber_loss, logistic_loss or hinge_loss",
        )
    require_in_memory(term.tasks, "the largest loss is only known where they are here", typed)
    text, latex = term.atom_text, term.atom_latex.replace(r"\sum_i ", r"\max_i ", 1)
    return Objective([replace(term, worst=True, atom_text=f"worst_task({text})", atom_latex=latex)])
