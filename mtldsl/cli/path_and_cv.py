"""`mtldsl path` and `mtldsl cv`: a problem file over the values of a parameter, on all its training rows, or on folds of them."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from contextlib import contextmanager
from pathlib import Path

from mtldsl.cli.command import (
    FAILED,
    OK,
    OVER,
    PAGES,
    PICTURES,
    TABLES,
    Command,
    add_solve_options,
    add_values,
    check_ending,
    choose,
    is_told,
    load_with_options,
    parameter_of,
    values_of,
)
from mtldsl.cli.output import as_csv, save_picture, save_text, show
from mtldsl.display.sections import visible_record
from mtldsl.errors import DataError, ModelError
from mtldsl.utils import interrupts
from mtldsl.utils.files import check_writable, require_apart, require_no_input


def _outputs(parser: ArgumentParser, picture: str) -> None:
    parser.add_argument(
        "--metric", metavar="NAME",
        help="a measure such as f1, roc_auc, mae; without it what the file says, or accuracy or r2",
    )  # fmt: skip
    parser.add_argument(
        "--csv", type=Path, metavar="PATH", help=f"write the table (.csv); like the next two, {OVER}"
    )
    parser.add_argument("--plot", type=Path, metavar="PATH", help=f"write {picture} (.png, .svg or .pdf)")
    parser.add_argument("--report", type=Path, metavar="PATH", help="write one page with all of it (.html)")


def _check_outputs(options) -> None:
    """DataError for what cannot be written, before anything is solved."""
    check_ending(options.csv, "--csv", TABLES)
    check_ending(options.plot, "--plot", PICTURES)
    check_ending(options.report, "--report", PAGES)
    if options.plot is not None:
        from mtldsl.display.pictures.axes import pyplot

        pyplot()  # says now that it is not installed
    require_apart((f"--{option}", path) for option, path in _paths(options).items())
    for path in _paths(options).values():
        check_writable(path)


def _paths(options) -> dict[str, Path]:
    named = {"csv": options.csv, "plot": options.plot, "report": options.report}
    return {option: path for option, path in named.items() if path is not None}


@contextmanager
def _begin_command(options):
    """(the problem file, what --values says); what cannot be written or measured is said before anything is read or solved."""
    from mtldsl.solution.score import as_measure

    _check_outputs(options)
    if options.metric is not None:
        try:
            as_measure(options.metric, "--metric")
        except ModelError as error:
            raise error.as_kind(DataError) from error
    given = values_of(options.values)
    with load_with_options(options) as file:
        for path in _paths(options).values():
            require_no_input(path)
        yield file, given


def _write(options, *, table, picture, page) -> None:
    """Return what the options ask for, each made where it is asked for."""
    if options.csv is not None:
        save_text(options.csv, table())
    if options.plot is not None:
        save_picture(options.plot, picture)
    if options.report is not None:
        save_text(options.report, page())


# ----------------------------------------------------------------------------------------------------- path


def _path_arguments(parser: ArgumentParser) -> None:
    add_solve_options(parser, starts=False)
    add_values(parser)
    _outputs(parser, "how the weights change along the path")


def _path(options) -> int:
    from mtldsl.cli.path_report import describe_path, path_page, path_report, path_verdict
    from mtldsl.cli.record import describe_file
    from mtldsl.problems.path import grid_of

    with _begin_command(options) as (file, given):
        parameter, said = parameter_of(file, options.parameter), file.validation or {}
        given = said.get("values", {}).get(parameter) if given is None else given
        try:
            values = grid_of(file.problem, parameter, given, "path").values[parameter]
        except ModelError as error:
            if isinstance(given, list):
                raise error.as_kind(DataError).about(
                    "--values" if options.values else str(file.path)
                ) from error
            raise DataError(error.what, term=file.path, write_instead="write --values 10,1,0.1") from error
        found = list(file.problem.path(parameter, values, progress=is_told(options), **file.path_options()))
        metric = options.metric or said.get("metric")
        record = describe_file(file) | {"path": describe_path(file, parameter.name, found, metric)}
        shown = visible_record(record)

        def picture():
            from mtldsl.display.pictures.curves import plot_path

            if len(found) < 2:
                raise DataError("a picture needs two values at least", term=f"--plot {options.plot}")
            return plot_path(found, parameter.name)

        _write(
            options,
            table=lambda: _table(record["path"]["rows"], value=parameter.name),
            picture=picture,
            page=lambda: path_page(file, shown, found, _typed("path", options)),
        )
    show(options, record, path_report, path_verdict)
    if found[-1].interrupted:
        return interrupts.exit_code()
    return OK if all(solution.is_certified for solution in found) else FAILED


def _table(rows: list[dict], **heads: str) -> str:
    """The rows as CSV, under their keys, or other heads for some."""
    return as_csv([heads.get(key, key) for key in rows[0]], (row.values() for row in rows))


def _typed(command: str, options) -> str:
    """The line that was typed, but for what it writes."""
    keys = ("parameter", "values", "folds", "metric", "rule", "random_state", "solver", "tol")
    given = [(key.replace("_", "-"), getattr(options, key, None)) for key in keys]
    given += [("set", text) for text in options.set]
    words = [word for key, value in given if value is not None for word in (f"--{key}", str(value))]
    return shlex.join(["mtldsl", command, options.file.name, *words])


PATH = Command(
    "path",
    "solve a problem file over the values of a parameter, every solution from the ones before",
    _path_arguments,
    _path,
    epilog="Without --values the path begins where all weights are zero (lambda_max) and goes to a thousandth of it. Exit codes: 0 every "
    "solution is certified, 1 one is not, 2 bad input.",
    examples=(
        "mtldsl path exams.toml",
        "mtldsl path exams.toml --values 10,3,1 --csv path.csv --plot path.png",
    ),
)


# ------------------------------------------------------------------------------------------------------- cv


def _cv_arguments(parser: ArgumentParser) -> None:
    add_solve_options(parser, starts=False)
    add_values(parser)
    parser.add_argument("--folds", type=int, metavar="K", help="how many; without it those of [validation], or 5")  # fmt: skip
    parser.add_argument(
        "--rule", choices=["best", "one_se"],
        help="one_se: the most regularised value within one standard error of the best",
    )  # fmt: skip
    parser.add_argument("--random-state", type=int, metavar="SEED", help="of the folds")
    _outputs(parser, "the scores over the values")


def _cv(options) -> int:
    from mtldsl.cli.path_report import said_of, validation_page, validation_report
    from mtldsl.cli.record import describe_file, describe_validation

    with _begin_command(options) as (file, given):
        _say_in_place(file, options, given)
        try:
            found = choose(file, is_told(options), *(["--folds "] if options.folds is not None else []))
        except ModelError as error:
            if options.values is None and "values" in str(error.write_instead):
                raise DataError(
                    error.what, term=file.path, write_instead="write --values 10,1,0.1"
                ) from error
            raise
        assert found is not None and file.validation is not None
        point = [parameter.value for parameter in file.validation["values"]]
        record = describe_file(file) | {"validation": describe_validation(found, point)}
        shown = visible_record(record)
        _write(
            options,
            table=lambda: _table(found.table),
            picture=found.plot,
            page=lambda: validation_page(file, shown, found, _typed("cv", options)),
        )
    show(options, record, validation_report, lambda shown: said_of(shown["validation"]))
    return OK


def _say_in_place(file, options, given) -> None:
    """Return what the command line says in place of [validation]."""
    said = dict(file.validation or {})
    if options.parameter is not None or given is not None or "values" not in said:
        parameter = parameter_of(file, options.parameter)
        before = said.get("values", {}).get(parameter)
        said["values"] = {parameter: before if given is None else given}
    if options.rule == "one_se" and len(said["values"]) > 1:
        raise DataError("the rule of one standard error is of one parameter", term="--rule one_se")
    for key in ("folds", "metric", "rule", "random_state"):
        if getattr(options, key) is not None:
            said[key] = getattr(options, key)
    if said.get("folds", 2) < 2:
        raise DataError("write a whole number of at least 2", term=f"--folds {options.folds}")
    if said.get("random_state", 0) < 0:
        raise DataError("write a whole number >= 0", term=f"--random-state {options.random_state}")
    file.validation = said


CV = Command(
    "cv",
    "cross-validate a parameter of a problem file on its training rows, as [validation] says or by options",
    _cv_arguments,
    _cv,
    epilog="Nothing is solved on all rows, and the file stays as it is: `mtldsl solve` chooses as [validation] says, and then solves.",
    examples=("mtldsl cv exams.toml", "mtldsl cv exams.toml --parameter lam --values 20 --folds 10 --rule one_se --plot cv.png"),
)  # fmt: skip
