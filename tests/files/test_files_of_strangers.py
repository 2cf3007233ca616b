"""What a stranger's problem file can do: end with exit code 2 and a message. Not hang, not crash, not write elsewhere, not act on the terminal."""

import json
import os
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.cli.problem_files.toml_parser import SETTINGS, TomlFile
from mtldsl.solvers.routes import get_solver
from tests.loops import for_each

MODEL = 'minimize = "squared_loss(W, tasks) + l1_norm(W)"\n'
DATA = '[data]\ndataset = "low_rank"\nn_tasks = 3\nn_samples = 12\nn_features = 4\nrandom_state = 0\n'


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """bytes or text of a file, arguments -> (exit code, stdout, stderr), in the current folder."""
    monkeypatch.chdir(tmp_path)

    def call(content, *arguments, command="explain"):
        path = Path.cwd() / "p.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        code = main([command, str(path), *map(str, arguments)])
        return code, *capsys.readouterr()

    return call


DEEP = "[" * 3000 + "]" * 3000
REFUSED = {
    "a number of 400 digits": (MODEL + DATA + f"[parameters]\nlam = {'1' * 400}\n", "9:7: this whole number is too large"),
    "a number of 5,000 digits": (MODEL + DATA + f"[parameters]\nlam = {'1' * 5000}\n", "a number or name of 5,000 characters"),
    "65 bits, in hexadecimal": (MODEL + DATA + "[arrays]\nA = [1, 0x10000000000000000]\n", "9:9: this whole number is too large"),
    "arrays inside each other": (MODEL + DATA + f"[arrays]\nA = {DEEP}\n", "more than 40 brackets inside each other"),
    "tables inside each other": (MODEL + DATA + "x = " + "{a = " * 3000, "more than 40 brackets inside each other"),
    "a key of 20,000 parts": ("a" + ".a" * 20_000 + " = 1\n", "a key has at most 20 parts"),
    "a table of 20,000 parts": ("[a" + ".a" * 20_000 + "]\n", "a key has at most 20 parts"),
    "an expression inside itself": (f'minimize = "{"(" * 5000}W{")" * 5000}"\n' + DATA, "at most 10000 can be read"),
    "signs before signs": (f'minimize = "{"-" * 5000}W"\n' + DATA, "1:13: the expression is nested too deeply"),
    "a long sum": ('minimize = "W' + " + W" * 1000 + '"\n' + DATA, "more than 200 operators inside each other"),
    "an expression of 900,000 characters": (f'minimize = "{"W" * 900_000}"\n' + DATA, "the text has 900000 characters"),
    "a file of two megabytes": (MODEL + DATA + "#" * (2 << 20), "a problem file has at most 1,048,576 bytes"),
    "a NUL": (MODEL + "\0" + DATA, "this is not TOML"),
    "Latin-1": ('title = "Größe"\n'.encode("latin-1"), "a problem file is UTF-8 text; byte 11 is not"),
    "UTF-16": ((MODEL + DATA).encode("utf-16"), "a problem file is UTF-8 text; byte 0 is not"),
    "two marks of the byte order": (b"\xef\xbb\xbf" * 2 + (MODEL + DATA).encode(), "this is not TOML"),
    "nothing": ("", "[data]"),
    "a carriage return in an expression": ('minimize = "l1_norm(é)\\r + é"\n' + DATA, r"the character \r cannot stand in one"),
    "a path with a NUL": (MODEL + '[data]\npath = "a\\u0000.csv"\nlabels = 1\n', "is not the path of a file"),
    "a path too long": (MODEL + f'[data]\npath = "{"a" * 5000}.csv"\nlabels = 1\n', "File name too long"),
    "an option of another kind": (MODEL + DATA + '[solve]\nsolver = "admm"\nrelaxation = "fast"\n', "relaxation must be a number"),
    "starts without end": (MODEL + DATA + f"[solve]\nstarts = {2**62}\n", "starts must be a whole number >= 1 and <= 10,000"),
    "a checkpoint that is not a path": (MODEL + DATA + '[solve]\nsolver = "dual_ascent"\ncheckpoint = 3\n', "checkpoint must be the path of a file"),
}  # fmt: skip


@for_each("name", REFUSED)
def test_it_ends_with_a_message(name, run, every_case):
    if not every_case and name != "a file of two megabytes":
        return
    content, message = REFUSED[name]
    code, out, err = run(content)
    assert (code, out) == (2, "")
    assert err.startswith("mtldsl: ") and message in err and len(err) < 3000


def test_what_is_within_the_limits_is_read():
    deep = "[" * SETTINGS.max_brackets + "]" * SETTINGS.max_brackets
    key = ".".join("a" * SETTINGS.max_key_parts)
    text = (
        f"x = {deep}\n{key} = 1\n"
        + '"[[[[" = ".........."  # [[[[[[[[[['
        + "[" * SETTINGS.max_brackets
        + "\n"
    )
    text += "y = '''\n" + "[" * 100 + "'''\n" + 'z = """' + "{" * 100 + '\\"""."""\n' + f"n = {2**63 - 1}\n"
    assert TomlFile.read(text, "p.toml").content["n"] == 2**63 - 1


@pytest.mark.slow
def test_time_to_read_a_file_grows_as_its_length():
    """A full megabyte takes 7 to 10 times as long as an eighth of one; what grows as the square takes 64 times as long."""
    taken = []
    for n in (1, 8):
        keys = "".join(f"k{i}=1\n" for i in range(4_000 * n))
        text = keys + "a=[" + "1.5," * (8_000 * n) + "]\n" + "[[b]]\n" * (4_000 * n)
        began = process_time()
        assert len(text) < SETTINGS.max_bytes and TomlFile.read(text, "p.toml").content
        taken.append(process_time() - began)
    assert len(text) > 0.5 * SETTINGS.max_bytes and taken[1] <= 30 * taken[0]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="devices and pipes of Unix")
@for_each("kind", ["folder", "pipe", "device", "loop", "none"])
@for_each("role", ["problem file", "data", "array", "groups"])
def test_a_path_that_is_no_regular_file_is_not_opened(kind, role, tmp_path, run, capsys, monkeypatch):
    """Opening the pipe or reading the device would never end."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.csv"
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to(path)}
    make.get(kind, lambda: None)()
    name = "/dev/zero" if kind == "device" else "x.csv"
    content = {
        "data": MODEL + f'[data]\npath = "{name}"\nformat = "csv"\nlabels = 1\n',
        "array": MODEL + DATA + f'[arrays]\nA = "{name}"\n',
        "groups": MODEL + DATA + f'[groups]\ng = "{name}"\n',
    }
    code, out, err = run(content.get(role, MODEL + DATA))
    if role == "problem file":
        code = main(["solve", name])
        out, err = capsys.readouterr()
    said = {
        "folder": "a folder", "pipe": "a pipe", "device": "a device", "loop": "symbolic links",
        "none": "no such file",
    }[kind]  # fmt: skip
    if (role, kind) == ("array", "device"):
        said = "arrays are read from"
    assert (code, out) == (2, "") and err.startswith("mtldsl: ") and said in err


NASTY = "a\x1b[2J\rcertified\nb\u202ec\x07\x9b31m\u2028<script>[bold]x[/bold]"
SPELLED = r"a\x1b[2J\rcertified\nb\u202ec\x07\x9b31m\u2028<script>[bold]x[/bold]"


@pytest.fixture
def nasty(tmp_path):
    """A problem file whose title, tasks and features have names that a terminal or a browser would act on."""
    names = [NASTY.replace("\r", "").replace("\n", ""), "[/b]"]
    np.savez(
        tmp_path / "data.npz",
        X=np.arange(12.0).reshape(6, 2) % 5,
        Y=np.arange(12.0).reshape(6, 2) % 3,
        task_names=names,
        feature_names=["\x1b]0;title\x07", "f"],
    )
    title = json.dumps(NASTY).replace("\\u001b", "\\u001B")
    return MODEL + f"title = {title}\n" + '[data]\npath = "data.npz"\n'


def assert_harmless(text):
    hidden = {c for c in text if not c.isprintable() and c != "\n"}
    assert not hidden, hidden


@pytest.mark.slow
def test_names_from_a_file_are_spelled_out_where_shown(run, nasty, tmp_path):
    outputs = [tmp_path / f"r.{ending}" for ending in ("txt", "html", "json")]
    code, out, err = run(nasty, "--no-check", *(a for p in outputs for a in ("--output", p)), command="solve")
    assert code == 0 and err == ""
    text, html, plain = (path.read_text() for path in outputs)
    for shown in (out, text, html, plain):
        assert_harmless(shown)
    assert SPELLED in text.replace("\n", "")
    assert "<script>" not in html and "&lt;script&gt;" in html and "<title>a\\x1b" in html
    assert json.loads(plain)["title"] == NASTY  # the same value, by JSON's own escapes
    assert "[/b]" in text and "[/b]" in html


@for_each("style", ["--json", "--quiet"])
def test_so_are_they_in_the_other_styles(run, nasty, style):
    code, out, _ = run(nasty, "--no-check", style, command="solve")
    assert code == 0
    assert_harmless(out)
    assert style == "--quiet" or json.loads(out)["title"] == NASTY


def test_messages_spell_out_what_they_quote(run, tmp_path):
    code, _, err = run(MODEL + DATA + 'kind = "\x7f"\n'.replace("\x7f", "\\u009b[31m") + '"\\u001b[2J" = 1\n')
    assert code == 2
    assert_harmless(err)
    code, _, err = run(MODEL + '[data]\npath = "\\u001b[2J\\u202e.csv"\nlabels = 1\n')
    assert code == 2 and r"\x1b[2J\u202e.csv: there is no such file" in err
    assert_harmless(err)


WITHIN = {
    "output": '[output]\nsolution = "{}"\n',
    "checkpoint": '[solve]\nsolver = "dual_ascent"\ncheckpoint = "{}"\n',
}
OUTSIDE = ["/tmp/w.npz", "../w.npz", "link/w.npz", "deep/../../w.npz", "to_a_file.npz", "a\\u0000b"]


# a checkpoint's name has no ending added, and a folder is refused when it is written
@for_each(("table", "name"), [*product(WITHIN, OUTSIDE), ("output", "to_a_file")])
def test_a_file_writes_inside_its_folder_only(table, name, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outside = tmp_path.parent / f"{tmp_path.name} outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "deep").mkdir()
    (tmp_path / "to_a_file.npz").symlink_to(outside / "w.npz")
    output = WITHIN[table].format(name)
    code, out, err = run(MODEL + DATA + output)
    assert (code, out) == (2, "") and "write a path inside, or allow it with --allow-outside" in err
    assert "p.toml:9:13: " in err or "p.toml:10:15: " in err
    if "u0000" not in name:
        assert run(MODEL + DATA + output, "--allow-outside")[0] == 0
        assert load_problem(tmp_path / "p.toml", allow_outside=True)
    assert not list(outside.iterdir())


def test_inside_it_writes_and_outside_where_the_user_says_so(run, tmp_path):
    (tmp_path / "deep").mkdir()
    text = MODEL + DATA + '[output]\nsolution = "deep/../w"\nreport = "deep/r.txt"\n'
    outside = tmp_path.parent / f"{tmp_path.name}.json"
    code, _, _ = run(text, "--no-check", "--output", outside, command="solve")
    assert code == 0
    assert (tmp_path / "w.npz").is_file() and (tmp_path / "deep" / "r.txt").is_file() and outside.is_file()


def test_a_breakdown_of_linear_algebra_is_a_solvers_error(run, monkeypatch):
    """NC-CMTL with mu = 1e308 let numpy's LinAlgError out."""

    def broken(*args, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(type(get_solver("admm")), "solve", broken)
    code, _, err = run(MODEL + DATA + '[solve]\nsolver = "admm"\n', "--no-check", command="solve")
    assert code == 1 and "admm broke down numerically (SVD did not converge)" in err
