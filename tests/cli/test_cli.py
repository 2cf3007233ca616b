"""The command line, run in-process and once as a user would: what it prints, what it writes, and its exit codes."""

import io
import json
import os
import runpy
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.cli.command_line import main
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.errors import SolverError
from mtldsl.problems import cross_validation
from mtldsl.problems.problem import Problem
from mtldsl.solvers.routes import get_solver
from mtldsl.utils import interrupts
from tests.cli.test_along import FILE, VALIDATION
from tests.fresh import loaded_by, printed_by
from tests.loops import for_each

ROOT = Path(__file__).parents[2]
SMALL = """
title = "A small [bold]model[/bold]"
minimize = "squared_loss(W, tasks) + lam * trace_norm(W)"
subject_to = ["W[0, :] >= -1"]
[data]
dataset = "low_rank"
n_tasks = 4
n_samples = 20
n_features = 5
random_state = 0
[split]
test_size = 0.25
[parameters]
lam = 2.0
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def run(command_line):
    return command_line


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


# -------------------------------------------------------------------------------------------------- solve
@pytest.mark.slow
def test_the_main_job(run):
    """Digits: solved, certified, cross-checked, of low rank, and better than guessing on every task."""
    code, out, err = run("solve", ROOT / "examples" / "01_digits.toml", "--json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    solution, check = record["solution"], record["cross_check"]
    assert solution["status"] == "optimal" and abs(solution["gap"]["relative"]) <= 1e-6
    assert check["agrees"] and check["reference_bound"] <= check["fast_by_reference"] * (1 + 1e-6)
    assert solution["weights"]["W"]["rank"] < 10
    scores = record["scores"]
    assert scores["rows"] == "held out" and scores["mean"] > 0.97
    assert len(scores["tasks"]) == 10 and all(row["score"] > row["guess"] for row in scores["tasks"])


TOLD = (
    "A small [bold]model[/bold]",
    "Σᵢ ½‖Xᵢ wᵢ − yᵢ‖₂² + λ ‖W‖⁎",
    "W[0, :] ≥ −1",
    "squared_loss(W, tasks) + lam * trace_norm(W)",
    "λ = 2",
    "4: task0, task1, task2, task3",
    "15; held out: 5",
    "60 to learn from, none missing",
    "Proven: no weights that meet the constraints have an objective below",
    "The two agree.",
    "always the mean of the training rows",
)
SPLIT = "[split]\ntest_size = 0.25\n"


@for_each(
    ("text", "options", "told"),
    [
        (SMALL, [], TOLD),
        (SMALL, ["--no-check"], ["not cross-checked"]),
        (SMALL.replace(SPLIT, ""), ["--no-check"], ["none held out", "Scores on the training rows"]),
        (SMALL, ["--quiet"], ["certified · relative gap ", "cross-check agrees"]),
    ],
)
def test_the_report(run, small, text, options, told):
    small.write_text(text)
    code, out, err = run("solve", small, *options)
    assert (code, err) == (0, "") and [part for part in told if part not in out] == []
    assert ("Cross-check" in out) == (options == [])
    lines = out.splitlines()
    assert (len(lines) == 1) == ("--quiet" in options)
    assert max(map(len, lines)) <= (80 if len(lines) > 1 else 200)


def test_the_numbers_are_the_solvers(run, small):
    """The JSON against the library, and the scores against a computation of their own."""
    record = json.loads(run("solve", small, "--json", "--tol", "1e-8", "--solver", "cvxpy", "--no-check")[1])
    assert record["solution"]["solver"] == "cvxpy" and record["solution"]["reason"] == "cvxpy was asked for"
    assert record["cross_check"] is None
    file = load_problem(small)
    solution = file.problem.solve(tol=1e-8)
    found, values = record["solution"], np.linalg.svd(solution.W, compute_uv=False)
    assert found["objective"] == pytest.approx(solution.objective, rel=1e-7) and found["tol"] == 1e-8
    assert found["weights"]["W"]["singular_values"] == pytest.approx(values, abs=1e-5)
    for i, row in enumerate(record["scores"]["tasks"]):
        X, y = file.tasks_test.inputs[i], file.tasks_test.per_task(file.tasks_test.targets)[i]
        spread = np.sum((y - y.mean()) ** 2)
        learned = file.tasks_train.per_task(file.tasks_train.targets)[i].mean()
        assert row["score"] == pytest.approx(1 - np.sum((y - X @ solution.W[:, i]) ** 2) / spread, abs=1e-4)
        assert row["guess"] == pytest.approx(1 - np.sum((y - learned) ** 2) / spread)
    scores = record["scores"]
    assert scores["mean"] == pytest.approx(np.mean([row["score"] for row in scores["tasks"]]))


CALIBRATED = SMALL.replace('minimize = "squared_loss(W, tasks) + lam * trace_norm(W)"', 'model = "NC-CMTL"')
CALIBRATED = CALIBRATED.replace('subject_to = ["W[0, :] >= -1"]', "").replace("lam", "mu")


@pytest.mark.slow
def test_starts_and_solver_options_on_the_command_line(run, small):
    """The plain steps take more iterations than Newton's."""
    small.write_text(CALIBRATED)
    typed = ["solve", small, "--no-check", "--json", "--starts", "3", "--solver", "alternating"]
    typed += ["--set", "method=block", "--set", "random_state = 4"]
    code, out, _ = run(*typed)
    rows = json.loads(out)["solution"]["starts"]["rows"]
    assert code == 0 and [row["start"] for row in rows] == [0, 1, 2]
    again = json.loads(run(*typed)[1])["solution"]
    assert [row["objective"] for row in again["starts"]["rows"]] == [row["objective"] for row in rows]
    newton = json.loads(run("solve", small, "--no-check", "--json", "--set", "tol=1e-6")[1])["solution"]
    assert newton["starts"] is None and newton["iterations"] < rows[0]["iterations"]


ON_PAGE = (
    "<title>A small [bold]model[/bold]</title>", "λ ‖W‖⁎", "the cross-check agrees",
    " rows that were not learned on.", "mtldsl solve small.toml", "Everything, as the terminal shows it",
    "Certificate",
)  # fmt: skip


@pytest.mark.slow
def test_written_files(run, small, tmp_path):
    small.write_text(SMALL + '[output]\nsolution = "w.npz"\n')
    written = ["--output", tmp_path / "r.txt", "--output", tmp_path / "r.json"]
    code, out, _ = run("solve", small, *written, "--report", tmp_path / "r.html", "--json")
    solution, record = mtl.Solution.load(tmp_path / "w.npz"), json.loads((tmp_path / "r.json").read_text())
    printed = json.loads(out)
    assert printed.pop("waited") > record.pop("waited")  # by the time that the page takes
    assert code == 0 and record == printed
    assert solution.objective == record["solution"]["objective"]
    text, page = (tmp_path / "r.txt").read_text(), (tmp_path / "r.html").read_text()
    assert "λ ‖W‖⁎" in text and "\x1b" not in text
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert page.startswith("<!DOCTYPE html>") and [part for part in ON_PAGE if part not in page] == []


def test_many_tasks_are_summed_up(run, small):
    small.write_text(SMALL.replace("n_tasks = 4", "n_tasks = 40"))
    _, out, _ = run("solve", small, "--no-check")
    table = out[out.index("Scores on held-out rows") :]
    assert table.count("\n  task") == 11 and "the 5 worst and the 5 best of 40" in " ".join(table.split())
    _, out, _ = run("solve", small, "--no-check", "--json")
    assert len(json.loads(out)["scores"]["tasks"]) == 40


# --------------------------------------------------------------------------------------------- exit code 1
def test_not_certified_is_exit_code_1(run, small):
    small.write_text(SMALL + '[solve]\nsolver = "admm"\nmax_iter = 1\n')
    code, out, err = run("solve", small, "--no-check")
    assert (code, err) == (1, "") and "NOT certified (iteration limit)" in out
    assert "Not to the accuracy asked for: iteration limit." in out and "Proven is only: no weights" in out


def test_disagreement_is_exit_code_1(run, small, monkeypatch):
    real = Problem.cross_check

    def wrong(self, *arguments, **options):
        check = real(self, *arguments, **options)
        return replace(check, reference_objective=check.reference_objective - 1)

    monkeypatch.setattr(Problem, "cross_check", wrong)
    for command in ("solve", "check"):
        code, out, _ = run(command, small)
        assert code == 1 and "The two DISAGREE" in out and "cross-check DISAGREES" in out


def test_a_check_has_two_minutes_where_the_file_does_not_say(run, small, monkeypatch):
    real, asked = Problem.cross_check, []

    def noted(self, solution, **options):
        asked.append(options["max_seconds"])
        return real(self, solution, **options)

    monkeypatch.setattr(Problem, "cross_check", noted)
    _, _, err = run("solve", small, "--progress")
    assert "cross-check by cvxpy, at most 120 s (Ctrl-C leaves it out) ..." in err
    small.write_text(small.read_text() + "\n[check]\nmax_seconds = 50\n")
    run("solve", small)
    run("check", small)
    assert asked == [120.0, 50, 50]


def test_a_check_that_cannot_be_made_is_exit_code_1(run, small, monkeypatch):
    def refuse(self, *arguments, **options):
        raise SolverError("too large for cvxpy")

    monkeypatch.setattr(Problem, "cross_check", refuse)
    reason = "could not be made: too large for cvxpy"
    code, out, _ = run("solve", small)
    assert code == 1 and reason in out and "NOT cross-checked" in out
    _, out, _ = run("solve", small, "--json")
    assert json.loads(out)["cross_check"] == {"agrees": None, "reason": reason}


def test_a_solver_that_fails_is_exit_code_1(run, small, monkeypatch):
    def fail(*arguments, **options):
        raise SolverError("admm: the numbers overflowed")

    monkeypatch.setattr(get_solver("admm"), "solve", fail, raising=False)
    code, out, err = run("solve", small, "--solver", "admm")
    assert (code, out) == (1, "") and "the numbers overflowed" in err


# --------------------------------------------------------------------------------------------- exit code 2
@for_each(("old", "new", "message"), [
    ("trace_norm", "trace_nrm", "small.toml:3:44: there is no word 'trace_nrm'; did you mean 'trace_norm'?"),
    ("low_rank", "low_rnk", "small.toml:6:12: there is no dataset 'low_rnk'"),
    ("lam = 2.0", "lam = -2.0", "small.toml:14:7: Parameter 'lam' cannot be -2.0"),
    ("[0, :]", "[9, :]", "small.toml:4:16: row of W[9, :]: index 9 is out of range"),
])  # fmt: skip
def test_bad_input_is_one_block_on_stderr(run, small, old, new, message):
    small.write_text(SMALL.replace(old, new))
    for command in ("solve", "check", "explain"):
        code, out, err = run(command, small)
        assert (code, out) == (2, "") and message in err and err.startswith("mtldsl: ")
        assert "Traceback" not in err and err.count("\n") == 3 and set(err.split("|")[-1].strip()) == {"^"}


@for_each(("arguments", "message"), [
    ("--tol 2", "--tol 2.0: tol must be a number between 0 and 1"),
    ("--solver simplex", "--solver simplex: solver must be one of 'auto', "),
    ("--solver closed_form", "solver='closed_form' does not take this model"),
    ("--starts 0", "--starts 0: starts must be a whole number >= 1"),
    ("--starts 3", "--starts 3: solve(starts=3): the model is convex"),
    ("--set max_seconds", "--set max_seconds: write KEY=VALUE"),
    ("--set max_seconds=soon", "--set max_seconds=soon: max_seconds must be a number of seconds > 0"),
    ("--set max_second=3", "[solve] has no key 'max_second'; did you mean 'max_seconds'?"),
    ("--set method=block", "options belong to one solver"),
    ("--solver alternating --set method=fast", "--set method=fast: method must be one of 'auto', 'newton'"),
    ("--output w.pdf", "--output w.pdf: the path must end in .npz"),
    ("--output /no/such/folder/w.npz", "w.npz: cannot be written (No such file or directory)"),
])  # fmt: skip
def test_wrong_options_are_exit_code_2(run, small, arguments, message):
    code, _, err = run("solve", small, "--no-check", *arguments.split())
    assert code == 2 and message in err


def test_options_of_the_files_solver_do_not_go_to_another(run, small):
    small.write_text(SMALL + '[solve]\nsolver = "admm"\nrelaxation = 1.5\n')
    code, _, err = run("solve", small, "--solver", "cvxpy")
    assert code == 2 and "the file sets relaxation of solver 'admm'" in err


def test_a_missing_file(run, tmp_path):
    code, out, err = run("solve", tmp_path / "none.toml")
    assert (code, out) == (2, "") and err == f"mtldsl: {tmp_path / 'none.toml'}: there is no such file\n"


@for_each("arguments", [[], ["solve"], ["solve", "x", "--json", "--quiet"], ["solve", "x", "--tol", "small"]])
def test_usage_is_exit_code_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage: mtldsl" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- Ctrl-C


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_ctrl_c_in_the_check_still_reports_the_solution(run, small, monkeypatch):
    monkeypatch.setattr(Problem, "cross_check", interrupted)
    code, out, _ = run("solve", small)
    assert code == 130 and "certified · " in out and "Proven" in out


def test_ctrl_c_while_reading(run, small, monkeypatch):
    monkeypatch.setattr("mtldsl.cli.problem_files.problem_file.load_problem", interrupted)
    assert run("solve", small) == (130, "", "mtldsl: interrupted before a point was found\n")


# --------------------------------------------------------------------------------- check, explain and words
def test_check_checks_whatever_the_file_says(run, small):
    small.write_text(SMALL + "[check]\ncross_check = false\n")
    code, out, _ = run("check", small)
    assert code == 0 and "cvxpy, clarabel" in out and "The two agree." in out and "Scores" not in out


def test_explain_does_not_solve(run, small, monkeypatch):
    monkeypatch.setattr(Problem, "solve", None)
    code, out, _ = run("explain", small)
    assert code == 0 and "\n  chosen    " in out and "Not for this model: " in out
    code, out, _ = run("explain", small, "--json")
    record = json.loads(out)
    assert record["chosen"] in {row["solver"] for row in record["solvers"] if row["verdict"] == "chosen"}
    assert record["model"]["subject_to"] == ["W[0, :] >= -1"]


def test_words(run):
    code, out, _ = run("words")
    assert code == 0 and "W >= bound" in out
    assert all(word in out for word in mtl.language.vocabulary.WORDS)
    code, out, _ = run("words", "trace_norm")
    assert code == 0 and "‖W‖⁎" in out and "sum of the singular values" in out
    code, out, _ = run("words", "trace_norm", "--json")
    assert json.loads(out)["kind"] == "regularizer"
    said = "mtldsl: there is no word 'trace_nrm'; did you mean 'trace_norm'?\n"
    assert run("words", "trace_nrm") == (2, "", said)
    assert run("words", "trace_norm", "--markdown")[0] == 2


@pytest.mark.slow
def test_words_shows_what_is_learned_and_how_tasks_are_alike(run):
    code, out, _ = run("words", "matrix_normal")
    assert code == 0 and "η tr(Σ₁ W Σ₂ Wᵀ) − ρ (m log|Σ₁| + d log|Σ₂|)" in out and "alternating" in out
    vocabulary = mtl.language.vocabulary
    _, everything, _ = run("words")
    listed = {each["name"]: each for each in json.loads(run("words", "--json")[1])}
    page = run("words", "--markdown")[1]
    for name in [*vocabulary.SIMILARITIES, "p_norm", *vocabulary.UNKNOWNS]:
        assert name in everything and f"`{name}`" in page and listed[name]["typed"].startswith(f"{name}(")
        code, out, _ = run("words", name)
        assert code == 0 and listed[name]["kind"] in out and name in out
    for name in vocabulary.UNKNOWNS:
        learned = "weights that are learned" if name == "KernelWeights" else "matrix that is learned"
        assert listed[name]["kind"] == json.loads(run("words", name, "--json")[1])["kind"] == learned
    assert "R = 1 1^T" in run("words", "union")[1] and "columns=None" in run("words", "union")[1]
    assert listed["laplacian"]["typed"].startswith("laplacian(L, gamma=1.0")
    assert "did you mean 'individual'?" in run("words", "indvidual")[2]
    assert "did you mean 'TaskPrecision'?" in run("words", "TaskPrecison")[2]


# -------------------------------------------------------------------------------------------- as a user would
# Three tests of the command line start it as a process: the two that follow, and Ctrl-C in tests/system/test_stops.py. What else is said of the command line is said of `main`, in this process.


@pytest.mark.process
def test_the_installed_command_solves(small):
    command = Path(sys.executable).with_name("mtldsl")
    if not command.exists():
        pytest.skip("mtldsl runs from a checkout that is not installed")
    done = subprocess.run([command, "solve", small, "--quiet", "--no-check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("certified")


@pytest.mark.process
def test_a_reader_that_leaves_is_no_error():
    command = [sys.executable, "-m", "mtldsl", "words"]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reader.stdout.close()
    assert reader.stderr.read() == b"" and reader.wait() == 0


def test_the_module_ends_with_the_code_of_main(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mtldsl", "explain", str(tmp_path / "absent.toml")])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("mtldsl", run_name="__main__")
    assert end.value.code == 2 and capsys.readouterr().err.startswith("mtldsl: ")


@pytest.mark.slow
def test_help_and_version_import_nothing_heavy():
    assert not {"cvxpy", "numba", "sklearn", "rich", "matplotlib"} & loaded_by("help")
    assert printed_by("version") == f"mtldsl {mtl.__version__}\n"
    assert printed_by("help").startswith("usage: mtldsl ")


def test_a_terminal_without_greek_shows_question_marks(monkeypatch):
    with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["words"]) == 0
        monkeypatch.undo()
        terminal.flush()
        assert b"l1_norm(W, weights=None)" in terminal.buffer.getvalue()


def test_a_table_as_problem_file_and_an_unknown_command(tmp_path, capsys):
    path = tmp_path / "my table.csv"
    path.write_text("a;b\n1;2\n")
    assert main(["solve", str(path)]) == 2
    assert f"is a table, not a problem file; write one for it: mtldsl new '{path}'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["slove", "p.toml"])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and "there is no command 'slove'; did you mean 'solve'?" in said


@for_each("command", ["solve", "cv"])
def test_choosing_says_that_nothing_is_kept(command, tmp_path, command_line, monkeypatch):
    monkeypatch.setattr(cross_validation, "_run", interrupted)
    path = tmp_path / "p.toml"
    path.write_text(FILE + VALIDATION)
    code, out, err = command_line(command, path)
    assert (code, out) == (130, "")
    assert err == "mtldsl: choosing lam was interrupted when 0 of 3 folds were complete; nothing is kept\n"


@pytest.mark.parametrize("of_parts, line", [(False, interrupts.INTERRUPTED), (True, interrupts.STOPPED)])
def test_a_part_of_many_promises_nothing(of_parts, line, capsys, monkeypatch):
    monkeypatch.setattr(interrupts._state, "last", -float("inf"))
    with interrupts.handle_signals(raises=True, of_parts=of_parts), interrupts.handle_signals():
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.is_signal_pending()
    assert capsys.readouterr().err == line + "\n"


def pressed_while_importing(folder, *command):
    """The process that `command` makes, interrupted where it imports numpy."""
    (folder / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
    )


@for_each("command", [("-m", "mtldsl", "solve", "e.toml"), ("mtldsl", "solve", "e.toml")])
def test_the_imports_of_the_command_end_with_a_line(command, tmp_path):
    script = tmp_path / "mtldsl"
    script.write_text("import sys\nfrom mtldsl.cli import main\nsys.exit(main())\n")
    done = pressed_while_importing(
        tmp_path, *(str(script) if word == "mtldsl" and command[0] == word else word for word in command)
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "mtldsl: interrupted while it started\n")


def test_the_imports_of_another_program_are_left_to_it(tmp_path):
    done = pressed_while_importing(tmp_path, "-c", "import mtldsl")
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr
