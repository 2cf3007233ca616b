"""Data larger than memory: converted once, then mapped."""
