"""What a problem file writes, and where: a file of a stranger that is solved stays inside its own folder, unless the user says otherwise, and
nothing that was read is written over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mtldsl.errors import DataError, ModelError
from mtldsl.files.rules import SWITCH, TEXT, Rule, Rules
from mtldsl.files.section import Reading, Section
from mtldsl.files.solve import written_by
from mtldsl.files.toml_source import TomlFile
from mtldsl.solution.metric_measure import as_measure
from mtldsl.system.archives import npz_path
from mtldsl.system.inputs import require_apart
from mtldsl.system.reading import regular_file

__all__ = ["OUTPUT", "require_outputs_apart"]

_REPORTS = (".txt", ".html", ".json")


def _report(value) -> bool:
    return isinstance(value, str) and value.endswith(_REPORTS)


def _table(value) -> bool:
    return isinstance(value, str) and value.endswith(".csv")


_NAMES: Rule = (
    lambda v: isinstance(v, list) and v != [] and all(isinstance(one, str) for one in v),
    'a list of measures, such as ["f1", "roc_auc"]',
)
_RULES: Rules = {
    "solution": TEXT,
    "proof": TEXT,
    "report": (_report, "a path that ends in .txt, .html or .json"),
    "metrics": _NAMES,
    "predictions": (
        lambda v: _table(v) or isinstance(v, dict),
        'a path that ends in .csv, or such as {path = "out.csv", new = "new.csv"}',
    ),
}
_OF_PREDICTIONS: Rules = {
    "path": (_table, "a path that ends in .csv"),
    "new": TEXT,
    "task": TEXT,
    "keep": (lambda v: isinstance(v, list) and all(isinstance(one, str) for one in v), 'a list of columns, such as ["id"]'),
    "probabilities": SWITCH,
    "scores": SWITCH,
}  # fmt: skip


def _check(reading: Reading) -> None:
    """DataError with its place for keys and values that cannot stand there."""
    file, said = reading.file, reading.table("output")
    reading.check(("output",), _RULES)
    for i, name in enumerate(said.get("metrics", [])):
        try:
            as_measure(name, "[output] metrics")
        except ModelError as error:
            raise error.at(file.place(("output", "metrics", i), value=True)) from error
    table = said.get("predictions")
    if isinstance(table, dict):
        reading.check(("output", "predictions"), _OF_PREDICTIONS)
        if "path" not in table:
            raise file.error('predictions needs path = "out.csv"', ("output", "predictions"))
        if "task" in table and "new" not in table:
            raise file.error("task is of new rows; those held out know theirs", ("output", "predictions", "task"))  # fmt: skip
    if table is not None and "new" not in table and "split" not in file.content:
        raise file.error(
            'predictions are of rows held out, and there is no [split]; write it, or predictions = {path = "out.csv", new = "new.csv"}',
            ("output", "predictions"),
        )  # fmt: skip


def _read(reading: Reading) -> None:
    """Kind -> path of [output], and what to predict; all relative to the folder of the problem file.

    DataError with its place where a path of [output], or a file that an option of the solver writes, is not inside that folder after links
    are followed; unless `allow_outside`.
    """
    file, folder, said = reading.file, reading.folder, dict(reading.table("output"))
    reading.metrics = said.pop("metrics", [])
    predictions: Any = said.pop("predictions", None)
    if predictions is not None:
        table = dict(predictions) if isinstance(predictions, dict) else {"path": predictions}
        said["predictions"] = table.pop("path")
        if "new" in table:
            table["new"] = _readable(reading, folder / table["new"])
        reading.predictions = table
    reading.outputs = {kind: _path(folder, kind, name) for kind, name in said.items()}
    if not reading.allow_outside:
        for place, path in _written(reading):
            if not _is_inside(path, folder):
                raise file.error(
                    f"{_typed(file, place)!r} is not inside the folder {str(folder)!r}, which a problem file may not leave where it writes; write "
                    "a path inside, or allow it with --allow-outside",
                    place,
                    value=True,
                )


def require_outputs_apart(reading: Reading) -> None:
    """DataError with its place where the file says to write over what was read, such as the data or itself, or over another output."""
    before: list[tuple[str, Path]] = []
    for place, path in _written(reading):
        before.append((f"[{place[0]}] {place[1]}", path))
        try:
            reading.inputs.require_none(path)
            require_apart(before)
        except DataError as error:
            raise error.about(_typed(reading.file, place)).at(
                reading.file.place(place, value=True)
            ) from error


def _written(reading: Reading) -> list[tuple[tuple, Path]]:
    """(place, path) of all that [output] and the solver's options say to write."""
    predictions, solve = reading.table("output").get("predictions"), reading.table("solve")
    places: list[tuple[tuple, Path]] = [
        (_place(kind, predictions), path) for kind, path in reading.outputs.items()
    ]
    return places + [
        (("solve", key), reading.folder / str(solve[key])) for key in written_by(solve) if key in solve
    ]


def _typed(file: TomlFile, place: tuple) -> str:
    typed: Any = file.content
    for key in place:
        typed = typed[key]
    return str(typed)


def _readable(reading: Reading, path: Path) -> Path:
    """New rows: that they are there is said before the solve."""
    try:
        return regular_file(path)
    except DataError as error:
        raise error.at(reading.file.place(("output", "predictions", "new"), value=True)) from error


def _place(kind: str, predictions) -> tuple[str, ...]:
    inner = ("path",) if kind == "predictions" and isinstance(predictions, dict) else ()
    return ("output", kind, *inner)


def _path(folder: Path, kind: str, name: str) -> Path:
    """A solution and a proof are .npz files, whatever their names."""
    path = folder / name
    return npz_path(path) if kind in ("solution", "proof") else path


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether it lies in the folder, links followed."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        return False


OUTPUT = Section("output", _RULES, check=_check, read=_read)
