"""A path of solutions and a cross-validation for a terminal, as plain values, as CSV, and as pages of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rich.console import Group
from rich.text import Text

from mtldsl.cli.problem_files.problem_file import ProblemFile
from mtldsl.cli.record import validation
from mtldsl.cli.run_report import heading
from mtldsl.data.summary import panel_of
from mtldsl.display.html import KeyFigure, Page, PageSection, html_page
from mtldsl.display.pictures.curves import plot_path
from mtldsl.display.sections import GOOD as GOOD_NEWS
from mtldsl.display.sections import NEUTRAL, WRONG, Panel, Table
from mtldsl.display.terminal_layout import BAD, DIM, GOOD, FittingTable, section, small
from mtldsl.problems.cross_validation_result import CrossValidation
from mtldsl.solution.headline_sections import draw_figures, packages
from mtldsl.solution.measures import name_of
from mtldsl.solution.predictors import default_measure
from mtldsl.solution.score import as_measure
from mtldsl.solution.solution import Solution

_HEAD = ("objective", "gap", "status", "features", "score", "seconds")


def describe_path(file: ProblemFile, name: str, solutions: Sequence[Solution], metric: str | None) -> dict:
    """A row a solution: the parameter's value, what was proven, how many features have weights, and the score on the rows held out, or on
    those of training where none are."""
    tasks = file.tasks_train if file.tasks_test is None else file.tasks_test
    metric = metric or default_measure(solutions[0].loss)
    rows = [
        {
            "value": solution.parameters[name],
            "objective": solution.objective,
            "dual_bound": solution.dual_bound,
            "gap": solution.stationarity.residual
            if solution.status == "stationary" and solution.stationarity is not None
            else solution.relative_gap,
            "status": solution.status,
            "certified": solution.is_certified,
            "features": int(np.count_nonzero(np.any(solution.W != 0, axis=1))),
            "score": float(solution.score(tasks, metric)),
            "seconds": solution.seconds,
        }
        for solution in solutions
    ]
    where = "training" if file.tasks_test is None else "held out"
    return {
        "parameter": name,
        "metric": metric,
        "scored_on": where,
        "n_features": len(solutions[0].W),
        "rows": rows,
    }


def path_report(record: dict) -> Group:
    """For a terminal."""
    path = record["path"]
    columns = [(path["metric"] if name == "score" else name, "") for name in (path["parameter"], *_HEAD)]
    styles = ["" if row["certified"] else BAD for row in path["rows"]]
    rows = list(zip(_cells(path), styles, strict=True))
    table = FittingTable(columns, rows, dropped=[6, 1, 4, 2])
    where = Text(
        f"{path['metric']} of the {'rows held out' if path['scored_on'] == 'held out' else 'training rows'}",
        DIM,
    )
    title = f"Path over {path['parameter']}, every solution starting from the ones before"
    return Group(heading(record), section(title, table, where), path_verdict(record))


def path_verdict(record: dict) -> Text:
    """The last line."""
    rows = record["path"]["rows"]
    certified = sum(row["certified"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    said = f"{'certified' if certified == len(rows) else 'NOT certified'}: {certified} of {len(rows)}"
    return Text(" · ").join([Text(said, GOOD if certified == len(rows) else BAD), Text(f"{seconds:.2f} s of solving", DIM)])  # fmt: skip


def _cells(path: dict) -> list[tuple[str, ...]]:
    return [
        (
            f"{row['value']:.4g}", f"{row['objective']:.6g}", small(row["gap"]), row["status"].replace("_", " "),
            f"{row['features']:,}", "-" if math.isnan(row["score"]) else f"{row['score']:.4f}", f"{row['seconds']:.2f}",
        )
        for row in path["rows"]
    ]  # fmt: skip


def validation_report(record: dict) -> Group:
    """For a terminal: the values with their scores, and last what was chosen."""
    found = record["validation"]
    return Group(heading(record), validation(found), Text(said_of(found), GOOD))


def said_of(found: dict) -> str:
    """Return what was chosen, in words.

    >>> said_of({"parameter": "lam", "chosen": 2.0, "best": 1.0, "one_standard_error": 2.0})
    'chosen: lam = 2 (one standard error); the best is lam = 1'
    """
    names = found["parameter"] if isinstance(found["parameter"], list) else [found["parameter"]]

    def at(point) -> str:
        values = point if isinstance(point, list) else [point]
        return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))

    if found["chosen"] != found["best"]:
        return f"chosen: {at(found['chosen'])} (one standard error); the best is {at(found['best'])}"
    rule = found["one_standard_error"]
    also = "" if rule is None or rule == found["best"] else f"; within one standard error: {at(rule)}"
    return f"chosen: {at(found['chosen'])} (best){also}"


# ---------------------------------------------------------------------------------------------------- pages


def path_page(file: ProblemFile, record: dict, solutions: Sequence[Solution], typed: str) -> str:
    """The path alone: its picture, its table, the data, the model."""
    path = record["path"]
    name, rows = path["parameter"], path["rows"]
    certified = sum(row["certified"] for row in rows)
    head = (name, *_HEAD[:4], f"{path['metric']}, {path['scored_on']}", "seconds")
    pictures = [] if len(solutions) < 2 else draw_figures((
        lambda: plot_path(solutions, name), f"the norm of every feature's weights over the values of {name}", ""
    ))  # fmt: skip
    text = [
        f"Every solution starts from the ones before. The last column but one is the {path['metric']} of rows that were not learned on; a value that "
        "is chosen by it needs other rows to be judged on, or cross-validation (mtldsl cv)."
        if path["scored_on"] == "held out"
        else f"Every solution starts from the ones before. The {path['metric']} is of the rows that were learned on, which flatters it."
    ]
    whole = certified == len(rows)
    by = as_measure(path["metric"], "path")
    scored = [row for row in rows if not math.isnan(row["score"])]
    best = max(scored, key=lambda row: by.direction * row["score"]) if scored else None
    chosen = "chosen on these rows, so a little too good" if path["scored_on"] == "held out" else "on the rows that were learned on, which flatters"  # fmt: skip
    tile = [] if best is None else [(f"best {name_of(by)}, {path['scored_on']}", f"{best['score']:.3f}", f"at {name} = {best['value']:.4g}; {chosen}")]  # fmt: skip
    return _page(
        file, f"{certified} of {len(rows)} solutions are certified", GOOD_NEWS if whole else WRONG,
        f"A path over {name}, from {rows[0]['value']:.4g} to {rows[-1]['value']:.4g}.",
        [*tile, ("values", f"{len(rows)}", f"of {name}"), ("features used", f"{rows[0]['features']:,} to {rows[-1]['features']:,}", f"of {path['n_features']:,}")],
        PageSection("The path", text, [Panel("", tables=[Table(head, _cells(path))])], pictures), typed,
    )  # fmt: skip


def validation_page(file: ProblemFile, record: dict, found: CrossValidation, typed: str) -> str:
    """Cross-validation alone: what was chosen, its picture and table, the data, the model."""
    said = said_of(record["validation"])
    names = " and ".join(found.names)
    pictures = draw_figures((found.plot, f"{found.metric} over the values of {names}; the same numbers stand in the table", ""))  # fmt: skip
    text = [
        "Every value was learned on all folds but one and scored on that one. The score of the value that is chosen is a little too good: it was "
        "chosen for it. Judge it on rows that were held out (mtldsl solve)."
    ]
    at = found.points.index(found.best)
    return _page(
        file, said, NEUTRAL, f"{len(found.points)} values of {names} on {found.n_folds} folds.",
        [(name_of(as_measure(found.metric, "cv")), f"{found.mean[at]:.3f}", "at the best value, mean of the folds"), ("standard error", f"{found.se[at]:.2g}", "of that mean")],
        PageSection("Cross-validation", text, [found._panel()], pictures), typed,
    )  # fmt: skip


def _page(file: ProblemFile, verdict: str, tone: str, lead: str, numbers, section: PageSection, typed: str) -> str:  # fmt: skip
    sides = [("", file.tasks_train)]
    if file.tasks_test is not None:
        sides = [("Learned from", file.tasks_train), ("Held out", file.tasks_test)]
    data = [replace(panel_of(tasks), title=title) for title, tasks in sides]
    sections = [
        section, PageSection("The data", panels=data), PageSection("The model", panels=[file.problem._panel()]),
        PageSection("How to repeat it", panels=[Panel("", facts=packages(), text=typed)], folded=True, printed=True),
    ]  # fmt: skip
    tiles = [KeyFigure(*each) for each in numbers]
    return html_page(Page(file.title or file.path.stem, verdict, tone, [lead], tiles, sections))
