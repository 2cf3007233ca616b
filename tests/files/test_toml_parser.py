"""Places in TOML: what the scanner finds is what tomllib reads, and where a reader's eye finds it."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtldsl.cli.problem_files.toml_parser import TomlFile
from mtldsl.errors import DataError
from tests.loops import for_each

FILE = '''\
# a comment with [brackets] and "quotes"
minimize = "a\\tb \\u00e9 \\"q\\""   # another, with = and ]
subject_to = [ 'W >= 0', # inside
  "x", ]
"quoted key" . sub = 1_000

[data]
path = 'C:\\no\\escape'
many = [[1, -2.5e3], [], [true, "]"]]
when = 1979-05-27 07:32:00
[weights]
W = { intercept = true, name.of = "{W}" }
empty = {}
[solve . "deep" ]
text = """
first
  second \\
     folded ""quoted"" end""""
raw = \'\'\'keeps \\n and ''two\'\'\'
[[repeat]]
a = ""
[[repeat]]
a = "2"
'''


def leaves(content, path=()):
    """(path, value) of everything tomllib reads, tables aside."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))
        if not isinstance(value, dict) and (*path, key) != ("repeat",):
            yield (*path, key), value


def assert_places_are_right(file):
    found = list(leaves(file.content))
    for path, value in found:
        shown = file.values[path].text
        if isinstance(value, str):
            assert shown == value, path
        else:
            assert tomllib.loads(f"x = {shown}")["x"] == value, path
    return found


@for_each("newline", ["\n", "\r\n"])
def test_every_value_is_found_and_reads_the_same(newline):
    file = TomlFile.read(FILE.replace("\n", newline), "f.toml")
    assert len(assert_places_are_right(file)) == 21


def test_places_are_those_an_editor_shows():
    file = TomlFile.read(FILE, "f.toml")
    assert file.keys["subject_to",].place() == (3, 1)
    assert file.values["subject_to", 1].place() == (4, 4)
    assert file.values["data", "many", 2, 1].place() == (9, 34)
    assert file.keys["weights", "W", "intercept"].place() == (12, 7)
    assert file.keys["repeat", 1, "a"].place() == (23, 1)
    # after escapes: the character é stands at column 18, the one after it six characters on
    text = file.values["minimize",]
    assert text.text[4] == "é" and text.place(4) == (2, 18) and text.place(5) == (2, 24)
    # after a folded line end
    folded = file.values["solve", "deep", "text"]
    assert folded.place(folded.text.index("folded")) == (18, 6)


names = st.text(
    st.characters(codec="utf-8", exclude_characters="\x7f", exclude_categories=["Cc", "Cs"]), max_size=12
)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


values = st.recursive(
    st.integers(-(10**9), 10**9) | st.booleans() | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def as_toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + " , ".join(map(as_toml, value)) + " ]"
    if isinstance(value, dict):
        return "{" + ",".join(f" {quoted(k)} = {as_toml(v)}" for k, v in value.items()) + "}"
    return str(value)


@pytest.mark.slow
@given(st.dictionaries(names, values, max_size=4))
def test_any_file_is_walked_as_tomllib_reads_it(content):
    text = "".join(f"{quoted(key)} = {as_toml(value)}\n" for key, value in content.items())
    file = TomlFile.read(text, "f.toml")
    assert file.content == content
    assert_places_are_right(file)


@for_each(
    ("text", "place", "part"),
    [
        ("a = 1\nb = W >= 0\n", ":2:5: ", 'invalid value; text is written in quotes, b = "..."'),
        ("a = 1\na = 2\n", ":2:", "cannot overwrite a value: this key is there already; leave one"),
        ("a = True\n", ":1:5: ", "write true"),
        ("a = \u201cb\u201d\n", ":1:5: ", "the quotes of TOML are straight"),
        ("a = 1,5\n", ":1:6: ", "the decimal mark is a point"),
        ('a = "b\nc = 1\n', ":1:7: ", "the quote before it is not closed"),
        ("\r\n\r\nab c = 1", ":3:4: ", "expected '='"),
        ("a = [1, 2", ":1:10: ", "unclosed array"),
        ('[data\nx = "1"', ":1:6: ", "expected ']'"),
    ],
)
def test_what_is_not_toml_is_shown_where_it_stands(text, place, part):
    with pytest.raises(DataError) as caught:
        TomlFile.read(text, "f.toml")
    assert str(caught.value).startswith("f.toml" + place) and part in str(caught.value)


def test_an_error_at_a_missing_key_points_at_the_table_around_it():
    file = TomlFile.read("[data]\npath = 'x'\n", "f.toml")
    found = str(file.error("no labels", ("data", "labels")))
    assert found == "f.toml:1:1: no labels\n  1 | [data]\n    | ^^^^^^"
    assert str(file.error("wrong", ("data", "path"), value=True)).endswith("2 | path = 'x'\n    |         ^")
    assert str(file.error("no [solve]", ("solve",))).startswith("f.toml:1:1: ")
