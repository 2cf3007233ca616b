"""The [plugins] table of a problem file: words and solvers of others that it needs. It comes first, as what is known depends on it."""

from __future__ import annotations

from mtldsl.errors import ModelError
from mtldsl.extending.plugins import use_plugins
from mtldsl.files.rules import Rules
from mtldsl.files.section import Reading, Section

__all__ = ["PLUGINS"]

_RULES: Rules = {
    "use": (
        lambda v: isinstance(v, list) and all(isinstance(one, str) for one in v),
        'a list of names such as ["my_words"]',
    )
}


def _check(reading: Reading) -> None:
    """Refuses what is not allowed, then imports what is."""
    reading.check(("plugins",), _RULES)
    try:
        use_plugins(reading.table("plugins").get("use", []), reading.allow_plugins)
    except ModelError as error:
        raise error.at(reading.file.place(("plugins", "use"), value=True)) from error


PLUGINS = Section("plugins", _RULES, check=_check)
