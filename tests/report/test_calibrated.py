"""What a report says of noise levels, several starts and first-order conditions, against computations of its own."""

from dataclasses import replace

import numpy as np
import pytest

from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.cli.record import describe_run, plain
from mtldsl.cli.run_report import run_report, to_text, verdict
from tests.loops import for_each

pytestmark = pytest.mark.usefixtures("a_hundred_columns")

FILE = """
title = "Tasks with noise of their own"
model = "NC-CMTL"
[data]
path = "towns.csv"
task = "town"
labels = "price"
[parameters]
mu = 4.0
"""
NOISE = {"calm": 0.1, "fair": 0.5, "loud": 2.0, "wild": 8.0}


@pytest.fixture
def written(tmp_path):
    """text -> the path of a problem file over four towns of 30 houses whose prices have noise of different size"""

    def write(text=FILE, noise=NOISE, houses=30, d=5):
        rng = np.random.default_rng(3)
        w = rng.normal(size=d)
        rows = [",".join(["town", *(f"x{j}" for j in range(d)), "price"])]
        for town, level in noise.items():
            X = rng.normal(size=(houses, d))
            y = X @ w + level * rng.normal(size=houses)
            rows += [f"{town},{','.join(map(str, x))},{v}" for x, v in zip(X, y, strict=True)]
        (tmp_path / "towns.csv").write_text("\n".join(rows))
        path = tmp_path / "towns.toml"
        path.write_text(text)
        return path

    return write


def solved(path, **options):
    file = load_problem(path)
    return file, file.problem.solve(**{**file.solve, **options})


def told(file, solution):
    """What is recorded of a solution, and the text that shows it."""
    record = describe_run(file, solution, None)
    return record, to_text(run_report(record))


def section_of(text):
    return text[text.index("Calibration\n") :]


def test_weights_and_noise_levels_are_those_of_the_residuals(written):
    """The section names the noisiest first."""
    file, solution = solved(written())
    record, text = told(file, solution)
    found, tasks = record["solution"]["calibration"], file.tasks_train
    assert found["loss"] == "square_root_loss(W, tasks)"
    assert [row["task"] for row in found["tasks"]] == list(NOISE)
    columns = zip(tasks.inputs, tasks.per_task(tasks.targets), solution.W.T, strict=True)
    for row, (X, y, w) in zip(found["tasks"], columns, strict=True):
        norm = np.linalg.norm(X @ w - y)
        assert row["noise_level"] == pytest.approx(norm / np.sqrt(len(y)), rel=1e-12)
        assert row["weight"] == pytest.approx(1.0 / norm, rel=1e-12) and row["exact"] is False
        assert row["noise_level"] == pytest.approx(NOISE[row["task"]], rel=0.5)
    section = section_of(text)
    places = [section.index(town) for town in ("wild", "loud", "fair", "calm")]
    assert places == sorted(places) and "the more noise a task has, the less" in section
    assert "fitted exactly" not in section and "..." not in section
    assert record["solution"]["starts"] is None and "\nStarts\n" not in text  # of one start


def test_what_a_model_has_not_is_not_shown(written):
    """A squared loss has nothing to calibrate, and one task no other to be compared with."""
    for word in ("sum_of_squares", "squared_loss"):
        model = f'minimize = "{word}(W, tasks) + mu * log_rank(W, eps=0.01)"'
        record, text = told(*solved(written(FILE.replace('model = "NC-CMTL"', model))))
        assert record["solution"]["calibration"] is None and "Calibration" not in text
    record, text = told(*solved(written(FILE + "eps = 0.0\n", noise={"calm": 0.1})))
    assert record["solution"]["calibration"] is None
    assert record["solution"]["weights"]["W"]["smoothing"] is None and "√ε" not in text


def test_many_tasks_are_shown_by_their_ends(written):
    record, text = told(*solved(written(noise={f"t{i}": 0.1 + 0.2 * i for i in range(20)})))
    section = section_of(text)
    assert len(record["solution"]["calibration"]["tasks"]) == 20
    rows = [line for line in section.splitlines() if line.strip().startswith("t")]
    assert len(rows) == 10  # 8 tasks, a heading, a note
    assert "the 4 tasks with the most noise and the 4 with the least, of 20" in section


def test_a_task_that_is_fitted_exactly_is_said(written):
    """A residual is zero, and the weight no number to compare."""
    file, solution = solved(written())
    weights, levels = solution.task_weights.copy(), solution.noise_levels.copy()
    weights[0], levels[0] = np.inf, 0.0
    record, text = told(file, replace(solution, task_weights=weights, noise_levels=levels))
    row = next(line for line in text.splitlines() if line.strip().startswith("calm") and "fitted" in line)
    assert row.split() == ["calm", "0", "fitted", "exactly"]
    assert plain(record)["solution"]["calibration"]["tasks"][0]["weight"] is None


def test_every_start_has_a_row_and_the_best_is_marked(written):
    file, solution = solved(written(FILE + "[solve]\nstarts = 3\nrandom_state = 5\n"))
    record, text = told(file, solution)
    found = record["solution"]["starts"]
    assert [row["start"] for row in found["rows"]] == [0, 1, 2] and found["certified"] == 3
    assert sum(row["best"] for row in found["rows"]) == 1
    assert "solver's own" in text and "random 2" in text and text.count("stationary, kept") == 1
    assert "3 of 3 starts ended at a stationary point, all with the same objective." in text
    rows = [dict(row) for row in solution.starts]
    rows[0] |= {"objective": 2.0, "best": False}
    rows[1] |= {"objective": 1.0, "best": True}
    rows[2] |= {"status": "time_limit", "objective": 0.5, "best": False}
    text = " ".join(told(file, replace(solution, starts=rows))[1].split())
    assert "2 of 3 starts ended at a stationary point, with 2 different objectives" in text
    assert "the highest lies 1.0e+00 of its size above the lowest" in text and "time limit" in text
    stalled = [row | {"status": "stalled"} for row in rows]
    text = told(file, replace(solution, starts=stalled))[1]
    assert "No start led to a point that is proven stationary." in text


@pytest.mark.slow
@for_each("eps", [0.0, 0.01])
def test_what_is_missing_of_every_condition(written, eps):
    record, text = told(*solved(written(FILE + f"eps = {eps}\n")))
    conditions = record["solution"]["stationarity"]["conditions"]
    assert record["solution"]["stationarity"]["residual"] == max(conditions.values()) <= 1e-6
    assert set(conditions) >= {"square_root_loss(W, tasks)", "balance"}
    assert ("mu * log_rank(W, eps=0.0)" in conditions) == (eps == 0)
    flat = " ".join(text.split())
    for name in conditions:
        assert f"at {'their sum over all terms' if name == 'balance' else name}" in flat
    assert "what is missing of the first-order conditions" in flat and "changing" not in flat
    touching = "the convex model that touches the objective here from above is at its minimum"
    assert f"Proven: {touching if eps else 'a stationary point to the accuracy asked for.'}" in flat
    assert verdict(record).plain.startswith("stationary (no global certificate)")


def test_a_smooth_model_has_a_gradient(written):
    record, text = told(*solved(written(FILE.replace("NC-CMTL", "NC-MTL"))))
    proof = record["solution"]["stationarity"]
    assert proof["conditions"] is None and proof["gradient"] == proof["residual"]
    assert f"gradient           {proof['gradient']:.1e}, asked for 1e-06" in text
    assert "profile gradient" not in text


def test_singular_values_are_counted_above_the_smoothing(written):
    file, solution = solved(written(FILE.replace("mu = 4.0", "mu = 40.0\neps = 4.0")))
    record, text = told(file, solution)
    above = int(np.sum(np.linalg.svd(solution.W, compute_uv=False) > 2.0))
    assert record["solution"]["weights"]["W"]["smoothing"] == {"level": 2.0, "count": above}
    assert 0 <= above < 4
    assert f"{above} of 4 above √ε = 2, under which the penalty is smoothed" in text
