"""A model as typed: an objective, its constraints, and the normal form that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mtldsl.atoms.matrix_function import Atom
from mtldsl.data.tasks import Tasks
from mtldsl.display.displayable import Displayable
from mtldsl.display.math import words_latex
from mtldsl.display.sections import Formula, Panel
from mtldsl.errors import ModelError
from mtldsl.language.constraints import Constraint, RangeConstraint
from mtldsl.language.learned_unknowns import KernelWeights, LearnedUnknown
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import Parameter, number_latex
from mtldsl.language.substitution import TaskPartition, shares_of
from mtldsl.language.weights import Weights
from mtldsl.normal_form.canonicalize import (
    check_model,
    learned_of,
    on_weights,
    parameters_of,
    to_normal_form,
    weights_of,
)
from mtldsl.normal_form.form import NormalForm
from mtldsl.utils.caching import cached_property
from mtldsl.utils.validation import as_flag, as_float

# --------------------------------------------------------------------------------------------------------------
# What an atom is, in a few words with $LaTeX$, for the list below a formula.


def meaning_of(atom: Atom) -> str:
    """Words with $LaTeX$: the atom's `meaning` with its parameters in it, or the beginning of its documentation.

    >>> from mtldsl.atoms.losses import QuantileLoss
    >>> meaning_of(QuantileLoss(q=0.9))
    'the quantile loss, $\\\\rho_{0.9}(r) = \\\\max(0.9\\\\, r,\\\\, (0.9 - 1)\\\\, r)$'
    """
    words = _own_meaning(type(atom)) or _beginning(atom.summary())
    words = re.sub(r"<(\w+)>", lambda field: _number(getattr(atom, field[1])), words)
    return words + _weights(getattr(atom, "weights", None)) + _metrics(getattr(atom, "metric", None))


def _own_meaning(cls: type[Atom]) -> str:
    """Return what the class says of itself, and not of one that it is made from under another name."""
    of = next((one for one in cls.__mro__ if "meaning" in vars(one)), None)
    return cls.meaning if of is not None and getattr(of, "name", "") == cls.name else ""


def _beginning(summary: str) -> str:
    """
    >>> _beginning("The Ky Fan norm: the sum of the k largest singular values. Source: Fan."), _beginning("Sizes; of all.")
    ('the Ky Fan norm', 'Sizes; of all')
    """
    words = re.split(r"[:.](?:\s|$)", summary, maxsplit=1)[0].strip()
    words = re.sub(r"^(The|A|An)\b", lambda article: article[0].lower(), words)
    return words.replace("$", "").strip() or "a term of one's own"


def _number(value: Any) -> str:
    number = as_float(value)
    return str(value) if number is None else number_latex(number)


def _weights(weights: Any) -> str:
    if weights is None:
        return ""
    low, high = float(np.min(weights)), float(np.max(weights))
    if low == high:
        return f", each with the weight $a = {number_latex(low)}$"
    return f", with weights $a$ from ${number_latex(low)}$ to ${number_latex(high)}$"


def _metrics(metric: Any) -> str:
    if metric is None:
        return ""
    if not isinstance(metric, Iterable):
        return rf"; $\Delta$ is {meaning_of(metric)}"
    return r"; $\Delta$ is for every task another: " + ", ".join(dict.fromkeys(map(meaning_of, metric)))


# --------------------------------------------------------------------------------------------------------------
# The LaTeX of a model's parts, in which what they name alike by themselves is told apart.

_ARRAY = re.compile(r"\\mathrm\{array\}\(([\d, ]*)\)")
_DATA = re.compile(r"(?<![a-zA-Z\\{])([Xysn])_(?=i(?![a-zA-Z])|\{ij\})")
#: Symbols of constants, the first that the model does not have: of vectors, and of matrices.
_FREE = {"vector": "chev", "matrix": "CHEV"}
_DELTA = r"\Delta("


class TypedLatex:
    """Parts of a model as typed.

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
        kinds = [_kind(shape.split(", ")) for one in parts + limits for shape in _ARRAY.findall(one)]
        several = {kind: kinds.count(kind) > 1 for kind in kinds}
        self.terms = [self._with_constants(one, several) for one in parts]
        self.constraints = [self._with_constants(one, several) for one in limits]
        self.objective = Objective(
            [replace(term, atom_latex=latex) for term, latex in zip(terms, self.terms, strict=True)]
        ).latex

    def _with_own_data(self, terms: list, parts: list[str]) -> list[str]:
        kinds = list(dict.fromkeys(term.tasks for term in terms if term.tasks is not None))
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


def _kind(shape: list[str]) -> str:
    return "matrix" if len(shape) > 1 else "vector"


# --------------------------------------------------------------------------------------------------------------
# A model as formulas, and its symbols explained.

_TIMES = r" \times "


def formula_of(statement: Any, values: Mapping[str, float] | None = None) -> Formula:
    """The objective, then a line a constraint; and what every symbol is. values: of parameters, in place of those that they have now."""
    told = TypedLatex(statement)
    lines = [("minimize", told.objective)]
    for i, constraint in enumerate(told.constraints):
        lines.append(("subject to" if i == 0 else "", constraint))
    return Formula(lines, list(dict.fromkeys(_symbols(statement, told, values or {}))))


def _symbols(statement: Any, told: TypedLatex, values: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """(LaTeX, words with $LaTeX$) in the order of the formula."""
    for weights in statement.weights:
        d, q = weights.shape
        columns = f"{q:,} tasks" if q == weights.tasks.n_tasks else f"{q:,} columns"
        yield (
            rf"{weights.latex} \in \mathbb{{R}}^{{{d} \times {q}}}",
            f"the weights that all tasks share, {d:,} features"
            if weights.shared
            else f"the weights, {d:,} features by {columns}",
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
        words = meaning_of(term.typed_atom)
        yield latex, words.replace(r"$\Delta$", f"${own[0]}$") if own else words
    for constraint, latex in zip(statement.constraints, told.constraints, strict=True):
        atom = getattr(constraint, "atom", None)
        norm = getattr(atom, "of", None)  # of a ball
        if norm is not None:
            typed = constraint.tree.operands[1] if constraint.tree.name == "ball" else norm
            yield latex.rpartition(r" \leq ")[0].rpartition(r" \, ")[2], meaning_of(typed)
        elif atom is not None and atom.meaning:
            yield latex, meaning_of(atom)


def statement_text(objective: str, constraints: Iterable[str]) -> str:
    """The statement as it is printed: the objective, then a line a constraint."""
    lines = [f"{'' if i else 'subject to':<12}{text}" for i, text in enumerate(constraints)]
    return "\n".join([f"minimize    {objective}", *lines])


class Statement(Displayable):
    """Model as typed, before anybody solves or checks it. ModelError where it is not convex or not well formed."""

    _unlisted = frozenset(["first_loss", "form", "shares"])

    def __init__(self, objective: Objective, constraints: list[Constraint | RangeConstraint]):
        check_model(objective, constraints)
        self.objective, self.constraints = objective, tuple(constraints)
        self._known: dict[Term, tuple] = {}
        self._made: tuple[tuple[float, ...], NormalForm] | None = None
        self._remembered: dict[tuple, dict] = {}

    def __getstate__(self) -> dict:
        """Without what its forms have found out."""
        return self.__dict__ | {"_remembered": {}}

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return statement_text(self.objective.text, [constraint.text for constraint in self.constraints])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}\n{self}>"

    def latex(self, where: bool = False) -> str:
        r"""The model in LaTeX's math mode (amsmath's `aligned`, without dollars around it).

        where : a displayed formula, and below it a list that says what every symbol is, as text for a paper

        >>> import numpy as np, mtldsl as mtl
        >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
        >>> W = mtl.Weights(tasks)
        >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.Parameter(0.5) * mtl.l21_norm(W))
        >>> print(problem.latex())
        \begin{aligned} \min_{W}\quad & \sum_i \tfrac12\|X_i w_i-y_i\|_2^2 + \lambda \, \|W\|_{2,1} \end{aligned}
        """
        where, told = as_flag(where, "latex(where", ModelError), TypedLatex(self)
        names = [unknown.latex for unknown in [*self.weights, *self.learned]]
        names += ["b"] if any(w.intercept for w in self.weights) else []
        body = rf"\min_{{{', '.join(names)}}}\quad & {told.objective}"
        for i, constraint in enumerate(told.constraints):
            lead = r"\text{subject to}\quad" if i == 0 else ""
            body += rf" \\ {lead} & {constraint}"
        display = rf"\begin{{aligned}} {body} \end{{aligned}}"
        if not where:
            return display
        items = [rf"  \item ${latex}$: {words_latex(words)}" for latex, words in formula_of(self).where]
        return "\n".join([rf"\[ {display} \]", "where", r"\begin{itemize}", *items, r"\end{itemize}"])

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"

    def _panel(self) -> Panel:
        typed = Panel("As typed", text=str(self))
        kind = "convex" if self.is_convex else "not convex"
        return Panel(type(self).__name__, lead=kind, formula=formula_of(self), folded=[typed])

    @property
    def weights(self) -> list[Weights]:
        """Every weight matrix of the model, in the order typed."""
        return weights_of(self.objective, self.constraints)

    @property
    def learned(self) -> list[LearnedUnknown]:
        """Every matrix that is learned beside the weights, in the order typed."""
        return learned_of(self.objective)

    @property
    def parameters(self) -> list[Parameter]:
        """Every parameter of the model, in the order typed."""
        return list(self._parameters)

    @cached_property
    def _parameters(self) -> list[Parameter]:
        return parameters_of(self.objective, list(self.constraints))

    @cached_property
    def first_loss(self) -> Term:
        """The loss whose predictions are the model's."""
        return next(term for term in self.objective.terms if term.is_loss)

    @cached_property
    def shares(self) -> TaskPartition | None:
        """Return where every loss takes tasks of its own, `W[:, a]` and `W[:, b]`, which are whose; else None."""
        return shares_of([term for term in self.objective.terms if term.is_loss])

    @property
    def data(self) -> Tasks:
        """The tasks whose labels are learned, as typed: of all losses where each has tasks of its own, else of the first."""
        tasks = self.first_loss.data if self.shares is None else self.shares.tasks
        assert tasks is not None  # of a loss
        return tasks

    @property
    def is_convex(self) -> bool:
        """Tell whether every term is convex with a coefficient >= 0 at the parameters' present values."""
        return all(t.coefficient.value >= 0 for t in self.objective.terms) and self.form().is_convex

    def _shape(self, values: tuple[float, ...]) -> tuple:
        """Return those parameter values that are more than the size of a coefficient: zeros, radii, and numbers inside an argument."""
        inside = self._inside_arguments
        return tuple(v if p in inside else v == 0 for p, v in zip(self._parameters, values, strict=True))

    @cached_property
    def _inside_arguments(self) -> frozenset[Parameter]:
        arguments = [t.argument for t in self.objective.terms] + [
            c.argument for c in on_weights(self.constraints)
        ]
        inside = [part.coefficient.parameters for one in arguments for part in one.parts]
        radii = [c.of_radius for c in on_weights(self.constraints)]
        return frozenset().union(*inside, *radii)

    def form(self) -> NormalForm:
        """The normal form at the parameters' present values: what solvers, certificate and reference see.

        The same object while these values are the same; where they change, losses that do not depend on them are those of before, with
        what is known of their data.
        """
        values = tuple(p.value for p in self._parameters)
        if self._made is None or self._made[0] != values:
            form = to_normal_form(self.objective, self.constraints, str(self), self._known)
            form.share(self._remembered.setdefault(self._shape(values), {}))
            self._made = values, form
        return self._made[1]
