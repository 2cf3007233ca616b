"""python -m tests.fuzz.files: problem files with mistakes and malice in them, each one seed, given to the command line.

--seed 17                one file, printed, and what came of it
--count 5000 --first 0   as many seeds; those that end other than the page of exit codes says are printed
--minutes 60             seeds for so long
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from itertools import count, islice
from pathlib import Path

from tests.fuzz.mutants import mutant, write_data

__all__ = ["judge", "main"]

#: Seconds that one file may take: parsing, reading its data, a solve of at most SOLVE_SECONDS, and a loaded machine.
PATIENCE, SOLVE_SECONDS = 60, 0.3


def judge(seed: int, folder: Path) -> tuple[str, str]:
    """(what is wrong, or nothing; how it ended) of one file in a folder that holds the data."""
    from mtldsl.cli.command_line import main as command

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
            code = command(arguments)
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
    """A folder with "inside" in it, which holds the data of the seeds; the process is in there."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "inside").mkdir()
        write_data(folder / "inside")
        os.chdir(folder / "inside")
        try:
            yield folder
        finally:
            os.chdir(before)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.files", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    options = parser.parse_args(arguments)
    random.seed(0)
    if options.seed is not None:
        sys.stdout.buffer.write(mutant(options.seed) + b"\n")
    seeds = count(options.first) if options.minutes else islice(count(options.first), options.count)
    began, codes, found = time.monotonic(), Counter(), 0
    with data_folder() as folder:
        for seed in seeds if options.seed is None else [options.seed]:
            since = time.monotonic()
            wrong, code = judge(seed, folder)
            codes[code] += 1
            if wrong:
                found += 1
                print(f"--seed {seed} ({time.monotonic() - since:.1f} s): {wrong}", flush=True)
            if options.minutes and time.monotonic() - began > 60 * options.minutes:
                break
    print(
        f"{codes.total()} files in {time.monotonic() - began:.0f} s, exit codes {dict(codes)}: {found} wrong"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
