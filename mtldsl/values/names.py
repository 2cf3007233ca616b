"""Names of tasks and columns: text, and different for what is different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

__all__ = ["distinct_names", "distinct_texts", "plain"]


def distinct_names(values: Sequence[Hashable]) -> list[str]:
    """Each value as text; with its type where values that differ have the same text. Equal values keep equal names.

    >>> distinct_names([1, "1", "b"]), distinct_names(["a", "a"])
    (['1 (int)', '1 (str)', 'b'], ['a', 'a'])
    """
    values = [plain(value) for value in values]
    return distinct_texts([(str(value), type(value).__name__) for value in values])


def distinct_texts(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The same, of (text, type) of every value."""
    shared = Counter(text for text, _ in set(pairs))
    return [f"{text} ({kind})" if shared[text] > 1 else text for text, kind in pairs]


def plain(value):
    """Python's own number or text in place of numpy's."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufUS" else value
