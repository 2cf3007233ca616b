"""The tables of the SMTL experiment, each as (head, rows) of text, from the rows alone."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.smtl_claims import OTHERS, SMTL, SUITS, same_norm
from benchmarks.papers.smtl_paper import PAPER, PAPER_SECONDS
from benchmarks.papers.smtl_tables import MEASURES, PENALTIES, Runs

__all__ = ["about", "sections"]


def sections(main, imbalance) -> list[tuple[str, tuple]]:
    """(title, table), in order; without rows and columns that say nothing, and without tables of such."""
    found = [(about(run), _results(run)) for run in main]
    found += [
        (
            "The same regulariser: SMTL minus baseline, in points (p of the corrected t-test; of Wilcoxon's test)",
            _by_penalty(main),
        ),
        (
            "The same, with the baseline's lam chosen by the measure of the column (F1 or AUC)",
            _by_penalty(main, tuned=True),
        ),
        ("Trace norm: SMTL minus the other baselines, as the paper has it", _fixed(main)),
        (
            "Best SMTL variant of each data set (best on the test part: optimistic) minus each baseline",
            _against_best(main),
        ),
        ("Class ratio 1 : r, in per cent; in brackets: minus MTL-CLS, its p", _imbalance(imbalance)),
        ("One final fit, median seconds to a certified relative gap of 1e-4", _times(main)),
        ("Solves and certificates", _certificates(main + imbalance)),
    ]
    shown = [(title, _filled(*table)) for title, table in found]
    return [(title, table) for title, table in shown if table[1]]


def _filled(head, rows):
    rows = [row for row in rows if set(row[1:]) - {"-", ""}]
    kept = [k for k in range(len(head)) if any(row[k] for row in rows)]
    return [head[k] for k in kept], [[row[k] for k in kept] for row in rows]


def about(run: Runs) -> str:
    intercept = "with" if run.settings["intercept"] == "1" else "without"
    return f"{run.data}: {len(run.seeds)} partitions, {run.settings['folds']} folds, {intercept} an intercept"


def _cell(values) -> str:
    mean, deviation, count = values
    if not count:
        return "-"
    return f"{mean:.2f}" + (f" ± {deviation:.2f}" if np.isfinite(deviation) else "")


def _results(run: Runs):
    head = ["method", "lam chosen by", "partitions"]
    for title in MEASURES.values():
        head += [title, "paper"]
    head += ["AUC of labels"]
    rows, best = [], {m: run.best(m) for m in MEASURES}
    for method in run.methods:
        for select in ("own", "f1", "auc") if method.startswith("MTL") else ("own",):
            values = {m: run.mean(method, m, select) for m in (*MEASURES, "auc_labels")}
            count = values["auc"][2]
            if not count:
                continue
            row = [method, _own(run, method) if select == "own" else select, str(count)]
            for m in MEASURES:
                mark = "**" if select == "own" and best[m] == method else ""
                printed = PAPER.get(run.data, {}).get(method)
                known = f"({printed[m][0]:.2f} ± {printed[m][1]:.2f})" if printed and select == "own" else ""
                row += [mark + _cell(values[m]) + mark, known]
            rows.append([*row, _cell(values["auc_labels"])])
    return head, rows


def _own(run: Runs, method: str) -> str:
    return next(r["select"] for r in run.rows if r["method"] == method and r["select"].startswith("own"))[5:]


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def _difference(comparison) -> str:
    if comparison is None:
        return "-"
    return f"{comparison.mean:+.2f} ({_p(comparison.t)}; {_p(comparison.wilcoxon)})"


def _by_penalty(main, tuned=False):
    rows = []
    for measure, variant, baseline in same_norm():
        select = SUITS[measure][1] if tuned else "own"
        cells = [_difference(run.compare(variant, baseline, measure, select)) for run in main]
        rows.append([f"{MEASURES[measure]}, {variant} - {baseline}", *cells])
    return ["comparison", *(run.data for run in main)], rows


def _fixed(main):
    rows = []
    for measure, (metric, _) in SUITS.items():
        for baseline in OTHERS:
            variant = f"SMTL(trace+{metric})"
            cells = [_difference(run.compare(variant, baseline, measure)) for run in main]
            rows.append([f"{MEASURES[measure]}, {variant} - {baseline}", *cells])
    return ["comparison", *(run.data for run in main)], rows


def _against_best(main):
    baselines = [f"{b}({p})" for b in ("MTL-CLS", "MTL-REG") for p in PENALTIES] + list(OTHERS)
    rows = []
    for measure in MEASURES:
        best = {run.data: run.best(measure, SMTL) for run in main}
        own = []
        for baseline in baselines:
            cells = [
                _difference(run.compare(best[run.data], baseline, measure)) if best[run.data] else "-"
                for run in main
            ]
            own += [[f"{MEASURES[measure]}, - {baseline}", *cells]] if set(cells) - {"-"} else []
        rows += (
            [[f"{MEASURES[measure]}, best SMTL variant:", *(str(best[run.data]) for run in main)], *own]
            if own
            else []
        )
    return ["comparison", *(run.data for run in main)], rows


def _imbalance(runs):
    rows = []
    for run in runs:
        for method in run.methods:
            cells = []
            for measure in MEASURES:
                text = _cell(run.mean(method, measure))
                against = None if method == "MTL-CLS(l21)" else run.compare(method, "MTL-CLS(l21)", measure)
                cells.append(text if against is None else f"{text} ({against.mean:+.2f}, {_p(against.t)})")
            rows.append([run.data, f"1 : {run.ratio}", method, str(run.mean(method, "auc")[2]), *cells])
    return ["data", "ratio", "method", "partitions", *MEASURES.values()], rows


def _times(main):
    methods = list(dict.fromkeys(method for run in main for method in run.methods))
    head = ["method"]
    for run in main:
        head += [run.data, "paper", "cross-validation"]
    rows = []
    for method in methods:
        row = [method]
        for run in main:
            printed = PAPER_SECONDS.get(method, {}).get(run.data)
            fit, search = (run.median(method, column) for column in ("fit_seconds", "cv_seconds"))
            row += [
                f"{fit:.3f}" if np.isfinite(fit) else "-",
                f"({printed:.2f})" if printed else "",
                f"{search:.1f}" if np.isfinite(search) else "-",
            ]
        rows.append(row)
    return head, rows


def _certificates(runs):
    head = [
        "data",
        "ratio",
        "final fits",
        "of them not proven to 1e-4",
        "their largest gap",
        "solves in cross-validation",
        "stopped by the cap",
    ]
    rows = []
    for run in runs:
        fits = [row for row in run.rows if row["status"]]
        left = [row for row in fits if row["status"] != "optimal"]
        own = [row for row in fits if row["select"].startswith("own")]
        solves, capped = (sum(int(row[c]) for row in own) for c in ("cv_solves", "cv_capped"))
        share = f"{capped:,} ({100 * capped / max(solves, 1):.1f} %)"
        worst = f"{max(float(row['gap']) for row in left):.0e}" if left else "-"
        ratio = f"1 : {run.ratio}" if run.ratio else "as published"
        rows.append([run.data, ratio, f"{len(fits):,}", str(len(left)), worst, f"{solves:,}", share])
    return head, rows
