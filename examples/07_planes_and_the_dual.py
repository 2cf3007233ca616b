r"""7. Maxima of planes, and their dual
===================================

A maximum of planes, its dual, and how the gap closes.

.. math::

    \min_w \; \frac{1}{2} \|w\|^2 + C \, G(Xw), \qquad
    G(z) = \max_{y'} \; \Delta(y, y') - \langle y - y', z \rangle

The maximum runs over labellings y'. One task with n samples has 2^n of them. With

.. math::

    a_k = X^T (y'_k - y), \qquad \delta_k = \Delta(y, y'_k)

each labelling is a plane in w:

.. math::

    G(Xw) = \max_k \; \delta_k + \langle a_k, w \rangle

The truth is the plane 0, so G is never below 0.

THE DUAL. A maximum is the best mixture: beta in the simplex has entries of at least 0 that sum to
1.

.. math::

    \max_k h_k = \max_{\beta} \; \sum_k \beta_k h_k

For a fixed beta the rest is a quadratic in w, with the minimiser

.. math::

    w(\beta) = -C \sum_k \beta_k a_k

Put it in:

.. math::

    D(\beta) = C \langle \delta, \beta \rangle - \frac{C^2}{2} \left\| \sum_k \beta_k a_k \right\|^2

This is a quadratic program over a simplex. D(beta) is never above the optimum.

THE CERTIFICATE IN WORDS. beta is a *random labelling*: y'_k with probability beta_k. Its multiplier
is u = C E[y' - y]. What it proves about the loss is the expected Delta. The ridge takes its
conjugate:

.. math::

    D = C \, \mathrm{E}[\Delta] - \frac{1}{2} \|X^T u\|^2, \qquad
    u_j = -2 C \, y_j \, P(\mathrm{flip} \; j)

Nobody has to believe that some maximum was found: any random labelling proves a bound.

CUTTING PLANES. 2^n planes are too many, and few matter. Start with the plane 0 and solve the small
dual. Ask for the highest plane at its w: sorted scores give it, without enumeration. Add it, and
repeat. The small dual is a lower bound, the objective at w an upper one.

Run: ``python examples/07_planes_and_the_dual.py`` (picture:
``examples/output/07_planes_and_the_dual.png``)
"""

from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import mtldsl as mtl
from mtldsl.certificates.certificate import certify
from mtldsl.normal_form.terms.structured_term import Mixture
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# All planes of a small task
# --------------------------


def one_minus_f1(y, other):
    right, claimed = np.sum((other > 0) & (y > 0)), np.sum(other > 0)
    return 1 - 2 * right / (claimed + np.sum(y > 0))


def all_planes(X, y):
    """(labellings (K, n), slopes a_k (K, d), offsets delta_k (K,)), K = 2^n, by definition."""
    labellings = np.array(list(product([1.0, -1.0], repeat=len(y))))
    offsets = np.array([one_minus_f1(y, other) for other in labellings])
    return labellings, (labellings - y) @ X, offsets


def dual(slopes, offsets, C):
    """(beta, D(beta)) of the quadratic program over the simplex, by a general-purpose solver."""

    def negative(beta):
        return C**2 / 2 * np.sum((beta @ slopes) ** 2) - C * beta @ offsets

    def gradient(beta):
        return C**2 * slopes @ (beta @ slopes) - C * offsets

    found = minimize(
        negative,
        np.full(len(offsets), 1 / len(offsets)),
        jac=gradient,
        method="SLSQP",
        bounds=[(0, 1)] * len(offsets),
        constraints=[{"type": "eq", "fun": lambda beta: beta.sum() - 1, "jac": np.ones_like}],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    beta = np.maximum(found.x, 0) / np.maximum(found.x, 0).sum()
    return beta, 0.0 - negative(beta)


def signs(labelling):
    return "".join("+" if label > 0 else "−" for label in labelling)


# %%
# 1. one feature: a drawing
# -------------------------

x, y = np.array([1.6, 0.5, 0.9, -0.2, -0.8, -1.3]), np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
labellings, slopes, offsets = all_planes(x[:, None], y)
weights = np.linspace(-0.1, 0.6, 421)
heights = offsets[:, None] + slopes * weights
highest = heights.argmax(axis=0)
met = list(dict.fromkeys(highest.tolist()))

tasks = mtl.Tasks.shared(x[:, None], y[:, None])
C = 3.0
W = mtl.Weights(tasks)
problem = mtl.minimize(
    mtl.ridge(W) + C * mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore())
)
value = 0.5 * weights**2 + C * heights.max(axis=0)
print(f"""ONE TASK, ONE FEATURE, {len(y)} SAMPLES: {len(labellings)} PLANES

  For w from {weights[0]} to {weights[-1]}, {len(met)} of them are ever the highest.

  Cutting planes, the dual by scipy:

    round   planes          w      dual bound      objective    next plane""")
known, rounds = [int(np.flatnonzero((labellings == y).all(axis=1))[0])], []
for turn in range(1, 20):
    beta, bound = dual(slopes[known], offsets[known], C)
    w = float((-C * beta @ slopes[known])[0])
    at_w = offsets + slopes[:, 0] * w
    k = int(at_w.argmax())
    upper = 0.5 * w**2 + C * at_w[k]
    rounds.append((list(known), w, bound))
    closed = upper - bound <= 1e-9 * upper
    print(
        f"    {turn:5d}{len(known):9d}{w:11.4f}{bound:16.6f}{upper:15.6f}    "
        f"{'none: the gap is closed' if closed else signs(labellings[k])}"
    )
    if closed:
        break
    known.append(k)
solution = problem.solve(solver="dual_ascent", tol=1e-9)
assert closed and solution.is_optimal
np.testing.assert_allclose(solution.objective, bound, rtol=1e-8)
np.testing.assert_allclose(solution.W[0, 0], w, rtol=1e-5)
print(f"\n  mtldsl: w = {solution.W[0, 0]:.4f}, objective {solution.objective:.6f}")

# %%
# 2. two features: the whole dual, by hand
# ----------------------------------------

rng = np.random.default_rng(3)
X, y2 = rng.normal(size=(7, 2)), np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
X[:3] += 0.8
labellings2, slopes2, offsets2 = all_planes(X, y2)
beta, bound = dual(slopes2, offsets2, C)
w = -C * beta @ slopes2

tasks2 = mtl.Tasks.shared(X, y2[:, None])
V = mtl.Weights(tasks2, name="V")
problem2 = mtl.minimize(
    mtl.ridge(V) + C * mtl.structured_hinge(V, tasks2, metric=mtl.metrics.FScore())
)
solution2 = problem2.solve(solver="dual_ascent", tol=1e-9)
n_planes = solution2.history[-1]["planes"]
print(f"""
TWO FEATURES, {len(y2)} SAMPLES: THE DUAL OVER ALL PLANES AT ONCE

  scipy, {len(beta)} planes          {bound:.8f}
  dual_ascent, {n_planes} planes     {solution2.objective:.8f}

  The certificate is a random labelling of the samples:

    probability   labelling   Delta""")
np.testing.assert_allclose(solution2.objective, bound, rtol=1e-7)
np.testing.assert_allclose(solution2.W[:, 0], w, atol=1e-4)

for k in np.argsort(-beta)[: np.sum(beta > 1e-6)]:
    print(f"    {beta[k]:11.4f}   {signs(labellings2[k]):>9}{offsets2[k]:8.3f}")

flips = labellings2 != y2
probability = beta @ flips
u = -2 * C * y2 * probability
of_loss, of_ridge = C * beta @ offsets2, 0.5 * np.sum((X.T @ u) ** 2)
by_hand = of_loss - of_ridge
proof = certify(problem2.form(), {"V": w[:, None]}, [[Mixture(flips, beta)]])
print(f"""
    P(flip) of each sample         {"".join(f"{p:7.3f}" for p in probability)}
    C E[Delta]                     {of_loss:.8f}     what it proves about the loss
    conjugate of the ridge         {of_ridge:.8f}     1/2 ||X'u||^2, u = -2 C y P(flip)
    their difference               {by_hand:.8f}
    mtldsl, given this Mixture     {proof.dual_bound:.8f}     gap {proof.relative_gap:.0e}""")
np.testing.assert_allclose(by_hand, bound, rtol=1e-9)
np.testing.assert_allclose(proof.dual_bound, by_hand, rtol=1e-9)
np.testing.assert_allclose(proof.objective, solution2.objective, rtol=1e-6)

# %%
# 3. a larger problem: the gap, call by call
# ------------------------------------------
#
# A quadratic program over all planes met uses each of them again. A Frank-Wolfe step, as in the
# SMTL paper, moves towards the newest plane and away from all others alike. A relative gap above 1
# says that the bound is still below 0.

X3, truth = rng.normal(size=(200, 8)), rng.normal(size=(8, 3))
Y3 = np.where(X3 @ truth + 1.5 * rng.normal(size=(200, 3)) > 3.0, 1.0, -1.0)
tasks3 = mtl.Tasks.shared(X3, Y3)
U = mtl.Weights(tasks3, name="U")
problem3 = mtl.minimize(
    mtl.ridge(U) + 0.3 * mtl.structured_hinge(U, tasks3, metric=mtl.metrics.FScore())
)
planes = problem3.solve(solver="dual_ascent", tol=1e-8)
frank_wolfe = problem3.solve(
    solver="admm", inner="frank_wolfe", inner_steps=50, tol=1e-3, max_iter=60
)
runs = {"dual_ascent": planes, 'admm, inner="frank_wolfe"': frank_wolfe}
print(f"""
THE GAP, CALL BY CALL OF THE ORACLE: {tasks3}

  solver                        calls   planes   relative gap   calls until 5 % are proven""")
calls_to = {}
for name, run in runs.items():
    last = run.history[-1]
    within = [h["oracle_calls"] for h in run.history if h["relative_gap"] <= 0.05]
    calls_to[name] = within[0] if within else np.inf
    print(
        f"  {name:<27}{last['oracle_calls']:8.0f}{last['planes']:9d}{run.gap:15.0e}"
        f"{calls_to[name]:29.0f}"
    )
assert planes.is_optimal and frank_wolfe.objective >= planes.dual_bound
assert frank_wolfe.dual_bound <= planes.objective
assert calls_to["dual_ascent"] < calls_to['admm, inner="frank_wolfe"']

assert problem3.cross_check(planes).agrees


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    )
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")

    left.plot(weights, heights.T, color="#d3d7dc", linewidth=0.7)
    for k, shade in zip(met, plt.get_cmap("viridis")(np.linspace(0, 0.9, len(met))), strict=True):
        on_top = np.where(highest == k, heights[k], np.nan)
        label = f"{signs(labellings[k])}   Δ = {offsets[k]:.2f}"
        left.plot(weights, heights[k], color=shade, linewidth=0.8)
        left.plot(weights, on_top, color=shade, linewidth=2.6, label=label)
    left.set(
        title=f"G(w): the highest of {len(labellings)} planes, one a labelling",
        ylabel="height of a plane",
        ylim=(-0.1, 2.3),
    )

    middle.plot(weights, value, color="black", linewidth=2, label="$\\frac{1}{2}w^2+C\\,G(w)$")
    shades = plt.get_cmap("Oranges")(np.linspace(0.35, 0.9, len(rounds)))
    for shade, (kept, w, bound) in zip(shades, rounds, strict=True):
        model = 0.5 * weights**2 + C * heights[kept].max(axis=0)
        label = f"{len(kept)} plane{'s' * (len(kept) > 1)}: optimum ≥ {bound:.3f}"
        middle.plot(weights, model, color=shade, linewidth=1.3)
        middle.plot(w, bound, "o", color=shade, label=label)
    middle.set(
        title="Cutting planes: each model's minimum is a bound",
        ylabel="objective, and models of it",
        ylim=(-0.2, 6.4),
    )
    for axes in (left, middle):
        axes.set(xlabel="w", xlim=(weights[0], weights[-1]))
        axes.legend(frameon=False, loc="upper right", fontsize=9)

    for (name, run), colour in zip(runs.items(), ("#d9742b", "#3d9a8b"), strict=True):
        calls = [h["oracle_calls"] for h in run.history]
        gaps = [max(h["relative_gap"], 1e-10) for h in run.history]
        right.loglog(calls, gaps, "o-", color=colour, markersize=3.5, linewidth=1.6, label=name)
    right.set(
        title="Proven relative gap against calls of the oracle",
        xlabel="calls of the oracle (all tasks at once)",
        ylabel="relative gap",
        ylim=(0.5e-10, 5),
    )
    right.legend(frameon=False, loc="lower left", fontsize=9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "07_planes_and_the_dual.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/07_planes_and_the_dual.py``.
#
# **1.** One plane beside the truth: G(w) = max(0, delta + <a, w>). Solve its dual by hand.


def weight_of_plane(a, delta, C):
    """beta in [0, 1] that maximises C delta beta - C^2 / 2 ||beta a||^2."""
    ...


@exercise(weight_of_plane)
def check_weight_of_plane(answer):
    draw = np.random.default_rng(0)
    for size in (0.1, 0.5, 2.0):
        a, delta = size * draw.normal(size=3), draw.random()
        (_, by_scipy), _ = dual(np.array([0 * a, a]), np.array([0.0, delta]), 3.0)
        yours = answer(a, delta, 3.0)
        assert abs(yours - by_scipy) < 1e-5, f"{yours:.5f}, and scipy has {by_scipy:.5f}"


# %%
# **2.** A bound from any w, without solving anything: take the highest plane at w, give it the
# weight of exercise 1, and say what that proves.


def bound_at(w, slopes, offsets, C):
    """A number that no objective is below: slopes (K, d), offsets (K,), C > 0."""
    ...


@exercise(bound_at)
def check_bound_at(answer):
    draw, optimum = np.random.default_rng(0), solution2.objective
    for w in (np.zeros(2), solution2.W[:, 0], *draw.normal(size=(20, 2))):
        yours = answer(w, slopes2, offsets2, C)
        assert yours <= optimum + 1e-9, f"{yours:.4f} is above the optimum, {optimum:.4f}"
        a, delta = max(zip(slopes2, offsets2, strict=True), key=lambda p, w=w: p[1] + p[0] @ w)
        share = np.linspace(0, 1, 1001)
        best = np.max(C * delta * share - C**2 / 2 * share**2 * (a @ a))
        assert yours > best - 1e-12, f"the plane and the truth prove {best:.4f}, you {yours:.4f}"


# %%
# **3.** The step 1 / C^2 ||a||^2 is in both. What if the features are multiplied by 10? For which C
# does the optimum stay what it was, and what becomes of w?


def rescaled(C, factor):
    """(C', s): with features times factor, C' has the optimum of C times C' / C, at w' = s w."""
    ...


@exercise(rescaled)
def check_rescaled(answer):
    larger, share = answer(C, 10.0)
    tasks10 = mtl.Tasks.shared(10.0 * X, y2[:, None])
    V10 = mtl.Weights(tasks10, name="V10")
    loss = mtl.structured_hinge(V10, tasks10, metric=mtl.metrics.FScore())
    found = mtl.minimize(mtl.ridge(V10) + larger * loss).solve(tol=1e-9)
    expected = solution2.objective * larger / C
    assert np.isclose(found.objective, expected, rtol=1e-6), (
        f"with C' = {larger:.4g} the optimum is {found.objective:.6f}, and C' / C times that of C "
        f"is {expected:.6f}"
    )
    assert np.allclose(found.W, share * solution2.W, atol=1e-6), (
        f"the optimum is right; w' is {found.W[0, 0] / solution2.W[0, 0]:.4g} w, not {share:.4g} w"
    )
