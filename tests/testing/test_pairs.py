"""Cases that stand for a product of lists."""

from itertools import combinations

from tests.pairs import pairwise_cases


def test_every_two_values_meet():
    lists = ["abcd", [1, 2, 3], [True, False], "xyz"]
    cases = pairwise_cases(*lists)
    for i, k in combinations(range(len(lists)), 2):
        met = {(case[i], case[k]) for case in cases}
        assert met == {(a, b) for a in lists[i] for b in lists[k]}
    assert len(cases) < 20  # of 72


def test_two_lists_are_their_product():
    assert sorted(pairwise_cases("ab", [1, 2])) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert pairwise_cases("abc") == [("a",), ("b",), ("c",)]
