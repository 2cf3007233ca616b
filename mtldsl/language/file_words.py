"""What an expression of a problem file may call, and how messages of the language read there."""

from __future__ import annotations

import inspect
import re

from mtldsl.language.vocabulary import SIMILARITIES, UNKNOWNS, WORDS, p_norm, usage

__all__ = ["CALLABLE", "as_in_a_file", "declared", "typed_usage"]

#: name -> function: the words, the similarities inside `mkl_norm(W, [...])`, and the norm that bounds kernel weights
CALLABLE = {**WORDS, **SIMILARITIES, "p_norm": p_norm}

_MADE = re.compile(rf"\b({'|'.join(UNKNOWNS)})\((?:tasks|similarities|\d+)\)")
_OF_LABELS = re.compile(r"\b(NodeWeights|EdgeWeights)\(tasks(?:, edges=\"all\")?\)")
_NAMED = re.compile(rf"\b({'|'.join(UNKNOWNS)})\b")


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


def as_in_a_file(message: str) -> str:
    """A message of the language, where what is learned is declared in a table and nowhere made by a call.

    >>> as_in_a_file("mkl_norm(...): theta must be KernelWeights(3), or an array of 3 given weights")
    'mkl_norm(...): theta must be "KernelWeights" in [learned], or an array of 3 given weights'
    >>> as_in_a_file('clique_hinge(W, ...): write U = NodeWeights(tasks)')
    'clique_hinge(W, ...): write U = "NodeWeights" in [weights]'
    """
    message = message.replace("KernelWeights, as in p_norm(KernelWeights(3), 2) <= 1", "KernelWeights(3)")
    message = _OF_LABELS.sub(r'"\1" in [weights]', message)
    message = _MADE.sub(r'"\1" in [learned]', message).replace("np.inf", "inf")
    kinds = dict.fromkeys(_NAMED.findall(message))
    if kinds and "[learned]" not in message:
        message += f" (in [learned]: {', '.join(map(declared, kinds))})"
    return message
