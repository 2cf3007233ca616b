"""A model as formulas, and its symbols explained."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mtldsl.compile.meanings import meaning_of
from mtldsl.compile.typed_latex import TypedLatex
from mtldsl.language.expressions.latex import number_latex
from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.shown.math import words_latex
from mtldsl.shown.panel import Formula, Panel

__all__ = ["formula_of", "latex_of", "panel_of"]

_TIMES = r" \times "


def formula_of(statement: Any, values: Mapping[str, float] | None = None) -> Formula:
    """The objective, then a line a constraint; and what every symbol is. values: of parameters, in place of those that they have now."""
    told = TypedLatex(statement)
    lines = [("minimize", told.objective)]
    for i, constraint in enumerate(told.constraints):
        lines.append(("subject to" if i == 0 else "", constraint))
    return Formula(lines, list(dict.fromkeys(_symbols(statement, told, values or {}))))


def latex_of(statement: Any, where: bool) -> str:
    """See `Statement.latex`."""
    told = TypedLatex(statement)
    body = rf"\min_{{{_unknowns(statement)}}}\quad & {told.objective}"
    for i, constraint in enumerate(told.constraints):
        lead = r"\text{subject to}\quad" if i == 0 else ""
        body += rf" \\ {lead} & {constraint}"
    display = rf"\begin{{aligned}} {body} \end{{aligned}}"
    if not where:
        return display
    items = [rf"  \item ${latex}$: {words_latex(words)}" for latex, words in formula_of(statement).where]
    return "\n".join([rf"\[ {display} \]", "where", r"\begin{itemize}", *items, r"\end{itemize}"])


def panel_of(statement: Any) -> Panel:
    """The formulas, and the model as typed."""
    typed = Panel("As typed", text=str(statement))
    kind = "convex" if statement.is_convex else "not convex"
    return Panel(type(statement).__name__, lead=kind, formula=formula_of(statement), folded=[typed])


def _unknowns(statement: Any) -> str:
    names = [unknown.latex for unknown in [*statement.weights, *statement.learned]]
    return ", ".join([*names, *(["b"] if any(w.intercept for w in statement.weights) else [])])


def _symbols(statement: Any, told: TypedLatex, values: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """(LaTeX, words with $LaTeX$) in the order of the formula."""
    for weights in statement.weights:
        d, q = weights.shape
        columns = f"{q:,} tasks" if q == weights.tasks.n_tasks else f"{q:,} columns"
        yield (
            rf"{weights.latex} \in \mathbb{{R}}^{{{d} \times {q}}}",
            f"the weights, {d:,} features by {columns}",
        )
        if weights.intercept:
            yield rf"b \in \mathbb{{R}}^{{{q}}}", "the intercepts, one a task; nothing penalises them"
    for name, (tasks, latex) in told.data.items():
        low, high = int(tasks.counts.min()), int(tasks.counts.max())
        rows = f"{low:,} rows" if low == high else f"{low:,} to {high:,} rows"
        yield (
            rf"X{name}_i,\; y{name}_i",
            f"the inputs and the labels of task $i$, {rows} of {tasks.n_features:,} features",
        )
        if f"s{name}_{{ij}}" in latex:
            yield rf"s{name}_{{ij}}", "the weight of row $j$ of task $i$"
        if f"n{name}_i" in latex:
            yield (
                rf"n{name}_i",
                "the weights of task $i$'s rows, added up"
                if tasks.is_weighted
                else "the number of task $i$'s rows",
            )
    for parameter in statement.parameters:
        yield (
            rf"{parameter.latex} = {number_latex(values.get(parameter.name, parameter.value))}",
            "a parameter",
        )
    for unknown in statement.learned:
        of = "task similarities" if isinstance(unknown, KernelWeights) else unknown.axis
        yield unknown.latex, f"the {unknown.kind} of {of}, learned beside the weights"
    for name, shape in told.constants:
        yield rf"{name} \in \mathbb{{R}}^{{{_TIMES.join(map(str, shape))}}}", "given numbers"
    for term, latex in zip(statement.objective.terms, told.terms, strict=True):
        own = re.search(r"\\Delta_\{\d+\}", latex)
        words = meaning_of(term.atom)
        yield latex, words.replace(r"$\Delta$", f"${own[0]}$") if own else words
    for constraint, latex in zip(statement.constraints, told.constraints, strict=True):
        atom = getattr(constraint, "atom", None)
        norm = getattr(atom, "of", None)  # of a ball
        if norm is not None:
            yield latex.rpartition(r" \leq ")[0].rpartition(r" \, ")[2], meaning_of(norm)
        elif atom is not None and atom.meaning:
            yield latex, meaning_of(atom)
