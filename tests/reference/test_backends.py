"""cvxpy's backends in their own process: the same numbers, and what stops or kills it."""

import os
import signal
import threading
import time

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.reference import backends
from mtldsl.reference.solve import solve_reference
from tests.loops import for_each
from tests.models import shared, with_weights
from tests.system.test_stops import BEGIN, PATIENCE, SIGNALS, Child

ACCURATE = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 20_000},
    "OSQP": {"eps_abs": 1e-9, "eps_rel": 1e-9, "polishing": True, "max_iter": 100_000},
}


def programs(backend):
    """One of every cone, as far as the backend has it."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(12, 5)), rng.normal(size=12)
    x, S = cp.Variable(5), cp.Variable((3, 3), symmetric=True)
    yield cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) + cp.norm1(x)), [cp.sum(x) == 1])
    if backend == "OSQP":
        return
    yield cp.Problem(cp.Minimize(cp.norm(A @ x - b) + cp.sum(cp.logistic(A @ x))), [x <= 0.1])
    yield cp.Problem(cp.Minimize(cp.trace(S) - cp.log_det(S)), [S >> 0.1 * np.eye(3)])
    yield cp.Problem(cp.Minimize(cp.sum(cp.power(cp.abs(A @ x - b), 1.5, approx=False))))


@pytest.mark.slow
@for_each("backend", list(ACCURATE))
def test_the_numbers_are_those_of_cvxpy(backend):
    for here, there in zip(programs(backend), programs(backend), strict=True):
        here.solve(solver=backend, **ACCURATE[backend])
        backends.solve(there, solver=backend, **ACCURATE[backend])
        assert there.status == here.status == cp.OPTIMAL
        assert there.value == pytest.approx(here.value, rel=1e-12)
        for mine, theirs in zip(there.variables(), here.variables(), strict=True):
            np.testing.assert_allclose(mine.value, theirs.value, rtol=1e-9, atol=1e-12)
        for mine, theirs in zip(there.constraints, here.constraints, strict=True):
            np.testing.assert_allclose(mine.dual_value, theirs.dual_value, rtol=1e-7, atol=1e-9)


def test_what_has_no_optimum_is_said():
    x = cp.Variable(2)
    for problem, status in (
        (cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1, x <= 0]), cp.INFEASIBLE),
        (cp.Problem(cp.Minimize(cp.sum(x))), cp.UNBOUNDED),
    ):
        backends.solve(problem, solver="CLARABEL")
        assert problem.status == status


def test_an_error_of_the_backend_is_cvxpy_s():
    with pytest.raises(cp.error.SolverError, match="no_such_option"):
        backends.solve(next(programs("CLARABEL")), solver="CLARABEL", no_such_option=1)
    backends.solve(next(programs("CLARABEL")), solver="CLARABEL")  # and it goes on


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, words",
    [
        (signal.SIGKILL, "was killed, as a system does when memory runs out"),
        (signal.SIGSEGV, "ended by SIGSEGV"),
    ],
)
def test_a_process_that_dies_is_a_solver_error(monkeypatch, number, words):
    backends._end_all()
    real = backends._BackendProcess._exchange

    def shot(self, request):
        os.kill(self.process.pid, number)
        real(self, request)

    tasks, W = with_weights(shared(0, n=8))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W))
    with monkeypatch.context() as patch:
        patch.setattr(backends._BackendProcess, "_exchange", shot)
        with pytest.raises(SolverError, match=f"'clarabel' failed on .*{words}.*'scs' failed"):
            solve_reference(problem.form())
        with pytest.raises(SolverError, match=words):
            problem.solve(solver="cvxpy")
    assert problem.solve(solver="cvxpy").status == "optimal"


def long():
    """A form on which one iteration of Clarabel takes many seconds."""
    rng = np.random.default_rng(0)
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(10, 90)), rng.normal(size=(10, 60))))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W))


@pytest.mark.slow
def test_a_time_limit_is_heard_inside_of_an_iteration():
    """The backend's process is ended, not waited for."""
    problem = long()
    backends._end_all()
    solution = problem.solve(solver="cvxpy", backend="clarabel", max_seconds=0.5)
    assert solution.status == "time_limit" and not backends._idle
    assert solution.objective == pytest.approx(problem.form().value(solution.blocks))


@pytest.mark.slow
def test_a_cross_check_has_a_time_limit():
    problem = long()
    backends._end_all()
    with pytest.raises(SolverError, match=r"cross_check\(max_seconds=0\.5\): the time was up"):
        problem.cross_check(problem.solve(tol=1e-2), max_size=None, solver="clarabel", max_seconds=0.5)
    assert not backends._idle  # it is ended, not waited for
    for wrong in (0, -1, True, "1", float("nan")):
        with pytest.raises(SolverError, match="positive number of seconds"):
            problem.cross_check(max_seconds=wrong)


@pytest.mark.slow
def test_several_threads_have_a_process_each():
    values = {}

    def work(k):
        problem = next(programs("CLARABEL"))
        backends.solve(problem, solver="CLARABEL")
        values[k] = problem.value

    threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(values.values())) == 1 and len(values) == 4
    assert len(backends._idle) <= backends.SETTINGS.idle_processes


LONG = (
    BEGIN
    + """
from mtldsl.reference import backends
from tests.reference.test_backends import long
problem = long()
real = backends._BackendProcess.ask
def asked(self, *given):
    soon()
    say(self.process.pid)
    return real(self, *given)
backends._BackendProcess.ask = asked
"""
)


def is_running(pid: int) -> bool:
    """A process that has ended, and that its parent has not asked after, is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.process
@SIGNALS
def test_a_signal_stops_the_backend(number):
    script = """
s = problem.solve(solver="cvxpy", backend="clarabel")
say(s.status, len(backends._idle))
"""
    with Child(script, LONG) as child:
        pid = int(child.line())
        assert child.line() == "begun"
        child.signal(number)
        assert child.line() == "interrupted 0"
        assert not is_running(pid)


@pytest.mark.process
def test_an_orphan_ends():
    script = "problem.solve(solver='cvxpy', backend='scs', tol=1e-15, max_iter=10**8)"
    with Child(script, LONG) as child:
        pid = int(child.line())
        assert child.line() == "begun" and is_running(pid)
        child.signal(signal.SIGKILL)
        until = time.monotonic() + PATIENCE
        while is_running(pid) and time.monotonic() < until:
            time.sleep(0.1)
        assert not is_running(pid)


@pytest.mark.process
def test_a_fork_has_a_process_of_its_own():
    problem = next(programs("CLARABEL"))
    backends.solve(problem, solver="CLARABEL")
    before = [one.process.pid for one in backends._idle]
    child = os.fork()
    if child == 0:
        try:
            assert not backends._idle
            backends.solve(problem, solver="CLARABEL")
            os._exit(0 if backends._idle[0].process.pid not in before else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    backends.solve(problem, solver="CLARABEL")
    assert [one.process.pid for one in backends._idle] == before
