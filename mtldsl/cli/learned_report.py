"""Sections of a report on what was learned beside the weights: calibration, starts, label graphs, matrices, similarities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mtldsl.display.math import to_unicode
from mtldsl.display.terminal_layout import (
    BAD,
    DIM,
    agreement,
    ends,
    pairs,
    plain_table,
    section,
    small,
    time,
)

# --------------------------------------------------------------------------------------------------------------
# Sections about the noise of tasks, and about what came of several starts.


@dataclass(frozen=True)
class LearnedReportSettings:
    """Sizes of tables of what is learned."""

    shown_rows: int = 12  # tasks, or starts; more are shown by their ends alone
    end_rows: int = 4  # rows at each end
    shown_weights: int = 16  # weights; more are summed up
    bar_characters: int = 24  # bar of the largest


SETTINGS = LearnedReportSettings()


def calibration(found: dict) -> Group:
    """The tasks with the most noise and those with the least, and what their residuals weigh."""
    rows = sorted(found["tasks"], key=lambda row: -row["noise_level"])
    typical = median([row["weight"] for row in rows if not row["exact"]] or [0.0])
    table = plain_table("task", "noise level", "weight", "of the median")
    for row in ends(rows, SETTINGS.shown_rows, SETTINGS.end_rows):
        if row is None:
            table.add_row("...")
        elif row["exact"]:
            table.add_row(Text(row["task"]), small(row["noise_level"]), "fitted exactly")
        else:
            share = f"{row['weight'] / typical:.2f} ×" if typical > 0 else ""
            table.add_row(Text(row["task"]), f"{row['noise_level']:.4g}", f"{row['weight']:.4g}", share)
    lead = f"{found['loss']}: the more noise a task has, the less do its squared residuals weigh"
    notes = ["noise level: the root mean square of the task's residuals, in the units of its labels"]
    if len(rows) > SETTINGS.shown_rows:
        few = SETTINGS.end_rows
        notes.append(f"the {few} tasks with the most noise and the {few} with the least, of {len(rows):,}")
    if any(row["exact"] for row in rows):
        notes.append("fitted exactly: the loss has a kink there, and no weight that says anything")
    return section("Calibration", Text(lead), table, notes=notes)


def several_starts(found: dict) -> Group:
    """Return what came of every start, the best first where there are many."""
    rows, notes = found["rows"], []
    if len(rows) > SETTINGS.shown_rows:
        rows = sorted(
            rows, key=lambda row: (row["status"] not in ("stationary", "optimal"), row["objective"])
        )
        few = SETTINGS.end_rows
        notes.append(Text(f"the {few} best and the {few} worst of {len(rows):,} starts", DIM))
    table = plain_table("start", "objective", "residual", "iterations", "seconds", words="status")
    for row in ends(rows, SETTINGS.shown_rows, SETTINGS.end_rows):
        if row is None:
            table.add_row("...")
            continue
        name = "solver's own" if row["start"] == 0 else f"random {row['start']}"
        certified = row["status"] in ("stationary", "optimal")
        table.add_row(
            name,
            f"{row['objective']:.10g}",
            small(row["residual"]),
            f"{row['iterations']:,}",
            f"{row['seconds']:.3f}",
            row["status"].replace("_", " ") + (", kept" if row["best"] else ""),
            style="green" if row["best"] and certified else None if certified else BAD,
        )
    return section("Starts", table, *notes, _apart(found))


def _apart(found: dict) -> Text:
    if not found["certified"]:
        return Text("No start led to a point that is proven stationary.", BAD)
    count = f"{found['certified']} of {len(found['rows'])} starts ended at a stationary point"
    if found["different"] == 1:
        return Text(f"{count}, all with the same objective.")
    return Text(
        f"{count}, with {found['different']} different objectives; the highest lies {small(found['spread'])} of its size "
        "above the lowest."
    )


# --------------------------------------------------------------------------------------------------------------
# The section about the graph of labels: how many edges there are, the strongest of them, and how labellings are found.

_METHODS = {
    "elimination": "variable elimination",
    "enumeration": "enumeration of all labellings",
    "mplp": "message passing (MPLP)",
}


def label_graph(found: dict) -> Group:
    """The edges with weights, the strongest first."""
    inference = found["inference"]
    how = f"{_METHODS[inference['method']]}, treewidth {inference['treewidth']} (min-fill)"
    how += ": exact" if inference["exact"] else ": labellings with a bound, certified where they meet"
    what = "edges and cliques" if found["larger"] else "edges"
    rows = [
        ("labels", f"{found['labels']:,}"),
        (what, f"{found['edges']:,} of {found['candidates']:,} candidates have weights"),
        ("inference", how),
    ]
    if found["certified"] is not None:
        exact, n = found["certified"]["exact"], found["certified"]["rows"]
        share = f"{exact:,} of {n:,} maxima over labellings in the certificate are exact"
        rows.append(("certified", share + ("" if exact == n else "; the others are proven upper bounds")))
    listed, notes = found["listed"], []
    if found["edges"] > len(listed):
        notes.append(f"and {found['edges'] - len(listed):,} weaker ones")
    if any(edge["usage"] is not None for edge in listed):
        notes.append("decides: training rows with another best labelling where the edge is left out")
    if any("attraction" in edge for edge in listed):
        notes.append(
            "attracts: training rows in which it favours equal labels; it favours unequal ones in the others"
        )
    return section("Label graph", pairs(rows), *([Text(), _edges(listed)] if listed else []), notes=notes)


def _edges(listed: list[dict]) -> Table:
    heads = {
        "weight": "weight",
        "share": "share η",
        "usage": "decides",
        "attraction": "attracts",
        "added": "round",
    }
    keys = [key for key in heads if any(edge.get(key) is not None for edge in listed)]
    table = plain_table("edge", *map(heads.__getitem__, keys))
    for edge in listed:
        table.add_row(Text(" – ".join(edge["labels"])), *(_cell(key, edge.get(key)) for key in keys))
    return table


def _cell(key: str, value) -> str:
    if value is None:
        return ""
    if key == "added":
        return "start" if value == 0 else "-" if value < 0 else str(value)
    if key in ("usage", "attraction"):
        return f"{100 * value:.1f} %"
    return f"{value:.3g}" if key == "weight" else f"{value:.2f}"


# --------------------------------------------------------------------------------------------------------------
# Sections about a model that learns matrices: what was learned, and the check of each block.


def learned_matrices(learned: dict[str, dict]) -> Group:
    """Each learned matrix: its kind, the bounds that were hit, its condition, and the strongest correlations."""
    rows = []
    for name, matrix in learned.items():
        rows += [(name if i == 0 else "", text) for i, text in enumerate(_facts(matrix))]
        for i, found in enumerate(matrix["strongest"]):
            lead = "strongest correlations  " if i == 0 else " " * 24
            rows.append(("", f"{lead}{found['correlation']:+.2f}  {_pair(found)}"))
    notes = []
    precisions = [m["eigenvalues"] for m in learned.values() if m["kind"] == "precision"]
    if len(precisions) > 1:
        notes.append("Precisions of one term share a scale: compare correlations, not sizes.")
        if len(precisions) == 2 and sum(map(_is_flat, precisions)) == 1:
            notes.append(
                "Wherever the bounds allow it, the optimum puts what is learned into one of the two."
            )
    return section("Learned matrices", pairs(rows), notes=notes)


def _is_flat(values) -> bool:
    """Tell whether all eigenvalues are one, but for rounding."""
    return bool(values[-1] - values[0] <= 1e-9 * values[-1])


def _pair(found: dict) -> str:
    return " – ".join(found["pair"])


def _facts(matrix: dict) -> list[str]:
    side, values = matrix["shape"][0], matrix["eigenvalues"]
    lines = [f"{matrix['kind']} of {side:,} {matrix['axis']}"]
    if matrix["trace_bound"] is not None:
        lines[0] += f", trace {matrix['trace']:.4g} of {matrix['trace_bound']:g}"
    bounds = [(matrix[f"at_{which}"], matrix[which], which) for which in ("lower", "upper")]
    bounds = [bound for bound in bounds if bound[1] is not None]
    if _is_flat(values):
        at = [f", the {which} bound" for count, _, which in bounds if count]
        return [*lines, f"a multiple of the identity: every eigenvalue is {values[0]:.3g}{''.join(at)}"]
    condition = f"rank {matrix['rank']:,} of {side:,}"
    if matrix["condition"] is not None:
        condition = f"condition number {matrix['condition']:.3g}"
    lines.append(f"eigenvalues {values[0]:.3g} to {values[-1]:.3g}, {condition}")
    if bounds:
        hit = [f"{count or 'none'} of {side} at {value:g}" for count, value, _ in bounds]
        lines.append(f"at the bounds: {', '.join(hit)}")
    return lines


# ------------------------------------------------------------------------------------------------ the check


def block_check(check: dict) -> Group:
    """Every block of unknowns against cvxpy, the others kept."""
    blocks = plain_table("over", "mtldsl", "reference", "difference", "seconds", words="by", dim=True)
    for row in check["blocks"]:
        blocks.add_row(
            Text(row["name"]),
            f"{row['objective']:.10g}",
            f"{row['reference']:.10g}",
            f"{row['difference']:+.1e}",
            f"{row['seconds']:.3f}",
            Text(row["method"]),
            style=None if row["agrees"] else BAD,
        )
    allowed = " and ".join(sorted({f"{row['allowed']:.1e}" for row in check["blocks"]}))
    rows = [
        ("objectives", f"may differ by {allowed}, relative to their size"),
        ("formulas", f"differ by {small(check['formula_difference'])} at the same point"),
        ("violation", small(check["violation"])),
    ]
    about = Text(
        f"{check['scope']}; the objective at the point, and its least over one block with the others kept"
    )
    title = "Cross-check of every block against an independent formulation in cvxpy"
    words = agreement(check, "The two agree on every block.")
    return section(title, about, blocks, pairs(rows), *words)


# --------------------------------------------------------------------------------------------------------------
# The section about similarities of tasks: their weights as bars, the largest first, and which tasks are alike.

_EIGHTHS = " ▏▎▍▌▋▊▉"


def similarities(found: list[dict]) -> Group:
    """One part for every `mkl_norm` of the model."""
    return Group(*(_one(each) for each in found))


def _one(found: dict) -> Group:
    names, values = found["names"], [float(value) for value in found["weights"]]
    largest = max(values, default=0.0)
    order = sorted(range(len(values)), key=lambda m: -values[m])
    held = order[: len(values) - found["zeros"]]
    bars = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    bars.add_column(overflow="ellipsis", no_wrap=True, max_width=40)
    bars.add_column(justify="right")
    bars.add_column(no_wrap=True)
    for m in held[: SETTINGS.shown_weights]:
        bars.add_row(Text(names[m]), f"{values[m]:.4g}", Text(_bar(values[m] / largest), "cyan"))
    rest, notes = held[SETTINGS.shown_weights :], []
    if rest:
        total = math.fsum(values[m] for m in rest)
        notes.append(Text(f"and {len(rest):,} smaller ones, {total:.4g} together", DIM))
    if found["zeros"]:
        notes.append(Text(f"zero: {found['zeros']:,} of {len(values):,}", DIM))
    facts = pairs([(found["symbol"], _bound(found)), *_similarity_facts(found)])
    return section("Weights of task similarities", bars, *notes, Text(), facts)


def _bar(share: float) -> str:
    """A bar of up to `SETTINGS.bar_characters` letters, to the eighth of one; something for every weight that is not zero."""
    eighths = max(1, round(8 * SETTINGS.bar_characters * share))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _bound(found: dict) -> str:
    """Return what theta may be, and what became of it."""
    if found["how"] == "given":
        return f"given in {found['term']}"
    if math.isinf(found["p"]):
        return f"all {found['radius']:g}, since p = ∞ in {found['term']}"
    ball = to_unicode(rf"\|\theta\|_{{{found['p']:g}}} \leq {found['radius']:g}")
    if found["how"] == "learned":
        return f"learned beside W within {ball.replace('θ', found['symbol'])}"
    return f"the best within {ball}, of {found['term']}"


def _similarity_facts(found: dict) -> list[tuple[str, str]]:
    rows = []
    if found["support"] is not None:
        count, samples = found["support"]["count"], found["support"]["samples"]
        rows.append(("support", f"{count:,} of {samples:,} samples have a multiplier that is not zero"))
    for tasks in found["tasks"]:
        about = f", by {tasks['view']}" if tasks["view"] else ""
        for key in ("most", "least"):
            if tasks[key]:
                listed = (f"{_pair(each)} {each['correlation']:+.2f}" for each in tasks[key])
                rows.append((f"{key} alike{about}", ", ".join(listed)))
    return rows


# --------------------------------------------------------------------------------------------------------------
# The certificate of a point of a model that is not convex, in plain words.

#: What `Stationarity.decreases` calls blocks that are not a single matrix.
_TOGETHER = {"weights": "the weights alone", "matrices": "all matrices together"}


def is_of_stationary_point(found: dict) -> bool:
    """Tell whether what is proven of a solution is stationarity. A global certificate, where there is one, says more."""
    return found["stationarity"] is not None and found["status"] != "optimal"


def stationary_point(found: dict, constrained: bool) -> Group:
    """Return what was measured, and what that proves."""
    proof = found["stationarity"]
    rows = [("objective", f"{found['objective']:.10g}")]
    if found["certified"]:
        rows.append(("found", "a stationary point, no global certificate"))
    label, measured = _measure(found)
    rows.append((label, f"{small(proof['residual'])}, asked for {found['tol']:.0e}; {measured}"))
    for i, (term, missing) in enumerate((proof["conditions"] or {}).items()):
        of_term = "their sum over all terms" if term == "balance" else term
        rows.append(("missing" if i == 0 else "", f"{small(missing)} at {of_term}"))
    for i, (name, decrease) in enumerate(proof["decreases"].items()):
        bound = "at most " if name == "weights" else ""
        rows.append(
            ("possible decrease" if i == 0 else "", f"{bound}{small(decrease)} over {_over(found, name)}")
        )
    bounded, distance = math.isfinite(found["dual_bound"]), found["objective"] - found["dual_bound"]
    bound = f"{found['dual_bound']:.10g}, for every point; this one lies {distance:.4g} above it"
    rows.append(("lower bound", bound if bounded else "none"))
    if constrained:
        rows.append(("violation", f"{small(found['violation'])}, the largest of the constraints"))
    rows.append(("time", f"{time(found)}, {found['iterations']:,} iterations"))
    return section("Certificate", pairs(rows), *_claims(found, bounded))


def _measure(found: dict) -> tuple[str, str]:
    """(what the residual is called, what it is)."""
    proof = found["stationarity"]
    if proof["gradient"] is not None:
        return (
            "profile gradient" if found["learned"] else "gradient"
        ), "relative to the gradients of its parts"
    if proof["conditions"] is not None:
        return "residual", "what is missing of the first-order conditions, relative to their largest part"
    return "residual", "the possible decrease over the weights, relative to the penalty"


def _over(found: dict, block: str) -> str:
    if block == "weights" and not found["learned"]:
        return "the weights, on the convex model that touches here from above"
    return _TOGETHER.get(block) or f"{block} alone"


def _claims(found: dict, bounded: bool) -> list[Text]:
    decreases = found["stationarity"]["decreases"]
    largest = max(decreases.values(), default=math.inf)
    amount = "rounding" if largest == 0 else f"{small(largest)} of its size"
    if not found["certified"]:
        first = Text(f"Not to the accuracy asked for: {found['status'].replace('_', ' ')}.", BAD)
    elif not math.isfinite(largest):
        first = Text("Proven: a stationary point to the accuracy asked for.", "green")
    elif not found["learned"]:
        convex = (
            "Proven: the convex model that touches the objective here from above is at its minimum, up to"
        )
        first = Text(f"{convex} {amount}.", "green")
    else:
        *names, last = (_over(found, name) for name in decreases)
        changed = f"{', '.join(names)} or {last}" if names else last
        first = Text(f"Proven: changing {changed} lowers the objective by no more than {amount}.", "green")
    second = "Nothing is proven of all points."
    if bounded:
        second = f"It is proven only that no point lies below {found['dual_bound']:.10g}."
    return [first, Text(f"Another point may be lower. {second}")]
