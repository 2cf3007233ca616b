"""What the tests of estimators share: one of every estimator, small data, and rows with tasks."""

import numpy as np

from mtldsl import estimators

#: every estimator, with models and options of several kinds. scikit-learn compares fits to 1e-7: so near are two solutions whose gaps
#: are below 1e-10
ESTIMATORS = (
    estimators.MultiTaskRegressor(), estimators.MultiTaskRegressor("Dirty model", rho1=0.5, rho2=0.5, tol=1e-10),
    estimators.MultiTaskRegressor("squared_loss(W, tasks) + lam * trace_norm(W)", subject_to=["W >= 0"], tol=1e-10),
    estimators.MultiTaskClassifier(lam=0.1, one_class="skip", class_weight="balanced", tol=1e-10),
    estimators.GroupedMultiTaskRegressor(), estimators.GroupedMultiTaskClassifier(), estimators.PLST(),
    estimators.LabelGraphClassifier(lam=1.0, tol=1e-3), estimators.KernelMultiTaskClassifier(C=0.1, tol=1e-3),
    estimators.MultiTaskRegressorCV(n_values=2, cv=2, tol=1e-10),
    estimators.MultiTaskClassifierCV(n_values=2, cv=2, tol=1e-10),
    estimators.GroupedMultiTaskRegressorCV(n_values=2, cv=2, tol=1e-10),
    estimators.GroupedMultiTaskClassifierCV(n_values=2, cv=2, tol=1e-10),
)  # fmt: skip


def regression(n=40, d=6, m=3, seed=0):
    """X (n, d), Y (n, m): tasks of the same two features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = np.zeros((d, m))
    W[:2] = rng.normal(size=(2, m)) + 2.0
    return X, X @ W + 0.1 * rng.normal(size=(n, m)) + np.arange(m)


def labels(n=80, d=6, m=3, seed=0):
    """X (n, d), Y (n, m) of 0 and 1, both classes in every column."""
    X, Y = regression(n, d, m, seed)
    rng = np.random.default_rng(seed + 1)
    return X, (Y + rng.normal(size=Y.shape) > np.median(Y, axis=0)).astype(int)


def rows_of_tasks(n=30, d=4, m=3, seed=0):
    """X (n m, d), y, the id of every row's task, and its label of two classes; rows of different tasks stand mixed."""
    rng = np.random.default_rng(seed)
    X, ids = rng.normal(size=(n * m, d)), rng.permutation(np.repeat([f"task {i}" for i in range(m)], n))
    W = rng.normal(size=(d, 1)) + 0.3 * rng.normal(size=(d, m))
    which = np.array([int(each[-1]) for each in ids])
    y = np.einsum("nd,dn->n", X, W[:, which]) + which + 0.1 * rng.normal(size=n * m)
    return X, y, ids, np.where(y + rng.normal(size=n * m) > np.median(y), "yes", "no")
