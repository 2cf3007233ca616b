"""CSV: small files, the expected arrays written out by hand, and mistakes told with their line."""

import bz2
import gzip
import lzma

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import DataError
from mtldsl.cli.new_command import draft
from mtldsl.data.readers.new_rows import read_held_out, read_inputs
from mtldsl.datasets import read_csv
from tests.loops import for_each


@pytest.fixture
def file(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "data.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


HOUSES = "rooms,age,price,rent\n3,10,200,\n4,20,300,12\n\n5,15,NA,14\n"


def test_tasks_share_inputs_and_empty_cells_are_missing_labels(file):
    tasks = read_csv(file(HOUSES), ["price", "rent"])
    assert (
        tasks.is_shared and tasks.task_names == ("price", "rent") and tasks.feature_names == ("rooms", "age")
    )
    np.testing.assert_array_equal(tasks.X, [[3, 10], [4, 20], [5, 15]])
    np.testing.assert_array_equal(tasks.mask, [[True, False], [True, True], [False, True]])
    np.testing.assert_array_equal(tasks.targets, [200, 300, 12, 14])


@for_each("labels", [["price", "rent"], 2, [2, 3], [-2, -1]])
def test_labels_by_name_by_position_and_by_number(file, labels):
    tasks = read_csv(file(HOUSES), labels)
    assert tasks.task_names == ("price", "rent")


@for_each("options", [{"features": ["age"]}, {"features": "age"}, {"drop": ["rooms"]}, {"drop": "rooms"}])
def test_chosen_and_dropped_features(file, options):
    tasks = read_csv(file(HOUSES), ["price", "rent"], **options)
    assert tasks.feature_names == ("age",)
    np.testing.assert_array_equal(tasks.X, [[10], [20], [15]])


def test_task_column(file):
    tasks = read_csv(
        file("city,x,w,y\nRome,1,2,10\n Oslo,2,1,20\nRome,3,4,30\n"), "y", task="city", sample_weights="w"
    )
    assert not tasks.is_shared and tasks.task_names == ("Rome", "Oslo") and tasks.feature_names == ("x",)
    np.testing.assert_array_equal(tasks.inputs[0], [[1], [3]])
    np.testing.assert_array_equal(tasks.targets, [10, 30, 20])
    np.testing.assert_array_equal(tasks.sample_weights, [2, 4, 1])


def test_task_column_of_numbers_keeps_them_as_written(file):
    assert read_csv(file("id,x,y\n007,1,2\n1,1,3\n007,2,4\n"), "y", task="id").task_names == ("007", "1")


def test_one_hot_columns(file):
    text = "colour,size,zone,y\nred,S,10,1\nblue,L,9,2\ngreen,S,10,3\n"
    tasks = read_csv(file(text), "y", one_hot=["colour", "size", "zone"])
    assert tasks.feature_names == ("colour=blue", "colour=green", "colour=red", "size=S", "zone=10")
    np.testing.assert_array_equal(tasks.X, [[0, 0, 1, 1, 1], [1, 0, 0, 0, 0], [0, 1, 0, 1, 1]])
    only_text = read_csv(file(text), "y", one_hot=True)
    assert only_text.feature_names == ("colour=blue", "colour=green", "colour=red", "size=S", "zone")


def test_one_vs_rest(file):
    tasks = read_csv(file("x,kind\n1,cat\n2,dog\n3,ant\n4,\n5,dog\n"), "kind", one_vs_rest=True)
    assert tasks.task_names == ("ant", "cat", "dog")
    np.testing.assert_array_equal(
        np.stack(tasks.per_task(tasks.targets)), [[-1, -1, 1, -1], [1, -1, -1, -1], [-1, 1, -1, 1]]
    )
    two = read_csv(file("x,spam\n1,no\n2,yes\n"), "spam", one_vs_rest=True)
    assert two.task_names == ("spam",)
    np.testing.assert_array_equal(two.targets, [-1, 1])


def test_no_header_other_delimiter_quotes_and_byte_order_mark(file):
    np.testing.assert_array_equal(
        read_csv(file("1;2;3\n4;5;6\n"), [2], header=False, delimiter=";").X, [[1, 2], [4, 5]]
    )
    tasks = read_csv(file('\ufeff"a, b", y\n"1",2\n'), "y")
    assert tasks.feature_names == ("a, b",)


#: six cells that say unknown, and twenty numbers
NUMBERS = "a,y\n" + 6 * "unknown,1\n" + "".join(f"{k},2\n" for k in range(20))

WRONG = {
    "text": ("a,y\n1,2\nred,3\n", {}, ["column 'a'", "'red' in line 3", "one_hot", "drop"]),
    "a code that Python reads as a number": ("a,y\n1_000,3\n", {}, ["'1_000' in line 2"]),
    "missing feature": ("a,b,y\n1,2,3\n1,,3\n", {}, [":3:", "column 'b' has no value"]),
    "infinite feature": ("a,y\n1,2\ninf,3\n", {}, ["column 'a' is infinite", "line 3"]),
    "too few cells": ("a,b,y\n1,2,3\n\n1,2\n", {}, [":4:", "2 cells", "3 columns"]),
    "a near name": ("height,y\n1,2\n", {"labels": "heigt"}, ["labels", "'heigt'", "did you mean 'height'"]),
    "a far name": ("a,b\n1,2\n", {"labels": "price"}, ["the columns are 'a', 'b'"]),
    "label twice": ("a,y\n1,2\n", {"labels": ["y", "y"]}, ["named twice"]),
    "no labels": ("a,y\n1,2\n", {"labels": []}, ["labels=[]"]),
    "labels of another kind": ("a,y\n1,2\n", {"labels": 1.5}, ["labels=1.5"]),
    "too many labels": ("a,y\n1,2\n", {"labels": 2}, ["labels=2", "of 2 columns"]),
    "no features": ("y\n1\n", {}, ["no columns are left"]),
    "features and drop": ("a,b,y\n1,2,3\n", {"features": ["a"], "drop": ["b"]}, ["features=... or drop=..."]),
    "drop a column that is not": ("a,y\n1,2\n", {"drop": ["id"]}, ["drop: there is no column 'id'"]),
    "no id": ("s,a,y\nA,1,2\n,1,3\n", {"task": "s"}, [":3:", "column 's' has no value", "every row needs a task"]),
    "one text among numbers": ("a,y\n1,2\n3,4\nunknown,5\n", {}, ["'unknown' in line 4 (this cell alone is none)", "leave it empty"]),
    "one text among numbers, as categories": (NUMBERS, {"one_hot": True}, ["column 'a'", "'unknown' in line 2 (6 such cells of 26)", "leave them empty"]),
    "few texts among numbers, as categories": ("a,y\n" + 20 * "1,2\n" + "o,3\nl,3\n", {"one_hot": True}, ["'o' in line 22 (2 such cells of 22)"]),
    "a line for spreadsheets": ("sep=;\na;y\n1;2\n", {"delimiter": ";"}, [":1: 'sep=;'", "leave the line out", "delimiter=';'"]),
    "a line for spreadsheets, unread": ("sep=;\na;y\n1;2\n", {}, [":1: 'sep=;'", "leave the line out", "delimiter=';'"]),
    "a line above the names": ("of March\na,y\n1,2\n", {}, [":2: 2 cells, but there is 1 column"]),
    "tasks by rows and by columns": ("s,a,y,z\nA,1,2,3\n", {"task": "s", "labels": ["y", "z"]}, ["task='s'", "y, z", "one column"]),
    "not binary": ("a,y\n1,0\n1,2\n", {"binary": True}, ["binary=True", "label 2"]),
    "classes of two columns": ("a,y,z\n1,0,1\n", {"labels": 2, "one_vs_rest": True}, ["one_vs_rest", "one column"]),
    "weight as text": ("a,w,y\n1,p,1\n", {"sample_weights": "w"}, ["'p' in line 2; mend it, or name a column of weights"]),
    "weight 0": ("a,w,y\n1,0,1\n", {"sample_weights": "w"}, ["data.csv:2: the weight in column 'w' is 0", "> 0"]),
    "a flag in words": ("a,y\n1,0\n", {"binary": "no"}, ["read_csv(path, labels, binary='no'): write binary=True or binary=False"]),
    "another delimiter": ("a;y\n1;2\n", {}, ["delimiter=';'"]),
    "a long delimiter": ("a,y\n1,2\n", {"delimiter": "::"}, ["delimiter='::'", "one character"]),
    "names only": ("a,y\n", {}, ["at least one row"]),
    "nothing": ("", {}, ["at least one row"]),
}  # fmt: skip


@for_each("case", WRONG)
def test_mistakes_are_told_with_their_place(case, file):
    text, options, pieces = WRONG[case]
    with pytest.raises(DataError) as error:
        read_csv(file(text), **({"labels": "y"} | options))
    assert all(piece in str(error.value) for piece in pieces), error.value


def test_other_encodings_and_missing_files(file, tmp_path):
    with pytest.raises(DataError, match="UTF-8"):
        read_csv(file("é,y\n1,2\n", "latin-1"), "y")
    for path, said in (
        (tmp_path / "nowhere.csv", r"nowhere\.csv: there is no such file"),
        ("https://a.org/t.csv", "https:// is an address: download the file"),
        ("~/nowhere.csv", "write the whole path"),
    ):
        with pytest.raises(DataError, match=said):
            read_csv(path, "y")


@for_each(("texts", "options", "says"), [
    (["no", "yes", "?"], {}, "write binary=True, which reads no and yes"),
    (["no", "yes", "maybe"], {"binary": True}, "'maybe' in line 4, which says neither yes nor no"),
    (["1,5", "2", "2,5"], {}, "write decimal=','"),
    (["1"] * 40 + ["ca. 5"], {}, "'ca. 5' in line 42 (this cell alone is none); mend it or leave it empty"),
    (["a", "b", "c"], {}, "one_vs_rest=True where it holds classes"),
])  # fmt: skip
def test_text_among_labels_is_answered_by_what_the_text_is(texts, options, says, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("u;y\n" + "".join(f"{i / 3:.3f};{text}\n" for i, text in enumerate(texts)))
    with pytest.raises(DataError) as error:
        read_csv(path, "y", delimiter=";", **options)
    assert says in str(error.value)


def test_a_comma_may_be_the_decimal_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("u;kind;y\n1,5;a,b;2\n-,25;c;0,5\n3;a,b;1e1\n")
    tasks = read_csv(path, "y", delimiter=";", decimal=",", one_hot=["kind"])
    np.testing.assert_array_equal(tasks.X[:, 0], [1.5, -0.25, 3.0])
    np.testing.assert_array_equal(tasks.targets, [2.0, 0.5, 10.0])
    assert tasks.feature_names == ("u", "kind=c")
    for options in ({"decimal": ","}, {"decimal": "x", "delimiter": ";"}):
        with pytest.raises(DataError, match="decimal"):
            read_csv(path, "y", **options)


HEAD = "a,y,note\n1,2,fine\n"
QUOTES = {
    "never closed, last column": ('2,3,"oops\n3,4,ok\n4,5,ok\n', 3, "never closed"),
    "never closed, first column": ('"2,3,x\n3,4,ok\n', 3, "never closed"),
    "behind a quoted cell of two lines": ('2,3,"one\ntwo"\n3,4,"oops\n4,5,ok\n', 5, "never closed"),
    "closed by the next quoted cell": ('2,3,"oops\n3,4,"ok"\n', 3, "closed in line 4"),
    "text behind it": ('2,3,"a"b\n', 3, "closed in line 3"),
    "in the last line": ('2,3,ok\n3,4,"', 4, "never closed"),
    "after a blank and CRLF": ('2,3, "oops\r\n3,4,ok\r\n', 3, "never closed"),
    "doubled quotes before it": ('2,3,"a ""b"" c\n3,4,ok\n', 3, "never closed"),
}


@for_each("case", QUOTES)
def test_a_quote_that_swallows_rows_is_told_with_its_line(case, tmp_path):
    body, line, words = QUOTES[case]
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + body).encode())
    for read in (
        lambda: read_csv(path, "y", drop=["note"]),
        lambda: read_inputs(path, ["a"]),
        lambda: read_held_out(path, ["a"], ["y"], signs=False),
        lambda: draft(path),
    ):
        with pytest.raises(DataError, match=rf"t\.csv:{line}: .*{words}"):
            read()


def test_quotes_that_are_right_stay(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + '2,3,"a ""b"", c\nd"\n3,4,5" pipe\n4,5, "x"\n')
    assert read_csv(path, "y", drop=["note"]).n_samples == 4


ODD = {
    "NUL in a name": (b"a\0,y\n1,2\n3,4\n", {}, r"t\.csv:1: has a NUL"),
    "NUL in a category": (b"a,c,y\n1,x\0,2\n3,x,4\n", {"one_hot": ["c"]}, r"t\.csv:2: has a NUL"),
    "two bytes a letter": ("a,y\n1,2\n".encode("utf-16-le"), {}, "has a NUL"),
    "a point that may be of thousands": (b"a;y\n5,678;3\n1.234;2\n", {"delimiter": ";", "decimal": ","}, r"t\.csv:3: '1\.234' has a point"),
    "points beside a decimal mark that is a comma": (b"a;y\n5.678;3\n1.234;2\n", {"delimiter": ";", "decimal": ","}, r"t\.csv:2: '5\.678' has a point, and the decimal mark is a comma"),
    "commas of thousands": (b'a,y\n"5,678",3\n"1,234,567",2\n', {}, r"'5,678' in line 2; where commas separate thousands leave them out$"),
    "a whole number with a point": (b"a,y\n9007199254740993.0,2\n3,4\n", {}, "'9007199254740993.0' in line 2, a whole number that float64 does not have"),
    "an array of numpy": (b"\x93NUMPY\x01\x00", {}, "is an array of numpy, and no CSV; write np.savez"),
    "ARFF": (b"% made\n\n@RELATION r\n", {}, "is an ARFF file, and no CSV; write format='arff' in a problem file, or save"),
    "LIBSVM": (b"-1 1:0.5 3:2e-1\n+1 2:1\n", {}, "is a LIBSVM file, and no CSV; write format='libsvm'"),
    "bzip2": (bz2.compress(b"a,y\n1,2\n"), {}, "is packed by bzip2, and no CSV; unpack it first"),
    "xz": (lzma.compress(b"a,y\n1,2\n"), {}, "is packed by xz, and no CSV; unpack it first"),
    "a number that float64 makes 0": (b"a,y\n1e-400,2\n3,4\n", {}, "'1e-400' in line 2, nearer to 0 than any number of float64; write 0, or multiply"),
    "points of thousands": (b"a;y\n1.234,5;2\n3;4\n", {"delimiter": ";", "decimal": ","}, r"'1\.234,5' in line 2; where points separate thousands leave them out$"),
    "blanks and apostrophes of thousands": ("a,y\n1\u00a0234,2\n3'456.5,4\n".encode(), {}, "where apostrophes or blanks separate thousands leave them out$"),
    "one column in two roles": (b"s,a,y\n1,2,3\n4,5,6\n", {"task": "y"}, "column 'y' is named in task and in labels; give each"),
    "a label that is dropped": (b"s,a,y\n1,2,3\n4,5,6\n", {"drop": ["a", "y"]}, "column 'y' is named in drop and in labels"),
    "a label as a feature": (b"a,y\n1,2\n", {"features": ["a", "y"]}, "column 'y' is named in features and in labels"),
    "a label of categories": (b"s,a,y\n1,2,3\n4,5,6\n", {"one_hot": ["y"]}, "column 'y' is named in one_hot and in labels"),
    "a name with its accent apart": ("e\u0301,y\n1,2\n".encode(), {"labels": "\u00e9"}, "did you mean .*Both look alike"),
    "gzip": (gzip.compress(b"a,y\n1,2\n"), {}, "is packed by gzip, and no CSV; unpack it first"),
    "a spreadsheet": (b"PK\x03\x04" + bytes(60), {}, "a zip archive or a spreadsheet, and no CSV; unpack it, or save the sheet as CSV"),
    "UTF-16 with its mark": ("a,y\n1,2\n".encode("utf-16"), {}, "is in UTF-16, and no CSV; save it in UTF-8"),
    "rows without a line of names": (b"1,2\n3,4\n5,6\n", {"labels": 1}, "has numbers alone; write header=False"),
}  # fmt: skip


@for_each("case", ODD)
def test_nothing_odd_is_changed_in_silence(case, tmp_path):
    content, options, words = ODD[case]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_csv(tmp_path / "t.csv", **({"labels": "y"} | options))


def test_columns_may_be_named_by_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("2024,2025\n1,2\n3,4\n")
    assert read_csv(tmp_path / "t.csv", "2025").n_samples == 2


@for_each("word", ["", "?", "NA", "N/A", "n/a", "NaN", "null", "NULL", "#N/A", "<NA>"])
def test_a_missing_value_may_be_spelled_in_many_ways(word, file):
    written = file(f"a,c,y\n1,u,2\n{word},v,3\n4,{word},{word}\n")
    with pytest.raises(DataError, match=r":3: column 'a' has no value"):
        read_csv(written, "y", one_hot=True)
    tasks = read_csv(written, "y", one_hot=True, impute="mean")
    assert tasks.feature_names == ("a", "c=v") and tasks.n_samples == 2
    np.testing.assert_array_equal(tasks.inputs[0][:, 0], [1.0, 2.5])


def test_codes_beside_one_word_stay_categories(file):
    tasks = read_csv(file("a,y\n1,1\n2,2\nother,3\n"), "y", one_hot=True)
    assert tasks.feature_names == ("a=1", "a=2", "a=other")


def test_a_table_without_gaps_fills_those_of_new_rows(file):
    tasks = read_csv(file("a,b,y\n1,5,2\n3,6,4\n"), "y", impute="mean")
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    np.testing.assert_array_equal(solution.predict([[np.nan, 5.0]]), solution.predict([[2.0, 5.0]]))
