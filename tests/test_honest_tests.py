"""The tests themselves, read as trees: an assert that a slower machine fails, or that cannot fail, does not come back."""

import ast
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

#: functions whose values are times; so are names and attributes that end in "seconds"
CLOCKS = {
    "perf_counter",
    "process_time",
    "monotonic",
    "thread_time",
    "perf_counter_ns",
    "process_time_ns",
    "monotonic_ns",
}

#: A time limit that has to be reached is at most the first; one that has to be enough is a guard against a hang, of minutes.
REACHED_SECONDS, ENOUGH_SECONDS = 1.0, 120.0


def _reads_a_clock(node: ast.AST, clocked: set[str]) -> bool:
    for each in ast.walk(node):
        name = each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else ""
        if name in CLOCKS or name.endswith("seconds") or (isinstance(each, ast.Name) and name in clocked):
            return True
        if name == "time" and isinstance(each, ast.Attribute) and _is_named(each.value, "time"):
            return True
    return False


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _clocked(function: ast.AST) -> set[str]:
    """Return the names that hold times: what is assigned from a clock, also by way of other names, or collects its readings."""
    names: set[str] = set()
    while True:
        found = set(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr) and _reads_a_clock(
                node.value, names
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {
                    each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                }
            elif (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
                and isinstance(node.func.value, ast.Name) and any(_reads_a_clock(one, names) for one in node.args)
            ):  # fmt: skip
                found.add(node.func.value.id)
        if found == names:
            return names
        names = found


def clock_against_number(tree: ast.AST) -> list[int]:
    """Return the lines of asserts that hold a time to be less than what no clock has measured."""
    lines = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or not _reads_a_clock(function, set()):
            continue
        clocked = _clocked(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and any(
                _is_at_most(less, more, clocked) for less, more in _orders(node.test)
            ):
                lines.append(node.lineno)
    return sorted(set(lines))


def _is_at_most(less: ast.AST, more: ast.AST, clocked: set[str]) -> bool:
    return _reads_a_clock(less, clocked) and not _reads_a_clock(more, clocked)


def _orders(test: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Return the pairs (what is to be less, what is to be more) of all comparisons; `not a > b` is `a <= b`."""
    found = []
    turned = {
        id(each)
        for node in ast.walk(test)
        if isinstance(node, ast.UnaryOp)
        for each in ast.walk(node.operand)
    }
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            for left, op, right in zip(
                [node.left, *node.comparators], node.ops, node.comparators, strict=False
            ):
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


def asserts_that_choose(tree: ast.AST) -> list[int]:
    """Return the lines of asserts of a conditional expression: write the value that is expected, or two tests."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.IfExp)
    ]


def _is_always_true(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        combine = any if isinstance(node.op, ast.Or) else all
        return combine(map(_is_always_true, node.values))
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        calls = any(
            isinstance(each, ast.Call | ast.Attribute) for each in ast.walk(node)
        )  # which may differ from time to time
        same = [ast.dump(a) == ast.dump(b) for a, b in pairwise(sides)]
        return not calls and any(same)
    return isinstance(node, ast.Constant | ast.JoinedStr) and bool(getattr(node, "value", True))


def asserts_that_cannot_fail(tree: ast.AST) -> list[int]:
    """Return the lines of asserts of a true constant, of `... or True`, and of a name that is compared with itself."""
    return [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert) and _is_always_true(node.test)
    ]


RULES = [clock_against_number, limits_that_may_be_too_short, asserts_that_choose, asserts_that_cannot_fail]


@cache
def _trees() -> list[tuple[Path, str, ast.AST]]:
    files = {
        path.relative_to(TESTS): path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))
    }
    return [(path, text, ast.parse(text)) for path, text in files.items()]


def _may_break(rule, text: str) -> bool:
    """Return whether the tree is worth walking: few files read a clock."""
    return rule is not clock_against_number or any(word in text for word in {*CLOCKS, "time.time", "seconds"})


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_test_breaks_the_rule(rule):
    found = [
        f"{path}:{line}" for path, text, tree in _trees() if _may_break(rule, text) for line in rule(tree)
    ]
    assert len(_trees()) > 300, "the tests have moved"
    assert not found, f"{rule.__doc__}\n" + "\n".join(found)


CASES = [
    (clock_against_number, "t = time.monotonic()\nassert time.monotonic() - t < 5", True),
    (clock_against_number, "t = perf_counter()\ntaken = perf_counter() - t\nassert taken < LIMIT + 1", True),
    (clock_against_number, "taken = []\ntaken.append(time.time() - 3)\nassert taken[0] < 1 and x", True),
    (
        clock_against_number,
        "a = time.process_time()\nb = time.process_time()\nassert b - a < 9 * (a - 0)",
        False,
    ),
    (clock_against_number, "end = time.monotonic() + 9\nassert time.monotonic() < end", False),
    (clock_against_number, "late_seconds = f()\nassert not late_seconds > 9 * once", True),
    (clock_against_number, "assert 0.1 < solution.seconds < 3.0", True),
    (clock_against_number, "assert first.seconds > 0.0 and solution.iterations < 5", False),
    (limits_that_may_be_too_short, "problem.solve(max_seconds=20)", True),
    (limits_that_may_be_too_short, "problem.solve(max_seconds=1e-3)\nproblem.solve(max_seconds=600)", False),
    (asserts_that_choose, "assert x == 1 if y else True", True),
    (asserts_that_choose, "assert x == (1 if y else 2)", False),
    (asserts_that_cannot_fail, "assert x or True", True),
    (asserts_that_cannot_fail, "assert 'it holds'", True),
    (asserts_that_cannot_fail, "assert x <= x", True),
    (asserts_that_cannot_fail, "assert draw(5) == draw(5) and a.multipliers is a.multipliers", False),
    (asserts_that_cannot_fail, "assert x == y or not x", False),
]


@pytest.mark.parametrize(("rule", "body", "breaks"), CASES)
def test_the_rules_tell_them_apart(rule, body, breaks):
    code = "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert bool(rule(ast.parse(code))) is breaks
