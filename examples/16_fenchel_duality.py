r"""16. Fenchel duality
===================

Primal, partly dualised, dual, and a gap that closes.

Theorem (Fenchel and Rockafellar). Let g, h be convex and A a linear map. With the conjugates

.. math::

    g^*(v) = \max_w \; \langle v, w \rangle - g(w)

there holds

.. math::

    \inf_w \; g(w) + h(A w) \ge \sup_\alpha \; -g^*(A^T \alpha) - h^*(-\alpha)

with equality where some w with finite g has an A w at which h is continuous. ">=" takes one line,
g(w) + g*(v) >= <v, w> used twice (weak duality).

MT-MKL IS OF THIS FORM. Sample i belongs to task t_i. R_m (T x T) says which tasks are alike, Q_m is
its inverse. W_m (d x T) is the part of the weights under similarity m. A gives the scores, and h is
C times the sum of max(0, 1 - score):

.. math::

    (A W)_i = y_i \sum_m \langle w_{m, t_i}, x_i \rangle

Problem 1 is the primal:

.. math::

    \min_{W, \theta} \; \frac{1}{2} \sum_m \frac{\mathrm{tr}(W_m Q_m W_m^T)}{\theta_m}
    + C \sum_i \max(0, 1 - (A W)_i)

Problem 2 is dual in part:

.. math::

    \min_\theta \max_\alpha \; \sum_i \alpha_i - \frac{1}{2} \sum_m \theta_m b_m(\alpha)

Problem 3 is the dual, with p* = p / (p - 1):

.. math::

    \max_\alpha \; \sum_i \alpha_i - \frac{1}{2} \|b(\alpha)\|_{p^*}

In all of them

.. math::

    \theta \ge 0, \qquad \|\theta\|_p \le 1, \qquad 0 \le \alpha_i \le C

.. math::

    b_m = \mathrm{tr}(Z R_m Z^T), \qquad z_t = \sum_{i : t_i = t} \alpha_i y_i x_i

From 1 to 2: the conjugate, in W, of 1/2 tr(W Q W') / theta is theta/2 tr(V R V'). That of the hinge
is what keeps alpha in [0, C]. From 2 to 3: Problem 2 is linear in theta and concave in alpha, so
min and max may be exchanged (Sion). The maximum over theta of <theta, b> is the dual norm.

This script writes all three in numpy and looks at every inequality with numbers. Nothing of
mtldsl is used until the end.

Run: ``python examples/16_fenchel_duality.py`` (picture:
``examples/output/16_fenchel_duality.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# A problem small enough
# ----------------------

rng = np.random.default_rng(1)
T, d, n, C, p = 4, 5, 60, 0.5, 2.0
p_star = p / (p - 1)
t = rng.permutation(np.repeat(np.arange(T), n // T))
X = rng.normal(size=(n, d))
common, own = rng.normal(size=d), rng.normal(size=(d, T))
y = np.sign(X @ common + 0.6 * np.einsum("ij,ji->i", X, own[:, t]) + rng.normal(size=n))

near = 0.5 ** np.abs(
    np.subtract.outer(np.arange(T), np.arange(T))
)  # tasks in a row: neighbours are alike
R = [
    np.full((T, T), 1.0) + 0.1 * np.eye(T),
    near,
    np.eye(T),
]  # all alike (and invertible), neighbours, nobody
NAMES = ("all alike", "neighbours", "every task alone")
Q = [np.linalg.inv(r) for r in R]
M = len(R)

# %%
# The three problems
# ------------------


def scores(W):
    """(A W)_i."""
    return y * np.einsum("ij,ji->i", X, sum(W)[:, t])


def adjoint(alpha):
    """Z (d, T): A' alpha, the same for every m."""
    Z = np.zeros((d, T))
    np.add.at(Z.T, t, (alpha * y)[:, None] * X)
    return Z


def a(W):
    return np.array([np.trace(Wm @ q @ Wm.T) for Wm, q in zip(W, Q, strict=True)])


def b(alpha):
    Z = adjoint(alpha)
    return np.array([np.trace(Z @ r @ Z.T) for r in R])


def problem_1(W, theta):
    return 0.5 * np.sum(a(W) / theta) + C * np.sum(np.maximum(0, 1 - scores(W)))


def problem_2(theta, alpha):
    return alpha.sum() - 0.5 * theta @ b(alpha)


def problem_3(alpha):
    return alpha.sum() - 0.5 * np.linalg.norm(b(alpha), p_star)


def best_theta(a):  # (E.1): the minimiser of sum a_m / theta_m over the ball
    root = a ** (1 / (p + 1))
    return root / np.linalg.norm(root, p)


def weights(theta, alpha):  # (F.1): W_m = theta_m Z R_m
    return [theta_m * adjoint(alpha) @ r for theta_m, r in zip(theta, R, strict=True)]


# %%
# 1. weak duality: true anywhere, weak mostly
# -------------------------------------------

uniform = np.full(M, M ** (-1 / p))
print(f"""{n} samples, {T} tasks, {d} features, {M} similarities
({", ".join(NAMES)}); C = {C:g}, p = {p:g}

1. WEAK DUALITY: ANY alpha IN [0, C] BOUNDS ANY W AND theta

                               Problem 3   <=   Problem 2,    <=   Problem 1,
  alpha                                         theta uniform      W from (F.1)""")
tried = {
    "0": np.zeros(n),
    "C/100 for all": np.full(n, C / 100),
    "C/10 for all": np.full(n, C / 10),
    "C/2 for all": np.full(n, C / 2),
    "uniform on [0, C]": rng.uniform(0, C, n),
}
for name, alpha in tried.items():
    three, two, one = (
        problem_3(alpha),
        problem_2(uniform, alpha),
        problem_1(weights(uniform, alpha), uniform),
    )
    print(f"  {name:<24}{three:16.4f}{two:24.4f}{one:31.4f}")
    assert three <= two <= one
random = []
for scale in rng.uniform(0, 0.5, size=2000):
    W = [scale * rng.normal(size=(d, T)) for _ in R]
    random.append(
        (
            problem_1(W, best_theta(rng.exponential(size=M))),
            problem_3(rng.uniform(0, scale * C, size=n)),
        )
    )
uppers, lowers = np.array(random).T
print(f"""
  2,000 random (W, theta) beside 2,000 random alpha: the least Problem 1 is {uppers.min():.2f},
  the greatest Problem 3 {lowers.max():.2f}. theta = uniform is on the ball, so <theta, b> <=
  ||b||_p*: that is the first "<=". The second is Fenchel's, for theta fixed.
""")
assert lowers.max() <= uppers.min()

# %%
# 2. the two conjugates, one number at a time
# -------------------------------------------

V, theta_m = rng.normal(size=(d, T)), 0.7
conjugate = 0.5 * theta_m * np.trace(V @ R[1] @ V.T)
at = theta_m * V @ R[1]  # where the gradient V - W Q / theta is zero
attained = np.sum(V * at) - 0.5 * np.trace(at @ Q[1] @ at.T) / theta_m
others = [at + rng.normal(size=(d, T)) for _ in range(1000)]
beaten = max(np.sum(V * w) - 0.5 * np.trace(w @ Q[1] @ w.T) / theta_m for w in others)
grid = np.linspace(-10, 10, 20001)
hinge = {
    v: np.max(v * grid - C * np.maximum(0, 1 - grid)) for v in (0.0, -C / 2, -C, 0.1, -1.2 * C)
}
print(f"""2. THE CONJUGATES

  of 1/2 tr(W Q W')/theta at a random V:  theta/2 tr(V R V') = {conjugate:.6f};
      <V, W> - g(W) at W = theta V R is {attained:.6f}, at 1,000 others at most {beaten:.3f}
  of the hinge C max(0, 1 - z) at -alpha, over z from -10 to 10:
      {", ".join(f"alpha = {0 - v:g}: {value:.3g}" for v, value in hinge.items())}
      = -alpha on [0, C]; outside it grows with the interval: +inf. Hence the box.
""")
np.testing.assert_allclose(attained, conjugate, rtol=1e-12)
assert (
    beaten < conjugate
    and all(np.isclose(hinge[v], v) for v in (-C, -C / 2, 0.0))
    and min(hinge[0.1], hinge[-1.2 * C]) > 0.4
)

# %%
# 3. dual coordinate ascent: (E.3), (E.4), (E.5) and (E.1), all there is
# ----------------------------------------------------------------------


def ascent(passes, every_pass=None):
    alpha, theta = (
        np.zeros(n),
        best_theta(np.array([1.0, 1e-3, 1e-3])),
    )  # far from the best one, to see it move
    W = [np.zeros((d, T)) for _ in R]
    for _ in range(passes):
        for i in rng.permutation(n):
            k, x = t[i], X[i]
            f = sum(Wm[:, k] for Wm in W) @ x
            curvature = sum(theta_m * r[k, k] for theta_m, r in zip(theta, R, strict=True)) * (
                x @ x
            )
            step = np.clip((1 - y[i] * f) / curvature, -alpha[i], C - alpha[i])  # (E.3)
            alpha[i] += step
            for theta_m, r, Wm in zip(theta, R, W, strict=True):
                Wm += (
                    step * y[i] * theta_m * np.outer(x, r[k])
                )  # (E.4); its theta_m is missing in the paper
        if every_pass is not None:
            every_pass(W, theta, alpha)
        new = best_theta(a(W))  # (E.1)
        W = [after / before * Wm for after, before, Wm in zip(new, theta, W, strict=True)]  # (E.5)
        theta = new
    return W, theta, alpha


trace = []
ascent(
    200,
    lambda W, theta, alpha: trace.append(
        (problem_1(W, best_theta(a(W))), problem_2(theta, alpha), problem_3(alpha))
    ),
)
W, theta, alpha = ascent(300)
trace = np.array(trace)
print("""3. COORDINATE ASCENT, IN 20 LINES OF NUMPY

           Problem 1,                                  relative gap   proven so far
  pass     theta by (E.1)     Problem 2     Problem 3    of 1 and 3   (best of each)""")
for k in (1, 2, 3, 5, 10, 20, 50, 100, 200):
    one, two, three = trace[k - 1]
    gap = max(1 - three / one, 0)
    best = max(1 - trace[:k, 2].max() / trace[:k, 0].min(), 0)
    print(f"  {k:4d}{one:19.8f}{two:14.8f}{three:14.8f}{gap:14.1e}{best:17.1e}")
rounding = 1 + 1e-13
assert (trace[:, 2] <= rounding * trace[:, 1]).all() and trace[:, 2].max() <= rounding * trace[
    :, 0
].min()
assert 1 - trace[-1, 2] / trace[-1, 0] < 1e-5
fall, rise = max(0, -np.diff(trace[:, 2]).min()), max(0, np.diff(trace[:, 0]).max())
print(f"""
  In a pass only alpha moves, and Problem 2 rises, for this theta. Problem 3, which has no theta,
  is below the optimum always, Problem 1 above; Problem 2 at one theta is not a bound: it may be
  above or below. Neither 1 nor 3 has to move one way only: here the largest fall of 3 is
  {fall:.0e}, the largest rise of 1 {rise:.0e}. So keep the best of each.
""")

# %%
# 4. at the optimum
# -----------------

optimum = problem_1(W, theta)
KKT = {
    "alpha_i = 0 where (A W)_i > 1": np.max(alpha[scores(W) > 1 + 1e-6], initial=0),
    "alpha_i = C where (A W)_i < 1": C - np.min(alpha[scores(W) < 1 - 1e-6], initial=C),
}
from_dual = np.linalg.norm(np.array(W) - weights(theta, alpha)) / np.linalg.norm(W)
by_b = (b(alpha) / np.linalg.norm(b(alpha), p_star)) ** (p_star - 1)
at_0, at_C = np.sum(alpha <= 1e-9), np.sum(alpha >= C - 1e-9)
between = n - at_0 - at_C
print(f"""4. AT THE OPTIMUM: EVERY INEQUALITY IS AN EQUALITY

  Problem 1   {optimum:.12f}
  Problem 2   {problem_2(theta, alpha):.12f}
  Problem 3   {problem_3(alpha):.12f}

  (F.1)  W from alpha and theta: ||W - theta Z R|| / ||W|| = {from_dual:.0e}
  (E.1)  theta from a_m = tr(W_m Q_m W_m'):      {best_theta(a(W)).round(6)}
         theta from b:  b^(p*-1) / ||b||^(p*-1)  {by_b.round(6)}
         theta of the ascent                     {theta.round(6)}
         ||theta||_{p:g} = {np.linalg.norm(theta, p):.6f}
         a_m = theta_m^2 b_m:                    {(a(W) / (theta**2 * b(alpha))).round(9)}
  KKT    largest {", ".join(f"{value:.0e} of {name}" for name, value in KKT.items())}
         at 0: {at_0}; at C: {at_C}; strictly between (support vectors on the margin): {between}
""")
np.testing.assert_allclose([problem_2(theta, alpha), problem_3(alpha)], optimum, rtol=1e-9)
np.testing.assert_allclose(best_theta(a(W)), theta, rtol=1e-6)
np.testing.assert_allclose(weights(theta, alpha), W, atol=1e-9)
assert max(KKT.values()) < 1e-3

# %%
# 5. beside the language
# ----------------------

tasks = mtl.Tasks.grouped(X, y, t)
order = [
    tasks.task_names.index(str(k)) for k in range(T)
]  # tasks are in the order in which the table names them
back = np.argsort(order)
V, weight = mtl.Weights(tasks), mtl.KernelWeights(M)
similarities = [mtl.similarities.from_kernel(r[np.ix_(back, back)]) for r in R]
problem = mtl.minimize(
    C * mtl.hinge_loss(V, tasks) + mtl.mkl_norm(V, similarities, weight),
    subject_to=[mtl.p_norm(weight, p) <= 1],
)
solution = problem.solve(tol=1e-9)
print(f"""5. BESIDE THE LANGUAGE

{problem}

  {solution}
  by hand   objective {optimum:.10f}   theta {theta.round(6)}
  mtldsl    objective {solution.objective:.10f}   theta {solution.theta.values.round(6)}
  largest difference of the weights {np.abs(solution.W[:, order] - sum(W)).max():.0e}
  (mtldsl's W is the sum of the parts: that is all a prediction needs)

  The loss of sample i takes z_i = <x_i, w> there, not y_i z_i: its multiplier is u_i = -alpha_i
  y_i. Same proof, other letters.

THE CROSS-CHECK
""")
np.testing.assert_allclose(solution.objective, optimum, rtol=1e-8)
np.testing.assert_allclose(solution.theta.values, theta, rtol=1e-4)
np.testing.assert_allclose(solution.W[:, order], sum(W), atol=1e-3)
check = problem.cross_check(solution)
print(check)
assert solution.is_optimal and check.agrees


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    blue, grey, orange, green = "#1f5fa8", "#9aa3ad", "#d9742b", "#3d9a8b"
    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
        }
    )
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 4.8), layout="constrained")

    # one alpha for all samples that it has: a slice of the three problems
    line = np.linspace(0, 1.35, 200)
    slice_3, slice_2 = (
        [problem_3(s * alpha) for s in line],
        [problem_2(np.eye(M)[0], s * alpha) for s in line],
    )
    slice_1 = [problem_1([s * Wm for Wm in W], theta) for s in line]
    left.axvspan(1, line[-1], color=grey, alpha=0.12, linewidth=0)
    left.plot(
        line, slice_1, color=orange, linewidth=2, label="Problem 1 at $s\\,W$, the best $\\theta$"
    )
    left.plot(
        line,
        slice_2,
        color=green,
        linewidth=2,
        label="Problem 2 at $s\\,\\alpha$, $\\theta=(1,0,0)$",
    )
    left.plot(line, slice_3, color=blue, linewidth=2, label="Problem 3 at $s\\,\\alpha$")
    left.plot(1, optimum, "o", color="black", markersize=6, zorder=4)
    left.set(
        title="Above and below the optimum; Problem 2 is not a bound",
        xlabel="s   (shaded: some $s\\,\\alpha_i$ leaves [0, C])",
        ylabel="value",
        ylim=(0, 1.6 * optimum),
        xlim=(0, line[-1]),
    )
    left.legend(frameon=False, loc="lower right", fontsize=9)

    passes = np.arange(1, 21)
    middle.axhline(optimum, color="black", linewidth=1, linestyle=":")
    for k, (colour, style) in enumerate(((orange, "-"), (green, "--"), (blue, "-"))):
        middle.plot(
            passes, trace[:20, k], style, color=colour, linewidth=2, label=f"Problem {k + 1}"
        )
    middle.fill_between(passes, trace[:20, 2], trace[:20, 0], color=grey, alpha=0.2, linewidth=0)
    middle.set(
        title="Coordinate ascent: the gap closes",
        xlabel="pass over the samples",
        ylabel="value",
        xlim=(1, 20),
        ylim=(optimum * 0.65, optimum * 1.35),
    )
    middle.set_xticks([1, 5, 10, 15, 20])
    middle.legend(frameon=False)

    every = np.arange(1, len(trace) + 1)
    right.plot(
        every, 1 - trace[:, 2] / trace[:, 0], color="black", linewidth=2.4, label="gap, of 1 and 3"
    )
    right.plot(
        every,
        trace[:, 0] / optimum - 1,
        color=orange,
        linewidth=1.2,
        label="Problem 1 above the optimum",
    )
    right.plot(
        every, 1 - trace[:, 2] / optimum, color=blue, linewidth=1.6, label="Problem 3 below it"
    )
    right.set(
        title="The same, relative to the optimum",
        xlabel="pass over the samples",
        ylabel="relative to the optimum",
        yscale="log",
        xlim=(1, len(trace)),
        ylim=(1e-15, 2),
    )
    right.legend(frameon=False, fontsize=9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=140)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "16_fenchel_duality.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# The film: coordinate ascent
# ---------------------------
#
# Two samples of one task, so that alpha is a point in a square: every step moves along one side, as
# far as Problem 3 rises or to the wall. On the right the trace of section 3, pass by pass, with 60
# samples: those are the numbers printed above.

pair, sign = np.array([[1.0, 0.9], [-1.1, 0.2]]), np.array([1.0, -1.0])
Gram = (sign[:, None] * pair) @ (sign[:, None] * pair).T
box = 0.8
stairs = [np.zeros(2)]
for step in range(16):
    i, point = step % 2, stairs[-1].copy()
    point[i] = np.clip(point[i] + (1 - Gram[i] @ point) / Gram[i, i], 0, box)
    stairs.append(point)
two = mtl.Tasks.shared(pair, sign[:, None])
B = mtl.Weights(two, name="B")
of_two = mtl.minimize(mtl.ridge(B) + box * mtl.hinge_loss(B, two)).solve(tol=1e-10)
top = stairs[-1].sum() - 0.5 * stairs[-1] @ Gram @ stairs[-1]
np.testing.assert_allclose(top, of_two.objective, rtol=1e-6)
np.testing.assert_allclose((stairs[-1] * sign) @ pair, of_two.W[:, 0], atol=1e-3)


def animation(path):
    import matplotlib.pyplot as plt
    from matplotlib.animation import PillowWriter

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4), layout="constrained")
    one, other = np.meshgrid(np.linspace(-0.05, 0.9, 120), np.linspace(-0.05, 0.9, 120))
    at = np.stack([one.ravel(), other.ravel()])
    height = at.sum(axis=0) - 0.5 * np.sum(at * (Gram @ at), axis=0)
    levels = np.sort(top - np.geomspace(2e-4, 0.7, 16))
    left.contour(one, other, height.reshape(one.shape), levels=levels, colors="#c3c9d0")
    left.plot([0, box, box, 0, 0], [0, 0, box, box, 0], color="black", linewidth=1)
    left.set(xlabel="α₁", ylabel="α₂", aspect="equal")
    (walk,) = left.plot([], [], "o-", color="#d55e00", markersize=4)
    right.axhline(optimum, color="black", linewidth=1, linestyle=":")
    right.set(xlim=(0, 17), ylim=(0.6 * optimum, 1.5 * optimum), xlabel="pass over 60 samples")
    (upper,) = right.plot([], [], color="#0072b2", label="Problem 1: an upper bound")
    (lower,) = right.plot([], [], color="#d55e00", label="Problem 3: a lower bound")
    right.legend(frameon=False, loc="upper right")
    right.spines[["top", "right"]].set_visible(False)

    def show(k):
        walk.set_data(*np.array(stairs[: k + 1]).T)
        left.set_title(f"step {k}: along α{'₂₁'[k % 2]}" if k else "the start", loc="left")
        passes = np.arange(1, k + 1)
        upper.set_data(passes, trace[:k, 0])
        lower.set_data(passes, trace[:k, 2])
        gap = f", gap {1 - trace[k - 1, 2] / trace[k - 1, 0]:.1%}" if k else ""
        right.set_title(f"pass {k}{gap}", loc="left")

    show(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # once is enough: a layout a frame takes most of the time
    path.parent.mkdir(exist_ok=True)
    film = PillowWriter(fps=2)
    with film.saving(figure, path, dpi=72):
        for k in range(len(stairs)):
            show(k)
            film.grab_frame()
    print(f"\nFilm: {path}")


try:
    animation(OUTPUT / "16_coordinate_ascent.gif")
except ImportError:
    print("(no film: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# To change and run; what comes of it is the answer.
#
# 1. Leave theta_m out of the line marked (E.4), as the paper's print has it. Which printed number
#    tells you first that W is wrong?
# 2. p = 1: what is p*, and Problem 3? Why does (E.5) divide by zero sooner or later, and why may
#    a theta_m that became 0 never come back? Which number on the screen shows that it should
#    have?
# 3. p = inf: theta = 1 is best at once. Which of the three problems still have different values
#    on the way?
# 4. The logistic loss. With q = alpha/C its conjugate is
#
#    .. math::
#
#        h^*(-\alpha) = C \sum_i q_i \log q_i + (1 - q_i) \log (1 - q_i)
#
#    Replace (E.3) by a few Newton steps on one alpha_i.
# 5. Replace R[0] by the matrix of ones, which has no inverse. Which lines break? Write a(W) as
#    theta^2 b(alpha) and drop Q: nothing breaks any more. That is why mtldsl asks for kernels R =
#    B B' and keeps one vector B' Z' a column of B.
# 6. Where in the proof of weak duality is convexity used? (Nowhere.) And for equality? Find an h
#    that is not convex and has a gap.
