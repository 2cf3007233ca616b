"""Laws of every word and solver to check on one's own, assertions for users' tests, and exercises that check their answers.

Laws are not run by importing this: `check_atom` and `check_solver` bring cvxpy when they are called.
"""

from mtldsl.extending.check_word import WordReport, check_word
from mtldsl.extending.checks import check_atom, check_solver
from mtldsl.extending.law import LawError, assert_agrees
from mtldsl.teaching.exercise import exercise

__all__ = [
    "LawError",
    "WordReport",
    "assert_agrees",
    "check_atom",
    "check_solver",
    "check_word",
    "exercise",
]
