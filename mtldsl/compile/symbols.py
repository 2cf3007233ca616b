"""A model as formulas, and its symbols explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.shown.math import text_latex
from mtldsl.shown.panel import Formula, Panel

__all__ = ["formula_of", "latex_of", "panel_of"]


def formula_of(statement: Any, values: Mapping[str, float] | None = None) -> Formula:
    """The objective, then a line a constraint; and what every symbol is. values: of parameters, in place of those that they have now."""
    lines = [("minimize", statement.objective.latex)]
    for i, constraint in enumerate(statement.constraints):
        lines.append(("subject to" if i == 0 else "", constraint.latex))
    return Formula(lines, list(dict.fromkeys(_symbols(statement, values or {}))))


def latex_of(statement: Any, where: bool) -> str:
    """See `Statement.latex`."""
    body = rf"\min_{{{_unknowns(statement)}}}\quad & {statement.objective.latex}"
    for i, constraint in enumerate(statement.constraints):
        lead = r"\text{subject to}\quad" if i == 0 else ""
        body += rf" \\ {lead} & {constraint.latex}"
    display = rf"\begin{{aligned}} {body} \end{{aligned}}"
    if not where:
        return display
    items = [rf"  \item ${latex}$: {text_latex(words)}" for latex, words in formula_of(statement).where]
    return "\n".join([rf"\[ {display} \]", "where", r"\begin{itemize}", *items, r"\end{itemize}"])


def panel_of(statement: Any) -> Panel:
    """The formulas, and the model as typed."""
    typed = Panel("As typed", text=str(statement))
    kind = "convex" if statement.is_convex else "not convex"
    return Panel(type(statement).__name__, lead=kind, formula=formula_of(statement), folded=[typed])


def _unknowns(statement: Any) -> str:
    names = [unknown.latex for unknown in [*statement.weights, *statement.learned]]
    return ", ".join([*names, *(["b"] if any(w.intercept for w in statement.weights) else [])])


def _symbols(statement: Any, values: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """(LaTeX, words) in the order of the formula."""
    for weights in statement.weights:
        d, q = weights.shape
        columns = f"{q:,} tasks" if q == weights.tasks.n_tasks else f"{q:,} columns"
        yield (
            rf"{weights.latex} \in \mathbb{{R}}^{{{d} \times {q}}}",
            f"the weights, {d:,} features by {columns}",
        )
        if weights.intercept:
            yield rf"b \in \mathbb{{R}}^{{{q}}}", "the intercepts, one a task; nothing penalises them"
    tasks = statement.first_loss.data
    assert tasks is not None
    low, high = int(tasks.counts.min()), int(tasks.counts.max())
    rows = f"{low:,} rows" if low == high else f"{low:,} to {high:,} rows"
    yield r"X_i,\; y_i", f"the inputs and the labels of task i, {rows} of {tasks.n_features:,} features"
    for parameter in statement.parameters:
        yield rf"{parameter.latex} = {values.get(parameter.name, parameter.value):g}", "a parameter"
    for unknown in statement.learned:
        of = "task similarities" if isinstance(unknown, KernelWeights) else unknown.axis
        yield unknown.latex, f"the {unknown.kind} of {of}, learned beside the weights"
    for term in statement.objective.terms:
        yield term.atom_latex, _phrase(term.atom.summary())


def _phrase(sentence: str) -> str:
    """
    >>> _phrase("The trace norm.")
    'the trace norm'
    """
    return sentence[:1].lower() + sentence[1:].rstrip(".")
