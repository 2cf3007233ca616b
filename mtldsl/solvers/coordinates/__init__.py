"""Dual coordinate ascent on samples, beside a kernel regularizer, and its checkpoints."""
