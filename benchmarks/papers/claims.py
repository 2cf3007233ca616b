"""docs/papers.md from the rows: what the five papers claim, claim by claim, beside what was seen here.

    python -m benchmarks.papers.claims            # prints the page
    python -m benchmarks.papers.claims --write    # writes docs/papers.md
    python -m benchmarks.papers.claims --folder FOLDER    # from rows of yours (the scripts' --folder)

Nothing is run: the rows are those that the papers' scripts left. A verdict is a rule applied to them (`claim.by_share`), so that the
page cannot say anything that the rows do not.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from benchmarks.machine import RESULTS
from benchmarks.papers import calibrated_claims, cgm_claims, fetr_claims, mt_mkl_claims, smtl_claims
from benchmarks.papers.claim import RULE, Claim, table
from benchmarks.papers.mt_mkl_runs import Runs
from benchmarks.papers.rows import rows_of
from benchmarks.papers.smtl_tables import read_runs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "papers.md"


def smtl(folder: Path) -> list[Claim]:
    runs = folder / "smtl_runs.csv"
    main, imbalance = (read_runs(runs, study) if runs.is_file() else [] for study in ("main", "imbalance"))
    return smtl_claims.claims(main, imbalance)


def cgm(folder: Path) -> list[Claim]:
    studies: dict[str, list[dict]] = {}
    for row in rows_of(folder / "cgm_runs.csv"):
        studies.setdefault(row["study"], []).append(row)
    return cgm_claims.claims(studies, rows_of(folder / "cgm_history.csv"))


def mt_mkl(folder: Path) -> list[Claim]:
    studies: dict[str, list[dict]] = {}
    for row in rows_of(folder / "mt_mkl_runs.csv"):
        studies.setdefault(row["study"], []).append(row)
    return mt_mkl_claims.claims({study: Runs(rows) for study, rows in studies.items()})


def certified(folder: Path) -> dict[str, tuple[int, int]]:
    """report -> (fits that are not certified, fits), of all rows whose solver has a certificate; capped searches are counted too."""

    def by_status(name: str) -> tuple[int, int]:
        known = [row["status"] for row in rows_of(folder / f"{name}_runs.csv") if row["status"]]
        return sum(status not in ("optimal", "stationary") for status in known), len(known)

    def by_count(rows: list[dict], column: str) -> tuple[int, int]:
        return sum(int(row[column]) for row in rows), sum(int(row["fits"]) for row in rows)

    calibrated = rows_of(folder / "calibrated_runs.csv") + rows_of(folder / "calibrated_synthetic.csv")
    # ten rounds, or fifty, are what the paper's algorithms are given: they are counted apart from those that are to end by themselves
    fetr = [
        row for row in rows_of(folder / "fetr_runs.csv") if row["method"] in ("STL", "MTFL", "MTRL", "FETR")
    ]
    return {
        "smtl": by_status("smtl"),
        "calibrated": by_count(calibrated, "uncertified"),
        "fetr": by_count(fetr, "capped"),
        "mt_mkl": by_status("mt_mkl"),
        "cgm": by_status("cgm"),
    }


def rows_of_sets(folder: Path) -> str:
    """Which sets SMTL's comparisons are over, with their partitions."""
    runs = folder / "smtl_runs.csv"
    found = []
    for study in ("main", "imbalance"):
        counts = {run.data: len(run.seeds) for run in (read_runs(runs, study) if runs.is_file() else [])}
        if counts:
            found.append(
                f"{study}: " + ", ".join(f"{data} ({count} partitions)" for data, count in counts.items())
            )
    return f" Run so far: {'; '.join(found)}." if found else ""


#: (heading, statement in the language, name of the report, claims of a folder)
PAPERS = (
    (
        "SMTL: evaluation metrics as losses",
        "l21_norm(W) + lam * structured_hinge(W, tasks, metric=FScore())", "smtl", smtl,
    ),
    (
        "NC-CMTL: calibrated multi-task learning",
        "square_root_loss(W, tasks) + mu * log_rank(W)", "calibrated", calibrated_claims.claims,
    ),
    (
        "FETR: features and tasks that vary together",
        "sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2), Sigma1 and Sigma2 within a box", "fetr", fetr_claims.claims,
    ),
    (
        "MT-MKL: weights of task similarities",
        "C * hinge_loss(W, tasks) + mkl_norm(W, [tree(parents)], p=2)", "mt_mkl", mt_mkl,
    ),
    (
        "CGM: a graph over labels, generated clique by clique",
        "clique_hinge(U, V, tasks) + lam * ridge(U) + lam * half_squared_k_support_norm(V, r)", "cgm", cgm,
    ),
)  # fmt: skip

_HEAD = """# The five papers, claim by claim

Every statement of the papers' experiments that can be put to a test, beside what this package's rows say of it: **reproduced**, **refuted**, **in part**,
or **not testable here**, with the figures and the command that makes them. {rule} The rows lie in `benchmarks/results/` (one CSV file a study); this
page is made of them alone, by `python -m benchmarks.papers.claims --write`, and the tables, pictures and deviations from each paper stand in the reports
beside the rows.

Run any line from the root of the repository, after `pip install -e ".[benchmarks]"`; the published data are read from the folder that `MTLDSL_DATA` names.
Each script ends within a minute with `--quick`, goes on where it was stopped, takes files of yours with `--data FILE` (ARFF, CSV, MAT, NPZ) and
writes the same report for them:

```sh
python -m benchmarks.papers.smtl --quick
python -m benchmarks.papers.smtl --data yeast.arff --xml yeast.xml
python -m benchmarks.papers.fetr --data exams.csv --labels score --task school
```
"""


def page(folder: Path) -> str:
    """The whole page as Markdown."""
    lines = [_HEAD.format(rule=RULE)]
    totals, sections, certificates = [], [], certified(folder)
    for heading, statement, report, claims in PAPERS:
        found = claims(folder)
        count = Counter(claim.verdict for claim in found)
        open_fits, fits = certificates[report]
        totals.append(
            f"| [{heading.split(':')[0]}](#{_anchor(heading)}) | "
            + " | ".join(str(count[v]) for v in _VERDICTS)
            + " |"
        )
        sections += [
            f"## {heading}", "", f"`{statement}`", "",
            f"Tables and pictures: `benchmarks/results/{report}.md`, made by `python -m benchmarks.papers.{report} --report-only`. "
            f"Fits without a certificate to the accuracy asked for, all rows: {open_fits:,} of {fits:,}."
            + (rows_of_sets(folder) if report == "smtl" else ""), "",
            *table(found), "",
        ]  # fmt: skip
    lines += ["| paper | " + " | ".join(_VERDICTS) + " |", "|---" * (1 + len(_VERDICTS)) + "|", *totals, ""]
    return "\n".join([*lines, *sections]).rstrip() + "\n"


_VERDICTS = ("reproduced", "in part", "refuted", "not testable here")


def _anchor(heading: str) -> str:
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.claims", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--folder", type=Path, default=RESULTS, help="of the rows (benchmarks/results)")
    parser.add_argument("--write", action="store_true", help="write docs/papers.md instead of printing it")
    options = parser.parse_args(arguments)
    text = page(options.folder)
    if options.write:
        PAGE.write_text(text)
        print(f"written: {PAGE}")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
