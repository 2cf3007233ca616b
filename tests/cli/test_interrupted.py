"""Ctrl-C in the terminal: what it says is true of what is kept."""

import os
import signal
import subprocess
import sys

import pytest

from mtldsl.problems import cross_validation
from mtldsl.utils import interrupts
from tests.cli.test_along import FILE, VALIDATION
from tests.loops import for_each


@for_each("command", ["solve", "cv"])
def test_choosing_says_that_nothing_is_kept(command, tmp_path, command_line, monkeypatch):
    def pressed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cross_validation, "_run", pressed)
    path = tmp_path / "p.toml"
    path.write_text(FILE + VALIDATION)
    code, out, err = command_line(command, path)
    assert (code, out) == (130, "")
    assert err == "mtldsl: choosing lam was interrupted when 0 of 3 folds were complete; nothing is kept\n"


@pytest.mark.parametrize("of_parts, line", [(False, interrupts.INTERRUPTED), (True, interrupts.STOPPED)])
def test_a_part_of_many_promises_nothing(of_parts, line, capsys, monkeypatch):
    monkeypatch.setattr(interrupts._state, "last", -float("inf"))
    with interrupts.handle_signals(raises=True, of_parts=of_parts), interrupts.handle_signals():
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.is_signal_pending()
    assert capsys.readouterr().err == line + "\n"


def pressed_while_importing(folder, *command):
    """The process that `command` makes, interrupted where it imports numpy."""
    (folder / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
    )


@for_each("command", [("-m", "mtldsl", "solve", "e.toml"), ("mtldsl", "solve", "e.toml")])
def test_the_imports_of_the_command_end_with_a_line(command, tmp_path):
    script = tmp_path / "mtldsl"
    script.write_text("import sys\nfrom mtldsl.cli import main\nsys.exit(main())\n")
    done = pressed_while_importing(
        tmp_path, *(str(script) if word == "mtldsl" and command[0] == word else word for word in command)
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "mtldsl: interrupted while it started\n")


def test_the_imports_of_another_program_are_left_to_it(tmp_path):
    done = pressed_while_importing(tmp_path, "-c", "import mtldsl")
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr
