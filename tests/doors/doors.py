"""Doors through which files come in, each as a function: a quirk of a table -> what the door read."""

import csv
import datetime
import io
import re

import numpy as np
import pytest
import scipy.io
from scipy import sparse

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import DataError, MTLError
from tests.datasets.mat_here import read_here


class Refused(Exception):
    """The words of a typed error, of Python or of the command line."""


def text_of(value) -> str:
    """A cell as other programs write it."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.timedelta):
        return f"{value.days} days"
    return repr(value) if isinstance(value, float) else str(value)


def write_csv(path, columns):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(
        [[text_of(cell) for cell in row] for row in zip(*(cells for _, cells in columns), strict=True)]
    )
    path.write_text(out.getvalue())
    return path


def write(quirk, path, columns=None):
    """The quirk's own file for this ending, else its table as CSV."""
    own = quirk.files.get(path.suffix)
    if own is None or columns is not None:
        return write_csv(path, quirk.columns if columns is None else columns)
    path.write_bytes(own if isinstance(own, bytes) else own.encode())
    return path


def found_in(tasks):
    """({feature: column}, labels) of tasks, wherever their rows are."""
    tasks = tasks if tasks.in_memory else tasks.subsample(10**6, 0)
    X = tasks.X if tasks.is_shared else tasks.stacked
    X = X.toarray() if sparse.issparse(X) else X
    X = X[tasks.mask[:, 0]] if tasks.mask is not None else X  # the rows of the label
    return dict(zip(tasks.feature_names, X.T.tolist(), strict=True)), tasks.targets.tolist()


def read(call):
    """What a function of Python reads."""
    try:
        return found_in(call())
    except MTLError as error:
        assert isinstance(error, DataError), f"{type(error).__name__} in place of DataError: {error}"
        raise Refused(str(error)) from error


def run(capsys, *words) -> str:
    """What a command prints."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    if code == 2:
        raise Refused(said.err)
    assert code == 0, said
    return said.out


def read_csv(quirk, folder, capsys):
    path = write(quirk, folder / "t.csv")
    return read(lambda: datasets.read_csv(path, "y", **quirk.options))


def read_arff(quirk, folder, capsys):
    path = folder / "t.arff"
    if ".arff" in quirk.files:
        write(quirk, path)
    else:
        path.write_text(arff_of(quirk))
    options = {key: value for key, value in quirk.options.items() if key not in ("one_hot", "one_vs_rest")}
    return read(lambda: datasets.read_arff(path, "y", **options))


def arff_of(quirk) -> str:
    lines = ["@relation t"]
    for name, cells in quirk.columns:
        lines.append(f"@attribute '{name}' {arff_kind(name, cells, quirk)}")
    lines.append("@data")
    for row in zip(*(cells for _, cells in quirk.columns), strict=True):
        lines.append(",".join("?" if cell is None else f"'{text_of(cell)}'" if isinstance(cell, str) else text_of(cell) for cell in row))  # fmt: skip
    return "\n".join(lines) + "\n"


def arff_kind(name, cells, quirk):
    there = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, datetime.date | datetime.timedelta) for cell in there):
        return "date"
    if any(isinstance(cell, str) for cell in there) or name in quirk.options.get("one_hot", ()):
        values = sorted({text_of(cell) for cell in there})
        return "{" + ",".join(f"'{value}'" for value in values) + "}"
    return "string" if any(isinstance(cell, bytes) for cell in there) else "numeric"


def arrays_of(quirk, missing=np.nan):
    """X (n, d) and y (n,) as numpy holds them: of one kind where the columns are."""
    *inputs, (_, y) = quirk.columns
    if any(
        isinstance(cell, str | bytes | datetime.date | datetime.timedelta)
        for _, cells in quirk.columns
        for cell in cells
    ):
        inputs = [inputs[-1]]  # the column of the quirk alone: numpy would make text of the others
    elif all(isinstance(cell, int) for cell in inputs[-1][1]) and max(map(abs, inputs[-1][1])) > 2**53:
        inputs = [inputs[-1]]  # whole numbers stay whole
    X = np.array([[missing if cell is None else cell for cell in cells] for _, cells in inputs]).T
    if isinstance(inputs[-1][1][0], datetime.date):
        X = X.astype("datetime64[D]")
    elif isinstance(inputs[-1][1][0], datetime.timedelta):
        X = X.astype("timedelta64[D]")
    y = [missing if cell is None else cell for cell in y]
    return X, np.array(y), [name for name, _ in inputs]


def read_mat(quirk, folder, capsys):
    X, y, names = arrays_of(quirk)
    scipy.io.savemat(folder / "t.mat", {"X": X, "Y": y[:, None]})
    with pytest.MonkeyPatch.context() as patch:
        read_here(patch)
        return named(read(lambda: datasets.read_mat(folder / "t.mat", **array_options(quirk))), names)


def read_npz(quirk, folder, capsys):
    X, y, names = arrays_of(quirk)
    np.savez(folder / "t.npz", X=X, Y=y, feature_names=names)
    return read(lambda: datasets.read_npz(folder / "t.npz", **array_options(quirk)))


def array_options(quirk):
    return {key: value for key, value in quirk.options.items() if key in ("binary", "impute")}


def named(found, names):
    features, y = found
    return dict(zip(names, features.values(), strict=True)), y


def libsvm_file(quirk, folder):
    path = folder / "parts" / "t.svm"
    path.parent.mkdir()
    if ".svm" in quirk.files:
        return write(quirk, path)
    *inputs, (_, y) = quirk.columns
    rows = zip(y, *(cells for _, cells in inputs), strict=True)
    path.write_text("".join(f"{text_of(label)} " + " ".join(f"{j}:{text_of(cell) if cell is not None else 'nan'}" for j, cell in enumerate(cells, 1)) + "\n" for label, *cells in rows))  # fmt: skip
    return path


def libsvm(quirk, folder, reader, options):
    path = libsvm_file(quirk, folder)
    own = {key: quirk.options[key] for key in options if key in quirk.options}
    return named(read(lambda: reader(path, **own)), [name for name, _ in quirk.columns[:-1]])


def read_libsvm(quirk, folder, capsys):
    return libsvm(quirk, folder, datasets.read_libsvm, ("binary", "one_vs_rest", "zero_based"))


def parquet_folder(quirk, folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    there = folder / "parts"
    there.mkdir()
    if quirk.parquet is not None:
        quirk.parquet(there)
    else:
        arrays = [pyarrow.array(cells) for _, cells in quirk.columns]
        parquet.write_table(
            pyarrow.Table.from_arrays(arrays, [name for name, _ in quirk.columns]), there / "t.parquet"
        )
    return there


def scan_parquet(quirk, folder, capsys):
    there = parquet_folder(quirk, folder)
    return read(lambda: datasets.scan(there, labels="y"))


def store_parquet(quirk, folder, capsys):
    there = parquet_folder(quirk, folder)
    return read(lambda: datasets.store(there, folder / "stored", task="file", label="y"))


def from_dask_dataframe(quirk, folder, capsys):
    frames = pytest.importorskip("dask.dataframe")
    there = parquet_folder(quirk, folder)
    return read(lambda: mtl.Tasks.from_dask_dataframe(frames.read_parquet(there), None, "y"))


def npz_folder(quirk, folder):
    X, y, names = arrays_of(quirk)
    there = folder / "parts"
    there.mkdir()
    np.savez(there / "t.npz", X=X, y=y)
    return there, names


def scan_npz(quirk, folder, capsys):
    there, names = npz_folder(quirk, folder)
    return named(read(lambda: datasets.scan(there)), names)


def store_npz(quirk, folder, capsys):
    there, names = npz_folder(quirk, folder)
    return named(read(lambda: datasets.store(there, folder / "stored", task="file")), names)


def scan_libsvm(quirk, folder, capsys):
    return libsvm(quirk, folder, lambda path, **own: datasets.scan(path.parent, **own), ("zero_based",))


def store_libsvm(quirk, folder, capsys):
    def store(path, **own):
        return datasets.store(path.parent, folder / "stored", task="file", **own)

    return libsvm(quirk, folder, store, ("zero_based",))


def options_text(options) -> str:
    """[data] keys."""
    plain = {True: "true", False: "false"}
    return "".join(f"{key} = {plain[value] if isinstance(value, bool) else list(value) if isinstance(value, tuple | list) else repr(value)}\n" for key, value in options.items())  # fmt: skip


def problem(folder, table, options, loss="squared_loss", more=""):
    path = folder / f"{table.stem}.toml"
    path.write_text(
        f'minimize = "{loss}(W, tasks) + lam * ridge(W)"\n[parameters]\nlam = 1.0\n[data]\npath = "{table.name}"\nlabels = "y"\n'
        f'{options_text(options)}[output]\nsolution = "{table.stem}.npz"\n{more}'
    )
    return path


def problem_file(quirk, folder, capsys):
    path = problem(folder, write(quirk, folder / "t.csv"), quirk.options)
    return read(lambda: load_problem(path).tasks_train)


def numbers(quirk):
    """The table as the quirk says that it is to be read."""
    return [*quirk.features.items(), ("y", quirk.labels)]


def cv(quirk, folder, capsys):
    """The same scores as of the numbers that the table is to be read as."""
    path = problem(folder, write(quirk, folder / "t.csv"), quirk.options)
    options = ("--values", "1,2", "--folds", "2", "--metric", "mse", "--csv")
    assert "mse" in run(capsys, "cv", path, *options, folder / "cv.csv")
    plain = problem(folder, write(quirk, folder / "plain.csv", numbers(quirk)), {})
    run(capsys, "cv", plain, *options, folder / "plain_cv.csv")
    same = without_times(folder / "cv.csv") == without_times(folder / "plain_cv.csv")
    return (quirk.features, quirk.labels) if same else ({}, [])


def without_times(path):
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return [{key: value for key, value in row.items() if not re.search("second|time", key)} for row in rows]


def model(quirk, folder, capsys):
    """A solution learned on the table without the quirk."""
    write(quirk, folder / "train.csv", quirk.training)
    run(capsys, "solve", problem(folder, folder / "train.csv", quirk.options), "--quiet", "--no-check")
    return folder / "train.npz"


def predict(quirk, folder, capsys):
    """The predictions of the numbers that the table is to be read as."""
    path = model(quirk, folder, capsys)
    rows = write(quirk, folder / "new.csv")
    said = run(capsys, "predict", path, rows)
    solution = mtl.Solution.load(path)
    X = np.column_stack([quirk.features[name] for name in solution.feature_names])
    expected = solution.predict(X)[:, 0]
    found = np.array([float(row["y"]) for row in csv.DictReader(said.splitlines())])
    same = found.shape == expected.shape and np.allclose(found, expected, rtol=1e-8)
    return (quirk.features, quirk.labels) if same else ({}, found.tolist())


def report(quirk, folder, capsys):
    """The rows that the page is made of."""
    path = model(quirk, folder, capsys)
    rows, seen = write(quirk, folder / "new.csv"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mtldsl.solution.solution_page.html_report", lambda facts: seen.append(facts.tasks) or "page"
        )
        run(capsys, "report", path, rows, "-o", folder / "page.html")
    return found_in(seen[0])


DOORS = {
    door.__name__: door
    for door in (
        *(read_csv, read_arff, read_mat, read_npz, read_libsvm),
        *(scan_parquet, scan_npz, scan_libsvm, store_parquet, store_npz, store_libsvm, from_dask_dataframe),
        *(problem_file, cv, predict, report),
    )
}
