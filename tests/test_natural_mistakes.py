"""What people type at first, and what they are told: a typed error that quotes it and says what to write."""

import networkx as nx
import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = np.sign(RNG.normal(size=(30, 3)))
TASKS = mtl.Tasks.shared(X, Y)
W = mtl.Weights(TASKS)
LAM = mtl.Parameter(0.5)
LOSS = mtl.logistic_loss(W, TASKS)
PROBLEM = mtl.minimize(LOSS + LAM * mtl.l21_norm(W))


@pytest.fixture(scope="module")
def solved():
    return PROBLEM.solve()


def of_labels(y):
    tasks = mtl.Tasks.shared(X, y)
    return mtl.logistic_loss(mtl.Weights(tasks), tasks)


#: what is typed -> (what runs, the error, what it says: all of these)
MISTAKES = {
    # the data
    "Tasks(X, Y)": (lambda s: mtl.Tasks(X, Y), mtl.DataError, ["Tasks.shared(X, Y)", "Tasks.grouped"]),
    "rows differ": (lambda s: mtl.Tasks.shared(X, Y[:10]), mtl.DataError, ["30 rows", "10", "one row of labels"]),
    "text labels": (lambda s: of_labels(np.array(["a", "b"] * 15)), mtl.DataError, ["text", "encode"]),
    "three classes": (lambda s: of_labels(np.arange(30) % 3), mtl.DataError, ["3 classes", "one column", "MultiTaskClassifier"]),
    "labels 0 and 1": (lambda s: of_labels((Y > 0) * 1), mtl.DataError, ["logistic_loss(W, tasks)", "label 0", "'task0', row ", "2 * Y - 1"]),
    "booleans": (lambda s: of_labels(Y > 5), mtl.DataError, ["labels must be -1 or +1"]),
    "split(1.3)": (lambda s: TASKS.split(1.3), mtl.DataError, ["test_size=1.3", "0.25"]),
    "select('zebra')": (lambda s: TASKS.select(["zebra"]), mtl.DataError, ["zebra", "task0"]),
    # unknowns and parameters
    "mtl.load(file)": (lambda s: mtl.load("fit.npz"), AttributeError, ["write Solution.load(file)"]),
    "mtl.fit(tasks)": (lambda s: mtl.fit(TASKS), AttributeError, ["minimize(...).solve()"]),
    "Weights()": (lambda s: mtl.Weights(), mtl.ModelError, ["missing", "tasks", "write Weights(tasks)"]),
    "Weights(X)": (lambda s: mtl.Weights(X), mtl.ModelError, ["ndarray", "Tasks.shared(X, Y)"]),
    "Weights(name='a b')": (lambda s: mtl.Weights(TASKS, name="a b"), mtl.ModelError, ["identifier"]),
    'Parameter("lam")': (lambda s: mtl.Parameter("lam"), mtl.ModelError, ["value comes first", "Parameter(1.0, name='lam')"]),
    "Parameter()": (lambda s: mtl.Parameter(), mtl.ModelError, ["missing", "Parameter(1.0)"]),
    "Parameter(1, 2)": (lambda s: mtl.Parameter(1.0, 2), mtl.ModelError, ["name=2", "identifier"]),
    "lam.value = 'a'": (lambda s: setattr(LAM, "value", "a"), mtl.ModelError, ["'a'", "finite"]),
    "Parameter([1, 2])": (lambda s: mtl.Parameter([1.0, 2.0]), mtl.ModelError, ["one number", "weights=[...]"]),
    "mtl.norm(W, 1)": (lambda s: mtl.norm(W, 1), AttributeError, ["l1_norm, l21_norm"]),
    "mtl.compare(a, b)": (lambda s: mtl.compare(1, 2), mtl.DataError, ["write compare({"]),
    "group_lasso": (lambda s: mtl.group_lasso(W, [[0]]), AttributeError, ["l21_norm(W)", "group_norm(W, groups)"]),
    # terms
    "l21_norm(tasks)": (lambda s: mtl.l21_norm(TASKS), mtl.ModelError, ["not Tasks; write l21_norm(W)"]),
    "1 / l1_norm(W)": (lambda s: 1 / mtl.l1_norm(W), mtl.ModelError, ["1 / l1_norm(W): one over a term is not convex"]),
    "lam / (a + b)": (lambda s: LAM / (LOSS + mtl.l1_norm(W)), mtl.ModelError, ["lam / (logistic_loss(W, tasks) + l1_norm(W))"]),
    "W.mean(axis=1)": (lambda s: W.mean(axis=1), mtl.ModelError, ["W.sum(axis) / n", "mean_regularizer(W)"]),
    "solve(lam=3)": (lambda s: PROBLEM.solve(lam=3), mtl.SolverError, ["not an option of a solver", "lam.value = 3"]),
    "solve('ADMM')": (lambda s: PROBLEM.solve("ADMM"), mtl.SolverError, ["no such solver; did you mean 'admm'?"]),
    "path('lam', ...)": (lambda s: PROBLEM.path("lam", [1.0]), mtl.ModelError, ["is the name of a parameter", "problem.parameters[0]"]),
    "path(lam)[0]": (lambda s: PROBLEM.path(LAM, [1.0])[0], mtl.ModelError, ["path(lam, ...)[0]", "write list(problem.path(lam, ...))[0]"]),
    "path(another)": (lambda s: PROBLEM.path(mtl.Parameter(1.0, "mu"), [1.0]), mtl.ModelError, ["no such parameter; it has lam"]),
    "lambda_max('lam')": (lambda s: PROBLEM.lambda_max("lam"), mtl.ModelError, ["give the Parameter itself"]),
    "squared_loss(W)": (lambda s: mtl.squared_loss(W), mtl.ModelError, ["missing", "squared_loss(W, tasks, "]),
    "squared_loss(tasks, W)": (lambda s: mtl.squared_loss(TASKS, W), mtl.ModelError, ["weights come first", "squared_loss(W, tasks)"]),
    "l1_norm()": (lambda s: mtl.l1_norm(), mtl.ModelError, ["write l1_norm(W, "]),
    "class_weight=": (lambda s: mtl.logistic_loss(W, TASKS, class_weight="balanced"), mtl.ModelError, ["sample_weights", "estimators"]),
    "sample_weight=": (lambda s: mtl.hinge_loss(W, TASKS, sample_weight=Y), mtl.ModelError, ["Tasks.shared(X, Y, sample_weights"]),
    "np.abs(W)": (lambda s: np.abs(W), mtl.ModelError, ["np.absolute of W", "l1_norm(W)"]),
    "abs(W)": (lambda s: abs(W), mtl.ModelError, ["l1_norm(W)"]),
    "W ** 2": (lambda s: W**2, mtl.ModelError, ["ridge(W)"]),
    "np.square(W)": (lambda s: np.square(W), mtl.ModelError, ["ridge(W)"]),
    "np.exp(W)": (lambda s: np.exp(W), mtl.ModelError, ["poisson_loss"]),
    "X / W": (lambda s: X / W, mtl.ModelError, ["np.divide of W"]),
    "W * W": (lambda s: W * W, mtl.ModelError, ["product of two unknowns"]),
    "for w in W": (lambda s: list(W), mtl.ModelError, ["cannot be iterated", "W[:, [0, 1]]"]),
    "W.value": (lambda s: W.value, AttributeError, ["no value", "solution.W"]),
    "edges in graph_laplacian": (lambda s: mtl.graph_laplacian(W, [(0, 1), (1, 2)]), mtl.ModelError, ["edges (2)", "laplacian_matrix"]),
    "named edges in graph_laplacian": (lambda s: mtl.graph_laplacian(W, [("a", "b")]), mtl.ModelError, ["edges (1)", "laplacian_matrix"]),
    "a graph": (lambda s: mtl.graph_laplacian(W, nx.path_graph(3)), mtl.ModelError, ["laplacian_matrix", "nodelist=tasks.task_names"]),
    # the statement
    "minimize(0)": (lambda s: mtl.minimize(sum([])), mtl.ModelError, ["a sum of losses"]),
    "minimize(W)": (lambda s: mtl.minimize(W), mtl.ModelError, ["minimize(W)", "a sum of losses"]),
    "loss + constraint": (lambda s: LOSS + (W >= 0), mtl.ModelError, ["only terms", "subject_to=[W >= 0]"]),
    # solving
    "solve(max_iters=5)": (lambda s: PROBLEM.solve(max_iters=5), mtl.SolverError, ["max_iters", "write max_iter="]),
    "solve(time_limit=5)": (lambda s: PROBLEM.solve(time_limit=5), mtl.SolverError, ["write max_seconds="]),
    "solve(seed=1)": (lambda s: PROBLEM.solve(seed=1), mtl.SolverError, ["write random_state="]),
    "solve(verbose=2)": (lambda s: PROBLEM.solve(verbose=2), mtl.SolverError, ["verbose=True"]),
    "warm_start=False": (lambda s: PROBLEM.solve(warm_start=False), mtl.SolverError, ["solve(warm_start=False): write a Solution", "or leave it out"]),
    "warm_start=W": (lambda s: PROBLEM.solve(warm_start=s.W), mtl.SolverError, ["{'W': array}"]),
    "path(lam, 1)": (lambda s: list(PROBLEM.path(LAM, 1)), mtl.ModelError, ["values=1", "at least 2"]),
    "models('MT-MKL')": (lambda s: mtl.models("MT-MKL"), mtl.ModelError, ["models()['MT-MKL']", "model('MT-MKL', tasks"]),
    "solution.check_bound()": (lambda s: s.check_bound(), AttributeError, ["write problem.check_bound(solution)"]),
    "path()": (lambda s: PROBLEM.path(), mtl.ModelError, ["missing", "problem.path(lam, [1.0, 0.1])"]),
    "lambda_max()": (lambda s: PROBLEM.lambda_max(), mtl.ModelError, ["problem.lambda_max(lam)"]),
    "cross_validate(cv=5)": (lambda s: PROBLEM.cross_validate(LAM, cv=5), mtl.ModelError, ["write folds="]),
    "cross_validate(scoring=)": (lambda s: PROBLEM.cross_validate(LAM, scoring="f1"), mtl.ModelError, ["write metric="]),
    "metric='AUC'": (lambda s: PROBLEM.cross_validate(LAM, metric="AUC"), mtl.ModelError, ["'roc_auc'"]),
    "cross_check(5)": (lambda s: PROBLEM.cross_check(5), mtl.ModelError, ["not a Solution"]),
    "with_tasks(X)": (lambda s: PROBLEM.with_tasks(X), mtl.ModelError, ["an array of shape (30, 4) is not Tasks"]),
    # the solution
    "score(X, Y)": (lambda s: s.score(X, Y), mtl.DataError, ["an array of shape (30, 4) is not Tasks", "Tasks.shared(X, Y)"]),
    "predict(tasks)": (lambda s: s.predict(TASKS), mtl.DataError, ["tasks.X"]),
    "predict(row)": (lambda s: s.predict(X[0]), mtl.DataError, [".reshape(1, -1)"]),
    "predict(few columns)": (lambda s: s.predict(X[:, :2]), mtl.DataError, ["(30, 2)", "4 columns"]),
    "solution['V']": (lambda s: s["V"], mtl.ModelError, ["'V'", "'W'"]),
    "coef_": (lambda s: s.coef_, AttributeError, ["write solution.W"]),
    "problem.fit": (lambda s: PROBLEM.fit(X, Y), AttributeError, ["problem.solve()", "mtldsl.estimators"]),
    "problem.predict": (lambda s: PROBLEM.predict(X), AttributeError, ["problem.solve().predict(X)"]),
    "load('nope.npz')": (lambda s: mtl.Solution.load("nope.npz"), mtl.DataError, ["nope.npz", "no such file"]),
    # what other libraries have
    "minimize()": (lambda s: mtl.minimize(), mtl.ModelError, ["missing", "write minimize(objective, subject_to="]),
    "minimize(constraints=)": (lambda s: mtl.minimize(LOSS, constraints=[W >= 0]), mtl.ModelError, ["'constraints'", "subject_to=[W >= 0]"]),
    "minimize(loss, l1_norm(W))": (lambda s: mtl.minimize(LOSS, mtl.l1_norm(W)), mtl.ModelError, ["l1_norm(W)", "list of constraints", "write minimize(logistic_loss(W, tasks) + l1_norm(W))"]),
    "solve(class_weight=)": (lambda s: PROBLEM.solve(class_weight="balanced"), mtl.SolverError, ["class_weight=...", "sample_weights=..."]),
    "solve(constraints=)": (lambda s: PROBLEM.solve(constraints=[W >= 0]), mtl.SolverError, ["constraints=...", "subject_to=[W >= 0]"]),
    "ridge(W, alpha=)": (lambda s: mtl.ridge(W, alpha=0.1), mtl.ModelError, ["'alpha'", "write 0.1 * ridge(W)"]),
    "hinge_loss(C=)": (lambda s: mtl.hinge_loss(W, TASKS, C=10.0), mtl.ModelError, ["'C'", "write 0.1 * hinge_loss(W, tasks)"]),
    "np.mean(W)": (lambda s: np.mean(W), mtl.ModelError, ["np.mean of W", "W.sum() / n"]),
    "np.linalg.norm(W)": (lambda s: np.linalg.norm(W), mtl.ModelError, ["np.norm of W", "frobenius_norm(W)"]),
    "np.transpose(W, (1, 0))": (lambda s: np.transpose(W, (1, 0)), mtl.ModelError, ["np.transpose of W", "write W.T"]),
    "np.clip(W, 0, 1)": (lambda s: np.clip(W, 0, 1), mtl.ModelError, ["of W", "W >= 0, W <= 1"]),
    "np.vstack([W, W])": (lambda s: np.vstack([W, W]), mtl.ModelError, ["np.vstack of W is not in the language"]),
    "Tasks.shared(X)": (lambda s: mtl.Tasks.shared(X), mtl.DataError, ["missing", "'Y'", "Tasks.shared(X, Y)"]),
    "Tasks.shared(groups=)": (lambda s: mtl.Tasks.shared(X, Y, groups=3), mtl.DataError, ["'groups'", "Tasks.shared(X, Y)"]),
    "Tasks.separate(X)": (lambda s: mtl.Tasks.separate([X]), mtl.DataError, ["missing", "Tasks.separate([X1, X2], [y1, y2])"]),
    "Tasks.grouped(X, y)": (lambda s: mtl.Tasks.grouped(X, Y[:, 0]), mtl.DataError, ["'task_ids'", "Tasks.grouped(X, y, task_ids)"]),
    "model('Lasso')": (lambda s: mtl.model("Lasso"), mtl.ModelError, ["'tasks'", "write model('Lasso', tasks"]),
    "cross_validate(cv=3)": (lambda s: PROBLEM.cross_validate(cv=3), mtl.ModelError, ["'lam'", "folds=5"]),
    "cross_check(tol='a')": (lambda s: PROBLEM.cross_check(tol="a"), mtl.SolverError, ["cross_check(tol='a')", "between 0 and 1"]),
    "problem.summary()": (lambda s: PROBLEM.summary(), AttributeError, ["'summary'", "problem.explain()"]),
    "problem.W": (lambda s: PROBLEM.W, AttributeError, ["problem.solve().W"]),
    "predict()": (lambda s: s.predict(), mtl.ModelError, ["'X'", "solution.predict(X)"]),
    "score(scoring=)": (lambda s: s.score(TASKS, scoring="r2"), mtl.ModelError, ["'scoring'", "metric="]),
    "solution.plot()": (lambda s: s.plot(), AttributeError, ["'plot'", "plot_weights()"]),
    "solution.summary()": (lambda s: s.summary(), AttributeError, ["'summary'", "print(solution)"]),
    "solution.w": (lambda s: s.w, AttributeError, ["'w'", "write solution.W"]),
    "report()": (lambda s: s.report(), mtl.ModelError, ["'file'", 'report("fit.html"']),
    "save()": (lambda s: s.save(), mtl.ModelError, ["'path'", 'save("fit.npz")']),
    # names
    "mtl.maximize": (lambda s: mtl.maximize, AttributeError, ["'minimize'"]),
    "mtl.nuclear_norm": (lambda s: mtl.nuclear_norm, AttributeError, ["'trace_norm'"]),
}  # fmt: skip


@for_each("typed", MISTAKES)
def test_a_natural_mistake_is_answered(typed, solved):
    run, kind, words = MISTAKES[typed]
    with pytest.raises(kind) as error:
        run(solved)
    assert type(error.value) is kind or issubclass(kind, mtl.MTLError)
    for word in words:
        assert word in str(error.value), str(error.value)


def test_what_numpy_may_do_gives_what_the_operators_give():
    """`np.sum(W)` and arrays on the left mean what they say."""
    A, two = np.ones((2, 4)), np.array(2.0)
    assert np.sum(W).text == W.sum().text and np.sum(W, axis=0).text == W.sum(axis=0).text
    assert np.dot(A, W).text == (A @ W).text and np.shape(W) == W.shape
    assert (A @ W).shape == (2, 3) and (two * W).text == (W * 2.0).text
    assert (np.ones((4, 3)) + W).shape == (4, 3) and (np.float64(1.0) - W).shape == W.shape
    assert (np.zeros((4, 3)) <= W).text == (np.zeros((4, 3)) <= W).text
    objective = LOSS + two * mtl.l1_norm(W)
    assert objective.text == (LOSS + 2 * mtl.l1_norm(W)).text
    with pytest.raises(mtl.ModelError, match="dtype"):
        np.sum(W, dtype=int)
