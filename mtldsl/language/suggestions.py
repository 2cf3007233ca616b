"""Suggestions for a name that is not known: the nearest spelling, or the word that others call so."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

#: what is written here -> what the field, or another library, calls it; capitals, _ and an ending such as _norm do not count
SYNONYMS = {
    # regularizers
    "trace_norm": "nuclear, nuc, svd, schatten_1, low_rank, spectral_l1, sum_of_singular_values",
    "squared_trace_norm": "squared_nuclear, nuclear_squared",
    "capped_trace_norm": "truncated_nuclear, truncated_trace, capped_nuclear",
    "schatten_norm": "schatten_p, schatten_quasi_norm",
    "log_rank": "log_det, log_determinant",
    "l1_norm": "lasso, l1, l11, norm_1, one_norm, sparse, sparsity, soft_threshold, entrywise_l1",
    "l21_norm": "group_lasso, multi_task_lasso, l2_1, l1_l2, l1_2_rows, row_sparse, row_sparsity, joint_sparsity, mixed",
    "sorted_l1_norm": "slope, owl, ordered_weighted_l1, oscar",
    "l12_norm": "column_sparse, column_sparsity, column_group_lasso",
    "l1_inf_norm": "l1_linf, linf_1, l_inf_1",
    "exclusive_lasso": "exclusive, exclusive_sparsity, elitist_lasso, squared_l1, l1_squared",
    "mcp": "minimax_concave, mc_plus, firm_threshold",
    "scad": "smoothly_clipped_absolute_deviation",
    "capped_l1": "capped_lasso, capped_l1_l1, multi_stage",
    "group_norm": "group_sparsity",
    "latent_group_norm": "latent_group_lasso, overlapping_group_lasso, overlap_group_lasso, overlap_norm",
    "squared_cluster_norm": "cluster, clustered, box, spectral_box, spectral_k_support, clustered_mtl",
    "tree_norm": "tree_lasso, tree_group_lasso, tree_guided, tree_guided_group_lasso, hierarchical_group, hierarchical_sparse, hierarchical",
    "ridge": "tikhonov, l2, l2_squared, squared_l2, squared_frobenius, frobenius_squared, weight_decay, sum_squares",
    "frobenius_norm": "fro, frobenius, l2_norm, euclidean_norm",
    "l1_norm(W) + ridge(W)": "elastic_net, enet",
    "l1_norm(W) + l21_norm(W)": "sparse_group_lasso, sgl",
    "spectral_norm": "operator, largest_singular_value, schatten_inf, sigma_max",
    "max_norm": "gamma_2",
    "total_variation": "tv, fused_lasso, fused",
    "graph_laplacian": "graph_regularizer, manifold, graph_penalty",
    "mean_regularizer": "mean_regularized, mean_regularised, distance_to_mean",
    "half_squared_k_support_norm": "k_support",
    "mkl_norm": "mkl, multiple_kernel, multiple_kernel_learning",
    "matrix_normal": "matrix_gaussian, matrix_variate_normal",
    "columns_on_simplex": "simplex, probability_simplex",
    # losses
    "squared_loss": "mse, mean_squared_error, squared_error, square_loss, least_squares, ols, l2_loss, quadratic_loss, gaussian_loss",
    "absolute_loss": "mae, median, least_absolute_deviations, mean_absolute_error, absolute_error, absolute_deviation, l1_loss, lad, laplace_loss",
    "square_root_loss": "sqrt_loss, root_loss, square_root_lasso, sqrt_lasso, rmse, root_mean_squared_error",
    "quantile_loss": "pinball, tilted_loss, check_loss",
    "epsilon_insensitive_loss": "svr, support_vector_regression, eps_insensitive, insensitive, tube",
    "huber_loss": "smooth_l1",
    "hinge_loss": "svm, svc, support_vector_machine, max_margin",
    "squared_hinge_loss": "l2_svm, squared_svm",
    "logistic_loss": "cross_entropy, binary_cross_entropy, bce, bce_with_logits, log_loss, logit, sigmoid, deviance",
    "exponential_loss": "exp_loss, ada_boost, boosting",
    "gamma_loss": "gamma_deviance, gamma_nll",
    "cox_loss": "cox, coxph, cox_ph, partial_likelihood, proportional_hazards, survival_cox, survival",
    "softmax_loss": "multinomial, multinomial_logistic, categorical_cross_entropy, multiclass",
    "poisson_loss": "poisson_nll, poisson_deviance, count_loss",
    "structured_hinge": "structured_svm, struct_svm, structural_svm",
    "clique_hinge": "max_margin_markov_network, m3n",
    "pairwise_log_loss": "crf, conditional_random_field",
    # metrics
    "FScore": "f1, f1_score, f_beta, fbeta_score, f_measure, dice",
    "ROCArea": "roc_auc, roc_auc_score, auroc, area_under_roc",
    "PartialAUC": "pauc, partial_roc_auc, max_fpr, auc_at",
    "AveragePrecision": "average_precision, average_precision_score, pr_auc, mean_average_precision",
    "NDCG": "ndcg_score, dcg, discounted_cumulative_gain",
    "ErrorRate": "accuracy, zero_one, zero_one_loss, hamming, misclassification",
    "BalancedError": "balanced_accuracy, balanced_accuracy_score, bacc, youden, informedness",
    "Jaccard": "jaccard_score, jaccard_index, iou, intersection_over_union, tanimoto",
    "GMean": "g_mean, geometric_mean, geometric_mean_score",
    "PrecisionAt": "precision, precision_at_k",
    "RecallAt": "recall, recall_at_k",
    # the statement
    "minimize": "minimise, min, solve, objective",
    "Weights": "variable, matrix, unknown, coef",
    "Tasks": "data, dataset, multi_task_data",
    "Parameter": "param, hyperparameter",
}

#: what is written where there is no word of that name: a method, an expression, or the sentence that there is none
_ADVICE = {
    "load": "Solution.load(file)",
    "save": "solution.save(file)",
    "predict": "solution.predict(X)",
    "score": "solution.score(tasks)",
    "fit": "minimize(...).solve(), or mtldsl.estimators",
    "path": "problem.path(lam)",
    "cross_validate": "problem.cross_validate(lam)",
    "cross_check": "problem.cross_check()",
    "lambda_max": "problem.lambda_max(lam)",
    "explain": "problem.explain()",
    "max": "max_norm, or l1_inf_norm; a maximum of losses is not in the language",
    "sum": "W.sum(axis)",
    "row_sum": "W.sum(axis=1)",
    "column_sum": "W.sum(axis=0)",
    "transpose": "W.T",
    "shared_weights": 'Weights(tasks, name="w", shared=True), a vector for all tasks beside W in W + w',
    "vector": 'Weights(tasks, name="w", shared=True), a vector for all tasks beside W in W + w',
    "equal_columns": "W == W[:, 0]",
    "norm": "l1_norm, l21_norm, frobenius_norm, trace_norm or another; mtldsl words lists them",
    "words": "mtldsl words, on the command line, or see docs/words.md",
    "group_lasso": "l21_norm(W), a row a group, or group_norm(W, groups)",
    "ordinal": "logistic_loss of one task a threshold, with W[:, 1:] == W[:, :-1] (docs/language.md#ordered-labels): there is no ordinal loss",
    "ranking": "structured_hinge(W, tasks, metric=ROCArea()), which ranks positives above negatives",
    "max_loss": "worst_task(loss), the largest loss of a task",
    "dirty": "a * l1_inf_norm(P) + b * l1_norm(Q) beside the loss of P + Q, the model 'Dirty'",
    "dirty_model": "a * l1_inf_norm(P) + b * l1_norm(Q) beside the loss of P + Q, the model 'Dirty'",
    "tolerance": "tol=, in solve()",
    "l0": "mcp, scad or capped_l1 in its place: a count of nonzeros is not in the language",
    "probit": "logistic_loss: there is no probit loss",
    "focal": "logistic_loss with Tasks.shared(X, Y, sample_weights=...): there is no focal loss",
    "minimax": "worst_task(loss), the largest loss of a task",
}

_ENDINGS = (
    "norm",
    "loss",
    "penalty",
    "regularizer",
    "regulariser",
    "regularization",
    "regularisation",
    "constraint",
)


def advice(typed: str) -> str | None:
    """Return what to write in place of a name that no word has, None where nothing is near.

    >>> advice("max_loss"), advice("MinimaxLoss"), advice("zebra")
    ('worst_task(loss), the largest loss of a task', 'worst_task(loss), the largest loss of a task', None)
    """
    asked = _plain(typed)
    names = {_plain(name): text for name, text in _ADVICE.items()}
    return names.get(asked) or names.get(_without_ending(asked))


def nearest(typed: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or else `; known are ...`: what to write in place of an unknown name.

    >>> nearest("trace_nrm", ["trace_norm", "ridge"]), nearest("NuclearNorm", ["trace_norm", "ridge"])
    ("; did you mean 'trace_norm'?", "; did you mean 'trace_norm'?")
    >>> nearest("zebra", ["trace_norm", "ridge"])
    '; known are trace_norm, ridge'
    """
    known, instead = list(known), advice(typed)
    if instead is not None and typed not in known:
        return f"; write {instead}"
    found = meant(typed, known)
    if found is not None:
        return f"; did you mean {found!r}?"
    return f"; known are {', '.join(known)}" if known else ""


def meant(typed: str, known: Iterable[str]) -> str | None:
    """Which of the known names was meant, or an expression of them; None where nothing is near.

    >>> meant("elastic_net", ["l1_norm", "ridge"]), meant("elastic_net", ["l1_norm"])
    ('l1_norm(W) + ridge(W)', None)
    """
    known = list(known)
    if typed.startswith("__"):  # a name of Python's own
        return None
    names = {
        _plain(other): word
        for word, others in SYNONYMS.items()
        if set(re.findall(r"\w+(?=\()", word) or [word]) <= set(known)
        for other in others.split(", ")
    }
    names = {**{_plain(name): name for name in reversed(known)}, **names}
    short = {_without_ending(name): word for name, word in reversed(names.items())}
    asked = _plain(typed)
    for name, table in ((asked, names), (_without_ending(asked), short)):
        if name in table:
            return table[name]
    spelled = {name.lower(): name for name in reversed(known)}
    # a slip in the name of a word is likelier than one in another name for it
    near = (
        [one for one in _near(typed.lower(), spelled, 0.6) if _has_near_stem(asked, one[1])]
        + _near(asked, names, 0.8)
        + _near(_without_ending(asked), short, 0.8)
    )
    return max(near, default=(0.0, None), key=lambda one: one[0])[1]


def _near(typed: str, names: dict[str, str], cutoff: float) -> list[tuple[float, str]]:
    """(how near, what is meant) of the nearest of the names."""
    found = difflib.get_close_matches(typed, names, n=1, cutoff=cutoff)
    return [(difflib.SequenceMatcher(None, one, typed).ratio(), names[one]) for one in found]


def _has_near_stem(asked: str, name: str) -> bool:
    """Tell whether names are alike without the ending that both may have, such as "loss"."""
    stems = _without_ending(_plain(name)), _without_ending(asked)
    return difflib.SequenceMatcher(None, *stems).ratio() >= 0.6


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _without_ending(name: str) -> str:
    ending = next((end for end in _ENDINGS if name.endswith(end) and name != end), "")
    return name.removesuffix(ending)
