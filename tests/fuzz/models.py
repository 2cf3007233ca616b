"""python -m tests.fuzz.models: random models, each one seed, solved and held to an oracle.

--seed 17                             one model: what it is, its data, what came of it
--count 2000 --first 0                as many seeds, a line of JSON each in --log, and a table
--minutes 60 --first 100000           seeds for so long
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from itertools import count, islice

import numpy as np

from tests.fuzz.draw import draw
from tests.fuzz.judge import FINDINGS, Case, judge

__all__ = ["main", "table"]


def main(arguments=None) -> int:
    options = _options(arguments)
    if options.seed is not None:
        return _one(options.seed, options)
    seeds = count(options.first) if options.minutes else islice(count(options.first), options.count)
    cases, began = [], time.monotonic()
    with open(options.log, "w") as log:
        for seed in seeds:
            case = judge(seed, tol=options.tol, max_seconds=options.max_seconds)
            cases.append(case)
            print(json.dumps(case.as_dict()), file=log, flush=True)
            if case.findings or len(cases) % 50 == 0:
                _progress(case, len(cases), time.monotonic() - began)
            if options.minutes and time.monotonic() - began > 60 * options.minutes:
                break
    print(table(cases))
    print(
        f"\n{len(cases)} models in {time.monotonic() - began:.0f} s; every line of {options.log} is one of them"
    )
    return 1 if any(case.findings for case in cases) else 0


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.models", description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, help="one model, printed in full")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="in place of --count")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-seconds", type=float, default=2.0, help="of each model")
    parser.add_argument("--log", default="fuzz_models.jsonl")
    return parser.parse_args(arguments)


def _progress(case: Case, done: int, seconds: float) -> None:
    found = "; ".join(f"{kind}: {text}" for kind, text in case.findings.items())
    print(f"{done:6d} {seconds:7.0f} s  seed {case.seed}  {found or 'nothing found'}"[:240], flush=True)


def _one(seed: int, options) -> int:
    model = draw(seed)
    print(f"seed {seed}: {', '.join(model.tags)}\n{model.text}\n")
    for k, data in enumerate(model.data):
        for i, (X, y, s) in enumerate(data.tasks()):
            sizes = " ".join(f"{size:.3g}" for size in np.abs(X).max(axis=0))
            print(f"tasks{k}, task {i}: {X.shape[0]} x {X.shape[1]}, columns up to {sizes}; labels {y.min():.6g} to {y.max():.6g}"
                  + ("" if s is None else f"; weights {s.min():.3g} to {s.max():.3g}"))  # fmt: skip
    case = judge(seed, tol=options.tol, max_seconds=options.max_seconds)
    print()
    for name, value in case.as_dict().items():
        if name not in ("seed", "tags"):
            print(f"{name:10} {value!r}" if not isinstance(value, float) else f"{name:10} {value:.17g}")
    return 1 if case.findings else 0


def table(cases: list[Case]) -> str:
    """How many of what, and what the models with findings have in common."""
    lines = ["", "status"]
    statuses = Counter(case.status.split(":")[0] or "-" for case in cases)
    lines += [f"  {n:6d}  {status}" for status, n in statuses.most_common()]
    none = sum(not case.has_oracle for case in cases)
    lines += ["", f"no oracle: {none} of {len(cases)} ({none / max(len(cases), 1):.1%})", "", "findings"]
    for kind, meaning in FINDINGS.items():
        found = [case for case in cases if kind in case.findings]
        seeds = " ".join(str(case.seed) for case in found[:8])
        lines.append(
            f"  {len(found):6d}  {kind}: {meaning}" + (f"\n            seeds {seeds}" if found else "")
        )
        tags = Counter(tag for case in found for tag in case.tags)
        if tags:
            lines.append("            " + ", ".join(f"{tag} {n}" for tag, n in tags.most_common(8)))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
