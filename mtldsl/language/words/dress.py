"""How a word looks from outside: its documentation, and a signature that an editor can show."""

from __future__ import annotations

import inspect
from dataclasses import MISSING

from mtldsl.language.words.examples import example_of
from mtldsl.values.arguments import complete

__all__ = ["dressed", "parameter"]


def parameter(name: str, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _documented(cls) -> str:
    """The documentation of an atom, with a model that uses its word in place of what the class computes.

    A word of one's own keeps its documentation, and so does one whose arguments `examples` does not know.
    """
    told, example = inspect.cleandoc(cls.__doc__ or ""), example_of(cls)
    if example is None or not cls.__module__.startswith("mtldsl."):
        return told
    before, _, _ = told.partition("Examples\n--------")
    return f"{before.rstrip()}\n\nExamples\n--------\n{example}\n"


def dressed(word, cls, head, tail):
    """Give the word its atom's documentation and a signature that an editor can show."""
    given = {parameter.name for parameter in (*head, *tail)}
    own = [
        parameter(f.name, inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in cls.typed_fields()
        if f.name not in given
    ]
    word.__signature__ = inspect.Signature([*head, *own, *tail])
    word.__name__ = word.__qualname__ = cls.name
    word.__doc__ = _documented(cls)
    word.__module__ = cls.__module__  # the class's own doctest is collected there, once
    word.atom = cls
    return complete(f"write {cls.name}{word.__signature__}")(word)
