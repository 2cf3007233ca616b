"""Is what was given for a parameter one of the problem's?"""

from __future__ import annotations

from collections.abc import Sequence

from mtldsl.errors import ModelError
from mtldsl.language.expressions.scalar import Parameter

__all__ = ["require_own"]


def require_own(given: object, parameters: Sequence[Parameter], typed: str) -> None:
    """ModelError unless it is one of them itself: two parameters may have one name.

    >>> require_own("mu", [Parameter(1.0, name="mu")], "path('mu', ...)")
    Traceback (most recent call last):
    mtldsl.errors.ModelError: path('mu', ...): 'mu' is the name of a parameter; give the Parameter itself, problem.parameters[0]
    """
    if any(given is own for own in parameters):
        return
    for k, own in enumerate(parameters):
        if isinstance(given, str) and own.name == given:
            raise ModelError(
                f"{given!r} is the name of a parameter",
                term=typed,
                write_instead=f"give the Parameter itself, problem.parameters[{k}]",
            )
    names = ", ".join(own.name for own in parameters) or "none"
    raise ModelError(f"this problem has no such parameter; it has {names}", term=typed)
