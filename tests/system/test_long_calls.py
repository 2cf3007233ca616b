"""Long calls of compiled code are left at a time limit and at a signal; what they return is theirs alone."""

import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.utils import interrupts
from mtldsl.utils.interrupts import SETTINGS, interruptible
from tests.models import with_weights


class Deaf:
    """A call that hears nothing for ten minutes, or until it is let go, and counts how often it has ended."""

    def __init__(self):
        self.let_go, self.ended = threading.Event(), 0

    def __call__(self, *_, **__):
        self.let_go.wait(600.0)
        self.ended += 1


@pytest.fixture
def deaf():
    one = Deaf()
    yield one
    one.let_go.set()


def test_a_short_call_is_made_here_and_a_long_one_in_a_thread():
    here = threading.get_ident()
    assert (
        interruptible(0.0, threading.get_ident)
        == here
        != interruptible(SETTINGS.thread_flops, threading.get_ident)
    )
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        interruptible(SETTINGS.thread_flops, fails)


def fails():
    raise np.linalg.LinAlgError("SVD did not converge")


@pytest.mark.slow
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_long_call_is_left_at_the_time_limit(in_thread, deaf):
    left = []

    def call():
        try:
            with interrupts.time_limit(0.1), interrupts.allow_interrupts():
                interruptible(SETTINGS.thread_flops, deaf)
        except interrupts.TimeIsUp:
            left.append(True)

    if in_thread:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    else:
        call()
    assert left and not deaf.ended


@pytest.mark.slow
def test_a_long_call_is_left_at_ctrl_c(deaf):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.handle_signals(), interrupts.allow_interrupts():
            timer.start()
            interruptible(SETTINGS.thread_flops, deaf)
        assert not deaf.ended
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_solve_leaves_a_decomposition_that_does_not_end(monkeypatch, deaf):
    X = np.random.default_rng(0).normal(size=(30, 8))
    tasks, W = with_weights(mtl.Tasks.shared(X, X[:, :4] + 1.0))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.trace_norm(W))
    problem.solve()
    monkeypatch.setattr(interrupts, "SETTINGS", replace(interrupts.SETTINGS, thread_flops=0.0))
    for word in ("eigh", "eigvalsh", "svd", "lstsq", "qr"):
        monkeypatch.setattr(np.linalg, word, deaf)
    solution = problem.solve(max_seconds=0.3, tol=1e-12)
    assert not deaf.ended
    assert solution.status == "time_limit" and np.isfinite(solution.gap)


@pytest.mark.slow
def test_in_a_thread_long_products_are_left_between_two_parts(monkeypatch):
    """Nothing rings there; what is done as a whole is not left."""
    from mtldsl.utils import parallel as blocks

    monkeypatch.setattr(blocks, "blocks_of", lambda size, work: [slice(k, k + 1) for k in range(size)])
    found = {}

    def parts(name, around):
        done = []

        def slowly(k, part):
            time.sleep(0.1)
            done.append(k)

        try:
            with interrupts.time_limit(0.1), around():
                blocks.in_blocks(8, 1.0, slowly)
        except interrupts.TimeIsUp:
            pass
        found[name] = len(done)

    for name, around in (("left", interrupts.allow_interrupts), ("whole", interrupts.hold_signals)):
        thread = threading.Thread(target=parts, args=(name, around))
        thread.start()
        thread.join()
    assert 0 < found["left"] < found["whole"] == 8
