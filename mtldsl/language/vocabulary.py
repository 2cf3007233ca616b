"""The words of the language: one line a word. Documentation, signature and checks come from the atom's class."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import numpy as np

from mtldsl.atoms import losses, metrics, regularizers, sets
from mtldsl.atoms.function import Atom, Loss, Regularizer
from mtldsl.errors import ModelError
from mtldsl.language.constants import constant_text
from mtldsl.language.constraint import Constraint
from mtldsl.language.expression import Affine
from mtldsl.language.fitted import fitted
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalar import Number
from mtldsl.language.weights import Weights
from mtldsl.tasks import Tasks
from mtldsl.tasks.names import elsewhere


def _build(cls: type[Atom], args, kwargs, typed: str) -> Atom:
    names = [field.name for field in fields(cls)]
    if len(args) > len(names):
        raise ModelError(
            f"{typed}: too many arguments; {cls.name} takes {names or 'no parameters'} after the expression"
        )
    parameters = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise ModelError(
                f"{typed}: {cls.name} has no parameter {name!r}; it takes {', '.join(names) or 'none'}"
            )
        if name in parameters:
            raise ModelError(f"{typed}: the parameter {name!r} is given twice")
        parameters[name] = value
    missing = [f.name for f in fields(cls) if f.default is MISSING and f.name not in parameters]
    if missing:
        raise ModelError(
            f"{typed}: {cls.name} needs {', '.join(missing)}; write {cls.name}(W, {missing[0]}=...)"
        )
    return cls(**parameters)


def _typed(cls, argument, atom: Atom | None, extra=()) -> str:
    shown = [getattr(argument, "text", repr(argument)[:40]), *extra]
    if atom is not None:
        shown += [f"{name}={_short(value)}" for name, value in atom.arguments().items()]
    return f"{cls.name}({', '.join(shown)})"


def _short(value) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(item, metrics.Metric) for item in value):
        return repr(list(value))
    try:
        return constant_text(value)
    except (TypeError, ValueError):
        text = repr(value)
        return text if len(text) <= 40 else text[:37] + "..."


def _require_affine(cls, argument) -> None:
    if isinstance(argument, Affine):
        return
    hint = ""
    if isinstance(argument, Tasks):
        hint = f"; the weights come first: {cls.name}(W, tasks)"
    elif isinstance(argument, Objective):
        hint = f"; {argument.text} is a number already, and a function of it is outside the language"
    raise ModelError(
        f"{cls.name}({_short(argument)}, ...): the first argument must be an expression of Weights, "
        f"not {type(argument).__name__}{hint}"
    )


def _loss(cls: type[Loss]):
    def word(W, tasks, *args, mean=False, **kwargs):
        _require_affine(cls, W)
        if not isinstance(tasks, Tasks):
            raise ModelError(
                f"{cls.name}({W.text}, {_short(tasks)}): the second argument must be a Tasks object, "
                f"not {type(tasks).__name__}; write {cls.name}({W.text}, tasks)"
            )
        if not isinstance(mean, bool | np.bool_):
            raise ModelError(f"{cls.name}({W.text}, tasks, mean={mean!r}): write mean=True or mean=False")
        atom = _build(cls, args, kwargs, _typed(cls, W, None, ["tasks"]))
        typed = _typed(cls, W, atom, ["tasks"] + (["mean=True"] if mean else []))
        expected = (tasks.n_features, tasks.n_tasks)
        if W.shape != expected:
            raise ModelError(
                f"{typed}: {W.text} has shape {W.shape}, but these tasks need {expected} (features x tasks); a loss takes "
                "one column of weights for every task"
            )
        _require_same_columns(typed, W, tasks)
        with_intercept = {part.weights for part in W.parts if part.weights.intercept}
        if len(with_intercept) > 1:
            names = " and ".join(sorted(w.name for w in with_intercept))
            raise ModelError(
                f"{typed}: {names} both carry an intercept, and only their sum would be determined; "
                "write intercept=True on one of them only"
            )
        for weights in with_intercept:
            if weights.tasks.n_tasks != tasks.n_tasks:
                raise ModelError(
                    f"{typed}: the intercept of {weights.name} has {weights.tasks.n_tasks} entries, not one a task"
                )
        atom = fitted(atom, tasks, typed)
        for weights in with_intercept:
            if not atom.takes_intercept:
                raise ModelError(
                    f"{typed}: the intercept of {weights.name} alone makes this loss zero or does not matter, since its "
                    f"labellings have a fixed number of positives; write Weights(tasks) without intercept=True"
                )
        latex = rf"\sum_i {atom.latex(_prediction_latex(W, with_intercept))}"
        if mean:
            latex = rf"\sum_i \tfrac1{{n_i}} {atom.latex(_prediction_latex(W, with_intercept))}"
        return Objective([Term(Number(1.0), atom, W, typed, latex, tasks, bool(mean))])

    head = [_parameter("W"), _parameter("tasks")]
    return _dress(word, cls, head, [inspect.Parameter("mean", inspect.Parameter.KEYWORD_ONLY, default=False)])


def _require_same_columns(typed: str, W: Affine, tasks: Tasks) -> None:
    """ModelError where weights made for other tasks have a feature or task of these at another position."""
    for part in W.parts:
        own = part.weights.tasks
        for kind, mapped, mine, theirs in (
            ("feature", part.left, own.feature_names, tasks.feature_names),
            ("task", part.right, own.task_names, tasks.task_names),
        ):
            name = None if mapped is not None else elsewhere(theirs, mine)
            if name is not None:
                raise ModelError(
                    f"{typed}: {kind} {name!r} is number {theirs.index(name)} of these tasks, but number {mine.index(name)} "
                    f"of those that {part.weights.name} was made for; give the {kind}s in one order"
                )


def _regularizer(cls: type[Regularizer]):
    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        atom = _build(cls, args, kwargs, _typed(cls, W, None))
        typed = _typed(cls, W, atom)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{typed}: {problem}")
        return Objective([Term(Number(1.0), atom, W, typed, atom.latex(W.latex))])

    return _dress(word, cls, [_parameter("W")], [])


def _set(cls):
    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        atom = _build(cls, args, kwargs, _typed(cls, W, None))
        typed = _typed(cls, W, atom)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{typed}: {problem}")
        return Constraint(atom, W, typed, atom.latex(W.latex))

    return _dress(word, cls, [_parameter("W")], [])


def _parameter(name, default=inspect.Parameter.empty):
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _dress(word, cls, head, tail):
    """Give the word its atom's documentation and a signature that an editor can show."""
    own = [
        _parameter(f.name, inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in fields(cls)
    ]
    word.__signature__ = inspect.Signature([*head, *own, *tail])
    word.__name__ = word.__qualname__ = cls.name
    word.__doc__ = cls.__doc__
    word.__module__ = cls.__module__  # the class's own doctest is collected there, once
    word.atom = cls
    return word


def _prediction_latex(W: Affine, with_intercept) -> str:
    """X_i w_i for a matrix W (its columns are the w_i); X_i (L + S)_i for an expression."""
    if isinstance(W, Weights) and len(W.name) == 1 and W.name.lower() not in "bxy":  # b, X and y are taken
        column = f"{W.name.lower()}_i"
    else:
        column = (f"({W.latex})" if W.precedence < 3 or "_" in W.latex else W.latex) + "_i"
    return f"X_i {column}" + (r" + b_i" if with_intercept else "")


# ---------------------------------------------------------------------------------------------- the words

squared_loss = _loss(losses.SquaredLoss)
sum_of_squares = _loss(losses.SumOfSquares)
square_root_loss = _loss(losses.SquareRootLoss)
absolute_loss = _loss(losses.AbsoluteLoss)
quantile_loss = _loss(losses.QuantileLoss)
huber_loss = _loss(losses.HuberLoss)
hinge_loss = _loss(losses.HingeLoss)
squared_hinge_loss = _loss(losses.SquaredHingeLoss)
logistic_loss = _loss(losses.LogisticLoss)
poisson_loss = _loss(losses.PoissonLoss)
structured_hinge = _loss(losses.StructuredHinge)

FScore = metrics.FScore
AUC = metrics.AUC
ROCArea = metrics.ROCArea
ErrorRate = metrics.ErrorRate
PrecisionAt = metrics.PrecisionAt
RecallAt = metrics.RecallAt

ridge = _regularizer(regularizers.Ridge)
frobenius_norm = _regularizer(regularizers.FrobeniusNorm)
l1_norm = _regularizer(regularizers.L1Norm)
l21_norm = _regularizer(regularizers.L21Norm)
l12_norm = _regularizer(regularizers.L12Norm)
l1_inf_norm = _regularizer(regularizers.L1InfNorm)
group_norm = _regularizer(regularizers.GroupNorm)
trace_norm = _regularizer(regularizers.TraceNorm)
squared_trace_norm = _regularizer(regularizers.SquaredTraceNorm)
graph_laplacian = _regularizer(regularizers.GraphLaplacian)
mean_regularizer = _regularizer(regularizers.MeanRegularizer)
total_variation = _regularizer(regularizers.TotalVariation)

columns_on_simplex = _set(sets.ColumnsOnSimplex)

#: metric -> class; they stand inside structured_hinge(..., metric=...)
METRICS = {
    name: word
    for name, word in list(globals().items())
    if isinstance(word, type) and issubclass(word, metrics.Metric)
}

#: word -> function; what a problem file may call, and what the catalogue lists
WORDS = {name: word for name, word in list(globals().items()) if hasattr(word, "atom")} | METRICS

#: the base of a user's own metrics; a name of the package, no word of problem files
Metric = metrics.Metric


def usage(name: str) -> str:
    """How a word is typed: its name, parameters and defaults.

    >>> usage("FScore"), usage("ridge")
    ('FScore(beta=1.0)', 'ridge(W, weights=None)')
    """
    signature = inspect.signature(WORDS[name])
    if name in METRICS:  # a class: its signature has types
        signature = inspect.Signature([_parameter(p.name, p.default) for p in signature.parameters.values()])
    return f"{name}{signature}"


__all__ = ["METRICS", "WORDS", "Metric", *WORDS]
