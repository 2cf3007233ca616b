"""The top of a problem file: its title, and the model, typed or named."""

from __future__ import annotations

from dataclasses import replace

from mtldsl.errors import ModelError, MTLError
from mtldsl.files.rules import TEXT
from mtldsl.files.section import Reading, Section
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.text.parse import parse_constraint, parse_objective
from mtldsl.language.text.source import Source
from mtldsl.named_models import find
from mtldsl.problem import Problem, minimize

__all__ = ["TOP", "stated_problem"]


def _read(reading: Reading) -> None:
    """The model that the file names in place of stating one."""
    file = reading.file
    if "model" not in file.content:
        return
    if "minimize" in file.content:
        raise file.error("a file has minimize or model, not both", ("model",), ModelError)
    try:
        reading.named = find(file.content["model"])
    except ModelError as error:
        raise error.at(file.place(("model",), value=True)) from error


TOP = Section(
    "",
    {
        "title": TEXT,
        "minimize": TEXT,
        "model": TEXT,
        "subject_to": (
            lambda v: isinstance(v, list) and all(isinstance(c, str) for c in v),
            'a list such as ["W >= 0"]',
        ),
    },
    read=_read,
)


def stated_problem(reading: Reading) -> Problem:
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


def _statement(reading: Reading) -> list[tuple[tuple, Source]]:
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
    try:
        values = named.complete({name: numbers[name] for name in named.parameters if name in numbers}, advice)
    except ModelError as error:
        raise error.at(file.place(("model",), value=True)) from error
    names |= {name: Parameter(values[name], name) for name in named.coefficients}
    names.used |= set(named.parameters)
    at = file.values["model",]  # what is wrong with the model's own text is shown at its name
    objective, constraints = named.written(values)
    written = [
        replace(at, text=text, offsets=at.offsets[:1] * (len(text) + 1)) for text in (objective, *constraints)
    ]
    return [(("model",), text) for text in written] + stated
