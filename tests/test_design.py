"""docs/design.md is the house's own account: its rooms, their sentences and their order are those of the code."""

import ast
import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
