"""Inference over labels that stand in cliques: the best labelling (`Decoder`), and the log-partition with marginals (`LogPartition`)."""

from mtldsl.atoms.inference.cliques import GAP, Cliques
from mtldsl.atoms.inference.decoder import DecodedLabelings, Decoder, LogPartition

__all__ = [
    "GAP",
    "Cliques",
    "DecodedLabelings",
    "Decoder",
    "LogPartition",
]
