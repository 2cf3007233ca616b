"""Coordinate descent on the rows of the weights, with a working set."""
