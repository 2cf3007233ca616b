"""Catalogue of words and helpers as JSON, for the terminal, and as docs/words.md."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mtldsl.cli.catalogue import KINDS, CatalogueEntry, catalogue, entry
from mtldsl.cli.record import plain
from mtldsl.display.html import template
from mtldsl.display.terminal_layout import pairs
from mtldsl.errors import ModelError
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.learned_unknowns import KernelWeights
from mtldsl.language.suggestions import SYNONYMS, nearest
from mtldsl.language.vocabulary import SIMILARITIES, UNKNOWNS, p_norm, typed_usage

# --------------------------------------------------------------------------------------------------------------
# What is typed in a model and is not a function of its weights: similarities of tasks, what is learned and the norm that bounds it, and
# the weights of a graph of labels.

#: name -> function or class, in the order of the catalogue
HELPERS = {
    **SIMILARITIES, **UNKNOWNS, "p_norm": p_norm, "NodeWeights": NodeWeights, "EdgeWeights": EdgeWeights,
}  # fmt: skip

#: (heading, what they have in common, their names)
_GROUPS = (
    (
        "Similarities of tasks",
        "What stands in the list of mkl_norm(W, [union(), individual()], theta): kernels R between tasks, each with a weight. "
        "All take columns=..., their features: positions, names, a slice, or the name of a view.",
        SIMILARITIES,
    ),
    (
        "What is learned beside the weights",
        'Declared as Weights are (in a problem file under [learned], as Sigma1 = "FeaturePrecision"), and bounded in subject_to.',
        (*UNKNOWNS, "p_norm"),
    ),
    (
        "Weights over a graph of labels",
        "What clique_hinge(U, V, tasks) and pairwise_log_loss(U, V, tasks) are functions of; regularizers take each alone.",
        ("NodeWeights", "EdgeWeights"),
    ),
)


@dataclass(frozen=True)
class SimilarityHelper:
    """One of them."""

    name: str
    kind: str
    typed: str  # with its parameters and defaults
    summary: str  # the first line of its documentation
    documentation: str

    @property
    def short(self) -> str:
        """Typed, without what all similarities take."""
        return self.typed.replace(", columns=None", "").replace("columns=None", "")


def helper(name: str) -> SimilarityHelper:
    """One of `HELPERS`.

    >>> helper("laplacian").short
    'laplacian(L, gamma=1.0)'
    """
    value, typed = HELPERS[name], name
    if name in UNKNOWNS:
        kind = f"{'weights that are' if value is KernelWeights else 'matrix that is'} learned"
        typed += _signature(value)
    elif isinstance(value, type):
        kind, typed = "unknown weights over a graph of labels", typed + _signature(value)
    else:
        kind, typed = (
            "similarity of tasks" if name in SIMILARITIES else "norm of kernel weights",
            typed_usage(name),
        )
    documentation = inspect.getdoc(value) or ""
    return SimilarityHelper(
        name, kind, typed, " ".join(documentation.split("\n\n")[0].split()), documentation
    )


def _signature(value) -> str:
    parameters = inspect.signature(value).parameters.values()
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters]))


def groups_of_helpers() -> list[tuple[str, str, list[SimilarityHelper]]]:
    """(heading, what they have in common, the helpers) in the order of the catalogue."""
    return [(heading, about, list(map(helper, names))) for heading, about, names in _GROUPS]


# --------------------------------------------------------------------------------------------------------------
# The catalogue as a table for the terminal, as JSON, and as a page of documentation.

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
    "structure": "Penalties of the spectrum, and penalties that learn a matrix or weights of similarities beside W.",
    "constraint": "Sets for an expression W.",
    "metric": "What structured_hinge(W, tasks, metric=...) optimises. solution.scores(tasks, metric=...) reports 1 minus it. y' are labels "
    "of task i, zᵢ its predictions. Give one for all tasks, or a list with one per task. Your own is a subclass of Metric.",
}

#: Kinds whose words say their solvers on the page: those of sets and metrics depend on what stands beside them.
WITH_SOLVERS = ("loss", "regularizer", "structure")

#: Traits that read better in words of their own.
_SPELLED: dict[tuple[str, bool | str], str] = {
    ("weighs_samples", False): "no sample weights",
    ("labels", "indicators"): "labels: sign, all of a sample together",
    ("labels", "classes"): "labels: sign, one +1 a row",
    ("takes_intercept", False): "no intercept",
    ("labellings", False): "of rankings",
    ("exact_conjugate", True): "exact conjugate for tasks of any size",
}


def _found(name: str) -> CatalogueEntry:
    try:
        return entry(name)
    except KeyError:
        known = [*(item.name for item in catalogue()), *HELPERS]
        raise ModelError(f"there is no word {name!r}{nearest(name, known)}") from None


def as_plain(name: str | None) -> object:
    """For JSON: one entry, or the list of all, helpers last."""
    if name in HELPERS:
        return asdict(helper(name))
    if name is not None:
        return plain(asdict(_found(name)))
    return [plain(asdict(item)) for item in catalogue()] + [asdict(helper(one)) for one in HELPERS]


def page(name: str | None) -> RenderableType:
    """For the terminal: all words with their formulas, or everything about one."""
    if name is None:
        return _all(catalogue())
    if name in HELPERS:
        item = helper(name)
        about: list[RenderableType] = [Text(item.kind, "dim"), Text(item.typed)]
    else:
        item = _found(name)
        about = [pairs(_facts(item).items())]
    return Group(Text(item.name, "bold"), *about, Text(), *map(Text, _paragraphs(item.documentation)))


def _all(entries: list[CatalogueEntry]) -> Group:
    groups = [
        (HEADINGS[kind], ABOUT[kind], [(_short(item), item.formula) for item in entries if item.kind == kind])
        for kind in KINDS
    ]
    groups += [
        (heading, about, [(item.short, item.summary) for item in items])
        for heading, about, items in groups_of_helpers()
    ]
    parts = []
    for heading, about, rows in groups:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
        table.add_column(style="bold", overflow="fold")
        table.add_column(overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        parts += [Text(heading, "bold underline"), Text(about, "dim"), table, Text()]
    return Group(*parts, Text("mtldsl words NAME shows everything about one of them.", "dim"))


def _short(item: CatalogueEntry) -> str:
    return item.typed.replace("(W, tasks, *, mean=False)", "(W, tasks)").replace(", *, mean=False", "")


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


def _facts(item: CatalogueEntry) -> dict[str, str]:
    parameters = ", ".join(
        f"{name} (required)" if default == "required" else f"{name} = {default}"
        for name, default in item.parameters.items()
    )
    return {
        "kind": item.kind,
        "typed": item.typed,
        "formula": item.formula,
        "parameters": parameters or "none",
        "traits": ", ".join(_trait(name, value) for name, value in item.traits.items()) or "none",
        "solvers": ", ".join(item.solvers) + f" (in the smallest model with this {item.kind})",
        "reference": "yes" if item.reference else "MISSING",
    }


def _trait(name: str, value) -> str:
    if isinstance(value, bool | str) and (name, value) in _SPELLED:
        return _SPELLED[name, value]
    spelled = name.replace("_", " ")
    if isinstance(value, bool):
        return spelled if value else f"not {spelled}"
    return f"{spelled}: {value:g}" if isinstance(value, float) else f"{spelled}: {value}"


# ------------------------------------------------------------------------------------------------ markdown


def markdown() -> str:
    """docs/words.md."""
    return template("words.md.jinja", "cli").render(
        headings=HEADINGS, about=ABOUT, with_solvers=WITH_SOLVERS, entries=catalogue(), row=_row, groups=groups_of_helpers(),
        other_names=other_names(),
    )  # fmt: skip


def other_names() -> list[str]:
    """A section of Markdown: what others call a word, and the word."""
    head = ["## Other names", "", "An error suggests the word where one of these is typed, among others.", ""]
    rows = [f"- `{word}`: {', '.join(_shortest(names))}" for word, names in SYNONYMS.items()]
    return [*head, *sorted(rows, key=str.lower)]


def _shortest(names: str) -> list[str]:
    """The names that do not begin with another of them.

    >>> _shortest("mkl, multiple_kernel, multiple_kernel_learning")
    ['mkl', 'multiple kernel']
    """
    every = [name.strip().replace("_", " ") for name in names.split(",")]
    return [name for name in every if not any(name.startswith(f"{other} ") for other in every)]


def _solvers(item: CatalogueEntry) -> str:
    """Without the two that take nearly every convex word, unless there is no other."""
    if not item.reference:
        return "**no reference**"
    if item.solvers == ("cvxpy",):
        return "cvxpy alone"
    last_two = item.solvers[-2:] == ("admm", "cvxpy")
    return ", ".join(item.solvers[:-2] if last_two and len(item.solvers) > 2 else item.solvers)


def _row(item: CatalogueEntry) -> tuple[str, str, str, str]:
    """(word, formula, what it is, solvers) in Markdown."""
    latex = item.latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    # the first clause, without a formula behind it; a bar would end the cell
    about = re.split(r"(?<=[.;:])\s", item.summary)[0].rstrip(".;:").replace("|", "\\|")
    return f"`{_short(item)}`", f"${latex}$", about, _solvers(item)
