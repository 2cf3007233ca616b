"""Data files of a user for the papers' experiments: read by the package's readers, with what an experiment asks of its data checked first.

    python -m benchmarks.papers.smtl --data yeast.arff --xml yeast.xml
    python -m benchmarks.papers.fetr --data exams.csv --labels score --task school

ARFF, CSV, MAT, NPZ and LIBSVM; what a file's kind tells of its labels stands in benchmarks/corpus/user_data.py. What was read, and what was
left out of it and why, is kept beside the rows and printed in the report.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.corpus.user_data import read_tasks
from mtldsl import DataError, Tasks
from mtldsl.data.splits import fold_numbers

__all__ = [
    "Source",
    "add_data",
    "checked",
    "data_lines",
    "end",
    "folder_of",
    "how_it_was_run",
    "row_folds",
    "sources",
]

#: Entries of X up to which sparse inputs are made dense, as features are standardised.
_MOST_ENTRIES = 5e7


@dataclass(frozen=True)
class Source:
    """A file and how it is read. As a word of a command line it is the file's name without its ending.

    inputs  : the array of the inputs, of MAT and NPZ
    median  : numbers become labels: above the task's median, or not
    classes : the one label column holds classes: a task a class
    rare    : labels with fewer rows than these of either class are left out
    """

    path: Path
    xml: Path | None = None
    labels: tuple[str, ...] | int | None = None
    task: str | None = None
    median: bool = False
    classes: bool = False
    rare: int = 10
    inputs: str | None = None

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def tasks(self) -> Tasks:
        """As the file has them: dense; with missing labels, every task with rows of its own."""
        return _read(self)

    @property
    def labelled(self) -> Tasks:
        """Labels -1 and +1, both frequent enough."""
        return _labelled(self)[0]

    @property
    def lines(self) -> list[str]:
        """What was read, for the report."""
        return [f"{self.name}: `{self.path.name}`, {self.tasks!r}"]

    @property
    def left_out(self) -> list[str]:
        """What was changed or left out for an experiment on labels, for the report."""
        return [f"{self.name}: {line}" for line in _labelled(self)[1]]


@lru_cache(maxsize=8)
def _read(source: Source) -> Tasks:
    options = {"xml": source.xml, "inputs": source.inputs, "labels": source.labels, "task": source.task}
    if isinstance(source.labels, tuple):
        options["labels"] = list(source.labels)
    try:
        tasks = read_tasks(source.path, **options)
    except DataError as error:
        if "no such array" not in str(error):
            raise
        raise DataError(f"{error}; write --inputs NAME --labels NAME") from error
    except ValueError as error:  # another kind of file
        raise DataError(f"{source.path}: {error}") from error
    entries = tasks.n_features * (tasks.X.shape[0] if tasks.is_shared else tasks.n_samples)
    if tasks.is_sparse and entries > _MOST_ENTRIES:
        raise DataError(
            f"{source.path}: {entries:.2g} entries; these experiments standardise their features, which makes them dense, and take "
            f"at most {_MOST_ENTRIES:.0g}"
        )
    names = {"task_names": tasks.task_names, "feature_names": tasks.feature_names}
    whole = tasks.is_shared and tasks.mask is None
    if whole and not tasks.is_sparse:
        return tasks
    inputs = [X.toarray() if tasks.is_sparse else X for X in ([tasks.X] if whole else tasks.inputs)]
    if whole:
        return Tasks.shared(inputs[0], tasks.targets.reshape(tasks.n_tasks, -1).T, **names)
    return Tasks.separate(inputs, tasks.per_task(tasks.targets), **names)


@lru_cache(maxsize=8)
def _labelled(source: Source) -> tuple[Tasks, tuple[str, ...]]:
    tasks, said = source.tasks, []
    if source.classes:
        tasks = _one_vs_rest(source, tasks)
    labels = tasks.per_task(tasks.targets)
    if source.median:
        labels = [np.where(y > np.median(y), 1.0, -1.0) for y in labels]
        said.append("numbers made labels: above the task's median, or not")
    for name, y in zip(tasks.task_names, labels, strict=True):
        if not set(np.unique(y)) <= {-1.0, 0.0, 1.0} or len(np.unique(y)) > 2:
            raise DataError(
                f"{source.path}: the targets of task {name!r} are numbers ({y.min():g} to {y.max():g}), and this experiment is on labels; "
                "--median makes labels of them (above the task's median, or not), --classes a task of every value"
            )
    labels = [np.where(y > 0, 1.0, -1.0) for y in labels]
    counts = [(int((y > 0).sum()), len(y)) for y in labels]
    kept = [i for i, (positive, n) in enumerate(counts) if source.rare <= positive <= n - source.rare]
    if not kept:
        raise DataError(
            f"{source.path}: no label has {source.rare} rows of either class; --rare sets another number"
        )
    gone = [i for i in range(len(counts)) if i not in kept]
    if gone:
        shown = ", ".join(
            f"{tasks.task_names[i]} ({counts[i][0]} positive of {counts[i][1]})" for i in gone[:20]
        )
        said.append(
            f"left out, fewer than {source.rare} rows of one class: {shown}{', ...' * (len(gone) > 20)}"
        )
    names = {"task_names": [tasks.task_names[i] for i in kept], "feature_names": tasks.feature_names}
    targets = [labels[i] for i in kept]
    if tasks.is_shared:
        return Tasks.shared(tasks.X, np.column_stack(targets), **names), tuple(said)
    return Tasks.separate([tasks.inputs[i] for i in kept], targets, **names), tuple(said)


def _one_vs_rest(source: Source, tasks: Tasks) -> Tasks:
    values = np.unique(tasks.targets)
    # the reader of CSV has made tasks of the names of classes
    if tasks.n_tasks > 2 and set(values) <= {-1.0, 0.0, 1.0}:
        return tasks
    if tasks.n_tasks > 1 or len(values) > 100 or len(values) < 3:
        raise DataError(
            f"{source.path}: --classes is for one column of 3 to 100 classes; here are {tasks.n_tasks} column(s), {len(values)} values"
        )
    Y = np.where(tasks.targets[:, None] == values, 1.0, -1.0)
    inputs = tasks.X if tasks.is_shared else tasks.inputs[0]
    return Tasks.shared(inputs, Y, task_names=[f"{v:g}" for v in values], feature_names=tasks.feature_names)


# ------------------------------------------------------------------------------------------- command lines


def add_data(parser, published: tuple[str, ...] = (), default: list[str] | None = None) -> None:
    """--data and the options that say how its files are read."""
    names = f"published sets ({', '.join(published)}) or " if published else ""
    parser.add_argument(
        "--data", nargs="+", metavar="FILE", default=default, help=f"{names}files of yours: ARFF, CSV, MAT, NPZ, LIBSVM"
    )  # fmt: skip
    parser.add_argument("--xml", type=Path, help="Mulan's list of the labels of an ARFF file")
    parser.add_argument("--inputs", help="the array of the inputs in MAT or NPZ (X)")
    parser.add_argument(
        "--labels", nargs="+", help="names of the label columns of ARFF or CSV, or how many of the last ones; the array in MAT or NPZ (Y)"
    )  # fmt: skip
    parser.add_argument("--task", help="the column, or array, that tells the rows of different tasks apart")
    parser.add_argument(
        "--median", action="store_true", help="numbers become labels: above the task's median, or not"
    )
    parser.add_argument(
        "--classes", action="store_true", help="the one label column holds classes: a task a class"
    )
    parser.add_argument(
        "--rare", type=int, default=10, help="labels with fewer rows than these of either class are left out (10)"
    )  # fmt: skip


def sources(parser, options, published: tuple[str, ...] = ()) -> tuple[list[str], list[Source]]:
    """(published sets, files of the user) that --data names; a word that is neither ends with a message."""
    names, found = [], []
    labels = options.labels
    if labels and len(labels) == 1 and labels[0].isdigit():
        labels = int(labels[0])
    elif labels:
        labels = tuple(labels)
    for word in options.data or ():
        path = Path(word)
        if word in published and not path.is_file():
            names.append(word)
        elif path.is_file():
            found.append(
                Source(
                    path.resolve(), options.xml, labels, options.task, options.median, options.classes, options.rare, options.inputs
                )
            )  # fmt: skip
        else:
            known = f", and it is none of the published sets {', '.join(published)}" * bool(published)
            end(parser, f"--data {word}: there is no such file{known}")
    if names and found:
        end(parser, "--data: published sets and files of yours are run apart, as their reports stand apart")
    if len({source.name for source in found}) < len(found):
        end(parser, "--data: two files have the same name, by which their rows are told apart")
    return names, found


def end(parser, message: str) -> None:
    """The message alone: what is wrong with a file is not helped by the list of all options."""
    parser.exit(2, f"{parser.prog}: error: {message}\n")


def checked(parser, found: list[Source], labels: bool, fewest: int = 1) -> None:
    """Read every file now, so that what is wrong with one is said before anything is run.

    fewest : the rows of either class that partitions and folds need of every label
    """
    for source in found:
        try:
            tasks = source.labelled if labels else source.tasks
        except DataError as error:
            end(parser, str(error))
        shown = [*source.lines, *(source.left_out if labels else [])]
        print("\n".join(shown), flush=True)
        if tasks.n_samples < 20:
            end(
                parser,
                f"{source.path}: {tasks.n_samples} rows; partitions and folds of fewer than 20 say nothing",
            )
        for name, y in zip(tasks.task_names, tasks.per_task(tasks.targets), strict=True) if labels else ():
            rows = min(int((y > 0).sum()), int((y < 0).sum()))
            if rows < fewest:
                end(
                    parser,
                    f"{source.path}: label {name!r} has {rows} row{'s' * (rows != 1)} of one class, and partitions and folds need {fewest}; --rare "
                    f"{fewest} leaves such labels out",
                )


def row_folds(tasks: Tasks, k: int, tries: int, rng) -> list[np.ndarray]:
    """k parts of the shared rows: of so many shuffles the first that leaves both classes of every label in each; else stratified."""
    Y = tasks.targets.reshape(tasks.n_tasks, -1).T
    for _ in range(tries):
        parts = [np.sort(rows) for rows in np.array_split(rng.permutation(len(Y)), k)]
        if all(np.ptp(Y[rows], axis=0).all() for rows in parts):
            return parts
    number = fold_numbers(tasks, k)
    return [np.flatnonzero(number == fold) for fold in range(k)]


def how_it_was_run(folder: Path, script: str, *more: str) -> list[str]:
    """The section on the data given and on what the person who ran it says, if there is anything to say."""
    notes = folder / f"{script}_notes.txt"
    lines = [*data_lines(folder, script), *(notes.read_text().splitlines() if notes.is_file() else []), *more]
    lines = [f"- {line}" for line in lines if line.strip()]
    return ["", "## How it was run, and what differs from the paper", "", *lines] if lines else []


def folder_of(asked, script: str, found: list[Source], quick: bool, published: Path) -> Path:
    """Where rows and report go: the folder asked for; with files of the user one named after them; of a quick run a new one."""
    if asked:
        folder = Path(asked)
    elif quick:
        folder = Path(tempfile.mkdtemp(prefix=f"{script}_"))
    elif found:
        folder = Path(f"{script}_{'_'.join(source.name for source in found)}")
    else:
        folder = published
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def data_lines(folder: Path, script: str, found: list[Source] = (), labels: bool = True) -> list[str]:
    """What the report says of the user's data; kept beside the rows, so that a report made later knows it too.

    A file that has changed since its rows were made would be reported with them: that is refused.
    """
    path = folder / f"{script}_data.txt"
    lines = path.read_text().splitlines() if path.is_file() else []
    for source in found:
        mark = f"{source.name}: fingerprint {(source.labelled if labels else source.tasks).fingerprint()}"
        known = [line for line in lines if line.startswith(f"{source.name}: fingerprint ")]
        if known and known[0] != mark:
            raise SystemExit(
                f"{folder}: its rows are of other data of the name {source.name}; write --folder for another one"
            )
        if not known:
            lines += [mark, *source.lines, *(source.left_out if labels else [])]
    if found:
        path.write_text("\n".join(lines) + "\n")
    return [line for line in lines if ": fingerprint " not in line]
