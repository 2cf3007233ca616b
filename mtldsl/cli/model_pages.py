"""The named models as JSON, for the terminal, and as a page of documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.display.html import template
from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import MODELS, find, models


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
    titles: set[str] = set()
    noted: dict[str, str] = {}
    families = []
    for family, group in groupby(MODELS, key=lambda each: each.family):
        rows = list(group)
        lines = [_row(each, titles) for each in rows]
        families.append((family, lines, [_cited(note, titles) for note in _notes(rows, noted)]))
    return template("models.md.jinja", "cli").render(families=families)


def _notes(rows: Sequence[NamedModel], noted: dict[str, str]) -> list[str]:
    """One line per set of models: the sentences that they share. A note that another family had is named, not repeated."""
    sharing: dict[str, list[str]] = {}
    for each in rows:
        note = f"As **{noted[each.note]}**." if each.note in noted else each.note
        for sentence in re.split(r"(?<=\.) (?=\w)", note):
            sharing.setdefault(sentence, []).append(f"**{each.name}**")
    sharing.pop("", None)
    noted |= {each.note: each.name for each in rows if each.note}
    lines: dict[str, list[str]] = {}
    for sentence, names in sharing.items():
        lines.setdefault(", ".join(names), []).append(sentence)
    return [f"- {names}: {' '.join(sentences)}" for names, sentences in lines.items()]


def _cited(text: str, titles: set[str]) -> str:
    """The text, with first author and year alone for a title that the page had before.

    >>> titles = set()
    >>> source = 'Gong, Ye and Zhang, "Robust multi-task feature learning", KDD 2012'
    >>> _cited(source, titles) == source, _cited(source, titles)
    (True, 'Gong et al. 2012')
    """

    def once(found: re.Match) -> str:
        if found["title"] in titles:
            return f"{found['first']}{' et al.' * bool(found['others'])}{found['year'] or ''}"
        titles.add(found["title"])
        return found[0]

    paper = r'(?P<first>[A-Z]\w+)(?P<others>(?:, [\w ]+)* and \w+)?(?P<title>, "[^"]+")(?:,[^,;]*(?P<year> \d{4}))?'
    return re.sub(paper, once, text)


def _row(each: NamedModel, titles: set[str]) -> str:
    names = ", ".join([f"**{each.name}**", *each.also])
    statement = f"`{each.statement}`"
    if each.subject_to:
        statement += f", subject to {', '.join(f'`{text}`' for text in each.subject_to)}"
    if each.defaults:
        statement += (
            f"; {', '.join(f'{name} = {value:g}' for name, value in each.defaults.items())} unless given"
        )
    # on the smallest data that suits every loss
    tasks = Tasks.shared(np.eye(2), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    problem = each.on(tasks, dict.fromkeys(each.parameters, 1) | dict(each.defaults))
    about = each.about if problem.is_convex else f"{each.about} **Not convex.**"
    return f"| {names} | {statement} | {about} | {_cited(each.source, titles)} |"
