"""How the language's names are spelled in messages: made by a call in Python, declared in a table of a problem file."""

from __future__ import annotations

from mtldsl.errors import Spelled

__all__ = ["INFINITY", "declared_in", "made"]

#: The number without end.
INFINITY = Spelled("np.inf", "inf")

#: Weights of graphs of labels stand in [weights], all else that is declared by its kind in [learned].
_WEIGHTS = ("NodeWeights", "EdgeWeights")


def made(kind: str, arguments: object = "tasks") -> Spelled:
    """An unknown of a kind, as it is made.

    >>> print(made("KernelWeights", 3), "or", made("KernelWeights", 3).on("file"))
    KernelWeights(3) or "KernelWeights" in [learned]
    """
    return Spelled(f"{kind}({arguments})", f'"{kind}" in [{"weights" if kind in _WEIGHTS else "learned"}]')


def declared_in(kind: str, name: str) -> Spelled:
    """What a problem file adds to a message that names a kind: the line that declares it, and nothing in Python.

    >>> ("theta must be KernelWeights" + declared_in("KernelWeights", "theta")).on("file")
    'theta must be KernelWeights (in [learned]: theta = "KernelWeights")'
    """
    return Spelled("", f' (in [learned]: {name} = "{kind}")')
