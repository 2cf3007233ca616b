r"""12. Tasks with different noise
==============================

A loss that finds each task's noise by itself.

.. math::

    \min_W \; \sum_i \|X_i w_i - y_i\|^2 + \mu \, \Omega(W)

is NC-MTL, with squared errors. NC-CMTL is

.. math::

    \min_W \; \sum_i \|X_i w_i - y_i\| + \mu \, \Omega(W)

Both have the penalty

.. math::

    \Omega(W) = \sum_j \log \left( 1 + \sqrt{\sigma_j(W)^2 + \epsilon} \right)

One letter is different: the loss of a task is not squared. (Nie, Hu and Li, "Calibrated
multi-task learning", KDD 2018.)

WHAT THE ROOT DOES. Its gradient is v_i X_i'r_i with r_i = X_i w_i - y_i and v_i = 1 / ||r_i||:
that of squared errors in which task i counts v_i. And ||r_i|| is, up to a factor, the noise that
the model leaves in the task. Noisy tasks count less; nobody had to say which they are.

.. math::

    \|r\| = \min_{s > 0} \; \frac{\|r\|^2}{2 s} + \frac{s}{2}

So s_i, the size of the noise, is a hidden unknown: s_i = ||r_i||.

WHY mu THEN FITS ALL TASKS. Say y = X w + noise * e. The penalty has to hold down what noise puts
into the gradient at the truth. For squared errors that is

.. math::

    2 \, \mathrm{noise} \; X^T e

It grows with the noise: one mu is too small for noisy tasks. Not squared, it has the same size for
every task:

.. math::

    \frac{X^T e}{\|e\|}

THE DATA. y_i = X_i w_i + noise_i e_i, W of rank 3, the paper's four settings, which differ in
noise_i alone (task 1 has 2 in all of them)::

    d1   2 down to 1/4: all noisy        d3   2 down to 2^-11: a few noisy, the others a little
    d2   2: all noisy, and all alike     d4   2 down to 2^-24: a few noisy, most hardly any

Run: ``python examples/12_calibration.py`` (picture: ``examples/output/12_calibration.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.datasets import make_calibrated
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

SETTINGS = ("d1", "d2", "d3", "d4")
N_TASKS, N_ROWS, N_HELD_OUT, N_FEATURES, RANK = 20, 60, 40, 20, 3
NOISY, QUIET = slice(0, 5), slice(-5, None)
print(f"""{N_TASKS} tasks, {N_FEATURES} features, {N_ROWS} rows a task to learn from and
{N_HELD_OUT} to choose mu on; rank {RANK}; one draw of each setting.
The paper has 101 tasks, 200 features and 240 rows, and 100 draws:
benchmarks/papers/calibrated.py. """)

# %%
# 1. by hand, once
# ----------------


def drawn(setting, seed):
    tasks, truth, noise = make_calibrated(
        setting, N_TASKS, N_ROWS + N_HELD_OUT, N_FEATURES, RANK, random_state=seed
    )
    train = tasks.take_rows([np.arange(N_ROWS)] * N_TASKS)
    held_out = tasks.take_rows([np.arange(N_ROWS, N_ROWS + N_HELD_OUT)] * N_TASKS)
    return train, held_out, truth, noise


def weighted(tasks, weights):
    """The same tasks, every row of task i counted weights_i times."""
    rows = [np.full(n, float(v)) for n, v in zip(tasks.counts, weights, strict=True)]
    return mtl.Tasks.separate(
        list(tasks.inputs), list(tasks.per_task(tasks.targets)), sample_weights=rows
    )


tasks, _, _, noise = drawn("d1", 0)
W = mtl.Weights(tasks)
problem = mtl.minimize(mtl.square_root_loss(W, tasks) + 10 * mtl.log_rank(W))
solution = problem.solve(tol=1e-8)
r = [
    X @ w - y
    for X, w, y in zip(tasks.inputs, solution.W.T, tasks.per_task(tasks.targets), strict=True)
]
norms = np.array([np.linalg.norm(each) for each in r])
print(f"""WHAT IS LEARNED BESIDE W (setting d1)

{problem}
  {solution}
  {solution.stationarity}

     task   true noise   noise_levels = ||r_i|| / sqrt(n_i)   task_weights = 1 / ||r_i||""")
for i in (0, N_TASKS // 3, 2 * N_TASKS // 3, N_TASKS - 1):
    print(
        f"    "
        f"{i:5d}{noise[i]:13.3f}{solution.noise_levels[i]:18.3f}{solution.task_weights[i]:34.4f}"
    )
assert solution.is_certified and solution.status == "stationary"
np.testing.assert_allclose(solution.task_weights, 1 / norms, rtol=1e-9)
np.testing.assert_allclose(solution.noise_levels, norms / np.sqrt(tasks.counts), rtol=1e-9)

s, U, V = (lambda svd: (svd[1], svd[0], svd[2]))(np.linalg.svd(solution.W, full_matrices=False))
of_penalty = 10 * (U * (s / (np.sqrt(s**2 + 1e-2) * (1 + np.sqrt(s**2 + 1e-2))))) @ V
of_losses = np.column_stack(
    [X.T @ each / n for X, each, n in zip(tasks.inputs, r, norms, strict=True)]
)
left = np.linalg.norm(of_losses + of_penalty) / np.linalg.norm(of_losses)
same = weighted(tasks, solution.task_weights)
kept = mtl.minimize(mtl.squared_loss(W, same) + 10 * mtl.log_rank(W))  # 1/2 v_i ||r_i||^2
again = kept.solve(tol=1e-8, warm_start={"W": solution.W})
alike = weighted(tasks, np.full(N_TASKS, solution.task_weights.mean()))
other = mtl.minimize(mtl.squared_loss(W, alike) + 10 * mtl.log_rank(W))
other = other.solve(tol=1e-8, warm_start={"W": solution.W})
moved = [
    np.linalg.norm(each.W - solution.W) / np.linalg.norm(solution.W) for each in (again, other)
]
print(f"""
  By hand: gradient of the losses plus gradient of the penalty, relative           {left:.0e}
  Squared errors with v_i as the weight of a row, solved from here: W moves by     {moved[0]:.0e}
  Squared errors with their mean as the weight of all, from here: W moves by       {moved[1]:.0e}
  A sum of norms is weighted least squares that has found its own weights.""")
assert (
    left <= 1e-7 and moved[0] <= 1e-5 < 0.1 < moved[1] and again.is_certified and other.is_certified
)

# %%
# 2. the four settings
# --------------------

GRIDS = {
    "NC-MTL": np.geomspace(1000, 5, 4),
    "NC-CMTL": np.geomspace(50, 3, 4),
    "told": np.geomspace(3000, 30, 4),
}
COLOURS = {"NC-MTL": "#d9742b", "NC-CMTL": "#1f5fa8", "told": "#9aa3ad"}
ABOUT = {"NC-MTL": "NC-MTL", "NC-CMTL": "NC-CMTL", "told": "NC-MTL, told: weights 1/noise"}


def share_missed(W, tasks):
    """Mean of the tasks' mean squared error / variance of y."""
    labels = tasks.per_task(tasks.targets)
    return np.mean(
        [
            np.mean((X @ w - y) ** 2) / np.var(y)
            for X, w, y in zip(tasks.inputs, W.T, labels, strict=True)
        ]
    )


def best_of_path(name, train, held_out):
    W, mu = mtl.Weights(train), mtl.Parameter(1.0, name="mu")
    loss = mtl.square_root_loss if name == "NC-CMTL" else mtl.sum_of_squares
    path = mtl.minimize(loss(W, train) + mu * mtl.log_rank(W)).path(mu, GRIDS[name], tol=1e-4)
    solutions = list(path)
    assert all(each.is_certified for each in solutions)
    return min(solutions, key=lambda each: share_missed(each.W, held_out))


errors, chosen, levels, true_noise = {}, {}, {}, {}
for setting in SETTINGS:
    train, held_out, truth, noise = drawn(setting, 0)
    for name in GRIDS:
        data = weighted(train, noise.max() / noise) if name == "told" else train
        best = best_of_path(name, data, held_out)
        errors[setting, name] = np.sum((best.W - truth) ** 2, axis=0)
        chosen[setting, name] = best.parameters["mu"]
        if name == "NC-CMTL":
            levels[setting], true_noise[setting] = best.noise_levels, noise
nothing = np.sum(drawn("d1", 0)[2] ** 2) / N_TASKS
print(f"""
ESTIMATION ERROR, ||W - truth||_F^2 / {N_TASKS}, AT THE mu THAT IS BEST ON HELD-OUT ROWS
(of W = 0: {nothing:.3f})

  setting       NC-MTL   NC-CMTL   ratio      told       mu of NC-MTL   mu of NC-CMTL""")
ratio = {}
for setting in SETTINGS:
    plain, calibrated, told = (errors[setting, name].mean() for name in GRIDS)
    ratio[setting] = plain / calibrated
    mus = [f"{chosen[setting, name]:.3g}" for name in ("NC-MTL", "NC-CMTL")]
    print(
        f"  {setting:<10}{plain:10.4f}{calibrated:10.4f}{ratio[setting]:8.1f}{told:10.4f}"
        f"{mus[0]:>19}{mus[1]:>16}"
    )
spread = {
    name: max(chosen[s, name] for s in SETTINGS) / min(chosen[s, name] for s in SETTINGS)
    for name in GRIDS
}
of = {
    (name, which): errors["d3", name][part].mean()
    for name in GRIDS
    for which, part in (("noisy", NOISY), ("quiet", QUIET))
}
print(f"""
  "told" is least squares that knows the noise, in weights 1 / noise_i, as the root finds them (so
  with its own mu).

  d3, d4  A few noisy tasks among quiet ones: the error is {ratio["d3"]:.0f} and
          {ratio["d4"]:.0f} times smaller. Both sides gain (d3):

              5 noisiest tasks   {of["NC-MTL", "noisy"]:8.4f} -> {of["NC-CMTL", "noisy"]:.4f}
              5 quietest tasks   {of["NC-MTL", "quiet"]:8.4f} -> {of["NC-CMTL", "quiet"]:.1e}

          With one mu for all, the quiet majority asks for a small one, and the noisy few are left
          to their noise: worse than W = 0.
  d2      All alike: nothing to calibrate, and nothing lost by trying (ratio {ratio["d2"]:.2f}).
  d1      Noise that differs eightfold: {ratio["d1"]:.1f} times.
          The paper reports no gain here (0.1247 against 0.1236).

  And one mu nearly suits all: the values chosen for NC-CMTL differ {spread["NC-CMTL"]:.0f}-fold,
  those for NC-MTL {spread["NC-MTL"]:.0f}-fold. (Not wholly: the log penalty depends on the scale
  of W, and where noise drowns everything, as in d2, more of it is better.)""")
assert ratio["d3"] > 5 and ratio["d4"] > 5 and 0.9 < ratio["d2"] < 1.1
assert spread["NC-CMTL"] < spread["NC-MTL"]
assert of["NC-MTL", "noisy"] > nothing > of["NC-CMTL", "noisy"]
assert of["NC-CMTL", "quiet"] < of["NC-MTL", "quiet"]

# %%
# 3. how good are the levels
# --------------------------

print("""
LEARNED NOISE AGAINST TRUE NOISE

  setting    learned / true, median    smallest    largest    correlation of the logarithms
                                                                (where the noise is above 0.01)""")
for setting in SETTINGS:
    quotient, loud = levels[setting] / true_noise[setting], true_noise[setting] > 0.01
    pair = np.log(levels[setting][loud]), np.log(true_noise[setting][loud])
    said = "-" if setting == "d2" else f"{np.corrcoef(*pair)[0, 1]:.3f}"
    print(
        f"  {setting:<11}{np.median(quotient):22.2f}{quotient.min():12.2f}"
        f"{quotient.max():11.2g}{said:>15}"
    )
    assert setting == "d2" or float(said) > 0.9
short = 1 - min((levels[s] / true_noise[s]).min() for s in SETTINGS)
print(f"""
  Two errors, one each way. ||r_i|| is what is *left*: weights that fit {N_ROWS} rows take up a part
  of the noise, so levels are too low, by up to {short:.0%} here. And what the penalty keeps the
  weights from fitting is left too: where there is no noise (d4), the level is that bias.""")

# %%
# 4. it cannot tell noise from misfit
# -----------------------------------

train, held_out, truth, noise = drawn("d3", 0)
strange, rng = 12, np.random.default_rng(7)
own = rng.normal(size=N_FEATURES) * np.linalg.norm(truth[:, strange]) / np.sqrt(N_FEATURES)
labels = list(train.per_task(train.targets))
labels[strange] = train.inputs[strange] @ own + noise[strange] * rng.normal(size=N_ROWS)
odd = mtl.Tasks.separate(list(train.inputs), labels)
W = mtl.Weights(odd)
mu = chosen["d3", "NC-CMTL"]
before = mtl.minimize(mtl.square_root_loss(W, train) + mu * mtl.log_rank(W)).solve()
after = mtl.minimize(mtl.square_root_loss(W, odd) + mu * mtl.log_rank(W)).solve()
heavy = mtl.minimize(mtl.square_root_loss(W, odd) + 10 * mu * mtl.log_rank(W)).solve()


def of_strange(solution):
    return f"{solution.noise_levels[strange]:15.4f}{solution.task_weights[strange]:13.4f}"


print(f"""
A QUIET TASK THAT SHARES NOTHING (task {strange}, true noise {noise[strange]:.4f})

                                             its learned noise   its weight
  as drawn, mu = {mu:<5.3g}                       {of_strange(before)}
  weights of its own, mu = {mu:<5.3g}             {of_strange(after)}
  weights of its own, mu = {10 * mu:<5.3g}             {of_strange(heavy)}

  Where the penalty does not let a task go its own way, all of it counts as noise. Calibration
  alone does not say "different": that takes a matrix for tasks that are, as in
  13_outlier_tasks.py.""")
assert before.is_certified and after.is_certified and heavy.is_certified
assert heavy.noise_levels[strange] > 10 * noise[strange]

# %%
# 5. the rank, exactly
# --------------------

exact = mtl.minimize(mtl.square_root_loss(W, train) + mu * mtl.log_rank(W, eps=0)).solve()
count = [
    int(np.sum(np.linalg.svd(each.W, compute_uv=False) > 1e-6 * np.linalg.norm(each.W, 2)))
    for each in (before, exact)
]
print(f"""
THE RANK  (setting d3, mu = {mu:.3g})

  eps = 1e-2   {before.solver:<12} singular values above 1e-6 of the largest: {count[0]}
  eps = 0      {exact.solver:<12} singular values above 1e-6 of the largest: {count[1]}

  {exact.stationarity}
""")
assert exact.is_certified and count[1] <= count[0]

print("THE CROSS-CHECK: STEPS OF MAJORISATION, REPEATED BY CVXPY\n")
check = problem.cross_check(solution)
print(check)
assert check.agrees


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
        }
    )
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")

    for k, name in enumerate(GRIDS):
        heights = [errors[setting, name].mean() for setting in SETTINGS]
        left.bar(
            np.arange(4) + 0.26 * (k - 1),
            heights,
            width=0.24,
            color=COLOURS[name],
            label=ABOUT[name],
        )
    left.axhline(nothing, color="black", linestyle=":", linewidth=1)
    left.text(4.15, nothing * 1.06, "W = 0", ha="right", va="bottom", fontsize=9)
    top = max(errors[key].mean() for key in errors)
    for k, setting in enumerate(SETTINGS):
        height = max(errors[setting, name].mean() for name in GRIDS)
        left.text(
            k, max(height, nothing) * 1.15, f"{ratio[setting]:.1f} ×", ha="center", fontsize=10
        )
    left.set(
        yscale="log",
        ylim=(0.004, 5 * top),
        xlim=(-0.5, 4.2),
        xticks=range(4),
        title="Estimation error: × is NC-MTL over NC-CMTL",
        ylabel=r"$\|W-W^*\|_F^2\,/\,m$",
    )
    left.set_xticklabels(
        ["d1: all\nnoisy", "d2: all\nalike", "d3: a few\nnoisy", "d4: most\nnoiseless"]
    )
    left.legend(frameon=False, loc="upper left", fontsize=9)

    reach = (1e-7, 5)
    middle.plot(reach, reach, color="black", linewidth=1, linestyle=":")
    for setting, marker, colour in zip(
        SETTINGS, "osD^", ("#3d9a8b", "#9aa3ad", "#1f5fa8", "#8a4fa3"), strict=True
    ):
        middle.plot(
            true_noise[setting],
            levels[setting],
            marker,
            color=colour,
            markersize=5,
            alpha=0.8,
            label=setting,
        )
    middle.set(
        xscale="log",
        yscale="log",
        xlim=(3e-8, 5),
        ylim=(3e-8, 5),
        xlabel="true noise",
        ylabel=r"noise_levels  $\|r_i\|/\sqrt{n_i}$",
        title="NC-CMTL: learned noise against the truth",
    )
    middle.legend(frameon=False, loc="upper left")

    for name in ("NC-MTL", "NC-CMTL"):
        right.plot(
            true_noise["d3"],
            errors["d3", name],
            "o-",
            color=COLOURS[name],
            markersize=4,
            label=name,
        )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="true noise of the task",
        ylabel=r"$\|w_i-w_i^*\|^2$",
        title="d3, task by task: both ends gain",
    )
    right.axhline(nothing, color="black", linestyle=":", linewidth=1)
    right.text(true_noise["d3"].min(), nothing * 1.15, "W = 0", va="bottom", fontsize=9)
    right.legend(frameon=False, loc="lower right")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=140)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "12_calibration.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/12_calibration.py``.
#
# **1.** The hidden unknown: which s > 0 minimises ||r||^2 / (2 s) + s / 2, and what is left there?


def hidden(r):
    """(s, the minimum), for a residual r."""
    ...


@exercise(hidden)
def check_hidden(answer):
    grid = np.geomspace(1e-3, 1e3, 200_001)
    for size in (0.1, 1.0, 7.0):
        r = size * np.array([0.6, -0.8])
        values = size**2 / (2 * grid) + grid / 2
        s, least = answer(r)
        assert np.isclose(s, grid[values.argmin()], rtol=1e-3), f"for ||r|| = {size} s is not {s}"
        assert np.isclose(least, values.min(), rtol=1e-6), f"for ||r|| = {size}: {values.min():.4f}"


# %%
# **2.** Somebody measures all labels in other units: y becomes c y. With a norm as penalty, which
# mu gives the same weights, times c? For squared errors, and for their roots.


def mu_in_other_units(mu, c, root):
    """The mu for labels c y that gives c times the weights; root: sum ||r_i||, else squares."""
    ...


@exercise(mu_in_other_units)
def check_mu_in_other_units(answer):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(40, 5))
    labels = rows @ draw.normal(size=(5, 3)) + draw.normal(size=(40, 3))

    def weights_of(c, root, strength):
        scaled = mtl.Tasks.shared(rows, c * labels)
        B = mtl.Weights(scaled)
        loss = mtl.square_root_loss(B, scaled) if root else mtl.sum_of_squares(B, scaled)
        return mtl.minimize(loss + strength * mtl.trace_norm(B)).solve(tol=1e-9).W

    for root, start in ((True, 2.0), (False, 30.0)):
        before, after = (weights_of(c, root, answer(start, c, root)) for c in (1.0, 5.0))
        apart = np.linalg.norm(after - 5 * before) / np.linalg.norm(5 * before)
        kind = "roots" if root else "squares"
        assert apart < 1e-3, f"{kind}: the weights are not 5 times those before, by {apart:.1%}"
        asked = answer(start, 1.0, root)
        assert asked == start, f"{kind}: in the old units mu = {asked}"
