"""One unit of the MT-MKL experiment: a method on a draw. It stands in a module, so that workers elsewhere can import it."""

from __future__ import annotations

from functools import lru_cache

from benchmarks.papers.mt_mkl_data import given_part, tree_part
from benchmarks.papers.mt_mkl_methods import GRID, run_method

__all__ = ["unit_rows"]


def unit_rows(unit: dict, tasks, share: float, quick: bool) -> tuple[list[dict], str]:
    """A row a C of one method on one draw; of the tasks of a file, or of the study's own."""
    study, seed, hierarchy, method = unit.values()
    rows = run_method(
        method, _part(study, int(seed), tasks, share, quick), hierarchy, GRID[1::3] if quick else GRID
    )
    chosen = next(row for row in rows if row["chosen"])
    seconds = sum(float(row["seconds"]) for row in rows)
    line = f"{study} {seed} {method} ({hierarchy}): AUC {chosen['auc']} at C = {chosen['C']}, {seconds:.1f} s"
    return [unit | row for row in rows], line


@lru_cache(maxsize=1)  # units that follow each other are of one draw
def _part(study, seed, tasks, share, quick):
    return tree_part(study, seed, quick) if tasks is None else given_part(tasks, seed, share)
