"""What a solve on rows elsewhere costs, as a formula fitted to the runs of rows_elsewhere.py, and what it says of larger ones.

    python benchmarks/rows_elsewhere_model.py     # from results/rows_elsewhere.jsonl; writes results/rows_elsewhere_model.md

    CPU seconds = passes * (numbers * (making + model) + partitions * node + fixed) + idle * seconds that passed

numbers are those of all inputs; making is zero where rows are kept; idle is what the processes take when nothing is asked of them. node and fixed are fitted to passes over
partitions of a few rows (`rows_elsewhere.py --nodes`), the other constants to the runs; none is below zero, and the sum of squared relative errors is the smallest.
The largest run of every model that has three or more is held out, and predicted; making rows is known from passes that look at nothing, its own among them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import RESULTS, stamp
from scipy.optimize import nnls

#: What is assumed of a cluster, not measured: bytes a second and machine, seconds a message.
BANDWIDTH, LATENCY = 1.25e9, 1e-3
FEATURES, TASKS = 100, 5  # of the runs that are fitted


@dataclass(frozen=True)
class Costs:
    """Seconds: a number of the inputs, made and by model; a node of the graph a pass, in all and in the process that schedules; a pass."""

    making: dict[str, float]
    model: dict[str, float]
    node: float
    scheduled: float
    fixed: float
    idle: float

    def seconds(self, run: dict) -> float:
        numbers = run["GB"] * 2**30 / 8
        making = 0.0 if run["kept"] else self.making.get(run["rows are"], float("nan"))
        a_pass = numbers * (making + self.model[run["model"]]) + run["parts"] * self.node + self.fixed
        return run["passes"] * a_pass + self.idle * run["wall s"]


def fitted(runs: list[dict], every: list[dict], nodes: list[dict]) -> Costs:
    """From some runs; what making rows costs, from passes of every run that look at nothing."""
    parts = np.array([one["partitions"] for one in nodes], dtype=float)
    here, there = (np.array([one[name] for one in nodes]) for name in ("here", "workers"))
    (scheduled, fixed_here), (worked, fixed_there) = (_line(parts, seconds) for seconds in (here, there))
    node, fixed = scheduled + worked, fixed_here + fixed_there
    sources = sorted({run["rows are"] for run in every if not run["kept"]})
    models = sorted({run["model"] for run in runs})
    names, rows, rest = [*sources, *models, "idle"], [], []
    for run in every:
        if not run["kept"]:
            spent = run["of which making rows"]
            numbers = run["passes"] * run["GB"] * 2**30 / 8 * 1e-9
            rows.append([numbers / spent if name == run["rows are"] else 0.0 for name in names])
            rest.append(max(1.0 - run["passes"] * (node * run["parts"] + fixed) / spent, 0.0))
    for run in runs:
        numbers = run["passes"] * run["GB"] * 2**30 / 8 * 1e-9
        known = run["passes"] * (node * run["parts"] + fixed)
        own = dict.fromkeys(names, 0.0) | {run["model"]: numbers, "idle": run["wall s"]}
        if not run["kept"]:
            own[run["rows are"]] = numbers
        if run["of which idle"]:
            rows.append([run["wall s"] / run["of which idle"] if name == "idle" else 0.0 for name in names])
            rest.append(1.0)
        rows.append([own[name] / run["CPU s"] for name in names])
        rest.append(max(1.0 - known / run["CPU s"], 0.0))
    found = dict(zip(names, nnls(np.array(rows), np.array(rest))[0], strict=True))
    per_number = [{name: 1e-9 * found[name] for name in some} for some in (sources, models)]
    return Costs(*per_number, node, scheduled, fixed, found["idle"])


def _line(x, y) -> tuple[float, float]:
    """a, b >= 0 of a x + b, by relative errors."""
    a, b = nnls(np.column_stack([x, np.ones_like(x)]) / y[:, None], np.ones_like(y))[0]
    return float(a), float(b)


def held_out(runs: list[dict]) -> list[dict]:
    """The largest of every model that leaves two to fit."""
    found = []
    for model in sorted({run["model"] for run in runs}):
        own = [run for run in runs if run["model"] == model]
        if len(own) > 2:
            found.append(max(own, key=lambda run: run["GB"]))
    return found


@dataclass(frozen=True)
class Cluster:
    machines: int
    cores: int
    part: float  # bytes of a partition

    def a_pass(
        self, costs: Costs, n: float, d: float, model: float, sent: float, back: float
    ) -> dict[str, float]:
        """Seconds of a pass over n rows that are kept, `model` seconds a number; bytes to every worker, and of the sum of every partition."""
        parts = 8.0 * n * d / self.part
        depth = np.ceil(np.log2(max(self.machines, 2)))
        return {
            "computing": n * d * model / (self.machines * self.cores),
            "nodes on workers": parts
            * (costs.node - min(costs.scheduled, costs.node))
            / (self.machines * self.cores),
            "nodes in the scheduler": parts * costs.scheduled,
            "bytes": depth * (LATENCY + (sent + back) / BANDWIDTH) + self.machines * sent / BANDWIDTH,
        }


def pages(runs: list[dict], nodes: list[dict]) -> str:
    away = held_out(runs)
    costs = fitted([run for run in runs if run not in away], runs, nodes)
    lines = [
        "# A model of cost for rows elsewhere",
        "",
        stamp("dask", "distributed"),
        "",
        *_formula(),
        "",
        "| constant | fitted |",
        "| --- | --- |",
    ]
    lines += [
        f"| making a number of the inputs, {name} | {1e9 * value:.2f} ns |"
        for name, value in costs.making.items()
    ]
    lines += [
        f"| a pass over a number of the inputs, {name} | {1e9 * value:.2f} ns |"
        for name, value in costs.model.items()
    ]
    lines += [
        f"| a partition a pass | {1e3 * costs.node:.2f} ms |", f"| of which in the process that schedules | {1e3 * costs.scheduled:.2f} ms |",
        f"| a pass | {1e3 * costs.fixed:.1f} ms |", f"| a second that passes | {1e3 * costs.idle:.0f} ms |", "", "| run | | CPU s | model | error |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for run in runs:
        said = costs.seconds(run)
        error = said / run["CPU s"] - 1.0
        place = "**held out**" if run in away else "fitted"
        lines.append(
            f"| {run['model']}, {run['GB']:g} GB, {run['rows are'].lower()} | {place} | {run['CPU s']:g} | {said:.2f} | {error:+.0%} |"
        )
    return "\n".join([*lines, "", *_large(costs)]) + "\n"


def _formula() -> list[str]:
    return [line.strip() for line in __doc__.split("\n\n", 2)[2].splitlines()]


def _large(costs: Costs) -> list[str]:
    """What it says of clusters that nobody here has."""
    lines = [
        f"Clusters with {BANDWIDTH / 1e9:g} GB/s a machine and {1e3 * LATENCY:g} ms a message (assumed, not measured), rows kept in memory as they are on disk, 16 cores a machine:",
        "", "| what | machines | partitions of | computing | nodes on workers | nodes in the scheduler | bytes | a pass |", "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    gram = costs.model.get("squares + l21", 0.0) / FEATURES  # a multiplication
    smooth = costs.model.get("logistic + trace", 0.0)
    # a sixteenth of the rows makes Hessians: of that many multiplications, what is more than at 100 features
    newton = smooth + TASKS * gram * (1000 - FEATURES) / 16.0
    cases = [
        ("squares, 10^9 rows x 1,000", 100, 1e9, 1e3, 1000 * gram, 8e3, 8e6),
        ("logistic, 5 tasks, 10^9 rows x 1,000", 100, 1e9, 1e3, newton, 4e4, 4e7 + 1.6e5),
        ("smooth by majorization, 10^6 tasks of 1,000 rows x 100", 100, 1e9, 1e2, smooth / TASKS, 8e8, 1.6e9),
    ]
    for name, machines, n, d, model, sent, back in cases:
        for part in (128 * 2**20, 4 * 2**30):
            parts = Cluster(machines, 16, part).a_pass(costs, n, d, model, sent, back)
            cells = [f"{value:.3g} s" for value in (*parts.values(), sum(parts.values()))]
            lines.append(f"| {name} | {machines} | {part / 2**20:,.0f} MB | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    known: dict = {}
    results = Path(__file__).parent / "results"
    for line in (results / "rows_elsewhere.jsonl").read_text().splitlines():
        run = json.loads(line)
        known[run["model"], run["rows are"], run["GB"]] = run
    nodes = [json.loads(line) for line in (results / "rows_elsewhere_nodes.jsonl").read_text().splitlines()]
    page = RESULTS / "rows_elsewhere_model.md"
    runs = sorted(known.values(), key=lambda run: (run["model"], run["rows are"], run["GB"]))
    page.write_text(pages(runs, nodes))
    print(page)


if __name__ == "__main__":
    main()
