"""The [solve] table of a problem file: the solver, its options, and how long and from how many starts it may run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mtldsl.errors import DataError
from mtldsl.files.rules import (
    FINITE,
    PATH,
    SECONDS,
    SEED,
    SWITCH,
    TEXT,
    TOLERANCE,
    Rule,
    Rules,
    one_of,
    whole,
    wrong,
)
from mtldsl.files.section import Reading, Section, belongs
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.solvers.registry import SOLVERS, get_solver

__all__ = ["SOLVE", "checked_option", "written_by"]

#: Each start has max_seconds of its own.
_MOST_STARTS = 10_000

#: Threads are of this machine, of which the file knows nothing.
_MOST_THREADS = 1_024

_RULES = {
    "solver": one_of(["auto", *SOLVERS]),
    "tol": TOLERANCE,
    "max_iter": whole(1, "a whole number >= 1"),
    "max_seconds": SECONDS,
    "starts": whole(1, f"a whole number >= 1 and <= {_MOST_STARTS:,}", _MOST_STARTS),
    "random_state": SEED,
    "n_jobs": (
        lambda v: isinstance(v, int) and not isinstance(v, bool) and (v == -1 or 1 <= v <= _MOST_THREADS),
        f"a whole number of threads >= 1 and <= {_MOST_THREADS:,}, or -1 for one a core",
    ),
}


def _check(reading: Reading) -> None:
    name = reading.table("solve").get("solver", "auto")
    rules = _rules_of(name)
    reading.check(("solve",), rules, _advice(reading.sections, rules))


def _read(reading: Reading) -> None:
    """The table, with files that a solver writes, such as a checkpoint, relative to the folder of the problem file."""
    reading.solve = dict(reading.table("solve"))
    for key in written_by(reading.solve):
        if key in reading.solve:
            reading.solve[key] = str(reading.folder / str(reading.solve[key]))


def written_by(solve: dict) -> tuple[str, ...]:
    """The options of the solver that name a file to write."""
    name = solve.get("solver")
    return get_solver(name).writes if name in SOLVERS else ()


def checked_option(
    key: str, value, solve: dict[str, object], typed: str, sections: Iterable[Section]
) -> None:
    """DataError where an option of the command line, as typed, does not fit beside what the file says in [solve]."""
    rules = _rules_of(solve.get("solver"))
    said = wrong("[solve]", key, value, rules, _advice(sections, rules))
    if said:
        raise DataError(said, term=typed)
    if key == "solver" and value != solve.get("solver"):
        left = [name for name in solve if name not in _RULES]
        if left:
            raise DataError(
                f"the file sets {', '.join(left)} of solver {solve['solver']!r}",
                term=typed,
                write_instead="take that out of [solve]",
            )


def _advice(sections: Iterable[Section], rules: Rules) -> Callable[[str], str]:
    def advice(key: str) -> str:
        elsewhere = belongs(key, ("solve",), sections)
        if not elsewhere and any(key in get_solver(name).options for name in SOLVERS):
            return '; options belong to one solver: name it with solver = "..."'
        return elsewhere or nearest(key, rules)

    return advice


def _rules_of(solver) -> Rules:
    """The rules with this solver; solvers of one's own may have come since this module was read."""
    return _RULES | {"solver": one_of(["auto", *SOLVERS])} | _options_of(solver)


def _options_of(name) -> Rules:
    """The rules of one solver's own options."""
    if not (isinstance(name, str) and name in SOLVERS):
        return {}
    solver = get_solver(name)
    rules = {key: one_of(words) for key, words in solver.choices.items()}
    rules |= dict.fromkeys(solver.writes, PATH)
    return {key: rules.get(key, _like(default)) for key, default in solver.options.items()}


def _like(default) -> Rule:
    """The rule of an option without choices, from the kind of its default; None stands for a number that the solver finds itself."""
    return SWITCH if isinstance(default, bool) else TEXT if isinstance(default, str) else FINITE


SOLVE = Section("solve", _RULES, check=_check, read=_read)
