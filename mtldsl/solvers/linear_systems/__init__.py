"""Linear systems and their factorizations, which several solvers share."""
