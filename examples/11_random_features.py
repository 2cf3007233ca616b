r"""11. Random features in front
============================

Beyond linear: random Fourier features and Nystroem in front of a linear multi-task model.

.. math::

    k(x, x') = \exp(-\gamma \|x - x'\|^2) \approx \langle z(x), z(x') \rangle, \qquad
    z(x) \in \mathbf{R}^D

A model that is linear in z(x) is nonlinear in x, and everything of this package holds for it: its
words, its certificates, its solvers. scikit-learn makes z in two ways. ``RBFSampler`` knows nothing
of the data (Rahimi and Recht, NIPS 2007):

.. math::

    z_k = \sqrt{\frac{2}{D}} \cos(\langle v_k, x \rangle + b_k), \qquad v_k \sim N(0, 2 \gamma I)

``Nystroem`` takes D rows as landmarks l (Williams and Seeger, NIPS 2000):

.. math::

    z = K_{ll}^{-1/2} \, k(l, x)

z is fitted on the rows that are learned from, and on nothing else. On top of it stand ridge
(every task alone), the squared trace norm (MTFL, MTRL: convex), and ``matrix_normal`` (FETR),
with both precisions learned or with the tasks' alone. The question is an honest one: how much do
the features bring, how much the penalty, and does that change when rows are few?

Blocks of rows are contiguous: neighbouring rows of a movement are nearly equal, and a random
split would only test memory. Every parameter (gamma too) is chosen on a validation block of its
own.

Run: ``python examples/11_random_features.py`` (picture:
``examples/output/11_random_features.png``)
"""

from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler

import mtldsl as mtl
from mtldsl.datasets import load_sarcos
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

N_FEATURES, GAMMAS, SEEDS = 100, (0.003, 0.01), range(2)

# %%
# Data
# ----

try:
    robot = load_sarcos()
    X, Y, names = robot.X, robot.targets.reshape(7, -1).T, robot.task_names
    print("SARCOS, a 4,449-row subsample (the published test file).")
except mtl.DataError:
    rng = np.random.default_rng(0)
    X = np.zeros((3000, 8))
    for k in range(1, len(X)):  # rows that follow each other are near
        X[k] = 0.9 * X[k - 1] + 0.4 * rng.normal(size=8)
    patterns = np.hstack([X, (X @ rng.normal(size=(8, 4))) ** 2 / 8])
    Y = patterns @ rng.normal(size=(12, 3)) @ rng.normal(size=(3, 7)) + 0.5 * rng.normal(
        size=(len(X), 7)
    )
    names = [f"task {i}" for i in range(7)]
    print("The SARCOS data are not here: made nonlinear tasks stand for them.")
n, m = Y.shape
learn, validate, test = np.split(np.arange(n), [int(0.6 * n), int(0.8 * n)])
X = (X - X[learn].mean(axis=0)) / X[learn].std(axis=0)
Y = (Y - Y[learn].mean(axis=0)) / Y[learn].std(axis=0)
few = learn[::10]
print(
    f"Contiguous blocks: {len(learn):,} rows to learn from (or every 10th of them, "
    f"{len(few)}), {len(validate)} to choose"
)
print(
    f"parameters, {len(test)} to test. {m} tasks, {X.shape[1]} inputs, {N_FEATURES} "
    f"features in front.\n"
)

# %%
# Models
# ------


def statement(penalty, tasks, values):
    """The model for one setting of its parameters."""
    W = mtl.Weights(tasks)
    loss = mtl.sum_of_squares(W, tasks)
    if penalty == "ridge":
        return mtl.minimize(loss + values["lam"] * mtl.ridge(W))
    if penalty == "squared trace norm":
        return mtl.minimize(loss + values["lam"] * mtl.squared_trace_norm(W))
    Sigma1, Sigma2 = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    on_tasks = [Sigma2 >> 0.01, Sigma2 << 100]
    if penalty == "FETR, tasks alone":
        prior = mtl.matrix_normal(W, np.eye(tasks.n_features), Sigma2, **values)
        return mtl.minimize(loss + prior, subject_to=on_tasks)
    prior = mtl.matrix_normal(W, Sigma1, Sigma2, **values)
    return mtl.minimize(loss + prior, subject_to=[Sigma1 >> 0.01, Sigma1 << 100, *on_tasks])


of_one = [{"lam": lam} for lam in (0.1, 1.0, 10.0, 100.0)]
of_two = [{"eta": eta, "rho": rho} for eta, rho in ((1.0, 0.01), (1.0, 0.1), (100.0, 0.01))]
PENALTIES = {
    "ridge": of_one,
    "squared trace norm": of_one,
    "FETR, tasks alone": of_two,
    "FETR": of_two,
}


def features(kind, gamma, rows, seed):
    """z of all rows, fitted on `rows` alone."""
    if kind == "linear":
        return X
    Z = kind(gamma=gamma, n_components=N_FEATURES, random_state=seed).fit(X[rows]).transform(X)
    Z = Z - Z[rows].mean(axis=0)
    # one factor for all, so that the kernel stays what it is: an average variance of 1, for which
    # l and u are meant
    return Z / Z[rows].std()


def fitted(Z, rows, penalty, values):
    tasks = mtl.Tasks.shared(Z[rows], Y[rows], task_names=names)
    # joint steps: with one precision given, L-BFGS has no metric, and is slow on features that
    # are nearly dependent
    how = {"solver": "alternating", "method": "joint"} if penalty == "FETR, tasks alone" else {}
    solution = statement(penalty, tasks, values).solve(tol=3e-4, **how)
    assert solution.is_certified, solution
    return solution


def error(solution, Z, rows):
    """Mean squared error over tasks, each in units of its variance on the rows learned from."""
    return float(np.mean((solution.predict(Z[rows]) - Y[rows]) ** 2))


def chosen(kind, rows, penalty):
    """(validation error, gamma, values), the lowest, with the features of seed 0."""
    tried = []
    for gamma in GAMMAS if kind != "linear" else (None,):
        Z = features(kind, gamma, rows, 0)
        tried += [
            (error(fitted(Z, rows, penalty, values), Z, validate), gamma, values)
            for values in PENALTIES[penalty]
        ]
    return min(tried, key=lambda entry: entry[0])


# %%
# The comparison
# --------------

KINDS = {"linear": "linear", "random Fourier": RBFSampler, "Nystroem": Nystroem}
SIZES = {f"{len(learn):,} rows": learn, f"{len(few):,} rows": few}
errors, best = {}, {}
print(
    "MEAN SQUARED ERROR ON THE TEST BLOCK, IN UNITS OF THE VARIANCE\n\n"
    f"  mean of {len(SEEDS)} seeds of the features, lowest to highest"
)
for size, rows in SIZES.items():
    print(f"\n  {size:<22}{'linear':>9}{'random Fourier':>26}{'Nystroem':>26}")
    for penalty in PENALTIES:
        line = f"    {penalty:<20}"
        for name, kind in KINDS.items():
            _, gamma, values = best[size, penalty, name] = chosen(kind, rows, penalty)
            found = []
            for seed in SEEDS if kind != "linear" else (0,):
                Z = features(kind, gamma, rows, seed)
                found.append(error(fitted(Z, rows, penalty, values), Z, test))
            errors[size, penalty, name] = found
            spread = f"  ({min(found):.3f} to {max(found):.3f})" if len(found) > 1 else ""
            line += f"{np.mean(found):9.3f}{spread}"
        print(line)

mean = {key: float(np.mean(found)) for key, found in errors.items()}


def lowest(size, name):
    return min(mean[size, penalty, name] for penalty in PENALTIES)


def in_order(found):
    pairs = sorted(found.items(), key=lambda entry: entry[1])
    return "; ".join(f"{penalty} {value:.3f}" for penalty, value in pairs)


print("\nWHAT IS SEEN\n")
for size in SIZES:
    gain = lowest(size, "Nystroem") / lowest(size, "linear") - 1
    on_test = {penalty: mean[size, penalty, "Nystroem"] for penalty in PENALTIES}
    on_validation = {penalty: best[size, penalty, "Nystroem"][0] for penalty in PENALTIES}
    print(f"""  {size}: Nystroem changes the best linear error by {gain:+.0%}. On its features, from
  the lowest error to the highest:
    validation   {in_order(on_validation)}
    test         {in_order(on_test)}""")
print("""
  Blocks are different movements: neither the order of the penalties nor the level of the error
  need be the same on two of them, and a difference between penalties that is smaller than the one
  between seeds proves nothing.""")
rows_first = next(iter(SIZES))
assert lowest(rows_first, "Nystroem") < lowest(
    rows_first, "linear"
)  # with rows enough, the features pay

# %%
# What can still be read
# ----------------------

_, gamma, values = best[rows_first, "FETR, tasks alone", "Nystroem"]
Z = features(Nystroem, gamma, learn, 0)
at_best = fitted(Z, learn, "FETR, tasks alone", values).Sigma2.eigenvalues()


def at_bounds(rho):
    """How many eigenvalues of the tasks' precision lie at l or at u."""
    eigenvalues = fitted(
        Z, learn, "FETR, tasks alone", {"eta": 1.0, "rho": rho}
    ).Sigma2.eigenvalues()
    return int(np.sum((eigenvalues <= 0.0101) | (eigenvalues >= 99)))


between = min((0.01, 0.03, 0.1, 0.3, 1.0, 3.0), key=at_bounds)
solution = fitted(Z, learn, "FETR, tasks alone", {"eta": 1.0, "rho": between})
low = np.sum(at_best <= 0.0101)
said = ", ".join(f"{key} = {value:g}" for key, value in values.items())
print(f"""
WHAT CAN STILL BE READ

  A correlation between random features means nothing to anyone. That of the tasks does, in the
  new space as in the old, where the precision lies between its bounds. At the chosen {said},
  {low} of its {m} eigenvalues are at the lower bound, where large weights have pushed them. At
  eta = 1, rho = {between:g}, {at_bounds(between)} are at a bound:

{solution.Sigma2}

  {solution}""")
assert solution.Sigma2.correlation.shape == (m, m)


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    style = {"axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False}
    plt.rcParams.update(style | {"axes.titlelocation": "left", "axes.titlesize": 12})
    colours = dict(zip(PENALTIES, ("#7d858f", "#3d9a8b", "#d9742b", "#1f5fa8"), strict=True))
    figure, both = plt.subplots(
        1, 2, figsize=(11, 4.6), layout="constrained", sharex=True, sharey=True
    )
    for axes, size in zip(both, SIZES, strict=True):
        for j, name in enumerate(KINDS):
            for k, (penalty, colour) in enumerate(colours.items()):
                found, y = errors[size, penalty, name], -5 * j - k
                axes.plot([min(found), max(found)], [y, y], color=colour, linewidth=2, alpha=0.5)
                axes.plot(found, [y] * len(found), "|", color=colour, markersize=8)
                axes.plot(np.mean(found), y, "o", color=colour, markersize=8)
        axes.set(title=f"{size} to learn from", xlabel="mean squared error, test block")
        axes.grid(axis="x", color="#e4e7ea")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
    reach = [min(map(min, errors.values())), max(map(max, errors.values()))]
    both[0].set_xlim(0.97 * reach[0], 1.02 * reach[1])  # of both: they share their axis
    both[0].set_yticks([-5 * j - 1.5 for j in range(len(KINDS))], list(KINDS))
    for penalty, colour in colours.items():
        both[0].plot([], [], "o", color=colour, markersize=8, label=penalty)
    figure.legend(frameon=False, loc="outside lower center", ncols=4)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nPicture: {path}")
    print(f"(dots: means; lines: from the lowest to the highest of {len(SEEDS)} seeds)")


try:
    picture(OUTPUT / "11_random_features.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/11_random_features.py``.
#
# **1.** Random Fourier features by hand: z(x), of which the products are nearly the kernel.


def fourier_features(X, V, b):
    """(n, D) features of the rows of X (n, d); the columns of V (d, D) ~ N(0, 2 gamma I), b ~
    uniform on [0, 2 pi].
    """
    ...


@exercise(fourier_features)
def check_fourier_features(answer):
    draw = np.random.default_rng(0)
    rows, gamma_, D = draw.normal(size=(6, 4)), 0.1, 40_000
    V = np.sqrt(2 * gamma_) * draw.normal(size=(4, D))
    z = answer(rows, V, draw.uniform(0, 2 * np.pi, D))
    kernel = np.exp(-gamma_ * np.sum((rows[:, None] - rows[None]) ** 2, axis=2))
    away = np.abs(z @ z.T - kernel).max()
    assert away < 0.03, f"the products miss the kernel by up to {away:.3f}"


# %%
# **2.** Nystroem by hand: features whose products *are* the kernel between the landmarks.


def nystroem(K_xl, K_ll):
    """(n, D) features of n rows from their kernel with D landmarks, and the landmarks' own."""
    ...


@exercise(nystroem)
def check_nystroem(answer):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(12, 3))
    kernel = np.exp(-0.3 * np.sum((rows[:, None] - rows[None]) ** 2, axis=2))
    z = answer(kernel[:, :5], kernel[:5, :5])
    apart = np.abs((z @ z.T)[:, :5] - kernel[:, :5]).max()
    assert z.shape == (12, 5)
    assert apart < 1e-8, f"with a landmark on one side the product misses the kernel by {apart:.3g}"
