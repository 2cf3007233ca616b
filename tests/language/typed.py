"""Tables of mistakes as a user types them: a line a case, `what is typed | what is said | what else is said`."""

import pytest

import mtldsl as mtl


def mistakes(table: str) -> list[tuple[str, list[str]]]:
    """Return (what is typed, the parts of what is said) of every line but the headings, which begin with #."""
    rows = [line.split(" | ") for line in table.strip().splitlines() if not line.startswith("#")]
    return [(typed, said) for typed, *said in rows]


def assert_refused(typed: str, said: list[str], names: dict, error: type[Exception] = mtl.ModelError) -> None:
    """Evaluate Python as typed, which has to raise an error that says all of it."""
    with pytest.raises(error) as refusal:
        eval(typed, dict(names))
    assert said
    for part in said:
        assert part in str(refusal.value), f"{part!r} not in: {refusal.value}"
