"""Similarities of tasks and kernel weights as text: the same model as Python makes, and every mistake at its place."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError, ModelError
from mtldsl.language.parser import parse_constraint, parse_objective
from mtldsl.language.vocabulary import SIMILARITIES, WORDS
from tests.loops import for_each

rng = np.random.default_rng(0)
TASKS = mtl.Tasks.grouped(
    rng.normal(size=(40, 3)),
    np.resize([1.0, -1.0, -1.0], 40),
    np.repeat(["Oslo", "Bergen", "Rome", "Milan"], 10),
)
ROOT = {"Oslo": "north", "Bergen": "north", "Rome": "south", "Milan": "south", "north": "all", "south": "all"}
NEAR = np.array([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, -1], [0, 0, -1, 2]])
PATH = np.array([[1.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
NAMES = {
    "tasks": TASKS, "W": mtl.Weights(TASKS), "C": mtl.Parameter(2.0, "C"), "theta": mtl.KernelWeights(),
    "Sigma1": mtl.FeaturePrecision(TASKS), "parents": ROOT, "up": np.array([4, 4, 5, 5, 6, 6, -1]),
    "labels": {"Oslo": "a", "Bergen": "a", "Rome": "b", "Milan": "b"}, "near": NEAR, "path": PATH,
    "first": np.array([0, 1]), "given": np.array([0.5, 0.25]),
}  # fmt: skip
PLAIN = {"__builtins__": {}, "inf": np.inf} | WORDS | SIMILARITIES | {"p_norm": mtl.p_norm}

OBJECTIVES = [
    "C * hinge_loss(W, tasks) + mkl_norm(W, [union(), individual()], p=2)",
    "hinge_loss(W, tasks) + mkl_norm(W, [tree(parents)], p=1.5)",
    "hinge_loss(W, tasks) + 0.5 * mkl_norm(W, tree(up), p=inf)",
    "hinge_loss(W, tasks) + mkl_norm(W, [clusters(labels), clusters([0, 0, 1, 1]), identity()], p=1)",
    "hinge_loss(W, tasks) + mkl_norm(W, [clusters(['u', 'v', 'v', 'u']), domain_adaptation()], p='inf')",
    "hinge_loss(W, tasks) + mkl_norm(W, [laplacian(path, gamma=0.5), evgeniou_pontil(1, lam1=2)], p=3)",
    "hinge_loss(W, tasks) + mkl_norm(W, [from_kernel(near), from_similarity(near)], given)",
    "hinge_loss(W, tasks) + mkl_norm(W, [identity(columns=first), union(), identity(columns=['x2'])], p=2)",
    "hinge_loss(W, tasks) + mkl_norm(W, [from_kernel([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 2]])], p=2)",
]


@pytest.mark.slow
@for_each("text", OBJECTIVES)
def test_the_same_model_as_python_makes(text):
    expected = mtl.minimize(eval(text, PLAIN, NAMES)).form()
    found = mtl.minimize(parse_objective(text, NAMES)).form()
    for seed in range(3):
        W = np.random.default_rng(seed).normal(size=(3, 4))  # every sum of kernels above has full rank
        assert np.isfinite(expected.value({"W": W}))
        assert found.value({"W": W}) == pytest.approx(expected.value({"W": W}), rel=1e-12)


@for_each(
    "text, p, radius",
    [
        ("p_norm(theta, 2) <= 1", 2.0, 1.0),
        ("p_norm(theta) <= 3", 2.0, 3.0),
        ("p_norm(theta, p=inf) <= 2", np.inf, 2.0),
        ("theta.sum() <= 1", 1.0, 1.0),
        ("theta <= 1", np.inf, 1.0),
        ("p_norm(theta, 1.5) == 1", 1.5, 1.0),
    ],
)
def test_what_a_constraint_says_of_kernel_weights(text, p, radius):
    found = parse_constraint(text, NAMES)
    assert (found.text, found.unknown, found.p, found.value) == (text, NAMES["theta"], p, radius)


def test_it_prints_as_typed_and_a_given_array_by_its_name():
    text = "hinge_loss(W, tasks) + mkl_norm(W, [from_kernel(near), union()], given)"
    found = parse_objective(text, NAMES)
    assert found.text == text and r"K_{\mathrm{given}}^{+}" in found.latex
    named = parse_objective("mkl_norm(similarities=[union()], theta=theta, W=W)", NAMES)
    assert named.text == "mkl_norm(similarities=[union()], theta=theta, W=W)" and r"K_{\theta}" in named.latex


MISTAKES = [
    ("mkl_norm(W, [unoin()], p=1)", "1:14", "there is no word 'unoin'; did you mean 'union'?"),
    ("mkl_norm(W, [union], p=1)", "1:14", "union is a similarity of tasks; write union(columns=None)"),
    ("mkl_norm(W, [near], p=1)", "1:14", "a list holds numbers, names, metrics, similarities and lists, not an array"),
    ("2 * union()", "1:5", "a similarity of tasks cannot stand beside *; write mkl_norm(W, [union()], p=2)"),
    ("union()", "1:1", "this is a similarity of tasks; write mkl_norm(W, [union()], p=2)"),
    ("mkl_norm(W, [union()], weights)", "1:24", 'there is no name \'weights\'; declare it in [learned]: weights = "KernelWeights"'),
    ("mkl_norm(W, [union()], KernelWeights)", "1:24", 'declare theta = "KernelWeights" in [learned], and write theta here'),
    ("mkl_norm(W, [union()], KernelWeights(1))", "1:24", 'KernelWeights is a kind of weights that are learned; declare theta = '),
    ("mkl_norm(W, [union()])", "1:1", '(in [learned]: theta = "KernelWeights")'),
    ("matrix_normal(W, theta, Sigma1)", "1:1", 'write Sigma1 = "FeaturePrecision" in [learned]'),
    ("mkl_norm(W, [tree(near)], p=1)", "1:14", "tree(parents): write {node: its parent"),
    ("mkl_norm(W, [clusters(parents)], p=1)", "1:1", "; the tasks are 'Oslo', 'Bergen'"),
    ("mkl_norm(W, [clusters({'Oslo': 1})], p=1)", "1:23", "the language has no braces"),
    ("mkl_norm(W, [evgeniou_pontil(1)], p=1)", "1:14", "write evgeniou_pontil(lam0, lam1, columns=None)"),
    ("mkl_norm(W, [union(columns=W)], p=1)", "1:1", "columns must be a slice, a list of positions or names"),
    ("ridge(W, weights=parents)", "1:1", "the weights are not numbers"),
    ("W + parents", "1:5", "a table cannot stand beside +"),
    ("parents['Oslo']", "1:1", "a table has no rows and columns to choose from"),
    ("inf * ridge(W)", "1:1", "the coefficient inf is not finite"),
    ("union().text", "1:1", "the only attributes in the language are"),
    ("mkl_norm(W, [union().kernels(tasks, 'a')], p=1)", "1:14", "can be called"),
    ("TaskSimilarity('a', W)", "1:1", "there is no word 'TaskSimilarity'"),
]  # fmt: skip


@for_each("text, place, message", MISTAKES)
def test_a_mistake_is_shown_where_it_stands(text, place, message):
    with pytest.raises((ModelError, DataError)) as error:
        parse_objective(text, NAMES)
    assert str(error.value).startswith(f"text:{place}: ") and message in str(error.value)


WRONG = [
    ("theta", "a constraint is expected, this is weights that are learned; write p_norm(theta, 2) <= 1"),
    ("p_norm(theta, 2)", "this is a norm of kernel weights; it is bounded, p_norm(theta, 2) <= 1"),
    ("p_norm(theta, 2) + 1 <= 2", "a norm of kernel weights cannot stand beside +"),
    ("-p_norm(theta, 2) >= -1", "a norm of kernel weights has no sign"),
    ("p_norm(W, 2) <= 1", 'the first argument must be "KernelWeights" in [learned]'),
    ("theta.sum(axis=0) <= 1", "; write .sum()"),
    ("0 <= theta <= 1", 'write "0 <= theta", "theta <= 1"'),
    ("union() <= 1", "a similarity of tasks cannot be compared"),
    ("parents <= 1", "a table cannot be compared"),
]


@for_each("text, message", WRONG)
def test_a_wrong_constraint_is_refused(text, message):
    with pytest.raises((ModelError, DataError)) as error:
        parse_constraint(text, NAMES)
    assert str(error.value).startswith("text:1:") and message in str(error.value)


@for_each("word", sorted(WORDS))
@for_each("strange", ["parents", "union()", "theta", "p_norm(theta, 2)", "inf", "labels"])
def test_no_word_falls_over_what_is_new_in_the_language(word, strange):
    """A model, or an error with its place, whatever stands in place of an argument."""
    typed = f"W, {strange}" if word != "squared_loss" else strange
    for text in (f"{word}({strange})", f"{word}({typed})", f"{word}(W, tasks, {strange})"):
        try:
            parse_objective(text, NAMES)
        except (ModelError, DataError) as error:
            assert str(error).startswith("text:1:")
