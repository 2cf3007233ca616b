"""3. Tasks that mix a few hidden patterns: the trace norm, the SVD of W, and its singular values along a path.

    minimize over W (d x m)    1/2 sum over tasks ||X_i w_i - y_i||^2  +  lam ||W||_*

||W||_* , the trace norm, is the sum of the singular values of W = U diag(sigma) V': U's columns are patterns over features, V's rows say
how much of each pattern a task uses. A sum of absolute values has a kink at zero (lesson 2), so this one makes *singular values* exactly
zero: W = (few patterns) x (mixtures). No feature drops out; what is shared is a subspace, and the model has to find it.

THE DUAL BOUND is that of lesson 2 with another dual norm: <V, W> <= lam ||W||_* for all W iff the largest singular value of V is at most
lam. So with u_i = X_i w_i - y_i and G = [X_i'u_i]:  D(u) = -1/2 ||u||^2 - <u, y> counts if the largest singular value of G is at most lam.
At the solution, -G = lam (U V' + Z): on the patterns in use its singular values are exactly lam, on all others at most lam. The rank of the
answer can be read off the certificate.

Run:  python examples/03_low_rank.py        (picture: examples/output/03_low_rank.png)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl import datasets

N_TASKS, N_FEATURES, RANK = 40, 30, 3
tasks, truth = datasets.make_low_rank(
    n_tasks=N_TASKS, n_samples=60, n_features=N_FEATURES, rank=RANK, noise=2.0, random_state=0
)
train, test = tasks.split(test_size=0.5, random_state=0)
print(
    f"{train}\nThe true weights have rank {RANK}; with as many rows as features, a task alone can learn little.\n"
)

W = mtl.Weights(train)
lam = mtl.Parameter(1.0)
low_rank = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.trace_norm(W))
alone = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.ridge(W))

# -------------------------------------------------------------------------------------------------------------- the path

critical = low_rank.lambda_max(lam)
pull = np.column_stack([X.T @ y for X, y in zip(train.inputs, train.per_task(train.targets), strict=True)])
np.testing.assert_allclose(critical, np.linalg.norm(pull, 2), rtol=1e-10)

ratios = np.geomspace(1.0, 0.02, 25)
path = list(low_rank.path(lam, ratios * critical, tol=1e-8))
ridge_path = list(alone.path(lam, np.geomspace(1e3, 1e-1, 25), tol=1e-8))
assert all(s.is_optimal for s in path + ridge_path)
sigma = np.array([np.linalg.svd(s.W, compute_uv=False) for s in path])
# zeros of the solver are exact zeros up to the rounding of an SVD
ranks = np.sum(sigma > 1e-9 * max(sigma.max(), 1.0), axis=1)

print("THE PATH  (each point certified to a relative gap of 1e-8)\n")
print("    lam/lambda_max   rank   R^2 held out   largest singular values")
for k in range(0, len(ratios), 3):
    values = "  ".join(f"{s:6.2f}" for s in sigma[k, : min(ranks[k], 6)]) + (" ..." if ranks[k] > 6 else "")
    print(f"    {ratios[k]:14.3f}{ranks[k]:7d}{path[k].score(test):15.2f}   {values}")

k = int(np.argmax([s.score(test) for s in path]))
best, best_alone = path[k], max(ridge_path, key=lambda s: s.score(test))
print(f"""
  Best on held-out rows:  trace norm R^2 = {best.score(test):.3f} at rank {ranks[k]},  every task alone (ridge) R^2 = {best_alone.score(test):.3f}.""")

# ------------------------------------------------------------------------------------------------------ what was learned

U, s, Vt = np.linalg.svd(best.W)
U_true = np.linalg.svd(truth)[0][:, :RANK]
angles = np.degrees(np.arccos(np.clip(np.linalg.svd(U[:, :RANK].T @ U_true, compute_uv=False), 0, 1)))
print(f"""
THE PATTERNS

  The first {RANK} left singular vectors of W against the true patterns: angles of {", ".join(f"{a:.0f}" for a in angles)} degrees
  (two random {RANK}-dimensional subspaces of {N_FEATURES} dimensions: about 75 to 90).""")

# ------------------------------------------------------------------------------------------------------- the certificate

lam.value = best.parameters["lam"]
u = [X @ w - y for X, w, y in zip(train.inputs, best.W.T, train.per_task(train.targets), strict=True)]
G = np.column_stack([X.T @ ui for X, ui in zip(train.inputs, u, strict=True)])
spectrum = np.linalg.svd(G, compute_uv=False)
flat = min(1.0, lam.value / spectrum[0]) * np.concatenate(u)
bound = -0.5 * flat @ flat - flat @ train.targets
print(f"""
THE CERTIFICATE, BY HAND

  singular values of [X_i'u_i] / lam:  {" ".join(f"{v:.3f}" for v in spectrum[: ranks[k] + 3] / lam.value)} ...
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


# ----------------------------------------------------------------------------------------------------------- the picture


def picture(file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    blue, grey, orange = "#1f5fa8", "#b8bec6", "#d9742b"
    ticks = [1, 0.5, 0.2, 0.1, 0.05, 0.02]
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"})
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

    right.plot(ratios, [s.score(test) for s in path], color=blue, linewidth=2)
    right.plot(ratios[k], best.score(test), "o", color=blue)
    right.annotate(f"trace norm, rank {ranks[k]}: {best.score(test):.2f}", (ratios[k], best.score(test)), xytext=(0, 9),
                   textcoords="offset points", color=blue, ha="center", fontweight="bold")  # fmt: skip
    right.axhline(best_alone.score(test), color=orange, linewidth=1.5)
    right.annotate(f"best ridge, every task alone: {best_alone.score(test):.2f}", (ratios[-1], best_alone.score(test)), xytext=(0, -14),
                   textcoords="offset points", color=orange, ha="right", fontweight="bold",
                   bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    right.set(title="Mean $R^2$ on held-out rows", ylabel="$R^2$")
    right.set_ylim(-0.02, 1.15 * best.score(test))
    for axes in (left, right):
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set_xlabel(r"$\lambda\,/\,\lambda_{\max}$")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    left.axvline(ratios[k], color=blue, linewidth=0.9, linestyle=":")
    right.vlines(ratios[k], -0.02, best.score(test), color=blue, linewidth=0.9, linestyle=":")
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=150)
    print(f"\nPicture: {file}")


try:
    picture(Path(__file__).parent / "output" / "03_low_rank.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")
