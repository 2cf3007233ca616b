"""Types of term of a normal form: importing this room registers those of losses on rows in memory."""

from mtldsl.normal_form.terms.joint_losses import CoxTerm, RadialTerm, RowTerm, WorstTaskTerm
from mtldsl.normal_form.terms.label_graph_term import LabelGraphTerm
from mtldsl.normal_form.terms.structured_term import StructuredTerm

__all__ = [
    "CoxTerm",
    "LabelGraphTerm",
    "RadialTerm",
    "RowTerm",
    "StructuredTerm",
    "WorstTaskTerm",
]
