r"""14. Majorisation-minimisation
=============================

Parabolas above a penalty that is not convex.

.. math::

    P(W) = \sum_i \|X_i w_i - y_i\|
    + \mu \sum_{j=1}^{d} \log \left( 1 + \sqrt{\sigma_j(W)^2 + \epsilon} \right)

THE IDEA. Do not minimise P. Put something above it that touches it where you are and that you
*can* minimise; go to its minimum; repeat. Q is above P, is minimised, and touches it:

.. math::

    P(\mathrm{new}) \le Q(\mathrm{new}) \le Q(\mathrm{old}) = P(\mathrm{old})

So P falls.

THE PARABOLA. With x = s^2 + eps the penalty is r(x) = log(1 + sqrt(x)), concave in x. A concave
function lies below its tangents, and a tangent in x is a parabola in s:

.. math::

    r(s^2 + \epsilon) \le r(s_0^2 + \epsilon) + r'(s_0^2 + \epsilon) (s^2 - s_0^2), \qquad
    r'(x) = \frac{1}{2 \sqrt{x} \, (1 + \sqrt{x})}

The same trick takes the root off the loss:

.. math::

    \|r\| \le \frac{\|r_0\|}{2} + \frac{\|r\|^2}{2 \, \|r_0\|}

On matrices, s^2 becomes W W', and the parabola tr(D W W') with D = r'(W0 W0' + eps I). What is left
is least squares, one linear system per task, with D and v from the weights before:

.. math::

    (v_i X_i^T X_i + 2 \mu D) \, w_i = v_i X_i^T y_i, \qquad v_i = \frac{1}{\|X_i w_i - y_i\|}

This is Algorithm 1 of Nie, Hu and Li, "Calibrated multi-task learning" (KDD 2018). Three steps of
it are enough to see why it works; a few hundred, to see where it does not.

Run: ``python examples/14_majorization.py`` (picture: ``examples/output/14_majorization.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.datasets import load_school, make_low_rank
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# 1. in one dimension
# -------------------


def penalty(s, eps):
    return np.log1p(np.sqrt(s**2 + eps))


def slope(s, eps):
    """r' at s^2 + eps."""
    root = np.sqrt(s**2 + eps)
    return 1 / (2 * root * (1 + root))


def parabola(s, at, eps):
    return penalty(at, eps) + slope(at, eps) * (s**2 - at**2)


grid = np.linspace(-4, 4, 2001)
for eps in (1e-2, 1e-6):
    for at in (0.0, 0.1, 1.0, 3.0):
        assert np.all(
            parabola(grid, at, eps) >= penalty(grid, eps) - 1e-12 * (1 + parabola(grid, at, eps))
        )
        assert abs(parabola(at, at, eps) - penalty(at, eps)) <= 1e-15


def one_number(y, mu, eps, start, steps):
    """minimize 1/2 (s - y)^2 + mu log(1 + sqrt(s^2 + eps)) by parabolas: s <- y / (1 + 2 mu r')."""
    path = [start]
    for _ in range(steps):
        path.append(y / (1 + 2 * mu * slope(path[-1], eps)))
    values = 0.5 * (np.array(path) - y) ** 2 + mu * penalty(np.array(path), eps)
    assert np.all(np.diff(values) <= 1e-14)
    return np.array(path)


y, mu = 2.5, 1.0
exact = ((y - 1) + np.sqrt((y + 1) ** 2 - 4 * mu)) / 2  # the proximal step in closed form, eps = 0
print(f"""ONE NUMBER: minimize 1/2 (s - {y})^2 + log(1 + |s|); the minimiser is {exact:.4f}

  Start at s = 1e-4. The parabola there is as steep as 1 / sqrt(s^2 + eps): the less eps, the
  smaller the first steps.

       eps     s after 1, 2, 5, 20, 100 steps""")
for eps in (1e-2, 1e-4, 1e-8, 1e-16):
    path = one_number(y, mu, eps, 1e-4, 100)
    print(f"    {eps:6.0e}  {''.join(f'{path[k]:10.4f}' for k in (1, 2, 5, 20, 100))}")
    assert abs(path[-1] - exact) < 0.02
stuck = one_number(0.9, 1.0, 1e-16, 0.0, 100)
print(f"""
  Here all of them arrive: a weight that is *nearly* zero grows by y / mu = {y / mu:.1f} times a
  step. Where s = 0 is a stationary point of P itself (y = 0.9 < mu) it stays, and should:
  s = {stuck[-1]:.0e} after 100 steps. One number cannot show the trouble: section 4 needs two.""")
assert stuck[-1] < 1e-6

# %%
# 2. one step, on matrices
# ------------------------

tasks, _ = make_low_rank(30, 20, 15, rank=3, noise=1.0, random_state=0)
EPS, MU = 1e-2, 12.0
W = mtl.Weights(tasks)


def model(tasks, mu=MU, eps=EPS):
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.square_root_loss(W, tasks) + mu * mtl.log_rank(W, eps=eps))


def residual_norms(tasks, W):
    labels = tasks.per_task(tasks.targets)
    return np.array(
        [np.linalg.norm(X @ w - y) for X, w, y in zip(tasks.inputs, W.T, labels, strict=True)]
    )


def P(W):
    full = np.append(np.linalg.svd(W, compute_uv=False), np.zeros(max(0, W.shape[0] - W.shape[1])))
    return residual_norms(tasks, W).sum() + MU * penalty(full, EPS).sum()


def majoriser(old):
    """(Q, its minimiser), from the formulas at the top."""
    nu, U = np.linalg.eigh(old @ old.T)
    root = np.sqrt(np.maximum(nu, 0) + EPS)
    D = (U / (2 * root * (1 + root))) @ U.T
    v = 1 / residual_norms(tasks, old)

    def Q(W):
        of_losses = np.sum(0.5 / v + 0.5 * v * residual_norms(tasks, W) ** 2)
        return of_losses + MU * (np.log1p(root).sum() + np.trace(D @ (W @ W.T - old @ old.T)))

    labels = tasks.per_task(tasks.targets)
    systems = [
        (v[i] * X.T @ X + 2 * MU * D, v[i] * X.T @ labels[i]) for i, X in enumerate(tasks.inputs)
    ]
    return Q, np.column_stack([np.linalg.solve(*system) for system in systems])


problem = model(tasks)
plain = problem.solve(solver="alternating", method="block", tol=1e-6)
print(f"""
ONE STEP, BY HAND

  {tasks.n_tasks} tasks, {tasks.n_features} features, {tasks.counts[0]} rows a task

{problem}

  The solver keeps the first step, the last, and one at random (solution.majorizations) of those
  for this very P; before them it smooths the root at zero, less and less. Each of the three
  again, in numpy:

    step         P(old)         Q(old)         Q(new)         P(new)     new: by hand - solver's""")
for step in plain.majorizations:
    old, new = step.before["W"], step.after["W"]
    Q, by_hand = majoriser(old)
    apart = np.linalg.norm(by_hand - new) / np.linalg.norm(new)
    print(
        f"    {step.iteration:4d}{P(old):15.6f}{Q(old):15.6f}{Q(by_hand):15.6f}"
        f"{P(by_hand):15.6f}{apart:16.0e}"
    )
    assert abs(Q(old) - P(old)) <= 1e-10 * P(old) and apart <= 1e-8
    assert P(by_hand) <= Q(by_hand) + 1e-12 * P(old) and Q(by_hand) <= Q(old) + 1e-12 * P(old)
print("""
  Q is convex, so each of these steps can be checked by an independent solver.
  problem.cross_check() does:
""")
check = problem.cross_check(plain)
print(check)
assert check.agrees

# %%
# 3. three ways downhill
# ----------------------

METHODS = {"block": "plain steps", "joint": "Anderson's extrapolation", "newton": "Newton steps"}


def objectives(solution):
    return np.array([value for look in solution.history for value in look.get("objectives", ())])


print("""
THREE WAYS DOWNHILL, ALL FROM W = [X_i'y_i]

    eps     method   P                iterations   residual   status            seconds""")
traces = {}
for eps in (1e-2, 1e-4):
    for method in METHODS:
        run = model(tasks, eps=eps).solve(
            solver="alternating", method=method, tol=1e-7, max_iter=1000
        )
        traces[eps, method] = objectives(run)
        rises = np.diff(traces[eps, method])
        print(
            f"    {eps:5.0e}   "
            f"{method:<9}{run.objective:<17.8f}{run.iterations:10d}"
            f"{run.stationarity.residual:11.0e}   "
            f"{run.status:<15}{run.seconds:8.3f}"
        )
        assert np.all(rises <= 1e-10 * run.objective) and len(rises) > 5
    lengths = [len(traces[eps, method]) for method in METHODS]
    assert lengths[0] > lengths[1] > lengths[2]
print("""
  P never rises, in none of them: a step is taken only if it leads lower, else the plain step is.
  (The first steps are for a P whose loss is smoothed at zero; where that is taken back, P drops.)
  Plain steps slow down with eps, since the parabolas get narrow: their curvature at zero is 1 /
  (sqrt(eps) (1 + sqrt(eps))). "joint" extrapolates from the last eight; "newton" also uses how
  the parabolas turn.""")

# %%
# 4. Algorithm 1 as printed, and a tiny eps
# -----------------------------------------


def root(x):
    return np.sqrt(x)


def root_slope(x):
    return 0.5 / np.sqrt(x)


def pulls(data, W, mu):
    """What is missing of stationarity under mu ||W||_*, in three parts, relative to mu.

    With W = U diag(s) V', kept singular pairs (U1, V1) and lost ones (U2, V2), and G = -[X_i'r_i
    / ||r_i||], a stationary point has U1'G V1 = mu I, nothing in U2'G V1 (turning the range of W
    costs nothing, so nothing may be gained by it), and ||U2'G V2|| <= mu."""
    U, s, Vt = np.linalg.svd(W, full_matrices=True)
    k = int(np.sum(s > 1e-3 * s[0]))
    labels = data.per_task(data.targets)
    residuals = [y - X @ w for X, w, y in zip(data.inputs, W.T, labels, strict=True)]
    G = np.column_stack(
        [X.T @ r / np.linalg.norm(r) for X, r in zip(data.inputs, residuals, strict=True)]
    )
    A = U.T @ G @ Vt.T / mu
    return (
        k,
        np.linalg.norm(A[:k, :k] - np.eye(k), 2),
        np.linalg.norm(A[k:, :k], 2),
        np.linalg.norm(A[k:, k:], 2),
    )


def toy():
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(8, 5)) for _ in range(6)]
    truth = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 6))
    labels = [X @ w + 0.3 * rng.normal(size=8) for X, w in zip(inputs, truth.T, strict=True)]
    return mtl.Tasks.separate(inputs, labels)


cases = {
    "toy, 6 tasks, 5 features": (toy(), 2.0),
    "40 tasks, 15 features": (make_low_rank(40, 20, 15, rank=3, noise=1.0, random_state=0)[0], 8.0),
}
try:
    cases["School, 20 % of the rows, raw"] = (
        load_school().split(test_size=0.8, random_state=0)[0],
        10.0,
    )
except mtl.DataError:
    print("\n(The School data are not here: the third table of the next section is left out.)")

print("""
WHERE ALGORITHM 1 AS PRINTED FAILS

  With sum sigma_j in place of sum log(1 + sigma_j) the model is convex and its optimum known,
  with a proof. Reweighting takes it too: spectral_penalty(W, sqrt, ...) is sum sqrt(sigma_j^2 +
  eps). Below, F = sum ||r_i|| + mu ||W||_* of what each method returns.""")
locked = {}
for name, (data, mu) in cases.items():
    V = mtl.Weights(data)
    convex = mtl.minimize(mtl.square_root_loss(V, data) + mu * mtl.trace_norm(V)).solve(tol=1e-6)
    assert convex.is_optimal
    print(
        f"""
  {name}, mu = {mu:g}: proven {convex.dual_bound:.4f} <= optimum <= {convex.objective:.4f}

       eps     Algorithm 1   above the optimum   iterations        newton   above the optimum"""
    )
    few = (1e-2, 1e-4, 1e-8, 1e-12) if data.n_samples < 100 else (1e-2, 1e-8)
    if data.n_tasks > 100:  # School, where Algorithm 1 is slow at 1e-2
        few = (1e-8,)
    for eps in few:
        reweighted = mtl.minimize(
            mtl.square_root_loss(V, data) + mu * mtl.spectral_penalty(V, root, root_slope, eps=eps)
        )
        values = {}
        for method in ("algorithm_1", "newton"):
            run = reweighted.solve(
                solver="alternating", method=method, max_iter=1000, max_seconds=8
            )
            values[method] = residual_norms(data, run.W).sum() + mu * np.linalg.norm(run.W, "nuc")
            if method == "algorithm_1":
                iterations, ended = run.iterations, run.W
        above = {method: value / convex.objective - 1 for method, value in values.items()}
        locked[name, eps] = above
        print(
            f"    "
            f"{eps:6.0e}{values['algorithm_1']:16.4f}{above['algorithm_1']:19.2%}{iterations:13d}"
            f"{values['newton']:14.4f}{above['newton']:20.3%}"
        )
        assert min(above.values()) >= -1e-5  # nothing is below a proven optimum
    smallest = few[-1]
    assert (
        locked[name, smallest]["algorithm_1"] > 0.01
        and abs(locked[name, smallest]["newton"]) < 1e-3
    )
    of_optimum, of_ended = pulls(data, convex.W, mu), pulls(data, ended, mu)
    names = (
        f"at the optimum, rank {of_optimum[0]}",
        f"Algorithm 1, eps = {smallest:.0e}, rank {of_ended[0]}",
    )
    print(f"""
    what is left to gain, relative to mu    within the range    by turning it    outside (at most 1)
      {names[0]:<36}{of_optimum[1]:11.0e}{of_optimum[2]:17.0e}{of_optimum[3]:17.2f}
      {names[1]:<36}{of_ended[1]:11.0e}{of_ended[2]:17.2f}{of_ended[3]:17.2f}""")
    assert (
        of_ended[1] < 0.01
        and of_ended[3] <= 1
        and of_ended[2] > 0.5
        and max(of_optimum[1:3]) < 0.01
    )
print("""
  eps = 1e-2 is another model, whose minimiser lies a little higher under F, and both methods find
  it. With a tiny eps the printed algorithm stops percents above, and the table says why: within
  the range of W everything is settled, outside nothing is worth a new direction, but *turning*
  the range would gain, and it cannot turn. D is 1 / (2 sqrt(eps)) on every lost direction, so
  that a step turns the range by an angle of the order of sqrt(eps). Rank that is lost has fixed
  where W may lie. And the test, which compares two surrogates though these change with every
  step, sees little change and stops. Its output says nothing of it; solution.stationarity does.

  The remedies: eps as a parameter of the model, in the units of sigma^2 (1e-2 on standardised
  data, the default); steps that know how the parabolas turn ("newton"). Or eps = 0 and ADMM,
  which needs no parabolas: solve() takes it then. The same happens to a residual that has become
  zero: its task weighs 1 / ||r_i|| and keeps it there. square_root_loss(W, tasks, eps=...)
  smooths that.""")

algorithm_1 = problem.solve(solver="alternating", method="algorithm_1")
newton = problem.solve()


def summed_up(run):
    return (
        f"P = {run.objective:.8f}   residual {run.stationarity.residual:.0e}   "
        f"{run.iterations} iterations   {run.status}"
    )


print(f"""
  And where nothing is tiny (section 2, eps = {EPS:g}) it is only early:

    Algorithm 1   {summed_up(algorithm_1)}
    newton        {summed_up(newton)}""")
assert newton.is_certified and not algorithm_1.is_certified
assert 0 <= algorithm_1.objective / newton.objective - 1 < 1e-3

# %%
# 5. several starts
# -----------------

few_rows, _ = make_low_rank(20, 12, 15, rank=3, noise=1.0, random_state=0)
print("""
SEVERAL STARTS  (20 tasks, 15 features, 12 rows a task: fewer rows than features)
""")
spreads = {}
for eps in (1e-2, 1e-4):
    several = model(few_rows, eps=eps).solve(starts=6, random_state=0)
    ends = [row["objective"] for row in several.starts]
    spreads[eps] = several.spread
    values, counts = np.unique(np.round(ends, 3), return_counts=True)
    print(
        f"  eps = {eps:<8g}",
        ", ".join(f"{end:.3f} ({n} times)" for end, n in zip(values, counts, strict=True)),
        sep="",
    )
    print(
        f"  {'':14}kept: start {next(r['start'] for r in several.starts if r['best'])}, "
        f"spread {several.spread:.1e}"
    )
    assert several.is_certified and several.objective <= min(ends) + 1e-9
assert spreads[1e-4] > spreads[1e-2] > 1e-6
continued = model(few_rows, eps=1e-4).solve(solver="alternating", continuation=3)
print(f"""
  Each of these points is stationary; none of them is proven to be the lowest. A smaller eps
  spreads them further. Continuation (three easier models before, eps ten times smaller from one
  to the next) is not a cure-all: here it ends at {continued.objective:.3f}. Starting again
  is.""")
assert continued.is_certified


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    blue, grey, orange = "#1f5fa8", "#9aa3ad", "#d9742b"
    style = {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    plt.rcParams.update(style | {"axes.titlesize": 12})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")

    s = np.linspace(-4, 4, 801)
    for at, colour in ((2.5, "#f2b98d"), (1.0, orange), (0.25, "#8f4513")):
        left.plot(s, parabola(s, at, EPS), color=colour, linewidth=1.6)
        left.plot([at, -at], [penalty(at, EPS)] * 2, "o", color=colour, markersize=5)
        top = min(4.0, np.sqrt(at**2 + (2.55 - penalty(at, EPS)) / slope(at, EPS)))
        left.text(top, min(2.6, parabola(top, at, EPS)), f" at {at:g}", color=colour, ha="left")
    left.plot(s, penalty(s, EPS), color=blue, linewidth=2.8)
    left.text(-3.9, 0.62, r"$\log(1+\sqrt{s^2+\varepsilon})$", color=blue)
    left.set(
        title=f"Parabolas above it, eps = {EPS:g}",
        xlabel="s",
        ylabel="penalty",
        ylim=(0, 2.7),
        xlim=(-4, 4.9),
    )

    for method, colour in zip(METHODS, (grey, orange, blue), strict=True):
        for eps, dashes in ((1e-2, "-"), (1e-4, "--")):
            lowest = min(traces[eps, each].min() for each in METHODS)
            above = np.maximum(traces[eps, method] / lowest - 1, 1e-14)
            every = np.arange(1, len(above) + 1)
            middle.plot(every, above, dashes, color=colour, linewidth=1.8)
    for method, colour, at in (
        ("newton", blue, 5e-10),
        ("joint", orange, 5e-11),
        ("block", grey, 5e-12),
    ):
        middle.text(1, at, method, color=colour, weight="bold")
    middle.text(1, 2e-13, "dashed: eps = 0.0001", fontsize=9)
    middle.set(
        xscale="log",
        yscale="log",
        xlabel="iteration",
        ylabel="above the lowest, relative",
        ylim=(1e-13, 3),
        title="P above its lowest, relative: it never rises",
    )

    for (name, _), marker in zip(cases.items(), "os^", strict=False):
        epss = [eps for case, eps in locked if case == name]
        for method, colour in (("algorithm_1", orange), ("newton", blue)):
            above = [max(locked[name, eps][method], 1e-8) for eps in epss]
            right.plot(epss, above, f"{marker}-", color=colour, linewidth=1.8, markersize=6)
        right.plot([], [], marker, color="black", label=name.split(",")[0])
    right.text(3e-10, 0.2, "Algorithm 1 as printed", color=orange, weight="bold", ha="center")
    right.text(3e-11, 2e-5, "newton", color=blue, weight="bold", ha="center")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="eps",
        ylabel="above the proven optimum, relative",
        title="A tiny eps locks Algorithm 1",
        ylim=(1e-8, 0.5),
    )
    right.invert_xaxis()
    right.legend(frameon=False, loc="lower left")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=140)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "14_majorization.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/14_majorization.py``.
#
# **1.** Another penalty that is not convex: the root of the root, (s^2 + eps)^(1/4). Which parabola
# touches it at s0 and lies above it everywhere? (As a function of s^2 it is concave: a line above
# it, as a function of s^2, is its tangent.)


def parabola_above(s0, eps):
    """(a, c) of the parabola a s^2 + c above (s^2 + eps)^(1/4), touching at s0."""
    ...


@exercise(parabola_above)
def check_parabola_above(answer):
    line = np.linspace(-5, 5, 2001)
    for s0 in (0.1, 1.0, 3.0):
        a, c = answer(s0, EPS)
        at_s0 = a * s0**2 + c - (s0**2 + EPS) ** 0.25
        assert abs(at_s0) < 1e-12, f"at s0 = {s0} the parabola is off by {at_s0:.3g}"
        lowest = np.min(a * line**2 + c - (line**2 + EPS) ** 0.25)
        assert lowest > -1e-12, f"touching at s0 = {s0}, it is below by {-lowest:.3g} elsewhere"


# %%
# **2.** The scalar step that reweighting only approaches: minimise 1/2 (s - y)^2 + mu log(1 + s)
# over s >= 0, for mu < 1 and y > mu. (A quadratic equation has two roots. Which?)


def shrink(y, mu):
    """argmin over s >= 0 of 1/2 (s - y)^2 + mu log(1 + s)."""
    ...


@exercise(shrink)
def check_shrink(answer):
    grid = np.linspace(0, 6, 600_001)
    for target, strength in ((1.0, 0.5), (3.0, 0.9), (0.6, 0.5)):
        best = grid[np.argmin(0.5 * (grid - target) ** 2 + strength * np.log1p(grid))]
        yours = answer(target, strength)
        assert abs(yours - best) < 1e-4, (
            f"y = {target}, mu = {strength}: {best:.4f}, not {yours:.4f}"
        )


# %%
# **3.** How a tiny eps makes steps tiny. A step minimises 1/2 (s - y)^2 + mu w s^2, with the weight
# w = 1 / (2 r (1 + r)), r = sqrt(s0^2 + eps). Where does it lead from s0 = 0, and of what order in
# eps is that?


def first_step(y, mu, eps):
    """The next s after s0 = 0."""
    ...


@exercise(first_step)
def check_first_step(answer):
    for eps in (1e-2, 1e-6, 1e-12):
        after = one_number(2.5, 1.0, eps, 0.0, 1)[1]
        yours = answer(2.5, 1.0, eps)
        assert np.isclose(yours, after, rtol=1e-6), f"eps = {eps}: {after:.3g}, not {yours:.3g}"
