"""The laws of every reduction, on every model of a catalogue that it accepts: what its promise says of points, and of multipliers.

Values are those of the fast side's formulas where the easier form has them; functions above a spectrum are the reference's alone, and are
evaluated by it.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import mtldsl as mtl
from mtldsl.certificates.certificate import certify
from mtldsl.normal_form.reductions.block_reductions import (
    FixedStructures,
    LargerEps,
    LossesOfWeights,
    SmallerSide,
)
from mtldsl.normal_form.reductions.coordinates import CenterLabels, SampleSpan, WhitenedLosses
from mtldsl.normal_form.reductions.null_space import NullSpace
from mtldsl.normal_form.reductions.reduction import Promise, TaskSubset
from mtldsl.normal_form.terms.structure_term import learned_matrices
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.majorization import majorizations
from mtldsl.solvers.cutting_planes.lifted_admm import plane_function
from mtldsl.solvers.routes import accepting_routes, get_solver
from mtldsl.solvers.solver import Point
from tests.loops import for_each
from tests.models import MODELS as CONVEX
from tests.models import kept_in, separate, shared, with_weights
from tests.test_mixed_nonconvex import MODELS as NONCONVEX

OWN = {}
model = kept_in(OWN)


@model
def labels_far_from_zero_beside_another_loss():
    near = shared(1, n=20)
    tasks = near.with_targets(near.targets + np.repeat([2.0**20, 0.0, -(2.0**22), 2.0**21], near.counts))
    W = mtl.Weights(tasks, intercept=True)
    V = mtl.Weights(shared(2, labels="sign"), intercept=True, name="V")
    return mtl.minimize(
        mtl.absolute_loss(W, tasks) + mtl.logistic_loss(V, V.tasks) + mtl.l21_norm(W) + mtl.l1_norm(V - W)
    )


@model
def few_tasks_with_a_covariance_of_the_features():
    tasks = separate(3)
    W, D = mtl.Weights(tasks), mtl.FeatureCovariance(tasks)
    return mtl.minimize(
        mtl.squared_loss(W, tasks) + 0.4 * mtl.feature_covariance_norm(W, D), subject_to=[D.trace() <= 1]
    )


@model
def few_features_with_a_covariance_of_the_tasks():
    rng = np.random.default_rng(4)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 2)), rng.normal(size=(20, 5)))
    W, S = mtl.Weights(tasks), mtl.TaskCovariance(tasks)
    return mtl.minimize(
        mtl.squared_loss(W, tasks) + 0.7 * mtl.task_covariance_norm(W, S) + mtl.ridge(W),
        subject_to=[S.trace() <= 2],
    )


@model
def covariances_of_both_sides():
    tasks, W = with_weights(separate(5))
    A, B = mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    bounds = [A >> 0.1, A << 10.0, B >> 0.1, B << 10.0]
    return mtl.minimize(
        mtl.squared_loss(W, tasks) + 0.5 * mtl.matrix_normal(W, A, B) + mtl.l1_norm(W), subject_to=bounds
    )


@model
def rows_with_weights_bounds_and_a_ridge():
    tasks, W = with_weights(shared(6, missing=0.2, sample_weights=True).standardize(), intercept=True)
    weights = np.arange(1.0, 7.0)
    return mtl.minimize(
        mtl.huber_loss(W, tasks) + 2.0 * mtl.l21_norm(W, weights=weights) + mtl.l1_norm(W, weights=weights[:, None]),
        subject_to=[-np.outer(weights, [1.0, 2.0, 0.5, 1.0]) <= W],
    )  # fmt: skip


@model
def tasks_in_bounds_of_their_own():
    tasks, W = with_weights(separate(7), intercept=True)
    bound = np.linspace(-2.0, 0.0, 24).reshape(6, 4)
    return mtl.minimize(
        mtl.square_root_loss(W - bound, tasks, eps=0.1) + mtl.l12_norm(2.0 * W - 1.0) + mtl.l21_norm(W),
        subject_to=[bound <= W, W.sum(axis=0) <= 3.0, W - bound <= 4.0],
    )


@model
def f_score_between_two_other_losses_with_intercepts_moved():
    tasks, W = with_weights(shared(8, labels="sign"), intercept=True)
    return mtl.minimize(
        mtl.logistic_loss(W, tasks)
        + mtl.structured_hinge(2.0 * W - 0.3, tasks, metric=mtl.metrics.FScore())
        + 0.5 * mtl.squared_hinge_loss(W - 1.0, tasks)
        + mtl.trace_norm(W)
        + mtl.l1_norm(W)
    )


def few_samples(seed, repeated=False):
    """6 samples of 14 features; `repeated`: two of them are the same, so that their span is smaller."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(6, 14)), rng.normal(size=(6, 3))
    X[5] = X[0] if repeated else X[5]
    Y[2, 1] = np.nan
    return mtl.Tasks.shared(X, Y)


@model
def few_samples_with_an_intercept():
    tasks, W = with_weights(few_samples(9), intercept=True)
    return mtl.minimize(mtl.huber_loss(W, tasks) + 0.3 * mtl.trace_norm(W) + 0.1 * mtl.ridge(W))


@model
def few_samples_one_of_them_twice():
    tasks, W = with_weights(few_samples(10, repeated=True))
    return mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.squared_trace_norm(W))


@model
def few_samples_in_a_ball():
    tasks, W = with_weights(few_samples(11))
    return mtl.minimize(mtl.squared_loss(W, tasks), subject_to=[mtl.trace_norm(W) <= 1.0])


def between_features(seed, d=6):
    M = np.random.default_rng(seed).normal(size=(d, d))
    return M @ M.T + 0.1 * np.eye(d)


@model
def matrices_between_the_features_and_two_losses():
    tasks, W = with_weights(shared(12, labels="sign", missing=0.2), intercept=True)
    penalty = mtl.kronecker_ridge(-0.5 * W, between_features(1), 3.0 * np.eye(4)) + 0.2 * mtl.ridge(2.0 * W)
    singular = mtl.kronecker_ridge(W, np.outer(np.arange(6.0), np.arange(6.0)), np.eye(4))
    return mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.squared_hinge_loss(W, tasks) + penalty + singular)


@model
def a_matrix_between_the_features_of_separate_inputs():
    tasks, W = with_weights(separate(13))
    return mtl.minimize(
        mtl.absolute_loss(W, tasks) + 0.3 * mtl.kronecker_ridge(W, between_features(2), np.eye(4))
    )


@model
def rows_of_zeros_beside_a_smooth_rank():
    tasks, W = with_weights(shared(14, missing=0.2), intercept=True)
    own = mtl.square_root_loss(2.0 * W, tasks) + mtl.log_rank(-0.5 * W) + 0.1 * mtl.ridge(W)
    return mtl.minimize(own, subject_to=[W[0, :] == 0, W[3:5, :] == 0])


@model
def sums_and_differences_on_both_sides_beside_an_exact_rank():
    tasks, W = with_weights(separate(15, labels="sign"), intercept=True)
    equations = [W.sum(axis=0) == 0, W[:, 0] - 2.0 * W[:, 1] == 0, W[1, :] == W[2, :]]
    return mtl.minimize(mtl.hinge_loss(W, tasks) + mtl.log_rank(W, eps=0), subject_to=equations)


@model
def sparse_equations_of_sparse_inputs_and_a_second_matrix():
    rng = np.random.default_rng(16)
    X = scipy.sparse.random_array((25, 7), density=0.4, rng=rng, format="csr")
    tasks = mtl.Tasks.shared(X, rng.normal(size=(25, 3)))
    A = scipy.sparse.csr_array(np.array([[0.0, 0, 3, 0, 0, 0, 0], [1, 1, 0, 0, 0, -2, 0]]))
    W, S = mtl.Weights(tasks), mtl.Weights(tasks, name="S")
    loss = mtl.squared_loss(W + S, tasks) + 0.5 * mtl.squared_loss(W, tasks)
    penalty = 0.5 * mtl.capped_trace_norm(W, 0.4) + mtl.l1_norm(S - W) + 0.2 * mtl.ridge(S)
    return mtl.minimize(loss + penalty, subject_to=[A @ W == 0, S >= -1.0])


@model
def one_entry_fixed_is_no_equation_of_all_columns():
    tasks, W = with_weights(shared(17))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.log_rank(W), subject_to=[W[0, 1] == 0, W[1, :] == 1])


MODELS = {**CONVEX, **NONCONVEX, **OWN}


def random_blocks(form, rng, size=1.0):
    return {name: size * rng.normal(size=shape) for name, shape in form.shapes.items()}


def test_equations_hold_exactly_where_rows_are_fixed():
    form = FORMS["rows_of_zeros_beside_a_smooth_rank"]
    easier, recipe = NullSpace().apply(form)
    assert easier.shapes["W"] == (3, 4) and not easier.constraints
    back = NullSpace().invert(Point(random_blocks(easier, np.random.default_rng(0))), recipe)
    assert not back.blocks["W"][[0, 3, 4]].any() and form.violation(back.blocks) == 0.0
    inside = NullSpace().restricted(back, recipe)
    np.testing.assert_allclose(
        NullSpace().invert(inside, recipe).blocks["W"], back.blocks["W"], rtol=1e-14, atol=1e-14
    )


def test_sparse_inputs_stay_sparse_where_rows_are_fixed():
    X = scipy.sparse.random_array((200, 40), density=0.05, rng=np.random.default_rng(0), format="csr")
    tasks, W = with_weights(mtl.Tasks.shared(X, np.ones((200, 2)) + np.eye(200)[:, :2]))
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.rank(W), subject_to=[W[:5, :] == 0])
    easier, _ = NullSpace().apply(problem.form())
    (loss,) = easier.losses
    assert scipy.sparse.issparse(loss.tasks.X) and loss.tasks.X.shape == (200, 35)
    assert loss.map.identity_of == "W"


#: name -> ((form, a point of it) -> the reduction there, how many models of the catalogue it takes at least)
REDUCTIONS = {
    "centred": (lambda form, at: CenterLabels(), 1),
    "lifted": (lambda form, at: LossesOfWeights(plane_function), 6),
    "smaller side": (lambda form, at: SmallerSide(), 2),
    "relaxed": (lambda form, at: LargerEps(10.0), 4),
    "kept": (lambda form, at: FixedStructures(learned_matrices(form, at)), 5),
    "spanned": (lambda form, at: SampleSpan(), 3),
    "whitened": (lambda form, at: WhitenedLosses(), 2),
    "null space": (lambda form, at: NullSpace(), 3),
    "task subset": (lambda form, at: TaskSubset([2, 0], {name: 0.1 * abs(V) for name, V in at.items()}), 8),
}

FORMS = {name: build().form() for name, build in MODELS.items()}


def reductions_of(name, seed=0):
    form, rng = FORMS[name], np.random.default_rng(seed)
    at = random_blocks(form, rng)
    return form, at, {key: make(form, at) for key, (make, _) in REDUCTIONS.items()}


def accepted(promise) -> list:
    found = []
    for name in MODELS:
        form, _, made = reductions_of(name)
        for key, reduction in made.items():
            if reduction.promise is promise and reduction.accepts(form) is None:
                found.append(pytest.param(name, key, id=f"{key}: {name}"))
    return found


def both(promise, name, key, sizes=(0.1, 1.0, 5.0)):
    """(form, easier form, a point of the easier one, what `invert` makes of it), at random points."""
    form, at, made = reductions_of(name)
    reduction, rng = made[key], np.random.default_rng(1)
    assert reduction.promise is promise
    easier, recipe = reduction.apply(form)
    for size in sizes:
        blocks = random_blocks(easier, rng, size)
        held = {block: array.copy() for block, array in blocks.items()}
        back = reduction.invert(Point(blocks), recipe)
        assert {block: array.shape for block, array in back.blocks.items()} == form.shapes
        for block, array in blocks.items():
            np.testing.assert_array_equal(array, held[block])
        yield form, easier, blocks, back.blocks


@for_each("key", REDUCTIONS)
def test_it_takes_some_models_and_says_why_not_the_others(key):
    taken = 0
    for name in MODELS:
        form, _, made = reductions_of(name)
        reason = made[key].accepts(form)
        taken += reason is None
        assert reason is None or (isinstance(reason, str) and len(reason.split()) > 3), name
    assert REDUCTIONS[key][1] <= taken < len(MODELS)


@for_each("name, key", accepted(Promise.EXACT))
def test_exact_is_the_same_objective_and_violation(name, key):
    for form, easier, blocks, back in both(Promise.EXACT, name, key):
        assert form.value(back) == pytest.approx(easier.value(blocks), rel=1e-8)
        assert form.violation(back) == pytest.approx(easier.violation(blocks), rel=1e-9, abs=1e-12)


@pytest.mark.slow
@for_each("name, key", accepted(Promise.RESTRICTION))
def test_a_restriction_is_the_same_objective_but_for_a_constant(name, key):
    differences, sizes = [], []
    for form, easier, blocks, back in both(Promise.RESTRICTION, name, key):
        whole, part = form.value(back), easier.value(blocks)
        differences.append(whole - part)
        sizes.append(abs(whole) + abs(part))
        outside = form.violation(back | {name: 0.0 * V for name, V in back.items()})  # of zeros
        if key == "task subset":
            outside = form.violation(reductions_of(name)[2][key].at)
        if outside == 0.0:
            assert form.violation(back) == pytest.approx(easier.violation(blocks), rel=1e-12)
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-11 * max(sizes))


@for_each("name, key", accepted(Promise.MAJORIZATION))
def test_a_majorization_is_nowhere_below(name, key):
    margins = []
    for form, easier, blocks, back in both(Promise.MAJORIZATION, name, key):
        above = easier.value(blocks)
        margins.append((above - form.value(back)) / abs(above))
        assert margins[-1] >= -1e-11
        assert form.violation(back) == easier.violation(blocks)
    assert max(margins) > 1e-6  # it is another function
    if key == "kept":  # and touches where the matrices are the best ones
        form, at, made = reductions_of(name)
        assert made[key].apply(form)[0].value(at) == pytest.approx(form.value(at), rel=1e-10)


def refusals():
    """(reduction, a problem, what is said of it or None)."""
    tasks, identity = shared(9), np.eye(4)
    W, A = mtl.Weights(tasks), between_features(3)
    for penalty, said in (
        (mtl.kronecker_ridge(W, A, identity), None),
        (mtl.kronecker_ridge(W, A, np.diag([1.0, 2.0, 1.0, 1.0])), "the same matrix for every task"),
        (mtl.kronecker_ridge(W, np.diag([1e-13, 1, 1, 1, 1, 1]), identity), "singular, or nearly"),
        (mtl.kronecker_ridge(W, A, identity) + mtl.l1_norm(W), "l1_norm(W) is not"),
        (mtl.kronecker_ridge(W - 1.0, A, identity), "not a function of W itself"),
        (mtl.ridge(W), "no function has a matrix"),
    ):
        yield WhitenedLosses(), mtl.minimize(mtl.absolute_loss(W, tasks) + penalty), said
    sparse, V = with_weights(mtl.Tasks.shared(scipy.sparse.csr_array((9_000, 500)), np.ones((9_000, 1))))
    penalty = mtl.kronecker_ridge(V, np.diag(np.arange(1.0, 501.0)), np.eye(1))
    yield WhitenedLosses(), mtl.minimize(mtl.absolute_loss(V, sparse) + penalty), "become dense"
    few, V = with_weights(few_samples(12))
    for norm in (mtl.l1_norm, mtl.l21_norm, mtl.l12_norm):
        yield SampleSpan(), mtl.minimize(mtl.absolute_loss(V, few) + norm(V)), "changes with the basis"


@for_each("reduction, problem, said", refusals())
def test_what_is_not_taken_is_said(reduction, problem, said):
    reason = reduction.accepts(problem.form())
    assert (reason is None) is (said is None) and (said or "") in (reason or "")


# ------------------------------------------------------------------------------------- above a spectrum
def has_a_spectrum(name):
    form = FORMS[name]
    return bool(majorizations(form, form.zeros())[0].ways)


def beside(V, rng):
    """Columns orthogonal to those of V."""
    return (np.eye(len(V)) - V @ np.linalg.pinv(V)) @ rng.normal(size=V.shape)


@pytest.mark.slow
@for_each("name", [name for name in MODELS if has_a_spectrum(name)])
def test_the_reference_lies_above_the_spectrum_and_touches_it(name):
    form, rng = FORMS[name], np.random.default_rng(2)
    at = random_blocks(form, rng)
    for f in form.functions:
        if f.is_constraint and not f.atom.convex:  # a rank: from a point that has it
            (block,) = f.map.blocks
            at[block] = np.outer(at[block][:, 0], at[block][0])
    for reduction in majorizations(form, at):
        assert reduction.promise is Promise.MAJORIZATION and reduction.accepts(form) is None
        easier, said = reduction.apply(form)
        assert all(f.typed in said for f in reduction.ways)
        model, inside = to_cvxpy(easier), 0
        assert model.objective_value(at) == pytest.approx(form.value(at), rel=1e-9)
        for _ in range(4):
            # with the column space and the row space of `at`, and without
            for blocks in (
                {k: V @ rng.normal(size=(V.shape[1],) * 2) for k, V in at.items()},
                {k: rng.normal(size=(len(V),) * 2) @ V for k, V in at.items()},
                random_blocks(form, rng),
                {k: V + beside(V, rng) for k, V in at.items()},
                {k: V + beside(V.T, rng).T for k, V in at.items()},
            ):
                subspace = [f for f in easier.constraints if f not in form.functions]
                if to_cvxpy(replace(easier, functions=tuple(subspace), losses=())).violation(blocks) > 1e-9:
                    continue
                inside += 1
                above = model.objective_value(blocks)
                back = reduction.invert(Point(blocks), said)
                assert form.value(back.blocks) <= above + 1e-9 * abs(above)
                assert form.violation(back.blocks) <= model.violation(blocks) + 1e-9
        assert inside >= 4
    other = replace(form, functions=form.functions[:0])
    assert "is not a term of this model" in reduction.accepts(other)


# -------------------------------------------------------------------------------------------- multipliers
class Certified:
    """Stops where the point, taken back, is proven optimal for the form as given by its own multipliers."""

    expired = False

    def __init__(self, form, back, tol):
        self.form, self.back, self.tol, self.gap = form, back, tol, np.inf

    def __call__(self, point):
        point = self.back(point)
        self.found = certify(self.form, point.blocks, point.loss_duals, point.function_duals)
        self.with_multipliers = point.loss_duals is not None
        return self.is_proven

    @property
    def is_proven(self):
        """As far as a proof goes: beside functions that are not convex, no further than the conditions of first order."""
        return self.found.within(self.tol) if self.form.is_convex else self.found.is_stationary(self.tol)


@pytest.mark.by_default("null space: sums_and_differences_on_both_sides_beside_an_exact_rank")
@pytest.mark.parametrize("name, key", accepted(Promise.EXACT))
def test_multipliers_of_exact_reductions_prove_the_form(name, key):
    form, _, made = reductions_of(name)
    easier, recipe = made[key].apply(form)
    watch = Certified(form, lambda point: made[key].invert(point, recipe), 1e-5)
    solver = get_solver("admm" if key == "lifted" else next(accepting_routes(easier)))
    solver.solve(easier, tol=1e-6, max_iter=20_000, start=None, watch=watch)
    assert watch.is_proven, watch.found
    assert watch.with_multipliers


def test_a_task_subset_hands_back_no_multipliers():
    """Those of some tasks alone are not multipliers of all: the certificate must not be handed arrays of another length."""
    tasks, W = with_weights(shared(4))
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form()
    subset = TaskSubset([1, 3], form.zeros())
    easier, recipe = subset.apply(form)
    x = random_blocks(easier, np.random.default_rng(0))
    solved = Point(
        x, [loss.dual_at(x) for loss in easier.losses], [np.zeros(f.map.shape) for f in easier.functions]
    )
    back = subset.invert(solved, recipe)
    assert back.loss_duals is None and back.function_duals is None
    np.testing.assert_array_equal(back.blocks["W"][:, [1, 3]], solved.blocks["W"])
    assert certify(form, back.blocks, back.loss_duals, back.function_duals).dual_bound > -np.inf
