"""Words and solvers of one's own: what is refused, with everything that is missing; what they take part in; and that laws catch mistakes."""

from dataclasses import dataclass
from typing import ClassVar

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.losses import SquaredLoss
from mtldsl.atoms.matrix_function import WithoutConjugate
from mtldsl.atoms.regularizers import L1Norm
from mtldsl.cli.catalogue import entry
from mtldsl.extending import (
    Metric,
    Norm,
    Point,
    Regularizer,
    SeparableLoss,
    Set,
    Solver,
    register_solver,
    unregister_solver,
)
from mtldsl.language.parser import parse_objective
from mtldsl.solvers.routes import SOLVERS
from mtldsl.testing import LawError, check_atom, check_solver
from tests.atoms.new_words import NEW, MarginShortfall
from tests.loops import for_each

RNG = np.random.default_rng(0)
TASKS = mtl.Tasks.shared(RNG.normal(size=(12, 4)), RNG.normal(size=(12, 3)))
W = mtl.Weights(TASKS)


class LargestEntry(Norm):
    """The largest absolute entry: max |W_ij|."""

    name: ClassVar[str] = "largest_entry"
    formula: ClassVar[str] = r"\|{}\|_\infty"
    monotone: ClassVar[bool] = True

    def value(self, W):
        return float(np.abs(W).max())

    def dual_gauge(self, Z):
        return float(np.abs(Z).sum())

    def prox(self, W, step):
        return W - NormBall(L1Norm(), step).project(W) if step else W


def reference(W, atom):
    return cp.max(cp.abs(W))


@pytest.mark.slow
def test_a_word_takes_part_in_everything():
    word = mtl.register(LargestEntry, reference=reference)
    assert mtl.largest_entry is word and "largest_entry" in dir(mtl)
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + 2 * word(W))
    assert str(problem).endswith("2 * largest_entry(W)")
    typed = parse_objective("squared_loss(W, tasks) + 2 * largest_entry(W)", {"W": W, "tasks": TASKS})
    assert str(problem).removeprefix("minimize").strip() == str(typed)
    assert problem.solve(tol=1e-7).status == "optimal" and problem.cross_check().agrees
    item = entry("largest_entry")
    assert item.kind == "regularizer" and item.reference and "admm" in item.solvers
    assert check_atom(word) == check_atom(LargestEntry) > 20
    mtl.unregister("largest_entry")
    with pytest.raises(AttributeError, match="no attribute 'largest_entry'"):
        _ = mtl.largest_entry
    with pytest.raises(mtl.ModelError, match="there is no word 'largest_entry'"):
        parse_objective("largest_entry(W)", {"W": W})


class ByItsProx(Norm):
    """The largest absolute entry, by its value and prox alone."""

    name: ClassVar[str] = "by_its_prox"
    formula: ClassVar[str] = r"\|{}\|_\infty"

    value, prox = LargestEntry.value, LargestEntry.prox


class ByItsDual(Norm):
    """The largest absolute entry, without a prox."""

    name: ClassVar[str] = "by_its_dual"
    formula: ClassVar[str] = r"\|{}\|_\infty"
    exact_prox: ClassVar[bool] = False

    value, dual_gauge = LargestEntry.value, LargestEntry.dual_gauge


@pytest.mark.slow
def test_a_norm_of_ones_own_has_a_ball_and_a_critical_value():
    """By its prox alone: the dual norm too."""
    word, lam = mtl.register(ByItsProx, reference=reference), mtl.Parameter(1.0)
    assert check_atom(word) > 20
    given = mtl.register(LargestEntry, reference=reference)
    penalised = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * word(W))
    known = mtl.minimize(mtl.squared_loss(W, TASKS) + lam * given(W)).lambda_max(lam)
    assert penalised.lambda_max(lam) == pytest.approx(known, rel=1e-12)
    ball = 2 * word(W - 0.1) <= 0.3
    assert str(ball) == "2 * by_its_prox(W - 0.1) <= 0.3" and ball.latex.endswith(r"\leq 0.3")
    for loss in (mtl.squared_loss(W, TASKS), mtl.absolute_loss(W, TASKS)):
        problem = mtl.minimize(loss, subject_to=[ball])
        solution = problem.solve(tol=1e-7)
        assert solution.status == "optimal" and solution.solver != "cvxpy"
        assert np.abs(solution.W - 0.1).max() <= 0.15 + 1e-7 and problem.cross_check(solution).agrees


def test_a_norm_without_a_prox_is_bounded_by_the_reference():
    word = mtl.register(ByItsDual, reference=reference)
    problem = mtl.minimize(mtl.squared_loss(W, TASKS), subject_to=[word(W) <= 0.2])
    with pytest.raises(mtl.ModelError, match=r"by_its_dual\(W\) <= 0.2 has no exact proximal step"):
        problem.solve("admm")
    solution = problem.solve()
    assert (solution.solver, solution.status) == ("cvxpy", "optimal")

    class Neither(ByItsDual):
        name: ClassVar[str] = "neither"
        dual_gauge = Norm.dual_gauge

    with pytest.raises(mtl.ModelError, match=r"the method dual_gauge \(or a prox, which it follows from\)"):
        mtl.register(Neither, reference=reference)


def test_a_cell_may_be_run_twice_and_names_are_taken_once():
    mtl.register(LargestEntry, reference=reference)
    again = mtl.register(LargestEntry, reference=reference)
    assert mtl.largest_entry is again
    for name in ("largest_entry", "l1_norm", "FScore", "union", "p_norm", "TaskPrecision", "tasks"):
        other = type("Other", (LargestEntry,), {"name": name})
        with pytest.raises(mtl.ModelError, match=f"the name '{name}' is taken"):
            mtl.register(other, reference=reference)


def test_what_is_missing_is_listed():
    class Bare(Regularizer):
        name: ClassVar[str] = "bare"

    class NoConjugate(SeparableLoss):
        """..."""

        name: ClassVar[str] = "no_conjugate"
        labels: ClassVar[str] = "colours"

        def pointwise(self, z, y):
            return z

    class NoDataclass(LargestEntry):
        name: ClassVar[str] = "no_dataclass"
        weight: float = 1.0

    @dataclass(frozen=True, eq=False)
    class NoExamples(LargestEntry):
        weight: float

        name: ClassVar[str] = "no_examples"

    class NoName(Set):
        pass

    for cls, says in (
        (Bare, "the method value; the method prox; the method conjugate; the method dual_gauge"),
        (
            NoConjugate,
            "the method slope; the method pointwise_prox; the method pointwise_conjugate; labels that are one of 'real'",
        ),
        (NoDataclass, r"@dataclass\(frozen=True, eq=False\) above the class, for its parameter weight"),
        (NoExamples, "examples"),
        (NoName, "name: ClassVar.*the method violation"),
        (type("Empty", (Metric,), {}), "the method delta"),
    ):
        with pytest.raises(mtl.ModelError, match=says):
            mtl.register(cls, reference=reference)
    for given, says in (
        (None, r"give the definition a second time, as a function f\(W, atom\) in cvxpy"),
        (lambda z, y, s, atom: 0,
         r"a reference function of a regularizer takes \(W, atom\), this one takes \(z, y, s, atom\)"),
    ):  # fmt: skip
        with pytest.raises(mtl.ModelError, match=says):
            mtl.register(LargestEntry, reference=given)
    with pytest.raises(mtl.ModelError, match="it is not a class of a word"):
        mtl.register(dict, reference=reference)
    with pytest.raises(mtl.ModelError, match="no_such_mark"):
        mtl.register(LargestEntry, reference=reference, no_such_mark=1)
    with pytest.raises(mtl.ModelError, match=r"check_atom\(LargestEntry\): it is not a registered class"):
        check_atom(LargestEntry)
    with pytest.raises(mtl.ModelError, match="no word of this name was registered"):
        mtl.unregister("l1_norm")


@pytest.mark.slow
@for_each("wrong, law", [
    ({"value": lambda self, W: float(np.abs(W).max()) + 1e-6 * np.abs(W).sum()},
     "value_is_the_reference_value"),
    ({"prox": lambda self, W, step: 0.999 * LargestEntry.prox(self, W, step)}, "prox_is_the_minimiser"),
    ({"dual_gauge": lambda self, Z: 0.9 * float(np.abs(Z).sum())}, "norm_and_dual_norm"),
    ({"dual_gauge": lambda self, Z: 1.1 * float(np.abs(Z).sum())}, "conjugate|dual_gauge|tight"),
    ({"separable": "rows"}, "separable_prox_acts_on_each_part_alone"),
    ({"strong_convexity": 1.0}, "traits_are_what_they_say"),
    ({"prox": lambda self, W, step: LargestEntry.prox(self, W, step) if step else 0.5 * W},
     "prox_of_no_step"),
])  # fmt: skip
def test_the_laws_catch_a_class_that_is_wrong(wrong, law):
    cls = type("Wrong", (LargestEntry,), {"name": "wrong_entry", **wrong})
    mtl.register(cls, reference=reference)
    with pytest.raises(LawError, match=law) as error:
        check_atom(cls)
    assert "the law: " in str(error.value) and isinstance(error.value, AssertionError)


class ThreeHalves(Regularizer):
    """Sum over entries of 2/3 |W_ij|^(3/2): between the l1 norm and a ridge. Its slope at 0 is 0, but no difference says so."""

    name: ClassVar[str] = "three_halves"
    formula: ClassVar[str] = r"\tfrac23\sum|{}_{ij}|^{3/2}"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    finite_dual: ClassVar[bool] = True

    def value(self, W):
        return 2.0 / 3.0 * float(np.sum(np.abs(W) ** 1.5))

    def gradient(self, W):
        return np.sign(W) * np.sqrt(np.abs(W))

    def prox(self, W, step):
        root = 0.5 * (np.sqrt(step**2 + 4 * np.abs(W)) - step)
        return np.sign(W) * root**2

    def conjugate(self, Z):
        return float(np.sum(np.abs(Z) ** 3)) / 3.0

    def dual_gauge(self, Z):
        return 0.0


class SlopeAtZero(ThreeHalves):
    name: ClassVar[str] = "slope_at_zero"

    def entry_slopes(self, W):
        slope = self.gradient(W)
        return slope - 1e-3 * (W == 0), slope + 1e-3 * (W == 0)


class Capped(WithoutConjugate, Regularizer):
    """Sum over entries of min(|W_ij|, 1), which is not convex."""

    name: ClassVar[str] = "capped_entries"
    formula: ClassVar[str] = r"\sum\min(|{}_{ij}|, 1)"
    separable: ClassVar[str] = "entries"
    convex: ClassVar[bool] = False
    is_bounded: ClassVar[bool] = True
    weak_convexity: ClassVar[float] = np.inf

    def value(self, W):
        return float(np.minimum(np.abs(W), 1.0).sum())

    def prox(self, W, step):
        size = np.abs(W)
        near, far = np.clip(size - step, 0.0, 1.0), np.maximum(size, 1.0)
        costs = [step * np.minimum(t, 1.0) + 0.5 * (t - size) ** 2 for t in (near, far)]
        return np.sign(W) * np.where(costs[1] < costs[0], far, near)


def test_a_word_that_is_not_convex_is_solved():
    capped = mtl.register(Capped, reference=lambda W, atom: None)
    solution = mtl.minimize(mtl.squared_loss(W, TASKS) + 3.0 * capped(W)).solve()
    assert solution.status == "stationary"


@pytest.mark.slow
def test_a_slope_that_differences_reach_slowly_is_right():
    def power(W, atom):
        return 2 / 3 * cp.sum(cp.power(cp.abs(W), 1.5))

    assert check_atom(mtl.register(ThreeHalves, reference=power)) > 25
    with pytest.raises(LawError, match="declared_entry_slopes"):
        check_atom(mtl.register(SlopeAtZero, reference=power))
    without = type(
        "WithoutSlopes", (ThreeHalves,), {"name": "without_slopes", "gradient": Regularizer.gradient}
    )
    with pytest.raises(LawError, match=r"write entry_slopes\(W\), or gradient\(W\)"):
        check_atom(mtl.register(without, reference=power))


@pytest.mark.slow
def test_the_laws_catch_a_loss_that_is_wrong():
    cls = MarginShortfall
    wrong = {
        "pointwise_prox": lambda self, z, y, step: cls.pointwise_prox(self, z, y, 1.01 * step),
        "slope": lambda self, z, y: 1.01 * cls.slope(self, z, y),
    }
    own = type("Wrong", (cls,), {"name": "wrong_shortfall", **wrong})
    mtl.register(own, NEW[cls], sum_over_samples=True)
    with pytest.raises(LawError) as error:
        check_atom(own)
    for law in ("prox_is_the_minimiser", "fenchel_young_is_tight_at_the_prox", "gradient_is_the_derivative"):
        assert f"breaks {law}" in str(error.value)


class Zeros(Solver):
    """Shows zeros, and nothing else."""

    name, summary = "zeros", "a solver that knows one answer"

    def refuses(self, form):
        return None

    def solve(self, form, *, tol, max_iter, start, watch):
        point = Point(form.zeros())
        watch(point)
        return point


@pytest.mark.slow
def test_a_solver_stands_behind_the_others_and_is_never_believed():
    before = list(SOLVERS)
    assert register_solver(Zeros()).name == "zeros"
    assert [*before[:-1], "zeros", before[-1]] == list(SOLVERS)
    problem = mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.ridge(W))
    assert problem.solve("zeros").status != "optimal"
    with pytest.raises(LawError, match="zeros breaks its_answer_is_certified_and_the_reference_agrees"):
        check_solver("zeros")
    register_solver(Zeros(), before="admm")
    assert list(SOLVERS).index("zeros") == list(SOLVERS).index("admm") - 1
    unregister_solver("zeros")
    assert list(SOLVERS) == before


def test_solvers_that_lack_something_are_refused():
    class Incomplete(Solver):
        name = "incomplete"

    for solver, options, says in (
        (Incomplete, {}, r"this is a class; write register_solver\(Incomplete\(\)\)"),
        (type("Plain", (), {"name": "plain"})(), {}, "it lacks summary, options, choices"),
        (type("Admm", (Zeros,), {"name": "admm"})(), {}, "a solver of this name is there"),
        (type("Auto", (Zeros,), {"name": "auto"})(), {}, "choose another name"),
        (Zeros(), {"before": "nobody"}, "there is no such solver; write one of closed_form"),
    ):
        with pytest.raises(mtl.SolverError, match=says):
            register_solver(solver, **options)
    with pytest.raises(mtl.SolverError, match="no solver of this name was registered"):
        unregister_solver("admm")


def test_a_saved_solution_of_an_unknown_loss_is_not_damaged(tmp_path):
    ours = type("Ours", (SquaredLoss,), {"name": "ours"})
    word = mtl.register(ours, reference=lambda z, y, s, atom: cp.sum_squares(z - y) / 2)
    path = mtl.minimize(word(W, TASKS) + mtl.l1_norm(W)).solve().save(tmp_path / "ours.npz")
    assert mtl.Solution.load(path).loss["word"] == "ours"
    mtl.unregister("ours")
    with pytest.raises(
        mtl.DataError, match=r"which is not a word here; import what defines it first, if it is yours$"
    ):
        mtl.Solution.load(path)
