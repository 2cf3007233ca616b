"""Where a problem file may write: a file of a stranger that is solved stays inside its own folder, unless the user says otherwise."""

from __future__ import annotations

from pathlib import Path

from mtldsl.files.rules import TEXT
from mtldsl.files.section import Reading, Section
from mtldsl.solvers.registry import SOLVERS, get_solver
from mtldsl.system.archives import npz_path

__all__ = ["OUTPUT"]


def _report(value) -> bool:
    return isinstance(value, str) and value.endswith((".txt", ".html", ".json"))


def _read(reading: Reading) -> None:
    """Kind -> path of [output], relative to the folder of the problem file.

    DataError with its place where a path of [output], or a file that an option of the solver writes, is not inside: of [output]
    inside that folder, of an option inside the folder where we are, both after links are followed; unless `allow_outside`.
    """
    file, folder = reading.file, reading.folder
    outputs = {kind: _path(folder, kind, name) for kind, name in reading.table("output").items()}
    if not reading.allow_outside:
        written = [(("output", kind), path, folder) for kind, path in outputs.items()]
        solve = reading.table("solve")
        here = Path.cwd()
        written += [(("solve", key), here / solve[key], here) for key in _writes(solve) if key in solve]
        for place, path, base in written:
            if not _is_inside(path, base):
                raise file.error(
                    f"{file.content[place[0]][place[1]]!r} is not inside the folder {str(base)!r}, which a problem file may not leave "
                    "where it writes; write a path inside, or allow it with --allow-outside",
                    place,
                    value=True,
                )
    reading.outputs = outputs


def _path(folder: Path, kind: str, name: str) -> Path:
    """A solution is an .npz file, whatever its name."""
    path = folder / name
    return npz_path(path) if kind == "solution" else path


def _writes(solve: dict) -> tuple[str, ...]:
    """The options of the solver that name a file to write."""
    name = solve.get("solver")
    return get_solver(name).writes if name in SOLVERS else ()


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether it lies in the folder, links followed."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        return False


OUTPUT = Section(
    "output", {"solution": TEXT, "report": (_report, "a path that ends in .txt, .html or .json")}, read=_read
)
