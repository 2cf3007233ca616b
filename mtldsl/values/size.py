"""How large and how small numbers of data may be: sums of products of a few of them must stay inside float64."""

import numpy as np

__all__ = ["LARGEST", "SMALLEST"]

#: The square of 1e155 is infinite in float64, that of 1e-163 is 0; solvers multiply by weights and step sizes, too. (numpy scalars: float32
#: compared with a Python number would make that a float32 first.)
LARGEST, SMALLEST = np.float64(1e100), np.float64(1e-100)
