"""The [weights] table of a problem file: one matrix with a column a task, or the weights of a graph of labels."""

from __future__ import annotations

from mtldsl.errors import MTLError
from mtldsl.files.rules import check_table
from mtldsl.files.toml_source import TomlFile
from mtldsl.language.did_you_mean import nearest
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.label_graph import EdgeWeights, NodeWeights
from mtldsl.tasks import Tasks

__all__ = ["read_weights"]

_KINDS = {"Weights": Weights, "NodeWeights": NodeWeights, "EdgeWeights": EdgeWeights}


def read_weights(file: TomlFile, name: str, tasks: Tasks) -> Weights:
    """W = {}, W = {intercept = true}, U = "NodeWeights", V = "EdgeWeights", V = {kind = "EdgeWeights", edges = [["a", "b"]]}."""
    path = ("weights", name)
    options = file.content.get("weights", {}).get(name, {})
    if isinstance(options, str):
        options = {"kind": options}
    if not isinstance(options, dict):
        raise file.error(
            f'write {name} = {{}} or {name} = {{intercept = true}}; of a graph of labels {name} = "NodeWeights" or '
            f'{name} = "EdgeWeights"',
            path,
            value=True,
        )
    kind = options.get("kind", "EdgeWeights" if "edges" in options else "Weights")
    if not isinstance(kind, str) or kind not in _KINDS:
        at = (*path, "kind") if isinstance(file.content["weights"][name], dict) else path
        raise file.error(
            f"there are no weights of the kind {kind!r}{nearest(str(kind), _KINDS)}", at, value=True
        )
    if isinstance(file.content.get("weights", {}).get(name), dict):
        _check(file, path, kind)
    try:
        if kind == "NodeWeights":
            return NodeWeights(tasks, name)
        if kind == "EdgeWeights":
            return EdgeWeights(tasks, options.get("edges", "all"), name)
        return Weights(tasks, options.get("intercept", False), name)
    except MTLError as error:
        at = (*path, "edges") if "edges" in options else path
        raise error.at(file.place(at, value=True)) from error


def _check(file: TomlFile, path: tuple, kind: str) -> None:
    """DataError for an option that weights of this kind do not have."""
    rules = {"kind": (lambda v: True, "")}
    if kind == "Weights":
        rules["intercept"] = (lambda v: isinstance(v, bool), "true or false")
    elif "intercept" in file.content["weights"][path[1]]:
        raise file.error(
            f"{kind} have no intercept; give the inputs a column of ones, and every label and edge has one",
            (*path, "intercept"),
        )
    if kind == "EdgeWeights":
        rules["edges"] = (
            lambda v: v == "all" or isinstance(v, list),
            '"all", or a list of pairs of labels such as [["sea", "beach"], [0, 2]], [] for none',
        )
    elif kind == "NodeWeights" and "edges" in file.content["weights"][path[1]]:
        raise file.error('edges are those of V = {kind = "EdgeWeights", edges = ...}', (*path, "edges"))
    check_table(file, path, rules)
