"""Gram matrices against products written out, with an intercept beside them and without; blocks into one array and back."""

import numpy as np
import pytest
from scipy import sparse

from mtldsl.data.products import gram, require_gram_memory
from mtldsl.errors import SolverError
from tests.loops import for_each

RNG = np.random.default_rng(5)
X = RNG.normal(size=(9, 3))

WEIGHTS = {
    "none": None,
    "many": RNG.uniform(0.5, 2.0, 9),
    "few": np.where(np.arange(9) % 4 == 0, 2.0, 0.0),
    "zero": np.zeros(9),
}


@for_each("form", [np.asarray, sparse.csr_array, lambda A: A.astype(np.float32)])
@for_each("weights", WEIGHTS)
def test_gram(form, weights):
    given, w = form(X), WEIGHTS[weights]
    dense = given.toarray() if sparse.issparse(given) else given.astype(float)
    expected = dense.T @ np.diag(np.ones(9) if w is None else w) @ dense
    found = gram(given, w)
    assert isinstance(found, np.ndarray) and found.dtype == float
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-13)
    of_rows = RNG.uniform(0.5, 2.0, 3)
    assert np.allclose(gram(given.T, of_rows), dense @ np.diag(of_rows) @ dense.T, rtol=1e-13, atol=1e-13)


def test_too_large_says_what_and_what_to_write():
    require_gram_memory(10, 1, "")
    said = r"the Gram matrices of 7 tasks with 10,000,000 features .* take fewer"
    with pytest.raises(SolverError, match=said):
        require_gram_memory(10**7, 7, "take fewer")
