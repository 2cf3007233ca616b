"""Solutions on disk: what was learned beside the weights comes back as it was, and old files are still read."""

import copy
import json
import pickle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.utils.caching import Lazy
from tests.learned_models import fetr
from tests.loops import for_each
from tests.models import separate, shared, with_weights


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


@for_each(
    ("kind", "word"),
    [(mtl.FeatureCovariance, mtl.feature_covariance_norm), (mtl.TaskCovariance, mtl.task_covariance_norm)],
)
def test_a_singular_covariance_comes_back(tmp_path, kind, word):
    tasks = shared(3)
    W, C = mtl.Weights(tasks), kind(tasks, "C")
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 9 * word(W, C), [C.trace() <= 1]).solve()
    path = solution.save(tmp_path / "covariance")
    loaded = mtl.Solution.load(path)
    assert_same(loaded, solution)
    assert loaded.stationarity is None and loaded.C.covariance.trace() == pytest.approx(1.0)
    rewritten(path, lambda plain, arrays: plain["learned"]["C"].update(kind="tensor"))
    with pytest.raises(mtl.DataError, match="C is of the kind 'tensor'"):
        mtl.Solution.load(path)


@pytest.mark.slow
def test_calibration_starts_and_conditions_come_back(tmp_path):
    tasks, W = with_weights(separate(2))
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
    tasks, W = with_weights(mtl.Tasks.separate([np.eye(3), np.eye(3)], [np.zeros(3), np.ones(3)]))
    solution = mtl.minimize(mtl.square_root_loss(W, tasks) + 10.0 * mtl.trace_norm(W)).solve()
    assert solution.task_weights[0] == np.inf
    loaded = mtl.Solution.load(solution.save(tmp_path / "exact"))
    np.testing.assert_array_equal(loaded.task_weights, solution.task_weights)
    assert np.isnan(loaded.spread) and loaded.starts == []


@pytest.mark.slow
def test_a_learned_matrix_is_never_made_dense(tmp_path):
    """600 features of 2 tasks: a dense precision alone would have 2.9 MB."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(5, 600)), rng.normal(size=(5, 2)))
    solution = fetr(tasks).solve(tol=1e-3, max_iter=20)
    path = solution.save(tmp_path / "wide")
    assert path.stat().st_size < 200_000
    with np.load(path) as stored:
        assert max(stored[name].size for name in stored.files) <= 600 * 2
    assert_same(mtl.Solution.load(path), solution)


@for_each("copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_have_what_waits_until_it_is_read(ridge_file, copied):
    _, solution = ridge_file
    other = copied(solution)
    assert not any(isinstance(value, Lazy) for value in other.__dict__.values())
    np.testing.assert_array_equal(other.noise_levels, solution.noise_levels)
    for name, one in solution.multipliers.items():
        np.testing.assert_array_equal(other.multipliers[name], one)


def rewritten(path, change):
    """The file with its JSON changed."""
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    plain = json.loads(str(arrays["json"]))
    change(plain, arrays)
    arrays["json"] = np.array(json.dumps(plain))
    np.savez(path, **arrays)


def test_a_file_from_before_matrices_were_learned_is_read(tmp_path):
    tasks, W = with_weights(shared(3))
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
    for change, message in (
        (lambda plain, arrays: arrays.pop("learned:Sigma1:basis"), "parts of the solution are missing .*learned:Sigma1:basis"),
        (lambda plain, arrays: plain["stationarity"].update(moments=3), "parts of the solution are missing .*moments"),
        (lambda plain, arrays: plain.update(flavour="sweet"), "holds 'flavour', which this version of mtldsl does not know"),
    ):  # fmt: skip
        path.write_bytes(whole)
        rewritten(path, change)
        with pytest.raises(mtl.DataError, match=message):
            mtl.Solution.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    for other in (path, tmp_path / "other.npz"):
        with pytest.raises(mtl.DataError, match="not a saved solution"):
            mtl.Solution.load(other)


@pytest.fixture(scope="module")
def ridge_file(tmp_path_factory):
    tasks, W = with_weights(shared(3), intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    return solution.save(tmp_path_factory.mktemp("saved") / "ridge"), solution


def test_a_loaded_status_is_the_files_until_proven_anew(ridge_file):
    path, solution = ridge_file
    loaded = mtl.Solution.load(path)
    assert solution.verified and not loaded.verified
    assert str(loaded).startswith("optimal (as saved, not verified): gap") and "as saved" not in str(solution)
    assert (loaded.status, loaded.is_certified, loaded.is_optimal) == ("optimal", True, True)
    tasks, W = with_weights(shared(3), intercept=True)
    again = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve(warm_start=loaded)
    assert again.verified and again.status == "optimal"


def _set(**fields):
    return lambda plain, arrays: plain.update(fields)


def _array(name, make):
    def change(plain, arrays):
        arrays[name] = make(arrays[name])

    return change


FORGED = {
    "a status of one's own": (_set(status="proven"), "status is 'proven'"),
    "a whole number that no float is": (_set(dual_bound=10**30), "dual_bound is 1000"),
    "a parameter that is text": (_set(parameters={"lam": "2"}), "parameters is {'lam': '2'}"),
    "a parameter that is nothing": (_set(parameters={"lam": None}), "parameters is"),
    "a status that is not text": (_set(status=["optimal"]), "status is"),
    "optimal with a gap": (_set(relative_gap=0.5), "its status is 'optimal', with a relative gap of 0.5"),
    "optimal and infeasible": (_set(violation=1.0), "and a violation of 1"),
    "optimal without a bound": (_set(dual_bound=float("-inf")), "its status is 'optimal'"),
    "stationary without conditions": (_set(status="stationary"), "'stationary', which"),
    "a tolerance that allows all": (_set(tol=float("inf"), relative_gap=9.0), "tol is inf"),
    "verified": (_set(verified=True), "it holds 'verified', which"),
    "a state of the solver": (_set(state={}), "it holds 'state', which"),
    "an objective that is not a number": (_set(objective=float("nan")), "objective is nan"),
    "an objective in words": (_set(objective="0"), "objective is '0'"),
    "names that are numbers": (_set(task_names=[1, 2, 3]), "task_names is"),
    "a name too few": (_set(task_names=["a"]), "task_names is"),
    "a loss that is none": (_set(loss={"word": "os", "parameters": {}, "labels": "real"}), "its loss is 'os'"),
    "parameters that it does not take": (_set(loss={"word": "squared_loss", "parameters": {"a": 1}, "labels": "real"}), "unexpected keyword"),
    "labellings without their graph": (_set(loss={"word": "clique_hinge", "parameters": {}, "labels": "indicators"}), "'clique_hinge', and it has no graph of labels"),
    "a scaling of text": (_set(scaling={"mean": ["a"], "scale": [1]}), "could not convert"),
    "a history of text": (_set(history="long"), "history is 'long'"),
    "JSON of another kind": (lambda plain, arrays: plain.clear(), "unknown format"),
    "coefficients that are NaN": (_array("coef", lambda a: a * np.nan), "'coef' holds float64, not numbers, or NaN"),
    "coefficients in three dimensions": (_array("coef", lambda a: a[None]), "coef is float64"),
    "coefficients that are text": (_array("coef", lambda a: a.astype(str)), "not numbers"),
    "complex coefficients": (_array("coef", lambda a: a + 1j), "not numbers"),
    "infinite coefficients": (_array("coef", lambda a: a / 0.0), "coef is"),
    "a block that is infinite": (_array("block:W", lambda a: a + np.inf), "block 'W' is"),
    "intercepts of other tasks": (_array("intercept", lambda a: a[:-1]), "intercept is"),
}  # fmt: skip


@for_each("name", FORGED)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_a_forged_file_is_a_data_error(name, ridge_file, tmp_path):
    change, message = FORGED[name]
    path = tmp_path / "forged.npz"
    path.write_bytes(ridge_file[0].read_bytes())
    rewritten(path, change)
    with pytest.raises(mtl.DataError, match=message):
        mtl.Solution.load(path)


def test_objects_in_a_file_are_not_unpickled(ridge_file, tmp_path):
    with np.load(ridge_file[0]) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["coef"] = np.array([[print]], dtype=object)
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(mtl.DataError, match="'coef' holds Python objects"):
        mtl.Solution.load(tmp_path / "a.npz")
