"""String kernels against counting words one by one; in tasks, estimators and saved solutions."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import DataError
from mtldsl.datasets import encode_sequences, spectrum_kernel, weighted_degree_kernel
from tests.loops import for_each

RNG = np.random.default_rng(0)
TEXTS = [
    "".join(RNG.choice(list("ACGTN"), size=n, p=[0.3, 0.2, 0.2, 0.25, 0.05])) for n in (9, 12, 12, 5, 2, 12)
]
OTHERS = ["".join(RNG.choice(list("ACGT"), size=12)) for _ in range(4)]


def words(text, k):
    return [text[i : i + k] for i in range(len(text) - k + 1) if "N" not in text[i : i + k]]


def spectrum(x, y, k):
    return float(sum(words(y, k).count(word) for word in words(x, k)))


def weighted_degree(x, y, D):
    total = 0.0
    for k in range(1, D + 1):
        beta = 2.0 * (D - k + 1) / (D * (D + 1))
        for i in range(min(len(x), len(y)) - k + 1):
            same = x[i : i + k] == y[i : i + k] and "N" not in x[i : i + k]
            total += beta * same
    return total


KERNELS = {
    "spectrum": (spectrum_kernel, spectrum, "k"),
    "weighted_degree": (weighted_degree_kernel, weighted_degree, "degree"),
}


@for_each("size", [1, 2, 3, 6])
@for_each("name", KERNELS)
def test_words_counted_one_by_one(name, size):
    kernel, by_hand, option = KERNELS[name]
    A, B = encode_sequences(TEXTS), encode_sequences(OTHERS)
    expected = np.array([[by_hand(x, y, size) for y in OTHERS] for x in TEXTS])
    found = kernel(A, B, **{option: size}, normalize=False)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    own = [np.array([by_hand(x, x, size) for x in texts]) for texts in (TEXTS, OTHERS)]
    scale = np.sqrt(np.outer(*own))
    np.testing.assert_allclose(
        kernel(A, B, **{option: size}),
        np.where(scale > 0, expected / np.where(scale > 0, scale, 1), 0),
        atol=1e-12,
    )
    np.testing.assert_allclose(kernel(B, A, **{option: size}), kernel(A, B, **{option: size}).T, atol=1e-15)


def motif(n=120, seed=0):
    """Sequences of 12 letters, half of them with GTA at place 4; two tasks, whose labels the motif says."""
    rng = np.random.default_rng(seed)
    letters = rng.choice(list("ACGT"), size=(n, 12))
    there = rng.random(n) < 0.5
    letters[np.ix_(np.flatnonzero(there), [4, 5, 6])] = list("GTA")
    codes = encode_sequences(["".join(row) for row in letters])
    return codes, np.where(there[:, None], 1.0, -1.0) * np.ones((1, 2))


def test_tasks_with_string_kernels_are_solved_and_saved(tmp_path):
    codes, Y = motif()
    tasks = mtl.Tasks.shared(codes, Y).with_kernels(
        {"places": ("weighted_degree", {"degree": 3}), "words": ("spectrum", {"k": 3, "normalize": True})}
    )
    # features are of the kernels: their inner products on the training rows
    for name, K in (
        ("places", weighted_degree_kernel(codes, codes, degree=3)),
        ("words", spectrum_kernel(codes, codes, k=3)),
    ):
        phi = np.asarray(tasks.X)[:, tasks.views[name]]
        np.testing.assert_allclose(phi @ phi.T, K, atol=1e-7)
    W = mtl.Weights(tasks)
    similarities = [
        make(columns=name)
        for name in tasks.views
        for make in (mtl.similarities.union, mtl.similarities.identity)
    ]
    solution = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.mkl_norm(W, similarities, p=1.5)).solve()
    assert solution.status == "optimal"
    new, expected = motif(seed=1)
    assert np.mean(solution.predict(new) == expected) > 0.95
    again = mtl.Solution.load(solution.save(tmp_path / "sites.npz"))
    np.testing.assert_array_equal(again.predict(new), solution.predict(new))


TASKS = mtl.Tasks.shared([[0.0], [1.0]], [[1.0], [-1.0]])
TYPED = "kernel 'spectrum(width=3)': the spectrum kernel says"


@for_each(
    "call, pieces",
    [
        (lambda: encode_sequences("ACGT"), ["not a list of texts", "['ACGT', 'GGA']"]),
        (lambda: encode_sequences(["ACGT", "AXG"]), ["sequence 1 has 'X' at place 1", "unknown='NX'"]),
        (lambda: encode_sequences(["A"], "AA"), ["alphabet='AA'", "each letter once"]),
        (lambda: spectrum_kernel([[0.5]], [[0.0]]), ["row 0, column 0 holds 0.5", "not standardised"]),
        (lambda: spectrum_kernel([[np.nan]], [[0.0]]), ["row 0, column 0 holds nan"]),
        (lambda: spectrum_kernel([[0.0]], [[0.0]], k=0), ["k=0", "at least 1"]),
        (lambda: weighted_degree_kernel([[0.0]], [[0.0]], degree=1.5), ["degree=1.5"]),
        (lambda: weighted_degree_kernel([0.0], [[0.0]]), ["shape (1,)", "(n, L)"]),
        (lambda: TASKS.with_kernels(("spectrum", {"width": 3})), [TYPED, "width"]),
    ],
)
def test_refusals(call, pieces):
    with pytest.raises(DataError) as error:
        call()
    assert all(piece in str(error.value) for piece in pieces), error.value
