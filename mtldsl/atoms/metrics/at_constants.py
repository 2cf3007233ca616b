"""Subgradients of structured hinges at a constant score, where one class is the smaller."""

from __future__ import annotations

from mtldsl.atoms.metrics.violation import AtConstant

__all__ = ["smaller_class"]


def smaller_class(positives: int, negatives: int, is_zero: bool, down: float, up: float) -> AtConstant:
    """All of the smaller class are flipped, at -down, or at up, where a sample of the larger class is worth nothing."""
    if is_zero or positives == negatives:
        return AtConstant(0.0, (-2.0, -2.0), (2.0, 2.0), 2.0 * (negatives - positives))
    if negatives > positives:
        return AtConstant(-down, (-2.0, -2.0), (0.0, 2.0), 0.0)
    return AtConstant(up, (-2.0, 0.0), (2.0, 2.0), 0.0)
