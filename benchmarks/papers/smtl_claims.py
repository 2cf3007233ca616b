"""What the SMTL paper claims, judged by the rows; and what else its tables say of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from benchmarks.papers.claim import Claim, by_share, verdict
from benchmarks.papers.smtl_paper import PAPER
from benchmarks.papers.smtl_tables import MEASURES, PENALTIES

__all__ = ["FEWEST", "OTHERS", "SMTL", "SUITS", "agreement", "best_of_all", "claims", "same_norm"]

SMTL = [f"SMTL({penalty}+{metric})" for penalty in PENALTIES for metric in ("AUC", "F1")]
#: measure -> (the SMTL variant's metric, the validation measure that suits it)
SUITS = {"macro_f1": ("F1", "f1"), "micro_f1": ("F1", "f1"), "auc": ("AUC", "auc")}
OTHERS = (
    "StructSVM(AUC)", "StructSVM(F1)", "BR", "LP", "RAkEL", "ECC", "MLCSSP", "HOMER", "AdaBoostMH",
)  # fmt: skip
#: Partitions below which no test is worth its name.
FEWEST = 5
_MAIN = "python -m benchmarks.papers.smtl --data flags emotions segmentation digits scene --folds 5 --report"
_IMBALANCE = "python -m benchmarks.papers.smtl --study imbalance --data emotions segmentation --seeds 5 --folds 3 --report"


def same_norm():
    """(measure, SMTL variant, baseline) of Tables 5 to 8 with one regulariser on both sides."""
    for measure, (metric, _) in SUITS.items():
        for penalty in PENALTIES:
            for baseline in ("MTL-CLS", "MTL-REG"):
                yield measure, f"SMTL({penalty}+{metric})", f"{baseline}({penalty})"


def claims(main, imbalance) -> list[Claim]:
    """In the paper's order; those without rows are not testable."""
    found = []
    for measure, title in MEASURES.items():
        chosen = "AUC" if measure == "auc" else "F1"
        for baseline in ("MTL-CLS", "MTL-REG"):
            pairs = [pair for pair in same_norm() if pair[0] == measure and pair[2].startswith(baseline)]
            own, tuned = _tally(main, pairs), _tally(main, pairs, tuned=True)
            seen = _sentence(own)
            if tuned["all"]:
                seen += f" With the baseline's lam chosen by {chosen} too: {tuned['better']}, {tuned['won']} and {tuned['lost']}."
            says = f"SMTL({chosen}) is significantly better in {title} than {baseline} with the same norm"
            found.append(Claim("Tables 2 to 8", says, by_share(own["won"], own["all"]), seen, _MAIN))
    found.append(_own_metric(main))
    for name in OTHERS:
        suits = {"StructSVM(AUC)": ("auc",), "StructSVM(F1)": ("macro_f1", "micro_f1")}.get(
            name, tuple(SUITS)
        )
        tally = _tally(main, [(m, f"SMTL(trace+{SUITS[m][0]})", name) for m in suits])
        kind = "its single-task model " if name.startswith("Struct") else ""
        says = f"SMTL(trace) is significantly better than {kind}{name}"
        found.append(
            Claim("Tables 5 to 8", says, by_share(tally["won"], tally["all"]), _sentence(tally), _MAIN)
        )
    return [*found, *_imbalance(imbalance), *_slower(main)]


def _tally(main, pairs, tuned=False) -> Counter:
    found = Counter()
    for measure, variant, baseline in pairs:
        for run in main:
            comparison = run.compare(variant, baseline, measure, SUITS[measure][1] if tuned else "own")
            if comparison is not None and comparison.partitions >= FEWEST:
                found["all"] += 1
                found["better"] += comparison.difference > 0
                found[comparison.verdict] += 1
    return found


def _sentence(found: Counter) -> str:
    if not found["all"]:
        return ""
    return (
        f"Better in {found['better']} of {found['all']} comparisons, significantly (paired t-test, p < .05) in {found['won']}, significantly worse "
        f"in {found['lost']}."
    )


def _own_metric(main) -> Claim:
    wins = []
    for run in main:
        for measure, (metric, _) in SUITS.items():
            best = run.best(measure)
            if best is not None and len(run.seeds) >= FEWEST:
                wins.append(best.startswith("SMTL") and metric in best)
    seen = f"So in {sum(wins)} of {len(wins)} (data set, measure)." if wins else ""
    says = "In most cases, the SMTL variant that optimizes a specific metric achieves the best results on this metric"
    return Claim("Section 6.2", says, by_share(sum(wins), len(wins)), seen, _MAIN)


def _imbalance(runs) -> list[Claim]:
    """Figures 1 and 2: better than the baseline at every ratio, and the more so the rarer the positives."""
    better, grows, texts = [], [], []
    for data in dict.fromkeys(run.data for run in runs):
        of_data = sorted((run for run in runs if run.data == data), key=lambda run: run.ratio)
        for measure, (metric, tuned) in SUITS.items():
            leads = {}
            for select in ("own", tuned):
                found = [
                    run.compare(f"SMTL(l21+{metric})", "MTL-CLS(l21)", measure, select) for run in of_data
                ]
                if len(found) > 1 and None not in found and min(one.partitions for one in found) >= FEWEST:
                    leads[select] = [one.difference for one in found]
            if len(leads) == 2:
                values = leads["own"]
                better += [value > 0 for value in values]
                grows.append(all(b > a for a, b in pairwise(values)))
                own, fair = (" → ".join(f"{value:+.1f}" for value in leads[k]) for k in ("own", tuned))
                texts.append(f"{data}, {MEASURES[measure]}: {own} (lam of both by this measure: {fair})")
    ratios = ", ".join(f"1:{r}" for r in sorted({run.ratio for run in runs}))
    seen = f"SMTL(l21) minus MTL-CLS(l21) in points at {ratios}: {'; '.join(texts)}." if texts else ""
    return [
        Claim(
            "Figures 1 and 2", "On imbalanced data SMTL outperforms the baseline in most cases", by_share(sum(better), len(better)),
            f"Better in {sum(better)} of {len(better)} (data set, measure, ratio)." if better else "", _IMBALANCE,
        ),
        Claim(
            "Section 6.3", "The improvement over the baseline grows with the ratio of negatives to positives",
            by_share(sum(grows), len(grows)), seen, _IMBALANCE,
        ),
    ]  # fmt: skip


def _slower(main) -> list[Claim]:
    """Table 9's sentence, of l1 as there: against the fastest method of each set."""
    quotients = {}
    for run in main:
        seconds = {}
        for method in run.methods:
            own = [
                float(r["fit_seconds"])
                for r in run.rows
                if r["method"] == method and r["select"].startswith("own")
            ]
            seconds[method] = np.median(own)
        ours = [seconds[m] for m in ("SMTL(l1+AUC)", "SMTL(l1+F1)") if m in seconds]
        others = {m: v for m, v in seconds.items() if m.startswith("MTL-CLS") or m in OTHERS}
        if ours and others:
            fastest = min(others, key=others.get)
            quotients[run.data] = (max(ours) / others[fastest], fastest)
    text = "; ".join(f"{data} {q:.0f} times {name}" for data, (q, name) in quotients.items())
    return [
        Claim(
            "Table 9", "SMTL's training is less than 30 times slower than the baselines'",
            verdict(all(q < 30 for q, _ in quotients.values()) if quotients else None),
            f"The slower of SMTL(l1+AUC), SMTL(l1+F1) beside the fastest baseline, medians of a final fit to a certified 1e-4: {text}." if text else "",
            _MAIN,
        )
    ]  # fmt: skip


# ------------------------------------------------------------------------------------- what else there is to read


def best_of_all(main) -> list[str]:
    """The method with the highest mean, by data set and measure."""
    parts = []
    for run in main:
        found = {MEASURES[m]: run.best(m) for m in MEASURES}
        parts.append(f"{run.data}: " + ", ".join(f"{title} {best}" for title, best in found.items() if best))
    return [f"- **Best of all methods.** {'; '.join(parts)}."] if parts else []


def agreement(main) -> list[str]:
    """How far the means are from the printed ones; and which AUC the paper printed."""
    lines = []
    for measure, title in MEASURES.items():
        parts = []
        for run in main:
            known = PAPER.get(run.data, {})
            off = {m: run.mean(m, measure)[0] - known[m][measure][0] for m in run.methods if m in known}
            if off:
                far = max(off, key=lambda m: abs(off[m]))
                middle = np.median(np.abs(list(off.values())))
                parts.append(f"{run.data} {middle:.1f} (farthest: {far} {off[far]:+.1f})")
        if parts:
            lines.append(
                f"- **{title}, here minus the paper**, median of the absolute differences in points: {'; '.join(parts)}."
            )
    parts = []
    for run in main:
        known = {m: v["auc"][0] for m, v in PAPER.get(run.data, {}).items() if m in run.methods}
        if known:
            off = [
                np.median([abs(run.mean(m, c)[0] - v) for m, v in known.items()])
                for c in ("auc", "auc_labels")
            ]
            parts.append(f"{run.data} {off[0]:.1f} and {off[1]:.1f}")
    if parts:
        lines.append(
            "- **Which AUC the paper's tables show**: its equation (11) is of labels. Median distance in points from the printed values, "
            f"of the pairwise AUC of scores and of (11): {'; '.join(parts)}."
        )
    return lines
