"""`W.T`: the transpose of an expression, which stands alone inside a word for a norm or a penalty."""

from __future__ import annotations

from typing import Any, NoReturn

from mtldsl.errors import ModelError
from mtldsl.language.scalars import Mixable, Operation, bracket


def _refused(symbol: str, instead: str) -> Any:
    """An operator of a transpose, which says what to write in its place: `{0}` stands for the expression, `{1}` for its transpose."""

    def refuse(self: Transposed, *_, **__) -> NoReturn:
        raise ModelError(
            f"a transpose stands alone inside a word, without {symbol}",
            term=self.text,
            write_instead="write " + instead.format(bracket(self.of, 3), self.text),
        )

    return refuse


class Transposed(Mixable):
    """The transpose (q, p) of an expression (p, q): a word of `W.T` is a word of W with rows and columns exchanged.

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    >>> W.T, W.T.shape, W.T.T is W
    (W.T, (2, 3), True)
    >>> 2 * W.T
    Traceback (most recent call last):
    mtldsl.errors.ModelError: W.T: a transpose stands alone inside a word, without *; write (c * W).T
    """

    __hash__ = object.__hash__
    precedence = 3

    def __init__(self, of: Any):
        self.of = of  # an Affine
        self.shape: tuple[int, int] = of.shape[::-1]
        self.text, self.latex = f"{bracket(of, 3)}.T", rf"{bracket(of, 3, 'latex')}^\top"
        self.tree = Operation("T", (of.tree,))

    def __repr__(self):
        return self.text

    @property
    def T(self) -> Any:
        return self.of

    __add__ = __radd__ = _refused("+", "({0} + V).T")
    __sub__ = __rsub__ = _refused("-", "({0} - V).T")
    __mul__ = __rmul__ = __truediv__ = __neg__ = _refused("*", "(c * {0}).T")
    __matmul__ = _refused("@", "(A.T @ {0}).T for {1} @ A")
    __rmatmul__ = _refused("@", "({0} @ A.T).T for A @ {1}")
    __pow__ = __abs__ = _refused("powers", "ridge({0}), half the sum of squares, or l1_norm({0})")
    __getitem__ = _refused("[]", "{0}[rows, tasks].T for {1}[tasks, rows]")
    sum = _refused("sums", "{0}.sum(axis=1) for {1}.sum(axis=0)")
    __ge__ = __gt__ = _refused(">=", "{0} >= C.T for {1} >= C")
    __le__ = __lt__ = _refused("<=", "{0} <= C.T for {1} <= C")
    __eq__ = __ne__ = _refused("==", "{0} == C.T for {1} == C")

    def __iter__(self):
        raise ModelError(
            f"{self.text} cannot be iterated over",
            write_instead=f"select tasks with {self.of.text}[:, [0, 1]]",
        )
