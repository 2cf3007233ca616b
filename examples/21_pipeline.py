"""21. A practitioner's afternoon
==============================

A DataFrame, rare labels, a Pipeline, a grid, a file.

::

    min over W, b    logistic_loss(W, tasks) + lam * l21_norm(W)   one task a label

Patients of three clinics: eight measurements (a tenth of them missing), a clinic, a season.
Twelve findings, of which most patients lack some (nobody looked), and of which the rarest is seen
in 3 % of them. Findings depend on the same few measurements: that is what l21_norm is told, and
what a model for each finding alone has to learn twelve times from few positives.

WHAT IS SHOWN. (1) Words, numbers, missing inputs: scikit-learn's ColumnTransformer in front, its
column names behind. (2) Missing labels are None in y; nothing is filled in. (3) lam by
GridSearchCV with folds and a score that know gaps and rare labels; the same by
MultiTaskClassifierCV, which walks one warm-started path a fold. (4) Thresholds that suit the
F-score, tuned inside. (5) joblib writes the pipeline; another process reads it and answers alike.
(6) Every fit has a certificate.

The data are made, so that what is right is known. The comparison at the end is with
scikit-learn's LogisticRegression for each finding on the rows that have it, its C chosen by the
same measure on folds: a fair one, and it may win.

Run: ``python examples/21_pipeline.py`` (needs pandas: pip install pandas)
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mtldsl.estimators import MultiTaskClassifier, MultiTaskClassifierCV, MultiTaskKFold, scorer

N, N_TEST, N_FINDINGS = 500, 2_000, 12
NUMBERS = ["age", "weight", "pulse", "glucose", "sodium", "iron", "protein", "height"]

# %%
# Data
# ----

rng = np.random.default_rng(0)
total = N + N_TEST
frame = pd.DataFrame(rng.normal(size=(total, 8)), columns=NUMBERS)
frame["clinic"] = rng.choice(["north", "south", "west"], total)
frame["season"] = rng.choice(["spring", "summer", "autumn", "winter"], total)
patterns = np.zeros((8, 2))
patterns[[0, 2, 3]] = rng.normal(size=(3, 2))  # three measurements matter
truth = patterns @ rng.uniform(0.4, 1.2, size=(2, N_FINDINGS)) * 1.5
scores = (
    frame[NUMBERS].to_numpy() @ truth
    + 0.8 * (frame["clinic"] == "north").to_numpy()[:, None]
    + rng.logistic(size=(total, N_FINDINGS))
)
shares = np.linspace(0.03, 0.2, N_FINDINGS)  # of positives
findings = np.where(
    scores > [np.quantile(z, 1 - share) for z, share in zip(scores.T, shares, strict=True)],
    "yes",
    "no",
)
names = [f"finding {i}" for i in range(N_FINDINGS)]
labels = pd.DataFrame(findings, columns=names).astype(object)
labels[rng.random(labels.shape) < 0.25] = None  # nobody looked
frame[NUMBERS] = frame[NUMBERS].mask(rng.random((total, 8)) < 0.1)
X, X_test, Y, Y_test = frame[:N], frame[N:], labels[:N], labels[N:]
print(
    f"{N} patients to learn from, {N_FINDINGS} findings; positives of the rarest: "
    f"{(Y['finding 0'] == 'yes').sum()}, labels missing: "
    f"{Y.isna().mean().mean():.0%}"
)

# %%
# Pipeline
# --------

columns = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        ("words", OneHotEncoder(drop="first", sparse_output=False), ["clinic", "season"]),
    ],
    verbose_feature_names_out=False,
)
pipeline = make_pipeline(columns, MultiTaskClassifier()).set_output(transform="pandas")
folds, ranking = MultiTaskKFold(3), scorer("average_precision")
grid = {"multitaskclassifier__lam": np.geomspace(1.0, 30.0, 6)}

began = time.process_time()
search = GridSearchCV(pipeline, grid, cv=folds, scoring=ranking).fit(X, Y)
grid_seconds = time.process_time() - began
best = search.best_estimator_[-1]
print(
    f"GridSearchCV: lam = {best.lam:.2f}, average precision on folds "
    f"{search.best_score_:.3f}, {grid_seconds:.1f} s"
)
print(
    f"certificate of the last fit: {best.solution_.status}, relative gap "
    f"{float(best.solution_.gap):.1e}"
)
assert best.solution_.is_optimal and search.best_score_ > 0.2
sizes = np.linalg.norm(best.coef_, axis=0)
strongest = best.feature_names_in_[np.argsort(-sizes)].tolist()
print("columns by the size of their weights:", ", ".join(strongest[:5]), "...")
assert {"age", "pulse", "glucose"} <= set(strongest[:5])  # those that the data were made of

# the same choice along one warm-started path a fold; imputation and scaling here see the inputs
# (not the labels) of all folds
began = time.process_time()
path = make_pipeline(
    columns, MultiTaskClassifierCV(n_values=10, eps=0.05, cv=folds, scoring=ranking)
).fit(X, Y)
print(
    f"MultiTaskClassifierCV: lam = {path[-1].best_value_:.2f}, "
    f"{path[-1].best_score_:.3f}, {len(path[-1].values_)} values in "
    f"{time.process_time() - began:.1f} s"
)

# %%
# Thresholds
# ----------

lam = best.lam
plain = pipeline.set_params(multitaskclassifier__lam=lam).fit(X, Y)
tuned = (
    make_pipeline(columns, MultiTaskClassifier(lam=lam, tune_thresholds=True))
    .set_output(transform="pandas")
    .fit(X, Y)
)
f1 = scorer("f1")
print(
    f"macro F1 on {N_TEST} new patients: threshold 0 (probability 1/2) "
    f"{f1(plain, X_test, Y_test):.3f}, tuned on inner folds "
    f"{f1(tuned, X_test, Y_test):.3f}"
)
assert f1(tuned, X_test, Y_test) > f1(
    plain, X_test, Y_test
)  # rare labels are seldom more probable than not

# %%
# Each finding alone, by scikit-learn
# -----------------------------------

inputs, inputs_test = columns.fit_transform(X), columns.transform(X_test)
probabilities = np.empty((N_TEST, N_FINDINGS))
for i, name in enumerate(names):
    there = Y[name].notna().to_numpy()
    one = GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": np.geomspace(1e-3, 10, 5)},
        cv=folds,
        scoring=ranking,
    )
    one.fit(inputs[there], (Y[name][there] == "yes").astype(int))
    probabilities[:, i] = one.predict_proba(inputs_test)[:, 1]


def average_precision(P):
    """Its mean over findings, on the labels that are there."""
    there = Y_test.notna().to_numpy()
    return np.mean(
        [
            average_precision_score(Y_test[name][there[:, i]] == "yes", P[there[:, i], i])
            for i, name in enumerate(names)
        ]
    )


together = average_precision(search.predict_proba(X_test))
alone = average_precision(probabilities)
print(f"average precision on new patients: together {together:.3f}, each alone {alone:.3f}")
assert together > alone

# %%
# A file
# ------

with tempfile.TemporaryDirectory() as folder:
    file, rows = Path(folder) / "model.joblib", Path(folder) / "rows.pkl"
    joblib.dump(tuned, file)
    X_test.to_pickle(rows)
    program = (
        "import sys, joblib, pandas as pd; model = joblib.load(sys.argv[1]); "
        "print(*model.predict(pd.read_pickle(sys.argv[2])[:3])[:, -1])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, file, rows], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"another process reads {file.stat().st_size / 1e3:.0f} kB and answers {said}")
    assert said == tuned.predict(X_test[:3])[:, -1].tolist()
