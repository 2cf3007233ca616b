"""The language that is typed: unknowns, parameters, words, constraints and their sums, in Python or as text."""
