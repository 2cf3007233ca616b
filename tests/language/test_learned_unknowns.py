"""Matrices that are learned beside the weights: what can be typed, and every mistake, with the words that refuse it."""

import numpy as np
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from tests.language.typed import assert_refused, mistakes
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
    return mtl.matrix_normal(W, A, S2)


def spoiled(entry, at=(0, 0)):
    A = np.eye(4, dtype=np.result_type(entry, float))
    A[at] = entry
    return A


WRONG = """
# missing bounds
fetr() | matrix_normal(W, Sigma1, Sigma2): Sigma1 has no upper bound | the objective is unbounded below | Add to subject_to: Sigma1 << 100
fetr(subject_to=[S1 << 1, S2 << 1]) | Sigma1 has no lower bound | may become singular | Add to subject_to: Sigma1 >> 0.01
fetr(subject_to=boxes(S1)) | Sigma2 has no upper bound | Add to subject_to: Sigma2 << 100
fetr(first=np.eye(4)) | matrix_normal(W, array(4, 4), Sigma2) | Sigma2 has no upper bound | Sigma2 << 100
mtfl() | D has no bound on its trace | the penalty has no minimum | Add to subject_to: D.trace() <= 1
mtfl(word=mtl.task_covariance_norm, matrix=OMEGA) | Omega has no bound on its trace | Add to subject_to: Omega.trace() <= 1
fetr(subject_to=[S1 >> 10, S1 << 1, *boxes(S2)]) | Sigma1 << 1 | no matrix has all eigenvalues >= 10 and <= 1 | relax
# in no term, in two
mtl.minimize(mtl.sum_of_squares(W, TASKS) + mtl.ridge(W), subject_to=[S1 >> 1]) | Sigma1 >> 1: Sigma1 is in no term of the objective | leave it out, or add the term
fetr(subject_to=[*boxes(S1, S2), mtl.FeaturePrecision(TASKS) >> 0.1]) | Sigma1 >> 0.1 | in no term
fetr(mtl.matrix_normal(W, S1, mtl.TaskPrecision(TASKS, 'Other')), subject_to=boxes(S1, S2)) | Sigma1 stands in matrix_normal(W, Sigma1, Sigma2) and again in matrix_normal(W, Sigma1, Other) | FeaturePrecision(tasks, name="...")
mtfl(mtl.feature_covariance_norm(2 * W, D), bounds=[D.trace() <= 1]) | D stands in | and again in | FeatureCovariance(tasks, name="...")
# wrong kind, order, shape
mtl.matrix_normal(W, S2, S1) | Sigma1 must be a FeaturePrecision, and Sigma2 is a TaskPrecision | FeaturePrecision(tasks)
mtl.matrix_normal(W, D, S2) | Sigma1 must be a FeaturePrecision, and D is a FeatureCovariance
mtl.feature_covariance_norm(W, S1) | D must be a FeatureCovariance, and Sigma1 is a FeaturePrecision | D = FeatureCovariance(tasks)
mtl.matrix_normal(W[:2], S1, S2) | Sigma1 is 4 x 4, but W[:2, :] has 2 rows (features)
mtl.matrix_normal(W[:, :2], S1, S2) | Sigma2 is 3 x 3, but W[:, :2] has 2 columns (tasks)
mtl.matrix_normal(W, mtl.FeaturePrecision, S2) | matrix_normal(W, <class | symmetric positive definite matrix
mtl.FeaturePrecision(W) | FeaturePrecision(Weights) | must be a Tasks object | FeaturePrecision(Tasks.shared(X, Y))
# given matrices
given(np.eye(3)) | matrix_normal(W, array(3, 3), Sigma2) | given as a 3 x 3 matrix, but W needs 4 x 4
given(spoiled(0.5, at=(0, 2))) | not symmetric | entry [0, 2] is 0.5 but [2, 0] is 0 | write (A + A.T) / 2
given(spoiled(0.0)) | the eigenvalue 0 | positive definite | 1e-6 * np.eye(4)
given(spoiled(np.nan)) | contains NaN or infinity | finite numbers
given(spoiled(1j)) | complex numbers | A.real
given([[1, 2], [3]]) | [[1, 2], [3]] | a square array of numbers
given(np.ones(4)) | this has the shape (4,)
given(1.0) | Sigma1 must be a FeaturePrecision, or an array (4, 4) | this is 1
given('Sigma1') | or an array (4, 4) that fixes it; this is 'Sigma1'
given(W) | or an array (4, 4) that fixes it; this is W
mtl.feature_covariance_norm(W, np.eye(4)) | D is a matrix that is learned | 2 * kronecker_ridge(W, rows=inv(D), columns=eye(m))
mtl.task_covariance_norm(W, np.eye(3)) | 2 * kronecker_ridge(W, rows=eye(d), columns=inv(Omega))
# arguments
mtl.matrix_normal(W) | matrix_normal needs Sigma1, Sigma2 | Sigma1 = FeaturePrecision(tasks), Sigma2 = TaskPrecision(tasks)
mtl.matrix_normal(W, Sigma2=S2) | matrix_normal needs Sigma1;
mtl.feature_covariance_norm(W) | needs D | D = FeatureCovariance(tasks)
mtl.matrix_normal(W, S1, S2, Sigma1=S1) | no parameter 'Sigma1' | eta, rho
mtl.matrix_normal(W, S1, S2, eta=-1) | eta=-1 | eta must be a number > 0
mtl.matrix_normal(W, S1, S2, rho=np.ones(2)) | rho must be a number > 0
# names
fetr(second=(T := mtl.TaskPrecision(TASKS, 'Sigma1')), subject_to=boxes(S1, T)) | two unknowns are both called 'Sigma1' | TaskPrecision(tasks, name="...")
fetr(first=(T := mtl.FeaturePrecision(TASKS, 'W')), subject_to=boxes(T, S2)) | two unknowns are both called 'W' | FeaturePrecision(tasks, name="...")
mtl.FeaturePrecision(TASKS, 'a b') | name='a b' | Python identifier
# bounds on a precision
S1 >> np.eye(4) | Sigma1 >> array( | the bound must be a plain number, which stands for that multiple of the identity | write Sigma1 >> 0.01
S1 << np.eye(4) | the bound must be a plain number, which stands for that multiple of the identity | write Sigma1 << 100
S1 >> True | Sigma1 >> True | the bound must be a plain number, which stands for that multiple of the identity
S1 << 0 | Sigma1 << 0 | must be a finite number > 0
S1.trace() <= 1 | Sigma1.trace() <= 1 | in the order of semidefinite matrices | Sigma1 >> 0.01, Sigma1 << 100
# bounds on a covariance
D << 1 | D << 1: a covariance is bounded by its trace | D.trace() <= 1
OMEGA >> 0.1 | Omega >> 0.1 | write Omega.trace() <= 1
mtfl(bounds=[D.trace()]) | subject_to contains D.trace(), which is not a constraint
D.trace() <= -1 | D.trace() <= -1 | finite number > 0
D.trace() >= 1 | D.trace() >= 1 | bounded from above | D.trace() <= 1
D.trace() > 1 | bounded from above | D.trace() <= 1
D.trace() < 1 | D.trace() < 1: a strict inequality | D.trace() <= 1
D.trace() != 1 | D.trace() != 1 | not a convex constraint
0 <= D.trace() <= 1 | D.trace() >= 0 | bounded from above
D.trace() << 1 | a trace stands in a comparison by itself
2 * D.trace() <= 1 | a trace stands in a comparison by itself | D.trace() <= 1
# other comparisons
S1 >= 1 | Sigma1 >= 1: Sigma1 is a matrix that is learned | write Sigma1 >> 1
S1 > 0.5 | Sigma1 > 0.5 | write Sigma1 >> 0.5
S1 <= 7 | Sigma1 <= 7 | write Sigma1 << 7
np.eye(4) <= S1 | Sigma1 >= array( | write Sigma1 >> 0.01
S1 == 1 | Sigma1 == 1 | write a given matrix in place of Sigma1
S1 != 1 | Sigma1 != 1 | is a matrix that is learned
D >= 0 | D >= 0 | write D.trace() <= 1
np.eye(4) == D | D == array( | write D.trace() <= 1
100 >> S1 >> 0.01 | a chain is two | Sigma1 >> 0.01, Sigma1 << 100
0.01 << S1 << 100 | Sigma1 >> 0.01 is a constraint already | a chain is two
100 >> (S1 >> 0.01) | is a constraint already
S1 >> 1 and S1 << 2 | Sigma1 >> 1 has no truth value | two constraints
mtl.minimize(mtl.sum_of_squares(W, TASKS) + mtl.matrix_normal(W, S1, S2), subject_to=S1 >> 1) | subject_to=Sigma1 >> 1: write a list, subject_to=[Sigma1 >> 1]
W >= S1 | W >= Sigma1 | must be a number, an array
# arithmetic
S1 + 1 | a matrix that is learned beside the weights | not in arithmetic
W - S1 | a matrix that is learned beside the weights | not in arithmetic
2 * S1 | a matrix that is learned beside the weights | not in arithmetic
par * S1 | a matrix that is learned beside the weights | not in arithmetic
S1 @ W | a matrix that is learned beside the weights | not in arithmetic
W @ S2 | a matrix that is learned beside the weights | not in arithmetic
np.eye(4) @ S1 | a matrix that is learned beside the weights | not in arithmetic
-S1 | a matrix that is learned beside the weights | not in arithmetic
S1 ** (-1) | a matrix that is learned beside the weights | not in arithmetic
1 / S1 | a matrix that is learned beside the weights | not in arithmetic
S1.T | a matrix that is learned beside the weights | not in arithmetic
S1[0, 0] | a matrix that is learned beside the weights | not in arithmetic
list(S1) | a matrix that is learned beside the weights | not in arithmetic
mtl.sum_of_squares(W, TASKS) + S1 | + Sigma1 | only terms
mtl.sum_of_squares(S1, TASKS) | sum_of_squares(Sigma1, ...) | not FeaturePrecision
mtl.minimize(S1) | minimize(Sigma1) | sum of losses and regularizers
# of the whole model
mtl.minimize(mtl.sum_of_squares(W, TASKS) - 0.5 * mtl.matrix_normal(W, S1, S2), subject_to=boxes(S1, S2)) | -0.5 * matrix_normal(W, Sigma1, Sigma2) | the coefficient -0.5 < 0 is unbounded below | + 0.5 * matrix_normal(W, Sigma1, Sigma2)
mtl.minimize(mtl.sum_of_squares(W, TASKS) - mtl.feature_covariance_norm(W, D), subject_to=[D.trace() <= 1]) | -1 * feature_covariance_norm(W, D) | not convex | + 1 * feature_covariance_norm(W, D)
mtl.matrix_normal(W, S1, S2) <= 3 | matrix_normal(W, Sigma1, Sigma2) <= 3 | lam * matrix_normal(W, Sigma1, Sigma2)
fetr(subject_to=boxes(S1, S2)).to_cvxpy() | matrix_normal(W, Sigma1, Sigma2) is not convex | write to_cvxpy(at=solution)
mtl.minimize(mtl.sum_of_squares(W, TASKS) + par * mtl.matrix_normal(W, S1, S2), subject_to=boxes(S1, S2)).lambda_max(par) | lambda_max(par) | matrix_normal(W, Sigma1, Sigma2) is not convex
fetr(par * mtl.l1_norm(W), subject_to=boxes(S1, S2)).lambda_max(par) | lambda_max(par) | not convex | zero may be stationary without being optimal
mtl.minimize(mtl.sum_of_squares(W, TASKS) + par * mtl.feature_covariance_norm(W, D), subject_to=[D.trace() <= 1]).lambda_max(par) | lambda_max(par) | one weight matrix with norms
"""


@for_each("typed, said", mistakes(WRONG))
def test_each_mistake_is_refused_with_what_to_write(typed, said):
    assert_refused(typed, said, globals())


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
        assert term.atom.covariance == Range(trace=2.5)


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


def test_keywords_in_any_order():
    for word in (
        mtl.matrix_normal(W, Sigma2=S2, Sigma1=S1, rho=2),
        mtl.matrix_normal(W, S1, Sigma2=S2, rho=2),
        mtl.matrix_normal(W, S1, S2, 1.0, 2.0),
    ):
        assert str(word) == "matrix_normal(W, Sigma1, Sigma2, rho=2)"


def test_unknowns_know_their_shape_and_names():
    features, tasks = ("area", "age", "noise", "rooms"), ("Oslo", "Bergen", "Narvik")
    assert (S1.shape, S1.axis, S1.kind, S1.names) == ((4, 4), "features", "precision", features)
    assert (S2.shape, S2.axis, S2.kind, S2.names) == ((3, 3), "tasks", "precision", tasks)
    assert (D.shape, D.kind, repr(D)) == ((4, 4), "covariance", "D")
    assert (OMEGA.shape, OMEGA.kind, repr(OMEGA)) == ((3, 3), "covariance", "Omega")


def test_other_data_take_the_same_unknowns():
    """`with_tasks`: a cross-check on a subsample types the model again."""
    problem = fetr(subject_to=boxes(S1, S2))
    again = problem.with_tasks(TASKS.subsample(8, 0))
    assert str(again) == str(problem)
    assert again.solve().Sigma1.names == S1.names
