"""Losses, one file a family. Importing this package registers them."""

from mtldsl.atoms.losses.absolute import AbsoluteLoss, HuberLoss, QuantileLoss
from mtldsl.atoms.losses.counts import PoissonLoss
from mtldsl.atoms.losses.label_graph import CliqueHinge, LabelGraphLoss
from mtldsl.atoms.losses.logistic import LogisticLoss
from mtldsl.atoms.losses.margins import HingeLoss, SquaredHingeLoss
from mtldsl.atoms.losses.pairwise_log import PairwiseLogLoss
from mtldsl.atoms.losses.square_root import SquareRootLoss
from mtldsl.atoms.losses.squares import SquaredLoss, SumOfSquares
from mtldsl.atoms.losses.structured_hinge import StructuredHinge

__all__ = [
    "AbsoluteLoss",
    "CliqueHinge",
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
