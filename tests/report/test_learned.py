"""What a report says of learned matrices, against computations of its own; and of models that are not convex, in plain words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.cli import record_parts as described
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.cli.record import describe_file, describe_run, plain
from mtldsl.cli.record_parts import describe_learned, strongest_correlations
from mtldsl.cli.run_report import run_report, to_text, verdict
from mtldsl.solution.learned import LearnedMatrix
from tests.loops import for_each
from tests.pairs import pairwise_cases

pytestmark = pytest.mark.usefixtures("a_hundred_columns")

FETR = """
title = "Houses"
minimize = "sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=2)"
subject_to = ["Sigma1 >> 0.1", "Sigma1 << 3", "Sigma2 >> 0.1", "Sigma2 << 3"]
[data]
path = "houses.csv"
task = "city"
labels = "price"
[split]
test_size = 0.25
random_state = 0
[learned]
Sigma1 = "FeaturePrecision"
Sigma2 = "TaskPrecision"
"""
MTRL = (
    FETR.replace("matrix_normal(W, Sigma1, Sigma2, eta=2)", "2 * task_covariance_norm(W, Omega)")
    .replace('["Sigma1 >> 0.1", "Sigma1 << 3", "Sigma2 >> 0.1", "Sigma2 << 3"]', '["Omega.trace() <= 1"]')
    .replace('Sigma1 = "FeaturePrecision"\nSigma2 = "TaskPrecision"', 'Omega = "TaskCovariance"')
)


@pytest.fixture
def written(tmp_path):
    """text -> the path of a problem file over four cities of 40 houses; prices in two of them oppose the others'"""
    rng = np.random.default_rng(2)
    names = ["rooms", "area", "age", "noise", "garden"]
    weights = np.outer([2.0, 1.0, -1.0, 0.5, 0.0], [1.0, 1.0, -1.0, -1.0]) + 0.2 * rng.normal(size=(5, 4))
    rows = [",".join(["city", *names, "price"])]
    for w, city in zip(weights.T, ["Oslo", "Bergen", "Bodo", "Narvik"], strict=True):
        X = rng.normal(size=(40, 5))
        y = X @ w + 0.5 * rng.normal(size=40)
        rows += [f"{city},{','.join(map(str, x))},{v}" for x, v in zip(X, y, strict=True)]
    (tmp_path / "houses.csv").write_text("\n".join(rows))

    def write(text=FETR):
        (tmp_path / "houses.toml").write_text(text)
        return tmp_path / "houses.toml"

    return write


def solved(path, **options):
    file = load_problem(path)
    return file, file.problem.solve(**options)


@for_each(
    "kind, size, entries",
    pairwise_cases(["precision", "covariance"], [(2, 2), (9, 3), (30, 30)], [4_000_000, 20]),
)
def test_the_strongest_pairs_of_the_dense_matrix(monkeypatch, kind, size, entries):
    side, rank = size
    # all rows at once, or few
    monkeypatch.setattr(described, "SETTINGS", replace(described.SETTINGS, slab_entries=entries))
    rng = np.random.default_rng(side)
    basis = np.linalg.qr(rng.normal(size=(side, rank)))[0]
    names = tuple(f"n{i}" for i in range(side))
    spectral = SpectralMatrix(basis, rng.uniform(0.1, 5.0, rank), 2.0)
    found = strongest_correlations(LearnedMatrix("S", "tasks", kind, names, spectral), 5)
    dense = spectral.dense() if kind == "covariance" else np.linalg.inv(spectral.dense())
    deviations = np.sqrt(dense.diagonal())
    correlation = dense / np.outer(deviations, deviations)
    rows, columns = np.triu_indices(side, 1)
    expected = sorted(abs(correlation[rows, columns]), reverse=True)[:5]
    assert [abs(pair["correlation"]) for pair in found] == pytest.approx(expected, abs=1e-12)
    for pair in found:
        i, j = (names.index(name) for name in pair["pair"])
        assert i < j and pair["correlation"] == pytest.approx(correlation[i, j], abs=1e-12)


def test_constant_features_have_no_correlations():
    """Features without variance and multiples of the identity have no correlations."""
    spectral = SpectralMatrix(np.array([[0.6], [0.8], [0.0]]), np.ones(1), 0.0)
    singular = LearnedMatrix("D", "features", "covariance", ("a", "b", "c"), spectral)
    (found,) = strongest_correlations(singular, 5)
    assert found["pair"] == ["a", "b"] and found["correlation"] == pytest.approx(1.0)
    identity = SpectralMatrix.multiple_of_identity(3.0, 4)
    assert strongest_correlations(LearnedMatrix("S", "tasks", "precision", tuple("abcd"), identity), 5) == []


def test_spectrum_and_bounds_are_those_of_the_solution(written, monkeypatch):
    """Large matrices are their eigenvalues alone."""
    file, solution = solved(written())
    record = describe_learned(file.problem, solution)
    assert list(record) == ["Sigma1", "Sigma2"]
    for name, axis, names in (
        ("Sigma1", "features", file.tasks_train.feature_names),
        ("Sigma2", "tasks", file.tasks_train.task_names),
    ):
        values = np.linalg.eigvalsh(np.asarray(solution.learned[name]))
        matrix = record[name]
        assert (matrix["kind"], matrix["axis"], matrix["names"]) == ("precision", axis, list(names))
        np.testing.assert_allclose(matrix["eigenvalues"], values, rtol=1e-9)
        assert matrix["condition"] == pytest.approx(values[-1] / values[0], rel=1e-9)
        assert (matrix["lower"], matrix["upper"], matrix["trace_bound"]) == (0.1, 3.0, None)
        assert matrix["at_upper"] == np.sum(np.isclose(values, 3.0, rtol=1e-8)) > 0
        assert matrix["at_lower"] == np.sum(np.isclose(values, 0.1, rtol=1e-8))
        np.testing.assert_array_equal(matrix["matrix"], solution.learned[name].precision)
        np.testing.assert_array_equal(matrix["correlation"], solution.learned[name].correlation)
        strongest = matrix["strongest"][0]
        i, j = (names.index(member) for member in strongest["pair"])
        assert strongest["correlation"] == pytest.approx(solution.learned[name].correlation[i, j])
    monkeypatch.setattr(described, "SETTINGS", replace(described.SETTINGS, matrix_rows=4))
    large, small = describe_learned(file.problem, solution).values()
    assert large["matrix"] is large["correlation"] is None
    assert len(large["eigenvalues"]) == len(large["strongest"]) == 5 and np.shape(small["matrix"]) == (4, 4)


def test_a_covariance_of_bounded_trace(written):
    """Prices in two of the cities oppose those in the others."""
    file, solution = solved(written(MTRL))
    assert solution.status == "optimal"
    matrix = describe_learned(file.problem, solution)["Omega"]
    assert (matrix["lower"], matrix["upper"], matrix["trace_bound"]) == (None, None, 1.0)
    assert (matrix["at_lower"], matrix["at_upper"]) == (None, None)
    assert matrix["trace"] == pytest.approx(1.0) and matrix["rank"] <= 4
    signs = {frozenset(pair["pair"]): np.sign(pair["correlation"]) for pair in matrix["strongest"]}
    assert signs[frozenset(("Oslo", "Bodo"))] == -1
    text = to_text(run_report(describe_run(file, solution, None)))
    assert "Ω (4 × 4, covariance of tasks)" in text and "covariance of 4 tasks, trace 1 of 1" in text
    assert "Proven: no weights that meet the constraints have an objective below" in text


def test_a_term_with_coefficient_zero_learns_nothing(written):
    text = FETR.replace("matrix_normal", "ridge(W) + lam * matrix_normal") + "[parameters]\nlam = 0.0\n"
    file, solution = solved(written(text))
    record = describe_run(file, solution, None)
    assert record["solution"]["learned"] == {} and list(record["model"]["learned"]) == ["Sigma1", "Sigma2"]
    assert "Learned matrices" not in to_text(run_report(record))


TOLD = (
    "[2 tr(Σ₁ W Σ₂ Wᵀ) − (m log|Σ₁| + d log|Σ₂|)]",
    "Σ₁ ⪰ 0.1 I Σ₁ ⪯ 3 I",
    "over W (5 × 4) Σ₁ (5 × 5, precision of features) Σ₂ (4 × 4, precision of tasks)",
    "a stationary point, no global certificate",
    "over the weights alone",
    "over Sigma1 alone",
    "over all matrices together",
    "lower bound -",
    "Proven: changing the weights alone, Sigma1 alone, Sigma2 alone or all matrices together lowers the objective by no more than",
    "Another point may be lower. It is proven only that no point lies below -",
    "Cross-check of every block against an independent formulation in cvxpy",
    "The two agree on every block.",
    "of 5 at 0.1, ",
    "compare correlations, not sizes",
    "stationary (no global certificate) · residual ",
    " · block cross-check agrees · ",
)


def test_the_report_of_a_stationary_point(written, capsys, monkeypatch):
    """`--quiet` keeps one line, however narrow the terminal."""
    path = written()
    assert main(["solve", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert [part for part in TOLD if part not in out] == []
    assert "Not to the accuracy" not in out and "relative gap" not in out
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["solve", str(path), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and out.startswith("stationary (no global certificate) · residual ")


@pytest.mark.slow
def test_the_numbers_of_the_certificate(written):
    file, solution = solved(written())
    record = describe_run(file, solution, None)
    proof = record["solution"]["stationarity"]
    assert record["solution"]["certified"] and record["solution"]["status"] == "stationary"
    assert proof["residual"] == solution.stationarity.residual == proof["gradient"] <= 1e-6
    assert list(proof["decreases"]) == ["weights", "Sigma1", "Sigma2", "matrices"]
    text = to_text(run_report(record))
    assert f"{solution.objective:.10g}" in text and f"{solution.dual_bound:.10g}, for every point" in text
    assert f"profile gradient   {proof['residual']:.1e}, asked for 1e-06" in text
    # where a loss is not smooth, there is no gradient to speak of
    text_of_file = FETR.replace("eta=2)", "eta=2) + 0.1 * absolute_loss(W, tasks)")
    file, solution = solved(written(text_of_file))
    text = to_text(run_report(describe_run(file, solution, None)))
    assert "profile gradient" not in text and "what is missing of the first-order conditions" in text


def test_unknown_bounds_and_decreases_are_said(written):
    file, solution = solved(written())
    proof = replace(solution.stationarity, decreases={"weights": np.inf, "Sigma1": 0.0})
    unknown = replace(solution, dual_bound=-np.inf, stationarity=proof)
    text = to_text(run_report(describe_run(file, unknown, None)))
    assert "lower bound        none" in text and "Nothing is proven of all points." in text
    assert "at most unknown over the weights alone" in text
    assert "Proven: a stationary point to the accuracy asked for." in text


def test_not_stationary_is_exit_code_1(written, capsys):
    path = written(FETR + '[solve]\nsolver = "alternating"\nmethod = "block"\nmax_iter = 1\n')
    assert main(["solve", str(path), "--no-check"]) == 1
    out = capsys.readouterr().out
    assert "Not to the accuracy asked for: iteration limit." in out and "no global certificate" not in out
    assert "Proven: " not in out and "NOT certified (iteration limit) · residual " in out


def test_the_json_of_every_block(written, capsys):
    assert main(["check", str(written()), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    check = record["cross_check"]
    assert check["kind"] == "blocks" and check["agrees"] and check["disagreements"] == []
    assert [row["name"] for row in check["blocks"]] == ["weights", "Sigma1", "Sigma2"]
    for row in check["blocks"]:
        assert row["agrees"] and abs(row["difference"]) <= row["allowed"] and row["seconds"] > 0
        assert row["difference"] == pytest.approx((row["objective"] - row["reference"]) / row["size"])
    assert record["solution"]["learned"]["Sigma2"]["names"] == ["Oslo", "Bergen", "Bodo", "Narvik"]
    assert record["model"]["unicode"]["learned"] == {"Sigma1": "Σ₁", "Sigma2": "Σ₂"}
    assert record["model"]["learned"]["Sigma1"] == {"kind": "precision", "axis": "features", "shape": [5, 5]}


def test_a_matrix_at_its_bound_throughout_is_said(written):
    file, solution = solved(written())
    flat = replace(solution.Sigma2, spectral=SpectralMatrix.multiple_of_identity(3.0, 4))
    solution = replace(solution, learned=solution.learned | {"Sigma2": flat})
    record = describe_run(file, solution, None)
    text = to_text(run_report(record))
    assert "a multiple of the identity: every eigenvalue is 3, the upper bound" in text
    assert "into one of the two" in text
    assert plain(record)["solution"]["learned"]["Sigma2"]["strongest"] == []
    assert verdict(record).plain.startswith("stationary")
    assert describe_file(file)["model"]["learned"]["Sigma2"]["axis"] == "tasks"
