"""What is printed is what was typed, and every model's LaTeX can be set: matplotlib's mathtext reads it."""

import re

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

mathtext = pytest.importorskip("matplotlib.mathtext")

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(20, 4)), rng.normal(size=(20, 3))
TASKS = {
    "real": mtl.Tasks.shared(X, Y),
    "sign": mtl.Tasks.shared(X, np.sign(Y), task_names=["a_1", "b%", "c"]),
    "count": mtl.Tasks.shared(X, np.floor(Y**2)),
    "positive": mtl.Tasks.shared(X, np.exp(Y)),
    "time": mtl.Tasks.shared(X, Y),
    "classes": mtl.Tasks.shared(X, np.where(Y.max(axis=1, keepdims=True) == Y, 1.0, -1.0)),
}
W, L = mtl.Weights(TASKS["sign"]), mtl.Weights(TASKS["sign"], name="L")
long_name = mtl.Weights(TASKS["sign"], name="my_weights", intercept=True)
lam, mu_2 = mtl.Parameter(2.0), mtl.Parameter(3.0, name="mu_2")
S_1, Sigma = mtl.FeaturePrecision(TASKS["sign"], "S_1"), mtl.TaskPrecision(TASKS["sign"], "Sigma12")
Omega = mtl.TaskCovariance(TASKS["sign"])
ARGUMENTS = [
    W, long_name, L - W, -W, W / 3, W[:, [0, 1, 2]], 3 - W, W - np.ones((4, 3)), np.eye(4) @ W, lam * W
]  # fmt: skip
NEEDED = {
    "capped_trace_norm": {"tau": 2.0},
    "capped_l1": {"tau": 2.0},
    "schatten_norm": {"p": 0.5},
    "spectral_penalty": {"function": np.log1p, "derivative": lambda x: 1.0 / (1.0 + x)},
    "group_norm": {"groups": [[0, 1], [2]]},
    "latent_group_norm": {"groups": [[0, 1], [1, 2, 3]]},
    "squared_cluster_norm": {"lower": 0.1, "upper": 1.1, "trace": 3.0},
    "tree_norm": {"columns": [[0], [1, 2], [0, 1, 2]]},
    "graph_laplacian": {"L": np.eye(3)},
    "kronecker_ridge": {"rows": np.eye(4), "columns": np.eye(3)},
    "half_squared_k_support_norm": {"r": 2},
    "mkl_norm": {"similarities": [mtl.similarities.union(), mtl.similarities.identity()], "p": 1.5},
    "matrix_normal": {
        "Sigma1": mtl.FeaturePrecision(TASKS["sign"], "my_precision"),
        "Sigma2": mtl.TaskPrecision(TASKS["sign"]),
        "eta": 1e-7,
        "rho": 2.5,
    },
    "feature_covariance_norm": {"D": mtl.FeatureCovariance(TASKS["sign"])},
    "task_covariance_norm": {"Omega": mtl.TaskCovariance(TASKS["sign"])},
}


def set_in_type(latex):
    """Mathtext knows fewer commands than LaTeX: those it lacks are exchanged for their like."""
    for missing, like in [
        (r"\text{", r"\mathrm{"), (r"\tfrac12", r"\frac{1}{2}"), (r"\tfrac1{", r"\frac{1}{"),
        (r"\tfrac1n", r"\frac{1}{n}"), (r"\big", ""), (r"\Big", ""), (r"\mathbf 1", r"\mathbf{1}"),
        (r"\quad & ", r"\quad "),
    ]:  # fmt: skip
        latex = latex.replace(missing, like)
    mathtext.MathTextParser("agg").parse(f"${latex}$")


WORDS = [w for w in mtl.language.vocabulary.WORDS if w not in mtl.language.vocabulary.METRICS]


@pytest.mark.slow
@for_each("word", WORDS)
def test_every_word_of_an_argument_can_be_set(word):
    """Arguments take turns, two a word."""
    build = mtl.language.vocabulary.WORDS[word]
    if getattr(build.atom, "labels", None) == "indicators":  # of the weights of a graph alone
        tasks = TASKS["sign"]
        U, V = mtl.NodeWeights(tasks, "my_U"), mtl.EdgeWeights(tasks, name="V_1")
        for nodes, edges in ((U, V), (U / 3, lam * V), (U, V - mtl.EdgeWeights(tasks, name="Z"))):
            set_in_type(build(nodes, edges, tasks).latex)
        return
    turn = WORDS.index(word)
    for argument in (ARGUMENTS[turn % 10], ARGUMENTS[(3 * turn + 5) % 10]):
        labels = getattr(build.atom, "labels", None)
        term = (
            build(argument, TASKS[labels], mean=True)
            if isinstance(labels, str)
            else build(argument, **NEEDED.get(word, {}))
        )
        set_in_type(term.latex)


@for_each(
    "metric",
    [kind for word in mtl.language.vocabulary.METRICS.values() for kind in word.examples()],
    ids=repr,
)
def test_every_metric_inside_a_model_can_be_set(metric):
    problem = mtl.minimize(
        lam * mtl.structured_hinge(L - W, TASKS["sign"], metric=metric, mean=True) + mtl.l1_norm(W)
    )
    set_in_type(problem.objective.latex)
    assert "L - W" in problem.objective.latex and r"\Delta" in problem.objective.latex
    of_all = mtl.structured_hinge(
        W, TASKS["sign"], metric=[metric, mtl.metrics.AUC(), mtl.metrics.FScore(beta=2.0)]
    )
    set_in_type(of_all.latex)
    assert repr(metric) in problem.objective.text


@for_each("build, text, latex", [
    (lambda: 3 - W, "3 - W", "3 - W"),
    (lambda: 1 - (L + W), "1 - (L + W)", "1 - (L + W)"),
    (lambda: W / 2, "W / 2", r"\frac{W}{2}"),
    (lambda: (L - W) / lam, "(L - W) / lam", r"\frac{L - W}{\lambda}"),
    (lambda: -lam * mtl.ridge(W), "-lam * ridge(W)", r"-\lambda \, \tfrac12\|W\|_F^2"),
    (lambda: 2 * lam * 3 * mtl.l1_norm(W), "2 * lam * 3 * l1_norm(W)", r"2 \lambda \cdot 3 \, \|W\|_1"),
    (lambda: mu_2 * mtl.l1_norm(W), "mu_2 * l1_norm(W)", r"\mathrm{mu\_2} \, \|W\|_1"),
    (lambda: (L + W).sum() >= 1, "(L + W).sum() >= 1", r"\mathbf 1^\top (L + W) \mathbf 1 \geq 1"),
    (lambda: -np.inf <= W, "W >= -inf", r"W \geq -\infty"),
    (lambda: mtl.l1_norm(W) <= 1e-7, "l1_norm(W) <= 1e-07", r"\|W\|_1 \leq 10^{-7}"),
    (lambda: W[:, "a_1"] == 0, "W[:, 'a_1'] == 0", r"W_{\cdot,\,\mathrm{a\_1}} = 0"),
    (lambda: W[:, "b%"] <= 2.5e20, "W[:, 'b%'] <= 2.5e+20",
     r"W_{\cdot,\,\mathrm{b\%}} \leq 2.5 \cdot 10^{20}"),
    (lambda: np.ones(3) <= W, "W >= array(3)", r"W \geq \mathrm{array}(3)"),
    (lambda: Sigma >> 1e-7, "Sigma12 >> 1e-07", r"\Sigma_{12} \succeq 10^{-7} I"),
    (lambda: lam * mtl.l1_norm(Sigma), "lam * l1_norm(Sigma12)", r"\lambda \, \|\Sigma_{12}\|_1"),
    (lambda: 50 >> Sigma, "Sigma12 << 50", r"\Sigma_{12} \preceq 50 I"),
    (lambda: Omega.trace() <= 2.5, "Omega.trace() <= 2.5", r"\operatorname{tr} \Omega \leq 2.5"),
    (
        lambda: lam * mtl.matrix_normal(L - W, S_1, Sigma, eta=2),
        "lam * matrix_normal(L - W, S_1, Sigma12, eta=2)",
        r"\lambda \, \left[2 \, \operatorname{tr}(\mathrm{S\_1} (L - W) \Sigma_{12} (L - W)^\top) - "
        r"(m \log|\mathrm{S\_1}| + d \log|\Sigma_{12}|)\right]",
    ),
])  # fmt: skip
def test_as_typed(build, text, latex):
    made = build()
    assert (made.text, made.latex) == (text, latex)
    set_in_type(made.latex)


def test_whole_problem_has_no_index_after_an_index():
    problem = mtl.minimize(
        mtl.logistic_loss(long_name, TASKS["sign"]) + lam * mtl.l21_norm(long_name, weights=np.ones(4)),
        subject_to=[long_name[[0, 1], :] >= 0],
    )
    assert not re.search(r"_\{[^{}]*\}_", problem._repr_latex_())
