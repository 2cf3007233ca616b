"""Matrices that are learned beside the weights: what can be typed, and every mistake, with the words that refuse it."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.structures import Range, SpectralMatrix
from mtldsl.errors import ModelError
from tests.loops import for_each

rng = np.random.default_rng(1)
TASKS = mtl.Tasks.shared(
    rng.normal(size=(12, 4)),
    rng.normal(size=(12, 3)),
    feature_names=["area", "age", "noise", "rooms"],
    task_names=["Oslo", "Bergen", "Narvik"],
)
W = mtl.Weights(TASKS)
S1, S2 = mtl.FeaturePrecision(TASKS), mtl.TaskPrecision(TASKS)
D, OMEGA = mtl.FeatureCovariance(TASKS), mtl.TaskCovariance(TASKS)
par = mtl.Parameter(1.0, name="par")


def boxes(*matrices):
    return [bound for S in matrices for bound in (S >> 0.01, S << 100)]


def fetr(*more, subject_to=(), first=S1, second=S2, **options):
    objective = mtl.sum_of_squares(W, TASKS) + mtl.matrix_normal(W, first, second, **options)
    return mtl.minimize(sum(more, objective), subject_to=list(subject_to))


def mtfl(*more, bounds=(), word=mtl.feature_covariance_norm, matrix=D):
    objective = sum(more, mtl.sum_of_squares(W, TASKS) + word(W, matrix))
    return mtl.minimize(objective, subject_to=list(bounds))


def given(A):
    """The matrix A in place of Sigma1."""
    return lambda: mtl.matrix_normal(W, A, S2)


def spoiled(entry, at=(0, 0)):
    A = np.eye(4, dtype=np.result_type(entry, float))
    A[at] = entry
    return A


PLAIN = "the bound must be a plain number, which stands for that multiple of the identity"
NO_ARITHMETIC = ["a matrix that is learned beside the weights", "not in arithmetic"]

WRONG = {
    # ------------------------------------------------------------------------------------------- missing bounds
    "no bounds": (
        lambda: fetr(),
        [
            "matrix_normal(W, Sigma1, Sigma2): Sigma1 has no upper bound",
            "the objective is unbounded below",
            "Add to subject_to: Sigma1 << 100",
        ],
    ),
    "lower bounds only": (
        lambda: fetr(subject_to=[S1 >> 0.01, S2 >> 0.01]),
        ["Sigma1 has no upper bound", "Sigma1 = t I with t -> infinity", "Add to subject_to: Sigma1 << 100"],
    ),
    "upper bounds only": (
        lambda: fetr(subject_to=[S1 << 1, S2 << 1]),
        ["Sigma1 has no lower bound", "may become singular", "Add to subject_to: Sigma1 >> 0.01"],
    ),
    "bounds on one": (
        lambda: fetr(subject_to=boxes(S1)),
        ["Sigma2 has no upper bound", "Add to subject_to: Sigma2 << 100"],
    ),
    "one given, no bounds": (
        lambda: fetr(first=np.eye(4)),
        ["matrix_normal(W, array(4, 4), Sigma2)", "Sigma2 has no upper bound", "Sigma2 << 100"],
    ),
    "no trace": (
        lambda: mtfl(),
        ["D has no bound on its trace", "the penalty has no minimum", "Add to subject_to: D.trace() <= 1"],
    ),
    "no trace of tasks": (
        lambda: mtfl(word=mtl.task_covariance_norm, matrix=OMEGA),
        ["Omega has no bound on its trace", "Add to subject_to: Omega.trace() <= 1"],
    ),
    "bounds that cross": (
        lambda: fetr(subject_to=[S1 >> 10, S1 << 1, *boxes(S2)]),
        ["Sigma1 << 1", "no matrix has all eigenvalues >= 10 and <= 1", "relax"],
    ),
    "the tightest of many bounds cross": (
        lambda: fetr(subject_to=[*boxes(S1, S2), S1 >> 3, S1 << 50, S1 << 2]),
        ["no matrix has all eigenvalues >= 3 and <= 2"],
    ),
    # ---------------------------------------------------------------------------------------- in no term, in two
    "bound of a matrix in no term": (
        lambda: mtl.minimize(mtl.sum_of_squares(W, TASKS) + mtl.ridge(W), subject_to=[S1 >> 1]),
        ["Sigma1 >> 1: Sigma1 is in no term of the objective", "leave it out, or add the term"],
    ),
    "bound of a namesake": (
        lambda: fetr(subject_to=[*boxes(S1, S2), mtl.FeaturePrecision(TASKS) >> 0.1]),
        ["Sigma1 >> 0.1", "in no term"],
    ),
    "in two terms": (
        lambda: fetr(mtl.matrix_normal(W, S1, mtl.TaskPrecision(TASKS, "Other")), subject_to=boxes(S1, S2)),
        [
            "Sigma1 stands in matrix_normal(W, Sigma1, Sigma2) and again in matrix_normal(W, Sigma1, Other)",
            'FeaturePrecision(tasks, name="...")',
        ],
    ),
    "the same covariance twice": (
        lambda: mtfl(mtl.feature_covariance_norm(2 * W, D), bounds=[D.trace() <= 1]),
        ["D stands in", "and again in", 'FeatureCovariance(tasks, name="...")'],
    ),
    # ---------------------------------------------------------------------------------- wrong kind, order, shape
    "in the wrong order": (
        lambda: mtl.matrix_normal(W, S2, S1),
        ["Sigma1 must be a FeaturePrecision, and Sigma2 is a TaskPrecision", "FeaturePrecision(tasks)"],
    ),
    "covariance for precision": (
        lambda: mtl.matrix_normal(W, D, S2),
        ["Sigma1 must be a FeaturePrecision, and D is a FeatureCovariance"],
    ),
    "precision for covariance": (
        lambda: mtl.feature_covariance_norm(W, S1),
        ["D must be a FeatureCovariance, and Sigma1 is a FeaturePrecision", "D = FeatureCovariance(tasks)"],
    ),
    "of tasks for features": (
        lambda: mtl.feature_covariance_norm(W, OMEGA),
        ["D must be a FeatureCovariance, and Omega is a TaskCovariance"],
    ),
    "some rows": (
        lambda: mtl.matrix_normal(W[:2], S1, S2),
        ["Sigma1 is 4 x 4, but W[:2, :] has 2 rows (features)"],
    ),
    "some columns": (
        lambda: mtl.matrix_normal(W[:, :2], S1, S2),
        ["Sigma2 is 3 x 3, but W[:, :2] has 2 columns (tasks)"],
    ),
    "the kind itself": (
        lambda: mtl.matrix_normal(W, mtl.FeaturePrecision, S2),
        ["matrix_normal(W, <class", "symmetric positive definite matrix"],
    ),
    "not of tasks": (
        lambda: mtl.FeaturePrecision(W),
        ["FeaturePrecision(Weights)", "must be a Tasks object", "FeaturePrecision(Tasks.shared(X, Y))"],
    ),
    "of a number": (lambda: mtl.TaskPrecision(4), ["TaskPrecision(int)", "must be a Tasks object"]),
    # -------------------------------------------------------------------------------------------- given matrices
    "given of the wrong size": (
        given(np.eye(3)),
        ["matrix_normal(W, array(3, 3), Sigma2)", "given as a 3 x 3 matrix, but W needs 4 x 4"],
    ),
    "given not symmetric": (
        given(spoiled(0.5, at=(0, 2))),
        ["not symmetric", "entry [0, 2] is 0.5 but [2, 0] is 0", "write (A + A.T) / 2"],
    ),
    "given singular": (given(spoiled(0.0)), ["the eigenvalue 0", "positive definite", "1e-6 * np.eye(4)"]),
    "given indefinite": (given(spoiled(-2.0)), ["the eigenvalue -2", "positive definite"]),
    "given NaN": (given(spoiled(np.nan)), ["contains NaN or infinity", "finite numbers"]),
    "given infinity": (given(spoiled(np.inf)), ["contains NaN or infinity", "finite numbers"]),
    "given complex": (given(spoiled(1j)), ["complex numbers", "A.real"]),
    "given ragged": (given([[1, 2], [3]]), ["[[1, 2], [3]]", "a square array of numbers"]),
    "given text": (given([["a", "b"]] * 2), ["a square array of numbers"]),
    "given a vector": (given(np.ones(4)), ["this has the shape (4,)"]),
    "given three axes": (given(np.ones((4, 4, 1))), ["this has the shape (4, 4, 1)"]),
    "given not square": (given(np.ones((4, 3))), ["this has the shape (4, 3)"]),
    "given a number": (given(1.0), ["Sigma1 must be a FeaturePrecision, or an array (4, 4)", "this is 1"]),
    "given None": (given(None), ["Sigma1 must be a FeaturePrecision, or an array (4, 4)", "this is None"]),
    "given a name": (given("Sigma1"), ["or an array (4, 4) that fixes it; this is 'Sigma1'"]),
    "given weights": (given(W), ["or an array (4, 4) that fixes it; this is W"]),
    "given tasks": (given(TASKS), ["Sigma1 must be a FeaturePrecision", "this is <Tasks"]),
    "given covariance": (
        lambda: mtl.feature_covariance_norm(W, np.eye(4)),
        ["D is a matrix that is learned", "2 * kronecker_ridge(W, rows=inv(D), columns=eye(m))"],
    ),
    "given covariance of tasks": (
        lambda: mtl.task_covariance_norm(W, np.eye(3)),
        ["2 * kronecker_ridge(W, rows=eye(d), columns=inv(Omega))"],
    ),
    # ------------------------------------------------------------------------------------------------- arguments
    "both missing": (
        lambda: mtl.matrix_normal(W),
        [
            "matrix_normal needs Sigma1, Sigma2",
            "Sigma1 = FeaturePrecision(tasks), Sigma2 = TaskPrecision(tasks)",
        ],
    ),
    "second missing": (lambda: mtl.matrix_normal(W, S1), ["matrix_normal needs Sigma2"]),
    "first missing": (lambda: mtl.matrix_normal(W, Sigma2=S2), ["matrix_normal needs Sigma1;"]),
    "covariance missing": (
        lambda: mtl.feature_covariance_norm(W),
        ["needs D", "D = FeatureCovariance(tasks)"],
    ),
    "given twice": (lambda: mtl.matrix_normal(W, S1, S2, Sigma1=S1), ["no parameter 'Sigma1'", "eta, rho"]),
    "unknown parameter": (
        lambda: mtl.matrix_normal(W, S1, S2, gamma=1),
        ["no parameter 'gamma'", "eta, rho"],
    ),
    "too many": (lambda: mtl.matrix_normal(W, S1, S2, 1, 1, 1), ["too many arguments"]),
    "eta zero": (lambda: mtl.matrix_normal(W, S1, S2, eta=0), ["eta=0", "eta must be a number > 0"]),
    "eta negative": (lambda: mtl.matrix_normal(W, S1, S2, eta=-1), ["eta=-1", "eta must be a number > 0"]),
    "eta NaN": (lambda: mtl.matrix_normal(W, S1, S2, eta=np.nan), ["eta=nan", "eta must be a number > 0"]),
    "eta infinite": (
        lambda: mtl.matrix_normal(W, S1, S2, eta=np.inf),
        ["eta=inf", "eta must be a number > 0"],
    ),
    "eta text": (lambda: mtl.matrix_normal(W, S1, S2, eta="1"), ["eta='1'", "eta must be a number > 0"]),
    "eta true": (lambda: mtl.matrix_normal(W, S1, S2, eta=True), ["eta=True", "eta must be a number > 0"]),
    "eta a Parameter": (lambda: mtl.matrix_normal(W, S1, S2, eta=par), ["eta must be a number > 0"]),
    "rho an array": (lambda: mtl.matrix_normal(W, S1, S2, rho=np.ones(2)), ["rho must be a number > 0"]),
    "rho zero": (lambda: mtl.matrix_normal(W, S1, S2, rho=0.0), ["rho=0", "rho must be a number > 0"]),
    # ----------------------------------------------------------------------------------------------------- names
    "name of another unknown": (
        lambda: fetr(second=(T := mtl.TaskPrecision(TASKS, "Sigma1")), subject_to=boxes(S1, T)),
        ["two unknowns are both called 'Sigma1'", 'TaskPrecision(tasks, name="...")'],
    ),
    "name of the weights": (
        lambda: fetr(first=(T := mtl.FeaturePrecision(TASKS, "W")), subject_to=boxes(T, S2)),
        ["two unknowns are both called 'W'", 'FeaturePrecision(tasks, name="...")'],
    ),
    "name with a space": (lambda: mtl.FeaturePrecision(TASKS, "a b"), ["name='a b'", "Python identifier"]),
    "name a number": (lambda: mtl.TaskCovariance(TASKS, 3), ["TaskCovariance(..., name=3)", "identifier"]),
    # ------------------------------------------------------------------------------------- bounds on a precision
    "bound by a matrix": (lambda: S1 >> np.eye(4), ["Sigma1 >> array(", PLAIN, "write Sigma1 >> 0.01"]),
    "bounded by a matrix": (lambda: np.eye(4) << S1, ["Sigma1 >> array(", PLAIN]),
    "upper bound a matrix": (lambda: S1 << np.eye(4), [PLAIN, "write Sigma1 << 100"]),
    "bound a Parameter": (lambda: S1 >> par, ["Sigma1 >> par", PLAIN]),
    "bound by the other": (lambda: S1 >> S2, ["Sigma1 >> Sigma2", PLAIN]),
    "bound true": (lambda: S1 >> True, ["Sigma1 >> True", PLAIN]),
    "bound text": (lambda: S1 >> "a", ["Sigma1 >> 'a'", PLAIN]),
    "bound None": (lambda: S1 << None, ["Sigma1 << None", PLAIN]),
    "bound negative": (lambda: S1 >> -1, ["Sigma1 >> -1", "must be a finite number > 0"]),
    "bound zero": (lambda: S1 >> 0, ["Sigma1 >> 0", "must be a finite number > 0"]),
    "upper bound zero": (lambda: S1 << 0, ["Sigma1 << 0", "must be a finite number > 0"]),
    "bound infinite": (lambda: S1 << np.inf, ["inf", "finite number"]),
    "bound NaN": (lambda: S1 << np.nan, ["nan", "finite number"]),
    "trace of a precision": (
        lambda: S1.trace() <= 1,
        ["Sigma1.trace() <= 1", "in the order of semidefinite matrices", "Sigma1 >> 0.01, Sigma1 << 100"],
    ),
    # ------------------------------------------------------------------------------------- bounds on a covariance
    "covariance from above": (
        lambda: D << 1,
        ["D << 1: a covariance is bounded by its trace", "D.trace() <= 1"],
    ),
    "covariance from below": (lambda: OMEGA >> 0.1, ["Omega >> 0.1", "write Omega.trace() <= 1"]),
    "trace alone": (
        lambda: mtfl(bounds=[D.trace()]),
        ["subject_to contains D.trace(), which is not a constraint"],
    ),
    "trace negative": (lambda: D.trace() <= -1, ["D.trace() <= -1", "finite number > 0"]),
    "trace a Parameter": (lambda: D.trace() <= par, ["D.trace() <= par", "plain, finite number > 0"]),
    "trace an array": (
        lambda: D.trace() <= np.ones(2),
        ["D.trace() <= array([1., 1.])", "plain, finite number"],
    ),
    "trace from below": (lambda: D.trace() >= 1, ["D.trace() >= 1", "bounded from above", "D.trace() <= 1"]),
    "trace above": (lambda: D.trace() > 1, ["bounded from above", "D.trace() <= 1"]),
    "trace below": (lambda: D.trace() < 1, ["D.trace() < 1: a strict inequality", "D.trace() <= 1"]),
    "trace unequal": (lambda: D.trace() != 1, ["D.trace() != 1", "not a convex constraint"]),
    "trace chained": (lambda: 0 <= D.trace() <= 1, ["D.trace() >= 0", "bounded from above"]),
    "trace in the other order": (lambda: D.trace() << 1, ["a trace stands in a comparison by itself"]),
    "trace plus": (lambda: D.trace() + 1 <= 2, ["a trace stands in a comparison by itself"]),
    "trace times": (
        lambda: 2 * D.trace() <= 1,
        ["a trace stands in a comparison by itself", "D.trace() <= 1"],
    ),
    # ------------------------------------------------------------------------------------------ other comparisons
    ">=": (lambda: S1 >= 1, ["Sigma1 >= 1: Sigma1 is a matrix that is learned", "write Sigma1 >> 1"]),
    ">": (lambda: S1 > 0.5, ["Sigma1 > 0.5", "write Sigma1 >> 0.5"]),
    "<=": (lambda: S1 <= 7, ["Sigma1 <= 7", "write Sigma1 << 7"]),
    "<": (lambda: S1 < 1, ["Sigma1 < 1", "write Sigma1 << 1"]),
    "<= from the left": (lambda: S1 >= 2, ["Sigma1 >= 2", "write Sigma1 >> 2"]),
    ">= by an array": (lambda: np.eye(4) <= S1, ["Sigma1 >= array(", "write Sigma1 >> 0.01"]),
    "==": (lambda: S1 == 1, ["Sigma1 == 1", "write a given matrix in place of Sigma1"]),
    "== an array": (lambda: np.eye(4) == S1, ["Sigma1 == array(", "write a given matrix in place of Sigma1"]),
    "!=": (lambda: S1 != 1, ["Sigma1 != 1", "is a matrix that is learned"]),
    "covariance >=": (lambda: D >= 0, ["D >= 0", "write D.trace() <= 1"]),
    "covariance ==": (lambda: np.eye(4) == D, ["D == array(", "write D.trace() <= 1"]),
    "chain of >>": (lambda: 100 >> S1 >> 0.01, ["a chain is two", "Sigma1 >> 0.01, Sigma1 << 100"]),
    "chain of <<": (lambda: 0.01 << S1 << 100, ["Sigma1 >> 0.01 is a constraint already", "a chain is two"]),
    "chain in brackets": (lambda: 100 >> (S1 >> 0.01), ["is a constraint already"]),
    "and": (lambda: S1 >> 1 and S1 << 2, ["Sigma1 >> 1 has no truth value", "two constraints"]),
    "one constraint, no list": (
        lambda: mtl.minimize(mtl.sum_of_squares(W, TASKS) + mtl.matrix_normal(W, S1, S2), subject_to=S1 >> 1),
        ["subject_to=Sigma1 >> 1: write a list, subject_to=[Sigma1 >> 1]"],
    ),
    "bounded from weights": (lambda: W >= S1, ["W >= Sigma1", "must be a number, an array"]),
    # -------------------------------------------------------------------------------------------------- arithmetic
    "plus": (lambda: S1 + 1, NO_ARITHMETIC),
    "plus from the left": (lambda: 1 + S1, NO_ARITHMETIC),
    "plus each other": (lambda: S1 + S2, NO_ARITHMETIC),
    "minus weights": (lambda: W - S1, NO_ARITHMETIC),
    "times a number": (lambda: 2 * S1, NO_ARITHMETIC),
    "times a Parameter": (lambda: par * S1, NO_ARITHMETIC),
    "a Parameter after": (lambda: S1 * par, NO_ARITHMETIC),
    "times weights": (lambda: S1 @ W, NO_ARITHMETIC),
    "weights times": (lambda: W @ S2, NO_ARITHMETIC),
    "array times": (lambda: np.eye(4) @ S1, NO_ARITHMETIC),
    "times array": (lambda: S1 @ np.eye(4), NO_ARITHMETIC),
    "negative": (lambda: -S1, NO_ARITHMETIC),
    "inverse": (lambda: S1**-1, NO_ARITHMETIC),
    "one over": (lambda: 1 / S1, NO_ARITHMETIC),
    "transposed": (lambda: S1.T, NO_ARITHMETIC),
    "entry": (lambda: S1[0, 0], NO_ARITHMETIC),
    "iterated": (lambda: list(S1), NO_ARITHMETIC),
    "as a term": (lambda: mtl.sum_of_squares(W, TASKS) + S1, ["+ Sigma1", "only terms"]),
    "in a word of weights": (lambda: mtl.l21_norm(S1), ["l21_norm(Sigma1)", "there is l1_norm alone"]),
    "in a loss": (
        lambda: mtl.sum_of_squares(S1, TASKS),
        ["sum_of_squares(Sigma1, ...)", "not FeaturePrecision"],
    ),
    "as an objective": (lambda: mtl.minimize(S1), ["minimize(Sigma1)", "sum of losses and regularizers"]),
    # ------------------------------------------------------------------------------------------ of the whole model
    "negative coefficient": (
        lambda: mtl.minimize(
            mtl.sum_of_squares(W, TASKS) - 0.5 * mtl.matrix_normal(W, S1, S2), subject_to=boxes(S1, S2)
        ),
        [
            "-0.5 * matrix_normal(W, Sigma1, Sigma2)",
            "the coefficient -0.5 < 0 is unbounded below",
            "+ 0.5 * matrix_normal(W, Sigma1, Sigma2)",
        ],
    ),
    "negative coefficient of a covariance": (
        lambda: mtl.minimize(
            mtl.sum_of_squares(W, TASKS) - mtl.feature_covariance_norm(W, D), subject_to=[D.trace() <= 1]
        ),
        ["-1 * feature_covariance_norm(W, D)", "not convex", "+ 1 * feature_covariance_norm(W, D)"],
    ),
    "bounded as a constraint": (
        lambda: mtl.matrix_normal(W, S1, S2) <= 3,
        ["matrix_normal(W, Sigma1, Sigma2) <= 3", "lam * matrix_normal(W, Sigma1, Sigma2)"],
    ),
    "product of terms": (
        lambda: mtl.matrix_normal(W, S1, S2) * mtl.ridge(W),
        ["matrix_normal(W, Sigma1, Sigma2)", "a number or a Parameter only"],
    ),
    "no data": (
        lambda: mtl.minimize(mtl.matrix_normal(W, S1, S2), subject_to=boxes(S1, S2)),
        ["there is no loss"],
    ),
    "cvxpy without matrices": (
        lambda: fetr(subject_to=boxes(S1, S2)).to_cvxpy(),
        ["matrix_normal(W, Sigma1, Sigma2) is not convex", "write to_cvxpy(at=solution)"],
    ),
    "lambda_max": (
        lambda: mtl.minimize(
            mtl.sum_of_squares(W, TASKS) + par * mtl.matrix_normal(W, S1, S2), subject_to=boxes(S1, S2)
        ).lambda_max(par),
        ["lambda_max(par)", "matrix_normal(W, Sigma1, Sigma2) is not convex"],
    ),
    "lambda_max of a norm beside it": (
        lambda: fetr(par * mtl.l1_norm(W), subject_to=boxes(S1, S2)).lambda_max(par),
        ["lambda_max(par)", "not convex", "zero may be stationary without being optimal"],
    ),
    "lambda_max of a covariance norm": (
        lambda: mtl.minimize(
            mtl.sum_of_squares(W, TASKS) + par * mtl.feature_covariance_norm(W, D),
            subject_to=[D.trace() <= 1],
        ).lambda_max(par),
        ["lambda_max(par)", "one weight matrix with norms"],
    ),
}


@for_each("name", WRONG)
def test_each_mistake_is_refused_with_what_to_write(name):
    mistake, fragments = WRONG[name]
    with pytest.raises(ModelError) as refusal:
        mistake()
    for fragment in fragments:
        assert fragment in str(refusal.value)


# ----------------------------------------------------------------------------------------- what can be typed


def bound_by(*constraints):
    """The ranges that the compiled model states of its matrices."""
    (term,) = fetr(subject_to=[*constraints, S2 >> 0.5, S2 << 2]).form().functions
    return term.atom.features


@for_each(
    "constraints",
    [
        lambda: [S1 >> 0.1, S1 << 10],
        lambda: [0.1 << S1, 10 >> S1],
        lambda: [S1 << 10, S1 >> 0.1],
        lambda: [S1 >> np.float64(0.1), S1 << np.int64(10)],
        lambda: [S1 >> 0.01, S1 >> 0.1, S1 << 100, S1 << 10],  # the tightest counts
    ],
)
def test_bounds_from_either_side(constraints):
    assert bound_by(*constraints()) == Range(0.1, 10.0)


def test_a_trace_is_bounded_from_either_side():
    for constraint in (D.trace() <= 2.5, D.trace() <= 2.5, D.trace() == 2.5):
        (term,) = mtfl(bounds=[constraint, D.trace() <= 7]).form().functions
        assert term.atom.range == Range(trace=2.5)


def test_equal_bounds_fix_a_matrix():
    """Then it is not learned, and the other alone remains."""
    problem = fetr(subject_to=[S1 >> 2, S1 << 2, *boxes(S2)])
    (term,) = problem.form().functions
    assert term.names == (None, "Sigma2") and not problem.is_convex
    np.testing.assert_array_equal(term.atom.features.dense(), 2 * np.eye(4))
    assert fetr(subject_to=[S1 >> 2, S1 << 2, S2 >> 3, S2 << 3]).is_convex


@for_each("kind", [np.asarray, np.ndarray.tolist, sparse.csr_array, sparse.coo_matrix])
def test_a_given_matrix_may_be_any_array(kind):
    A = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5
    (term,) = fetr(first=kind(A), subject_to=boxes(S2)).form().functions
    np.testing.assert_allclose(term.atom.features.dense(), A, atol=1e-12)
    assert isinstance(term.atom.features, SpectralMatrix) and term.names == (None, "Sigma2")


def test_a_given_matrix_is_copied():
    A = 2.0 * np.eye(4)
    problem = fetr(first=A, subject_to=boxes(S2))
    A[:] = 0.0
    (term,) = problem.form().functions
    np.testing.assert_allclose(term.atom.features.dense(), 2.0 * np.eye(4), atol=1e-14)


def test_keywords_in_any_order():
    for word in (
        mtl.matrix_normal(W, Sigma2=S2, Sigma1=S1, rho=2),
        mtl.matrix_normal(W, S1, Sigma2=S2, rho=2),
        mtl.matrix_normal(W, S1, S2, 1.0, 2.0),
    ):
        assert str(word) == "matrix_normal(W, Sigma1, Sigma2, rho=2)"


def test_unknowns_know_their_shape_and_names():
    assert (S1.shape, S1.axis, S1.kind, S1.names) == (
        (4, 4),
        "features",
        "precision",
        ("area", "age", "noise", "rooms"),
    )
    assert (S2.shape, S2.axis, S2.kind, S2.names) == (
        (3, 3),
        "tasks",
        "precision",
        ("Oslo", "Bergen", "Narvik"),
    )
    assert (D.shape, D.kind, repr(D)) == ((4, 4), "covariance", "D")
    assert (OMEGA.shape, OMEGA.kind, repr(OMEGA)) == ((3, 3), "covariance", "Omega")


def test_a_model_prints_what_was_typed():
    problem = fetr(eta=2, subject_to=[S1 >> 0.5, S1 << 2, 0.25 << S2, S2 << 4])
    assert str(problem).split("\n") == [
        "minimize    sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=2)",
        "subject to  Sigma1 >> 0.5",
        "            Sigma1 << 2",
        "            Sigma2 >> 0.25",
        "            Sigma2 << 4",
    ]


def test_a_sub_matrix_of_weights_has_unknowns_of_its_size():
    """From tasks of that many features."""
    part = mtl.FeaturePrecision(mtl.Tasks.shared(np.ones((2, 2)), np.ones((2, 1))))
    objective = mtl.sum_of_squares(W, TASKS) + mtl.matrix_normal(W[:2], part, S2) + 0.1 * mtl.ridge(W)
    solution = mtl.minimize(objective, subject_to=boxes(part, S2)).solve()
    assert solution.status == "stationary" and solution.Sigma1.shape == (2, 2)


def test_other_data_take_the_same_unknowns():
    """`with_tasks`: a cross-check on a subsample types the model again."""
    problem = fetr(subject_to=boxes(S1, S2))
    again = problem.with_tasks(TASKS.subsample(8, 0))
    assert str(again) == str(problem)
    assert again.solve().Sigma1.names == S1.names
