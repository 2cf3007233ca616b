"""Numerics of losses that are known through their highest plane: proxes and projections, and their compiled loops."""
