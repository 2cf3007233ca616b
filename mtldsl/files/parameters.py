"""The [parameters] table of a problem file: numbers with a name."""

from __future__ import annotations

from mtldsl.errors import ModelError
from mtldsl.files.section import Reading, Section
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.text.kinds import kind_of

__all__ = ["PARAMETERS"]


def _read(reading: Reading) -> None:
    for name, value in reading.table("parameters").items():
        path = ("parameters", name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise reading.file.error(f"a parameter is a number, not {kind_of(value)}", path, value=True)
        try:
            reading.names[name] = Parameter(value, name)
        except ModelError as error:
            raise error.at(reading.file.place(path, value=True)) from error


PARAMETERS = Section("parameters", names=True, read=_read)
