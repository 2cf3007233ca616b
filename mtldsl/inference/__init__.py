"""Inference over labels that stand in cliques: the best labelling (`Decoder`), and the log-partition with marginals (`LogPartition`)."""

from mtldsl.inference.cliques import GAP, Cliques
from mtldsl.inference.decoder import Decoded, Decoder
from mtldsl.inference.log_partition import LogPartition

__all__ = ["GAP", "Cliques", "Decoded", "Decoder", "LogPartition"]
