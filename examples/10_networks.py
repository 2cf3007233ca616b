r"""10. Networks with covariances
=============================

Networks with learned covariances: one network for all tasks, or one a task.

.. math::

    \min_{h, W, b, \Sigma_1, \Sigma_2} \; \|Y - h(X) W - 1 b^T\|_F^2
    + \frac{c}{2} \|\mathrm{hidden\ matrices}\|^2 + F(W, \Sigma_1, \Sigma_2)

FETR's penalty is

.. math::

    F = \eta \, \mathrm{tr}(\Sigma_1 W \Sigma_2 W^T)
    - \rho \left( m \log |\Sigma_1| + p \log |\Sigma_2| \right), \qquad
    0.01 \, I \preceq \Sigma_1, \Sigma_2 \preceq 100 \, I

FETR's penalty needs only a matrix W with one column per task. In a network whose hidden layers h
all tasks share, the linear last layer is one: its rows are the p = 100 units of the last hidden
layer, its columns the m tasks. Two things take turns: a step of Adam on everything, in which the
penalty is a quadratic form of W, and both matrices in closed form. That is MTN-FETR (Zhao,
Stretcu, Smola and Gordon, UAI 2019, Section 5). Without F it is MTN; with a whole network for each
task, STN.

WHAT THE CLOSED FORM LEARNS. W has singular values s. With t = eta s^2 / rho, the best pair
lowers Sigma1 first, down to its bound l = 0.01, while Sigma2 stays at u = 100; Sigma2 leaves u
only where t > p / (l u), here 100. So for eta = rho = 1 and weights of size 1 the *tasks'*
correlations are none at all, by construction and not by data; a larger eta / rho moves what is
learned over to the tasks. The table has both.

DATA. SARCOS, the 4,449 rows of the published test file: 21 positions, velocities and
accelerations of 7 joints, 7 torques. Rows follow each other in time, so that neighbours are near
copies: the split is by contiguous blocks of rows, never row by row, and the errors are larger
than those of a random split. Without the file, a synthetic nonlinear problem takes its place.

TWO WAYS. Sections 1 and 2 need scikit-learn alone: its network learns h with an ordinary last
layer, and then h is kept, and the last layer learned again, with the penalty and a proof of what
can be proven. Section 3 learns both together, as the paper does; it needs PyTorch (pip install
".[torch]" in the checkout), and is left out where that is not installed.

Every strength is chosen on the validation blocks, but for the weight decay of section 3, which is
1 for all networks there. They keep the epoch that was best on the validation blocks.

Run: ``python examples/10_networks.py`` (picture: ``examples/output/10_networks.png``)
"""

import warnings
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.testing import exercise

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# The data
# --------


def synthetic(n_rows=4000, n_features=10, n_tasks=7):
    """A smooth walk through input space; tasks mix four nonlinear features."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(n_rows, n_features))
    X = np.zeros_like(steps)
    for k in range(1, n_rows):
        X[k] = 0.95 * X[k - 1] + 0.3 * steps[k]
    features = np.column_stack(
        [np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], np.abs(X[:, 3]), np.tanh(X[:, 4] + X[:, 5])]
    )
    mixtures = rng.normal(size=(4, 1)) * np.r_[np.ones(4), -np.ones(3)] + 0.4 * rng.normal(
        size=(4, n_tasks)
    )
    Y = features @ mixtures
    return mtl.Tasks.shared(X, Y + 0.2 * Y.std(axis=0) * rng.normal(size=Y.shape))


try:
    tasks, name = datasets.load_sarcos(), "SARCOS, 4,449-row subsample"
except mtl.DataError as error:
    tasks, name = synthetic(), "a synthetic problem"
    print(f"(SARCOS is not here: {error})\n")

N_BLOCKS = 15
blocks = np.array_split(np.arange(tasks.X.shape[0]), N_BLOCKS)
of = {
    "test": blocks[1::5],
    "validation": blocks[3::5],
    "train": blocks[0::5] + blocks[2::5] + blocks[4::5],
}
train, validation, test = (
    tasks.take_rows(np.concatenate(of[part])) for part in ("train", "validation", "test")
)
print(f"{name}: {tasks}")
print(f"{N_BLOCKS} contiguous blocks of rows: 9 to train on, 3 for validation, 3 for the test\n")

# %%
# 1. Hidden layers by scikit-learn
# --------------------------------
#
# ``MLPRegressor`` with several outputs is a network that all tasks share (MTN); one a task is STN.
# The last layer of the shared one is then learned again, by ridge and with both matrices.

scaled = train.standardize()
centre, spread = train.X.mean(axis=0), train.X.std(axis=0)


def inputs_of(part):
    return (part.X - centre) / spread


def table(part):
    """Labels as a table, in standard deviations of the training rows."""
    of_train = train.targets.reshape(train.n_tasks, -1).T
    labels = part.targets.reshape(part.n_tasks, -1).T
    return (labels - of_train.mean(axis=0)) / of_train.std(axis=0)


def errors_of(predicted, part):
    """Mean squared error of every task over the variance of its labels in this part."""
    labels = table(part)
    return np.mean((predicted - labels) ** 2, axis=0) / labels.var(axis=0)


def network(labels, alpha, units=40):
    settings = {"max_iter": 20, "learning_rate_init": 5e-3, "early_stopping": True}
    model = MLPRegressor(
        hidden_layer_sizes=(units,), alpha=alpha, random_state=0, n_iter_no_change=20, **settings
    )
    return model.fit(inputs_of(train), labels)


def best(candidates, predict):
    """The candidate with the smallest error on the validation blocks."""
    return min(candidates, key=lambda one: errors_of(predict(one, validation), validation).mean())


def predict_linear(solution, part):
    return np.column_stack([np.ones(len(part.X)), inputs_of(part)]) @ solution


def ridge_by_hand(strength):
    """Weights, intercepts first, which the penalty leaves alone."""
    A = np.column_stack([np.ones(len(scaled.X)), inputs_of(train)])
    penalty = strength * np.diag([0.0] + [1.0] * train.n_features)
    return np.linalg.solve(A.T @ A + penalty, A.T @ table(train))


def hidden(model, part):
    """What the hidden units say of the rows, and a 1."""
    units = np.maximum(inputs_of(part) @ model.coefs_[0] + model.intercepts_[0], 0)
    return np.column_stack([units, np.ones(len(units))])


ALPHAS = (1e-3, 1.0)
warnings.filterwarnings("ignore", category=ConvergenceWarning)  # 20 epochs are meant
linear = best([ridge_by_hand(strength) for strength in (1.0, 10.0, 100.0)], predict_linear)
shared = best(
    [network(table(train), alpha) for alpha in ALPHAS],
    lambda model, part: model.predict(inputs_of(part)),
)
alone = best(
    [[network(y, alpha, 20) for y in table(train).T] for alpha in ALPHAS],
    lambda models, part: np.column_stack([one.predict(inputs_of(part)) for one in models]),
)

# %%
# 2. The last layer, learned again
# --------------------------------

layer = mtl.Tasks.shared(hidden(shared, train), table(train), task_names=tasks.task_names)
W = mtl.Weights(layer)
Sigma1, Sigma2 = mtl.FeaturePrecision(layer), mtl.TaskPrecision(layer)
loss, of_tasks = mtl.sum_of_squares(W, layer), [Sigma2 >> 0.01, Sigma2 << 100]
of_both = [Sigma1 >> 0.01, Sigma1 << 100, *of_tasks]


def predict_layer(solution, part):
    return hidden(shared, part) @ solution.W


def fetr(eta, rho):
    prior = mtl.matrix_normal(W, Sigma1, Sigma2, eta=eta, rho=rho)
    return mtl.minimize(loss + prior, subject_to=of_both).solve(tol=1e-5)


again = {
    "its last layer by ridge": [
        mtl.minimize(loss + strength * mtl.ridge(W)).solve() for strength in (0.1, 1.0, 10.0)
    ],
    "its last layer by FETR": [
        fetr(eta, rho) for eta, rho in ((1.0, 1.0), (100.0, 1.0), (1000.0, 1.0), (1000.0, 10.0))
    ],
}
assert all(solution.is_certified for solutions in again.values() for solution in solutions)
chosen = {name: best(solutions, predict_layer) for name, solutions in again.items()}
found = {
    "linear ridge": errors_of(predict_linear(linear, test), test),
    "STN, a network a task": errors_of(
        np.column_stack([one.predict(inputs_of(test)) for one in alone]), test
    ),
    "MTN, one network": errors_of(shared.predict(inputs_of(test)), test),
    **{name: errors_of(predict_layer(one, test), test) for name, one in chosen.items()},
}
print("NORMALISED MEAN SQUARED ERROR ON THE TEST BLOCKS (1: as good as each task's mean)\n")
for label, each in found.items():
    print(f"  {label:<26}{each.mean():8.4f}   " + " ".join(f"{error:.3f}" for error in each))
correlated = again["its last layer by FETR"][2]  # eta / rho = 1000, see the text at the top
largest = np.abs(correlated.Sigma2.correlation - np.eye(train.n_tasks)).max()
print(f"""
  One split, one seed: read no ranking from the third digit. The last layer, learned again, is
  a problem of its own, whose solution says what is known of it. At eta = rho = 1 no task is
  correlated with another (why: at the top); at eta = 1000, rho = 1:

  {correlated}

{correlated.Sigma2}
""")
assert largest > 0.1
assert found["MTN, one network"].mean() < found["linear ridge"].mean()

# %%
# 3. All of it together, with PyTorch
# -----------------------------------


def linear_ridge():
    """The best of all strengths, on validation data."""
    scaled = train.standardize()
    W = mtl.Weights(scaled, intercept=True)
    strength = mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, scaled) + strength * mtl.ridge(W))
    return max(
        problem.path(strength, values=[100.0, 10.0, 1.0]),
        key=lambda solution: solution.score(validation),
    )


def together() -> None:
    from mtldsl.nn import MultiTaskNetwork, SingleTaskNetworks

    # The models

    BOUNDS = [Range(0.01, 100.0), Range(0.01, 100.0)]
    SIZE = {"hidden": (100, 100), "epochs": 8, "batch_size": 128, "learning_rate": 5e-3}
    TRAINING = SIZE | {"random_state": 0}

    def trained(kind, **options):
        """At its epoch that is best on validation data."""
        return kind(weight_decay=1.0, **TRAINING, **options).fit(train, validation)

    models = {
        "linear ridge": linear_ridge,
        "STN": lambda: trained(SingleTaskNetworks),
        "MTN": lambda: trained(MultiTaskNetwork),
        "MTN-FETR, eta 1, rho 1": lambda: trained(
            MultiTaskNetwork, structure=MatrixNormal(1.0, 1.0).bound(BOUNDS)
        ),
        "MTN-FETR, eta 1000, rho 0.1": lambda: trained(
            MultiTaskNetwork, structure=MatrixNormal(1000.0, 0.1).bound(BOUNDS)
        ),
    }

    print("NORMALISED MEAN SQUARED ERROR ON THE TEST BLOCKS (1: as good as each task's mean)\n")
    print(f"  {'':<28}{'seconds':>8}{'validation':>12}{'test':>8}   {'task by task'}")
    fitted, errors = {}, {}
    for label, make in models.items():
        began = perf_counter()
        model = make()
        seconds = perf_counter() - began
        fitted[label], errors[label] = model, 1.0 - model.scores(test)
        print(
            f"  {label:<28}{seconds:8.1f}{1 - model.score(validation):12.4f}"
            f"{errors[label].mean():8.4f}   " + " ".join(f"{error:.3f}" for error in errors[label]),
            flush=True,
        )

    best = min(errors, key=lambda label: errors[label].mean())
    print(f"""
  Smallest here: {best}. One split, one seed, {train.counts[0]:,} rows: read no ranking from
  differences in the third digit. The paper, on SARCOS with 31,138 training rows, reports STN far
  behind MTN, and MTN-FETR ahead of both.""")
    assert all(
        errors[label].mean() < errors["linear ridge"].mean()
        for label in errors
        if label != "linear ridge"
    )

    # Fewer rows

    FEW = 400
    few = train.take_rows(np.linspace(0, train.X.shape[0] - 1, FEW).astype(int))
    print(f"""
FEWER ROWS: {FEW} OF THE TRAINING ROWS, MEAN ERROR ON THE TEST BLOCKS FOR ONE SEED

  {"":<28}{"c = 0":>9}{"c = 2":>9}""")
    for label, structure in {
        "MTN": None,
        "MTN-FETR, eta 1, rho 1": MatrixNormal(1.0, 1.0).bound(BOUNDS),
    }.items():
        means = []
        for c in (0.0, 2.0):
            for seed in (0,):
                options = TRAINING | {"epochs": 15, "batch_size": 64, "random_state": seed}
                network = MultiTaskNetwork(weight_decay=c, structure=structure, **options).fit(
                    few, validation
                )
                means.append(1.0 - network.score(test))
        print(f"  {label:<28}{means[0]:9.4f}{means[1]:9.4f}")
    print("""
  c is the weight decay of the hidden layers, and of the last one too where nothing is learned
  about it.""")

    # What was learned

    for label in list(models)[3:]:
        network = fitted[label]
        Sigma1, Sigma2 = network.matrices
        s = np.linalg.svd(network.W, compute_uv=False)
        t = network.structure.eta / network.structure.rho * s**2
        print(f"""
WHAT THE LAST LAYER OF {label} LEARNED, {network.W.shape[0]} UNITS x {network.W.shape[1]} TASKS

  singular values s of W              {" ".join(f"{v:8.3g}" for v in s)}
  t = eta s^2 / rho                   {" ".join(f"{v:8.3g}" for v in t)}
  eigenvalues of Sigma1 (the {len(s)} least)
  {" ".join(f"{v:8.3g}" for v in Sigma1.eigenvalues()[: len(s)])}
  eigenvalues of Sigma2               {" ".join(f"{v:8.3g}" for v in Sigma2.eigenvalues())}

  Correlations of the tasks, from the inverse of Sigma2:
""")
        for task, row in zip(tasks.task_names, network.correlations["Sigma2"], strict=True):
            print(f"    {task:<10}" + "".join(f"{value:7.2f}" for value in row.round(2) + 0.0))
        # the matrices are the minimisers for W, so that no other pair gives a smaller penalty
        value = network.structure.value_at(network.W, network.matrices)
        np.testing.assert_allclose(value, network.structure.value(network.W), rtol=1e-9)
        assert value <= network.structure.value_at(
            network.W, network.structure.start(network.W.shape)
        )

    last = fitted["MTN-FETR, eta 1, rho 1"].history
    print(f"""
  Objective of MTN-FETR, eta 1, rho 1 (a sum of squares in standard deviations, plus the penalty,
  whose logarithms make it negative), every second epoch:
  {", ".join(f"{look['objective']:.1f}" for look in last[1::2])}. Nothing is proven about this
  point: the problem is not convex, and training ends where the validation error is small.""")


if find_spec("torch"):
    together()
else:
    print('Section 3 needs PyTorch, which is not installed: pip install ".[torch]" in the checkout')

# %%
# The picture
# -----------


def picture(path: Path) -> None:
    import matplotlib.pyplot as plt

    style = {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    plt.rcParams.update(style | {"axes.titlesize": 12})
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), layout="constrained")
    for y, (label, each) in enumerate(reversed(found.items())):
        colour = "#d9742b" if "FETR" in label else "#1f5fa8" if "layer" in label else "#7d858f"
        left.plot(each, [y] * len(each), "|", color=colour, markersize=11)
        left.plot(each.mean(), y, "o", color=colour, markersize=9)
    left.set_yticks(range(len(found)), list(found)[::-1])
    left.tick_params(axis="y", length=0)
    left.grid(axis="x", color="#e4e7ea")
    left.set(title="Error on test blocks (dot: mean; lines: tasks)", xlim=(0, None))
    left.spines["left"].set_visible(False)
    mtl.report.heatmap(
        correlated.Sigma2, ax=right, title="Correlation of tasks, eta = 1000, rho = 1"
    )
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"\nPicture: {path}")


try:
    picture(OUTPUT / "10_networks.png")
except ImportError:
    print("\n(no picture: matplotlib is not installed)")

# %%
# Exercises
# ---------
#
# Write the body of a function in place of ``...`` and run the lesson again: the check below it
# says whether the answer is right, and gives a hint where it is not. The solutions are in
# ``examples/solutions/10_networks.py``.
#
# **1.** How many weights has a network with one hidden layer, intercepts included: one for all m
# tasks, and one a task?


def n_weights(d, units, m, shared):
    """The number of weights: d inputs, `units` hidden units (a network), m tasks."""
    ...


@exercise(n_weights)
def check_n_weights(answer):
    for d, units, m in ((5, 3, 2), (4, 6, 3)):
        X, Y = np.random.default_rng(0).normal(size=(20, d)), np.ones((20, m))
        counted = [
            sum(part.size for part in (*model.coefs_, *model.intercepts_))
            for model in (
                MLPRegressor(hidden_layer_sizes=(units,), max_iter=1, solver="sgd").fit(X, labels)
                for labels in (Y, Y[:, 0])
            )
        ]
        assert answer(d, units, m, True) == counted[0], f"one for all has {counted[0]}"
        assert answer(d, units, m, False) == m * counted[1], f"one a task: {m * counted[1]}"


# %%
# **2.** Adam needs the gradient of the penalty eta tr(Sigma1 W Sigma2 W') with respect to W.


def gradient_of_penalty(W, S1, S2, eta):
    """An array like W (p, m); S1 (p, p) and S2 (m, m) are symmetric."""
    ...


@exercise(gradient_of_penalty)
def check_gradient_of_penalty(answer):
    draw = np.random.default_rng(0)
    V, A, B = draw.normal(size=(4, 3)), draw.normal(size=(4, 4)), draw.normal(size=(3, 3))
    S1, S2, h = A @ A.T, B @ B.T, 1e-6

    def value(V):
        return 0.7 * np.trace(S1 @ V @ S2 @ V.T)

    yours = np.asarray(answer(V, S1, S2, 0.7))
    assert yours.shape == V.shape, f"W is {V.shape}, and your gradient {yours.shape}"
    for i, j in ((0, 0), (2, 1), (3, 2)):
        step = h * np.outer(np.eye(4)[i], np.eye(3)[j])
        slope = (value(V + step) - value(V - step)) / (2 * h)
        assert np.isclose(yours[i, j], slope, rtol=1e-5), (
            f"[{i}, {j}] is {slope:.5f}, not {yours[i, j]:.5f}"
        )
