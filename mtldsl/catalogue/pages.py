"""The catalogue as a table for the terminal, as JSON, and as a page of documentation."""

from __future__ import annotations

import re
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mtldsl.catalogue.words import KINDS, Entry, catalogue, entry
from mtldsl.errors import ModelError
from mtldsl.language.words.did_you_mean import SYNONYMS, nearest
from mtldsl.report.helpers import HELPERS, Helper, groups_of_helpers, helper
from mtldsl.report.record import plain

__all__ = ["ABOUT", "HEADINGS", "as_plain", "markdown", "other_names", "page"]

HEADINGS = {
    "loss": "Losses",
    "regularizer": "Regularizers",
    "structure": "Learned structures",
    "constraint": "Constraints",
    "metric": "Metrics",
}
ABOUT = {
    "loss": "Sums over samples and tasks. zᵢ = Xᵢ wᵢ (+ bᵢ) are the predictions of task i, zⱼ = Wᵀxⱼ (+ b) the scores of row j. mean=True "
    "divides each task by its rows. Over a graph of labels, U = NodeWeights(tasks) and V = EdgeWeights(tasks, edges), the losses are means "
    "over samples. There sᵢ are the scores of sample i, of labels and of edges, and Υ(y) chooses those of a labelling y.",
    "regularizer": "Functions of an expression W (features × tasks).",
    "structure": "Penalties whose matrix, or whose weights of similarities, are learned beside W. Declare them, and bound them in subject_to. "
    "The unknowns are Sigma1 = FeaturePrecision(tasks), Sigma2 = TaskPrecision(tasks), D = FeatureCovariance(tasks), Omega = TaskCovariance(tasks), "
    'and theta = KernelWeights(similarities). In a problem file, write Sigma1 = "FeaturePrecision" under [learned].',
    "constraint": "Sets for an expression W.",
    "metric": "What structured_hinge(W, tasks, metric=...) optimises. solution.scores(tasks, metric=...) reports 1 minus it. y' are labels "
    "of task i, zᵢ its predictions. Among its Pos positives c are labelled −1, among its Neg negatives b are labelled +1. Give one for all "
    "tasks, or a list with one per task. Your own is a subclass of Metric.",
}

#: Traits that read better in words of their own.
_SPELLED: dict[tuple[str, bool | str], str] = {
    ("weighs_samples", False): "no sample weights",
    ("labels", "indicators"): "labels: sign, all of a sample together",
    ("labels", "classes"): "labels: sign, one +1 a row",
    ("takes_intercept", False): "no intercept",
    ("labellings", False): "of rankings",
    ("exact_conjugate", True): "exact conjugate for tasks of any size",
}


def _found(name: str | None) -> list[Entry]:
    if name is None:
        return catalogue()
    try:
        return [entry(name)]
    except KeyError:
        known = [*(item.name for item in catalogue()), *HELPERS]
        raise ModelError(f"there is no word {name!r}{nearest(name, known)}") from None


def as_plain(name: str | None) -> object:
    """For JSON: one entry, or the list of all, helpers last."""
    if name in HELPERS:
        return asdict(helper(name))
    entries = [plain(asdict(item)) for item in _found(name)]
    return entries + [asdict(helper(one)) for one in HELPERS] if name is None else entries[0]


def page(name: str | None) -> RenderableType:
    """For the terminal: all words with their formulas, or everything about one."""
    if name in HELPERS:
        return _one_helper(helper(name))
    return _one(_found(name)[0]) if name is not None else _all(_found(None))


def _all(entries: list[Entry]) -> Group:
    parts = []
    for kind in KINDS.values():
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
        table.add_column(style="bold")
        table.add_column()
        for item in entries:
            if item.kind == kind:
                table.add_row(Text(_short(item)), Text(item.formula))
        parts += [Text(HEADINGS[kind], "bold underline"), Text(ABOUT[kind], "dim"), table, Text()]
    for heading, about, items in groups_of_helpers():
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
        table.add_column(style="bold")
        table.add_column()
        for item in items:
            table.add_row(Text(item.short), Text(item.summary))
        parts += [Text(heading, "bold underline"), Text(about, "dim"), table, Text()]
    return Group(*parts, Text("mtldsl words NAME shows everything about one of them.", "dim"))


def _short(item: Entry) -> str:
    return item.typed.replace("(W, tasks, *, mean=False)", "(W, tasks)").replace(", *, mean=False", "")


def _one(item: Entry) -> Group:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for label, value in _facts(item).items():
        grid.add_row(Text(label), Text(value))
    return Group(Text(item.name, "bold"), grid, Text(), *map(Text, _paragraphs(item.documentation)))


def _one_helper(item: Helper) -> Group:
    facts = [Text(item.name, "bold"), Text(item.kind, "dim"), Text(item.typed), Text()]
    return Group(*facts, *map(Text, _paragraphs(item.documentation)))


def _paragraphs(documentation: str) -> list[str]:
    """Prose on one line each, for the terminal to break; lists and sessions as they are, headings without their rule."""
    paragraphs = []
    for block in documentation.split("\n\n"):
        lines = block.split("\n")
        if len(lines) > 1 and set(lines[1]) == {"-"}:
            paragraphs.append(lines[0])
            lines = lines[2:]
        is_list = any(line.startswith((" ", ">>>")) for line in lines)
        paragraphs.append(("\n" if is_list else " ").join(lines) + "\n")
    return paragraphs


def _facts(item: Entry) -> dict[str, str]:
    parameters = ", ".join(_parameter(name, default) for name, default in item.parameters.items())
    return {
        "kind": item.kind,
        "typed": item.typed,
        "formula": item.formula,
        "parameters": parameters or "none",
        "traits": ", ".join(_trait(name, value) for name, value in item.traits.items()) or "none",
        "solvers": ", ".join(item.solvers) + f" (in the smallest model with this {item.kind})",
        "reference": "yes" if item.reference else "MISSING",
    }


def _parameter(name: str, default: str) -> str:
    return f"{name} (required)" if default == "required" else f"{name} = {default}"


def _trait(name: str, value) -> str:
    if isinstance(value, bool | str) and (name, value) in _SPELLED:
        return _SPELLED[name, value]
    spelled = name.replace("_", " ")
    if value is True:
        return spelled
    return (
        f"not {spelled}"
        if value is False
        else f"{spelled}: {value:g}"
        if isinstance(value, float)
        else f"{spelled}: {value}"
    )


# ------------------------------------------------------------------------------------------------ markdown


def markdown() -> str:
    """docs/words.md."""
    lines = [
        "# Words",
        "",
        "Written by `mtldsl words --markdown` from the registry; do not edit. `mtldsl words NAME` shows all of one word.",
        "",
        "The solvers are those of the smallest model with the word, the fastest first. `problem.explain()` says those of yours. Each word has a",
        "reference formula in cvxpy, which checks it.",
    ]
    entries = catalogue()
    for kind in KINDS.values():
        rows = [item for item in entries if item.kind == kind]
        lines += ["", f"## {HEADINGS[kind]}", "", ABOUT[kind], ""]
        lines += [
            "| word | formula | what it is | solvers |",
            "| --- | --- | --- | --- |",
        ]
        lines += [_row(item) for item in rows]
    for heading, about, items in groups_of_helpers():
        lines += ["", f"## {heading}", "", about, "", "| typed | what it is |", "| --- | --- |"]
        lines += [f"| `{item.short}` | {_first(item.summary)} |" for item in items]
    lines += ["", *other_names()]
    return "\n".join(lines) + "\n"


def other_names() -> list[str]:
    """A section of Markdown: what others call a word, and the word."""
    head = ["## Other names", "", "An error suggests the word where one of these is typed.", ""]
    rows = [f"| {names.replace('_', ' ')} | `{word}` |" for word, names in SYNONYMS.items()]
    return [*head, "| others say | the word |", "| --- | --- |", *sorted(rows, key=str.lower)]


def _row(item: Entry) -> str:
    cells = [
        f"`{_short(item)}`",
        f"${_math(item.latex)}$",
        _first(item.summary),
        ", ".join(item.solvers) if item.reference else "**no reference**",
    ]
    return f"| {' | '.join(cells)} |"


def _first(summary: str) -> str:
    """The first clause, without a formula behind it."""
    return _cell(re.split(r"(?<=[.;:])\s", summary)[0].rstrip(".;:"))


def _cell(text: str) -> str:
    """Bars would end the cell of a table."""
    return text.replace("|", "\\|")


def _math(latex: str) -> str:
    return latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
