"""Every solve is held to the statement as typed: faults of the compile step, and of words that are wrong all through, do not come out."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.metrics import FScore
from mtldsl.atoms.regularizers import TraceNorm
from mtldsl.atoms.sets.balls import NormBall
from mtldsl.atoms.structures import LogRank
from mtldsl.check.rows import CheckSettings, ShareCheck
from mtldsl.compile import from_tree
from mtldsl.compile.linear_map import LinearMap
from mtldsl.compile.loss_term import LossTerm
from mtldsl.compile.normal_form import NormalForm
from mtldsl.definitions.formula import DEFINITIONS
from mtldsl.definitions.typed_values import TypedPoint
from mtldsl.language.expressions import expression, objective
from mtldsl.named_models import MODELS as NAMED
from mtldsl.solution import readout, solved
from tests.loops import for_each
from tests.models import MODELS, shared
from tests.named_models.test_named_models import tasks_of, values_of

B = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0], [0.5, 0.0]])


def real(intercept=False, **data):
    tasks = shared(3, **data)
    return tasks, mtl.Weights(tasks, intercept=intercept)


# ------------------------------------------------------------------------------------- faults of the compile step


def _changed_loss(change):
    make = from_tree._loss_term
    return lambda term: change(make(term))


def losses_times(monkeypatch):
    """Every loss counts 1.3 times."""
    monkeypatch.setattr(
        from_tree,
        "_loss_term",
        _changed_loss(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients)),
    )
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], "squared_loss(W, tasks)"


def structured_losses_times(monkeypatch):
    """Every structured loss counts 1.3 times."""
    monkeypatch.setattr(
        from_tree,
        "_loss_term",
        _changed_loss(lambda loss: replace(loss, coefficients=1.3 * loss.coefficients)),
    )
    tasks, W = real(labels="sign")
    return mtl.structured_hinge(W, tasks) + 0.05 * mtl.ridge(W), [], "structured_hinge(W, tasks)"


def _negated(entries):
    return tuple(
        replace(one, coefficient=-one.coefficient) if one.right is not None else one for one in entries
    )


def sign_of_a_product(monkeypatch):
    """W @ B becomes -W @ B."""
    make = from_tree.linear_map

    def linear_map(argument):
        found = make(argument)
        return LinearMap(_negated(found.entries), found.shape, found.offset)

    monkeypatch.setattr(from_tree, "linear_map", linear_map)
    tasks, W = real()
    typed = mtl.l1_norm(W @ B - 1.0)
    return mtl.squared_loss(W, tasks) + typed, [], "l1_norm(W @ array(4, 2) - 1)"


def sign_in_the_language(monkeypatch):
    """The same where the expression is made."""
    monkeypatch.setattr(expression, "chain", lambda a, b: b if a is None else a if b is None else -(a @ b))
    tasks, W = real()
    chained = (W @ B) @ np.eye(2)
    return (
        mtl.squared_loss(W, tasks) + 3.0 * mtl.l1_norm(chained - 1.0),
        [],
        "3 * l1_norm(W @ array(4, 2) @ array(2, 2) - 1)",
    )


def mean_forgotten(monkeypatch):
    """mean=True is a sum."""
    make = from_tree._loss_term
    monkeypatch.setattr(from_tree, "_loss_term", lambda term: make(replace(term, mean=False)))
    tasks, W = real(labels="sign", missing=0.2)
    return (
        mtl.logistic_loss(W, tasks, mean=True) + 0.1 * mtl.ridge(W),
        [],
        "logistic_loss(W, tasks, mean=True)",
    )


def totals_are_counts(monkeypatch):
    """A mean divides by the rows, not by their weights."""
    monkeypatch.setattr(mtl.Tasks, "totals", property(lambda tasks: tasks.counts))
    tasks, W = real(sample_weights=True)
    return mtl.squared_loss(W, tasks, mean=True) + 0.1 * mtl.ridge(W), [], "squared_loss(W, tasks, mean=True)"


def sample_weights_forgotten(monkeypatch):
    """Every sample counts once."""
    monkeypatch.setattr(
        LossTerm, "scale", property(lambda loss: np.repeat(loss.coefficients, loss.tasks.counts))
    )
    tasks, W = real(sample_weights=True)
    return mtl.huber_loss(W, tasks) + mtl.l21_norm(W), [], "huber_loss(W, tasks)"


def intercept_forgotten(monkeypatch):
    """Predictions are made without their intercepts, and so are their adjoints."""

    def add_adjoint(self, u, into):
        self.map.add_adjoint(self.tasks.adjoint(np.asarray(u)), into)

    monkeypatch.setattr(LossTerm, "predictions", lambda self, x: self.tasks.forward(self.map.forward(x)))
    monkeypatch.setattr(LossTerm, "add_adjoint", add_adjoint)
    tasks, W = real(intercept=True)
    return mtl.absolute_loss(W, tasks) + mtl.ridge(W), [], "absolute_loss(W, tasks)"


def intercept_without_a_block(monkeypatch):
    """There are no intercepts at all."""
    for room in (from_tree, readout):
        monkeypatch.setattr(room, "intercepts_of", lambda argument: {})
    tasks, W = real(intercept=True)
    return mtl.squared_loss(W, tasks) + mtl.ridge(W), [], "W.intercept"


def constraints_dropped(monkeypatch):
    """Constraints are not in the normal form."""
    monkeypatch.setattr(from_tree, "on_weights", lambda constraints: [])
    tasks, W = real()
    return mtl.squared_loss(W, tasks), [W >= 0.1, W.sum(axis=1) == 1], "W >= 0.1"


def bounds_turned(monkeypatch):
    """W - 1 >= 0 becomes W >= -1."""
    monkeypatch.setattr(NormalForm, "violation", lambda form, x: 0.0)
    from mtldsl.language.expressions import constraint

    compare = constraint.compare

    def turned(left, symbol, right):
        found = compare(left, symbol, right)
        return replace(found, given=type(found.given)(-np.asarray(found.given.bound)))

    monkeypatch.setattr(expression, "compare", turned)
    tasks, W = real()
    return mtl.squared_loss(W, tasks), [W - 1.0 >= 0], "W - 1 >= 0"


def radius_doubled(monkeypatch):
    """2 * l1_norm(W) <= 3 is l1_norm(W) <= 3."""
    ball = objective._ball
    monkeypatch.setattr(objective, "_ball", lambda term, text, radius: ball(term, text, 2.0 * radius))
    tasks, W = real()
    return mtl.squared_loss(W, tasks), [2.0 * mtl.l1_norm(W) <= 3.0], "2 * l1_norm(W) <= 3"


def offset_forgotten(monkeypatch):
    """W - W0 is W."""
    make = from_tree.linear_map

    def linear_map(argument):
        found = make(argument)
        return LinearMap(found.entries, found.shape, None)

    monkeypatch.setattr(from_tree, "linear_map", linear_map)
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + mtl.l21_norm(W - 0.3), [], "l21_norm(W - 0.3)"


def sign_of_weights_that_are_zero(monkeypatch):
    """W @ B becomes -W @ B where all weights are zero."""
    objective, constraints, _ = sign_of_a_product(monkeypatch)
    tasks = objective.terms[0].tasks
    W = objective.terms[0].argument
    return (
        mtl.squared_loss(W @ np.eye(4), tasks) + 1e4 * mtl.l1_norm(W),
        [],
        "squared_loss(W @ array(4, 4), tasks)",
    )


def columns_exchanged(monkeypatch):
    """W[:, [0, 1]] takes the columns in the other order."""
    make = from_tree.linear_map

    def linear_map(argument):
        found = make(argument)
        entries = (replace(e, right=None if e.right is None else e.right[:, ::-1]) for e in found.entries)
        return LinearMap(tuple(entries), found.shape, found.offset)

    monkeypatch.setattr(from_tree, "linear_map", linear_map)
    tasks, W = real()
    weights = np.array([5.0, 0.1])
    return (
        mtl.squared_loss(W, tasks) + mtl.l12_norm(W[:, [0, 1]], weights=weights),
        [],
        "l12_norm(W[:, [0, 1]], weights=array(2))",
    )


# --------------------------------------------------------------------------------- words that are wrong all through


def trace_norm_times(monkeypatch):
    """The trace norm is 1.1 times as large, with its prox, its dual norm and its conjugate."""
    value, prox, gauge, project = (
        TraceNorm.value,
        TraceNorm.prox,
        TraceNorm.dual_gauge,
        TraceNorm.dual_project,
    )
    monkeypatch.setattr(TraceNorm, "value", lambda self, W: 1.1 * value(self, W))
    monkeypatch.setattr(TraceNorm, "prox", lambda self, W, step: prox(self, W, 1.1 * step))
    monkeypatch.setattr(TraceNorm, "dual_gauge", lambda self, Z: gauge(self, Z) / 1.1)
    monkeypatch.setattr(TraceNorm, "dual_project", lambda self, Z: project(self, Z))
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + 2.0 * mtl.trace_norm(W), [], "2 * trace_norm(W)"


def blind_oracle(monkeypatch):
    """The oracle of the F-score finds that the true labelling is the most violated one."""

    def nothing(self, ordered, batch, ends):
        return np.zeros(len(ends)), np.zeros((len(ends), 2), np.int64)

    monkeypatch.setattr(FScore, "_highest_tables", nothing)
    tasks, W = real(labels="sign")
    return mtl.structured_hinge(W, tasks) + 0.05 * mtl.ridge(W), [], "structured_hinge(W, tasks)"


def blind_delta(monkeypatch):
    """Delta of every labelling is 0."""
    for name in ("delta", "best_counts", "limits", "_plane", "_highest_tables"):
        if name in vars(FScore):
            monkeypatch.delattr(FScore, name)
    monkeypatch.setattr(FScore, "delta", lambda self, b, c, positives, negatives: 0.1 * ((b + c) > 0))
    tasks, W = real(labels="sign")
    return mtl.structured_hinge(W, tasks) + 0.05 * mtl.ridge(W), [], "structured_hinge(W, tasks)"


def log_rank_times(monkeypatch):
    """The log-rank is .7 times as large, with its slope."""
    penalty, slope = LogRank.penalty, LogRank.slope
    monkeypatch.setattr(LogRank, "penalty", lambda self, x: 0.7 * penalty(self, x))
    monkeypatch.setattr(LogRank, "slope", lambda self, x: 0.7 * slope(self, x))
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + 0.5 * mtl.log_rank(W), [], "0.5 * log_rank(W)"


def ball_is_larger(monkeypatch):
    """A ball says that nothing is outside, and projects onto a larger one."""
    project, support = NormBall.project, NormBall.support
    monkeypatch.setattr(NormBall, "violation", lambda self, W: 0.0)
    monkeypatch.setattr(
        NormBall, "project", lambda self, W: project(replace(self, radius=2 * self.radius), W)
    )
    monkeypatch.setattr(NormBall, "support", lambda self, Z: 2.0 * support(self, Z))
    tasks, W = real()
    return mtl.absolute_loss(W, tasks), [mtl.l1_norm(W) <= 1.0], "l1_norm(W) <= 1"


# ----------------------------------------------------------------------------------------- what comes back is not it


def _after_the_solve(monkeypatch, change):
    import mtldsl.problem

    make = solved.solution_of

    def solution_of(run, tol):
        found = make(run, tol)
        change(found)
        return found

    monkeypatch.setattr(mtldsl.problem, "solution_of", solution_of)


def weights_altered(monkeypatch):
    """The weights are rounded on the way."""

    def change(solution):
        solution.blocks = {name: block.round(2) for name, block in solution.blocks.items()}

    _after_the_solve(monkeypatch, change)
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], None


def weights_of_predictions_altered(monkeypatch):
    """`solution.W` is not the block W."""

    def change(solution):
        solution.coef = solution.coef[:, ::-1]

    _after_the_solve(monkeypatch, change)
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], "squared_loss(W, tasks)"


def objective_altered(monkeypatch):
    """The objective is a little better than it is."""

    def change(solution):
        solution.objective *= 1.0 - 1e-7

    _after_the_solve(monkeypatch, change)
    tasks, W = real()
    return mtl.squared_loss(W, tasks) + mtl.l1_norm(W), [], None


SABOTAGES = [
    losses_times, structured_losses_times, sign_of_a_product, sign_in_the_language, mean_forgotten, totals_are_counts,
    sign_of_weights_that_are_zero,
    sample_weights_forgotten, intercept_forgotten, intercept_without_a_block, constraints_dropped, bounds_turned, radius_doubled,
    offset_forgotten, columns_exchanged, trace_norm_times, blind_oracle, blind_delta, log_rank_times, ball_is_larger, weights_altered,
    weights_of_predictions_altered, objective_altered,
]  # fmt: skip


@pytest.fixture(params=["all samples", "a share"])
def looked_at(request, monkeypatch):
    """Whether samples are few, or many."""
    if request.param == "a share":
        monkeypatch.setattr(ShareCheck, "settings", CheckSettings(whole_samples=0, share=0.25))


@for_each("sabotage", SABOTAGES)
def test_a_sabotage_does_not_come_out(monkeypatch, looked_at, sabotage):
    statement, constraints, named = sabotage(monkeypatch)
    with pytest.raises(mtl.CrossCheckError) as caught:
        mtl.minimize(statement, subject_to=constraints).solve(max_iter=100)
    assert caught.value.solution is not None
    assert named is None or named in str(caught.value)
    monkeypatch.undo()


#: those whose statement itself is made of the fault
IN_THE_STATEMENT = (sign_in_the_language, bounds_turned, radius_doubled)


@for_each("sabotage", [one for one in SABOTAGES if one not in IN_THE_STATEMENT])
def test_without_the_sabotage_nothing_is_said(monkeypatch, sabotage):
    statement, constraints, _ = sabotage(monkeypatch)
    monkeypatch.undo()
    assert mtl.minimize(statement, subject_to=constraints).solve().is_certified


# ------------------------------------------------------------------------------------------------- no false alarm


def _agrees(problem, solution, left_out=()):
    """The terms as typed add up to the objective, each by its plain formula."""
    point = TypedPoint(solution.blocks, solution.learned)
    terms = problem.objective.terms
    weights = next((one for name, one in solution.learned.items() if name.startswith("kernel weights")), None)
    values = [point.value(term, weights) for term in terms]
    lacking = {term.atom.name for term, value in zip(terms, values, strict=True) if value is None}
    assert lacking <= set(left_out)
    if not lacking:
        bounded = any(DEFINITIONS[term.atom.name].kind == "between" for term in terms)
        assert sum(values) == pytest.approx(solution.objective, rel=1e-4 if bounded else 1e-9)
    outside = [point.violation(c) for c in problem.constraints if hasattr(c, "tree")]
    assert max(outside, default=0.0) == pytest.approx(solution.violation, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@for_each("name", MODELS)
def test_a_mixed_model_is_what_was_typed(name):
    problem = MODELS[name]()
    _agrees(problem, problem.solve())


@pytest.mark.slow
@for_each("each", NAMED, ids=lambda each: each.name)
def test_a_named_model_is_what_was_typed(each):
    problem = mtl.model(each.name, tasks_of(each), **values_of(each))
    _agrees(problem, problem.solve())


@pytest.mark.by_default("0.0-1e-09")
@pytest.mark.parametrize("shift, scale", [(0.0, 1e-9), (1e6, 1e9), (1e12, 1e-3), (0.0, 1e4), (1e12, 1e9)])
def test_units_and_offsets_are_no_faults(scale, shift):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(25, 4)) * np.array([scale, 1.0, 1 / scale, 1e3])
    X[:, 1] += shift
    Y = (
        X @ rng.normal(size=(4, 3)) / np.abs(X).max(axis=0).max() + 0.1 * rng.normal(size=(25, 3))
    ) * scale + shift
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
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
    tasks = mtl.Tasks.shared(X, np.exp(rng.normal(size=(5, 2))))
    W = mtl.Weights(tasks)
    for loss in (mtl.squared_loss, mtl.absolute_loss, mtl.square_root_loss, mtl.huber_loss):
        assert np.isfinite(
            mtl.minimize(loss(W, tasks) + 1e-12 * mtl.ridge(W)).solve(max_seconds=0.5).objective
        )


def _many(kind="table", labels="real", n=6000, d=5, m=4):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.normal(size=d)
    Y = X @ (rng.normal(size=(d, m)) / np.abs(X).max(axis=0)[:, None]) + 0.3 * rng.normal(size=(n, m))
    Y = np.where(np.median(Y, axis=0) < Y, 1.0, -1.0) if labels == "sign" else Y
    if kind == "missing":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    X = sparse.csr_array(X * (rng.random(X.shape) < 0.5)) if kind == "sparse" else X
    weights = 0.5 + rng.random(n) if kind == "weights" else None
    if kind in ("grouped", "sparse groups"):
        X = sparse.csr_array(X) if kind == "sparse groups" else X
        return mtl.Tasks.grouped(
            sparse.vstack([X] * m) if sparse.issparse(X) else np.vstack([X] * m),
            Y.T.ravel(),
            np.repeat(np.arange(m), n),
        )
    return mtl.Tasks.shared(X, Y, sample_weights=weights)


@for_each("kind", ["table", "missing", "sparse", "weights", "grouped", "sparse groups"])
@for_each("loss", ["squared_loss", "huber_loss", "logistic_loss"])
def test_a_share_of_many_samples_says_what_all_of_them_say(kind, loss):
    """The value by a share is the value as typed, at a mean and with intercepts too; other samples are looked at where weights are others."""
    tasks = _many(kind, "sign" if loss == "logistic_loss" else "real")
    W = mtl.Weights(tasks, intercept=True)
    seen = set()
    for mean in (False, True):
        problem = mtl.minimize(2.0 * getattr(mtl, loss)(W, tasks, mean=mean) + 0.5 * mtl.ridge(W))
        form, term = problem.form(), problem.objective.terms[0]
        assert ShareCheck.is_for(form, term)
        for size in (0.0, 1e-3, 1.0):
            x = {name: np.full(shape, size) for name, shape in form.shapes.items()}
            point = TypedPoint(x, {})
            look = ShareCheck(form, term, point)
            seen.add(look.some.start)
            # sums of 24,000 numbers in two orders
            assert look.value() == pytest.approx(point.value(term), rel=1e-10)

            assert 0.0 < look.typed_value() < 0.2 * point.value(term)
    assert len(seen) > 1


def test_every_way_to_a_solution_is_looked_at(monkeypatch):
    """Paths, folds, several starts and solvers by name."""
    from mtldsl import problem as room

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


def test_a_parameter_counts_as_it_is_at_the_solve():
    tasks, W = real()
    lam, mu = mtl.Parameter(1.0), mtl.Parameter(2.0, name="mu")
    problem = mtl.minimize(
        mtl.squared_loss(W, tasks) + lam * mtl.l1_norm(mu * W), subject_to=[mtl.l21_norm(W) <= mu]
    )
    for lam.value, mu.value in ((1.0, 2.0), (3.0, 0.5), (0.0, 1.0)):
        _agrees(problem, problem.solve())


def test_a_word_without_a_formula_is_taken_at_its_value(monkeypatch):
    """A word without a formula is taken at its value, and one with a formula is not."""

    class SumOfCubes(mtl.extending.Norm):
        """The cube root of the sum of cubes."""

        name, formula, monotone = "cubic_norm", r"\|{}\|_3", True

        def value(self, W):
            return float(np.sum(np.abs(W) ** 3) ** (1 / 3))

        def dual_gauge(self, Z):
            return float(np.sum(np.abs(Z) ** 1.5) ** (2 / 3))

        exact_prox = False

    import cvxpy as cp

    tasks, W = real()
    for formula, found in (
        (None, None),
        (lambda W, atom: np.sum(np.abs(W) ** 3) ** (1 / 3), None),
        (lambda W, atom: 2.0, "cubic_norm(W)"),
    ):
        word = mtl.register(
            SumOfCubes, reference=lambda W, atom: cp.pnorm(cp.vec(W, order="F"), 3), formula=formula
        )
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.ridge(W) + 0.5 * word(W))
        try:
            if found is None:
                problem.solve()
            else:
                with pytest.raises(mtl.CrossCheckError, match=re.escape(found)):
                    problem.solve()
        finally:
            mtl.unregister("cubic_norm")
        assert "cubic_norm" not in DEFINITIONS
    with pytest.raises(mtl.errors.ModelError, match="a function of"):
        mtl.register(SumOfCubes, reference=lambda W, atom: cp.pnorm(W, 3), formula=lambda W: 1.0)
    assert "cubic_norm" not in mtl.atoms.function.REGISTRY
