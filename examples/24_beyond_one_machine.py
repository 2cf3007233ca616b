"""24. More rows than memory
=========================

Rows on Dask's workers, and a proof without them.

::

    squares    squared_loss(W, tasks) + 300 * l21_norm(W)     one pass over the rows
    logistic   logistic_loss(W, tasks) + 300 * l21_norm(W)    some ten passes: value to Hessian
    hinge      hinge_loss(W, tasks) + 300 * l21_norm(W)       multipliers stay beside their rows

Two processes are started on this machine; with ``Client("tcp://...")`` in their place, nothing
else changes. The rows are made where they are used, and neither labels nor predictions ever come
to this process: a sum of squares knows of its rows only their second moments, a smooth loss tells
value, gradient and Hessian in one pass, and the duality gap is a sum over the rows, too. All sums
are added in an order that does not depend on who is first, so that one worker or two, or one that
was killed, give the same bits.

WHAT CAME OF IT. The three optima are proven to 1e-6, 1e-6 and 1e-3. The squares' path of ten
values costs no pass more than its first value. The reference, which sees a sample of the rows
drawn on the workers, agrees.

Run: ``python examples/24_beyond_one_machine.py`` (needs the extra ``dask``: pip install
".[dask]" in the checkout)
"""

import os
from importlib.util import find_spec

import numpy as np

import mtldsl as mtl

ROWS = int(os.environ.get("ROWS", "24000"))  # 20 features: 8 GB are ROWS=50000000
FEATURES, TASKS, CHUNKS = 20, 4, 8


def main() -> None:
    import dask.array as da
    from distributed import Client, LocalCluster

    dashboard = os.environ.get("DASHBOARD", "127.0.0.1:0")  # any free port of this machine alone
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=dashboard
        ) as cluster,
        Client(cluster) as client,
    ):
        link = client.dashboard_link if find_spec("bokeh") else "none without: pip install bokeh"
        print(f"the workers: {cluster.scheduler_address}, their dashboard: {link}\n")
        rng, rows = da.random.default_rng(0), ROWS // CHUNKS
        truth = (
            np.random.default_rng(1).normal(size=(FEATURES, TASKS))
            * (np.arange(FEATURES) < 6)[:, None]
        )
        X = rng.normal(size=(ROWS, FEATURES), chunks=(rows, FEATURES))
        scores = X @ truth + rng.normal(size=(ROWS, TASKS), chunks=(rows, TASKS))

        amounts = mtl.Tasks.from_dask(X, scores)
        classes = mtl.Tasks.from_dask(X, da.where(scores > 0.5, 1.0, -1.0))
        print(amounts, "\n")
        for name, tasks, loss, tol in (
            ("squares", amounts, mtl.squared_loss, 1e-6),
            ("logistic", classes, mtl.logistic_loss, 1e-6),
            ("hinge", classes, mtl.hinge_loss, 1e-3),
        ):
            lam, W = mtl.Parameter(300.0, name="lam"), mtl.Weights(tasks, intercept=True)
            problem = mtl.minimize(loss(W, tasks) + lam * mtl.l21_norm(W))
            before, moved = tasks.parts.passes, tasks.parts.bytes_moved
            solution = problem.solve(tol=tol)
            passes, moved = tasks.parts.passes - before, tasks.parts.bytes_moved - moved
            kept = int((np.abs(solution.W).max(axis=1) > 1e-6).sum())
            print(
                f"{name:9} {solution.status}: {solution.dual_bound:.4f} <= optimum <= "
                f"{solution.objective:.4f}, relative gap {solution.gap:.1e}; {kept} of "
                f"{FEATURES} features; "
                f"{passes} passes, {moved / 1024:,.0f} KiB moved for "
                f"{8 * tasks.n_samples // TASKS * (FEATURES + TASKS) / 2**20:,.0f} MiB of rows"
            )
            if name == "squares":
                before, top = tasks.parts.passes, problem.lambda_max(lam)
                path = list(problem.path(lam, np.geomspace(top, top / 100.0, 10)))
                print(
                    f"          a path of {len(path)} values: {tasks.parts.passes - before} pass "
                    f"more, for lambda_max"
                )
                lam.value = 300.0
            check = problem.cross_check(problem.solve(tol=tol), max_size=40_000)
            print(
                f"          cross-check {check.scope}: "
                f"{'agrees' if check.agrees else 'DISAGREES'}\n"
            )


if __name__ == "__main__":  # the workers import this file
    main()
