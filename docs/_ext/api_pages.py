"""The API reference: one page a public name, gathered under a few headings. What there is, is asked of the package itself."""

from __future__ import annotations

import inspect
import os
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from io import StringIO
from unittest.mock import patch

import prose
from elsewhere import DOCS, put
from sphinx.application import Sphinx

import mtldsl
from mtldsl.cli.catalogue import catalogue
from mtldsl.language import vocabulary

PAGES = DOCS / "api"

#: what calls return, and users therefore hold without ever naming it
RETURNED = {
    "mtldsl.solvers.explanation": ("Explanation",),
    "mtldsl.problems.cross_check_comparison": ("CrossCheck", "BlockCheck"),
    "mtldsl.problems.cross_validation_result": ("CrossValidation",),
    "mtldsl.problems.method_comparison": ("MethodComparison", "PairedDifference"),
    "mtldsl.problems.resampling": ("WeightIntervals", "StabilitySelection"),
    "mtldsl.problems.user_bounds": ("BoundCheck", "Conditions"),
    "mtldsl.solution.learned": ("LearnedMatrix", "LearnedWeights"),
    "mtldsl.solution.learned_label_graph": ("LearnedGraph",),
    "mtldsl.certificates.proof_writer": ("SolutionCertificate",),
    "mtldsl.certificates.stationarity": ("Stationarity",),
}

#: modules whose names are public as a whole: module, page, heading, what is in it
ROOMS = (
    (
        "mtldsl.estimators",
        "estimators",
        "Estimators",
        "scikit-learn's faces, their folds and scorers: [the guide](/estimators.md).",
    ),
    (
        "mtldsl.estimators.baselines",
        "baselines",
        "Baselines",
        "Multi-label systems that papers compare with: [the guide](/estimators.md).",
    ),
    (
        "mtldsl.report",
        "pictures",
        "Pictures",
        "matplotlib: `ax=` in, Axes out. Solutions have most of them as methods.",
    ),
    (
        "mtldsl.datasets",
        "datasets",
        "Data sets and files",
        "Readers of files, published data, data that are made, and tables on the disk.",
    ),
    (
        "mtldsl.nn",
        "networks",
        "Networks",
        "With the extra `torch`: networks whose last layer is learned with a structure.",
    ),
    (
        "mtldsl.extending",
        "extending",
        "Words and solvers of your own",
        "What the pages under [extending](/extending/README.md) import.",
    ),
    ("mtldsl.testing", "testing", "Laws to run on them", "What a new word or solver has to obey."),
)


@dataclass
class Group:
    page: str
    heading: str
    about: str
    names: list[str] = field(default_factory=list)  # with their modules


def groups() -> list[Group]:
    """Every public name under its heading; a name of `mtldsl` that no heading claims is an error."""
    kinds: dict[str, list[str]] = {}
    for entry in catalogue():
        if entry.name in vocabulary.WORDS:
            kinds.setdefault(entry.kind, []).append(public_name(entry.name))
    errors = [name for name in mtldsl.__all__ if _is(getattr(mtldsl, name), BaseException)]
    unknowns = ["Weights", "NodeWeights", "EdgeWeights", *vocabulary.UNKNOWNS, "Parameter"]
    made = [
        Group("data", "Data", "What models are learned from.", ["mtldsl.Tasks"]),
        Group("unknowns", "Weights and other unknowns", "What is solved for, and numbers that may change.", _top(unknowns)),
        Group("problems", "Problems and solutions", "State, solve, check; models of papers by name.",
              _top(["compare", "defaults", "minimize", "model", "models", "Problem", "Solution", "verify_proof"])),
        Group("returned", "What calls return", "Objects that methods of problems and solutions give you.",
              [f"{module}.{name}" for module, names in RETURNED.items() for name in names]),
        Group("losses", "Losses", "How predictions are judged.", [*kinds["loss"], "mtldsl.worst_task"]),
        Group("regularizers", "Regularizers", "What the weights are expected to look like.", kinds["regularizer"]),
        Group("structures", "Penalties that learn a matrix", "Covariances, precisions, similarities, functions of singular values.", kinds["structure"]),
        Group("similarities", "Similarities between tasks", "What `mkl_norm` weighs.", ["mtldsl.TaskSimilarity", *(f"mtldsl.similarities.{name}" for name in vocabulary.SIMILARITIES)]),
        Group("constraints", "Constraints", "Beside `>=`, `<=` and `==`.", [*kinds["constraint"], "mtldsl.p_norm"]),
        Group("metrics", "Metrics", "For `structured_hinge`, thresholds and scores.", ["mtldsl.Metric", "mtldsl.AcrossLabels", *kinds["metric"]]),
        Group("errors", "Errors", "All but `Interrupted` are an `MTLError`. Each quotes what was typed and says what to write instead.", _top(errors)),
    ]  # fmt: skip
    claimed = {name for group in made for name in group.names}
    for module, page, heading, about in ROOMS:
        there = [
            resolve(name) for group in made for name in group.names
        ]  # what has a page already, such as Metric
        names = [f"{module}.{name}" for name in import_module(module).__all__]
        names = [name for name in names if not any(resolve(name) is other for other in there)]
        made.insert(-1, Group(page, heading, about, names))
        claimed |= {f"mtldsl.{name.rsplit('.', 1)[1]}" for name in names}  # register stands in extending
    left = {f"mtldsl.{name}" for name in mtldsl.__all__} - claimed
    if left:
        raise ValueError(f"public names without a heading in the API reference: {sorted(left)}")
    return made


@cache
def formulas() -> dict[str, str]:
    """The formula of each word, as LaTeX."""
    return {public_name(entry.name): entry.latex for entry in catalogue() if entry.name in vocabulary.WORDS}


def _is(value, kind: type) -> bool:
    return inspect.isclass(value) and issubclass(value, kind)


def public_name(word: str) -> str:
    return f"mtldsl.metrics.{word}" if word in vocabulary.METRICS else f"mtldsl.{word}"


def _top(names) -> list[str]:
    return [f"mtldsl.{name}" for name in names]


def resolve(name: str):
    module, attribute = name.rsplit(".", 1)
    return getattr(import_module(module), attribute)


def shown_as(name: str) -> str:
    """How a user writes it: what calls return has no module that a user types."""
    return name.rsplit(".", 1)[1] if name.rsplit(".", 1)[0] in RETURNED else name


def write(app: Sphinx, config) -> None:
    found = groups()
    places = {PAGES / "index.md", PAGES / "command_line.md"}
    for group in found:
        for name in group.names:
            places.add(PAGES / f"{shown_as(name)}.rst")
            put(PAGES / f"{shown_as(name)}.rst", page(name))
        places.add(PAGES / f"{group.page}.md")
        put(PAGES / f"{group.page}.md", listing(group))
    put(PAGES / "command_line.md", command_line())
    put(PAGES / "index.md", index(found))
    for old in PAGES.glob("*.*"):
        if old not in places:
            old.unlink()


def index(found: list[Group]) -> str:
    toctree = "\n".join([*(group.page for group in found), "command_line"])
    parts = [
        f"## [{group.heading}](/api/{group.page}.md)\n\n{group.about}\n\n{table(group)}" for group in found
    ]
    return (
        "# API\n\nEvery public name, as `import mtldsl as mtl` gives it to you. What an argument means, what is raised, the formula, its "
        f"source, and a session that runs.\n\n```{{toctree}}\n:hidden:\n{toctree}\n```\n\n" + "\n\n".join(parts)
        + "\n\n## [Command line](/api/command_line.md)\n\nWhat `mtldsl COMMAND --help` prints.\n"
    )  # fmt: skip


def listing(group: Group) -> str:
    toctree = "\n".join(shown_as(name) for name in group.names)
    return (
        f"# {group.heading}\n\n{group.about}\n\n{table(group)}\n\n```{{toctree}}\n:hidden:\n{toctree}\n```\n"
    )


def table(group: Group) -> str:
    rows = [f"| [`{short(name)}`](/api/{shown_as(name)}.rst) | {_summary(name)} |" for name in group.names]
    return "\n".join(["::::{div} names", "| | |", "| --- | --- |", *rows, "::::"])


def short(name: str) -> str:
    return name.rsplit(".", 1)[1]


def _summary(name: str) -> str:
    """The first sentence of the documentation."""
    text = " ".join((inspect.getdoc(resolve(name)) or "").split("\n\n")[0].split())
    first = text.split(". ")[0].rstrip(".")
    return first.replace("|", "\\|").replace("*", "\\*").replace("$", "\\$")


def page(name: str) -> str:
    value = resolve(name)
    title = short(name)
    lines = [title, "=" * len(title), ""]
    if name in formulas():
        lines += [".. math::", "", f"    {formulas()[name]}", ""]
    if inspect.isclass(value):
        lines += [f".. autoclass:: {name}"]
        if not _is(value, BaseException):
            lines += ["    :members:", "    :inherited-members: BaseEstimator, Exception, float, tuple, dict"]
    elif callable(value):
        lines += [f".. autofunction:: {name}"]
    else:
        lines += [f".. autodata:: {name}", "    :no-value:"]
    return "\n".join(lines) + "\n"


def command_line() -> str:
    """What each command prints of itself."""
    from mtldsl.cli.command_line import COMMANDS, main

    parts = []
    with patch.dict(os.environ, COLUMNS="92"):
        for arguments in ([], *([command.name] for command in COMMANDS)):
            told = StringIO()
            with suppress(SystemExit), redirect_stdout(told):
                main([*arguments, "--help"])
            parts.append(
                f"## mtldsl {' '.join(arguments)}".rstrip() + f"\n\n```text\n{told.getvalue().rstrip()}\n```"
            )
    return "# Command line\n\n" + "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------------------------------------ docstrings


def docstring(app: Sphinx, what: str, name: str, value, options, lines: list[str]) -> None:
    lines[:] = prose.to_rst("\n".join(lines))


def signature(app: Sphinx, what: str, name: str, value, options, typed: str, returned: str):
    """What users never construct by hand has no signature worth reading."""
    if what == "class" and (
        name.rsplit(".", 1)[0] in RETURNED or name in ("mtldsl.Tasks", "mtldsl.Problem", "mtldsl.Solution")
    ):
        return "", ""
    return None


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", write, priority=100)
    app.connect("autodoc-process-docstring", docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
