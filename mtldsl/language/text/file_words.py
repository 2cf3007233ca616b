"""What an expression of a problem file may call, and how that is typed."""

from __future__ import annotations

import inspect
from collections import ChainMap

from mtldsl.language.words.vocabulary import SIMILARITIES, UNKNOWNS, WORDS, p_norm, usage
from mtldsl.language.words.worst_task import worst_task

__all__ = ["CALLABLE", "declared", "typed_usage"]

#: name -> function: the words, the similarities inside `mkl_norm(W, [...])`, the norm that bounds kernel weights, and what stands around a loss
CALLABLE = ChainMap(
    WORDS, SIMILARITIES, {"p_norm": p_norm, "worst_task": worst_task}
)  # words of one's own come and go


def typed_usage(name: str) -> str:
    """How it is typed: name, parameters and defaults, without types.

    >>> typed_usage("laplacian"), typed_usage("p_norm"), typed_usage("ridge")
    ('laplacian(L, gamma=1.0, columns=None)', 'p_norm(theta, p=2.0)', 'ridge(W, weights=None)')
    """
    if name in WORDS:
        return usage(name)
    signature = inspect.signature(CALLABLE[name])
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"{name}{inspect.Signature(plain)}"


def declared(kind: str) -> str:
    """The line of [learned] that declares an unknown of this kind under its usual name.

    >>> declared("KernelWeights")
    'theta = "KernelWeights"'
    """
    return f'{inspect.signature(UNKNOWNS[kind]).parameters["name"].default} = "{kind}"'
