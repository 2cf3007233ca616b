"""Names of tasks and columns: text, and different for what is different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

__all__ = ["distinct_names"]


def distinct_names(values: Sequence[Hashable]) -> list[str]:
    """Each value as text; with its type where values that differ have the same text. Equal values keep equal names.

    >>> distinct_names([1, "1", "b"]), distinct_names(["a", "a"])
    (['1 (int)', '1 (str)', 'b'], ['a', 'a'])
    """
    values = [value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufUS" else value for value in values]  # fmt: skip
    texts = [str(value) for value in values]
    shared = Counter(text for text, _ in {(str(value), type(value).__name__) for value in values})
    return [
        f"{text} ({type(value).__name__})" if shared[text] > 1 else text
        for text, value in zip(texts, values, strict=True)
    ]
