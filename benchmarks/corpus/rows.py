"""The rows on the disk: one line a measurement, appended as it comes; and what of the work they say is done."""

from __future__ import annotations

import csv
import hashlib
import os
import platform
from functools import cache
from pathlib import Path

__all__ = ["FIELDS", "append", "done_keys", "machine", "package_version", "read", "write_parquet"]

FIELDS = (
    "problem", "route", "kind", "tol", "status", "seconds", "objective", "bound", "violation", "accuracy", "solver",
    "version", "machine", "limit", "note",
)  # fmt: skip
_NUMBERS = ("tol", "seconds", "objective", "bound", "violation", "accuracy", "limit")
ROOT = Path(__file__).resolve().parents[2]


def append(path: Path, rows: list[dict]) -> None:
    """Whole lines at the end of the file; a line that a killed run left half written is ended first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists() or path.stat().st_size == 0
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore", restval="")
        if new:
            writer.writeheader()
        for row in rows:
            writer.writerow({key: _short(row.get(key, "")) for key in FIELDS})


def _short(value):
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).replace("\n", " ")[:160] if value is not None else ""


def read(*paths: Path) -> list[dict]:
    """The rows of all files, CSV or Parquet, numbers as float (NaN where empty); lines that do not parse are left out."""
    found = []
    for path in paths:
        if not path.exists():
            continue
        for row in _lines(path):
            try:
                row.update(
                    {key: float(row[key]) if row[key] not in ("", None) else float("nan") for key in _NUMBERS}
                )
            except (ValueError, TypeError, KeyError):
                continue
            found.append(row)
    return found


def _lines(path: Path):
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        yield from pq.read_table(path).to_pylist()
        return
    with open(path, newline="") as file:
        yield from csv.DictReader(file)


def write_parquet(path: Path, rows: list[dict]) -> None:
    """All rows in one compressed file, an eighth of the CSV."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {key: [row[key] for row in rows] for key in FIELDS}
    pq.write_table(pa.table(columns), path, compression="zstd")


def done_keys(rows: list[dict]) -> set[tuple]:
    return {(r["problem"], r["route"], f"{r['tol']:g}", r["version"], r["machine"]) for r in rows}


@cache
def package_version() -> str:
    """mtldsl's version and a hash of its sources: rows of another state of the package do not count as done."""
    digest = hashlib.sha256()
    for folder in ("mtldsl", "reference"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return f"mtldsl-{digest.hexdigest()[:10]}"


@cache
def machine() -> str:
    """Processor and number of cores: seconds of different machines are not compared."""
    name = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name} x{os.cpu_count()}"
