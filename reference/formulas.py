"""Every atom's formula: the modules that register them."""

from . import (  # noqa: F401  (they enter their formulas)
    column_groups,
    kernels,
    label_graph,
    losses,
    metrics,
    rankings,
    regularizers,
    rows,
    sets,
    spectral,
    structured,
    structures,
)
