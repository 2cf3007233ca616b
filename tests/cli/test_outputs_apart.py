"""Output never replaces an input: every door that writes, against every file that it reads, by whatever name; and where commands write and read."""

import io
import os
import pathlib
import sys

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import datasets
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import DataError, SolverError
from mtldsl.solvers.routes import SOLVERS, get_solver
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ RNG.normal(size=(3, 2))
MODEL = 'minimize = "squared_loss(W, tasks) + lam * l21_norm(W)"\n'
TAIL = "[parameters]\nlam = 1.0\n[weights]\nW = {}\n[check]\ncross_check = false\n[split]\ntest_size = 0.25\n"


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data in several formats and spellings, a model, new rows; the current directory is there."""
    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", X=X, Y=Y)
    rows = [",".join(f"{v:.5f}" for v in row) for row in np.hstack([X, Y])]
    pathlib.Path("d.csv").write_text("a,b,c,y,z\n" + "\n".join(rows) + "\n")
    pathlib.Path("new.csv").write_text("x0,x1,x2,a,b,c\n1,2,3,1,2,3\n")
    pathlib.Path("text.txt").write_text(MODEL + '[data]\npath = "d.npz"\n' + TAIL)
    os.symlink("d.csv", "soft.csv")
    os.link("d.csv", "hard.csv")
    os.link("d.npz", "hard.npz")
    os.symlink("d.npz", "soft.npz")
    pathlib.Path("sub").mkdir()
    os.symlink("..", "sub/up")
    return tmp_path


def problem(data='path = "d.npz"', output="", more=""):
    pathlib.Path("p.toml").write_text(MODEL + f"[data]\n{data}\n" + TAIL + more + f"[output]\n{output}\n")
    return "p.toml"


def refused(folder, capsys, *arguments):
    """The message of a command that is refused and changes nothing."""
    before = content(folder)
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert content(folder) == before, [k for k, v in content(folder).items() if before.get(k) != v]
    words = ("never replaces", "would be one of them", "only one is kept", "must end in")
    assert code == 2 and any(one in said for one in words), said
    return said


@pytest.mark.slow
def test_two_outputs_are_not_one_file(folder, capsys):
    """Options, the file, and both are compared, under any name; the same thing may be asked for twice."""
    os.symlink("w.npz", "too.npz")
    file = problem(output='solution = "w.npz"')
    for more in (
        ["--proof", "w"],
        ["--proof", "too.npz"],
        ["--output", "./w.npz", "--proof", "sub/up/w.npz"],
    ):
        said = refused(folder, capsys, "solve", file, *more)
        assert "the solution and the proof" in said
    said = refused(folder, capsys, "solve", problem(output='solution = "w.npz"\nproof = "sub/../w"'))
    assert "p.toml:14:" in said and "[output] solution and [output] proof" in said
    os.symlink("p.csv", "p.png")
    refused(folder, capsys, "path", problem(), "--values", "2,1", "--csv", "p.csv", "--plot", "p.png")
    file = problem(output='report = "r.txt"\nsolution = "w.npz"')
    assert main(["solve", file, "--report", "r.txt", "--output", "w.npz", "--proof", "q", "--quiet"]) == 0


def test_an_output_has_the_ending_of_its_kind(folder, capsys):
    pathlib.Path("two.toml").write_text("mine")
    for name in ("two.toml", "w.npz", "d.html"):
        refused(folder, capsys, "predict", "w.npz", "new.csv", "--output", name)
        refused(folder, capsys, "path", "text.txt", "--values", "2,1", "--csv", name)
        refused(folder, capsys, "cv", "text.txt", "--values", "2,1", "--csv", name)
    refused(folder, capsys, "new", "d.csv", "--output", "out.csv")


@for_each("name", ["d.npz", "./d.npz", "d", "sub/../d.npz", "sub/up/d.npz", "hard.npz", "soft.npz"])
def test_the_solution_of_a_problem_file_is_not_its_data(folder, capsys, name):
    said = refused(folder, capsys, "solve", problem(output=f'solution = "{name}"'), "--allow-outside")
    assert "p.toml:12:" in said or "p.toml:13:" in said  # the place of the name


@for_each("name", ["d.csv", "hard.csv", "soft.csv", "sub/up/d.csv"])
def test_predictions_are_not_the_data(folder, capsys, name):
    data = 'path = "d.csv"\nlabels = 2'
    refused(folder, capsys, "solve", problem(data, f'predictions = "{name}"'), "--allow-outside")
    refused(folder, capsys, "solve", problem(data), "--output", name)


def test_a_report_is_no_problem_file_array_or_groups(folder, capsys):
    """Predictions are not the new rows, and a report is not the problem file nor an array nor groups."""
    new = 'predictions = {path = "new.csv", new = "new.csv"}'
    refused(folder, capsys, "solve", problem('path = "d.csv"\nlabels = 2', new))
    refused(folder, capsys, "solve", "text.txt", "--report", "text.txt")
    os.link("text.txt", "page.html")
    refused(folder, capsys, "solve", "text.txt", "--report", "page.html")
    refused(folder, capsys, "solve", with_array('[output]\nsolution = "L.npz"\n'))


def with_array(more=""):
    np.savez("L.npz", L=np.eye(2))
    model = 'minimize = "squared_loss(W, tasks) + lam * l21_norm(W) + graph_laplacian(W, L)"\n'
    text = f'{model}[data]\npath = "d.npz"\n{TAIL}[arrays]\nL = "L.npz"\n{more}'
    pathlib.Path("g.toml").write_text(text)
    return "g.toml"


def test_tables_and_pictures_of_path_and_cv(folder, capsys):
    file = problem('path = "d.csv"\nlabels = 2')
    os.link("d.csv", "d.html")
    os.link("d.csv", "d.png")
    for command in ("path", "cv"):
        for written in (["--csv", "d.csv"], ["--report", "d.html"], ["--plot", "d.png"]):
            refused(folder, capsys, command, file, "--values", "2,1", *written)


@pytest.mark.slow
def test_predict_and_report_of_a_saved_solution(folder, capsys):
    assert main(["solve", problem(output='solution = "w.npz"'), "--quiet"]) == 0
    os.symlink("new.csv", "link.csv")
    for name in ("new.csv", "link.csv", "w.npz"):
        refused(folder, capsys, "predict", "w.npz", "new.csv", "--output", name)
    os.link("w.npz", "w.html")
    refused(folder, capsys, "report", "w.npz", "-o", "w.html")
    os.link("p.toml", "q.html")
    refused(folder, capsys, "report", "w.npz", "p.toml", "-o", "q.html")
    # and what nobody reads is written over as ever
    assert main(["solve", "p.toml", "--quiet"]) == 0
    assert main(["predict", "w.npz", "new.csv", "--output", "out.csv"]) == 0
    assert main(["predict", "w.npz", "new.csv", "--output", "out.csv"]) == 0


def test_a_folder_of_data_gets_no_file(folder, capsys):
    pytest.importorskip("dask")
    (folder / "parts").mkdir()
    np.savez("parts/a.npz", X=X, Y=Y)
    data = 'path = "parts"\nengine = "dask"'
    for name in ("parts/a.npz", "parts/new.npz", "parts/below/new.npz"):
        (folder / "parts" / "below").mkdir(exist_ok=True)
        refused(folder, capsys, "solve", problem(data, f'solution = "{name}"'))
    refused(folder, capsys, "solve", problem(data), "--report", "parts/a.html")
    for place in ("parts", "parts/below"):
        solver = f'[solve]\nsolver = "{_pass_solver()}"\ncheckpoint = "{place}"\n'
        refused(folder, capsys, "solve", problem(data, "", solver))


def _pass_solver():
    return next(name for name in SOLVERS if not get_solver(name).needs_rows and get_solver(name).writes)


def solved(tasks):
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W)).solve()


def test_in_python_what_was_read_as_data_is_not_saved_over(folder):
    tasks = datasets.read_npz("d.npz")
    found, before = solved(tasks), pathlib.Path("d.npz").read_bytes()
    for name in ("d.npz", "soft.npz", "hard.npz"):
        for save in (found.save, found.certificate.save):
            with pytest.raises(DataError, match="never replaces"):
                save(name)
        assert pathlib.Path(name).read_bytes() == before
    datasets.read_csv("d.csv", 2)
    os.link("d.csv", "page.html")
    with pytest.raises(DataError, match="never replaces"):
        found.report("page.html")
    signs, W = with_weights(mtl.Tasks.shared(X, np.sign(Y)))
    hinge = mtl.minimize(mtl.hinge_loss(W, signs) + mtl.ridge(W))
    with pytest.raises(SolverError, match="never replaces"):
        hinge.solve(solver="dual_ascent", checkpoint="d.npz")
    again = mtl.Solution.load(found.save("w.npz"))
    again.save("w.npz")  # a model is read and saved under its name


def test_a_problem_file_read_in_python(folder):
    with pytest.raises(DataError, match=r"p\.toml:1\d:\d+: d\.npz: .*never replaces"):
        load_problem(problem(output='solution = "d.npz"'))
    found = load_problem(with_array()).problem.solve()
    with pytest.raises(DataError, match="never replaces"):
        found.save("L.npz")


def test_a_file_that_is_gone_forbids_nothing(folder):
    datasets.read_csv("d.csv", 2)
    datasets.read_npz("d.npz")
    for name in ("d.npz", "soft.npz", "hard.npz"):
        os.unlink(name)
    found = solved(mtl.Tasks.shared(X, Y))
    for _ in range(3):  # the system may give the number of the file away again
        found.save("d.npz")


def test_stored_data_are_not_written_over(folder):
    datasets.store([(X, Y[:, 0], ["a"] * 20 + ["b"] * 20)], "kept")
    datasets.stored("kept")
    os.link("kept/stored.json", "page.html")
    with pytest.raises(DataError, match="never replaces"):
        solved(mtl.Tasks.shared(X, Y)).report("page.html")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """t.csv in the current directory: three features, two columns that say yes or no."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(3)
    ill, tired = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no"), np.where(X[:, 1] > 0, "yes", "no")
    rows = [",".join(map(str, [*x, a, b])) for x, a, b in zip(X, ill, tired, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["age,iron,salt,ill,tired", *rows]) + "\n")
    return tmp_path


def drafted(command_line, *more):
    code, said, told = command_line("new", "t.csv", "--labels", "ill", "tired", *more)
    assert code == 0, told
    return said


@pytest.mark.slow
@pytest.mark.parametrize("by", ["option", "file"])
def test_a_proof_is_of_the_value_that_folds_chose(table, command_line, by):
    drafted(command_line)
    options = ["--proof", "pf"] if by == "option" else []
    if by == "file":
        text = (table / "t.toml").read_text()
        (table / "t.toml").write_text(text.replace("[output]", '[output]\nproof = "pf"'))
    code, _, told = command_line("solve", "t.toml", "--no-check", "--quiet", *options)
    assert code == 0, told
    code, said, _ = command_line("verify", "pf.npz", "t.toml")
    assert code == 0 and "the claim is confirmed" in said
    text = (table / "t.toml").read_text()
    (table / "t.toml").write_text(text.replace("values = 12", "values = [1e3]"))
    assert command_line("verify", "pf.npz", "t.toml")[0] == 1


def test_a_model_that_is_not_convex_has_no_proof_to_write(table, command_line):
    drafted(command_line)
    text = (table / "t.toml").read_text().replace("l21_norm(W)", "log_rank(W)")
    (table / "t.toml").write_text(text)
    code, _, told = command_line("solve", "t.toml", "--no-check", "--quiet", "--proof", "pf")
    assert code == 2 and "not convex, and a saved proof is of a convex one" in told


@for_each("labels", [["--labels", "ill", "tired"], ["--labels", "ill,tired"], ["--labels", "ill,", "tired"]])
def test_labels_are_apart_by_spaces_or_commas(table, command_line, labels):
    code, said, _ = command_line("new", "t.csv", *labels, "--print")
    assert code == 0 and 'labels = ["ill", "tired"]' in said


def test_a_problem_file_elsewhere_finds_the_table(table, command_line):
    (table / "models").mkdir()
    said = drafted(command_line, "--output", "models/first.toml")
    text = (table / "models/first.toml").read_text()
    assert "models/first.toml is written" in said and 'path = "../t.csv"' in text
    assert "mtldsl solve first.toml" in text and 'solution = "first.npz"' in text
    assert command_line("explain", "models/first.toml")[0] == 0
    code, _, told = command_line("new", "t.csv", "--output", "models/first.toml")
    assert code == 2 and "write --output PATH" in told


@pytest.mark.slow
def test_rows_from_standard_input_are_those_of_a_file(table, command_line, monkeypatch):
    drafted(command_line)
    assert command_line("solve", "t.toml", "--no-check", "--quiet")[0] == 0
    _, of_file, _ = command_line("predict", "t.npz", "t.csv")
    standard_input = io.TextIOWrapper(io.BytesIO((table / "t.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", standard_input)
    code, of_pipe, _ = command_line("predict", "t.npz", "-")
    assert code == 0 and of_pipe == of_file and "yes" in of_pipe
