"""What the NC-CMTL paper claims in section 5, judged by the rows of its studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_convergence import read_convergence
from benchmarks.papers.calibrated_data import sizes_of
from benchmarks.papers.calibrated_mu import read_mu
from benchmarks.papers.calibrated_paper import PAPER_SYNTHETIC, PAPER_TABLE
from benchmarks.papers.calibrated_synthetic import GRIDS
from benchmarks.papers.claim import UNTESTED, Claim, Pair, by_share, by_significance, judged, paired, verdict
from benchmarks.papers.rows import rows_of

__all__ = ["claims", "in_general"]

_COMMAND = "python -m benchmarks.papers.calibrated --study"
_LOW_RANK = ("NN-MTL", "Capped-MTL", "Robust-MTL")
_NOT_JUDGED = (
    "Not judged: the paper's data sets are not published, and the scale of W is not clear. With N(0, .05) as a variance, as here, the true W "
    "has an nMSE of .39, .76, .11 and .05 on d1 to d4; with .05 as a deviation it has .99, .999, .45 and .22, and W = 0 has an error of .004, below every printed one."
)
#: Pairs of groups of Table 4's methods.
_FEATURES = ("Lasso", "CMTFL")


def claims(results: Path) -> list[Claim]:
    rows = rows_of(results / "calibrated_runs.csv")
    found = [*_synthetic(rows_of(results / "calibrated_synthetic.csv")), *_mu(results, f"{_COMMAND} mu")]
    for data, name in (("school", "School"), ("sarcos", "SARCOS (4,449-row subsample)")):
        found += _table(rows, data, name, f"{_COMMAND} table --data {data}")
    found += [*_printed(rows), *_convergence(results, f"{_COMMAND} convergence")]
    return judged([*found, *_time(results, f"{_COMMAND} time")])


def in_general(results: Path, name: str) -> list[Claim]:
    """Those of Figures 2 and 3 and of Tables 4 and 5, which can be asked of any data."""
    rows = rows_of(results / "calibrated_runs.csv")
    return judged(
        [*_mu(results, ""), *_table(rows, name, name, ""), *_convergence(results, ""), *_time(results, "")]
    )


# ------------------------------------------------------------------------------------------------------------ Table 3


def _started(rows, setting, method) -> dict[str, dict]:
    """Repeat -> row of the fits that began: one that ends at rank 0 without an iteration says nothing of its method."""
    return {
        r["repeat"]: r
        for r in rows
        if (r["setting"], r["variant"], r["method"]) == (setting, "exact", method) and _began(r)
    }


def _began(row) -> bool:
    return not (row["rank"] == "0" and row["iterations"] == "0")


def _synthetic(rows) -> list[Claim]:
    """Similar precision with gross noise in all tasks, a significant lead with gross noise in several: of both columns of the table."""
    command = f"{_COMMAND} synthetic --variants exact --repeats 20 --searched 3"
    found, printed = [], []
    for setting, noise in (
        ("d1", "all tasks have gross noise, of several degrees"),
        ("d2", "all tasks have the same gross noise"),
        ("d3", "several tasks have gross noise, the others light noise"),
        ("d4", "several tasks have gross noise, the others none"),
    ):
        gains = setting in ("d3", "d4")
        says = f"NC-CMTL {'is significantly better than' if gains else 'has similar precision to'} NC-MTL where {noise} ({setting})"
        a, b = (_started(rows, setting, method) for method in ("NC-MTL", "NC-CMTL"))
        both = sorted(set(a) & set(b), key=int)
        if len(both) < 2:  # one says little of noise that is drawn
            found.append(Claim("Table 3", says, UNTESTED, "", command))
            continue
        pairs, similar, texts = [], [], []
        for column, name, at in (("nmse", "nMSE", 0), ("ee", "error of the weights", 2)):
            one, other = (np.array([float(of[k][column]) for k in both]) for of in (a, b))
            middle = float(np.exp(np.log(one / other).mean()))
            theirs = [PAPER_SYNTHETIC[setting, method][at] for method in ("NC-MTL", "NC-CMTL")]
            pairs.append(Pair(f"log {name} of NC-MTL - NC-CMTL", np.log(one / other)))
            similar.append(1 / 1.1 < middle < 1.1)
            texts.append(f"{name} {middle:.2f} (the paper {theirs[0] / theirs[1]:.2f})")
            printed.append(f"{setting}, {name}: {other.mean():.4f} ({theirs[1]:.4f})")
        some = [r for r in rows if (r["setting"], r["variant"]) == (setting, "exact")]
        capped, fits = (sum(int(r[k]) for r in some) for k in ("uncertified", "fits"))
        idle = sum(not _began(r) for r in some)
        edges = [f"{m} {c[both[0]]['chosen']}" for m, c in (("NC-MTL", a), ("NC-CMTL", b)) if _at_edge(m, c)]
        seen = f"NC-MTL over NC-CMTL, geometric means of {len(both)} data sets (the paper: 100): {', '.join(texts)}."
        seen += " Similar: within 10 %." * (not gains) + f" Not certified: {capped} of {fits} fits."
        seen += f" Left out: {idle} fit that never started (rank 0, no iteration)." * bool(idle)
        seen += (
            f" At the edge of the grid of mu, so that another mu may be better: {', '.join(edges)}."
            * bool(edges)
        )
        if gains:
            found.append(Claim("Table 3", says, UNTESTED, seen, command, False, tuple(pairs)))
        else:
            judgement = UNTESTED if edges else by_share(sum(similar), len(similar))
            found.append(Claim("Table 3", says, judgement, seen, command))
    if printed:
        says = "The figures of NC-CMTL are those printed, and the nMSE of NC-MTL is 14 (d3) and 21 (d4) times as large"
        seen = f"{'; '.join(printed)}. {_NOT_JUDGED}"
        found.append(Claim("Table 3", says, UNTESTED, seen, command))
    return found


def _at_edge(method: str, rows: dict[str, dict]) -> bool:
    """Whether most runs have the least or the largest mu of the grid."""
    chosen = [float(row["chosen"]) for row in rows.values()]
    edges = (min(GRIDS[method]), max(GRIDS[method]))
    return 2 * sum(mu in edges for mu in chosen) > len(chosen)


# ------------------------------------------------------------------------------------------------------------- Fig. 2


def _mu(results: Path, command: str) -> list[Claim]:
    curves = read_mu(results)
    says = "NC-CMTL generally outperforms NN-MTL and Capped-MTL where mu is small (at most .1)"
    held, gaps = [], []
    for way, size in dict.fromkeys(key[:2] for key in curves):
        ours = curves.get((way, size, "NC-CMTL"), {})
        for rival in ("NN-MTL", "Capped-MTL"):
            theirs = curves.get((way, size, rival), {})
            for mu in (mu for mu in ours if mu <= 0.1 and mu in theirs and len(ours[mu]) > 1):
                gaps.append(theirs[mu].mean() - ours[mu].mean())
                held.append(gaps[-1] > 1e-3)
    behind = sum(gap < -1e-3 for gap in gaps)
    seen = (
        f"Lower by more than .001 nMSE at {sum(held)} of {len(held)} points (size, labels, rival, mu), higher at {behind}; by {min(gaps):+.4f} to "
        f"{max(gaps):+.4f}."
        if held
        else ""
    )
    judgement = by_significance(sum(held), behind, len(held)) if held else UNTESTED
    found = [Claim("Figure 2", says, judgement, seen, command)]
    says = "A large mu hurts NC-CMTL more than NC-MTL"
    held = []
    for way, size in dict.fromkeys(key[:2] for key in curves):
        ours, theirs = (curves.get((way, size, name), {}) for name in ("NC-CMTL", "NC-MTL"))
        common = [mu for mu in ours if mu in theirs and 10 <= mu <= 1000 and len(ours[mu]) > 1]
        if common:
            held.append(
                np.mean([ours[mu].mean() for mu in common]) > np.mean([theirs[mu].mean() for mu in common])
            )
    seen = f"So at {sum(held)} of {len(held)} (size, labels), mean over mu from 10 to 1,000." if held else ""
    return [*found, Claim("Figure 2", says, by_share(sum(held), len(held)), seen, command)]


# ------------------------------------------------------------------------------------------------------------ Table 4


def _pairs(rows, data, a, b) -> np.ndarray:
    """nMSE of b minus a's, partition by partition, the mean over the sizes and labels that both have: positive where a is better."""
    of_a, of_b = (
        {(r["partition"], r["way"], r["size"]): float(r["nmse"]) for r in rows if (r["data"], r["method"]) == (data, m)}
        for m in (a, b)
    )  # fmt: skip
    return paired(of_a, of_b)


def _table(rows, data, name, command) -> list[Claim]:
    some = [r for r in rows if r["data"] == data]
    capped, fits = (sum(int(r[k]) for r in some) for k in ("uncertified", "fits"))
    found = []
    # the share of the rows that a partition tests, the mean over the sizes
    tested = 0.2 if data == "sarcos" else 1.0 - float(np.mean(sizes_of(data))) / 100
    for says, ours, rivals, question in (
        (f"NC-CMTL improves on NN-MTL and the other low-rank methods on {name}", ("NC-CMTL",), _LOW_RANK, False),
        (f"Low-rank methods are better than feature selection on {name}", (*_LOW_RANK, "NC-CMTL"), _FEATURES, False),
        (f"Joint learning is better than the Lasso a task on {name}", ("CMTFL", *_LOW_RANK, "NC-CMTL"), ("Lasso",), False),
        (f"Calibration is what pays on {name}: NC-CMTL against NC-MTL", ("NC-CMTL",), ("NC-MTL",), True),
    ):  # fmt: skip
        pairs = tuple(
            Pair(f"{one} against {rival}", _pairs(rows, data, one, rival), tested)
            for one in ours
            for rival in rivals
        )
        note = f"Not certified: {capped} of {fits} fits." if fits and not found else ""
        says += _fewer(some, {*ours, *rivals})
        where = "Table 4" if data in ("school", "sarcos") else "as Table 4"
        found.append(Claim(f"{where}, {name.split()[0]}", says, UNTESTED, note, command, question, pairs))
    return found


def _fewer(rows, methods) -> str:
    """Which of the methods have fewer partitions than the others."""
    parts = {method: {r["partition"] for r in rows if r["method"] == method} for method in methods}
    most = max(map(len, parts.values()))
    few = [
        f"{method}: {len(own)} of {most} partitions"
        for method, own in sorted(parts.items())
        if len(own) < most
    ]
    return f" ({', '.join(few)})" if few else ""


def _printed(rows) -> list[Claim]:
    found = []
    for data, name in (("school", "School"), ("sarcos", "SARCOS, of which 4,449 rows are here,")):
        texts, off = [], []
        for (d, size, method), (paper, _) in PAPER_TABLE.items():
            mine = [
                float(r["nmse"])
                for r in rows
                if (r["data"], r["size"], r["method"]) == (d, str(size), method)
            ]
            if d == data and mine:
                off.append(abs(np.mean(mine) / paper - 1))
                if method in ("NN-MTL", "NC-CMTL"):
                    texts.append(f"{method} {size}: {np.mean(mine):.3f} ({paper:.3f})")
        says = f"The nMSEs on {name} are those printed (within 5 %)"
        near = sum(v < 0.05 for v in off)
        seen = f"{near} of {len(off)} are. {'; '.join(texts)}." if off else ""
        judgement = by_share(near, len(off)) if data == "school" else UNTESTED
        found.append(Claim("Table 4", says, judgement, seen, f"{_COMMAND} table --data {data}"))
    return found


# ---------------------------------------------------------------------------------------------------- Fig. 3, Table 5


def _convergence(results: Path, command: str) -> list[Claim]:
    """By the paper's own test (20), a relative change of the surrogate below 1e-6; a plot shows less."""
    says = "Algorithm 1 converges within 5 to 10 iterations"
    ends, texts, falls = [], [], []
    for (eps, _), of_method in read_convergence(results).items():
        best = min(float(row["objective"]) for rows in of_method.values() for row in rows)
        for method in ("block", "algorithm_1"):
            values = np.array([float(row["objective"]) for row in of_method.get(method, [])])
            if values.size:
                falls.append(bool((np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()))
        own = of_method.get("algorithm_1", [])
        if own and own[-1]["status"] == "stalled":
            reached = [k for k, row in enumerate(own, 1) if float(row["objective"]) <= best * 1.01]
            ends.append(int(own[-1]["iteration"]))
            texts.append(f"{ends[-1]} iterations with eps {eps} ({reached[0] if reached else 'never'})")
    seen = (
        f"Its own test (20) ends it after {' and '.join(texts)}; in brackets, within 1 % of the lowest objective known, which is about what a plot "
        "shows."
    )
    judgement = by_share(sum(end <= 10 for end in ends), len(ends))
    found = [Claim("Figure 3", says, judgement, seen * bool(ends), command)]
    if falls:
        says, seen = "The smoothed objective never rises", f"So in {sum(falls)} of {len(falls)} runs."
        found.append(Claim("Theorem 1", says, verdict(all(falls)), seen, command))
    return found


def _time(results: Path, command: str) -> list[Claim]:
    rows = [r for r in rows_of(results / "calibrated_time.csv") if r["tol"] == "1e-06"]
    held, texts = [], []
    for data in dict.fromkeys(r["data"] for r in rows):
        seconds = {r["method"]: float(r["seconds"]) for r in rows if r["data"] == data}
        if "NC-CMTL" in seconds and len(seconds) > 1:
            held.append(seconds["NC-CMTL"] < 0.5 * min(v for m, v in seconds.items() if m in _LOW_RANK))
            texts.append(f"{data}: " + ", ".join(f"{m} {v:.3f}" for m, v in seconds.items()))
    says = "NC-CMTL takes far less time than NN-MTL, Capped-MTL and Robust-MTL"
    seen = f"Seconds to a certified 1e-6. {'; '.join(texts)}." if texts else ""
    return [Claim("Table 5", says, by_share(sum(held), len(held)), seen, command)]
