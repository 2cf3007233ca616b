"""`mtldsl words` and `mtldsl models`: the catalogues, or one name of them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module

from mtldsl.cli.command import OK, Command
from mtldsl.cli.output import print_content, print_json
from mtldsl.errors import DataError


def _listing(kind: str, about: str, module: str) -> Command:
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
        pages = import_module(module)
        if options.json:
            print_json(pages.as_plain(options.name))
        elif options.markdown:
            print_content(pages.markdown().removesuffix("\n"))
        else:
            print_content(pages.page(options.name))
        return OK

    return Command(kind, about, arguments, run)


WORDS = _listing("words", "the words of the language", "mtldsl.cli.catalogue_pages")
MODELS = _listing(
    "models", "models of papers by name, each with its statement in the language", "mtldsl.cli.model_pages"
)
