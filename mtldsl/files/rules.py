"""What may stand in the tables of a problem file: known keys, and what their values must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real

from mtldsl.errors import DataError
from mtldsl.files.toml_source import TomlFile
from mtldsl.language.did_you_mean import nearest
from mtldsl.solvers.registry import SOLVERS, get_solver

__all__ = ["advice", "check_file", "check_option", "check_table"]

Rule = tuple[Callable[[object], bool], str]  # (does the value fit, "what it must be")


def _number(low: float, high: float, must_be: str) -> Rule:
    return lambda v: isinstance(v, Real) and not isinstance(v, bool) and low < v < high, must_be


def _whole(low: int, must_be: str) -> Rule:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= low, must_be


_TEXT: Rule = (lambda v: isinstance(v, str), "text in quotes")
_SWITCH: Rule = (lambda v: isinstance(v, bool), "true or false")
_ANYTHING: Rule = (lambda v: True, "")
_TABLE: Rule = (lambda v: isinstance(v, dict), "a table")
_TOLERANCE = _number(0.0, 1.0, "a number between 0 and 1, such as 1e-6")
_PATH: Rule = (lambda v: isinstance(v, str) and v != "", "the path of a file, in quotes")
_FINITE = _number(float("-inf"), float("inf"), "a number")
_SECONDS = _number(0.0, float("inf"), "a number of seconds > 0")
_SEED = _whole(0, "a whole number >= 0")


#: Each start has max_seconds of its own.
_MOST_STARTS = 10_000


def _is_count_of_starts(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_STARTS


def _report(value) -> bool:
    return isinstance(value, str) and value.endswith((".txt", ".html", ".json"))


def _one_of(words: Iterable[str]) -> Rule:
    words = list(words)
    return lambda v: v in words, f"one of {', '.join(map(repr, words))}"


#: table -> key -> rule; "" is the top of the file. [data] and the tables of names have rules of their own.
RULES: dict[str, dict[str, Rule]] = {
    "": {
        "title": _TEXT,
        "minimize": _TEXT,
        "model": _TEXT,
        "subject_to": (
            lambda v: isinstance(v, list) and all(isinstance(c, str) for c in v),
            'a list such as ["W >= 0"]',
        ),
        **dict.fromkeys(
            [
                *("data", "split", "weights", "learned", "parameters", "arrays", "groups"),
                *("solve", "check", "output"),
            ],
            _TABLE,
        ),
    },
    "data": {"dataset": _ANYTHING, "path": _ANYTHING, "format": _ANYTHING, "standardize": _ANYTHING},
    "split": {"test_size": _number(0.0, 1.0, "a share between 0 and 1, such as 0.25"), "random_state": _SEED},
    "solve": {
        "solver": _one_of(["auto", *SOLVERS]),
        "tol": _TOLERANCE,
        "max_iter": _whole(1, "a whole number >= 1"),
        "max_seconds": _SECONDS,
        "starts": (_is_count_of_starts, f"a whole number >= 1 and <= {_MOST_STARTS:,}"),
        "random_state": _SEED,
    },
    "check": {
        "max_seconds": _SECONDS,
        "cross_check": _SWITCH,
        "tol": _TOLERANCE,
        "solver": _one_of(["clarabel", "scs", "osqp"]),
        "max_size": (
            lambda v: v == float("inf") or (isinstance(v, int) and not isinstance(v, bool) and v > 0),
            "a whole number > 0, or inf for no limit",
        ),
        "random_state": _SEED,
    },
    "output": {"solution": _TEXT, "report": (_report, "a path that ends in .txt, .html or .json")},
}


def check_file(file: TomlFile) -> None:
    """DataError, with its place, for the first key that is unknown or whose value does not fit. [data] is checked when it is read."""
    check_table(file, (), RULES[""])
    for table in ("split", "check", "output"):
        check_table(file, (table,), RULES[table])
    name = file.content.get("solve", {}).get("solver", "auto")
    check_table(file, ("solve",), RULES["solve"] | _options_of(name))


def _options_of(name) -> dict[str, Rule]:
    """The rules of one solver's own options."""
    if not (isinstance(name, str) and name in SOLVERS):
        return {}
    solver = get_solver(name)
    rules = {key: _one_of(words) for key, words in solver.choices.items()}
    rules |= dict.fromkeys(solver.writes, _PATH)
    return {key: rules.get(key, _like(default)) for key, default in solver.options.items()}


def _like(default) -> Rule:
    """The rule of an option without choices, from the kind of its default; None stands for a number that the solver finds itself."""
    return _SWITCH if isinstance(default, bool) else _TEXT if isinstance(default, str) else _FINITE


def check_table(file: TomlFile, path: tuple, rules: dict[str, Rule]) -> None:
    table = file.content
    for key in path:
        table = table.get(key, {})
    for key, value in table.items():
        if key not in rules:
            raise file.error(f"{_where(path)} has no key {key!r}{advice(path, key, rules)}", (*path, key))
        fits, must_be = rules[key]
        if not fits(value):
            raise file.error(f"{key} must be {must_be}", (*path, key), value=True)


def check_option(key: str, value, solve: dict[str, object], typed: str) -> None:
    """DataError where an option of the command line, as typed, does not fit beside what the file says in [solve]."""
    rules = RULES["solve"] | _options_of(solve.get("solver"))
    if key not in rules:
        raise DataError(f"{typed}: [solve] has no key {key!r}{advice(('solve',), key, rules)}")
    fits, must_be = rules[key]
    if not fits(value):
        raise DataError(f"{typed}: {key} must be {must_be}")
    if key == "solver" and value != solve.get("solver"):
        left = [name for name in solve if name not in RULES["solve"]]
        if left:
            raise DataError(
                f"{typed}: the file sets {', '.join(left)} of solver {solve['solver']!r}; take that out of [solve]"
            )


def _where(path: tuple) -> str:
    return f"[{'.'.join(path)}]" if path else "a problem file"


def advice(path: tuple, key: str, known: Iterable[str]) -> str:
    """What to write in place of an unknown key: the table it belongs into, or the nearest known key."""
    for table, others in RULES.items():
        if key in others and (table,) != path and (table or path):
            return (
                f"; it belongs into [{table}]"
                if table
                else "; it belongs to the top, before the first [table]"
            )
    if path == ("solve",) and any(key in get_solver(name).options for name in SOLVERS):
        return '; options belong to one solver: name it with solver = "..."'
    return nearest(key, known)
