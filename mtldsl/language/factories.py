"""Factories of the words: functions that check what is typed and make terms of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, replace
from typing import Any, TypeVar, cast

import numpy as np

from mtldsl.atoms import learned_structures, losses
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import Atom, Regularizer, Set
from mtldsl.atoms.regularizers.group_norms import checked_family, levels, nested_families
from mtldsl.data.input_checks import elsewhere
from mtldsl.data.task_data import require_in_memory
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError, Spelled, quote_in_errors
from mtldsl.language import arguments, label_graph
from mtldsl.language.arguments import (
    by_position,
    checked_matrix,
    fit_loss_to_tasks,
    groups_as_given,
    listed_once,
    short,
    unknown_of,
)
from mtldsl.language.constraints import Constraint
from mtldsl.language.expressions import Affine, Transposed
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import ONE, Operation, bracket, constructor_text
from mtldsl.language.substitution import columns_of
from mtldsl.language.task_similarity import TaskSimilarity
from mtldsl.language.weights import Weights
from mtldsl.language.word_examples import example_of
from mtldsl.utils.validation import as_flag, complete, quoted

# --------------------------------------------------------------------------------------------------------------
# How a word looks from outside: its documentation, and a signature that an editor can show.


def parameter(name: str, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _documented(cls) -> str:
    """The documentation of an atom, with a model that uses its word in place of what the class computes.

    A word of one's own keeps its documentation, and so does one whose arguments `examples` does not know.
    """
    told, example = inspect.cleandoc(cls.__doc__ or ""), example_of(cls)
    if example is None or not cls.__module__.startswith("mtldsl."):
        return told
    before, _, _ = told.partition("Examples\n--------")
    return f"{before.rstrip()}\n\nExamples\n--------\n{example}\n"


def with_signature(word, cls, head, tail):
    """Give the word its atom's documentation and a signature that an editor can show."""
    given = {parameter.name for parameter in (*head, *tail)}
    own = [
        parameter(f.name, inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in cls.typed_fields()
        if f.name not in given
    ]
    word.__signature__ = inspect.Signature([*head, *own, *tail])
    word.__name__ = word.__qualname__ = cls.name
    word.__doc__ = _documented(cls)
    word.__module__ = cls.__module__  # the class's own doctest is collected there, once
    word.atom = cls
    return complete(f"write {cls.name}{word.__signature__}")(word)


# --------------------------------------------------------------------------------------------------------------
# The LaTeX of a loss in a model: of the predictions of every task, or of all scores of a row.


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
    """Return what an index of a class follows: x_j^T w, x_j^T (L + S), and with an intercept (x_j^T W + b)."""
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


# --------------------------------------------------------------------------------------------------------------
# A norm of a precision that is learned beside the weights: `l1_norm(Sigma2)`.


def of_precision(cls: type[Regularizer], unknown: LearnedUnknown, args, kwargs) -> Objective:
    """The term of it. ModelError for anything but `l1_norm(Sigma2)` of a precision, without weights."""
    typed = f"{cls.name}({unknown.text})"
    if unknown.kind == "covariance":
        raise ModelError(
            f"{unknown.text} is a covariance, whose update has a closed form that no norm fits into; a sparse precision says which tasks "
            "have nothing to do with each other, given the others",
            write_instead="write matrix_normal(W, np.eye(d), Sigma2) + lam * l1_norm(Sigma2) with Sigma2 = TaskPrecision(tasks)",
        )
    if unknown.kind != "precision":
        raise ModelError(
            f"{unknown.text} {unknown.what}, and not a matrix of weights",
            write_instead=f"bound it: p_norm({unknown.text}, 1) <= 1",
        )
    if not cls.of_precisions:
        raise ModelError(
            f"{unknown.text} is a precision that is learned, and of those there is l1_norm alone",
            write_instead=f"write l1_norm({unknown.text}), or bounds on its eigenvalues, {unknown.text} >> 0.01, {unknown.text} << 100",
        )
    if args or kwargs:
        raise ModelError(
            "the norm of a precision takes no weights: every entry counts alike, the diagonal too",
            term=f"{cls.name}({unknown.text}, ...)",
            write_instead=f"write lam * {typed}",
        )
    atom = cls()
    return Objective([Term(ONE, atom, cast(Any, unknown), typed, atom.latex(unknown.latex), of_learned=True)])


# --------------------------------------------------------------------------------------------------------------
# Groups that overlap: a sum of norms, each of groups that do not, or of which one holds the other.


def families_of(word: str, groups: Any) -> list[tuple[list[int], bool]]:
    """(positions of its groups, whether some of them are nested) of every family; [] where no two groups overlap, or where they are not
    groups at all, which the word refuses itself.

    >>> families_of("group_norm", [[0, 1], [1, 2], [0, 1, 2], [3]])
    [([0, 2, 3], True), ([1], False)]
    """
    try:
        checked = checked_family(groups, word, "groups")
    except ModelError:
        return []
    families = nested_families(checked)
    found = [(family, len(levels(tuple(checked[g] for g in family))) > 1) for family in families]
    return [] if len(found) == 1 and not found[0][1] else found


def sum_of_families(
    word: Callable[..., Objective], nested: Callable[..., Objective], W: Any, given: Mapping, families
) -> Objective:
    """`word` of every family whose groups are apart, and `nested` of the others; `given` are the word's groups and weights as typed."""
    weights = given.get("weights")
    n = sum(len(family) for family, _ in families)
    if weights is not None and np.ndim(weights) and np.shape(weights) != (n,):
        raise ModelError(f"{word.__name__}: there are {np.size(weights)} weights for {n} groups")
    terms: list[Term] = []
    for family, holds in families:
        groups, costs = _picked(given["groups"], weights, family)
        options = {} if costs is None else {"weights": costs}
        one = nested(W, rows=groups, **options) if holds else word(W, groups, **options)
        terms += one.terms
    return Objective(terms)


def _picked(groups: Any, weights: Any, family: list[int]) -> tuple[Any, Any]:
    """The groups of a family as they were typed, and their weights."""
    if isinstance(groups, Mapping):
        names = list(groups)
        some: Any = {names[g]: groups[names[g]] for g in family}
    else:
        some = [groups[g] for g in family]
    return some, weights if weights is None or np.ndim(weights) == 0 else np.asarray(weights)[family]


# --------------------------------------------------------------------------------------------------------------
# How an atom becomes a word: what is typed is checked, and a term or a constraint made of it.

_A = TypeVar("_A", bound=Atom)

#: Names of other libraries for weights of samples and classes, which belong to the data here.
_WEIGHTS = ("class_weight", "class_weights", "sample_weight", "sample_weights", "weights", "pos_weight")
_OF_SAMPLES = "write Tasks.shared(X, Y, sample_weights=...); the estimators take class_weight='balanced'"

#: Names of other libraries for known parts of predictions.
_OFFSETS = ("offset", "offsets", "exposure", "exposures", "base_margin")
_OF_OFFSETS = (
    "give the offset (of an exposure, its logarithm) as the last feature, hold its weight by subject_to=[W[-1:, :] == 1], and "
    "penalise W[:-1, :]"
)

#: Names of other libraries for the factor before a term.
_COEFFICIENTS = ("alpha", "lam", "lambda_", "C", "coefficient", "strength", "reg", "rho", "scale", "weight")


def _build(cls: type[_A], args, kwargs, typed: str, W: Affine) -> _A:
    return cls(**by_position(cls, _given(cls, args, kwargs, typed), W, typed))


def _given(cls: type[Atom], args, kwargs, typed: str) -> dict[str, Any]:
    """{parameter: what was typed for it}; ModelError for what a word does not take, and lacks."""
    names = [field.name for field in cls.typed_fields()]
    if len(args) > len(names):
        given = [quoted(one) for one in args[len(names) :]]
        has_mean = issubclass(cls, Loss) and cls.labels != "indicators"
        options = ["mean=True"] * has_mean + [f"{name}=..." for name in names]
        raise ModelError(
            f"too many arguments: {', '.join(given)} after the expression, where {cls.name} takes {', '.join(names) or 'no parameters'}",
            term=typed,
            write_instead=f"write {' or '.join(options)} by name" if options else "leave it out",
        )
    parameters = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise ModelError(
                f"{cls.name} has no parameter {name!r}; it takes {', '.join(names) or 'none'}",
                term=typed,
                write_instead=_instead(cls, name),
            )
        if name in parameters:
            raise ModelError(f"the parameter {name!r} is given twice", term=typed)
        parameters[name] = value
    missing = [f.name for f in cls.typed_fields() if f.default is MISSING and f.name not in parameters]
    if missing:
        raise ModelError(
            f"{cls.name} needs {', '.join(missing)}",
            term=typed,
            write_instead=f"write {cls.name}(W, {', '.join(f'{name}=...' for name in missing)})",
        )
    return parameters


def _instead(cls: type[Atom], name: str) -> str:
    """Return what to write where a word was given a parameter that it does not have."""
    if name in _WEIGHTS and issubclass(cls, Loss):
        return _OF_SAMPLES
    if name in _OFFSETS and issubclass(cls, Loss):
        return _OF_OFFSETS
    if name in _COEFFICIENTS:
        tasks = ", tasks" if issubclass(cls, Loss) else ""
        return f"write 0.1 * {cls.name}(W{tasks}), a factor before the word"
    if name in ("axis", "dim") and issubclass(cls, Regularizer):
        return f"write {cls.name}(W.T), where rows and columns are exchanged"
    return ""


def _typed(cls, argument, atom: Atom | None, extra=(), given: dict[str, Any] | None = None) -> str:
    shown = [getattr(argument, "text", None) or quoted(argument), *extra]
    if atom is not None:
        texts = {name: short(value) for name, value in atom.arguments().items()}
        shown += [f"{name}={text}" for name, text in (texts | groups_as_given(cls, given or {})).items()]
    return f"{cls.name}({', '.join(shown)})"


def _require_affine(cls, argument) -> None:
    if isinstance(argument, Affine):
        return
    if isinstance(argument, Transposed):
        raise _no_transpose(cls, argument, f"{cls.name}({argument.text})")
    hint = ""
    if isinstance(argument, Tasks):
        hint = (
            f"; the weights come first: {cls.name}(W, tasks)"
            if issubclass(cls, Loss)
            else f"; write {cls.name}(W)"
        )
    elif isinstance(argument, Objective):
        hint = f"; {argument.text} is a number already, and a function of it is outside the language"
    raise ModelError(
        f"{cls.name}({short(argument)}, ...): the first argument must be an expression of Weights, "
        f"not {type(argument).__name__}{hint}"
    )


def _no_transpose(cls: type[Atom], W: Transposed, typed: str) -> ModelError:
    """The error for a word that does not take this transpose."""
    if issubclass(cls, Loss):
        what = f"a loss takes one column of weights for every task, and {W.text} has one for every feature"
        return ModelError(what, term=typed, write_instead=f"write {cls.name}({W.of.text}, tasks)")
    advice = getattr(cls, "instead_of_transpose", "") or "a word of {0} itself"
    return ModelError(
        f"the language has no word for {cls.name} of a transpose",
        term=typed,
        write_instead="write " + advice.format(bracket(W.of, 3), word=cls.name),
    )


def loss(cls: type[Loss]):
    def word(W, tasks, *args, mean=False, **kwargs):
        _require_affine(cls, W)
        if not isinstance(tasks, Tasks):
            raise ModelError(
                f"{cls.name}({W.text}, {short(tasks)}): the second argument must be a Tasks object, "
                f"not {type(tasks).__name__}",
                write_instead=f"write {cls.name}({W.text}, tasks)",
            )
        mean = as_flag(mean, f"{cls.name}({W.text}, tasks, mean", ModelError)
        atom = _build(cls, args, kwargs, _typed(cls, W, None, ["tasks"]), W)
        typed = _typed(cls, W, atom, ["tasks"] + (["mean=True"] if mean else []))
        if W.shape[1] < tasks.n_tasks and all(part.weights.tasks is tasks for part in W.parts):
            columns = columns_of(W)  # of the tasks that the weights are for, those of these columns
            tasks = tasks if columns is None else tasks.select(columns)
        with quote_in_errors(typed):
            _require_columns(W, tasks)
            atom = fit_loss_to_tasks(atom, tasks, typed)
            carrying = label_graph.carried_intercepts(W)
            _require_intercept(atom, carrying, W, tasks)
        latex = loss_latex(atom, W, with_intercept=bool(carrying), weighted=tasks.is_weighted, mean=mean)
        return Objective([Term(ONE, atom, W, typed, latex, tasks, bool(mean))])

    head = [parameter("W"), parameter("tasks")]
    return with_signature(
        word, cls, head, [inspect.Parameter("mean", inspect.Parameter.KEYWORD_ONLY, default=False)]
    )


def label_loss(cls: type[losses.LabelGraphLoss]):
    def word(U, V, tasks, *args, **kwargs):
        shown = [getattr(one, "text", short(one)) for one in (U, V)] + ["tasks"]
        if "loss" in kwargs and isinstance(tasks, Tasks):
            kwargs["loss"] = label_graph.costs_in_order(
                kwargs["loss"], tasks, f"{cls.name}({', '.join(shown)}, loss=...)"
            )
        atom = _build(cls, args, kwargs, f"{cls.name}({', '.join(shown)})", U)
        shown += [f"{name}={label_graph.costs_text(value)}" for name, value in atom.arguments().items()]
        return label_graph.label_loss(atom, U, V, tasks, f"{cls.name}({', '.join(shown)})")

    return with_signature(word, cls, [parameter("U"), parameter("V"), parameter("tasks")], [])


def _require_columns(W: Affine, tasks: Tasks) -> None:
    """ModelError where the weights have other shapes than the tasks need, or a feature or task of these at another position."""
    expected = (tasks.n_features, tasks.n_tasks)
    if W.shape != expected:
        instead = f"add weights of tasks, W + {W.text}, or repeat the column, {bracket(W, 3)}[:, [0, 0, ...]]"
        raise ModelError(
            f"{W.text} has shape {W.shape}, but these tasks need {expected} (features x tasks); a loss takes "
            "one column of weights for every task",
            write_instead=instead if all(part.weights.shared for part in W.parts) else "",
        )
    for part in W.parts:
        own = part.weights.tasks
        for kind, mapped, mine, theirs in (
            ("feature", part.left, own.feature_names, tasks.feature_names),
            ("task", part.right, own.task_names, tasks.task_names),
        ):
            name = None if mapped is not None else elsewhere(theirs, mine)
            if name is not None:
                raise ModelError(
                    f"{kind} {name!r} is number {theirs.index(name)} of these tasks, but number {mine.index(name)} "
                    f"of those that {part.weights.name} was made for",
                    write_instead=f"give the {kind}s in one order",
                )


def _require_intercept(atom: Loss, carrying: set[Weights], W: Affine, tasks: Tasks) -> None:
    """ModelError where weights carry an intercept that the loss has no use for."""
    for weights in carrying:
        if weights.tasks.n_tasks != tasks.n_tasks and columns_of(W) is None:
            raise ModelError(
                f"the intercept of {weights.name} has {weights.tasks.n_tasks} entries, not one a task",
                write_instead=f"take columns of {weights.name}, such as {weights.name}[:, [0, 2]], or all",
            )
        if not atom.takes_intercept:
            own = Spelled("Weights(tasks) without intercept=True", f"{weights.name} = {{}} in [weights]")
            raise ModelError(
                f"the intercept of {weights.name} alone makes this loss zero or does not matter, since {atom.intercept_reason}",
                write_instead="write " + own,
            )


def regularizer(cls: type[Regularizer], nested: Callable[..., Objective] | None = None):
    """nested : the word for groups of rows that hold each other, of a word whose `groups` are to be apart"""

    def word(W, *args, **kwargs):
        if isinstance(W, LearnedUnknown):
            with quote_in_errors(f"{cls.name}({W.text})"):
                return of_precision(cls, W, args, kwargs)
        if not isinstance(W, Transposed):
            _require_affine(cls, W)
        given = listed_once(cls, _given(cls, args, kwargs, _typed(cls, W, None)))
        parameters = by_position(cls, given, W, _typed(cls, W, None))
        families = families_of(cls.name, parameters["groups"]) if nested is not None else []
        if nested is not None and families:
            return sum_of_families(word, nested, W, given, families)
        atom = cls(**parameters)
        typed = _typed(cls, W, atom, given=given)
        if isinstance(W, Affine):
            atom = label_graph.grouped_by_edges(atom, W)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{problem}", term=typed)
        latex = atom.latex(W.latex)
        if isinstance(W, Affine):
            return Objective([Term(ONE, atom, W, typed, latex)])
        same = atom.of_transpose(W.of.shape)
        if same is None:
            raise _no_transpose(cls, W, typed)
        return Objective([Term(ONE, same, W.of, typed, latex, of_transpose=atom)])

    return with_signature(word, cls, [parameter("W")], [])


def structure(cls: type[learned_structures.Structure]):
    names = [matrix.name for matrix in cls.learns]

    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        given = dict(zip(names, args, strict=False))
        given |= {name: kwargs.pop(name) for name in names if name in kwargs and name not in given}
        missing = [name for name in names if name not in given]
        typed = _typed(cls, W, None, [short(given.get(name, name)) for name in names])
        if missing:
            advice = f"write {cls.name}(W, {', '.join(names)}) with"
            for i, matrix in enumerate(cls.learns):
                advice += f"{',' if i else ''} {matrix.name} = " + constructor_text(
                    unknown_of(matrix).__name__
                )
            raise ModelError(f"{cls.name} needs {', '.join(missing)}", term=typed, write_instead=advice)
        atom = _build(cls, args[len(names) :], kwargs, typed, W)
        typed = _typed(cls, W, atom, [short(matrix) for matrix in given.values()])
        with quote_in_errors(typed):
            matrices = tuple(
                checked_matrix(matrix, description, W, typed)
                for matrix, description in zip(given.values(), cls.learns, strict=True)
            )
        symbols = {
            description.name: matrix.latex
            for matrix, description in zip(matrices, cls.learns, strict=True)
            if isinstance(matrix, LearnedUnknown)
        }
        return Objective([Term(ONE, atom, W, typed, atom.latex(W.latex, symbols), learned=matrices)])

    return with_signature(word, cls, [parameter("W"), *map(parameter, names)], [])


def mkl(cls: type[learned_structures.MKLNorm]):
    def word(W, similarities, theta=None, p=None):
        _require_affine(cls, W)
        similarities = [similarities] if isinstance(similarities, TaskSimilarity) else similarities
        typed = arguments.mkl_norm_text(W, similarities, theta, p)
        with quote_in_errors(typed):
            return arguments.mkl_norm(W, similarities, theta, p, typed)

    optional = [parameter("theta", None), parameter("p", None)]
    return with_signature(word, cls, [parameter("W"), parameter("similarities")], optional)


def constraint(cls: type[Set]):
    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        atom = _build(cls, args, kwargs, _typed(cls, W, None), W)
        typed = _typed(cls, W, atom)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{problem}", term=typed)
        return Constraint(atom, W, typed, atom.latex(W.latex), Operation("in", (atom, W.tree)))

    return with_signature(word, cls, [parameter("W")], [])


# --------------------------------------------------------------------------------------------------------------
# The largest of the tasks' losses: a word around a loss.


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
    with quote_in_errors(f"worst_task({loss.text})"):
        return _worst(loss)


def _worst(loss: Objective) -> Objective:
    if len(loss.terms) != 1 or not loss.terms[0].is_loss:
        raise ModelError(
            "what stands inside must be one loss; other terms are added outside",
            write_instead="write worst_task(squared_loss(W, tasks)) + 0.1 * ridge(W)",
        )
    (term,) = loss.terms
    assert term.tasks is not None
    if term.worst:
        raise ModelError("the largest of the tasks' losses is one number already")
    if not getattr(term.atom, "separable", False):
        raise ModelError(
            f"{term.atom.name} is not a sum over samples, and the largest of such losses over tasks is not in the language",
            write_instead="take squared_loss, absolute_loss, huber_loss, logistic_loss or hinge_loss",
        )
    require_in_memory(
        term.tasks, "the largest loss is only known where they are here", f"worst_task({loss.text})"
    )
    text, latex = term.atom_text, term.atom_latex.replace(r"\sum_i ", r"\max_i ", 1)
    return Objective([replace(term, worst=True, atom_text=f"worst_task({text})", atom_latex=latex)])
