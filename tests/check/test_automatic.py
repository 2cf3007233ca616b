"""A solve checks itself where it is told to, in the call or by mtl.defaults, and loses nothing where that fails."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers import L21Norm
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.errors import CrossCheckError, ModelError
from mtldsl.problems import cross_check as checking
from mtldsl.utils import interrupts
from tests.loops import for_each
from tests.models import shared


@pytest.fixture
def problem():
    tasks = shared(1, n=25)
    W, lam = mtl.Weights(tasks), mtl.Parameter(2.0, name="lam")
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W))


def test_a_solve_is_checked_where_it_is_asked_for(problem, monkeypatch):
    for unasked in ({}, {"cross_check": "never"}, {"cross_check": False}):
        assert problem.solve(**unasked).cross_check is None
    check = problem.solve(cross_check=True).cross_check
    assert check.agrees and check.scope == "the whole problem"
    monkeypatch.setattr(checking, "SETTINGS", replace(checking.SETTINGS, subsample_entries=60))
    check = problem.solve(cross_check="subsample").cross_check
    assert check.agrees and "rows a task" in check.scope


def test_by_default_for_a_while(problem):
    lam = problem.parameters[0]
    with mtl.defaults(cross_check=True):
        assert problem.solve().cross_check.agrees
        assert problem.solve(cross_check="never").cross_check is None  # the call has the last word
        assert [s.cross_check.agrees for s in problem.path(lam, [3.0, 1.0])] == [True, True]
    with pytest.raises(ZeroDivisionError), mtl.defaults(cross_check=True):
        raise ZeroDivisionError
    assert problem.solve().cross_check is None
    assert repr(mtl.defaults()) == "<defaults: cross_check='never'>"


def test_folds_and_samples_are_left_alone(problem, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("nobody asked")

    monkeypatch.setattr(checking, "compare_sides", refuse)
    lam = problem.parameters[0]
    with mtl.defaults(cross_check=True):
        problem.cross_validate(lam, [3.0, 1.0], folds=2)
        problem.bootstrap(3)
        problem.stability_selection(lam, [3.0, 1.0], n=4, expected_false=None)


def test_by_default_large_models_are_left_alone_and_say_so(problem, monkeypatch):
    monkeypatch.setattr(checking, "SETTINGS", replace(checking.SETTINGS, max_entries=60))
    with mtl.defaults(cross_check=True):
        assert "too large (workload" in problem.solve().cross_check
    with mtl.defaults(cross_check="subsample"):
        assert problem.solve().cross_check.agrees
    assert (
        "rows a task" in problem.solve(cross_check=True).cross_check.scope
    )  # the call asks for what there is


def test_rows_elsewhere_are_left_alone_by_default():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(40, 3)), rng.normal(size=(40, 2)))
    apart = DistributedTasks.cut(tasks, 2)
    problem = mtl.minimize(mtl.squared_loss(W := mtl.Weights(apart), apart) + mtl.l21_norm(W))
    with mtl.defaults(cross_check=True):
        assert problem.solve().cross_check == "not made: the rows are elsewhere"
    assert problem.solve(cross_check=True).cross_check.agrees


def test_a_point_without_a_proof_is_not_compared(problem):
    found = problem.solve(solver="proximal_gradient", max_iter=1, tol=1e-12, cross_check=True).cross_check
    assert found == "not made: the solution is not certified (iteration_limit)"


def test_a_disagreement_has_both_sides_and_the_solution(problem, monkeypatch):
    value = L21Norm.value
    monkeypatch.setattr(L21Norm, "value", lambda self, X: 1.001 * value(self, X))
    monkeypatch.setattr(L21Norm, "prox", lambda self, V, t, _prox=L21Norm.prox: _prox(self, V, 1.001 * t))
    with pytest.raises(CrossCheckError, match="DISAGREE") as caught:
        problem.solve(solver="admm", tol=1e-3, cross_check=True)
    assert "reference" in str(caught.value) and caught.value.solution.solver == "admm"
    assert caught.value.solution.cross_check.disagreements


def test_what_cannot_be_compared(problem, monkeypatch):
    def beyond(*_, **__):
        raise ModelError("too many labels", term="clique_hinge(...)")

    monkeypatch.setattr(checking, "compare_sides", beyond)
    with pytest.raises(ModelError, match="too many labels") as caught:
        problem.solve(cross_check=True)
    assert caught.value.solution.is_certified
    with mtl.defaults(cross_check=True):
        assert problem.solve().cross_check == "not made: clique_hinge(...): too many labels"


@for_each("stop, said", [(interrupts.TimeIsUp, "the time was up"), (KeyboardInterrupt, "it was interrupted")])
def test_what_is_cut_short_keeps_the_solution(problem, monkeypatch, stop, said):
    def cut(*_, **__):
        raise stop

    monkeypatch.setattr(checking, "compare_sides", cut)
    solution = problem.solve(cross_check=True, max_seconds=120)
    assert solution.is_certified and solution.cross_check == f"not made: {said}"
    assert solution.interrupted == (stop is KeyboardInterrupt)


def test_it_holds_in_every_thread(problem):
    found = []
    with mtl.defaults(cross_check="subsample"):
        thread = threading.Thread(target=lambda: found.append(problem.solve().cross_check))
        thread.start()
        thread.join()
    assert found[0].agrees


@for_each("typed", ["yes", 3, [True], np.array([1.0, 2.0])])
def test_another_word(problem, typed):
    with pytest.raises(ModelError, match=r'write True, "subsample" or "never"'):
        problem.solve(cross_check=typed)
    with pytest.raises(ModelError, match=r"defaults\(cross_check=.*write True"):
        mtl.defaults(cross_check=typed)


@pytest.mark.slow
def test_the_solution_shows_it_and_does_not_save_it(problem, tmp_path):
    solution = problem.solve(cross_check=True)
    assert "The two agree" in solution._repr_html_()
    assert mtl.Solution.load(solution.save(tmp_path / "s.npz")).cross_check is None
    page = solution.report(tmp_path / "page.html").read_text()
    assert "not cross-checked" not in page and "cvxpy solved the same model" in page


def test_estimators_have_an_option_of_their_own():
    from mtldsl.estimators import MultiTaskRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    with mtl.defaults(cross_check=True):
        plain = MultiTaskRegressor().fit(X, X[:, :2])
    assert plain.solution_.cross_check is None and not hasattr(plain, "cross_check_")
    for check in ("subsample", "full"):
        fitted = MultiTaskRegressor(check=check).fit(X, X[:, :2])
        assert fitted.solution_.cross_check.agrees and fitted.cross_check_.agrees


def test_weights_that_contradict_the_blocks_do_not_agree(problem, tmp_path):
    """A saved solution has its weights twice: by which it predicts, and by block."""
    path = problem.solve().save(tmp_path / "s.npz")
    assert problem.cross_check(mtl.Solution.load(path)).agrees
    stored = dict(np.load(path))
    np.savez(path, **stored | {"coef": stored["coef"] + 1.0})
    with pytest.raises(
        mtl.ModelError, match=r"squared_loss\(W, tasks\): solution\.W .* contradicts .* blocks"
    ):
        problem.cross_check(mtl.Solution.load(path))
