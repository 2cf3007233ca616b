"""Fitted estimators go into files and to other processes and threads, and answer there as they do here."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
from mtldsl.estimators import (
    PLST,
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    KernelMultiTaskClassifier,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskRegressor,
)
from tests.estimators.cases import labels, regression, rows_of_tasks
from tests.loops import for_each

X, Y = labels()
XR, YR = regression()
TASKS_X, TASKS_y, IDS, WORDS = rows_of_tasks()

#: estimator, fit's arguments, predict's
CASES = {
    "regressor": (MultiTaskRegressor(lam=0.5), (XR, YR), (XR,)),
    "two matrices": (MultiTaskRegressor("Robust-MTL", rho1=1.0, rho2=1.0), (XR, YR), (XR,)),
    "classifier": (MultiTaskClassifier(lam=0.5), (X, np.where(Y > 0, "yes", "no")), (X,)),
    "vector": (MultiTaskClassifier(lam=0.5), (X, Y.sum(axis=1)), (X,)),
    "names": (MultiTaskClassifier(lam=0.5), (pd.DataFrame(X, columns=list("abcdef")), Y), (pd.DataFrame(X, columns=list("abcdef")),)),
    "rows of tasks": (GroupedMultiTaskRegressor(lam=0.5), (TASKS_X, TASKS_y, IDS), (TASKS_X, IDS)),
    "labels of tasks": (GroupedMultiTaskClassifier(lam=0.5), (TASKS_X, WORDS, IDS), (TASKS_X, IDS)),
    "graph": (LabelGraphClassifier(lam=0.1), (X, Y), (X,)),
    "kernels": (KernelMultiTaskClassifier(), (X, Y), (X,)),
    "PLST": (PLST(2), (X, Y), (X,)),
}  # fmt: skip


def fitted(name):
    estimator, given, asked = CASES[name]
    return estimator.fit(*given), asked


def by_pickle(estimator, folder):
    return pickle.loads(pickle.dumps(estimator))


def by_joblib(estimator, folder):
    joblib.dump(estimator, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def by_skops(estimator, folder):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    written = skops.dumps(estimator)
    strange = skops.get_untrusted_types(data=written)
    assert all(each.startswith(("mtldsl.", "numpy.", "scipy.")) for each in strange), strange
    return skops.loads(written, trusted=strange)


WAYS = {"two matrices": by_joblib, "classifier": by_pickle, "graph": by_pickle, "kernels": by_joblib}


def test_what_is_read_back_answers_alike(tmp_path, every_case):
    for name, way in WAYS.items() if every_case else [("two matrices", by_joblib)]:
        _hold_alike(name, way, tmp_path)


@pytest.mark.slow
@for_each("name", CASES)
def test_what_skops_reads_back_answers_alike(name, tmp_path):
    _hold_alike(name, by_skops, tmp_path)


def _hold_alike(name, way, tmp_path):
    estimator, asked = fitted(name)
    again = way(estimator, tmp_path)
    np.testing.assert_array_equal(again.predict(*asked), estimator.predict(*asked))
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            np.testing.assert_array_equal(getattr(again, method)(*asked), getattr(estimator, method)(*asked))
    assert again.get_params() == estimator.get_params()
    if name != "PLST":
        assert again.solution_.objective == estimator.solution_.objective
        estimator.fit(*CASES[name][1])  # here the estimator is as it was
        assert estimator.certificate_.objective == estimator.solution_.objective
        with pytest.raises(mtl.DataError, match=r"proof|solve"):
            _ = again.certificate_
        again.set_params(**estimator.get_params()).fit(*CASES[name][1])
        np.testing.assert_array_equal(again.predict(*asked), estimator.predict(*asked))


def test_a_file_is_as_small_as_the_weights_are():
    big, many = labels(n=1500, d=50, m=4)
    written = pickle.dumps(MultiTaskClassifier(lam=5.0, warm_start=True).fit(big, many))
    assert len(written) < 40_000 < big.nbytes / 10
    assert len(written) < len(pickle.dumps(MultiTaskClassifier(lam=5.0).fit(big[:300], many[:300]))) + 4_000


@pytest.mark.process
def test_another_process_reads_a_file(tmp_path):
    estimator, asked = fitted("classifier")
    joblib.dump(estimator, tmp_path / "model.joblib")
    np.save(tmp_path / "X.npy", asked[0])
    program = """
import sys, joblib, numpy as np
model, X = joblib.load(sys.argv[1] + "/model.joblib"), np.load(sys.argv[1] + "/X.npy")
np.save(sys.argv[1] + "/answer.npy", model.predict(X))
slow = [name for name in ("cvxpy", "numba", "matplotlib") if name in sys.modules]
assert not slow, f"reading a model imports {slow}"
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "answer.npy"), estimator.predict(*asked))


def test_one_model_answers_many_threads():
    estimator, _ = fitted("classifier")
    rows = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(estimator.predict)(X[i : i + 1]) for i in range(len(X))
    )
    np.testing.assert_array_equal(np.vstack(rows), estimator.predict(X))
