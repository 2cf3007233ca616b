"""ARFF and Mulan's label lists: by hand, against scipy's reader where that can read, and mistakes with their line."""

import numpy as np
import pytest
from scipy import sparse

from mtldsl import DataError
from mtldsl.datasets import read_arff, read_csv
from tests.loops import for_each

HEAD = """% a comment
@RELATION 'two words'

@attribute size numeric
@attribute 'sea side'   {n, 'e e', s}
@attribute "flag" {off,on}
@attribute l1 {0,1}
@attribute l2 {1,0}
@DATA
"""


@pytest.fixture
def file(tmp_path):
    def write(text, name="data.arff"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_dense(file):
    tasks = read_arff(file(HEAD + "1.5, n, on, 1, 0\n% between\n-2e1,'e e',off,0,1\n3,s,on,?,1\n"), labels=2)
    assert tasks.feature_names == ("size", "sea side=n", "sea side=e e", "sea side=s", "flag=on")
    assert tasks.task_names == ("l1", "l2")
    np.testing.assert_array_equal(tasks.X, [[1.5, 1, 0, 0, 1], [-20, 0, 1, 0, 0], [3, 0, 0, 1, 1]])
    np.testing.assert_array_equal(
        tasks.targets, [1, -1, -1, 1, 1]
    )  # 1 is positive, whatever is declared first
    assert tasks.counts.tolist() == [2, 3]


def test_sparse_equals_dense(file):
    """What a sparse row leaves out is 0: of a nominal attribute the value declared first."""
    dense = read_arff(file(HEAD + "0,n,off,0,1\n1.5,'e e',on,1,0\n0,s,off,0,0\n"), labels=2)
    rare = read_arff(file(HEAD + "{}\n{0 1.5, 1 'e e', 2 on, 3 1, 4 0}\n{ 4 0,1 s }\n"), labels=2)
    assert sparse.issparse(rare.X) and rare.feature_names == dense.feature_names
    np.testing.assert_array_equal(rare.X.toarray(), dense.X)
    np.testing.assert_array_equal(rare.targets, dense.targets)


@pytest.mark.slow
def test_a_wide_sparse_file_is_never_made_dense(file):
    p = 30_000
    head = (
        "@relation r\n"
        + "".join(f"@attribute a{j} numeric\n" for j in range(p))
        + "@attribute y numeric\n@data\n"
    )
    tasks = read_arff(file(head + f"{{7 1.5, {p} 2}}\n{{{p - 1} 4, {p} 3}}\n"), labels=["y"])
    assert tasks.X.shape == (2, p) and tasks.X.nnz == 2 and tasks.X[0, 7] == 1.5 and tasks.X[1, p - 1] == 4
    np.testing.assert_array_equal(tasks.targets, [2, 3])


def test_classes_become_one_vs_rest_tasks(file):
    text = "@relation r\n@attribute a real\n@attribute kind {u,v,w}\n@data\n1,v\n2,u\n3,w\n"
    tasks = read_arff(file(text), labels="kind")
    assert tasks.task_names == ("u", "v", "w")
    np.testing.assert_array_equal(
        np.stack(tasks.per_task(tasks.targets)), [[-1, 1, -1], [1, -1, -1], [-1, -1, 1]]
    )


def test_names_with_quotes_tabs_and_columns_of_text(file):
    text = '@relation r\n@attribute id string\n@attribute \'it\\\'s\' numeric\n@attribute "a \\"b\\"" real\n@attribute y real\n@data\n'
    tasks = read_arff(file(text + "'x, y'\t1\t2\t3\n"), labels=1, drop=["id"])
    assert tasks.feature_names == ("it's", 'a "b"')
    np.testing.assert_array_equal(tasks.X, [[1, 2]])


def test_mulan_label_list_beside_the_file_or_from_here(file, tmp_path, monkeypatch):
    arff = file(HEAD + "1,n,on,1,0\n2,s,on,0,1\n")
    xml = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="l2"/><label name="l1"><label name="flag"/></label></labels>'
    path = file(xml, "data.xml")
    monkeypatch.chdir(tmp_path.parent)
    for labels in ("data.xml", path, f"{tmp_path.name}/data.xml"):
        assert read_arff(arff, labels=labels).task_names == ("l2", "l1", "flag")


WRONG = {
    "a value too few": ("1,n,on,1\n", 2, [":10:", "4 values for 5"]),
    "a value not declared": ("1,w,on,1,0\n", 2, [":10:", "'w'", "'sea side'", "n, e e, s"]),
    "infinite": ("1,n,on,1,0\n1e400,n,on,1,0\n", 2, [":11:", "'1e400'", "'size'", "a finite number"]),
    "text for a number": ("1,n,on,1,0\nx,n,on,1,0\n", 2, [":11:", "'x'", "'size'", "a number"]),
    "missing feature": ("?,n,on,1,0\n", 2, [":10:", "'size' has no value"]),
    "missing nominal feature": ("1,?,on,1,0\n", 2, [":10:", "'sea side' has no value"]),
    "missing in a sparse row": ("{3 1}\n{0 ?}\n", 2, [":11:", "'size' has no value"]),
    "index too large": ("{0 1, 5 1}\n", 2, [":10:", "'5 1'", "0 to 4"]),
    "index twice": ("{0 1, 0 2}\n", 2, [":10:", "index 0 occurs twice"]),
    "no value": ("{0}\n", 2, [":10:", "'0'", "index value"]),
    "a weight behind": ("{0 1},{5}\n", 2, [":10:", "nothing after it"]),
    "a label that is not": ("1,n,on,1,0\n", ["flga"], ["'flga'", "did you mean 'flag'"]),
    "too many labels": ("1,n,on,1,0\n", 5, ["labels=5"]),
    "True labels": ("1,n,on,1,0\n", True, ["labels=True"]),
    "no rows": ("", 2, ["no @data section with rows"]),
}


@for_each("case", WRONG)
def test_mistakes_in_the_data(case, file):
    rows, labels, pieces = WRONG[case]
    with pytest.raises(DataError) as error:
        read_arff(file(HEAD + rows), labels)
    assert all(piece in str(error.value) for piece in pieces), error.value


@for_each(
    ("line", "pieces"),
    [
        ("@attribute ab", ["a name and a type", "'@attribute ab'"]),
        ("@attribute", ["a name and a type"]),
        ("@attribute a relational", ["'a'", "unknown type 'relational'"]),
        ("@attribute a {x,y,x}", ["'a' declares a value twice"]),
        ("hello", ["expected @attribute or @data", "'hello'"]),
        ("@attribute y numeric", ["two columns are named 'y'"]),
        ("@attribute a string", ["'a' is of type string", "drop=['a']"]),
    ],
)
def test_mistakes_in_the_head(line, pieces, file):
    with pytest.raises(DataError) as error:
        read_arff(file(f"@relation r\n{line}\n@attribute y numeric\n@data\n1,2\n"), 1)
    assert all(piece in str(error.value) for piece in pieces), error.value


def test_label_lists_that_list_nothing(file):
    arff = file(HEAD + "1,n,on,1,0\n")
    file("<labels></labels>", "empty.xml")
    file("<labels>", "broken.xml")
    for name, message in (
        ("empty.xml", "lists no label"),
        ("broken.xml", "cannot be read"),
        ("none.xml", "no such file"),
    ):
        with pytest.raises(DataError, match=message):
            read_arff(arff, name)


WORDS = [("yes", "no"), ("TRUE", "FALSE"), ("t", "f"), ("Y", "n"), ("positive", "negative"), ("1", "0"), ("1", "-1"), ("10", "9")]  # fmt: skip


@for_each(("plus", "minus"), WORDS)
@for_each("turned", [False, True])
@for_each("row", ["1,{}", "{{0 1, 1 {}}}"])
def test_labels_of_two_words_mean_what_they_mean_in_csv(file, tmp_path, plus, minus, turned, row):
    """The order of the declaration decides nothing."""
    values = [minus, plus] if turned else [plus, minus]
    rows = "\n".join(row.format(word) for word in (plus, minus, plus))
    path = file(f"@relation r\n@attribute a numeric\n@attribute z {{{','.join(values)}}}\n@data\n{rows}\n")
    csv = file("a,z\n" + "\n".join(f"1,{word}" for word in (plus, minus, plus)) + "\n", "data.csv")
    for binary in (False, True):
        assert read_arff(path, 1, binary=binary).targets.tolist() == [1, -1, 1]
    assert read_csv(csv, "z", one_vs_rest=True).targets.tolist() == [1, -1, 1]


MEKA = "@relation 'Music: -C {} -split-number 400'\n@attribute l1 {{0,1}}\n@attribute l2 {{0,1}}\n@attribute x numeric\n@attribute z {{0,1}}\n@attribute l3 {{0,1}}\n@data\n1,0,2.5,0,1\n0,1,-1,1,0\n"


@for_each("labels", [None, 2])
def test_meka_says_where_the_labels_are(file, labels):
    front = read_arff(file(MEKA.format(2)), labels)
    assert front.task_names == ("l1", "l2") and front.feature_names == ("x", "z=1", "l3=1")
    assert front.targets.tolist() == [1, -1, -1, 1]
    behind = read_arff(file(MEKA.format(-2)), labels)
    assert behind.task_names == ("z", "l3") and behind.feature_names == ("l1=1", "l2=1", "x")


def test_what_meka_says_is_not_overruled_by_a_number(file):
    with pytest.raises(DataError, match=r"first 2 attributes are labels \(-C 2 in its @relation\)"):
        read_arff(file(MEKA.format(2)), 1)
    assert read_arff(file(MEKA.format(2)), ["l3"]).task_names == ("l3",)
    with pytest.raises(DataError, match="does not say which attributes are labels"):
        read_arff(file(HEAD + "1.5, n, on, 1, 0\n"))
    plain = "@relation 'a -C 2'\n@attribute x numeric\n@attribute y numeric\n@data\n1,2\n"
    assert read_arff(file(plain), 1).task_names == ("y",)  # no option: it stands before any colon
