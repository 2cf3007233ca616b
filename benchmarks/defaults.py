"""What the estimators choose by default, beside one model per task, on ten real tables.

    python -m benchmarks.defaults [--repeats 3] [--markdown]

Every table is split at random, 70 % to learn from (SARCOS: 30 % of its rows, drawn at random), and standardised by the rows that are learned from.
One model per task is scikit-learn's: RidgeCV and LogisticRegressionCV with twenty strengths, chosen per task on five folds. The estimators
choose one strength for all tasks on five folds. Scores are on the other rows: mean R^2 of numbers, mean area under the ROC curve of labels,
accuracy of classes.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mtldsl import datasets
from mtldsl.estimators import GroupedMultiTaskRegressorCV, MultiTaskClassifierCV, MultiTaskRegressorCV

PENALTIES = ("l21_norm", "trace_norm", "mean_regularizer + ridge", "ridge")
STRENGTHS = np.geomspace(1e-3, 1e4, 20)


def tables() -> dict:
    """name -> (kind, X, y, groups)."""
    found = {}
    school = datasets.load_school()
    ids = np.repeat(np.arange(school.n_tasks), school.counts)
    found["School"] = "groups", np.vstack(school.inputs), np.concatenate(school.per_task(school.targets)), ids
    for name in ("enb", "atp1d", "andro"):
        found[name] = "numbers", *_table(datasets.load_multi_target(name)), None
    found["SARCOS"] = "numbers", *_table(datasets.load_sarcos()), None
    for name in ("emotions", "flags", "scene"):
        found[name.capitalize()] = "labels", *_table(getattr(datasets, f"load_{name}")()), None
    for name in ("digits", "segmentation"):
        X, Y = _table(getattr(datasets, f"load_{name}")())
        found[name.capitalize()] = "classes", X, Y.argmax(axis=1), None
    return found


def _table(tasks) -> tuple[np.ndarray, np.ndarray]:
    X = tasks.X.toarray() if tasks.is_sparse else np.asarray(tasks.X)
    return X, tasks.targets.reshape(tasks.n_tasks, -1).T


def alone(kind, X, y, ids, X_new, y_new, ids_new) -> float:
    """The score of one model per task."""
    if kind == "groups":
        predicted = np.empty(len(y_new))
        for one in np.unique(ids_new):
            model = RidgeCV(STRENGTHS).fit(X[ids == one], y[ids == one])
            predicted[ids_new == one] = model.predict(X_new[ids_new == one])
        return r2_score(y_new, predicted)
    if kind == "numbers":
        found = [RidgeCV(STRENGTHS).fit(X, column).predict(X_new) for column in y.T]
        return float(np.mean([r2_score(new, each) for new, each in zip(y_new.T, found, strict=True)]))
    columns = y.T if kind == "labels" else [np.where(y == one, 1, -1) for one in np.unique(y)]
    options = {"Cs": 1 / STRENGTHS, "cv": 5, "max_iter": 2000}
    z = [LogisticRegressionCV(**options).fit(X, column).decision_function(X_new) for column in columns]
    if kind == "classes":
        return float(np.mean(np.unique(y)[np.argmax(z, axis=0)] == y_new))
    return float(np.mean([roc_auc_score(new, each) for new, each in zip(y_new.T, z, strict=True)]))


def together(penalty, kind, X, y, ids, X_new, y_new, ids_new) -> float:
    """The score of an estimator with that penalty, all else as it is by default."""
    if kind == "groups":
        fitted = GroupedMultiTaskRegressorCV(penalty=penalty).fit(X, y, groups=ids)
        return float(fitted.score(X_new, y_new, groups=ids_new))
    if kind == "numbers":
        return float(MultiTaskRegressorCV(penalty=penalty).fit(X, y).score(X_new, y_new))
    fitted = MultiTaskClassifierCV(penalty=penalty).fit(X, y)
    if kind == "classes":
        return float(fitted.score(X_new, y_new))
    z = fitted.decision_function(X_new)
    return float(np.mean([roc_auc_score(new, each) for new, each in zip(y_new.T, z.T, strict=True)]))


def measured(name, kind, X, y, ids, repeats: int) -> dict[str, np.ndarray]:
    found: dict[str, list] = {"alone": [], **{penalty: [] for penalty in PENALTIES}}
    for seed in range(repeats):
        rows = np.arange(len(X))
        if kind == "groups":  # every task learns from 70 % of its rows
            learn, test = train_test_split(rows, test_size=0.3, random_state=seed, stratify=ids)
        else:
            learn, test = train_test_split(
                rows, train_size=0.3 if name == "SARCOS" else 0.7, random_state=seed
            )
        scaler = StandardScaler().fit(X[learn])
        data = []
        for part in (learn, test):
            data += [scaler.transform(X[part]), y[part], None if ids is None else ids[part]]
        found["alone"].append(alone(kind, *data))
        for penalty in PENALTIES:
            found[penalty].append(together(penalty, kind, *data))
    return {who: np.array(scores) for who, scores in found.items()}


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tables", nargs="*", help="names of tables")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    print(
        "| table | alone | " + " | ".join(PENALTIES) + " |\n|" + " --- |" * (2 + len(PENALTIES)), flush=True
    )
    for name, (kind, X, y, ids) in tables().items():
        if not arguments.tables or name in arguments.tables:
            found = measured(name, kind, X, y, ids, arguments.repeats)
            cells = [
                f"{scores.mean():.4f} ± {scores.std(ddof=min(1, len(scores) - 1)):.4f}"
                for scores in found.values()
            ]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
