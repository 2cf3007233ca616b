r"""4. Few labels, two norms, a bound
=================================

Classification from few labels: two norms, a constraint, most labels missing.

A screening study: 160 people, 30 things known of each, 12 diseases, labels +1 and -1. Testing a
person for everything is dear, so 70 % of the labels are missing (NaN in Y), and no disease is
rare enough to be ignored or common enough to be learned alone.

.. math::

    \min_{W, b} \; \sum_{i, x, y} \log \left( 1 + e^{-y (x^T w_i + b_i)} \right)
    + a \sum_j \|W_{j \cdot}\|_2 + c \, \|W\|_*

The first sum runs over the labels y of task i and their inputs x: it is ``logistic_loss``. Then
``l21_norm`` says that few features matter, and ``trace_norm`` that there are few patterns of risk.
One constraint is added: W[:20, :] >= 0. The first 20 features are exposures, which can only raise a
risk.

Nobody's paper, one statement. THE PROOF takes three steps more than in lessons 2 and 3:

- *The loss.* log(1 + exp(-yz)) has a conjugate that is finite only where p = -u y is in [0, 1].
  There it is an entropy:

  .. math::

      p \log p + (1 - p) \log (1 - p)

  The gradient u = -y P(wrong label) is always inside.
- *Two norms and a constraint.* -[X_i'u_i] has to be split, V_1 + V_2 + V_3, one part a term. V_1
  must have rows of at most a, V_2 singular values of at most c; V_3, which belongs to the
  constraint, must be <= 0 on the exposures' rows and 0 elsewhere. Every split proves a bound, and
  the best one closes the gap. A solver that works on one copy of W per term (ADMM) finds a split
  as it goes.
- *The intercepts.* Nothing penalises b_i, so the entries of u must sum to zero in every task.

Run: ``python examples/04_classification.py``
"""

from itertools import pairwise
from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

N_PEOPLE, N_DISEASES, EXPOSURES, MEASUREMENTS = 160, 12, 20, 10
LABELLED = 0.3

rng = np.random.default_rng(0)
patterns = np.zeros((EXPOSURES + MEASUREMENTS, 2))
patterns[:6] = rng.uniform(0.0, 0.8, size=(6, 2))  # six exposures matter, and raise risks
patterns[20:24] = 0.8 * rng.normal(size=(4, 2))  # four measurements matter, in either direction
truth = patterns @ rng.uniform(0.2, 1.0, size=(2, N_DISEASES))
frequency = rng.uniform(-1.5, 0.0, size=N_DISEASES)
features = [f"exposure {i}" for i in range(EXPOSURES)] + [
    f"measurement {i}" for i in range(MEASUREMENTS)
]
names = {"task_names": [f"disease {i}" for i in range(N_DISEASES)], "feature_names": features}


def people(n):
    X = rng.normal(size=(n, len(patterns)))
    risk = 1 / (1 + np.exp(-1.5 * (X @ truth) - frequency))
    return X, np.where(rng.random(risk.shape) < risk, 1.0, -1.0)


X, Y = people(N_PEOPLE)
X_new, Y_new = people(3000)
Y[rng.random(Y.shape) > LABELLED] = np.nan
tasks, new = mtl.Tasks.shared(X, Y, **names), mtl.Tasks.shared(X_new, Y_new, **names)
print(tasks, "\n")

# %%
# The model
# ---------

W = mtl.Weights(tasks, intercept=True)
a, c = mtl.Parameter(3.0, name="a"), mtl.Parameter(8.0, name="c")
loss, only_raise = mtl.logistic_loss(W, tasks), W[:EXPOSURES, :] >= 0
problem = mtl.minimize(loss + a * mtl.l21_norm(W) + c * mtl.trace_norm(W), subject_to=[only_raise])
print("THE MODEL\n")
print(problem.explain(), "\n")

solution = problem.solve(tol=1e-7)
print("THE SOLUTION\n")
print(solution, "\n")

# %%
# What each part is worth
# -----------------------

models = {
    "ridge, every disease alone": mtl.minimize(loss + 6 * mtl.ridge(W)),
    "ridge, exposures >= 0": mtl.minimize(loss + 6 * mtl.ridge(W), subject_to=[only_raise]),
    "l21 norm": mtl.minimize(loss + 6 * mtl.l21_norm(W)),
    "trace norm": mtl.minimize(loss + 9 * mtl.trace_norm(W)),
    "l21 + trace norm": mtl.minimize(loss + a * mtl.l21_norm(W) + c * mtl.trace_norm(W)),
    "l21 + trace norm, exposures >= 0": problem,
}


def log_loss(answer):
    return np.mean(np.logaddexp(0, -Y_new * answer.decision_function(X_new)))


print(f"""NEW PEOPLE ({len(X_new)} of them, all diseases)
{"":38}log loss   correct   gap proven   solver              seconds""")
for name, model in models.items():
    found = model.solve(tol=1e-6)
    assert found.is_optimal, found
    quality = f"{log_loss(found):10.4f}{found.score(new):10.1%}{abs(found.gap):13.0e}"
    print(f"  {name:<34}{quality}   {found.solver:<18}{found.seconds:8.2f}")
at_truth = np.mean(np.logaddexp(0, -Y_new * (1.5 * X_new @ truth + frequency)))
print(f"  {'(the true weights)':<34}{at_truth:10.4f}")

print("\nWHAT WAS LEARNED: length of each feature's row, all diseases together\n")
lengths = np.linalg.norm(solution.W, axis=1)
for j in np.argsort(-lengths)[:12]:
    true = "matters" if np.any(patterns[j]) else ""
    print(
        f"  {tasks.feature_names[j]:<15}{lengths[j]:6.2f}  "
        f"{'#' * round(20 * lengths[j] / lengths.max()):<20}  {true}"
    )
print(
    f"  ... {np.sum(lengths < 1e-6)} of {len(lengths)} features are exactly out; "
    f"smallest weight of an exposure {solution.W[:EXPOSURES].min():.1e}"
)

# predicted probabilities mean what they say, if the predicted and the counted frequencies agree
probability = solution.predict_proba(X_new)
print("\nPREDICTED RISK AGAINST COUNTED FREQUENCY\n")
edges = np.array([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1])
for low, high in pairwise(edges):
    inside = (probability >= low) & (probability < high)
    share = np.mean(Y_new[inside] > 0)
    print(
        f"  predicted {low:4.2f} to {high:4.2f}: mean {probability[inside].mean():.2f}, "
        f"counted {share:.2f}   ({inside.sum()} cases)"
    )

print(
    "  The penalties shrink the weights, so the risks are too cautious, towards 1/2;\n"
    "  their order is what was learned."
)

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
check = problem.cross_check(
    solution, solver="scs"
)  # of cvxpy's solvers the quickest here; "clarabel" is closer, and slower
print(check)
assert solution.is_optimal and check.agrees

# %%
# The film: ADMM, one copy of w a term
# ------------------------------------
#
# Two weights, so that one can look: logistic loss + 5 * l1_norm(w), w >= 0. ADMM keeps a copy x
# for the loss and a copy z for the other two, moves them in turn, and lets a multiplier pull them
# together until they are one. Written out here, since a solver shows its numbers and not its
# copies; it has to end where mtldsl's ADMM ends. What a solver has proven after 1, 2, 3, ... rounds
# on a problem of your own: ``mtl.report.film(problem, "admm").save("admm.gif")``.

draw = np.random.default_rng(5)
P = draw.normal(size=(40, 2))
q = np.sign(P @ [1.2, 0.3] + 0.8 * draw.normal(size=40))
small = mtl.Tasks.shared(P, q[:, None])
w = mtl.Weights(small, name="w")
flat = mtl.minimize(mtl.logistic_loss(w, small) + 5 * mtl.l1_norm(w), subject_to=[w >= 0])
looks = []
by_solver = flat.solve(solver="admm", tol=1e-8, callback=looks.append)


def admm(rounds, rho=3.0):
    """[(x, z, multiplier)], all from a start that is far off."""
    x, z, dual = np.array([-1.5, 2.0]), np.array([-1.5, 2.0]), np.zeros(2)
    steps = [(x, z, dual)]
    for _ in range(rounds):
        for _ in range(8):  # Newton steps for the loss + rho/2 ||x - z + dual||^2
            chance = 1 / (1 + np.exp(q * (P @ x)))
            gradient = -P.T @ (q * chance) + rho * (x - z + dual)
            hessian = (P.T * (chance * (1 - chance))) @ P + rho * np.eye(2)
            x = x - np.linalg.solve(hessian, gradient)
        z = np.maximum(x + dual - 5 / rho, 0)  # the proximal step of 5 ||z||_1 where z >= 0
        dual = dual + x - z
        steps.append((x, z, dual))
    return steps


steps = admm(40)
print(f"""
THE FILM: ADMM on two weights, {len(steps) - 1} rounds by hand, and mtldsl's ADMM

  copies x, z   {steps[-1][0].round(6)} {steps[-1][1].round(6)}
  mtldsl        {by_solver.W[:, 0].round(6)}, proven to {by_solver.gap:.0e}""")
np.testing.assert_allclose(steps[-1][1], by_solver.W[:, 0], atol=1e-4)


def animation(path):
    import matplotlib.pyplot as plt
    from matplotlib.animation import PillowWriter

    a, b = np.meshgrid(np.linspace(-2, 2.2, 60), np.linspace(-1, 2.4, 50))
    at = np.stack([a.ravel(), b.ravel()])
    height = np.logaddexp(0, -q[:, None] * (P @ at)).sum(axis=0) + 5 * np.abs(at).sum(axis=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4), layout="constrained")
    left.contour(a, b, height.reshape(a.shape), levels=12, colors="#c3c9d0", linewidths=0.8)
    left.fill_between([-2, 0, 0, 2.2], [2.4, 2.4, 0, 0], -1, color="#8a8a8a", alpha=0.15)
    left.text(-1.9, -0.85, "not w ≥ 0", color="#666666")
    left.plot(*by_solver.W[:, 0], "*", color="black", markersize=12)
    (pair,) = left.plot([], [], color="#777777", linewidth=1)
    (of_x,) = left.plot(
        [], [], "o-", color="#d55e00", markersize=4, linewidth=1, label="x, the loss"
    )
    (of_z,) = left.plot(
        [], [], "o-", color="#0072b2", markersize=4, linewidth=1, label="z, the rest"
    )
    left.set(xlim=(-2, 2.2), ylim=(-1, 2.4), xlabel="w₁", ylabel="w₂")
    left.legend(frameon=False, loc="upper right")
    rounds = np.arange(1, len(steps))
    apart = [np.linalg.norm(x - z) + 1e-12 for x, z, _ in steps[1:]]
    off = [np.linalg.norm(z - steps[-1][1]) + 1e-12 for _, z, _ in steps[1:]]
    (one,) = right.plot([], [], color="#777777", label="x and z apart")
    (two,) = right.plot([], [], color="#0072b2", label="z from its end")
    right.set(yscale="log", xlim=(0, len(steps)), ylim=(1e-6, 5), xlabel="round")
    right.set_yticks([1e-6, 1e-4, 1e-2, 1])
    right.minorticks_off()
    right.legend(frameon=False, loc="lower left")
    right.spines[["top", "right"]].set_visible(False)

    def show(k):
        x, z, _ = (np.array(part) for part in zip(*steps[: k + 1], strict=True))
        of_x.set_data(x[:, 0], x[:, 1])
        of_z.set_data(z[:, 0], z[:, 1])
        pair.set_data([x[-1, 0], z[-1, 0]], [x[-1, 1], z[-1, 1]])
        one.set_data(rounds[:k], apart[:k])
        two.set_data(rounds[:k], off[:k])
        left.set_title(f"ADMM, round {k}", loc="left")

    show(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # once is enough: a layout a frame takes most of the time
    path.parent.mkdir(exist_ok=True)
    film = PillowWriter(fps=2.5)
    with film.saving(figure, path, dpi=72):
        for k in (*range(10), 12, 14, 17, 20, 30):
            show(k)
            film.grab_frame()
    print(f"\nFilm: {path}")


try:
    animation(OUTPUT / "04_admm.gif")
except ImportError:
    print("(no film: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/04_classification.py``.
#
# **1.** The conjugate of the logistic loss, h(z) = log(1 + exp(-z)): the largest v z - h(z) over
# all z. (Set the derivative to zero and put p = -v. For which v is there no largest value? And what
# is p log p at p = 0?)


def conjugate(v):
    """max over z of v z - log(1 + exp(-z)), for a number v; inf where there is none."""
    ...


@exercise(conjugate)
def check_conjugate(answer):
    z = np.linspace(-40, 40, 80001)
    for v in (-0.99, -0.7, -0.5, -0.01, -1.0, 0.0):
        attained = np.max(v * z - np.logaddexp(0, -z))
        assert abs(answer(v) - attained) < 1e-6, f"at v = {v} it is {attained:.6f}"
    for v in (-1.5, 0.5):
        assert answer(v) == np.inf, f"at v = {v} the line v z outruns h: no value is the largest"


# %%
# **2.** Why a solver needs a copy of W for each norm: the proximal step of a sum is not one step
# after the other. Find a matrix for which the order of the two steps matters. (Not a diagonal one:
# there the two norms are the same.)


def shrink_rows(A, step=0.5):
    """The proximal step of the l21 norm."""
    length = np.linalg.norm(A, axis=1, keepdims=True)
    return A * np.maximum(0, 1 - step / np.maximum(length, 1e-300))


def shrink_spectrum(A, step=0.5):
    """The proximal step of the trace norm."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.maximum(s - step, 0)) @ Vt


def where_order_matters():
    """A 2 x 2 matrix for which rows-then-spectrum and spectrum-then-rows differ."""
    ...


@exercise(where_order_matters)
def check_where_order_matters(answer):
    A = np.asarray(answer(), dtype=float)
    assert A.shape == (2, 2), f"a 2 x 2 matrix is asked for, and yours has the shape {A.shape}"
    one, other = shrink_spectrum(shrink_rows(A)), shrink_rows(shrink_spectrum(A))
    assert np.linalg.norm(one - other) > 0.01, f"the same both ways:\n{one}\n{other}"


# %%
# **3.** Before anything is learned, W = 0, the intercept is there alone. Which b minimises the loss
# of one task, given its labels?


def only_intercept(y):
    """argmin over b of the sum of log(1 + exp(-y b))."""
    ...


@exercise(only_intercept)
def check_only_intercept(answer):
    for y in tasks.per_task(tasks.targets)[:4]:
        u = -y / (1 + np.exp(y * answer(y)))
        left = abs(u.sum())
        assert left < 1e-9, f"the multipliers of this task sum to {left:.3g}, and have to sum to 0"
