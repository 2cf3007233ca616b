"""22. School by groups
====================

One long table, a column that says the school.

::

    min over W, b    squared_loss(W, tasks) + lam * R(W)      one task a school

The exam scores of the pupils of 139 London schools (15,362 pupils; a third of them here, to be
quick). A table like this is what one has: a row a pupil, a column "school". Nobody wants to cut
it into 139 pieces by hand; GroupedMultiTaskRegressor(task="school") does, and is an estimator
like others.

WHAT IS COMPARED. R^2 on pupils held out, by: one ridge regression of all pupils, which does not
know the schools; the same with a column of its own for every school (scikit-learn's
OneHotEncoder); each school alone; and all schools at once with the trace norm (schools mix a few
ways of scoring), or around a mean of their weights. lam of each is chosen on folds within
schools, by GridSearchCV or by the estimator's own path.

AND A NEW SCHOOL? unseen="mean" answers with the mean of all schools' weights; GroupKFold leaves
whole schools out and says what that is worth.

WHAT CAME OF IT. On these rows one ridge with a column a school is best (0.352), and "around their
mean" nearly so (0.348): schools differ in their level, hardly in how features count. The trace
norm, which knows of no level that is shared beyond the intercepts, makes much of little data
(0.313; each school alone 0.219), and is not the model for these rows. For schools never seen, the
mean of unpenalised intercepts and shared patterns (0.246) loses to one ridge of all (0.327).
Lessons 12 and 13 look at these schools with other losses and norms.

The data are looked for in ../shared/data or the folder of the environment variable MTLDSL_DATA.
Where they are not, a table of the same shape is made, and the script says so.

Run: ``python examples/22_school_by_groups.py`` (needs pandas: pip install pandas)
"""

import time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mtldsl as mtl
from mtldsl.estimators import GroupedMultiTaskRegressor, GroupedMultiTaskRegressorCV

# %%
# Data
# ----

try:
    tasks = mtl.datasets.load_school()
    inputs, scores = tasks.inputs, tasks.per_task(tasks.targets)
    print("School, as published")
except mtl.DataError:
    rng = np.random.default_rng(0)
    sizes = rng.integers(22, 252, 139)
    common = rng.normal(size=(28, 3))
    inputs = [rng.normal(size=(n, 28)) for n in sizes]
    scores = [
        X @ common @ rng.normal([1.0, 0.3, 0.3], 0.3)
        + 4 * rng.normal()
        + 8 * rng.normal(size=len(X))
        for X in inputs
    ]
    print("made data of School's shape (School is not here)")

columns = [f"x{i}" for i in range(28)]
frame = pd.DataFrame(np.vstack(inputs), columns=columns)
frame["school"] = np.repeat([f"school {i}" for i in range(len(inputs))], [len(X) for X in inputs])
frame["score"] = np.concatenate(scores)
frame = (
    frame.groupby("school", sort=False).sample(frac=1 / 3, random_state=0).reset_index(drop=True)
)
varying = [name for name in columns if frame[name].nunique() > 1]  # one column is constant
train, test = train_test_split(frame, test_size=0.4, stratify=frame["school"], random_state=0)
X, y, X_test, y_test = (
    part[name] for part in (train, test) for name in ([*varying, "school"], "score")
)
print(
    f"{len(X):,} pupils of {X['school'].nunique()} schools to learn from, "
    f"{len(X_test):,} held out; {len(varying)} features"
)

# %%
# Estimators
# ----------

within = list(
    StratifiedKFold(3, shuffle=True, random_state=0).split(X, X["school"])
)  # every school in every fold
scaled = make_column_transformer(
    (StandardScaler(), varying), ("passthrough", ["school"]), verbose_feature_names_out=False
)
table = scaled.set_output(transform="pandas")
MODELS = {
    "all pupils alike": GridSearchCV(
        make_pipeline(make_column_transformer((StandardScaler(), varying)), Ridge()),
        {"ridge__alpha": np.geomspace(1, 1e4, 5)},
        cv=within,
    ),
    "and a column a school": GridSearchCV(
        make_pipeline(
            make_column_transformer((StandardScaler(), varying), (OneHotEncoder(), ["school"])),
            Ridge(),
        ),
        {"ridge__alpha": np.geomspace(1, 1e4, 5)},
        cv=within,
    ),
    "each school alone": GridSearchCV(
        make_pipeline(
            table,
            GroupedMultiTaskRegressor("squared_loss(W, tasks) + lam * ridge(W)", task="school"),
        ),
        {"groupedmultitaskregressor__lam": np.geomspace(1, 1e4, 5)},
        cv=within,
    ),
    "trace norm": make_pipeline(
        table,
        GroupedMultiTaskRegressorCV(
            "squared_loss(W, tasks) + lam * trace_norm(W)",
            task="school",
            n_values=12,
            eps=0.03,
            cv=within,
            tol=1e-3,
        ),
    ),
    "around their mean": GridSearchCV(
        make_pipeline(
            table,
            GroupedMultiTaskRegressor(
                "squared_loss(W, tasks) + lam * mean_regularizer(W) + 1e-2 * ridge(W)",
                task="school",
                tol=1e-4,
            ),
        ),
        {"groupedmultitaskregressor__lam": np.geomspace(10, 1e4, 4)},
        cv=within,
    ),
}

found = {}
for name, model in MODELS.items():
    began = time.process_time()
    model.fit(X, y)
    found[name] = model.score(X_test, y_test)
    print(
        f"{name:>24}: R^2 {found[name]:.3f} on pupils held out   "
        f"({time.process_time() - began:.1f} s)",
        flush=True,
    )

path = MODELS["trace norm"][-1]
singular = np.linalg.svd(path.coef_, compute_uv=False)
print(
    f"trace norm at lam = {path.best_value_:.0f}: "
    f"{int((singular > 1e-3 * singular[0]).sum())} patterns of {len(varying)}; "
    f"{path.solution_.status}"
)
assert found["trace norm"] > found["each school alone"] and path.solution_.is_optimal

# %%
# Schools never seen
# ------------------

best = path.best_value_
strange = make_pipeline(
    table,
    GroupedMultiTaskRegressor(
        "squared_loss(W, tasks) + lam * trace_norm(W)",
        lam=best,
        task="school",
        unseen="mean",
        tol=1e-3,
    ),
)
whole_schools = cross_val_score(strange, X, y, groups=X["school"], cv=GroupKFold(3))
alike = cross_val_score(
    MODELS["all pupils alike"].best_estimator_, X, y, groups=X["school"], cv=GroupKFold(3)
)
print(
    f"schools never seen: R^2 {whole_schools.mean():.3f} by the mean of the others' "
    f"weights, {alike.mean():.3f} by one ridge of all pupils"
)
