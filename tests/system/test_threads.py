"""BLAS has one limit for the whole process, restored by whoever leaves last; threads over tasks: their order, errors and ends."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg

import mtldsl as mtl
from mtldsl.atoms.regularizers import TraceNorm
from mtldsl.certificates.checker.proof_check import Check
from mtldsl.utils import parallel
from mtldsl.utils.parallel import blocks_of, configured_threads, in_jobs, jobs, one_blas_thread
from tests.loops import for_each


class Library:
    """A BLAS whose limit only the thread may set that set it first, until it is released: as threadpoolctl has it."""

    def __init__(self, n):
        self.n, self.owner = n, None

    def get_num_threads(self):
        return self.n

    def set_num_threads(self, n):
        self.owner = self.owner or threading.current_thread()
        if self.owner is threading.current_thread():
            self.n = n

    def clear_controlling_thread(self, force=False):
        if force or self.owner is threading.current_thread():
            self.owner = None


@pytest.fixture
def library(monkeypatch):
    library = Library(4)
    monkeypatch.setattr(parallel, "_libraries", lambda: (library,))
    return library


def test_the_last_to_leave_restores_what_the_first_found(library):
    inside, first_left, done = threading.Event(), threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            inside.set()
            assert first_left.wait(30)
        done.set()

    with one_blas_thread():  # this thread goes on living
        other = threading.Thread(target=second)
        other.start()
        assert inside.wait(30)
    assert library.n == 1  # the other is still at work
    first_left.set()
    assert done.wait(30)
    other.join()
    assert library.n == 4


def test_what_another_set_to_one_is_left_to_it(library):
    library.n = 1
    with one_blas_thread():
        library.n = 4  # whoever had set it has ended
    assert library.n == 4


def test_many_threads(library):
    def many(seed):
        for i in range(200):
            try:
                with one_blas_thread():
                    assert library.n == 1
                    if (seed + i) % 3 == 0:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(many, range(8)))
        assert library.n == 4  # the threads of the pool are still alive


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_products_in_blocks_have_the_same_bits_on_all_threads(workers, monkeypatch):
    rng = np.random.default_rng(0)
    X, W, u = rng.normal(size=(4000, 300)), rng.normal(size=(300, 200)), rng.normal(size=4000 * 200)
    assert len(blocks_of(4000, 4000 * 300 * 200)) == 4
    tasks = mtl.Tasks.shared(X, rng.normal(size=(4000, 200)))
    one = [tasks.forward(W), tasks.adjoint(u)]
    monkeypatch.setattr(parallel, "configured_threads", lambda: workers)
    found = [tasks.forward(W), tasks.adjoint(u)]
    assert all(np.array_equal(a, b) for a, b in zip(one, found, strict=True))
    np.testing.assert_allclose(found[0], (X @ W).T.ravel(), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found[1], X.T @ u.reshape(200, -1).T, rtol=1e-10, atol=1e-9)


def test_the_number_of_threads_is_what_blas_was_to_have(library):
    assert configured_threads() == 4
    with one_blas_thread():
        assert library.n == 1 and configured_threads() == 4


@pytest.fixture(scope="module")
def solved():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 4)), rng.normal(size=(20, 3)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(2.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W))
    return problem, problem.solve(), lam


def _prove(problem, solution, lam, folder):
    mtl.verify_proof(solution.certificate.save(folder / "proof.npz", data=True))


def _mkl_value(problem, solution, lam, folder):
    mtl.mkl_norm(problem.weights[0], [mtl.similarities.union(), mtl.similarities.identity()], p=2).terms[
        0
    ].atom.value(solution.W)


DOORS = {
    "solve": (lambda problem, *_: problem.solve(), TraceNorm, "value"),
    "bound": (lambda problem, *_: problem.solve(), TraceNorm, "dual_gauge"),
    "cross_check": (lambda problem, solution, *_: problem.cross_check(solution), TraceNorm, "value"),
    "lambda_max": (lambda problem, solution, lam, _: problem.lambda_max(lam), TraceNorm, "dual_gauge"),
    "proof": (_prove, Check, "verdict"),
    "mkl_norm": (_mkl_value, scipy.linalg, "solve_triangular"),
    "trace_norm": (lambda problem, solution, *_: TraceNorm().value(solution.W), np.linalg, "svd"),
}


@for_each("door", DOORS)
def test_behind_every_door_small_problems_wake_no_threads(door, solved, library, monkeypatch, tmp_path):
    enter, cls, method = DOORS[door]
    seen, plain = [], getattr(cls, method)

    def watched(*args, **options):
        seen.append(library.n)
        return plain(*args, **options)

    monkeypatch.setattr(cls, method, watched)
    enter(*solved, tmp_path)
    assert seen and set(seen) == {1}
    assert library.n == 4


SOLVES = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, scipy.linalg
from threadpoolctl import ThreadpoolController
import mtldsl as mtl
blas = ThreadpoolController().select(user_api="blas")
limits = lambda: [library["num_threads"] for library in blas.info()]
before = limits()
def solve(seed):
    rng = np.random.default_rng(seed)
    tasks = mtl.Tasks.shared(rng.normal(size=(40, 6)), rng.normal(size=(40, 3)))
    W = mtl.Weights(tasks)
    for _ in range(4):
        assert mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W)).solve().status == "optimal"
with ThreadPoolExecutor(8) as pool:
    list(pool.map(solve, range(8)))
    assert limits() == before, (limits(), before)
assert max(before) == 2
"""


@pytest.mark.process
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: BLAS has one thread anyway")
def test_after_solves_in_eight_threads_blas_is_as_it_was():
    env = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", SOLVES], env=env, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


def test_what_comes_back_is_in_the_order_of_the_items():
    def late_first(item, expired):
        time.sleep(0.02 * (3 - item))
        return item

    with jobs(3):
        assert in_jobs(late_first, range(3)) == [0, 1, 2]


@for_each("n", [None, 1, 2])
def test_the_time_is_up_for_all(n):
    with jobs(n):
        assert in_jobs(lambda item, expired: expired(), range(3), lambda: True) == [True] * 3


def test_the_first_error_in_the_items_order_ends_all():
    ended = []

    def fail_or_wait(item, expired):
        if item == 0:
            time.sleep(0.05)
            raise ValueError("the first")
        if item == 1:
            raise ValueError("the second")
        while not expired():
            time.sleep(0.005)
        ended.append(item)

    with jobs(3), pytest.raises(ValueError, match="the first"):
        in_jobs(fail_or_wait, range(3))
    assert ended == [2]
