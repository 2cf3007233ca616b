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
    assert completed("mtldsl words trace", tmp_path) == {"trace_norm"}
    assert completed("mtldsl models NC-C", tmp_path) == {"NC-CMTL"}


def test_zsh_takes_the_same_script(capsys):
    assert main(["completion", "zsh"]) == 0
    text = capsys.readouterr().out
    assert "bashcompinit" in text and "complete -o filenames -F _mtldsl mtldsl" in text
