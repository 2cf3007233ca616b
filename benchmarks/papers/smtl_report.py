"""The tables of the experiment, on the screen and as Markdown, and what they say about the paper's claims; from the CSV alone."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.machine import stamp
from benchmarks.papers.smtl_paper import PAPER, PAPER_SECONDS
from benchmarks.papers.smtl_tables import MEASURES, PENALTIES, Runs, read_runs

__all__ = ["report"]

SMTL = [f"SMTL({penalty}+{metric})" for penalty in PENALTIES for metric in ("AUC", "F1")]
#: measure -> (the SMTL variant's metric, the validation measure that suits it)
SUITS = {"macro_f1": ("F1", "f1"), "micro_f1": ("F1", "f1"), "auc": ("AUC", "auc")}
OTHERS = ("StructSVM(AUC)", "StructSVM(F1)", "BR", "LP", "RAkEL", "ECC")


def report(runs: Path, path: Path, console: Console) -> None:
    """Print the tables and write `path`."""
    if not runs.is_file():
        raise SystemExit(f"{runs}: there are no runs to report yet")
    main, imbalance = read_runs(runs, "main"), read_runs(runs, "imbalance")
    sections = [(_about(run), [_results(run)]) for run in main]
    sections += [
        (
            "The same regulariser: SMTL minus baseline, in points (p of the paired t-test; of Wilcoxon's test)",
            [_by_penalty(main)],
        ),
        (
            "The same, with the baseline's lam chosen by the measure of the column (F1 or AUC)",
            [_by_penalty(main, tuned=True)],
        ),
        ("Trace norm: SMTL minus the other baselines, as the paper has it", [_fixed(main)]),
        (
            "Best SMTL variant of each data set (best on the test part: optimistic) minus each baseline",
            [_against_best(main)],
        ),
    ]
    if imbalance:
        sections += [
            ("Class ratio 1 : r, in per cent; in brackets: minus MTL-CLS, its p", [_imbalance(imbalance)])
        ]
    sections += [("One final fit, median seconds to a certified relative gap of 1e-4", [_times(main)])]
    sections += [("Solves and certificates", [_certificates(main + imbalance)])]
    # a table squeezed into 80 columns would cut numbers
    console = Console(width=max(console.width, 125))
    for title, tables in sections:
        console.rule(title)
        for head, rows in tables:
            shown = Table(*head, box=SIMPLE)
            for row in rows:
                shown.add_row(*(_on_screen(cell) for cell in row))
            console.print(shown)
    text = ["# SMTL: the paper's experiment", "", stamp("scikit-learn", "numba"), ""]
    text += [
        "Made by `python -m benchmarks.papers.smtl --report-only` from `smtl_runs.csv`. Results are per cent on the test part, "
        "mean ± standard deviation over the partitions, the best in bold, the paper's in brackets.",
        "",
    ]
    text += [
        "## Reading",
        "",
        *_notes(path.with_name("smtl_notes.txt"), conclusions=True),
        *_reading(main, imbalance),
        "",
        "## What differs from the paper",
        "",
        *_deviations(main, imbalance),
        *_notes(path.with_name("smtl_notes.txt"), conclusions=False),
        "",
    ]
    for title, tables in sections:
        text += [f"## {title}", ""]
        for table in tables:
            text += [*_markdown(*table), ""]
    path.write_text("\n".join(text))
    console.print(f"written: {path}")


def _notes(path: Path, conclusions: bool) -> list[str]:
    """What only the person who ran it knows, a line each, in smtl_notes.txt beside the CSV; conclusions begin with "> "."""
    lines = path.read_text().splitlines() if path.is_file() else []
    wanted = [line for line in lines if line.strip() and line.startswith("> ") == conclusions]
    bullets = [f"- {line.removeprefix('> ')}" for line in wanted]
    return [*bullets, "", "Counts and distances:", ""] if conclusions and wanted else bullets


def _on_screen(cell: str) -> str:
    """Without the ±, and with the best in the terminal's bold."""
    short = re.sub(r" ± [0-9.]+", "", cell)
    return re.sub(r"\*\*(.*?)\*\*", r"[bold]\1[/bold]", short)


def _markdown(head, rows):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


# ------------------------------------------------------------------------------------------------ tables


def _about(run: Runs) -> str:
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
    return f"{comparison.difference:+.2f} ({_p(comparison.t)}; {_p(comparison.w)})"


def _pairs():
    """(measure, SMTL variant, baseline) of Tables 5 to 8 with one regulariser on both sides."""
    for measure, (metric, _) in SUITS.items():
        for penalty in PENALTIES:
            for baseline in ("MTL-CLS", "MTL-REG"):
                yield measure, f"SMTL({penalty}+{metric})", f"{baseline}({penalty})"


def _by_penalty(main, tuned=False):
    rows = []
    for measure, variant, baseline in _pairs():
        select = SUITS[measure][1] if tuned else "own"
        cells = [_difference(run.compare(variant, baseline, measure, select)) for run in main]
        rows.append([MEASURES[measure], f"{variant} - {baseline}", *cells])
    return ["measure", "comparison", *(run.data for run in main)], rows


def _fixed(main):
    rows = []
    for measure, (metric, _) in SUITS.items():
        for baseline in OTHERS:
            variant = f"SMTL(trace+{metric})"
            cells = [_difference(run.compare(variant, baseline, measure)) for run in main]
            rows.append([MEASURES[measure], f"{variant} - {baseline}", *cells])
    return ["measure", "comparison", *(run.data for run in main)], rows


def _against_best(main):
    baselines = [f"{b}({p})" for b in ("MTL-CLS", "MTL-REG") for p in PENALTIES] + list(OTHERS)
    rows = []
    for measure in MEASURES:
        best = {run.data: run.best(measure, SMTL) for run in main}
        rows.append([MEASURES[measure], "best SMTL variant:", *(str(best[run.data]) for run in main)])
        for baseline in baselines:
            cells = [
                _difference(run.compare(best[run.data], baseline, measure)) if best[run.data] else "-"
                for run in main
            ]
            rows.append([MEASURES[measure], f"- {baseline}", *cells])
    return ["measure", "comparison", *(run.data for run in main)], rows


def _imbalance(runs):
    rows = []
    for run in runs:
        for method in run.methods:
            cells = []
            for measure in MEASURES:
                text = _cell(run.mean(method, measure))
                against = None if method == "MTL-CLS(l21)" else run.compare(method, "MTL-CLS(l21)", measure)
                cells.append(
                    text if against is None else f"{text} ({against.difference:+.2f}, {_p(against.t)})"
                )
            rows.append([run.data, f"1 : {run.ratio}", method, str(run.mean(method, "auc")[2]), *cells])
    return ["data", "ratio", "method", "partitions", *MEASURES.values()], rows


def _median(run: Runs, method: str, column: str) -> float:
    values = [float(r[column]) for r in run.rows if r["method"] == method and r["select"].startswith("own")]
    return float(np.median(values)) if values else np.nan


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
            fit, search = _median(run, method, "fit_seconds"), _median(run, method, "cv_seconds")
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


# ----------------------------------------------------------------------------------------------- reading


def _tally(main, pairs, tuned=False) -> Counter:
    found = Counter()
    for measure, variant, baseline in pairs:
        for run in main:
            comparison = run.compare(variant, baseline, measure, SUITS[measure][1] if tuned else "own")
            if comparison is not None:
                found["all"] += 1
                found["better"] += comparison.difference > 0
                found[comparison.verdict] += 1
    return found


def _sentence(found: Counter) -> str:
    return (
        f"better in {found['better']} of {found['all']} comparisons, significantly (t-test, p < 0.05) in {found['won']}, "
        f"significantly worse in {found['lost']}"
    )


def _reading(main, imbalance) -> list[str]:
    lines = []
    for measures, name in ((("macro_f1",), "macro-F1"), (("micro_f1",), "micro-F1"), (("auc",), "mean AUC")):
        pairs = [pair for pair in _pairs() if pair[0] in measures]
        for baseline in ("MTL-CLS", "MTL-REG"):
            some = [pair for pair in pairs if pair[2].startswith(baseline)]
            own, tuned = _tally(main, some), _tally(main, some, tuned=True)
            chosen = "AUC" if name == "mean AUC" else "F1"
            lines.append(
                f"- **{name}, SMTL({chosen}) against {baseline} with the same norm**: {_sentence(own)}. With the baseline's lam chosen "
                f"by {chosen} instead of its own loss: {_sentence(tuned)}."
            )
    wins = []
    for run in main:
        for measure, (metric, _) in SUITS.items():
            best = run.best(measure)
            wins.append(
                (run.data, MEASURES[measure], best, best is not None and metric in best and "SMTL" in best)
            )
    held = sum(ok for *_, ok in wins)
    shown = "; ".join(f"{data}, {measure}: {best}" for data, measure, best, _ in wins)
    lines.append(
        f'- **"In most cases, the SMTL variant that optimizes a specific metric achieves the best results on this metric"**: so in {held} '
        f"of {len(wins)} (data, measure). Best of all methods: {shown}."
    )
    for metric in ("AUC", "F1"):
        some = [(m, f"SMTL(trace+{g})", f"StructSVM({metric})") for m, (g, _) in SUITS.items() if g == metric]
        lines.append(
            f"- **SMTL(trace+{metric}) against the single-task StructSVM({metric})**: {_sentence(_tally(main, some))}."
        )
    for baseline in ("BR", "LP", "RAkEL", "ECC"):
        some = [(m, f"SMTL(trace+{g})", baseline) for m, (g, _) in SUITS.items()]
        lines.append(
            f"- **SMTL(trace) against {baseline}**, each measure with its variant: {_sentence(_tally(main, some))}."
        )
    if imbalance:
        lines.append(
            "- **Imbalance** (the paper: the lead over the baseline grows with it): " + _growth(imbalance)
        )
    return [*lines, *_agreement(main)]


def _agreement(main) -> list[str]:
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
        lines.append(
            f"- **{title}, here minus the paper**, median of the absolute differences in points: {'; '.join(parts)}."
        )
    parts = []
    for run in main:
        known = {m: v["auc"][0] for m, v in PAPER.get(run.data, {}).items() if m in run.methods}
        off = [
            np.median([abs(run.mean(m, c)[0] - v) for m, v in known.items()]) for c in ("auc", "auc_labels")
        ]
        parts.append(f"{run.data} {off[0]:.1f} and {off[1]:.1f}")
    lines.append(
        "- **Which AUC the paper's tables show**: its equation (11) is of labels. Median distance in points from the printed values, "
        f"of the pairwise AUC of scores and of (11): {'; '.join(parts)}."
    )
    return lines


def _growth(imbalance) -> str:
    parts = []
    for data in dict.fromkeys(run.data for run in imbalance):
        runs = sorted((run for run in imbalance if run.data == data), key=lambda run: run.ratio)
        for measure, (metric, tuned) in SUITS.items():
            texts = []
            for select in ("own", tuned):
                leads = [run.compare(f"SMTL(l21+{metric})", "MTL-CLS(l21)", measure, select) for run in runs]
                if len(leads) < 2 or any(lead is None for lead in leads):
                    break
                values = [lead.difference for lead in leads]
                grows = "grows" if all(b > a for a, b in pairwise(values)) else "does not grow throughout"
                texts.append(f"{' → '.join(f'{value:+.1f}' for value in values)} ({grows})")
            if len(texts) == 2:
                parts.append(f"{data}, {MEASURES[measure]}: {texts[0]}, tuned {texts[1]}")
    ratios = ", ".join(f"1:{r}" for r in sorted({run.ratio for run in imbalance}))
    return (
        f"SMTL(l21) minus MTL-CLS(l21) in points at {ratios}, and the same with MTL-CLS's lam chosen by F1 or AUC (tuned): "
        + "; ".join(parts)
        + "."
    )


def _deviations(main, imbalance) -> list[str]:
    ran = "; ".join(_about(run) for run in main)
    refined = any(run.settings["refine"] == "1" for run in main)
    grid = (
        "The walk's best value is then compared with the paper's values next to the geometric means of it and its neighbours."
        if refined
        else "It was not refined (`--refine` does)."
    )
    lines = [
        f"- Run: {ran}. The paper: 10 partitions, 10 folds.",
        "- Data: Emotions, Flags (its nine nominal features as 0/1 columns: 43), Scene, Segmentation as published; scikit-learn's digits "
        "(1,797 rows) stand for the larger Optdigits (5,620). Cal500, Yeast, MediaMill and TMC2007 are not here. Nor are the baselines "
        "MLCSSP, AdaBoostMH and HOMER.",
        "- Partitions: random 60:40, drawn anew until both classes of every label are on both sides. The same partitions and folds for "
        "every method. Features: mean 0 and standard deviation 1 by the training rows (in cross-validation: by the fold's training rows); "
        '"normalized" is all that the paper says.',
        "- Intercept: one a task, not penalised, in every model of the package (scikit-learn's have one too). The paper writes none, but "
        "without one and with centred features a label with 10 % positives is predicted positive half of the time.",
        "- lam: values of the paper's grid, a factor of about 3 apart, upwards from 0.001, each solve warm-started from the one before; "
        "the walk ends after two values in a row that are worse than the best by the measures that choose, or that ran into the time cap "
        f"in all folds. {grid} Ties go to the smallest lam. StructSVM: every task chooses its own C, from 1e-6 on, as weights of an "
        "F-score or AUC hinge are of the size 1/n and the paper's grid starts too high for a ridge.",
        "- What chooses lam: each method's own measure, the mean over the folds: macro-F1 for SMTL(F1) and StructSVM(F1), mean AUC for "
        "SMTL(AUC) and StructSVM(AUC), accuracy for MTL-CLS, squared error for MTL-REG, macro-F1 for BR, LP, RAkEL and ECC (C of the "
        "logistic regression: 0.01, 0.1, 1, 10). The paper does not say. For MTL-CLS and MTL-REG, lam chosen by macro-F1 and by AUC are "
        "reported as well: the fair comparison on these measures.",
        "- Losses: hinge_loss (MTL-CLS: margin 1, a sum over rows; the paper's ErrorRate is twice that) and squared_loss on labels -1 and "
        "+1 with the factor 1/2. BR, LP, RAkEL (2 m subsets of 3 labels) and ECC (10 chains, averaged) are on scikit-learn's logistic regression.",
        "- Measures: scikit-learn's. A label is predicted +1 where its score is > 0. AUC is the pairwise one of the scores; the column "
        "AUC of labels is the mean of 1 - b c / (Pos Neg), the paper's equation (11), of the predicted labels.",
        "- Tests: paired over the partitions, two-sided, exact Wilcoxon. Partitions share rows, so that all these p-values are too small; "
        "none is corrected for the number of comparisons, and with two to four partitions a t-test says little. Wilcoxon's p cannot be below 0.002 with 10 partitions, 0.0625 with 5.",
        "- Solves: relative gap 1e-3 in cross-validation and 1e-4 for the final fit, with caps on the seconds; a capped solve's weights are "
        "used as they are and counted in the last table. Final fits start cold. Hinges, structured or not, are solved by ADMM alone: "
        "after its cap `solve()` would go on with cvxpy, which hears no clock.",
    ]
    if imbalance:
        lines.append(
            "- Imbalance: after the partition, every task draws its own rows (at most 400, with replacement) from the training and from "
            "the test part at the ratio; drawn before it, copies of a row would be on both sides; folds keep copies together. l21 norm only."
        )
    return lines
