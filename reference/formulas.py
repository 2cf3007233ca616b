"""Every atom's formula: the modules that register them."""

from . import (  # noqa: F401  (they enter their formulas)
    kernels,
    label_graph,
    losses,
    metrics,
    regularizers,
    spectral,
    structures,
)
