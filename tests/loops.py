"""Many quick cases as one pytest item: a loop that goes on after a failure and names every case that fails."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: Characters of a case in the list of those that failed.
_SHOWN_LENGTH = 160


def for_each(names: str | Iterable[str], cases: Iterable, ids: Callable | Iterable | None = None) -> Callable:
    """Function decorator: run a test once a case, within one item. It takes what `pytest.mark.parametrize` takes, for cases of milliseconds.

    A case has `tmp_path` and `monkeypatch` to itself, and what was printed before is gone from `capsys`; all other fixtures are shared. A skipped case skips the item where all are. AssertionError with every case that failed, from the first of their errors.
    """
    separate = names.split(",") if isinstance(names, str) else names
    arguments, listed = [name.strip() for name in separate], list(cases)
    if not listed:
        raise ValueError(f"for_each({names!r}): a loop over nothing proves nothing")
    if any(getattr(case, "marks", ()) for case in listed):
        raise ValueError(f"for_each({names!r}): a case has marks; write pytest.mark.parametrize")
    named = [ids(case) for case in listed] if callable(ids) else list(ids or [None] * len(listed))

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def run(**fixtures):
            failed, skipped, first = [], [], None
            for k, (case, name) in enumerate(zip(listed, named, strict=True)):
                values = _values(case, arguments, names)
                try:
                    with _own(fixtures, k) as given:
                        test(**given, **dict(zip(arguments, values, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(f"{name or _shown(case)}: {type(error).__name__}: {error}")
                    first = first or error
            if failed:
                raise AssertionError(
                    f"{len(failed)} of {len(listed)} cases:\n" + "\n".join(failed)
                ) from first
            if len(skipped) == len(listed):
                pytest.skip(skipped[0])

        signature = inspect.signature(test)
        kept = [one for one in signature.parameters.values() if one.name not in arguments]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        run.loop = dict(zip(arguments, zip(*(_values(case, arguments, names) for case in listed), strict=True), strict=True))  # type: ignore[attr-defined]  # fmt: skip
        return run

    return decorate


def values_of(test: Callable) -> dict[str, tuple]:
    """Return the values that a test loops over, by argument, of all its loops."""
    found, function = {}, test
    while function is not None:
        found |= getattr(function, "loop", {})
        function = getattr(function, "__wrapped__", None)
    return found


def _values(case: Any, arguments: list[str], names: str | Iterable[str]) -> tuple:
    """The arguments of one case."""
    if type(case).__name__ == "ParameterSet":
        return tuple(case.values)
    return (case,) if len(arguments) == 1 and isinstance(names, str) else tuple(case)


@contextmanager
def _own(fixtures: dict, k: int) -> Iterator[dict]:
    """The fixtures of the k-th case."""
    given = dict(fixtures)
    if "tmp_path" in given:
        given["tmp_path"] = given["tmp_path"] / f"case_{k}"
        given["tmp_path"].mkdir()
    if "capsys" in given:
        given["capsys"].readouterr()
    if "monkeypatch" not in given:
        yield given
        return
    with given["monkeypatch"].context() as own:
        yield given | {"monkeypatch": own}


def _shown(case: Any) -> str:
    """A case in one line."""
    text = getattr(case, "id", None) or repr(case)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]} ..."
