"""Signals to processes that solve many times: what is complete is kept, nothing further begins, and a second signal ends it at once."""

import os
import re
import signal
import time

import pytest

from mtldsl.utils import interrupts
from tests.system.test_stops import BEGIN, PATIENCE, SIGNALS, Child, answers, in_turn, scripts

#: A small model; `LONG` are options with which a solve of it does not end soon, in as many iterations as it likes.
MANY = (
    BEGIN
    + """
from contextlib import contextmanager
from mtldsl.problems import cross_validation, resampling as stability, resampling as weight_intervals
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 10))
tasks = mtl.Tasks.shared(X, X[:, :2] @ rng.normal(size=(2, 3)) + rng.normal(size=(120, 3)))
W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
problem = mtl.minimize(mtl.absolute_loss(W, tasks) + lam * mtl.trace_norm(W))
LONG = dict(solver="admm", tol=1e-15, max_iter=10**9, max_seconds=60)
problem.solve("admm", max_iter=3)  # imports and compiles

@contextmanager
def slow_from(module, name, number):
    # from the `number`-th on, which says so, its solves do not end
    real, seen = getattr(module, name), []
    def slow(common, *given):
        seen.append(1)
        if len(seen) == number:
            soon()
        return real((*common[:-1], LONG if len(seen) >= number else common[-1]), *given)
    setattr(module, name, slow)
    yield
    setattr(module, name, real)

def ended(work):
    try:
        work()
    except mtl.Interrupted as stop:
        say(stop)
        return stop.completed
    except KeyboardInterrupt:
        say("KeyboardInterrupt")
"""
)


#: As in test_stops.py: what is done many times -> (its script, what is said in turn); a signal is sent between two lists.
ANSWERED = {
    "folds": (
        """
with slow_from(cross_validation, "_run", 3):
    found = ended(lambda: problem.cross_validate(lam, [9.0, 3.0], 5, "mse"))
say(found.n_folds, found.scores.shape, found.solution is None, lam.value, sorted({row["fold"] for row in found.table}))
""",
        [["begun"],
         ["cross_validate was interrupted when 2 of 5 folds were complete", "2 (2, 2) True 1.0 [0, 1]"]],
    ),
    "samples": (
        """
with slow_from(weight_intervals, "_learned", 4):
    say(len(ended(lambda: problem.bootstrap(20)).samples))
""",
        [["begun"], ["bootstrap was interrupted when 3 of 20 samples were complete", "3"]],
    ),
    "pairs of halves": (
        """
with slow_from(stability, "_chosen", 3):
    say(ended(lambda: problem.stability_selection(lam, [9.0, 3.0], n=20)).n)
""",
        [["begun"], ["stability_selection was interrupted when 2 of 10 pairs of halves were complete", "4"]],
    ),
    "a second signal ends it at once": (
        """
import mtldsl.solvers.run
def close(self, point):
    say("settling")
    time.sleep(60)
mtldsl.solvers.run.Monitor.close = close
with slow_from(cross_validation, "_run", 1):
    ended(lambda: problem.cross_validate(lam, [9.0, 3.0], 5, "mse"))
""",
        [["begun"], ["settling"], ["KeyboardInterrupt"]],
    ),
}  # fmt: skip


@pytest.mark.process
@SIGNALS
def test_what_is_complete_is_kept(number):
    answered = in_turn(ANSWERED, number)
    with Child(scripts(answered), MANY) as child:
        answers(child, answered, number)
        out, err, code = child.end()
    assert (out, code) == ([], 0)
    assert set(err.splitlines()) == ({interrupts.STOPPED} if number == signal.SIGINT else set())


def children(pid):
    """Processes that live and whose parent it is."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(name))
    return found


@pytest.mark.process
@pytest.mark.parametrize("to", ["the process", "its group, as a terminal does"])
def test_other_processes_end_with_it(to):
    """Two folds at a time: the signal may reach the workers too, or not."""
    script = """
say("begun")
ended(lambda: problem.cross_validate(lam, [9.0, 3.0], 4, "mse", n_jobs=2, **LONG))
say("on")
time.sleep(30)
"""
    with Child(script, MANY, start_new_session=True) as child:
        assert child.line() == "begun"
        pid = child.process.pid
        until = time.monotonic() + PATIENCE
        while len(workers := children(pid)) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(workers) >= 2
        while max(map(cpu, workers)) < 1.0 and time.monotonic() < until:  # imported, and at work
            time.sleep(0.1)
        (os.kill if to == "the process" else os.killpg)(pid, signal.SIGINT)
        said = child.line()  # on a loaded machine some folds may be through by now
        assert re.fullmatch(r"cross_validate was interrupted when [0-3] of 4 folds were complete", said), said
        assert child.line() == "on"
        until = time.monotonic() + PATIENCE
        busy = workers
        while busy and time.monotonic() < until:
            before = {one: cpu(one) for one in busy}
            time.sleep(0.5)
            busy = [one for one in busy if cpu(one) - before[one] > 0.1]
        assert not busy
        os.killpg(pid, signal.SIGKILL)


def cpu(pid):
    """CPU seconds that a process has used; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
