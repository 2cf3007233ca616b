"""What holds of every word and every solver, as functions to call on one's own, assertions for users' tests, and exercises
that check their answers.

Laws are not run by importing this: `check_atom` and `check_solver` bring cvxpy when they are called.
"""

from mtldsl.testing.agreement import assert_agrees
from mtldsl.testing.check import check_atom, check_solver
from mtldsl.testing.exercise import exercise
from mtldsl.testing.law import LawError
from mtldsl.testing.word import WordReport, check_word

__all__ = ["LawError", "WordReport", "assert_agrees", "check_atom", "check_solver", "check_word", "exercise"]
