"""The protocol of atoms: one mathematical function as a class on plain arrays, with traits that solvers ask for.

Three kinds meet here. A `Loss` (`loss.py`) is a function of predictions; a `Regularizer` is a function of a weight block; a `Set` is the
indicator of a constraint (`matrix_function.py`). All are frozen dataclasses (`atom.py`): their fields are the parameters a user may type after
the argument, so that printing, the signature of the word, the catalogue and the reference all read the same place.

A trait is an attribute or a method that says what is mathematically true of a function. Its default is safe: a word that declares
nothing is solved for by the general routes. What is declared is held to by a law (`mtldsl.testing.laws.traits`).
"""

from mtldsl.atoms.atom import REGISTRY, Atom, register
from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.matrix_function import MatrixFunction, Regularizer, Set

__all__ = ["REGISTRY", "Atom", "Loss", "MatrixFunction", "Regularizer", "SeparableLoss", "Set", "register"]
