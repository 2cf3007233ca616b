"""What is called in a text: words of the language, and the few methods of its values."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import replace

from mtldsl.atoms.losses import LabelGraphLoss
from mtldsl.atoms.structures import Learned
from mtldsl.errors import MTLError
from mtldsl.language.expressions.expression import Affine
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.text.file_words import CALLABLE, declared, typed_usage
from mtldsl.language.text.kinds import kind_of
from mtldsl.language.text.syntax import Syntax
from mtldsl.language.unknowns.kernel_weights import KernelWeights
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.words.did_you_mean import meant, nearest
from mtldsl.language.words.vocabulary import UNKNOWNS, WORDS, unknown_of
from mtldsl.shown.math import matrix_latex

__all__ = ["METHODS_OF_VALUES", "OPERAND_ERRORS", "Calls", "declaration_of", "shortened"]

#: method -> (what has it, that in words, how it is typed)
METHODS_OF_VALUES = {
    "sum": (Affine | KernelWeights, "an expression of weights", ".sum(axis=0)"),
    "trace": (LearnedUnknown, "a matrix that is learned", ".trace()"),
}

#: What operators of the language and of numpy raise for operands that do not fit.
OPERAND_ERRORS = (TypeError, ValueError, IndexError, ArithmeticError)


class Calls(Syntax):
    """The calls of one text. `names`: what may be written besides the words."""

    names: Mapping[str, object]

    def value(self, node: ast.expr, depth: int):
        """What a node of the syntax tree stands for."""
        raise NotImplementedError

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
            raise self.error(f"{shortened(ast.unparse(node))}: {error}; write {typed}", node) from error
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


def _typed_matrices(word, node: ast.Call) -> list[tuple[Learned, ast.expr | None]]:
    """What everything that a word learns was typed as; nothing for words that learn nothing."""
    learns = getattr(getattr(word, "atom", None), "learns", ())
    typed = dict(zip(inspect.signature(word).parameters, node.args, strict=False)) if learns else {}
    typed |= {keyword.arg: keyword.value for keyword in node.keywords}
    return [(described, typed.get(described.name)) for described in learns]


def declaration_of(kind: str) -> str:
    """How a kind of unknown is declared, where it was written itself."""
    line = declared(kind)
    what = "of weights that are" if UNKNOWNS[kind] is KernelWeights else "of matrix that is"
    return f"{kind} is a kind {what} learned; declare {line} in [learned], and write {line.split()[0]} here"


def shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
