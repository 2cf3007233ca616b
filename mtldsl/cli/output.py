"""What the command line prints and writes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from mtldsl.errors import DataError, ModelError
from mtldsl.system.atomic_files import atomic_file
from mtldsl.system.visible import visible, visible_in_json, visible_record

__all__ = ["Ran", "print_content", "print_error", "print_json", "save_picture", "save_text", "show", "write"]

#: Characters of a line of a message: what was typed is quoted in it, and may be long.
_LONGEST = 1000


def show(options, record: dict, report) -> None:
    """A record as --json and --quiet say, else as `report` lays it out."""
    if options.json:
        from mtldsl.report.record import plain

        print_json(plain(record))
    elif options.quiet:
        from mtldsl.report.text import verdict

        print_content(verdict(visible_record(record)), one_line=True)
    else:
        print_content(report(visible_record(record)))


def print_error(error: Exception) -> None:
    """The message on stderr: control characters spelled out, the middle of a long line left out."""
    lines = visible(f"mtldsl: {error}", kept="\n").split("\n")
    half = _LONGEST // 2
    lines = [line if len(line) <= _LONGEST else f"{line[:half]} ... {line[-half:]}" for line in lines]
    print("\n".join(lines), file=sys.stderr)


def print_json(value) -> None:
    print_content(visible_in_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)))


def print_content(content, one_line: bool = False) -> None:
    """Plain text as it is, anything else through rich, broken at the width of the terminal unless it is to be one line.

    A reader that has left, as `head` does, changes nothing. DataError where what is printed goes to a disk that is full.
    """
    try:
        if isinstance(content, str):
            print(content)
        else:
            _console().print(content, soft_wrap=one_line)
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_output()
    except OSError as error:
        _leave_output()
        raise DataError(
            f"standard output cannot be written ({error.strerror or error}); print to where there is room"
        ) from error


def _leave_output() -> None:
    """What is still to be printed goes nowhere, at the end of the process too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _console():
    from rich.console import Console

    from mtldsl.report.layout import PLAIN

    class Pipe(Console):
        def on_broken_pipe(
            self,
        ):  # rich would end the process with exit code 1, which means something else here
            raise BrokenPipeError

    return Pipe(**PLAIN)


def save_text(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode())


def save_picture(path: Path, draw) -> None:
    """The picture on the Axes that `draw()` returns, in the format that the ending says."""
    from mtldsl.system.pyplot import pyplot

    plt = pyplot()
    ax = draw()
    with atomic_file(path) as file:
        ax.figure.savefig(file, format=path.suffix[1:], bbox_inches="tight", dpi=200)
    plt.close(ax.figure)


class Ran(NamedTuple):
    """A problem file that was solved: `record` is the whole of it as plain values, `code` the exit code."""

    record: dict
    file: Any
    solution: Any
    check: Any
    chosen: Any
    code: int


def write(outputs: list[tuple[str, Path]], ran: Ran) -> None:
    """Write to each (kind, path) a proof, or the solution, the predictions or the report, as its ending says.

    DataError for those that cannot be written, after the others were.
    """
    refused = []
    for kind, path in outputs:
        try:
            if kind == "proof":
                ran.solution.certificate.save(path)
            elif path.suffix == ".npz":
                ran.solution.save(path)
            else:
                with atomic_file(path) as file:
                    file.write(_report(path, ran).encode())
        except (DataError, ModelError) as error:
            refused.append(str(error))
    if refused:
        raise DataError("; ".join(refused))


def _report(path: Path, ran: Ran) -> str:
    if path.suffix == ".csv":
        from mtldsl.report.predictions import predictions_of

        return predictions_of(ran.file, ran.solution)
    from mtldsl.report.record import plain
    from mtldsl.report.text import run_report, to_text

    if path.suffix == ".json":
        return visible_in_json(json.dumps(plain(ran.record), indent=2, ensure_ascii=False)) + "\n"
    text = to_text(run_report(visible_record(ran.record)))
    return text if path.suffix == ".txt" else _page(path, ran, text)


def _page(path: Path, ran: Ran, text: str) -> str:
    from mtldsl.named_models.separate import separate_models
    from mtldsl.shown.page import Section
    from mtldsl.shown.panel import Panel
    from mtldsl.solution.page.build import html_report
    from mtldsl.solution.page.facts import Facts

    file = ran.file
    facts = Facts(
        ran.solution, file.tasks_test, ran.check, ran.chosen, repeat=f"mtldsl solve {file.path.name}",
        title=file.title or path.stem, metrics=tuple(file.metrics), separate=separate_models(file.tasks_train, file.tuned_for), held_out=True,
        more=(Section("Everything, as the terminal shows it", panels=[Panel("", text=text)], folded=True),),
    )  # fmt: skip
    return html_report(facts)
