"""Names of tests: unit and behaviour in at most 60 characters; the sentence stands in the docstring."""

import ast
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MOST_CHARACTERS = 60


def names() -> list[tuple[str, str]]:
    """Return (file, name) of every test."""
    return [
        (str(path.relative_to(TESTS)), node.name)
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


@pytest.mark.slow
def test_names_are_short_and_unique_in_their_file():
    found = names()
    assert len(found) > 1000, "the tests have moved"
    long = [f"{file}: {name} ({len(name)})" for file, name in found if len(name) > MOST_CHARACTERS]
    assert not long, "say unit and behaviour, and the sentence in the docstring:\n" + "\n".join(long)
    twice = [f"{file}: {name}" for (file, name), count in Counter(found).items() if count > 1]
    assert not twice, "the second takes the place of the first:\n" + "\n".join(twice)
