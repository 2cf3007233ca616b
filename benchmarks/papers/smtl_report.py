"""The tables of the experiment, on the screen and as Markdown, and what they say about the paper's claims; from the CSV alone."""

from __future__ import annotations

import re
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.papers.claim import reading, written
from benchmarks.papers.given_data import data_lines
from benchmarks.papers.smtl_claims import FEWEST, agreement, best_of_all, claims
from benchmarks.papers.smtl_figures import draw_imbalance
from benchmarks.papers.smtl_sections import about, sections
from benchmarks.papers.smtl_tables import read_runs

__all__ = ["report"]


def report(runs: Path, path: Path, console: Console) -> None:
    """Print the tables and write `path`."""
    if not runs.is_file():
        raise SystemExit(f"{runs}: there are no runs to report yet")
    main, imbalance = read_runs(runs, "main"), read_runs(runs, "imbalance")
    found = sections(main, imbalance)
    # a table squeezed into 80 columns would cut numbers
    console = Console(width=max(console.width, 125))
    for title, (head, rows) in found:
        console.rule(title)
        shown = Table(*head, box=SIMPLE)
        for row in rows:
            shown.add_row(*(_on_screen(cell) for cell in row))
        console.print(shown)
    text = ["# SMTL: the paper's experiment", "", written("scikit-learn", "numba"), ""]
    text += [
        "Made by `python -m benchmarks.papers.smtl --report-only` from `smtl_runs.csv`. Results are per cent on the test part, "
        "mean ± standard deviation over the partitions, the best in bold, the paper's in brackets.",
        "",
    ]
    given = data_lines(path.parent, "smtl")
    read = [*reading(claims(main, imbalance), bool(given)), *best_of_all(main), *agreement(main)]
    text += [
        "## Reading",
        "",
        *_few(main + imbalance),
        *_capped(main + imbalance),
        *read,
        "",
        "## The data given" if given else "## What differs from the paper",
        "",
        *(f"- {line}" for line in given),
        *_deviations(main, imbalance, bool(given)),
        *(f"- {line}" for line in _notes(path.with_name("smtl_notes.txt"))),
        "",
    ]
    if imbalance:
        figures = draw_imbalance(imbalance, path.parent)
        text += [
            "## Figures 1 and 2: against the class ratio",
            "",
            *(f"![{name}]({name})" for name in figures),
            "",
        ]
    for title, table in found:
        text += [f"## {title}", "", *_markdown(*table), ""]
    path.write_text("\n".join(text))
    console.print(f"written: {path}")


def _few(runs) -> list[str]:
    few = [f"{run.data}{f' (1 : {run.ratio})' * bool(run.ratio)}" for run in runs if len(run.seeds) < FEWEST]
    shown = f"- Not counted in what is said of claims, as fewer than {FEWEST} partitions were run: {', '.join(few)}."
    return [shown] if few else []


def _capped(runs) -> list[str]:
    """Fits on folds that the cap of seconds ended, where they are more than a hundredth: they chose lam."""
    own = {
        run.data: [row for row in run.rows if row["status"] and row["select"].startswith("own")]
        for run in runs
    }
    shares = {
        data: sum(int(row["cv_capped"]) for row in rows) / max(1, sum(int(row["cv_solves"]) for row in rows))
        for data, rows in own.items()
    }
    many = ", ".join(f"{data} {share:.0%}" for data, share in shares.items() if share > 0.01)
    shown = f"- **Fits on folds that were not finished** chose lam: {many}. Another lam may be better; `--cv-seconds` gives them longer."
    return [shown] if many else []


def _notes(path: Path) -> list[str]:
    """How it was run, which only the person who ran it knows: a line each, beside the CSV."""
    return [line for line in (path.read_text().splitlines() if path.is_file() else []) if line.strip()]


def _on_screen(cell: str) -> str:
    """Without the ±, and with the best in the terminal's bold."""
    short = re.sub(r" ± [0-9.]+", "", cell)
    return re.sub(r"\*\*(.*?)\*\*", r"[bold]\1[/bold]", short)


def _markdown(head, rows):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def _deviations(main, imbalance, given: bool) -> list[str]:
    ran = "; ".join(about(run) for run in main)
    refined = any(run.settings["refine"] == "1" for run in main)
    grid = (
        "The walk's best value is then compared with the paper's values next to the geometric means of it and its neighbours."
        if refined
        else "It was not refined (`--refine` does)."
    )
    lines = [f"- Run: {ran}. The paper: 10 partitions, 10 folds."]
    if not given:
        lines.append(
            "- Data: Emotions, Flags (its nine nominal features as 0/1 columns: 43), Scene, Segmentation as published; scikit-learn's digits "
            "(1,797 rows) stand for the larger Optdigits (5,620). Cal500, Yeast, MediaMill and TMC2007 are not here; `--data` reads them from "
            "files of yours."
        )
    lines += [
        "- Partitions: random 60:40, drawn anew until both classes of every label are on both sides. The same partitions and folds for "
        "every method. Features: mean 0 and standard deviation 1 by the training rows (in cross-validation: by the fold's training rows); "
        '"normalized" is all that the paper says.',
        "- Intercept: one a task, not penalised, in every model of the package (scikit-learn's have one too). The paper writes none, but "
        "without one and with centred features a label with 10 % positives is predicted positive half of the time.",
        "- lam: values of the paper's grid, a factor of about 3 apart, upwards from 0.001, each solve warm-started from the one before; "
        "the walk ends after two values in a row that are worse than the best by the measures that choose, or that ran into the time cap "
        f"in all folds. {grid} Ties go to the smallest lam. StructSVM: every task chooses its own C, from 1e-6 on, as weights of an "
        "F-score or AUC hinge are of the size 1/n and the paper's grid starts too high for a ridge; its walk ends when every task has "
        "got worse.",
        "- What chooses lam: each method's own measure, the mean over the folds: macro-F1 for SMTL(F1) and StructSVM(F1), mean AUC for "
        "SMTL(AUC) and StructSVM(AUC), accuracy for MTL-CLS, squared error for MTL-REG, macro-F1 for the other baselines (C of the "
        "logistic regression: 0.01, 0.1, 1, 10). The paper does not say. For MTL-CLS and MTL-REG, lam chosen by macro-F1 and by AUC are "
        "reported as well: the fair comparison on these measures.",
        "- Losses: hinge_loss (MTL-CLS: margin 1, a sum over rows; the paper's ErrorRate is twice that) and squared_loss on labels -1 and "
        "+1 with the factor 1/2. BR, LP, RAkEL (2 m subsets of 3 labels), ECC (10 chains, averaged), MLCSSP and HOMER are on scikit-learn's logistic regression; AdaBoostMH has 50 stumps.",
        "- Measures: scikit-learn's. A label is predicted +1 where its score is > 0. AUC is the pairwise one of the scores; the column "
        "AUC of labels is the mean of 1 - b c / (Pos Neg), the paper's equation (11), of the predicted labels.",
        "- Tests: paired over the partitions, two-sided, exact Wilcoxon. Partitions share rows: the t-test has Nadeau and Bengio's correction with "
        "40 % of the rows tested, and Wilcoxon's p is too small. In the tables none is corrected for the number of comparisons; Wilcoxon's p "
        "cannot be below 0.002 with 10 partitions, 0.0625 with 5.",
        "- Solves: relative gap 1e-3 in cross-validation and 1e-4 for the final fit, with caps on the seconds; a capped solve's weights are "
        "used as they are and counted in the last table. Final fits start cold. Every solve is `problem.solve()`, which "
        "chooses its solver itself.",
    ]
    if imbalance:
        lines.append(
            "- Imbalance: after the partition, every task draws its own rows (at most 400, with replacement) from the training and from "
            "the test part at the ratio; drawn before it, copies of a row would be on both sides; folds keep copies together. l21 norm only."
        )
    return lines
