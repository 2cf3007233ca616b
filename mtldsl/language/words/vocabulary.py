"""The words of the language: one line a word. Documentation, signature and checks come from the atom's class."""

from __future__ import annotations

import inspect
from dataclasses import MISSING
from numbers import Real

from mtldsl.atoms import losses, metrics, regularizers, sets, structures
from mtldsl.atoms.function import Atom, Loss, Regularizer
from mtldsl.atoms.losses.amounts import GammaLoss
from mtldsl.atoms.losses.exponential import ExponentialLoss
from mtldsl.atoms.regularizers.kronecker import checked_symmetric
from mtldsl.atoms.regularizers.max_norm import MaxNorm
from mtldsl.atoms.regularizers.sorted_entries import SortedL1Norm
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.expressions.constants import constant_text
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.scalar import Number, Scalar
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.spelling import declared_in, made
from mtldsl.language.unknowns import kernel_weights, label_graph, learned, similarities, task_similarity
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.words import mkl_word
from mtldsl.language.words.fitted import fitted
from mtldsl.tasks import Tasks
from mtldsl.tasks.names import elsewhere
from mtldsl.values.number import quoted
from mtldsl.values.option import as_flag


def _build(cls: type[Atom], args, kwargs, typed: str) -> Atom:
    names = [field.name for field in cls.typed_fields()]
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
    missing = [f.name for f in cls.typed_fields() if f.default is MISSING and f.name not in parameters]
    if missing:
        raise ModelError(
            f"{typed}: {cls.name} needs {', '.join(missing)}; write {cls.name}(W, {', '.join(f'{name}=...' for name in missing)})"
        )
    return cls(**parameters)


def _typed(cls, argument, atom: Atom | None, extra=()) -> str:
    shown = [getattr(argument, "text", None) or quoted(argument), *extra]
    if atom is not None:
        shown += [f"{name}={_short(value)}" for name, value in atom.arguments().items()]
    return f"{cls.name}({', '.join(shown)})"


def _short(value) -> str:
    if isinstance(value, (list, tuple)) and any(isinstance(item, metrics.Metric) for item in value):
        return repr(list(value))
    if callable(value) and not isinstance(value, type):  # a user's own function
        return getattr(value, "__name__", repr(value)[:40])
    return constant_text(value)


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
        mean = as_flag(mean, f"{cls.name}({W.text}, tasks, mean", ModelError)
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
                    f"the intercept of {weights.name} alone makes this loss zero or does not matter, since its "
                    "labellings have a fixed number of positives",
                    term=typed,
                    write_instead="write "
                    + Spelled("Weights(tasks) without intercept=True", f"{weights.name} = {{}} in [weights]"),
                )
        latex = rf"\sum_i {atom.latex(_prediction_latex(W, with_intercept))}"
        if mean:
            latex = rf"\sum_i \tfrac1{{n_i}} {atom.latex(_prediction_latex(W, with_intercept))}"
        return Objective([Term(Number(1.0), atom, W, typed, latex, tasks, bool(mean))])

    head = [_parameter("W"), _parameter("tasks")]
    return _dress(word, cls, head, [inspect.Parameter("mean", inspect.Parameter.KEYWORD_ONLY, default=False)])


def _label_loss(cls: type[losses.LabelGraphLoss]):
    def word(U, V, tasks, *args, **kwargs):
        shown = [getattr(one, "text", _short(one)) for one in (U, V)] + ["tasks"]
        if "loss" in kwargs and isinstance(kwargs["loss"], dict) and isinstance(tasks, Tasks):
            kwargs["loss"] = label_graph.costs_in_order(
                kwargs["loss"], tasks, f"{cls.name}({', '.join(shown)}, loss=...)"
            )
        atom = _build(cls, args, kwargs, f"{cls.name}({', '.join(shown)})")
        shown += [f"{name}={label_graph.costs_text(value)}" for name, value in atom.arguments().items()]
        return label_graph.label_loss(atom, U, V, tasks, f"{cls.name}({', '.join(shown)})")

    return _dress(word, cls, [_parameter("U"), _parameter("V"), _parameter("tasks")], [])


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
        atom = label_graph.grouped_by_edges(atom, W)
        problem = atom.check(W.shape)
        if problem:
            raise ModelError(f"{typed}: {problem}")
        return Objective([Term(Number(1.0), atom, W, typed, atom.latex(W.latex))])

    return _dress(word, cls, [_parameter("W")], [])


def _structure(cls: type[structures.Structure]):
    names = [matrix.name for matrix in cls.learns]

    def word(W, *args, **kwargs):
        _require_affine(cls, W)
        given = dict(zip(names, args, strict=False))
        given |= {name: kwargs.pop(name) for name in names if name in kwargs and name not in given}
        missing = [name for name in names if name not in given]
        typed = _typed(cls, W, None, [_short(given.get(name, name)) for name in names])
        if missing:
            advice = f"write {cls.name}(W, {', '.join(names)}) with"
            for i, matrix in enumerate(cls.learns):
                advice += f"{',' if i else ''} {matrix.name} = " + made(unknown_of(matrix).__name__)
            raise ModelError(f"{cls.name} needs {', '.join(missing)}", term=typed, write_instead=advice)
        atom = _build(cls, args[len(names) :], kwargs, typed)
        typed = _typed(cls, W, atom, [_short(matrix) for matrix in given.values()])
        matrices = tuple(
            _checked_matrix(cls, matrix, description, W, typed)
            for matrix, description in zip(given.values(), cls.learns, strict=True)
        )
        symbols = {
            description.name: matrix.latex
            for matrix, description in zip(matrices, cls.learns, strict=True)
            if isinstance(matrix, LearnedUnknown)
        }
        return Objective([Term(Number(1.0), atom, W, typed, atom.latex(W.latex, symbols), learned=matrices)])

    return _dress(word, cls, [_parameter("W"), *map(_parameter, names)], [])


def _mkl(cls: type[structures.MKLNorm]):
    def word(W, similarities, theta=None, p=None):
        _require_affine(cls, W)
        return mkl_word.mkl_norm(W, similarities, theta, p)

    optional = [_parameter("theta", None), _parameter("p", None)]
    return _dress(word, cls, [_parameter("W"), _parameter("similarities")], optional)


def unknown_of(description: structures.Learned) -> type[LearnedUnknown]:
    """The class of unknowns that stand where a structure learns such a matrix."""
    return next(
        kind
        for kind in LearnedUnknown.__subclasses__()
        if (kind.axis, kind.kind) == (description.axis, description.kind)
    )


def _checked_matrix(cls, matrix, description: structures.Learned, W: Affine, typed: str):
    """The unknown, or the matrix that is given, where it fits; ModelError where it does not."""
    wanted, side = unknown_of(description), W.shape[0 if description.axis == "features" else 1]
    if isinstance(matrix, LearnedUnknown):
        if not isinstance(matrix, wanted):
            raise ModelError(
                f"{description.name} must be a {wanted.__name__}, and {matrix.text} is a {type(matrix).__name__}",
                term=typed,
                write_instead=f"write {description.name} = " + made(wanted.__name__),
            )
        if matrix.side != side:
            raise ModelError(
                f"{typed}: {matrix.text} is {matrix.side} x {matrix.side}, but {W.text} has {side} "
                f"{'rows (features)' if description.axis == 'features' else 'columns (tasks)'}; the word takes an expression of "
                "the full shape"
            )
        return matrix
    if isinstance(matrix, (Affine, Objective, Scalar, Tasks, str, Real)) or matrix is None:
        given = f", or an array ({side}, {side}) that fixes it" if description.kind == "precision" else ""
        raise ModelError(
            f"{description.name} must be a {wanted.__name__}{given}; this is {_short(matrix)}"
            + declared_in(wanted.__name__, description.name),
            term=typed,
        )
    if description.kind == "covariance":
        sides = (
            "rows=inv(D), columns=eye(m)"
            if description.axis == "features"
            else "rows=eye(d), columns=inv(Omega)"
        )
        raise ModelError(
            f"{typed}: {description.name} is a matrix that is learned, and an array is given; with a given covariance the penalty "
            f"is 2 * kronecker_ridge({W.text}, {sides})"
        )
    fixed = checked_symmetric(matrix, typed, positive=True)
    if fixed.side != side:
        raise ModelError(
            f"{typed}: {description.name} is given as a {fixed.side} x {fixed.side} matrix, but {W.text} needs {side} x {side}"
        )
    return fixed


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
    given = {parameter.name for parameter in (*head, *tail)}
    own = [
        _parameter(f.name, inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in cls.typed_fields()
        if f.name not in given
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
exponential_loss = _loss(ExponentialLoss)
poisson_loss = _loss(losses.PoissonLoss)
gamma_loss = _loss(GammaLoss)
structured_hinge = _loss(losses.StructuredHinge)
clique_hinge = _label_loss(losses.CliqueHinge)
pairwise_log_loss = _label_loss(losses.PairwiseLogLoss)

FScore = metrics.FScore
AUC = metrics.AUC
ROCArea = metrics.ROCArea
ErrorRate = metrics.ErrorRate
PrecisionAt = metrics.PrecisionAt
RecallAt = metrics.RecallAt

ridge = _regularizer(regularizers.Ridge)
frobenius_norm = _regularizer(regularizers.FrobeniusNorm)
l1_norm = _regularizer(regularizers.L1Norm)
sorted_l1_norm = _regularizer(SortedL1Norm)
l21_norm = _regularizer(regularizers.L21Norm)
l12_norm = _regularizer(regularizers.L12Norm)
l1_inf_norm = _regularizer(regularizers.L1InfNorm)
group_norm = _regularizer(regularizers.GroupNorm)
column_group_norm = _regularizer(regularizers.ColumnGroupNorm)
half_squared_group_norm = _regularizer(regularizers.HalfSquaredGroupNorm)
half_squared_k_support_norm = _regularizer(regularizers.HalfSquaredKSupportNorm)
trace_norm = _regularizer(regularizers.TraceNorm)
max_norm = _regularizer(MaxNorm)
squared_trace_norm = _regularizer(regularizers.SquaredTraceNorm)
graph_laplacian = _regularizer(regularizers.GraphLaplacian)
mean_regularizer = _regularizer(regularizers.MeanRegularizer)
total_variation = _regularizer(regularizers.TotalVariation)

kronecker_ridge = _regularizer(regularizers.KroneckerRidge)

rank = _regularizer(regularizers.Rank)
log_rank = _structure(structures.LogRank)
capped_trace_norm = _structure(structures.CappedTraceNorm)
schatten_norm = _structure(structures.SchattenNorm)
spectral_penalty = _structure(structures.SpectralPenalty)

mkl_norm = _mkl(structures.MKLNorm)

matrix_normal = _structure(structures.MatrixNormal)
feature_covariance_norm = _structure(structures.FeatureCovarianceNorm)
task_covariance_norm = _structure(structures.TaskCovarianceNorm)

KernelWeights = kernel_weights.KernelWeights
FeaturePrecision = learned.FeaturePrecision
TaskPrecision = learned.TaskPrecision
FeatureCovariance = learned.FeatureCovariance
TaskCovariance = learned.TaskCovariance

columns_on_simplex = _set(sets.ColumnsOnSimplex)

#: metric -> class; they stand inside structured_hinge(..., metric=...)
METRICS = {
    name: word
    for name, word in list(globals().items())
    if isinstance(word, type) and issubclass(word, metrics.Metric)
}

#: class of matrices that are learned, by name: declared beside the weights, like `Weights` no words of expressions
UNKNOWNS = {
    name: kind
    for name, kind in list(globals().items())
    if isinstance(kind, type) and issubclass(kind, LearnedUnknown) and kind is not LearnedUnknown
}

#: helper -> function; they stand inside mkl_norm(W, [...])
SIMILARITIES = {
    name: getattr(similarities, name) for name in similarities.__all__ if name != "TaskSimilarity"
}

NodeWeights = label_graph.NodeWeights
EdgeWeights = label_graph.EdgeWeights
TaskSimilarity = task_similarity.TaskSimilarity
p_norm = kernel_weights.p_norm

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


globals().update(SIMILARITIES)

__all__ = [
    "METRICS", "SIMILARITIES", "UNKNOWNS", "WORDS", "EdgeWeights", "Metric", "NodeWeights", "TaskSimilarity", "p_norm", "unknown_of",
    *SIMILARITIES, *UNKNOWNS, *WORDS,
]  # fmt: skip
