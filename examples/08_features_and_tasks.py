r"""8. Features and tasks: covariances
==================================

Learning how features and tasks relate: two covariances beside the weights.

.. math::

    \min_{W, \Sigma_1, \Sigma_2} \; \sum_i \|X_i w_i - y_i\|^2
    + \eta \, \mathrm{tr}(\Sigma_1 W \Sigma_2 W^T)
    - \rho \left( m \log |\Sigma_1| + d \log |\Sigma_2| \right)

The bounds are

.. math::

    l I \preceq \Sigma_1 \preceq u I, \qquad l I \preceq \Sigma_2 \preceq u I

The penalty is minus the logarithm of a matrix-normal density of W (d x m). Sigma1 (d x d) and
Sigma2 (m x m) are the *precisions* of features and tasks; their inverses are the covariances.
(FETR: Zhao, Stretcu, Smola and Gordon, "Efficient multitask feature and relationship learning",
UAI 2019.) With two of the three matrices kept, the model is convex in the third. The minimiser has
a closed form:

.. math::

    \Sigma_1 = V \, \mathrm{diag}\left(\mathrm{clip}\left(\frac{\rho m}{\eta \nu}, l, u\right)
    \right) V^T, \qquad V \, \mathrm{diag}(\nu) V^T = W \Sigma_2 W^T

In all three together it is not convex. So there is no duality gap to close, and "optimal" is not a
word for its solutions.

BOTH AT ONCE. Let d be at least m. Write

.. math::

    W = U \mathrm{diag}(s) V^T, \qquad t = \frac{\eta s^2}{\rho}

The best *pair* is

.. math::

    \Sigma_1 = U \mathrm{diag}(a) U^T, \qquad \Sigma_2 = V \mathrm{diag}(b) V^T

.. math::

    a = \mathrm{clip}\left(\frac{m}{u t}, l, u\right), \qquad
    b = \mathrm{clip}\left(\frac{d}{a t}, l, u\right)

Sigma1 gives way first, since its log-determinant counts m. Sigma2 follows where a has come down to
l. (Where d is below m, the roles are exchanged.) What is left is a smooth penalty on singular
values, up to constants:

.. math::

    \psi(s) = \begin{cases}
    \eta u^2 s^2 & t \le m / u^2 \\
    \rho m \log t & t \le m / (l u) \\
    \eta l u s^2 & t \le d / (l u) \\
    \rho d \log t & t \le d / l^2 \\
    \eta l^2 s^2 & \mathrm{above}
    \end{cases}

L-BFGS minimises it.

Run: ``python examples/08_features_and_tasks.py`` (picture:
``examples/output/08_features_and_tasks.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.datasets import load_sarcos
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

rng = np.random.default_rng(0)

# %%
# Data
# ----
#
# SARCOS: 7 torques of a robot's arm, from position, velocity and acceleration of its 7 joints.
# These are 4,449 rows, the published test file. The first 70 % of them are learned from, the last
# 30 % tested on. Where the data are not here, made tasks with matrix-normal weights stand for them.


def related_tasks(d, m, n):
    """Made tasks whose weights are matrix-normal: features and tasks in related groups."""
    groups = np.equal.outer(np.arange(m) % 3, np.arange(m) % 3)
    of_tasks = np.where(groups, 0.8, 0.0) + 0.2 * np.eye(m)
    of_features = 0.9 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    truth = np.linalg.cholesky(of_features) @ rng.normal(size=(d, m))
    truth, X = truth @ np.linalg.cholesky(of_tasks).T, rng.normal(size=(n, d))
    return mtl.Tasks.shared(X, X @ truth + 2 * rng.normal(size=(n, m)))


def blocks(tasks, share=0.7):
    """The first rows to learn from, the last to test on; all in units of the first."""
    X, Y = tasks.X, tasks.targets.reshape(tasks.n_tasks, -1).T
    n = int(share * len(X))
    X, Y = ((A - A[:n].mean(axis=0)) / A[:n].std(axis=0) for A in (X, Y))
    names = {"task_names": tasks.task_names, "feature_names": tasks.feature_names}
    return mtl.Tasks.shared(X[:n], Y[:n], **names), mtl.Tasks.shared(X[n:], Y[n:], **names)


try:
    tasks, test = blocks(load_sarcos())
except mtl.DataError:
    tasks, test = blocks(related_tasks(21, 7, 400))
d, m = tasks.n_features, tasks.n_tasks
assert d >= m
print(f"{tasks}\n")

# %%
# 1. it needs bounds
# ------------------
#
# Without bounds there is no minimum. At W = 0, Sigma2 = I and Sigma1 = t I, the objective falls
# without end as t grows.

W = mtl.Weights(tasks)
Sigma1, Sigma2 = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)


def model(eta=1.0, rho=1.0, l=0.01, u=100.0):
    return mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, Sigma1, Sigma2, eta=eta, rho=rho),
        subject_to=[Sigma1 >> l, Sigma1 << u, Sigma2 >> l, Sigma2 << u],
    )


try:
    mtl.minimize(mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, Sigma1, Sigma2))
    raise AssertionError("a model without a minimum was accepted")
except mtl.ModelError as refusal:
    print(f"WITHOUT BOUNDS THERE IS NO MINIMUM\n\n  ModelError: {refusal}")

# %%
# 2. the solution, and what is proven of it
# -----------------------------------------

problem = model()
solution = problem.solve(tol=1e-8)
print(f"""
THE MODEL

{problem}

  {solution}
  {solution.stationarity}
""")
assert solution.status == "stationary" and solution.is_certified and not solution.is_optimal

X, Y = tasks.X, tasks.targets.reshape(m, -1).T
w, S1, S2 = solution.W, solution.Sigma1.precision, solution.Sigma2.precision


def objective(w, S1, S2, eta=1.0, rho=1.0):
    """From the definition alone."""
    fit, prior = np.sum((X @ w - Y) ** 2), eta * np.sum((S1 @ w) * (w @ S2))
    return fit + prior - rho * (m * np.linalg.slogdet(S1)[1] + d * np.linalg.slogdet(S2)[1])


def best_precision(M, count, eta=1.0, rho=1.0, l=0.01, u=100.0):
    """argmin over l I <= S <= u I of eta tr(S M) - rho count log|S|."""
    nu, V = np.linalg.eigh(M)
    with np.errstate(divide="ignore"):
        return (V * np.clip(rho * count / (eta * np.maximum(nu, 0.0)), l, u)) @ V.T


here = objective(w, S1, S2)
np.testing.assert_allclose(here, solution.objective, rtol=1e-10)
of_loss, of_prior = 2 * X.T @ (X @ w - Y), 2 * S1 @ w @ S2
best_w = (
    np.linalg.solve(np.kron(np.eye(m), X.T @ X) + np.kron(S2, S1), (X.T @ Y).T.ravel())
    .reshape(m, d)
    .T
)
decreases = {
    "W": here - objective(best_w, S1, S2),
    "Sigma1": here - objective(w, best_precision(w @ S2 @ w.T, m), S2),
    "Sigma2": here - objective(w, S1, best_precision(w.T @ S1 @ w, d)),
}
print("  The same by hand, in numpy:")
print(
    f"    {'profile gradient, relative':<36}"
    f"{np.linalg.norm(of_loss + of_prior) / np.linalg.norm(of_loss):10.0e}"
)
for name, decrease in decreases.items():
    print(f"    {f'decrease by the best {name}, relative':<36}{max(decrease, 0) / here:10.0e}")
    assert abs(decrease) <= 1e-9 * abs(here)

# %%
# 3. "no global certificate"
# --------------------------
#
# The solver starts again from its own solution, with one singular value removed. Each end is
# stationary: no matrix alone improves it, and no direction does to first order. No residual says
# which of them is the lowest of all. The bound, of the convex envelope of psi, says how far below
# them the minimum could lie. Starting again is the remedy, and costs milliseconds.

several = model(eta=1000.0, rho=10.0)
own = several.solve(tol=1e-6)
left, s, right = np.linalg.svd(own.W, full_matrices=False)
ends = []
for k in range(m):
    start = (left * np.where(np.arange(m) == k, 0.0, s)) @ right
    run = several.solve(tol=1e-6, warm_start={"W": start})
    assert run.is_certified
    ends.append(run.objective)
assert own.dual_bound <= min(*ends, own.objective)
print(f"""
WHAT "NO GLOBAL CERTIFICATE" MEANS, AT eta = 1000, rho = 10

  the solver's own              {own.objective:12.2f}
  proven: no point is below     {own.dual_bound:12.2f}""")
for value, count in zip(*np.unique(np.round(ends, 2), return_counts=True), strict=True):
    print(f"  from {count:2d} other starts          {value:12.2f}")

# %%
# 4. what is learned, and what is not
# -----------------------------------
#
# The scale is not learned: (c Sigma1, Sigma2 / c) has the same objective. So read correlations. And
# tasks need not show any: Sigma2 stays at u I until the largest t exceeds d / (l u).


def largest(correlation):
    return float(np.abs(correlation - np.eye(len(correlation))).max())


def psi(s, eta=1.0, rho=1.0, l=0.01, u=100.0):
    """The penalty that is left of one singular value, from the cases at the top (d >= m)."""
    t = eta * np.asarray(s) ** 2 / rho
    a = np.clip(m / np.maximum(u * t, 1e-300), l, u)
    b = np.clip(d / np.maximum(a * t, 1e-300), l, u)
    return rho * (a * b * t - m * np.log(a) - d * np.log(b))


penalty = psi(np.linalg.svd(w, compute_uv=False)).sum() - (d - m) * m * np.log(100.0)
np.testing.assert_allclose(np.sum((X @ w - Y) ** 2) + penalty, solution.objective, rtol=1e-9)
for c in (0.5, 2.0):
    np.testing.assert_allclose(objective(w, c * S1, S2 / c), here, rtol=1e-9)

print("""
WHAT IS LEARNED: THE LARGEST |CORRELATION| OF FEATURES AND OF TASKS

    eta/rho      largest t   d / (l u)   features   tasks   R^2 test""")
joins, by_ratio = d / (0.01 * 100), {}
for ratio in (1.0, 10.0, 100.0, 1000.0):
    run = by_ratio[ratio] = model(eta=ratio).solve(tol=1e-6)
    t = ratio * np.linalg.norm(run.W, 2) ** 2
    features, of_tasks = largest(run.Sigma1.correlation), largest(run.Sigma2.correlation)
    print(
        f"    {ratio:7g}{t:15.1f}{joins:12.1f}{features:11.3f}{of_tasks:8.3f}"
        f"{run.score(test):11.4f}"
    )
    assert run.is_certified and (of_tasks > 1e-6) == (t > joins)

# %%
# 5. the cross-check
# ------------------

print("THE CROSS-CHECK: EVERY BLOCK AGAINST AN INDEPENDENT FORMULATION IN CVXPY\n")
check = problem.cross_check(solution)
print(check)
assert check.agrees

# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    from mtldsl.report import heatmap

    plt.rcParams.update(
        {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    )
    figure, axes = plt.subplots(
        1, 3, figsize=(15.5, 4.9), layout="constrained", width_ratios=[1, 1.25, 1.1]
    )
    s = np.geomspace(1e-3, 1e3, 600)
    for (l, u), colour in zip(
        ((1.0, 1.0), (0.1, 10.0), (0.01, 100.0)), ("#6b7280", "#d9742b", "#1f5fa8"), strict=True
    ):
        label = f"l = {l:g}, u = {u:g}" + (" (ridge)" if l == u else "")
        axes[0].plot(s, psi(s, l=l, u=u) - psi(0.0, l=l, u=u), color=colour, label=label)
    axes[0].set(
        xscale="log",
        ylim=(0, 400),
        xlabel="singular value s of W",
        ylabel="ψ(s) − ψ(0)",
        title="What a singular value costs",
    )
    axes[0].legend(frameon=False)
    heatmap(solution.Sigma1, ax=axes[1], limit=1.0, title="features, η = ρ")
    heatmap(by_ratio[100.0].Sigma2, ax=axes[2], limit=1.0, title="tasks, η = 100 ρ")
    axes[1].images[0].colorbar.remove()  # one colour bar is enough: both have the same colours
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "08_features_and_tasks.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/08_features_and_tasks.py``.
#
# **1.** The update of a precision, for one number: derive it, bounds and all.


def update(s, eta, rho, l, u):
    """argmin over sigma in [l, u] of eta sigma s^2 - rho log(sigma)."""
    ...


@exercise(update)
def check_update(answer):
    grid = np.geomspace(0.01, 100, 200_001)
    for s, eta, rho in ((1.0, 1.0, 1.0), (0.01, 1.0, 2.0), (3.0, 50.0, 1.0), (0.7, 2.0, 3.0)):
        best = grid[np.argmin(eta * grid * s**2 - rho * np.log(grid))]
        yours = answer(s, eta, rho, 0.01, 100.0)
        assert np.isclose(yours, best, rtol=1e-3), (
            f"s = {s}: {yours:.4g}, and a grid has {best:.4g}"
        )


# %%
# **2.** The singular value from which on the second matrix learns as well.


def second_joins(d, eta, rho, l, u):
    """The s above which Sigma2 leaves u in the best pair (d features, d >= m tasks)."""
    ...


@exercise(second_joins)
def check_second_joins(answer):
    a_, b_ = np.meshgrid(np.geomspace(0.1, 10, 401), np.geomspace(0.1, 10, 401), indexing="ij")
    for features, count, eta, rho in ((6, 3, 1.0, 1.0), (6, 3, 4.0, 1.0), (9, 3, 1.0, 2.0)):
        s = answer(features, eta, rho, 0.1, 10.0)
        for factor, joins in ((0.9, False), (1.1, True)):
            cost = eta * a_ * b_ * (factor * s) ** 2 - rho * (
                count * np.log(a_) + features * np.log(b_)
            )
            _, second = np.unravel_index(cost.argmin(), cost.shape)
            at_u = second == b_.shape[1] - 1
            assert at_u != joins, f"at {factor} times your s Sigma2 is {b_[0, second]:.2f}"


# %%
# **3.** Why "correlation" and not "covariance" is what can be read: for which (p, q) is the
# objective the same at (c^p Sigma1, c^q Sigma2) for every c > 0, here where d = 2 m?


def same_objective():
    """(p, q), not (0, 0), for d = 2 m and eta = rho = 1, without bounds and with W kept."""
    ...


@exercise(same_objective)
def check_same_objective(answer):
    p, q = answer()
    draw = np.random.default_rng(0)
    rows, columns = 6, 3
    w_, first, second = draw.normal(size=(rows, columns)), np.eye(rows), np.eye(columns)

    def prior(S1, S2):
        logs = columns * np.linalg.slogdet(S1)[1] + rows * np.linalg.slogdet(S2)[1]
        return np.trace(S1 @ w_ @ S2 @ w_.T) - logs

    at_1, at_c = prior(first, second), prior(3.0**p * first, 3.0**q * second)
    assert (p, q) != (0, 0) and np.isclose(at_1, at_c), f"{at_1:.4f} at c = 1, {at_c:.4f} at c = 3"
