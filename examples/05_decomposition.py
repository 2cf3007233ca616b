r"""5. Shared patterns, outlier tasks
=================================

A decomposition: tasks that share patterns, and tasks that do not.

.. math::

    \min_{L, S} \; \frac{1}{2} \sum_i \|X_i (l_i + s_i) - y_i\|^2 + a \|L\|_* + b \sum_i \|s_i\|_2
    \quad \mathrm{subject\ to} \quad L + S \ge 0

Think of m sites that measure the same d pollutants, each site with its own mixture of a few
sources. Effects are nonnegative. Most sites share their patterns, so the trace norm (lesson 3)
fits them; but a few sites are broken or different, and a low-rank W would bend for their sake. So
W is split: L takes what is shared, S takes whole *columns*, for tasks that share nothing. The
norm ``l12_norm(S)``, the sum of the columns' lengths, makes all other columns of S exactly zero:
the outlier tasks are found, not named. (Robust multi-task learning: Chen, Zhou and Ye, KDD 2011;
the constraint on the sum is ours, and is one line.)

THE PROOF. One u for both matrices, since both see the same predictions, and one V <= 0 for the
constraint, since L and S enter it together. With the columns

.. math::

    -g_i = -X_i^T u_i - v_i

-G must have singular values of at most a, to cancel against the trace norm of L. At the same time
its columns must be at most b long, to cancel against the columns of S. The bound is the same again:

.. math::

    D(u) = -\frac{1}{2} \|u\|^2 - \langle u, y \rangle

The support function of {W >= 0} at V <= 0 is 0. Outliers are the tasks whose column of G reaches b.

Run: ``python examples/05_decomposition.py`` (picture: ``examples/output/05_decomposition.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

N_TASKS, N_FEATURES, N_ROWS, RANK = 30, 20, 20, 2
OUTLIERS = [4, 13, 22]

rng = np.random.default_rng(3)
patterns = rng.gamma(0.6, 1.0, size=(N_FEATURES, RANK))
truth = patterns @ rng.uniform(0.2, 1.2, size=(RANK, N_TASKS))
truth[:, OUTLIERS] = rng.gamma(0.3, 2.5, size=(N_FEATURES, len(OUTLIERS)))


def sites(n_rows, rng):
    inputs = [rng.normal(size=(n_rows, N_FEATURES)) for _ in range(N_TASKS)]
    labels = [X @ w + 0.5 * rng.normal(size=n_rows) for X, w in zip(inputs, truth.T, strict=True)]
    return mtl.Tasks.separate(inputs, labels, task_names=[f"site {i}" for i in range(N_TASKS)])


tasks, test = sites(N_ROWS, rng), sites(200, rng)
print(tasks)
print(f"{N_ROWS} rows a task for {N_FEATURES} weights: alone, a task learns little.\n")

# %%
# The model
# ---------

L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
a, b = mtl.Parameter(20.0, name="a"), mtl.Parameter(16.0, name="b")
problem = mtl.minimize(
    mtl.squared_loss(L + S, tasks) + a * mtl.trace_norm(L) + b * mtl.l12_norm(S),
    subject_to=[L + S >= 0],
)
print("THE MODEL\n")
print(problem.explain(), "\n")
solution = problem.solve(tol=1e-7)
print("THE SOLUTION\n")
print(solution, "\n")

lengths = np.linalg.norm(solution.S, axis=0)
found = np.flatnonzero(lengths > 1e-3 * lengths.max())
sigma = np.linalg.svd(solution.L, compute_uv=False)
print(f"  rank of L                   {np.sum(sigma > 1e-5 * sigma[0])}   (the truth: {RANK})")
print(f"  columns of S that are used  {found.tolist()}   (the truth: {OUTLIERS})")
print(f"  smallest entry of L + S     {solution.W.min():.1e}")

# %%
# What each part is worth
# -----------------------

W = mtl.Weights(tasks)
loss, nonnegative = mtl.squared_loss(W, tasks), [W >= 0]
decomposed = mtl.squared_loss(L + S, tasks) + a * mtl.trace_norm(L) + b * mtl.l12_norm(S)
models = {
    "ridge, every task alone": mtl.minimize(loss + 5 * mtl.ridge(W)),
    "ridge, W >= 0": mtl.minimize(loss + 5 * mtl.ridge(W), nonnegative),
    "low rank": mtl.minimize(loss + a * mtl.trace_norm(W)),
    "low rank, W >= 0": mtl.minimize(loss + a * mtl.trace_norm(W), nonnegative),
    "low rank + outlier tasks": mtl.minimize(decomposed),
    "low rank + outlier tasks, L + S >= 0": problem,
}
usual = np.setdiff1d(np.arange(N_TASKS), OUTLIERS)
print(f"""
R^2 ON NEW ROWS, AND ERROR OF THE WEIGHTS
{"":42}usual sites   outliers   ||W - truth||_F""")
for name, model in models.items():
    answer = model.solve(tol=1e-6)
    assert answer.is_optimal, answer
    scores = answer.scores(test)
    print(
        f"  {name:<40}{scores[usual].mean():11.2f}{scores[OUTLIERS].mean():11.2f}"
        f"{np.linalg.norm(answer.W - truth):15.2f}"
    )

print("""
  The outliers share nothing, so nothing lends them strength, and b shrinks them besides. What the
  split buys is that they are named, and that L need not bend for them: the error of the weights
  falls.""")

# %%
# The certificate and the check
# -----------------------------

print(f"""
THE CERTIFICATE

  objective {solution.objective:.8f}
  bound     {solution.dual_bound:.8f}
  relative gap {solution.gap:.1e}, constraints met to {solution.violation:.1e}: {solution.status}
""")
print("THE CROSS-CHECK\n")
check = problem.cross_check(solution)
print(check)
assert solution.is_optimal and check.agrees


# %%
# The picture
# -----------


def picture(file: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.titlelocation": "left"})
    figure = plt.figure(figsize=(11, 5.6), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=[2.4, 1])
    top = truth.max()
    panels = [
        ("the true weights", truth),
        ("found: L + S", solution.W),
        ("L: shared patterns", solution.L),
        ("S: what is not shared", solution.S),
    ]
    for column, (title, matrix) in enumerate(panels):
        axes = figure.add_subplot(grid[0, column])
        image = axes.imshow(
            matrix, cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto", interpolation="nearest"
        )
        axes.set(title=title, xlabel="task", xticks=OUTLIERS, yticks=[])
        if column == 0:
            axes.set_ylabel("feature")
    figure.colorbar(
        image, ax=figure.axes, location="right", fraction=0.03, pad=0.01, label="weight"
    )
    axes = figure.add_subplot(grid[1, :])
    colours = ["#d9742b" if i in OUTLIERS else "#1f5fa8" for i in range(N_TASKS)]
    axes.bar(range(N_TASKS), lengths, color=colours)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(
        title="Length of each column of S: exactly zero except for the tasks that share "
        "nothing (orange: the true outliers)",
        xlabel="task",
        ylabel=r"$\|s_i\|_2$",
        xlim=(-0.7, N_TASKS - 0.3),
        xticks=range(0, N_TASKS, 2),
    )
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=150)
    print(f"\nPicture: {file}")


try:
    picture(OUTPUT / "05_decomposition.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/05_decomposition.py``.
#
# **1.** G has to pass two tests at once: singular values of at most a, columns of at most b. How
# far apart can the two be for a matrix with m columns? What you find says when the split is idle.


def largest_ratios(m):
    """(the longest column of a matrix whose singular values are at most 1,
    the largest singular value of a matrix with m columns of length at most 1)
    """
    ...


@exercise(largest_ratios)
def check_largest_ratios(answer):
    draw = np.random.default_rng(0)
    for m in (1, 4, 9):
        column, singular = answer(m)
        alike, single = np.ones((3, m)), np.eye(3, m)
        tried = [draw.normal(size=(3, m)) for _ in range(100)] + [alike, single]
        longest = [np.linalg.norm(G, axis=0).max() / np.linalg.norm(G, 2) for G in tried]
        assert np.isclose(column, max(longest)), (
            f"m = {m}: with singular values of at most 1, the longest column of many matrices "
            f"has length {max(longest):.3f}, not {column:.3f}"
        )
        largest = [np.linalg.norm(G, 2) / np.linalg.norm(G, axis=0).max() for G in tried]
        assert np.isclose(singular, max(largest)), (
            f"m = {m}: with columns of at most 1, the largest singular value of many matrices "
            f"is {max(largest):.3f}, not {singular:.3f}"
        )
    column, singular = answer(N_TASKS)
    idle = {"S": 1.001 * column * a.value, "L": 0.999 * a.value / singular}
    for name, value in idle.items():
        kept, b.value = b.value, value
        found = mtl.minimize(decomposed).solve(tol=1e-6)
        b.value = kept
        assert np.abs(found[name]).max() < 1e-3, f"{name} is used at b = {value:.3g}"


# %%
# **2.** Name the outliers without looking at S: from the columns g_i = X_i'(X_i w_i - y_i) at a
# solution of the model without the constraint.


def outliers_from(G, a, b):
    """The indices of the tasks whose column of S is not zero."""
    ...


@exercise(outliers_from)
def check_outliers_from(answer):
    kept = b.value
    for strength in (kept, 0.8 * kept, 1.2 * kept):
        b.value = strength
        free = mtl.minimize(decomposed).solve(tol=1e-9)
        b.value = kept
        data = zip(tasks.inputs, free.W.T, tasks.per_task(tasks.targets), strict=True)
        G = np.column_stack([X.T @ (X @ w - y) for X, w, y in data])
        used = np.flatnonzero(np.linalg.norm(free.S, axis=0) > 1e-6)
        said = sorted(int(i) for i in answer(G, a.value, strength))
        assert said == used.tolist(), (
            f"at b = {strength:.3g} you name {len(said)} tasks, {said[:5]}, and S has {len(used)} "
            "columns. (A solver ends near the optimum: b is reached to a few digits.)"
        )
