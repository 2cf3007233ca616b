"""Signals to processes that solve: what they return, what they exit with, and what is left as it was."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.dual_bound import infimum
from mtldsl.solvers.solver import Point
from mtldsl.utils import interrupts
from tests.models import shared, with_weights

#: A guard against waiting for ever, not a promise: how soon a solve ends is measured in benchmarks/stopping.py.
PATIENCE = 120.0

#: What every child begins with.
BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import mtldsl as mtl

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with SIGINT ignored

def say(*words):
    print(*words, flush=True)

def soon():  # the next call has begun when this is read
    threading.Timer(0.2, say, ["begun"]).start()
"""

#: A model that `problem.solve(**LONG)` does not end soon: one that no signal ends has the status "time_limit".
HARD = (
    BEGIN
    + """
rng = np.random.default_rng(0)
X = [rng.normal(size=(n, 40)) for n in (400, 500, 300, 200)]
tasks = mtl.Tasks.separate(X, [x @ rng.normal(size=40) + rng.normal(size=len(x)) for x in X])
W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
problem = mtl.minimize(mtl.absolute_loss(W, tasks) + lam * mtl.trace_norm(W))
problem.solve("admm", max_iter=3)  # imports and compiles
LONG = dict(solver="admm", tol=1e-15, max_iter=10**9, max_seconds=60)
"""
)


class Child:
    """A script in a process of its own, and what it says line by line."""

    def __init__(self, script, begin=HARD, **options):
        command = [sys.executable, "-u", "-c", begin + script]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        out, err = self.process.stdout.read(), self.process.stderr.read()
        return out.strip().splitlines(), err, self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture(autouse=True)
def every_signal_of_a_test_is_a_first(monkeypatch):
    monkeypatch.setattr(interrupts._state, "last", -np.inf)


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])


#: What a process does that a signal reaches -> (its script, [what is sent, what is said then] in turn).
ANSWERED = {
    "the best point with its certificate": (
        """
soon()
s = problem.solve(**LONG)
say(s.status, s.interrupted, np.isfinite(s.objective), s.dual_bound <= s.objective)
say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""",
        [["begun"], ["interrupted True True True", "True True"]],
    ),
    "a path ends after the point, and the next one raises": (
        """
soon()
say(*[s.status for s in problem.path(lam, [3.0, 2.0, 1.0], **LONG)], lam.value)
soon()
try:
    list(problem.path(lam, [3.0, 2.0], **LONG))
except KeyboardInterrupt:
    say("raised", lam.value)
""",
        [["begun"], ["interrupted 1.0", "begun"], ["raised 1.0"]],
    ),
    "several starts": (
        """
capped = mtl.minimize(mtl.absolute_loss(W, tasks) + 5.0 * mtl.capped_trace_norm(W, 1.0, eps=0.1))
soon()
s = capped.solve(starts=10, tol=1e-15, max_seconds=60)
say(s.interrupted, len(s.starts) < 10, np.isfinite(s.objective))
""",
        [["begun"], ["True True True"]],
    ),
    "a cross-check has no best point so far": (
        """
import mtldsl.solvers.multistart as solve
real = solve.run_routes
solve.run_routes = lambda form, **o: real(form, **(o | LONG | {"options": {}}))
soon()
try:
    problem.cross_check()
except KeyboardInterrupt:
    say("raised", signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
solve.run_routes = real
""",
        [["begun"], ["raised True"]],
    ),
    "a signal before the first solver is kept until there is a point": (
        """
import mtldsl.normal_form.statement as statement
made = statement.to_normal_form
def slow(*given):
    say("compiling")
    time.sleep(0.5)
    return made(*given)
statement.to_normal_form = slow
new = mtl.minimize(problem.objective, problem.constraints)  # whose form is not made yet
s = new.solve(**LONG)
statement.to_normal_form = made
say(s.status, s.objective <= new.form().value(new.form().zeros()))
""",
        [["compiling"], ["interrupted True"]],
    ),
}


def answers(child, scenarios, number):
    """Send a signal after every list of lines but the last, and hold what is said to the lists."""
    for name, (_, steps) in scenarios.items():
        for k, expected in enumerate(steps):
            assert [child.line() for _ in expected] == expected, name
            if k + 1 < len(steps):
                child.signal(number)


def scripts(scenarios):
    """The scripts one after the other, each of which hears a first signal."""
    first = "from mtldsl.utils import interrupts as stops\nstops._state.last = -np.inf\n"
    return "".join(first + script for script, _ in scenarios.values())


def in_turn(scenarios, number):
    """Return every other one: the signals take turns."""
    return dict(list(scenarios.items())[number == signal.SIGTERM :: 2])


@pytest.mark.process
@SIGNALS
def test_a_signal_is_answered(number):
    """A process does one thing after the other; at last, its loop of solves ends at the second signal."""
    answered = in_turn(ANSWERED, number)
    with Child(scripts(answered) + LOOP) as child:
        answers(child, answered, number)
        assert child.line() == "begun"
        child.signal(number)
        assert [child.line(), child.line()] == ["interrupted", "begun"]
        child.signal(number)
        out, err, code = child.end()
        assert out == [] and err.strip().endswith("KeyboardInterrupt") and code != 0
        assert ("press again to stop" in err) == (number == signal.SIGINT)


LOOP = """
stops._state.last = -np.inf
for fold in range(5):
    soon()
    say(problem.solve(**LONG).status)
"""


def test_handlers_of_the_program_are_left_alone():
    heard = []
    mine = {number: (lambda n, frame: heard.append(n)) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: signal.signal(number, handler) for number, handler in mine.items()}
    try:
        with interrupts.handle_signals():
            for number in mine:
                assert signal.getsignal(number) is mine[number]
                signal.raise_signal(number)
            assert not interrupts.is_signal_pending()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert heard == [signal.SIGINT, signal.SIGTERM]


def test_a_solve_in_a_thread_touches_no_handler():
    seen = []

    def solve():
        with interrupts.handle_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.process)],
    ids=["SIGINT", "SIGTERM"],
)  # Ctrl-C has no mark: one of three processes of the command line that run by default (tests/cli/test_cli.py)
def test_the_command_line_writes_the_best_point_at_a_signal(number, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 40))
    np.savez(tmp_path / "data.npz", X=X, Y=X @ rng.normal(size=(40, 6)) + rng.normal(size=(800, 6)))
    (tmp_path / "problem.toml").write_text(
        'minimize = "absolute_loss(W, tasks) + 5 * trace_norm(W)"\n[data]\npath = "data.npz"\n'
        '[solve]\nsolver = "admm"\ntol = 1e-15\nmax_iter = 1000000000\nmax_seconds = 60\n'
    )
    script = """
import mtldsl.solvers.run as d
from mtldsl.cli import main
real = d.Monitor.__call__
def look(self, point):
    answer = real(self, point)
    if len(self.history) == 2:
        say("begun")
    return answer
d.Monitor.__call__ = look
sys.exit(main(["solve", "problem.toml", "--output", "best.npz"]))
"""
    with Child(script, BEGIN, cwd=tmp_path) as child:
        assert child.line() == "begun"
        child.signal(number)
        out, err, code = child.end()
    said = " ".join(" ".join(out).split())
    assert code == 128 + number and "NOT certified (interrupted)" in said
    assert "not made: the solve was interrupted" in said
    assert err.strip() == (interrupts.INTERRUPTED if number == signal.SIGINT else "")
    assert mtl.Solution.load(tmp_path / "best.npz").status == "interrupted"


@pytest.mark.process
def test_sigterm_ends_a_worker_and_a_program_outside_of_a_solve():
    """A worker of multiprocessing dies of it as its pool expects, and a program that does not solve as ever."""
    script = """
import multiprocessing
def work():
    soon()
    problem.solve(**LONG)
    time.sleep(60)
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
sys.stdin.readline()
worker.terminate()
worker.join()
say(worker.exitcode)
time.sleep(60)
"""
    with Child(script, stdin=subprocess.PIPE) as child:
        assert child.line() == "begun"
        child.process.stdin.write("\n")
        child.process.stdin.flush()
        assert child.line() == str(-signal.SIGTERM)
        child.signal(signal.SIGTERM)
        assert child.end()[2] == -signal.SIGTERM


SLOW = """
import time

end = time.perf_counter() + 0.7
while time.perf_counter() < end:
    pass
whole = True
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["alarm", "Ctrl-C"])
def test_a_module_is_imported_as_a_whole_whatever_comes(tmp_path, monkeypatch, by):
    name = f"slow_to_import_{by.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    ended = interrupts.TimeIsUp if by == "alarm" else KeyboardInterrupt
    with (
        pytest.raises(ended),
        interrupts.handle_signals(),
        interrupts.time_limit(0.01 if by == "alarm" else 60),
        interrupts.allow_interrupts(),
    ):
        if by == "Ctrl-C":
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        __import__(name)
        while True:
            pass
    assert sys.modules[name].whole
    assert not interrupts.was_insisted()


@pytest.mark.slow
def test_a_function_is_compiled_as_a_whole_though_the_time_is_up():
    import numba

    @numba.njit
    def total(x):
        return np.sort(x * x)[::2].sum() + x.reshape(-1, 2).mean()

    with (
        pytest.raises(interrupts.TimeIsUp),
        interrupts.handle_signals(),
        interrupts.time_limit(0.001),
        interrupts.allow_interrupts(),
    ):
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.01)  # often, in place of after half a second
        total(np.ones(6))
        while True:
            pass
    assert len(total.signatures) == 1
    assert total(np.ones(6)) == pytest.approx(4.0)


# ------------------------------------------------------------------------------------------------- time limits
def small():
    tasks, W = with_weights(shared(0, n=8))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W))


class Deaf:
    """A solver that never asks for the time, and counts its naps of a hundredth of a second: a busy machine makes them longer and fewer."""

    def __init__(self):
        self.naps = 0

    def __call__(self, *_, **__):
        while True:
            time.sleep(0.01)
            self.naps += 1


@pytest.mark.slow
def test_a_solver_that_does_not_ask_for_the_time_is_left(monkeypatch):
    problem, deaf = small(), Deaf()
    monkeypatch.setattr("mtldsl.solvers.admm.admm.SOLVER.solve", deaf)
    solution = problem.solve("admm", max_seconds=0.1)
    assert 0 < deaf.naps <= 100
    assert solution.status == "time_limit" and not solution.interrupted
    assert solution.objective == pytest.approx(problem.form().value(solution.blocks))
    assert 0.0 < solution.dual_bound < problem.solve().objective  # of the gradients at the best point
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.slow
def test_the_best_point_of_a_left_solver_is_its_last_look(monkeypatch):
    problem = small()
    optimum = problem.solve(tol=1e-9)

    def one_look(form, *, watch, **_):
        watch(Point({"W": 0.9 * optimum.W}))
        Deaf()()

    monkeypatch.setattr("mtldsl.solvers.admm.admm.SOLVER.solve", one_look)
    solution = problem.solve("admm", tol=1e-9, max_seconds=0.2)
    assert solution.status == "time_limit" and len(solution.history) == 1
    np.testing.assert_array_equal(solution.W, 0.9 * optimum.W)
    assert np.isfinite(solution.gap)


def test_alarms_of_the_program_are_left_alone():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with interrupts.time_limit(0.01), interrupts.allow_interrupts():
            until = time.monotonic() + PATIENCE
            while not rung and time.monotonic() < until:
                time.sleep(0.01)
            assert np.sign(interrupts.remaining_seconds()) == -1.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert rung == [1]


def test_what_is_done_as_a_whole_is_not_left_in_the_middle():
    done = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.handle_signals(), interrupts.allow_interrupts():
            with interrupts.hold_signals():
                signal.raise_signal(signal.SIGINT)
                done.append("whole")
            done.append("never")
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["whole"]


@pytest.mark.slow
@pytest.mark.parametrize("nonconvex", [False, True])
def test_a_run_cut_off_has_the_bound_that_zero_proves(monkeypatch, nonconvex):
    tasks, W = with_weights(shared(0, n=8))
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + (mtl.log_rank(W, eps=0.01) + mtl.ridge(W) if nonconvex else mtl.l1_norm(W)))  # fmt: skip
    expected, deaf = infimum(problem.form()).value, Deaf()
    monkeypatch.setattr("mtldsl.solvers.run.ReducedForm.solve", deaf)
    for word in ("certify", "dual_bound"):
        monkeypatch.setattr(f"mtldsl.solvers.monitor.{word}", deaf)
    solution = problem.solve(max_seconds=0.2)
    assert 0 < deaf.naps <= 500
    assert solution.status == "time_limit" and np.isfinite(solution.objective)
    assert solution.dual_bound == expected <= solution.objective
    assert "time_limit" in str(solution)


def test_in_a_thread_nothing_rings_and_there_is_a_bound(monkeypatch):
    problem, found = small(), []

    def left_by_its_own(*_, **__):
        raise interrupts.TimeIsUp

    monkeypatch.setattr("mtldsl.solvers.run.ReducedForm.solve", left_by_its_own)
    thread = threading.Thread(target=lambda: found.append(problem.solve(max_seconds=0.2)))
    thread.start()
    thread.join()
    monkeypatch.undo()
    assert 0.0 <= found[0].dual_bound <= problem.solve().objective


@pytest.mark.slow
def test_a_global_bound_that_takes_too_long_is_left(monkeypatch):
    tasks, W = with_weights(shared(0, n=8))
    problem = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.log_rank(W, eps=0.01) + mtl.ridge(W))
    problem.solve(max_iter=1)  # imports and compiles
    deaf = Deaf()
    monkeypatch.setattr("mtldsl.solvers.monitor.dual_bound", deaf)
    solution = problem.solve(max_seconds=1.0, tol=1e-2)
    assert 0 < deaf.naps <= 500
    assert solution.dual_bound == -np.inf and np.isfinite(solution.objective)
