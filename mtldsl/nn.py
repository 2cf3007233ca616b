"""Networks whose last layer carries a penalty of this package: MTN and MTN-FETR, and one network a task to compare with.

Training needs PyTorch, `pip install ".[torch]"` in the checkout; what was trained predicts without it.
"""

from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.estimators.networks import MultiTaskNetwork, SingleTaskNetworks

__all__ = [
    "MatrixNormal",
    "MultiTaskNetwork",
    "Range",
    "SingleTaskNetworks",
]
