"""Exercises: a student fills in a function, and a check that stands beside it says at once whether it is right."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

__all__ = ["exercise"]


class _Open(Exception):
    """The answer returned nothing: it has not been written yet."""


def exercise(answer: Callable) -> Callable[[Callable], Callable]:
    """Check a student's answer where it stands: `@exercise(answer)` above a check, which runs at once and gets the answer.

    answer : a function that returns nothing (its body is `...`) until the student fills it in
    check  : what is decorated: takes a function and asserts what must hold of its results, with a hint as the assertion's message

    It prints "open", or "right"; a wrong answer raises AssertionError with the hint. While the answer is open, the check runs on
    the function of the same name in the file `solutions/NAME.py` beside the script NAME.py, if there is one, so that to run
    a lesson is also to test its solutions. A solution's attribute `mistakes` is a list of wrong answers: AssertionError where the check
    lets one pass.

    >>> def slope(x):
    ...     "The derivative of x^2."
    ...     return 2 * x
    >>> @exercise(slope)
    ... def check(answer):
    ...     assert answer(3.0) == 6.0, "compare (f(x + h) - f(x)) / h for a small h"
    exercise slope: right
    >>> def curvature(x):
    ...     ...
    >>> @exercise(curvature)
    ... def check(answer):
    ...     assert answer(3.0) == 2.0, "the derivative of the derivative"
    exercise curvature: open - write its body, and run again
    """
    name = answer.__name__

    def run(check: Callable) -> Callable:
        try:
            check(_answered(answer))
        except _Open:
            _check_solution(name, check)
            print(f"exercise {name}: open - write its body, and run again")
        except AssertionError as wrong:
            raise AssertionError(f"exercise {name}: not yet. {wrong}") from wrong
        else:
            print(f"exercise {name}: right")
        return check

    return run


def _answered(answer: Callable) -> Callable:
    def asked(*args, **options):
        given = answer(*args, **options)
        if given is None or given is ...:
            raise _Open
        return given

    return asked


def _check_solution(name: str, check: Callable) -> None:
    """The stored solution passes, and the mistakes that are listed with it do not."""
    lesson = Path(check.__code__.co_filename)
    file = lesson.parent / "solutions" / lesson.name
    if not file.is_file():  # a lesson that was downloaded alone, or a notebook
        return
    solution = runpy.run_path(str(file))[name]
    try:
        check(_answered(solution))
    except AssertionError as wrong:
        raise AssertionError(
            f"the solution of {name} in {file} does not pass its own check: {wrong}"
        ) from wrong
    for mistake in solution.mistakes:
        try:
            check(_answered(mistake))
        except AssertionError:
            continue
        raise AssertionError(f"the check of {name} lets a mistake pass that {file} lists")
