"""Names of features and tasks, wherever a model asks for rows and columns: in slices of slices, in groups."""

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(30, 4)), columns=["age", "sex", "bp", "ldl"])
TASKS = mtl.Tasks.shared(X, RNG.normal(size=(30, 3)), task_names=["red", "green", "blue"])
W, L = mtl.Weights(TASKS), mtl.Weights(TASKS, name="L")
FLIP = np.eye(4)[::-1]


def picked(expression):
    """The positions in W of the rows and columns of a slice."""
    (part,) = expression.parts
    left = np.eye(4) if part.left is None else part.left
    right = np.eye(3) if part.right is None else part.right
    return (left @ np.arange(4.0)).tolist(), (np.arange(3.0) @ right).tolist()


@for_each(
    ("expression", "rows", "columns"),
    [
        (W[["ldl", "age"], :]["age", :], [0.0], [0.0, 1.0, 2.0]),
        (W[["ldl", "age"], :][1:, :]["age"], [0.0], [0.0, 1.0, 2.0]),
        (W[:, ["blue", "red"]][:, "red"], [0.0, 1.0, 2.0, 3.0], [0.0]),
        (W[2:, 1:][["ldl", 0], ["blue", "green"]], [3.0, 2.0], [2.0, 1.0]),
        ((FLIP @ W)["ldl", "green"], [3.0], [1.0]),
        ((2 * W - 1)["sex", "blue"], [1.0], [2.0]),
        (W.sum(axis=1)["bp", :], [2.0], [3.0]),
    ],
)
def test_a_name_stays_with_its_row(expression, rows, columns):
    assert picked(expression) == (rows, columns)


def test_a_sum_has_the_names_of_its_summands_where_they_agree():
    assert [picked_of.left.toarray().tolist() for picked_of in (W + L)["bp"].parts] == [[[0, 0, 1, 0]]] * 2
    with pytest.raises(mtl.ModelError, match="not called anything, since they are mixtures; write positions"):
        (W + FLIP @ L)["bp"]


@for_each(
    ("slice_of", "message"),
    [
        (lambda: W["red"], r"no name 'red' among age, sex, bp, ldl; 'red' is a column: write W\[:, 'red'\]"),
        (lambda: W[:, "age"], r"no name 'age' among red, green, blue; 'age' is a row: write W\['age', :\]"),
        (lambda: W["agee"], r"among age, sex, bp, ldl; did you mean 'age'\?"),
        (lambda: W["zebra"], r"among age, sex, bp, ldl$"),
        (lambda: (np.ones((2, 4)) @ W)["age"], r"the rows of array\(2, 4\) @ W are not called anything"),
        (lambda: (W @ np.ones((3, 2)))[:, "red"], r"task of \(W @ array\(3, 2\)\)\[:, 'red'\]: the columns"),
    ],
)
def test_what_has_no_such_name_says_what_there_is(slice_of, message):
    with pytest.raises(mtl.ModelError, match=message):
        slice_of()


GROUPS = [["age", "ldl"], ["sex"]]


@for_each(
    "groups",
    [
        GROUPS,
        {"body": ["age", "ldl"], "who": ("sex",)},
        (iter(group) for group in GROUPS),
        [pd.Index(["age", "ldl"]), np.array(["sex"])],
        [[0, "ldl"], [1]],
    ],
)
def test_groups_by_name_are_groups_by_position(groups):
    (term,) = mtl.group_norm(W, groups, weights=[1.0, 2.0]).terms
    assert term.atom.groups == ((0, 3), (1,))


def test_groups_are_printed_as_typed():
    assert str(mtl.group_norm(W, GROUPS)) == "group_norm(W, groups=[['age', 'ldl'], ['sex']])"
    assert str(mtl.group_norm(W, {"a": np.arange(2)})) == "group_norm(W, groups={'a': [0, 1]})"
    columns = mtl.column_group_norm(W, [["red", "blue"], ["green"]])
    assert str(columns) == "column_group_norm(W, columns=[['red', 'blue'], ['green']])"
    assert columns.terms[0].atom.columns == ((0, 2), (1,))


def test_groups_of_a_slice_are_of_its_rows():
    assert mtl.group_norm(W[["bp", "age"], :], [["age"], ["bp"]]).terms[0].atom.groups == ((1,), (0,))


@for_each(
    ("groups", "message"),
    [
        ([["age", "six"]], r"group_norm\(W\): no name 'six' among age, sex, bp, ldl; did you mean 'sex'\?"),
        ([["age", "red"]], r"'red' is a column$"),
        (
            ["a", "a", "b", "b"],
            r"group 0 is 'a', not a list; .*one label each, these would be the groups \[\[0, 1\], \[2, 3\]\]",
        ),
        (["age", "sex"], r"group 0 is 'age', not a list; write \[\['age', ...\], ...\], a list per group"),
        ([["age", "sex"], ["age", 0]], "row 0 is twice in group 1"),
    ],
)
def test_groups_that_are_wrong(groups, message):
    with pytest.raises(mtl.ModelError, match=message):
        mtl.group_norm(W, groups)
