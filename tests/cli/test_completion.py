"""`mtldsl completion`: a shell that was told completes what the command line knows."""

import shutil
import subprocess
import sys

import pytest

from mtldsl.cli.command_line import COMMANDS, main

BASH = shutil.which("bash")


def completed(line: str, tmp_path) -> set[str]:
    """What bash offers after the line."""
    words = line.split(" ")
    typed = " ".join(f"'{word}'" for word in words)
    code = f'eval "$({sys.executable} -m mtldsl completion bash)"; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _mtldsl; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run([BASH, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.skipif(BASH is None, reason="no bash on this machine")
def test_bash_completes_commands_options_words_and_files(tmp_path):
    (tmp_path / "exams.toml").write_text("")
    assert completed("mtldsl so", tmp_path) == {"solve"}
    assert completed("mtldsl ", tmp_path) >= {
        command.name for command in COMMANDS if command.name != "completion"
    }
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


@pytest.mark.skipif(BASH is None, reason="no bash on this machine")
def test_a_person_who_presses_tab_is_answered(tmp_path):
    """In a real interactive bash, whose own completion finds the function."""
    pty = pytest.importorskip("pty")
    import os
    import select
    import time

    (tmp_path / "exams.toml").write_text("")
    script = subprocess.run([sys.executable, "-m", "mtldsl", "completion", "bash"], capture_output=True, text=True, timeout=60).stdout  # fmt: skip
    (tmp_path / "c.bash").write_text(script)
    pid, fd = pty.fork()
    if pid == 0:  # the child
        os.chdir(tmp_path)
        os.environ |= {"PS1": "> ", "TERM": "dumb", "HISTFILE": "/dev/null"}
        os.execv(BASH, [BASH, "--norc", "--noprofile", "-i"])
    try:
        os.write(fd, b"source c.bash\n")
        os.write(fd, b"mtldsl pa\tex\t")
        seen, end = "", time.monotonic() + 20
        while "mtldsl path exams.toml" not in seen and time.monotonic() < end:
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 4096).decode(errors="replace")
        assert "mtldsl path exams.toml" in seen
    finally:
        os.close(fd)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


ZSH = shutil.which("zsh")


@pytest.mark.skipif(ZSH is None, reason="no zsh on this machine")
def test_zsh_reads_it(tmp_path):
    script = subprocess.run([sys.executable, "-m", "mtldsl", "completion", "zsh"], capture_output=True, text=True, timeout=60).stdout  # fmt: skip
    done = subprocess.run([ZSH, "-f", "-c", f"{script}\nwhence _mtldsl"], capture_output=True, text=True, cwd=tmp_path, timeout=60)  # fmt: skip
    assert done.returncode == 0 and "_mtldsl" in done.stdout, done.stderr


@pytest.mark.skipif(BASH is None, reason="no bash on this machine")
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_is_sound(shell):
    """Parsed without being run; the functions that zsh borrows are bash's."""
    script = subprocess.run([sys.executable, "-m", "mtldsl", "completion", shell], capture_output=True, text=True, timeout=60).stdout  # fmt: skip
    assert subprocess.run([BASH, "-n"], input=script, text=True, timeout=60).returncode == 0


def test_zsh_takes_the_same_script(capsys):
    assert main(["completion", "zsh"]) == 0
    text = capsys.readouterr().out
    assert "bashcompinit" in text and "complete -o filenames -F _mtldsl mtldsl" in text
