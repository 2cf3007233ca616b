"""The tests. BLAS has one thread in them, and in the processes that they start: small products are slower on several, on a busy machine
fifty times, and nothing measured here should depend on the cores. This stands here since numpy reads it when it is first imported.
"""

import os

for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
