"""Some rows of data that are too large to be held at once, whatever they were read from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.tasks.ids import labels_of
from mtldsl.tasks.inputs import as_design, as_rows, as_targets
from mtldsl.values.names import plain
from mtldsl.values.number import as_whole, quoted

__all__ = ["Chunk", "hash_columns", "of_arrays"]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Checked rows: finite inputs (n, d) as CSR, labels (NaN: none), and the task ids[codes[k]] of row k."""

    X: sparse.csr_array
    y: np.ndarray
    ids: list  # numbers and text as they are, what else there is as (text, type)
    codes: np.ndarray
    where: str  # for messages
    first_row: int  # place of the first row within its part
    exact: bool = False  # whether X has all columns, not just those up to the largest that occurs
    features: tuple[str, ...] | None = None  # names of the columns

    @property
    def n_rows(self) -> int:
        return self.y.size


def of_arrays(X, y, ids, where: str, first_row: int = 0, features=None) -> Chunk:
    """What Tasks.grouped takes, as a chunk; DataError begins with `where`."""
    X, _, names = as_rows(X, f"{where}: X")
    y, _ = as_targets(y, f"{where}: y", columns=False)
    if X.shape[0] != y.size:
        raise DataError(f"X has {X.shape[0]} rows but y has {y.size} labels", term=where)
    try:
        ids, codes = labels_of(ids, y.size)
    except DataError as error:
        raise error.within(where) from None
    ids = [_kept(plain(one)) for one in ids]
    if X.dtype not in (np.float64, np.float32):  # scipy has no sparse matrices of float16
        X = X.astype(float)
    return Chunk(sparse.csr_array(X), y, ids, codes, where, first_row, True, features or names)


def _kept(one):
    """An id in a form that JSON keeps, with its type: 1 of one chunk and "1" of another stay two tasks."""
    if isinstance(one, bool | int | float | str):
        return one
    return str(one), type(one).__name__


def hash_columns(X, n_columns: int):
    """X (n, d) in `n_columns` columns: column j of X is added, times +1 or -1, to a column that a hash of j chooses.

    The hash of j is 32-bit MurmurHash3 (scikit-learn's), h: column |h| mod n_columns, sign that of h. Inner products of rows are kept
    in expectation, with a variance of the order of |x|^2 |x'|^2 / n_columns (Weinberger et al., Feature Hashing for Large Scale
    Multitask Learning, ICML 2009, Lemma 2). Memory-bounded: nothing of size d is made. This is what `store(..., hashed=n_columns)`
    does to the inputs, and what new inputs need before `solution.predict`. Returns a CSR array, float64.

    >>> from scipy import sparse
    >>> from mtldsl import datasets
    >>> X = sparse.csr_array(([1.0, 2.0], ([0, 1], [3, 10**6])), shape=(2, 10**6 + 1))
    >>> datasets.hash_columns(X, 8).shape
    (2, 8)
    """
    from sklearn.utils import murmurhash3_32

    n_columns = hashed_columns(n_columns, f"hash_columns(X, {quoted(n_columns)})")
    X = sparse.csr_array(as_design(X, "hash_columns: X")[0])
    low = X.indices.astype(np.int32)  # the lower half of what is longer
    if X.indices.dtype.itemsize > 4:
        high = X.indices >> 32
        far = np.flatnonzero(high)
        if far.size:  # beyond 32 bits: the hash of the upper half is mixed into the lower
            low[far] ^= murmurhash3_32(high[far].astype(np.int32))
    h = murmurhash3_32(low) if low.size else low
    columns = (np.abs(h.astype(np.int64)) % n_columns).astype(np.int32)
    data = np.where(h >= 0, X.data, -X.data).astype(float)
    hashed = sparse.csr_array((data, columns, X.indptr.copy()), shape=(X.shape[0], n_columns))
    hashed.sum_duplicates()
    return hashed


def hashed_columns(n, typed: str) -> int:
    """A number of columns to hash to."""
    if not 2 <= (as_whole(n) or 0) < 2**31:
        raise DataError(
            term=typed,
            write_instead="write how many columns to hash to, a whole number from 2 on, such as 4096",
        )
    return int(n)
