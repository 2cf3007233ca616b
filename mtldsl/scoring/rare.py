"""By what a label is judged that few rows have, or that few rows have not."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["RARE", "measure_of_rare"]

#: A label whose smaller class has less than this share is rare: "never" is right so often that accuracy is content with weights of zero.
RARE = 0.3


def measure_of_rare(shares: Iterable[float]) -> str | None:
    """A measure that sees rare labels, from the share of +1 in every task; None where no label is rare.

    Average precision is of +1, so it suits where that is rare; where -1 is, the area under the ROC curve does, which is of both.

    >>> measure_of_rare([0.03, 0.4]), measure_of_rare([0.97]), measure_of_rare([0.5]), measure_of_rare([1.0])
    ('average_precision', 'roc_auc', None, None)
    """
    rare = [share for share in shares if 0 < min(share, 1 - share) < RARE]
    if not rare:
        return None
    return "average_precision" if max(rare) < 0.5 else "roc_auc"
