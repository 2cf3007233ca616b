"""A small model for every backend of cvxpy, every kind of table and every reader with a library of its own, cross-checked where it is solved.

Run where the lowest versions allowed are installed: `python .ci/smoke.py`.
"""

import re
import sys
import tempfile
from importlib.metadata import requires, version
from pathlib import Path

import numpy as np

import mtldsl as mtl

PACKAGES = (
    *("numpy", "scipy", "cvxpy", "osqp", "scs", "clarabel", "numba", "scikit-learn", "threadpoolctl", "narwhals"),
    *("networkx", "rich", "matplotlib", "pyarrow", "pandas", "polars", "dask", "distributed"),
)  # fmt: skip


def main() -> None:
    lowest()
    print(f"Python {sys.version.split()[0]}:", ", ".join(f"{name} {version(name)}" for name in PACKAGES))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    Y = X @ rng.normal(size=(5, 3)) + rng.normal(size=(40, 3))
    numbers, signs = mtl.Tasks.shared(X, Y), mtl.Tasks.shared(X, np.where(Y > 0, 1.0, -1.0))
    V = mtl.Weights(numbers)
    W = mtl.Weights(signs, intercept=True)
    quadratic = mtl.squared_loss(V, numbers) + 2 * mtl.ridge(V)
    for backend, problem in (
        ("osqp", mtl.minimize(quadratic, subject_to=[V >= 0])),
        ("scs", mtl.minimize(mtl.logistic_loss(W, signs) + 2 * mtl.trace_norm(W))),
        ("clarabel", mtl.minimize(mtl.hinge_loss(W, signs) + mtl.l21_norm(W), subject_to=[W <= 1])),
    ):
        check = problem.cross_check(solver=backend)
        print(check)
        assert check.agrees and check.backend == backend, backend
    metric = mtl.minimize(mtl.l21_norm(W) + 3 * mtl.structured_hinge(W, signs, metric=mtl.metrics.FScore()))
    assert metric.solve().status == "optimal"
    tables(X, Y, numbers)
    label_graph()
    picture(quadratic)
    parts_elsewhere(X, Y)
    print("all of it works")


def lowest() -> None:
    """Most packages are as old as they may be: where a wheel of that version is missing for this Python, the next one is taken."""
    bounds = dict(
        re.findall(r"^([\w-]+)(?:\[[\w,]*\])?>=([\d.]+)", "\n".join(requires("mtldsl")), re.MULTILINE)
    )
    old = [name for name in PACKAGES if f"{version(name)}.".startswith(f"{bounds[name]}.")]
    assert len(old) >= len(PACKAGES) / 2, f"only {old} are at their lowest version"


def tables(X, Y, tasks) -> None:
    """pandas, polars, scipy's sparse matrices, Parquet and MATLAB files give the same tasks."""
    import pandas
    import polars
    import pyarrow
    import pyarrow.parquet
    import scipy.io
    from scipy import sparse

    names, labels = [f"x{j}" for j in range(5)], ["a", "b", "c"]
    for module in (pandas, polars):
        made = mtl.Tasks.shared(
            module.DataFrame(dict(zip(names, X.T, strict=True))),
            module.DataFrame(dict(zip(labels, Y.T, strict=True))),
        )
        assert made.task_names == tuple(labels) and np.array_equal(made.X, tasks.X), module.__name__
    assert mtl.Tasks.shared(sparse.csr_array(X), Y).n_features == 5
    with tempfile.TemporaryDirectory() as folder:
        scipy.io.savemat(Path(folder, "data.mat"), {"X": X, "Y": Y})
        assert np.array_equal(mtl.datasets.read_mat(Path(folder, "data.mat")).targets, tasks.targets)
        columns = {
            **dict(zip(names, X.T, strict=True)),
            "label": Y[:, 0],
            "task": ["one", "two"] * (len(Y) // 2),
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), Path(folder, "data.parquet"))
        stored = mtl.datasets.store(Path(folder, "data.parquet"), Path(folder, "there"))
        assert stored.task_names == ("one", "two")
        saved = mtl.minimize(mtl.squared_loss(mtl.Weights(stored), stored)).solve().save(Path(folder, "w"))
        assert mtl.Solution.load(saved).W.shape == (5, 2)


def label_graph() -> None:
    star = mtl.datasets.make_label_graph(label_noise=0.05, n_train=100, random_state=0)
    assert mtl.datasets.chow_liu_tree(star.train)


def parts_elsewhere(X, Y) -> None:
    """Rows in chunks of Dask's, in this process."""
    import dask.array

    tasks = mtl.Tasks.from_dask(dask.array.from_array(X, chunks=(10, 5)), Y)
    assert np.allclose(tasks.cross(), X.T @ Y) and tasks.parts.n_parts == 4


def picture(objective) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from mtldsl.display.pictures.curves import trace_plot

    trace_plot(mtl.minimize(objective).solve().history)


if __name__ == "__main__":
    main()
