r"""1. Ridge, and what a proof is
=============================

One ridge regression, and what it means that a solution comes with a proof.

.. math::

    \min_w \; \frac{1}{2} \|X w - y\|^2 + \frac{\lambda}{2} \|w\|^2

One task has one closed form:

.. math::

    (X^T X + \lambda I) \, w = X^T y

So every number below can be checked by hand, and is.

THE PROOF. Every solver claims that its w is the minimiser. How can one know without trusting it?
By a number that is provably below the objective of *every* w, and meets the objective at the w
that was found.

Take any vector u, one entry per sample. From (r - u)^2 >= 0 with r = Xw - y follows

.. math::

    \frac{1}{2} \|X w - y\|^2 \ge \langle u, X w - y \rangle - \frac{1}{2} \|u\|^2

with equality where u = Xw - y. Take any vector v, one entry per feature. From (lam w - v)^2 >= 0
follows

.. math::

    \frac{\lambda}{2} \|w\|^2 \ge \langle v, w \rangle - \frac{1}{2 \lambda} \|v\|^2

with equality where v = lam w. Add the two and choose v = -X'u. The terms with w cancel. What stays
does not depend on w, and holds for all w and u:

.. math::

    \mathrm{objective}(w) \ge D(u) = -\frac{1}{2} \|u\|^2 - \langle u, y \rangle
    - \frac{1}{2 \lambda} \|X^T u\|^2

D(u) is a *dual bound*, u the *dual certificate*, objective(w) - D(u) the *duality gap*. A gap of
zero is a proof, and anybody can check it with three lines of numpy. mtldsl never calls a point
optimal without such a pair.

Run: ``python examples/01_ridge.py`` (data: scikit-learn's diabetes, 442 patients, 10
measurements)
"""

import numpy as np
from sklearn.datasets import load_diabetes

import mtldsl as mtl
from mtldsl.testing import exercise

data = load_diabetes(scaled=False, as_frame=True)
centred = data.target - data.target.mean()
tasks = mtl.Tasks.shared(data.data, centred, task_names=["progression"]).standardize()

# %%
# The model, typed in one line
# ----------------------------

W = mtl.Weights(tasks)
lam = mtl.Parameter(20.0)
problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W))

print("THE MODEL\n")
print(problem, "\n")
print(tasks, "\n")
print("Which solver takes it, and why not the others:\n")
print(str(problem.explain()).split("\n", 2)[2], "\n")

solution = problem.solve(tol=1e-10)
print("THE SOLUTION\n")
print(solution, "\n")

# %%
# 1. by the closed form
# ---------------------

X, y = tasks.X, tasks.targets
w = np.linalg.solve(X.T @ X + lam.value * np.eye(tasks.n_features), X.T @ y)
print(f"  {'':<6}{'mtldsl':>10}{'by hand':>10}")
for name, ours, by_hand in zip(tasks.feature_names, solution.W[:, 0], w, strict=True):
    print(f"  {name:<6}{ours:>10.4f}{by_hand:>10.4f}")
np.testing.assert_allclose(solution.W[:, 0], w, rtol=1e-8)

# %%
# 2. the certificate, by hand
# ---------------------------


def objective(w):
    return 0.5 * np.sum((X @ w - y) ** 2) + 0.5 * lam.value * np.sum(w**2)


def dual_bound(u):
    return -0.5 * np.sum(u**2) - u @ y - np.sum((X.T @ u) ** 2) / (2 * lam.value)


print("\nTHE CERTIFICATE, BY HAND\n")
u = X @ w - y
print(f"  objective(w)          {objective(w):.6f}      mtldsl: {solution.objective:.6f}")
print(f"  dual bound D(Xw - y)  {dual_bound(u):.6f}      mtldsl: {solution.dual_bound:.6f}")
np.testing.assert_allclose(solution.objective, objective(w), rtol=1e-9)
np.testing.assert_allclose(solution.dual_bound, dual_bound(u), rtol=1e-9)

# At a w that is not the minimiser the same recipe still gives a true statement: the optimum lies
# between the two numbers.
print("""
On the way from 0 to the solution. Each line proves that the optimum lies between its two numbers:
to say so, nobody has to know w*.

    t in t w*     dual bound      objective    relative gap    relative distance to the optimum""")
for t in (0.0, 0.5, 0.9, 0.99, 0.999, 1.0):
    value, bound = objective(t * w), dual_bound(X @ (t * w) - y)
    assert bound <= objective(w) * (1 + 1e-14) <= value * (1 + 2e-14)
    gap = (value - bound) / max(abs(value), abs(bound))
    print(
        f"    "
        f"{t:>9.3f}{bound:>15.1f}{value:>15.1f}{gap:>16.1e}{(value - objective(w)) / value:>18.1e}"
    )

# And a random u still bounds everything from below; it is weak, but it cannot be wrong.
u_random = np.random.default_rng(0).normal(size=y.size)
print(
    f"\n  Any other u bounds as well, only worse: a random one proves optimum >= "
    f"{dual_bound(u_random):.0f}."
)
assert dual_bound(u_random) < objective(w)

# %%
# 3. an intercept
# ---------------
#
# The labels were centred above by hand. Not centred, the model needs an intercept b, which
# nothing penalises. In the proof, <u, Xw + b - y> must not depend on b either: the entries of u
# have to sum to zero.
raw = mtl.Tasks.shared(data.data, data.target).standardize()
V = mtl.Weights(raw, intercept=True, name="V")
raw_problem = mtl.minimize(mtl.squared_loss(V, raw) + lam * mtl.ridge(V))
with_intercept = raw_problem.solve(tol=1e-10)
residual = raw.targets - with_intercept.decision_function(data.data)[:, 0]
print("\nWITH AN INTERCEPT\n")
b, mean = with_intercept.intercept[0], data.target.mean()
print(f"  b = {b:.4f}  (the mean of the labels is {mean:.4f}), {with_intercept.status}")
print(f"  the dual certificate sums to {abs(residual.sum()):.1e}")

# %%
# 4. the independent check
# ------------------------
#
# The certificate is our own arithmetic. The cross-check is somebody else's: the same model stated
# in cvxpy from the definitions, solved by an interior-point method that shares no formula with
# mtldsl.
print("\nTHE CROSS-CHECK\n")
check = problem.cross_check()
print(check)
assert solution.is_optimal and with_intercept.is_optimal and check.agrees

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/01_ridge.py``.
#
# **1.** Every u proves a bound, and so does every multiple of it. Which multiple proves most? (D is
# a quadratic in s along the line s u.)


def best_multiple(u, X, y, lam):
    """The s for which D(s u) is largest."""
    ...


@exercise(best_multiple)
def check_best_multiple(answer):
    for seed in range(3):
        u = np.random.default_rng(seed).normal(size=y.size)
        s = answer(u, X, y, lam.value)
        best = problem.dual_value(s * u)
        for other in (0.0, s - 0.1, s + 0.1, s - 1e-3, s + 1e-3):
            assert best > problem.dual_value(other * u), f"D({other:.4g} u) is above D({s:.4g} u)"


# %%
# **2.** Gradient descent, w <- w - step * gradient, finds the same w if the step is not too
# long. From which step on does it run away? (Along an eigenvector of X'X the error is multiplied
# by the same number again and again. Which eigenvector is the first for which that number is
# below -1?)


def longest_step(X, lam):
    """The step below which gradient descent converges from every start, and above which not."""
    ...


@exercise(longest_step)
def check_longest_step(answer):
    def error_after(step, n_steps=2000):
        v = w + np.linalg.svd(X, full_matrices=False)[2].sum(axis=0)  # of every eigenvector
        for _ in range(n_steps):
            v = v - step * (X.T @ (X @ v - y) + lam.value * v)
            if np.linalg.norm(v - w) > 1e6:  # it has run away
                return np.inf
        return np.linalg.norm(v - w)

    step = answer(X, lam.value)
    assert step > 0, "with a step of zero, or uphill, nothing is found"
    assert error_after(0.99 * step) < 1e-3, "a step one percent shorter does not converge"
    assert error_after(1.01 * step) > 1e3, "a step one percent longer still converges"


# %%
# **3.** The model with an intercept. From weights and intercept, give multipliers that prove a
# bound. ``check_bound`` tells which condition fails, where, and by how much.


def multipliers(weights, b, X, y):
    """u (one entry a row) that proves the solution optimal."""
    ...


@exercise(multipliers)
def check_multipliers(answer):
    u = answer(with_intercept.W[:, 0], with_intercept.intercept[0], raw.X, raw.targets)
    bound = raw_problem.check_bound(u)
    assert bound.holds, f"\n{bound}"
    missing = with_intercept.objective - bound.value
    assert missing < 1e-6 * with_intercept.objective, (
        f"a bound, but {missing:.3g} below the optimum. {bound.hint}"
    )
