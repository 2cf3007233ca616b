"""The compiled loops of the solvers: plain functions on arrays, imported where they are first called."""
