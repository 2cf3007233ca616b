"""Dual coordinate ascent: one sample at a time."""
