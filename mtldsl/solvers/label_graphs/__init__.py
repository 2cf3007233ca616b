"""Dual ascent on labellings of a graph of labels, with all its cliques or a growing set of them."""
