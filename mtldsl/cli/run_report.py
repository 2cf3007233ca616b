"""Report of a run for the terminal: heading, model, data, solver, certificate, cross-check, scores, weights and verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from mtldsl.cli.learned_report import (
    block_check,
    calibration,
    is_of_stationary_point,
    label_graph,
    learned_matrices,
    several_starts,
    similarities,
    stationary_point,
)
from mtldsl.cli.record import validation
from mtldsl.cli.record_parts import rows_elsewhere
from mtldsl.display.terminal_layout import (
    BAD,
    DIM,
    GOOD,
    PLAIN,
    FittingTable,
    agreement,
    ends,
    pairs,
    plain_table,
    section,
    small,
    time,
)
from mtldsl.solvers.explanation import VERDICTS, kinds_of_models

# --------------------------------------------------------------------------------------------------------------
# How well the weights predict, task by task, as a section of the report.


#: Tasks of a table; more are shown as a summary with the worst and the best.
SHOWN_TASKS = 24

#: Tasks at either end of such a summary.
END_TASKS = 5


def scores(found: dict) -> Group:
    """Tables of a line a task: the score and what was learned for, then the measures that were asked for, two a table."""
    accuracy = found["measure"] == "accuracy"
    guess, metrics = "majority" if accuracy else "constant", found["metrics"]
    learned = [name for name, means in metrics.items() if "higher_is_better" not in means]
    names = [name for name in metrics if name not in learned]
    rows, order, few = found["tasks"], "", END_TASKS
    if len(rows) > SHOWN_TASKS:
        rows = sorted(rows, key=lambda row: (math.isnan(row["score"]), row["score"]))
        order = f"; the {few} worst and the {few} best of {len(rows)} tasks"
    shown = ends(rows, SHOWN_TASKS, few)
    first = 0 if learned else 1
    tables = [_table(found, shown, learned or names[:first], base=True)]
    tables += [_table(found, shown, names[k : k + 2], base=False) for k in range(first, len(names), 2)]
    notes = [f"{guess}: {found['guess']} of the training rows{order}"]
    if found["measure"] not in _HEADS:
        notes.append(f"score: {found['measure']}")
    predicted = [
        f"{one['label']}: the class with the highest score, which is predicted, is right in {_score(one['right'], True)} of "
        f"{one['rows']:,} rows; the most frequent class of the training rows in {_score(one['guess'], True)}"
        for one in found["classes"]
    ]
    lower = [name for name, means in metrics.items() if not means.get("higher_is_better", True)]
    if learned:
        one = "one label for all samples, the better one on the training rows"
        notes.append(f"constant: {one}; a metric's score is 1 where nothing is wrong")
    if lower:
        notes.append(f"lower is better: {', '.join(lower)}")
    cut = found["thresholds"]
    if cut is not None:
        cuts = sorted(cut["by_task"].values())
        where = f"{cuts[0]:.2f}" if len(cuts) == 1 else f"{cuts[0]:.2f} to {cuts[-1]:.2f}"
        notes.append(
            f"thresholds: {where} of the decision function, where {cut['metric']} is best on {cut['folds']} folds of the training rows"
        )
    refused = [Text(f"not measured: {reason}", "yellow") for reason in found["metrics_not_measured"]]
    title = f"Scores on {'held-out' if found['rows'] == 'held out' else 'the training'} rows"
    return section(title, *map(Text, predicted), *tables, *(Text(note, DIM) for note in notes), *refused)


#: what stands over the scores; of tasks of several kinds "score", which a note explains
_HEADS = {"accuracy": "accuracy", "R2": "R²", "concordance": "concordance"}


def _table(found: dict, shown: list, names: list[str], base: bool) -> FittingTable:
    """base : with the number of rows, the score and what the simplest guess has"""
    accuracy, metrics = found["measure"] == "accuracy", found["metrics"]
    columns = [("task", "")]
    if base:
        score, guess = _HEADS.get(found["measure"], "score"), "majority" if accuracy else "constant"
        columns += [("rows", ""), (score, ""), (guess, DIM)]
    first = len(columns)
    for name in names:
        columns += [(name, ""), ("constant", DIM)]
    rows: list[tuple[Sequence[str], str]] = []
    for row in shown:
        if row is None:
            rows.append((["..."], ""))
            continue
        cells = [f"{row['rows']:,}", _score(row["score"], accuracy), _score(row["guess"], accuracy)] * base
        for name in names:
            pair = row["metrics"].get(name, {"score": math.nan, "guess": math.nan})
            cells += [_score(pair["score"], False), _score(pair["guess"], False)]
        rows.append(([row["task"], *cells], ""))
    cells = ["", _score(found["mean"], accuracy), _score(found["mean_guess"], accuracy)] * base
    for name in names:
        cells += [_score(metrics[name]["mean"], False), _score(metrics[name]["mean_guess"], False)]
    rows.append((["average", *cells], "bold"))
    guesses = list(range(first + 1, len(columns), 2))
    return FittingTable(columns, rows, [1] * base + guesses[::-1] + [3] * base)


def _score(value: float, accuracy: bool) -> str:
    if math.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if accuracy else f"{value:.3f}"


# --------------------------------------------------------------------------------------------------------------
# The report of a run for a terminal or a text file: one section after another, made with rich.

#: Records of a solution beside its weights, in the order in which a report shows them.
LEARNED_SECTIONS: dict[str, Callable[[Any], RenderableType]] = {
    "calibration": calibration,
    "learned": learned_matrices,
    "similarities": similarities,
    "label_graph": label_graph,
}


def run_report(record: dict) -> Group:
    """Everything about one solve."""
    parts = [heading(record), _model(record), _data(record), scores(record["scores"])]
    if record.get("validation"):
        parts.append(validation(record["validation"]))
    solution = record["solution"]
    others = f"mtldsl explain {record['file']} tells of the other solvers"
    parts.append(section("Solver", pairs([(solution["solver"], solution["reason"])]), notes=[others]))
    if record["rows"]:
        parts.append(rows_elsewhere(record["rows"]))
    parts.append(_certificate(record))
    if solution["starts"]:
        parts.append(several_starts(solution["starts"]))
    if record["cross_check"] is not None:
        parts.append(_cross_check(record["cross_check"]))
    parts.append(_weights(record))
    parts += [show(solution[name]) for name, show in LEARNED_SECTIONS.items() if solution[name]]
    return Group(*parts, verdict(record))


def check_report(record: dict) -> Group:
    """The cross-check alone, with the model it is about."""
    return Group(
        heading(record),
        _model(record),
        _certificate(record),
        _cross_check(record["cross_check"]),
        verdict(record),
    )


def explain_report(record: dict) -> Group:
    """The model, the solver that is chosen for it and why, the possible ones, and what stands in the way of the others."""
    styles = {"chosen": GOOD, "possible": "", "refused": DIM}
    rows = Table.grid(*(Column(overflow="fold") for _ in range(3)), padding=(0, 2))
    own = [row for row in record["solvers"] if not row["solves_only"]]
    for row in sorted(own, key=lambda row: VERDICTS.index(row["verdict"])):
        style = styles[row["verdict"]]
        why = f"; {record['why']}" if row["verdict"] == "chosen" else ""
        rows.add_row(Text(row["verdict"], style), Text(row["solver"], style), Text(row["reason"] + why))
    kinds = kinds_of_models((row["solver"], row["solves_only"], row["reason"]) for row in record["solvers"])
    others = [f"Not for this model: {kinds}"] if kinds else []
    solvers = section("Solvers, fastest first", rows, notes=others)
    return Group(heading(record), _model(record), _data(record), solvers)


def verdict(record: dict) -> Text:
    """The last line: what was proven, and whether both formulations agree."""
    solution, check = record["solution"], record["cross_check"]
    stationary = is_of_stationary_point(solution)
    if solution["certified"]:
        first = Text("stationary (no global certificate)" if stationary else "certified", GOOD)
    else:
        first = Text(f"NOT certified ({solution['status'].replace('_', ' ')})", BAD)
    if check is None:
        second = Text("not cross-checked", DIM)
    elif check["agrees"] is None:
        second = Text("NOT cross-checked", BAD)
    else:
        scope = "" if check["scope"] == "the whole problem" else " on a subsample"
        name = "block cross-check" if check["kind"] == "blocks" else "cross-check"
        second = (
            Text(f"{name} agrees{scope}", GOOD) if check["agrees"] else Text(f"{name} DISAGREES{scope}", BAD)
        )
    distance = f"relative gap {small(solution['gap']['relative'])}"
    if stationary:
        distance = f"residual {small(solution['stationarity']['residual'])}"
    waited = record.get("waited")
    spent = time(solution, 2) if waited is None else f"{waited:.1f} s in all"
    return Text(" · ").join([first, Text(distance), second, Text(spent, DIM)])


# ------------------------------------------------------------------------------------------------- sections


def heading(record: dict) -> Group:
    """The title, the file and the version."""
    title = [Text(record["title"], "bold")] if record["title"] else []
    return Group(*title, Text(f"{record['file']} · mtldsl {record['mtldsl']}", DIM), Text())


def _model(record: dict) -> Group:
    model = record["model"]
    rows = [("minimize", model["unicode"]["objective"])]
    rows += [("subject to" if i == 0 else "", line) for i, line in enumerate(model["unicode"]["subject_to"])]
    shapes = []
    for name, weights in model["weights"].items():
        extra = ", with an intercept b per task" if weights["intercept"] else ""
        shapes.append(f"{name} ({weights['shape'][0]} × {weights['shape'][1]}{extra})")
    rows.append(("over", ", ".join(shapes)))
    for name, matrix in model["learned"].items():
        about = f"{' × '.join(map(str, matrix['shape']))}, {matrix['kind']} of {matrix['axis']}"
        rows.append(("", f"{model['unicode']['learned'][name]} ({about})"))
    if model["parameters"]:
        rows.append(("where", ", ".join(model["unicode"]["parameters"])))
    rows.append(("as typed", model["objective"]))
    rows += [("" if i else "subject to", line) for i, line in enumerate(model["subject_to"])]
    return section("Model", pairs(rows))


def _data(record: dict) -> Group:
    train, test = record["data"]["train"], record["data"]["held_out"]
    kind = ("sparse " if train["sparse"] else "") + f"{train['inputs']} inputs"
    scaled = ", standardized" if train["standardized"] else ""
    names = record["data"]["task_names"]
    names = ", ".join(names if len(names) <= 4 else [*names[:2], "...", names[-1]])
    rows = [
        ("tasks", f"{train['tasks']:,}: {names}"),
        ("features", f"{train['features']:,}, {kind}{scaled}"),
    ]
    held_out = f"held out: {_rows(test)}" if test else "none held out"
    missing = f"{train['missing']:,} missing" if train["missing"] else "none missing"
    rows.append(("rows per task", f"{_rows(train)}; {held_out}"))
    rows.append(("labels", f"{train['samples']:,} to learn from, {missing}"))
    filled = record["data"]["imputed"]
    if filled is not None:
        how = f"by the {filled['strategy']} of the training rows"
        rows.append(("filled in", f"{filled['cells']:,} missing inputs, {how}"))
    return section("Data", pairs(rows))


def _rows(data: dict) -> str:
    least, most = data["rows_per_task"]
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _certificate(record: dict) -> Group:
    found = record["solution"]
    if is_of_stationary_point(found):
        return stationary_point(found, bool(record["model"]["subject_to"]))
    bounded, constrained = math.isfinite(found["dual_bound"]), bool(record["model"]["subject_to"])
    rows = [
        ("objective", f"{found['objective']:.10g}"),
        ("dual bound", f"{found['dual_bound']:.10g}" if bounded else f"none: {found['note']}"),
        ("relative gap", f"{small(found['gap']['relative'])}, asked for {found['tol']:.0e}"),
    ]
    if constrained:
        rows.append(("violation", f"{small(found['violation'])}, the largest of the constraints"))
    rows.append(("time", f"{time(found)}, {found['iterations']:,} iterations"))
    which = "weights that meet the constraints" if constrained else "weights"
    # for which weights that is proven, and what float64 cannot tell, belong to the claim
    said = f" ({found['note']})" if found["note"] and bounded else ""
    proven = f"no {which} have an objective below {found['dual_bound']:.10g}{said}."
    if found["certified"]:
        claim = Text(f"Proven: {proven}", "green")
    else:
        why = found["status"].replace("_", " ")
        why = "stopped by the rule for a small graph" if why == "selected" else why
        away = found["status"] == "unattained"
        claim = Text("No weights are best. " if away else f"Not to the accuracy asked for: {why}. ", BAD)
        claim.append(f"Proven is only: {proven}" if bounded else "Nothing is proven.", "default")
    return section("Certificate", pairs(rows), claim)


def _cross_check(check: dict) -> Group:
    title = "Cross-check against an independent formulation in cvxpy"
    if check["agrees"] is None:
        return section(title, Text(check["reason"], BAD))
    if check["kind"] == "blocks":
        return block_check(check)
    table = plain_table("", "mtldsl", "reference", dim=True)
    table.add_row(
        "objective", *(f"{check[key]:.10g}" for key in ("fast_by_reference", "reference_objective"))
    )
    table.add_row("lower bound", *(_bound(check[key]) for key in ("dual_bound", "reference_bound")))
    table.add_row("relative gap", *map(small, check["gaps"]))
    table.add_row("violation", small(check["fast_violation"]), small(check["reference_violation"]))
    table.add_row("seconds", f"{check['fast_seconds']:.3f}", f"{check['reference_seconds']:.3f}")
    rows = [
        ("solvers", f"{check['solver']}; cvxpy, {check['backend']}"),
        ("objectives", f"differ by {check['difference']:+.1e}, allowed {check['tol']:.1e}"),
        ("formulas", f"differ by {small(check['formula_difference'])} at the same weights"),
        ("predictions", f"differ by {small(check['prediction_difference'])} at most"),
    ]
    return section(title, Text(check["scope"]), table, pairs(rows), *agreement(check, "The two agree."))


def _bound(value: float) -> str:
    return f"{value:.10g}" if math.isfinite(value) else "none"


def _weights(record: dict) -> Group:
    rows = []
    for name, weights in record["solution"]["weights"].items():
        (d, m), rank = weights["shape"], weights["rank"]
        text = f"rank {rank} of {min(d, m)}; nonzero: {weights['nonzero_rows']:,} of {d:,} rows, "
        text += f"{weights['nonzero_entries']:,} of {d * m:,} entries"
        rows.append((name, text))
        values = " ".join(f"{value:.3g}" for value in weights["singular_values"][: min(12, rank)])
        rest = " ..." if rank > 12 else " and zeros" if rank < min(d, m) else ""
        rows.append(("", f"singular values {values}{rest}" if rank else "singular values all zero"))
        if weights["smoothing"]:
            level, count = weights["smoothing"]["level"], weights["smoothing"]["count"]
            text = f"{count} of {min(d, m)} above √ε = {level:.3g}, under which the penalty is smoothed"
            rows.append(("", text))
    return section("Weights", pairs(rows))


# ------------------------------------------------------------------------------------------------- files


def to_text(report: RenderableType, width: int = 100) -> str:
    """Plain text without colours, without spaces at the ends of lines."""
    page = StringIO()
    console = Console(file=page, width=width, color_system=None, force_terminal=False, **PLAIN)
    console.print(report)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())
