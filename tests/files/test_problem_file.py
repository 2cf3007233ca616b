"""Problem files: every table does what it says, and every mistake is shown at its line and column."""

import re
from pathlib import Path

import numpy as np
import pytest

from mtldsl import datasets
from mtldsl.cli.problem_files import problem_file
from mtldsl.cli.problem_files.problem_file import SECTIONS, load_problem
from mtldsl.data.labels import OneClassWarning
from mtldsl.data.published import data_folder
from mtldsl.errors import DataError, ModelError, MTLError
from tests.fuzz.mutants import ALL_TABLES
from tests.loops import for_each

EXAMPLES = sorted(
    path for path in (Path(__file__).parents[2] / "examples").glob("*.toml") if path.name != "ruff.toml"
)

DATA = '[data]\ndataset = "low_rank"\nn_tasks = 3\nn_samples = 12\nn_features = 4\nrandom_state = 0\n'
MODEL = 'minimize = "squared_loss(W, tasks) + l1_norm(W)"\n'


@pytest.mark.by_default("imbalanced.toml")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_problem_files(path):
    if path.name == "school.toml":
        try:
            data_folder()
        except DataError as error:
            pytest.skip(str(error))
    file = load_problem(path)
    assert file.title and file.tasks_test is not None and file.check is not None


def test_everything_at_once(load, tmp_path):
    np.savez(tmp_path / "graph.npz", laplacian=[[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]], other=[1.0])
    np.savetxt(tmp_path / "upper.csv", np.full((4, 3), 2.5), delimiter=",")
    file = load(ALL_TABLES.replace("r.html", "out/r.html"))
    assert file.title == "All tables"
    assert file.problem.objective.text == (
        "lam * squared_loss(L + S, tasks) + trace_norm(L) + mu * l1_norm(S) + graph_laplacian(L, G)"
    )
    assert [c.text for c in file.problem.constraints] == ["L <= upper", "S[rows, 'task0'] >= -1"]
    assert {p.name: p.value for p in file.problem.parameters} == {"lam": 2.0, "mu": 0.5}
    assert [w.intercept for w in file.problem.weights] == [True, False]
    np.testing.assert_array_equal(file.problem.objective.terms[3].atom.L[1], [-1, 2, -1])
    assert file.solve == {
        "solver": "admm", "tol": 1e-5, "max_iter": 5000, "max_seconds": 30, "relaxation": 1.5,
    }  # fmt: skip
    assert file.check == {"tol": 1e-4, "solver": "scs", "max_size": None, "random_state": 3}
    assert file.outputs == {"solution": tmp_path / "w.npz", "report": tmp_path / "out" / "r.html"}
    whole, _ = datasets.make_low_rank(n_tasks=3, n_samples=12, n_features=4, random_state=0)
    train, test = whole.split(0.25, 7)
    train = train.standardize()
    assert file.tasks_train.fingerprint() == train.fingerprint()
    assert file.tasks_test.fingerprint() == test.scaled_by(train.scaling).fingerprint()
    assert file.problem.solve(**file.solve).status == "optimal"


def test_the_shortest_file(load):
    file = load(MODEL + DATA)
    assert file.tasks_test is None and file.solve == {} and file.check == {} and file.outputs == {}
    assert [w.name for w in file.problem.weights] == ["W"] and not file.problem.weights[0].intercept
    assert load(MODEL + DATA + "[check]\ncross_check = false\n").check is None


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xef\xbb\xbf" + (MODEL + DATA).replace("\n", "\r\n").encode())
    assert load_problem(path).problem.objective.text == "squared_loss(W, tasks) + l1_norm(W)"
    path.write_bytes((MODEL.replace("l1_norm", "l1_nrm") + DATA).replace("\n", "\r\n").encode())
    with pytest.raises(ModelError, match=r"p.toml:1:38: there is no word 'l1_nrm'"):
        load_problem(path)


def test_npz_and_its_options(load, tmp_path):
    np.savez(tmp_path / "d.npz", inputs=np.eye(4), Y=[0.0, 1, 1, 0], group=["u", "u", "v", "v"])
    data = '[data]\npath = "d.npz"\nX = "inputs"\ntask_ids = "group"\nbinary = true\n'
    file = load('minimize = "logistic_loss(W, tasks) + ridge(W)"\n' + data)
    assert file.tasks_train.task_names == ("u", "v") and set(file.tasks_train.targets) == {-1.0, 1.0}


def test_libsvm_takes_one_file_a_task_and_stays_sparse(load, tmp_path):
    (tmp_path / "one.svm").write_text("1.5 1:1 3:2\n-1 2:1\n")
    (tmp_path / "two.svm").write_text("2 1:1\n3 2:1 3:1\n")
    file = load(MODEL + '[data]\npath = ["one.svm", "two.svm"]\nstandardize = {center = false}\n')
    assert file.tasks_train.task_names == ("one", "two") and file.tasks_train.is_sparse
    assert file.tasks_train.scaling is not None


def test_the_format_may_be_named(load, tmp_path):
    (tmp_path / "data.txt").write_text("a;y\n1;2\n3;5\n")
    data = '[data]\npath = "data.txt"\nformat = "csv"\nlabels = "y"\ndelimiter = ";"\n'
    assert load(MODEL + data).tasks_train.n_samples == 2


FETR = """minimize = "sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=2)"
subject_to = ["Sigma1 >> 0.1", "Sigma1 << 10", "Sigma2 >> 0.1", "10 >> Sigma2", "W >= -5"]
"""
LEARNED = '[learned]\nSigma1 = "FeaturePrecision"\nSigma2 = "TaskPrecision"\n'


def test_names_are_free_and_a_matrix_may_be_given(load):
    file = load(
        """minimize = "sum_of_squares(W, tasks) + matrix_normal(W, G, precision) + 2 * task_covariance_norm(W, C)"
subject_to = ["precision >> 0.1", "precision << 10", "C.trace() <= 1.5"]
"""
        + DATA
        + '[learned]\nprecision = "TaskPrecision"\nC = "TaskCovariance"\n'
        + "[arrays]\nG = [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]\n"
    )
    assert [matrix.name for matrix in file.problem.learned] == ["precision", "C"]
    given, free = file.problem.objective.terms[1].learned
    np.testing.assert_allclose(given.dense()[:2, :2], [[2, 1], [1, 2]])
    assert free is file.problem.learned[0]


NAMED = 'model = "NC-CMTL"\n' + DATA + "[parameters]\nmu = 2.0\n"


def test_several_starts_and_the_options_of_reweighting(load):
    options = '[solve]\nsolver = "alternating"\nmethod = "joint"\ncontinuation = 2\nstarts = 3\nrandom_state = 7\nn_jobs = 2\n'
    file = load(NAMED + options)
    assert file.solve == {
        "solver": "alternating", "method": "joint", "continuation": 2, "starts": 3, "random_state": 7, "n_jobs": 2,
    }  # fmt: skip
    solution = file.problem.solve(**file.solve)
    assert solution.is_certified and len(solution.starts) == 3


def test_the_model_on_the_page_is_read_and_solved(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "problem_files.md").read_text()
    csv, toml, learned = (
        re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("csv", "toml", "ini")
    )
    (tmp_path / "exams.csv").write_text(csv)
    data = re.search(r"\[data\].*?\n\n", toml, re.DOTALL)[0]
    (tmp_path / "p.toml").write_text(f"{learned}\n{data}")
    problem = load_problem(tmp_path / "p.toml").problem
    solution = problem.solve()
    assert solution.is_certified and set(solution.learned) == {"Sigma1", "Sigma2"}


TOP = MODEL + DATA  # [data] is line 2, its last line 6
WRONG = [
    # text, line:column, part of the message
    ("minimise = 'x'\n" + DATA, "1:1", "a problem file has no key 'minimise'; did you mean 'minimize'?"),
    (DATA, "1:1", "the file states no model"),
    (MODEL, "1:1", "the file needs a table [data]"),
    (MODEL + "[data]\n", "2:1", '[data] needs dataset = "..." or path = "..."'),
    (MODEL + '[data]\ndataset = "digit"\n', "3:12", "there is no dataset 'digit'; did you mean 'digits'?"),
    (MODEL + '[data]\ndataset = "digits"\npath = "x.csv"\n', "4:1", "not both"),
    (TOP + "n_taks = 4\n", "8:1", "dataset 'low_rank' has no option 'n_taks'; did you mean 'n_tasks'?"),
    (TOP.replace("n_tasks = 3", "n_tasks = 0"), "4:11", "write a whole number of at least 1"),
    (TOP + 'minimize = "ridge(W)"\n', "8:1", "has no option 'minimize'; it belongs to the top"),
    (TOP + "standardize = 3\n", "8:15", "standardize must be true, false, or"),
    (TOP + "standardize = {centre = true}\n", "8:16", "did you mean 'center'?"),
    (MODEL + '[data]\npath = "none.csv"\nlabels = "y"\n', "3:9", "there is no such file"),
    (MODEL + '[data]\npath = "bad.csv"\nlabels = "y"\n', "3:9", "bad.csv: column 'a' has text that is not a number, 'no' in line 3"),
    (MODEL + '[data]\npath = "bad.csv"\n', "2:1", "format 'csv' needs labels = ..."),
    (MODEL + '[data]\npath = "bad.csv"\nlabel = "y"\n', "4:1", "format 'csv' has no option 'label'; did you mean 'labels'?"),
    (MODEL + '[data]\npath = "x.xls"\n', "3:9", "does not tell the format"),
    (MODEL + '[data]\npath = ["a.csv", "b.csv"]\nlabels = "y"\n', "3:8", "format 'csv' reads one file"),
    (MODEL + '[data]\npath = "one.svm"\nstandardize = true\n', "4:1", "standardize = {center = false}"),
    (MODEL + DATA.replace("n_samples = 12", "n_samples = 1") + "[split]\n", "8:1", "split"),
    (TOP + "[split]\ntest_size = 1.5\n", "9:13", "test_size must be a share between 0 and 1"),
    (TOP + "[split]\nseed = 1\n", "9:1", "[split] has no key 'seed'"),
    (TOP + "[solve]\ntol = 1.0\n", "9:7", "tol must be a number between 0 and 1"),
    (TOP + '[solve]\nsolver = "adm"\n', "9:11", "solver must be one of 'auto', "),
    (TOP + "[solve]\nrelaxation = 1.5\n", "9:1", "options belong to one solver"),
    (TOP + "[solve]\ncross_check = true\n", "9:1", "it belongs into [check]"),
    (TOP + '[check]\nsolver = "mosek"\n', "9:11", "one of 'clarabel', 'scs', 'osqp'"),
    (TOP + '[output]\nreport = "r.pdf"\n', "9:11", "a path that ends in .txt, .html or .json"),
    ("solve = 3\n" + TOP, "1:9", "solve must be a table"),
    (TOP.replace("l1_norm", "l1_nrom"), "1:38", "did you mean 'l1_norm'?"),
    (TOP.replace("+", "-"), "1:13", "-1 * l1_norm(W) is not convex"),
    ('subject_to = ["W >= 0",\n  "W >"]\n' + TOP, "2:7", "cannot be read as an expression"),
    ('subject_to = "W >= 0"\n' + TOP, "1:15", 'must be a list such as ["W >= 0"]'),
    (TOP.replace("squared", "hinge"), "1:13", "hinge_loss(W, tasks): label"),
    ("minimize = squared_loss(W)\n" + DATA, "1:12", "this is not TOML"),
    (TOP + "[weights]\nV = {}\n", "1:26", "there is no name 'W'"),
    (TOP + "[weights]\nW = {}\nV = {}\n", "10:1", "'V' is not used in the model"),
    (TOP + "[weights]\nW = true\n", "9:5", "write W = {} or W = {intercept = true}"),
    (TOP + "[weights]\nW = {intercept = 1}\n", "9:18", "intercept must be true or false"),
    (TOP + "[parameters]\nlam = -1\n", "9:7", "Parameter 'lam' cannot be -1"),
    (TOP + '[parameters]\nlam = "1"\n', "9:8", "a parameter is a number, not text in quotes"),
    (TOP + "[parameters]\nlambda = 1\n", "9:1", "'lambda' cannot be a name, because it means something in an expression"),
    (TOP + "[parameters]\nridge = 1\n", "9:1", "'ridge' is a word of the language"),
    (TOP + '[parameters]\n"2x" = 1\n', "9:1", "'2x' is not a name"),
    (TOP + "[parameters]\nA = 1\n[arrays]\nA = [1]\n", "11:1", "'A' is given twice"),
    (TOP + '[arrays]\nA = [[1, 2], ["3", 4]]\n', "9:16", "an array holds numbers, not text in quotes"),
    (TOP + "[arrays]\nA = [1, nan]\n", "9:5", "contains NaN"),
    (TOP + '[arrays]\nA = "none.npy"\n', "9:6", "none.npy: there is no such file"),
    (TOP + '[arrays]\nA = "two.npz"\n', "9:6", 'it holds a, b; write {path = "...", name = "a"}'),
    (TOP + '[arrays]\nA = {file = "two.npz"}\n', "9:6", "[arrays.A] has no key 'file'"),
    (TOP + '[learned]\nS = "FeaturPrecision"\n', "9:6", "nothing of the kind 'FeaturPrecision' is learned; did you mean 'FeaturePrecision'?"),
    (TOP + "[learned]\nS = 3\n", "9:5", 'write S = one of "KernelWeights", "FeaturePrecision", "TaskPrecision", "FeatureCovariance", "TaskCovariance", not a number'),
    (FETR + DATA, "1:57", "there is no name 'Sigma1'; declare it in [learned]: Sigma1 = \"FeaturePrecision\""),
    (FETR.replace('"Sigma1 << 10", ', "") + DATA + LEARNED, "1:13", "Sigma1 has no upper bound: the objective is unbounded below"),
    (FETR.replace("matrix_normal(W, Sigma1, Sigma2, eta=2)", "ridge(W)") + DATA + LEARNED, "2:16", "Sigma1 >> 0.1: Sigma1 is in no term of the objective"),
    (TOP + "[solve]\nstarts = 3\n", "9:10", "the model is convex, so that every start leads to the same optimum"),
    (NAMED + "[solve]\nstarts = 0\n", "11:10", "starts must be a whole number >= 1"),
    (NAMED + "[solve]\nrandom_state = -1\n", "11:16", "random_state must be a whole number >= 0"),
    (NAMED.replace("CMTL", "CMTF"), "1:10", "did you mean"),
    ('minimize = "ridge(W)"\n' + NAMED, "2:1", "minimize or model, not both"),
    (NAMED.replace("mu", "nu"), "1:10", "mu"),
    (TOP + '[output]\nsolution = "."\n', "9:13", "is a folder; give the name of a file in it"),
    (FETR + DATA + LEARNED + '[solve]\nmethod = "block"\n', "13:1", "options belong to one solver"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder with files that the mistakes name."""
    (tmp_path / "bad.csv").write_text("a,y\n1,2\nno,3\n")
    (tmp_path / "one.svm").write_text("1.5 1:1 3:2\n-1 2:1\n")
    np.savez(tmp_path / "two.npz", a=[1.0], b=[2.0])
    return tmp_path


@pytest.mark.slow
@for_each(("text", "place", "message"), WRONG)
def test_a_mistake_is_shown_where_it_stands(load, folder, text, place, message):
    with pytest.raises(MTLError) as caught:
        load(text)
    first, shown, _ = str(caught.value).rsplit("\n", 2)
    assert first.startswith(f"{folder / 'p.toml'}:{place}: ") and message in first
    line = int(place.split(":")[0])
    assert shown.strip() == f"{line} | {text.splitlines()[line - 1]}".strip()


def test_labels_without_rows_are_left_out_where_asked_for(load, tmp_path):
    rows = "a,b,never,flu,cold\n" + "".join(
        f"{i},{i * i % 7},-1,{1 if i % 2 else -1},{1 if i % 3 else -1}\n" for i in range(12)
    )
    (tmp_path / "labels.csv").write_text(rows, encoding="utf-8")
    top = 'minimize = "logistic_loss(W, tasks) + ridge(W)"\n[data]\npath = "labels.csv"\nlabels = ["never", "flu", "cold"]\n'
    with pytest.warns(OneClassWarning, match="1 of 3 tasks .*'never'"):
        file = load(top + 'one_class = "skip"\n')
    assert list(file.tasks_train.task_names) == ["flu", "cold"]
    with pytest.raises(DataError, match=r'p.toml:5:14: one_class must be "skip" or "error"'):
        load(top + 'one_class = "drop"\n')


def test_every_described_table_is_a_section_and_conversely():
    described = re.findall(r"^    \[(\w+)\]", problem_file.__doc__, re.MULTILINE)
    assert sorted(described) == sorted(section.name for section in SECTIONS[1:])
    assert SECTIONS[0].name == "" and set(described) < set(SECTIONS[0].rules)
