"""Import of every module that registers an atom's formula with the reference."""

from . import (  # noqa: F401  (they enter their formulas)
    kernels,
    label_graph,
    losses,
    metrics,
    regularizers,
    spectral,
    structures,
)
