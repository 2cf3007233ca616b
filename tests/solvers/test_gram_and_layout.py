"""Gram matrices against products written out, with an intercept beside them and without; blocks into one array and back."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.compile.normal_form import Block, NormalForm
from mtldsl.errors import SolverError
from mtldsl.solvers.linear_algebra.gram import bordered_gram, gram_product, without_intercept
from mtldsl.solvers.linear_algebra.layout import Layout
from mtldsl.tasks.gram import gram, require_gram_memory

RNG = np.random.default_rng(5)
X = RNG.normal(size=(9, 3))

WEIGHTS = {
    "none": None,
    "many": RNG.uniform(0.5, 2.0, 9),
    "few": np.where(np.arange(9) % 4 == 0, 2.0, 0.0),
    "zero": np.zeros(9),
}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda A: A.astype(np.float32)])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_gram(form, weights):
    given, w = form(X), WEIGHTS[weights]
    dense = given.toarray() if sparse.issparse(given) else given.astype(float)
    expected = dense.T @ np.diag(np.ones(9) if w is None else w) @ dense
    found = gram(given, w)
    assert isinstance(found, np.ndarray) and found.dtype == float
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_gram_of_rows():
    w = RNG.uniform(0.5, 2.0, 3)
    for given in (X, sparse.csr_array(X)):
        assert np.allclose(gram(given.T, w), X @ np.diag(w) @ X.T, rtol=1e-13, atol=1e-13)


def test_too_large_says_what_and_what_to_write():
    require_gram_memory(10, 1, "")
    with pytest.raises(
        SolverError, match=r"the Gram matrices of 7 tasks with 10,000,000 features .* take fewer"
    ):
        require_gram_memory(10**7, 7, "take fewer")


def loss(shared, intercept):
    inputs = [X] * 2 if shared else [X, X[:5] + 1.0]
    targets = [RNG.normal(size=len(A)) for A in inputs]
    tasks = mtl.Tasks.shared(X, np.column_stack(targets)) if shared else mtl.Tasks.separate(inputs, targets)
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).form().losses[0], inputs


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("uniform", [True, False])
def test_bordered(shared, intercept, uniform):
    term, inputs = loss(shared, intercept)
    offsets = term.tasks.offsets
    weights = 1.5 if uniform else RNG.uniform(0.5, 2.0, term.tasks.n_samples)
    found = bordered_gram(term, weights)
    assert (found.ndim == 2) == (shared and uniform)
    for i, A in enumerate(inputs):
        w = np.full(len(A), 1.5) if uniform else weights[offsets[i] : offsets[i + 1]]
        B = np.column_stack([A, np.ones(len(A))]) if intercept else A
        expected = B.T @ (B * w[:, None])
        own = found if found.ndim == 2 else found[i]
        assert np.allclose(own, expected, rtol=1e-13, atol=1e-13)
        if intercept:
            inner, means, totals = without_intercept(own)
            mean = np.average(A, axis=0, weights=w)
            assert np.allclose(means, mean) and np.isclose(totals, w.sum())
            assert np.allclose(inner, (A - mean).T @ ((A - mean) * w[:, None]), rtol=1e-12, atol=1e-12)
    V = RNG.normal(size=(found.shape[-1], 2))
    columns = [(found if found.ndim == 2 else found[i]) @ V[:, i] for i in range(2)]
    assert np.allclose(gram_product(found, V), np.column_stack(columns))


def test_layout():
    blocks = (Block("W", (3, 2)), Block("b", (1, 2), "W"), Block("V", (2, 2)))
    layout = Layout(NormalForm(blocks, (), (), "", 0.0))
    x = {block.name: RNG.normal(size=block.shape) for block in blocks}
    flat, stacked = layout.flat(x), layout.stack(x)
    assert layout.has_columns and flat.shape == (layout.size,) and stacked.shape == (layout.depth, 2)
    assert np.array_equal(flat, np.concatenate([x[name].ravel() for name in ("W", "b", "V")]))
    assert np.array_equal(stacked, np.vstack([x["W"], x["V"], x["b"]]))  # the intercept last
    for name, part in x.items():
        assert np.array_equal(layout.blocks(flat)[name], part)
        assert np.array_equal(layout.unstack(stacked)[name], part)
    layout.blocks(flat)["W"][0, 0] = 7.0  # views
    assert flat[0] == 7.0


def test_blocks_of_different_widths_have_no_column_a_task():
    blocks = (Block("U", (3, 2)), Block("V", (2, 5)))
    assert not Layout(NormalForm(blocks, (), (), "", 0.0)).has_columns
