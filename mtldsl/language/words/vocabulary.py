"""The words of the language: one line a word. Documentation, signature and checks come from the atom's class."""

from __future__ import annotations

import inspect
from typing import Any

from mtldsl.atoms import losses, metrics, regularizers, sets, structures
from mtldsl.atoms.losses.amounts import GammaLoss
from mtldsl.atoms.losses.exponential import ExponentialLoss
from mtldsl.atoms.losses.rows import CrammerSingerLoss, SoftmaxLoss
from mtldsl.atoms.regularizers.cluster_norm import SquaredClusterNorm
from mtldsl.atoms.regularizers.latent_groups import LatentGroupNorm
from mtldsl.atoms.regularizers.max_norm import MaxNorm
from mtldsl.atoms.regularizers.nested_groups import TreeNorm
from mtldsl.atoms.regularizers.sorted_entries import SortedL1Norm
from mtldsl.language.unknowns import covariances, kernel_weights, label_graph, similarities, task_similarity
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.words.dress import parameter
from mtldsl.language.words.learned_argument import unknown_of
from mtldsl.language.words.makers import (
    constraint,
    label_loss,
    loss,
    mkl,
    regularizer,
    structure,
)

squared_loss = loss(losses.SquaredLoss)
sum_of_squares = loss(losses.SumOfSquares)
square_root_loss = loss(losses.SquareRootLoss)
absolute_loss = loss(losses.AbsoluteLoss)
quantile_loss = loss(losses.QuantileLoss)
huber_loss = loss(losses.HuberLoss)
hinge_loss = loss(losses.HingeLoss)
squared_hinge_loss = loss(losses.SquaredHingeLoss)
logistic_loss = loss(losses.LogisticLoss)
exponential_loss = loss(ExponentialLoss)
poisson_loss = loss(losses.PoissonLoss)
gamma_loss = loss(GammaLoss)
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
tree_norm = regularizer(TreeNorm)
group_norm = regularizer(regularizers.GroupNorm, nested=tree_norm)
latent_group_norm = regularizer(LatentGroupNorm)
column_group_norm = regularizer(regularizers.ColumnGroupNorm)
half_squared_group_norm = regularizer(regularizers.HalfSquaredGroupNorm)
half_squared_k_support_norm = regularizer(regularizers.HalfSquaredKSupportNorm)
trace_norm = regularizer(regularizers.TraceNorm)
max_norm = regularizer(MaxNorm)
squared_trace_norm = regularizer(regularizers.SquaredTraceNorm)
squared_cluster_norm = regularizer(SquaredClusterNorm)
graph_laplacian = regularizer(regularizers.GraphLaplacian)
mean_regularizer = regularizer(regularizers.MeanRegularizer)
total_variation = regularizer(regularizers.TotalVariation)

kronecker_ridge = regularizer(regularizers.KroneckerRidge)

rank = regularizer(regularizers.Rank)
log_rank = structure(structures.LogRank)
capped_trace_norm = structure(structures.CappedTraceNorm)
schatten_norm = structure(structures.SchattenNorm)
spectral_penalty = structure(structures.SpectralPenalty)

mkl_norm = mkl(structures.MKLNorm)

matrix_normal = structure(structures.MatrixNormal)
feature_covariance_norm = structure(structures.FeatureCovarianceNorm)
task_covariance_norm = structure(structures.TaskCovarianceNorm)

KernelWeights = kernel_weights.KernelWeights
FeaturePrecision = covariances.FeaturePrecision
TaskPrecision = covariances.TaskPrecision
FeatureCovariance = covariances.FeatureCovariance
TaskCovariance = covariances.TaskCovariance

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
SIMILARITIES = {
    name: getattr(similarities, name) for name in similarities.__all__ if name != "TaskSimilarity"
}

NodeWeights = label_graph.NodeWeights
EdgeWeights = label_graph.EdgeWeights
TaskSimilarity = task_similarity.TaskSimilarity
p_norm = kernel_weights.p_norm

#: word -> function; what a problem file may call, and what the catalogue lists
WORDS: dict[str, Any] = {name: word for name, word in list(globals().items()) if hasattr(word, "atom")}
WORDS |= METRICS

#: the base of a user's own metrics; a name of the package, no word of problem files
Metric = metrics.Metric


def usage(name: str) -> str:
    """How a word is typed: its name, parameters and defaults.

    >>> usage("FScore"), usage("ridge")
    ('FScore(beta=1.0)', 'ridge(W, weights=None)')
    """
    signature = inspect.signature(WORDS[name])
    if name in METRICS:  # a class: its signature has types
        signature = inspect.Signature([parameter(p.name, p.default) for p in signature.parameters.values()])
    return f"{name}{signature}"


globals().update(SIMILARITIES)

__all__ = [  # pyrefly: ignore[unresolvable-dunder-all]  # the names of the words
    "METRICS", "SIMILARITIES", "UNKNOWNS", "WORDS", "EdgeWeights", "Metric", "NodeWeights", "TaskSimilarity", "p_norm", "unknown_of",
    *SIMILARITIES, *UNKNOWNS, *WORDS,
]  # fmt: skip
