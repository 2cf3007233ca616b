"""Words and solvers of one's own: what they are made of, `register`, and plugins that problem files may ask for.

The pages in docs/extending/ use the names below and nothing else of the package.
"""

from mtldsl.atoms.atom import checked_number
from mtldsl.atoms.learned_structures.structure import Learned, Quadratic, Range, Structure
from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.matrix_function import Regularizer, Set
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers.norm_base import Norm
from mtldsl.extending.registration import register, register_solver, unregister, unregister_solver
from mtldsl.language.vocabulary import use_plugins
from mtldsl.normal_form.form import NormalForm
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
