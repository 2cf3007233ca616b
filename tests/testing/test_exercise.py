"""Exercises: open, right, wrong; and solutions beside the lesson, with mistakes that the check must notice."""

import runpy

import pytest

from tests.loops import for_each

LESSON = """
from mtldsl.testing import exercise

def double(x):
    "Twice x."
    {answer}

@exercise(double)
def check(answer):
    {check}
"""
SOLUTION = """
def double(x):
    return {right}

double.mistakes = [lambda x: {mistake}]
"""


def run(folder, answer="...", right=None, mistake="x + 3", check='assert answer(2.0) == 4.0, "try x = 2"'):
    (folder / "lesson.py").write_text(LESSON.format(answer=answer, check=check))
    if right is not None:
        (folder / "solutions").mkdir()
        (folder / "solutions" / "lesson.py").write_text(SOLUTION.format(right=right, mistake=mistake))
    return runpy.run_path(str(folder / "lesson.py"))


@for_each(
    "given, said",
    [
        (dict(), "exercise double: open - write its body, and run again\n"),
        (dict(answer="return 2 * x"), "exercise double: right\n"),
        (dict(right="2 * x"), "exercise double: open - write its body, and run again\n"),
        (dict(answer="return 0", check="assert answer(1) == 0"), "exercise double: right\n"),
        (dict(answer="return x + 1", right="2 * x"), "exercise double: not yet. try x = 2\n"),
        (dict(answer="y = 2 * x", right="2 * x"),
         "exercise double: not yet. The function returned nothing: end it with return ...\n"),
        (dict(answer="return [1.0, 2.0, 3.0]", check="a, b = answer(1.0)"),
         "exercise double: not yet. The function returned [1.0, 2.0, 3.0] (list), and the check could not go on with it "
         "(ValueError: too many values to unpack (expected 2)).\n"),
        (dict(answer="return x", check="assert answer(2.0) == 4.0"),
         "exercise double: not yet. This does not hold: answer(2.0) == 4.0\n"),
    ],
)  # fmt: skip
def test_an_exercise_says_how_it_stands_and_goes_on(tmp_path, capsys, given, said):
    run(tmp_path, **given)
    assert capsys.readouterr().out == said


@for_each("given, error, said", [
    (dict(answer="return x / 0"), ZeroDivisionError, "division by zero"),
    (dict(right="x + 1"), AssertionError,
     "the solution of double in .* does not pass its own check: try x = 2"),
    (dict(right="2 * x", mistake="x ** 2"), AssertionError, "the check of double lets a mistake pass"),
    # what a check raises before it asks
    (dict(answer="return 2 * x", check="assert answer(1 / 0)"), ZeroDivisionError, "division by zero"),
])  # fmt: skip
def test_a_wrong_solution_or_check_raises(tmp_path, given, error, said):
    with pytest.raises(error, match=said):
        run(tmp_path, **given)
