"""Compiled functions that call others under other options, and what functions without arrays of their own do to their caller's."""

import sys

import numpy as np
import pytest

pytest.importorskip("numba")

from mtldsl.utils.jit import compiled


@compiled(inside=True, error_model="numpy")
def _quotient(a, b):
    return max(a / b, -1.0)


@compiled(inside=True, error_model="python")
def _checked_quotient(a, b):
    return max(a / b, -1.0)


@compiled(error_model="numpy")
def both_quotients(a, b, checked):
    x = _quotient(a, b)
    y = _checked_quotient(a, b) if checked else 0.0
    return x, y, _quotient(a + a, b)


def test_an_answer_under_other_options_is_not_taken():
    assert both_quotients(1.0, 0.0, False) == (np.inf, 0.0, np.inf)
    assert both_quotients(1.0, 2.0, True) == (0.5, 0.5, 1.0)
    with pytest.raises(ZeroDivisionError):
        both_quotients(1.0, 0.0, True)


@compiled(error_model="numpy")
def _turned(rows, i, out):
    row, other = rows[i], rows[i + 1 :]
    for j in range(row.size):
        out[j] = row[row.size - 1 - j] + other.shape[0]


def test_references_are_left_as_they_were():
    rows, out = np.arange(12.0).reshape(3, 4), np.zeros(4)
    _turned(rows, 1, out)
    before = sys.getrefcount(rows), sys.getrefcount(out)
    for _ in range(10):
        _turned(rows, 1, out)
    assert (sys.getrefcount(rows), sys.getrefcount(out)) == before
    assert (out == np.array([8.0, 7.0, 6.0, 5.0])).all()


@compiled(inside=True)
def _fresh(n):
    return np.empty(n), n


@compiled()
def _size_of_fresh(n):
    made, _ = _fresh(n)
    return made.size


def test_callers_of_what_makes_arrays_free_them():
    assert _size_of_fresh(3) == 3
