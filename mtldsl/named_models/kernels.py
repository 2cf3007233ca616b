"""The models whose tasks are alike by given kernels, and the one that weighs these kernels."""

from __future__ import annotations

from mtldsl.named_models.named_model import NamedModel

__all__ = ["KERNELS"]

_MT_MKL = 'Widmer, Kloft, Goernitz and Raetsch, "Multi-task multiple kernel learning"'
_FAMILY = "Kernels between the tasks"
_GIVEN = (
    "p = inf leaves every weight at 1. For another loss or other groups, type the statement: clusters(labels), tree(parents), "
    "laplacian(L, gamma) and from_kernel(R) take what is not a number, and so not a parameter of a name."
)

KERNELS: tuple[NamedModel, ...] = (
    NamedModel(
        name="MT-MKL",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [union(), individual()], theta)",
        about="Weights are a part that all tasks share and a part of each; how much each counts is learned.",
        source=f"{_MT_MKL}, Problem 1",
        family=_FAMILY,
        subject_to=("p_norm(theta, p) <= 1",),
        learned={"theta": "KernelWeights"},
        defaults={"p": 2},
        note="p = 1 leaves some weights at zero. The paper's own groups are those of a tree: mkl_norm(W, [tree(parents)], theta); a tree "
        "is not a number, and so not a parameter of a name.",
    ),
    NamedModel(
        name="Vanilla MTL",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [union(), individual()], p=inf)",
        about="Weights are a part that all tasks share and a part of each, none of them weighed.",
        source=f"Baseline of {_MT_MKL}, section 4",
        family=_FAMILY,
        also=("Vanilla",),
        note=_GIVEN,
    ),
    NamedModel(
        name="Union",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [union()], p=inf)",
        about="All tasks are one, with the same weights.",
        source=f"Baseline of {_MT_MKL}, section 4",
        family=_FAMILY,
        note=_GIVEN,
    ),
    NamedModel(
        name="Individual",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [individual()], p=inf)",
        about="Every task alone, by a support vector machine.",
        source=f"Baseline of {_MT_MKL}, section 4",
        family=_FAMILY,
        note=_GIVEN,
    ),
    NamedModel(
        name="Regularized MTL",
        statement="hinge_loss(W, tasks) + mkl_norm(W, [evgeniou_pontil(lam0, lam1)], p=inf)",
        about="The weights of a task are those that all share plus a small difference.",
        source='Evgeniou and Pontil, "Regularized multi-task learning", KDD 2004, Problem 2.1',
        family=_FAMILY,
        also=("Evgeniou-Pontil",),
        note="lam0 / 2 ||w_0||^2 + lam1 / 2 sum_t ||v_t||^2 with w_t = w_0 + v_t: of the paper's lambda_1 and lambda_2 and T tasks, lam0 "
        "is 2 lambda_2 and lam1 is 2 lambda_1 / T.",
    ),
    NamedModel(
        name="Frustratingly easy domain adaptation",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [domain_adaptation()], p=inf)",
        about="Every feature twice, once for all tasks and once for its own, and one support vector machine.",
        source='Daume, "Frustratingly easy domain adaptation", ACL 2007',
        family=_FAMILY,
        also=("EasyAdapt",),
        note="The paper leaves the learner open; here it is the linear support vector machine. It is Regularized MTL with lam0 = lam1, "
        "and Vanilla MTL.",
    ),
)
