"""The compiled loop over LIBSVM text: where rows and entries are, and every number that is exactly a short decimal."""

from __future__ import annotations

import numpy as np

from mtldsl.utils.arrays import MAX_EXACT_WHOLE
from mtldsl.utils.jit import compiled

#: what a number is, as `scan` counts it
KINDS = ("label", "qid", "index", "value")

# 10^22 is the largest power of ten that is a float64: a whole number below 2^53 times or over one of these is rounded once
_POWERS_OF_TEN = 10.0 ** np.arange(23)


@compiled()
def scan(code, lines, labels, qids, counts, index, value, odd):
    """(rows, entries, odd numbers) of the text's bytes; rows = -1 where it is not "label [qid:task] index:value ...".

    Fills, for each row, its line (from 0), label, qid (NaN without) and number of entries; for each entry index and value. What is not a
    plain decimal of at most 2^53 without its point is left to others: odd[k] = kind, place in its array, first and last byte + 1.
    """
    rows, entries, strange, line, at = 0, 0, 0, 0, 0
    n = code.size
    while at < n:
        at, line = _skip(code, at, line)
        if at == n:
            break
        lines[rows], qids[rows] = line, np.nan
        end = _end(code, at)
        labels[rows], fine = _decimal(code, at, end)
        if not fine:
            odd[strange] = 0, rows, at, end
            strange += 1
        at, first, held = end, True, 0
        while True:
            while at < n and _is_space(code[at]) and code[at] != 10:
                at += 1
            if at == n or code[at] == 10 or code[at] == 35:
                break
            end = _end(code, at)
            colon = at
            while colon < end and code[colon] != 58:
                colon += 1
            if colon == end:
                return -1, 0, 0
            for k in range(colon + 1, end):
                if code[k] == 58:
                    return -1, 0, 0
            number, fine = _decimal(code, colon + 1, end)
            if first and colon == at + 3 and code[at] == 113 and code[at + 1] == 105 and code[at + 2] == 100:
                qids[rows] = number
                if not fine:
                    odd[strange] = 1, rows, colon + 1, end
                    strange += 1
            else:
                value[entries] = number
                if not fine:
                    odd[strange] = 3, entries, colon + 1, end
                    strange += 1
                index[entries], fine = _decimal(code, at, colon)
                if not fine:
                    odd[strange] = 2, entries, at, colon
                    strange += 1
                entries += 1
                held += 1
            first, at = False, end
        counts[rows] = held
        rows += 1
    return rows, entries, strange


@compiled(inside=True)
def _skip(code, at, line):
    """Past white space, and comments to the end of their line: (place, line)."""
    while at < code.size:
        if code[at] == 35:
            while at < code.size and code[at] != 10:
                at += 1
        elif _is_space(code[at]):
            line += code[at] == 10
            at += 1
        else:
            break
    return at, line


@compiled(inside=True)
def _is_space(c):
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


@compiled(inside=True)
def _end(code, at):
    """Behind the last byte of the word."""
    while at < code.size and not _is_space(code[at]) and code[at] != 35:
        at += 1
    return at


@compiled(inside=True)
def _decimal(code, at, end):
    """(number, whether it is exactly that): [+-]digits[.digits][e[+-]digits]."""
    negative = at < end and code[at] == 45
    if at < end and (code[at] == 45 or code[at] == 43):
        at += 1
    whole, digits, point, exponent = 0, 0, -1, 0
    while at < end:
        c = code[at]
        if 48 <= c <= 57:
            if whole >= 10**17:  # another digit may not fit into 64 bits
                return np.nan, False
            whole = 10 * whole + (c - 48)
            digits += 1
        elif c == 46 and point < 0:
            point = digits
        else:
            break
        at += 1
    if digits == 0 or whole > MAX_EXACT_WHOLE:
        return np.nan, False
    if at < end:
        if code[at] != 101 and code[at] != 69:
            return np.nan, False
        at += 1
        below = at < end and code[at] == 45
        if at < end and (code[at] == 45 or code[at] == 43):
            at += 1
        if at == end or end - at > 3:
            return np.nan, False
        while at < end:
            if not 48 <= code[at] <= 57:
                return np.nan, False
            exponent = 10 * exponent + (code[at] - 48)
            at += 1
        exponent = -exponent if below else exponent
    if point >= 0:
        exponent -= digits - point
    if exponent < -22 or exponent > 22:
        return np.nan, False
    number = whole * _POWERS_OF_TEN[exponent] if exponent >= 0 else whole / _POWERS_OF_TEN[-exponent]
    return -number if negative else number, True
