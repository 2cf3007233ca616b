"""The independent checker: it confirms what is optimal, and never an interval without the optimum, whatever was done to the file."""

import json
import re
from itertools import cycle
from zipfile import ZipFile

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.certificates.checker.proof_file import read_proof, write_proof
from mtldsl.certificates.proof_writer import same_model
from mtldsl.certificates.stationarity import NO_GLOBAL
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import DataError, ModelError
from tests import models
from tests.loops import for_each
from tests.models import MODELS, with_weights
from tests.optima import solution_of
from tests.proof.test_rank_deficient import model


def tasks_of(problem):
    return [term.source or term.tasks for term in problem.objective.terms if term.is_loss]


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """name -> (problem, solution, path of its proof), each solved once."""
    folder, kept = tmp_path_factory.mktemp("proofs"), {}

    def of(name):
        if name not in kept:
            problem, solution = solution_of(name)
            kept[name] = problem, solution, solution.certificate.save(folder / name)
        return kept[name]

    return of


@pytest.mark.slow
@for_each("name", MODELS)
def test_it_confirms_what_is_called_optimal(solved, name):
    problem, solution, path = solved(name)
    verdict = mtl.verify_proof(path, tasks_of(problem))
    assert solution.status == "optimal"
    if verdict.unchecked:  # a word that the checker has no formula of is named, and nothing is confirmed
        assert verdict.unchecked == ["max_norm"] and "max_norm" in str(problem) and not verdict.confirmed
        return
    assert verdict.confirmed, str(verdict)
    assert not verdict.region  # true for all weights
    size = 1e-9 * max(abs(solution.objective), 1e-3)
    # float64 computes what is shown, but for rounding; a repaired point may lie elsewhere by its violation
    assert solution.dual_bound - size <= verdict.low <= solution.dual_bound + size
    assert verdict.high <= solution.objective + 1e-6 * max(1.0, abs(solution.objective))
    assert verdict.violation == 0.0


def test_a_bound_that_holds_for_some_weights_says_for_which(tmp_path):
    """One column is another one but for rounding: weights beyond all measure would fit its noise."""
    own = models.shared(1)
    X = np.column_stack([own.X, 1.1 * own.X[:, 0]])
    tasks, W = with_weights(mtl.Tasks.shared(X, own.targets.reshape(models.M, -1).T))
    solution = mtl.minimize(mtl.squared_loss(W, tasks)).solve()
    path = solution.certificate.save(tmp_path / "free", data=True)
    verdict = mtl.verify_proof(path, tasks)
    assert verdict.confirmed and set(verdict.region) == {"W"} and not verdict.holds
    assert np.all(verdict.region["W"] >= np.abs(solution.W))
    assert "for all W with entries up to" in str(verdict) and "--within" in str(verdict)
    assert main(["verify", str(path)]) == 1 and main(["verify", str(path), "--within"]) == 0


def _without_a_loss(tasks):
    tasks, W = with_weights(tasks)
    labels = tasks.targets.reshape(tasks.n_tasks, -1).T
    residual = mtl.frobenius_norm(tasks.X @ W - labels) <= 0.5 * np.linalg.norm(labels)
    return mtl.minimize(0 * mtl.squared_loss(W, tasks) + mtl.l21_norm(W), subject_to=[residual])


def _without_edges(tasks):
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, [])
    return mtl.minimize(mtl.clique_hinge(U, V, tasks) + 0.1 * mtl.ridge(U) + 0.1 * mtl.column_group_norm(V))


@for_each("make,labels", [(_without_a_loss, "real"), (_without_edges, "sign")])
def test_a_part_without_entries_needs_no_proof(tmp_path, make, labels):
    """A loss of coefficient 0, and the weights of no edges."""
    problem = make(models.shared(1, labels=labels))
    verdict = mtl.verify_proof(problem.solve().certificate.save(tmp_path / "proof"), problem)
    assert verdict.confirmed and verdict.model_is_named and not verdict.region


@for_each("earlier", ["l1_ball", "l21_ball", "trace_norm_ball", "frobenius_ball"])
def test_balls_of_version_0_1_are_read(tmp_path, earlier):
    """They had words of their own, and no parameter but the radius."""
    tasks, W = with_weights(models.shared(2))
    norm = getattr(mtl, earlier.replace("ball", "norm").replace("norm_norm", "norm"))
    problem = mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[norm(W) <= 0.5])
    path = problem.solve(tol=1e-6).certificate.save(tmp_path / "now")
    proof, _ = read_proof(path)
    assert proof["functions"][0]["word"] == "norm_ball" and same_model(problem.form(), proof)
    proof["functions"][0] |= {"word": earlier, "parameters": {"radius": 0.5}}
    write_proof(tmp_path / "then", proof, None)
    assert same_model(problem.form(), read_proof(tmp_path / "then.npz")[0])
    verdict = mtl.verify_proof(tmp_path / "then.npz", tasks)
    assert verdict.confirmed and verdict.low == mtl.verify_proof(path, tasks).low


def test_a_point_outside_the_constraints_is_said_to_be(tmp_path):
    """Equations of which one is the sum of others but for rounding: no move meets them all."""
    tasks, W = with_weights(models.shared(2))
    A = np.vstack([np.eye(6)[:2], [[1.1, 1.1, 0, 0, 0, 0]]])
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W), subject_to=[A @ W == 0])
    path = problem.solve(tol=1e-6).certificate.save(tmp_path / "two")
    proof, _ = read_proof(path)
    proof["point"]["W"] = proof["point"]["W"] + 1e-4
    write_proof(path, proof, None)
    verdict = mtl.verify_proof(path, tasks)
    assert 0.9e-4 < verdict.violation < 2.3e-4 and not verdict.confirmed
    assert "relaxed by that" in str(verdict)


# each: constraints of weights that a point meets to rounding or tolerance only
_ON_PARTS = {
    "a part": lambda W, S: [W[:2] >= 0],
    "one task is another": lambda W, S: [W[:, 0] == W[:, 1]],
    "rows that rise": lambda W, S: [W[1:] - W[:-1] >= 0],
    "a sum of rows": lambda W, S: [np.array([[1.0, 1, 0, 0, 0, 0]]) @ W == 1.0],
    "at most": lambda W, S: [np.array([[1.0, 2, 0, 1, 0, 0]]) @ W <= 0.3],
    "a ball of a part": lambda W, S: [mtl.l21_norm(W[:3]) <= 0.5],
    "numbers": lambda W, S: [W[1:3] == 0.5],
    "a box": lambda W, S: [W[:2] >= -0.1, W[:2] <= 0.1],
    "a part and a ball": lambda W, S: [W[:2] >= 0, mtl.l1_norm(W[2:]) <= 0.5],
    "a ball and an equation": lambda W, S: [mtl.trace_norm(W) <= 2.0, W[0] == 0.1],
    "two blocks": lambda W, S: [W + S <= 0.5],
}


@pytest.mark.slow
@for_each("kind, word", list(zip(_ON_PARTS, cycle(["l21_norm", "mean_regularizer"]), strict=False)))
def test_constraints_on_parts_hold_at_a_point_near(tmp_path, kind, word):
    tasks, two = models.shared(2), kind == "two blocks"
    W, S = mtl.Weights(tasks, intercept=True), mtl.Weights(tasks, name="S")
    objective = mtl.squared_loss(W + S if two else W, tasks) + getattr(mtl, word)(W)
    problem = mtl.minimize(objective + mtl.ridge(S) if two else objective, subject_to=_ON_PARTS[kind](W, S))
    solution = problem.solve(tol=1e-6)
    verdict = mtl.verify_proof(solution.certificate.save(tmp_path / "held"), problem)
    assert solution.status == "optimal" and verdict.holds, str(verdict)


_FREE = ["nothing", "mean", "variation", "path", "some rows", "some entries", "differences"]
_BOUNDING = ["squared_loss", "absolute_loss", "huber_loss", "square_root_loss", "logistic_loss", "hinge_loss", "poisson_loss"]  # fmt: skip


@pytest.mark.slow
@for_each(
    "word, between",
    [(word, _FREE[(k + 3 * j) % len(_FREE)]) for k, word in enumerate(_BOUNDING) for j in range(2)],
)
def test_claims_hold_for_all_weights_where_losses_bound_them(tmp_path, word, between):
    """Dummies of all levels beside an intercept, one task without a level: equations that depend on others, exactly."""
    problem = model(word, "dummies", between, True)
    solution = problem.solve(tol=1e-6)
    verdict = mtl.verify_proof(solution.certificate.save(tmp_path / "free"), problem)
    assert solution.status == "optimal" and verdict.holds, str(verdict)


@pytest.mark.slow
@for_each("word", ["softmax_loss", "crammer_singer_loss"])
@for_each("intercept", [False, True])
def test_claims_of_losses_of_classes_hold_for_all_weights(tmp_path, word, intercept):
    tasks, W = with_weights(models.shared(5, labels="classes"), intercept=intercept)
    for penalty in (mtl.l21_norm(W), mtl.mean_regularizer(W)):
        problem = mtl.minimize(getattr(mtl, word)(W, tasks) + penalty)
        path = problem.solve(tol=1e-6).certificate.save(tmp_path / "classes")
        for exact in (False, True):
            verdict = mtl.verify_proof(path, problem, exact=exact)
            assert verdict.holds or (word == "crammer_singer_loss" and intercept), str(verdict)


def test_what_is_not_convex_or_not_known_is_not_checked(tmp_path):
    tasks, W = with_weights(models.shared(3, labels="sign"))
    solution = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.log_rank(W)).solve(max_iter=50)
    with pytest.raises(ModelError, match="not convex, and a saved proof is of a convex one"):
        solution.certificate.save(tmp_path / "log_rank")
    said = NO_GLOBAL if solution.status == "stationary" else "not proven stationary"
    assert said in str(solution) and said in repr(solution.certificate)
    solution = mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.ridge(W)).solve(tol=1e-3)
    proof, _ = read_proof(solution.certificate.save(tmp_path / "ridge"))
    proof["functions"][0] |= {"word": "log_rank", "convex": False}
    verdict = mtl.verify_proof(write_proof(tmp_path / "log_rank", proof, None), tasks)
    assert verdict.unchecked == ["log_rank: not convex, no bound to verify"] and not verdict.confirmed
    assert verdict.low == -np.inf and verdict.high == np.inf

    class Mine(mtl.Metric):
        def delta(self, b, c, positives, negatives):
            return (b + c) / (positives + negatives)

    solution = mtl.minimize(mtl.structured_hinge(W, tasks, metric=Mine()) + mtl.ridge(W)).solve(tol=1e-3)
    with pytest.warns(UserWarning, match=r"no formula for structured_hinge with the metric Mine"):
        own = solution.certificate.save(tmp_path / "own")
    verdict = mtl.verify_proof(own, tasks)
    assert verdict.unchecked == ["structured_hinge with the metric Mine (your own)"] and not verdict.confirmed
    assert main(["verify", str(tmp_path / "own.npz")]) == 2


def test_other_data_are_refused_by_the_name_of_the_array(solved, tmp_path):
    problem, solution, path = solved("huber_graph_laplacian_sparse")
    (tasks,) = tasks_of(problem)
    with pytest.raises(DataError, match="does not hold its data"):
        mtl.verify_proof(path)
    y, s = (np.reshape(one, (tasks.n_tasks, -1)).T for one in (tasks.targets, tasks.sample_weights))
    X = np.array(tasks.X)
    assert mtl.verify_proof(path, mtl.Tasks.shared(X, y, sample_weights=s)).confirmed
    X[0, 0] = np.nextafter(X[0, 0], 9)
    with pytest.raises(DataError, match=r": X differs from what the proof is about"):
        mtl.verify_proof(path, mtl.Tasks.shared(X, y, sample_weights=s))
    with pytest.raises(DataError, match=r": sample_weights differs"):
        mtl.verify_proof(path, mtl.Tasks.shared(tasks.X, y, sample_weights=2 * s))
    with pytest.raises(DataError, match=r": sample_weights, y differs"):
        mtl.verify_proof(path, mtl.Tasks.shared(tasks.X, y + 1))
    two, _, path = solved("two_losses_on_one_matrix")
    with pytest.raises(DataError, match="of data set 2 of 2"):
        mtl.verify_proof(path, tasks_of(two)[0])
    with pytest.raises(DataError, match="not about data set 3 of the 3"):
        mtl.verify_proof(path, tasks_of(two), tasks)
    for strange in ("problem.toml", X, solution, None):
        with pytest.raises(
            DataError, match=rf"{type(strange).__name__} is neither a problem nor Tasks; name what was solved"
        ):
            mtl.verify_proof(path, strange)
    whole = solution.certificate.save(tmp_path / "whole", data=True)
    assert (
        "the model is the one that the proof states" in str(verdict := mtl.verify_proof(whole))
        and verdict.confirmed
    )
    with pytest.raises(DataError, match="differs from what the proof is about"):
        mtl.verify_proof(whole, mtl.Tasks.shared(X, y, sample_weights=s))


def test_files_that_are_no_proofs(solved, tmp_path):
    _, _, path = solved("huber_graph_laplacian_sparse")
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    broken = {"empty": b"", "half": whole[: len(whole) // 2], "text": b"not a proof"}
    for k in range(20):
        mutated = bytearray(whole)
        mutated[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        broken[f"bit{k}"] = bytes(mutated)
    refused = 0
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        try:
            read_proof(tmp_path / name)
        except DataError as error:
            refused += 1
            assert str(tmp_path / name) in str(error)
    assert refused >= 3
    with pytest.raises(DataError, match="there is no such file"):
        mtl.verify_proof(tmp_path / "missing.npz")
    with ZipFile(tmp_path / "twice", "w") as archive, ZipFile(path) as own, pytest.warns(UserWarning):
        for name in [*own.namelist(), "json.npy"]:
            archive.writestr(name, own.read(name))
    with pytest.raises(DataError, match="it holds 'json' twice, of which only one would be read"):
        mtl.verify_proof(tmp_path / "twice")
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    with pytest.raises(DataError, match="not a saved proof"):
        mtl.verify_proof(tmp_path / "other.npz")


def test_without_a_bound_there_is_nothing_to_save(tmp_path):
    tasks, W = with_weights(models.shared(4))
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    loaded = mtl.Solution.load(solution.save(tmp_path / "solution"))
    with pytest.raises(DataError, match="does not hold its proof"):
        loaded.certificate  # noqa: B018
    import pickle

    copied = pickle.loads(pickle.dumps(solution))
    assert copied.certificate.dual_bound == solution.dual_bound
    with pytest.raises(ModelError, match="not kept in a copy"):
        copied.certificate.save(tmp_path / "copy")
    with pytest.raises(DataError, match="cannot be written"):
        solution.certificate.save(tmp_path / "no" / "folder")


def test_changed_claims_are_not_confirmed(solved, tmp_path):
    problem, solution, path = solved("two_losses_on_one_matrix")
    gap = abs(solution.objective)
    for key, value, said in (
        ("dual_bound", solution.objective + gap, "the claimed bound"),
        ("objective", solution.dual_bound - gap, "the claimed objective"),
        ("dual_bound", float("nan"), "the claimed bound"),
        ("objective", float("nan"), "the claimed objective"),
        ("tol", 1e-14, "NOT confirmed"),
        ("tol", float("nan"), "NOT confirmed"),
    ):
        proof, _ = read_proof(path)
        proof["claimed"][key] = value
        verdict = mtl.verify_proof(write_proof(tmp_path / "claim", proof, None), tasks_of(problem))
        assert not verdict.confirmed and said in str(verdict)
        assert verdict.low <= solution.objective + 1e-9 and verdict.high >= solution.dual_bound - 1e-9


def test_a_sparse_matrix_pointing_outside_itself_is_refused(tmp_path):
    X = sparse.random_array((30, 4), density=0.5, format="csr", random_state=0)
    tasks, W = with_weights(mtl.Tasks.shared(X, np.random.default_rng(0).normal(size=(30, 2))))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W) + mtl.ridge(W[[0, 2], :]))
    path = problem.solve().certificate.save(tmp_path / "sparse", data=True)
    assert mtl.verify_proof(path).confirmed
    with np.load(path) as stored:
        arrays = dict(stored)
    forged = [
        name for name, array in arrays.items() if name == "data:0:X.indices" or _is_csr_part(arrays, name)
    ]
    assert len(forged) == 2
    for name in forged:
        changed = {**arrays, name: arrays[name] + 10**6}
        np.savez(tmp_path / "forged.npz", **changed)
        with pytest.raises(DataError, match="parts of the proof are missing or do not fit"):
            mtl.verify_proof(tmp_path / "forged.npz")


def _is_csr_part(arrays, name) -> bool:
    """Whether an array holds the columns of a sparse matrix that the JSON describes."""
    described = re.findall(r'"csr": \[\{"array": "a\d+"\}, \{"array": "(a\d+)"\}', str(arrays["json"]))
    return name in described


def test_a_form_semidefinite_but_for_rounding_says_where(tmp_path):
    tasks, W = with_weights(models.shared(6))
    factor = np.random.default_rng(0).normal(size=(4, 2))
    L = factor @ factor.T
    solution = mtl.minimize(
        mtl.squared_loss(W, tasks) + mtl.graph_laplacian(W, (L + L.T) / 2) + mtl.l1_norm(W)
    ).solve()
    path = solution.certificate.save(tmp_path / "semidefinite")
    verdict = mtl.verify_proof(path, tasks)
    assert verdict.confirmed and set(verdict.region) == {"W"}
    proof, _ = read_proof(path)
    proof["functions"][0]["parameters"]["L"] = np.diag([1.0, 1.0, 1.0, -1e-3])
    verdict = mtl.verify_proof(write_proof(tmp_path / "indefinite", proof, None), tasks)
    assert verdict.unchecked == ["a quadratic form of a matrix with a negative eigenvalue: not convex"]


@pytest.mark.slow
def test_the_command_line(tmp_path, capsys):
    file = tmp_path / "p.toml"
    text = 'minimize = "squared_loss(W, tasks) + lam * l21_norm(W)"\n[data]\ndataset = "low_rank"\nrandom_state = 0\n[parameters]\nlam = 2.0\n'
    file.write_text(text)
    problem = load_problem(file).problem
    certificate = problem.solve().certificate
    bare, whole = certificate.save(tmp_path / "bare"), certificate.save(tmp_path / "whole", data=True)
    assert main(["verify", str(whole)]) == 0
    assert "optimum in [" in (said := capsys.readouterr().out) and "the claim is confirmed" in said
    assert main(["verify", str(bare), str(whole), "--exact", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["confirmed"] and plain["exact"] and plain["low"] <= plain["high"]
    assert main(["verify", str(bare), str(file)]) == 0
    file.write_text(text.replace("2.0", "2.5"))
    capsys.readouterr()
    assert main(["verify", str(bare), str(file)]) == 1
    assert "the proof is not of the model in" in capsys.readouterr().out
    assert main(["verify", str(bare)]) == 2
    assert "does not hold its data" in capsys.readouterr().err
    proof, data = read_proof(whole)
    proof["claimed"]["tol"] = 0.0
    assert main(["verify", str(write_proof(tmp_path / "claim", proof, data))]) == 1
    assert "NOT confirmed" in capsys.readouterr().out
