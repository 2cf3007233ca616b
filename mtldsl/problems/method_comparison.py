"""Comparison of methods on the same folds or data sets: paired tests of every two, and ranks of all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.data.splits import checked_level
from mtldsl.display.displayable import Displayable
from mtldsl.display.sections import NEUTRAL, Panel, Table, aligned_lines, visible
from mtldsl.errors import DataError
from mtldsl.problems.cross_validation_result import CrossValidation
from mtldsl.utils.arrays import as_array
from mtldsl.utils.validation import MAX_MAGNITUDE, as_flag, as_float, complete, one_of, quoted

#: Scores that differ by no more of their size, eight units in the last place, are equal.
ROUNDING = 8 * np.finfo(float).eps


@dataclass(frozen=True)
class PairedDifference:
    """Scores of method `a` minus those of `b`, row by row.

    mean, low, high    : of the differences, and the interval of the t-test at the level
    better, equal, worse : rows on which a is better, equal but for rounding, worse
    t, wilcoxon        : two-sided p-values, t NaN where all differences are one number that is not 0; t_adjusted, wilcoxon_adjusted : after Holm's correction over all pairs
    """

    a: str
    b: str
    mean: float
    low: float
    high: float
    better: int
    equal: int
    worse: int
    t: float
    wilcoxon: float
    t_adjusted: float = np.nan
    wilcoxon_adjusted: float = np.nan


@dataclass(frozen=True, eq=False)
class MethodComparison(Displayable):
    """Paired comparison of methods.

    names, scores   : the methods; (rows, methods) their scores, a row per fold or data set
    pairs           : a `PairedDifference` of every two
    ranks           : (methods,) mean ranks over the rows, 1 for the best, ties shared
    friedman        : p-value of the hypothesis that all methods have the same rank; NaN for fewer than three methods
    nemenyi         : critical difference of mean ranks at the level; NaN for fewer than three methods
    """

    names: tuple[str, ...]
    scores: np.ndarray
    higher_is_better: bool
    level: float
    pairs: tuple[PairedDifference, ...]
    ranks: np.ndarray
    friedman: float
    nemenyi: float
    overlap: float = 0.0

    def pair(self, a: str, b: str) -> PairedDifference:
        """Difference of two methods by name, in the order asked. DataError for an unknown name."""
        for argument, name in (("a", a), ("b", b)):
            one_of(name, self.names, f"pair({argument}")
        if a == b:
            raise DataError("a method is not compared with itself", term=f"pair({a!r}, {b!r})")
        for found in self.pairs:
            if (found.a, found.b) == (a, b):
                return found
        found = self.pair(b, a)
        return replace(
            found,
            a=a,
            b=b,
            mean=-found.mean,
            low=-found.high,
            high=-found.low,
            better=found.worse,
            worse=found.better,
        )

    def frame(self):
        """The pairs as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame([vars(pair) for pair in self.pairs])

    def __repr__(self) -> str:
        lines = [self._lead()]
        for table in self._tables():
            lines += ["", *aligned_lines([list(map(visible, row)) for row in (table.head, *table.rows)])]
        notes = self._notes()
        return "\n".join([*lines, *([""] if notes else []), *notes])

    def _panel(self) -> Panel:
        return Panel("Comparison", "", NEUTRAL, self._lead(), tables=self._tables(), notes=self._notes())

    def _lead(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        return f"{len(self.names)} methods on {len(self.scores)} rows ({better} is better)"

    def _tables(self) -> list[Table]:
        order = np.argsort(self.ranks, kind="stable")
        means = self.scores.mean(axis=0)
        ranked = [(self.names[k], f"{means[k]:.4g}", f"{self.ranks[k]:.2f}") for k in order]
        differences = [
            (
                f"{p.a} - {p.b}",
                f"{p.mean:+.4g}",
                "-" if np.isnan(p.t) else f"[{p.low:+.4g}, {p.high:+.4g}]",
                f"{p.better}/{p.equal}/{p.worse}",
                "-" if np.isnan(p.t) else f"{p.t_adjusted:.2g}",
                f"{p.wilcoxon_adjusted:.2g}",
            )
            for p in self.pairs
        ]
        share = f"{100 * self.level:g} %"
        head = ("difference", "mean", share, "better/equal/worse", "p (t)", "p (Wilcoxon)")
        return [Table(("method", "mean", "mean rank"), ranked), Table(head, differences)]

    def _notes(self) -> list[str]:
        notes = []
        if len(self.pairs) > 1:
            notes.append(f"p-values of {len(self.pairs)} pairs, corrected by Holm")
        if np.isfinite(self.friedman):
            notes.append(
                f"Friedman: p = {self.friedman:.2g}; mean ranks differ from {self.nemenyi:.2f} on (Nemenyi)"
            )
        constant = [f"{p.a} - {p.b}" for p in self.pairs if np.isnan(p.t)]
        if constant:
            notes.append(
                f"no t-test of {', '.join(constant)}: the differences are constant, and nothing is known of how they vary"
            )
        if self.overlap:
            notes.append(
                f"t-tests: variances grow by {self.overlap:.3g} of themselves a row, as training rows of folds overlap; "
                "the tests of ranks do not know it, and their p are too small"
            )
        return notes


@complete("write compare({'a': [0.8, 0.7, 0.9], 'b': [0.7, 0.7, 0.8]})", DataError)
def compare(
    methods: Any,
    *,
    higher_is_better: bool | None = None,
    level: float = 0.95,
    test_share: float | None = None,
) -> MethodComparison:
    r"""Compare methods by their scores on the same folds or data sets.

    Every two methods have a paired t-test of $\bar d = 0$ with its interval, where $d_i$ is their difference on row i of n, and Wilcoxon's
    signed rank test. Three or more have Friedman's test of equal mean ranks, and Nemenyi's critical difference
    $q_{\alpha} \sqrt{k (k + 1) / (6 n)}$.

    Parameters
    ----------
    methods : mapping, or pandas DataFrame
        Name of a method -> its scores (n,), a row per fold or data set; or -> what `cross_validate` returned, of which the scores at the
        best value count. Scores that differ by rounding alone are equal. Series of pandas need one index.
    higher_is_better : bool, optional
        True unless given; cross-validations know it.
    level : number in (0, 1), default 0.95
        The level of the intervals, and of the critical difference.
    test_share : number in (0, 1), optional
        Share of the rows that each fold tests. Training sets of folds overlap, and a plain t-test then finds too much: the variance becomes
        $(1/n + s / (1 - s))$ times that of the differences (Nadeau and Bengio). Cross-validations with k folds have s = 1/k.
        Tests of ranks (Wilcoxon, Friedman) are not corrected.

    Raises
    ------
    DataError
        Fewer than two methods, or than three rows; scores of unequal number, NaN, or beyond 1e100; cross-validations of unlike folds or data.

    Notes
    -----
    p-values of the scores at the best values are a little too small, as the values were chosen on the same folds.
    Sources: Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, sections 3.1 and 3.2;
    Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52, 2003, section 3; Holm, Scandinavian Journal of
    Statistics 6, 1979.

    Examples
    --------
    >>> import mtldsl as mtl
    >>> found = mtl.compare({"l21": [0.81, 0.74, 0.90, 0.77], "ridge": [0.79, 0.73, 0.88, 0.77]})
    >>> round(found.pair("l21", "ridge").mean, 4), round(found.pair("l21", "ridge").t, 3)
    (0.0125, 0.08)
    >>> found
    2 methods on 4 rows (higher is better)
    <BLANKLINE>
    method  mean    mean rank
    l21     0.805   1.12
    ridge   0.7925  1.88
    <BLANKLINE>
    difference   mean     95 %                   better/equal/worse  p (t)  p (Wilcoxon)
    l21 - ridge  +0.0125  [-0.002735, +0.02773]  3/1/0               0.08   0.25
    """
    from scipy.stats import rankdata

    level = checked_level(level, "compare(..., level")
    names, columns, folds, better = _read(methods)
    if higher_is_better is None:
        higher_is_better = better is not False
    higher_is_better = as_flag(higher_is_better, "compare(..., higher_is_better")
    if better is not None and better != higher_is_better:
        raise DataError(
            f"the measure of these cross-validations says {better}",
            term=f"compare(..., higher_is_better={higher_is_better})",
            write_instead="leave it out",
        )
    share = folds if test_share is None else as_float(test_share)
    if share is None or not 0 <= share < 1 or (test_share is not None and share == 0):
        raise DataError(
            "must be a number above 0 and below 1, the share of the rows that each fold tests",
            term=f"compare(..., test_share={quoted(test_share)})",
        )
    scores = np.array(columns, float).T
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise DataError(
            f"row {row} is not a finite number",
            term=f"compare(...): scores of {names[column]!r}",
            write_instead="leave the row out of all methods, as DataFrame(scores).dropna() does",
        )
    if (np.abs(scores) > MAX_MAGNITUDE).any():
        row, column = np.argwhere(np.abs(scores) > MAX_MAGNITUDE)[0]
        raise DataError(
            f"{scores[row, column]:g} is beyond {MAX_MAGNITUDE:g}, and its square is not in float64",
            term=f"compare(...): scores of {names[column]!r}",
            write_instead="rescale the scores of all methods alike",
        )
    if len(scores) < 3:
        raise DataError(
            f"there are {len(scores)} rows, and tests need three or more",
            term="compare(...)",
        )
    overlap = share / (1 - share)
    pairs = [
        _paired(names[i], names[j], scores[:, [i, j]], higher_is_better, level, overlap)
        for i, j in itertools.combinations(range(len(names)), 2)
    ]
    t, w = holm([p.t for p in pairs]), holm([p.wilcoxon for p in pairs])
    pairs = [
        replace(pair, t_adjusted=float(a), wilcoxon_adjusted=float(b))
        for pair, a, b in zip(pairs, t, w, strict=True)
    ]
    tied = _tied(scores)
    ranks = rankdata(-tied if higher_is_better else tied, axis=1).mean(axis=0)
    friedman, nemenyi = _over_ranks(tied, level)
    return MethodComparison(
        tuple(names), scores, higher_is_better, level, tuple(pairs), ranks, friedman, nemenyi, overlap
    )


def _read(methods) -> tuple[list[str], list[np.ndarray], float, bool | None]:
    """Names, a column of scores each, the share of rows that a fold tests (0 if not known), and whether higher is better (None likewise)."""
    if hasattr(methods, "columns") and hasattr(methods, "to_dict"):
        methods = {name: methods[name].to_numpy() for name in methods.columns}
    if not isinstance(methods, Mapping) or len(methods) < 2:
        raise DataError(
            "two or more methods are compared, by name",
            term=f"compare({quoted(methods)})",
            write_instead="write compare({'a': scores, 'b': scores})",
        )
    names = [str(name) for name in methods]
    if len(set(names)) < len(names):
        raise DataError("two methods have the same name", term=f"compare(...): {', '.join(names)}")
    results = list(methods.values())
    if any(isinstance(result, CrossValidation) for result in results):
        return names, *_of_cross_validations(names, results)
    _refuse_unlike_indexes(names, results)
    columns = [
        _column(result, f"compare(...): scores of {name!r}")
        for name, result in zip(names, results, strict=True)
    ]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise DataError(
            "methods have unlike numbers of scores: "
            + ", ".join(f"{name!r} {len(column)}" for name, column in zip(names, columns, strict=True)),
            term="compare(...)",
            write_instead="give every method a score on every row",
        )
    return names, columns, 0.0, None


def _column(result, term: str) -> np.ndarray:
    """Scores as float64, NaN where one is missing or masked. DataError for all but a list of numbers."""
    wrong = DataError(f"must be a list of numbers, not {quoted(result)}", term=term)
    try:
        column = as_array(result, term)
    except DataError:
        raise wrong from None
    if column.ndim != 1 or column.dtype.kind == "b" or any(isinstance(v, bool | np.bool_) for v in result):
        raise wrong
    return np.array(column, float)


def _refuse_unlike_indexes(names, results) -> None:
    """DataError for pandas Series whose rows have other names, or another order: their scores would be paired by position."""
    indexed = [
        (name, result.index)
        for name, result in zip(names, results, strict=True)
        if hasattr(result, "index") and hasattr(result, "to_numpy")
    ]
    for name, index in indexed[1:]:
        if len(index) == len(indexed[0][1]) and not index.equals(indexed[0][1]):
            raise DataError(
                f"its index differs from that of {indexed[0][0]!r}",
                term=f"compare(...): scores of {name!r}",
                write_instead="write compare(pandas.DataFrame({...})), which puts rows of one name together",
            )


def _of_cross_validations(names, results) -> tuple[list[np.ndarray], float, bool]:
    def at_best(result: CrossValidation) -> list[dict]:
        at = dict(zip(result.names, result.best, strict=True))
        return [row for row in result.table if all(row[k] == v for k, v in at.items())]

    def tested(result: CrossValidation) -> list[tuple]:
        return [(row["fold"], row["task"], row["tested"]) for row in at_best(result)]

    for name, result in zip(names, results, strict=True):
        if not isinstance(result, CrossValidation):
            raise DataError(
                f"is {quoted(result)}, and others are cross-validations",
                term=f"compare(...): {name!r}",
                write_instead="give the same kind for all methods",
            )
    first = results[0]
    for name, result in zip(names, results, strict=True):
        unlike = result.metric != first.metric or tested(result) != tested(first)
        if unlike or result.divided != first.divided:
            raise DataError(
                f"has other folds, tasks, labels or another measure than {names[0]!r}",
                term=f"compare(...): {name!r}",
                write_instead="cross-validate both on the same tasks, folds, metric and random_state",
            )
        for row, other in zip(at_best(result), at_best(first), strict=True):
            if np.isnan(row["score"]) != np.isnan(other["score"]):
                without = name if np.isnan(row["score"]) else names[0]
                raise DataError(
                    f"{without!r} has no score of {row['task']!r} on fold {row['fold']}, and the other has one: means would be of unlike tasks",
                    term=f"compare(...): {names[0]!r} and {name!r}",
                    write_instead="write one_class='constant', fewer folds, or tasks without that one, for both",
                )
    columns = [result.scores[:, result.points.index(result.best)] for result in results]
    return columns, 1.0 / first.n_folds, first.higher_is_better


def _paired(
    a: str, b: str, scores: np.ndarray, higher: bool, level: float, overlap: float
) -> PairedDifference:
    from scipy import stats

    tied = _tied(scores)
    d = tied[:, 0] - tied[:, 1]
    n, sign = len(d), 1 if higher else -1
    size = float(np.abs(d).max()) or 1.0  # squares of the smallest numbers would vanish
    error = float(np.sqrt((1 / n + overlap) * (d / size).var(ddof=1))) * size
    mean = float(d.mean())
    rounding = ROUNDING * np.abs(tied).max(axis=1)
    # of differences that are the same nothing says how sure they are
    if (d - rounding).max() <= (d + rounding).min():
        t, half = (1.0, 0.0) if mean == 0 else (np.nan, np.nan)
    else:
        t = float(2 * stats.t.sf(abs(mean) / error, n - 1))
        half = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    wilcoxon = 1.0 if not d.any() else float(stats.wilcoxon(d).pvalue)
    signs = np.sign(sign * d)
    better, equal, worse = (int((signs == s).sum()) for s in (1, 0, -1))
    return PairedDifference(a, b, mean, mean - half, mean + half, better, equal, worse, t, wilcoxon)


def _tied(scores: np.ndarray) -> np.ndarray:
    """(rows, methods) the same, but what differs from the next smaller of its row by rounding alone is that number."""
    order = np.argsort(scores, axis=1, kind="stable")
    tied = np.take_along_axis(scores, order, axis=1)
    for k in range(1, tied.shape[1]):
        before, here = tied[:, k - 1], tied[:, k]
        tied[:, k] = np.where(
            here - before <= ROUNDING * np.maximum(np.abs(before), np.abs(here)), before, here
        )
    found = np.empty_like(tied)
    np.put_along_axis(found, order, tied, axis=1)
    return found


def holm(p) -> np.ndarray:
    """p-values that may be held against one level together: the i-th smallest of k times k - i + 1, never falling, at most 1."""
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def _over_ranks(scores: np.ndarray, level: float) -> tuple[float, float]:
    from scipy import stats

    n, k = scores.shape
    if k < 3:
        return np.nan, np.nan
    equal = bool((scores == scores[:, :1]).all())
    friedman = 1.0 if equal else float(stats.friedmanchisquare(*scores.T).pvalue)
    q = float(stats.studentized_range.ppf(level, k, np.inf)) / np.sqrt(2)
    return friedman, q * float(np.sqrt(k * (k + 1) / (6 * n)))
