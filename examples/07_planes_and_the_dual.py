"""7. Maxima of planes, and their dual
===================================

A maximum of planes, its dual, and how the gap closes.

::

    minimize over w    1/2 ||w||^2  +  C G(Xw)
    G(z)  =  max over labellings y' of  Delta(y, y') - <y - y', z>

One task with n samples has 2^n labellings y'. With a_k = X'(y'_k - y) and delta_k = Delta(y,
y'_k), each of them is a plane in w::

    G(Xw)  =  max over k of  delta_k + <a_k, w>   (the truth is the plane 0, so G >= 0)

THE DUAL. A maximum is the best mixture: max_k h_k = max over beta in the simplex (beta >= 0, sum
1) of sum_k beta_k h_k. For a fixed beta the rest is a quadratic in w, whose minimiser is w(beta)
= -C sum_k beta_k a_k. Put it in::

    D(beta)  =  C <delta, beta>  -  C^2 / 2 || sum_k beta_k a_k ||^2

a quadratic program over a simplex; D(beta) <= optimum, always.

THE CERTIFICATE IN WORDS. beta is a *random labelling*: y'_k with probability beta_k. Its
multiplier is u = C E[y' - y], that is -2 C y_j times the probability with which sample j is
flipped; what it proves about the loss is the expected Delta, C E[Delta], and the ridge takes its
conjugate, 1/2 ||X'u||^2. Nobody has to believe that some maximum was found: any random labelling
proves a bound.

CUTTING PLANES. 2^n planes are too many, and few matter. Start with the plane 0; solve the small
dual; ask for the highest plane at its w (sort the scores: no enumeration); add it; repeat. The
small dual is a lower bound, the objective at w an upper one.

Run: ``python examples/07_planes_and_the_dual.py`` (picture:
``examples/output/07_planes_and_the_dual.png``)
"""

from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import mtldsl as mtl
from mtldsl.compile.terms.mixture import Mixture
from mtldsl.proof.certificate import certify
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# All planes of a small task
# --------------------------


def one_minus_f1(y, other):
    right, claimed = np.sum((other > 0) & (y > 0)), np.sum(other > 0)
    return 1 - 2 * right / (claimed + np.sum(y > 0))


def twice_the_errors(y, other):
    return 2.0 * np.sum(other != y)


def all_planes(X, y, delta=one_minus_f1):
    """(labellings (K, n), slopes a_k (K, d), offsets delta_k (K,)), K = 2^n, by definition."""
    labellings = np.array(list(product([1.0, -1.0], repeat=len(y))))
    return labellings, (labellings - y) @ X, np.array([delta(y, other) for other in labellings])


def dual(slopes, offsets, C):
    """(beta, D(beta)) of the quadratic program over the simplex, by a general-purpose solver."""

    def negative(beta):
        return C**2 / 2 * np.sum((beta @ slopes) ** 2) - C * beta @ offsets

    def gradient(beta):
        return C**2 * slopes @ (beta @ slopes) - C * offsets

    on_simplex = {"type": "eq", "fun": lambda beta: beta.sum() - 1, "jac": np.ones_like}
    start = np.full(len(offsets), 1 / len(offsets))
    found = minimize(
        negative,
        start,
        jac=gradient,
        method="SLSQP",
        bounds=[(0, 1)] * len(offsets),
        constraints=[on_simplex],
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
problem = mtl.minimize(mtl.ridge(W) + C * mtl.structured_hinge(W, tasks, metric=mtl.FScore()))
value = 0.5 * weights**2 + C * heights.max(axis=0)
for k in range(0, len(weights), 60):
    here = certify(problem.form(), {"W": weights[[k], None]})
    np.testing.assert_allclose(here.objective, value[k], rtol=1e-12)

print(f"""ONE TASK, ONE FEATURE, {len(y)} SAMPLES: {len(labellings)} PLANES

  x   {"".join(f"{v:6.1f}" for v in x)}
  y   {"".join(f"{v:>6}" for v in signs(y))}

  For w from {weights[0]} to {weights[-1]}, {len(met)} of the {len(labellings)} labellings are
  ever the highest plane:

    labelling     Delta = 1 - F1     slope""")
for k in met:
    print(f"    {signs(labellings[k])}{offsets[k]:18.3f}{slopes[k, 0]:13.1f}")

print("""
  Cutting planes, with the dual of the planes so far solved by scipy:

    round   planes          w      dual bound      objective    next plane""")
known, rounds = [int(np.flatnonzero((labellings == y).all(axis=1))[0])], []
for turn in range(1, 20):
    beta, bound = dual(slopes[known], offsets[known], C)
    w = float((-C * beta @ slopes[known])[0])
    at_w = offsets + slopes[:, 0] * w
    k = int(at_w.argmax())
    upper = 0.5 * w**2 + C * at_w[k]
    rounds.append((list(known), w, bound, upper))
    closed = upper - bound <= 1e-9 * upper
    print(
        f"    {turn:5d}{len(known):9d}{w:11.4f}{bound:16.6f}{upper:15.6f}    "
        f"{'none: the gap is closed' if closed else signs(labellings[k])}"
    )
    if closed:
        break
    known.append(k)
solution = problem.solve(tol=1e-9)
assert closed and solution.solver == "dual_ascent" and solution.is_optimal
np.testing.assert_allclose(solution.objective, bound, rtol=1e-8)
np.testing.assert_allclose(solution.W[0, 0], w, rtol=1e-5)
print(
    f"\n  mtldsl: w = {solution.W[0, 0]:.4f}, objective {solution.objective:.6f}, "
    f"by {solution.solver}"
)

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
problem2 = mtl.minimize(mtl.ridge(V) + C * mtl.structured_hinge(V, tasks2, metric=mtl.FScore()))
solution2 = problem2.solve(solver="dual_ascent", tol=1e-9)
n_planes = solution2.history[-1]["planes"]
print(f"""
TWO FEATURES, {len(y2)} SAMPLES: THE DUAL OVER ALL {len(beta)} PLANES AT ONCE

                    scipy, {len(beta)} planes     dual_ascent, {n_planes} planes
  optimum           {bound:17.8f}{solution2.objective:27.8f}
  w                 {w[0]:8.4f} {w[1]:8.4f}{solution2.W[0, 0]:18.4f} {solution2.W[1, 0]:8.4f}""")
np.testing.assert_allclose(solution2.objective, bound, rtol=1e-7)
np.testing.assert_allclose(solution2.W[:, 0], w, atol=1e-4)

print(
    "\n  The certificate is a random labelling of the samples:\n\n    "
    "probability   labelling   Delta"
)
for k in np.argsort(-beta)[: np.sum(beta > 1e-6)]:
    truth = "   (the truth)" if np.array_equal(labellings2[k], y2) else ""
    print(f"    {beta[k]:11.4f}   {signs(labellings2[k]):>9}{offsets2[k]:8.3f}{truth}")

flips = labellings2 != y2
probability = beta @ flips
u = -2 * C * y2 * probability
by_hand = C * beta @ offsets2 - 0.5 * np.sum((X.T @ u) ** 2)
proof = certify(problem2.form(), {"V": w[:, None]}, [[Mixture(flips, beta)]])
of_ridge = 0.5 * np.sum((X.T @ u) ** 2)
print(f"""
    P(flip) of each sample         {"".join(f"{p:7.3f}" for p in probability)}
    C E[Delta]                     {C * beta @ offsets2:.8f}     what it proves about the loss
    conjugate of the ridge         {of_ridge:.8f}     1/2 ||X'u||^2, u = -2 C y P(flip)
    their difference               {by_hand:.8f}
    mtldsl, given this Mixture     {proof.dual_bound:.8f}     gap {proof.relative_gap:.0e}""")
np.testing.assert_allclose(by_hand, bound, rtol=1e-9)
np.testing.assert_allclose(proof.dual_bound, by_hand, rtol=1e-9)
np.testing.assert_allclose(proof.objective, solution2.objective, rtol=1e-6)

# any other random labelling, mixed with the truth (the plane 0) as far as is best: s C E[Delta] -
# s^2 / 2 C^2 ||E[a]||^2
tries = rng.dirichlet(np.full(len(beta), 0.02), size=2000)
linear, quadratic = C * tries @ offsets2, C**2 * np.sum((tries @ slopes2) ** 2, axis=1)
share = np.minimum(1, linear / quadratic)
bounds = share * linear - share**2 / 2 * quadratic
print(
    f"    2,000 random ones, each mixed with the truth, prove between "
    f"{bounds.min():.3f} and {bounds.max():.3f}: weaker, and never too much."
)
assert bounds.max() <= solution2.objective

# %%
# 3. the hinge loss is one of these
# ---------------------------------

_, slopes_e, offsets_e = all_planes(X, y2, delta=twice_the_errors)
for v in rng.normal(size=(200, 2)):
    maximum, hinge = np.max(offsets_e + slopes_e @ v), np.sum(np.maximum(0, 1 - y2 * (X @ v)))
    np.testing.assert_allclose(maximum, 2 * hinge, rtol=1e-12, atol=1e-12)
by_errors = mtl.minimize(
    mtl.ridge(V) + C * mtl.structured_hinge(V, tasks2, metric=mtl.ErrorRate())
).solve(tol=1e-9)
by_hinge = mtl.minimize(mtl.ridge(V) + 2 * C * mtl.hinge_loss(V, tasks2)).solve(tol=1e-9)
print(f"""
DELTA = 2 x ERRORS IS TWICE THE HINGE LOSS
(the maximum splits into samples: flip j iff y_j z_j < 1)

  ridge(V) +  {C:g} structured_hinge(V, metric=ErrorRate())   {by_errors.objective:.8f}
  ridge(V) +  {2 * C:g} hinge_loss(V)                             {by_hinge.objective:.8f}""")
assert by_errors.is_optimal and by_hinge.is_optimal
np.testing.assert_allclose(by_errors.objective, by_hinge.objective, rtol=1e-8)

# %%
# 4. a larger problem: the gap, call by call
# ------------------------------------------

X3, truth = rng.normal(size=(200, 8)), rng.normal(size=(8, 3))
Y3 = np.where(X3 @ truth + 1.5 * rng.normal(size=(200, 3)) > 3.0, 1.0, -1.0)
tasks3 = mtl.Tasks.shared(X3, Y3)
U = mtl.Weights(tasks3, name="U")
problem3 = mtl.minimize(mtl.ridge(U) + 0.3 * mtl.structured_hinge(U, tasks3, metric=mtl.FScore()))
runs = {
    "dual_ascent": problem3.solve(solver="dual_ascent", tol=1e-8),
    'admm, inner="planes"': problem3.solve(solver="admm", tol=1e-8),
    'admm, inner="frank_wolfe"': problem3.solve(
        solver="admm", inner="frank_wolfe", inner_steps=50, tol=1e-3, max_iter=120
    ),
}
print(f"""
THE GAP, CALL BY CALL OF THE ORACLE: {tasks3}

  solver                        calls   planes   relative gap   status""")
for name, run in runs.items():
    last = run.history[-1]
    print(
        f"  {name:<27}{last['oracle_calls']:8.0f}{last['planes']:9d}{run.gap:15.0e}   {run.status}"
    )
first = {name: run.history[0]["oracle_calls"] for name, run in runs.items()}
calls_to = {
    name: next((h["oracle_calls"] for h in run.history if h["relative_gap"] <= 0.05), np.inf)
    for name, run in runs.items()
}
calls_table = "\n".join(
    f"    {name:<27}{calls:6.0f}{first[name]:6.0f}" for name, calls in calls_to.items()
)
print(f"""
  Calls until 5 % are proven, and in the first round:
{calls_table}

  A quadratic program over all planes met uses each of them again. A Frank-Wolfe step, as in the
  SMTL paper, moves towards the newest plane and away from all others alike, and its round is a
  whole W-step. A relative gap above 1 says that the bound is still below 0.""")
planes, frank_wolfe = runs['admm, inner="planes"'], runs['admm, inner="frank_wolfe"']
assert runs["dual_ascent"].is_optimal and planes.is_optimal
np.testing.assert_allclose(runs["dual_ascent"].objective, planes.objective, rtol=3e-8)
assert frank_wolfe.objective >= planes.dual_bound and frank_wolfe.dual_bound <= planes.objective
assert calls_to["dual_ascent"] < calls_to['admm, inner="frank_wolfe"']

print("\nTHE CROSS-CHECK\n")
check = problem3.cross_check(planes)
print(check)
assert check.agrees


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
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")

    left.plot(weights, heights.T, color=grey, linewidth=0.7)
    left.plot(
        weights, heights.max(axis=0), color="black", linewidth=5, alpha=0.18, solid_capstyle="round"
    )
    for k, shade in zip(met, plt.get_cmap("viridis")(np.linspace(0, 0.9, len(met))), strict=True):
        left.plot(weights, heights[k], color=shade, linewidth=0.8)
        on_top = np.where(highest == k, heights[k], np.nan)
        left.plot(
            weights,
            on_top,
            color=shade,
            linewidth=2.6,
            label=f"{signs(labellings[k])}   Δ = {offsets[k]:.2f}",
        )
    left.legend(
        frameon=False, loc="upper right", fontsize=9, prop={"family": "DejaVu Sans Mono", "size": 9}
    )
    left.set(
        title=f"G(w): the highest of {len(labellings)} planes, one a labelling",
        xlabel="w",
        ylabel="height of a plane",
        ylim=(-0.1, 2.3),
        xlim=(weights[0], weights[-1]),
    )

    middle.plot(weights, value, color="black", linewidth=2, label="$\\frac{1}{2}w^2+C\\,G(w)$")
    shades = plt.get_cmap("Oranges")(np.linspace(0.35, 0.9, len(rounds)))
    for shade, (kept, w, bound, _) in zip(shades, rounds, strict=True):
        model = 0.5 * weights**2 + C * heights[kept].max(axis=0)
        middle.plot(weights, model, color=shade, linewidth=1.3)
        middle.plot(
            w,
            bound,
            "o",
            color=shade,
            label=f"{len(kept)} plane{'s' * (len(kept) > 1)}: optimum ≥ {bound:.3f}",
        )
    middle.set(
        title="Cutting planes: each model's minimum is a bound",
        xlabel="w",
        ylabel="objective, and models of it",
        ylim=(-0.2, 6.4),
        xlim=(weights[0], weights[-1]),
    )
    middle.legend(frameon=False, loc="upper right", fontsize=9)

    for (name, run), colour in zip(runs.items(), (orange, blue, green), strict=True):
        calls = [h["oracle_calls"] for h in run.history]
        gaps = [max(h["relative_gap"], 1e-10) for h in run.history]
        right.plot(calls, gaps, "o-", color=colour, markersize=3.5, linewidth=1.6, label=name)
    right.set(
        title="Proven relative gap against calls of the oracle",
        xlabel="calls of the oracle (all tasks at once)",
        ylabel="relative gap",
        xscale="log",
        yscale="log",
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
# The film: one plane after the other
# -----------------------------------
#
# Left the rounds of section 1, by hand; right what ``solve`` itself tells a ``callback`` about the
# same problem, round by round: the objective from above, the proven bound from below. For a problem
# of your own: ``mtl.report.film(problem, "dual_ascent").save("planes.gif")``.

looks = []
problem.solve(solver="dual_ascent", tol=1e-9, callback=looks.append)
assert looks[-1]["objective"] - looks[-1]["dual_bound"] < 1e-6
assert all(look["dual_bound"] <= solution.objective + 1e-9 for look in looks)


def animation(path):
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.9), layout="constrained")
    left.plot(weights, value, color="black", linewidth=2.2, label="objective: all 64 planes")
    (of_model,) = left.plot([], [], color="#d55e00", linewidth=2, label="the planes so far")
    (low,) = left.plot([], [], "o", color="#d55e00", markersize=8)
    (high,) = left.plot([], [], "o", color="#0072b2", markersize=8)
    (between,) = left.plot([], [], color="#0072b2", linewidth=1, linestyle=":")
    left.set(xlim=(weights[0], weights[-1]), ylim=(-0.3, 6), xlabel="w")
    left.legend(frameon=False, loc="upper right")
    left.spines[["top", "right"]].set_visible(False)
    right.set(xlim=(0.8, looks[-1]["iteration"] + 0.2), ylim=(-0.3, 3.3))
    right.set_xlabel("round of dual_ascent")
    (above,) = right.plot([], [], "o-", color="#0072b2", label="objective")
    (below,) = right.plot([], [], "o-", color="#d55e00", label="proven bound")
    right.legend(frameon=False, loc="lower right")
    right.spines[["top", "right"]].set_visible(False)

    def show(frame):
        k = min(frame // 2, len(rounds) - 1)
        kept, w, bound, upper = rounds[k]
        of_model.set_data(weights, 0.5 * weights**2 + C * heights[kept].max(axis=0))
        low.set_data([w], [bound])
        asked = frame % 2 == 1 or frame >= 2 * len(rounds)
        high.set_data([w] * asked, [upper] * asked)
        between.set_data([w, w] * asked, [bound, upper] * asked)
        word = f"{bound:.2f} ≤ optimum ≤ {upper:.2f}" if asked else f"optimum ≥ {bound:.2f}"
        left.set_title(f"{len(kept)} plane{'s' * (len(kept) > 1)}: {word}", loc="left")
        told = looks[: frame // 2 + 1]
        every = [look["iteration"] for look in told]
        above.set_data(every, [look["objective"] for look in told])
        below.set_data(every, [look["dual_bound"] for look in told])
        right.set_title(
            f"{told[-1]['planes']} planes, gap {told[-1]['relative_gap']:.0e}", loc="left"
        )

    show(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # once is enough: a layout a frame takes most of the time
    film = FuncAnimation(figure, show, frames=2 * max(len(rounds), len(looks)) + 2, interval=700)
    path.parent.mkdir(exist_ok=True)
    film.save(path, PillowWriter(fps=1.5), dpi=72)
    print(f"\nFilm: {path}")
    return film


try:
    film = animation(OUTPUT / "07_planes.gif")
except ImportError:
    print("(no film: matplotlib is not installed)")

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
    loss = mtl.structured_hinge(V10, tasks10, metric=mtl.FScore())
    found = mtl.minimize(mtl.ridge(V10) + larger * loss).solve(tol=1e-9)
    expected = solution2.objective * larger / C
    assert np.isclose(found.objective, expected, rtol=1e-6), (
        f"with C' = {larger:.4g} the optimum is {found.objective:.6f}, and C' / C times that of C "
        f"is {expected:.6f}"
    )
    assert np.allclose(found.W, share * solution2.W, atol=1e-6), (
        f"the optimum is right; w' is {found.W[0, 0] / solution2.W[0, 0]:.4g} w, not {share:.4g} w"
    )
