"""What a solve by passes will take is said from the first pass on, and better with every look: by a clock of the test's own."""

import logging
import re

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import RowParts
from mtldsl.utils import progress
from tests.models import with_weights


class Clock:
    """Stands still, but for passes of so many seconds each."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.seconds = 100.0, seconds
        self.n = -1  # passes, without the one that makes the tasks
        monkeypatch.setattr(progress, "clock", lambda: self.now)
        run = RowParts.run.__wrapped__

        def slow(parts, *given, **named):
            with progress.time_pass():
                self.now += self.seconds
                self.n += 1
                return run(parts, *given, **named)

        monkeypatch.setattr(RowParts, "run", slow)


def problem(word="logistic_loss", signs=True, n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    Y = X @ rng.normal(size=(6, 3)) + rng.normal(size=(n, 3))
    tasks = DistributedTasks.cut(mtl.Tasks.shared(X, np.sign(Y) if signs else Y), 4)
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(getattr(mtl, word)(W, tasks) + 0.02 * n * mtl.trace_norm(W))


def test_verbose_says_it_after_the_first_pass_and_before_a_look(monkeypatch, capsys):
    clock = Clock(monkeypatch, 12.0)
    problem().solve(verbose=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    said = r"a pass over 400 rows took 12 s; newton_by_passes usually needs \d+ to \d+ passes: .* in all"
    assert re.fullmatch(said, lines[0])
    assert clock.n > 3 and "newton_by_passes       1" in lines[1] and "s to go" in lines[1]
    assert "to go" not in lines[-1]  # there the gap is below the tolerance


@pytest.mark.parametrize(("seconds", "level"), [(0.1, "INFO"), (40.0, "WARNING")])
def test_a_long_solve_says_so_unasked(monkeypatch, caplog, seconds, level):
    Clock(monkeypatch, seconds)
    with caplog.at_level(logging.INFO, "mtldsl"):
        problem().solve(callback=lambda record: None)
    said = [r for r in caplog.records if "usually needs" in r.getMessage()]
    assert [r.levelname for r in said] == [level]


def test_squares_say_that_the_rest_is_here(monkeypatch, capsys):
    Clock(monkeypatch, 500.0)
    problem("squared_loss", signs=False).solve(verbose=True)
    err = capsys.readouterr().err
    assert "a pass over 400 rows took 8 min; everything else is computed here" in err and "to go" not in err


@pytest.mark.slow
def test_a_callback_hears_what_is_left_and_it_becomes_true(monkeypatch):
    clock = Clock(monkeypatch, 3.0)
    seen = []
    problem("hinge_loss").solve(callback=lambda record: seen.append((clock.n, record)))
    total = clock.n
    assert len(seen) > 20 and seen[-1][1]["passes_left"] == 0
    for n, record in seen:
        assert record["passes"] == n and record["pass_seconds"] == pytest.approx(3.0)
        assert record["seconds_left"] == pytest.approx(record["passes_left"] * 3.0)
    late = [(n + r["passes_left"]) / total for n, r in seen[len(seen) * 3 // 4 :]]
    assert 2 / 3 <= np.median(late) <= 3 / 2


def test_the_history_and_the_solution_are_as_ever(monkeypatch):
    quiet = problem().solve()
    Clock(monkeypatch, 3.0)
    loud = problem().solve(callback=lambda record: None)
    assert all("passes_left" not in one for one in loud.history)
    np.testing.assert_array_equal(quiet.W, loud.W)


def test_rows_that_are_here_hear_nothing(capsys):
    rng = np.random.default_rng(0)
    tasks, W = with_weights(mtl.Tasks.shared(rng.normal(size=(40, 3)), rng.normal(size=(40, 2))))
    seen = []
    mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).solve(verbose=True, callback=seen.append)
    assert "pass" not in capsys.readouterr().err and "passes" not in seen[-1]
