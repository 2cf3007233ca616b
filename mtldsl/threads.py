"""How many threads a matrix product gets."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from mtldsl.compile.normal_form import NormalForm

__all__ = ["fitting_blas_threads"]

#: Multiplications in one pass over the data below which threads cost more than they bring: they are woken and joined
#: thousands of times a solve. Measured on 1,347 x 64 x 10: 0.46 s with one thread, 4.6 s with two on a busy machine.
_WORTH_THREADS = 50_000_000


def fitting_blas_threads(form: NormalForm) -> AbstractContextManager:
    """A context in which BLAS runs on one thread where the problem is small, and as configured where it is large."""
    size = sum(loss.tasks.n_samples * loss.tasks.n_features for loss in form.losses)
    return _controller().limit(limits=1 if size < _WORTH_THREADS else None, user_api="blas")


@cache
def _controller():
    # Finding the libraries takes milliseconds, so it is done once - after scipy has loaded a BLAS of its own.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
