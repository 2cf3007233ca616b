"""The sections of a problem file, one line each, in the order in which they are checked, and then read."""

from __future__ import annotations

from mtldsl.files.arrays import ARRAYS
from mtldsl.files.check import CHECK
from mtldsl.files.data import DATA, SPLIT
from mtldsl.files.groups import GROUPS
from mtldsl.files.learned import LEARNED
from mtldsl.files.model import TOP
from mtldsl.files.output import OUTPUT
from mtldsl.files.parameters import PARAMETERS
from mtldsl.files.plugins import PLUGINS
from mtldsl.files.rules import TABLE
from mtldsl.files.section import Section
from mtldsl.files.solve import SOLVE
from mtldsl.files.thresholds import THRESHOLDS
from mtldsl.files.validation import VALIDATION
from mtldsl.files.weights import WEIGHTS

__all__ = ["SECTIONS"]

_TABLES = (
    PLUGINS,
    SPLIT,
    CHECK,
    OUTPUT,
    SOLVE,
    DATA,
    WEIGHTS,
    LEARNED,
    PARAMETERS,
    ARRAYS,
    GROUPS,
    VALIDATION,
    THRESHOLDS,
)

#: the top of the file, whose keys are its own and every table, then the tables
SECTIONS: tuple[Section, ...] = (TOP.holding({table.name: TABLE for table in _TABLES}), *_TABLES)
