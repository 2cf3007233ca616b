"""One unit of the CGM experiment: a method on a draw or fold. It stands in a module, so that workers elsewhere can import it."""

from __future__ import annotations

from functools import lru_cache

from benchmarks.papers.cgm_data import REAL, fold_part, star_part
from benchmarks.papers.cgm_methods import best_setting, run_setting, settings
from mtldsl import MTLError

__all__ = ["unit_rows"]


def unit_rows(unit: dict, given, quick: bool) -> tuple[list[dict], str]:
    """The row of one method on one draw or fold, at the setting that held-out rows choose; none where the method cannot be had."""
    study, seed, method = unit["study"], int(unit["seed"]), unit["method"]
    if given is not None:
        REAL[study] = (lambda: given, True)  # which a worker elsewhere has not been told
    part = _part(study, seed, quick, given)
    choices = settings(study, method, part.train.n_tasks, quick)
    try:
        chosen, tried = best_setting(method, part, choices, seed)
        row, _ = run_setting(method, part, chosen)
    except MTLError as error:
        return [], f"{study} {seed} {method}: not run, {error}"
    seconds = [float(one["seconds"]) for one in tried]
    row |= {"slowest_setting": f"{max(seconds):.2f}"} if seconds else {}
    row |= {"tried": len(tried), "tried_capped": sum(one["status"] not in ("", "optimal") for one in tried)}
    line = f"{study} {seed} {method}: Hamming {row['hamming']} at {row['setting']}, {row['seconds']} s"
    return [unit | row], line


@lru_cache(maxsize=1)  # the same rows for every method
def _part(study: str, seed: int, quick: bool, given):
    if study in REAL:
        return fold_part(study, seed, quick)
    return star_part(seed, 0.05 if study == "star, noise" else 0.0, quick)
