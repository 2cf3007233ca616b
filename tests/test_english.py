"""The plain English of messages, docstrings, comments and pages: two habits that read as translated do not come back."""

import re
from pathlib import Path

import pytest

from tests.loops import for_each

ROOT = Path(__file__).parents[1]
ROOMS = ("mtldsl", "reference", "tests", "docs", "examples", "benchmarks", ".")

#: "W is no number" is to be "W is not a number". "There is no number", and comparatives ("is no longer", "is no larger
#: than", "is no slower"), are good English.
_COMPARATIVE = (
    r"longer|higher|lower|larger|smaller|faster|slower|nearer|further|more|less|better|worse|different|such"
)
_BREAK = r"[\s#]+"  # a line may break between two words, in a comment too
IS_NO = re.compile(
    rf"\bthere{_BREAK}(?:is|are|was|were){_BREAK}no\b"
    rf"|(?P<wrong>\b(?:is|are|was|were){_BREAK}no\b(?=\s)(?!{_BREAK}(?:{_COMPARATIVE})\b))",
    re.IGNORECASE,
)

#: "Of a task, the largest step" is to be "The largest step of a task": a sentence opens with its subject.
OPENS_WITH_OF = re.compile(r"(?P<wrong>(?<!\w )(?<!\w)Of\s+[a-z0-9`])")


def sources():
    """Every file that people read or are shown, this one aside, which has to quote what it forbids."""
    for room in ROOMS:
        pattern = "*" if room == "." else "**/*"
        for path in sorted((ROOT / room).glob(pattern)):
            if path.suffix in (".py", ".md", ".toml", ".txt", ".jinja") and path != Path(__file__):
                yield path


def _wrong(habit, text) -> list[re.Match]:
    return [match for match in habit.finditer(text) if match["wrong"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "habit, instead", [(IS_NO, "is not a ..."), (OPENS_WITH_OF, "the subject first")], ids=["is no", "of"]
)
def test_the_habit_does_not_come_back(habit, instead):
    found, read = [], 0
    for path in sources():
        text = path.read_text(encoding="utf-8")
        read += 1
        for match in _wrong(habit, text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[line - 1].strip()}")
    assert read > 500, "the folders have moved: name them in ROOMS"
    assert not found, f"write {instead}\n" + "\n".join(found)


@for_each(
    "text, habit, wrong",
    [
        ("W is no number", IS_NO, True),
        ("What is no\n    # plain decimal", IS_NO, True),
        ("these are no trees", IS_NO, True),
        ("where there\n    # is no row", IS_NO, False),
        ("is no longer a tree", IS_NO, False),
        ("#: Of the paper's Table 4.", OPENS_WITH_OF, True),
        ("first. Of several the last", OPENS_WITH_OF, True),
        ("The Art Of nothing", OPENS_WITH_OF, False),
    ],
)
def test_the_rule_tells_them_apart(text, habit, wrong):
    assert bool(_wrong(habit, text)) is wrong


#: The most words of a sentence, and of a cell of a table.
MOST_WORDS = 25


def long_parts(text: str) -> list[str]:
    """Return the sentences and the cells of tables that have more words than that. Code and formulas count as one word each."""
    text = re.sub(r"```.*?```|^:::.*$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for block in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |\| )", text):
        line = " ".join(block.split())
        parts = line.strip("|").split(" | ") if line.startswith("|") else re.split(r"(?<=[.!?:])\s+", line)
        found += [part for part in parts if _n_words(part) > MOST_WORDS]
    return found


def _n_words(part: str) -> int:
    part = re.sub(r"\]\([^)]*\)", "]", part)
    part = re.sub(r"`[^`]*`|\$[^$]*\$", "code", part)
    return sum(bool(re.search(r"\w", word)) for word in part.split())


def test_sentences_and_cells_are_short():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks" / "README.md"]
    pages = [page for page in pages if "repository" not in page.parts]  # what a build of the site has copied
    found = [
        f"{page.relative_to(ROOT)}: {part}"
        for page in pages
        for part in long_parts(page.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_long_sentence_is_found_and_code_is_one_word():
    long = " ".join(["word"] * (MOST_WORDS + 1))
    assert (
        long_parts(f"Short. {long}.")
        and long_parts(f"| cell | {long} |")
        and not long_parts(f"```text\n{long}\n```")
    )
    assert not long_parts(f"`{long}` and ${long}$ are two words.")
