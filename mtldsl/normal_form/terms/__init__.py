"""The types of term of a normal form, one a file. With this room those of losses on rows in memory are registered."""

from mtldsl.normal_form.terms.joint_losses import RadialTerm, RowTerm, WorstTaskTerm
from mtldsl.normal_form.terms.label_graph_term import LabelGraphTerm
from mtldsl.normal_form.terms.structured_term import StructuredTerm

__all__ = [
    "LabelGraphTerm",
    "RadialTerm",
    "RowTerm",
    "StructuredTerm",
    "WorstTaskTerm",
]
