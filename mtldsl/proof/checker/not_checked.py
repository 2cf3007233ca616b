"""What the checker has no formula for."""

from __future__ import annotations

__all__ = ["NotChecked"]


class NotChecked(Exception):
    """What this checker has no formula for; said in the verdict."""
