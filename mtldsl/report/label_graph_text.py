"""The section about the graph of labels: how many edges there are, the strongest of them, and how labellings are found."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mtldsl.report.layout import DIM, pairs, section

__all__ = ["label_graph"]

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
    parts: list[RenderableType] = [pairs(rows)]
    if found["listed"]:
        parts += [Text(), _edges(found["listed"])]
    if found["edges"] > len(found["listed"]):
        parts.append(Text(f"and {found['edges'] - len(found['listed']):,} weaker ones", DIM))
    if any(edge["usage"] is not None for edge in found["listed"]):
        parts.append(
            Text("decides: training rows with another best labelling where the edge is left out", DIM)
        )
    if any("attraction" in edge for edge in found["listed"]):
        parts.append(
            Text(
                "attracts: training rows in which it favours equal labels; it favours unequal ones in the others",
                DIM,
            )
        )
    return section("Label graph", *parts)


def _edges(listed: list[dict]) -> Table:
    columns = [
        ("edge", "labels"),
        ("weight", "weight"),
        ("share η", "share"),
        ("decides", "usage"),
        ("attracts", "attraction"),
        ("round", "added"),
    ]
    shown = [(head, key) for head, key in columns if any(edge.get(key) is not None for edge in listed)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=DIM)
    for head, key in shown:
        table.add_column(head, justify="left" if key == "labels" else "right", overflow="fold")
    for edge in listed:
        table.add_row(*(_cell(key, edge.get(key)) for _, key in shown))
    return table


def _cell(key: str, value) -> Text | str:
    if value is None:
        return ""
    if key == "labels":
        return Text(" – ".join(value))
    if key == "added":
        return "start" if value == 0 else "-" if value < 0 else str(value)
    if key in ("usage", "attraction"):
        return f"{100 * value:.1f} %"
    return f"{value:.3g}" if key == "weight" else f"{value:.2f}"
