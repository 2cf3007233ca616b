"""`mtldsl completion`: what a shell completes after `mtldsl`."""

from __future__ import annotations

import shlex
from argparse import Action, ArgumentParser
from collections.abc import Iterable, Mapping, Sequence

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content

__all__ = ["completion", "script"]

_BASH = """_mtldsl() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options="" names="" IFS=$'\\n'
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W %(commands)s -- "$current"))
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

# read by eval, or from a file _mtldsl in a folder of $fpath, where the file is the function's body at its first call
_ZSH = """#compdef mtldsl
_mtldsl() {
    local -a commands options names
    commands=(%(commands)s)
    if (( CURRENT == 2 )); then
        if [[ $PREFIX == -* ]]; then compadd -- --help --version; else _describe command commands; fi
        return
    fi
    case $words[2] in
%(cases)s
    esac
    case $words[CURRENT-1] in
%(choices)s
    esac
    if [[ $PREFIX == -* ]]; then compadd -a options
    elif (( $#names )); then compadd -a names
    else _files; fi
}
if [[ $funcstack[1] == _mtldsl ]]; then
    _mtldsl "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _mtldsl mtldsl
fi"""


def script(
    shell: str,
    commands: Mapping[str, str],
    options: Mapping[str, Sequence[str]],
    names: Mapping[str, Sequence[str]],
    choices: Mapping[str, Sequence[str]],
) -> str:
    """The script of a shell. commands: {name: what it does}; options: {command: its options}; names: {command: what it may be asked about},
    files elsewhere; choices: {option: what may follow it}."""
    listed = _lines if shell == "bash" else _quoted
    around = "%s" if shell == "bash" else "(%s)"
    cases = "\n".join(
        f"        {command}) options={around % listed(words)}; names={around % listed(names.get(command, ()))} ;;"
        for command, words in options.items()
    )
    offered = 'COMPREPLY=($(compgen -W %s -- "$current"))' if shell == "bash" else "compadd -- %s"
    after = "\n".join(
        f"        {option}) {offered % listed(words)}; return ;;" for option, words in choices.items()
    )
    if shell == "bash":
        first = _lines([*commands, "--help", "--version"])
    else:
        first = _quoted(f"{name}:{about}" for name, about in commands.items())
    return (_BASH if shell == "bash" else _ZSH) % {"commands": first, "cases": cases, "choices": after}


def _lines(words: Iterable[str]) -> str:
    """One word of bash, a line each: names with blanks stay whole where IFS is a line's end. (Names have no quotes in them.)"""
    return "$'" + "\\n".join(words) + "'"


def _quoted(words: Iterable[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh"], help="the shell")


def completion(commands: Sequence[Command]) -> Command:
    """The command, which completes these."""

    def run(options) -> int:
        from mtldsl.language.vocabulary import WORDS
        from mtldsl.problems.named_models import models

        about = {command.name: command.about for command in commands}
        known = {command.name: _options(command) for command in commands} | {"completion": ["--help"]}
        names = {"words": list(WORDS), "models": list(models()), "completion": ["bash", "zsh"]}
        choices = {text: words for command in commands for text, words in _choices(command)}
        print_content(script(options.shell, about, known, names, choices), one_line=True)
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
