"""The LaTeX of a model's parts, in which what they name alike by themselves is told apart."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mtldsl.language.expressions.objective import Objective

__all__ = ["TypedLatex"]

_ARRAY = re.compile(r"\\mathrm\{array\}\(([\d, ]*)\)")
_DATA = re.compile(r"(?<![a-zA-Z\\{])([Xysn])_(?=i(?![a-zA-Z])|\{ij\})")
#: Symbols of constants, the first that the model does not have: of vectors, and of matrices.
_FREE = {"vector": "chev", "matrix": "CHEV"}
_DELTA = r"\Delta("


class TypedLatex:
    """What a model as typed is made of.

    objective, constraints : LaTeX;  terms : of every term without its coefficient
    data      : {what stands after X and y: (tasks, LaTeX of the terms on them)}; "" where there is one of them, else ^{(1)}, ^{(2)}, ...
    constants : (symbol, shape) of every array: c and C, numbered where there are several
    """

    def __init__(self, statement: Any):
        terms = list(statement.objective.terms)
        parts = [term.atom_latex for term in terms]
        self.data: dict[str, tuple[Any, str]] = {}
        parts = self._with_own_data(terms, parts)
        of_metrics = [k for k, latex in enumerate(parts) if _DELTA in latex]
        if len(of_metrics) > 1:
            for number, k in enumerate(of_metrics, 1):
                parts[k] = parts[k].replace(_DELTA, rf"\Delta_{{{number}}}(")
        limits = [constraint.latex for constraint in statement.constraints]
        self.constants: list[tuple[str, list[str]]] = []
        taken = {one.latex for one in (*statement.weights, *statement.learned, *statement.parameters)}
        self._symbols = {
            kind: next((one for one in few if one not in taken), few[0]) for kind, few in _FREE.items()
        }
        several = {
            kind: n > 1
            for kind, n in _counted(kind for one in parts + limits for kind in _kinds(one)).items()
        }
        self.terms = [self._with_constants(one, several) for one in parts]
        self.constraints = [self._with_constants(one, several) for one in limits]
        self.objective = Objective(
            [replace(term, atom_latex=latex) for term, latex in zip(terms, self.terms, strict=True)]
        ).latex

    def _with_own_data(self, terms: list, parts: list[str]) -> list[str]:
        kinds: list[Any] = []
        for term in terms:
            if term.tasks is not None and not any(term.tasks is tasks for tasks in kinds):
                kinds.append(term.tasks)
        found = list(parts)
        for number, tasks in enumerate(kinds, 1):
            name = f"^{{({number})}}" if len(kinds) > 1 else ""
            own = [k for k, term in enumerate(terms) if term.tasks is tasks]
            if name:
                for k in own:
                    found[k] = _DATA.sub(lambda at, name=name: f"{at[1]}{name}_", found[k])
            self.data[name] = tasks, " ".join(found[k] for k in own)
        return found

    def _with_constants(self, latex: str, several: dict[str, bool]) -> str:
        def symbol(found: re.Match) -> str:
            shape = found[1].split(", ")
            kind = _kind(shape)
            name = self._symbols[kind]
            if several[kind]:
                name += f"_{{{1 + sum(one.startswith(name) for one, _ in self.constants)}}}"
            self.constants.append((name, shape))
            return name

        return _ARRAY.sub(symbol, latex)


def _kinds(latex: str) -> list[str]:
    return [_kind(shape.split(", ")) for shape in _ARRAY.findall(latex)]


def _kind(shape: list[str]) -> str:
    return "matrix" if len(shape) > 1 else "vector"


def _counted(kinds: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind in kinds:
        found[kind] = found.get(kind, 0) + 1
    return found
