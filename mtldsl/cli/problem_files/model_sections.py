"""Sections of a problem file on the model: parameters, weights, learned matrices and the statement."""

from __future__ import annotations

from dataclasses import replace

from mtldsl.cli.problem_files.section import (
    ANYTHING,
    SWITCH,
    TEXT,
    FileTable,
    ProblemFileReader,
    Rules,
    texts,
)
from mtldsl.errors import ModelError, MTLError
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.learned_unknowns import LearnedUnknown
from mtldsl.language.parser import parse_constraint, parse_objective
from mtldsl.language.scalars import Parameter
from mtldsl.language.source_text import Source, kind_of
from mtldsl.language.suggestions import nearest
from mtldsl.language.vocabulary import UNKNOWNS, use_plugins
from mtldsl.language.weights import Weights
from mtldsl.problems.named_models import find
from mtldsl.problems.problem import Problem, minimize

# --------------------------------------------------------------------------------------------------------------
# The [learned] table of a problem file: what is learned beside the weights, by its kind.


def _read(reading: ProblemFileReader) -> None:
    """Sigma1 = "FeaturePrecision"; and what the model that the file names learns."""
    for name, kind in (reading.named.learned if reading.named is not None else {}).items():
        if reading.names.get(name) is None:
            reading.names[name] = UNKNOWNS[kind].declared(reading.tasks_train, name)
    for name, kind in reading.table("learned").items():
        reading.names[name] = _learned(reading, name, kind)


def _learned(reading: ProblemFileReader, name: str, kind) -> LearnedUnknown:
    path = ("learned", name)
    if not isinstance(kind, str):
        known = ", ".join(f'"{word}"' for word in UNKNOWNS)
        raise reading.file.error(f"write {name} = one of {known}, not {kind_of(kind)}", path, value=True)
    if kind not in UNKNOWNS:
        raise reading.file.error(
            f"nothing of the kind {kind!r} is learned{nearest(kind, UNKNOWNS)}", path, value=True
        )
    return UNKNOWNS[kind].declared(reading.tasks_train, name)


LEARNED = FileTable("learned", names=True, read=_read)


# --------------------------------------------------------------------------------------------------------------
# The top of a problem file: its title, and the model, typed or named.


def _read_model(reading: ProblemFileReader) -> None:
    """The model that the file names in place of stating one."""
    file = reading.file
    if "model" not in file.content:
        return
    if "minimize" in file.content:
        raise file.error("a file has minimize or model, not both", ("model",), ModelError)
    with file.placing(("model",)):
        reading.named = find(file.content["model"])


TOP = FileTable(
    "",
    {
        "title": TEXT,
        "minimize": TEXT,
        "model": TEXT,
        "subject_to": texts('a list such as ["W >= 0"]'),
    },
    read=_read_model,
)


def stated_problem(reading: ProblemFileReader) -> Problem:
    """The problem that the file states, in the names that its sections gave. ModelError where it uses one of them nowhere."""
    file, names = reading.file, reading.names
    (place, text), *others = _statement(reading)
    objective = parse_objective(text, names)
    constraints = [parse_constraint(text, names) for _, text in others]
    try:
        problem = minimize(objective, constraints)
    except MTLError as error:
        for where, constraint in zip((where for where, _ in others), constraints, strict=True):
            if error.term == constraint.text:
                place = where
        raise error.at(file.place(place, value=True)) from error
    for table in (section.name for section in reading.sections if section.names):
        for name in reading.table(table):
            if name not in names.used:  # most likely a slip of the pen
                raise file.error(f"{name!r} is not used in the model", (table, name), ModelError)
    return problem


def _statement(reading: ProblemFileReader) -> list[tuple[tuple, Source]]:
    """(where an error is shown, text) of the objective and then of each constraint."""
    file, names, named = reading.file, reading.names, reading.named
    own = [("subject_to", i) for i in range(len(file.content.get("subject_to", [])))]
    stated = [(place, file.values[place]) for place in own]
    if named is None:
        if "minimize" not in file.content:
            raise file.error('the file states no model; write minimize = "..." before the first [table]')
        return [(("minimize",), file.values["minimize",]), *stated]
    numbers = file.content.get("parameters", {})
    unknown = [name for name in numbers if name not in named.parameters]
    advice = "give every parameter a number in [parameters]"
    advice += f"; it has no parameter {' or '.join(map(repr, unknown))}" if unknown else ""
    with file.placing(("model",)):
        values = named.complete({name: numbers[name] for name in named.parameters if name in numbers}, advice)
    names |= {name: Parameter(values[name], name) for name in named.coefficients}
    names.used |= set(named.parameters)
    at = file.values["model",]  # what is wrong with the model's own text is shown at its name
    objective, constraints = named.written(values)
    written = [
        replace(at, text=text, offsets=at.offsets[:1] * (len(text) + 1)) for text in (objective, *constraints)
    ]
    return [(("model",), text) for text in written] + stated


# --------------------------------------------------------------------------------------------------------------
# The [parameters] table of a problem file: numbers with a name.


def _read_parameters(reading: ProblemFileReader) -> None:
    for name, value in reading.table("parameters").items():
        path = ("parameters", name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise reading.file.error(f"a parameter is a number, not {kind_of(value)}", path, value=True)
        with reading.file.placing(path):
            reading.names[name] = Parameter(value, name)


PARAMETERS = FileTable("parameters", names=True, read=_read_parameters)


# --------------------------------------------------------------------------------------------------------------
# The [plugins] table of a problem file: words and solvers of others that it needs. It comes first, as what is known depends on it.

_RULES: Rules = {"use": texts('a list of names such as ["my_words"]')}


def _check(reading: ProblemFileReader) -> None:
    """Refuses what is not allowed, then imports what is."""
    reading.require(("plugins",), _RULES)
    with reading.file.placing(("plugins", "use")):
        use_plugins(reading.table("plugins").get("use", []), reading.allow_plugins)


PLUGINS = FileTable("plugins", _RULES, check=_check)


# --------------------------------------------------------------------------------------------------------------
# The [weights] table of a problem file: one matrix with a column a task, or another kind of weights from a list.

#: A kind of weights -> its options, and what each must be.
KINDS: dict[str, Rules] = {
    "Weights": {"intercept": SWITCH, "shared": SWITCH},
    "NodeWeights": {"intercept": SWITCH},
    "EdgeWeights": {
        "edges": (
            lambda v: v == "all" or isinstance(v, list),
            '"all", or a list of pairs of labels such as [["sea", "beach"], [0, 2]], [] for none',
        )
    },
}

#: An option that a kind lacks -> why.
_LACKS = {
    ("NodeWeights", "edges"): 'edges are those of V = {kind = "EdgeWeights", edges = ...}',
    ("EdgeWeights", "intercept"): "EdgeWeights have no intercept; give the inputs a column of ones, and every label and edge has one",
}  # fmt: skip


def _read_weights(reading: ProblemFileReader) -> None:
    """W = {}, W = {intercept = true}, w = {shared = true}, U = "NodeWeights", V = "EdgeWeights", V = {kind = "EdgeWeights", edges = [["a", "b"]]}.

    A file without the table has one W, or the weights of the model that it names.
    """
    declared = reading.file.content.get("weights", {} if reading.named is not None else {"W": {}})
    if reading.named is not None:  # what the file declares itself, an intercept for one, stands below
        for name, weights in reading.named.unknown_weights(reading.tasks_train).items():
            if reading.names.get(name) is None:
                reading.names[name] = weights
    for name, options in declared.items():
        reading.names[name] = _weights(reading, name, options)


def _weights(reading: ProblemFileReader, name: str, options) -> Weights:
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
    kind = options.get("kind", "EdgeWeights" if "edges" in options else "Weights")
    if not isinstance(kind, str) or kind not in KINDS:
        raise file.error(
            f"there are no weights of the kind {kind!r}{nearest(str(kind), KINDS)}",
            (*path, "kind") if is_table else path,
            value=True,
        )
    if is_table:
        for option in options:
            if (kind, option) in _LACKS:
                raise file.error(_LACKS[kind, option], (*path, option))
        reading.require(path, {"kind": ANYTHING} | KINDS[kind])
    tasks, intercept = reading.tasks_train, options.get("intercept", False)
    with file.placing(next(((*path, key) for key in KINDS[kind] if key in options), path)):
        if kind == "EdgeWeights":
            return EdgeWeights(tasks, options.get("edges", "all"), name)
        if kind == "NodeWeights":
            return NodeWeights(tasks, name, intercept=intercept)
        return Weights(tasks, intercept, name, options.get("shared", False))


WEIGHTS = FileTable("weights", names=True, read=_read_weights)
