"""Text to the same tree that Python code makes: a whitelisted walk over Python's syntax tree. Nothing is ever executed.

What may be written: names that were given, the words of the language, numbers, + - * / @, unary minus, one comparison, indices
(whole numbers, names, slices, lists), `.sum(axis=...)`, keyword arguments, lists, True, False, None and inf; of a matrix that is
learned, one bound `Sigma1 >> 0.01` or `Sigma1 << 100`, and `.trace()`; of kernel weights, `p_norm(theta, 2) <= 1`, and `.sum()`.
Everything else is refused with the place where it stands.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from mtldsl.atoms.metrics import Metric
from mtldsl.errors import MTLError
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective
from mtldsl.language.expressions.scalar import Scalar
from mtldsl.language.text.calls import OPERAND_ERRORS, Calls, declaration_of, shortened
from mtldsl.language.text.file_words import typed_usage
from mtldsl.language.text.kinds import is_compared, kind_of, place_of
from mtldsl.language.text.source import Source
from mtldsl.language.text.syntax import MAX_DEPTH
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint
from mtldsl.language.unknowns.similarities import TaskSimilarity
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.language.words.vocabulary import METRICS, SIMILARITIES, UNKNOWNS, WORDS

__all__ = ["Walk"]

#: Products that a constant such as A @ B may take.
MAX_PRODUCTS = 10_000_000

_BINARY = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.MatMult: ("@", operator.matmul),
}
_COMPARE = {
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.NotEq: operator.ne,
}
#: The order of semidefinite matrices: only between a matrix that is learned and a number.
_ORDER = {ast.RShift: (">>", operator.rshift), ast.LShift: ("<<", operator.lshift)}
_REFUSED: dict[type, str] = {
    ast.Pow: "powers are not in the language; write numbers such as 1e-3, and squares as words such as ridge(W)",
    ast.FloorDiv: "whole-number division is not in the language; write /",
    ast.Mod: "remainders are not in the language",
    ast.BoolOp: "and / or are not in the language; write one constraint for each comparison",
    ast.Not: "not is not in the language",
    ast.Tuple: "one expression is expected here, not several separated by commas; a list is written [a, b]",
    ast.ListComp: "comprehensions are not in the language; write the list out",
    ast.GeneratorExp: "comprehensions are not in the language; write the list out",
    ast.Lambda: "functions cannot be written here",
    ast.Attribute: "the only attributes in the language are .sum(axis=...) and .trace()",
    ast.NamedExpr: "names are not assigned here; give numbers in [parameters] and matrices in [arrays]",
    ast.IfExp: "conditions are not in the language",
    ast.Dict: "the language has no braces; a list is written [a, b]",
    ast.Set: "the language has no braces; a list is written [a, b]",
    ast.JoinedStr: "f-strings are not in the language",
}


class Walk(Calls):
    """One text, read from its syntax tree. A method `_x` reads the nodes that Python's `ast` calls X."""

    def __init__(self, text: str | Source, names: Mapping[str, object]):
        super().__init__(text if isinstance(text, Source) else Source.of(text, "text"))
        self.names = names

    def result(self):
        return self.value(self.body, 0)

    def value(self, node: ast.expr, depth: int):
        if depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} operators inside each other", node)
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            message = _REFUSED.get(type(node), f"{type(node).__name__} is not in the language")
            raise self.error(message, node)
        return read(node, depth + 1)

    def _constant(self, node, depth):
        value = node.value
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int) and abs(value) > 2**53:
            raise self.error("this whole number is too large; write it as 1e20", node)
        if not isinstance(value, int | float):
            raise self.error(f"{ast.unparse(node)} is not in the language; write a real number", node)
        return value

    def _name(self, node, depth):
        if node.id in self.names:
            return self.names[node.id]
        if node.id in METRICS:
            raise self.error(f"{node.id} is a metric; write {node.id}()", node)
        if node.id in WORDS:
            raise self.error(f"{node.id} is a word of the language; write {node.id}(W, ...)", node)
        if node.id in SIMILARITIES:
            raise self.error(f"{node.id} is a similarity of tasks; write {typed_usage(node.id)}", node)
        if node.id in UNKNOWNS:
            raise self.error(declaration_of(node.id), node)
        if node.id == "inf":
            return math.inf
        raise self.error(f"there is no name {node.id!r}{nearest(node.id, self.names)}", node)

    def _list(self, node, depth):
        items = [self.value(item, depth) for item in node.elts]
        for item, child in zip(items, node.elts, strict=True):
            if not (item is None or isinstance(item, Real | str | list | Metric | TaskSimilarity)):
                raise self.error(
                    f"a list holds numbers, names, metrics, similarities and lists, not {kind_of(item)}",
                    child,
                )
        return items

    def _unaryop(self, node, depth):
        if not isinstance(node.op, ast.USub):
            raise self.error(
                _REFUSED.get(type(node.op), "of the signs, only - can stand before an expression"), node
            )
        value = self.value(node.operand, depth)
        if not _is_operand(value) or isinstance(value, list):
            raise self.error(
                f"-{ast.unparse(node.operand)}: {kind_of(value)} has no sign{place_of(value)}", node
            )
        return self._applied(operator.neg, node, value)

    def _binop(self, node, depth):
        if type(node.op) in _ORDER:
            return self._order(node, depth)
        if type(node.op) not in _BINARY:
            raise self.error(_REFUSED.get(type(node.op), "this operator is not in the language"), node)
        symbol, function = _BINARY[type(node.op)]
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        both_plain = isinstance(left, Real | list | np.ndarray) and isinstance(
            right, Real | list | np.ndarray
        )
        for value, child in ((left, node.left), (right, node.right)):
            if not _is_operand(value):
                raise self.error(f"{kind_of(value)} cannot stand beside {symbol}{place_of(value)}", child)
            if both_plain and isinstance(value, list):
                raise self.error(
                    f"a list cannot stand beside {symbol} here; name the matrix in [arrays]", child
                )
        if both_plain and _size(left) * _size(right) > MAX_PRODUCTS:
            raise self.error(f"this constant would be made of more than {MAX_PRODUCTS:,} products", node)
        return self._applied(function, node, left, right)

    def _order(self, node, depth):
        """S >> l or S << u. Numbers are never shifted."""
        symbol, function = _ORDER[type(node.op)]
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        first, second = ast.unparse(node.left), ast.unparse(node.right)
        if isinstance(left, RangeConstraint):  # a chain: the matrix stands in both of what was meant
            raise self.error(_two_constraints(first, f"{left.unknown} {symbol} {second}"), node)
        if isinstance(right, RangeConstraint):
            raise self.error(_two_constraints(f"{first} {symbol} {right.unknown}", second), node)
        if not isinstance(left, LearnedUnknown) and not isinstance(right, LearnedUnknown):
            is_left = not isinstance(left, Real) or isinstance(right, Real)
            value, child = (left, node.left) if is_left else (right, node.right)
            hint = "; weights are compared by >= and <=" if isinstance(value, Affine) else place_of(value)
            raise self.error(
                f"{symbol} bounds a matrix that is learned by a number, as in Sigma1 {symbol} "
                f"{'0.01' if symbol == '>>' else '100'}; this is {kind_of(value)}{hint}",
                child,
            )
        return self._applied(function, node, left, right)

    def _compare(self, node, depth):
        if len(node.ops) > 1:
            shown = [node.left, *node.comparators]
            order = any(self._is_precision(child) for child in shown)
            first, second = (
                f"{ast.unparse(shown[i])} {_symbol(node.ops[i], order)} {ast.unparse(shown[i + 1])}"
                for i in (0, 1)
            )
            raise self.error(_two_constraints(first, second), node)
        if type(node.ops[0]) not in _COMPARE:
            raise self.error("of comparisons, the language has >=, <= and ==", node)
        left, right = self.value(node.left, depth), self.value(node.comparators[0], depth)
        for value, child in ((left, node.left), (right, node.comparators[0])):
            if not (_is_operand(value) or is_compared(value)):
                raise self.error(f"{kind_of(value)} cannot be compared{place_of(value)}", child)
        return self._applied(_COMPARE[type(node.ops[0])], node, left, right)

    def _is_precision(self, node) -> bool:
        value = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return isinstance(value, LearnedUnknown) and value.kind == "precision"

    def _subscript(self, node, depth):
        value = self.value(node.value, depth)
        if not isinstance(value, Affine | np.ndarray):
            raise self.error(f"{kind_of(value)} has no rows and columns to choose from", node.value)
        index = node.slice
        if isinstance(index, ast.Tuple):
            if len(index.elts) != 2:
                raise self.error("write at most two indices, [rows, tasks]", index)
            key = tuple(self._index(item, depth) for item in index.elts)
        else:
            key = self._index(index, depth)
        return self._applied(operator.getitem, node, value, key)

    def _index(self, node, depth):
        if isinstance(node, ast.Slice):
            ends = [
                None if end is None else self.value(end, depth) for end in (node.lower, node.upper, node.step)
            ]
            if any(end is not None and (isinstance(end, bool) or not isinstance(end, int)) for end in ends):
                raise self.error("the ends of a slice are whole numbers", node)
            return slice(*ends)
        key = self.value(node, depth)
        if isinstance(key, bool) or not isinstance(key, int | str | list | np.ndarray):
            raise self.error(
                f"an index is a whole number, a name, a slice or a list of them, not {kind_of(key)}", node
            )
        return key

    def _applied(self, function, node, *operands):
        """function(*operands); what it raises gets the place of the node."""
        try:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                return function(*operands)
        except MTLError as error:
            raise self.placed(error, node) from error
        except OPERAND_ERRORS as error:
            raise self.error(f"{shortened(ast.unparse(node))}: {error}", node) from error


def _is_operand(value) -> bool:
    plain = isinstance(value, Real | list | np.ndarray) and not isinstance(value, bool)
    return plain or isinstance(value, Affine | Objective | Scalar | LearnedUnknown)


def _two_constraints(first: str, second: str) -> str:
    return f'a chain of comparisons is two constraints: write "{first}", "{second}"'


def _symbol(op, order: bool) -> str:
    """As typed; for a precision, in the order of semidefinite matrices."""
    typed = {ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==", ast.Gt: ">", ast.Lt: "<"}.get(type(op), "!=")
    return {">=": ">>", ">": ">>", "<=": "<<", "<": "<<"}.get(typed, typed) if order else typed


def _size(value: Any) -> int:
    """How many numbers a plain value has."""
    return np.size(value)
