"""Exercises: a student fills in a function, and a check that stands beside it says at once whether it is right."""

from __future__ import annotations

import dis
import reprlib
import runpy
import traceback
from collections.abc import Callable
from pathlib import Path


class _UnansweredError(Exception):
    """The answer returned nothing."""


#: what the body `...` is made of, with a docstring or without
_NOTHING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE", "POP_TOP"}


def exercise(answer: Callable) -> Callable[[Callable], Callable]:
    """Check a student's answer where it stands: `@exercise(answer)` above a check, which runs at once and gets the answer.

    answer : a function that returns nothing (its body is `...`) until the student fills it in
    check  : what is decorated: takes a function and asserts what must hold of its results, with a hint as the assertion's message

    It prints "open", "right", or "not yet" with the hint (where the check gives none, with the line that does not hold), and the script goes
    on to the next exercise. So it is with a result that the check cannot go on with, and with a body that returns nothing. What the answer
    itself raises is shown as it is. While the answer is open, the check runs on the function of the same name in the file `solutions/NAME.py` beside the script NAME.py, if there is one, so that to run
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
    >>> def third(x):
    ...     return 6.0
    >>> @exercise(third)
    ... def check(answer):
    ...     assert answer(3.0) == 0.0, "the curvature is the same everywhere"
    exercise third: not yet. the curvature is the same everywhere
    """
    name = answer.__name__

    def run(check: Callable) -> Callable:
        asked = _CheckedAnswer(answer)
        try:
            check(asked)
        except _UnansweredError:
            if _is_empty(answer):
                _check_solution(name, check)
                print(f"exercise {name}: open - write its body, and run again")
            else:
                print(f"exercise {name}: not yet. The function returned nothing: end it with return ...")
        except AssertionError as wrong:
            print(f"exercise {name}: not yet. {_hint(wrong)}")
        except Exception as error:
            if asked.is_running or not asked.was_asked:  # the answer's own, or the check's before it
                raise
            said = f"{type(error).__name__}: {error}"
            result = _describe_result(asked.last)
            print(
                f"exercise {name}: not yet. The function returned {result}, and the check could not go on with it ({said})."
            )
        else:
            print(f"exercise {name}: right")
        return check

    return run


class _CheckedAnswer:
    """The answer as the check calls it: it knows what was returned last, and whether an error is its own."""

    def __init__(self, answer: Callable):
        self._answer, self.is_running, self.was_asked, self.last = answer, False, False, None

    def __call__(self, *args, **options):
        self.is_running = self.was_asked = True
        self.last = self._answer(*args, **options)
        self.is_running = False
        if self.last is None or self.last is ...:
            raise _UnansweredError
        return self.last


def _is_empty(answer: Callable) -> bool:
    """Tell whether the body does nothing at all, as `...` and `pass` do."""
    code = getattr(answer, "__code__", None)
    return code is not None and all(step.opname in _NOTHING for step in dis.get_instructions(code))


def _hint(wrong: AssertionError) -> str:
    if str(wrong):
        return str(wrong)
    line = traceback.extract_tb(wrong.__traceback__)[-1].line
    return f"This does not hold: {line.removeprefix('assert ')}" if line else "It does not hold yet."


def _describe_result(given) -> str:
    """Return what was returned, in a few words."""
    kind, shape = type(given).__name__, getattr(given, "shape", None)
    return f"an array of shape {shape}" if shape else f"{reprlib.repr(given)} ({kind})"


def _check_solution(name: str, check: Callable) -> None:
    """The stored solution passes, and the mistakes that are listed with it do not."""
    lesson = Path(check.__code__.co_filename)
    file = lesson.parent / "solutions" / lesson.name
    if not file.is_file():  # a lesson that was downloaded alone, or a notebook
        return
    solution = runpy.run_path(str(file))[name]
    try:
        check(_CheckedAnswer(solution))
    except AssertionError as wrong:
        raise AssertionError(
            f"the solution of {name} in {file} does not pass its own check: {wrong}"
        ) from wrong
    for mistake in solution.mistakes:
        try:
            check(_CheckedAnswer(mistake))
        except AssertionError:
            continue
        raise AssertionError(f"the check of {name} lets a mistake pass that {file} lists")
