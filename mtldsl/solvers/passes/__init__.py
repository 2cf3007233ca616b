"""Solvers that see the data once an iteration, whole: rows that are elsewhere."""
