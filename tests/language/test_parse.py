"""Text to tree: the same model as Python makes, every mistake at its place, and nothing else ever happens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtldsl as mtl
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.language.constraints import Constraint, RangeConstraint
from mtldsl.language.objective import Objective
from mtldsl.language.parser import parse_constraint, parse_objective
from mtldsl.language.source_text import SETTINGS
from tests.loops import for_each

rng = np.random.default_rng(0)
TASKS = mtl.Tasks.shared(
    rng.normal(size=(8, 3)),
    rng.normal(size=(8, 2)),
    task_names=["red", "blue"],
    feature_names=["a", "b", "c"],
)
LABELLED = mtl.Tasks.shared(rng.normal(size=(8, 3)), np.resize([1.0, -1.0, -1.0], (8, 2)))
NAMES = {
    "labelled": LABELLED, "tasks": TASKS, "W": mtl.Weights(TASKS, intercept=True), "L": mtl.Weights(TASKS, name="L"),
    "lam": mtl.Parameter(2.0), "mu": mtl.Parameter(0.5, "mu"),
    "A": rng.normal(size=(2, 2)), "C": rng.uniform(1, 2, size=(3, 2)), "rows": np.array([0, 2]),
    "Sigma1": mtl.FeaturePrecision(TASKS), "Sigma2": mtl.TaskPrecision(TASKS), "D": mtl.FeatureCovariance(TASKS),
    "P": np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]]),
}  # fmt: skip
BOUNDS = ["Sigma1 >> 0.1", "Sigma1 << 10", "Sigma2 >> 0.2", "5 >> Sigma2", "D.trace() <= 2"]


def value_at(objective, seed=1):
    """The objective at random weights: what a model means."""
    learned = {matrix for term in objective.terms for matrix in term.learned}
    bounds = [parse_constraint(text, NAMES) for text in BOUNDS]
    bounds = [bound for bound in bounds if bound.unknown in learned]
    form = mtl.minimize(objective + 0.0 * mtl.squared_loss(NAMES["W"], TASKS), bounds).form()
    random = np.random.default_rng(seed)
    blocks = {name: random.normal(size=shape) for name, shape in form.shapes.items()}
    return form.value(blocks)


OBJECTIVES = [
    "squared_loss(W, tasks)",
    "trace_norm(W) + 10 * squared_loss(W, tasks)",
    "lam * (1 - mu) * l21_norm(W) + lam * mu / 2 * ridge(W) + squared_loss(W, tasks)",
    "squared_loss(W + 2*L, tasks, mean=True) + l1_norm(W - L) / 4",
    "huber_loss(W - C, tasks, delta=0.5) + l1_norm(W @ A) + l12_norm(-W)",
    "squared_loss(W, tasks) + l1_norm(W[[0, 2], 'red']) + l21_norm(W[1:, :])",
    "squared_loss(W, tasks) + frobenius_norm(W.sum(axis=0)) + ridge(W.sum(axis=1)) + l1_norm(W[rows])",
    "squared_loss(W, tasks) + group_norm(W, [[0, 1], [2]], weights=[1.5, 1e-1]) + ridge(W, weights=2 * C)",
    "3 * (squared_loss(W, tasks) + l1_norm(W)) + l1_norm(W, weights=None) + graph_laplacian(W, L=[[1, -1], [-1, 1]])",
    "2 * structured_hinge(L, labelled, metric=FScore(beta=2)) + structured_hinge(L, labelled, RecallAt(k=0.5))",
    "structured_hinge(L, labelled, metric=[PrecisionAt(3), AUC()]) + structured_hinge(W, labelled) + l21_norm(W)",
    "squared_loss(W, tasks) + (C @ C[:2, :])[0, 0] * l1_norm(W)",
    "sum_of_squares(W, tasks) + lam * matrix_normal(W - L, Sigma1, Sigma2, eta=2, rho=1/4)",
    "sum_of_squares(W, tasks) + matrix_normal(L, P, Sigma2=Sigma2) + 0.5 * feature_covariance_norm(W, D)",
    "sum_of_squares(W, tasks) + matrix_normal(W, Sigma2=[[2, 0], [0, 1]], Sigma1=Sigma1)",
]


@for_each("text", OBJECTIVES)
def test_the_same_model_as_python_makes(text):
    expected = eval(text, {"__builtins__": {}}, NAMES | mtl.language.vocabulary.WORDS)
    assert value_at(parse_objective(text, NAMES)) == pytest.approx(value_at(expected), rel=1e-14)


@for_each("text", [
    "W >= 0", "W <= C", "0.5 <= W", "W.sum(axis=0) == 1", "L + W >= -1", "W[:, 'blue'] == [[1], [2], [3]]",
    "l1_norm(W) <= 3", "2 * trace_norm(L - C) <= 5", "columns_on_simplex(W, total=2)", "A @ W.sum(axis=0)[[0, 0], 'red'] == 1",
])  # fmt: skip
def test_the_same_constraint_as_python_makes(text):
    ours, expected = (
        parse_constraint(text, NAMES),
        eval(text, {"__builtins__": {}}, NAMES | mtl.language.vocabulary.WORDS),
    )
    assert type(ours.atom) is type(expected.atom) and ours.argument.shape == expected.argument.shape
    image = rng.normal(size=ours.argument.shape)
    assert ours.atom.violation(image) == expected.atom.violation(image)


@for_each(
    ("text", "printed", "name", "bound", "value"),
    [
        ("Sigma1>>0.01", "Sigma1 >> 0.01", "Sigma1", "lower", 0.01),
        ("Sigma2 << 1e2", "Sigma2 << 100.0", "Sigma2", "upper", 100.0),
        ("0.5 << Sigma1", "0.5 << Sigma1", "Sigma1", "lower", 0.5),
        ("3 >> Sigma2", "3 >> Sigma2", "Sigma2", "upper", 3.0),
        ("Sigma1 >> 1/8 + 1", "Sigma1 >> 1 / 8 + 1", "Sigma1", "lower", 1.125),
        ("D.trace()<=1", "D.trace() <= 1", "D", "trace", 1.0),
        ("2 >= D.trace()", "2 >= D.trace()", "D", "trace", 2.0),
        ("D.trace() == 1", "D.trace() == 1", "D", "trace", 1.0),
    ],
)
def test_what_a_constraint_says_of_a_learned_matrix(text, printed, name, bound, value):
    found = parse_constraint(text, NAMES)
    assert isinstance(found, RangeConstraint) and found.text == printed
    assert (found.unknown, found.bound, found.value) == (NAMES[name], bound, value)


def test_a_given_matrix_is_written_by_its_name():
    objective = parse_objective("matrix_normal(W, P, Sigma2, eta=2)", NAMES)
    assert objective.text == "matrix_normal(W, P, Sigma2, eta=2)"
    assert r"\operatorname{tr}(P W \Sigma_2 W^\top)" in objective.latex and r"\Sigma_1" not in objective.latex
    # a learned matrix of the other's name keeps its symbol
    names = NAMES | {"Sigma1": mtl.TaskPrecision(TASKS, "Sigma1")}
    assert r"P" not in parse_objective("matrix_normal(W, P, Sigma1)", names).latex


@for_each(("text", "printed"), [
    ("squared_loss( W,tasks )+lam*l1_norm(W,weights=C)",
     "squared_loss(W, tasks) + lam * l1_norm(W, weights=C)"),
    ("l21_norm(W@A)", "l21_norm(W @ A)"),
    ("structured_hinge(L,labelled,metric=[FScore(beta=2),AUC()])",
     "structured_hinge(L, labelled, metric=[FScore(beta=2), AUC()])"),
    ("group_norm(W, [[0,1],[2]])", "group_norm(W, [[0, 1], [2]])"),
    ("l1_norm(W)  # sparse\n  + ridge(L)", "l1_norm(W) + ridge(L)"),
])  # fmt: skip
def test_an_objective_prints_as_typed(text, printed):
    assert parse_objective(text, NAMES).text == printed


def test_a_constraint_prints_as_typed():
    assert parse_constraint("W[0,:]==[1,2]", NAMES).text == "W[0, :] == [1, 2]"
    assert parse_constraint("0<=W", NAMES).text == "0 <= W"


WRONG = [
    # text, line:column, part of the message, text under the caret
    ("l1_norm(V)", "1:9", "no name 'V'", "V"),
    ("squared_loss(W, task)", "1:17", "no name 'task'; did you mean 'tasks'?", "task"),
    ("l1_norm(W) + trace_nrm(W)", "1:14", "no word 'trace_nrm'; did you mean 'trace_norm'?", "trace_nrm"),
    ("l1_norm(W)\n + # comment (\n l1_nrm(W)", "3:2", "did you mean 'l1_norm'", "l1_nrm"),
    ("l1_norm(W) ** 2", "1:1", "powers are not in the language", "l1_norm(W) ** 2"),
    ("lam * l1_norm(W * L)", "1:15", "product of two unknowns is not affine", "W * L"),
    ("squared_loss(W)", "1:1", "write squared_loss(W, tasks, *, mean=False)", "squared_loss(W)"),
    ("structured_hinge(L, labelled, metric=FScor())", "1:38", "did you mean 'FScore'?", "FScor"),
    ("structured_hinge(L, labelled, metric=FScore)", "1:38", "FScore is a metric; write FScore()", "FScore"),
    ("structured_hinge(L, labelled, metric=[AUC(), AUC])", "1:46", "AUC is a metric; write AUC()", "AUC"),
    ("structured_hinge(L, labelled, metric=FScore(beta=0))", "1:38", "beta must be a number", "FScore(beta=0)"),
    ("structured_hinge(L, labelled, metric=FScore(gamma=2))", "1:38", "write FScore(beta=1.0)", "FScore(gamma=2)"),
    ("structured_hinge(L, labelled, metric=PrecisionAt(0))", "1:38", "PrecisionAt(k=0): k must be a count", "PrecisionAt(0)"),
    ("structured_hinge(L, labelled, metric={'0': AUC()})", "1:38", "a list is written [a, b]", "{'0': AUC()}"),
    ("structured_hinge(L, labelled, metrics=AUC())", "1:1", "it takes metric", None),
    ("FScore() + 1", "1:1", "a metric cannot stand beside +; write structured_hinge(W, tasks, metric=FScore())", "FScore()"),
    ("-AUC()", "1:1", "a metric has no sign; write structured_hinge(W, tasks, metric=AUC())", "-AUC()"),
    ("FScore(beta=2)", "1:1", "this is a metric; write structured_hinge(W, tasks, metric=FScore(beta=2.0))", "FScore(beta=2)"),
    ("W", "1:1", "this is an expression of weights", "W"),
    ("2.5", "1:1", "this is a number", "2.5"),
    ("W >= 0", "1:1", "this is a constraint", "W >= 0"),
    ("l1_norm(W), ridge(W)", "1:1", "not several separated by commas", "l1_norm(W), ridge(W)"),
    ("l1_norm(W", "1:8", "'(' is never closed", "("),
    ("l1_norm(W))", "1:11", "')' closes no bracket", ")"),
    ("l1_norm(W) + (ridge(W]", "1:22", "']' closes no bracket", "]"),
    ("l1_norm(W) ridge(W)", "1:1", "cannot be read as an expression", None),
    ("l1_norm(W) +", "1:13", "cannot be read as an expression", None),
    ("l1_norm(W.H)", "1:9", "only attributes in the language are .T, .sum(axis=...) and .trace()", "W.H"),
    ("l1_norm(tasks.T)", "1:9", ".T belongs to an expression of weights, not to a Tasks object", "tasks"),
    ("l1_norm(W.mean(axis=0))", "1:9", "only words of the language, .sum(axis=...) and .trace() can be called", "W.mean"),
    ("l1_norm(tasks.sum())", "1:9", "not to a Tasks object", "tasks"),
    ("l1_norm", "1:1", "write l1_norm(W, ...)", "l1_norm"),
    ("W(tasks)", "1:1", "W is an expression of weights, and cannot be called", "W"),
    ("l1_norm(W[0, 1, 2])", "1:11", "at most two indices", "0, 1, 2"),
    ("l1_norm(W[0.5])", "1:11", "not a number", "0.5"),
    ("l1_norm(W['green'])", "1:9", "no name 'green'", "W['green']"),
    ("l1_norm(W[7])", "1:9", "out of range", "W[7]"),
    ("l1_norm(lam[0])", "1:9", "a parameter has no rows", "lam"),
    ("tasks + l1_norm(W)", "1:1", "a Tasks object cannot stand beside +", "tasks"),
    ("'a' * l1_norm(W)", "1:1", "text in quotes cannot stand beside *", "'a'"),
    ("[2] * 3 * l1_norm(W)", "1:1", "name the matrix in [arrays]", "[2]"),
    ("True * l1_norm(W)", "1:1", "a truth value cannot stand beside *", "True"),
    ("(A / 0)[0, 0] * l1_norm(W)", "1:2", "divide by zero", "A / 0"),
    ("l1_norm(W) * 1j", "1:14", "1j is not in the language", "1j"),
    ("l1_norm(W) if lam else ridge(W)", "1:1", "conditions are not in the language", None),
    ("l1_norm(W) // 2", "1:1", "write /", "l1_norm(W) // 2"),
    ("+l1_norm(W)", "1:1", "only - can stand before", "+l1_norm(W)"),
    ("l1_norm(*W)", "1:9", "* cannot stand before an argument", "*W"),
    ("l1_norm(W, **C)", "1:14", "** cannot stand before an argument", "C"),
    ("l1_norm([W])", "1:10", "a list holds numbers", "W"),
    ("", "1:1", "the text is empty", None),
    ("  # nothing", "1:1", "the text is empty", None),
    ("'é' + l1_norm(zz)", "1:15", "no name 'zz'", "zz"),
    ("99999999999999999999 * l1_norm(W)", "1:1", "write it as 1e20", "99999999999999999999"),
    ("\0", "1:1", "cannot be read", None),
    ("Sigma1", "1:1", "this is a matrix that is learned", "Sigma1"),
    ("D.trace()", "1:1", "this is the trace of a matrix; it is bounded, D.trace() <= 1", "D.trace()"),
    ("ridge(W) + 2 * D.trace()", "1:16", "the trace of a matrix cannot stand beside *; it is bounded, D.trace() <= 1", "D.trace()"),
    ("-D.trace()", "1:1", "the trace of a matrix has no sign", "-D.trace()"),
    ("ridge(W @ Sigma2)", "1:7", "Sigma2 is a matrix that is learned beside the weights", "W @ Sigma2"),
    ("matrix_normal(W, Sigma2, Sigma1)", "1:1", 'Sigma1 must be a FeaturePrecision, and Sigma2 is a TaskPrecision; write Sigma1 = "FeaturePrecision" in [learned]', None),
    ("matrix_normal(W, Sigma1)", "1:1", 'needs Sigma2; write matrix_normal(W, Sigma1, Sigma2) with Sigma1 = "FeaturePrecision" in [learned]', None),
    ("matrix_normal(W, Sigma1, tau)", "1:26", 'no name \'tau\'; declare it in [learned]: tau = "TaskPrecision"', "tau"),
    ("task_covariance_norm(W, Omega=tau)", "1:31", 'declare it in [learned]: tau = "TaskCovariance"', "tau"),
    ("matrix_normal(W, FeaturePrecision, Sigma2)", "1:18", 'declare Sigma1 = "FeaturePrecision" in [learned], and write Sigma1 here', "FeaturePrecision"),
    ("matrix_normal(W, Sigma1, TaskPrecision(tasks))", "1:26", 'declare Sigma2 = "TaskPrecision" in [learned]', "TaskPrecision"),
    ("feature_covariance_norm(W, P)", "1:1", "an array is given; with a given covariance the penalty is", None),
    ("ridge(Sigma1.sum())", "1:7", ".sum() belongs to an expression of weights, not to a matrix that is learned", "Sigma1"),
    ("ridge(W.trace())", "1:7", ".trace() belongs to a matrix that is learned, not to an expression of weights", "W"),
    ("D.trace(1) * ridge(W)", "1:1", "write .trace()", "D.trace(1)"),
    ("1 << 9999999999 * 1", "1:1", "<< bounds a matrix that is learned by a number, as in Sigma1 << 100; this is a number", "1"),
    ("ridge(W) + [Sigma1]", "1:13", "not a matrix that is learned", "Sigma1"),
]  # fmt: skip


@for_each(("text", "place", "message", "under"), WRONG)
def test_a_mistake_is_shown_where_it_stands(text, place, message, under):
    with pytest.raises(ModelError) as caught:
        parse_objective(text, NAMES)
    first, *block = str(caught.value).split("\n")
    assert first.startswith(f"text:{place}: ") and message in first
    if not text:  # no line to show
        assert not block
        return
    shown, caret = block
    assert shown == f"  {place[0]} | {text.split(chr(10))[int(place[0]) - 1]}"
    if under is not None:
        start = caret.index("^")
        assert shown[start : start + caret.count("^")] == under


WRONG_CONSTRAINTS = [
    ("0 <= W <= 1", "1:1", 'two constraints: write "0 <= W", "W <= 1"'),
    ("W in C", "1:1", "the language has >=, <= and =="),
    ("W >= A", "1:1", "does not fit the shape"),
    ("W", "1:1", "a constraint is expected, this is an expression of weights"),
    ("1 <= 2", "1:1", "contains no weights"),
    ("W >= 0 and W <= 1", "1:1", "one constraint for each comparison"),
    ("not W >= 0", "1:1", "not is not in the language"),
    ("W >= lam", "1:1", "a Parameter may only multiply a term"),
    ("tasks >= 0", "1:1", "a Tasks object cannot be compared"),
    ("0.01 << Sigma1 << 100", "1:1", 'two constraints: write "0.01 << Sigma1", "Sigma1 << 100"'),
    ("Sigma1 >> 0.01 << 100", "1:1", 'two constraints: write "Sigma1 >> 0.01", "Sigma1 << 100"'),
    ("0.01 << (Sigma1 << 100)", "1:1", 'two constraints: write "0.01 << Sigma1", "Sigma1 << 100"'),
    ("0.01 <= Sigma1 <= 100", "1:1", 'two constraints: write "0.01 << Sigma1", "Sigma1 << 100"'),
    ("0 <= D.trace() <= 1", "1:1", 'two constraints: write "0 <= D.trace()", "D.trace() <= 1"'),
    ("Sigma1 >> 0.01 <= 3", "1:1", "a constraint cannot be compared"),
    ("Sigma1 >> lam", "1:1", "the bound must be a plain number"),
    ("Sigma1 >> -1", "1:1", "a finite number > 0"),
    ("W >> 0", "1:1", "this is an expression of weights; weights are compared by >= and <="),
    ("0.01 << W", "1:9", "this is an expression of weights; weights are compared by >= and <="),
    ("tasks >> 1", "1:1", "this is a Tasks object"),
    ("D.trace() >> 1", "1:1", "this is the trace of a matrix; it is bounded, D.trace() <= 1"),
    ("D.trace() <= lam", "1:1", "the bound of a trace must be a plain, finite number > 0"),
    ("Sigma1", "1:1", "this is a matrix that is learned; write Sigma1 >> 0.01"),
    ("D", "1:1", "this is a matrix that is learned; write D.trace() <= 1"),
    ("D.trace()", "1:1", "this is the trace of a matrix; it is bounded, D.trace() <= 1"),
    ("FScore() <= 0.5", "1:1",
     "a metric cannot be compared; write structured_hinge(W, tasks, metric=FScore())"),
]  # fmt: skip


@for_each(("text", "place", "message"), WRONG_CONSTRAINTS)
def test_a_wrong_constraint_is_refused(text, place, message):
    with pytest.raises(ModelError) as caught:
        parse_constraint(text, NAMES)
    assert str(caught.value).startswith(f"text:{place}: ") and message in str(caught.value)


def test_what_the_data_do_not_suit_stays_an_error_of_the_data():
    with pytest.raises(DataError, match=r"^text:1:11: hinge_loss\(W, tasks\): label .* in task 'red'"):
        parse_objective("ridge(W) +hinge_loss(W, tasks)", NAMES)


ATTACKS = [
    "__import__('os').system('true')", "().__class__.__bases__[0].__subclasses__()", "W.__class__",
    "W.sum.__globals__", "l1_norm.__globals__", "(lambda: l1_norm(W))()", "[l1_norm(W) for W in [1]]",
    "(W := 3)", "f'{W}'", "open('x')", "eval('1')", "l1_norm(W).__init__", "W[l1_norm]", "(yield W)",
    "{**W}", "W if W else W", "lam.value", "tasks.X", "A.dump('x')", "1 .__add__(2)",
    "l1_norm(W) ** 9 ** 9 ** 9 ** 9", "9 ** 9 ** 9 * l1_norm(W)", "'a' * 10000000000", "[0] * 10000000000",
    "1 << 99999999999999", "Sigma1.__class__", "Sigma1.tasks", "D.trace().unknown", "D.trace.__func__",
]  # fmt: skip


@for_each("text", ATTACKS)
def test_code_is_refused_and_not_run(text):
    with pytest.raises(ModelError, match=r"^text:1:"):
        parse_objective(text, NAMES)
    with pytest.raises(ModelError, match=r"^text:1:"):
        parse_constraint(text, NAMES)


@for_each(
    "text",
    [
        "l1_norm(W) + " * 400 + "l1_norm(W)",
        "(" * (SETTINGS.nested_levels + 1) + "l1_norm(W)" + ")" * (SETTINGS.nested_levels + 1),
        "-" * 5000 + "l1_norm(W)",
        "l1_norm(W[" * 150 + "0" + "])" * 150,
        "l1_norm(W)" + " " * SETTINGS.text_characters,
        "1" * 5000 + " * l1_norm(W)",
    ],
)
def test_limits_hold_without_a_crash(text):
    with pytest.raises(ModelError, match=r"^text:1:"):
        parse_objective(text, NAMES)


def test_constants_cannot_be_made_huge():
    column = np.ones((4000, 1))
    with pytest.raises(ModelError, match="more than 10,000,000 products"):
        parse_objective("l1_norm(W) * (c @ r)[0, 0]", NAMES | {"c": column, "r": column.T})


def test_a_sum_of_many_terms_is_read():
    text = " + ".join(["l1_norm(W)"] * 150)
    assert len(parse_objective(text, NAMES).terms) == 150


pieces = st.sampled_from(
    ["W", "L", "lam", "A", "C", "tasks", "l1_norm(", "squared_loss(", "W, tasks)", ")", "(", "[", "]", ", ", " + ", " - ",
     " * ", " / ", " @ ", " >= ", " == ", ".sum(", "axis=0", "mean=", "0", "1", "2.5", "'red'", ":", "True", "None", "-", "\n", "#", "é",
     "Sigma1", "Sigma2", "D", " >> ", " << ", ".trace()", "matrix_normal("]
)  # fmt: skip


@pytest.mark.slow
@given(st.one_of(st.text(max_size=40), st.lists(pieces, max_size=14).map("".join)))
def test_any_text_gives_a_model_or_an_error_with_its_place(text):
    for read, kind in ((parse_objective, Objective), (parse_constraint, Constraint | RangeConstraint)):
        try:
            assert isinstance(read(text, NAMES), kind)
        except MTLError as error:
            assert str(error).startswith("text:")
