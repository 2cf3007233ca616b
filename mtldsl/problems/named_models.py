"""Named models of papers: their statements, and `model` and `models`, which find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.language.suggestions import meant
from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.problem import Problem
from mtldsl.utils.validation import complete, quoted

# --------------------------------------------------------------------------------------------------------------
# The models whose tasks are alike by given kernels, and the one that weighs these kernels.

_MT_MKL = 'Widmer, Kloft, Goernitz and Raetsch, "Multi-task multiple kernel learning"'
_GIVEN = (
    "p = inf leaves every weight at 1. For another loss or other groups, type the statement, with clusters(labels), tree(parents), "
    "laplacian(L, gamma) or from_kernel(R)."
)

_KERNEL_MODELS: tuple[NamedModel, ...] = (
    NamedModel(
        name="MT-MKL",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [union(), individual()], theta)",
        about="Weights are a part that all tasks share and a part of each; how much each counts is learned.",
        source=f"{_MT_MKL}, Problem 1",
        subject_to=("p_norm(theta, p) <= 1",),
        learned={"theta": "KernelWeights"},
        defaults={"p": 2},
        note="p = 1 leaves some weights at zero. The paper's own groups are those of a tree: type mkl_norm(W, [tree(parents)], theta).",
    ),
    NamedModel(
        name="Vanilla MTL",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [union(), individual()], p=inf)",
        about="Weights are a part that all tasks share and a part of each, none of them weighed.",
        source=f"Baseline of {_MT_MKL}, section 4",
        also=("Vanilla",),
        note=_GIVEN,
    ),
    NamedModel(
        name="Union",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [union()], p=inf)",
        about="All tasks are one, with the same weights.",
        source=f"Baseline of {_MT_MKL}, section 4",
        note=_GIVEN,
    ),
    NamedModel(
        name="Individual",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [individual()], p=inf)",
        about="Every task alone, by a support vector machine.",
        source=f"Baseline of {_MT_MKL}, section 4",
        note=_GIVEN,
    ),
    NamedModel(
        name="Regularized MTL",
        statement="hinge_loss(W, tasks) + mkl_norm(W, [evgeniou_pontil(lam0, lam1)], p=inf)",
        about="The weights of a task are those that all share plus a small difference.",
        source='Evgeniou and Pontil, "Regularized multi-task learning", KDD 2004, Problem 2.1',
        also=("Evgeniou-Pontil",),
        note="lam0 / 2 ||w_0||^2 + lam1 / 2 sum_t ||v_t||^2 with w_t = w_0 + v_t: of the paper's lambda_1 and lambda_2 and T tasks, lam0 "
        "is 2 lambda_2 and lam1 is 2 lambda_1 / T.",
    ),
    NamedModel(
        name="Frustratingly easy domain adaptation",
        statement="C * hinge_loss(W, tasks) + mkl_norm(W, [domain_adaptation()], p=inf)",
        about="Every feature twice, once for all tasks and once for its own, and one support vector machine.",
        source='Daume, "Frustratingly easy domain adaptation", ACL 2007',
        also=("EasyAdapt",),
        note="The paper leaves the learner open. It is Regularized MTL with lam0 = lam1, and Vanilla MTL.",
    ),
)


# --------------------------------------------------------------------------------------------------------------
# The models over a graph of labels: the one that learns which edges there are, and the ones whose graph is given.

_CGM = 'Tan, Shi, van den Hengel, Shen, Gao, Hu and Zhang, "Learning graph structure for multi-label image classification via clique generation", CVPR 2015'
_EDGES = "edges=[...] gives the edges that there may be: pairs of labels, or a networkx graph."
_INPUTS = (
    "Labels are -1 and +1 over a shared X. Where some are missing, a row has the loss of its observed labels and the edges between them. intercept=True gives "
    "labels intercepts without a penalty, a column of ones in X all of them with one."
)

_LABEL_GRAPH_MODELS: tuple[NamedModel, ...] = (
    NamedModel(
        name="CGM",
        statement="clique_hinge(U, V, tasks) + lam * ridge(U) + lam * half_squared_k_support_norm(V, r)",
        about="A few pairs of labels depend on each other, and which ones is learned.",
        source=f"{_CGM}, equation (6)",
        weights=("U", "V"),
        edges="all",
        defaults={"r": 1},
        note="r is the largest number of edges in the problem that this one relaxes; r = 1 is the squared group norm, equation (10). At small "
        f'lam many edges have small weights: solve("clique_generation", max_edges=...), or graph_selection=True, stops earlier. {_INPUTS}',
    ),
    NamedModel(
        name="Structured SVM",
        statement="clique_hinge(U, V, tasks) + lam * ridge(U) + lam * ridge(V)",
        about="Labels depend on each other along given edges, all pairs unless told otherwise.",
        source='Tsochantaridis, Joachims, Hofmann and Altun, "Large margin methods for structured and interdependent output variables", JMLR 6, 2005; baselines of Tan et al., CVPR 2015',
        weights=("U", "V"),
        edges="all",
        also=("SSVM",),
        note=f"{_EDGES} SSVM-CT of the CGM paper: edges=mtl.datasets.chow_liu_tree(tasks). {_INPUTS}",
    ),
    NamedModel(
        name="No edges",
        statement="clique_hinge(U, V, tasks) + lam * ridge(U)",
        about="Every label alone, by a support vector machine: what a graph is compared with.",
        source=f"Baseline NO-Edge of {_CGM}",
        weights=("U", "V"),
        edges=(),
        note="With b the difference of a label's two columns: lam / 4 ||b||^2 + mean over samples of max(0, 1 - y b^T x), summed over the "
        f"labels. {_INPUTS}",
    ),
    NamedModel(
        name="HLLM-L1",
        statement="pairwise_log_loss(U, V, tasks) + lam * ridge(U) + mu * column_group_norm(V)",
        about="Labels have probabilities along a graph, of which whole edges are left out.",
        source='Schmidt and Murphy, "Convex structure learning in log-linear models: beyond pairwise potentials", AISTATS 2010, its pairwise form; '
        "baseline of Tan et al., CVPR 2015",
        weights=("U", "V"),
        edges="all",
        also=("Pairwise CRF",),
        note=f"The normaliser is exact: the graph has a treewidth of at most about 15, or 16 labels. {_EDGES} {_INPUTS}",
    ),
)


# --------------------------------------------------------------------------------------------------------------
# The models, family by family. A statement here is the documentation and the code at once.

_NC_CMTL = 'Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018'
_SMTL = (
    'Ke, Pan, Yin and Huang, "Optimizing evaluation metrics for multi-task learning via the alternating direction method of '
    'multipliers", IEEE Transactions on Cybernetics 2018'
)
_FETR = 'Zhao, Stretcu, Smola and Gordon, "Efficient multitask feature and relationship learning", UAI 2019'

_SCALE_OF_LOG = (
    "log(1 + sigma) bends at sigma = 1, so the scale of the data matters: standardize first. eps smooths "
    "the penalty, log(1 + sqrt(sigma^2 + eps)); eps=0 is the paper's formula."
)

#: name, word and what it means of the norms of SMTL
_NORM_VARIANTS = (
    ("l11", "l1_norm", "Few weights are not zero"),
    ("l21", "l21_norm", "Few features matter, in all tasks"),
    ("trace", "trace_norm", "Weights near a space of few dimensions"),
)

_FAMILIES: dict[str, tuple[NamedModel, ...]] = {
    "One matrix, one norm": (
        NamedModel(
            name="STL",
            statement="sum_of_squares(W, tasks) + lam * ridge(W)",
            about="Every task alone, by ridge regression: what learning together is compared with.",
            source=f"Single-task baseline of {_FETR}",
            note="ridge(W) is half the squared norm: lam here is 2 alpha of scikit-learn's Ridge.",
        ),
        NamedModel(
            name="Lasso",
            statement="squared_loss(W, tasks) + rho * l1_norm(W)",
            about="Few weights are not zero; the tasks share nothing.",
            source='Tibshirani, "Regression shrinkage and selection via the lasso", Journal of the Royal Statistical Society B 58, 1996',
            also=("MTL-REG(l11)",),
            note="rho is n alpha for a loss divided by n rows, as in scikit-learn's Lasso.",
        ),
        NamedModel(
            name="L21",
            statement="squared_loss(W, tasks) + rho * l21_norm(W)",
            about="Few features matter, and they matter in all tasks.",
            source='Liu, Ji and Ye, "Multi-task feature learning via efficient l2,1-norm minimization", UAI 2009',
            also=("MTL-REG(l21)",),
            note="Also called multi-task lasso and, by its authors, MTFL. rho is n alpha for a loss divided by n rows, "
            "as in scikit-learn's MultiTaskLasso.",
        ),
        NamedModel(
            name="NN-MTL",
            statement="squared_loss(W, tasks) + rho * trace_norm(W)",
            about="The tasks' weights lie near a space of few dimensions.",
            source='Pong, Tseng, Ji and Ye, "Trace norm regularization: reformulations, algorithms, and multi-task learning", SIAM '
            "Journal on Optimization 20, 2010; name of Nie et al., 2018",
            also=("MTL-REG(trace)",),
            note="rho is half the paper's parameter, whose loss is without the 1/2.",
        ),
        NamedModel(
            name="Minimax-MTL",
            statement="worst_task(squared_loss(W, tasks, mean=True)) + rho * trace_norm(W)",
            about="The task with the largest loss counts, and no other; the tasks share a space of few dimensions.",
            source='Mehta, Lee and Gray, "Minimax multi-task learning and a generalized loss-compositional paradigm for MTL", NIPS 2012',
            note="The paper takes any regularizer or constraint, and any loss that is a sum "
            "over samples. Without mean=True a task of many rows has a large loss.",
        ),
    ),
    "A sum of two matrices": (
        NamedModel(
            name="Robust-MTL",
            statement="sum_of_squares(L + S, tasks) + rho1 * trace_norm(L) + rho2 * l12_norm(S)",
            about="Weights of low rank, and outlier tasks: a column of S that is not zero.",
            source='Chen, Zhou and Ye, "Integrating low-rank and group-sparse structures for robust multi-task learning", KDD 2011',
            weights=("L", "S"),
            also=("RMTL",),
            note="Where a loss is divided by a number c (of rows, of tasks), the parameters here are c times those.",
        ),
        NamedModel(
            name="rMTFL",
            statement="sum_of_squares(P + Q, tasks) + rho1 * l21_norm(P) + rho2 * l12_norm(Q)",
            about="Features that all tasks share, and outlier tasks: a column of Q that is not zero.",
            source='Gong, Ye and Zhang, "Robust multi-task feature learning", KDD 2012',
            weights=("P", "Q"),
            note="Where a loss is divided by a number c (of rows, of tasks), the parameters here are c times those.",
        ),
        NamedModel(
            name="Dirty model",
            statement="squared_loss(P + Q, tasks) + rho1 * l1_inf_norm(P) + rho2 * l1_norm(Q)",
            about="Features that all tasks share, with a largest weight each, and weights of single tasks.",
            source='Jalali, Sanghavi, Ruan and Ravikumar, "A dirty model for multi-task learning", NIPS 2010',
            weights=("P", "Q"),
            also=("Dirty",),
            note="For the paper's loss, 1/(2n) times the sum of squares, rho1 is n lambda_b and rho2 is n lambda_s. "
            "For a sum of squares without the 1/2, halve the parameters.",
        ),
        NamedModel(
            name="Incoherent sparse and low-rank",
            statement="sum_of_squares(P + Q, tasks) + gamma * l1_norm(P)",
            about="Weights of low rank, within a ball of the trace norm, and weights of single tasks.",
            source='Chen, Liu and Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM Transactions on '
            "Knowledge Discovery from Data 5, 2012",
            subject_to=("trace_norm(Q) <= tau",),
            weights=("P", "Q"),
        ),
    ),
    "Calibrated losses": (
        NamedModel(
            name="CMTFL",
            statement="square_root_loss(W, tasks) + rho * l21_norm(W)",
            about="Few features matter, in all tasks; a task's noise sets how much it is regularized.",
            source='Gong, Zhou, Fan and Ye, "Efficient multi-task feature learning with calibration", KDD 2014',
            also=("Calibrated MTL", "Calibrated-MTL"),
            note='With one X for all tasks it is the calibrated multivariate regression (CMR) of Liu, Wang and Zhao, "Multivariate '
            'regression with calibration", NIPS 2014.',
        ),
        NamedModel(
            name="Square-root trace norm",
            statement="square_root_loss(W, tasks) + rho * trace_norm(W)",
            about="Weights near a space of few dimensions; a task's noise sets how much it is regularized.",
            source=f"The convex cousin of NC-CMTL: {_NC_CMTL}, eq. (7), with sigma in place of log(1 + sigma)",
        ),
        NamedModel(
            name="NC-CMTL",
            statement="square_root_loss(W, tasks) + mu * log_rank(W, eps=eps)",
            about="Weights of low rank, large singular values hardly shrunk; a task's noise sets how much it is regularized.",
            source=f"{_NC_CMTL}, eq. (7)",
            defaults={"eps": 0.01},
            note=_SCALE_OF_LOG,
        ),
    ),
    "Ranks without the bias of the trace norm": (
        NamedModel(
            name="NC-MTL",
            statement="sum_of_squares(W, tasks) + mu * log_rank(W, eps=eps)",
            about="Weights of low rank, large singular values hardly shrunk.",
            source=f"{_NC_CMTL}, eq. (6)",
            defaults={"eps": 0.01},
            note=_SCALE_OF_LOG,
        ),
        NamedModel(
            name="Capped-MTL",
            statement="sum_of_squares(W, tasks) + mu * capped_trace_norm(W, tau)",
            about="Weights of low rank; singular values above tau are not shrunk at all.",
            source='Han and Zhang, "Multi-stage multi-task learning with reduced rank", AAAI 2016; as in '
            f"{_NC_CMTL}, eq. (4)",
            note="With tau above every singular value it is the trace norm.",
        ),
        NamedModel(
            name="Reduced-rank regression",
            statement="sum_of_squares(W, tasks)",
            about="The tasks' weights lie in a space of r dimensions.",
            source='Izenman, "Reduced-rank regression for the multivariate linear model", Journal of Multivariate Analysis 5, 1975',
            subject_to=("rank(W) <= r",),
        ),
    ),
    "Learned covariances": (
        NamedModel(
            name="MTFL",
            statement="sum_of_squares(W, tasks) + gamma * feature_covariance_norm(W, D)",
            about="The tasks share features, linear combinations of the given ones; their covariance D is learned.",
            source='Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73, 2008',
            subject_to=("D.trace() <= 1",),
            learned={"D": "FeatureCovariance"},
            note="With D at its best it is sum_of_squares(W, tasks) + gamma * squared_trace_norm(W); so is MTRL.",
        ),
        NamedModel(
            name="MTRL",
            statement="sum_of_squares(W, tasks) + gamma * task_covariance_norm(W, Omega)",
            about="Which tasks are alike, and which are opposite, is learned: the covariance Omega of the tasks.",
            source='Zhang and Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010',
            subject_to=("Omega.trace() <= 1",),
            learned={"Omega": "TaskCovariance"},
            note=f"In the form of {_FETR}. The authors' own ridge beside it is a term more: problem.objective + lam * ridge(W).",
        ),
        NamedModel(
            name="FETR",
            statement="sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=eta, rho=rho)",
            about="How features and how tasks relate is learned: a matrix-normal prior with two precisions.",
            source=f"{_FETR}, eq. (3)",
            subject_to=("Sigma1 >> lower", "Sigma1 << upper", "Sigma2 >> lower", "Sigma2 << upper"),
            learned={"Sigma1": "FeaturePrecision", "Sigma2": "TaskPrecision"},
            defaults={"eta": 1, "rho": 1, "lower": 0.01, "upper": 100},
            note="What the paper calls covariances are the precisions.",
        ),
        NamedModel(
            name="MTFRL",
            statement="sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=eta, rho=rho)",
            about="How features and how tasks relate is learned: the same prior, its precisions by the flip-flop algorithm.",
            source='Zhang and Schneider, "Learning multiple tasks with a sparse matrix-normal penalty", NIPS 2010, without its sparsity, as the baseline '
            "of Zhao et al., UAI 2019",
            subject_to=("Sigma1 >> lower", "Sigma1 << upper", "Sigma2 >> lower", "Sigma2 << upper"),
            learned={"Sigma1": "FeaturePrecision", "Sigma2": "TaskPrecision"},
            defaults={"eta": 1, "rho": 1, "lower": 0.01, "upper": 100},
            note='The statement is that of FETR, since without bounds there is no minimum. The baseline is its algorithm: solve(solver="alternating", '
            'method="flip_flop", fudge=1e-3), which minimises nothing; solve() finds a stationary point of the statement.',
        ),
        NamedModel(
            name="MSSL",
            statement="sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=eta) + lam * l1_norm(Sigma2)",
            about="Which tasks have nothing to do with each other, given the others, is learned: a sparse precision of the tasks.",
            source='Goncalves, Das, Chatterjee, Sivakumar, Von Zuben and Banerjee, "Multi-task sparse structure learning", CIKM 2014; with Gaussian '
            "copula models, JMLR 17, 2016",
            subject_to=("Sigma1 >> 1", "Sigma1 << 1"),
            learned={"Sigma1": "FeaturePrecision", "Sigma2": "TaskPrecision"},
            defaults={"eta": 1},
            note="The bounds make Sigma1 the identity; in Python np.eye(d) may stand there. The norm is of all entries, the diagonal too; a zero of Sigma2 is "
            "a missing edge of the graph of tasks.",
        ),
        NamedModel(
            name="cCMTL",
            statement="sum_of_squares(W, tasks) + gamma * squared_cluster_norm(W, lower, upper, trace)",
            about="The tasks come in a few clusters, which ones is not known: a covariance of the tasks with eigenvalues within bounds.",
            source='Zhou, Chen and Ye, "Clustered multi-task learning via alternating structure optimization", NIPS 2011, eq. (8); after Jacob, Bach '
            "and Vert, NIPS 2008",
            also=("Clustered MTL", "cASO"),
            defaults={"lower": 0.1, "upper": 1.1},
            note="For k clusters of m tasks and the paper's rho1 and eta: gamma = rho1 eta (1 + eta), lower = eta, upper = 1 + eta, trace = k + m eta. "
            "With h = k it is also the convex relaxation of alternating structure optimization (cASO) of Chen, Tang, Liu and Ye, ICML 2009: Theorem 4 "
            "of the former.",
        ),
    ),
    "Kernels between the tasks": _KERNEL_MODELS,
    "Metrics of classification": (
        *(
            NamedModel(
                name=f"SMTL({norm}+{metric})",
                statement=f"{word}(W) + lam * structured_hinge(W, tasks, metric={typed})",
                about=f"{shared}; trained for {goal}.",
                source=f"{_SMTL}, eq. (2)",
            )
            for metric, typed, goal in (
                ("F1", "FScore()", "the F-score"),
                ("AUC", "AUC()", "the area under the ROC curve"),
            )
            for norm, word, shared in _NORM_VARIANTS
        ),
        *(
            NamedModel(
                name=f"MTL-CLS({norm})",
                statement=f"{word}(W) + 2 * lam * hinge_loss(W, tasks)",
                about=f"{shared}; trained for few errors, by the hinge loss.",
                source=f"Baseline of {_SMTL}",
                note="The 2 makes lam that of SMTL: the same as structured_hinge with ErrorRate() and lam.",
            )
            for norm, word, shared in _NORM_VARIANTS
        ),
        NamedModel(
            name="StructSVM",
            statement="ridge(W) + lam * structured_hinge(W, tasks, metric=ROCArea())",
            about="Every task alone, trained for pairs that are ranked wrongly: the baseline of SMTL for AUC.",
            source='Joachims, "A support vector method for multivariate performance measures", ICML 2005',
        ),
    ),
    "Graphs of labels": _LABEL_GRAPH_MODELS,
}

MODELS: tuple[NamedModel, ...] = tuple(
    replace(each, family=family) for family, models in _FAMILIES.items() for each in models
)


# --------------------------------------------------------------------------------------------------------------
# `mtl.model("Robust-MTL", tasks, rho1=50.0, rho2=15.0)`, and `mtl.models()`, which lists them.

#: the models that an error lists
_USUAL = (
    "'Lasso'", "'L21'", "'NN-MTL'", "'Robust-MTL'", "'Dirty model'", "'MTFL'", "'MTRL'", "'FETR'", "'NC-CMTL'", "'MT-MKL'", "'SMTL(l21+F1)'", "'CGM'",
)  # fmt: skip


class ModelTable(dict[str, NamedModel]):
    """Name -> model; printed, a table of their statements."""

    def __str__(self) -> str:
        width = max(map(len, self))
        lines, family = [], None
        for each in self.values():
            if each.family != family:
                family = each.family
                lines += ["", family] if lines else [family]
            lines.append(f"  {each.name:<{width}}  {each.statement}")
            if each.subject_to:
                lines.append(f"  {'':<{width}}  subject to {', '.join(each.subject_to)}")
        return "\n".join(lines)

    __repr__ = __str__


@complete("write models()['MT-MKL'] for its statement, or model('MT-MKL', tasks, ...) for a problem")
def models() -> Mapping[str, NamedModel]:
    """Every named model, by name; it prints as a table of their statements.

    >>> import mtldsl as mtl
    >>> print(mtl.models()["Robust-MTL"])
    minimize    sum_of_squares(L + S, tasks) + rho1 * trace_norm(L) + rho2 * l12_norm(S)
    """
    return ModelTable({each.name: each for each in MODELS})


def find(name: str) -> NamedModel:
    """The model of that name, or of that other name. ModelError, with the nearest name, where there is none."""
    known = {known: each for each in MODELS for known in (each.name, *each.also)}
    if isinstance(name, str) and name in known:
        return known[name]
    if not isinstance(name, str):
        raise ModelError(
            "the first argument is a name, such as 'Robust-MTL'", term=f"model({quoted(name)}, ...)"
        )
    if "(" in name and name.partition("(")[0].strip() not in known:
        raise ModelError(f"{quoted(name)} is a formula, and `model` takes the name of a model", write_instead="write it as `minimize`")  # fmt: skip
    right = meant(name, known)
    hint = (
        f"did you mean {right!r}?"
        if right
        else f"write one of {', '.join(_USUAL)}, ...; `mtldsl models` lists all {len(MODELS)}"
    )
    raise ModelError(f"there is no model {name!r}", write_instead=hint)


@complete("write model('Lasso', tasks, rho=0.1)")
def model(name: str, tasks: Tasks, /, *, intercept: bool = False, edges=None, **parameters: float) -> Problem:
    """A model of a paper as a problem: its statement, typed for you; `models()` and docs/models.md list them.

    name       : such as "Robust-MTL"
    tasks      : the data
    intercept  : learn one number per task as well (beside the first weight matrix)
    edges      : of a model over a graph of labels, the edges that there may be, in place of its own ("all", or none at all): a list of
                 pairs of labels, or a networkx graph, as in `EdgeWeights`
    parameters : of the model, by name: numbers. What stands before a word is a `Parameter` of that name afterwards, among
                 `problem.parameters`, so that `problem.path` can change it; what is an argument of a word stays as it is

    Raises ModelError for a name that no model has, and for parameters that are missing, unknown or do not fit; DataError where
    the data do not suit the loss.

    More terms and constraints are added as to any other model: mtl.minimize(problem.objective + 0.1 * mtl.ridge(W), [W >= 0])
    with W = problem.weights[0].

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> problem = mtl.model("Robust-MTL", tasks, rho1=50.0, rho2=1.0)
    >>> print(problem)
    minimize    sum_of_squares(L + S, tasks) + rho1 * trace_norm(L) + rho2 * l12_norm(S)
    >>> solution = problem.solve()
    >>> solution.status, solution["S"].round(4) + 0.0
    ('optimal', array([[2.5, 0. ], [0. , 0.5], [0. , 0. ]]))
    >>> rho1, rho2 = problem.parameters
    >>> [round(each.objective, 4) for each in problem.path(rho2, [1.0, 0.0])]
    [3.5, 0.0]
    """
    found = find(name)
    if not isinstance(tasks, Tasks):
        raise ModelError(
            "the second argument must be a Tasks object",
            term=f"model({name!r}, {type(tasks).__name__})",
            write_instead=f"write {found.usage} with tasks = Tasks.shared(X, Y)",
        )
    return found.on(tasks, parameters, intercept, edges)
