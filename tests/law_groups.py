"""Laws as pytest items: one item a law and word, which runs over the word's examples and the law's arguments and names each case that fails."""

from collections.abc import Iterable

import pytest

from mtldsl.extending.law import Case, LawError


def groups(cases: Iterable[Case], slow: Iterable[str] = (), dear: Iterable[str] = ()) -> list:
    """Return pytest parameters: the cases of each law and word.

    slow : "law-word" of those that take seconds; of a structured hinge one example of every metric is enough
    dear : "law-word", or "law" for every word, of others; in both the examples take the law's arguments in turn
    """
    found: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        found.setdefault((case.law.name, _word(case)), []).append(case)
    named = {f"{law}-{word}": (law, some) for (law, word), some in found.items()}
    assert {*slow, *dear} <= {*named, *(law for law, _ in found)}
    return [
        pytest.param(
            _in_turn(some, by_kind=name in slow) if {name, law} & {*slow, *dear} else some,
            id=name,
            marks=[pytest.mark.slow] * (name in slow),
        )
        for name, (law, some) in named.items()
    ]


def _in_turn(cases: list[Case], by_kind: bool) -> list[Case]:
    """All cases of the first example, and one of every other, the next one's with the next arguments.

    by_kind : examples of one metric count as one example
    """
    examples: dict[object, list[Case]] = {}
    for case in cases:
        metric = getattr(case.subject, "metric", None)
        examples.setdefault(type(metric) if by_kind and metric else case.about, []).append(case)
    first, *others = examples.values()
    first = [case for case in first if case.about == first[0].about]
    return first + [own[k % len(own)] for k, own in enumerate(others)]


def run_all(cases: Iterable[Case], every_case: bool) -> None:
    """Run the cases, or as many as bring each example's metric and each value of each argument once; AssertionError with all that fail."""
    failed, seen = [], set()
    for case in cases:
        brings = {(name, called) for name, (called, _) in case.arguments.items()} | {_metric(case)}
        if not every_case and brings <= seen:
            continue
        seen |= brings
        try:
            case.run()
        except LawError as error:
            failed.append(f"{case.id}: {error}")
    assert not failed, "\n".join(failed)


def _word(case: Case) -> str:
    return getattr(case.subject, "name", None) or case.about


def _metric(case: Case) -> tuple[str, str]:
    return "metric", type(getattr(case.subject, "metric", None)).__name__
