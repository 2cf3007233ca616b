"""Linear systems and their factorizations, the closed form, Newton under a ridge."""
