"""Small files of every kind that mtldsl reads, as they should be, and how each is read and then used."""

from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.cli.problem_files.data_sections import stored_array as read_array_file
from tests.datasets.mat_here import cells, sparse_arrays
from tests.models import with_weights


def write_sound_files(folder: Path) -> None:
    """A folder of files for each of READERS."""
    for kind in READERS:
        (folder / kind).mkdir()
    draw = np.random.default_rng(0)
    X, Y = draw.normal(size=(12, 3)), np.where(draw.normal(size=(12, 2)) > 0, 1.0, -1.0)
    _write_solutions(folder, X, Y)
    _write_tables(folder, X, Y)
    _write_parts(folder, X, Y)


def _write_solutions(folder: Path, X, Y) -> None:
    tasks, W = with_weights(mtl.Tasks.shared(X, Y), intercept=True)
    mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.ridge(W)).solve(tol=1e-3).save(folder / "solution" / "a.npz")
    scaled, V = with_weights(mtl.Tasks.shared(X, X @ np.ones((3, 2)) + Y).standardize())
    kinds = mtl.FeaturePrecision(scaled, "A"), mtl.TaskPrecision(scaled, "B")
    bounds = [side for kind in kinds for side in (kind >> 0.01, kind << 100)]
    learned = mtl.minimize(mtl.sum_of_squares(V, scaled) + mtl.matrix_normal(V, *kinds), bounds)
    learned.solve(tol=1e-3, max_iter=50).save(folder / "learned" / "a.npz")
    square_root = mtl.minimize(mtl.square_root_loss(V, scaled) + 2.0 * mtl.log_rank(V, eps=0.1))
    square_root.solve(tol=1e-3, starts=2, random_state=0, max_iter=50).save(folder / "learned" / "b.npz")
    theta = mtl.KernelWeights(3, "theta")
    similarities = [mtl.similarities.union(), mtl.similarities.individual()]
    kernels = 0.1 * mtl.hinge_loss(W := mtl.Weights(tasks), tasks) + mtl.mkl_norm(W, similarities, theta)
    mixed = mtl.minimize(kernels, subject_to=[mtl.p_norm(theta, 2) <= 1])
    mixed.solve(tol=1e-3).save(folder / "kernels" / "a.npz")
    mapped, U = with_weights(tasks.with_kernels([("rbf", {"gamma": 0.5})]))
    mtl.minimize(mtl.hinge_loss(U, mapped) + mtl.ridge(U)).solve(tol=1e-3).save(folder / "kernels" / "b.npz")
    star = datasets.make_label_graph(
        n_labels=3, n_features=3, edges=[[0, 1]], n_train=20, n_test=2, random_state=0
    ).train
    nodes, edges = mtl.NodeWeights(star), mtl.EdgeWeights(star)
    graph = (
        mtl.clique_hinge(nodes, edges, star)
        + 0.1 * mtl.ridge(nodes)
        + 0.1 * mtl.half_squared_group_norm(edges)
    )
    mtl.minimize(graph).solve(tol=1e-2).save(folder / "graph" / "a.npz")


def _use_solution(folder: Path) -> None:
    """All that a file says is looked at: what it holds must be right, or be refused by an error of mtldsl."""
    for path in sorted(folder.glob("*.npz")):
        solution = mtl.Solution.load(path)
        assert not solution.verified and "as saved, not verified" in str(solution)
        repr(solution)
        np.float64(solution.spread)
        maps = solution.kernel_map
        names = solution.feature_names if maps is None else maps.feature_names
        X = np.ones((2, len(names)))
        assert len(solution.predict(X)) == 2
        solution.decision_function(X)
        if solution.loss["labels"] == "sign":
            tasks = mtl.Tasks.shared(
                np.array([X[0], -X[0]]), np.array([[1.0], [-1.0]]) * np.ones(len(solution.task_names)),
                task_names=solution.task_names, feature_names=names,
            )  # fmt: skip
            solution.scores(tasks)
        for one in solution.learned.values():
            str(one), repr(one)
        if solution.label_graph is not None:
            str(solution.label_graph), solution.graph.number_of_edges()
        solution.save(path)


def _write_tables(folder: Path, X, Y) -> None:
    rows = "\n".join(
        f"{a:.3f},{b:.3f},{'red' if c > 0 else 'blue'},{y:g}" for (a, b, c), (y, _) in zip(X, Y, strict=True)
    )
    (folder / "csv" / "a.csv").write_text(f"one,two,colour,label\n{rows}\n")
    head = "@relation r\n@attribute one numeric\n@attribute 'two words' real\n@attribute colour {red,blue}\n"
    head += "@attribute y0 {0,1}\n@attribute y1 {0,1}\n@data\n"
    dense = "\n".join(
        f"{a:.3f},{b:.3f},{'red' if c > 0 else 'blue'},{y > 0:d},{z > 0:d}"
        for (a, b, c), (y, z) in zip(X, Y, strict=True)
    )
    sparse_rows = "\n".join(
        f"{{0 {a:.3f}, 3 {y > 0:d}, 4 {z > 0:d}}}" for (a, _, _), (y, z) in zip(X, Y, strict=True)
    )
    (folder / "arff" / "a.arff").write_text(head + dense + "\n")
    (folder / "arff" / "b.arff").write_text(head + sparse_rows + "\n")
    xml = '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n<label name="y0"></label>\n<label name="y1"/>\n</labels>\n'
    (folder / "arff" / "labels.xml").write_text(xml)
    lines = "\n".join(f"{y:g} 1:{a:.3f} 3:{c:.3f} # row" for (a, _, c), (y, _) in zip(X, Y, strict=True))
    (folder / "libsvm" / "a.svm").write_text(lines + "\n")
    np.savez(folder / "npz" / "a.npz", X=X, Y=Y, task_names=["a", "b"], feature_names=["x", "y", "z"])
    np.save(folder / "npy" / "a.npy", X)
    np.savez_compressed(folder / "npy" / "b.npz", A=X)
    np.savetxt(folder / "npy" / "c.csv", X, delimiter=",")
    from scipy.io import savemat

    content = {"feature": cells([X[:6], X[6:]]), "label": cells([Y[:6, :1], Y[6:, :1]])}
    savemat(folder / "mat" / "a.mat", content, do_compression=True)
    savemat(folder / "mat" / "b.mat", {"X": X, "Y": Y, "note": "text", "s": {"a": 1}})


def _use_tasks(tasks) -> None:
    """Every row and column is touched."""
    repr(tasks), tasks.describe(), tasks.fingerprint()
    assert np.isfinite(tasks.targets).all()
    if tasks.n_features * tasks.n_tasks < 10**6:
        assert len(tasks.forward(np.zeros((tasks.n_features, tasks.n_tasks)))) == tasks.n_samples


def _tasks_of(*reads):
    """A use of all that is read of a folder."""

    def use(folder: Path) -> None:
        for read in reads:
            _use_tasks(read(folder))

    return use


def _use_npy(folder: Path) -> None:
    """The matrices of [arrays] in a problem file."""
    for path in sorted(folder.iterdir()):
        array = read_array_file(path, None)
        assert array.copy().shape == array.shape


def _write_parts(folder: Path, X, Y) -> None:
    import pyarrow
    import pyarrow.parquet
    from scipy import sparse

    lines = "\n".join(
        f"{y:g} qid:{k % 2} 1:{a:.3f} 3:{c:.3f}"
        for k, ((a, _, c), (y, _)) in enumerate(zip(X, Y, strict=True))
    )
    (folder / "libsvm_part" / "a.svm").write_text(lines + "\n")
    task = ["a", "b"] * 6
    columns = {"x": X[:, 0], "y": X[:, 1], "label": Y[:, 0], "task": task}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "parquet" / "a.parquet")
    lists = {"indices": [[0, 2]] * 12, "values": [[1.0, 2.0]] * 12, "label": Y[:, 0], "task": task}
    pyarrow.parquet.write_table(
        pyarrow.table(lists), folder / "parquet_lists" / "a.parquet", compression="none"
    )
    np.savez(folder / "npz_part" / "a.npz", y=Y[:, 0], task=task, **sparse_arrays(sparse.csr_array(X)))
    datasets.store(folder / "libsvm_part" / "a.svm", folder / "made")
    for path in (folder / "made").iterdir():
        if path.is_file():
            path.rename(folder / "stored" / path.name)


def _use_part(folder: Path) -> None:
    (path,) = folder.iterdir()
    _use_tasks(datasets.store(path, folder.parent / "there"))


#: kind -> how a folder of its files is read and used
READERS = {
    **dict.fromkeys(("solution", "learned", "kernels", "graph"), _use_solution),
    "csv": _tasks_of(lambda f: datasets.read_csv(f / "a.csv", "label", one_hot=["colour"])),
    "arff": _tasks_of(
        lambda f: datasets.read_arff(f / "a.arff", f / "labels.xml"),
        lambda f: datasets.read_arff(f / "b.arff", f / "labels.xml"),
    ),
    "libsvm": _tasks_of(lambda f: datasets.read_libsvm(f / "a.svm")),
    "npz": _tasks_of(lambda f: datasets.read_npz(f / "a.npz")),
    "npy": _use_npy,
    "mat": _tasks_of(lambda f: datasets.load_landmine(f / "a.mat"), lambda f: datasets.read_mat(f / "b.mat")),
    **dict.fromkeys(("libsvm_part", "parquet", "parquet_lists", "npz_part"), _use_part),
    "stored": _tasks_of(datasets.stored),
}
