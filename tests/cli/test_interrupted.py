"""Ctrl-C in the terminal: what it says is true of what is kept."""

import os
import signal

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
