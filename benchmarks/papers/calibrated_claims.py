"""What the NC-CMTL paper claims in section 5, judged by the rows of its studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_convergence import METHODS as DESCENTS
from benchmarks.papers.calibrated_convergence import read_convergence
from benchmarks.papers.calibrated_mu import read_mu
from benchmarks.papers.calibrated_paper import PAPER_SYNTHETIC, PAPER_TABLE
from benchmarks.papers.calibrated_synthetic import GRIDS
from benchmarks.papers.claim import UNTESTED, Claim, Pair, by_share, judged, paired, verdict
from benchmarks.papers.rows import rows_of

__all__ = ["claims", "in_general"]

_COMMAND = "python -m benchmarks.papers.calibrated --study"
_LOW_RANK = ("NN-MTL", "Capped-MTL", "Robust-MTL")
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
    command = f"{_COMMAND} synthetic --variants exact --repeats 20 --searched 1"
    found = []
    for setting, says, gains in (
        ("d1", "Noise of every degree (d1): calibration gains nothing in the weights' error", False),
        ("d2", "The same noise for all (d2): calibration gains nothing", False),
        ("d3", "Gross noise in several tasks, light in the others (d3): NC-CMTL is significantly better than NC-MTL", True),
        ("d4", "Gross noise in several tasks, none in the others (d4): NC-CMTL is significantly better than NC-MTL", True),
    ):  # fmt: skip
        a, b = (_started(rows, setting, method) for method in ("NC-MTL", "NC-CMTL"))
        both = sorted(set(a) & set(b), key=int)
        if not both:
            found.append(Claim("Table 3", says, UNTESTED, "", command))
            continue
        errors = np.array([[float(one[k]["ee"]) for k in both] for one in (a, b)])
        quotients = errors[0] / errors[1]
        middle = float(np.exp(np.log(quotients).mean()))
        printed = PAPER_SYNTHETIC[setting, "NC-MTL"][2] / PAPER_SYNTHETIC[setting, "NC-CMTL"][2]
        some = [r for r in rows if (r["setting"], r["variant"]) == (setting, "exact")]
        capped, fits = (sum(int(r[k]) for r in some) for k in ("uncertified", "fits"))
        idle = sum(not _began(r) for r in some)
        edges = [f"{m} {c[both[0]]['chosen']}" for m, c in (("NC-MTL", a), ("NC-CMTL", b)) if _at_edge(m, c)]
        seen = (
            f"Error of NC-MTL over NC-CMTL's: {middle:.2f} (geometric mean; the paper {printed:.2f}), NC-CMTL better on "
            f"{int((quotients > 1).sum())} of {len(both)} data sets (the paper: 100); not certified: {capped} of {fits} fits."
        )
        seen += f" Left out: {idle} fit that never started (rank 0, no iteration)." * bool(idle)
        seen += f" At the edge of the grid of mu: {', '.join(edges)}, chosen on one data set." * bool(edges)
        if gains:
            pair = Pair("log error of NC-MTL - NC-CMTL", np.log(quotients))
            found.append(Claim("Table 3", says, UNTESTED, seen, command, False, (pair,)))
        elif edges:
            found.append(
                Claim("Table 3", says, UNTESTED, f"{seen} Not judged: another mu may be better.", command)
            )
        else:
            enough = len(both) >= 2  # one says little of noise that is drawn
            equal = 1 / 1.1 < middle < 1.1
            found.append(Claim("Table 3", says, verdict(equal if enough else None), seen, command))
        if setting in ("d3", "d4"):
            found.append(_prediction_error(setting, a, b, both, command))
    levels = []
    for s in ("d1", "d2", "d3", "d4"):
        ee = [float(r["ee"]) for r in _started(rows, s, "NC-CMTL").values()]
        if ee:
            levels.append((s, np.mean(ee), PAPER_SYNTHETIC[s, "NC-CMTL"][2]))
    if levels:
        near = [abs(np.log(mean / paper)) < np.log(1.5) for _, mean, paper in levels]
        text = "; ".join(f"{s} {mean:.4f} ({paper:.4f})" for s, mean, paper in levels)
        seen = f"||W - W*||^2 / K of NC-CMTL: {text}."
        says = "The errors are those printed (within a factor of 1.5)"
        found.append(Claim("Table 3", says, by_share(sum(near), len(near)), seen, command))
    return found


def _at_edge(method: str, rows: dict[str, dict]) -> bool:
    """Whether most runs have the least or the largest mu of the grid."""
    chosen = [float(row["chosen"]) for row in rows.values()]
    edges = (min(GRIDS[method]), max(GRIDS[method]))
    return 2 * sum(mu in edges for mu in chosen) > len(chosen)


def _prediction_error(setting: str, a, b, both, command: str) -> Claim:
    """Return the claim on the other column of Table 3, which the paper prints with factors of 14 and 21."""
    nmse = np.array([[float(one[k]["nmse"]) for k in both] for one in (a, b)])
    middle = float(np.exp(np.log(nmse[0] / nmse[1]).mean()))
    printed = PAPER_SYNTHETIC[setting, "NC-MTL"][0] / PAPER_SYNTHETIC[setting, "NC-CMTL"][0]
    says = f"The nMSE of NC-MTL is {printed:.0f} times that of NC-CMTL ({setting}; judged: more than half of that)"
    seen = f"{middle:.2f} times (geometric mean of {len(both)} data sets; the paper {printed:.1f})."
    return Claim("Table 3", says, verdict(middle > printed / 2), seen, command)


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
    seen = (
        f"Lower by more than .001 nMSE at {sum(held)} of {len(held)} points (size, labels, rival, mu); by {min(gaps):+.4f} to {max(gaps):+.4f}."
        if held
        else ""
    )
    found = [Claim("Figure 2", says, by_share(sum(held), len(held)), seen, command)]
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
    for says, ours, rivals, question in (
        (f"NC-CMTL improves on NN-MTL and the other low-rank methods on {name}", ("NC-CMTL",), _LOW_RANK, False),
        (f"Low-rank methods are better than feature selection on {name}", (*_LOW_RANK, "NC-CMTL"), _FEATURES, False),
        (f"Joint learning is better than the Lasso a task on {name}", ("CMTFL", *_LOW_RANK, "NC-CMTL"), ("Lasso",), False),
        (f"Calibration is what pays on {name}: NC-CMTL against NC-MTL", ("NC-CMTL",), ("NC-MTL",), True),
    ):  # fmt: skip
        pairs = tuple(
            Pair(f"{one} against {rival}", _pairs(rows, data, one, rival)) for one in ours for rival in rivals
        )
        note = f"Not certified: {capped} of {fits} fits." if fits and not found else ""
        where = "Table 4" if data in ("school", "sarcos") else "as Table 4"
        found.append(Claim(f"{where}, {name.split()[0]}", says, UNTESTED, note, command, question, pairs))
    return found


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
        found.append(
            Claim("Table 4", says, by_share(near, len(off)), seen, f"{_COMMAND} table --data {data}")
        )
    return found


# ---------------------------------------------------------------------------------------------------- Fig. 3, Table 5


def _convergence(results: Path, command: str) -> list[Claim]:
    says = "Algorithm 1 converges within 5 to 10 iterations"
    counts, falls = {}, []
    for (eps, _), of_method in read_convergence(results).items():
        best = min(float(row["objective"]) for rows in of_method.values() for row in rows)
        for method in ("block", "algorithm_1"):
            values = np.array([float(row["objective"]) for row in of_method.get(method, [])])
            if values.size:
                reached = [np.flatnonzero(values <= best * (1 + level)) for level in (1e-2, 1e-4)]
                counts[eps, method] = [int(r[0]) + 1 if r.size else None for r in reached]
                falls.append(bool((np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()))
    if not counts:
        return [Claim("Figure 3", says, verdict(None), "", command)]
    text = "; ".join(
        f"eps {eps}, {DESCENTS[m].lower()}: {a or 'never'} to 1e-2, {b or 'never'} to 1e-4"
        for (eps, m), (a, b) in counts.items()
    )
    held = [b is not None and b <= 10 for _, b in counts.values()]
    return [
        Claim("Figure 3", says, by_share(sum(held), len(held)), f"Iterations to a relative distance of the best objective: {text}. Judged at 1e-4.", command),
        Claim("Theorem 1", "The smoothed objective never rises", verdict(all(falls)), f"So in {sum(falls)} of {len(falls)} runs.", command),
    ]  # fmt: skip


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
