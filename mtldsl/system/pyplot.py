"""matplotlib, where it is installed: pictures need an extra."""

from __future__ import annotations

from mtldsl.errors import MissingExtraError

__all__ = ["pyplot"]


def pyplot():
    """The module matplotlib.pyplot. MissingExtraError where there is none."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError(
            "a picture needs matplotlib, which is not installed",
            write_instead='write: pip install ".[plots]" in the checkout',
        ) from None
    return plt
