"""Rename identifiers in the whole repository: python tools/rename.py OLD=NEW ...

A name is replaced where it is a token of its own, a whole string (`__all__`, setattr), the end of a dotted string, or in backticks.
A new name that a file has already is reported, and nothing is written.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def renamed(text: str, names: dict[str, str]) -> str:
    """Return the text of a Python file with the names replaced."""
    lines = text.splitlines(keepends=True)
    words = "|".join(map(re.escape, names))
    quoted = re.compile(rf"(?<=[\"'.])({words})(?=[\"'])|(?<=`)({words})(?=[`(.])")
    whole, braces = re.compile(rf"\b({words})\b"), re.compile(r"\{[^{}]*\}")
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if token.type == tokenize.NAME:
            new = names.get(token.string, token.string)
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            new = quoted.sub(lambda match: names[match[0]], token.string)
            if token.string[:2].lower().strip("'\"") in ("f", "rf", "fr"):
                new = braces.sub(lambda one: whole.sub(lambda match: names[match[0]], one[0]), new)
        else:
            continue
        if new != token.string:
            (first, left), (last, right) = token.start, token.end
            lines[first - 1 : last] = [lines[first - 1][:left] + new + lines[last - 1][right:]]
            if first != last:  # keep the numbers of later lines, which are done already
                lines[first:first] = [""] * (last - first)
    return "".join(lines)


def main(pairs: list[str]) -> int:
    names = dict(pair.split("=") for pair in pairs)
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    written, taken = {}, []
    for path in listed.stdout.split():
        if path.startswith("tools/"):
            continue
        before = (ROOT / path).read_text(encoding="utf-8")
        after = renamed(before, names)
        if after == before:
            continue
        written[path] = after
        tokens = {
            t.string
            for t in tokenize.generate_tokens(io.StringIO(before).readline)
            if t.type == tokenize.NAME
        }
        taken += [f"{path}: {new}" for old, new in names.items() if old in tokens and new in tokens]
    if taken:
        print("taken:", *taken, sep="\n  ")
        return 1
    for path, after in written.items():
        (ROOT / path).write_text(after, encoding="utf-8")
    print(f"{len(written)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
