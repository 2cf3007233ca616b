"""Many fits through joblib's Dask backend: other processes do the work, the bits are those of one, the data are sent once."""

import os
import pickle
import signal
import threading
import time

import cloudpickle
import joblib
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.metrics import ErrorRate, FScore
from mtldsl.estimators import MultiTaskClassifier, MultiTaskClassifierCV
from mtldsl.problems.parallel_fits import SharedArguments

pytest.importorskip("distributed", reason="pip install -e .[dask]")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 6))
Y = np.where(X[:, :2] + RNG.normal(size=(120, 2)) > 0, 1.0, -1.0)


def stated():
    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W)), lam


class PidRate(ErrorRate):
    """An error rate that writes down who measured it."""

    def __init__(self, folder):
        super().__init__()
        self.folder = str(folder)

    def score(self, z, positive, threshold=0.0):
        open(os.path.join(self.folder, str(os.getpid())), "a").close()
        return super().score(z, positive, threshold)


def workers_of(client) -> set[int]:
    return set(client.run(os.getpid).values())


@pytest.mark.cluster
def test_cross_validate_on_workers_has_the_same_bits(client_of_processes, tmp_path):
    problem, lam = stated()
    alone = problem.cross_validate(lam, [8.0, 2.0, 0.5], folds=4, metric=PidRate(tmp_path))
    assert os.listdir(tmp_path) == [str(os.getpid())]
    os.remove(tmp_path / str(os.getpid()))
    for options in ({"n_jobs": -1}, {}):
        with joblib.parallel_config(backend="dask"):
            there = problem.cross_validate(lam, [8.0, 2.0, 0.5], folds=4, metric=PidRate(tmp_path), **options)
        at_work = {int(one) for one in os.listdir(tmp_path)}
        assert at_work and at_work <= workers_of(client_of_processes) and os.getpid() not in at_work
        np.testing.assert_array_equal(there.scores, alone.scores)
        np.testing.assert_array_equal(there.solution.W, alone.solution.W)


@pytest.mark.slow
def test_estimators_and_grids(client):
    from sklearn.model_selection import GridSearchCV

    model = MultiTaskClassifierCV(parameter="lam", values=[8.0, 1.0], cv=3)
    grid = GridSearchCV(MultiTaskClassifier(), {"lam": [8.0, 1.0]}, cv=3)
    tuned = MultiTaskClassifier(tune_thresholds=FScore())
    alone = [model.fit(X, Y).best_score_, grid.fit(X, Y).best_score_, tuned.fit(X, Y).thresholds_.tolist()]
    before = sum(len(one) for one in client.get_task_stream())
    with joblib.parallel_config(backend="dask"):
        there = [model.fit(X, Y).best_score_, grid.fit(X, Y).best_score_, tuned.fit(X, Y).thresholds_.tolist()]  # fmt: skip
    assert there == alone and sum(len(one) for one in client.get_task_stream()) > before


def test_an_error_of_a_fold_comes_through(client):
    problem, lam = stated()
    with joblib.parallel_config(backend="dask"), pytest.raises(mtl.ModelError) as caught:
        problem.cross_validate(lam, [1.0, 2.0], folds=3, solver="closed_form")
    with pytest.raises(mtl.ModelError) as alone:
        problem.cross_validate(lam, [1.0, 2.0], folds=3, solver="closed_form")
    assert str(caught.value) == str(alone.value)


class Sleeps(ErrorRate):
    def score(self, z, positive, threshold=0.0):
        time.sleep(0.3)
        return super().score(z, positive, threshold)


@pytest.mark.cluster
def test_ctrl_c_comes_through_and_leaves_no_work(client_of_processes):
    problem, lam = stated()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with joblib.parallel_config(backend="dask"), pytest.raises(KeyboardInterrupt):
        problem.cross_validate(lam, [1.0, 2.0], folds=20, metric=Sleeps())
    ends = time.monotonic() + 30.0
    while time.monotonic() < ends and any(client_of_processes.processing().values()):
        time.sleep(0.2)
    assert not any(client_of_processes.processing().values())
    with joblib.parallel_config(backend="dask"):  # and the workers are there for the next
        assert problem.cross_validate(lam, [1.0], folds=3).best_value == 1.0


def test_the_data_are_sent_once_with_the_model():
    wide = mtl.Tasks.shared(RNG.normal(size=(4000, 50)), RNG.normal(size=(4000, 3)))
    W, lam = mtl.Weights(wide), mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(W, wide) + lam * mtl.l21_norm(W)).with_tasks(wide)
    sent = cloudpickle.dumps(SharedArguments(len, (problem, lam), wide))
    assert len(sent) < wide.__sizeof__() + 40_000 and wide.__sizeof__() >= 8 * 4000 * 53
    there = pickle.loads(sent)
    model, parameter = there.common
    assert model.first_loss.tasks is there.tasks and model.parameters[0] is parameter
    _ = wide.inputs, wide.column_lengths, wide.by_features if wide.is_sparse else None
    assert len(pickle.dumps(wide)) < 1.1 * wide.__sizeof__() + 10_000
