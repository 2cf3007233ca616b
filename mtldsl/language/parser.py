"""Parser of models typed as text: objectives and constraints from Python's syntax tree."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from mtldsl.atoms.learned_structures.structure import Learned
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.display.math import matrix_latex
from mtldsl.errors import MTLError
from mtldsl.language.arguments import unknown_of
from mtldsl.language.constraints import Constraint, RangeConstraint, UpperBounded
from mtldsl.language.expressions import Affine, Transposed
from mtldsl.language.learned_unknowns import KernelWeights, LearnedUnknown
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import Scalar
from mtldsl.language.similarity_helpers import TaskSimilarity
from mtldsl.language.source_text import SETTINGS, Source, Syntax, kind_of, place_of
from mtldsl.language.suggestions import meant, nearest
from mtldsl.language.vocabulary import (
    CALLABLE,
    METRICS,
    SIMILARITIES,
    UNKNOWNS,
    WORDS,
    declaration_line,
    typed_usage,
)

# --------------------------------------------------------------------------------------------------------------
# What is called in a text: words of the language, and the few methods of its values.

#: method -> (what has it, that in words, how it is typed)
METHODS_OF_VALUES = {
    "sum": (Affine | Transposed | KernelWeights, "an expression of weights", ".sum(axis=0)"),
    "trace": (LearnedUnknown, "a matrix that is learned", ".trace()"),
}

#: What operators of the language and of numpy raise for operands that do not fit.
OPERAND_ERRORS = (TypeError, ValueError, IndexError, ArithmeticError)


def _typed_matrices(word, node: ast.Call) -> list[tuple[Learned, ast.expr | None]]:
    """Return what everything that a word learns was typed as; nothing for words that learn nothing."""
    learns = getattr(getattr(word, "atom", None), "learns", ())
    typed = dict(zip(inspect.signature(word).parameters, node.args, strict=False)) if learns else {}
    typed |= {keyword.arg: keyword.value for keyword in node.keywords}
    return [(described, typed.get(described.name)) for described in learns]


def declaration_of(kind: str) -> str:
    """Return how a kind of unknown is declared, where it was written itself."""
    line = declaration_line(kind)
    what = "of weights that are" if UNKNOWNS[kind] is KernelWeights else "of matrix that is"
    return f"{kind} is a kind {what} learned; declare {line} in [learned], and write {line.split()[0]} here"


def shorten_text(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


# --------------------------------------------------------------------------------------------------------------
# Text to the same tree that Python code makes: a whitelisted walk over Python's syntax tree. Nothing is ever executed.
#
# What may be written: names that were given, the words of the language, numbers, + - * / @, unary minus, one comparison, indices
# (whole numbers, names, slices, lists), `.T`, `.sum(axis=...)`, keyword arguments, lists, True, False, None and inf; of a matrix that is
# learned, one bound `Sigma1 >> 0.01` or `Sigma1 << 100`, and `.trace()`; of kernel weights, `p_norm(theta, 2) <= 1`, and `.sum()`.
# Everything else is refused with the place where it stands.


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
    ast.Attribute: "the only attributes in the language are .T, .sum(axis=...) and .trace()",
    ast.NamedExpr: "names are not assigned here; give numbers in [parameters] and matrices in [arrays]",
    ast.IfExp: "conditions are not in the language",
    ast.Dict: "the language has no braces; a list is written [a, b]",
    ast.Set: "the language has no braces; a list is written [a, b]",
    ast.JoinedStr: "f-strings are not in the language",
}


class SyntaxWalk(Syntax):
    """One text, read from its syntax tree. A method `_x` reads the nodes that Python's `ast` calls X."""

    def __init__(self, text: str | Source, names: Mapping[str, object]):
        super().__init__(text if isinstance(text, Source) else Source.of(text, "text"))
        self.names = names

    def result(self):
        return self.value(self.body, 0)

    def value(self, node: ast.expr, depth: int):
        if depth > SETTINGS.nested_levels:
            raise self.error(f"more than {SETTINGS.nested_levels} operators inside each other", node)
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            message = _REFUSED.get(type(node), f"{type(node).__name__} is not in the language")
            raise self.error(message, node)
        return read(node, depth + 1)

    def _call(self, node, depth):
        function = node.func
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error("** cannot stand before an argument here", keyword.value)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise self.error("* cannot stand before an argument here", argument)
        if isinstance(function, ast.Attribute) and function.attr in METHODS_OF_VALUES:
            owner, owned_by, _ = METHODS_OF_VALUES[function.attr]
            value = self.value(function.value, depth)
            if not isinstance(value, owner):
                raise self.error(
                    f".{function.attr}() belongs to {owned_by}, not to {kind_of(value)}", function.value
                )
            call = getattr(value, function.attr)
        elif isinstance(function, ast.Name):
            if function.id not in CALLABLE:
                self._no_such_word(function)
            call = CALLABLE[function.id]
            self._require_declared(call, node)
        else:
            raise self.error(
                "only words of the language, .sum(axis=...) and .trace() can be called", function
            )
        arguments = [self.value(argument, depth) for argument in node.args]
        keywords = {keyword.arg: self.value(keyword.value, depth) for keyword in node.keywords}
        try:
            result = call(*arguments, **keywords)
        except MTLError as error:
            raise self.placed(error, node) from error
        except OPERAND_ERRORS as error:
            typed = (
                METHODS_OF_VALUES[function.attr][2]
                if isinstance(function, ast.Attribute)
                else typed_usage(function.id)
            )
            if isinstance(function, ast.Attribute) and isinstance(value, KernelWeights):
                typed = ".sum()"
            raise self.error(f"{shorten_text(ast.unparse(node))}: {error}; write {typed}", node) from error
        if isinstance(result, Objective):
            return Objective(self._as_typed(term, node) for term in result.terms)
        return result

    def _as_typed(self, term: Term, node: ast.Call) -> Term:
        """The term with the text of its call; a matrix that is given has the name it was given by."""
        latex, taken = term.atom_latex, {getattr(matrix, "latex", None) for matrix in term.learned}
        typed = _typed_matrices(WORDS[term.atom.name], node) if term.learned else []
        for matrix, (described, child) in zip(term.learned, typed, strict=True):
            symbol = matrix_latex(described.name)
            if not isinstance(matrix, LearnedUnknown) and isinstance(child, ast.Name) and symbol not in taken:
                latex = latex.replace(symbol, matrix_latex(child.id))
        return replace(term, atom_text=ast.unparse(node), atom_latex=latex)

    def _no_such_word(self, function: ast.Name):
        if function.id in self.names:
            raise self.error(
                f"{function.id} is {kind_of(self.names[function.id])}, and cannot be called", function
            )
        if function.id in UNKNOWNS:
            raise self.error(declaration_of(function.id), function)
        raise self.error(f"there is no word {function.id!r}{nearest(function.id, CALLABLE)}", function)

    def _require_declared(self, word, node: ast.Call):
        """An error that says how to declare it where a word that learns matrices, or of a graph of labels, is given an unknown name."""
        if isinstance(getattr(word, "atom", None), type) and issubclass(word.atom, LabelGraphLoss):
            for child, kind in zip(node.args, ("NodeWeights", "EdgeWeights"), strict=False):
                if isinstance(child, ast.Name) and child.id not in self.names and child.id not in CALLABLE:
                    line = f'{child.id} = "{kind}"'
                    raise self.error(f"there is no name {child.id!r}; declare it in [weights]: {line}", child)
        for described, child in _typed_matrices(word, node):
            if not isinstance(child, ast.Name) or child.id in self.names or child.id in UNKNOWNS:
                continue
            if meant(child.id, self.names) is None:
                line = f'{child.id} = "{unknown_of(described).__name__}"'
                raise self.error(f"there is no name {child.id!r}; declare it in [learned]: {line}", child)

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
        if both_plain and _size(left) * _size(right) > SETTINGS.constant_flops:
            raise self.error(
                f"this constant would be made of more than {SETTINGS.constant_flops:,} products", node
            )
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
            if not (_is_operand(value) or isinstance(value, UpperBounded)):
                raise self.error(f"{kind_of(value)} cannot be compared{place_of(value)}", child)
        return self._applied(_COMPARE[type(node.ops[0])], node, left, right)

    def _is_precision(self, node) -> bool:
        value = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return isinstance(value, LearnedUnknown) and value.kind == "precision"

    def _subscript(self, node, depth):
        value = self.value(node.value, depth)
        if not isinstance(value, Affine | Transposed | np.ndarray):
            raise self.error(f"{kind_of(value)} has no rows and columns to choose from", node.value)
        index = node.slice
        if isinstance(index, ast.Tuple):
            if len(index.elts) != 2:
                raise self.error("write at most two indices, [rows, tasks]", index)
            key = tuple(self._index(item, depth) for item in index.elts)
        else:
            key = self._index(index, depth)
        return self._applied(operator.getitem, node, value, key)

    def _attribute(self, node, depth):
        if node.attr != "T":
            raise self.error(_REFUSED[ast.Attribute], node)
        value = self.value(node.value, depth)
        if not isinstance(value, Affine | Transposed | np.ndarray):
            raise self.error(f".T belongs to an expression of weights, not to {kind_of(value)}", node.value)
        return value.T

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
            raise self.error(f"{shorten_text(ast.unparse(node))}: {error}", node) from error


def _is_operand(value) -> bool:
    plain = isinstance(value, Real | list | np.ndarray) and not isinstance(value, bool)
    return plain or isinstance(value, Affine | Transposed | Objective | Scalar | LearnedUnknown)


def _two_constraints(first: str, second: str) -> str:
    return f'a chain of comparisons is two constraints: write "{first}", "{second}"'


def _symbol(op, order: bool) -> str:
    """As typed; for a precision, in the order of semidefinite matrices."""
    typed = {ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==", ast.Gt: ">", ast.Lt: "<"}.get(type(op), "!=")
    return {">=": ">>", ">": ">>", "<=": "<<", "<": "<<"}.get(typed, typed) if order else typed


def _size(value: Any) -> int:
    """Return how many numbers a plain value has."""
    return np.size(value)


# --------------------------------------------------------------------------------------------------------------
# Objectives and constraints as text. What may be written: `walk`. Nothing is ever executed.


def parse_objective(text: str | Source, names: Mapping[str, object]) -> Objective:
    """The objective that `text` states, for `minimize`.

    names : what may be written besides the words: weights, tasks, parameters, arrays and numbers

    Raises ModelError (DataError where the data do not suit a loss) that begins with file, line and column and shows the line.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
    >>> W = mtl.Weights(tasks)
    >>> parse_objective("squared_loss(W, tasks) + 0.5*trace_norm(W)", {"W": W, "tasks": tasks})
    squared_loss(W, tasks) + 0.5 * trace_norm(W)
    >>> parse_objective("squared_loss(W, tasks) + trace_nrm(W)", {"W": W, "tasks": tasks})
    Traceback (most recent call last):
    mtldsl.errors.ModelError: text:1:26: there is no word 'trace_nrm'; did you mean 'trace_norm'?
      1 | squared_loss(W, tasks) + trace_nrm(W)
        |                          ^^^^^^^^^
    """
    walk = SyntaxWalk(text, names)
    value = walk.result()
    if isinstance(value, Objective):
        return value
    if isinstance(value, Constraint | RangeConstraint):
        raise walk.error("this is a constraint; the objective is a sum of losses and regularizers", walk.body)
    raise walk.error(
        f"the objective must be a sum of losses and regularizers, such as squared_loss(W, tasks) + 0.1 * l1_norm(W); "
        f"this is {kind_of(value)}{place_of(value)}",
        walk.body,
    )


def parse_constraint(text: str | Source, names: Mapping[str, object]) -> Constraint | RangeConstraint:
    """The constraint that `text` states, for `subject_to`; as `parse_objective`.

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    >>> parse_constraint("W.sum(axis=0) == 1", {"W": W})
    W.sum(axis=0) == 1
    >>> parse_constraint("S << 100", {"S": mtl.TaskPrecision(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))), "S")})
    S << 100
    """
    walk = SyntaxWalk(text, names)
    value = walk.result()
    if isinstance(value, Constraint | RangeConstraint):
        # the text as typed says more than `array(3, 2)` does; names of arrays are known only here
        return replace(value, text=ast.unparse(walk.body))
    hint = "write a comparison such as W >= 0 or l1_norm(W) <= 3"
    if isinstance(value, bool | np.bool_ | np.ndarray):
        raise walk.error(f"this constraint contains no weights; {hint}", walk.body)
    if isinstance(value, LearnedUnknown):
        bounds = {"precision": f"{value} >> 0.01", "weights": f"p_norm({value}, 2) <= 1"}
        hint = f"write {bounds.get(value.kind, f'{value}.trace() <= 1')}"
    raise walk.error(
        f"a constraint is expected, this is {kind_of(value)}{place_of(value) or f'; {hint}'}", walk.body
    )
