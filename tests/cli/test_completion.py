"""`mtldsl completion`: a shell that was told completes what the command line knows."""

import contextlib
import functools
import io
import shutil
import subprocess

import pytest

from mtldsl.cli.command_line import COMMANDS, main
from tests.loops import for_each

BASH = shutil.which("bash")


@functools.cache
def script_of(shell: str) -> str:
    """Return what `mtldsl completion` prints: a bash that reads it starts in milliseconds, the command line in a second."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["completion", shell]) == 0
    return printed.getvalue()


def offered(line: str, tmp_path) -> list[str]:
    """What bash offers after the line."""
    words = line.split(" ")
    typed = " ".join(f"'{word}'" for word in words)
    code = f'eval "$(cat)"; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _mtldsl; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        [BASH, "-c", code], input=script_of("bash"), capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def completed(line: str, tmp_path) -> set[str]:
    return set(offered(line, tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="no bash on this machine")
def test_bash_completes_commands_options_words_and_files(tmp_path):
    (tmp_path / "exams.toml").write_text("")
    assert completed("mtldsl so", tmp_path) == {"solve"}
    names = {command.name for command in COMMANDS}
    assert completed("mtldsl ", tmp_path) >= names - {"completion"}
    assert completed("mtldsl solve --so", tmp_path) == {"--solver"}
    assert {"--keep", "--task"} <= completed("mtldsl predict --", tmp_path)
    assert completed("mtldsl solve ex", tmp_path) == {"exams.toml"}
    assert completed("mtldsl c", tmp_path) == {"check", "completion", "cv"} - {"completion"}
    assert completed("mtldsl pa", tmp_path) == {"path"} and completed("mtldsl rep", tmp_path) == {"report"}
    assert {"--values", "--parameter", "--csv", "--plot", "--report", "--progress"} <= completed("mtldsl path --", tmp_path)  # fmt: skip
    assert {"--folds", "--rule", "--metric", "--random-state"} <= completed("mtldsl cv --", tmp_path)
    assert completed("mtldsl cv --rule o", tmp_path) == {"one_se"}
    assert completed("mtldsl report exams.npz ex", tmp_path) == {"exams.toml"}
    assert {"--labels", "--title", "--output"} <= completed("mtldsl report --", tmp_path)
    assert completed("mtldsl words trace", tmp_path) == {"trace_norm"}
    assert completed("mtldsl models NC-C", tmp_path) == {"NC-CMTL"}


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="no bash on this machine")
def test_bash_keeps_names_with_blanks_whole(tmp_path):
    (tmp_path / "my exams.toml").write_text("")
    for line, found in (("mtldsl solve my", "my exams.toml"), ("mtldsl models Redu", "Reduced-rank regression"), ("mtldsl models SMTL(tr", "SMTL(trace+F1)\nSMTL(trace+AUC)")):  # fmt: skip
        assert "\n".join(offered(line, tmp_path)) == found


def answered(command: list[str], first: str, typed: str, expected: str, folder) -> str:
    """What a real interactive shell shows once `expected` is there, or after 20 seconds; `first` is its first line."""
    pty = pytest.importorskip("pty")
    import os
    import select
    import time

    pid, fd = pty.fork()
    if pid == 0:  # the child
        os.chdir(folder)
        os.environ |= {
            "PS1": "> ", "TERM": "dumb", "HISTFILE": "/dev/null", "COLUMNS": "200", "HOME": str(folder), "ZDOTDIR": str(folder),
        }  # fmt: skip
        os.execv(command[0], command)
    seen, end = "", time.monotonic() + 120

    def read_until(text: str) -> None:
        nonlocal seen
        while text not in seen and time.monotonic() < end:
            if select.select([fd], [], [], 0.2)[0]:
                # a dumb terminal's cursor goes back by one where the shell takes its own blank or slash away
                seen = _without_steps_back(seen + os.read(fd, 4096).decode(errors="replace"))

    try:
        os.write(fd, f"{first}; echo rea''dy\n".encode())
        read_until("ready")
        os.write(fd, typed.encode())
        read_until(expected)
        return seen
    finally:
        os.close(fd)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def _without_steps_back(text: str) -> str:
    kept: list[str] = []
    for letter in text.replace("\a", ""):
        if letter == "\b":
            kept = kept[:-1]
        else:
            kept.append(letter)
    return "".join(kept)


ZSH = shutil.which("zsh")


@pytest.mark.skipif(ZSH is None, reason="no zsh on this machine")
@for_each(
    "first",
    [
        "source c.zsh",
        'eval "$(cat c.zsh)"',
        "fpath=($PWD/functions $fpath); autoload -U compinit; compinit -D",
    ],
    ids=["source", "eval", "fpath"],
)
@for_each(
    ("typed", "expected"),
    [
        ("mtldsl pa\tex\t", "mtldsl path exams.toml "),
        ("mtldsl path --val\t", "mtldsl path --values "),
        ("mtldsl words trace\t", "mtldsl words trace_norm "),
        ("mtldsl solve my\t", "mtldsl solve my\\ exams.toml "),
        ("mtldsl completion z\t", "mtldsl completion zsh "),
        ("mtldsl \t", "certify it, and cross-check it as the file says"),
    ],
)
def test_a_person_who_presses_tab_in_zsh_is_answered(first, typed, expected, tmp_path):
    (tmp_path / "functions").mkdir()
    for name in ("exams.toml", "my exams.toml"):
        (tmp_path / name).write_text("")
    for name in ("c.zsh", "functions/_mtldsl"):
        (tmp_path / name).write_text(script_of("zsh"))
    assert expected in answered([ZSH, "-f", "-i"], first, typed, expected, tmp_path)


def test_zsh_is_told_what_commands_do(command_line):
    code, out, _ = command_line("completion", "zsh")
    told = [command for command in COMMANDS if command.name != "completion"]
    assert code == 0 and out.startswith("#compdef mtldsl\n")
    assert all(f"'{command.name}:{command.about}'" in out for command in told)
