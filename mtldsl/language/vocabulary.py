"""The words of the language: one line a word.

Documentation, signature and checks come from the atom's class.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections import ChainMap
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from mtldsl.atoms import learned_structures, losses, metrics, regularizers, sets
from mtldsl.atoms.losses.classification import ExponentialLoss
from mtldsl.atoms.losses.log_link import GammaLoss
from mtldsl.atoms.losses.multiclass import CrammerSingerLoss, SoftmaxLoss
from mtldsl.atoms.regularizers.concave_sizes import CappedL1, MinimaxConcavePenalty, SmoothlyClippedDeviation
from mtldsl.atoms.regularizers.exclusive_lasso import ExclusiveLasso
from mtldsl.atoms.regularizers.group_norms import TreeNorm
from mtldsl.atoms.regularizers.l1_and_l21_norms import SortedL1Norm
from mtldsl.atoms.regularizers.latent_groups import LatentGroupNorm
from mtldsl.atoms.regularizers.spectral_norms import MaxNorm, SpectralNorm, SquaredClusterNorm
from mtldsl.errors import ModelError
from mtldsl.language import label_graph, learned_unknowns, similarity_helpers, task_similarity
from mtldsl.language.factories import (
    constraint,
    label_loss,
    loss,
    mkl,
    parameter,
    regularizer,
    structure,
    worst_task,
)
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.suggestions import nearest

# --------------------------------------------------------------------------------------------------------------
# Plugins: modules that register words and solvers of their own when they are imported.
#
# A problem file is data, and a plugin is code. So a file can only *name* what it needs, and code runs only if who reads the file
# has said so before: by installing a package that offers the name under the entry point group "mtldsl.plugins", or by allowing the
# module by name (`--allow-plugins`, `load_problem(..., allow_plugins=[...])`). No path in a problem file is ever imported.

#: the group of entry points under which packages offer plugins
GROUP = "mtldsl.plugins"


def installed_plugins() -> dict[str, EntryPoint]:
    """name -> entry point of every plugin that an installed package offers."""
    return {point.name: point for point in entry_points(group=GROUP)}


def use_plugins(names: Iterable[str], allowed: Iterable[str] = ()) -> None:
    """Import plugins by name, so that their words and solvers can be typed.

    allowed : names of modules, and paths of .py files, that may be imported besides installed plugins; a file's name without .py
              is the name of its plugin

    ModelError where a name is neither installed nor allowed, or where the import fails.

    >>> use_plugins(["my_words"])
    Traceback (most recent call last):
    mtldsl.errors.ModelError: the plugin 'my_words' is not installed and not allowed. A plugin runs code: if you trust it, write --allow-plugins my_words (Python: allow_plugins=["my_words"]), or install a package that offers it
    """
    may = {(Path(one).stem if str(one).endswith(".py") else str(one)): str(one) for one in allowed}
    installed = installed_plugins()
    for name in names:
        if name not in may and name not in installed:
            raise ModelError(
                f"the plugin {name!r} is not installed and not allowed{nearest(name, [*may, *installed])}. A plugin runs code: if you "
                f'trust it, write --allow-plugins {name} (Python: allow_plugins=["{name}"]), or install a package that offers it'
            )
        try:
            if name not in may:
                found = installed[name].load()
                if callable(found):
                    found()
            elif may[name].endswith(".py"):
                _import_file(name, Path(may[name]))
            else:
                importlib.import_module(name)
        except Exception as error:  # whatever a plugin raises is a mistake in it
            raise ModelError(
                f"the plugin {name!r} cannot be used: {type(error).__name__}: {error}"
            ) from error


def _import_file(name: str, path: Path) -> None:
    """A module from a file, once."""
    path = path.resolve()
    known = sys.modules.get(name)
    found = (
        getattr(known, "__file__", None) if known else getattr(importlib.util.find_spec(name), "origin", None)
    )
    if found is not None or known is not None:
        if found is None or Path(found).resolve() != path:
            raise ImportError(f"there is a module {name!r} already; give the file another name")
        if known is not None:
            return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # its name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


squared_loss = loss(losses.SquaredLoss)
sum_of_squares = loss(losses.SumOfSquares)
square_root_loss = loss(losses.SquareRootLoss)
absolute_loss = loss(losses.AbsoluteLoss)
quantile_loss = loss(losses.QuantileLoss)
epsilon_insensitive_loss = loss(losses.EpsilonInsensitiveLoss)
huber_loss = loss(losses.HuberLoss)
hinge_loss = loss(losses.HingeLoss)
squared_hinge_loss = loss(losses.SquaredHingeLoss)
logistic_loss = loss(losses.LogisticLoss)
exponential_loss = loss(ExponentialLoss)
poisson_loss = loss(losses.PoissonLoss)
gamma_loss = loss(GammaLoss)
cox_loss = loss(losses.CoxLoss)
softmax_loss = loss(SoftmaxLoss)
crammer_singer_loss = loss(CrammerSingerLoss)
structured_hinge = loss(losses.StructuredHinge)
clique_hinge = label_loss(losses.CliqueHinge)
pairwise_log_loss = label_loss(losses.PairwiseLogLoss)

FScore = metrics.FScore
AUC = metrics.AUC
ROCArea = metrics.ROCArea
ErrorRate = metrics.ErrorRate
BalancedError = metrics.BalancedError
Jaccard = metrics.Jaccard
GMean = metrics.GMean
PartialAUC = metrics.PartialAUC
AveragePrecision = metrics.AveragePrecision
NDCG = metrics.NDCG
PrecisionAt = metrics.PrecisionAt
RecallAt = metrics.RecallAt

ridge = regularizer(regularizers.Ridge)
frobenius_norm = regularizer(regularizers.FrobeniusNorm)
l1_norm = regularizer(regularizers.L1Norm)
sorted_l1_norm = regularizer(SortedL1Norm)
l21_norm = regularizer(regularizers.L21Norm)
l12_norm = regularizer(regularizers.L12Norm)
l1_inf_norm = regularizer(regularizers.L1InfNorm)
exclusive_lasso = regularizer(ExclusiveLasso)
tree_norm = regularizer(TreeNorm)
group_norm = regularizer(regularizers.GroupNorm, nested=tree_norm)
latent_group_norm = regularizer(LatentGroupNorm)
column_group_norm = regularizer(regularizers.ColumnGroupNorm)
half_squared_group_norm = regularizer(regularizers.HalfSquaredGroupNorm)
half_squared_k_support_norm = regularizer(regularizers.HalfSquaredKSupportNorm)
trace_norm = regularizer(regularizers.TraceNorm)
spectral_norm = regularizer(SpectralNorm)
max_norm = regularizer(MaxNorm)
squared_trace_norm = regularizer(regularizers.SquaredTraceNorm)
squared_cluster_norm = regularizer(SquaredClusterNorm)
graph_laplacian = regularizer(regularizers.GraphLaplacian)
mean_regularizer = regularizer(regularizers.MeanRegularizer)
total_variation = regularizer(regularizers.TotalVariation)

kronecker_ridge = regularizer(regularizers.KroneckerRidge)

mcp = regularizer(MinimaxConcavePenalty)
scad = regularizer(SmoothlyClippedDeviation)
capped_l1 = regularizer(CappedL1)
rank = regularizer(regularizers.Rank)
log_rank = structure(learned_structures.LogRank)
capped_trace_norm = structure(learned_structures.CappedTraceNorm)
schatten_norm = structure(learned_structures.SchattenNorm)
spectral_penalty = structure(learned_structures.SpectralPenalty)

mkl_norm = mkl(learned_structures.MKLNorm)

matrix_normal = structure(learned_structures.MatrixNormal)
feature_covariance_norm = structure(learned_structures.FeatureCovarianceNorm)
task_covariance_norm = structure(learned_structures.TaskCovarianceNorm)

KernelWeights = learned_unknowns.KernelWeights
FeaturePrecision = learned_unknowns.FeaturePrecision
TaskPrecision = learned_unknowns.TaskPrecision
FeatureCovariance = learned_unknowns.FeatureCovariance
TaskCovariance = learned_unknowns.TaskCovariance

columns_on_simplex = constraint(sets.ColumnsOnSimplex)

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
SIMILARITIES = {name: getattr(similarity_helpers, name) for name in similarity_helpers.__all__}

NodeWeights = label_graph.NodeWeights
EdgeWeights = label_graph.EdgeWeights
TaskSimilarity = task_similarity.TaskSimilarity
p_norm = learned_unknowns.p_norm

#: word -> function; what a problem file may call, and what the catalogue lists
WORDS: dict[str, Any] = {name: word for name, word in list(globals().items()) if hasattr(word, "atom")}
WORDS |= METRICS

#: the base of a user's own metrics; a name of the package, no word of problem files
Metric = metrics.Metric


def usage(name: str) -> str:
    """Return how a word is typed: its name, parameters and defaults.

    >>> usage("FScore"), usage("ridge")
    ('FScore(beta=1.0)', 'ridge(W, weights=None)')
    """
    signature = inspect.signature(WORDS[name])
    if name in METRICS:  # a class: its signature has types
        signature = inspect.Signature([parameter(p.name, p.default) for p in signature.parameters.values()])
    return f"{name}{signature}"


globals().update(SIMILARITIES)


# --------------------------------------------------------------------------------------------------------------
# What an expression of a problem file may call, and how that is typed.

#: name -> function: the words, the similarities inside `mkl_norm(W, [...])`, the norm that bounds kernel weights, and what stands around a loss
CALLABLE = ChainMap(
    WORDS, SIMILARITIES, {"p_norm": p_norm, "worst_task": worst_task}
)  # words of one's own come and go


def typed_usage(name: str) -> str:
    """Return how it is typed: name, parameters and defaults, without types.

    >>> typed_usage("laplacian"), typed_usage("p_norm"), typed_usage("ridge")
    ('laplacian(L, gamma=1.0, columns=None)', 'p_norm(theta, p=2.0)', 'ridge(W, weights=None)')
    """
    if name in WORDS:
        return usage(name)
    signature = inspect.signature(CALLABLE[name])
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"{name}{inspect.Signature(plain)}"


def declaration_line(kind: str) -> str:
    """The line of [learned] that declares an unknown of this kind under its usual name.

    >>> declaration_line("KernelWeights")
    'theta = "KernelWeights"'
    """
    return f'{inspect.signature(UNKNOWNS[kind]).parameters["name"].default} = "{kind}"'
