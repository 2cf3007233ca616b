"""Named models: each is its statement, solved with a proof, and its value is its paper's formula in plain numpy."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LinearRegression

import mtldsl as mtl
from mtldsl.cli import model_pages
from mtldsl.errors import DataError, ModelError
from mtldsl.problems.cross_check_comparison import BlockCheck
from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import MODELS
from mtldsl.problems.separate_models import separate_models
from tests.fuzz.formulas import planes
from tests.inference.brute_force import chosen_entries
from tests.loops import for_each

NAMES = [each.name for each in MODELS]
N, D, M = 9, 4, 3


def small(seed=0):
    """Real labels of rank one with noise, and their signs about the median."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    Y = X @ rng.normal(size=(D, 1)) @ rng.normal(size=(1, M)) + 0.3 * rng.normal(size=(N, M))
    return X, Y, np.where(np.median(Y, axis=0) <= Y, 1.0, -1.0)


X, Y, SIGNS = small()
REAL, SIGN = mtl.Tasks.shared(X, Y), mtl.Tasks.shared(X, SIGNS)


def tasks_of(each: NamedModel) -> mtl.Tasks:
    return SIGN if "hinge" in each.statement or each.edges is not None else REAL


def values_of(each: NamedModel) -> dict:
    """Numbers with which no weights are zero: every parameter another one."""
    values = {name: 0.9 - 0.2 * i for i, name in enumerate(each.parameters)} | {"r": 1, "trace": 1.0}
    if each.edges is not None and "mu" in values:
        values["mu"] = 0.02  # 0.7 leaves no edge
    return {name: values[name] for name in each.parameters} | dict(each.defaults)


# ---------------------------------------------------------------------------------- a statement and its model
@for_each("each", MODELS, ids=NAMES)
def test_it_prints_as_it_is_stated_with_the_numbers_of_its_words(each):
    values = values_of(each)
    problem = mtl.model(each.name, tasks_of(each), **values)
    objective, constraints = each.written(values)
    assert problem.objective.text == objective
    assert [c.text for c in problem.constraints] == constraints
    if set(each.coefficients) == set(each.parameters):
        assert str(problem) == str(each)
    assert {p.name: p.value for p in problem.parameters} == {name: values[name] for name in each.coefficients}
    # the weights of no edges are not unknowns
    assert {w.name for w in problem.weights} == set(each.weights[:1] if each.edges == () else each.weights)
    assert [s.name for s in problem.learned] == list(each.learned)


def test_every_name_is_one_model_and_every_line_is_filled():
    spelled = [name.lower() for each in MODELS for name in (each.name, *each.also)]
    assert len(spelled) == len(set(spelled))
    assert list(mtl.models()) == NAMES
    for each in MODELS:
        assert each.about.endswith(".") and "\n" not in each.about and each.source and each.family
        assert not each.note or each.note.endswith(".")
        stated = {str(mtl.model(name, tasks_of(each), **values_of(each))) for name in (each.name, *each.also)}
        assert len(stated) == 1


# ------------------------------------------------------------------------- the papers' formulas in plain numpy
def squares(W):
    return np.sum((X @ W - Y) ** 2)


def norms(W):
    return np.sum(np.linalg.norm(X @ W - Y, axis=0))


def rows(W):
    return np.sum(np.linalg.norm(W, axis=1))


def columns(W):
    return np.sum(np.linalg.norm(W, axis=0))


def entries(W):
    return np.sum(np.abs(W))


def nuclear(W):
    return np.linalg.norm(W, "nuc")


def log_rank(W, eps):
    """One term a feature: singular values that are missing for d > m count as zeros."""
    sigma = np.zeros(D)
    sigma[: min(D, M)] = np.linalg.svd(W, compute_uv=False)
    return np.sum(np.log1p(np.sqrt(sigma**2 + eps)))


def structured(W, metric):
    """max over all 2^n labellings of every task."""
    tasks = zip(SIGNS.T, (X @ W).T, strict=True)
    return sum(max(delta + slope @ z for delta, slope in planes(metric, y)) for y, z in tasks)


def hinge(W):
    return np.sum(np.maximum(0.0, 1.0 - SIGNS * (X @ W)))


def ranking(W):
    total = 0.0
    for y, z in zip(SIGNS.T, (X @ W).T, strict=True):
        pairs = z[y > 0][:, None] - z[y < 0][None, :]
        total += np.mean(np.maximum(0.0, 1.0 - 2.0 * pairs))
    return total


def fetr(s, v):
    S1, S2 = s.Sigma1.precision, s.Sigma2.precision
    logs = M * np.linalg.slogdet(S1)[1] + D * np.linalg.slogdet(S2)[1]
    return squares(s.W) + v["eta"] * np.trace(S1 @ s.W @ S2 @ s.W.T) - v["rho"] * logs


def clustered(W, lower, upper, trace):
    """min tr(W S^-1 W^T) by Lagrange's dual: the largest, over multipliers t of the trace, of sum min (s^2 / v + t v) - t trace."""
    s = np.append(np.linalg.svd(W, compute_uv=False), np.zeros(max(M - D, 0)))

    def dual(log_t):
        v = np.clip(s / np.exp(log_t / 2), lower, upper)
        return np.exp(log_t) * trace - np.sum(s**2 / v + np.exp(log_t) * v)

    return -minimize_scalar(dual, bounds=(-12.0, 12.0), method="bounded", options={"xatol": 1e-12}).fun


#: name -> the objective at a solution, as the paper writes it
FORMULAS = {
    "STL": lambda s, v: squares(s.W) + v["lam"] * np.sum(s.W**2) / 2,
    "Lasso": lambda s, v: squares(s.W) / 2 + v["rho"] * entries(s.W),
    "L21": lambda s, v: squares(s.W) / 2 + v["rho"] * rows(s.W),
    "NN-MTL": lambda s, v: squares(s.W) / 2 + v["rho"] * nuclear(s.W),
    "Minimax-MTL": lambda s, v: ((X @ s.W - Y) ** 2).mean(axis=0).max() / 2 + v["rho"] * nuclear(s.W),
    "Robust-MTL": lambda s, v: squares(s.L + s.S) + v["rho1"] * nuclear(s.L) + v["rho2"] * columns(s.S),
    "rMTFL": lambda s, v: squares(s.P + s.Q) + v["rho1"] * rows(s.P) + v["rho2"] * columns(s.Q),
    "Dirty model": lambda s, v: (
        squares(s.P + s.Q) / 2 + v["rho1"] * np.abs(s.P).max(axis=1).sum() + v["rho2"] * entries(s.Q)
    ),
    "Incoherent sparse and low-rank": lambda s, v: squares(s.P + s.Q) + v["gamma"] * entries(s.P),
    "CMTFL": lambda s, v: norms(s.W) + v["rho"] * rows(s.W),
    "Square-root trace norm": lambda s, v: norms(s.W) + v["rho"] * nuclear(s.W),
    "NC-CMTL": lambda s, v: norms(s.W) + v["mu"] * log_rank(s.W, v["eps"]),
    "NC-MTL": lambda s, v: squares(s.W) + v["mu"] * log_rank(s.W, v["eps"]),
    "Capped-MTL": lambda s, v: (
        squares(s.W) + v["mu"] * np.minimum(np.linalg.svd(s.W, compute_uv=False), v["tau"]).sum()
    ),
    "Reduced-rank regression": lambda s, v: squares(s.W),
    "MTFL": lambda s, v: squares(s.W) + v["gamma"] * nuclear(s.W) ** 2,
    "MTRL": lambda s, v: squares(s.W) + v["gamma"] * nuclear(s.W) ** 2,
    "FETR": fetr,
    "MTFRL": fetr,
    "MSSL": lambda s, v: (
        squares(s.W)
        + v["eta"] * np.trace(s.W @ s.Sigma2.precision @ s.W.T)
        - len(s.W) * np.linalg.slogdet(s.Sigma2.precision)[1]
        + v["lam"] * np.abs(s.Sigma2.precision).sum()
    ),
    "cCMTL": lambda s, v: squares(s.W) + v["gamma"] * clustered(s.W, v["lower"], v["upper"], v["trace"]),
    "MT-MKL": lambda s, v: (
        v["C"] * hinge(s.W)
        + parts(s.W, np.r_[s.theta.values], [np.ones((M, M)), *(np.diag(e) for e in np.eye(M))])
    ),
    "Vanilla MTL": lambda s, v: v["C"] * hinge(s.W) + shared_and_own(s.W, 1.0, 1.0),
    "Union": lambda s, v: v["C"] * hinge(np.tile(s.W[:, :1], M)) + np.sum(s.W.mean(axis=1) ** 2) / 2,
    "Individual": lambda s, v: v["C"] * hinge(s.W) + np.sum(s.W**2) / 2,
    "Regularized MTL": lambda s, v: hinge(s.W) + shared_and_own(s.W, v["lam0"], v["lam1"]),
    "Frustratingly easy domain adaptation": lambda s, v: v["C"] * hinge(s.W) + shared_and_own(s.W, 1.0, 1.0),
    "SMTL(l11+F1)": lambda s, v: entries(s.W) + v["lam"] * structured(s.W, "FScore"),
    "SMTL(l21+F1)": lambda s, v: rows(s.W) + v["lam"] * structured(s.W, "FScore"),
    "SMTL(trace+F1)": lambda s, v: nuclear(s.W) + v["lam"] * structured(s.W, "FScore"),
    "SMTL(l11+AUC)": lambda s, v: entries(s.W) + v["lam"] * structured(s.W, "AUC"),
    "SMTL(l21+AUC)": lambda s, v: rows(s.W) + v["lam"] * structured(s.W, "AUC"),
    "SMTL(trace+AUC)": lambda s, v: nuclear(s.W) + v["lam"] * structured(s.W, "AUC"),
    "MTL-CLS(l11)": lambda s, v: entries(s.W) + 2 * v["lam"] * hinge(s.W),
    "MTL-CLS(l21)": lambda s, v: rows(s.W) + 2 * v["lam"] * hinge(s.W),
    "MTL-CLS(trace)": lambda s, v: nuclear(s.W) + 2 * v["lam"] * hinge(s.W),
    "StructSVM": lambda s, v: np.sum(s.W**2) / 2 + v["lam"] * ranking(s.W),
    "CGM": lambda s, v: clique_hinge(s) + v["lam"] * (np.sum(s.U**2) / 2 + np.sum(edge_norms(s.V)) ** 2 / 2),
    "Structured SVM": lambda s, v: clique_hinge(s) + v["lam"] * (np.sum(s.U**2) + np.sum(s.V**2)) / 2,
    "No edges": lambda s, v: (
        np.sum(np.maximum(0, 1 - SIGNS * (X @ (s.U[:, 1::2] - s.U[:, 0::2])))) / N
        + v["lam"] * np.sum(s.U**2) / 2
    ),
    "HLLM-L1": lambda s, v: (
        log_likelihood(s) + v["lam"] * np.sum(s.U**2) / 2 + v["mu"] * np.sum(edge_norms(s.V))
    ),
}


def edge_norms(V):
    return [np.linalg.norm(V[:, 4 * c : 4 * c + 4]) for c in range(M)]


def labelling_scores(s):
    """(n, 2^m) of every labelling, node by node and pair by pair, and which of them is the true one."""
    labellings, chosen = chosen_entries(M, list(combinations(range(M), 2)))
    wrong = np.sum(labellings != (SIGNS > 0)[:, None, :], axis=2)
    return X @ np.hstack([s.U, s.V]) @ chosen.T, wrong.argmin(axis=1), wrong


def clique_hinge(s):
    scores, true, wrong = labelling_scores(s)
    return np.mean((scores + wrong).max(axis=1) - scores[np.arange(N), true])


def log_likelihood(s):
    scores, true, _ = labelling_scores(s)
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(N), true])


def parts(W, theta, kernels):
    """1/2 sum_m ||W_m||^2_{Q_m} / theta_m over the best parts: with R_m = B_m B_m', W_m = V_m B_m' costs ||V_m||^2 / theta_m.

    The best V_m is theta_m Z B_m for one Z with sum_m theta_m Z R_m = W.
    """
    Z = np.linalg.lstsq(sum(t * R for t, R in zip(theta, kernels, strict=True)), W.T)[0].T
    roots = [np.linalg.eigh(R) for R in kernels]
    halves = [vectors * np.sqrt(np.maximum(values, 0)) for values, vectors in roots]
    V = [t * Z @ B for t, B in zip(theta, halves, strict=True)]
    np.testing.assert_allclose(sum(v @ B.T for v, B in zip(V, halves, strict=True)), W, atol=1e-10)
    return sum(np.sum(v**2) / t for v, t in zip(V, theta, strict=True) if t > 0) / 2


def shared_and_own(W, lam0, lam1):
    """min over w_0 of lam0 / 2 ||w_0||^2 + lam1 / 2 sum_t ||w_t - w_0||^2, where its gradient is zero."""
    w0 = lam1 * W.sum(axis=1) / (lam0 + M * lam1)
    return lam0 / 2 * np.sum(w0**2) + lam1 / 2 * np.sum((W - w0[:, None]) ** 2)


@pytest.mark.by_default("NC-CMTL")
@pytest.mark.parametrize("each", MODELS, ids=NAMES)
def test_it_is_solved_with_a_proof_and_is_its_papers_formula(each):
    values = values_of(each)
    problem = mtl.model(each.name, tasks_of(each), **values)
    solution = problem.solve()
    assert solution.status == ("optimal" if problem.is_convex else "stationary")
    check = problem.cross_check(solution)
    assert check.agrees and isinstance(check, BlockCheck) != problem.is_convex
    assert all(np.abs(block).max() > 1e-3 for block in solution.blocks.values())  # no term sleeps
    assert solution.objective == pytest.approx(FORMULAS[each.name](solution, values), rel=1e-9)


# ---------------------------------------------------------------------------------- what the notes say
def test_the_rank_of_reduced_rank_regression():
    """With X of full column rank: the projection of the least-squares fit on its leading right singular vector."""
    solution = mtl.model("Reduced-rank regression", REAL, r=1).solve()
    fit = X @ np.linalg.lstsq(X, Y, rcond=None)[0]
    leading = np.linalg.svd(fit)[2][:1]
    assert np.linalg.matrix_rank(solution.W, tol=1e-8) == 1
    assert solution.objective == pytest.approx(np.sum((fit @ leading.T @ leading - Y) ** 2), rel=1e-6)


# -------------------------------------------------------------------------------------- parameters and options
def test_the_parameters_are_the_problems_own():
    problem = mtl.model("Robust-MTL", REAL, rho1=1.0, rho2=np.float32(0.5))
    rho1, rho2 = problem.parameters
    assert (rho1.name, rho1.value, rho2.name, rho2.value) == ("rho1", 1.0, "rho2", 0.5)
    weak, strong = problem.path(rho1, [0.1, 10.0])
    assert weak.parameters == {"rho1": 0.1, "rho2": 0.5} and weak.objective < strong.objective


def test_an_intercept_goes_with_the_first_weights():
    shifted = mtl.Tasks.shared(X, Y + 7.0)
    problem = mtl.model("Dirty model", shifted, rho1=1.0, rho2=1.0, intercept=True)
    assert [w.intercept for w in problem.weights] == [True, False]
    np.testing.assert_allclose(problem.solve().intercept, (Y + 7.0).mean(axis=0), atol=1.0)
    assert not mtl.model("Lasso", REAL, rho=1.0).weights[0].intercept


def test_a_model_is_extended_as_any_other():
    problem = mtl.model("NN-MTL", REAL, rho=0.5)
    W = problem.weights[0]
    more = mtl.minimize(problem.objective + 0.1 * mtl.ridge(W), [W >= 0])
    assert more.objective.text == "squared_loss(W, tasks) + rho * trace_norm(W) + 0.1 * ridge(W)"
    assert more.solve().W.min() >= 0


def test_numbers_that_are_no_coefficients_are_written_out():
    problem = mtl.model("FETR", REAL, eta=0.5, upper=np.int64(20))
    assert problem.parameters == []
    assert str(problem).splitlines() == [
        "minimize    sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=0.5, rho=1)",
        "subject to  Sigma1 >> 0.01",
        "            Sigma1 << 20",
        "            Sigma2 >> 0.01",
        "            Sigma2 << 20",
    ]
    assert str(mtl.model("Incoherent sparse and low-rank", REAL, gamma=1, tau=1e-3)).endswith(
        "trace_norm(Q) <= 0.001"
    )


WRONG = [
    (("nn-mtl", REAL), {"rho": 1}, "there is no model 'nn-mtl'; did you mean 'NN-MTL'?"),
    (("Robust-MTRL", REAL), {}, "there is no model 'Robust-MTRL'; did you mean 'Robust-MTL'?"),
    (("ridge", REAL), {}, "there is no model 'ridge'; write one of 'Lasso', 'L21', 'NN-MTL', 'Robust-MTL'"),
    ((REAL, "Lasso"), {}, "the first argument is a name, such as 'Robust-MTL'"),
    (("Lasso", X), {"rho": 1}, r"model('Lasso', ndarray): the second argument must be a Tasks object"),
    (("Robust-MTL", REAL), {"rho1": 1}, "Robust-MTL needs rho2; write model('Robust-MTL', tasks, rho1=..., rho2=...)"),
    (("Lasso", REAL), {}, "Lasso needs rho; write model('Lasso', tasks, rho=...)"),
    (("Lasso", REAL), {"lam": 1}, "Lasso has no parameter 'lam'; write model('Lasso', tasks, rho=...)"),
    (("Lasso", REAL), {"rho": -1.0}, "Parameter 'rho' cannot be -1.0"),
    (("Lasso", REAL), {"rho": "1"}, "Lasso: rho must be a finite number, not text in quotes"),
    (("Lasso", REAL), {"rho": True}, "Lasso: rho must be a finite number, not True"),
    (("Lasso", REAL), {"rho": np.nan}, "Lasso: rho must be a finite number, not nan"),
    (("Lasso", REAL), {"rho": mtl.Parameter(1.0)}, "Lasso: rho must be a finite number, not a parameter"),
    (("Lasso", REAL), {"rho": 1.0, "intercept": 1}, "write intercept=True or intercept=False"),
    (("FETR", REAL), {"lower": 2, "upper": 1}, "no matrix has all eigenvalues >= 2 and <= 1"),
    (("Capped-MTL", REAL), {"mu": 1, "tau": 0}, "tau must be a number > 0"),
    (("MTL-CLS(l21)", REAL), {"lam": 1}, "MTL-CLS(l21):1:25: "),
    (("CGM", SIGN), {"lam": 1, "intercept": 1}, "write intercept=True or intercept=False"),
    (("CGM", SIGN), {"lam": 1, "r": 0}, "r is the largest number of groups, a whole number >= 1"),
    (("SSVM", SIGN), {"lam": 1, "edges": [(0, 3)]}, "3 in (0, 3) is not a label; there are 'task0', 'task1', 'task2'"),
    (("CGM", REAL), {"lam": 1}, "CGM:1:1: "),
    (("Lasso", REAL), {"rho": 1, "edges": "all"},
     "Lasso has no edges between labels; leave out edges, and write model('Lasso', tasks, rho=...)"),
]  # fmt: skip


def test_the_edges_of_a_model_over_labels_are_given_with_it():
    import networkx

    for edges in ([(0, 2)], networkx.Graph([("task0", "task2")])):
        problem = mtl.model("SSVM", SIGN, lam=0.1, edges=edges)
        assert problem.weights[1].cliques.members == ((0, 2),)
    assert mtl.model("CGM", SIGN, lam=0.1).weights[1].cliques.n_cliques == 3


@for_each("arguments, parameters, message", WRONG)
def test_what_is_wrong_is_said(arguments, parameters, message):
    with pytest.raises((ModelError, DataError)) as error:
        mtl.model(*arguments, **parameters)
    assert message in str(error.value)


# --------------------------------------------------------------------------------------------- problem files
DATA = '[data]\ndataset = "low_rank"\nn_tasks = 3\nn_samples = 12\nn_features = 4\nrandom_state = 0\n'


def test_a_problem_file_names_a_model(load):
    file = load('model = "Robust-MTL"\n' + DATA + "[parameters]\nrho1 = 2.0\nrho2 = 1.5\n")
    same = mtl.model("Robust-MTL", file.tasks_train, rho1=2.0, rho2=1.5)
    assert str(file.problem) == str(same)
    assert {p.name: p.value for p in file.problem.parameters} == {"rho1": 2.0, "rho2": 1.5}
    assert file.problem.solve().objective == pytest.approx(same.solve().objective, rel=1e-9)


def test_a_named_model_with_bounds_intercept_and_constraint(load):
    file = load(
        'model = "FETR"\nsubject_to = ["W >= 0"]\n'
        + DATA
        + "[weights]\nW = {intercept = true}\n[parameters]\nupper = 50\n"
    )
    assert file.problem.weights[0].intercept
    assert [c.text for c in file.problem.constraints] == [
        "Sigma1 >> 0.01", "Sigma1 << 50", "Sigma2 >> 0.01", "Sigma2 << 50", "W >= 0",
    ]  # fmt: skip


PARAMETERS = "[parameters]\nrho1 = 2.0\nrho2 = 1.5\n"
WRONG_FILES = [
    ('model = "lasso(W) + ridge(W)"\n', PARAMETERS, "1:10",
     "'lasso(W) + ridge(W)' is a formula, and `model` takes the name of a model; write it as `minimize`"),
    ("model = 3\n", "", "1:9", "model must be text in quotes"),
    ('model = "Lasso"\nminimize = "l1_norm(W)"\n', "", "1:1", "a file has minimize or model, not both"),
    ('model = "Robust-MTL"\n', "[parameters]\nrho1 = 2.0\nrho3 = 1.5\n", "1:10",
     "needs rho2; give every parameter a number in [parameters]; it has no parameter 'rho3'"),
    ('model = "Robust-MTL"\n', PARAMETERS + "rho3 = 1\n", "11:1", "'rho3' is not used in the model"),
    ('model = "Robust-MTL"\n', PARAMETERS + "[weights]\nW = {}\n", "12:1", "'W' is not used in the model"),
    ('model = "Robust-MTL"\nsubject_to = ["V >= 0"]\n', PARAMETERS, "2:16", "there is no name 'V'"),
    ('model = "FETR"\nsubject_to = ["Sigma1 << 0.001"]\n', "", "2:16", "Sigma1 << 0.001: "),
]  # fmt: skip


@for_each("top, tables, place, message", WRONG_FILES)
def test_a_mistake_is_shown_where_it_stands(load, top, tables, place, message):
    with pytest.raises((ModelError, DataError)) as error:
        load(top + DATA + tables)
    assert f"p.toml:{place}: " in str(error.value) and message in str(error.value)


# ------------------------------------------------------------------------------------------------- catalogue
def test_the_page_has_a_row_for_every_model():
    page = model_pages.markdown()
    for each in MODELS:
        row = next(line for line in page.splitlines() if line.startswith(f"| **{each.name}**"))
        assert f"`{each.statement}`" in row and all(f"`{text}`" in row for text in each.subject_to)
        title = re.search(r'"[^"]+"', each.source)
        cited = each.source in row or " et al." in row
        assert len(row.split(" | ")) == 4 and cited and (title is None or title[0] in page)
    is_marked = {
        name: "Not convex" in next(line for line in page.splitlines() if line.startswith(f"| **{name}**"))
        for name in ("FETR", "MTRL")
    }
    assert is_marked == {"FETR": True, "MTRL": False}


def test_the_command_lists_and_shows(command_line):
    code, out, _ = command_line("models")
    assert code == 0 and out.startswith(str(mtl.models())) and repr(mtl.models()) == str(mtl.models())
    assert all(each.name in out and each.statement in out for each in MODELS)
    code, out, _ = command_line("models", "Calibrated MTL")
    assert code == 0 and out.startswith("CMTFL: ") and "mtl.model('CMTFL', tasks, rho=...)" in out
    code, out, _ = command_line("models", "FETR", "--json")
    assert json.loads(out)["parameters"] == ["eta", "rho", "lower", "upper"]
    code, out, _ = command_line("models", "--json")
    assert [each["name"] for each in json.loads(out)] == NAMES


def test_the_command_refuses(command_line):
    code, _, err = command_line("models", "Lesso")
    assert code == 2 and "there is no model 'Lesso'; did you mean 'Lasso'?" in err
    code, _, err = command_line("models", "Lasso", "--markdown")
    assert code == 2 and "leave out the name" in err


def small_groups(m=5, n=9, seed=0):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(n + 40, 3)) for _ in range(m)]
    labels = [X @ [2.0, 1.0, 0.0] + rng.normal(size=len(X)) for X in inputs]
    return [(X[:n], y[:n], X[n:], y[n:]) for X, y in zip(inputs, labels, strict=True)]


@pytest.mark.slow
def test_small_groups_are_no_worse_than_least_squares():
    """A mean of R^2 over three rows a task follows the worst of them, and shrinks everything."""
    data = small_groups()
    alone = separate_models(mtl.Tasks.separate([one[0] for one in data], [one[1] for one in data]))
    own = alone.predict([one[2] for one in data])
    plain = [LinearRegression().fit(X, y).predict(new) for X, y, new, _ in data]
    truth = [one[3] for one in data]
    errors = [np.mean(np.abs(np.subtract(found, truth))) for found in (own, plain)]
    assert errors[0] < 1.02 * errors[1]


def test_columns_of_other_units_choose_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 6))
    Y = X @ rng.normal(size=(6, 2)) + [[0.1, 4.0]] * rng.normal(size=(24, 2))
    lams = [separate_models(mtl.Tasks.shared(X, Y * [1.0, unit])).parameters["lam"] for unit in (1.0, 1e3)]
    assert lams[0] == lams[1]
