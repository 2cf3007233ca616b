"""Unknowns beside the weights: learned matrices, kernel weights, label graphs, and how similar tasks are."""
