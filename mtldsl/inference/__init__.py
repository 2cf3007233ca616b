"""Inference over labels that stand in cliques: the best labelling (`Decoder`), and the log-partition with marginals (`LogPartition`)."""

from mtldsl.inference.cliques import Cliques
from mtldsl.inference.decoder import Decoded, Decoder
from mtldsl.inference.log_partition import LogPartition

__all__ = ["Cliques", "Decoded", "Decoder", "LogPartition"]
