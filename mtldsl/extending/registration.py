"""Registration of words and solvers of one's own: `register` and its checks of a class."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.matrix_function import Atom, MatrixFunction, Regularizer, Set
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.regularizers.norm_base import Norm
from mtldsl.certificates.plain.plain_formula import DEFINITIONS, Definition
from mtldsl.data.labels import LABEL_KINDS
from mtldsl.errors import ModelError, SolverError
from mtldsl.language import factories
from mtldsl.language.vocabulary import CALLABLE, METRICS, UNKNOWNS, WORDS
from mtldsl.reference import registry as reference_registry
from mtldsl.solvers.routes import LAST, SOLVERS
from mtldsl.solvers.solver import Solver

# --------------------------------------------------------------------------------------------------------------
# Solvers of one's own.

_OWN_SOLVERS: set[str] = set()

#: what a solver must have: attributes, then methods
_MEMBERS = dict.fromkeys(
    name for name in (*Solver.__annotations__, *vars(Solver)) if not name.startswith("_")
)


def register_solver(solver: Solver, before: str | None = None) -> Solver:
    """Enter a solver of one's own, and return it: problem.solve("its name"), explain(), `[solve] solver = "..."` know it from then on.

    solver : an object with all members of `mtldsl.extending.Solver`, which a subclass has; `mtldsl.testing.check_solver` runs the laws
    before : the name of a solver that solver="auto" shall try after this one; None: all of the language are tried first, so that
             what "auto" does today it does tomorrow

    SolverError where the name is taken (again from the same class: it takes the place of the former), `before` is not known, or
    members are missing: the message lists them.

    >>> from mtldsl import register_solver
    >>> class Nothing:
    ...     name = "nothing"
    >>> register_solver(Nothing())
    Traceback (most recent call last):
    mtldsl.errors.SolverError: register_solver(Nothing()): it lacks summary, options, choices, writes, max_iter, takes_nonconvex, needs_rows, takes_spans, below_guesses, refuses, solves_only, is_nearest, flops, expected_flops, work, solve; a subclass of mtldsl.extending.Solver has all but name, summary, refuses and solve
    """
    shown = f"{type(solver).__name__}()"
    if isinstance(solver, type):
        raise SolverError(
            f"register_solver({solver.__name__}): this is a class; write register_solver({solver.__name__}())"
        )
    missing = [member for member in _MEMBERS if not hasattr(solver, member)]
    missing += [
        name
        for name in ("refuses", "solve")
        if name not in missing and getattr(getattr(type(solver), name, None), "__isabstractmethod__", False)
    ]
    if missing:
        raise SolverError(
            f"register_solver({shown}): it lacks {', '.join(missing)}; a subclass of mtldsl.extending.Solver has all but name, "
            "summary, refuses and solve"
        )
    name = solver.name
    taken = SOLVERS.get(name)
    again = (
        name in _OWN_SOLVERS
        and type(taken).__qualname__ == type(solver).__qualname__
        and type(taken).__module__ == type(solver).__module__
    )
    if (
        not (isinstance(name, str) and name.isidentifier())
        or name == "auto"
        or (taken is not None and not again)
    ):
        why = "a solver of this name is there" if taken is not None else "a solver's name is one word"
        raise SolverError(f"register_solver({shown}): name = {name!r}: {why}; choose another name")
    successor = LAST if before is None else before
    if successor not in SOLVERS:
        raise SolverError(
            f"register_solver({shown}, before={before!r}): there is no such solver; write one of {', '.join(SOLVERS)}"
        )
    _OWN_SOLVERS.add(name)
    SOLVERS.pop(name, None)
    order = list(SOLVERS.items())
    at = [key for key, _ in order].index(successor)
    order.insert(at, (name, solver))
    SOLVERS.clear()
    SOLVERS.update(order)
    return solver


def unregister_solver(name: str) -> None:
    """Take a solver of one's own out again; SolverError where it is none that `register_solver` entered."""
    if name not in _OWN_SOLVERS:
        raise SolverError(f"unregister_solver({name!r}): no solver of this name was registered")
    _OWN_SOLVERS.remove(name)
    del SOLVERS[name]


# --------------------------------------------------------------------------------------------------------------
# What a class, a reference function and a solver of one's own must have: everything that is missing, in one message.


@dataclass(frozen=True)
class WordKind:
    """One kind of word: its base class, the methods that a class must give, and the arguments of its reference function."""

    base: type[Atom]
    what: str
    methods: str
    reference: str

    @property
    def page(self) -> str:
        """The page of docs/extending that says what each method is for."""
        return f"a_{self.what}.md"


#: the most special first
KINDS = (
    WordKind(SeparableLoss, "loss", "pointwise slope pointwise_prox", "z, y, s, atom"),
    WordKind(Loss, "loss", "value gradient prox conjugate dual_project", "z, y, s, atom"),
    WordKind(
        Structure,
        "structure",
        "value value_at update update_one quadratic start conjugate dual_gauge",
        "W, matrices, atom",
    ),
    WordKind(Set, "constraint", "violation project support dual_gauge", "W, atom"),
    WordKind(Regularizer, "regularizer", "value prox conjugate dual_gauge", "W, atom"),
    WordKind(Metric, "metric", "delta", "b, c, positives, negatives, atom"),
)


def kind_of_class(cls) -> WordKind:
    """The kind of a class; ModelError where it is of none."""
    if isinstance(cls, type):
        for kind in KINDS:
            if issubclass(cls, kind.base) and cls is not kind.base:
                return kind
    bases = ", ".join(dict.fromkeys(kind.base.__name__ for kind in KINDS))
    raise ModelError(
        f"register({_shown(cls)}): it is not a class of a word; write a subclass of one of {bases} (from mtldsl.extending)"
    )


def check_class(cls: type[Atom], kind: WordKind) -> None:
    """ModelError that lists all that the class lacks."""
    missing = [f"the method {name}" for name in _missing_methods(cls, kind)]
    if not (isinstance(cls.name, str) and cls.name.isidentifier() and not keyword.iskeyword(cls.name)):
        missing.insert(0, "name: ClassVar[str], the word as it is typed")
    own = [n for n, kind_of in vars(cls).get("__annotations__", {}).items() if "ClassVar" not in str(kind_of)]
    if own and "__dataclass_fields__" not in vars(cls):
        missing.append(f"@dataclass(frozen=True, eq=False) above the class, for its parameter {own[0]}")
    if issubclass(cls, Loss) and cls.labels not in LABEL_KINDS:
        missing.append(f"labels that are one of {', '.join(map(repr, LABEL_KINDS))}, not {cls.labels!r}")
    if not missing:
        missing += _wrong_examples(cls)
    if missing:
        raise ModelError(
            f"register({cls.__name__}): the class lacks {'; '.join(missing)}. docs/extending/{kind.page} says what each is for"
        )


def _missing_methods(cls: type[Atom], kind: WordKind) -> list[str]:
    def own(name: str) -> bool:
        """Tell whether the method is more than what a protocol declares."""
        given = getattr(cls, name)
        protocols = (Loss, SeparableLoss, MatrixFunction, Regularizer, Set, Structure, Metric)
        bare = [
            vars(base)[name] for base in protocols if name in vars(base) and _only_raises(vars(base)[name])
        ]
        return not any(given is method for method in bare)

    by_iteration = issubclass(cls, (Loss, MatrixFunction)) and cls.exact_prox is False
    wanted = [name for name in kind.methods.split() if name != "prox" or not by_iteration]
    missing = [name for name in wanted if not own(name)]
    if by_iteration and issubclass(cls, Norm) and cls.dual_gauge is Norm.dual_gauge:
        missing.append("dual_gauge (or a prox, which it follows from)")
    if issubclass(cls, SeparableLoss):
        if cls.pointwise_conjugate is SeparableLoss.pointwise_conjugate and (
            cls.dual_quadratic is SeparableLoss.dual_quadratic
        ):
            missing.append("pointwise_conjugate")
        replaced = {
            "pointwise": "value",
            "slope": "gradient",
            "pointwise_prox": "prox",
            "pointwise_conjugate": "conjugate",
        }
        missing = [
            name for name in missing if getattr(cls, replaced[name]) is getattr(SeparableLoss, replaced[name])
        ]
    return missing


def _only_raises(method) -> bool:
    code = getattr(method, "__code__", None)
    return code is not None and "NotImplementedError" in code.co_names


def _wrong_examples(cls: type[Atom]) -> list[str]:
    try:
        found = cls.examples()
    except Exception as error:  # whatever it is, it stands in somebody's class
        return [f"examples() that makes instances to check (it raises {type(error).__name__}: {error})"]
    if not (isinstance(found, list) and found and all(isinstance(one, cls) for one in found)):
        return ["examples() that returns a list of its instances"]
    return []


def check_reference(cls: type[Atom], kind: WordKind, reference) -> Callable:
    """The reference function; ModelError where it is not there or takes other arguments."""
    wanted = kind.reference
    if issubclass(cls, Metric) and not cls.labellings:
        wanted = "z, y, atom"
    if isinstance(reference, type) or not callable(reference):
        given = "" if reference is None else f"={_shown(reference)}"
        raise ModelError(
            f"register({cls.__name__}, reference{given}): give the definition a second time, as a function f({wanted}) in cvxpy; "
            f"without it nothing could be checked (docs/extending/{kind.page})"
        )
    try:
        inspect.signature(reference).bind(*wanted.split(", "))
    except TypeError:
        raise ModelError(
            f"register({cls.__name__}, reference={_shown(reference)}): a reference function of a {kind.what} takes ({wanted}), this "
            f"one takes {inspect.signature(reference)}"
        ) from None
    return reference


def _shown(value) -> str:
    return getattr(value, "__name__", None) or repr(value)[:40]


# --------------------------------------------------------------------------------------------------------------
# Words of one's own: a class and its reference function enter the language at run time.

#: what was registered here -> the table of the reference that has its formula
_OWN_WORDS: dict[str, dict] = {}

#: names that mean something else in an expression
_RESERVED = ("tasks", "inf", "sum", "trace", "array")

_MAKERS = {
    "loss": factories.loss,
    "regularizer": factories.regularizer,
    "constraint": factories.constraint,
    "structure": factories.structure,
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
    definition = None if formula is None else _plain_definition(cls, formula)
    name = cls.name
    before = REGISTRY.get(name)
    if (
        name in _OWN_WORDS
        and before
        and (before.__module__, before.__qualname__) == (cls.__module__, cls.__qualname__)
    ):
        unregister(name)
    elif name in _OWN_WORDS or name in REGISTRY or name in CALLABLE or name in UNKNOWNS or name in _RESERVED:
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
    if definition is not None:
        DEFINITIONS[name] = definition
    _OWN_WORDS[name] = table
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


def _plain_definition(cls: type[Atom], formula: Callable) -> Definition:
    """Return a plain formula of one's own; ModelError where it is not a function of the arguments of its kind."""
    kind, wanted = plain_kind(cls)
    try:
        inspect.signature(formula).bind(*wanted.split(", "))
    except (TypeError, ValueError):
        raise ModelError(
            f"it is a function of ({wanted})", term=f"register({cls.__name__}, formula={formula!r})"
        ) from None
    if kind != "kept":
        return Definition(formula, kind)
    return Definition(lambda W, matrices, atom: formula(W, tuple(S.dense() for S in matrices), atom), kind)


def plain_kind(cls: type[Atom]) -> tuple[str, str]:
    """(the kind of a word's plain formula, its arguments)."""
    if issubclass(cls, SeparableLoss):
        return "samples", "z, y, atom"
    if issubclass(cls, Loss):
        return "task", "z, y, s, atom"
    if issubclass(cls, Metric):
        return (
            ("tables", "b, c, positives, negatives, atom") if cls.labellings else ("order", "up, down, atom")
        )
    if issubclass(cls, Structure) and cls.learns:
        return "kept", "W, matrices, atom"
    return ("set" if issubclass(cls, Set) else "matrix"), "W, atom"


def unregister(name: str) -> None:
    """Take a word of one's own out of the language again; ModelError where it is none that `register` entered."""
    if name not in _OWN_WORDS:
        own = f"; yours are {', '.join(_OWN_WORDS)}" if _OWN_WORDS else ""
        raise ModelError(f"unregister({name!r}): no word of this name was registered{own}")
    _OWN_WORDS.pop(name).pop(name, None)
    reference_registry.FORMULAS.pop(name, None)
    DEFINITIONS.pop(name, None)
    for table in (REGISTRY, WORDS, METRICS):
        table.pop(name, None)
