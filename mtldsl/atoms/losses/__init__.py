"""Losses, one file a family, registered when this package is imported."""

from mtldsl.atoms.losses.classification import HingeLoss, LogisticLoss, SquaredHingeLoss
from mtldsl.atoms.losses.cox import CoxLoss
from mtldsl.atoms.losses.label_graph_losses import CliqueHinge, LabelGraphLoss
from mtldsl.atoms.losses.log_link import PoissonLoss
from mtldsl.atoms.losses.pairwise_log import PairwiseLogLoss
from mtldsl.atoms.losses.regression import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HuberLoss,
    QuantileLoss,
    SquaredLoss,
    SumOfSquares,
)
from mtldsl.atoms.losses.square_root import SquareRootLoss
from mtldsl.atoms.losses.structured_hinge import StructuredHinge

__all__ = [
    "AbsoluteLoss",
    "CliqueHinge",
    "CoxLoss",
    "EpsilonInsensitiveLoss",
    "HingeLoss",
    "HuberLoss",
    "LabelGraphLoss",
    "LogisticLoss",
    "PairwiseLogLoss",
    "PoissonLoss",
    "QuantileLoss",
    "SquareRootLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "StructuredHinge",
    "SumOfSquares",
]
