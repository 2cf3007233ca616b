"""The command line: mtldsl solve | check | explain | predict | words | models | verify."""

from mtldsl.cli.command_line import main

__all__ = ["main"]
