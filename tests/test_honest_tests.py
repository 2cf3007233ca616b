"""The tests themselves, read as trees: an assert that a slower machine fails, or that cannot fail, does not come back."""

import ast
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.loops import for_each

TESTS = Path(__file__).parent
MOST_CHARACTERS = 60  # of a name: unit and behaviour; the sentence stands in the docstring

#: functions whose values are times; so are names and attributes that end in "seconds"
CLOCKS = ("perf_counter", "process_time", "monotonic", "thread_time", "perf_counter_ns", "process_time_ns", "monotonic_ns")  # fmt: skip
MAY_READ_A_CLOCK = re.compile(rf"\b({'|'.join(CLOCKS)}|time\.time)\b|seconds\b(?!\s*=)")

#: A time limit that has to be reached is at most the first; one that has to be enough is a guard against a hang, of minutes.
REACHED_SECONDS, ENOUGH_SECONDS = 1.0, 120.0


def _reads_a_clock(node: ast.AST, clocked: set[str]) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in clocked:
            return True
        name = each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
        if name in CLOCKS or name.endswith("seconds"):
            return True
        if name == "time" and isinstance(each, ast.Attribute) and ast.unparse(each.value) == "time":
            return True
    return False


def _clocked(function: ast.AST) -> set[str]:
    """Return the names that hold times: what is assigned from a clock, also by way of other names, or collects its readings."""
    names: set[str] = set()
    while True:
        found = set(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr):
                given, targets = [node.value], getattr(node, "targets", None) or [node.target]
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append":
                given, targets = node.args, [node.func.value]
            else:
                continue
            if any(_reads_a_clock(one, names) for one in given):
                found |= {
                    one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)
                }
        if found == names:
            return names
        names = found


def clock_against_number(tree: ast.AST) -> list[int]:
    """Return the lines of asserts that hold a time to be less than what no clock has measured."""
    lines = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
        ordered = [(node, orders) for node in asserts if (orders := _orders(node.test))]
        if ordered and _reads_a_clock(function, set()):
            clocked = _clocked(function)
            lines += [
                node.lineno
                for node, orders in ordered
                if any(
                    _reads_a_clock(less, clocked) and not _reads_a_clock(more, clocked)
                    for less, more in orders
                )
            ]
    return sorted(set(lines))


def _orders(test: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Return the pairs (what is to be less, what is to be more) of all comparisons; `not a > b` is `a <= b`."""
    found, nots = [], [node.operand for node in ast.walk(test) if isinstance(node, ast.UnaryOp)]
    turned = {id(each) for node in nots for each in ast.walk(node)}
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            for (left, right), op in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
                if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    is_less = isinstance(op, ast.Lt | ast.LtE) != (id(node) in turned)
                    found.append((left, right) if is_less else (right, left))
    return found


def limits_that_may_be_too_short(tree: ast.AST) -> list[int]:
    """Return the lines of calls whose `max_seconds` is neither to be reached nor of minutes."""
    return [
        node.value.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "max_seconds" and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, float | int) and REACHED_SECONDS < node.value.value < ENOUGH_SECONDS
    ]  # fmt: skip


def _asserts(tree: ast.AST, breaks) -> list[int]:
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert) and breaks(node.test)]


def asserts_that_choose(tree: ast.AST) -> list[int]:
    """Return the lines of asserts of a conditional expression: write the value that is expected, or two tests."""
    return _asserts(tree, lambda test: isinstance(test, ast.IfExp))


def asserts_that_cannot_fail(tree: ast.AST) -> list[int]:
    """Return the lines of asserts of a true constant, of `... or True`, and of a name that is compared with itself."""
    return _asserts(tree, _is_always_true)


def _is_always_true(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        combine = any if isinstance(node.op, ast.Or) else all
        return combine(map(_is_always_true, node.values))
    if isinstance(node, ast.Compare):
        # a call, or an attribute, may differ from time to time
        calls = any(isinstance(each, ast.Call | ast.Attribute) for each in ast.walk(node))
        sides = map(ast.dump, [node.left, *node.comparators])
        return not calls and any(a == b for a, b in pairwise(sides))
    return isinstance(node, ast.Constant | ast.JoinedStr) and bool(getattr(node, "value", True))


def names_that_are_long_or_twice(tree: ast.AST) -> list[int]:
    """Return the lines of tests with a name of more than 60 characters, or that of another, whose place they take."""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    tests = [node for node in tests if node.name.startswith("test_")]
    times = Counter(node.name for node in tests)
    return [node.lineno for node in tests if len(node.name) > MOST_CHARACTERS or times[node.name] > 1]


RULES = [clock_against_number, limits_that_may_be_too_short, asserts_that_choose, asserts_that_cannot_fail, names_that_are_long_or_twice]  # fmt: skip


@cache
def _trees() -> list[tuple[Path, str, ast.AST]]:
    files = {path.relative_to(TESTS): path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
    return [(path, text, ast.parse(text)) for path, text in files.items()]


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_test_breaks_the_rule(rule):
    found = [
        f"{path}:{line}"
        for path, text, tree in _trees()
        if rule is not clock_against_number or MAY_READ_A_CLOCK.search(text)
        for line in rule(tree)
    ]
    assert len(_trees()) > 300, "the tests have moved"
    assert not found, f"{rule.__doc__}\n" + "\n".join(found)


CASES = [
    (clock_against_number, "t = time.monotonic()\nassert time.monotonic() - t < 5", True),
    (clock_against_number, "t = perf_counter()\ntaken = perf_counter() - t\nassert taken < LIMIT + 1", True),
    (clock_against_number, "taken = []\ntaken.append(time.time() - 3)\nassert taken[0] < 1 and x", True),
    (clock_against_number, "a = process_time()\nb = process_time()\nassert b - a < 9 * (a - 0)", False),
    (clock_against_number, "late_seconds = f()\nassert not late_seconds > 9 * once", True),
    (clock_against_number, "assert first.seconds > 0.0 and solution.iterations < 5", False),
    (limits_that_may_be_too_short, "problem.solve(max_seconds=20)", True),
    (limits_that_may_be_too_short, "problem.solve(max_seconds=1e-3)\nproblem.solve(max_seconds=600)", False),
    (asserts_that_choose, "assert x == 1 if y else True", True),
    (asserts_that_choose, "assert x == (1 if y else 2)", False),
    (asserts_that_cannot_fail, "assert x or True", True),
    (asserts_that_cannot_fail, "assert 'it holds'", True),
    (asserts_that_cannot_fail, "assert x <= x", True),
    (asserts_that_cannot_fail, "assert draw(5) == draw(5) and a.multipliers is a.multipliers", False),
    (names_that_are_long_or_twice, "def test_one(): ...\ndef test_one(): ...", True),
]


@for_each(("rule", "body", "breaks"), CASES)
def test_the_rules_tell_them_apart(rule, body, breaks):
    code = "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert bool(rule(ast.parse(code))) is breaks
