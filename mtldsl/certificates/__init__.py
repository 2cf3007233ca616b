"""Proofs about a point: bounds, multipliers, first-order conditions; the saved proof, its checker, and the plain formulas."""
