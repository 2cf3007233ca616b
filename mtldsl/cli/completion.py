"""`mtldsl completion`: what a shell completes after `mtldsl`."""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Mapping, Sequence

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content

__all__ = ["completion", "script"]

_BASH = """_mtldsl() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options="" names=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "%(commands)s --help --version" -- "$current"))
        return
    fi
    case ${COMP_WORDS[1]} in
%(cases)s
    esac
    case $before in
%(choices)s
    esac
    case $current in
        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
        *) if [ -n "$names" ]; then COMPREPLY=($(compgen -W "$names" -- "$current")); else COMPREPLY=($(compgen -f -- "$current")); fi ;;
    esac
}
complete -o filenames -F _mtldsl mtldsl"""

_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def script(
    shell: str,
    options: Mapping[str, Sequence[str]],
    names: Mapping[str, Sequence[str]],
    choices: Mapping[str, Sequence[str]],
) -> str:
    """The script of a shell. options: {command: its options}; names: {command: what it may be asked about}, files elsewhere; choices:
    {option: what may follow it}."""
    cases = "\n".join(
        f'        {command}) options="{" ".join(words)}"; names="{" ".join(names.get(command, ()))}" ;;'
        for command, words in options.items()
    )
    after = "\n".join(
        f'        {option}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current")); return ;;'
        for option, words in choices.items()
    )
    bash = _BASH % {"commands": " ".join(options), "cases": cases, "choices": after}
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
        choices = {text: words for command in commands for text, words in _choices(command)}
        print_content(script(options.shell, known, names, choices), one_line=True)
        return OK

    return Command(
        "completion", "print a script that completes commands, options and words in a shell", _arguments, run,
        epilog='bash: eval "$(mtldsl completion bash)" in ~/.bashrc; zsh: eval "$(mtldsl completion zsh)" in ~/.zshrc',
    )  # fmt: skip


def _actions(command: Command) -> list[Action]:
    parser = ArgumentParser()
    command.arguments(parser)
    return parser._actions


def _options(command: Command) -> list[str]:
    return sorted(
        text for action in _actions(command) for text in action.option_strings if text.startswith("--")
    )


def _choices(command: Command) -> list[tuple[str, list[str]]]:
    """(option, what may follow it) of those that take one of a few words."""
    return [
        (text, list(map(str, action.choices)))
        for action in _actions(command)
        if action.choices is not None
        for text in action.option_strings
    ]
