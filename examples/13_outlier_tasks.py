r"""13. Outlier tasks, proven
=========================

Which tasks do not follow the others, and which are proven to follow?

.. math::

    \min_{L, S} \; \sum_i \|X_i (l_i + s_i) - y_i\|^2
    + \rho_1 \|L\|_* + \rho_2 \sum_i \|s_i\|_2

L holds patterns that tasks share (few: the trace norm), S whole columns for tasks that share
nothing: Robust-MTL (Chen, Zhou and Ye, KDD 2011; Gong, Ye and Zhang, KDD 2012). Lesson 5 did this
on made data. Here the question is the other one: of a table of tasks, *which* are the outliers,
how sure is that, and would the model have found them?

The data are made, so that the truth is known: 60 tasks, seven of which mix the two patterns of all
others with weights of their own, some strongly, some hardly. Where the School data are, the exam
scores of 139 schools, the same is asked of them at the end.

THE PROOF. With g_i = 2 X_i'(X_i w_i - y_i), the pull that the data of task i have on its weights,
an optimum has

.. math::

    \|g_i\| \le \rho_2, \qquad \left\| \left( g_1, \ldots, g_m \right) \right\|_2 \le \rho_1

and the length is rho2 for every outlier.

So ||g_i|| < rho2 would prove that task i is not an outlier, at *any* optimum, if g were that of an
optimum. It is that of a point whose duality gap is known, and that is enough. The objective is a
strongly convex function of the predictions z (modulus 2), so an optimum's z* are near:

.. math::

    \|z - z^*\|^2 \le \mathrm{gap}, \qquad
    \|g_i(z^*)\| \le \|g_i(z)\| + 2 \, \|X_i\|_2 \sqrt{\mathrm{gap}}

If the right-hand side is below rho2, then s_i = 0 in every optimum. (The same inequality is what
"safe screening" rules are made of.)

Run: ``python examples/13_outlier_tasks.py`` (picture: ``examples/output/13_outlier_tasks.png``)
"""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.datasets import load_school
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# Data
# ----

N_TASKS, N_FEATURES, RANK, NOISE = 60, 20, 2, 1.5
OWN = {4: 2.0, 11: 1.6, 19: 1.2, 28: 0.9, 37: 0.6, 46: 0.4, 53: 0.2}  # task: size of its own part


def draw(own, seed):
    """(tasks to learn from, to choose on, to test on); rows differ from task to task."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(N_FEATURES, RANK)) @ rng.normal(size=(RANK, N_TASKS)) / 2
    for task, size in own.items():
        truth[:, task] += size * rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES / 4)
    rows = rng.integers(20, 121, size=N_TASKS)
    parts = []
    for share in (1.0, 0.5, 0.5):
        inputs = [rng.normal(size=(max(int(share * n), 10), N_FEATURES)) for n in rows]
        labels = [
            X @ w + NOISE * rng.normal(size=len(X)) for X, w in zip(inputs, truth.T, strict=True)
        ]
        names = [f"task {i}" for i in range(N_TASKS)]
        parts.append(mtl.Tasks.separate(inputs, labels, task_names=names))
    return parts


train, validation, test = draw(OWN, seed=0)
m = train.n_tasks
print(f"{train}: {train.n_samples:,} rows")
print(f"With weights of their own: {', '.join(f'task {i} ({size:g})' for i, size in OWN.items())}")

# %%
# 1. rho1 and rho2
# ----------------

problem = mtl.model("Robust-MTL", train, rho1=100.0, rho2=50.0)
rho1, rho2 = problem.parameters
rho1s, shares = (80.0, 160.0, 320.0), (0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
print(f"""
THE MODEL, BY ITS NAME

{problem}

  mean R^2 of the tasks on validation rows, and how many columns of S are not zero

  rho2 / rho1 {"".join(f"{share:>13}" for share in shares)}""")


def outliers_of(solution):
    lengths = np.linalg.norm(solution.S, axis=0)
    return np.flatnonzero(lengths > 1e-6 * max(np.linalg.norm(solution.L), 1e-300)), lengths


scores, used = {}, {}
for value in rho1s:
    rho1.value, cells = value, []
    found_on_path = problem.path(rho2, [share * value for share in shares], tol=1e-6)
    for share, each in zip(shares, found_on_path, strict=True):
        assert each.is_optimal, each
        scores[value, share] = np.array(each.scores(validation))
        used[value, share] = len(outliers_of(each)[0])
        cells.append(f"{scores[value, share].mean():.3f} ({used[value, share]})")
    print(f"  rho1 = {value:<5g}{''.join(f'{cell:>13}' for cell in cells)}")


def clearly_worse(one, best):
    """By more than two standard errors of the difference, task by task."""
    lost = scores[best] - scores[one]
    return lost.mean() > 2 * lost.std() / np.sqrt(m)


top = max(scores, key=lambda pair: scores[pair].mean())
as_good = [pair for pair in scores if not clearly_worse(pair, top)]
value, share = min(as_good, key=lambda pair: (used[pair], -scores[pair].mean()))
rho1.value, rho2.value = value, share * value
print(f"""
  The best is rho1 = {top[0]:g}, rho2 = {top[1] * top[0]:g}, with {used[top]} outliers.
  Prediction likes a loose split, and the table is flat. Taken is the one with
  the fewest outliers that is not worse by more than two standard errors:
  rho1 = {value:g}, rho2 = {rho2.value:g}.""")

# %%
# 2. who, and the proof
# ---------------------

solution = problem.solve(tol=1e-9)
found, lengths = outliers_of(solution)
found = found[np.argsort(-lengths[found])]
sigma = np.linalg.svd(solution.L, compute_uv=False)


def pulls_at(tasks, W):
    """[g_1 ... g_m], g_i = 2 X_i'(X_i w_i - y_i)."""
    data = zip(tasks.inputs, W.T, tasks.per_task(tasks.targets), strict=True)
    return np.column_stack([2 * X.T @ (X @ w - y) for X, w, y in data])


g = pulls_at(train, solution.W)
pulls = np.linalg.norm(g, axis=0)
norms = np.array([np.linalg.norm(X, 2) for X in train.inputs])
radius = np.sqrt(max(solution.gap.absolute, 0.0))
proven = pulls + 2 * norms * radius < rho2.value
print(f"""
WHO

  {solution}
  rank of L: {np.sum(sigma > 1e-6 * sigma[0])} of {N_FEATURES};  outliers: {len(found)} of {m}

  The optimality conditions, recomputed from the data:

    largest ||g_i|| / rho2, of all            {pulls.max() / rho2.value:.8f}   (at most 1)
    smallest ||g_i|| / rho2, of the outliers  {pulls[found].min() / rho2.value:.8f}   (1)
    largest singular value of g / rho1        {np.linalg.norm(g, 2) / rho1.value:.8f}   (at most 1)

  absolute gap {solution.gap.absolute:.1e}: predictions are at most {radius:.1e} from an optimum's
  proven not to be outliers: {proven.sum()} of the {m - len(found)} whose column is zero
""")
assert solution.is_optimal and not proven[found].any()
assert proven.sum() >= 0.9 * (m - len(found))
np.testing.assert_allclose(pulls[found], rho2.value, rtol=1e-4)
assert np.linalg.norm(g, 2) <= (1 + 1e-4) * rho1.value

# %%
# 3. what is different in them
# ----------------------------

W = problem.weights[0]
low_rank = mtl.minimize(mtl.sum_of_squares(W, train) + value * mtl.trace_norm(W)).solve(tol=1e-8)
assert low_rank.is_optimal
with_s, without_s = solution.scores(test), low_rank.scores(test)
print("""WHAT IS DIFFERENT IN THEM

                                                        R^2 on test rows:
             own part   rows   ||s_i||   ||s_i|| / ||w_i||   low rank -> L + S""")
for i in found:
    own = f"{OWN[i]:g}" if i in OWN else "-"
    print(
        f"  {train.task_names[i]:<10}{own:>9}{train.counts[i]:7d}{lengths[i]:10.2f}"
        f"{lengths[i] / np.linalg.norm(solution.W[:, i]):20.2f}"
        f"{without_s[i]:11.3f} -> {with_s[i]:.3f}"
    )
rest = np.setdiff1d(np.arange(m), found)
missed = [i for i in OWN if i not in found]
gain = [(with_s - without_s)[which].mean() for which in (found, rest)]
print(f"""
  not found: {", ".join(f"task {i} ({OWN[i]:g}, {train.counts[i]} rows)" for i in missed) or "none"}
  mean gain in R^2 on test rows: outliers {gain[0]:+.3f}, all others {gain[1]:+.3f}

  A column of S costs rho2 whatever the size of the task, and the pull g_i is a sum over rows:
  a small task is hardly ever an outlier. That is the model, not the data; rows weighted by
  1 / n_i (mean=True) would ask another question.""")
assert {i for i, size in OWN.items() if size > 1} <= set(found.tolist())
assert gain[0] > gain[1]

# %%
# 4. would it find them?
# ----------------------

print("""
WOULD IT FIND THEM? Other draws, ten tasks with a part of their own of the same size

   size    found    wrongly named, of the 50 others""")
detected = {}
for size in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0):
    hit = wrong = 0
    for seed in (1, 2):
        planted = np.random.default_rng(seed).choice(N_TASKS, 10, replace=False)
        again = draw(dict.fromkeys(planted.tolist(), size), seed)[0]
        answer = mtl.model("Robust-MTL", again, rho1=rho1.value, rho2=rho2.value).solve(tol=1e-5)
        assert answer.is_optimal
        now = set(outliers_of(answer)[0].tolist())
        hit += len(now & set(planted.tolist()))
        wrong += len(now - set(planted.tolist()))
    detected[size] = hit / 20, wrong / 100
    print(f"   {size:4g}{hit / 20:9.0%}{wrong / 100:14.0%}")
print("""
  Large ones are found. A task that is not found is one for which L bends, or one with few rows.""")
assert detected[2.0][0] > 0.7 and detected[2.0][0] > 3 * detected[0.25][0]

print("\nTHE CROSS-CHECK, OF THE SAME MODEL FOR THE FIRST 12 TASKS (60 take cvxpy a minute)\n")
few = mtl.Tasks.separate(list(train.inputs[:12]), list(train.per_task(train.targets)[:12]))
check = mtl.model("Robust-MTL", few, rho1=rho1.value, rho2=rho2.value).cross_check()
print(check)
assert check.agrees

# %%
# 5. School, where the data are here
# ----------------------------------

try:
    given = load_school()
except mtl.DataError:
    print("\n(The School data are not here: section 5 is left out.)")
else:
    names = [f"school {i + 1}" for i in range(given.n_tasks)]
    schools = mtl.Tasks.separate(
        list(given.inputs), list(given.per_task(given.targets)), task_names=names
    )
    learn, held_out = schools.split(test_size=0.25, random_state=0)
    robust = mtl.model("Robust-MTL", learn, rho1=800.0, rho2=320.0).solve(tol=1e-9)
    V = mtl.Weights(learn)
    plain = mtl.minimize(mtl.sum_of_squares(V, learn) + 800 * mtl.trace_norm(V)).solve(tol=1e-6)
    named, size = outliers_of(robust)
    named = named[np.argsort(-size[named])]
    of_school = np.linalg.norm(pulls_at(learn, robust.W), axis=0)
    before, after = plain.score(held_out), robust.score(held_out)
    spread = 2 * np.sqrt(max(robust.gap.absolute, 0.0))
    sure = of_school + spread * np.array([np.linalg.norm(X, 2) for X in learn.inputs]) < 320.0
    print(f"""
SCHOOL: exam scores (1 to 70) of 15,362 pupils of 139 schools, as published, rho1 = 800, rho2 = 320

  {robust}
  {len(named)} outliers, most of all {", ".join(names[i] for i in named[:5])}
  proven not to be outliers: {sure.sum()} of the other {len(names) - len(named)}
  mean R^2 on held-out pupils: {before:.4f} by low rank alone, {after:.4f} with S

  Naming them buys next to nothing in prediction: School's outliers are mild. What the data give
  is an order of the schools, and for most of them a proof that they follow the others.""")
    assert robust.is_optimal and sure.sum() > 0.8 * len(names) and not sure[named].any()

# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    grey, orange = "#9aa3ad", "#d9742b"
    style = {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    plt.rcParams.update(style | {"axes.titlesize": 12})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.6), layout="constrained")

    shown = found[::-1]
    colours = [orange if i in OWN else grey for i in shown]
    left.barh(range(len(shown)), lengths[shown], color=colours, height=0.65)
    left.set_yticks(range(len(shown)), [train.task_names[i] for i in shown])
    left.tick_params(axis="y", length=0)
    left.set(title=f"Columns of S: {len(found)} of {m} are not zero", xlabel=r"$\|s_i\|_2$")

    own = np.array(list(OWN))
    others = np.setdiff1d(np.arange(m), own)
    middle.axhline(1, color="black", linewidth=1, linestyle=":")
    for which, colour, label in (
        (others, grey, "follows the others"),
        (own, orange, "has a part of its own"),
    ):
        middle.scatter(
            train.counts[which], pulls[which] / rho2.value, s=26, color=colour, label=label
        )
    for i in own:
        at, off = (train.counts[i], pulls[i] / rho2.value), (0, -18 if OWN[i] == 0.2 else 6)
        middle.annotate(f"{OWN[i]:g}", at, off, textcoords="offset points", ha="center")
    middle.set(
        title="Below 1: proven not to be an outlier",
        xlabel="rows of the task",
        ylabel=r"$\|g_i\| \,/\, \rho_2$",
        ylim=(0, 1.2),
    )
    middle.legend(frameon=False, loc="lower right")

    sizes = list(detected)
    right.plot(sizes, [100 * detected[s][0] for s in sizes], "o-", color=orange, linewidth=2)
    right.plot(sizes, [100 * detected[s][1] for s in sizes], "o-", color=grey, linewidth=2)
    right.text(sizes[-1], 100 * detected[sizes[-1]][0] - 9, "found", color=orange, ha="right")
    right.text(sizes[-1], 100 * detected[sizes[-1]][1] + 4, "wrongly named", color=grey, ha="right")
    right.set(title="Would it find them?", xlabel="size of a task's own part", ylim=(-2, 104))
    right.set_ylabel("% of the tasks")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "13_outlier_tasks.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/13_outlier_tasks.py``.
#
# **1.** Tasks stop being outliers one after the other as rho2 grows. From which rho2 on is there
# none? Read it off the solution of the low-rank model alone, without solving anything else.


def no_outliers_from(g):
    """The smallest rho2 for which S = 0, from the pulls g (d, m) at the low-rank solution."""
    ...


@exercise(no_outliers_from)
def check_no_outliers_from(answer):
    critical = answer(pulls_at(train, low_rank.W))
    kept = rho2.value
    for factor, none in ((1.01, True), (0.97, False)):
        rho2.value = factor * critical
        there = len(outliers_of(problem.solve(tol=1e-7))[0])
        rho2.value = kept
        assert (there == 0) == none, f"at {factor} times your rho2 there are {there} outliers"


# %%
# **2.** How far from an optimum's can the predictions z be? Strong convexity says
#
# .. math::
#
#     f(z) \ge f(z^*) + \frac{\mu}{2} \|z - z^*\|^2
#
# The lesson has a sum of squares. What if the loss is ``squared_loss``, with its 1/2?


def radius_of(gap):
    """||z - z*|| is at most this, for squared_loss = 1/2 the sum of squares, and a duality gap."""
    ...


@exercise(radius_of)
def check_radius_of(answer):
    one = mtl.Tasks.shared(np.eye(3), np.array([[3.0], [2.0], [0.5]]))
    V1 = mtl.Weights(one)
    lasso = mtl.minimize(mtl.squared_loss(V1, one) + mtl.l1_norm(V1))
    best = lasso.solve(tol=1e-12)
    largest = 0.0
    for seed in range(200):
        w = best.W + 0.1 * np.random.default_rng(seed).normal(size=(3, 1))
        gap = lasso.value(w) - best.objective
        away = np.linalg.norm(w - best.W)
        assert away <= answer(gap) + 1e-9, f"a gap of {gap:.4f}, and z is {away:.4f} away"
        largest = max(largest, away / answer(gap))
    assert largest > 0.9, "true, but it could be said more sharply: with a smaller radius"
