"""Every solve is held to the statement as typed: faults of the compile step, and of words that are wrong all through, do not come out."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.learned_structures.spectral_penalties import LogRank
from mtldsl.atoms.metrics import FScore
from mtldsl.atoms.regularizers import TraceNorm
from mtldsl.certificates.plain.plain_formula import DEFINITIONS
from mtldsl.errors import ProofError
from mtldsl.language import constraints as constraint
from mtldsl.language import expressions, objective
from mtldsl.normal_form import canonicalize
from mtldsl.normal_form.form import NormalForm
from mtldsl.normal_form.term import LinearMap, LossTerm
from mtldsl.solution import build as solved
from mtldsl.solution import fields
from tests.atoms.new_words import NEW, Magnitudes
from tests.loops import for_each
from tests.models import shared, with_weights

B = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0], [0.5, 0.0]])


def real(intercept=False, **data):
    tasks = shared(3, **data)
    return tasks, mtl.Weights(tasks, intercept=intercept)


# ------------------------------------------------------------------------------------- faults of the compile step
def of_losses(change):
    """Every loss of the normal form is changed."""
    return of_what_is_made("_loss_term", change)


def of_maps(change):
    """Every linear map of the normal form is changed."""
    return of_what_is_made("linear_map", change)


def of_what_is_made(maker, change):
    def sabotage(monkeypatch):
        make = getattr(canonicalize, maker)
        monkeypatch.setattr(canonicalize, maker, lambda given: change(make(given)))

    return sabotage


def _negated(one):
    return one if one.right is None else replace(one, coefficient=-one.coefficient)


def _exchanged(one):
    return one if one.right is None else replace(one, right=one.right[:, ::-1])


losses_times = of_losses(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients))
sign_of_a_product = of_maps(lambda of: LinearMap(tuple(map(_negated, of.entries)), of.shape, of.offset))
columns_exchanged = of_maps(lambda of: LinearMap(tuple(map(_exchanged, of.entries)), of.shape, of.offset))
offset_forgotten = of_maps(lambda of: LinearMap(of.entries, of.shape, None))


def mean_forgotten(monkeypatch):
    """mean=True is a sum."""
    make = canonicalize._loss_term
    monkeypatch.setattr(canonicalize, "_loss_term", lambda term: make(replace(term, mean=False)))


def sign_in_the_language(monkeypatch):
    """W @ B becomes -W @ B where the expression is made."""
    monkeypatch.setattr(expressions, "chain", lambda a, b: b if a is None else a if b is None else -(a @ b))


def totals_are_counts(monkeypatch, kind=mtl.Tasks):
    """A mean divides by the rows, not by their weights."""
    monkeypatch.setattr(kind, "totals", property(lambda tasks: tasks.counts))


def sample_weights_forgotten(monkeypatch):
    """Every sample counts once."""
    once = property(lambda loss: np.repeat(loss.coefficients, loss.tasks.counts))
    monkeypatch.setattr(LossTerm, "scale", once)


def intercept_forgotten(monkeypatch):
    """Predictions are made without their intercepts, and so are their adjoints."""

    def add_adjoint(self, u, into):
        self.map.add_adjoint(self.tasks.adjoint(np.asarray(u)), into)

    monkeypatch.setattr(LossTerm, "predictions", lambda self, x: self.tasks.forward(self.map.forward(x)))
    monkeypatch.setattr(LossTerm, "add_adjoint", add_adjoint)


def intercept_without_a_block(monkeypatch):
    """There are no intercepts at all."""
    for room in (canonicalize, fields):
        monkeypatch.setattr(room, "intercepts_of", lambda argument: {})


def constraints_dropped(monkeypatch):
    """Constraints are not in the normal form."""
    monkeypatch.setattr(canonicalize, "on_weights", lambda constraints: [])


def bounds_turned(monkeypatch):
    """W - 1 >= 0 becomes W >= -1."""
    compare = constraint.compare

    def turned(left, symbol, right):
        found = compare(left, symbol, right)
        return replace(found, given=type(found.given)(-np.asarray(found.given.bound)))

    monkeypatch.setattr(NormalForm, "violation", lambda form, x: 0.0)
    monkeypatch.setattr(expressions, "compare", turned)


def radius_doubled(monkeypatch):
    """2 * l1_norm(W) <= 3 is l1_norm(W) <= 3."""
    ball = objective._ball
    monkeypatch.setattr(objective, "_ball", lambda term, text, radius: ball(term, text, 2.0 * radius))


# --------------------------------------------------------------------------------- words that are wrong all through
def trace_norm_times(monkeypatch):
    """The trace norm is 1.1 times as large, with its prox and its dual norm."""
    value, prox, gauge = TraceNorm.value, TraceNorm.prox, TraceNorm.dual_gauge
    monkeypatch.setattr(TraceNorm, "value", lambda self, W: 1.1 * value(self, W))
    monkeypatch.setattr(TraceNorm, "prox", lambda self, W, step: prox(self, W, 1.1 * step))
    monkeypatch.setattr(TraceNorm, "dual_gauge", lambda self, Z: gauge(self, Z) / 1.1)


def blind_oracle(monkeypatch):
    """The oracle of the F-score finds that the true labelling is the most violated one."""

    def nothing(self, ordered, batch, ends, values, counts):
        values[:], counts[:] = 0.0, 0

    monkeypatch.setattr(FScore, "_highest_tables", nothing)


def blind_delta(monkeypatch):
    """Delta of every labelling is 0."""
    for name in ("delta", "best_counts", "limits", "_plane", "_highest_tables"):
        if name in vars(FScore):
            monkeypatch.delattr(FScore, name)
    monkeypatch.setattr(FScore, "delta", lambda self, b, c, positives, negatives: 0.1 * ((b + c) > 0))


def log_rank_times(monkeypatch):
    """The log-rank is .7 times as large, with its slope."""
    penalty, slope = LogRank.penalty, LogRank.slope
    monkeypatch.setattr(LogRank, "penalty", lambda self, x: 0.7 * penalty(self, x))
    monkeypatch.setattr(LogRank, "slope", lambda self, x: 0.7 * slope(self, x))


def ball_is_larger(monkeypatch):
    """A ball says that nothing is outside, and projects onto a larger one."""
    project, support = NormBall.project, NormBall.support
    larger = lambda self, W: project(replace(self, radius=2 * self.radius), W)  # noqa: E731
    monkeypatch.setattr(NormBall, "violation", lambda self, W: 0.0)
    monkeypatch.setattr(NormBall, "project", larger)
    monkeypatch.setattr(NormBall, "support", lambda self, Z: 2.0 * support(self, Z))


# ----------------------------------------------------------------------------------------- what comes back is not it
def after_the_solve(change):
    """Every solution is changed before it is looked at."""

    def sabotage(monkeypatch):
        make = solved.solution_of

        def solution_of(run, tol):
            found = make(run, tol)
            change(found)
            return found

        monkeypatch.setattr("mtldsl.problems.problem.solution_of", solution_of)

    return sabotage


@after_the_solve
def weights_altered(solution):
    """The weights are rounded on the way."""
    solution.blocks = {name: block.round(2) for name, block in solution.blocks.items()}


@after_the_solve
def weights_of_predictions_altered(solution):
    """`solution.W` is not the block W."""
    solution.coef = solution.coef[:, ::-1]


@after_the_solve
def objective_altered(solution):
    """The objective is a little better than it is."""
    solution.objective *= 1.0 - 1e-7


def typed(objective, held=lambda W: [], make=real, **data):
    """(objective, constraints) as a user types them, made when it is called."""

    def build():
        tasks, W = make(**data)
        return objective(W, tasks), held(W)

    return build


squares = typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W))
f_score = typed(lambda W, t: mtl.structured_hinge(W, t) + 0.05 * mtl.ridge(W), labels="sign")


def in_a_loss(W, tasks):
    """The loss alone is of a product, beside which all weights are zero."""
    return mtl.squared_loss(W @ np.eye(4), tasks) + 1e4 * mtl.l1_norm(W)


#: (what is wrong, what is typed, what the error names)
SABOTAGES = [
    (losses_times, squares, "squared_loss(W, tasks)"),
    (losses_times, f_score, "structured_hinge(W, tasks)"),
    (sign_of_a_product, typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W @ B - 1.0)), "l1_norm(W @ array(4, 2) - 1)"),
    (sign_of_a_product, typed(in_a_loss), "squared_loss(W @ array(4, 4), tasks)"),
    (sign_in_the_language, typed(lambda W, t: mtl.squared_loss(W, t) + 3.0 * mtl.l1_norm((W @ B) @ np.eye(2) - 1.0)),
     "3 * l1_norm(W @ array(4, 2) @ array(2, 2) - 1)"),
    (mean_forgotten, typed(lambda W, t: mtl.logistic_loss(W, t, mean=True) + 0.1 * mtl.ridge(W), labels="sign", missing=0.2),
     "logistic_loss(W, tasks, mean=True)"),
    (totals_are_counts, typed(lambda W, t: mtl.squared_loss(W, t, mean=True) + 0.1 * mtl.ridge(W), sample_weights=True),
     "squared_loss(W, tasks, mean=True)"),
    (sample_weights_forgotten, typed(lambda W, t: mtl.huber_loss(W, t) + mtl.l21_norm(W), sample_weights=True), "huber_loss(W, tasks)"),
    (intercept_forgotten, typed(lambda W, t: mtl.absolute_loss(W, t) + mtl.ridge(W), intercept=True), "absolute_loss(W, tasks)"),
    (intercept_without_a_block, typed(lambda W, t: mtl.squared_loss(W, t) + mtl.ridge(W), intercept=True), "W.intercept"),
    (constraints_dropped, typed(mtl.squared_loss, lambda W: [W >= 0.1, W.sum(axis=1) == 1]), "W >= 0.1"),
    (bounds_turned, typed(mtl.squared_loss, lambda W: [W - 1.0 >= 0]), "W - 1 >= 0"),
    (radius_doubled, typed(mtl.squared_loss, lambda W: [2.0 * mtl.l1_norm(W) <= 3.0]), "2 * l1_norm(W) <= 3"),
    (offset_forgotten, typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l21_norm(W - 0.3)), "l21_norm(W - 0.3)"),
    (columns_exchanged, typed(lambda W, t: mtl.squared_loss(W, t) + mtl.l12_norm(W[:, [0, 1]], weights=np.array([5.0, 0.1]))),
     "l12_norm(W[:, [0, 1]], weights=array(2))"),
    (trace_norm_times, typed(lambda W, t: mtl.squared_loss(W, t) + 2.0 * mtl.trace_norm(W)), "2 * trace_norm(W)"),
    (blind_oracle, f_score, "structured_hinge(W, tasks)"),
    (blind_delta, f_score, "structured_hinge(W, tasks)"),
    (log_rank_times, typed(lambda W, t: mtl.squared_loss(W, t) + 0.5 * mtl.log_rank(W)), "0.5 * log_rank(W)"),
    (ball_is_larger, typed(mtl.absolute_loss, lambda W: [mtl.l1_norm(W) <= 1.0]), "l1_norm(W) <= 1"),
    (weights_altered, squares, ""),
    (weights_of_predictions_altered, squares, "squared_loss(W, tasks)"),
    (objective_altered, squares, ""),
]  # fmt: skip


def does_not_come_out(monkeypatch, sabotage, build, named, **options):
    sabotage(monkeypatch)
    statement, constraints = build()
    with pytest.raises(mtl.CrossCheckError) as caught:
        mtl.minimize(statement, subject_to=constraints).solve(**options)
    assert caught.value.solution is not None
    assert named in str(caught.value)


@pytest.mark.slow
@for_each("sabotage, build, named", SABOTAGES)
def test_a_sabotage_does_not_come_out(monkeypatch, sabotage, build, named):
    # a bound of `multipliers`, which does not ask the oracle, would tell first
    solver = "dual_ascent" if sabotage is blind_oracle else "auto"
    does_not_come_out(monkeypatch, sabotage, build, named, max_iter=100, solver=solver)


def test_a_blind_oracle_is_told_by_the_bound_of_another_solver(monkeypatch):
    blind_oracle(monkeypatch)
    statement, constraints = f_score()
    with pytest.raises(ProofError, match="structured_hinge"):
        mtl.minimize(statement, subject_to=constraints).solve("multipliers")


@for_each("build", {build for _, build, _ in SABOTAGES})
def test_without_the_sabotage_nothing_is_said(build):
    statement, constraints = build()
    assert mtl.minimize(statement, subject_to=constraints).solve().is_certified


# ------------------------------------------------------------------------------------------------- no false alarm
@pytest.mark.slow
@pytest.mark.parametrize("shift, scale", [(0.0, 1e-9), (1e6, 1e9), (1e12, 1e-3), (0.0, 1e4), (1e12, 1e9)])
def test_units_and_offsets_are_no_faults(scale, shift):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(25, 4)) * np.array([scale, 1.0, 1 / scale, 1e3])
    X[:, 1] += shift
    Y = (
        X @ rng.normal(size=(4, 3)) / np.abs(X).max(axis=0).max() + 0.1 * rng.normal(size=(25, 3))
    ) * scale + shift
    tasks, W = with_weights(mtl.Tasks.shared(X, Y), intercept=True)
    for typed in (
        mtl.squared_loss(W, tasks),
        mtl.huber_loss(W, tasks, delta=scale),
        mtl.square_root_loss(W, tasks),
    ):
        problem = mtl.minimize(typed + 1e-3 * mtl.l21_norm(W) + 1e-6 * mtl.ridge(W))
        assert np.isfinite(problem.solve(max_seconds=0.5).objective)


def test_labels_that_are_met_exactly_are_no_fault():
    """Nothing is left of the loss but rounding."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(5, 9))
    tasks, W = with_weights(mtl.Tasks.shared(X, np.exp(rng.normal(size=(5, 2)))))
    for loss in (mtl.squared_loss, mtl.absolute_loss, mtl.square_root_loss, mtl.huber_loss):
        assert np.isfinite(
            mtl.minimize(loss(W, tasks) + 1e-12 * mtl.ridge(W)).solve(max_seconds=0.5).objective
        )


def tables(labels="real", kind="table", n=120, d=4, m=4, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X @ rng.normal(size=(d, m)) + 0.4 + 0.5 * rng.normal(size=(n, m))
    Y = np.where(Y > 0.0, 1.0, -1.0) if labels == "sign" else Y
    if kind == "missing":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    weights = 0.5 + rng.random(n) if kind == "weights" else None
    if "sparse" in kind:
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.6))
    if "group" in kind:
        return mtl.Tasks.grouped(X, Y[:, 0], rng.permutation(np.repeat(np.arange(m), n // m)))
    return mtl.Tasks.shared(X, Y, sample_weights=weights)


def test_every_way_to_a_solution_is_looked_at(monkeypatch):
    """Paths, folds, several starts and solvers by name."""
    from mtldsl.problems import problem as room

    looks = []
    real_look = room.agree_with_statement
    monkeypatch.setattr(room, "agree_with_statement", lambda *given: looks.append(given) or real_look(*given))
    tasks, W = real()
    lam = mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l1_norm(W))
    list(problem.path(lam, [10.0, 1.0]))
    assert len(looks) == 2
    problem.cross_validate(lam, [10.0, 1.0], folds=3)
    assert len(looks) >= 8
    before = len(looks)
    assert problem.solve("admm", max_iter=1).status != "optimal"
    assert len(looks) == before + 1


def test_a_word_without_a_formula_is_taken_at_its_value():
    """One with a formula is not."""
    tasks, W = real()
    cls, statement = Magnitudes, NEW[Magnitudes]
    for formula, found in (
        (None, None),
        (lambda W, atom: np.sum(np.abs(W)), None),
        (lambda W, atom: 2.0, "magnitudes(W)"),
    ):
        word = mtl.register(cls, reference=statement, formula=formula)
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.ridge(W) + 0.5 * word(W))
        try:
            if found is None:
                problem.solve()
            else:
                with pytest.raises(mtl.CrossCheckError, match=re.escape(found)):
                    problem.solve()
        finally:
            mtl.unregister("magnitudes")
        assert "magnitudes" not in DEFINITIONS
    with pytest.raises(mtl.errors.ModelError, match="a function of"):
        mtl.register(cls, reference=statement, formula=lambda W: 1.0)
    mtl.register(cls, reference=statement)  # what was refused has left nothing behind
    mtl.unregister(cls.name)
    assert "magnitudes" not in REGISTRY
