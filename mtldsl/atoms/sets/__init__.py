"""Sets, one file a family. Importing this package registers them."""

from mtldsl.atoms.sets.balls import FrobeniusBall, L1Ball, L21Ball, TraceNormBall
from mtldsl.atoms.sets.bounds import AtLeast, AtMost, EqualTo
from mtldsl.atoms.sets.rank import RankAtMost
from mtldsl.atoms.sets.simplex import ColumnsOnSimplex

__all__ = [
    "AtLeast",
    "AtMost",
    "ColumnsOnSimplex",
    "EqualTo",
    "FrobeniusBall",
    "L1Ball",
    "L21Ball",
    "RankAtMost",
    "TraceNormBall",
]
