"""`mtl.compare`: paired tests and ranks, beside scipy, beside tables of papers, and its errors."""

import numpy as np
import pytest
from scipy import stats

import mtldsl as mtl
from tests.loops import for_each

#: AUC of four variants of C4.5 on fourteen data sets: Demsar 2006, Table 6
# the .975 of voting are printed as equal, and ranked as unequal
C45 = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569],
    [0.954, 0.971, 0.968, 0.967], [0.628, 0.661, 0.654, 0.657],
    [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625],
    [0.775, 0.838, 0.866, 0.875], [1.000, 1.000, 1.000, 1.000],
    [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.97501, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip
NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def c45():
    return mtl.compare(dict(zip(NAMES, C45.T, strict=True)))


def test_ranks_and_critical_difference_are_those_of_demsar():
    found = c45()
    np.testing.assert_allclose(found.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert found.nemenyi == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=2e-3)  # q of his Table 5
    assert found.friedman == pytest.approx(stats.friedmanchisquare(*C45.T).pvalue)
    # his statistic, 9.28, is without the correction for ties, which makes it larger
    assert found.friedman < stats.chi2.sf(9.28, 3)


def test_pairs_are_scipys_and_can_be_turned_round():
    pair = c45().pair("C4.5+m+cf", "C4.5")
    a, b = C45[:, 3], C45[:, 0]
    assert pair.t == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert pair.wilcoxon == pytest.approx(stats.wilcoxon(a - b).pvalue)
    assert (pair.low, pair.high) == pytest.approx(tuple(stats.ttest_rel(a, b).confidence_interval(0.95)))
    back = c45().pair("C4.5", "C4.5+m+cf")
    assert (back.mean, back.better, back.worse) == (-pair.mean, pair.worse, pair.better)
    assert (back.low, back.high, back.t, back.t_adjusted) == (-pair.high, -pair.low, pair.t, pair.t_adjusted)


def test_constant_differences_have_no_t_test():
    found = mtl.compare({"a": [0.8, 0.7, 0.9], "b": [0.7, 0.6, 0.8]})
    assert np.isnan(found.pair("a", "b").t) and np.isnan(found.pair("b", "a").low)
    assert found.pair("a", "b").better == 3 and "no t-test of a - b: the differences are constant" in str(
        found
    )


def test_one_large_row_hides_no_difference_of_others():
    found = mtl.compare({"a": [1e9, 1e-7, 2e-7, 3e-7], "b": [1e9, 2e-7, 4e-7, 7e-7]}).pair("a", "b")
    assert found.t == pytest.approx(stats.ttest_rel([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 7.0]).pvalue)


def test_holm_multiplies_the_smallest_by_the_number_of_pairs():
    found = c45()
    p = sorted(pair.t for pair in found.pairs)
    adjusted = sorted(pair.t_adjusted for pair in found.pairs)
    assert adjusted[0] == pytest.approx(min(6 * p[0], 1.0))
    assert all(a >= b for a, b in zip(adjusted, p, strict=True))


def test_ties_are_ties_and_equal_methods_differ_in_nothing():
    found = mtl.compare({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": [1.0, 2.0, 3.0]})
    pair = found.pair("a", "b")
    assert (pair.mean, pair.better, pair.equal, pair.worse) == (0.0, 0, 3, 0)
    assert pair.t == pair.wilcoxon == found.friedman == 1.0
    np.testing.assert_array_equal(found.ranks, [2.0, 2.0, 2.0])
    errors = mtl.compare({"a": [1.0, 2.0, 3.0], "b": [1.5, 2.5, 2.0]}, higher_is_better=False)
    assert errors.pair("a", "b").better == 2 and errors.ranks[0] < errors.ranks[1]


def test_scores_that_differ_by_rounding_alone_are_equal():
    found = mtl.compare({"a": [0.1 + 0.2] * 6, "b": [0.3] * 6, "c": [0.2, 0.5, 0.4, 0.1, 0.3, 0.35]})
    pair = found.pair("a", "b")
    assert (pair.mean, pair.equal, pair.t, pair.wilcoxon) == (0.0, 6, 1.0, 1.0)
    assert found.ranks[0] == found.ranks[1]


def test_the_smallest_numbers_are_tested_as_others_are():
    a, b = np.array([1.0, 2.0, 0.0, 4.0]), np.array([0.0, 0.0, 5.0, 1.0])
    small, plain = (mtl.compare({"a": f * a, "b": f * b}).pair("a", "b") for f in (1e-300, 1.0))
    assert small.t == pytest.approx(plain.t)
    assert small.high == pytest.approx(1e-300 * plain.high)


def test_masks_and_indexes_are_heeded():
    pd = pytest.importorskip("pandas")
    masked = np.ma.array([0.8, 0.7, 0.9, 0.6], mask=[1, 0, 0, 0])
    with pytest.raises(mtl.DataError, match="scores of 'a': row 0 is not a finite number"):
        mtl.compare({"a": masked, "b": [1, 2, 3, 4]})
    a, b = pd.Series([1.0, 2, 3], index=[*"xyz"]), pd.Series([1.0, 2, 4], index=[*"zyx"])
    with pytest.raises(
        mtl.DataError, match=r"'b': its index differs from that of 'a'; write compare\(pandas.DataFrame"
    ):
        mtl.compare({"a": a, "b": b})
    assert mtl.compare(pd.DataFrame({"a": a, "b": b})).pair("a", "b").worse == 1


def test_names_are_shown_and_not_obeyed():
    assert "a\\x1b[31m" in str(mtl.compare({"a\x1b[31m": [1, 2, 3], "b": [2, 3, 5]}))
    with pytest.raises(mtl.DataError, match=r"pair\('C4.5', 'C4.5'\): a method is not compared with itself"):
        c45().pair("C4.5", "C4.5")


def test_overlapping_training_sets_widen_the_interval():
    scores = {"a": [0.8, 0.7, 0.9, 0.85], "b": [0.75, 0.71, 0.82, 0.8]}
    plain, corrected = (mtl.compare(scores, test_share=share).pair("a", "b") for share in (None, 0.25))
    assert "the tests of ranks do not know it" in str(mtl.compare(scores, test_share=0.25))
    assert plain.wilcoxon == corrected.wilcoxon
    ratio = (corrected.high - corrected.low) / (plain.high - plain.low)
    assert ratio == pytest.approx(np.sqrt((1 / 4 + 1 / 3) / (1 / 4)))
    assert corrected.t > plain.t


def test_missing_scores_are_refused():
    scores = {"a": [0.8, np.nan, 0.9, 0.7], "b": [0.7, 0.6, 0.8, 0.75]}
    with pytest.raises(mtl.DataError, match="scores of 'a': row 1 is not a finite number"):
        mtl.compare(scores)


def test_cross_validations_are_compared_at_their_best():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(5, 3)) + rng.normal(size=(60, 3)))
    W = mtl.Weights(tasks)

    def chosen(norm, folds=4, seed=0, tasks=tasks):
        lam = mtl.Parameter(1.0, name="lam")
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * norm(W))
        return problem.cross_validate(
            lam, [1.0, 10.0], folds=folds, metric="mse", random_state=seed, refit=False
        )

    l21, ridge = chosen(mtl.l21_norm), chosen(mtl.ridge)
    found = mtl.compare({"l21": l21, "ridge": ridge})
    assert not found.higher_is_better and found.overlap == pytest.approx((1 / 4) / (3 / 4))
    np.testing.assert_array_equal(found.scores[:, 0], l21.scores[:, l21.points.index(l21.best)])
    with pytest.raises(mtl.DataError, match="'ridge': has other folds"):
        mtl.compare({"l21": l21, "ridge": chosen(mtl.ridge, folds=3)})
    with pytest.raises(mtl.DataError, match="'ridge': has other folds"):
        mtl.compare({"l21": l21, "ridge": chosen(mtl.ridge, seed=1)})
    other = mtl.Tasks.shared(X, rng.normal(size=(60, 3)))
    with pytest.raises(mtl.DataError, match="'ridge': has other folds, tasks, labels"):
        mtl.compare({"l21": l21, "ridge": chosen(mtl.ridge, tasks=other)})
    with pytest.raises(mtl.DataError, match="says False"):
        mtl.compare({"l21": l21, "ridge": ridge}, higher_is_better=True)
    with pytest.raises(mtl.DataError, match=r"'ridge': is .*others are cross-validations"):
        mtl.compare({"l21": l21, "ridge": [1.0, 2.0, 3.0]})


@pytest.mark.filterwarnings("ignore::mtldsl.data.labels.OneClassWarning")
def test_means_of_unlike_tasks_are_not_compared():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), np.sign(rng.normal(size=(40, 2)))
    Y[:, 1] = np.where(np.arange(40) == 5, 1.0, -1.0)  # no positive to learn on in one of the folds
    tasks, lam = mtl.Tasks.shared(X, Y, task_names=["often", "once"]), mtl.Parameter(1.0, name="lam")
    W = mtl.Weights(tasks)

    def found(loss, one_class):
        problem = mtl.minimize(loss(W, tasks) + lam * mtl.ridge(W))
        return problem.cross_validate(
            lam, [1.0], folds=4, metric="accuracy", one_class=one_class, refit=False
        )

    with pytest.raises(mtl.DataError, match=r"'a' has no score of 'once' on fold \d.*one_class='constant'"):
        mtl.compare({"a": found(mtl.logistic_loss, "skip"), "b": found(mtl.squared_loss, "skip")})
    both = {"a": found(mtl.logistic_loss, "constant"), "b": found(mtl.squared_loss, "constant")}
    assert mtl.compare(both).scores.shape == (4, 2)


def test_a_data_frame_has_a_method_per_column():
    pd = pytest.importorskip("pandas")
    found = mtl.compare(pd.DataFrame(C45, columns=NAMES))
    assert found.names == NAMES
    assert list(found.frame().columns[:3]) == ["a", "b", "mean"] and len(found.frame()) == 6
    assert "Nemenyi" in str(found) and "corrected by Holm" in found._repr_html_()


@for_each(
    "methods, options, message",
    [
        ({"a": [1, 2, 3]}, {}, "two or more methods"),
        ({"a": [1, 2], "b": [2, 3]}, {}, "there are 2 rows"),
        ({"a": [1, 2, 3], "b": [2, 3]}, {}, "'a' 3, 'b' 2"),
        ({"a": [1, 2, "x"], "b": [2, 3, 4]}, {}, "scores of 'a': must be a list of numbers"),
        ({"a": 3.0, "b": [2, 3, 4]}, {}, "scores of 'a'"),
        ({1: [1, 2, 3], "1": [2, 3, 4]}, {}, "same name"),
        ({"a": [1, 2, 3], "b": [2, 3, 4]}, {"level": 95}, "level=95"),
        ({"a": [1, 2, 3], "b": [2, 3, 4]}, {"test_share": 1.0}, "test_share=1.0"),
        ({"a": [1, 2, 3], "b": [2, 3, 4]}, {"higher_is_better": "no"}, "higher_is_better"),
        ({"a": [1, 2, 1e200], "b": [2, 3, 4]}, {}, "'a': 1e\\+200 is beyond 1e\\+100"),
        ({"a": [1, True, 3], "b": [2, 3, 4]}, {}, "'a': must be a list of numbers"),
    ],
)
def test_mistakes_are_quoted(methods, options, message):
    with pytest.raises(mtl.DataError, match=message):
        mtl.compare(methods, **options)
