"""Errors carry fields, and every face makes its own text of them: no face edits another's."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor

import joblib
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import errors
from mtldsl.errors import DataError, ModelError, MTLError, Place, SolverError, Spelled
from tests.models import with_weights

KINDS = [kind for kind in map(errors.__dict__.get, errors.__all__) if issubclass(kind, MTLError)]
PLACE = Place("p.toml", 2, 5, "  2 | lam = 'a'\n    |       ^^^", ("parameters", "lam"))


class TwoArguments(ModelError):
    """As a package of somebody else may write one."""

    def __init__(self, code, size):
        super().__init__(f"code {code} of {size}", term="mine")
        self.code = code


class Silent(DataError):
    def __init__(self):
        """Does not call the constructor above it."""


@pytest.mark.parametrize("kind", KINDS)
def test_one_text_is_the_message(kind):
    error = kind("W is not a matrix")
    assert str(error) == "W is not a matrix" == error.what and error.args == ("W is not a matrix",)
    assert (error.term, error.write_instead, error.argument, error.place) == ("", "", "", None)
    assert repr(error) == f"{kind.__name__}('W is not a matrix')"


@pytest.mark.parametrize(
    "fields, said",
    [
        ({}, "wrong"),
        ({"term": "l1_norm(W)"}, "l1_norm(W): wrong"),
        ({"write_instead": "write ridge(W)"}, "wrong; write ridge(W)"),
        ({"term": "l1_norm(W)", "write_instead": "write ridge(W)"}, "l1_norm(W): wrong; write ridge(W)"),
        ({"place": PLACE}, "p.toml:2:5: wrong\n  2 | lam = 'a'\n    |       ^^^"),
        ({"term": "t", "place": Place("words", 1, 1)}, "words:1:1: t: wrong"),
    ],
)
def test_fields_are_put_into_one_sentence(fields, said):
    assert str(ModelError("wrong", **fields)) == said


def test_what_is_said_by_the_advice_alone_follows_the_term():
    found = str(ModelError(term="solve(tol=-1)", write_instead="write a number > 0"))
    assert found == "solve(tol=-1): write a number > 0"
    assert str(ModelError()) == "" and ModelError("a", 1).what == "('a', 1)"


def test_a_place_brings_the_spelling_of_files():
    made = "theta must be " + Spelled("KernelWeights(3)", '"KernelWeights" in [learned]') + ", or an array"
    error = ModelError(made, term="mkl_norm(...)")
    assert str(error) == "mkl_norm(...): theta must be KernelWeights(3), or an array"
    assert str(error.at(PLACE)).startswith(
        'p.toml:2:5: mkl_norm(...): theta must be "KernelWeights" in [learned], or an array\n'
    )
    assert (
        str(Spelled("a", "b") + Spelled("c", "d")) == "ac"
        and (Spelled("a", "b") + Spelled("c", "d")).file == "bd"
    )


def test_an_error_is_given_its_place_without_being_changed():
    error = ModelError("wrong", term="inner", write_instead="write more", argument="labels")
    placed = error.at(PLACE).within("outer")
    assert type(placed) is ModelError and error.place is None and error.term == "inner"
    assert placed.said() == "outer: inner: wrong; write more" and placed.argument == "labels"
    assert placed.at(Place("other", 1, 1)).place == PLACE  # the innermost place is the one that helps
    assert ModelError("wrong").within("outer").said() == "outer: wrong"
    assert error.about("other").said() == "other: wrong; write more"
    other = placed.as_kind(SolverError)
    assert type(other) is SolverError and str(other) == str(placed)


FULL = dict(term=Spelled("a", "b"), write_instead="write c", argument="labels", place=PLACE)
SENT = [*(kind("wrong", **FULL) for kind in KINDS), TwoArguments(3, 4), Silent()]


def same(one: MTLError, other: MTLError) -> bool:
    return (
        type(one) is type(other)
        and one.args == other.args
        and str(one) == str(other)
        and vars(one) == vars(other)
    )


def fail(k: int):
    raise SENT[k]


@pytest.mark.parametrize("error", SENT, ids=lambda error: type(error).__name__)
def test_copies_and_pickles_are_the_same_error(error):
    error = copy.copy(error)
    error.add_note("while solving")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert same(copy.copy(error), error) and same(copy.deepcopy(error), error)
    other = error.within("solve")
    other.add_note("of the copy")
    assert other.__notes__ == ["while solving", "of the copy"] and error.__notes__ == ["while solving"]


def test_an_error_of_a_subclass_keeps_what_it_made():
    assert str(TwoArguments(3, 4).within("solve")) == "solve: mine: code 3 of 4"
    assert str(Silent()) == "" and str(Silent().at(PLACE)).startswith("p.toml:2:5: ")


@pytest.mark.process
def test_an_error_comes_back_from_a_pool_of_processes_as_it_was():
    k = len(SENT) - 2
    with ProcessPoolExecutor(1) as pool, pytest.raises(TwoArguments) as caught:
        pool.submit(fail, k).result()
    assert str(caught.value) == "mine: code 3 of 4" and caught.value.code == 3
    with pytest.raises(ModelError) as caught:
        joblib.Parallel(n_jobs=2)(joblib.delayed(fail)(KINDS.index(ModelError)) for _ in range(2))
    assert str(caught.value) == str(SENT[KINDS.index(ModelError)]) and caught.value.place == PLACE


def test_every_kind_is_still_pythons_too():
    assert issubclass(DataError, ValueError) and issubclass(SolverError, RuntimeError)
    with pytest.raises(ImportError):
        raise mtl.MissingExtraError("no torch")


@pytest.fixture
def problem_file(load):
    """text -> the error of a problem file p.toml with it."""

    def refused(text):
        with pytest.raises(MTLError) as caught:
            load(text)
        return caught.value

    return refused


DATA = '[data]\ndataset = "low_rank"\nn_tasks = 3\nn_features = 4\n'
LOSS = 'minimize = "squared_loss(W, tasks) + '


@pytest.mark.parametrize(
    "text, key, fields",
    [
        (LOSS + 'matrix_normal(W, W, W)"\n' + DATA, (), {"term": "matrix_normal(W, W, W)"}),
        (LOSS + 'ridge(W)"\n' + DATA + "n_samples = 0\n", ("data", "n_samples"), {"argument": "n_samples"}),
        (LOSS + 'ridge(W)"\n' + DATA + "[solve]\nstarts = 3\n", ("solve", "starts"), {}),
        (
            LOSS
            + 'ridge(W)"\nsubject_to = ["W >= 0", "D.trace() <= 1"]\n'
            + DATA
            + '[learned]\nD = "FeatureCovariance"\n',
            ("subject_to", 1),
            {"term": "D.trace() <= 1", "write_instead": "leave it out, or add the term"},
        ),
    ],
)
def test_a_problem_file_adds_the_place_and_leaves_the_fields(problem_file, text, key, fields):
    error = problem_file(text)
    assert {name: str(getattr(error, name)) for name in fields} == fields
    assert error.place.key == key and error.place.name.endswith("p.toml")
    assert str(error).startswith(f"{error.place}: {error.said('file')}\n")


def test_one_error_on_two_faces(problem_file):
    """What Python makes by a call, a file declares in a table."""
    tasks, W = with_weights(mtl.datasets.make_low_rank(n_tasks=3, n_features=4)[0])
    with pytest.raises(ModelError) as caught:
        mtl.matrix_normal(W, W, W)
    assert str(caught.value).endswith(
        "Sigma1 must be a FeaturePrecision, or an array (4, 4) that fixes it; this is W"
    )
    said = str(problem_file(LOSS + 'matrix_normal(W, W, W)"\n' + DATA)).split("\n")[0]
    assert said.endswith('that fixes it; this is W (in [learned]: Sigma1 = "FeaturePrecision")')

    with pytest.raises(ModelError) as caught:
        mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[np.full((4, 3), 1e300) >= W])
    assert str(caught.value).endswith("write smaller ones, or np.inf for no bound")
    error = problem_file(LOSS + 'ridge(W)"\nsubject_to = ["W <= A"]\n' + DATA + "[arrays]\nA = [[1e300]]\n")
    assert error.said("file").endswith("write smaller ones, or inf for no bound")


GRAPH = 'minimize = "clique_hinge(U, V, tasks) + ridge(U)"\n[data]\ndataset = "label_graph"\nn_labels = 3\nedges = [[0, 1]]\n[weights]\nU = "NodeWeights"\n'
TREE = LOSS + 'mkl_norm(W, [tree(parents)], p=2)"\n' + DATA + "[groups]\n"
CSV = LOSS + 'ridge(W)"\n[data]\npath = "d.csv"\n'


@pytest.mark.parametrize("text, said", [
    (GRAPH + 'V = {edges = [["y0", "y9"]]}\n', "edges = [['y0', 'y9']]: 'y9' in ['y0', 'y9'] is not a label"),
    (TREE + 'parents = {a = "north", b = "south", north = "all"}\n', "write the parent of each, south = ..., and none for the root"),
    (TREE + 'parents = {a = "north"}\n', "its leaves have to be the tasks, by name, as in {task0 = \"group\"}"),
    (CSV + 'labels = ["y"]\n', "leave the column out with drop = [...], or, where it holds categories, write one_hot = [...]"),
    (CSV + 'labels = ["y"]\ndrop = ["a"]\nbinary = true\n', "binary = true is for labels 0/1, but there is a label 2; leave it out to keep numbers"),
    (CSV.replace("squared", "hinge") + 'labels = ["z"]\ndrop = ["a"]\n', "for labels 0/1 write binary = true in [data]"),
])  # fmt: skip
def test_options_are_written_as_a_file_writes_them(problem_file, tmp_path, text, said):
    (tmp_path / "d.csv").write_text("a,x,y,z\nno,1,1,1\nyes,2,2,0\n")
    error = problem_file(text)
    assert said in str(error).split("\n")[0] and said not in error.said()
