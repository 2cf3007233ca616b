"""`mtldsl completion`: what a shell completes after `mtldsl`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content

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
    if shell == "bash":
        template, first = _BASH, _lines([*commands, "--help", "--version"])
        listed, offered = _lines, 'COMPREPLY=($(compgen -W %s -- "$current"))'
    else:
        template, first = _ZSH, _quoted(f"{name}:{about}" for name, about in commands.items())
        listed, offered = (lambda words: f"({_quoted(words)})"), "compadd -- %s"
    cases = [
        f"        {command}) options={listed(words)}; names={listed(names.get(command, ()))} ;;"
        for command, words in options.items()
    ]
    words_of = _lines if shell == "bash" else _quoted
    after = [f"        {option}) {offered % words_of(words)}; return ;;" for option, words in choices.items()]
    return template % {"commands": first, "cases": "\n".join(cases), "choices": "\n".join(after)}


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
        known, choices = {"completion": ["--help"]}, {}
        for command in commands:
            parser = ArgumentParser()
            command.arguments(parser)
            texts = {text: action for action in parser._actions for text in action.option_strings}
            known[command.name] = sorted(text for text in texts if text.startswith("--"))
            choices |= {
                text: list(map(str, one.choices)) for text, one in texts.items() if one.choices is not None
            }
        names = {"words": list(WORDS), "models": list(models()), "completion": ["bash", "zsh"]}
        print_content(script(options.shell, about, known, names, choices), one_line=True)
        return OK

    return Command(
        "completion", "print a script that completes commands, options and words in a shell", _arguments, run,
        epilog='bash: eval "$(mtldsl completion bash)" in ~/.bashrc; zsh: eval "$(mtldsl completion zsh)" in ~/.zshrc',
    )  # fmt: skip
