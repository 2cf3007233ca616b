"""The scores of a report: every metric that a file learns for, against scikit-learn, beside the better constant."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.cli.record import describe_run
from mtldsl.cli.run_report import run_report, to_text

FILE = """
minimize = "l21_norm(W) + 5 * structured_hinge(W, tasks, metric={metric})"
[data]
path = "rare.csv"
task = "site"
labels = "y"
[split]
test_size = 0.5
random_state = 0
[weights]
W = {{ intercept = true }}
"""


@pytest.fixture
def written(tmp_path):
    """metric -> the path of a problem file over three tasks of 60 rows, about a quarter of them positive"""

    def write(metric, model=FILE):
        rng = np.random.default_rng(5)
        X = rng.normal(size=(180, 3))
        y = np.where(X @ [1.0, -1.0, 0.0] + 0.5 * rng.normal(size=180) > 1.0, 1, -1)
        site = np.repeat(["north", "east", "west"], 60)
        rows = [f"{s},{a},{b},{c},{label}" for s, (a, b, c), label in zip(site, X, y, strict=True)]
        (tmp_path / "rare.csv").write_text("\n".join(["site,a,b,c,y", *rows]))
        path = tmp_path / "rare.toml"
        path.write_text(model.format(metric=metric))
        return path

    return write


def solved(path):
    file = load_problem(path)
    solution = file.problem.solve()
    tasks = file.tasks_test
    z = [Xi @ w + b for Xi, w, b in zip(tasks.inputs, solution.W.T, solution.intercept, strict=True)]
    return describe_run(file, solution, None), z, tasks.per_task(tasks.targets)


def test_the_losss_metric_stands_beside_the_better_constant(written):
    record, z, y = solved(written("FScore()"))
    rows = record["scores"]["tasks"]
    for row, zi, yi in zip(rows, z, y, strict=True):
        assert row["score"] == pytest.approx(np.mean((zi >= 0) == (yi > 0)))
        found = row["metrics"]["FScore()"]
        assert found["score"] == pytest.approx(f1_score(yi > 0, zi >= 0))
        assert found["guess"] == pytest.approx(f1_score(yi > 0, np.full(len(yi), True)))  # "all -1" has 0
        assert 0 < found["guess"] < found["score"]
    means = record["scores"]["metrics"]["FScore()"]
    assert means["mean"] == pytest.approx(np.mean([row["metrics"]["FScore()"]["score"] for row in rows]))
    assert means["tasks"] == 3 and record["scores"]["metrics_not_measured"] == []
    text = to_text(run_report(record), width=80)
    header = next(line for line in text.splitlines() if "FScore()" in line and "accuracy" in line)
    assert header.split() == ["task", "rows", "accuracy", "majority", "FScore()", "constant"]
    average = next(line for line in text.splitlines() if line.startswith("  average"))
    assert average.split()[-2:] == [f"{means['mean']:.3f}", f"{means['mean_guess']:.3f}"]


def test_a_metric_a_task_has_a_column_each(written):
    record, z, y = solved(written("[FScore(), ROCArea(), FScore()]"))
    own = [list(row["metrics"]) for row in record["scores"]["tasks"]]
    assert own == [["FScore()"], ["ROCArea()"], ["FScore()"]]
    area = record["scores"]["tasks"][1]["metrics"]["ROCArea()"]
    assert area == {"score": pytest.approx(roc_auc_score(y[1] > 0, z[1])), "guess": 0.5}
    counts = {name: means["tasks"] for name, means in record["scores"]["metrics"].items()}
    assert counts == {"FScore()": 2, "ROCArea()": 1}
    assert record["scores"]["metrics"]["ROCArea()"]["mean"] == area["score"]
    text = to_text(run_report(record), width=80)
    second = next(line for line in text.splitlines() if line.startswith("  east"))
    assert second.split()[-4:] == ["-", "-", f"{area['score']:.3f}", "0.500"]


def test_what_cannot_be_measured_on_the_held_out_rows_is_said(written):
    # a count that the 48 training rows of a task have, and the 12 held out have not
    model = FILE.replace("test_size = 0.5", "test_size = 0.2").replace("{{ intercept = true }}", "{{}}")
    path = written("PrecisionAt(k=40)", model)
    file = load_problem(path)
    record = describe_run(file, file.problem.solve(tol=1e-3), None)
    assert record["scores"]["metrics"] == {} and record["scores"]["tasks"][0]["metrics"] == {}
    (reason,) = record["scores"]["metrics_not_measured"]
    assert "PrecisionAt(k=40)" in reason and "the task has 12" in reason
    assert "not measured: " in to_text(run_report(record), width=80)
