"""Where a problem file may write: a file of a stranger that is solved stays inside its own folder, unless the user says otherwise."""

from __future__ import annotations

from pathlib import Path

from mtldsl.compile.choose import SOLVERS, get_solver
from mtldsl.toml_source import TomlFile

__all__ = ["read_outputs"]


def read_outputs(file: TomlFile, folder: Path, allow_outside: bool) -> dict[str, Path]:
    """Kind -> path of [output], relative to the folder of the problem file.

    DataError with its place where a path of [output], or a file that an option of the solver writes, is not inside: of [output]
    inside that folder, of an option inside the folder where we are, both after links are followed; unless `allow_outside`.
    """
    outputs = file.content.get("output", {})
    if not allow_outside:
        written = [(("output", kind), name, folder) for kind, name in outputs.items()]
        written += [
            (("solve", key), name, Path.cwd())
            for key, name in file.content.get("solve", {}).items()
            if key in _writes(file.content["solve"].get("solver")) and isinstance(name, str)
        ]
        for place, name, base in written:
            if not _is_inside(base, name):
                raise file.error(
                    f"{name!r} is not inside the folder {str(base)!r}, which a problem file may not leave where it writes; "
                    "write a path inside, or allow it with --allow-outside",
                    place,
                    value=True,
                )
    return {kind: folder / name for kind, name in outputs.items()}


def _writes(solver) -> tuple[str, ...]:
    """The options of a solver that name a file to write."""
    return getattr(get_solver(solver), "writes", ()) if isinstance(solver, str) and solver in SOLVERS else ()


def _is_inside(folder: Path, name: str) -> bool:
    """Whether all that may be written under this name - an ending may be added - lies in the folder, links followed."""
    try:
        inside = folder.resolve()
        return all((folder / written).resolve().is_relative_to(inside) for written in (name, f"{name}.npz"))
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        return False
