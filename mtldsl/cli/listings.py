"""`mtldsl words` and `mtldsl models`: the catalogues, or one name of them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from types import ModuleType

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content, print_json
from mtldsl.errors import DataError

__all__ = ["MODELS", "WORDS"]


def _listing(kind: str, about: str, catalogue: Callable[[], ModuleType]) -> Command:
    """The command that lists a catalogue: a module, imported when it is asked for, that has it as text, Markdown and plain values."""

    def arguments(parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help=f"everything about one {kind.removesuffix('s')}"
        )
        style = parser.add_mutually_exclusive_group()
        style.add_argument("--json", action="store_true", help="print JSON and nothing else")
        style.add_argument(
            "--markdown", action="store_true", help="print the catalogue as a page of documentation"
        )

    def run(options: Namespace) -> int:
        if options.name is not None and options.markdown:
            raise DataError(
                f"{kind} NAME --markdown: the page is of all {kind}", write_instead="leave out the name"
            )
        pages = catalogue()
        if options.json:
            print_json(pages.as_plain(options.name))
        elif options.markdown:
            print_content(pages.markdown().removesuffix("\n"))
        else:
            print_content(pages.page(options.name))
        return OK

    return Command(kind, about, arguments, run)


def _words() -> ModuleType:
    from mtldsl.cli import catalogue_pages as pages

    return pages


def _models() -> ModuleType:
    from mtldsl.cli import model_pages as pages

    return pages


WORDS = _listing("words", "the words of the language", _words)
MODELS = _listing("models", "models of papers by name, each with its statement in the language", _models)
