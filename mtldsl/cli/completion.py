"""`mtldsl completion`: what a shell completes after `mtldsl`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content

__all__ = ["completion", "script"]

_BASH = """_mtldsl() {
    local current=${COMP_WORDS[COMP_CWORD]} options="" names=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "%(commands)s --help --version" -- "$current"))
        return
    fi
    case ${COMP_WORDS[1]} in
%(cases)s
    esac
    case $current in
        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
        *) if [ -n "$names" ]; then COMPREPLY=($(compgen -W "$names" -- "$current")); else COMPREPLY=($(compgen -f -- "$current")); fi ;;
    esac
}
complete -o filenames -F _mtldsl mtldsl"""

_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def script(shell: str, options: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]]) -> str:
    """The script of a shell. options: {command: its options}; names: {command: what it may be asked about}, files elsewhere."""
    cases = "\n".join(
        f'        {command}) options="{" ".join(words)}"; names="{" ".join(names.get(command, ()))}" ;;'
        for command, words in options.items()
    )
    bash = _BASH % {"commands": " ".join(options), "cases": cases}
    return bash if shell == "bash" else _ZSH + bash


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh"], help="the shell")


def completion(commands: Sequence[Command]) -> Command:
    """The command, which completes these."""

    def run(options) -> int:
        from mtldsl.language.words.vocabulary import WORDS
        from mtldsl.named_models import models

        known = {command.name: _options(command) for command in commands}
        names = {
            "words": list(WORDS),
            "models": [name for name in models() if name.isidentifier() or ("-" in name and " " not in name)],
        }
        print_content(script(options.shell, known, names), one_line=True)
        return OK

    return Command(
        "completion", "print a script that completes commands, options and words in a shell", _arguments, run,
        epilog='bash: eval "$(mtldsl completion bash)" in ~/.bashrc; zsh: eval "$(mtldsl completion zsh)" in ~/.zshrc',
    )  # fmt: skip


def _options(command: Command) -> list[str]:
    parser = ArgumentParser()
    command.arguments(parser)
    return sorted(
        text for action in parser._actions for text in action.option_strings if text.startswith("--")
    )
