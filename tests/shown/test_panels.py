"""What notebooks show: every object has a panel that is HTML, escapes what users typed, and says what its text says."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.display.sections import some_rows
from mtldsl.distributed.distributed_tasks import DistributedTasks
from tests.page_text import PageText


def text_of(shown) -> str:
    return PageText(shown._repr_html_()).text


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    Y = np.sign(X @ rng.normal(size=(5, 3)) + 0.3)
    tasks = mtl.Tasks.shared(X, Y, task_names=["<b>happy</b>", "sad & blue", "calm"])
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(0.5, "lam")
    return lam, mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.l21_norm(W), subject_to=[W >= -1])


def test_tasks_show_their_labels(model):
    """Tasks in parts show the same."""
    tasks = model[1].first_loss.data
    text = text_of(tasks)
    share = float(np.mean(tasks.per_task(tasks.targets)[2] > 0))
    assert f"calm 40 {100 * share:.1f} %" in text and "3 tasks, 5 features" in text
    assert "<b>happy</b>" in text and "<b>" not in tasks._repr_html_()
    there = text_of(DistributedTasks.cut(tasks, 3))
    assert text[text.index("task rows") :] == there[there.index("task rows") :] and "in 3 parts" in there


def test_tasks_of_numbers_show_their_spread():
    y = np.array([1.0, 2.0, 3.0, 6.0])
    text = text_of(mtl.Tasks.shared(np.eye(4), np.column_stack([y, [1.0, np.nan, 2.0, 4.0]])))
    assert "task0 4 3 1.871 1 6" in text and "missing labels 1" in text


def test_a_problem_shows_its_formula_and_what_it_is_made_of(model):
    lam, problem = model
    html, text = problem._repr_html_(), text_of(problem)
    where = problem._panel().formula.where
    assert html.count("<math ") == 1 + 1 + len(where) + sum(words.count("$") // 2 for _, words in where)
    assert "the weights, 5 features by 3 tasks" in text and "the intercepts" in text
    assert "the sum of the rows' Euclidean norms" in text and "the logistic loss" in text
    assert str(problem).split("\n")[0] in text.replace("&gt;", ">") or "minimize logistic_loss" in text


def test_latex_with_its_symbols_is_text_for_a_paper(model):
    lam, problem = model
    plain, paper = problem.latex(), problem.latex(where=True)
    assert plain in paper and paper.startswith(r"\[") and paper.count(r"\item") == 6
    assert rf"$\lambda = {lam.value:g}$" in paper
    words = ["".join(line.split("$: ")[1].split("$")[::2]) for line in paper.split("\n") if r"\item" in line]
    assert not any(character in line.replace(rf"\{character}", "") for line in words for character in "_&%#")
    assert problem._repr_latex_() == f"$${plain}$$"
    with pytest.raises(mtl.ModelError, match=r"latex\(where='yes'"):
        problem.latex(where="yes")


def test_an_explanation_shows_the_solver_that_is_chosen(model):
    explanation = model[1].explain()
    text = text_of(explanation)
    assert text.startswith(f"Solvers {explanation.chosen}")
    assert all(name in text for name, _, _ in explanation.verdicts())


def test_a_solution_shows_its_proof_and_weights(model, tmp_path):
    """Loaded it does not look proven, and what is not certified is not green."""
    solution = model[1].solve()
    text = text_of(solution)
    assert text.startswith("Solution optimal") and f"{solution.objective:.10g}" in text
    strongest = solution.feature_names[int(np.argmax(np.linalg.norm(solution.W, axis=1)))]
    rows = text[text.index("The largest weights") :]
    assert strongest == rows.split()[rows.split().index("calm") + 1]
    loaded = mtl.Solution.load(solution.save(tmp_path / "one.npz"))
    assert "as saved, not verified" in text_of(loaded) and '"verdict good"' not in loaded._repr_html_()
    stopped = model[1].solve(max_iter=1, solver="admm", tol=1e-10)
    assert not stopped.is_certified and '"verdict wrong"' in stopped._repr_html_()


def test_a_cross_check_shows_its_table(model):
    check = model[1].cross_check(model[1].solve())
    assert text_of(check).startswith("Cross-check agree The two agree")
    assert repr(check) == "<CrossCheck: The two agree (the whole problem).>"
    tasks = mtl.Tasks.shared(*np.split(np.random.default_rng(1).normal(size=(20, 7)), [4], axis=1))
    W, S = mtl.Weights(tasks), mtl.TaskPrecision(tasks, name="S")
    objective = mtl.squared_loss(W, tasks) + mtl.matrix_normal(W, np.eye(4), S)
    blocks = mtl.minimize(objective, subject_to=[S >> 0.1, S << 10]).cross_check()
    assert repr(blocks).startswith("<BlockCheck: The two agree on every block")
    for one in (check, blocks):
        assert all(cell in text_of(one) for row in one.rows() for cell in row)


def test_cross_validation_shows_the_value_that_is_best(model):
    lam, problem = model
    found = problem.cross_validate(lam, values=[0.3, 3.0], folds=3)
    assert text_of(found).startswith(f"Cross-validation lam = {found.best_value:.4g}")


def test_long_tables_say_what_is_left_out():
    rows, notes = some_rows([[str(k)] for k in range(40)], "tasks")
    assert len(rows) == 12 and notes == ["28 more tasks are not shown."]
    assert some_rows([["a"]], "tasks") == ([["a"]], [])
