"""PyTorch, imported where it is used and not before."""

from __future__ import annotations

from contextlib import contextmanager

from mtldsl.errors import MissingExtraError

__all__ = ["import_torch", "torch_threads"]


def import_torch(typed: str):
    """The module; MissingExtraError with the line to type where it is not installed."""
    try:
        import torch  # pyrefly: ignore[missing-import]  # an extra, which need not be installed where types are checked
    except ImportError as error:
        raise MissingExtraError(
            f"networks are trained by PyTorch, which cannot be imported ({error})",
            term=typed,
            write_instead='write pip install ".[torch]" in the checkout',
        ) from None
    return torch


@contextmanager
def torch_threads(torch, threads: int | None):
    """So many threads within; afterwards as many as before. None changes nothing."""
    before = torch.get_num_threads()
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        yield
    finally:
        torch.set_num_threads(before)
