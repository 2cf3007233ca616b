"""Kernels between rows, typed by name, function or Gram matrix; also kernels of letter sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from mtldsl.data.input_checks import as_design
from mtldsl.errors import DataError
from mtldsl.utils.validation import as_count, as_flag, as_float, as_whole, nearest, quoted

# --------------------------------------------------------------------------------------------------------------
# Kernels of sequences of letters: how many short words two sequences have in common, anywhere or at the same places.

#: The code of a letter that is not known, and of what is behind the end of a shorter sequence.
UNKNOWN = -1.0


def encode_sequences(sequences: Sequence[str], alphabet: str = "ACGT", *, unknown: str = "N") -> np.ndarray:
    """Sequences of letters as rows of numbers, (n, longest): 0, 1, ... for the letters of `alphabet`, -1 for an unknown one and behind the end.

    alphabet : the letters in their order, each once; "ACGT" for DNA, "ACDEFGHIKLMNPQRSTVWY" for proteins
    unknown  : letters that may stand for any other, such as N; they are equal to nothing

    Rows of tasks are numbers, so string kernels read these. DataError names a letter that is in neither, and its place.

    >>> from mtldsl import datasets
    >>> datasets.encode_sequences(["ACGT", "GN"])
    array([[ 0.,  1.,  2.,  3.],
           [ 2., -1., -1., -1.]])
    """
    if isinstance(sequences, str) or not all(isinstance(each, str) for each in sequences):
        raise DataError(
            "sequences are not a list of texts",
            term="encode_sequences",
            write_instead="write ['ACGT', 'GGA']",
        )
    if not alphabet or len(set(alphabet)) < len(alphabet) or set(alphabet) & set(unknown):
        raise DataError(
            f"alphabet={alphabet!r}, unknown={unknown!r}",
            term="encode_sequences",
            write_instead="write each letter once",
        )
    code = {letter: float(k) for k, letter in enumerate(alphabet)} | dict.fromkeys(unknown, UNKNOWN)
    found = np.full((len(sequences), max((len(each) for each in sequences), default=0)), UNKNOWN)
    for i, sequence in enumerate(sequences):
        try:
            found[i, : len(sequence)] = [code[letter] for letter in sequence]
        except KeyError as error:
            letter = error.args[0]
            raise DataError(
                f"sequence {i} has {letter!r} at place {sequence.index(letter)}, which is not in the alphabet {alphabet!r}",
                term="encode_sequences",
                write_instead=f"write a larger alphabet, or unknown={unknown + letter!r} where it stands for any letter",
            ) from None
    return found


def spectrum_kernel(A, B, k: int = 3, normalize: bool = True) -> np.ndarray:
    """The number of words of k letters that two sequences have in common, wherever they stand.

        phi_u(x) = how often the word u of k letters is in x;  K(x, x') = sum over u of phi_u(x) phi_u(x')
        normalize: K(x, x') / sqrt(K(x, x) K(x', x')), 0 where a sequence has no word of k known letters

    A (n, L), B (p, L'): sequences as `encode_sequences` gives them; words with an unknown letter do not count. Returns (n, p), positive
    semidefinite where A is B. `Tasks.with_kernels("spectrum")`, or `("spectrum", {"k": 4})`, is this kernel. DataError for entries that are
    not codes, and a k that is not a whole number of at least 1.

    Source: Leslie, Eskin and Noble, The spectrum kernel: a string kernel for SVM protein classification (2002).

    >>> from mtldsl import datasets
    >>> codes = datasets.encode_sequences(["ACACG", "TACAC", "GGGGG"])
    >>> datasets.spectrum_kernel(codes, codes, k=2, normalize=False)
    array([[ 6.,  5.,  0.],
           [ 5.,  6.,  0.],
           [ 0.,  0., 16.]])
    """
    k = as_count(k, "spectrum_kernel(A, B, k")
    normalize = as_flag(normalize, "spectrum_kernel(A, B, normalize")
    found = [_words(_codes(each, "spectrum_kernel"), k) for each in (A, B)]
    known, which = np.unique(np.concatenate([words for _, words, _ in found]), axis=0, return_inverse=True)
    own = np.split(np.ravel(which), [len(found[0][1])])
    counts_A, counts_B = (  # (n, words) how often a row has each
        sparse.csr_array((np.ones(len(one)), (rows, one)), shape=(n, len(known)))
        for one, (rows, _, n) in zip(own, found, strict=True)
    )
    K = np.asarray((counts_A @ counts_B.T).toarray())
    if not normalize:
        return K
    return _normalised(K, counts_A.multiply(counts_A).sum(axis=1), counts_B.multiply(counts_B).sum(axis=1))


def weighted_degree_kernel(A, B, degree: int = 5, normalize: bool = True) -> np.ndarray:
    """The words of up to `degree` letters that two sequences have at the same places, longer ones weighing less each.

        K(x, x') = sum_(k=1)^D beta_k sum_i [ x_i ... x_(i+k-1) = x'_i ... x'_(i+k-1) ],  beta_k = 2 (D - k + 1) / (D (D + 1))
        normalize: K(x, x') / sqrt(K(x, x) K(x', x')), 0 where a sequence has no known letter

    A (n, L), B (p, L'): sequences as `encode_sequences` gives them, of one length as a rule; an unknown letter is equal to nothing, and so is
    what is behind an end. Returns (n, p), positive semidefinite where A is B. `Tasks.with_kernels(("weighted_degree", {"degree": 8}))` is this
    kernel. DataError as in `spectrum_kernel`.

    Source: Raetsch and Sonnenburg, Accurate splice site detection for Caenorhabditis elegans (2004).

    >>> from mtldsl import datasets
    >>> codes = datasets.encode_sequences(["ACGT", "ACTT", "CAGA"])
    >>> (3 * datasets.weighted_degree_kernel(codes, codes, degree=2, normalize=False)).round(12)
    array([[11.,  7.,  2.],
           [ 7., 11.,  0.],
           [ 2.,  0., 11.]])
    """
    D = as_count(degree, "weighted_degree_kernel(A, B, degree")
    normalize = as_flag(normalize, "weighted_degree_kernel(A, B, normalize")
    A, B = _codes(A, "weighted_degree_kernel"), _codes(B, "weighted_degree_kernel")
    beta = 2.0 * (D - np.arange(D)) / (D * (D + 1.0))
    ending = np.concatenate(
        [[0.0], np.cumsum(beta)]
    )  # the words that end where a run of so many equal letters does
    K = np.zeros((len(A), len(B)))
    run = np.zeros(K.shape, dtype=int)
    for i in range(min(A.shape[1], B.shape[1])):
        a, b = A[:, i, None], B[None, :, i]
        run = np.where((a == b) & (a >= 0), np.minimum(run + 1, D), 0)
        K += ending[run]
    return _normalised(K, _own(A, ending, D), _own(B, ending, D)) if normalize else K


#: name in `Tasks.with_kernels` -> kernel
STRING_KERNELS = {"spectrum": spectrum_kernel, "weighted_degree": weighted_degree_kernel}


def _codes(given, term: str) -> np.ndarray:
    """(n, L) whole numbers, -1 and more."""
    codes = given.toarray() if sparse.issparse(given) else np.asarray(given, dtype=float)
    if codes.ndim != 2:
        raise DataError(f"sequences have the shape {codes.shape}", term=term, write_instead="give (n, L)")
    wrong = ~((codes >= UNKNOWN) & (codes == np.floor(codes)))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise DataError(
            f"row {i}, column {j} holds {codes[i, j]:g}, and the codes of letters are -1, 0, 1, ...",
            term=term,
            write_instead="give what encode_sequences returns, not standardised",
        )
    return codes.astype(np.int64)


def _words(codes, k: int) -> tuple[np.ndarray, np.ndarray, int]:
    """(the row of each word of k known letters, the words (N, k), the number of rows)."""
    n, length = codes.shape
    if length < k:
        return np.zeros(0, dtype=int), np.zeros((0, k), dtype=np.int64), n
    windows = np.lib.stride_tricks.sliding_window_view(codes, k, axis=1)
    known = (windows >= 0).all(axis=2)
    return np.nonzero(known)[0], windows[known], n


def _own(codes, ending, D: int) -> np.ndarray:
    """(n,) the weighted degree kernel of each row with itself."""
    run, total = np.zeros(len(codes), dtype=int), np.zeros(len(codes))
    for column in codes.T:
        run = np.where(column >= 0, np.minimum(run + 1, D), 0)
        total += ending[run]
    return total


def _normalised(K, own_A, own_B) -> np.ndarray:
    sizes = np.sqrt(np.outer(np.asarray(own_A), np.asarray(own_B)))
    return np.where(sizes > 0, K / np.where(sizes > 0, sizes, 1.0), 0.0)


# --------------------------------------------------------------------------------------------------------------
# What a kernel k(x, x') can be written as: a name of scikit-learn's, a function, or the numbers themselves.

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
    """Tell whether this is a matrix: an array, a table, or a list of rows of numbers."""
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
        hint = nearest(word, known, "kernel", len(known))
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
