"""Sections of a problem file on the run: solve, check, validation, thresholds and output."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtldsl.atoms.metrics.contingency import ErrorRate, FScore
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.cli.problem_files.data_sections import groups_of, numbers_of_rows
from mtldsl.cli.problem_files.section import (
    FINITE,
    PATH,
    SECONDS,
    SEED,
    SWITCH,
    TEXT,
    TOLERANCE,
    ChoiceTest,
    FileTable,
    ProblemFileReader,
    Rule,
    Rules,
    belongs,
    number,
    one_of,
    texts,
    whole,
    wrong,
)
from mtldsl.errors import DataError
from mtldsl.language.scalars import Parameter
from mtldsl.language.suggestions import nearest
from mtldsl.problems.problem import Problem
from mtldsl.solution.score import as_measure
from mtldsl.solvers.routes import SOLVERS, get_solver, is_solver
from mtldsl.utils.files import npz_path, regular_file, require_apart

# --------------------------------------------------------------------------------------------------------------
# The [check] table of a problem file: how the solution is cross-checked against cvxpy.

_RULES = {
    "max_seconds": SECONDS,
    "cross_check": SWITCH,
    "tol": TOLERANCE,
    "solver": one_of(["clarabel", "scs", "osqp"]),
    "max_size": (
        lambda v: v == float("inf") or (isinstance(v, int) and not isinstance(v, bool) and v > 0),
        "a whole number > 0, or inf for no limit",
    ),
    "random_state": SEED,
}


def _read(reading: ProblemFileReader) -> None:
    check = dict(reading.table("check"))
    if check.get("max_size") == float("inf"):
        check["max_size"] = None
    reading.check = check if check.pop("cross_check", True) else None


CHECK = FileTable("check", _RULES, read=_read)


# --------------------------------------------------------------------------------------------------------------
# The [solve] table of a problem file: the solver, its options, and how long and from how many starts it may run.


@dataclass(frozen=True)
class SolveSectionSettings:
    """Limits of what a file may ask for."""

    max_starts: int = 10_000  # starts: each has max_seconds of its own
    max_threads: int = 1_024  # threads of this machine, of which the file knows nothing
    max_fits: int = 1_000  # values of a grid, and folds: every value is a fit on every fold


SETTINGS = SolveSectionSettings()


_RULES_SOLVE = {
    "tol": TOLERANCE,
    "max_iter": whole(1, "a whole number >= 1"),
    "max_seconds": SECONDS,
    "starts": whole(1, f"a whole number >= 1 and <= {SETTINGS.max_starts:,}", SETTINGS.max_starts),
    "random_state": SEED,
    "n_jobs": (
        lambda v: (
            isinstance(v, int) and not isinstance(v, bool) and (v == -1 or 1 <= v <= SETTINGS.max_threads)
        ),
        f"a whole number of threads >= 1 and <= {SETTINGS.max_threads:,}, or -1 for one a core",
    ),
}


class SolverName(ChoiceTest):
    """The test of a solver's name, or of one of its methods such as "admm.planes"."""

    def __call__(self, value: object) -> bool:
        return value in self.words or is_solver(value)


def _check(reading: ProblemFileReader) -> None:
    name = reading.table("solve").get("solver", "auto")
    rules = _rules_of(name)
    reading.require(("solve",), rules, _advice(reading.sections, rules))


def _read_solve(reading: ProblemFileReader) -> None:
    """The table, with files that a solver writes, such as a checkpoint, relative to the folder of the problem file."""
    reading.solve = dict(reading.table("solve"))
    for key in written_file_options(reading.solve):
        if key in reading.solve:
            reading.solve[key] = str(reading.folder / str(reading.solve[key]))


def written_file_options(solve: dict) -> tuple[str, ...]:
    """The options of the solver that name a file to write."""
    name = solve.get("solver")
    return get_solver(str(name)).writes if is_solver(name) else ()


def checked_option(
    key: str, value, solve: dict[str, object], typed: str, sections: Iterable[FileTable]
) -> None:
    """DataError where an option of the command line, as typed, does not fit beside what the file says in [solve]."""
    rules = _rules_of(solve.get("solver"))
    said = wrong("[solve]", key, value, rules, _advice(sections, rules))
    if said:
        raise DataError(said, term=typed)
    if key == "solver" and value != solve.get("solver"):
        left = [name for name in solve if name not in {"solver", *_RULES_SOLVE}]
        if left:
            raise DataError(
                f"the file sets {', '.join(left)} of solver {solve['solver']!r}",
                term=typed,
                write_instead="take that out of [solve]",
            )


def _advice(sections: Iterable[FileTable], rules: Rules) -> Callable[[str], str]:
    def advice(key: str) -> str:
        elsewhere = belongs(key, ("solve",), sections)
        if not elsewhere and any(key in get_solver(name).options for name in SOLVERS):
            return '; options belong to one solver: name it with solver = "..."'
        return elsewhere or nearest(key, rules)

    return advice


def _rules_of(name) -> Rules:
    """The rules with this solver and its own options; solvers of one's own may have come since this module was read.

    An option without choices has the kind of its default; None stands for a number that the solver finds itself.
    """
    _, says = one_of(names := ("auto", *SOLVERS))
    rules = _RULES_SOLVE | {"solver": (SolverName(names), says)}
    if is_solver(name):
        solver = get_solver(name)
        for key, default in solver.options.items():
            rules[key] = SWITCH if isinstance(default, bool) else TEXT if isinstance(default, str) else FINITE
        rules |= {key: one_of(words) for key, words in solver.choices.items()}
        rules |= dict.fromkeys(solver.writes, PATH)
    return rules


SOLVE = FileTable("solve", _RULES_SOLVE, check=_check, read=_read_solve)


# --------------------------------------------------------------------------------------------------------------
# What a problem file writes, and where: a file of a stranger that is solved stays inside its own folder, unless the user says otherwise, and
# nothing that was read is written over.


def _ending(*endings: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value.endswith(endings)


_table = _ending(".csv")


def _archive(value: object) -> bool:
    """Tell whether it is a name to which .npz may be added, and none of a file of another kind."""
    return isinstance(value, str) and not value.endswith((".csv", ".html", ".json", ".toml", ".txt"))


_RULES_OUTPUT: Rules = {
    "solution": (_archive, "a path that ends in .npz"),
    "proof": (_archive, "a path that ends in .npz"),
    "report": (_ending(".txt", ".html", ".json"), "a path that ends in .txt, .html or .json"),
    "metrics": texts('a list of measures, such as ["f1", "roc_auc"]', 1),
    "predictions": (
        lambda v: _table(v) or isinstance(v, dict),
        'a path that ends in .csv, or such as {path = "out.csv", new = "new.csv"}',
    ),
}
_OF_PREDICTIONS: Rules = {
    "path": (_table, "a path that ends in .csv"),
    "new": TEXT,
    "task": TEXT,
    "keep": texts('a list of columns, such as ["id"]'),
    "probabilities": SWITCH,
    "scores": SWITCH,
}  # fmt: skip


def _check_output(reading: ProblemFileReader) -> None:
    """DataError with its place for keys and values that cannot stand there."""
    file, said = reading.file, reading.table("output")
    reading.require(("output",), _RULES_OUTPUT)
    for i, name in enumerate(said.get("metrics", [])):
        with file.placing(("output", "metrics", i)):
            as_measure(name, "[output] metrics")
    table = said.get("predictions")
    if isinstance(table, dict):
        reading.require(("output", "predictions"), _OF_PREDICTIONS)
        if "path" not in table:
            raise file.error('predictions needs path = "out.csv"', ("output", "predictions"))
        if "task" in table and "new" not in table:
            raise file.error("task is of new rows; those held out know theirs", ("output", "predictions", "task"))  # fmt: skip
    if table is not None and "new" not in table and "split" not in file.content:
        raise file.error(
            'predictions are of rows held out, and there is no [split]; write it, or predictions = {path = "out.csv", new = "new.csv"}',
            ("output", "predictions"),
        )  # fmt: skip


def _read_output(reading: ProblemFileReader) -> None:
    """Kind -> path of [output], and what to predict; all relative to the folder of the problem file.

    DataError with its place where a path of [output], or a file that an option of the solver writes, is not inside that folder after links
    are followed; unless `allow_outside`.
    """
    file, folder, said = reading.file, reading.folder, dict(reading.table("output"))
    reading.metrics = said.pop("metrics", [])
    predictions: Any = said.pop("predictions", None)
    if predictions is not None:
        table = dict(predictions) if isinstance(predictions, dict) else {"path": predictions}
        said["predictions"] = table.pop("path")
        if "new" in table:
            with file.placing(
                ("output", "predictions", "new")
            ):  # that they are there is said before the solve
                table["new"] = regular_file(folder / table["new"])
        reading.predictions = table
    for kind, name in said.items():
        with file.placing(("output", kind)):  # a solution and a proof are .npz files, whatever their names
            path = folder / name
            reading.outputs[kind] = npz_path(path) if kind in ("solution", "proof") else path
    if not reading.allow_outside:
        for place, path in _written(reading):
            if not _is_inside(path, folder):
                raise file.error(
                    f"{str(file.at(place))!r} is not inside the folder {str(folder)!r}, which a problem file may not leave where it writes; write "
                    "a path inside, or allow it with --allow-outside",
                    place,
                    value=True,
                )


def require_outputs_apart(reading: ProblemFileReader) -> None:
    """DataError with its place where the file says to write over what was read, such as the data or itself, or over another output."""
    before: list[tuple[str, Path]] = []
    for place, path in _written(reading):
        before.append((f"[{place[0]}] {place[1]}", path))
        try:
            reading.inputs.require_none(path)
            require_apart(before)
        except DataError as error:
            raise error.about(str(reading.file.at(place))).at(
                reading.file.place(place, value=True)
            ) from error


def _written(reading: ProblemFileReader) -> list[tuple[tuple, Path]]:
    """(place, path) of all that [output] and the solver's options say to write."""
    output, solve = reading.table("output"), reading.table("solve")
    places: list[tuple[tuple, Path]] = [
        (("output", kind, *(["path"] if isinstance(output[kind], dict) else [])), path)
        for kind, path in reading.outputs.items()
    ]
    return places + [
        (("solve", key), reading.folder / str(solve[key]))
        for key in written_file_options(solve)
        if key in solve
    ]


def _is_inside(path: Path, folder: Path) -> bool:
    """Tell whether it lies in the folder, links followed."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
        return False


OUTPUT = FileTable("output", _RULES_OUTPUT, check=_check_output, read=_read_output)


# --------------------------------------------------------------------------------------------------------------
# The [thresholds] table of a problem file: where a label is said, tuned on folds of the training rows after the solve.

_RULES_THRESHOLDS = {
    "metric": one_of(["f1", "accuracy"]),
    "beta": number(0.0, 100.0, "a number > 0: how much more recall counts than precision"),
    "folds": whole(2, "a whole number >= 2 and <= 1,000", 1_000),
    "random_state": SEED,
}


def _read_thresholds(reading: ProblemFileReader) -> None:
    file, said = reading.file, dict(reading.table("thresholds"))
    if "thresholds" not in file.content:
        return
    if "beta" in said and said.get("metric", "f1") != "f1":
        raise file.error('beta is of metric = "f1"', ("thresholds", "beta"))
    if not reading.tasks_train.in_memory:
        raise file.error("rows that stay where they are have no thresholds here", ("thresholds",))
    reading.thresholds = said


def check_loss(reading: ProblemFileReader, problem: Problem) -> None:
    """DataError with its place, before the solve, where no label is cut from a score of its own."""
    first: Any = problem.first_loss
    if first.atom.labels != "sign" or first.source is not None:
        raise reading.file.error(
            f"{first.atom.name} does not score labels -1 and +1 one by one, so that there is nothing to cut; leave [thresholds] out",
            ("thresholds",),
        )


def metric_of(said: dict) -> Metric:
    """Return what thresholds are tuned for."""
    return ErrorRate() if said.get("metric", "f1") == "accuracy" else FScore(beta=float(said.get("beta", 1.0)))  # fmt: skip


THRESHOLDS = FileTable("thresholds", _RULES_THRESHOLDS, read=_read_thresholds)


# --------------------------------------------------------------------------------------------------------------
# The [validation] table of a problem file: parameters that are chosen by folds of the training rows, before the solve.

_VALUES: Rule = (
    lambda v: (
        (isinstance(v, int) and not isinstance(v, bool) and 2 <= v <= SETTINGS.max_fits)
        or _numbers(v)
        or (isinstance(v, dict) and v != {} and all(_numbers(own) for own in v.values()))
    ),
    "a list of numbers > 0, a whole number >= 2 and <= 1,000 of values that are found from the data, or such as "
    "{lam = [10.0, 1.0], mu = [1.0, 0.1]} for several parameters",
)
_GROUPS: Rule = (
    lambda v: (
        (isinstance(v, str) and v != "")
        or (isinstance(v, list) and v != [] and all(isinstance(one, int | str) for one in v))
    ),
    "a column of the CSV file, or a list with the group of every training row: whole numbers or text",
)
_BETWEEN: Rule = (
    lambda v: isinstance(v, list) and len(v) == 2 and _numbers(v) and v[0] < v[1],
    "two numbers > 0, the lower one first, such as [1e-3, 1e3]",
)
_RULES_VALIDATION = {
    "parameter": TEXT,
    "values": _VALUES,
    "regret": number(0.0, float("inf"), "a number > 0, in the units of the metric"),
    "between": _BETWEEN,
    "max_fits": whole(2, "a whole number >= 2 and <= 1,000", SETTINGS.max_fits),
    "folds": whole(2, "a whole number >= 2 and <= 1,000", SETTINGS.max_fits),
    "metric": TEXT,
    "rule": one_of(["best", "one_se"]),
    "one_class": one_of(["skip", "constant", "error"]),
    "stratify": SWITCH,
    "groups": _GROUPS,
    "random_state": SEED,
}


def _numbers(value: Any) -> bool:
    positive, _ = number(0.0, float("inf"), "")
    return isinstance(value, list) and value != [] and all(map(positive, value))


def _read_validation(reading: ProblemFileReader) -> None:
    file, said = reading.file, dict(reading.table("validation"))
    if "validation" not in file.content:
        return
    known = {name: value for name, value in reading.names.items() if isinstance(value, Parameter)}
    several = isinstance(said.get("values"), dict)
    if "parameter" not in said and not several:
        raise file.error(
            f'[validation] needs parameter = "...", one of {", ".join(known) or "[parameters], which has none"}',
            ("validation",),
        )
    if "parameter" in said and several:
        raise file.error("values names the parameters already: leave parameter out", ("validation", "parameter"))  # fmt: skip
    if several and len(said["values"]) > 1 and said.get("rule") == "one_se":
        raise file.error(
            'the rule of one standard error is of one parameter: write rule = "best"', ("validation", "rule"), value=True
        )  # fmt: skip
    if "regret" in said and ("values" in said or "between" not in said):
        raise file.error(
            "regret is of all values of an interval: write between = [1e-3, 1e3] in place of values", ("validation", "regret"), value=True
        )  # fmt: skip
    if "regret" not in said and not {"between", "max_fits"}.isdisjoint(said):
        key = "between" if "between" in said else "max_fits"
        raise file.error(f"{key} is of a proven choice: write regret = 0.005 beside it", ("validation", key))
    chosen = list(said["values"]) if several else [said["parameter"]]
    for name in chosen:
        if name not in known:
            at = ("validation", "values", name) if several else ("validation", "parameter")
            raise file.error(f"[parameters] has no {name!r}{nearest(name, known)}", at, value=not several)
    if "metric" in said:
        with file.placing(("validation", "metric")):
            as_measure(said["metric"], "[validation] metric")
    if isinstance(said.get("groups"), str):
        rows = numbers_of_rows(reading.tasks_train) if reading.train_rows is None else reading.train_rows
        said["groups"] = groups_of(reading, said["groups"], rows, ("validation", "groups"))
    values = said["values"].values() if several else [said.get("values")]
    said["values"] = {known[name]: own for name, own in zip(chosen, values, strict=True)}
    reading.validation = {key: value for key, value in said.items() if key != "parameter"}


def check_measure(reading: ProblemFileReader, problem: Problem) -> None:
    """DataError with its place, before the folds, for a measure of numbers where labels are predicted, and of labels where counts or amounts are."""
    name = reading.table("validation").get("metric")
    if name is None:
        return
    loss: Any = problem.first_loss
    needs = as_measure(name, "[validation] metric").needs
    labels = loss.atom.labels in ("sign", "classes") or loss.source is not None
    if labels and needs == "values":
        said = 'predicts labels, and this measure is of numbers; write a measure of labels, such as metric = "f1"'
    elif loss.atom.labels in ("count", "positive") and needs != "values":
        said = 'does not predict labels, and this measure is of labels; write a measure of numbers, such as metric = "mae"'
    elif (loss.atom.labels == "time") != (name == "concordance"):
        said = 'and this measure do not go together: metric = "concordance" is of signed times, and nothing else is'
    else:
        return
    raise reading.file.error(f"{loss.atom.name} {said}", ("validation", "metric"), value=True)


VALIDATION = FileTable("validation", _RULES_VALIDATION, read=_read_validation)
