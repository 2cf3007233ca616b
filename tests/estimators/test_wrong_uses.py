"""Wrong uses of the estimators: each gets the kind of error that scikit-learn's users expect, a ValueError with a text that says what to
write instead, and nothing that was typed is silently changed.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

import mtldsl as mtl
from mtldsl import DataError, ModelError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskClassifierCV,
    GroupedMultiTaskRegressor,
    GroupedMultiTaskRegressorCV,
    KernelMultiTaskClassifier,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskClassifierCV,
    MultiTaskKFold,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
)
from mtldsl.estimators.targets import labels_of
from tests.estimators.cases import labels, regression, rows_of_tasks
from tests.loops import for_each

X, Y = regression()
XL, YL = labels()
TX, Ty, IDS, WORDS = rows_of_tasks()
FRAME = pd.DataFrame(TX, columns=list("abcd")).assign(school=IDS)
LABELS = pd.DataFrame(Y[:, :3], columns=["y0", "y1", "y2"])
SUM = "squared_loss(W, tasks) + lam * l21_norm(W)"


def chosen(y=Y, **how):
    return MultiTaskRegressorCV(values=[1.0], **how).fit(X, y)


def with_one(values, value, row=3):
    changed = np.array(values, dtype=float)
    changed[row, 0] = value
    return changed


def at_least_two_arguments(W):
    return W


def not_an_objective(W, tasks):
    return 3


def needs_lam(W, tasks, lam):
    return mtl.squared_loss(W, tasks) + lam * mtl.ridge(W)


#: what is wrong -> (the call, the kind of error, pieces of its text)
WRONG = {
    # inputs, as scikit-learn sees them
    "no rows": (lambda: MultiTaskRegressor().fit(X[:0], Y[:0]), DataError, ["no rows"]),
    "other features": (lambda: MultiTaskRegressor().fit(X, Y).predict(X[:, :3]), DataError, ["3 features", "expecting 6 features"]),
    "a row alone": (lambda: MultiTaskRegressor().fit(X, Y).predict(X[0]), DataError, ["Reshape your data"]),
    "no certificate yet": (lambda: MultiTaskRegressor().certificate_, NotFittedError, ["not fitted yet"]),
    # targets
    "one_standard_error": (lambda: MultiTaskRegressorCV(one_standard_error=1).fit(X, Y), ModelError, ["one_standard_error=1"]),
    "nothing but NaN": (lambda: MultiTaskRegressor().fit(X, Y * np.nan), DataError, ["Input y contains NaN alone"]),
    "y without columns": (lambda: MultiTaskRegressor().fit(X, Y[:, :0]), DataError, ["no columns"]),
    "three classes a column": (lambda: MultiTaskClassifier().fit(XL, YL + np.arange(80)[:, None] % 2), DataError, ["3 classes", "one estimator on this column"]),
    "labels of another shape scored": (lambda: MultiTaskClassifier().fit(XL, YL).score(XL, YL[:, :2]), DataError, ["(80, 2)", "(80, 3)"]),
    "a task of one row, in folds": (lambda: GroupedMultiTaskRegressorCV(values=[1.0]).fit(TX, Ty, groups=np.where(np.arange(len(TX)) == 7, "solo", IDS)), DataError, ["of the task 'solo' is left to learn from", "unseen='mean'"]),
    "a task of one row, in folds, classes": (lambda: GroupedMultiTaskClassifierCV(values=[1.0]).fit(TX, WORDS, groups=np.where(np.arange(len(TX)) == 7, "solo", IDS)), DataError, ["of the task 'solo' is left to learn from", "unseen='mean'"]),
    # folds and measures that scikit-learn refuses
    "folds by groups that are not there": (lambda: chosen(cv=GroupKFold(2)), DataError, ["cv=GroupKFold", "'groups'", "list(GroupKFold(5).split(X, y, groups))"]),
    "folds by classes of numbers": (lambda: chosen(cv=StratifiedKFold(2)), DataError, ["cv=StratifiedKFold", "continuous", "write a number of folds"]),
    "folds that are text": (lambda: chosen(cv="3"), DataError, ["cv='3'", "write a number of folds"]),
    "no folds": (lambda: chosen(cv=[]), DataError, ["cv=[]", "write a number of folds"]),
    "folds of other rows": (lambda: chosen(cv=[(range(20), range(990, 999))]), DataError, ["the row 998 is not one of", "write a number of folds"]),
    "folds that test rows of training": (lambda: chosen(cv=[(range(20), range(20, 40)), (range(30), range(29, 40))]), DataError, ["fold 1 tests rows that it trains on"]),
    "a measure of one column": (lambda: chosen(scoring="neg_max_error"), ModelError, ["(scoring='neg_max_error')", "Multioutput", "such as 'mse'"]),
    "a measure that takes no gap": (lambda: chosen(with_one(Y, np.nan), scoring="neg_root_mean_squared_error"), ModelError, ["NaN", "such as 'mse'"]),
    "a measure of one label": (lambda: MultiTaskClassifierCV(scoring="jaccard").fit(XL, YL), ModelError, ["(scoring='jaccard')", "such as 'jaccard_macro', 'f1'"]),
    "a measure of classes, of numbers": (lambda: chosen(scoring="f1"), ModelError, ["scoring='f1' is a measure of classes", "write 'r2' or 'mae', or use MultiTaskClassifierCV"]),
    "a measure of scores, of labels as numbers": (lambda: chosen((Y > 0).astype(float), scoring="roc_auc"), ModelError, ["scoring='roc_auc' is a measure of classes"]),
    "a loss of numbers, of classes": (lambda: MultiTaskClassifier(loss="poisson_loss").fit(XL, YL), ModelError, ["poisson_loss is not a loss for MultiTaskClassifier; use MultiTaskRegressor"]),
    "a loss that is not there": (lambda: MultiTaskRegressor(loss="tweedie_loss").fit(X, Y), ModelError, ["write one of 'squared_loss', "]),
    "a loss that is not there, with advice": (lambda: MultiTaskRegressor(loss="max_loss").fit(X, Y), ModelError, ["write worst_task(loss)"]),
    "a page before its path": (lambda: MultiTaskRegressor().fit(X, Y).report(X, Y, "never.html"), ModelError, ["is not a path", 'write report("fit.html", X, y)']),
    "a page's misspelt option": (lambda: MultiTaskRegressor().fit(X, Y).report("never.html", X, Y, bootstraps=0), ModelError, ["report of MultiTaskRegressor, bootstraps=0: there is no option", "did you mean 'bootstrap'"]),
    "a number as the title of a page": (lambda: MultiTaskRegressor().fit(X, Y).report("never.html", X, Y, title=5), DataError, ["report(title=5): write text"]),
    "a page without rows": (lambda: MultiTaskRegressor().fit(X, Y).report("never.html"), ModelError, ["report(): missing a required argument: 'X'; write fitted.report("]),
    "a short name of their measure": (lambda: chosen(scoring="MAPE"), ModelError, ["write 'neg_mean_absolute_percentage_error'"]),
    "several measures": (lambda: chosen(scoring=["r2"]), ModelError, ["(scoring=['r2'])", "the name of one measure"]),
    # models and their parameters
    "a parameter of the loss": (lambda: MultiTaskRegressor(loss="huber_loss", delta=2.0).fit(X, Y), ModelError, ["no parameter 'delta'; write model='huber_loss(W, tasks, delta=2.0) + lam * l21_norm(W)'; its parameters: lam"]),
    "a report of other tasks": (lambda: GroupedMultiTaskRegressor(unseen="mean").fit(TX, Ty, groups=IDS).report("never.html", TX, Ty, groups=np.full(len(TX), "new")), DataError, ["no row here has a label and a task that was learned", "rows of tasks such as 'task "]),
    "a missing class as text": (lambda: MultiTaskClassifier().fit(XL, np.where(np.arange(len(XL)) < 3, "nan", np.where(YL[:, 0] > 0, "yes", "no"))), DataError, ["y holds the text 'nan' in 3 rows", "astype(str)", "write None or NaN in its place, such as y.mask(y == 'nan')"]),
    "a missing class as text, of folds": (lambda: list(MultiTaskKFold(2).split(XL, np.where(YL > 0, "yes", ""))), DataError, ["y holds the text ''"]),
    "a missing task as text": (lambda: GroupedMultiTaskRegressor().fit(TX, Ty, groups=np.where(np.arange(len(TX)) < 3, "NA", IDS)), DataError, ["groups holds the text 'NA' in 3 rows", "leave these rows out, or give the task another name"]),
    "weights in another order": (lambda: MultiTaskRegressor().fit(X, LABELS, sample_weight=LABELS[LABELS.columns[::-1]].abs() + 1), DataError, ["sample_weight: column 'y2' is number 0, and number 2 of the labels", "write sample_weight[list(y.columns)]"]),
    "weights in another order, of tasks": (lambda: mtl.Tasks.shared(X, LABELS, sample_weights=LABELS[LABELS.columns[::-1]].abs() + 1), DataError, ["sample_weights: column 'y2' is number 0"]),
    "a misspelt argument": (lambda: MultiTaskRegressor(penality="l1_norm"), ModelError, ["(penality='l1_norm')", "did you mean 'penalty'"]),
    "a misspelt argument, set": (lambda: MultiTaskRegressor().set_params(penality="l1_norm"), ModelError, ["Invalid parameter 'penality'", "did you mean 'penalty'"]),
    "a parameter of another estimator": (lambda: GroupedMultiTaskClassifierCV(task="s", tune_thresholds=True).fit(pd.DataFrame(TX).add_prefix("x").assign(s=IDS), WORDS), ModelError, ["no parameter 'tune_thresholds'; its parameters: lam; MultiTaskClassifierCV and MultiTaskClassifier have 'tune_thresholds'"]),
    "a missing parameter": (lambda: MultiTaskRegressor("Robust-MTL", rho1=1.0).fit(X, Y), ModelError, ["needs rho2", "write rho2=..."]),
    "a parameter of another model": (lambda: MultiTaskRegressor("L21", lam=1.0).fit(X, Y), ModelError, ["no parameter 'lam'", "rho"]),
    "a negative parameter": (lambda: MultiTaskRegressor(lam=-1.0).fit(X, Y), ModelError, ["'lam' cannot be -1"]),
    "text for a parameter": (lambda: MultiTaskRegressor(lam="big").fit(X, Y), ModelError, ["lam='big'", "finite number"]),
    "another library's strengths": (lambda: MultiTaskRegressorCV(alphas=[1.0]).fit(X, Y), ModelError, ["no parameter 'alphas'", "did you mean 'values'"]),
    "another library's folds": (lambda: MultiTaskRegressor(n_folds=3).fit(X, Y), ModelError, ["its parameters: lam; MultiTaskRegressorCV and GroupedMultiTaskRegressorCV have 'cv'"]),
    "an unknown model": (lambda: MultiTaskRegressor("Robust-MLT").fit(X, Y), ModelError, ["did you mean 'Robust-MTL'"]),
    "model of another kind": (lambda: MultiTaskRegressor(3).fit(X, Y), ModelError, ["model=3", "a function of (W, tasks)"]),
    "an unknown word": (lambda: MultiTaskRegressor("squered_loss(W, tasks)").fit(X, Y), ModelError, ["did you mean 'squared_loss'"]),
    "a broken statement": (lambda: MultiTaskRegressor("squared_loss(W, tasks").fit(X, Y), ModelError, ["cannot be read", "write a sum"]),
    "a function of too little": (lambda: MultiTaskRegressor(at_least_two_arguments).fit(X, Y), ModelError, ["function of (W, tasks)"]),
    "a function of no objective": (lambda: MultiTaskRegressor(not_an_objective).fit(X, Y), ModelError, ["not_an_objective returned 3"]),
    "a function's parameter": (lambda: MultiTaskRegressor(needs_lam).set_params(kind="a"), ModelError, ["Invalid parameter 'kind'", "lam"]),
    "labels' loss for numbers": (lambda: MultiTaskRegressor("logistic_loss(W, tasks)").fit(X, Y), ModelError, ["logistic_loss is not a loss for MultiTaskRegressor", "use MultiTaskClassifier"]),
    "a graph's model elsewhere": (lambda: MultiTaskClassifier("CGM").fit(XL, YL), ModelError, ["use LabelGraphClassifier"]),
    "another model on a graph": (lambda: LabelGraphClassifier("logistic_loss(W, tasks)").fit(XL, YL), ModelError, ["use MultiTaskClassifier"]),
    "a broken constraint": (lambda: MultiTaskRegressor(subject_to=["W > = 0"]).fit(X, Y), ModelError, ["'W > = 0' cannot be read", "write a comparison such as 'W >= 0'"]),
    "constraints as one text": (lambda: MultiTaskRegressor(subject_to="W >= 0").fit(X, Y), ModelError, ["['W >= 0']"]),
    "constraints beside a name": (lambda: MultiTaskRegressor("Lasso", rho=1.0, subject_to=["W >= 0"]).fit(X, Y), ModelError, ["has its own constraints"]),
    "counts that are none": (lambda: MultiTaskRegressor("poisson_loss(W, tasks)").fit(X, Y), DataError, ["labels must be counts"]),
    "no penalty": (lambda: MultiTaskRegressor(penalty="none").fit(X, Y), ModelError, ["penalty='none'", "write MultiTaskRegressor(lam=0.0) for none"]),
    "a loss that there is not": (lambda: MultiTaskRegressor(loss="ordinal").fit(X, Y), ModelError, ["loss='ordinal'", "there is no ordinal loss"]),
    "classes as numbers": (lambda: MultiTaskRegressor().fit(X, np.where(Y > 0, "yes", "no")), DataError, ["y holds text, such as ", "use MultiTaskClassifier"]),
    "classes in a column": (lambda: MultiTaskRegressor().fit(X, pd.DataFrame({"a": Y[:, 0], "b": "well"})), DataError, ["'well'", "use MultiTaskClassifier"]),
    "numbers as text": (lambda: MultiTaskRegressor().fit(X, Y.astype(str)), DataError, ["y holds numbers as text, such as ", "write y.astype(float)"]),
    "numbers as categories": (lambda: MultiTaskRegressor().fit(X, pd.Series(range(40), dtype="category")), DataError, ["y holds categories", "write y.astype(float)"]),
    "text beside numbers": (lambda: MultiTaskClassifier().fit(XL, np.where(YL > 0, "yes", YL.astype(object))), DataError, ["column 0 of y holds text beside other things, such as 'yes' and 0"]),
    "classes of a strange type": (lambda: MultiTaskClassifier().fit(XL, np.array([range(2), range(3)] * 40, dtype=object)), DataError, ["of the type range, and classes are numbers, flags or text"]),
    "sets of labels": (lambda: MultiTaskClassifier().fit(XL, [{"a"}, {"a", "b"}] * 40), DataError, ["y holds {'a'}, a set and not one label", "MultiLabelBinarizer"]),
    "tuples of labels": (lambda: MultiTaskClassifier().fit(XL, [("a",), ("a", "b")] * 40), DataError, ["same number of labels", "MultiLabelBinarizer"]),
    "numbers as classes": (lambda: MultiTaskClassifier().fit(X, Y), DataError, ["Unknown label type: continuous", "use MultiTaskRegressor"]),
    "a task that is missing": (lambda: GroupedMultiTaskRegressor(task="school").fit(FRAME.assign(school=None), Ty), DataError, ["the column task='school': None in row 0; every row needs a task", "leave such rows out"]),
    "a measure by half its name": (lambda: MultiTaskClassifierCV(scoring="AUC").fit(XL, YL), ModelError, ["(scoring='AUC')", "write 'roc_auc'"]),
    "a scorer of scikit-learn misspelt": (lambda: MultiTaskRegressorCV(scoring="neg_median_absolut_error").fit(X, Y), ModelError, ["write 'neg_median_absolute_error'"]),
    # options
    "solver": (lambda: MultiTaskRegressor(solver="lbfgs").fit(X, Y), ModelError, ["solver='lbfgs'", "'auto'", "'admm'"]),
    "tol": (lambda: MultiTaskRegressor(tol=-1.0).fit(X, Y), ModelError, ["tol=-1.0", "between 0 and 1"]),
    "n_jobs": (lambda: MultiTaskRegressor(n_jobs=0).fit(X, Y), ModelError, ["n_jobs=0"]),
    "n_jobs of folds": (lambda: chosen(n_jobs=0), ModelError, ["MultiTaskRegressorCV(n_jobs=0): write a whole number"]),
    "fit_intercept": (lambda: MultiTaskRegressor(fit_intercept="no").fit(X, Y), ModelError, ["fit_intercept='no'", "False"]),
    "warm_start": (lambda: MultiTaskRegressor(warm_start=1).fit(X, Y), ModelError, ["warm_start=1", "True"]),
    "check": (lambda: MultiTaskRegressor(check=True).fit(X, Y), ModelError, ["check=True", "'subsample'"]),
    "one_class": (lambda: MultiTaskClassifier(one_class="drop").fit(XL, YL), ModelError, ["one_class='drop'", "'skip'"]),
    "class_weight": (lambda: MultiTaskClassifier(class_weight="auto").fit(XL, YL), DataError, ["class_weight='auto'", "'balanced'"]),
    "class_weight of an unknown class": (lambda: MultiTaskClassifier(class_weight={"yes": 2}).fit(XL, YL), DataError, ["'yes'", "the classes are 0, 1"]),
    "class_weight below zero": (lambda: MultiTaskClassifier(class_weight={1: -2}).fit(XL, YL), DataError, ["the weight of 1 is -2", ">= 0"]),
    "class_weight as text": (lambda: MultiTaskClassifier(class_weight={1: "a"}).fit(XL, YL), DataError, ["the weight of 1 is 'a'"]),
    "class_weight, too short a list": (lambda: MultiTaskClassifier(class_weight=[{1: 2}]).fit(XL, YL), DataError, ["one dict a column"]),
    # weights of samples
    "no weight at all": (lambda: MultiTaskRegressor().fit(X, Y, np.zeros(40)), DataError, ["at least one non-zero"]),
    "a vector of None alone": (lambda: MultiTaskClassifier().fit(X, [None] * 40), DataError, ["NaN alone: there is no label"]),
    # rows of tasks
    "a task of each row": (lambda: GroupedMultiTaskRegressor().fit(TX, Ty, groups=range(90)), DataError, ["each of the 90 rows is a task of its own", "such as the school"]),
    "groups of two dimensions": (lambda: GroupedMultiTaskRegressor().fit(TX, Ty, groups=IDS[:, None]), DataError, ["(90, 1)", "one task id a row"]),
    "groups in fit alone": (lambda: GroupedMultiTaskRegressor().fit(TX, Ty, groups=IDS).predict(TX), DataError, ["fit was given groups, and this call is not"]),
    "groups in predict alone": (lambda: GroupedMultiTaskRegressor().fit(TX, Ty).predict(TX, groups=IDS), DataError, ["fit was given none"]),
    "task is not a column": (lambda: GroupedMultiTaskRegressor(task="scool").fit(FRAME, Ty), DataError, ["task='scool'", "'school'"]),
    "task by name without names": (lambda: GroupedMultiTaskRegressor(task="school").fit(TX, Ty), DataError, ["no names; write .set_output(transform='pandas') behind the step before, or a position"]),
    "task out of range": (lambda: GroupedMultiTaskRegressor(task=9).fit(FRAME, Ty), DataError, ["task=9", "0 to 4"]),
    "task and groups": (lambda: GroupedMultiTaskRegressor(task="school").fit(FRAME, Ty, groups=IDS), DataError, ["give one of them"]),
    "unseen": (lambda: GroupedMultiTaskRegressor(unseen="nearest").fit(TX, Ty, groups=IDS), DataError, ["unseen='nearest'", "'mean'"]),
    "three classes of rows": (lambda: GroupedMultiTaskClassifier().fit(TX, np.arange(90) % 3, groups=IDS), DataError, ["Only binary classification", "use MultiTaskClassifier"]),
    "a table for rows of tasks": (lambda: GroupedMultiTaskClassifier().fit(TX, np.stack([WORDS, WORDS], 1), groups=IDS), DataError, ["(90, 2)", "(n,)"]),
    # graphs, kernels, components, searches
    "weights of labels in a labelling, and of classes": (
        lambda: LabelGraphClassifier(class_weight="balanced").fit(XL, YL, with_one(np.ones(YL.shape), 2.0)), DataError, ["several values in row 3"],
    ),
    "an edge to nowhere": (lambda: LabelGraphClassifier(edges=[(0, 9)]).fit(XL, YL), ModelError, ["9 in (0, 9) is not a label"]),
    "edges by an unknown name": (lambda: LabelGraphClassifier(edges="tree").fit(XL, YL), ModelError, ["edges='tree'", "pairs"]),
    "an unknown kernel": (lambda: KernelMultiTaskClassifier(kernels="rbff").fit(XL, YL), DataError, ["did you mean 'rbf'"]),
    "a kernel of another kind": (lambda: KernelMultiTaskClassifier(kernels=3).fit(XL, YL), DataError, ["3 is not a kernel"]),
    "a Gram matrix that is not square": (lambda: KernelMultiTaskClassifier(kernels="precomputed").fit(XL, YL), DataError, ["must be a square matrix", "80x6"]),
    "a Gram matrix that is not one": (lambda: KernelMultiTaskClassifier(kernels="precomputed").fit(-XL @ XL.T, YL), DataError, ["not positive semidefinite"]),
}  # fmt: skip


@pytest.mark.slow
@for_each("use", WRONG)
def test_a_wrong_use_is_refused(use):
    call, kind, pieces = WRONG[use]
    with pytest.raises(kind) as error:
        call()
    said = str(error.value)
    assert all(piece in said for piece in pieces), said
    assert isinstance(error.value, ValueError | AttributeError)


def test_a_models_parameter_may_resemble_an_argument():
    assert (
        MultiTaskRegressor(lambda W, tasks, penalty_=1.0: mtl.squared_loss(W, tasks), penalty_=2.0).penalty_
        == 2.0
    )


def test_data_are_not_changed():
    inputs, y, weights = np.array(X), np.array(Y), np.ones(Y.shape)
    MultiTaskRegressor(lam=0.1).fit(inputs, y, weights).predict(inputs)
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(y, Y)
    assert (weights == 1).all()
    thin = sparse.csr_array(np.where(X > 1, X, 0))
    thin.data.flags.writeable = False
    MultiTaskRegressor(lam=0.1).fit(thin, y).predict(thin)
    ids = np.where(IDS == "task 0", "b", "a").astype(object)
    kept = ids.copy()
    GroupedMultiTaskRegressor(lam=0.1).fit(TX, Ty, groups=ids)
    assert (ids == kept).all()


#: what gives a value to the parameter that folds choose -> the piece of the sentence that says what to write
CHOSEN = {
    "in the constructor": (lambda: MultiTaskRegressorCV(lam=3.0), "write values=[...] for those to choose from, or MultiTaskRegressor(lam=3.0)"),
    "set": (lambda: MultiTaskRegressorCV().set_params(lam=3.0), "lam is chosen by cross-validation"),
    "set with the model": (lambda: MultiTaskRegressorCV("L21").set_params(model=SUM, lam=3.0), "lam is chosen by cross-validation"),
    "under its own name": (lambda: MultiTaskRegressorCV("L21", rho=3.0), "rho is chosen by cross-validation"),
    "by its name": (lambda: MultiTaskRegressorCV("Robust-MTL", parameter="rho2", rho1=1.0, rho2=2.0), "MultiTaskRegressor(rho2=2.0)"),
    "searched over": (lambda: GridSearchCV(MultiTaskRegressorCV(), {"lam": [1.0, 2.0]}, cv=2).fit(X, Y), "MultiTaskRegressorCV(lam=1.0)"),
}  # fmt: skip


@for_each("give", CHOSEN)
def test_a_value_of_what_is_chosen_is_refused(give):
    call, says = CHOSEN[give]
    with pytest.raises(ModelError) as error:
        call()
    assert says in str(error.value)


def test_what_is_chosen_is_no_parameter():
    plain = MultiTaskRegressorCV("Robust-MTL", parameter="rho2", rho1=1.0)
    assert (
        repr(MultiTaskRegressorCV()) == "MultiTaskRegressorCV()"
        and "lam" not in MultiTaskRegressorCV().get_params()
    )
    assert clone(plain).get_params()["rho1"] == 1.0 and "rho2" not in plain.get_params()


def test_a_class_of_almost_every_row_gets_a_warning():
    with pytest.warns(UserWarning, match=r"y has 40 classes in 79 rows.*use MultiTaskRegressor"):
        labels_of([None, *np.arange(79) % 40])
