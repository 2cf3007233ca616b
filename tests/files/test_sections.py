"""Every table of a problem file is a section of one list: a new table is one file and one line, and nothing else has to know of it."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mtldsl.errors import DataError
from mtldsl.files import problem_file, sections
from mtldsl.files.rules import SWITCH
from mtldsl.files.section import Reading, Section
from mtldsl.files.sections import SECTIONS
from mtldsl.language.expressions.scalar import Parameter
from tests.loops import for_each

ROOM = Path(sections.__file__).parent
TABLES = [section.name for section in SECTIONS[1:]]
FILE = """minimize = "squared_loss(W, tasks) + lam * ridge(W)"
[data]
dataset = "low_rank"
n_tasks = 3
n_features = 4
"""


def _halved(reading: Reading) -> None:
    for name, value in reading.table("halves").items():
        reading.names[name] = Parameter(value / 2, name)


HALVES = Section("halves", names=True, read=_halved)
OWN = Section("own", {"loud": SWITCH})


@pytest.fixture
def load(tmp_path, monkeypatch):
    top, *tables = SECTIONS
    every = (
        replace(top, rules=top.rules | {one.name: top.rules["data"] for one in (HALVES, OWN)}),
        *tables,
        HALVES,
        OWN,
    )
    monkeypatch.setattr(problem_file, "SECTIONS", every)

    def load(text):
        path = tmp_path / "p.toml"
        path.write_text(FILE + text)
        return problem_file.load_problem(path)

    return load


def test_a_new_table_is_one_line_of_the_list(load):
    problem = load("[halves]\nlam = 6.0\n[own]\nloud = true\n").problem
    assert [(one.name, one.value) for one in problem.parameters] == [("lam", 3.0)]


@for_each(
    "text, place, message",
    [
        ("[own]\nloud = 3\n", "7:8", "loud must be true or false"),
        ("[own]\nlout = true\n", "7:1", "[own] has no key 'lout'; did you mean 'loud'?"),
        # its keys are known to the other tables, its names are names of the model
        ("[check]\nloud = true\n", "7:1", "[check] has no key 'loud'; it belongs into [own]"),
        ("[halves]\nlam = 6.0\n[parameters]\nlam = 1.0\n", "7:1", "'lam' is given twice"),
        ("[halves]\nridge = 6.0\n", "7:1", "'ridge' is a word of the language"),
        ("[halves]\nlam = 6.0\nmu = 1.0\n", "8:1", "'mu' is not used in the model"),
    ],
)
def test_its_mistakes_are_found_as_those_of_the_others(load, text, place, message):
    with pytest.raises(DataError if "not used" not in message else Exception) as caught:
        load(text)
    assert f"p.toml:{place}: {message}" in str(caught.value)


def test_every_described_table_is_a_section_and_conversely():
    """Every table that the format describes is a section and the other way round."""
    described = re.findall(r"^    \[(\w+)\]", problem_file.__doc__, re.MULTILINE)
    assert sorted(described) == sorted(TABLES) and SECTIONS[0].name == ""
    assert set(TABLES) < set(SECTIONS[0].rules)


def test_no_file_of_the_room_asks_for_a_table_of_another():
    """Outside its section's file, a table is known by the list alone; where a file may write is said by [solve] too."""
    allowed = {("output.py", "solve"), ("data.py", "split"), ("model.py", "parameters")}
    allowed |= {
        ("validation.py", "groups"),
        ("problem_file.py", "groups"),
    }  # an option of [validation] has that name too
    found = set()
    for path in ROOM.glob("*.py"):
        own = path.stem
        for node in ast.walk(ast.parse(path.read_text())):
            asked = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("table", "get")
            )
            if (
                asked
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and node.args[0].value in TABLES
                and node.args[0].value != own
            ):
                found.add((path.name, node.args[0].value))
    assert found <= allowed, found - allowed
