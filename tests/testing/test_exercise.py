"""Exercises: open, right, wrong; and solutions beside the lesson, with mistakes that the check must notice."""

import runpy

import pytest

from mtldsl.testing import exercise
from tests.loops import for_each

LESSON = """
from mtldsl.testing import exercise

def double(x):
    "Twice x."
    {answer}

@exercise(double)
def check(answer):
    assert answer(2.0) == 4.0, "try x = 2"
"""
SOLUTION = """
def double(x):
    return {right}

double.mistakes = [lambda x: {mistake}]
"""


def run(folder, answer="...", right=None, mistake="x + 3"):
    (folder / "lesson.py").write_text(LESSON.format(answer=answer))
    if right is not None:
        (folder / "solutions").mkdir()
        (folder / "solutions" / "lesson.py").write_text(SOLUTION.format(right=right, mistake=mistake))
    return runpy.run_path(str(folder / "lesson.py"))


@for_each(
    "answer, right, said",
    [
        ("...", None, "exercise double: open - write its body, and run again\n"),
        ("return 2 * x", None, "exercise double: right\n"),
        ("...", "2 * x", "exercise double: open - write its body, and run again\n"),
    ],
)
def test_an_exercise_is_open_or_right(tmp_path, capsys, answer, right, said):
    run(tmp_path, answer, right)
    assert capsys.readouterr().out == said


@for_each(
    "given, error, said",
    [
        (dict(answer="return x + 1", right="2 * x"), AssertionError, r"exercise double: not yet\. try x = 2"),
        (dict(answer="return x / 0"), ZeroDivisionError, "division by zero"),
        (
            dict(right="x + 1"),
            AssertionError,
            "the solution of double in .* does not pass its own check: try x = 2",
        ),
        (dict(right="2 * x", mistake="x ** 2"), AssertionError, "the check of double lets a mistake pass"),
        (
            dict(answer="y = 2 * x", right="2 * x"),
            AssertionError,
            r"double: not yet\. The function returned nothing: end it with return",
        ),
    ],
)
def test_a_wrong_answer_solution_or_check_is_told(tmp_path, given, error, said):
    with pytest.raises(error, match=said):
        run(tmp_path, **given)


def test_an_answer_may_be_zero_or_false():
    def nothing():
        return 0

    @exercise(nothing)
    def check(answer):
        assert answer() == 0

    with pytest.raises(AssertionError, match="not yet"):

        @exercise(nothing)
        def other(answer):
            assert answer()


def test_a_result_that_the_check_cannot_use_is_told():
    def pair(x): ...

    def wrong(x):
        return [1.0, 2.0, 3.0]

    wrong.__name__ = "pair"
    with pytest.raises(
        AssertionError,
        match=r"pair: not yet\. The function returned \[1\.0, 2\.0, 3\.0\] \(list\), and the check",
    ):

        @exercise(wrong)
        def check(answer):
            a, b = answer(1.0)


def test_what_a_check_raises_before_it_asks_is_shown_as_it_is():
    def double(x):
        return 2 * x

    with pytest.raises(ZeroDivisionError):

        @exercise(double)
        def check(answer):
            assert answer(1 / 0)


def test_a_check_without_a_hint_shows_what_does_not_hold(tmp_path):
    lesson = LESSON.format(answer="return x").replace(', "try x = 2"', "")
    (tmp_path / "lesson.py").write_text(lesson)
    with pytest.raises(
        AssertionError, match=r"double: not yet\. This does not hold: answer\(2\.0\) == 4\.0"
    ) as caught:
        runpy.run_path(str(tmp_path / "lesson.py"))
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
