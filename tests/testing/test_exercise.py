"""Exercises: open, right, wrong; and solutions beside the lesson, with mistakes that the check must notice."""

import runpy

import pytest

from mtldsl.testing import exercise

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


def test_an_open_exercise_says_so(tmp_path, capsys):
    run(tmp_path)
    assert capsys.readouterr().out == "exercise double: open - write its body, and run again\n"


def test_a_right_answer_says_so(tmp_path, capsys):
    run(tmp_path, "return 2 * x")
    assert capsys.readouterr().out == "exercise double: right\n"


def test_a_wrong_answer_gives_the_hint(tmp_path):
    with pytest.raises(AssertionError, match=r"exercise double: not yet\. try x = 2"):
        run(tmp_path, "return x + 1", right="2 * x")


def test_what_an_answer_raises_is_shown_as_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, "return x / 0")


def test_the_solution_is_checked_where_the_answer_is_open(tmp_path, capsys):
    run(tmp_path, right="2 * x")
    assert "open" in capsys.readouterr().out


def test_a_solution_that_is_wrong_is_found(tmp_path):
    with pytest.raises(
        AssertionError, match=r"the solution of double in .* does not pass its own check: try x = 2"
    ):
        run(tmp_path, right="x + 1")


def test_a_check_that_lets_a_mistake_pass_is_found(tmp_path):
    with pytest.raises(AssertionError, match="the check of double lets a mistake pass"):
        run(tmp_path, right="2 * x", mistake="x ** 2")


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


def test_a_body_without_a_return_is_not_called_open(tmp_path):
    with pytest.raises(
        AssertionError, match=r"double: not yet\. The function returned nothing: end it with return"
    ):
        run(tmp_path, "y = 2 * x", right="2 * x")


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
