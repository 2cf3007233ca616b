"""How soon a solve ends after its time limit, and after Ctrl-C: models of every family, on data that no solver is done with in time.

    python benchmarks/stopping.py                    every model, limits of 1 and 3 s, Ctrl-C after 1 s
    python benchmarks/stopping.py --thread           in a thread, where nothing helps a solver that does not ask for the time
    python benchmarks/stopping.py --only hinge       models whose name has this in it
    python benchmarks/stopping.py --write            and write benchmarks/results/stopping.md

Printed: seconds over the limit, of which 10 % and half a second are promised, seconds from Ctrl-C to the solution, of which one is
promised, and how many end without a bound. CPU seconds are what an idle machine takes: a busy one makes seconds of the clock longer.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.utils import interrupts


def data(n, d, m, labels="real", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 30, d)
    Y = X @ (rng.normal(size=(d, 5)) @ rng.normal(size=(5, m))) / np.sqrt(d) + 3.0 * rng.normal(size=(n, m))
    if labels == "sign":
        Y = np.where(Y > 0, 1.0, -1.0)
    elif labels == "count":
        Y = rng.poisson(np.exp(np.clip(0.01 * Y, -3, 2))).astype(float)
    return X, Y


def tasks_of(n, d, m, labels="real", apart=False):
    X, Y = data(n, d, m, labels)
    if not apart:
        return mtl.Tasks.shared(X, Y)
    rows = np.array_split(np.arange(n), m)
    return mtl.Tasks.separate([X[r] for r in rows], [Y[r, i] for i, r in enumerate(rows)])


MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def plain(loss, regularizer, size, labels="real", apart=False, **options):
    def build(scale):
        n, d, m = (max(4, int(k * s)) for k, s in zip(size, scale, strict=True))
        tasks = tasks_of(n, d, m, labels, apart)
        W = mtl.Weights(tasks)
        return mtl.minimize(loss(W, tasks) + regularizer(W)), options

    return build


def both(f, g):
    return lambda W: f(W) + g(W)


def times(c, f, **options):
    return lambda W: c * f(W, **options)


def structured(metric):
    return lambda W, tasks: 3.0 * mtl.structured_hinge(W, tasks, metric=metric)


MODELS |= {
    "absolute + trace": plain(mtl.absolute_loss, times(5, mtl.trace_norm), (3000, 200, 20)),
    "absolute + l1 large": plain(mtl.absolute_loss, times(5, mtl.l1_norm), (20000, 500, 20)),
    "hinge + l21": plain(mtl.hinge_loss, times(5, mtl.l21_norm), (5000, 300, 20), "sign"),
    "hinge + ridge": plain(mtl.hinge_loss, times(1e-3, mtl.ridge), (20000, 300, 10), "sign"),
    "hinge + trace separate": plain(mtl.hinge_loss, times(5, mtl.trace_norm), (20000, 200, 40), "sign", True),
    "logistic + trace": plain(mtl.logistic_loss, times(5, mtl.trace_norm), (20000, 300, 20), "sign"),
    "logistic + l21": plain(mtl.logistic_loss, times(1, mtl.l21_norm), (20000, 500, 20), "sign"),
    "squared + l21 wide": plain(mtl.squared_loss, times(1, mtl.l21_norm), (2000, 8000, 20)),
    "squared + l1 + trace": plain(
        mtl.squared_loss, both(times(1, mtl.l1_norm), times(5, mtl.trace_norm)), (5000, 1000, 30)
    ),
    "squared ridge closed": plain(mtl.squared_loss, times(1, mtl.ridge), (6000, 4000, 30)),
    "squared + total variation": plain(mtl.squared_loss, times(5, mtl.total_variation), (3000, 2000, 50)),
    "squared + l1_inf": plain(mtl.squared_loss, times(5, mtl.l1_inf_norm), (3000, 3000, 50)),
    "poisson + trace": plain(mtl.poisson_loss, times(0.1, mtl.trace_norm), (5000, 200, 20), "count"),
    "huber + graph": plain(mtl.huber_loss, times(1, mtl.l12_norm), (10000, 500, 30)),
    "square root + trace": plain(mtl.square_root_loss, times(0.5, mtl.trace_norm), (3000, 500, 30)),
    "quantile + squared trace": plain(mtl.quantile_loss, times(1, mtl.squared_trace_norm), (3000, 200, 20)),
    "F-score + l1": plain(structured(mtl.metrics.FScore()), mtl.l1_norm, (5000, 300, 20), "sign"),
    "F-score + trace": plain(structured(mtl.metrics.FScore()), mtl.trace_norm, (3000, 300, 20), "sign"),
    "F-score + ridge": plain(structured(mtl.metrics.FScore()), mtl.ridge, (20000, 300, 20), "sign"),
    "AUC + l21": plain(structured(mtl.metrics.AUC()), mtl.l21_norm, (5000, 300, 20), "sign"),
    "ROC area + ridge": plain(structured(mtl.metrics.ROCArea()), mtl.ridge, (10000, 300, 20), "sign"),
    "absolute + log rank": plain(
        mtl.absolute_loss, times(5, mtl.log_rank, eps=0.01), (1000, 100, 20)
    ),
    "hinge + log rank": plain(mtl.hinge_loss, times(5, mtl.log_rank, eps=0.01), (2000, 100, 20), "sign"),
    "squared + log rank": plain(mtl.squared_loss, times(5, mtl.log_rank, eps=0.01), (5000, 800, 60)),
    "logistic + capped": plain(
        mtl.logistic_loss, lambda W: 5 * mtl.capped_trace_norm(W, 1.0, eps=0.01), (5000, 300, 30), "sign"
    ),
    "cvxpy clarabel": plain(mtl.logistic_loss, times(3, mtl.trace_norm), (150, 80, 30), "sign", solver="cvxpy"),
    "cvxpy scs": plain(
        mtl.hinge_loss, times(3, mtl.trace_norm), (200, 80, 30), "sign", solver="cvxpy", backend="scs"
    ),
    "cvxpy planes": plain(structured(mtl.metrics.FScore()), mtl.trace_norm, (200, 30, 6), "sign", solver="cvxpy"),
    "cvxpy osqp": plain(mtl.absolute_loss, mtl.l1_norm, (400, 60, 10), solver="cvxpy", backend="osqp"),
}  # fmt: skip


@model
def robust_multi_task(scale):
    tasks = tasks_of(int(3000 * scale[0]), int(400 * scale[1]), int(30 * scale[2]))
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    return mtl.minimize(mtl.absolute_loss(L + S, tasks) + 5 * mtl.trace_norm(L) + 5 * mtl.l12_norm(S)), {}


@model
def constrained_logistic(scale):
    tasks = tasks_of(int(10000 * scale[0]), int(300 * scale[1]), int(20 * scale[2]), "sign")
    W = mtl.Weights(tasks)
    loss = mtl.logistic_loss(W, tasks) + mtl.l21_norm(W) + mtl.trace_norm(W)
    return mtl.minimize(loss, subject_to=[W >= 0, W.sum(axis=0) == 1]), {}


def named(name, size, labels="real", apart=False, **parameters):
    def build(scale):
        n, d, m = (max(4, int(k * s)) for k, s in zip(size, scale, strict=True))
        return mtl.model(name, tasks_of(n, d, m, labels, apart), **parameters), {}

    return build


MODELS |= {
    "FETR": named("FETR", (5000, 600, 100), eta=1.0, rho=1.0),
    "MTFL": named("MTFL", (5000, 800, 60), gamma=10.0),
    "MTRL": named("MTRL", (5000, 800, 60), gamma=10.0),
    "NC-CMTL": named("NC-CMTL", (5000, 500, 60), mu=5.0),
    "Reduced-rank": named("Reduced-rank regression", (5000, 800, 60), r=4),
    "MT-MKL": named("MT-MKL", (8000, 100, 40), "sign", True, C=10.0, p=2.0),
}


def views(loss, T, count):
    def build(scale):
        T_, count_ = max(4, int(T * scale[2])), max(2, int(count * scale[2]))
        tasks = tasks_of(30 * T_, 20, T_, "sign", apart=True)
        rng = np.random.default_rng(0)
        kernels = [B @ B.T for B in rng.normal(size=(count_, T_, 5))]
        W = mtl.Weights(tasks)
        return mtl.minimize(
            10.0 * loss(W, tasks) + mtl.mkl_norm(W, [mtl.similarities.from_kernel(K) for K in kernels], p=2)
        ), {}

    return build


MODELS |= {
    "200 views, hinge": views(mtl.hinge_loss, 100, 200),
    "200 views, logistic": views(mtl.logistic_loss, 100, 200),
    "200 views, squared": views(mtl.squared_loss, 100, 200),
    "50 views, F-score": views(structured(mtl.metrics.FScore()), 60, 50),
}


def labels(word, m, edges="all", regularizer=None):
    def build(scale):
        m_ = max(4, int(m * scale[2]))
        X, Y = data(max(20, int(2000 * scale[0])), 50, m_, "sign")
        tasks = mtl.Tasks.shared(X, Y)
        U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges=edges)
        return mtl.minimize(
            word(U, V, tasks) + 0.01 * mtl.ridge(U) + 0.01 * (regularizer or mtl.ridge)(V)
        ), {}

    return build


MODELS |= {
    "cliques of 10": labels(mtl.clique_hinge, 10),
    "cliques of 30": labels(mtl.clique_hinge, 30),
    "cliques of 14, k support": labels(
        mtl.clique_hinge, 14, "all", lambda V: mtl.half_squared_k_support_norm(V, r=2)
    ),
    "pairwise log": labels(mtl.pairwise_log_loss, 8),
}

RESULT = Path(__file__).parent / "results" / "stopping.md"

SMALL = (0.01, 0.1, 0.1)  # the same model, to import and compile


def run(build, scale, limit, interrupt: bool = False):
    """(seconds, and CPU seconds of them, from the time limit, or from Ctrl-C after one second, to the end; the solution)"""
    problem, options = build(scale)
    mark = []

    def ring():
        mark.append((time.perf_counter(), time.process_time()))
        if interrupt:
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0 if interrupt else limit, ring)
    timer.start()
    solution = problem.solve(tol=1e-13, max_iter=10**8, max_seconds=limit, **options)
    ended = time.perf_counter(), time.process_time()
    timer.cancel()
    timer.join()
    seconds = [end - start for end, start in zip(ended, mark[0], strict=True)] if mark else [np.nan, np.nan]
    return seconds, solution


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--thread", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--limits", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = {"over the limit": [], "from Ctrl-C": []}

    def show(name, what, title, result):
        (seconds, cpu), s = result
        found[title].append((seconds, cpu, name, what, s))
        print(
            f"{name:28} {what:6} {seconds:7.2f} s, CPU {cpu:7.2f}  {s.status:12} {s.solver:18} gap {s.gap:.0e} looks {len(s.history)}",
            flush=True,
        )

    def limited(name, build):
        run(build, SMALL, 1.0)
        for limit in options.limits:
            show(name, f"{limit:g} s", "over the limit", run(build, (1, 1, 1), limit))

    for name, build in MODELS.items():
        if options.only not in name:
            continue
        if options.thread:
            thread = threading.Thread(target=limited, args=[name, build])
            thread.start()
            thread.join()
            continue
        limited(name, build)
        interrupts._state.last = -np.inf  # every one of these is a first
        show(name, "Ctrl-C", "from Ctrl-C", run(build, (1, 1, 1), 30.0, interrupt=True))
    lines = summary(found)
    print("\n".join(lines))
    if options.write:
        RESULT.write_text(page(found, lines))


def summary(found) -> list[str]:
    """All runs in a few lines."""
    lines = []
    for title, rows in found.items():
        for k, kind in enumerate(("seconds", "CPU seconds")):
            values = np.array([row[k] for row in rows if np.isfinite(row[k])])
            if len(values):
                lines.append(
                    f"{kind} {title}: n {len(values)}, median {np.median(values):.2f}, nine of ten {np.quantile(values, 0.9):.2f}, max {values.max():.2f}"
                )
        without = [row[2] for row in rows if not np.isfinite(row[4].dual_bound)]
        lines.append(f"without a bound, {title}: {len(without)} of {len(rows)} {', '.join(without)}".rstrip())
    return lines


def page(found, lines: list[str]) -> str:
    """The file of results."""
    from machine import stamp  # beside this file

    table = [
        "| model | stopped by | s | CPU s | solver | relative gap | looks |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows in found.values():
        for seconds, cpu, name, what, s in rows:
            table.append(
                f"| {name} | {what} | {seconds:.2f} | {cpu:.2f} | {s.solver} | {s.gap:.0e} | {len(s.history)} |"
            )
    head = "# Stops: time limits and Ctrl-C\n\n`python benchmarks/stopping.py --write`; promised are 10 % and half a second over a limit, and a second from Ctrl-C."
    of = f"{stamp()} Load average at the end: {os.getloadavg()[1]:.1f}, other programs being at work."
    return "\n\n".join([head, "\n".join(f"- {line}" for line in lines), of, "\n".join(table)]) + "\n"


if __name__ == "__main__":
    main()
