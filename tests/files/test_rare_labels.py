"""A label that few rows have, as a user meets it: what the report shows of it, and what may be done about it in a problem file."""

import csv
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.data.splits import fold_numbers
from tests.loops import for_each

RNG = np.random.default_rng(3)
N = 240
X = RNG.normal(size=(N, 3))
Z = X @ [1.0, -1.0, 0.5] + 0.7 * RNG.normal(size=N)
RARE, COMMON = np.quantile(Z, 0.94) < Z, X[:, 1] + RNG.normal(size=N) > 0


def problem_file(folder, labels, more=""):
    rows = "\n".join(f"{x[0]:.5f},{x[1]:.5f},{x[2]:.5f},{int(a)},{int(b)}" for x, a, b in zip(X, RARE, COMMON, strict=True))  # fmt: skip
    (folder / "t.csv").write_text(f"u,v,w,rare,common\n{rows}\n")
    other = [name for name in ("rare", "common") if name not in labels]
    path = folder / "p.toml"
    path.write_text(
        f'minimize = "logistic_loss(W, tasks) + lam * ridge(W)"\n[data]\npath = "t.csv"\nlabels = {json.dumps(labels)}\ndrop = {json.dumps(other)}\n'
        f"binary = true\n[split]\ntest_size = 0.4\n[weights]\nW = {{intercept = true}}\n[parameters]\nlam = 1.0\n[check]\ncross_check = false\n{more}"
    )
    return path


def solved(path, capsys, *options):
    assert main(["solve", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.by_default('labels4-[output]\\nmetrics = ["log_loss"]\\n-shown4')
@pytest.mark.parametrize(
    ("labels", "more", "shown"),
    [
        (["rare", "common"], "", ["average_precision"]),
        (["common"], "", []),
        (["rare"], '[validation]\nparameter = "lam"\nvalues = 3\nfolds = 3\nmetric = "f1"\n', ["f1"]),
        (["rare"], '[validation]\nparameter = "lam"\nvalues = 3\nfolds = 3\n', ["average_precision"]),
        (["rare"], '[output]\nmetrics = ["log_loss"]\n', ["log_loss"]),
    ],
)
def test_the_report_shows_scores_that_see_a_rare_label(labels, more, shown, tmp_path, capsys):
    path = problem_file(tmp_path, labels, more)
    assert list(solved(path, capsys)["scores"]["metrics"]) == shown
    assert main(["solve", str(path)]) == 0
    text = capsys.readouterr().out
    assert all(name in text.partition("Scores on")[2] for name in shown)


@pytest.mark.slow
def test_thresholds_are_the_best_on_unseen_folds(tmp_path, capsys):
    """Against scikit-learn's logistic regression on the same folds, and every cut of its scores tried."""
    plain = solved(problem_file(tmp_path, ["rare", "common"]), capsys)["scores"]
    path = problem_file(tmp_path, ["rare", "common"], '[thresholds]\nmetric = "f1"\nfolds = 4\n[solve]\ntol = 1e-9\n[output]\nsolution = "w.npz"\npredictions = "out.csv"\n')  # fmt: skip
    record = solved(path, capsys)["scores"]
    assert list(record["metrics"]) == ["average_precision", "f1"] and plain["thresholds"] is None
    assert (
        record["metrics"]["average_precision"] == plain["metrics"]["average_precision"]
    )  # which no threshold touches
    tasks, solution = load_problem(path).tasks_train, mtl.Solution.load(tmp_path / "w.npz")
    numbers = fold_numbers(tasks, 4)
    for i, y in enumerate(tasks.per_task(tasks.targets)):
        z = np.empty(len(y))
        for k in range(4):
            model = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(
                tasks.X[numbers != k], y[numbers != k]
            )
            z[numbers == k] = model.decision_function(tasks.X[numbers == k])
        best = max(f1_score(y > 0, z >= cut) for cut in z)
        assert f1_score(y > 0, z >= solution.thresholds[i]) == pytest.approx(best)
        assert record["thresholds"]["by_task"][tasks.task_names[i]] == pytest.approx(solution.thresholds[i])
    held = load_problem(path).tasks_test
    assert record["metrics"]["f1"]["mean"] == pytest.approx(solution.score(held, "f1"))
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert {row["rare"] for row in rows} == {"0", "1"}  # as the file has them
    np.testing.assert_array_equal([row["rare"] == "1" for row in rows], solution.predict(held.X)[:, 0] > 0)
    assert main(["solve", str(path)]) == 0
    assert "where f1 is best on 4" in capsys.readouterr().out
    path.write_text(path.read_text().replace('metric = "f1"', "beta = 3.0"))
    recall = solved(path, capsys)["scores"]["thresholds"]
    assert recall["metric"] == "the F-score of beta 3"  # which labels more rows +1
    assert recall["by_task"]["rare"] <= record["thresholds"]["by_task"]["rare"]


@pytest.mark.slow
def test_a_rare_label_is_found_by_what_mtldsl_new_writes(tmp_path, capsys):
    """Nobody has one row in sixteen as more probable than not; with its threshold some are found."""
    problem_file(tmp_path, ["rare"])
    assert main(["new", str(tmp_path / "t.csv"), "--labels", "rare,common", "--print"]) == 0
    text = capsys.readouterr().out
    assert '[thresholds]\nmetric = "f1"' in text and 'metrics = ["average_precision", "f1"]' in text
    (tmp_path / "n.toml").write_text(text)
    assert solved(tmp_path / "n.toml", capsys, "--no-check")["scores"]["metrics"]["f1"]["mean"] > 0.5


@for_each(
    ("more", "says"),
    [
        ('[thresholds]\nmetric = "roc_auc"\n', "metric must be one of 'f1', 'accuracy'"),
        ('[thresholds]\nmetric = "accuracy"\nbeta = 2.0\n', 'beta is of metric = "f1"'),
        ("[thresholds]\nbeta = 0\n", "beta must be a number > 0"),
        ("[thresholds]\ncut = 0.5\n", "[thresholds] has no key 'cut'"),
        ("[thresholds]\n", "squared_loss does not score labels -1 and +1 one by one"),
    ],
)
def test_thresholds_that_cannot_be_are_refused_before_the_solve(more, says, tmp_path, capsys):
    path = problem_file(tmp_path, ["rare"], more)
    if "squared" in says:
        path.write_text(path.read_text().replace("logistic_loss", "squared_loss"))
    assert main(["solve", str(path)]) == 2
    assert says in capsys.readouterr().err
