"""`mtldsl new`: what it writes is read, solved and certified as it stands."""

from functools import partial

import numpy as np
import pytest

from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.solution import headline_sections
from tests.loops import for_each

RNG = np.random.default_rng(0)
N = 80
X = RNG.normal(size=(N, 3))
COLOURS = np.array(["red", "green", "blue"])[RNG.integers(3, size=N)]


def table(tmp_path, labels):
    """id, three numbers, a category, a constant, a column with gaps, free text, then the labels."""
    columns = {
        "id": [1000 + i for i in range(N)],
        **{name: [f"{x:.4f}" for x in column] for name, column in zip("uvw", X.T, strict=True)},
        "colour": COLOURS,
        "same": [5] * N,
        "gaps": ["" if i == 3 else f"{i % 9 / 7:.3f}" for i in range(N)],
        "note": [f"text {i % 40}" for i in range(N)],
        "none": [""] * N,
        "holes": ["" if i % 4 else i % 3 for i in range(N)],
        **labels,
    }
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path = tmp_path / "my data.csv"
    path.write_text("\n".join([",".join(columns), *rows]) + "\n")
    return path


SCORE = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=N)
KINDS = {
    "0/1": ({"y": (SCORE > 0) * 1}, [], "logistic_loss", "binary = true"),
    "-1/+1": ({"y": np.where(SCORE > 0, 1, -1), "z": np.where(SCORE > 1, 1, -1)}, ["--labels", "y, z"], "logistic_loss", "labels = ["),
    "classes": ({"y": np.array(["low", "mid", "high"])[np.digitize(SCORE, [-1, 1])]}, [], "logistic_loss", "one_vs_rest = true"),
    "numbers": ({"y": np.round(SCORE, 3)}, [], "squared_loss", "The labels are numbers"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_solved_as_it_stands(kind, tmp_path, monkeypatch):
    # samples behind the intervals of the page, of 200
    monkeypatch.setattr(
        headline_sections, "ReportContext", partial(headline_sections.ReportContext, bootstrap=20)
    )
    labels, options, loss, line = KINDS[kind]
    path = table(tmp_path, labels)
    assert main(["new", str(path), *options]) == 0
    text = path.with_suffix(".toml").read_text()
    assert f'"{loss}(W, tasks) + lam * l21_norm(W)"' in text and line in text
    assert 'drop = ["id", "same", "note", "none", "holes"]' in text and 'one_hot = ["colour"]' in text
    assert 'impute = "median"  # empty cells (1 in gaps)' in text and "# same: one value only" in text
    assert "# none: no value at all" in text and "# holes: 60 of 80 cells are empty" in text
    assert main(["solve", str(path.with_suffix(".toml")), "--quiet"]) == 0
    assert path.with_suffix(".npz").exists()
    assert "cross-check agrees" in path.with_suffix(".html").read_text()


RARE = np.sort(SCORE)[-13] < SCORE  # 12 of 80


@for_each(
    ("labels", "shown"),
    [
        ({"y": RARE * 1}, ["average_precision", "f1"]),
        ({"a": (SCORE > 0) * 1, "y": np.where(RARE, 1, -1)}, ["average_precision", "f1"]),
        ({"y": np.where(RARE, "rare", "common")}, ["average_precision", "f1"]),
        ({"y": np.where(RARE, "a", "b")}, ["roc_auc"]),  # +1 is b, the frequent one
        ({"y": (np.median(SCORE) < SCORE) * 1}, []),
        ({"y": np.round(SCORE, 3)}, []),
    ],
)
def test_where_a_label_is_rare_lam_is_not_chosen_by_accuracy(labels, shown, tmp_path):
    path = table(tmp_path, labels)
    assert main(["new", str(path), "--labels", ",".join(labels)]) == 0
    text = path.with_suffix(".toml").read_text()
    assert ("a label is rare" in text) == bool(shown) == ("metric" in text)
    with load_problem(path.with_suffix(".toml")) as file:
        assert file.validation.get("metric") == (shown[0] if shown else None)
        assert file.metrics == shown and (file.thresholds is not None) == ("f1" in shown)


@pytest.mark.slow
def test_several_labels_that_say_yes_or_no(tmp_path, capsys):
    there = X[:, 0] <= 2
    labels = {
        "a": np.where(SCORE > 0, "yes", "no"),
        "b": np.where(SCORE > 0.5, "TRUE", "False"),
        "c": (SCORE > -0.5) * 1,
        "d": np.where(SCORE > 0.2, 1, -1),
        "e": np.array(["N", "y", "?"])[np.where(there, SCORE > 0.1, 2)],
    }
    path = table(tmp_path, labels)
    written = path.with_suffix(".toml")
    assert main(["new", str(path), "--labels", "a,b,c,d,e"]) == 0
    text = written.read_text()
    assert 'labels = ["a", "b", "c", "d", "e"]\n' in text and "binary = true" in text
    whole = tmp_path / "all.toml"
    whole.write_text(text.split("[split]")[0] + "[weights]\nW = {}\n[parameters]\nlam = 1.0\n")
    with load_problem(whole) as file:
        found = file.tasks_train.per_task(file.tasks_train.targets)
    assert not there.all()
    for y, limit, rows in zip(found, (0, 0.5, -0.5, 0.2, 0.1), [slice(None)] * 4 + [there], strict=True):
        np.testing.assert_array_equal(y, np.where(limit < SCORE, 1.0, -1.0)[rows])
    assert main(["solve", str(written), "--quiet", "--no-check"]) == 0
    for rows in (path, written):  # the table has the labels as words, too
        page = str(tmp_path / f"{rows.suffix}.html")
        assert main(["report", str(path.with_suffix(".npz")), str(rows), "-o", page]) == 0
    table(tmp_path, labels | {"f": np.where(SCORE > 0, "large", "small")})
    assert main(["new", str(path), "--labels", "a,f", "--print"]) == 2
    said = capsys.readouterr().err
    assert "the label 'f' is text (large, small), and one of several" in said and "--labels f" in said


def test_tasks_may_be_told_apart_by_rows(tmp_path, capsys):
    path = table(tmp_path, {"y": np.round(SCORE, 3)})
    assert main(["new", str(path), "--task", "colour", "--print"]) == 0
    text = capsys.readouterr().out
    assert 'task = "colour"' in text and "one_hot" not in text
    (tmp_path / "p.toml").write_text(text)
    assert sorted(load_problem(tmp_path / "p.toml").tasks_train.task_names) == ["blue", "green", "red"]


def test_a_file_that_is_there_stays(tmp_path, capsys):
    path = table(tmp_path, {"y": np.round(SCORE, 3)})
    (tmp_path / "my data.toml").write_text("mine")
    assert main(["new", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err and (tmp_path / "my data.toml").read_text() == "mine"
    assert (
        main(["new", str(path), "-o", str(tmp_path / "other.toml")]) == 0
        and (tmp_path / "other.toml").exists()
    )


def test_delimiters_are_found_and_amounts_are_no_ids(tmp_path, capsys):
    path = tmp_path / "Kunden 2026.csv"
    rows = [f'{i};{5000 + 137 * i};"a;b";{RNG.normal():.3f};{i % 2}' for i in range(60)]
    path.write_text("\n".join(['nr;income;"x; y";u;bought', *rows]) + "\n")
    assert main(["new", str(path)]) == 0
    assert f"mtldsl solve '{tmp_path}/Kunden 2026.toml'" in capsys.readouterr().out
    text = (tmp_path / "Kunden 2026.toml").read_text()
    assert 'delimiter = ";"' in text and 'drop = ["nr", "x; y"]' in text and "# income" not in text
    assert "#     mtldsl solve 'Kunden 2026.toml'" in text
    assert load_problem(tmp_path / "Kunden 2026.toml").tasks_train.feature_names == ("income", "u")
    path.write_text("a\tb\ty\n" + "".join(f"{i / 3}\t{i % 5}\t{i / 7}\n" for i in range(20)))
    assert main(["new", str(path), "--print"]) == 0
    assert 'delimiter = "\\t"' in capsys.readouterr().out


CLINIC = [
    f"p{i % 50};{'NSW'[i % 3]};{x[0]:.3f};{'old' if i == 7 else f'{x[1]:.3f}'};{'no' if i % 4 else 'yes'};{'yes' if z > 0.6 else 'no'}"
    for i, (x, z) in enumerate(zip(X, SCORE, strict=True))
]


def clinic(tmp_path, *more, comma=False):
    rows = "\n".join(["patient;site;age;bmi;fall;ill", *CLINIC, *more]) + "\n"
    (tmp_path / "clinic.csv").write_text(rows.replace(".", ",") if comma else rows)
    return tmp_path / "clinic.csv"


@pytest.mark.slow
def test_decimal_commas_are_seen_and_predicted_from(tmp_path, command_line):
    """An export of a European spreadsheet: semicolons between cells, commas between digits.

    The model knows how the table that it was learned on writes numbers.
    """
    path = clinic(tmp_path, comma=True)
    file, model = path.with_suffix(".toml"), path.with_suffix(".npz")
    assert command_line("new", path, "--labels", "ill")[0] == 0
    text = file.read_text()
    assert 'decimal = ","' in text and "# bmi: numbers, but one cell is not ('old')" in text
    assert command_line("solve", file, "--no-check", "--quiet")[0] == 0
    names = load_problem(file).tasks_train.feature_names
    assert names[:3] == ("site=N", "site=S", "site=W") and "age" in names
    code, expected, _ = command_line("predict", model, clinic(tmp_path), "--scores")
    assert code == 0
    path = clinic(tmp_path, comma=True)
    code, _, err = command_line("predict", model, path, "--scores", "--decimal", ".")
    assert code == 2 and "--decimal ," in err
    for marks in ([], ["--decimal", ","]):
        assert command_line("predict", model, path, "--scores", *marks)[:2] == (0, expected)
        assert command_line("report", model, path, *marks, "-o", tmp_path / "p.html")[0] == 0


def test_what_may_mislead_is_said_beside_the_guess(tmp_path, capsys):
    path = clinic(tmp_path, CLINIC[0], CLINIC[0], CLINIC[5])
    assert main(["new", str(path), "--print"]) == 0
    text = capsys.readouterr().out
    assert "# fall: yes and no as in ill." in text and "--labels fall,ill" in text
    assert "# 3 rows repeat another one" in text and "max_seconds = 60" in text
    assert main(["new", str(path), "--print", "--labels", "fall,ill"]) == 0
    assert "yes and no as in" not in capsys.readouterr().out


@pytest.mark.slow
def test_rarity_is_of_tasks_and_unsplittable_ones_are_left_out(tmp_path, command_line):
    """A label that is rare at no site but one, where the whole table is balanced; a site with a single positive."""
    often = np.arange(80) % 8 != 0
    labels = np.where(np.arange(80) < 40, ~often, often)
    rows = [f"{x[0]:.4f},{x[1]:.4f},{'ab'[i // 40]},{int(labels[i])}" for i, x in enumerate(X)]
    rows += [f"{i / 7},{i % 3},c,{int(i == 2)}" for i in range(9)] + ["1,2,d,1"]
    path, file = tmp_path / "t.csv", tmp_path / "t.toml"
    path.write_text("\n".join(["u,v,site,y", *rows]) + "\n")
    code, out, _ = command_line("new", path, "--print")
    assert code == 0 and "average_precision" not in out
    assert command_line("new", path, "--task", "site")[0] == 0
    text = file.read_text()
    assert 'metric = "roc_auc"' in text and 'leave_out = ["c", "d"]' in text
    assert load_problem(file).tasks_train.task_names == ("a", "b")
    assert command_line("solve", file, "--no-check", "--quiet")[0] == 0
    for new, said in (('["c", "dd"]', "no task 'dd'"), ('["a", "b", "c", "d"]', "no task is left"), ('"c"', "a list")):  # fmt: skip
        file.write_text(text.replace('["c", "d"]', new))
        code, _, err = command_line("solve", file)
        assert code == 2 and said in err


@for_each(("name", "content", "options", "words"), [
    ("t.csv", "a,b\n1,2\n3,4\n", ["--labels", "z"], "there is no column 'z'; the columns are a, b"),
    ("t.csv", "a,y\n5,1\n5,2\n5,3\n", [], "no column is left to learn from"),
    ("t.csv", "a,y\n" + "".join(f"{i / 3},word{i}\n" for i in range(30)), [], "the label 'y' is text with 30 values"),
    ("t.arff", "@relation r\n", [], "labels = "),
    ("t.csv", "a,b,y,s\n1,2,1,k\n2,1,0,l\n", ["--labels", "y,b", "--task", "s"], "--task s --labels y"),
    ("t.csv", "a,y\n" + "1.5,no\n2.5,no\n" * 5, [], "is 'no' in every row"),
    ("t.csv", "a,y\n" + "".join(f"{i % 3},{i / 7:.4f}\n" for i in range(40)) + "1,ca. 5\n", [], "text in 1 of its cells, such as 'ca. 5'"),
    ("t.csv", "a,y\n1.5,\n2.5,\n", [], "the label 'y' is empty in every row"),
    ("t.csv", "a,a,y\n1.5,2,3\n2.5,1,4\n", [], "two columns are named 'a'; rename one"),
    ("t.csv", "a,s,y\n1.5,k,1\n", ["--task", "s", "--labels", "s"], "--labels s --task s: the column 's' is named twice"),
    ("t.csv", "a,s,y\n1.5,k,1\n2.25,k,0\n3.5,l,0\n", ["--task", "s"], "no task of 's' has two rows of either label"),
])  # fmt: skip
def test_what_cannot_be_drafted_is_said_with_what_to_write(name, content, options, words, tmp_path, capsys):
    (tmp_path / name).write_text(content)
    assert main(["new", str(tmp_path / name), *options]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_is_no_table(capsys):
    assert main(["new", "."]) == 2
    assert ".: cannot be read: is not a regular file but a folder" in capsys.readouterr().err
    assert main(["report", ".", "o.toml"]) == 2
    assert ".: is a folder; give the name of a file in it" in capsys.readouterr().err


def shops(tmp_path, rows=480, outcomes=0, shop=lambda i: f"shop {i % 40:02d}", header="shop"):
    """id, shop, three numbers, and so many columns of 0 and 1, or one number, at the end."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 3))
    Y = (X @ rng.normal(size=(3, max(outcomes, 1))) + rng.normal(size=(rows, max(outcomes, 1))) > 0) * 1
    ends = [f"y{k + 1}" for k in range(outcomes)] or ["sales"]
    lines = [",".join(["id", header, "a", "b", "c", *ends])]
    for i in range(rows):
        label = map(str, Y[i]) if outcomes else [f"{X[i, 0] + rng.normal():.3f}"]
        lines.append(",".join([f"{i}", shop(i), *(f"{v:.3f}" for v in X[i]), *label]))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


def test_outcomes_at_the_end_are_no_inputs(tmp_path, command_line):
    """Whatever was asked for: they are labels, or they are left out until somebody says that they are known before."""
    path, names = shops(tmp_path, rows=240, outcomes=12), [f"y{k}" for k in range(1, 13)]
    file = path.with_suffix(".toml")

    def drafted(*options):
        file.unlink(missing_ok=True)
        code, out, _ = command_line("new", path, *options)
        with load_problem(file) as problem:
            assert code == 0
            return out, problem.tasks_train

    out, tasks = drafted()
    assert "Labels: y1, y2, y3, ..., y12, the last 12 columns" in out
    assert "mtldsl new t.csv --labels y12\n" in out and "--task shop --labels y12" in out
    text = file.read_text()
    assert "what else the table may be" in text and "--labels y12" in text
    assert "shop: text with 40 values that repeat" in text
    assert list(tasks.task_names) == names and tasks.feature_names == ("a", "b", "c")
    out, tasks = drafted("--task", "shop")
    assert "Not used: y1, y2, y3, ..., y11, which may be labels too" in out
    assert tasks.feature_names == ("a", "b", "c") and tasks.n_tasks > 20
    assert "y11" in drafted("--labels", "y12")[1].feature_names  # who asks for it has them as inputs


@pytest.mark.slow
def test_a_column_of_names_that_come_often_tells_tasks_apart(tmp_path, capsys):
    path = shops(tmp_path, rows=360, shop=lambda i: f"shop {i % 30:02d}")
    assert main(["new", str(path)]) == 0
    said = "Tasks: shop has 30 values that repeat, 12 rows each, and each is a task"
    assert said in capsys.readouterr().out
    file = path.with_suffix(".toml")
    assert 'task = "shop"\n' in file.read_text() and 'drop = ["id"]' in file.read_text()
    with load_problem(file) as problem:
        assert problem.tasks_train.n_tasks == 30


@for_each(
    ("shop", "header"),
    [
        (lambda i: f"shop {i % 240}", "shop"),  # twice each: too few for a test set and folds
        (lambda i: "NSW"[i % 3], "site"),  # a category: it may be an input as well
        (lambda i: f"{i % 40}", "shop_id"),
    ],
)
def test_other_columns_of_names_are_asked_about(tmp_path, capsys, shop, header):
    path = shops(tmp_path, shop=shop, header=header)
    assert main(["new", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"Tasks: one a label. {header} has" in said and f"--task {header} --labels sales" in said
    assert '\ntask = "' not in path.with_suffix(".toml").read_text()


def test_index_of_data_frame_is_left_out(tmp_path):
    path = table(tmp_path, {"y": np.round(SCORE, 3)})
    first, *lines = path.read_text().splitlines()
    path.write_text("\n".join([f",{first}", *(f"{i},{line}" for i, line in enumerate(lines))]) + "\n")
    assert main(["new", str(path)]) == 0
    text = path.with_suffix(".toml").read_text()
    assert 'drop = ["", "id", ' in text
    assert '# "": no name, as where a data frame was written with its index' in text
    with load_problem(path.with_suffix(".toml")) as file:
        assert "id" not in file.tasks_train.feature_names
