"""What a kernel k(x, x') can be written as: a name of scikit-learn's, a function, or the numbers themselves."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.tasks.inputs import as_design
from mtldsl.tasks.string_kernels import STRING_KERNELS
from mtldsl.values.number import as_float, as_whole, quoted

__all__ = ["FunctionKernel", "GivenKernel", "Kernel", "NamedKernel", "kernels_of"]

#: The key under which a dict of new inputs holds the rows themselves, beside the matrices of precomputed kernels.
INPUTS = "X"


@dataclass(frozen=True)
class NamedKernel:
    """A kernel of `sklearn.metrics.pairwise`, or of sequences (`string_kernels`), with its parameters."""

    name: str
    word: str
    parameters: dict = field(default_factory=dict)

    def __call__(self, A, B) -> np.ndarray:
        from sklearn.metrics.pairwise import pairwise_kernels

        try:
            with np.errstate(all="ignore"):  # what is not finite is said below
                own = STRING_KERNELS.get(self.word)
                values = (
                    own(A, B, **self.parameters)
                    if own
                    else pairwise_kernels(A, B, metric=self.word, **self.parameters)
                )
            return _checked(self.name, values, A, B, self.word)
        except (TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            whose = "the" if self.word in STRING_KERNELS else "scikit-learn's"
            raise DataError(f"kernel {self.name!r}: {whose} {self.word} kernel says: {error}") from error


@dataclass(frozen=True)
class FunctionKernel:
    """A function of the user's: k(A, B) is (rows of A) x (rows of B)."""

    name: str
    function: Callable

    def __call__(self, A, B) -> np.ndarray:
        typed = f"{getattr(self.function, '__name__', type(self.function).__name__)}(A, B)"
        try:
            values = self.function(A, B)
        except Exception as error:  # whatever a function of the user's raises
            raise DataError(
                f"kernel {self.name!r}: {typed} raised {type(error).__name__}: {error}"
            ) from error
        return _checked(self.name, values, A, B, typed)


@dataclass(frozen=True, eq=False)
class GivenKernel:
    """A Gram matrix over all rows, computed by the user; None where a saved one was read back, whose numbers are not kept."""

    name: str
    gram: np.ndarray | None
    size: int

    def __eq__(self, other) -> bool:
        # what a map does with new numbers depends on the name and the size alone (and there is no hash)
        if not isinstance(other, GivenKernel):
            return NotImplemented
        return (self.name, self.size) == (other.name, other.size)


Kernel = NamedKernel | FunctionKernel | GivenKernel


def kernels_of(kernels) -> tuple[Kernel, ...]:
    """The kernels typed: a dict by name, a list, or one alone. DataError says which one cannot be read, and why.

    >>> kernels_of(["linear", ("rbf", {"gamma": 0.5})])[1]
    NamedKernel(name='rbf(gamma=0.5)', word='rbf', parameters={'gamma': 0.5})
    """
    if isinstance(kernels, dict):
        pairs = list(kernels.items())
    else:
        listed = list(kernels) if isinstance(kernels, list) and not _is_numbers(kernels) else [kernels]
        pairs = [(_own_name(kernel, k), kernel) for k, kernel in enumerate(listed)]
    if not pairs:
        raise DataError(
            "with_kernels: no kernel is given",
            write_instead='write for example with_kernels(["linear", "rbf"])',
        )
    names = [name for name, _ in pairs]
    for name in names:
        if not isinstance(name, str) or not name:
            raise DataError(f"with_kernels: {name!r} is not a name of a kernel", write_instead="write text")
        if name == INPUTS:
            raise DataError(
                f"with_kernels: no kernel can be named {INPUTS!r}, the key of the inputs themselves in "
                f"predict({{{INPUTS!r}: X, ...}})",
                write_instead="write another name",
            )
        if names.count(name) > 1:
            raise DataError(
                f"with_kernels: two kernels are named {name!r}",
                write_instead='give a dict with a name for each, {"narrow": ("rbf", {"gamma": 1.0}), ...}',
            )
    return tuple(_kernel(name, kernel) for name, kernel in pairs)


def _own_name(kernel, position: int) -> str:
    """The name of a kernel in a list: its word with its parameters, or the function's; else by its position."""
    if isinstance(kernel, str):
        return kernel
    if isinstance(kernel, tuple) and len(kernel) == 2 and isinstance(kernel[1], dict):
        shown = ", ".join(f"{name}={quoted(value)}" for name, value in kernel[1].items())
        return f"{kernel[0]}({shown})" if shown else str(kernel[0])
    name = getattr(kernel, "__name__", "") if callable(kernel) else ""
    return name if name.isidentifier() else f"kernel{position}"


def _kernel(name: str, kernel) -> Kernel:
    if isinstance(kernel, str):
        return _named(name, kernel, {})
    if isinstance(kernel, tuple) and len(kernel) == 2 and isinstance(kernel[0], str):
        word, parameters = kernel
        if not isinstance(parameters, dict):
            raise DataError(
                f"kernel {name!r}: {kernel!r}",
                write_instead=f"write the parameters as a dict, ({word!r}, {{'gamma': 0.1}})",
            )
        return _named(name, word, parameters)
    if callable(kernel):
        return FunctionKernel(name, kernel)
    if _is_numbers(kernel):
        return _given(name, kernel)
    raise DataError(
        f"kernel {name!r}: {quoted(kernel, 60)} is not a kernel",
        write_instead='write a name ("rbf"), a name with parameters '
        '(("rbf", {"gamma": 0.1})), a function k(A, B), or a Gram matrix over the rows of these tasks',
    )


def _is_numbers(kernel) -> bool:
    """Whether this is a matrix: an array, a table, or a list of rows of numbers."""
    if isinstance(kernel, list | tuple):
        return bool(kernel) and all(
            isinstance(row, list | tuple)
            and bool(row)
            and all(np.isscalar(x) and not isinstance(x, str) for x in row)
            for row in kernel
        )
    return sparse.issparse(kernel) or (hasattr(kernel, "shape") and not isinstance(kernel, str))


def _named(name: str, word: str, parameters: dict) -> NamedKernel:
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    known = sorted({*PAIRWISE_KERNEL_FUNCTIONS, *STRING_KERNELS})
    if word not in known:
        near = difflib.get_close_matches(word, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known))}"
        if word == "precomputed":
            hint = f"give the Gram matrix itself, {{{name!r}: K}}"
        raise DataError(f"kernel {name!r}: there is no kernel {word!r}; {hint}")
    plain = {}
    for key, value in parameters.items():
        number = value if value is None or isinstance(value, str | bool) else as_float(value)
        if number is None and value is not None:
            raise DataError(f"kernel {name!r}: {key}={quoted(value)}; parameters of a kernel are numbers")
        plain[str(key)] = as_whole(value) if as_whole(value) is not None else number
    return NamedKernel(name, word, plain)


def _given(name: str, table) -> GivenKernel:
    what = f"kernel {name!r}"
    single = getattr(table, "dtype", None) == np.float32
    K, _ = as_design(table, what)
    K = K.toarray() if sparse.issparse(K) else K
    if K.shape[0] != K.shape[1]:
        raise DataError(f"{what} has shape {K.shape}; a Gram matrix is square, one row and column a row of X")
    # the accuracy of the numbers is that of the type they were computed in
    return GivenKernel(name, K.astype(np.float32) if single else K, K.shape[0])


def _checked(name: str, values, A, B, typed: str) -> np.ndarray:
    """The values of a kernel between two sets of rows, where they are that."""
    K = values.toarray() if sparse.issparse(values) else np.asarray(values)
    shape = (A.shape[0], B.shape[0])
    if K.shape != shape or K.dtype.kind not in "fiub":
        raise DataError(
            f"kernel {name!r}: {typed} gave {K.dtype} numbers of shape {K.shape} for {shape[0]} and {shape[1]} rows; a kernel "
            f"gives real numbers of shape {shape}"
        )
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise DataError(
            f"kernel {name!r}: {typed} is {K[i, j]} between the rows {i} and {j}; it must be finite"
        )
    return K if K.dtype.kind == "f" else K.astype(float)
