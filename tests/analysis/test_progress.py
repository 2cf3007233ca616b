"""Long work says how far it is: on standard error where asked for, to the logger always, and never on standard output."""

import logging
import sys

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError
from mtldsl.estimators import MultiTaskRegressorCV
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))
Y = X[:, :2] @ RNG.normal(size=(2, 2)) + RNG.normal(size=(40, 2))


@pytest.fixture
def stated():
    tasks = mtl.Tasks.shared(X, Y)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)), lam


WORK = {
    "choosing lam, fold": lambda problem, lam, **o: problem.cross_validate(
        lam, [10.0, 1.0], folds=3, refit=False, **o
    ),
    "sample": lambda problem, lam, **o: problem.bootstrap(3, **o),
    "pair of halves": lambda problem, lam, **o: problem.stability_selection(lam, [10.0, 1.0], n=6, **o),
}


@for_each("what", WORK)
@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.process)])
def test_a_line_a_step_where_there_is_no_terminal(what, n_jobs, stated, capsys, caplog):
    caplog.set_level(logging.DEBUG, "mtldsl")
    WORK[what](*stated, n_jobs=n_jobs, progress=True)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith(what)]
    assert out == "" and [line.split(":")[0] for line in lines] == [f"{what} {k} of 3" for k in (1, 2, 3)]
    told = [r.getMessage() for r in caplog.records if r.name == "mtldsl" and r.getMessage().startswith(what)]
    assert told == lines


@for_each("what", WORK)
def test_nothing_is_said_unasked(what, stated, capsys):
    WORK[what](*stated)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ModelError, match="progress='yes'"):
        WORK[what](*stated, progress="yes")


def test_a_fold_says_where_it_is_best(stated, capsys):
    problem, lam = stated
    found = problem.cross_validate(lam, [10.0, 1.0], folds=3, metric="mse", refit=False, progress=True)
    for line, scores in zip(capsys.readouterr().err.splitlines(), found.scores, strict=True):
        k = int(np.argmin(scores))
        assert f"best at lam = {found.points[k][0]:.4g} (mse {scores[k]:.4g}), 2 values" in line


def test_a_bar_in_a_terminal(stated, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    problem, lam = stated
    problem.cross_validate(lam, [10.0, 1.0], folds=3, refit=False, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "fold 1 of 3: best" not in err and "fold" in err


def test_several_starts_are_told_of(capsys, caplog):
    caplog.set_level(logging.DEBUG, "mtldsl")
    tasks = mtl.Tasks.shared(X, Y)
    solution = mtl.model("NC-CMTL", tasks, mu=1.0).solve(starts=3, tol=1e-4, verbose=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("start ")]
    for line, row in zip(lines, solution.starts, strict=True):
        assert line.startswith(f"start {row['start'] + 1} of 3: {row['status']}, objective {row['objective']:.6g}")  # fmt: skip
    assert sum(record.getMessage().startswith("start ") for record in caplog.records) == 3


def test_estimators_tell_too(capsys):
    quiet = MultiTaskRegressorCV(n_values=4, cv=3).fit(X, Y)
    assert capsys.readouterr().err == ""
    loud = MultiTaskRegressorCV(n_values=4, cv=3, verbose=1).fit(X, Y)
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == [f"choosing parameters, fold {k} of 3" for k in (1, 2, 3)]  # fmt: skip
    assert (loud.coef_ == quiet.coef_).all() and loud.best_value_ == quiet.best_value_
    with pytest.raises(ModelError, match="verbose='a'"):
        MultiTaskRegressorCV(verbose="a").fit(X, Y)
