"""Text to Python's syntax tree, every node of which can point at its place in the text. Nothing is executed."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from mtldsl.errors import ModelError, MTLError
from mtldsl.language.text.source import Source
from mtldsl.system.visible import visible

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "Syntax"]

#: Characters of one expression; operators and brackets inside each other.
MAX_LENGTH, MAX_DEPTH = 10_000, 200


class Syntax:
    """The tree `body` of one expression, which may run over several lines and hold comments."""

    def __init__(self, source: Source):
        self.source = source
        self._check_size()
        self.body = self._parse()

    def _check_size(self) -> None:
        """Length and brackets, before Python's parser sees the text: it reports neither where we could point at it."""
        text = self.source.text
        if all(not line.partition("#")[0].strip() for line in text.split("\n")):
            raise self.source.error("the text is empty; write an expression")
        if len(text) > MAX_LENGTH:
            raise self.source.error(
                f"the text has {len(text)} characters; at most {MAX_LENGTH} can be read", 0, 1
            )
        for i, c in enumerate(text.replace("\r\n", "\n ")):
            if (
                c not in "\n\t" and visible(c) != c
            ):  # Python's parser counts some as ends of lines, and refuses others anywhere
                raise self.source.error(
                    f"this cannot be read as an expression: the character {visible(c)} cannot stand in one",
                    i,
                    i + 1,
                )
        open_at, quote, comment, escaped = [], "", False, False
        for i, c in enumerate(text):
            if comment:
                comment = c != "\n"
            elif quote:
                quote = "" if not escaped and c in (quote, "\n") else quote
                escaped = c == "\\" and not escaped
            elif c in "'\"":
                quote = c
            elif c == "#":
                comment = True
            elif c in "([{":
                open_at.append(i)
                if len(open_at) > MAX_DEPTH:
                    raise self.source.error(f"more than {MAX_DEPTH} brackets inside each other", i, i + 1)
            elif c in ")]}":
                if not open_at or text[open_at[-1]] + c not in ("()", "[]", "{}"):
                    raise self.source.error(f"{c!r} closes no bracket", i, i + 1)
                open_at.pop()
        if open_at:
            raise self.source.error(f"{text[open_at[-1]]!r} is never closed", open_at[-1], open_at[-1] + 1)

    def _parse(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about code that is never run
                # brackets of our own let the expression run over several lines: its first line is Python's second
                return ast.parse(f"(\n{self.source.text}\n)", mode="eval").body
        except SyntaxError as error:
            start = self._offset((error.lineno or 2) - 2, max((error.offset or 1) - 1, 0))
            message = f"this cannot be read as an expression: {error.msg}"
            raise self.source.error(message, start, start + 1) from None
        except (RecursionError, MemoryError):
            raise self.source.error("the expression is nested too deeply", 0, 1) from None
        except ValueError as error:
            raise self.source.error(f"this cannot be read as an expression: {error}", 0, 1) from None

    def _offset(self, line: int, column: int) -> int:
        """Where in the text a column of a line is, both counted from 0; our own brackets lie outside the text."""
        lines = self.source.text.split("\n")
        if not 0 <= line < len(lines):
            return 0 if line < 0 else len(self.source.text)
        return sum(len(before) + 1 for before in lines[:line]) + min(column, len(lines[line]))

    def span(self, node: Any) -> tuple[int, int]:
        """(start, end) of a node in the text. Python counts its columns in bytes."""
        lines = self.source.text.split("\n")

        def offset(line, in_bytes):
            if not 0 <= line < len(lines):
                return self._offset(line, 0)
            return self._offset(line, len(lines[line].encode()[:in_bytes].decode(errors="ignore")))

        return offset(node.lineno - 2, node.col_offset), offset(node.end_lineno - 2, node.end_col_offset)

    def placed(self, error: MTLError, node: ast.AST) -> MTLError:
        """The error, at the place of a node."""
        return error.at(self.source.spot(*self.span(node)))

    def error(self, message: str, node: ast.AST, kind: type[MTLError] = ModelError) -> MTLError:
        return self.source.error(message, *self.span(node), kind=kind)
