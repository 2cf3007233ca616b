"""10. Networks with learned covariances: one network for all tasks, or one a task
===============================================================================

::

    minimize over h, W, b    sum of squares of  Y - h(X) W - 1 b'   +   c/2 ||hidden matrices||^2
                             +  eta tr(Sigma1 W Sigma2 W')  -  rho (m log|Sigma1| + p log|Sigma2|)
    subject to               0.01 I <= Sigma1, Sigma2 <= 100 I

FETR's penalty needs only a matrix W with a column a task. In a network whose hidden layers h all
tasks share, the linear last layer is one: its rows are the p = 100 units of the last hidden
layer, its columns the m tasks. Two things take turns: a step of Adam on everything, in which the
penalty is a quadratic form of W, and both matrices in closed form. That is MTN-FETR (Zhao,
Stretcu, Smola and Gordon, UAI 2019, Section 5). Without the last line it is MTN; with a whole
network for each task, STN.

WHAT THE CLOSED FORM LEARNS. With singular values s of W and t = eta s^2 / rho, the best pair
lowers Sigma1 first, down to its bound l = 0.01, while Sigma2 stays at u = 100; Sigma2 leaves u
only where t > p / (l u), here 100. So for eta = rho = 1 and weights of size 1 the *tasks'*
correlations are none at all, by construction and not by data; a larger eta / rho moves what is
learned over to the tasks. The table has both.

DATA. SARCOS, the 4,449 rows of the published test file: 21 positions, velocities and
accelerations of 7 joints, 7 torques. Rows follow each other in time, so that neighbours are near
copies: the split is by contiguous blocks of rows, never row by row, and the errors are larger
than those of a random split. Without the file, a synthetic nonlinear problem takes its place.

Weight decay c (and the ridge of the linear model) is chosen on the validation blocks. Networks
keep the epoch that was best there.

Run: ``python examples/10_networks.py`` (needs PyTorch: pip install "mtldsl[torch]")
"""

import sys
from time import perf_counter

import numpy as np

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.atoms.structures import MatrixNormal, Range
from mtldsl.nn import MultiTaskNetwork, SingleTaskNetworks

try:
    import torch  # noqa: F401  only to see whether it is there
except ImportError:
    print('This lesson trains networks, and PyTorch is not installed: pip install "mtldsl[torch]"')
    sys.exit(0)

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
# The models
# ----------


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


BOUNDS = [Range(0.01, 100.0), Range(0.01, 100.0)]
TRAINING = {"epochs": 30, "batch_size": 128, "learning_rate": 5e-3, "random_state": 0}


def best_network(kind, **options):
    """The better of two weight decays, on validation data."""
    networks = [
        kind(weight_decay=c, **TRAINING, **options).fit(train, validation) for c in (0.0, 5.0)
    ]
    return max(networks, key=lambda network: network.score(validation))


models = {
    "linear ridge": linear_ridge,
    "STN": lambda: best_network(SingleTaskNetworks),
    "MTN": lambda: best_network(MultiTaskNetwork),
    "MTN-FETR, eta 1, rho 1": lambda: best_network(
        MultiTaskNetwork, structure=MatrixNormal(1.0, 1.0).bound(BOUNDS)
    ),
    "MTN-FETR, eta 1000, rho 0.1": lambda: best_network(
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

# %%
# Fewer rows
# ----------

FEW = 400
few = train.take_rows(np.linspace(0, train.X.shape[0] - 1, FEW).astype(int))
print(f"""
FEWER ROWS: {FEW} OF THE TRAINING ROWS, MEAN ERROR ON THE TEST BLOCKS FOR TWO SEEDS

  {"":<28}{"c = 0":>16}{"c = 2":>16}""")
for label, structure in {
    "MTN": None,
    "MTN-FETR, eta 1, rho 1": MatrixNormal(1.0, 1.0).bound(BOUNDS),
}.items():
    means = []
    for c in (0.0, 2.0):
        for seed in (0, 1):
            options = TRAINING | {"epochs": 100, "batch_size": 64, "random_state": seed}
            network = MultiTaskNetwork(weight_decay=c, structure=structure, **options).fit(
                few, validation
            )
            means.append(1.0 - network.score(test))
    print(f"  {label:<28}{means[0]:9.4f}{means[1]:7.4f}{means[2]:9.4f}{means[3]:7.4f}")
print("""
  c is the weight decay of the hidden layers, and of the last one too where nothing is learned
  about it.""")

# %%
# What was learned
# ----------------

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
    assert value <= network.structure.value_at(network.W, network.structure.start(network.W.shape))

last = fitted["MTN-FETR, eta 1, rho 1"].history
print(f"""
  Objective of MTN-FETR, eta 1, rho 1 (a sum of squares in standard deviations, plus the penalty,
  whose logarithms make it negative), every tenth epoch:
  {", ".join(f"{look['objective']:.1f}" for look in last[9::10])}. Nothing is proven about this
  point: the problem is not convex, and training ends where the validation error is small.""")
