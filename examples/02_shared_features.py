r"""2. Shared features: the l21 norm
================================

Tasks that use the same few features: the l21 norm and its path.

.. math::

    \min_W \; \frac{1}{2} \sum_i \|X_i w_i - y_i\|^2 + \lambda \sum_j \|W_{j \cdot}\|_2

The tasks are i, the features j, and W is d x m. The second term is ``l21_norm(W)``: the plain sum
of the rows' lengths. A row is a feature, seen by all tasks at once. Like ``|x|`` at 0,
``||row||_2`` has a kink at the zero row. So the solution has rows that are exactly zero: the
feature is out, *for every task*. The l1 norm, ``sum |W_ij|``,
has its kinks entry by entry: it selects features for every task anew. If the tasks do share their
features, the rows' norm can pool what m tasks say about a feature, and finds it from fewer
samples.

WHERE A PATH STARTS. W = 0 is the solution iff the pull of the data at 0 cannot win against the
kink, in any row:

.. math::

    \lambda \ge \lambda_{\max}
    = \max_j \; \left\| \left( x_{1j}^T y_1, \ldots, x_{mj}^T y_m \right) \right\|_2

THE DUAL BOUND. As in lesson 1, u_i = X_i w_i - y_i, and the terms with W have to cancel. For a
norm, <V, W> <= lam * norm(W) for all W iff the *dual norm* of V is at most lam; for l21 that is
the longest row. So

.. math::

    D(u) = -\frac{1}{2} \|u\|^2 - \langle u, y \rangle

counts if every row of [X_i'u_i] is at most lam long. If not, u is scaled until it is. At the
solution, the rows that reach lam are those of the selected features.

Run: ``python examples/02_shared_features.py`` (picture:
``examples/output/02_shared_features.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

N_TASKS, N_FEATURES, N_RELEVANT = 12, 60, 8
tasks, truth = datasets.make_group_sparse(
    n_tasks=N_TASKS,
    n_samples=105,
    n_features=N_FEATURES,
    n_relevant=N_RELEVANT,
    noise=1.5,
    random_state=0,
)
rest, test = tasks.split(test_size=1 / 3, random_state=0)
train, validation = rest.split(test_size=0.5, random_state=0)
relevant = np.flatnonzero(np.linalg.norm(truth, axis=1))

print(f"{train}\n{len(relevant)} of {N_FEATURES} features matter, the same ones for all tasks.\n")

# %%
# Where the path starts
# ---------------------

W = mtl.Weights(train)
lam = mtl.Parameter(1.0)
by_rows = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.l21_norm(W))
by_entries = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.l1_norm(W))

pull = np.column_stack(
    [X.T @ y for X, y in zip(train.inputs, train.per_task(train.targets), strict=True)]
)
critical = by_rows.lambda_max(lam)
print("THE CRITICAL VALUE\n")
print(f"  problem.lambda_max(lam)   {critical:.10f}")
print(f"  by hand                   {np.linalg.norm(pull, axis=1).max():.10f}")
np.testing.assert_allclose(critical, np.linalg.norm(pull, axis=1).max(), rtol=1e-12)
for factor in (1.001, 0.999):
    (solution,) = by_rows.path(lam, [factor * critical])
    kept = int(np.count_nonzero(np.linalg.norm(solution.W, axis=1)))
    print(f"  at {factor:5.3f} lambda_max the solution keeps {kept} features")
    assert kept == (factor < 1)

# %%
# The path
# --------
#
# Every solution starts from the one before, and every one carries its own certificate.
ratios = np.geomspace(1.0, 0.02, 25)


def walk(problem):
    values = ratios * problem.lambda_max(lam)
    return list(problem.path(lam, values, tol=1e-8))


rows, entries = walk(by_rows), walk(by_entries)
assert all(s.is_optimal for s in rows + entries)


print("""
THE PATH  (each point certified to a relative gap of 1e-8; R^2 on the validation rows)

                     --------- l21_norm ----------     --------- l1_norm -----------
    lam/lambda_max   features  of these true  R^2      features  of these true  R^2""")
for k in range(0, len(ratios), 3):
    line = f"    {ratios[k]:14.3f}"
    for s in (rows[k], entries[k]):
        kept = np.flatnonzero(np.linalg.norm(s.W, axis=1))
        line += f"{len(kept):11d}{np.isin(kept, relevant).sum():15d}{s.score(validation):6.2f} "
    print(line)

# lam is chosen on validation rows; the test rows are looked at once, for what was chosen
k_rows, k_entries = (
    int(np.argmax([s.score(validation) for s in path])) for path in (rows, entries)
)
best_rows, best_entries = rows[k_rows], entries[k_entries]
val_rows, val_entries = best_rows.score(validation), best_entries.score(validation)
r2_rows, r2_entries = best_rows.score(test), best_entries.score(test)
print(f"""
  lam of the best R^2 on validation rows (the column above), and R^2 there on test rows:
    l21_norm   lam = {ratios[k_rows]:.3f} lambda_max   {val_rows:.3f}   {r2_rows:.3f}
    l1_norm    lam = {ratios[k_entries]:.3f} lambda_max   {val_entries:.3f}   {r2_entries:.3f}

  The tasks do share their features, and the norm that says so needs less data.""")
assert r2_rows > r2_entries

# %%
# The certificate
# ---------------

print("\nTHE CERTIFICATE, BY HAND, AT THE BEST l21 SOLUTION\n")
lam.value = best_rows.parameters["lam"]
u = [
    X @ w - y
    for X, w, y in zip(train.inputs, best_rows.W.T, train.per_task(train.targets), strict=True)
]
lengths = np.linalg.norm(
    np.column_stack([X.T @ ui for X, ui in zip(train.inputs, u, strict=True)]), axis=1
)
scale = min(1.0, lam.value / lengths.max())
flat = scale * np.concatenate(u)
bound = -0.5 * flat @ flat - flat @ train.targets
kept = np.linalg.norm(best_rows.W, axis=1) > 0
chosen, others = lengths[kept] / lam.value, lengths[~kept] / lam.value
print(f"  rows of [X_i'u_i] / lam:  selected features {chosen.min():.6f} to {chosen.max():.6f},")
print(f"                            the others at most {others.max():.6f}")
print(f"  dual bound by hand        {bound:.8f}")
print(f"  dual bound, certificate   {best_rows.dual_bound:.8f}")
print(f"  objective                 {best_rows.objective:.8f}")
print(f"  relative gap              {best_rows.gap:.1e}  ->  {best_rows.status}")
assert bound <= best_rows.objective

print("\nTHE CROSS-CHECK\n")
check = by_rows.cross_check(best_rows)
print(check)
assert check.agrees


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    blue, grey, orange = "#1f5fa8", "#b8bec6", "#d9742b"
    ticks = [1, 0.5, 0.2, 0.1, 0.05, 0.02]
    plt.rcParams.update(
        {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")

    lengths = np.array([np.linalg.norm(s.W, axis=1) for s in rows])
    others = np.setdiff1d(np.arange(N_FEATURES), relevant)
    left.plot(ratios, lengths[:, others], color=grey, linewidth=1)
    left.plot(ratios, lengths[:, relevant], color=blue, linewidth=1.6)
    left.plot([], [], color=blue, label=f"the {len(relevant)} true features")
    left.plot([], [], color=grey, label=f"the other {len(others)}")
    left.set(title="Length of each row of W along the path", ylabel="$\\|$row$\\|_2$")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, loc="upper left")

    curves = [(k_rows, rows, blue, "l21_norm"), (k_entries, entries, orange, "l1_norm")]
    for k, path_of, colour, name in curves:
        r2 = [s.score(validation) for s in path_of]
        right.plot(ratios, r2, color=colour, linewidth=2)
        right.plot(ratios[k], r2[k], "o", color=colour)
        right.annotate(
            f"{name}: {r2[k]:.2f}",
            (ratios[k], r2[k]),
            xytext=(0, 8),
            textcoords="offset points",
            color=colour,
            ha="center",
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},  # above the dotted line
        )
    right.set(title="Mean $R^2$ on validation rows: where $\\lambda$ is chosen", ylabel="$R^2$")
    top = best_rows.score(validation)
    right.set_ylim(-0.02, 1.12 * top)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set_xlabel(r"$\lambda\,/\,\lambda_{\max}$")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    left.axvline(ratios[k_rows], color=blue, linewidth=0.9, linestyle=":")
    right.vlines(ratios[k_rows], -0.02, top, color=blue, linewidth=0.9, linestyle=":")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "02_shared_features.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/02_shared_features.py``.
#
# **1.** The proximal step of a row: the x that minimises
#
# .. math::
#
#     \frac{1}{2} \|x - \mathrm{row}\|^2 + \mathrm{step} \, \|x\|_2
#
# Where x is not zero, the gradient x - row + step x / ||x|| is. Which length follows? And when is
# there no such x?


def prox_of_row(row, step):
    """argmin over x of 1/2 ||x - row||^2 + step ||x||_2."""
    ...


@exercise(prox_of_row)
def check_prox_of_row(answer):
    draw = np.random.default_rng(0)
    for length in (0.0, 0.5, 2.0, 3.0):
        row = draw.normal(size=4)
        row *= length / np.linalg.norm(row)
        x = answer(row, 1.0)
        value = 0.5 * np.sum((x - row) ** 2) + np.linalg.norm(x)
        for other in [0 * row, row, *(x + 1e-3 * draw.normal(size=(200, 4)))]:
            lower = 0.5 * np.sum((other - row) ** 2) + np.linalg.norm(other) < value - 1e-12
            assert not lower, f"for a row of length {length} there is a lower point than yours"


# %%
# **2.** ``lambda_max`` of the l1 norm, from the same table of pulls X_i'y_i (features x tasks).


def critical_l1(pull):
    """The smallest lam for which W = 0 minimises squared loss + lam * l1_norm."""
    ...


@exercise(critical_l1)
def check_critical_l1(answer):
    value = answer(pull)
    for factor, empty in ((1.001, True), (0.999, False)):
        (found,) = by_entries.path(lam, [factor * max(value, 0.0)])
        said = "not zero: it is too small" if empty else "zero: it is too large"
        assert (not found.W.any()) == empty, f"at {factor} times your {value:.4g} W is {said}"
    turned = -2.0 * pull  # labels of other sign and size: what counts is not which way a pull goes
    assert np.isclose(answer(turned), 2.0 * value), "with labels -2 y for y it has to double"


# %%
# **3.** A bound by hand, from a point that is *not* the solution: the weights of the lam before on
# the path. Turn their residuals into multipliers that ``check_bound`` accepts.


def feasible(residuals, inputs, lam):
    """A list of multipliers, one array a task, from residuals that are too large."""
    ...


@exercise(feasible)
def check_feasible(answer):
    lam.value = best_rows.parameters["lam"]
    elsewhere = zip(train.inputs, rows[k_rows - 1].W.T, train.per_task(train.targets), strict=True)
    residuals = [X @ w - y for X, w, y in elsewhere]
    bound = by_rows.check_bound(answer(residuals, train.inputs, lam.value))
    assert bound.holds, f"\n{bound}"
    assert bound.value > 0.9 * best_rows.objective, f"a bound of {bound.value:.1f}: too careful"
