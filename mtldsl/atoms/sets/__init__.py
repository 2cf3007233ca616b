"""Sets, one file a family. Importing this package registers them."""

from mtldsl.atoms.sets.balls import NormBall
from mtldsl.atoms.sets.bounds import AtLeast, AtMost, EqualTo
from mtldsl.atoms.sets.rank import RankAtMost
from mtldsl.atoms.sets.simplex import ColumnsOnSimplex

__all__ = [
    "AtLeast",
    "AtMost",
    "ColumnsOnSimplex",
    "EqualTo",
    "NormBall",
    "RankAtMost",
]
