"""Networks held to what can be known of them: linear ones to the solved problem, all to their stated objective."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.nn import MultiTaskNetwork, SingleTaskNetworks
from tests.loops import for_each
from tests.models import separate, shared
from tests.pairs import pairwise_cases

torch = pytest.importorskip(
    "torch", reason='networks are trained by PyTorch: pip install ".[torch]" in the checkout'
)

from mtldsl.estimators.network_training import kept_quadratic  # noqa: E402  its functions take tensors

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(7)
BOUNDS = [Range(0.05, 20.0), Range(0.05, 20.0)]
DATA = {
    "shared": lambda: shared(1),
    "missing labels": lambda: shared(2, missing=0.3),
    "sample weights": lambda: shared(3, missing=0.2, sample_weights=True),
    "separate": lambda: separate(4),
}


def small(**options):
    return MultiTaskNetwork(**{"hidden": (8, 5), "epochs": 5, "batch_size": 8, "random_state": 0} | options)


def linear(**options):
    """A linear model in the units of the data, trained by full steps."""
    exact = {"hidden": (), "standardize": False, "batch_size": None, "epochs": 1500, "learning_rate": 0.1}
    return MultiTaskNetwork(**exact | {"random_state": 0} | options)


def sample_weights(tasks):
    return np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights


def assert_same_layers(one, other, **tolerance):
    for a, b in zip([*sum(one.hidden, ()), one.W], [*sum(other.hidden, ()), other.W], strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


QUADRATICS = [(structure, (5, 4)) for structure in MatrixNormal.examples()]
QUADRATICS += [(MatrixNormal(0.3, 2.0).bound(BOUNDS), shape) for shape in ((7, 3), (3, 7), (4, 4))]


@for_each("structure, shape", QUADRATICS)
def test_autograd_of_the_quadratic_is_the_profiles_gradient(structure, shape):
    """Where the matrices are those of W itself; elsewhere it is that of the kept quadratic form."""
    W, other = RNG.normal(size=(2, *shape))
    for point in (W, other):
        matrices = structure.update(W)
        tensor = torch.tensor(point, requires_grad=True)
        value = kept_quadratic(torch, structure, W.shape, matrices)(tensor)
        value.backward()
        assert float(value.detach()) == pytest.approx(structure.value_at(point, matrices), rel=1e-12)
        dense = [S.dense() for S in matrices]
        expected = 2 * structure.eta * dense[0] @ point @ dense[1]
        np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-10, atol=1e-10)
        if point is W:
            np.testing.assert_allclose(tensor.grad.numpy(), structure.gradient(W), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_a_linear_network_is_linear_fetr():
    tasks = shared(1)
    structure = MatrixNormal(eta=5.0, rho=0.5).bound(BOUNDS)
    W, S1, S2 = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    objective = mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, S1, S2, eta=5.0, rho=0.5)
    bounds = [side for S in (S1, S2) for side in (S >> 0.05, S << 20)]
    solved = mtl.minimize(objective, subject_to=bounds).solve(tol=1e-9)
    network = linear(intercept=False, structure=structure).fit(tasks)
    assert network.objective == pytest.approx(solved.objective, rel=1e-7, abs=1e-6)
    np.testing.assert_allclose(network.W, solved.W, atol=1e-3)
    for learned, expected in zip(network.matrices, structure.update(solved.W), strict=True):
        np.testing.assert_allclose(learned.dense(), expected.dense(), rtol=1e-2, atol=1e-2)
    assert network.history[0]["objective"] > solved.objective + 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "intercept"), [("sample weights", True), ("separate", False)])
def test_a_linear_network_with_weight_decay_is_ridge(name, intercept):
    """Missing labels do not count, sample weights do, the intercept is free."""
    tasks, c = DATA[name](), 3.0
    network = linear(weight_decay=c, intercept=intercept).fit(tasks)
    W = mtl.Weights(tasks, intercept=intercept)
    solved = mtl.minimize(mtl.sum_of_squares(W, tasks) + c * mtl.ridge(W)).solve("closed_form", tol=1e-12)
    np.testing.assert_allclose(network.W, solved.W, atol=1e-6)
    np.testing.assert_allclose(network.layers.intercept, solved.intercept if intercept else 0.0, atol=1e-6)
    assert network.objective == pytest.approx(solved.objective, rel=1e-9)


@pytest.mark.slow
@for_each(
    ("tasks", "structure"),
    pairwise_cases(DATA.values(), [None, MatrixNormal(0.5, 2.0).bound(BOUNDS)]),
)
def test_the_objective_is_the_one_stated(tasks, structure):
    tasks, c = tasks(), 0.7
    network = small(structure=structure, weight_decay=c).fit(tasks)
    pooled = tasks.X if tasks.is_shared else np.vstack(tasks.inputs)
    total = 0.0
    parts = tasks.per_task(tasks.targets), tasks.per_task(sample_weights(tasks))
    for i, (X, y, s) in enumerate(zip(tasks.inputs, *parts, strict=True)):
        H = (X - pooled.mean(axis=0)) / pooled.std(axis=0)
        for A, shift in network.layers.hidden:
            H = np.where(H @ A + shift > 0, H @ A + shift, 0)
        outputs = H @ network.W[:, i] + network.layers.intercept[i]
        total += np.sum(s * ((y - y.mean()) / y.std() - outputs) ** 2)
    total += c / 2 * sum(np.sum(A**2) for A, _ in network.layers.hidden)
    total += c / 2 * np.sum(network.W**2) if structure is None else structure.value(network.W)
    assert network.objective == pytest.approx(total, rel=1e-10)
    assert network.history[-1]["objective"] == network.objective
    assert network.epoch == len(network.history) == 5


@pytest.mark.slow
@for_each(
    "structure",
    [
        MatrixNormal(1.0, 1.0).bound(BOUNDS),
        MatrixNormal(10.0, 0.1).bound([Range(0.01, 100.0), Range(0.01, 100.0)]),
        MatrixNormal(1.0, 5.0).bound([BOUNDS[0], SpectralMatrix.of(np.diag([1.0, 2.0, 3.0, 4.0]))]),
    ],
)
def test_closed_form_updates_never_raise_the_objective(structure):
    network = small(structure=structure, epochs=30).fit(shared(5, missing=0.2))
    decreases = np.array([look["update_decrease"] for look in network.history])
    assert (decreases >= -1e-9 * np.abs([look["objective"] for look in network.history])).all()
    assert decreases[0] > 0


@pytest.mark.slow
def test_matrices_are_joint_minimisers_with_correlations():
    structure = MatrixNormal(10.0, 0.1).bound(BOUNDS)
    network = small(structure=structure).fit(shared())
    assert set(network.correlations) == {"Sigma1", "Sigma2"}
    for learned, best, C in zip(
        network.matrices, structure.update(network.W), network.correlations.values(), strict=True
    ):
        np.testing.assert_array_equal(learned.dense(), best.dense())
        inverse = np.linalg.inv(learned.dense())
        scale = 1 / np.sqrt(np.diag(inverse))
        np.testing.assert_allclose(C, inverse * np.outer(scale, scale), atol=1e-10)
    assert small().fit(shared()).correlations == {}


def test_rows_without_any_label_do_not_count():
    tasks = shared(6, missing=0.3)
    X, Y = np.array(tasks.X), np.full((30, 4), np.nan)
    Y[tasks.mask] = 1.0
    Y.T[tasks.mask.T] = tasks.targets
    more = mtl.Tasks.shared(np.vstack([X, RNG.normal(size=(5, 6))]), np.vstack([Y, np.full((5, 4), np.nan)]))
    options = {"standardize": False, "epochs": 10}
    assert_same_layers(small(**options).fit(tasks).layers, small(**options).fit(more).layers, rtol=1e-12)


@pytest.mark.parametrize("network", [MultiTaskNetwork, SingleTaskNetworks])
def test_labels_in_other_units_give_predictions_in_those_units(network):
    tasks = shared(6, missing=0.3)
    table = np.full((30, 4), np.nan)
    table.T[tasks.mask.T] = tasks.targets
    shift, factor = np.array([5.0, -3.0, 0.0, 1e3]), np.array([1e3, 1e-3, 2.0, 7.0])
    options = {"hidden": (6,), "epochs": 10, "random_state": 1}
    one = network(**options).fit(tasks)
    other = network(**options).fit(mtl.Tasks.shared(10 * tasks.X - 4, table * factor + shift))
    expected = shift + factor * one.predict(tasks.X)
    np.testing.assert_allclose(other.predict(10 * tasks.X - 4), expected, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(
        other.scores(mtl.Tasks.shared(10 * tasks.X - 4, table * factor + shift)), one.scores(tasks), rtol=1e-6
    )


@for_each("network", [MultiTaskNetwork, SingleTaskNetworks])
def test_scores_are_one_minus_the_normalised_error(network):
    train, test = shared(6, n=60, missing=0.2).split(0.3, random_state=0)
    fitted = network(hidden=(6,), epochs=10, random_state=0).fit(train.standardize())
    scaling = train.standardize().scaling
    outputs = fitted.predict(test.X)  # raw inputs: the statistics of training are applied
    expected = []
    for i, y in enumerate(test.per_task(test.targets)):
        z = outputs[test.mask[:, i], i]
        expected.append(1 - np.mean((y - z) ** 2) / np.var(y))
    np.testing.assert_allclose(fitted.scores(test), expected, rtol=1e-10)
    np.testing.assert_allclose(fitted.scores(test.scaled_by(scaling)), expected, rtol=1e-10)
    assert fitted.score(test) == pytest.approx(np.mean(expected))
    with pytest.raises(mtl.DataError, match="statistics other than"):
        fitted.scores(test.standardize())
    for wrong, message in [
        (np.zeros((2, 5)), r"shape \(2, 5\), but the weights were learned on 6 features"),
        ([np.zeros((2, 6))] * 3, "3 input matrices for 4 tasks"),
        (test, "give the inputs"),
    ]:
        with pytest.raises(mtl.DataError, match=message):
            fitted.predict(wrong)


def common_features(rng, n_rows, labelled, n_tasks=20):
    """Tasks that are different mixtures of three nonlinear features of the same inputs; each labelled in a part of the rows."""
    X = rng.uniform(-2, 2, size=(n_rows, 4))
    features = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], np.abs(X[:, 3])])
    mixtures = np.random.default_rng(0).normal(size=(3, n_tasks))
    Y = features @ mixtures + 0.1 * rng.normal(size=(n_rows, n_tasks))
    Y[rng.random(Y.shape) > labelled] = np.nan
    return mtl.Tasks.shared(X, Y)


@pytest.mark.slow
def test_what_tasks_share_is_learned_better_together():
    rng = np.random.default_rng(1)
    train, test = common_features(rng, 400, labelled=0.1), common_features(rng, 500, labelled=1.0)
    options = {"hidden": (40, 10), "epochs": 80, "batch_size": 32, "learning_rate": 1e-2, "random_state": 0}
    together = MultiTaskNetwork(**options).fit(train).score(test)
    apart = SingleTaskNetworks(**options).fit(train).score(test)
    assert together > apart + 0.1
    assert together > 0.8


def test_single_task_networks_share_nothing():
    tasks = shared(6)
    labels = tasks.targets.reshape(4, -1).T.copy()
    labels[:, 2] = RNG.normal(size=30)
    changed = mtl.Tasks.shared(tasks.X, labels)
    options = {"hidden": (6,), "epochs": 5, "random_state": 0}
    own = [SingleTaskNetworks(**options).fit(t) for t in (tasks, changed)]
    for i in (0, 1, 3):
        np.testing.assert_array_equal(own[0].predict(tasks.X)[:, i], own[1].predict(tasks.X)[:, i])
    common = [MultiTaskNetwork(**options).fit(t) for t in (tasks, changed)]
    assert np.abs(common[0].predict(tasks.X)[:, 0] - common[1].predict(tasks.X)[:, 0]).max() > 1e-3
    assert own[0].objective == pytest.approx(sum(network.objective for network in own[0].networks))


@pytest.mark.slow
def test_the_best_epoch_on_validation_tasks_is_kept():
    tasks, validation = shared(1, n=20, missing=0.3), shared(8, n=40, missing=0.3)
    network = small(epochs=60, learning_rate=2e-2, structure=MatrixNormal().bound(BOUNDS)).fit(
        tasks, validation
    )
    errors = np.array([look["validation"] for look in network.history])
    assert network.epoch == 1 + errors.argmin() < 60
    assert network.objective == network.history[network.epoch - 1]["objective"]
    per_task = []
    for i, (X, y) in enumerate(zip(validation.inputs, validation.per_task(validation.targets), strict=True)):
        variance = np.var(tasks.per_task(tasks.targets)[i])
        per_task.append(np.mean((y - network.predict(X)[:, i]) ** 2) / variance)
    assert np.mean(per_task) == pytest.approx(errors.min(), rel=1e-9)
    impatient = small(epochs=60, learning_rate=2e-2, structure=MatrixNormal().bound(BOUNDS), patience=3).fit(
        tasks, validation
    )
    stopped = [look["validation"] for look in impatient.history]
    np.testing.assert_array_equal(stopped, errors[: len(stopped)])
    assert len(stopped) == impatient.epoch + 3 < 60


@pytest.mark.slow
def test_the_same_seed_gives_the_same_network():
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    options = {"structure": MatrixNormal().bound(BOUNDS), "threads": 1 + threads % 2}
    first, again = (small(**options).fit(shared()) for _ in range(2))
    assert_same_layers(first.layers, again.layers, rtol=0)
    assert [look["objective"] for look in first.history] == [look["objective"] for look in again.history]
    other = small(**options, **{"random_state": 1}).fit(shared())
    assert np.abs(first.W - other.W).max() > 1e-3
    for rate in (1e200, 1e308):
        with pytest.raises(
            mtl.SolverError, match=r"no longer finite in epoch 1; write a smaller learning_rate than 1e"
        ):
            small(**options, learning_rate=rate).fit(shared())
    assert torch.equal(torch.random.get_rng_state(), state) and torch.get_num_threads() == threads


@pytest.mark.process
def test_a_trained_network_predicts_without_pytorch(tmp_path):
    X = shared().X
    network = small(structure=MatrixNormal().bound(BOUNDS)).fit(shared())
    (tmp_path / "network.pickle").write_bytes(pickle.dumps((network, np.array(X))))
    code = f"""
import sys, pickle, pathlib
class NoTorch:
    def find_spec(name, *others):
        if name.split(".")[0] == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, NoTorch)
import numpy as np
network, X = pickle.loads(pathlib.Path({str(tmp_path / "network.pickle")!r}).read_bytes())
np.save({str(tmp_path / "predicted.npy")!r}, network.predict(X))
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "predicted.npy"), network.predict(X), rtol=1e-12)


def test_a_fit_that_fails_leaves_the_network_as_it_was():
    network = small().fit(shared())
    before = network.predict(shared().X)
    with pytest.raises(mtl.DataError):
        network.fit(shared().select([0, 1]), validation=shared())
    np.testing.assert_array_equal(network.predict(shared().X), before)
