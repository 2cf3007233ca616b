"""Words of one's own: a class and its reference function enter the language at run time."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from mtldsl.atoms.function import REGISTRY, Atom, Loss, SeparableLoss, Set
from mtldsl.atoms.metrics import Metric
from mtldsl.atoms.structures import Structure
from mtldsl.definitions.formula import DEFINITIONS, Definition
from mtldsl.errors import ModelError
from mtldsl.extending.required import check_class, check_reference, kind_of_class
from mtldsl.language.text.file_words import CALLABLE
from mtldsl.language.words import makers
from mtldsl.language.words.vocabulary import METRICS, UNKNOWNS, WORDS
from mtldsl.reference import registry as reference_registry

__all__ = ["register", "unregister"]

#: what was registered here -> the table of the reference that has its formula
_OWN: dict[str, dict] = {}

#: names that mean something else in an expression
_RESERVED = ("tasks", "inf", "sum", "trace", "array")

_MAKERS = {
    "loss": makers.loss,
    "regularizer": makers.regularizer,
    "constraint": makers.constraint,
    "structure": makers.structure,
}


def register(
    cls: type[Atom],
    reference: Callable | None = None,
    *,
    eliminated: Callable | None = None,
    formula: Callable | None = None,
    **marks,
):
    r"""Enter a loss, regularizer, constraint, metric or structure of one's own into the language, and return its word.

    The word is then typed like the others: as what is returned here, as `mtl.<name>`, and by its name in problem files and in
    models that are text. It is printed, explained, solved by every solver that its traits suit, certified, and cross-checked
    against its reference function. `mtldsl.testing.check_atom` runs the laws on it.

    Parameters
    ----------
    cls : subclass of Loss, SeparableLoss, Regularizer, Norm, Set, Metric or Structure (all in mtldsl.extending)
        A dataclass whose fields are the parameters that a user may type; `name` is the word.
    reference : function in cvxpy
        The definition a second time, written from the formula alone: f(z, y, s, atom) of a loss, f(W, atom) of a regularizer,
        f(W, atom) -> list of constraints of a Set, f(b, c, positives, negatives, atom) of a metric, f(W, matrices, atom) of a
        structure with its matrices kept.
    eliminated : function in cvxpy, of a convex structure
        f(W, atom): its definition on the weights alone.
    formula : function in numpy, optional
        The definition for the look that is taken at every solve (docs/reliability.md): f(z, y, atom), elementwise, of a `SeparableLoss`,
        f(z, y, s, atom) of another loss; f(W, atom) of a regularizer, and of a Set, how far W is outside; f(W, matrices, atom) of a
        structure; f(b, c, positives, negatives, atom) of a metric. Without one the word's own value is taken, and what is checked is all
        around it: coefficients, maps, weights, means.
    marks
        What the reference is told about the function: sum_over_samples=True of a loss that is a sum over samples,
        semidefinite=True, exponential=True, own_variables=...; of a structure bound=... (docs/extending/).

    Returns
    -------
    The function that is typed in models, such as word(W, tasks, ...); a metric's class is its word.

    Raises
    ------
    ModelError
        Where the name is taken (a word of one's own may be registered again from the same module and class, so that a cell of a
        notebook can be run twice), or where the class or the reference function lacks something: the message lists all of it.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, mtldsl as mtl
    >>> from mtldsl.extending import Norm
    >>> class LargestEntry(Norm):
    ...     "The largest absolute entry: max |W_ij|."
    ...     name, formula, monotone = "largest_entry", r"\|{}\|_\infty", True
    ...     def value(self, W):
    ...         return float(np.abs(W).max())
    ...     def dual_gauge(self, Z):
    ...         return float(np.abs(Z).sum())
    >>> mtl.register(LargestEntry, reference=lambda W, atom: cp.max(cp.abs(W)))
    Traceback (most recent call last):
    mtldsl.errors.ModelError: register(LargestEntry): the class lacks the method prox. docs/extending/a_regularizer.md says what each is for
    """
    kind = kind_of_class(cls)
    check_class(cls, kind)
    reference = check_reference(cls, kind, reference)
    name = cls.name
    before = REGISTRY.get(name)
    if (
        name in _OWN
        and before
        and (before.__module__, before.__qualname__) == (cls.__module__, cls.__qualname__)
    ):
        unregister(name)
    elif name in _OWN or name in REGISTRY or name in CALLABLE or name in UNKNOWNS or name in _RESERVED:
        whose = f"{before.__module__}.{before.__qualname__}" if before else "the language"
        raise ModelError(
            f"register({cls.__name__}): the name {name!r} is taken by {whose}; choose another name"
        )
    if eliminated is not None and not (issubclass(cls, Structure) and cls.learns):
        raise ModelError(
            f"register({cls.__name__}, eliminated=...): only a structure that learns a matrix has one"
        )
    table = _enter_reference(cls, reference, marks)
    if eliminated is not None and issubclass(cls, Structure):
        reference_registry.formula(name, semidefinite=cls.separable == "spectrum")(eliminated)
    if not cls.formula:
        cls.formula = rf"\operatorname{{{name.replace('_', ' ')}}}({{}})"
    if formula is not None:
        _enter_formula(cls, formula)
    _OWN[name] = table
    REGISTRY[name] = cls
    WORDS[name] = word = cls if issubclass(cls, Metric) else _MAKERS[kind.what](cls)  # pyrefly: ignore[bad-argument-type]  # a maker for each kind
    if issubclass(cls, Metric):
        METRICS[name] = cls
    return word


def _enter_reference(cls: type[Atom], reference: Callable, marks: dict) -> dict:
    """Enter the reference function, and return the table that has it."""
    if issubclass(cls, Structure) and cls.learns:
        enter, table = reference_registry.structure, reference_registry.STRUCTURES
    else:
        enter, table = reference_registry.formula, reference_registry.FORMULAS
    import mtldsl.reference.compile  # noqa: F401  (the formulas of the language's own words come first)

    try:
        enter(cls.name, **marks)(reference)
    except TypeError as error:
        raise ModelError(
            f"register({cls.__name__}, {', '.join(f'{mark}=...' for mark in marks)}): {error}"
        ) from None
    return table


def _enter_formula(cls: type[Atom], formula: Callable) -> None:
    """Enter a plain formula of one's own; ModelError where it is not a function of the arguments of its kind."""
    function, wanted = formula, "W, atom"
    if issubclass(cls, SeparableLoss):
        kind, wanted = "samples", "z, y, atom"
    elif issubclass(cls, Loss):
        kind, wanted = "task", "z, y, s, atom"
    elif issubclass(cls, Metric):
        kind, wanted = (
            ("tables", "b, c, positives, negatives, atom") if cls.labellings else ("order", "up, down, atom")
        )
    elif issubclass(cls, Structure) and cls.learns:
        kind, wanted = "kept", "W, matrices, atom"

        def function(W, matrices, atom):
            return formula(W, tuple(matrix.dense() for matrix in matrices), atom)
    else:
        kind = "set" if issubclass(cls, Set) else "matrix"
    try:
        inspect.signature(formula).bind(*wanted.split(", "))
    except (TypeError, ValueError):
        raise ModelError(
            f"it is a function of ({wanted})", term=f"register({cls.__name__}, formula={formula!r})"
        ) from None
    DEFINITIONS[cls.name] = Definition(function, kind)


def unregister(name: str) -> None:
    """Take a word of one's own out of the language again; ModelError where it is none that `register` entered."""
    if name not in _OWN:
        own = f"; yours are {', '.join(_OWN)}" if _OWN else ""
        raise ModelError(f"unregister({name!r}): no word of this name was registered{own}")
    _OWN.pop(name).pop(name, None)
    reference_registry.FORMULAS.pop(name, None)
    DEFINITIONS.pop(name, None)
    for table in (REGISTRY, WORDS, METRICS):
        table.pop(name, None)
