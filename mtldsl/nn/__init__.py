"""Networks whose last layer carries a penalty of this package: MTN and MTN-FETR, and one network a task to compare with.

Training needs PyTorch, `pip install ".[torch]"` in the checkout; what was trained predicts without it.
"""

from mtldsl.atoms.structures import MatrixNormal, Range
from mtldsl.nn.multi_task import MultiTaskNetwork
from mtldsl.nn.single_task import SingleTaskNetworks

__all__ = ["MatrixNormal", "MultiTaskNetwork", "Range", "SingleTaskNetworks"]
