"""A solution in one file: which of its fields are kept, and the way there and back."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from mtldsl.solution.storage import read_fields, write_fields
from mtldsl.values.arguments import complete

__all__ = ["Stored"]

#: Fields that a file does not keep.
_NOT_SAVED = (
    "state",
    "multipliers",
    "majorizations",
    "interrupted",
    "proof",
    "verified",
    "compile_seconds",
    "formula",
    "trained_on",
    "cross_check",
    "unattained",
)


class Stored:
    """Part of `Solution`."""

    @classmethod
    def _saved(cls) -> list[str]:
        whole: Any = cls
        return [each.name for each in fields(whole) if each.name not in _NOT_SAVED]

    @complete('write solution.save("fit.npz")')
    def save(self, path) -> Path:
        """Write the solution to one .npz file (arrays, and the rest as JSON; no pickle). Returns the path written.

        The file is whole or as it was: it takes the place of an older one only once it is on the disk. DataError where it cannot be written.
        Learned matrices are kept by their eigenvectors. What a warm start needs besides the weights is not kept.
        ModelError where a metric of your own has parameters that JSON cannot hold, and where a kernel is a function of yours.
        """
        return write_fields(path, {name: getattr(self, name) for name in self._saved()})

    @classmethod
    def load(cls, path) -> Self:
        """Read what `save` wrote, by the name given there: `verified` is False. DataError for a file of another kind, damaged bytes, and a
        status that the file's own numbers contradict.

        The module with a metric of your own need not be imported, unless `tune_threshold` is to use that metric.
        """
        found: Any = cls  # a dataclass, which this part of it does not know
        return found(**read_fields(path, set(cls._saved())), verified=False)
