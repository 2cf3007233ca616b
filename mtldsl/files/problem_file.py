'''A problem file: data, model, solver, checks and output as TOML, read without ever running code from it.

    title = "Digits"                                     # optional
    minimize = "logistic_loss(W, tasks) + lam * trace_norm(W)"
    # model = "NN-MTL"      # in place of minimize: a model of a paper by name (`mtldsl models`), its numbers in [parameters]
    subject_to = ["W >= -10", "W <= 10"]                 # optional, a list of constraints

    [data]                  # dataset = a name of mtldsl.datasets.LOADERS, or path = a file, with the options of the loader
    dataset = "digits"      # "digits", "low_rank", "group_sparse", "school", "sarcos", "emotions", "flags", "scene", ...
    standardize = true      # statistics of the training rows; {center = false} for sparse inputs
    # path = "scores.csv"   # relative to this file; format = "csv", "arff", "mat", "npz" or "libsvm" where the ending does not tell
    # labels = ["maths", "physics"]      # the keyword arguments of mtldsl.datasets.read_csv, read_arff, ...

    [split]                 # optional: rows held out, on which the tasks are scored
    test_size = 0.25
    random_state = 0

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
    labels = ["a", "a", "b"]           # one a task, in their order; or "tree.csv": lines such as Oslo,north, without a heading

    [solve]                 # optional
    solver = "auto"         # or a name that `mtldsl explain` lists; then also that solver's options
    tol = 1e-6
    max_iter = 10_000
    max_seconds = 60
    starts = 10             # of a model that is not convex: the solver's own start and random ones, the best is kept
    random_state = 0        # of the random starts

    [check]                 # optional
    cross_check = true      # against the cvxpy formulation; false: no cross-check
    tol = 1e-6              # relative difference of objectives that counts as agreement
    solver = "clarabel"     # or "scs", "osqp"
    max_size = 1_000_000    # workload above which cvxpy is given a seeded subsample of the rows; inf: never
    random_state = 0

    [output]                # optional, relative to this file and inside its folder, unless --allow-outside
    solution = "w.npz"
    report = "report.html"  # or .txt, .json

An expression may use the weights, `tasks`, what is learned, parameters, arrays, groups and the words of the language (`mtldsl words`);
it may run over several lines in """...""" and hold # comments. Unknown keys and values that do not fit are refused with their line and column.
'''

from __future__ import annotations

import keyword
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path

from mtldsl.errors import DataError, ModelError, MTLError, SolverError
from mtldsl.files.data import read_arrays, read_tasks
from mtldsl.files.groups import read_groups
from mtldsl.files.outputs import read_outputs
from mtldsl.files.rules import check_file
from mtldsl.files.toml_limits import MAX_BYTES
from mtldsl.files.toml_source import TomlFile
from mtldsl.files.weights import read_weights
from mtldsl.language.did_you_mean import nearest
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.text.file_words import CALLABLE
from mtldsl.language.text.kinds import kind_of
from mtldsl.language.text.parse import parse_constraint, parse_objective
from mtldsl.language.text.source import Source
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.words.vocabulary import UNKNOWNS
from mtldsl.named_models import NamedModel, find
from mtldsl.problem import Problem, minimize
from mtldsl.solvers.starts import checked_starts
from mtldsl.system.reading import regular_file
from mtldsl.tasks import Tasks

__all__ = ["ProblemFile", "check_starts", "load_problem"]

#: The tables whose keys are names of the model.
_NAMING = ("weights", "learned", "parameters", "arrays", "groups")


@dataclass
class ProblemFile:
    """What a problem file states. `solve` are keyword arguments of Problem.solve, `check` of Problem.cross_check (None: no check)."""

    path: Path
    title: str
    problem: Problem
    tasks_train: Tasks
    tasks_test: Tasks | None
    solve: dict[str, object] = field(default_factory=dict)
    check: dict[str, object] | None = None
    outputs: dict[str, Path] = field(default_factory=dict)  # "solution", "report"


def load_problem(path: str | Path, *, allow_outside: bool = False) -> ProblemFile:
    """Read a problem file; the format is described at the top of this module.

    Whatever the file says is read, wherever it is; what it says to write stays inside its folder, unless `allow_outside`.

    Raises DataError or ModelError that begin with `file:line:column: ` and show the line, for everything that can be known
    before solving.
    """
    path = Path(path)
    file = TomlFile.read(_text(path), str(path))
    check_file(file)
    folder = path.parent
    outputs = read_outputs(file, folder, allow_outside)
    train, test = read_tasks(file, folder)
    named = _named_model(file)
    names = _names(file, train, folder, named)
    content = file.content
    check = dict(content.get("check", {}))
    if check.get("max_size") == float("inf"):
        check["max_size"] = None
    problem = _problem(file, _Names(names), named)
    if "starts" in content.get("solve", {}):
        try:
            check_starts(problem, content["solve"])
        except SolverError as error:
            raise error.as_kind(DataError).at(file.place(("solve", "starts"), value=True)) from error
    return ProblemFile(
        path=path,
        title=content.get("title", ""),
        problem=problem,
        tasks_train=train,
        tasks_test=test,
        solve=dict(content.get("solve", {})),
        check=check if check.pop("cross_check", True) else None,
        outputs=outputs,
    )


def check_starts(problem: Problem, solve: dict[str, object]) -> None:
    """SolverError where the model is convex, so that several starts make no sense."""
    checked_starts(problem.form(), solve.get("starts", 1), solve.get("random_state", 0))


def _text(path: Path) -> str:
    path = regular_file(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise DataError(
                f"{path}: a problem file has at most {MAX_BYTES:,} bytes; put large arrays into files of their own: "
                '[arrays] A = {path = "A.npz"}'
            )
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: a problem file is UTF-8 text; byte {error.start} is not") from None


# ----------------------------------------------------------------------------------------------- the names


def _names(file: TomlFile, tasks: Tasks, folder: Path, named: NamedModel | None) -> dict[str, object]:
    """Everything that an expression may name, besides the words."""
    names: dict[str, object] = {"tasks": tasks}
    for table in _NAMING:
        for name in file.content.get(table, {}):
            _check_name(file, table, name, names)
            names[name] = None
    if named is not None:  # what the file declares itself, an intercept for one, stands below
        names |= named.unknown_weights(tasks)
        names |= {name: UNKNOWNS[kind].declared(tasks, name) for name, kind in named.learned.items()}
    for name in file.content.get("weights", {} if named is not None else {"W": {}}):
        names[name] = read_weights(file, name, tasks)
    for name in file.content.get("learned", {}):
        names[name] = _learned(file, name, tasks)
    for name, value in file.content.get("parameters", {}).items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise file.error(
                f"a parameter is a number, not {kind_of(value)}", ("parameters", name), value=True
            )
        try:
            names[name] = Parameter(value, name)
        except ModelError as error:
            raise error.at(file.place(("parameters", name), value=True)) from error
    return names | read_arrays(file, folder) | read_groups(file, folder)


def _learned(file: TomlFile, name: str, tasks: Tasks) -> LearnedUnknown:
    kind = file.content["learned"][name]
    if not isinstance(kind, str):
        known = ", ".join(f'"{word}"' for word in UNKNOWNS)
        raise file.error(f"write {name} = one of {known}, not {kind_of(kind)}", ("learned", name), value=True)
    if kind not in UNKNOWNS:
        raise file.error(
            f"nothing of the kind {kind!r} is learned{nearest(kind, UNKNOWNS)}",
            ("learned", name),
            value=True,
        )
    return UNKNOWNS[kind].declared(tasks, name)


def _check_name(file: TomlFile, table: str, name: str, taken: dict[str, object]) -> None:
    wrong = ""
    if not (name.isidentifier() and name.isascii()):
        wrong = "is not a name; write letters, digits and _, such as W or lam_2"
    elif keyword.iskeyword(name):
        wrong = f"cannot be a name, because it means something in an expression; write {name[:3]}"
    elif name in CALLABLE:
        wrong = "is a word of the language; choose another name"
    elif name in taken:
        wrong = (
            "stands for the data already"
            if name == "tasks"
            else "is given twice; every name stands for one thing"
        )
    if wrong:
        raise file.error(f"{name!r} {wrong}", (table, name))


# ----------------------------------------------------------------------------------------------- the model


def _named_model(file: TomlFile) -> NamedModel | None:
    """The model that the file names in place of stating one."""
    if "model" not in file.content:
        return None
    if "minimize" in file.content:
        raise file.error("a file has minimize or model, not both", ("model",), ModelError)
    try:
        return find(file.content["model"])
    except ModelError as error:
        raise error.at(file.place(("model",), value=True)) from error


def _statement(file: TomlFile, names: _Names, named: NamedModel | None) -> list[tuple[tuple, Source]]:
    """(where an error is shown, text) of the objective and then of each constraint."""
    own = [("subject_to", i) for i in range(len(file.content.get("subject_to", [])))]
    stated = [(place, file.values[place]) for place in own]
    if named is None:
        if "minimize" not in file.content:
            raise file.error('the file states no model; write minimize = "..." before the first [table]')
        return [(("minimize",), file.values["minimize",]), *stated]
    numbers = file.content.get("parameters", {})
    unknown = [name for name in numbers if name not in named.parameters]
    advice = "give every parameter a number in [parameters]"
    advice += f"; it has no parameter {' or '.join(map(repr, unknown))}" if unknown else ""
    try:
        values = named.complete({name: numbers[name] for name in named.parameters if name in numbers}, advice)
    except ModelError as error:
        raise error.at(file.place(("model",), value=True)) from error
    names |= {name: Parameter(values[name], name) for name in named.coefficients}
    names.used |= set(named.parameters)
    at = file.values["model",]  # what is wrong with the model's own text is shown at its name
    objective, constraints = named.written(values)
    written = [
        replace(at, text=text, offsets=at.offsets[:1] * (len(text) + 1)) for text in (objective, *constraints)
    ]
    return [(("model",), text) for text in written] + stated


def _problem(file: TomlFile, names: _Names, named: NamedModel | None) -> Problem:
    (place, text), *others = _statement(file, names, named)
    objective = parse_objective(text, names)
    constraints = [parse_constraint(text, names) for _, text in others]
    try:
        problem = minimize(objective, constraints)
    except MTLError as error:
        for where, constraint in zip((where for where, _ in others), constraints, strict=True):
            if error.term == constraint.text:
                place = where
        raise error.at(file.place(place, value=True)) from error
    for table in _NAMING:
        for name in file.content.get(table, {}):
            if name not in names.used:  # most likely a slip of the pen
                raise file.error(f"{name!r} is not used in the model", (table, name), ModelError)
    return problem


class _Names(dict):
    """The names of a file, and which of them its expressions used."""

    def __init__(self, names: dict[str, object]):
        super().__init__(names)
        self.used: set[str] = set()

    def __getitem__(self, name: str):
        self.used.add(name)
        return super().__getitem__(name)
