"""The command line is a list of commands: a new one is a file and a line."""

import pytest

from mtldsl.cli import command_line
from mtldsl.cli.command import Command, add_file
from mtldsl.errors import DataError, SolverError


def _arguments(parser):
    add_file(parser)
    parser.add_argument("--loud", action="store_true")


def _greet(options) -> int:
    if options.loud:
        raise SolverError("too loud", term="--loud")
    if options.file.suffix != ".toml":
        raise DataError("not a problem file", term=options.file, write_instead="write a .toml")
    print(f"hello {options.file.stem}")
    return 3


@pytest.fixture
def main(monkeypatch):
    greet = Command("greet", "greet a problem file", _arguments, _greet, epilog="exit code 3")
    monkeypatch.setattr(command_line, "COMMANDS", (*command_line.COMMANDS, greet))
    return command_line.main


def test_a_new_command_is_parsed_run_and_told_of(main, capsys):
    assert main(["greet", "you.toml"]) == 3 and capsys.readouterr().out == "hello you\n"
    for typed, said in ((["--help"], "greet a problem file"), (["greet", "--help"], "Greet a problem file.")):
        with pytest.raises(SystemExit):
            main(typed)
        assert said in capsys.readouterr().out


def test_its_errors_get_the_frame_of_the_command_line(main, capsys):
    """Bad input is 2, a failure to solve 1; the frame stands around the sentence and changes nothing in it."""
    assert main(["greet", "you.txt"]) == 2
    assert capsys.readouterr().err == "mtldsl: you.txt: not a problem file; write a .toml\n"
    assert main(["greet", "you.toml", "--loud"]) == 1
    assert capsys.readouterr().err == "mtldsl: --loud: too loud\n"
