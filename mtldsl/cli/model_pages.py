"""The named models as JSON, for the terminal, and as a page of documentation."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import MODELS, find, models

__all__ = [
    "as_plain",
    "markdown",
    "page",
]


def as_plain(name: str | None) -> object:
    """For JSON: one model, or the list of all."""
    if name is not None:
        return asdict(find(name)) | {"parameters": find(name).parameters}
    return [as_plain(each.name) for each in MODELS]


def page(name: str | None) -> str:
    """For the terminal: all models with their statements, or everything about one."""
    if name is None:
        return f"{models()}\n\nmtldsl models NAME shows everything about one of them."
    each = find(name)
    parts = [f"{each.name}: {each.about}", str(each), f"mtl.{each.usage}"]
    parts += [f"Also called {', '.join(each.also)}."] if each.also else []
    parts += [each.note] if each.note else []
    return "\n\n".join([*parts, f"{each.source}."])


def markdown() -> str:
    """docs/models.md."""
    lines = [
        "# Models of papers",
        "",
        "Written by `mtldsl models --markdown` from the models themselves; do not edit. A name stands for its statement in the "
        "[language](language.md): typing either gives the same problem.",
        "",
        "```python",
        'problem = mtl.model("Robust-MTL", tasks, rho1=50.0, rho2=15.0)  # intercept=True: one number per task as well',
        "```",
        "",
        'In a problem file, `model = "Robust-MTL"` stands in place of `minimize`, the numbers in `[parameters]`. `mtldsl models NAME` '
        "shows one model. A convex model is solved to a certified duality gap, another to a certified stationary point. More terms and constraints are added as to any other: `mtl.minimize(problem.objective + 0.1 * "
        "mtl.ridge(W), [W >= 0])` with `W = problem.weights[0]`.",
    ]
    for family, group in groupby(MODELS, key=lambda each: each.family):
        rows = list(group)
        lines += [
            "",
            f"## {family}",
            "",
            "| model | statement | what it assumes | convex | source |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(each) for each in rows]
        notes = {}
        for each in rows:
            notes.setdefault(each.note, []).append(f"**{each.name}**")
        notes.pop("", None)
        lines += ["", *(f"- {', '.join(names)}: {note}" for note, names in notes.items())] if notes else []
    return "\n".join(lines) + "\n"


def _row(each: NamedModel) -> str:
    names = ", ".join([f"**{each.name}**", *each.also])
    statement = f"`{each.statement}`"
    if each.subject_to:
        statement += f", subject to {', '.join(f'`{text}`' for text in each.subject_to)}"
    if each.defaults:
        statement += (
            f"; {', '.join(f'{name} = {value:g}' for name, value in each.defaults.items())} unless given"
        )
    convex = "yes" if _is_convex(each) else "no"
    return f"| {names} | {statement} | {each.about} | {convex} | {each.source} |"


def _is_convex(each: NamedModel) -> bool:
    """Asked of the model itself, on the smallest data that suits every loss."""
    tasks = Tasks.shared(np.eye(2), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    return each.on(tasks, dict.fromkeys(each.parameters, 1) | dict(each.defaults)).is_convex
