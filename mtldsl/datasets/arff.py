"""ARFF, dense and sparse, with Mulan's XML label lists. scipy's reader knows neither sparse rows nor the line of an error."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mtldsl.errors import DataError

__all__ = ["Attribute", "label_names", "parse_arff"]


@dataclass(frozen=True)
class Attribute:
    """A column: its name, and its values where it is nominal (None: numeric)."""

    name: str
    values: tuple[str, ...] | None = None


def parse_arff(path: Path) -> tuple[list[Attribute], np.ndarray]:
    """(attributes, table (n, columns)): nominal values as their position in the declaration, "?" as NaN."""
    attributes: list[Attribute] = []
    rows: list[np.ndarray] = []
    in_data = False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw.strip()
            if not line or line.startswith("%"):
                continue
            where = f"{path}:{number}"
            if in_data:
                rows.append(_row(line, attributes, where))
            elif line.lower().startswith("@attribute"):
                attributes.append(_attribute(line[len("@attribute") :].strip(), where))
            elif line.lower().startswith("@data"):
                in_data = True
            elif not line.lower().startswith("@relation"):
                raise DataError(f"{where}: expected @attribute or @data, found {line[:40]!r}")
    if not in_data or not rows:
        raise DataError(f"{path}: no data section with rows; is this an ARFF file?")
    return attributes, np.vstack(rows)


def _attribute(text: str, where: str) -> Attribute:
    quote = text[0] if text[:1] in "'\"" else None
    end = text.find(quote, 1) if quote else len(text.split(None, 1)[0])
    if end <= 0 or not text[end + (quote is not None) :].strip():
        raise DataError(f"{where}: an attribute needs a name and a type, found {text[:40]!r}")
    name, kind = text[bool(quote) : end], text[end + (quote is not None) :].strip()
    if kind.startswith("{"):
        return Attribute(name, tuple(value.strip() for value in _cells(kind.strip("{} \t"))))
    if kind.lower().split()[0] in ("numeric", "real", "integer"):
        return Attribute(name)
    raise DataError(
        f"{where}: attribute {name!r} is of type {kind[:20]!r}; numeric and nominal {{...}} attributes can be read"
    )


def _cells(text: str) -> list[str]:
    quote = "'" if "'" in text else '"'
    return next(csv.reader([text], quotechar=quote, skipinitialspace=True, escapechar="\\"), [])


def _row(line: str, attributes: list[Attribute], where: str) -> np.ndarray:
    if line.startswith(
        "{"
    ):  # sparse: "index value, index value"; what is not named is 0, the first value of a nominal
        row = np.zeros(len(attributes))
        for cell in _cells(line.strip("{} \t")):
            index, _, value = cell.strip().partition(" ")
            if not index.isdigit() or int(index) >= len(attributes):
                raise DataError(
                    f"{where}: {cell!r} is not 'index value' with an index below {len(attributes)}"
                )
            row[int(index)] = _number(value.strip().strip("'\""), attributes[int(index)], where)
        return row
    cells = _cells(line)
    if len(cells) != len(attributes):
        raise DataError(f"{where}: {len(cells)} values for {len(attributes)} attributes")
    return np.array([_number(cell.strip(), a, where) for cell, a in zip(cells, attributes, strict=True)])


def _number(cell: str, attribute: Attribute, where: str) -> float:
    if cell == "?":
        return np.nan
    try:
        return float(cell) if attribute.values is None else float(attribute.values.index(cell))
    except ValueError:
        expected = "a number" if attribute.values is None else f"one of {', '.join(attribute.values[:6])}"
        raise DataError(f"{where}: {cell!r} in attribute {attribute.name!r} is not {expected}") from None


def label_names(xml: Path) -> list[str]:
    """The labels that a Mulan XML file lists."""
    try:
        root = ElementTree.parse(xml).getroot()
    except (ElementTree.ParseError, OSError) as error:
        raise DataError(f"{xml}: cannot be read as a Mulan label list ({error})") from error
    return [
        node.attrib["name"] for node in root.iter() if node.tag.endswith("label") and "name" in node.attrib
    ]
