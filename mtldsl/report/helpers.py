"""What is typed in a model and is not a function of its weights: similarities of tasks, what is learned and the norm that bounds it, and
the weights of a graph of labels.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from mtldsl.language.text.file_words import typed_usage
from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.language.unknowns.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.words.vocabulary import SIMILARITIES, UNKNOWNS, p_norm

__all__ = ["HELPERS", "Helper", "groups_of_helpers", "helper"]

#: name -> function or class, in the order of the catalogue
HELPERS = {
    **SIMILARITIES, **UNKNOWNS, "p_norm": p_norm, "NodeWeights": NodeWeights, "EdgeWeights": EdgeWeights,
}  # fmt: skip

_SIMILARITY, _MATRIX, _WEIGHTS, _NORM, _OF_LABELS = (
    "similarity of tasks",
    "matrix that is learned",
    "weights that are learned",
    "norm of kernel weights",
    "unknown weights over a graph of labels",
)
_GROUPS = (
    (
        "Similarities of tasks",
        "What stands in the list of mkl_norm(W, [union(), individual()], theta): each makes one or several kernels R between tasks, every "
        "one with a weight of its own. All take columns=..., the features that they are about: positions, names, a slice, or the name of "
        "a view.",
        (_SIMILARITY,),
    ),
    (
        "What is learned beside the weights",
        "Declared as Weights are (in a problem file under [learned]), and bounded in subject_to.",
        (_MATRIX, _WEIGHTS, _NORM),
    ),
    (
        "Weights over a graph of labels",
        "What clique_hinge(U, V, tasks) and pairwise_log_loss(U, V, tasks) are functions of; regularizers take each alone.",
        (_OF_LABELS,),
    ),
)


@dataclass(frozen=True)
class Helper:
    """One of them."""

    name: str
    kind: str
    typed: str  # with its parameters and defaults
    summary: str  # the first line of its documentation
    documentation: str

    @property
    def short(self) -> str:
        """Typed, without what all similarities take."""
        return self.typed.replace(", columns=None", "").replace("columns=None", "")


def helper(name: str) -> Helper:
    """One of `HELPERS`.

    >>> helper("laplacian").short
    'laplacian(L, gamma=1.0)'
    """
    value, typed = HELPERS[name], name
    if name in UNKNOWNS:
        kind = _WEIGHTS if value is KernelWeights else _MATRIX
        typed += _signature(value)
    elif isinstance(value, type):
        kind, typed = _OF_LABELS, typed + _signature(value)
    else:
        kind, typed = _SIMILARITY if name in SIMILARITIES else _NORM, typed_usage(name)
    documentation = inspect.getdoc(value) or ""
    return Helper(name, kind, typed, " ".join(documentation.split("\n\n")[0].split()), documentation)


def _signature(value) -> str:
    parameters = inspect.signature(value).parameters.values()
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters]))


def groups_of_helpers() -> list[tuple[str, str, list[Helper]]]:
    """(heading, what they have in common, the helpers) in the order of the catalogue."""
    every = [helper(name) for name in HELPERS]
    return [
        (heading, about, [one for one in every if one.kind in kinds]) for heading, about, kinds in _GROUPS
    ]
