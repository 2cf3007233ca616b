"""A signal at any call of a run of many solves, the first ones included: `Interrupted`, and the process lives on."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, warnings
import numpy as np
import mtldsl as mtl
from mtldsl.system import stops
from mtldsl.estimators import MultiTaskRegressorCV

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
tasks = mtl.Tasks.shared(X, X[:, :2] + rng.normal(size=(40, 2)))
W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))
def cut_short(points):
    # a path ends after the point that a signal interrupted, and does not raise
    if len(points) < 3 or points[-1].interrupted:
        raise mtl.Interrupted("the path ended early")

work = {
    "cross_validate": lambda: problem.cross_validate(lam, 4, 3),
    "bootstrap": lambda: problem.bootstrap(4),
    "path": lambda: cut_short(list(problem.path(lam, [1.0, 0.3, 0.1]))),
    "stability_selection": lambda: problem.stability_selection(lam, 3, n=4),
    "estimator": lambda: MultiTaskRegressorCV(n_values=3, cv=3).fit(X, tasks.Y if hasattr(tasks, "Y") else X[:, :2]),
}[sys.argv[1]]

class Calls:
    # counts calls from the moment at which signals are heard, and sends one at the `at`-th
    def __init__(self, number=None, at=None):
        self.number, self.at, self.before, self.n = number, at, 0, 0
    def __call__(self, frame, event, argument):
        if event != "call":
            return
        if not self.n and signal.getsignal(signal.SIGTERM) is not stops._hear:
            self.before += 1
            return
        self.n += 1
        if self.n == self.at:
            os.kill(os.getpid(), self.number)
    def run(self):
        stops._state.last = -np.inf
        sys.setprofile(self)
        try:
            work()
            return "complete"
        except mtl.Interrupted as stop:
            return "Interrupted"
        except KeyboardInterrupt:
            return "KeyboardInterrupt"
        finally:
            sys.setprofile(None)

cold = Calls(signal.SIGTERM, 3)  # nothing of it has been imported yet
print("cold", cold.run(), flush=True)
whole = Calls()
whole.run()
whole = Calls()
print("whole", whole.run(), whole.before, flush=True)
for k, at in enumerate(sorted({1, 2, 5, 20, 60, *np.geomspace(100, whole.n - 100, 6).astype(int).tolist()})):
    number = (signal.SIGINT, signal.SIGTERM)[k % 2]
    print(number.name, at, Calls(number, at).run(), flush=True)
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("kind", ["cross_validate", "path", "bootstrap", "stability_selection", "estimator"])
def test_a_signal_at_any_call_is_answered(kind):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, kind], capture_output=True, text=True, timeout=300
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert lines[0] == ["cold", "Interrupted"]
    assert lines[1][1] == "complete"
    # calls before signals are heard: none of them slow; those of a path check its values first
    assert int(lines[1][2]) < (60 if kind == "path" else 40)
    wrong = [line for line in lines[2:-1] if line[2] != "Interrupted"]
    assert not wrong
    assert lines[-1] == ["True"]
