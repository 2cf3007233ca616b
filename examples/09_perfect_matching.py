r"""9. Why sorting learns covariances
=================================

Why learning a covariance is a matching problem, and is solved by sorting.

.. math::

    \min_{\Sigma_1} \; \eta \, \mathrm{tr}(\Sigma_1 M) - \rho m \log |\Sigma_1|
    \quad \mathrm{subject\ to} \quad l I \preceq \Sigma_1 \preceq u I, \qquad M = W \Sigma_2 W^T

This is FETR's step for the feature precision Sigma1, with the weights W (d x m) and the task
precision Sigma2 kept. A solver for semidefinite programs takes it. The paper (Zhao, Stretcu, Smola
and Gordon, UAI 2019, section 4.2) solves it with one eigendecomposition. The argument has seven
steps. This script checks each of them on d = 3 features, where all possibilities can be listed.
Divide by eta, so that one number is left, k = rho m / eta, and write

.. math::

    \Sigma_1 = Q \, \mathrm{diag}(\sigma) \, Q^T, \qquad M = R \, \mathrm{diag}(\nu) \, R^T, \qquad
    P_{ij} = (R^T Q)_{ji}^2

.. math::

    \mathrm{tr}(\Sigma_1 M) - k \log |\Sigma_1| = \sigma^T P \nu - k \sum_i \log \sigma_i

1. P is DOUBLY STOCHASTIC (P >= 0, rows and columns sum to 1), since R'Q is orthonormal. Only P
   knows the eigenvectors, only sigma the rest.
2. THE LINEAR PROGRAM. Allow every doubly stochastic P, not only squares of orthonormal matrices.
   That set is larger, so the minimum can only be lower. But now it is a linear program over a
   polytope (Birkhoff's), and one of its minimisers is a corner.
3. BIRKHOFF AND VON NEUMANN. Every doubly stochastic matrix is a mixture of permutation matrices:
   they are the corners.
4. NOTHING WAS LOST. A permutation matrix is the square of an orthonormal matrix: itself. So the
   larger set has the same minimum.
5. THE MATCHING. A permutation pairs each sigma_i with one nu_j at the price sigma_i nu_j: a perfect
   matching of a bipartite graph.
6. NO CROSSES. Where a larger sigma has the larger nu, exchange the two. The price falls by (sigma_i
   - sigma_j) (nu_i - nu_j). Without crosses only one matching is left: the largest sigma with the
   smallest nu, and so on. (The rearrangement inequality.)
7. EACH BY ITSELF. The minimum over sigma in [l, u] of sigma nu - k log sigma is at clip(k / nu, l,
   u). It falls as nu grows, so this is sorted already.

Sigma2's step is the same with M = W' Sigma1 W and k = rho d / eta.

Run: ``python examples/09_perfect_matching.py`` (picture:
``examples/output/09_perfect_matching.png``)
"""

from itertools import permutations
from pathlib import Path

import cvxpy as cp
import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.stats import ortho_group

from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

rng = np.random.default_rng(9)

# %%
# 1. the case, and its P
# ----------------------

W = np.array([[2.0, 1.0, 2.0, 1.5], [-1.0, 1.5, 0.5, 1.0], [0.5, 0.5, -0.5, 0.0]])
Sigma2 = np.array(
    [[1.0, -0.3, 0.0, 0.0], [-0.3, 1.2, -0.4, 0.0], [0.0, -0.4, 1.0, -0.2], [0.0, 0.0, -0.2, 0.8]]
)
d, m = W.shape
eta, rho, lower, upper = 0.5, 0.75, 1.0, 4.0
k = rho * m / eta

M = W @ Sigma2 @ W.T
nu, R = np.linalg.eigh(M)  # smallest first
sigma = np.array([4.0, 2.0, 1.0])  # largest first: any three numbers within the bounds will do


def objective(Sigma1):
    return np.trace(Sigma1 @ M) - k * np.linalg.slogdet(Sigma1)[1]


def row(values, width=9, digits=3):
    return "".join(f"{value:{width}.{digits}f}" for value in values)


Qs = ortho_group.rvs(d, size=20_000, random_state=9)
Ps = np.swapaxes(R.T @ Qs, 1, 2) ** 2
np.testing.assert_allclose(Ps.sum(axis=1), 1, rtol=1e-12)
np.testing.assert_allclose(Ps.sum(axis=2), 1, rtol=1e-12)
for Q, P in zip(Qs[:500], Ps[:500], strict=True):
    split = sigma @ P @ nu - k * np.sum(np.log(sigma))
    np.testing.assert_allclose(objective((Q * sigma) @ Q.T), split, rtol=1e-10)

print(f"""THE CASE: {d} FEATURES, {m} TASKS, k = {k:g}, {lower:g} I <= Sigma1 <= {upper:g} I

  eigenvalues of M   {row(nu)}
  and for now sigma  {row(sigma)}

1. A RANDOM ORTHONORMAL Q, AND ITS P

              Q                                   P                    sums""")
for q, p in zip(Qs[2], Ps[2], strict=True):
    print(f"  {row(q)}     {row(p)}{p.sum():10.3f}")
print(f"  {'sums':>32}{row(Ps[2].sum(axis=0))}")

# %%
# 2. the linear program, and its dual
# -----------------------------------
#
# The dual is a proof that needs no list: numbers a_i + b_j that are at most sigma_i nu_j for all
# pairs. Any perfect matching costs at least their sum.

orders = list(permutations(range(d)))  # order[i] = j: sigma_i is paired with nu_j
price = {order: float(sigma @ nu[list(order)]) for order in orders}
best, worst = min(price, key=price.get), max(price, key=price.get)
assert best == tuple(range(d))


def matrix_of(order):
    return np.eye(len(order))[list(order)]


A = np.vstack([np.kron(np.eye(d), np.ones(d)), np.kron(np.ones(d), np.eye(d))])  # sums of P are 1
program = linprog(np.outer(sigma, nu).ravel(), A_eq=A, b_eq=np.ones(2 * d), method="highs-ds")
np.testing.assert_allclose(program.x.reshape(d, d), matrix_of(best), atol=1e-9)
potentials = program.eqlin.marginals
left_over = np.outer(sigma, nu) - potentials[:d, None] - potentials[d:]
assert left_over.min() >= -1e-9
np.testing.assert_allclose(potentials.sum(), price[best], rtol=1e-9)
print(f"""
2. THE LINEAR PROGRAM:  min of sigma'P nu over doubly stochastic P      (scipy, simplex)

  minimum {program.fun:.6f}, at a permutation matrix: a corner
  the proof   a = {row(potentials[:d])}     b = {row(potentials[d:] + 0.0)}
  sum of all  {potentials.sum():.6f}""")

# %%
# 3. Birkhoff and von Neumann
# ---------------------------
#
# What is left of a doubly stochastic matrix always has a permutation among its positive entries:
# that is Hall's theorem. Take as much of it as there is. Its smallest entry becomes 0, so at most
# (n - 1)^2 + 1 permutations come.


def mixture_of_permutations(P):
    """[(weight, order)] with sum of weight * matrix = P."""
    rest, parts = P.copy(), []
    while rest.max() > 1e-12:
        _, columns = linear_sum_assignment(rest <= 1e-12)
        entries = rest[np.arange(len(P)), columns]
        assert entries.min() > 1e-12, "no permutation among the positive entries"
        parts.append((float(entries.min()), tuple(columns.tolist())))
        rest[np.arange(len(P)), columns] -= entries.min()
    return parts


def random_doubly_stochastic(n):
    """Sinkhorn: divide rows and columns by their sums in turn, until both are 1."""
    P = rng.gamma(0.7, size=(n, n))
    while np.abs(P.sum(axis=1) - 1).max() > 1e-14:
        P /= P.sum(axis=1, keepdims=True)
        P /= P.sum(axis=0)
    return P


for n in (3, 6):
    for _ in range(20):
        P = random_doubly_stochastic(n)
        parts = mixture_of_permutations(P)
        mixed = sum(weight * matrix_of(order) for weight, order in parts)
        np.testing.assert_allclose(mixed, P, atol=1e-11)
        assert len(parts) <= (n - 1) ** 2 + 1
P = random_doubly_stochastic(d)
parts = mixture_of_permutations(P)
mixed = sum(weight * price[order] for weight, order in parts)
np.testing.assert_allclose(mixed, sigma @ P @ nu, rtol=1e-10)
print("""
3. A RANDOM DOUBLY STOCHASTIC MATRIX IS A MIXTURE OF PERMUTATIONS

     weight     sigma_1, _2, _3 with     price""")
for weight, order in parts:
    names = ", ".join(f"nu_{j + 1}" for j in order)
    print(f"  {weight:9.4f}{names:>25}{price[order]:10.4f}")
print(f"""
  sigma'P nu = {sigma @ P @ nu:.6f} is the same mixture of the prices: a mean is never below the
  smallest, {price[best]:.6f}.""")

# %%
# 4, 5. nothing was lost; the six matchings
# -----------------------------------------
#
# Every corner is reached by an orthonormal matrix: Q = R with its columns permuted.

costs = np.einsum("i,nij,j->n", sigma, Ps, nu)
assert price[best] <= costs.min() and costs.max() <= price[worst]
for order in orders:
    Q = R @ matrix_of(order).T
    np.testing.assert_allclose(np.trace((Q * sigma) @ Q.T @ M), price[order], rtol=1e-12)


def crosses(order):
    """Inverse pairs: i < j (so sigma_i >= sigma_j) where sigma_i has the larger nu."""
    return [(i, j) for j in range(len(order)) for i in range(j) if order[i] > order[j]]


print(f"""
4, 5. THE PRICES OF ALL {len(orders)} PERFECT MATCHINGS, AND OF {len(costs):,} RANDOM Q

  random Q: {costs.min():.4f} to {costs.max():.4f}

  sigma_1, sigma_2, sigma_3 with      crosses       price""")
for order in sorted(orders, key=price.get):
    names = ", ".join(f"nu_{j + 1}" for j in order)
    mark = "   <- largest with smallest" if order == best else ""
    print(f"  {names:>30}{len(crosses(order)):13d}{price[order]:12.4f}{mark}")

# %%
# 6. remove the crosses
# ---------------------


def without_crosses(order):
    """[order, ...]: one cross between neighbours removed each time, until there is none."""
    steps = [tuple(order)]
    while crosses(steps[-1]):
        order = list(steps[-1])
        i = next(i for i in range(len(order) - 1) if order[i] > order[i + 1])
        gain = (sigma[i] - sigma[i + 1]) * (nu[order[i]] - nu[order[i + 1]])
        order[i], order[i + 1] = order[i + 1], order[i]
        np.testing.assert_allclose(price[steps[-1]] - price[tuple(order)], gain, rtol=1e-9)
        assert gain >= 0 and len(crosses(order)) == len(crosses(steps[-1])) - 1
        steps.append(tuple(order))
    return steps


for order in orders:
    assert without_crosses(order)[-1] == best
path_down = without_crosses(worst)
falling_prices = "  ->  ".join(f"{price[order]:.4f}" for order in path_down)
print(f"\n6. REMOVE ONE CROSS AFTER THE OTHER, FROM THE WORST MATCHING\n\n  {falling_prices}")

# %%
# 7. each sigma by itself
# -----------------------


def closed_form(M, k):
    """Algorithm 1 with k = rho m / eta. nu = 0 gives u: nothing holds that sigma back."""
    nu, R = np.linalg.eigh(M)
    ratio = np.divide(k, nu, out=np.full_like(nu, np.inf), where=nu > 1e-12 * nu.max())
    return (R * np.clip(ratio, lower, upper)) @ R.T


Sigma1 = closed_form(M, k)
chosen = np.clip(k / nu, lower, upper)
grid = np.linspace(lower, upper, 300_001)
for v, s in zip(nu, chosen, strict=True):
    on_grid = grid[np.argmin(grid * v - k * np.log(grid))]
    np.testing.assert_allclose(on_grid, s, atol=2 * (grid[1] - grid[0]))
print(f"""
7. EACH SIGMA BY ITSELF:  min of sigma nu - {k:g} log sigma over [{lower:g}, {upper:g}]

  nu        {row(nu)}
  k / nu    {row(k / nu)}
  clipped   {row(chosen)}""")

# %%
# The proof, and two other answers
# --------------------------------
#
# The objective f is convex, with the gradient G = M - k inv(Sigma1) at Sigma1:
#
# .. math::
#
#     f(S) \ge f(\Sigma_1) + \mathrm{tr}(G (S - \Sigma_1)), \qquad
#     \mathrm{tr}(G S) \ge l \, \mathrm{tr}(G_+) - u \, \mathrm{tr}(G_-)
#
# The second holds for all S within the bounds.

G = M - k * np.linalg.inv(Sigma1)
slopes = np.linalg.eigvalsh(G)
in_box = np.sum(np.where(slopes > 0, lower, upper) * slopes)
bound = objective(Sigma1) - np.trace(G @ Sigma1) + in_box
np.testing.assert_allclose(bound, objective(Sigma1), rtol=1e-12)

tries = [objective((Q * rng.uniform(lower, upper, d)) @ Q.T) for Q in Qs[:5000]]
assert min(tries) >= objective(Sigma1)

S = cp.Variable((d, d), symmetric=True)
semidefinite = cp.Problem(
    cp.Minimize(cp.trace(S @ M) - k * cp.log_det(S)),
    [S >> lower * np.eye(d), S << upper * np.eye(d)],
)
semidefinite.solve(solver="CLARABEL")
np.testing.assert_allclose(semidefinite.value, objective(Sigma1), rtol=1e-7)
np.testing.assert_allclose(S.value, Sigma1, atol=1e-4)

structure = MatrixNormal(eta=eta, rho=rho).bound([Range(lower, upper), Range(lower, upper)])
kept = (SpectralMatrix.multiple_of_identity(1.0, d), SpectralMatrix.of(Sigma2))
updated = structure.update_one(0, W, kept)[0].dense()
np.testing.assert_allclose(updated, Sigma1, rtol=1e-12, atol=1e-12)

# the paper's Algorithm 1 clips m / nu, which is k / nu only for eta = rho
assert objective(closed_form(M, m)) > objective(Sigma1) + 0.1
print(f"""
THE ANSWERS                                          objective

  closed form, as above                         {objective(Sigma1):18.10f}
  mtldsl, MatrixNormal.update_one               {objective(updated):18.10f}
  cvxpy, a semidefinite program (Clarabel)      {semidefinite.value:18.10f}
  lowest of {len(tries):,} random feasible Sigma1        {min(tries):18.10f}
  proven lower bound, from the gradient         {bound:18.10f}
  the paper's Algorithm 1, which clips m / nu   {objective(closed_form(M, m)):18.10f}""")

# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    blue, orange, green = "#1f5fa8", "#d9742b", "#3d9a8b"
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    wide, gap = 1.0, 1.9
    for stage, order in enumerate(path_down):
        x = stage * gap
        after = path_down[stage + 1] if stage + 1 < len(path_down) else order
        for i, j in enumerate(order):
            colour = orange if after[i] != j else green if order == best else blue
            axes.plot([x, x + wide], [-i, -j], color=colour, linewidth=2.6, zorder=1)
        for i in range(d):
            for at, label in ((x, f"$\\sigma_{i + 1}$"), (x + wide, f"$\\nu_{i + 1}$")):
                axes.plot(at, -i, "o", color="white", markeredgecolor="black", markersize=19)
                axes.text(at, -i - 0.01, label, ha="center", va="center", fontsize=11, zorder=3)
        words = f"{price[order]:.2f}\n{len(crosses(order))} crossed"
        axes.text(x + wide / 2, -d + 0.1, words, ha="center", fontsize=11)
    axes.set(title="Remove a cross (orange): the price falls", ylim=(-d - 0.05, 0.35))
    axes.axis("off")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "09_perfect_matching.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/09_perfect_matching.py``.
#
# **1.** The matching that costs *most*: with sigma falling and nu rising, as above.


def loss_augmented_map(d):
    """A permutation (the list of the j that sigma_1, ..., sigma_d go with), by the price."""
    ...


@exercise(loss_augmented_map)
def check_dearest(answer):
    draw = np.random.default_rng(0)
    for size in (2, 3, 5):
        falling, rising = np.sort(draw.random(size))[::-1], np.sort(draw.random(size))
        order = list(answer(size))
        assert sorted(order) == list(range(size)), (
            f"{order} is not a permutation of 0 ... {size - 1}"
        )
        top = max(falling @ rising[list(other)] for other in permutations(range(size)))
        assert np.isclose(falling @ rising[order], top), f"size {size}: another costs more"


# %%
# **2.** A proof that sorting is best, for every d, in two lines: numbers a_i + b_j <= sigma_i nu_j
# for all pairs, with equality on the sorted pairs. (Put b_1 = sigma_1 nu_1, and let b_j grow by
# just so much that a_j + b_j and a_(j-1) + b_j can both be allowed.)


def prices(sigma, nu):
    """(a, b) that prove it; sigma falls, nu rises."""
    ...


@exercise(prices)
def check_prices(answer):
    draw = np.random.default_rng(0)
    for size in (2, 3, 8):
        falling, rising = np.sort(draw.random(size))[::-1], np.sort(draw.random(size))
        a_, b_ = answer(falling, rising)
        excess = np.max(np.add.outer(a_, b_) - np.outer(falling, rising))
        assert excess < 1e-12, f"a_i + b_j is above sigma_i nu_j by {excess:.3g}"
        missing = falling @ rising - np.sum(a_) - np.sum(b_)
        assert missing < 1e-12, f"a proof of a smaller number: {missing:.3g} is missing"
