"""What a report says of the weights of task similarities, against computations of its own; also with a thousand tasks."""

import json
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.learned_report import SETTINGS as REPORT
from mtldsl.cli.problem_files.problem_file import ProblemFile
from mtldsl.cli.problem_files.toml_parser import TomlFile
from mtldsl.cli.record import describe_run, plain
from mtldsl.cli.record_parts import SETTINGS as RECORD
from mtldsl.cli.run_report import run_report, to_text
from tests.models import with_weights

UP = {"a": "x", "b": "x", "c": "y", "d": "y", "x": "top", "y": "top"}


def data(names, rows=16, seed=0):
    """Tasks that are alike in pairs, one label of each class at least."""
    rng = np.random.default_rng(seed)
    X, ids = rng.normal(size=(rows * len(names), 5)), np.repeat(np.arange(len(names)), rows)
    weights = rng.normal(size=(len(names) // 2, 5)) + 0.7
    y = np.where(np.sum(X * weights[ids // 2], axis=1) + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    y[::rows], y[1::rows] = 1.0, -1.0
    return mtl.Tasks.grouped(X, y, np.asarray(names)[ids])


TASKS, W = with_weights(data(list("abcd")))


def run(problem, tasks=TASKS, **options):
    """(solution, record, text)"""
    file = ProblemFile(
        file=TomlFile("cities.toml", ""),
        path=Path("cities.toml"),
        title="",
        problem=problem,
        tasks_train=tasks,
    )
    solution = problem.solve(**options)
    record = describe_run(file, solution, None)
    return solution, record, to_text(run_report(record))


def model(similarities, theta=None, subject_to=(), **options):
    penalty = mtl.mkl_norm(W, similarities, theta, **options)
    return mtl.minimize(mtl.hinge_loss(W, TASKS) + penalty, list(subject_to))


def test_weights_by_name_and_the_samples_that_count(tmp_path):
    solution, record, text = run(model([mtl.similarities.tree(UP)], p=2))
    (found,) = record["solution"]["similarities"]
    assert found["names"] == ["top", "x", "y", *"abcd"] and found["how"] == "eliminated"
    np.testing.assert_array_equal(found["weights"], solution.kernel_weights.values)
    stored = mtl.Solution.load(solution.save(tmp_path / "w.npz")).kernel_weights
    assert found["names"] == list(stored.names) and list(found["weights"]) == list(stored.values)
    assert found["zeros"] == 0 and (found["p"], found["radius"]) == (2.0, 1.0)
    # samples on the right side of the margin have no multiplier, those within have one
    z = np.concatenate([TASKS.inputs[t] @ solution.W[:, t] for t in range(4)])
    margins = TASKS.targets * z
    count = found["support"]["count"]
    assert np.sum(margins < 1 - 1e-4) <= count <= np.sum(margins < 1 + 1e-4)
    assert f"{count} of 64 samples have a multiplier that is not zero" in text
    lines = text[text.index("Weights of task similarities") :].splitlines()[1:8]
    shown = [float(line.split()[1]) for line in lines]
    assert shown == sorted(shown, reverse=True) and lines[0].endswith("█" * REPORT.bar_characters)
    falling = np.argsort(-np.asarray(found["weights"]), kind="stable")
    assert [line.split()[0] for line in lines] == [found["names"][m] for m in falling]


def test_how_alike_the_tasks_are_by_the_sum_of_the_indicators():
    _, record, text = run(model([mtl.similarities.tree(UP)], p=2))
    (found,) = record["solution"]["similarities"]
    theta = dict(zip(found["names"], found["weights"], strict=True))
    K = np.full((4, 4), theta["top"])
    K[:2, :2] += theta["x"]
    K[2:, 2:] += theta["y"]
    K += np.diag([theta[name] for name in "abcd"])
    (tasks,) = found["tasks"]
    R = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    np.testing.assert_allclose(tasks["similarity"], K, rtol=1e-12)
    np.testing.assert_allclose(tasks["correlation"], R, rtol=1e-12)
    pairs = sorted(((R[i, j], "abcd"[i], "abcd"[j]) for i in range(4) for j in range(i)), reverse=True)
    assert [each["correlation"] for each in tasks["most"]] == pytest.approx([r for r, *_ in pairs[:3]])
    assert [each["correlation"] for each in tasks["least"]] == pytest.approx([r for r, *_ in pairs[:-4:-1]])
    best = tasks["most"][0]
    said = f"most alike   {' – '.join(best['pair'])} {best['correlation']:+.2f}"
    assert said in text and "least alike" in text


@pytest.mark.slow
def test_where_the_weights_come_from_is_said():
    theta, both = mtl.KernelWeights(name="eta"), [mtl.similarities.union(), mtl.similarities.identity()]
    _, record, text = run(model(both, theta, [mtl.p_norm(theta, 1.5) <= 2]))
    expected = {"kind": "weights", "axis": "task similarities", "shape": [2]}
    assert record["model"]["learned"] == {"eta": expected}
    assert record["solution"]["learned"] == {}  # no matrix
    assert "η (2, weights of task similarities)" in text and "learned beside W within ‖η‖₁.₅ ≤ 2" in text
    _, _, text = run(model(both, p=2))
    assert "the best within ‖θ‖₂ ≤ 1, of mkl_norm(W, [union(), identity()], p=2)" in text
    _, _, text = run(model(both, p=np.inf))
    assert "all 1, since p = ∞ in mkl_norm(W, [union(), identity()], p=inf)" in text
    _, _, text = run(model(both, np.array([0.5, 2.0])))
    assert "given in mkl_norm(W, [union(), identity()], array(2))" in text and "identity    2" in text


def test_weights_that_are_zero_are_counted_and_have_no_bar():
    theta = np.array([1.0, 0.5, 0.0, 1e-9, 0.0])
    _, record, text = run(model([mtl.similarities.union(), mtl.similarities.individual()], theta))
    assert record["solution"]["similarities"][0]["zeros"] == 3 and "zero: 3 of 5" in text
    part = text[text.index("Weights of task similarities") : text.index("zero: 3 of 5")]
    assert "union" in part and "  a  " in part and "  b  " not in part


def test_every_view_has_its_own_similarity():
    views = [
        mtl.similarities.union(columns=[0, 1]),
        mtl.similarities.identity(columns=[0, 1]),
        mtl.similarities.identity(columns=[2, 3, 4]),
    ]
    _, record, text = run(model(views, p=2))
    first, second = record["solution"]["similarities"][0]["tasks"]
    theta = record["solution"]["similarities"][0]["weights"]
    np.testing.assert_allclose(first["similarity"], theta[0] + theta[1] * np.eye(4), rtol=1e-12)
    np.testing.assert_allclose(second["correlation"], np.eye(4))
    assert f"most alike, by {first['view']}" in text


def test_a_task_in_no_group_is_like_none():
    """Its weights are zero, and it has no correlations."""
    _, record, text = run(model([mtl.similarities.from_kernel(np.diag([1.0, 1.0, 1.0, 0.0]))], p=1))
    (tasks,) = record["solution"]["similarities"][0]["tasks"]
    pairs = [one["pair"] for key in ("most", "least") for one in tasks[key]]
    assert pairs and not any("d" in pair for pair in pairs) and "nan" not in text
    json.dumps(plain(record), allow_nan=False)


def test_a_term_with_coefficient_zero_and_one_task():
    theta = mtl.KernelWeights()
    objective = (
        mtl.hinge_loss(W, TASKS) + mtl.ridge(W) + 0.0 * mtl.mkl_norm(W, [mtl.similarities.union()], theta)
    )
    _, record, text = run(mtl.minimize(objective, [mtl.p_norm(theta, 2) <= 1]))
    assert record["solution"]["similarities"] == [] and "Weights of task similarities" not in text
    X = np.random.default_rng(0).normal(size=(8, 2))
    alone, V = with_weights(mtl.Tasks.shared(X, np.resize([1.0, -1.0, -1.0], (8, 1))))
    _, record, text = run(
        mtl.minimize(mtl.hinge_loss(V, alone) + mtl.mkl_norm(V, [mtl.similarities.union()], p=2)), alone
    )
    assert "most alike" not in text and "union  1  " in text


@pytest.mark.slow
def test_many_tasks_are_shown_by_the_largest_weights():
    n = RECORD.correlated_tasks + 20
    tasks, U = with_weights(data([f"t{k}" for k in range(n)], rows=4))
    up = np.concatenate([n + np.arange(n) // 10, np.full(n // 10, n + n // 10), [-1]])
    problem = mtl.minimize(mtl.hinge_loss(U, tasks) + mtl.mkl_norm(U, [mtl.similarities.tree(up)], p=2))
    _, record, text = run(problem, tasks, tol=1e-2)
    (found,) = record["solution"]["similarities"]
    assert len(found["weights"]) == n + n // 10 + 1 and len(found["tasks"][0]["most"]) == 3
    assert found["tasks"][0]["correlation"] is None
    part = text[text.index("Weights of task similarities") :]
    assert f"and {n + n // 10 + 1 - 16} smaller ones" in part and part.count("\n") < 30
