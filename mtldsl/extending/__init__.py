"""Words and solvers of one's own: what they are made of, `register`, and plugins that problem files may ask for.

The pages in docs/extending/ use the names below and nothing else of the package.
"""

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.function import Loss, Regularizer, SeparableLoss, Set
from mtldsl.atoms.metrics import Metric
from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.regularizers.norm import Norm
from mtldsl.atoms.structures.structure import Learned, Quadratic, Range, Structure
from mtldsl.compile.normal_form import NormalForm
from mtldsl.extending.own_solvers import register_solver, unregister_solver
from mtldsl.extending.own_words import register, unregister
from mtldsl.extending.plugins import use_plugins
from mtldsl.solvers.solver import Point, Solver, Watch

__all__ = [
    "Learned",
    "Loss",
    "Metric",
    "Norm",
    "NormalForm",
    "Point",
    "Quadratic",
    "Range",
    "Regularizer",
    "SeparableLoss",
    "Set",
    "Solver",
    "SpectralMatrix",
    "Structure",
    "Watch",
    "checked_number",
    "register",
    "register_solver",
    "unregister",
    "unregister_solver",
    "use_plugins",
]
