'''`load_problem`: a problem file read section by section into a problem, its tasks and its outputs, without ever running code from it.

    title = "Digits"                                     # optional
    minimize = "logistic_loss(W, tasks) + lam * trace_norm(W)"
    # model = "NN-MTL"      # in place of minimize: a model of a paper by name (`mtldsl models`), its numbers in [parameters]
    subject_to = ["W >= -10", "W <= 10"]                 # optional, a list of constraints

    [plugins]               # optional: words and solvers of others; they run code, which who reads the file must allow
    use = ["my_words"]      # installed (entry points "mtldsl.plugins"), or `mtldsl solve --allow-plugins my_words`

    [data]                  # dataset = a name of mtldsl.datasets.LOADERS, or path = a file, with the options of the loader
    dataset = "digits"      # "digits", "low_rank", "group_sparse", "school", "sarcos", "emotions", "flags", "scene", ...
    standardize = true      # statistics of the training rows; {center = false} for sparse inputs
    # path = "scores.csv"   # relative to this file; format = "csv", "arff", "mat", "npz" or "libsvm" where the ending does not tell
    # impute = "mean"       # or "median": what stands in the place of missing inputs (csv, arff, npz, mat), learned on training rows; "error" refuses them
    # labels = ["maths", "physics"]      # the keyword arguments of mtldsl.datasets.read_csv, read_arff, ...
    # engine = "dask"       # path is a folder of Parquet, NPZ or LIBSVM files that stay there; options are those of mtldsl.datasets.scan
    # scheduler = "local"   # or "tcp://...", which `--scheduler` must allow; without it the active client, or threads of this process
    # workers = 2           # of "local": processes; threads = 1 and memory = "1.5GB" of each

    [split]                 # optional: rows held out, on which the tasks are scored
    test_size = 0.25
    random_state = 0
    groups = "patient"      # a column of the CSV file: rows of one patient stay on one side

    [weights]               # optional; without it one W without intercept
    W = {intercept = true}
    S = {}
    # U = "NodeWeights"     # of clique_hinge(U, V, tasks): two columns a label
    # V = "EdgeWeights"     # between all labels; {kind = "EdgeWeights", edges = [["sea", "beach"]]}: between these; [] for none

    [learned]               # what is learned beside the weights: matrices, as in matrix_normal(W, Sigma1, Sigma2)
    Sigma1 = "FeaturePrecision"        # bounded in subject_to: "Sigma1 >> 0.01", "Sigma1 << 100"
    Sigma2 = "TaskPrecision"
    # D = "FeatureCovariance"          # bounded in subject_to: "D.trace() <= 1"; also "TaskCovariance"
    # theta = "KernelWeights"          # of mkl_norm(W, [union(), tree(parents)], theta), bounded: "p_norm(theta, 2) <= 1"

    [parameters]            # numbers with a name, printed as such
    lam = 30.0

    [arrays]                # matrices with a name: inline, or a file .csv, .npy, .npz
    L = [[1, -1], [-1, 1]]
    G = {path = "graph.npz", name = "laplacian"}

    [groups]                # which group a task is in, for clusters(...), and which group that is in, for tree(...)
    parents = {Oslo = "north", Bergen = "north", Rome = "south", north = "all", south = "all"}  # "all" is in none: the root
    labels = ["a", "a", "b"]           # one per task, in their order; or "tree.csv": lines such as Oslo,north, without a heading

    [validation]            # optional: a parameter is chosen by folds of the training rows, and the solve is at that value; also `mtldsl cv`
    parameter = "lam"       # one of [parameters]
    values = [3.0, 30.0]    # what to try; a number: so many, found from the data; without it 20
    # values = {lam = [3.0, 30.0], mu = [1.0, 10.0]}    # several parameters, in place of parameter
    folds = 5
    metric = "accuracy"     # a measure of `Solution.score`, or none for accuracy of labels and r2 of numbers
    rule = "best"           # or "one_se": the most regularised value within one standard error of the best
    one_class = "skip"      # of a task that has one class in a fold: it is left out there; or "constant", "error"
    stratify = true         # labels spread evenly over the folds
    groups = "patient"      # a column of the CSV file: rows of one patient stay on one side; or a list, one a training row; [thresholds] keeps to it
    random_state = 0

    [thresholds]            # optional: where a label is said, tuned after the solve, on rows of the training data that the model of a fold did not see
    metric = "f1"           # or "accuracy"
    beta = 1.0              # of f1: how much more recall counts than precision
    folds = 5
    random_state = 0

    [solve]                 # optional
    solver = "auto"         # or a name that `mtldsl explain` lists; then also that solver's options
    tol = 1e-6
    max_iter = 10_000
    max_seconds = 60
    starts = 10             # of a model that is not convex: the solver's own start and random ones, the best is kept
    random_state = 0        # of the random starts
    n_jobs = 2              # threads for tasks that share nothing; -1: one a core

    [check]                 # optional
    cross_check = true      # against the cvxpy formulation; false: no cross-check
    tol = 1e-6              # relative difference of objectives that counts as agreement
    solver = "clarabel"     # or "scs", "osqp"
    max_size = 1_000_000    # workload above which cvxpy is given a seeded subsample of the rows; inf: never
    random_state = 0

    [output]                # optional, relative to this file and inside its folder, unless --allow-outside
    solution = "w.npz"
    proof = "proof.npz"     # what `mtldsl verify proof.npz FILE` checks
    report = "report.html"  # or .txt, .json
    metrics = ["f1"]        # measures that the report has beside its own
    predictions = "out.csv" # of the rows held out; or {path = "out.csv", new = "new.csv", keep = ["id"]}, with task, probabilities, scores

An expression may use the weights, `tasks`, what is learned, parameters, arrays, groups and the words of the language (`mtldsl words`);
it may run over several lines in """...""" and hold # comments. Unknown keys and values that do not fit are refused with their line and column.
'''

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.cli.problem_files.data_sections import ARRAYS, DATA, GROUPS, SPLIT, check_scheduler
from mtldsl.cli.problem_files.model_sections import LEARNED, PARAMETERS, PLUGINS, TOP, WEIGHTS, stated_problem
from mtldsl.cli.problem_files.section import TABLE, FileContent, FileTable, ProblemFileReader
from mtldsl.cli.problem_files.solve_sections import (
    CHECK,
    OUTPUT,
    SOLVE,
    THRESHOLDS,
    VALIDATION,
    check_loss,
    check_measure,
    checked_option,
    metric_of,
    require_outputs_apart,
)
from mtldsl.cli.problem_files.toml_parser import SETTINGS as TOML
from mtldsl.cli.problem_files.toml_parser import TomlFile
from mtldsl.errors import DataError, SolverError
from mtldsl.problems.problem import Problem
from mtldsl.solvers.multistart import checked_starts
from mtldsl.utils.files import inputs_kept, regular_file

if TYPE_CHECKING:
    from mtldsl.problems.cross_validation_result import CrossValidation


# --------------------------------------------------------------------------------------------------------------
# The sections of a problem file, one line each, in the order in which they are checked, and then read.

_TABLES = (
    PLUGINS,
    SPLIT,
    CHECK,
    OUTPUT,
    SOLVE,
    DATA,
    WEIGHTS,
    LEARNED,
    PARAMETERS,
    ARRAYS,
    GROUPS,
    VALIDATION,
    THRESHOLDS,
)

#: the top of the file, whose keys are its own and every table, then the tables
SECTIONS: tuple[FileTable, ...] = (
    replace(TOP, rules=TOP.rules | {table.name: TABLE for table in _TABLES}),
    *_TABLES,
)


@dataclass(kw_only=True)
class ProblemFile(FileContent):
    """Statement of a problem file."""

    path: Path
    title: str
    problem: Problem

    def close(self) -> None:
        """Ends the processes that were started for the data, or leaves the scheduler; nothing where there are none. `with` does it, too."""
        if self.cluster is not None:
            self.cluster.close()
            self.cluster = None

    def __enter__(self) -> ProblemFile:
        return self

    def __exit__(self, *raised) -> None:
        self.close()

    def choose(self, progress: bool = False) -> CrossValidation | None:
        """The parameters of [validation] set to the values that folds of the training rows choose, and what they found; None without it.

        The options of [solve] are those of every fit, but for n_jobs, which is for folds here, and random starts.
        progress : as in `Problem.cross_validate`
        """
        if self.validation is None:
            return None
        said = dict(self.validation)
        values, rule = said.pop("values"), said.pop("rule", "best")
        with self.file.placing(("validation",), value=False):
            found = self.problem.cross_validate(
                values, refit=False, progress=progress, **said, **self.path_options()
            )
        point = found.one_se if rule == "one_se" else None
        for parameter, value in zip(values, found.best if point is None else point, strict=True):
            parameter.value = value
        return found

    def take_values_of(self, proof: dict) -> None:
        """Set the parameters of [validation] to those of its values that a proof, as `read_proof` gives it, is of; leave them where it is of none."""
        if self.validation is None:
            return
        from mtldsl.certificates.proof_writer import same_model
        from mtldsl.problems.path import grid_of

        if "regret" in self.validation:  # any value of an interval may be the one
            (parameter,) = self.validation["values"]
            values = {parameter: self._stated_values(parameter, proof)}
        else:
            values = grid_of(self.problem, self.validation["values"], None, "[validation]").values
        before = [parameter.value for parameter in values]
        for point in product(*values.values()):
            for parameter, value in zip(values, point, strict=True):
                parameter.value = value
            if same_model(self.problem.form(), proof):
                return
        for parameter, value in zip(values, before, strict=True):
            parameter.value = value

    def _stated_values(self, parameter, proof: dict) -> list[float]:
        """Values of the parameter at which some coefficient is one of the proof's, or its neighbour by rounding."""
        from mtldsl.certificates.proof_writer import describe_form

        before, parameter.value = parameter.value, 1.0
        at_one = describe_form(self.problem.form())
        parameter.value = before
        stated, ones = (
            {float(f["coefficient"]) for f in form["functions"]}
            | {float(np.ravel(f["coefficients"])[0]) for f in form["losses"]}
            for form in (proof, at_one)
        )
        ratios = {a / b for a in stated for b in ones if a > 0.0 and b > 0.0}
        return [
            value
            for one in sorted(ratios)
            for value in (one, np.nextafter(one, 0.0), np.nextafter(one, np.inf))
        ]

    @property
    def tuned_for(self) -> Any:
        """The metric that [thresholds] tunes labels for; None without that table."""
        return None if self.thresholds is None else metric_of(self.thresholds)

    def cut(self, solution: Any, progress: bool = False) -> Any:
        """The solution with the thresholds that [thresholds] asks for; as it is without that table."""
        if self.thresholds is None:
            return solution
        from mtldsl.problems.cross_validation import thresholds_of_folds

        own = {key: value for key, value in self.thresholds.items() if key in ("folds", "random_state")}
        return thresholds_of_folds(
            self.problem,
            solution,
            self.tuned_for,
            progress=progress,
            groups=(self.validation or {}).get("groups"),
            **own,
            **self.path_options(),
        )

    def path_options(self) -> dict[str, Any]:
        """The options of [solve] that every fit of a path has: all but random starts."""
        return {key: value for key, value in self.solve.items() if key not in ("starts", "random_state")}

    def set(self, key: str, value, typed: str) -> None:
        """An option of the command line, as typed, in place of what [solve] says. DataError where it does not fit."""
        checked_option(key, value, self.solve, typed, SECTIONS)
        self.solve[key] = value

    def check_starts(self) -> None:
        """DataError where the model is convex, so that several starts make no sense."""
        if "starts" in self.solve:
            try:
                checked_starts(self.problem.form(), self.solve["starts"], self.solve.get("random_state", 0))
            except SolverError as error:
                raise error.as_kind(DataError) from error


def load_problem(
    path: str | Path, *, allow_outside: bool = False, allow_plugins: Iterable[str] = (), scheduler: str | None = None
) -> ProblemFile:  # fmt: skip
    """Read a problem file; the format is described at the top of this module.

    Whatever the file says is read, wherever it is; what it says to write replaces nothing that is read, and stays inside its
    folder, unless `allow_outside`. Plugins that it asks for are imported, which runs their code, where they are installed (entry points "mtldsl.plugins") or among
    `allow_plugins`: names of modules, and paths of .py files.

    scheduler : for `engine = "dask"`, in place of the file's: "local" or an address. One that the file names is asked only where it stands
                here, too, because whoever answers there can run code. What is started for a file ends with `close()`: write
                `with load_problem(path) as file:`

    Raises DataError or ModelError that begin with `file:line:column: ` and show the line, for everything that can be known
    before solving.
    """
    path = Path(path)
    check_scheduler(scheduler, f"scheduler={scheduler!r}")
    if path.suffix.lower() in (".csv", ".tsv", ".xlsx") and path.is_file():
        raise DataError("is a table, not a problem file", term=path, write_instead=f"write one for it: mtldsl new {shlex.quote(str(path))}")  # fmt: skip
    with inputs_kept() as inputs:
        reading = ProblemFileReader(
            file=TomlFile.read(_text(path), str(path)), folder=path.parent, sections=SECTIONS, allow_outside=allow_outside,
            allow_plugins=allow_plugins, scheduler=scheduler, inputs=inputs,
        )  # fmt: skip
        for section in SECTIONS:
            section.checked(reading)
        try:
            return _read(path, reading)
        except BaseException:
            if reading.cluster is not None:
                reading.cluster.close()
            raise


def _read(path: Path, reading: ProblemFileReader) -> ProblemFile:
    for section in SECTIONS:
        if section.read is not None:
            section.read(reading)
    require_outputs_apart(reading)
    said = {each.name: getattr(reading, each.name) for each in fields(FileContent)}
    title = reading.file.content.get("title", "")
    file = ProblemFile(path=path, title=title, problem=stated_problem(reading), **said)
    if file.validation is not None:
        check_measure(reading, file.problem)
    if file.thresholds is not None:
        check_loss(reading, file.problem)
    with reading.file.placing(("solve", "starts")):
        file.check_starts()
    return file


def _text(path: Path) -> str:
    path = regular_file(path)
    try:
        with path.open("rb") as file:
            data = file.read(TOML.max_bytes + 1)
        if len(data) > TOML.max_bytes:
            raise DataError(
                f"a problem file has at most {TOML.max_bytes:,} bytes",
                term=path,
                write_instead='put large arrays into files of their own: [arrays] A = {path = "A.npz"}',
            )
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", term=path) from error
    except UnicodeDecodeError as error:
        raise DataError(f"a problem file is UTF-8 text; byte {error.start} is not", term=path) from None
