"""Problem files with mistakes and malice in them, each one seed, given to the command line."""

import contextlib
import io
import signal
import tempfile
import traceback
from functools import cache
from pathlib import Path
from unittest import mock

from mtldsl.cli import command_line
from mtldsl.language import vocabulary
from tests.fuzz.mutants import mutant, write_data

#: Seconds that one file may take: parsing, reading its data, a solve of at most SOLVE_SECONDS, and a loaded machine.
PATIENCE, SOLVE_SECONDS = 60, 0.3


def judge(seed: int, folder: Path) -> tuple[str, str]:
    """(what is wrong, or nothing; how it ended) of one file in a folder that holds the data."""
    path = folder / "inside" / "p.toml"
    path.write_bytes(mutant(seed))
    before = _listing(folder)
    arguments = ["explain", str(path)]
    if seed % 4 == 0:
        limits = ["--set", f"max_seconds={SOLVE_SECONDS}", "--set", "max_iter=40"]
        arguments = ["solve", str(path), "--no-check", *limits]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _patience():
        try:
            code = command_line.main(arguments)
        except BaseException:
            return f"{' '.join(arguments)}\n{traceback.format_exc()}", "traceback"
    said = out.getvalue() + err.getvalue()
    wrong = []
    if code not in (0, 1, 2):
        wrong.append(f"exit code {code}")
    if code == 2 and not err.getvalue().startswith("mtldsl: "):
        wrong.append(f"bad input without a message: {err.getvalue()!r}")
    shown = [c for c in said if not c.isprintable() and c not in "\n\xa0\u200c\u200d"]
    if shown:
        wrong.append(f"the terminal was given {sorted(set(shown))}")
    strangers = _listing(folder) - before
    if any(not name.startswith("inside/") for name in strangers):
        wrong.append(f"written outside of its folder: {strangers}")
    for name in strangers:
        (folder / name).unlink()
    return "; ".join(wrong), str(code)


def _listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def _patience():
    def late(number, frame):
        raise TimeoutError(f"{PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def data_folder():
    """A folder with "inside" in it, which holds the data of the seeds; the process is in there.

    What is the same for every file is made once: the parser of the command line, and the list of installed plugins.
    """
    once = [(command_line, "_parser"), (vocabulary, "installed_plugins")]
    with contextlib.ExitStack() as stack:
        for module, name in once:
            stack.enter_context(mock.patch.object(module, name, cache(getattr(module, name))))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "inside").mkdir()
        write_data(folder / "inside")
        stack.enter_context(contextlib.chdir(folder / "inside"))
        yield folder
