r"""19. Column generation
=====================

Prices of edges that are not there, and a bound over all of them.

K labels have K(K-1)/2 possible edges, and few matter. Lesson 18 began with none, and added. Here
is why that is allowed, and why it finds the right ones.

.. math::

    P(A) = \min_{U, V, \eta, \xi} \; \frac{\lambda}{2} \|U\|^2
    + \frac{\lambda}{2} \sum_{c \in A} \frac{\|V_c\|^2}{\eta_c} + \frac{1}{n} \sum_i \xi_i

subject to, for all 2^K labellings y,

.. math::

    0 \le \eta_c \le 1, \qquad \sum_c \eta_c \le r, \qquad
    \xi_i \ge \Delta(y, y_i) + \langle W \psi(x_i), Y(y) - Y(y_i) \rangle

with W = (U, V), and Y(y) picks the columns of y. (r edges, relaxed: eta_c in [0, 1] instead of
{0, 1}.)

THE PRIMAL: COLUMNS. An edge c is a group of columns of W. A *restricted master* P(A) has only
those of A, all others are 0: an upper bound.

THE DUAL: CUTS. The multipliers alpha_i of a sample's constraints are a random labelling of it
(alpha_i >= 0, sum 1). With

.. math::

    Z = \frac{1}{\lambda n} \sum_{i, y} \alpha_i(y) \left( Y(y_i) - Y(y) \right) x_i^T, \qquad
    b = \frac{1}{n} \sum_i \mathrm{E}[\Delta(y, y_i)]

and with the sum over the r edges c of A whose norms are the largest,

.. math::

    P(A) = \max_\alpha \; b
    - \frac{\lambda}{2} \left( \|Z_U\|^2 + \sum_{\mathrm{r\ largest}} \|Z_c\|^2 \right)

Every edge (every graph of r edges) is one more function under which the dual has to stay: an edge
that is left out of the primal is a *cut* that is left out of the dual. One statement, two
readings: COLUMN GENERATION in the primal is the method of CUTTING PLANES in the dual.

THE PRICE. Let V_c, c not in A, have norm t. With the multipliers of P(A) the objective is at
least

.. math::

    P(A) + \lambda t \left( \mathrm{level} - \|Z_c\| \right)

The level is the r-th largest of the norms of A (0 where A has fewer than r). So only an edge with
||Z_c|| > level can lower it. ||Z_c|| is known for all edges after the solve with few: *the dual
scores*.

THE PROOF. Put the scores of *all* edges into the dual function: a lower bound on the problem with
all edges, from a solve with some.

The small masters are written out with cvxpy, every labelling. The language comes at the end.

Run: ``python examples/19_column_generation.py`` (picture:
``examples/output/19_column_generation.png``)
"""

from itertools import combinations, product
from pathlib import Path

import cvxpy as cp
import numpy as np

import mtldsl as mtl
from mtldsl import datasets

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# A problem small enough
# ----------------------

K, d, n, lam = 4, 3, 14, 0.05
made = datasets.make_label_graph(K, d, [(0, 1), (0, 2)], n_train=n, n_test=1, random_state=4)
tasks = made.train
X, truth = tasks.X, (tasks.targets.reshape(K, n).T > 0).astype(int)
EDGES = list(combinations(range(K), 2))
every = np.array(list(product((0, 1), repeat=K)))
delta = (every[None] != truth[:, None]).sum(axis=2)  # (n, 2^K)


def indicators(y):
    """Y(y), (..., 2K + 4 x number of edges): each label's value, each edge's pair of values."""
    nodes = np.concatenate([y[..., [k]] == np.arange(2) for k in range(K)], axis=-1)
    edges = [2 * y[..., [i]] + y[..., [j]] == np.arange(4) for i, j in EDGES]
    return np.concatenate([nodes, *edges], axis=-1).astype(float)


def columns(c):
    return slice(2 * K + 4 * c, 2 * K + 4 * c + 4)


NODES = slice(0, 2 * K)
change = indicators(every)[None] - indicators(truth)[:, None]  # (n, 2^K, S): Y(y) - Y(y_i)


def master(active, r, forced=None):
    """(objective, alpha (n, 2^K), W (S, d), eta) of P(active). forced = (edge, its V_c (4, d))."""
    U, xi, eta = cp.Variable((2 * K, d)), cp.Variable(n), cp.Variable(len(EDGES), nonneg=True)
    V = {c: cp.Variable((4, d)) for c in active}
    if forced is not None:
        V[forced[0]] = cp.Constant(forced[1])
    penalty = cp.sum_squares(U) + sum(cp.quad_over_lin(V[c], eta[c]) for c in V)
    W = cp.vstack([U, *(V.get(c, np.zeros((4, d))) for c in range(len(EDGES)))])
    hinges = [delta[i] + change[i] @ W @ X[i] <= xi[i] for i in range(n)]
    problem = cp.Problem(
        cp.Minimize(lam / 2 * penalty + cp.sum(xi) / n), [*hinges, cp.sum(eta) <= r, eta <= 1]
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    alpha = np.maximum([n * one.dual_value for one in hinges], 0)
    return problem.value, alpha / alpha.sum(axis=1, keepdims=True), W.value, eta.value


def multipliers(alpha):
    """(Z (S, d), b, ||Z_c|| of all edges): what a random labelling says of all columns.

    Also of those that no master has.
    """
    Z = -np.einsum("iy,iys,id->sd", alpha, change, X) / (lam * n)
    return (
        Z,
        np.sum(alpha * delta) / n,
        np.array([np.linalg.norm(Z[columns(c)]) for c in range(len(EDGES))]),
    )


def dual_value(alpha, r):
    Z, b, scores = multipliers(alpha)
    return b - lam / 2 * (np.sum(Z[NODES] ** 2) + np.sum(np.sort(scores)[::-1][:r] ** 2))


def proven(alpha, r):
    """The best dual value between the truth (Z = 0, b = 0) and alpha: s b - s^2 Q."""
    b = multipliers(alpha)[1]
    Q = b - dual_value(alpha, r)
    s = min(1.0, b / (2 * Q))
    return s * b - s**2 * Q


def label(c):
    return "".join(map(str, EDGES[c]))


# %%
# 1. columns that come when they pay
# ----------------------------------

r, active, log = 1, [], []
heads = "".join(f"{label(c):>7}" for c in range(len(EDGES)))
true_edges = " and ".join(label(EDGES.index(e)) for e in made.edges)
print(f"""1. COLUMNS THAT COME WHEN THEY PAY

   {K} labels, {n} rows, {d} features, lam = {lam}, r = {r}; made with the edges {true_edges}

   in the master    objective    proven   level  ||Z_c|| {heads}   joins""")
while True:
    value, alpha, W, eta = master(active, r)
    Z, b, scores = multipliers(alpha)
    restricted = b - lam / 2 * (np.sum(Z[NODES] ** 2) + max(scores[active], default=0) ** 2)
    np.testing.assert_allclose(
        restricted, value, rtol=1e-5
    )  # the dual with the scores of the master's edges alone
    np.testing.assert_allclose(W[NODES], Z[NODES], atol=1e-3)  # U = Z_U
    for c in active:
        np.testing.assert_allclose(
            W[columns(c)], eta[c] * Z[columns(c)], atol=1e-3
        )  # V_c = eta_c Z_c
    level = max(scores[active], default=0.0)
    pays = [c for c in range(len(EDGES)) if c not in active and scores[c] > level * (1 + 1e-4)]
    joins = max(pays, key=lambda c: scores[c]) if pays else None
    log.append((list(active), value, alpha, scores, level))
    marks = "".join(
        f"{f'{scores[c]:.2f}' + ('*' if c in active else ' '):>7}" for c in range(len(EDGES))
    )
    print(
        f"   {' '.join(map(label, active)) or 'none':<14}{value:12.5f}"
        f"{proven(alpha, r):10.5f}{level:8.2f}        "
        f"{marks}    {'none' if joins is None else label(joins)}"
    )
    if joins is None:
        break
    active.append(joins)
whole = master(range(len(EDGES)), r)[0]
never = [label(c) for c in range(len(EDGES)) if c not in active]
print(f"""
   * in the master. No edge outside is above the level: {value:.5f} is the optimum with all
   {len(EDGES)} edges ({whole:.5f}), and {" and ".join(never)} were never in any master. At every
   step U = Z_U and V_c = eta_c Z_c: the weights are read off the multipliers, and so are those
   that an edge outside "wants".
""")
assert abs(value - whole) < 1e-5 and never and proven(alpha, r) > whole - 1e-4
assert [EDGES[c] for c in active[:2]] == list(made.edges)

# %%
# 2. the price
# ------------

active, value, alpha, scores, level = log[1]
Z = multipliers(alpha)[0]
print(f"""2. THE PRICE

   Edges in the master: {" ".join(map(label, active))}; V_c gets the norm t, along Z_c.

           price                   slope (P at t - P) / t     what its
   edge    lam (level - ||Z_c||)    t = 0.02      t = 0.2     joining gains""")
gains = {}
for c in (c for c in range(len(EDGES)) if c not in active):
    price = lam * (level - scores[c])
    slopes = []
    for t in (0.02, 0.2):
        forced = master(active, r, (c, t * Z[columns(c)] / scores[c]))[0]
        assert forced >= value + t * price - 1e-6
        slopes.append((forced - value) / t)
    gains[c] = value - master([*active, c], r)[0]
    print(f"   {label(c):<8}{price:15.4f}{slopes[0]:18.4f}{slopes[1]:13.4f}{gains[c]:17.5f}")
    assert gains[c] < 1e-6 or price < 0
print("""
   The objective is never below the line with the price as its slope (convexity), and follows it
   at first, unless several alpha are optimal: then the price of one of them promises too much. An
   edge whose price is not negative gains nothing; the one with the lowest price gained most.
""")
assert max(gains, key=gains.get) == max(gains, key=lambda c: scores[c])

# %%
# 3. a proof from any alpha
# -------------------------

rng = np.random.default_rng(0)
raw = [dual_value(alpha, r) for _, _, alpha, _, _ in log]
tries = [rng.dirichlet(np.full(2**K, 0.05), size=n) for _ in range(500)]
bounds = np.array([proven(each, r) for each in tries])
print(f"""3. A PROOF FROM ANY ALPHA   (optimum with all edges {whole:.5f})

                           dual value,    the same, mixed
   master        scores of all edges    with the truth     largest so far""")
best = -np.inf
for (active, _, alpha, _, _), value in zip(log, raw, strict=True):
    best = max(best, proven(alpha, r))
    print(
        f"   {' '.join(map(label, active)) or 'none':<14}{value:19.5f}"
        f"{proven(alpha, r):18.5f}{best:19.5f}"
    )
    assert value <= proven(alpha, r) + 1e-12 and best <= whole + 1e-6
print(f"""
   The multipliers of a small master are feasible for the whole dual: nothing has to be repaired.
   But they may prove nothing as they are (a loss is never negative: 0 is a bound for free). Mixed
   with the truth, s alpha and 1 - s of y_i, the dual value is s b - s^2 Q, best at s = min(1, b /
   2Q), and positive. 500 random alphas prove between {bounds.min():.3f} and {bounds.max():.3f}:
   weak, and never too much.
""")
assert raw[0] < 0 < bounds.min() and bounds.max() <= whole

# %%
# 4. the chain
# ------------

graphs = {
    graph: mtl.model("Structured SVM", tasks, lam=lam, edges=[EDGES[c] for c in graph])
    .solve("clique_generation", tol=1e-6)
    .objective
    for size in range(len(EDGES) + 1)
    for graph in combinations(range(len(EDGES)), size)
}
greedy = [c for c in log[-1][0]] + [c for c in range(len(EDGES)) if c not in log[-1][0]]
print(f"""4. THE CHAIN   ({len(graphs)} graphs enumerated)

   D_r(alpha)  <=  relaxation, 0 <= eta <= 1  <=  best graph of r edges  <=  any graph of r edges

        D_r at the                                                        the first r that
   r    relaxation's alpha    relaxation    best graph                      joined in 1""")
chain = []
for r_now in range(1, len(EDGES) + 1):
    relaxed, alpha, _, eta = master(range(len(EDGES)), r_now)
    of_size = {graph: value for graph, value in graphs.items() if len(graph) <= r_now}
    top = min(of_size, key=of_size.get)
    by_price = graphs[tuple(sorted(greedy[:r_now]))]
    chain.append((dual_value(alpha, r_now), relaxed, of_size[top], by_price))
    print(
        f"   {r_now}{chain[-1][0]:22.5f}{relaxed:14.5f}{of_size[top]:14.5f} "
        f"{' '.join(map(label, top)):<18}{by_price:14.5f}"
    )
    assert (
        chain[-1][0] <= relaxed + 1e-6
        and relaxed <= of_size[top] + 1e-6
        and of_size[top] <= by_price + 1e-6
    )
print(f"""
   The relaxation for r edges is not the best graph of r edges: it may spread eta over more. With
   r = {len(EDGES)} nothing is left to choose, and all are equal. So one number, a dual value,
   bounds a problem over {len(graphs)} graphs here, and over 2^45 in lesson 18.
""")
np.testing.assert_allclose(chain[-1], chain[-1][0], rtol=1e-5)
assert chain[0][2] - chain[0][1] > 0.01

# %%
# 5. why the first scores find the true edges
# -------------------------------------------


def scores_of(train, expected):
    """||sum over i of (indicators of y_i - expected) x_i|| of every edge.

    expected(i, j): (rows, 4) chances of 00, 01, 10, 11.
    """
    y = train.targets.reshape(train.n_tasks, -1).T > 0
    found = {}
    for i, j in combinations(range(train.n_tasks), 2):
        own = np.stack([(y[:, i] == a) & (y[:, j] == b) for a in (0, 1) for b in (0, 1)], axis=1)
        found[i, j] = np.linalg.norm((1.0 * own - expected(i, j)).T @ train.X)
    return found


def by_the_paper(train):
    """alpha^0 of Algorithm 1: all of it on the labelling with every label wrong."""
    y = train.targets.reshape(train.n_tasks, -1).T > 0
    return scores_of(
        train,
        lambda i, j: np.stack(
            [(y[:, i] != a) & (y[:, j] != b) for a in (0, 1) for b in (0, 1)], axis=1
        ),
    )


def by_the_nodes(train, lam=0.01):
    """The dual of the master without edges: K support vector machines.

    A sample's multiplier is the probability with which they turn its label.
    """
    W = mtl.Weights(train)
    machines = mtl.minimize(mtl.hinge_loss(W, train, mean=True) + lam / 2 * mtl.ridge(W)).solve(
        tol=1e-4
    )
    y = train.targets.reshape(train.n_tasks, -1).T
    u = machines.multipliers["hinge_loss(W, tasks, mean=True)"].reshape(train.n_tasks, -1).T
    one = np.where(
        y > 0, 1 + len(y) * y * u, -len(y) * y * u
    )  # the chance of a 1; labels are turned independently
    chance = (1 - one, one)
    return scores_of(
        train,
        lambda i, j: np.stack(
            [chance[a][:, i] * chance[b][:, j] for a in (0, 1) for b in (0, 1)], axis=1
        ),
    )


draws, hits, shown = 10, [], None
for seed in range(draws):
    star = datasets.make_label_graph(n_train=2000, n_test=1, random_state=seed)
    both = by_the_paper(star.train), by_the_nodes(star.train)
    hits.append([len(set(sorted(s, key=s.get)[-4:]) & set(star.edges)) for s in both])
    shown = shown or (*both, star.edges)
hits = np.array(hits)
ranks = [1 + sorted(shown[0], key=shown[0].get, reverse=True).index(edge) for edge in shown[2]]
print(f"""5. WHY THE FIRST SCORES FIND THE TRUE EDGES

   Lesson 18's star, 2,000 rows: true edges among the four highest scores of 45, {draws} draws.

   alpha^0 of the paper's Algorithm 1 (every label wrong)    {" ".join(map(str, hits[:, 0]))}
   the dual of the master without edges                      {" ".join(map(str, hits[:, 1]))}

   Z_c is a sum over samples of (what the edge's two labels are - what alpha expects of them) x_i.
   The dual of the nodes expects what the nodes can explain: what is left, and goes with the
   inputs, is what an edge is for. The labelling with every label wrong explains nothing: its
   scores are largest where labels go with the inputs on their own, and these are the labels
   outside the star: in the first draw the true edges have ranks {", ".join(map(str, ranks))} of
   45. (It is also no point of the dual: alpha^0 = K, where the sum is at most 1/n.)
""")
assert (hits[:, 0] == 0).all() and min(ranks) > 30 and (hits[:, 1] == 4).sum() >= 9

# %%
# 6. a number that is not a bound
# -------------------------------

six = datasets.make_label_graph(
    6, 5, [(0, 1), (0, 2), (0, 3)], n_train=100, n_test=1, random_state=0
).train
model = mtl.model("CGM", six, lam=0.01, r=2)
exact = model.solve("clique_generation", tol=1e-4)
taught = model.solve("clique_generation", method="spdca", sigma=0.01, tol=1e-4, max_iter=400)
f_h, objective, bound, when = (
    np.array([row[key] for row in taught.history])
    for key in ("paper_objective", "smoothed_objective", "dual_bound", "iteration")
)
lower = np.flatnonzero(f_h < objective)
other_way = np.flatnonzero((np.diff(f_h) < 0) & (np.diff(objective) > 0)) + 1
joined = np.flatnonzero(np.diff([row["edges"] for row in taught.history]) > 0) + 1
still = next(
    k
    for k in range(5, len(f_h))
    if abs(f_h[k] - f_h[k - 5]) <= 1e-3 * f_h[k - 5] and when[k] - when[k - 5] == 5
)
gap_there = 1 - np.max(bound[: still + 1]) / min(
    row["objective"] for row in taught.history[: still + 1]
)
first, high = lower[0], joined[np.argmax((f_h / objective)[joined])]
above = 100 * (f_h / objective - 1)[high]
print(f"""6. A NUMBER THAT IS NOT A BOUND

   The paper's SPDCA, corrected so that it converges; six labels, lam = 0.01, sigma = lam.
   Its f_h adds up the loss that each sample had when its turn came, each at other weights, and
   the penalty of the last weights. In {taught.history[-1]["iteration"]} epochs:

     below the (smoothed) objective    {len(lower)} epochs, first in epoch {when[first]}
                                       (f_h {f_h[first]:.4f}, objective {objective[first]:.4f})
     falling while that rises          {len(other_way)} epochs, first in epoch {when[other_way[0]]}
     above it, where edges join        by up to {above:.0f} % (epoch {when[high]})

   "Stop where f_h changes by less than 0.1 % in five epochs" stops in epoch {when[still]}. Proven
   there: a gap of {100 * gap_there:.1f} %. And it would not shrink: sigma/2 ||V||^2, added to
   smooth, is another problem, whose optimum is {taught.history[-1]["smoothed_bound"]:.4f} to
   {taught.history[-1]["smoothed_objective"]:.4f}; that of the model is {exact.objective:.4f}. The
   certificate, computed apart from the solver, says so: {taught}
""")
assert (
    len(lower) and len(other_way) and np.max((f_h / objective)[joined]) > 1.1 and gap_there > 0.01
)
assert taught.history[-1]["smoothed_bound"] > exact.objective and not taught.is_optimal
assert (bound <= exact.objective * (1 + 1e-9)).all()

# %%
# 7. beside the language
# ----------------------

U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks)
small = mtl.minimize(
    mtl.clique_hinge(U, V, tasks) + lam * mtl.ridge(U) + lam * mtl.half_squared_group_norm(V)
)
solution = small.solve("clique_generation", tol=1e-7, cliques_per_round=1)
print(f"""7. BESIDE THE LANGUAGE

{small}

   round   edges   joined    objective     proven""")
for row in solution.history:
    named = " ".join(label(EDGES.index(tuple(edge))) for edge in row["joined"])
    print(
        f"   {row['round']:5d}{row['edges']:8d}   "
        f"{named:<8}{row['objective']:11.6f}{row['dual_bound']:11.6f}"
    )
print(f"""
   by hand   {whole:.8f}
   mtldsl    {solution.objective:.8f}

THE CROSS-CHECK
""")
np.testing.assert_allclose(solution.objective, whole, rtol=1e-6)
check = small.cross_check(solution)
print(check)
assert solution.is_optimal and check.agrees


# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    blue, grey, orange, green = "#1f5fa8", "#b8bec6", "#d9742b", "#3d9a8b"
    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
        }
    )
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 8), layout="constrained")
    axes = axes.ravel()

    steps = np.arange(len(log))
    axes[0].axhline(whole, color="black", linewidth=1, linestyle=":")
    axes[0].plot(steps, [entry[1] for entry in log], "o-", color=orange, label="restricted master")
    axes[0].plot(
        steps,
        [proven(entry[2], 1) for entry in log],
        "o-",
        color=blue,
        label="proven for all edges",
    )
    axes[0].plot(steps, raw, "o--", color=grey, label="the same, not mixed with the truth")
    axes[0].set(
        title="Above and below the optimum",
        xlabel="number of edges in the master",
        ylim=(-0.75, 0.9),
    )
    axes[0].set_xticks(steps)
    axes[0].legend(frameon=False, fontsize=9, loc="lower right")

    r_axis = np.arange(1, len(EDGES) + 1)
    _, relaxed, top, by_price = np.array(chain).T
    axes[1].plot(r_axis, by_price, "o-", color=grey, label="the first $r$ that joined")
    axes[1].plot(r_axis, top, "o-", color=orange, label="best graph of $r$ edges")
    axes[1].plot(r_axis, relaxed, "o-", color=blue, label="relaxation")
    axes[1].set(title="The chain", xlabel="r")
    axes[1].legend(frameon=False, fontsize=9)

    for scores, colour, name in (
        (shown[0], grey, "every label wrong (paper)"),
        (shown[1], blue, "master without edges"),
    ):
        order = sorted(scores, key=scores.get, reverse=True)
        height = np.array([scores[edge] for edge in order]) / scores[order[0]]
        axes[2].plot(np.arange(1, 46), height, color=colour, linewidth=2, label=name)
        true = [k for k, edge in enumerate(order) if edge in shown[2]]
        axes[2].plot(
            np.array(true) + 1,
            height[true],
            "o",
            color=orange,
            markersize=7,
            zorder=3,
            label="true edges" if colour == blue else None,
        )
    axes[2].set(
        title="First scores of 45 edges, sorted",
        xlabel="rank",
        ylabel="share of the largest",
        ylim=(0, 1.05),
    )
    axes[2].legend(frameon=False, fontsize=9)

    first = when <= 60
    axes[3].axhline(exact.objective, color="black", linewidth=1, linestyle=":")
    axes[3].plot(when[first], f_h[first], color=green, linewidth=1.6, label="$f_h$ of the paper")
    axes[3].plot(
        when[first], objective[first], color=orange, linewidth=1.6, label="(smoothed) objective"
    )
    axes[3].plot(
        when[first],
        np.maximum.accumulate(bound)[first],
        color=blue,
        linewidth=1.6,
        label="proven so far",
    )
    axes[3].set(
        title="SPDCA: $f_h$ is neither above nor below", xlabel="epoch", xlim=(1, 60), ylim=(0, 2.4)
    )
    axes[3].legend(frameon=False, fontsize=9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "19_column_generation.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# To change and run; what comes of it is the answer.
#
# 1. Let the *worst* price join first (``min`` instead of ``max`` among those that pay). Is the
#    result still the optimum? How many masters does it take?
# 2. r = 2 in section 1: what is the level now, and which line of the dual changes? With fewer
#    than r edges in the master, which edges pay?
# 3. Leave the factor s out of ``proven``. How many edges must join before something better than 0
#    is proven?
# 4. Prove that the relaxation is below the best graph of r edges, and find weights with which it
#    is strictly so (two equal norms, r = 1).
# 5. In section 5 replace "independently" by the coupling that turns both labels together as often
#    as possible. It is optimal for the same master: do the scores change? The price of an edge
#    that is not in the master is therefore not unique. Which price is the right one?
# 6. sigma = 0.001 in section 6: how far off is the smoothed optimum now, and how many epochs does
#    it take to come there?
