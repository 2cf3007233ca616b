"""The LaTeX of a loss in a model: of the predictions of every task, or of all scores of a row."""

from __future__ import annotations

from mtldsl.atoms.function import Loss
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.weights import Weights

__all__ = ["loss_latex"]


def loss_latex(atom: Loss, W: Affine, *, with_intercept: bool, weighted: bool, mean: bool) -> str:
    """A sum over tasks i of a function of X_i w_i; a sum over rows j of one of x_j^T w_k for all k where the tasks are classes."""
    if atom.labels == "classes":
        formula = atom.latex(_row_latex(W, with_intercept))
        formula = formula.replace(r"\sum_j ", r"\sum_j s_j ", 1) if weighted else formula
        return (r"\tfrac1n " if mean else "") + formula
    of_a_task = atom.weighted_latex if weighted else atom.latex
    share = r"\tfrac1{n_i} " if mean else ""
    return rf"\sum_i {share}{of_a_task(_task_latex(W, with_intercept))}"


def _task_latex(W: Affine, with_intercept: bool) -> str:
    """X_i w_i for a matrix W (its columns are the w_i); X_i (L + S)_i for an expression."""
    column = _column(W) or _in_parentheses(W)
    return f"X_i {column}_i" + (r" + b_i" if with_intercept else "")


def _row_latex(W: Affine, with_intercept: bool) -> str:
    """What an index of a class follows: x_j^T w, x_j^T (L + S), and with an intercept (x_j^T W + b)."""
    if with_intercept:
        return rf"(x_j^\top {W.latex if W.precedence >= 3 else f'({W.latex})'} + b)"
    return rf"x_j^\top {_column(W) or _in_parentheses(W)}"


def _column(W: Affine) -> str | None:
    """The small letter of a matrix of one letter, but for b, X and y, which are taken."""
    if isinstance(W, Weights) and len(W.name) == 1 and W.name.lower() not in "bxy":
        return W.name.lower()
    return None


def _in_parentheses(W: Affine) -> str:
    return f"({W.latex})" if W.precedence < 3 or "_" in W.latex else W.latex
