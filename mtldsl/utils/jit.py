"""Functions compiled by numba: with parts of it that are not public where its version is a tested one, else with `njit` alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from mtldsl.utils import compilation

with compilation.busy():  # half a second
    import numba


log = logging.getLogger("mtldsl")

#: The first and the last version of numba that `numba_internals` was tested with.
TESTED_VERSIONS = ((0, 61), (0, 68))


def is_tested(version: tuple[int, ...]) -> bool:
    """Tell whether `numba_internals` was tested with this version of numba.

    >>> is_tested((0, 61)), is_tested((0, 99))
    (True, False)
    """
    first, last = TESTED_VERSIONS
    return first <= version[:2] <= last


def compiled(signature: str | None = None, *, inside: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Decorate as `numba.njit(signature, cache=True, nogil=True, error_model="numpy", **options)`; a declared signature is compiled when
    it is first needed.

    Calls from Python let go of its lock: what is compiled reads and writes the arrays that it is given, and nothing else. A division by
    zero gives inf or NaN, as in numpy.

    signature : the types of arguments and result, where these are to be compiled and no others
    inside    : only other compiled functions call it, so that what takes Python's objects apart is not compiled

    With a version of numba that was not tested, this is `njit` for the types that come, and its own cache.
    """
    options = {"nogil": True, "error_model": "numpy"} | options
    if is_tested(numba.version_info.short):
        from mtldsl.utils import numba_internals

        return numba_internals.compiled(signature, inside=inside, **options)
    _log_version()

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(**options, cache=True)(function)
        except RuntimeError:  # no folder can be written to
            return numba.njit(**options)(function)

    return decorate


@cache
def _log_version() -> None:
    first, last = (".".join(map(str, version)) for version in TESTED_VERSIONS)
    log.debug("numba %s: plain njit, for it was tested with %s to %s", numba.__version__, first, last)
