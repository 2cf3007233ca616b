"""The [weights] table of a problem file: one matrix with a column a task, or another kind of weights from a list."""

from __future__ import annotations

from mtldsl.errors import MTLError
from mtldsl.files.label_weights import EDGES, NODES
from mtldsl.files.rules import ANYTHING, SWITCH
from mtldsl.files.section import Reading, Section
from mtldsl.files.weights_kind import WeightsKind
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.words.did_you_mean import nearest

__all__ = ["WEIGHTS"]

#: of plain tasks, and, one line each, what a paper needs
KINDS = {
    kind.name: kind
    for kind in (
        WeightsKind(
            "Weights",
            {"intercept": SWITCH},
            lambda tasks, name, options: Weights(tasks, options.get("intercept", False), name),
        ),
        NODES,
        EDGES,
    )
}


def _read(reading: Reading) -> None:
    """W = {}, W = {intercept = true}, U = "NodeWeights", V = "EdgeWeights", V = {kind = "EdgeWeights", edges = [["a", "b"]]}.

    A file without the table has one W, or the weights of the model that it names.
    """
    declared = reading.file.content.get("weights", {} if reading.named is not None else {"W": {}})
    if reading.named is not None:  # what the file declares itself, an intercept for one, stands below
        for name, weights in reading.named.unknown_weights(reading.train).items():
            if reading.names.get(name) is None:
                reading.names[name] = weights
    for name, options in declared.items():
        reading.names[name] = _weights(reading, name, options)


def _weights(reading: Reading, name: str, options) -> Weights:
    path, file = ("weights", name), reading.file
    is_table = isinstance(options, dict)
    if isinstance(options, str):
        options = {"kind": options}
    if not isinstance(options, dict):
        raise file.error(
            f'write {name} = {{}} or {name} = {{intercept = true}}; of a graph of labels {name} = "NodeWeights" or '
            f'{name} = "EdgeWeights"',
            path,
            value=True,
        )
    implied = next((kind.name for kind in KINDS.values() if kind.implied_by in options), "Weights")
    kind = options.get("kind", implied)
    if not isinstance(kind, str) or kind not in KINDS:
        raise file.error(
            f"there are no weights of the kind {kind!r}{nearest(str(kind), KINDS)}",
            (*path, "kind") if is_table else path,
            value=True,
        )
    kind = KINDS[kind]
    if is_table:
        for option, advice in kind.lacks.items():
            if option in options:
                raise file.error(advice, (*path, option))
        reading.check(path, {"kind": ANYTHING} | kind.rules)
    try:
        return kind.make(reading.train, name, options)
    except MTLError as error:
        at = next(((*path, key) for key in kind.rules if key in options), path)
        raise error.at(file.place(at, value=True)) from error


WEIGHTS = Section("weights", names=True, read=_read)
