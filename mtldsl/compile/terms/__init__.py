"""The types of term of a normal form, one a file. With this room those of losses on rows in memory are registered."""

from mtldsl.compile.terms.label_graph import LabelGraphTerm
from mtldsl.compile.terms.radial import RadialTerm
from mtldsl.compile.terms.rows import RowTerm
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.compile.terms.worst_task import WorstTaskTerm

__all__ = ["LabelGraphTerm", "RadialTerm", "RowTerm", "StructuredTerm", "WorstTaskTerm"]
