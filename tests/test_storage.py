"""Solutions on disk: what was learned beside the weights comes back as it was, and old files are still read."""

import json

import numpy as np
import pytest

import mtldsl as mtl
from tests.models import separate, shared


def fetr(tasks, **options):
    """A model that learns two precisions."""
    W, Sigma1, Sigma2 = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    return mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, Sigma1, Sigma2, **options),
        subject_to=[Sigma1 >> 0.01, Sigma1 << 100, Sigma2 >> 0.05, Sigma2 << 50],
    )


def assert_same(loaded, solution):
    assert loaded.learned.keys() == solution.learned.keys()
    for name, matrix in solution.learned.items():
        again = loaded.learned[name]
        assert (again.name, again.axis, again.kind, again.names) == (
            matrix.name, matrix.axis, matrix.kind, matrix.names,
        )  # fmt: skip
        np.testing.assert_array_equal(again.spectral.basis, matrix.spectral.basis)
        np.testing.assert_array_equal(again.spectral.values, matrix.spectral.values)
        assert again.spectral.rest == matrix.spectral.rest and isinstance(again.names, tuple)
    assert loaded.stationarity == solution.stationarity
    assert (loaded.status, loaded.note, loaded.is_certified) == (
        solution.status, solution.note, solution.is_certified,
    )  # fmt: skip


def test_learned_precisions_and_the_proof_come_back(tmp_path):
    solution = fetr(shared(3), eta=2.0).solve()
    assert solution.status == "stationary" and set(solution.learned) == {"Sigma1", "Sigma2"}
    loaded = mtl.Solution.load(solution.save(tmp_path / "fetr"))
    assert_same(loaded, solution)
    np.testing.assert_array_equal(loaded.Sigma2.correlation, solution.Sigma2.correlation)
    assert str(loaded) == str(solution).replace("stationary:", "stationary (as saved, not verified):")
    assert solution.verified and not loaded.verified
    assert_same(mtl.Solution.load(loaded.save(tmp_path / "again")), solution)


@pytest.mark.parametrize(
    ("kind", "word"),
    [(mtl.FeatureCovariance, mtl.feature_covariance_norm), (mtl.TaskCovariance, mtl.task_covariance_norm)],
)
def test_a_singular_covariance_comes_back(tmp_path, kind, word):
    tasks = shared(3)
    W, C = mtl.Weights(tasks), kind(tasks, "C")
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 9 * word(W, C), [C.trace() <= 1]).solve()
    loaded = mtl.Solution.load(solution.save(tmp_path / "covariance"))
    assert_same(loaded, solution)
    assert loaded.stationarity is None and loaded.C.covariance.trace() == pytest.approx(1.0)


def test_calibration_starts_and_conditions_come_back(tmp_path):
    tasks = separate(2)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + 2.0 * mtl.log_rank(W, eps=0))
    solution = problem.solve(starts=3, random_state=0)
    loaded = mtl.Solution.load(solution.save(tmp_path / "calibrated"))
    assert_same(loaded, solution)
    assert loaded.stationarity.conditions == solution.stationarity.conditions != {}
    np.testing.assert_array_equal(loaded.task_weights, solution.task_weights)
    np.testing.assert_array_equal(loaded.noise_levels, solution.noise_levels)
    assert loaded.starts == solution.starts and len(loaded.starts) == 3
    assert loaded.spread == solution.spread
    assert loaded.history == solution.history
    assert (
        loaded.multipliers == {} and loaded.majorizations == () and solution.multipliers
    )  # of the run alone
    assert_same(mtl.Solution.load(loaded.save(tmp_path / "again")), solution)


def test_weights_of_tasks_that_are_fitted_exactly_come_back(tmp_path):
    tasks = mtl.Tasks.separate([np.eye(3), np.eye(3)], [np.zeros(3), np.ones(3)])
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.square_root_loss(W, tasks) + 10.0 * mtl.trace_norm(W)).solve()
    assert solution.task_weights[0] == np.inf
    loaded = mtl.Solution.load(solution.save(tmp_path / "exact"))
    np.testing.assert_array_equal(loaded.task_weights, solution.task_weights)
    assert np.isnan(loaded.spread) and loaded.starts == []


def test_a_loss_without_calibration_has_none_on_disk(tmp_path):
    tasks = shared(3, labels="sign")
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.ridge(W)).solve(tol=1e-3)
    loaded = mtl.Solution.load(solution.save(tmp_path / "hinge"))
    assert loaded.task_weights is loaded.noise_levels is None


def test_the_history_of_a_reweighted_model_comes_back(tmp_path):
    tasks = separate(2)
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.square_root_loss(W, tasks, eps=0.1) + mtl.log_rank(W)).solve()
    loaded = mtl.Solution.load(solution.save(tmp_path / "history"))
    values = [value for look in loaded.history for value in look["objectives"]]
    assert values == [value for look in solution.history for value in look["objectives"]] and values
    assert loaded.stationarity.gradient == solution.stationarity.residual
    np.testing.assert_array_equal(
        loaded.predict(list(tasks.inputs))[1], solution.predict(list(tasks.inputs))[1]
    )


def test_a_learned_matrix_is_never_made_dense(tmp_path):
    """3,000 features of 2 tasks: a dense precision alone would have 72 MB."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(5, 3000)), rng.normal(size=(5, 2)))
    solution = fetr(tasks).solve(tol=1e-3, max_iter=20)
    path = solution.save(tmp_path / "wide")
    assert path.stat().st_size < 1_000_000
    with np.load(path) as stored:
        assert max(stored[name].size for name in stored.files) <= 3000 * 2
    assert_same(mtl.Solution.load(path), solution)


def rewritten(path, change):
    """The file with its JSON changed."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    plain = json.loads(str(arrays["json"]))
    change(plain, arrays)
    arrays["json"] = np.array(json.dumps(plain))
    np.savez(path, **arrays)


def test_a_file_from_before_matrices_were_learned_is_read(tmp_path):
    tasks = shared(3)
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    path = solution.save(tmp_path / "old")

    def as_before(plain, arrays):
        del plain["learned"], plain["stationarity"], plain["starts"]
        del arrays["task_weights"], arrays["noise_levels"]

    rewritten(path, as_before)
    loaded = mtl.Solution.load(path)
    assert loaded.learned == {} and loaded.stationarity is None and loaded.status == "optimal"
    np.testing.assert_array_equal(loaded.predict(tasks.X), solution.predict(tasks.X))


def test_a_broken_file_is_a_data_error(tmp_path):
    path = fetr(shared(3)).solve().save(tmp_path / "broken")
    whole = path.read_bytes()

    def lose_the_basis(plain, arrays):
        del arrays["learned:Sigma1:basis"]

    def another_proof(plain, arrays):
        plain["stationarity"]["moments"] = 3

    def of_tomorrow(plain, arrays):
        plain["flavour"] = "sweet"

    for change, message in (
        (lose_the_basis, "parts of the solution are missing .*learned:Sigma1:basis"),
        (another_proof, "parts of the solution are missing .*moments"),
        (of_tomorrow, "holds 'flavour', which this version of mtldsl does not know"),
    ):
        path.write_bytes(whole)
        rewritten(path, change)
        with pytest.raises(mtl.DataError, match=message):
            mtl.Solution.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(mtl.DataError, match="not a saved solution"):
        mtl.Solution.load(path)
