"""9. Why sorting learns covariances
=================================

Why learning a covariance is a matching problem, and is solved by sorting.

::

    minimize over Sigma1 (d x d)    eta tr(Sigma1 M)  -  rho m log|Sigma1|,    M = W Sigma2 W'
    subject to                      l I <= Sigma1 <= u I

This is FETR's step for the feature precision Sigma1, with the weights W (d x m) and the task
precision Sigma2 kept. A solver for semidefinite programs takes it; the paper (Zhao, Stretcu,
Smola and Gordon, UAI 2019, section 4.2) solves it with one eigendecomposition. The argument has
seven steps, and this script checks each of them on d = 3 features, where there are so few
possibilities that all of them can be listed. Divide by eta, so that one number k = rho m / eta is
left, and write

::

    Sigma1 = Q diag(sigma) Q',    M = R diag(nu) R',    P_ij = (R'Q)_ji ^ 2:
    tr(Sigma1 M) - k log|Sigma1|  =  sigma'P nu - k sum_i log sigma_i

1. P is DOUBLY STOCHASTIC (P >= 0, rows and columns sum to 1), since R'Q is orthonormal. Only P
   knows the eigenvectors, only sigma the rest.
2. THE LINEAR PROGRAM. Allow every doubly stochastic P, not only squares of orthonormal
   matrices. That set is larger, so the minimum can only be lower; but now it is a linear
   program over a polytope (Birkhoff's), and one of its minimisers is a corner.
3. BIRKHOFF AND VON NEUMANN. Every doubly stochastic matrix is a mixture of permutation
   matrices: they are the corners.
4. NOTHING WAS LOST. A permutation matrix is the square of an orthonormal matrix: itself. So the
   larger set has the same minimum.
5. THE MATCHING. A permutation pairs each sigma_i with one nu_j at the price sigma_i nu_j: a
   perfect matching of a bipartite graph.
6. NO CROSSES. Where a larger sigma has the larger nu, exchange the two: sigma_i nu_j + sigma_j
   nu_i falls by (sigma_i - sigma_j) (nu_i - nu_j). Without crosses only one matching is left:
   the largest sigma with the smallest nu, and so on. (The rearrangement inequality.)
7. EACH BY ITSELF. min over sigma of sigma nu - k log sigma in [l, u] is clip(k / nu, l, u); k /
   nu falls as nu grows, so this is sorted already.

Sigma2's step is the same with M = W' Sigma1 W and k = rho d / eta.

Run: ``python examples/09_perfect_matching.py`` (picture:
``examples/output/09_perfect_matching.png``)
"""

from itertools import permutations, product
from pathlib import Path
from time import perf_counter

import cvxpy as cp
import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.stats import ortho_group

from mtldsl.atoms.structures import MatrixNormal, Range, SpectralMatrix
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

rng = np.random.default_rng(9)

# %%
# The case, and its P
# -------------------

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


def objective(Sigma1, k=k, M=M):
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

print(f"""THE CASE: {d} FEATURES, {m} TASKS, eta = {eta}, rho = {rho}
SO k = rho m / eta = {k:g};  {lower:g} I <= Sigma1 <= {upper:g} I

      M = W Sigma2 W'                       its eigenvalues nu
  {row(M[0])}       {row(nu)}
  {row(M[1])}
  {row(M[2])}                 and for now sigma = {", ".join(f"{s:g}" for s in sigma)}

1. A RANDOM ORTHONORMAL Q, AND ITS P

              Q                                   P                    sums""")
for q, p in zip(Qs[2], Ps[2], strict=True):
    print(f"  {row(q)}     {row(p)}{p.sum():10.3f}")
print(f"  {'sums':>32}{row(Ps[2].sum(axis=0))}")
trace = np.trace((Qs[2] * sigma) @ Qs[2].T @ M)
print(f"""
  tr(Sigma1 M) = {trace:.6f}     sigma'P nu = {sigma @ Ps[2] @ nu:.6f}
  (equal for all of 500 random ones)""")

# %%
# 2, 3. the polytope and its corners
# ----------------------------------

orders = list(permutations(range(d)))  # order[i] = j: sigma_i is paired with nu_j
price = {order: float(sigma @ nu[list(order)]) for order in orders}
best, worst = min(price, key=price.get), max(price, key=price.get)
assert best == tuple(range(d))


def matrix_of(order):
    return np.eye(len(order))[list(order)]


def equalities(n):
    """A, b with A vec(P) = b: rows and columns of P sum to 1."""
    return np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))]), np.ones(
        2 * n
    )


A, b = equalities(d)
for price_matrix in [np.outer(sigma, nu), *rng.normal(size=(100, d, d))]:
    program = linprog(price_matrix.ravel(), A_eq=A, b_eq=b, bounds=(0, None), method="highs-ds")
    P, enumerated = (
        program.x.reshape(d, d),
        min(np.sum(price_matrix * matrix_of(order)) for order in orders),
    )
    np.testing.assert_allclose(program.fun, enumerated, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(P, matrix_of(P.argmax(axis=1)), atol=1e-9)
program = linprog(np.outer(sigma, nu).ravel(), A_eq=A, b_eq=b, bounds=(0, None), method="highs-ds")
potentials = program.eqlin.marginals
left_over = np.outer(sigma, nu) - potentials[:d, None] - potentials[d:]
assert left_over.min() >= -1e-9
np.testing.assert_allclose(potentials.sum(), price[best], rtol=1e-9)

print("""
2. THE LINEAR PROGRAM:  min of sigma'P nu over doubly stochastic P      (scipy, simplex)

           P                          price of a pair, sigma_i nu_j""")
for p, line in zip(program.x.reshape(d, d), np.outer(sigma, nu), strict=True):
    print(f"  {row(np.abs(p), 6, 0)}       {row(line)}")
print(f"""
  minimum {program.fun:.6f}. With 100 random price matrices too, the solution is a permutation
  matrix: a corner. Its dual is a proof that needs no list: numbers a_i + b_j <= sigma_i nu_j for
  all pairs, so any perfect matching costs at least their sum.

      a =  {row(potentials[:d])}     b =  {row(potentials[d:] + 0.0)}
      sum = {potentials.sum():.6f}""")


def mixture_of_permutations(P):
    """[(weight, order)] with sum of weight * matrix = P.

    Hall's theorem: what is left always has a permutation among its positive entries; its smallest
    entry becomes 0, so there are at most (n - 1)^2 + 1 of them.
    """
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
    for _ in range(10_000):
        P /= P.sum(axis=1, keepdims=True)
        P /= P.sum(axis=0)
        if np.abs(P.sum(axis=1) - 1).max() < 1e-15:
            break
    return P


for n in (3, 6):
    for _ in range(100):
        P = random_doubly_stochastic(n)
        parts = mixture_of_permutations(P)
        np.testing.assert_allclose(
            sum(weight * matrix_of(order) for weight, order in parts), P, atol=1e-11
        )
        assert len(parts) <= (n - 1) ** 2 + 1
P = random_doubly_stochastic(d)
parts = mixture_of_permutations(P)
mixed = sum(weight * price[order] for weight, order in parts)
np.testing.assert_allclose(mixed, sigma @ P @ nu, rtol=1e-10)

print("""
3. A RANDOM DOUBLY STOCHASTIC MATRIX IS A MIXTURE OF PERMUTATIONS

             P                      weight     sigma_1, _2, _3 with     price""")
for i in range(max(d, len(parts))):
    left = row(P[i]) if i < d else " " * 9 * d
    right = (
        f"{parts[i][0]:9.4f}     "
        f"{'nu_' + ', nu_'.join(str(j + 1) for j in parts[i][1]):>20}{price[parts[i][1]]:10.4f}"
        if i < len(parts)
        else ""
    )
    print(f"  {left}    {right}")
print(f"""
  sigma'P nu = {sigma @ P @ nu:.6f} is the same mixture of the prices, {mixed:.6f}: a mean is
  never below the smallest, {price[best]:.6f}. 200 others, of 3 x 3 and 6 x 6, came apart into at
  most (n - 1)^2 + 1 permutations each.""")

# %%
# 4. nothing was lost; the six matchings
# --------------------------------------

hollow = (np.ones((d, d)) - np.eye(d)) / 2
off = [
    np.abs((root := np.sqrt(hollow) * np.reshape(signs, (d, d))).T @ root - np.eye(d)).max()
    for signs in product([1.0, -1.0], repeat=d * d)
]
assert min(off) > 0.49
costs = np.einsum("i,nij,j->n", sigma, Ps, nu)
assert price[best] <= costs.min() and costs.max() <= price[worst]
for order in orders:
    Q = R @ matrix_of(order).T
    np.testing.assert_allclose(np.trace((Q * sigma) @ Q.T @ M), price[order], rtol=1e-12)

print(f"""
4. WAS ANYTHING LOST?

  The matrix with 0 on the diagonal and 1/2 elsewhere is doubly stochastic, but not the square of
  an orthonormal one: with any of the {2 ** (d * d)} choices of signs its columns stay
  {min(off):.2f} away from orthogonal. So the linear program searches a larger set. But every corner
  is in the smaller one too (Q = R with its columns permuted), so both have the same minimum.

  price of {len(costs):,} random orthonormal Q:      {costs.min():.4f} to {costs.max():.4f}
  price of the {len(orders)} permutations:                {price[best]:.4f} to {price[worst]:.4f}

5. THE {len(orders)} PERFECT MATCHINGS

  sigma_1, sigma_2, sigma_3 with      crosses       price""")


def crosses(order):
    """Inverse pairs: i < j (so sigma_i >= sigma_j) where sigma_i has the larger nu."""
    return [
        (i, j) for i in range(len(order)) for j in range(i + 1, len(order)) if order[i] > order[j]
    ]


for order in sorted(orders, key=price.get):
    names = ", ".join(f"nu_{j + 1}" for j in order)
    mark = "   <- largest with smallest" if order == best else ""
    print(f"  {names:>30}{len(crosses(order)):13d}{price[order]:12.4f}{mark}")
_, assigned = linear_sum_assignment(np.outer(sigma, nu))
assert tuple(assigned.tolist()) == best

# %%
# 6. remove the crosses
# ---------------------


def without_crosses(order, sigma, nu):
    """[order, ...]: one cross between neighbours removed a time, until there is none."""
    steps = [tuple(order)]
    while crosses(steps[-1]):
        order = list(steps[-1])
        i = next(i for i in range(len(order) - 1) if order[i] > order[i + 1])
        gain = (sigma[i] - sigma[i + 1]) * (nu[order[i]] - nu[order[i + 1]])
        before = sigma @ nu[order]
        order[i], order[i + 1] = order[i + 1], order[i]
        np.testing.assert_allclose(before - sigma @ nu[order], gain, rtol=1e-9, atol=1e-12)
        assert gain >= 0 and len(crosses(order)) == len(crosses(steps[-1])) - 1
        steps.append(tuple(order))
    return steps


path_down = without_crosses(worst, sigma, nu)
print("\n6. REMOVE ONE CROSS AFTER THE OTHER, FROM THE WORST MATCHING\n")
for before, after in zip(path_down, [*path_down[1:], None], strict=True):
    if after is None:
        print(f"  {price[before]:9.4f}     no cross is left")
        break
    i, j = [i for i in range(d) if before[i] != after[i]]
    print(
        f"  {price[before]:9.4f}     exchange the partners of sigma_{i + 1} and sigma_{j + 1}:  "
        f"({sigma[i]:g} - {sigma[j]:g}) (nu_{before[i] + 1} - nu_{before[j] + 1}) = "
        f"{price[before] - price[after]:.4f} less"
    )
for order in orders:
    assert without_crosses(order, sigma, nu)[-1] == best
n = 7
sigma7, nu7 = np.sort(rng.gamma(2.0, size=n))[::-1], np.sort(rng.gamma(2.0, size=n))
prices7 = np.array([sigma7 @ nu7[list(order)] for order in permutations(range(n))])
np.testing.assert_allclose(prices7.min(), sigma7 @ nu7, rtol=1e-12)
for _ in range(200):
    start = tuple(rng.permutation(n).tolist())
    steps = without_crosses(start, sigma7, nu7)
    assert steps[-1] == tuple(range(n)) and len(steps) - 1 == len(crosses(start))
print(f"""
  Also from the other {len(orders) - 1}. Among all {len(prices7):,} matchings of {n} with {n}:
  smallest {prices7.min():.6f}, sorted {sigma7 @ nu7:.6f}; from 200 random matchings the last step
  is the sorted one, after as many exchanges as there were crosses.""")

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
print(f"""
7. EACH SIGMA BY ITSELF:  min of sigma nu - {k:g} log sigma over [{lower:g}, {upper:g}]

        nu      k / nu     clipped     on a grid""")
for v, s in zip(nu, chosen, strict=True):
    on_grid = grid[np.argmin(grid * v - k * np.log(grid))]
    print(f"  {v:8.4f}{k / v:12.4f}{s:12.4f}{on_grid:14.4f}")
    np.testing.assert_allclose(on_grid, s, atol=2 * (grid[1] - grid[0]))

# %%
# The proof, and three other answers
# ----------------------------------
#
# The objective is convex: f(S) >= f(Sigma1) + tr(G (S - Sigma1)), and over the box tr(G S) >= l
# tr(G+) - u tr(G-).
G = M - k * np.linalg.inv(Sigma1)
slopes = np.linalg.eigvalsh(G)
bound = (
    objective(Sigma1) - np.trace(G @ Sigma1) + np.sum(np.where(slopes > 0, lower, upper) * slopes)
)
np.testing.assert_allclose(bound, objective(Sigma1), rtol=1e-12)

tries = [objective((Q * rng.uniform(lower, upper, d)) @ Q.T) for Q in Qs]
assert min(tries) >= objective(Sigma1)


def by_cvxpy(M):
    """(Sigma1, objective) by an interior-point method for semidefinite programs."""
    S = cp.Variable((d, d), symmetric=True)
    bounds = [S >> lower * np.eye(d), S << upper * np.eye(d)]
    problem = cp.Problem(cp.Minimize(cp.trace(S @ M) - k * cp.log_det(S)), bounds)
    problem.solve(solver="CLARABEL")
    return S.value, problem.value


from_sdp, sdp_value = by_cvxpy(M)
np.testing.assert_allclose(sdp_value, objective(Sigma1), rtol=1e-7)
np.testing.assert_allclose(from_sdp, Sigma1, atol=1e-4)

structure = MatrixNormal(eta=eta, rho=rho).bound([Range(lower, upper), Range(lower, upper)])
kept = (SpectralMatrix.multiple_of_identity(1.0, d), SpectralMatrix.of(Sigma2))
updated = structure.update_one(0, W, kept)[0].dense()
np.testing.assert_allclose(updated, Sigma1, rtol=1e-12, atol=1e-12)


def seconds(call, repeats):
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


us = {
    "ours": 1e6 * seconds(lambda: closed_form(M, k), 50),
    "mtldsl": 1e6 * seconds(lambda: structure.update_one(0, W, kept), 50),
    "cvxpy": 1e6 * seconds(lambda: by_cvxpy(M), 5),
}
print(f"""
THE ANSWERS                                          objective          time

  closed form, as above                         {objective(Sigma1):18.10f}{us["ours"]:11.0f} us
  mtldsl, MatrixNormal.update_one               {objective(updated):18.10f}{us["mtldsl"]:11.0f} us
  cvxpy, a semidefinite program (Clarabel)      {sdp_value:18.10f}{us["cvxpy"]:11.0f} us
  lowest of {len(tries):,} random feasible Sigma1       {min(tries):18.10f}
  proven lower bound, from the gradient         {bound:18.10f}     (no solver asked)""")

# %%
# The errata
# ----------

as_printed = closed_form(M, m)
assert objective(as_printed) > objective(Sigma1) + 0.1
W_low = np.vstack([W[0], W[1], W[0] - W[1]])
M_low = W_low @ Sigma2 @ W_low.T
nu_low = np.linalg.eigvalsh(M_low)
Sigma_low = closed_form(M_low, k)
updated_low = structure.update_one(0, W_low, kept)[0]
np.testing.assert_allclose(updated_low.dense(), Sigma_low, rtol=1e-10, atol=1e-10)
sdp_value_low = by_cvxpy(M_low)[1]
np.testing.assert_allclose(sdp_value_low, objective(Sigma_low, M=M_low), rtol=1e-7)
np.testing.assert_allclose(updated_low.eigenvalues()[-1], upper, rtol=1e-12)
alike = MatrixNormal(eta=0.7, rho=0.7).bound([Range(lower, upper), Range(lower, upper)])
np.testing.assert_allclose(
    alike.update_one(0, W, kept)[0].dense(), as_printed, rtol=1e-12, atol=1e-12
)

print(f"""
TWO CORRECTIONS TO THE PAPER'S ALGORITHM 1

  It clips m / nu, which is k / nu only for eta = rho. Here that is
      {row(np.clip(m / nu, lower, upper))}
  instead of
      {row(chosen)}
  and {objective(as_printed) - objective(Sigma1):.4f} above the minimum. (For eta = rho = 0.7,
  mtldsl's update is the printed one.)

  It does not say what nu = 0 gives: there sigma nu - k log sigma only falls, so u. With a W of
  rank 2: nu ={row(np.abs(nu_low))} and sigma ={row(updated_low.eigenvalues()[::-1])}; the
  semidefinite program agrees: {sdp_value_low:.6f} and {objective(Sigma_low, M=M_low):.6f}.
  Without an upper bound there would be no minimum at all: that is why the model needs one, and
  mtldsl asks for it.""")


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    blue, grey, orange, green = "#1f5fa8", "#d3d7dc", "#d9742b", "#3d9a8b"
    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
        }
    )
    figure, (left, middle, right) = plt.subplots(
        1,
        3,
        figsize=(15, 4.4),
        layout="constrained",
        width_ratios=[1, 1.35, 1],
        gridspec_kw={"wspace": 0.06},
    )

    counts, _, _ = left.hist(costs, bins=60, color=grey)
    top = counts.max()
    for order in orders:
        colour = green if order == best else blue
        left.plot(
            [price[order]] * 2, [0, 1.06 * top], color=colour, linewidth=2 if order == best else 1.2
        )
        left.text(
            price[order],
            1.09 * top,
            "".join(str(j + 1) for j in order),
            color=colour,
            ha="center",
            va="bottom",
            fontsize=9,
            rotation=90,
            weight="bold" if order == best else "normal",
        )
    left.set(
        title=f"{len(costs):,} orthonormal matrices, {len(orders)} permutations",
        yticks=[],
        xlabel="price $\\sigma^\\top P\\,\\nu$   (213: $\\sigma_1$ with $\\nu_2$, $\\sigma_2$ "
        "with $\\nu_1$, $\\sigma_3$ with $\\nu_3$)",
        ylim=(0, 1.2 * top),
    )
    left.spines["left"].set_visible(False)

    wide, gap = 1.0, 1.9
    for stage, order in enumerate(path_down):
        x = stage * gap
        after = path_down[stage + 1] if stage + 1 < len(path_down) else order
        for i, j in enumerate(order):
            colour = orange if after[i] != j else green if order == best else blue
            middle.plot([x, x + wide], [-i, -j], color=colour, linewidth=2.6, zorder=1)
        for i in range(d):
            for at, label in ((x, f"$\\sigma_{i + 1}$"), (x + wide, f"$\\nu_{i + 1}$")):
                middle.plot(
                    at, -i, "o", color="white", markeredgecolor="black", markersize=19, zorder=2
                )
                middle.text(at, -i - 0.01, label, ha="center", va="center", fontsize=11, zorder=3)
        n_crosses = len(crosses(order))
        words = f"{n_crosses} cross{'es' * (n_crosses != 1)}" if n_crosses else "no cross"
        middle.text(
            x + wide / 2, -d + 0.38, f"{price[order]:.2f}", ha="center", fontsize=11, weight="bold"
        )
        middle.text(x + wide / 2, -d + 0.12, words, ha="center", fontsize=9)
        if order != best:
            middle.annotate(
                "",
                (x + gap - 0.25, -1),
                (x + wide + 0.25, -1),
                arrowprops={"arrowstyle": "->", "color": "#666666"},
            )
    middle.set(
        title="Remove a cross (orange): the price falls",
        xlim=(-0.3, gap * len(path_down) - gap + wide + 0.3),
        ylim=(-d - 0.05, 0.35),
    )
    middle.axis("off")

    line = np.geomspace(0.3, 11, 400)
    for v, s, colour in zip(nu, chosen, (green, blue, orange), strict=True):

        def above(x, v=v):
            return x * v - k * np.log(x) - (k - k * np.log(k / v))

        right.plot(line, above(line), color=colour, linewidth=1.8)
        right.plot(k / v, 0, "o", color="white", markeredgecolor=colour, markersize=7, zorder=3)
        right.plot(
            s, above(s), "o", color=colour, markersize=7, zorder=4, label=f"$\\nu$ = {v:.2f}"
        )
    right.axvspan(lower, upper, color=grey, alpha=0.45, linewidth=0)
    right.set(
        title="Each $\\sigma$ by itself: clip($k/\\nu$, $l$, $u$)",
        xscale="log",
        xlim=(line[0], line[-1]),
        ylim=(-0.3, 6),
        xlabel="$\\sigma$   (shaded: $l$ to $u$;  open: without the bounds)",
        ylabel="$\\sigma\\nu - k\\,\\log\\sigma$, above its minimum",
    )
    right.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    right.minorticks_off()
    right.legend(frameon=False, loc="upper left", fontsize=9)
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


def dearest(d):
    """A permutation (the list of the j that sigma_1, ..., sigma_d go with), by the price."""
    ...


@exercise(dearest)
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
