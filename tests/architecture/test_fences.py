"""Fences of the house: sizes, names of files, classes and constants, docstrings, and who mentions the distributed room. Offenders of today are listed, and the list only shrinks.

python -m tests.architecture.test_fences    # writes offenders.json anew, where it has become shorter
"""

import ast
import configparser
import json
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("offenders.json")

MAX_LINES, MAX_FILES = 600, 440

#: Characters of a file's first line, from which on it can say what a reader finds there.
MIN_SUBJECT = 36

#: First words that say neither what a function does nor what a class is.
OPENINGS = re.compile(r'^ *r?"""(What|Whether|Where|How|So|Of|That)\b', re.MULTILINE)

#: Names of a module's constants, and those that hide what they count.
CONSTANTS = re.compile(r"^([A-Z_][A-Z\d_]*(?:, [A-Z_][A-Z\d_]*)*)(?:: .*)? = ", re.MULTILINE)
VAGUE = re.compile(r"_?(MOST|LEAST|FEW|MANY|NEAR|FAR|SMALL|LARGE|SHARE|FIRST|MORE|HARDLY)(_|$)")

#: Imports, names and texts that lead into the distributed room.
DISTRIBUTED = re.compile(r"(from |[\"'])mtldsl\.distributed|\bDistributedTasks\b")

#: Base names that two engines, or the package and its reference, may share.
SHARED_NAMES = {"__init__.py", "label_graph.py", "metrics.py", "solver.py"}

#: Names of classes that are refused: prepositions, participles and adverbs alone.
NO_NOUNS = {
    "About", "Above", "After", "Again", "Ahead", "Alone", "Along", "Apart", "Around", "As", "Asked",
    "At", "Before", "Behind", "Below", "Beside", "Between", "Beyond", "Both", "By", "Changed", "Chosen",
    "Drawn", "During", "Easier", "Elsewhere", "Fitted", "For", "Found", "From", "Given", "Held", "Here",
    "Hidden", "In", "Inside", "Into", "Joined", "Kept", "Known", "Learned", "Left", "Lifted", "Like",
    "Lowest", "Made", "Moved", "Named", "Near", "Of", "Off", "On", "Once", "Other", "Out", "Outside",
    "Over", "Paid", "Ran", "Remembered", "Restricted", "Said", "Same", "Seen", "Sent", "Shared",
    "Shifted", "Shown", "Solved", "Stated", "Stored", "Taken", "There", "Tied", "Told", "Together",
    "Trained", "Translated", "Typed", "Under", "Until", "Up", "Way", "White", "With", "Without",
}  # fmt: skip

#: Class names that are public, and therefore stay.
PUBLIC_NO_NOUNS = {"Learned"}


def files() -> dict[str, str]:
    """Return the text of every file of the package and the reference, by its path."""
    found = sorted([*(ROOT / "mtldsl").rglob("*.py"), *(ROOT / "reference").rglob("*.py")])
    found = [path for path in found if not path.is_relative_to(ROOT / "mtldsl" / "reference")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}


def classes() -> Counter[str]:
    """Count the classes of each name, an underscore before it aside."""
    found = (
        name for text in files().values() for name in re.findall(r"^ *class (\w+)[(:]", text, re.MULTILINE)
    )
    return Counter(name.lstrip("_") for name in found)


def openings(path: str, text: str) -> int:
    """Count the docstrings that begin with one of these words."""
    return len(OPENINGS.findall(text))


def vague_constants(path: str, text: str) -> int:
    """Count the constants of a module with such a name."""
    return sum(bool(VAGUE.match(name)) for names in CONSTANTS.findall(text) for name in names.split(", "))


def distributed_names(path: str, text: str) -> int:
    """Count what leads into the distributed room from outside."""
    return 0 if path.startswith("mtldsl/distributed/") else len(DISTRIBUTED.findall(text))


def offenders() -> dict[str, dict[str, int]]:
    """Return, of each fence, how often each file offends."""
    counts = {"openings": openings, "vague constants": vague_constants, "distributed": distributed_names}
    texts = files()
    return {
        fence: {path: n for path, text in texts.items() if (n := count(path, text))}
        for fence, count in counts.items()
    }


def test_sizes():
    long = {path: n for path, text in files().items() if (n := text.count("\n")) > MAX_LINES}
    assert not long, f"split these, or delete: {long}"
    assert len(files()) <= MAX_FILES, "a new file needs another to go"


def test_base_names_are_told_apart():
    names = Counter(Path(path).name for path in files())
    assert {name for name, n in names.items() if n > 1} <= SHARED_NAMES


def test_class_names_are_told_apart():
    assert not [name for name, n in classes().items() if n > 1]


def test_class_names_are_nouns():
    assert NO_NOUNS & set(classes()) == PUBLIC_NO_NOUNS


def test_first_lines_say_what_a_file_holds():
    subjects = {path: text.split("\n", 1)[0].strip('"') for path, text in files().items()}
    assert not {path: line for path, line in subjects.items() if len(line) < MIN_SUBJECT}
    assert not {line for line, n in Counter(subjects.values()).items() if n > 1}


def test_offenders_become_fewer():
    listed, found = json.loads(LISTED.read_text(encoding="utf-8")), offenders()
    more = {
        (fence, path): (n, listed[fence].get(path, 0))
        for fence, paths in found.items()
        for path, n in paths.items()
        if n > listed[fence].get(path, 0)
    }
    assert not more, f"(now, allowed): {more}"
    assert sum(map(len, found.values())) == sum(map(len, listed.values())), f"run python -m {__name__}"


def test_few_files_lead_into_the_distributed_room():
    assert len(offenders()["distributed"]) <= 8


PAGE = (ROOT / "docs" / "design.md").read_text()


def rooms() -> dict[str, str]:
    """Folder -> the first sentence of what its `__init__` says."""
    found = {}
    for init in sorted((ROOT / "mtldsl").glob("**/__init__.py")):
        folder = init.parent.relative_to(ROOT / "mtldsl").as_posix()
        if folder != "." and not folder.startswith("reference"):
            found[folder] = ast.get_docstring(ast.parse(init.read_text())).split("\n\n")[0].replace("\n", " ")
    return found


def test_every_room_says_what_lives_there_as_the_page_does():
    """Every room says in a sentence what lives there, and the page repeats it of those that stand in no other."""
    assert len(rooms()) > 20 and all(each.endswith((".", ".`")) or ":" in each for each in rooms().values())
    wanted = [f"- `{folder}/`: {sentence}" for folder, sentence in rooms().items() if "/" not in folder]
    missing = [line for line in wanted if line not in PAGE]
    assert not missing, "docs/design.md lacks these lines:\n" + "\n".join(missing)


def test_the_page_names_no_room_that_is_gone():
    named = re.findall(r"^- `([\w/]+)/`: ", PAGE, re.MULTILINE)
    assert named == sorted(folder for folder in rooms() if "/" not in folder)


def test_the_order_of_the_rooms_is_the_linter_s():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:rooms"]["layers"].strip().splitlines()
    assert f"```text\n{chr(10).join(layers)}\n```" in PAGE


def test_files_that_the_page_names_exist():
    for name in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (ROOT / "mtldsl" / name).is_file() or name == "__init__.py", name


if __name__ == "__main__":
    LISTED.write_text(json.dumps(offenders(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
