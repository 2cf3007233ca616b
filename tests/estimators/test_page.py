"""docs/estimators.md names in its table what is tested."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


def test_every_line_of_the_table_of_lam_names_what_is_tested():
    """Names of other packages' estimators in the table are those of the lines that are tested, and the other way round."""
    from tests.estimators import test_parametrisations

    text = PAGE.read_text(encoding="utf-8").split("## lam and alpha")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for line in rows for name in re.findall(r"`([A-Z]\w+)(?:\(|`)", line.split("|")[1])}
    source = Path(test_parametrisations.__file__).read_text(encoding="utf-8")
    assert len(rows) >= 12 and named, rows
    assert all(name in source for name in named), named
    assert {line.split(",")[0] for line in test_parametrisations.LINES} <= named
