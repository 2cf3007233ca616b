"""One unit of the SMTL experiment: a method on a partition. It stands in a module, so that workers elsewhere can import it."""

from __future__ import annotations

from functools import lru_cache

from benchmarks.papers.smtl_data import folds_of, partition, resampled
from benchmarks.papers.smtl_methods import run_method

__all__ = ["RATIOS", "unit_fits"]

RATIOS, MOST_ROWS = (1, 5, 10), 400


def unit_fits(unit: dict, settings, source=None) -> list:
    """The fits of one method on one partition; of a file of the user (`given_data.Source`), or of a published set."""
    seed = int(unit["seed"])
    return run_method(
        unit["method"],
        *_parts(source or unit["data"], seed, int(unit["ratio"]), settings.folds),
        seed,
        settings,
    )


@lru_cache(maxsize=1)  # units that follow each other are of one partition
def _parts(data, seed, ratio, k):
    train, test = partition(data, seed)
    if ratio:
        # resampled after the partition: drawn before it, copies of a row would be on both sides
        train, test = (
            resampled(
                part,
                ratio,
                min(part.X.shape[0] if part.is_shared else min(part.counts), MOST_ROWS),
                2 * seed + side,
            )
            for side, part in enumerate((train, test))
        )
    return train, test, folds_of(train, k, seed)
