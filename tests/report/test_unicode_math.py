"""LaTeX for a terminal: every formula of the language becomes one readable line."""

import re

import numpy as np

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.display.math import to_unicode
from tests.loops import for_each


@for_each(("latex", "line"), [
    (r"\tfrac12\|{W}\|_F^2", "½‖W‖_F²"),
    (r"\|L + S\|_{2,1}", "‖L + S‖₂,₁"),
    (r"\|W\|_{1,\infty} \leq 3", "‖W‖₁,∞ ≤ 3"),
    (r"\sum_j \log\big(1+e^{-y_{ij}({W})_j}\big)", "Σⱼ log(1 + exp(−yᵢⱼ Wⱼ))"),
    (r"\sum_j \log\big(1+e^{-y_{ij}({L + S})_j}\big)", "Σⱼ log(1 + exp(−yᵢⱼ(L + S)ⱼ))"),
    (r"\sum_{i<q}\|{W}_{\cdot\,i+1}-{W}_{\cdot\,i}\|_1", "Σ_{i<q} ‖W·ᵢ₊₁ − W·ᵢ‖₁"),
    (r"\tfrac12\operatorname{tr}(W\,L\,W^\top)", "½ tr(W L Wᵀ)"),
    (r"\frac{\lambda}{2} \, \|W\|_*", "λ/2 ‖W‖⁎"),
    (r"\frac{\lambda (1 - \mu)}{n_i}", "(λ (1 − μ))/nᵢ"),
    (r"a - -1", "a − −1"),
    (r"\overline{W} - \overline{L + S}", "W̄ − mean(L + S)"),
    (r"\|\sqrt a \circ W\|_1", "‖√a ∘ W‖₁"),
    (r"\mathbf{1}^\top W = \tau \;\; \forall i", "1ᵀ W = τ ∀ i"),
    (r"W_{0,\,\cdot} \geq -1", "W[0, :] ≥ −1"),
    (r"W_{0:2,\,[0, 1]} \geq 0", "W[0:2, [0, 1]] ≥ 0"),
    (r"\rho_{q}(x)^2", "ρ_q(x)²"),
    (r"x^{ab} + x_{q0}", "x^{ab} + x_{q0}"),
    (r"|-a|-|+b| + |c|", "|−a| − |+b| + |c|"),
    (r"\Sigma_{12}\preceq 10^{-7} I", "Σ₁₂ ⪯ 10⁻⁷ I"),
    (r"\operatorname{tr}(W^\top D^{-1} W)", "tr(Wᵀ D⁻¹ W)"),
    (r"\mathrm{of\_tasks} \succeq 2 I", "of_tasks ⪰ 2 I"),
])  # fmt: skip
def test_one_line(latex, line):
    assert to_unicode(latex) == line


@for_each("name", list(REGISTRY))
def test_nothing_of_latex_is_left_of_any_word(name):
    for atom in REGISTRY[name].examples():
        for argument in ("W", "L + S", "W A", r"\mathrm{Shared}"):
            line = to_unicode(atom.latex(argument))
            rest = re.sub(r"[_^]\{[^{}]*\}", "", line)  # indices that have no small letters
            assert not re.search(r"[\\{}]", rest), line
            assert line.count("(") == line.count(")") and line.count("‖") % 2 == 0


def test_a_model_that_learns_matrices():
    tasks = mtl.Tasks.shared(np.eye(4), np.arange(8.0).reshape(4, 2))
    W, L, Sigma1 = mtl.Weights(tasks), mtl.Weights(tasks, name="L"), mtl.FeaturePrecision(tasks)
    Theta, Omega = mtl.TaskPrecision(tasks, "Theta"), mtl.TaskCovariance(tasks)
    lam = mtl.Parameter(2.0)
    objective = lam * mtl.matrix_normal(W - L, Sigma1, Theta, eta=3, rho=0.5) + mtl.task_covariance_norm(
        W, Omega
    )
    assert to_unicode(objective.latex) == (
        "λ [3 tr(Σ₁ (W − L) Θ (W − L)ᵀ) − 0.5 (m log|Σ₁| + d log|Θ|)] + tr(W Ω⁻¹ Wᵀ)"
    )
    assert to_unicode((Theta << 1e12).latex) == "Θ ⪯ 10¹² I"
    assert to_unicode((Omega.trace() <= 1).latex) == "tr Ω ≤ 1"
