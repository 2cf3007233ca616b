"""The list below a formula: LaTeX that can be set, which says what every symbol is, and formulas that tell apart what is not the same."""

import re

import numpy as np
import pytest
from latex2mathml.converter import convert

import mtldsl as mtl
from mtldsl.extending import Norm
from mtldsl.language.vocabulary import WORDS
from mtldsl.normal_form.statement import formula_of, meaning_of
from tests.language.test_latex import set_in_type as set_by_mathtext
from tests.loops import for_each

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 4)), RNG.normal(size=(20, 3))
TASKS = mtl.Tasks.shared(X, Y, feature_names=["age", "a_1", "50 %", "x"])
WEIGHTED = mtl.Tasks.shared(X, Y, sample_weights=RNG.random(20) + 0.5)
SIGNS = mtl.Tasks.shared(X, np.sign(Y))
W, L = mtl.Weights(TASKS), mtl.Weights(TASKS, name="L")


def listed(problem):
    """{formula: words} of the list."""
    return dict(formula_of(problem).where)


def set_in_type(latex):
    """Mathtext can set it, and so can the converter to MathML."""
    set_by_mathtext(latex)
    convert(latex)


@pytest.mark.slow
@for_each(
    "atom",
    [one for word in WORDS.values() for one in (getattr(word, "atom", word)).examples()],
    ids=lambda one: type(one).__name__,
)
def test_every_word_says_in_words_what_it_is(atom):
    words = meaning_of(atom)
    parts = words.split("$")
    assert len(parts) % 2 == 1 and parts[0], words
    assert type(atom).meaning, "a word of the language has a meaning of its own"
    for text in parts[::2]:
        assert not re.search(r"[\\_^{}|<>]", text), f"a formula outside of $...$: {words}"
    for latex in parts[1::2]:
        set_in_type(latex)


MODELS = {
    "decomposition": lambda: mtl.minimize(
        mtl.huber_loss(W + L, TASKS, delta=0.5) + mtl.l21_norm(W, weights=[1, 2, 3, 4]) + mtl.trace_norm(L),
        subject_to=[2 * mtl.l1_norm(L - W) <= 3, W["50 %", :] >= 0, W[["a_1", "x"], 0] <= 1],
    ),
    "constants": lambda: mtl.minimize(
        mtl.squared_loss(W, TASKS) + mtl.ridge(W @ np.eye(3)) + mtl.l1_norm(np.eye(4) @ W),
        subject_to=[W.sum(axis=0) == np.ones(3), W.sum(axis=1) <= np.ones((4, 1))],
    ),
    "metrics": lambda: mtl.minimize(
        mtl.structured_hinge(mtl.Weights(SIGNS), SIGNS, metric=mtl.metrics.FScore(beta=2))
        + mtl.ridge(mtl.Weights(SIGNS))
    ),
}


@for_each("build", [MODELS["decomposition"], MODELS["constants"]])
def test_the_whole_list_is_latex(build):
    problem = build()
    paper = problem.latex(where=True)
    assert r"\text" not in paper.split("where\n")[1] and "array" not in paper
    for latex, words in formula_of(problem).where:
        set_in_type(latex)
        for inside in words.split("$")[1::2]:
            set_in_type(inside)
    assert problem._repr_html_().count("<math ") > len(formula_of(problem).where)


def test_parameters_stand_in_the_words():
    words = listed(MODELS["decomposition"]())
    assert any(r"$h_{0.5}(r) = \tfrac12 r^2$ where $|r| \leq 0.5$" in one for one in words.values())
    assert any("with weights $a$ from $1$ to $4$" in one for one in words.values())
    assert words[r"\|L - W\|_1"].startswith(r"the $\ell_1$ norm")


def test_names_in_an_index_are_upright_and_whole():
    latex = MODELS["decomposition"]().latex()
    assert r"W_{\mathrm{50\ \%},\,\cdot} \geq 0" in latex
    assert r"W_{\{\mathrm{a\_1}, \mathrm{x}\},\,0} \leq 1" in latex


def test_constants_have_symbols_of_their_own():
    problem = MODELS["constants"]()
    latex, words = problem.latex(), listed(problem)
    assert r"\|W C_{1}\|_F^2 + \|C_{2} W\|_1" in latex
    assert r"\mathbf 1^\top W = c" in latex and r"W \mathbf 1 \leq C_{3}" in latex
    assert words[r"C_{1} \in \mathbb{R}^{3 \times 3}"] == words[r"c \in \mathbb{R}^{3}"] == "given numbers"
    own = mtl.Weights(TASKS, name="C")
    of_that_name = mtl.minimize(mtl.squared_loss(own, TASKS) + mtl.ridge(own @ np.eye(3)))
    assert r"\|C H\|_F^2" in of_that_name.latex()


@for_each(
    ("loss", "latex"),
    [
        (mtl.squared_loss, r"\tfrac12\sum_j s_{ij} (X_i w_i-y_i)_j^2"),
        (mtl.square_root_loss, r"\sqrt{\sum_j s_{ij} (X_i w_i-y_i)_j^2}"),
        (mtl.absolute_loss, r"\sum_j s_{ij} |X_i w_i-y_i|_j"),
        (mtl.quantile_loss, r"\sum_j s_{ij} \rho_{0.5}"),
    ],
)
def test_sample_weights_stand_in_the_formula(loss, latex):
    V = mtl.Weights(WEIGHTED)
    problem = mtl.minimize(loss(V, WEIGHTED, mean=True))
    assert rf"\sum_i \tfrac1{{n_i}} {latex}" in problem.latex()
    assert listed(problem)["s_{ij}"] == "the weight of row $j$ of task $i$"
    assert listed(problem)["n_i"] == "the weights of task $i$'s rows, added up"
    set_in_type(problem.objective.latex)
    assert "s_{ij}" not in mtl.minimize(loss(W, TASKS)).latex()


def test_two_metrics_and_two_tables_are_told_apart():
    V, other = mtl.Weights(SIGNS), mtl.Tasks.shared(X[:10], np.sign(Y[:10]))
    hinge = mtl.structured_hinge(V, SIGNS, metric=mtl.metrics.FScore(beta=2))
    assert any(
        r"$\Delta$ is one minus the F-score with $\beta = 2$" in one
        for one in listed(mtl.minimize(hinge)).values()
    )
    problem = mtl.minimize(
        hinge + mtl.structured_hinge(V, other, metric=mtl.metrics.AUC()) + mtl.logistic_loss(V, SIGNS)
    )
    words = listed(problem)
    assert words[r"X^{(2)}_i,\; y^{(2)}_i"].startswith("the inputs and the labels of task $i$, 10 rows")
    (second,) = [latex for latex in words if r"\Delta_{2}" in latex]
    assert r"X^{(2)}_i w_i" in second and r"$\Delta_{2}$ is the area above" in words[second]
    assert r"\log\big(1+e^{-y^{(1)}_{ij}(X^{(1)}_i w_i)_j}\big)" in problem.latex()
    for latex in words:
        set_in_type(latex)


def test_an_own_word_is_called_as_its_documentation_does():
    class KyFan(Norm):
        """The Ky Fan norm: sum_{j<=k} sigma_j. More."""

        name = "ky_fan"

    class Called(KyFan):
        name = "called"
        meaning = r"a norm of $\sigma_1$"

    class Another(Called):
        """One more 100 % norm_of 5 $: x_y."""

        name = "another"

    assert [meaning_of(cls()) for cls in (KyFan, Called, Another)] == [
        "the Ky Fan norm", r"a norm of $\sigma_1$", "One more 100 % norm_of 5",
    ]  # fmt: skip
