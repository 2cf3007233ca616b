r"""3. Low rank: the trace norm
===========================

Tasks that mix a few hidden patterns: the trace norm and the SVD of W.

.. math::

    \min_W \; \frac{1}{2} \sum_i \|X_i w_i - y_i\|^2 + \lambda \|W\|_*

||W||_* , the trace norm, is the sum of the singular values of W = U diag(sigma) V': U's columns
are patterns over features, V's rows say how much of each pattern a task uses. A sum of absolute
values has a kink at zero (lesson 2), so this one makes *singular values* exactly zero: W = (few
patterns) x (mixtures). No feature drops out; what is shared is a subspace, and the model has to
find it.

THE DUAL BOUND is that of lesson 2 with another dual norm: <V, W> <= lam ||W||_* for all W iff the
largest singular value of V is at most lam. So with u_i = X_i w_i - y_i and G = [X_i'u_i]

.. math::

    D(u) = -\frac{1}{2} \|u\|^2 - \langle u, y \rangle

counts if the largest singular value of G is at most lam. At the solution

.. math::

    -G = \lambda \, (U V^T + Z)

On the patterns in use its singular values are exactly lam, on all others at most lam. The rank of
the answer can be read off the certificate.

Run: ``python examples/03_low_rank.py`` (picture: ``examples/output/03_low_rank.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

N_TASKS, N_FEATURES, RANK = 40, 30, 3
tasks, truth = datasets.make_low_rank(
    n_tasks=N_TASKS, n_samples=90, n_features=N_FEATURES, rank=RANK, noise=2.0, random_state=0
)
rest, test = tasks.split(test_size=1 / 3, random_state=0)
train, validation = rest.split(test_size=0.5, random_state=0)
print(
    f"{train}\nThe true weights have rank {RANK}; with as many rows as features, a "
    f"task alone can learn little.\n"
)

W = mtl.Weights(train)
lam = mtl.Parameter(1.0)
low_rank = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.trace_norm(W))
alone = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.ridge(W))

# %%
# The path
# --------

critical = low_rank.lambda_max(lam)
pull = np.column_stack(
    [X.T @ y for X, y in zip(train.inputs, train.per_task(train.targets), strict=True)]
)
np.testing.assert_allclose(critical, np.linalg.norm(pull, 2), rtol=1e-10)

ratios = np.geomspace(1.0, 0.02, 25)
path = list(low_rank.path(lam, ratios * critical, tol=1e-8))
ridge_path = list(alone.path(lam, np.geomspace(1e3, 1e-1, 25), tol=1e-8))
assert all(s.is_optimal for s in path + ridge_path)
sigma = np.array([np.linalg.svd(s.W, compute_uv=False) for s in path])
# zeros of the solver are exact zeros up to the rounding of an SVD
ranks = np.sum(sigma > 1e-9 * max(sigma.max(), 1.0), axis=1)

print("THE PATH  (each point certified to a relative gap of 1e-8)\n")
print("    lam/lambda_max   rank   R^2 validation   largest singular values")
for k in range(0, len(ratios), 3):
    values = "  ".join(f"{s:6.2f}" for s in sigma[k, : min(ranks[k], 6)]) + (
        " ..." if ranks[k] > 6 else ""
    )
    print(f"    {ratios[k]:14.3f}{ranks[k]:7d}{path[k].score(validation):17.2f}   {values}")

# lam is chosen on validation rows; the test rows are looked at once, for what was chosen
k = int(np.argmax([s.score(validation) for s in path]))
best, best_alone = path[k], max(ridge_path, key=lambda s: s.score(validation))
r2, r2_alone = best.score(test), best_alone.score(test)
print(f"""
  With the lam that is best on validation rows, R^2 on test rows:
    trace norm                {r2:.3f}   at rank {ranks[k]}
    ridge, every task alone   {r2_alone:.3f}""")
assert r2 > r2_alone

# %%
# What was learned
# ----------------

U, s, Vt = np.linalg.svd(best.W)
U_true = np.linalg.svd(truth)[0][:, :RANK]
angles = np.degrees(
    np.arccos(np.clip(np.linalg.svd(U[:, :RANK].T @ U_true, compute_uv=False), 0, 1))
)
print(f"""
THE PATTERNS

  The first {RANK} left singular vectors of W against the true patterns: angles of
  {", ".join(f"{a:.0f}" for a in angles)} degrees (two random {RANK}-dimensional subspaces of
  {N_FEATURES} dimensions: about 75 to 90).""")

# %%
# The certificate
# ---------------

lam.value = best.parameters["lam"]
u = [
    X @ w - y for X, w, y in zip(train.inputs, best.W.T, train.per_task(train.targets), strict=True)
]
G = np.column_stack([X.T @ ui for X, ui in zip(train.inputs, u, strict=True)])
spectrum = np.linalg.svd(G, compute_uv=False)
flat = min(1.0, lam.value / spectrum[0]) * np.concatenate(u)
bound = -0.5 * flat @ flat - flat @ train.targets
print(f"""
THE CERTIFICATE, BY HAND

  singular values of [X_i'u_i] / lam:
    {" ".join(f"{v:.3f}" for v in spectrum[: ranks[k] + 3] / lam.value)} ...
  of them equal to 1: {np.sum(spectrum > (1 - 1e-3) * lam.value)}; the rank of W: {ranks[k]}
  dual bound by hand        {bound:.8f}
  dual bound, certificate   {best.dual_bound:.8f}
  objective                 {best.objective:.8f}
  relative gap              {best.gap:.1e}  ->  {best.status}""")
assert bound <= best.objective

print("\nTHE CROSS-CHECK\n")
check = low_rank.cross_check(best)
print(check)
assert check.agrees


# %%
# The picture
# -----------


def picture(file: Path) -> None:
    import matplotlib.pyplot as plt

    blue, grey, orange = "#1f5fa8", "#b8bec6", "#d9742b"
    ticks = [1, 0.5, 0.2, 0.1, 0.05, 0.02]
    plt.rcParams.update(
        {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")

    left.plot(ratios, sigma[:, RANK:], color=grey, linewidth=1)
    left.plot(ratios, sigma[:, :RANK], color=blue, linewidth=1.8)
    left.plot([], [], color=blue, label=f"the first {RANK}")
    left.plot([], [], color=grey, label="all others")
    for value in np.linalg.svd(truth, compute_uv=False)[:RANK]:
        left.axhline(value, color=blue, linewidth=0.8, linestyle=(0, (1, 3)))
    left.plot([], [], color=blue, linewidth=0.8, linestyle=(0, (1, 3)), label="true values")
    left.set(title="Singular values of W along the path", ylabel=r"$\sigma_k$")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.4))

    right.plot(ratios, [s.score(validation) for s in path], color=blue, linewidth=2)
    top, alone_top = best.score(validation), best_alone.score(validation)
    right.plot(ratios[k], top, "o", color=blue)
    right.annotate(
        f"trace norm, rank {ranks[k]}: {top:.2f}",
        (ratios[k], top),
        xytext=(0, 9),
        textcoords="offset points",
        color=blue,
        ha="center",
        fontweight="bold",
    )
    right.axhline(alone_top, color=orange, linewidth=1.5)
    right.annotate(
        f"best ridge, every task alone: {alone_top:.2f}",
        (ratios[-1], alone_top),
        xytext=(0, -14),
        textcoords="offset points",
        color=orange,
        ha="right",
        fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
    right.set(title="Mean $R^2$ on validation rows: where $\\lambda$ is chosen", ylabel="$R^2$")
    right.set_ylim(-0.02, 1.15 * top)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set_xlabel(r"$\lambda\,/\,\lambda_{\max}$")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    left.axvline(ratios[k], color=blue, linewidth=0.9, linestyle=":")
    right.vlines(ratios[k], -0.02, top, color=blue, linewidth=0.9, linestyle=":")
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=150)
    print(f"\nPicture: {file}")


try:
    picture(OUTPUT / "03_low_rank.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/03_low_rank.py``.
#
# **1.** The proximal step of the trace norm: the M that minimises
#
# .. math::
#
#     \frac{1}{2} \|M - A\|_F^2 + \mathrm{step} \, \|M\|_*
#
# Both terms are the same for A and for U'A V with orthonormal U, V. So which A is enough?


def prox_of_trace_norm(A, step):
    """argmin over M of 1/2 ||M - A||_F^2 + step ||M||_*."""
    ...


@exercise(prox_of_trace_norm)
def check_prox_of_trace_norm(answer):
    draw = np.random.default_rng(0)
    A = draw.normal(size=(5, 4))
    M = answer(A, 1.0)

    def value(M):
        return 0.5 * np.sum((M - A) ** 2) + np.linalg.norm(M, "nuc")

    for size in (1e-3, 1e-2, 0.1):
        for _ in range(200):
            other = M + size * draw.normal(size=M.shape)
            assert value(other) >= value(M) - 1e-12, "a point nearby is lower than yours"


# %%
# **2.** The dual norm: the largest <G, W> over all W with ||W||_* = 1.


def dual_norm(G):
    """max of <G, W> over ||W||_* <= 1."""
    ...


@exercise(dual_norm)
def check_dual_norm(answer):
    draw = np.random.default_rng(0)
    G = draw.normal(size=(6, 4))
    left, _, right = np.linalg.svd(G)
    tries = [np.outer(draw.normal(size=6), draw.normal(size=4)) for _ in range(300)]
    tries.append(np.outer(left[:, 0], right[0]))
    products = [np.sum(G * M) / np.linalg.norm(M, "nuc") for M in tries]
    assert answer(G) >= max(products) - 1e-12, "there is a W with a larger product"
    assert answer(G) <= max(products) + 1e-9, "no W reaches that product"


# %%
# **3.** The rank of a solution, read off its certificate without looking at W.


def rank_from(spectrum, lam):
    """The rank of W, from the singular values of [X_i'u_i] at a solution."""
    ...


@exercise(rank_from)
def check_rank_from(answer):
    for k in (3, 9, 12):
        data = zip(train.inputs, path[k].W.T, train.per_task(train.targets), strict=True)
        G = np.column_stack([X.T @ (X @ w - y) for X, w, y in data])
        said = answer(np.linalg.svd(G, compute_uv=False), path[k].parameters["lam"])
        assert said == ranks[k], (
            f"at lam = {ratios[k]:.3f} lambda_max you say {said}, and the rank is {ranks[k]}. "
            "(A solver ends near the optimum: what is lam there is lam to a few digits here.)"
        )
