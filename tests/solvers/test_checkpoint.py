"""Long runs that are broken off and found again: what a file holds, whose it is, and what is said where it is another's."""

import json
import signal
from itertools import count

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.sdca.sdca import Checkpoint
from tests.faults.disk import largest_file
from tests.loops import for_each
from tests.models import separate, shared
from tests.system.test_stops import every_signal_of_a_test_is_a_first  # noqa: F401  (a fixture for every test)

BOTH = [mtl.similarities.union(), mtl.similarities.individual()]


# ------------------------------------------------------------------------------------------------------ in a solve
def problem_of(tasks=None, word=mtl.hinge_loss, C=2.0, similarities=BOTH, p=1.5, intercept=False):
    tasks = separate(3, labels="sign", sizes=(60, 80, 50, 70)) if tasks is None else tasks
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(C * word(W, tasks) + mtl.mkl_norm(W, similarities, p=p))


def solve(problem, path=None, **options):
    return problem.solve(solver="dual_ascent", checkpoint=path, **options)


@pytest.mark.slow
@for_each("word", [mtl.hinge_loss, mtl.logistic_loss])
@for_each("intercept", [False, True])
def test_a_run_goes_on_where_it_was_broken_off(tmp_path, word, intercept):
    problem = problem_of(word=word, intercept=intercept)
    path = tmp_path / "run.npz"
    scratch = solve(problem, tol=1e-8)
    short = solve(problem, path, tol=1e-8, max_iter=3)
    assert short.status == "iteration_limit" and short.iterations == 3
    resumed = solve(problem, path, tol=1e-8, seed=1)
    assert scratch.status == resumed.status == "optimal"
    assert resumed.objective == pytest.approx(scratch.objective, rel=2e-8)
    again = solve(problem, path, tol=1e-7)  # a finished run has next to nothing left to do
    assert again.status == "optimal" and again.iterations < min(scratch.iterations, 6)
    assert [found.name for found in tmp_path.iterdir()] == ["run.npz"]


def test_an_interruption_leaves_the_state_behind(tmp_path):
    seen = []

    def interrupting(look):
        seen.append(look)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "run.npz"
    assert solve(problem_of(), path, tol=1e-9, callback=interrupting).status == "interrupted"
    with np.load(path) as stored:
        assert np.count_nonzero(stored["u"]) > 0
    assert solve(problem_of(), path).status == "optimal"
    assert [found.name for found in tmp_path.iterdir()] == ["run.npz"]


def changed(scale=1.0, flip=False, sample_weights=None):
    """The tasks of `separate(3)` in other arrays."""
    tasks = separate(3, labels="sign")
    inputs, targets = [X.copy() for X in tasks.inputs], [y.copy() for y in tasks.per_task(tasks.targets)]
    inputs[0][0, 0] *= scale
    targets[1][0] *= -1 if flip else 1
    return mtl.Tasks.separate(inputs, targets, sample_weights=sample_weights)


def test_a_file_is_of_one_model_and_its_data(tmp_path):
    C = mtl.Parameter(2.0, name="C")
    tasks = separate(3, labels="sign")
    problem = problem_of(tasks, C=C)
    path = tmp_path / "run.npz"
    solve(problem, path)
    written = path.read_bytes()
    rng = np.random.default_rng(0)
    kernels = [rng.normal(size=(4, 4)) for _ in range(2)]
    of_kernel = [
        problem_of(tasks, C=C, similarities=[mtl.similarities.from_kernel(B @ B.T)]) for B in kernels
    ]
    solve(of_kernel[0], tmp_path / "kernel.npz")
    solve(problem_of(shared(3, labels="sign")), tmp_path / "shared.npz")

    def refused(problem, path, what):
        with pytest.raises(SolverError, match=f"written for another {what}.*name another file") as error:
            solve(problem, path)
        assert str(path) in str(error.value)

    refused(problem_of(tasks, C=C, p=2.0), path, "model")
    refused(problem_of(tasks, C=C, word=mtl.squared_hinge_loss), path, "model")
    refused(problem_of(tasks, C=C, similarities=[mtl.similarities.union()]), path, "model")
    refused(problem_of(tasks, C=C, intercept=True), path, "")
    doubled = [np.full(n, 2.0) for n in tasks.counts]
    for other in (
        separate(4, labels="sign"),
        changed(1 + 1e-12),
        changed(flip=True),
        changed(sample_weights=doubled),
    ):
        refused(problem_of(other, C=C), path, "data")
    refused(problem_of(shared(4, labels="sign")), tmp_path / "shared.npz", "data")
    refused(of_kernel[1], tmp_path / "kernel.npz", "numbers")  # the same text
    C.value = 3.0
    refused(problem, path, "numbers")
    C.value = 2.0
    assert path.read_bytes() == written  # none of these wrote to it
    assert solve(problem_of(changed(), C=C), path).status == "optimal"  # equal data in other arrays


def test_files_that_are_no_checkpoints(tmp_path):
    problem = problem_of(separate(3, labels="sign"))
    good = tmp_path / "good.npz"
    solve(problem, good)
    whole = good.read_bytes()
    contents = {"text": b"not a file of arrays", "empty": b"", "cut": whole[: len(whole) // 2]}
    for name, content in contents.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
    identity = np.array(json.dumps({}))
    np.savez(tmp_path / "arrays.npz", u=np.ones(3))
    np.savez(tmp_path / "words.npz", u=np.ones(3), identity=np.array("no json"))
    np.savez(tmp_path / "objects.npz", u=np.array([{}], dtype=object), identity=identity)
    np.savez(tmp_path / "list.npz", identity=np.array(json.dumps([1, 2])))
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.ones(3))
    wrong = set(tmp_path.iterdir()) - {good}
    assert len(wrong) == 8
    for path in wrong:
        content = path.read_bytes()
        with pytest.raises(SolverError, match=r"not a checkpoint.*delete it, or name another file"):
            solve(problem, path)
        assert path.read_bytes() == content


def test_folders(tmp_path):
    problem = problem_of(separate(3, labels="sign"))
    with pytest.raises(SolverError, match=r"there is no folder.*make it first"):
        solve(problem, tmp_path / "absent" / "run.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(SolverError):
        solve(problem, tmp_path / "folder.npz")
    assert solve(problem, str(tmp_path / "of text")).status == "optimal"
    assert {path.name for path in tmp_path.iterdir()} == {"folder.npz", "of text.npz"}


# ---------------------------------------------------------------------------------------------------------- faults
@pytest.mark.slow
def test_an_unwritable_file_is_said_once_and_solving_goes_on(tmp_path, monkeypatch):
    """A disk that is full from the start, and one that becomes full: the file stays what it was."""
    scratch = solve(problem_of(), tol=1e-7)
    path = tmp_path / "run.npz"
    solve(problem_of(), path, max_iter=2)
    old = path.read_bytes()
    monkeypatch.setattr("mtldsl.solvers.sdca.sdca.time.perf_counter", count(step=60.0).__next__)
    with largest_file(500), pytest.warns(UserWarning) as said:
        solution = solve(problem_of(), path, tol=1e-7)
    assert solution.status == "optimal" and solution.objective == pytest.approx(scratch.objective, rel=2e-7)
    (warning,) = said
    text = f"solve(checkpoint={str(path)!r}): {path}: cannot be written (File too large)"
    assert text in str(warning.message)
    assert path.read_bytes() == old and [found.name for found in tmp_path.iterdir()] == ["run.npz"]


def test_a_folder_that_goes_away(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    file = Checkpoint(folder / "run", {}, every=0.0)
    with file:
        (folder / ".run.npz.lock").unlink()
        folder.rmdir()
        with pytest.warns(UserWarning, match="No such file or directory"):
            assert not file.write({"u": np.zeros(1)})
        assert not file.write({"u": np.zeros(1)}, now=True)  # once is enough
        folder.mkdir()
        assert file.write({"u": np.zeros(1)}, now=True)  # and it is there again


@pytest.mark.slow
def test_two_runs_on_one_file(tmp_path):
    path = tmp_path / "run.npz"
    with (
        Checkpoint(path, {}),
        pytest.raises(SolverError, match=r"another run is using that file; wait .* or name another"),
    ):
        solve(problem_of(), path)
    assert solve(problem_of(), path).status == "optimal"


@pytest.mark.slow
def test_a_damaged_file_that_can_be_read(tmp_path):
    path = tmp_path / "run.npz"
    solve(problem_of(), path)
    with np.load(path) as stored:
        good = dict(stored)
    for wrong in ({"u": np.nan * good["u"]}, {"theta": np.ones((2, 2))}, {"u": np.array(3.0)}):
        np.savez(path, **(good | wrong))
        with pytest.raises(SolverError, match=r"damaged; delete it, or name another file"):
            solve(problem_of(), path)


def test_mutated_files(tmp_path):
    """Every byte of some changed: a typed error, or, where it does not matter, a solve."""
    path = tmp_path / "run.npz"
    file = Checkpoint(path, {"model": "m"})
    file.write({"u": np.arange(9.0)}, now=True)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for at in range(0, len(whole), 2):
        changed = bytearray(whole)
        changed[at] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            np.testing.assert_array_equal(file.read({"u": np.zeros(9)})["u"], np.arange(9.0))
        except SolverError:
            refused += 1
    assert refused > len(whole) // 8


@for_each("name", ["W + " * 100, 300 * "y" + "/z"])
def test_a_name_that_no_file_can_have(tmp_path, name):
    with pytest.raises(SolverError, match=r"solve\(checkpoint='.*File name too long; name another file"):
        Checkpoint(tmp_path / name, {})
