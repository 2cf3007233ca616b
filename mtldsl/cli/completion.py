"""`mtldsl completion`: what a shell completes after `mtldsl`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh"], help="the shell")


def completion(commands: Sequence[Command]) -> Command:
    """The command, which completes these."""

    def run(options) -> int:
        from mtldsl.display.html import template
        from mtldsl.language.vocabulary import WORDS
        from mtldsl.problems.named_models import models

        known, choices = {"completion": ["--help"]}, {}
        for command in commands:
            parser = ArgumentParser()
            command.arguments(parser)
            texts = {text: action for action in parser._actions for text in action.option_strings}
            known[command.name] = sorted(text for text in texts if text.startswith("--"))
            choices |= {
                text: list(map(str, one.choices)) for text, one in texts.items() if one.choices is not None
            }
        script = template(f"completion.{options.shell}.jinja", "cli").render(
            commands={command.name: command.about for command in commands},
            options=known,
            # what may be asked about: files elsewhere
            names={"words": list(WORDS), "models": list(models()), "completion": ["bash", "zsh"]},
            choices=choices,
        )
        print_content(script.rstrip("\n"), one_line=True)
        return OK

    return Command(
        "completion", "print a script that completes commands, options and words in a shell", _arguments, run,
        epilog='bash: eval "$(mtldsl completion bash)" in ~/.bashrc; zsh: eval "$(mtldsl completion zsh)" in ~/.zshrc',
    )  # fmt: skip
