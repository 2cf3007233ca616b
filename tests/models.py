"""Mixed models, none of them from a paper, on small data: every solver that accepts one is held to its optimum.

Each is a function of no argument that returns a Problem; the name says what is mixed.
"""

import numpy as np
from scipy import sparse

import mtldsl as mtl

D, M = 6, 4


def _inputs(n, seed, density=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return sparse.random_array((n, D), density=density, rng=rng, format="csr") if density else X


def _weights(seed):
    rng = np.random.default_rng(seed)
    W = np.outer(rng.normal(size=D), rng.normal(size=M))
    W[4:] = 0
    return W


def shared(seed=0, n=30, labels="real", missing=0.0, density=None, sample_weights=False):
    rng = np.random.default_rng(seed)
    X = _inputs(n, seed, density)
    Y = X @ _weights(seed) + 0.3 * rng.normal(size=(n, M))
    if labels == "sign":
        Y = np.where(np.median(Y, axis=0) <= Y, 1.0, -1.0)
    elif labels == "classes":
        own = rng.permutation(np.arange(n) % M)
        Y = np.where(np.arange(M) == own[:, None], 1.0, -1.0)
    elif labels == "count":
        Y = rng.poisson(np.exp(np.clip(0.4 * Y, -3, 2))).astype(float)
    elif labels == "positive":
        Y = np.exp(np.clip(0.4 * Y, -3, 2)) * rng.gamma(4.0, 0.25, size=Y.shape)
    elif labels == "time":  # a few times, so that some are equal
        Y = np.where(rng.random(Y.shape) < 0.7, 1.0, -1.0) * np.ceil(6 * np.exp(np.clip(0.4 * Y, -3, 2)))
    if missing:
        Y[rng.random(Y.shape) < missing] = np.nan
    weights = rng.uniform(0.5, 2.0, size=n) if sample_weights else None
    return mtl.Tasks.shared(X, Y, sample_weights=weights)


def separate(seed=0, labels="real", sizes=(12, 17, 9, 25), density=None):
    rng = np.random.default_rng(seed)
    inputs = [_inputs(n, seed + i, density) for i, n in enumerate(sizes)]
    targets = [
        X @ w + 0.3 * rng.normal(size=X.shape[0]) for X, w in zip(inputs, _weights(seed).T, strict=True)
    ]
    if labels == "sign":
        targets = [np.where(y >= np.median(y), 1.0, -1.0) for y in targets]
    return mtl.Tasks.separate(inputs, targets)


def with_weights(tasks, **options):
    """(tasks, Weights of them)"""
    return tasks, mtl.Weights(tasks, **options)


def labels_of(kind, Z, rng, share=0.5):
    """Labels of the kind that a loss takes, of real ones; of signs that share is +1 in every column."""
    if kind == "sign":
        return np.where(np.quantile(Z, 1.0 - share, axis=0) < Z, 1.0, -1.0)
    if kind == "count":
        return rng.poisson(np.exp(np.clip(Z / 3, -2, 2))).astype(float)
    return np.exp(np.clip(Z / 3, -2, 2)) if kind == "positive" else Z


def kept_in(models):
    """Function decorator that keeps each function in a table, by its name."""
    return lambda function: models.setdefault(function.__name__, function)


MODELS = {}
model = kept_in(MODELS)


@model
def robust_multi_task_low_rank_plus_outlier_tasks():
    t = separate(1)
    L, S = mtl.Weights(t, name="L"), mtl.Weights(t, name="S")
    return mtl.minimize(mtl.squared_loss(L + S, t) + 2.0 * mtl.trace_norm(L) + 1.5 * mtl.l12_norm(S))


@model
def dirty_model_block_sparse_plus_sparse_with_intercept():
    t = shared(2, missing=0.2)
    P, Q = mtl.Weights(t, intercept=True, name="P"), mtl.Weights(t, name="Q")
    return mtl.minimize(mtl.squared_loss(P + Q, t) + 3.0 * mtl.l1_inf_norm(P) + 1.0 * mtl.l1_norm(Q))


@model
def logistic_group_sparse_low_rank_columns_on_the_simplex():
    t, W = with_weights(shared(3, labels="sign"))
    return mtl.minimize(
        mtl.logistic_loss(W, t) + 0.5 * mtl.l21_norm(W) + 0.5 * mtl.trace_norm(W),
        subject_to=[W >= 0, W.sum(axis=0) == 1],
    )


@model
def sparse_group_lasso_nonnegative():
    t, W = with_weights(shared(4), intercept=True)
    return mtl.minimize(
        mtl.squared_loss(W, t) + 1.0 * mtl.l1_norm(W) + 1.0 * mtl.l21_norm(W), subject_to=[W >= 0]
    )


@model
def hinge_low_rank_with_intercept_and_missing_labels():
    t, W = with_weights(shared(5, n=40, labels="sign", missing=0.25), intercept=True)
    return mtl.minimize(mtl.hinge_loss(W, t) + 1.0 * mtl.trace_norm(W) + 0.2 * mtl.ridge(W))


@model
def absolute_loss_total_variation_over_tasks():
    t, W = with_weights(separate(6))
    return mtl.minimize(mtl.absolute_loss(W, t) + 1.0 * mtl.total_variation(W) + 0.5 * mtl.ridge(W))


@model
def quantile_loss_in_a_trace_norm_ball():
    t, W = with_weights(shared(7))
    return mtl.minimize(mtl.quantile_loss(W, t, q=0.8), subject_to=[mtl.trace_norm(W) <= 1.5])


@model
def square_root_loss_low_rank():
    t, W = with_weights(separate(8))
    return mtl.minimize(mtl.square_root_loss(W, t) + 0.8 * mtl.trace_norm(W))


@model
def square_root_loss_group_sparse_plus_sparse():
    t = separate(9)
    L, S = mtl.Weights(t, name="L"), mtl.Weights(t, name="S")
    return mtl.minimize(mtl.square_root_loss(L + S, t) + 0.7 * mtl.l21_norm(L) + 0.5 * mtl.l1_norm(S))


@model
def huber_graph_laplacian_sparse():
    t, W = with_weights(shared(10, sample_weights=True), intercept=True)
    path = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    return mtl.minimize(
        mtl.huber_loss(W, t, delta=0.5) + 2.0 * mtl.graph_laplacian(W, path) + 0.8 * mtl.l1_norm(W)
    )


@model
def gamma_sorted_l1():
    t, W = with_weights(shared(23, labels="positive"), intercept=True)
    return mtl.minimize(mtl.gamma_loss(W, t) + 1.5 * mtl.sorted_l1_norm(W, q=0.3))


@model
def cox_group_sparse_with_missing_labels_and_sample_weights():
    t, W = with_weights(shared(33, labels="time", missing=0.2, sample_weights=True))
    return mtl.minimize(mtl.cox_loss(W, t) + 1.0 * mtl.l21_norm(W))


@model
def exponential_max_norm():
    t, W = with_weights(shared(24, labels="sign"))
    return mtl.minimize(mtl.exponential_loss(W, t) + 20.0 * mtl.max_norm(W))


@model
def poisson_group_sparse_ridge():
    t, W = with_weights(shared(11, labels="count"), intercept=True)
    return mtl.minimize(mtl.poisson_loss(W, t) + 1.0 * mtl.l21_norm(W) + 0.1 * mtl.ridge(W))


@model
def squared_hinge_sparse_inputs_l1():
    t, W = with_weights(shared(12, n=60, labels="sign", density=0.4), intercept=True)
    return mtl.minimize(mtl.squared_hinge_loss(W, t) + 0.7 * mtl.l1_norm(W))


@model
def sparse_separate_logistic_l12_and_bounds():
    t, W = with_weights(separate(13, labels="sign", sizes=(40, 30, 35, 50), density=0.5))
    return mtl.minimize(
        mtl.logistic_loss(W, t, mean=True) + 0.05 * mtl.l12_norm(W), subject_to=[W >= -1, W <= 0.8]
    )


@model
def feature_groups_mean_regularizer():
    t, W = with_weights(separate(14), intercept=True)
    return mtl.minimize(
        mtl.squared_loss(W, t)
        + 1.0 * mtl.group_norm(W, [[0, 1], [2, 3], [4, 5]])
        + 2.0 * mtl.mean_regularizer(W)
    )


@model
def l21_ball_and_linear_equality():
    t, W = with_weights(shared(15))
    A = np.array([[1.0, -1, 0, 0, 0, 0]])
    return mtl.minimize(mtl.squared_loss(W, t, mean=True), subject_to=[mtl.l21_norm(W) <= 2.0, A @ W == 0])


@model
def differences_of_tasks_penalised_through_a_matrix():
    t, W = with_weights(shared(16))
    B = np.array([[1.0, 0, 0], [-1, 1, 0], [0, -1, 1], [0, 0, -1]])
    return mtl.minimize(mtl.sum_of_squares(W, t) + 1.0 * mtl.l21_norm(W @ B) + 0.3 * mtl.ridge(W))


@model
def squared_trace_norm_and_frobenius_ball():
    t, W = with_weights(separate(17))
    return mtl.minimize(
        mtl.sum_of_squares(W, t) + 0.6 * mtl.squared_trace_norm(W), subject_to=[mtl.frobenius_norm(W) <= 1.5]
    )


@model
def two_losses_on_one_matrix():
    real, sign = shared(18), shared(18, labels="sign")
    W = mtl.Weights(real)
    return mtl.minimize(
        mtl.squared_loss(W, real) + 0.5 * mtl.logistic_loss(W, sign) + 1.0 * mtl.trace_norm(W)
    )


@model
def some_rows_low_rank_others_sparse():
    t, W = with_weights(shared(19))
    return mtl.minimize(
        mtl.huber_loss(W, t)
        + 1.0 * mtl.trace_norm(W[:3, :])
        + 0.5 * mtl.l1_norm(W[3:, :])
        + 0.1 * mtl.ridge(W)
    )


@model
def hinge_in_an_l1_ball_with_sum_zero_tasks():
    t, W = with_weights(shared(20, n=40, labels="sign"))
    return mtl.minimize(
        mtl.hinge_loss(W, t) + 0.05 * mtl.ridge(W), subject_to=[mtl.l1_norm(W) <= 3.0, W.sum(axis=1) == 0]
    )


@model
def logistic_in_balls_of_tasks_and_of_largest_entries():
    t, W = with_weights(shared(35, n=40, labels="sign"), intercept=True)
    return mtl.minimize(
        mtl.logistic_loss(W, t),
        subject_to=[
            mtl.l12_norm(W, weights=[1.0, 2.0, 0.5, 1.0][: t.n_tasks]) <= 2.0,
            mtl.l1_inf_norm(W) <= 1.5,
        ],
    )


@model
def sparse_in_a_ball_of_some_groups():
    t, W = with_weights(shared(36))
    return mtl.minimize(
        mtl.squared_loss(W, t) + 0.5 * mtl.l1_norm(W), subject_to=[mtl.group_norm(W, [[0, 2], [1]]) <= 0.7]
    )


@model
def absolute_deviation_frobenius_elastic():
    t, W = with_weights(shared(21, missing=0.1, sample_weights=True), intercept=True)
    return mtl.minimize(
        mtl.absolute_loss(W, t, mean=True) + 0.3 * mtl.frobenius_norm(W) + 0.1 * mtl.l1_norm(W)
    )


@model
def low_rank_offset_from_known_weights():
    t, W = with_weights(shared(22))
    return mtl.minimize(
        mtl.squared_loss(W, t) + 2.0 * mtl.trace_norm(W - _weights(22)) + 0.5 * mtl.l12_norm(W)
    )


@model
def squared_loss_around_known_weights_group_sparse():
    t, W = with_weights(shared(35, missing=0.1), intercept=True)
    return mtl.minimize(mtl.squared_loss(W - _weights(22), t) + 2.0 * mtl.l21_norm(W))


@model
def logistic_and_absolute_losses_around_known_weights():
    t, real = shared(36, labels="sign"), shared(36)
    W = mtl.Weights(t)
    return mtl.minimize(
        mtl.logistic_loss(2 * W - _weights(36), t)
        + 0.3 * mtl.absolute_loss(W + 0.5, real)
        + 1.0 * mtl.trace_norm(W)
    )


@model
def square_root_loss_around_known_weights_sparse():
    t, W = with_weights(separate(37))
    return mtl.minimize(mtl.square_root_loss(W - _weights(22), t) + 0.6 * mtl.l1_norm(W))


@model
def hinge_around_known_weights_ridge():
    t, W = with_weights(shared(38, n=40, labels="sign"), intercept=True)
    return mtl.minimize(mtl.hinge_loss(W + 0.3 * _weights(22), t) + 0.5 * mtl.ridge(W))


@model
def f_score_around_known_weights_group_sparse():
    t, W = with_weights(shared(39, labels="sign"))
    return mtl.minimize(
        4.0 * mtl.structured_hinge(W + 0.2 * _weights(39), t, metric=mtl.metrics.FScore())
        + 1.0 * mtl.l21_norm(W)
    )


@model
def f_score_low_rank_plus_sparse_with_intercept():
    t = shared(23, labels="sign", missing=0.15)
    L, S = mtl.Weights(t, intercept=True, name="L"), mtl.Weights(t, name="S")
    return mtl.minimize(
        4.0 * mtl.structured_hinge(L + S, t, metric=mtl.metrics.FScore())
        + mtl.trace_norm(L)
        + 0.8 * mtl.l1_norm(S)
    )


@model
def a_metric_of_its_own_for_every_task_group_sparse():
    t, W = with_weights(separate(24, labels="sign"))
    metrics = [
        mtl.metrics.FScore(beta=2.0), mtl.metrics.AUC(), mtl.metrics.RecallAt(3), mtl.metrics.ROCArea(),
    ]  # fmt: skip
    return mtl.minimize(60.0 * mtl.structured_hinge(W, t, metric=metrics, mean=True) + 1.0 * mtl.l21_norm(W))


@model
def auc_and_logistic_losses_nonnegative():
    t, W = with_weights(shared(25, labels="sign", density=0.6), intercept=True)
    return mtl.minimize(
        3.0 * mtl.structured_hinge(W, t, metric=mtl.metrics.AUC())
        + 0.1 * mtl.logistic_loss(W, t)
        + 0.5 * mtl.l21_norm(W),
        subject_to=[W >= 0],
    )


@model
def precision_in_a_trace_norm_ball_with_total_variation():
    t, W = with_weights(shared(26, n=24, labels="sign"))
    return mtl.minimize(
        4.0 * mtl.structured_hinge(W, t, metric=mtl.metrics.PrecisionAt(0.5)) + 0.5 * mtl.total_variation(W),
        subject_to=[mtl.trace_norm(W) <= 0.3],
    )


@model
def two_structured_losses_share_an_intercept_and_a_ridge():
    t, W = with_weights(separate(27, labels="sign"), intercept=True)
    return mtl.minimize(
        2.0 * mtl.structured_hinge(W, t, metric=mtl.metrics.ROCArea())
        + 3.0 * mtl.structured_hinge(W, t, metric=mtl.metrics.FScore(beta=0.5))
        + 0.5 * mtl.ridge(W)
    )


@model
def error_rate_sparse_and_low_rank():
    t, W = with_weights(shared(28, n=24, labels="sign"))
    return mtl.minimize(
        0.3 * mtl.structured_hinge(W, t, metric=mtl.metrics.ErrorRate())
        + 0.5 * mtl.l1_norm(W)
        + 0.5 * mtl.trace_norm(W)
    )


def label_graph(seed, n=18, sample_weights=False, density=None, **edges):
    """(tasks, NodeWeights, EdgeWeights)"""
    t = shared(seed, n, labels="sign", sample_weights=sample_weights, density=density)
    return t, mtl.NodeWeights(t), mtl.EdgeWeights(t, **edges)


@model
def label_graph_over_all_edges_with_a_squared_group_norm():
    t, U, V = label_graph(29)
    return mtl.minimize(mtl.clique_hinge(U, V, t) + 0.1 * mtl.ridge(U) + 0.1 * mtl.half_squared_group_norm(V))


@model
def label_graph_of_two_edges_with_costs_and_sample_weights():
    t, U, V = label_graph(30, sample_weights=True)
    return mtl.minimize(
        mtl.clique_hinge(U, V, t, loss=[0.5, 1.0, 2.0, 1.0])
        + 0.05 * mtl.ridge(U)
        + 0.1 * mtl.half_squared_k_support_norm(V, 2)
    )


@model
def label_graph_of_low_rank_with_a_triple():
    t, U, V = label_graph(31, edges=[(0, 3), (0, 1, 2)], density=0.6)
    return mtl.minimize(
        mtl.clique_hinge(U, V, t)
        + 0.1 * mtl.trace_norm(U)
        + 0.1 * mtl.column_group_norm(V)
        + 0.02 * mtl.ridge(V)
    )


@model
def label_graph_without_edges_sparse_beside_logistic_losses():
    t, U, V = label_graph(32, edges=[])
    W = mtl.Weights(t)
    return mtl.minimize(
        mtl.clique_hinge(U, V, t)
        + 0.1 * mtl.l21_norm(U)
        + mtl.logistic_loss(W, t, mean=True)
        + 0.05 * mtl.l1_norm(W)
    )


@model
def label_likelihood_with_a_group_norm_of_edges():
    t, U, V = label_graph(33, sample_weights=True)
    return mtl.minimize(
        mtl.pairwise_log_loss(U, V, t) + 0.05 * mtl.ridge(U) + 0.05 * mtl.column_group_norm(V)
    )


@model
def label_likelihood_with_a_k_support_norm_nonnegative():
    t, U, V = label_graph(34, edges=[(0, 1), (1, 2), (1, 2, 3)])
    return mtl.minimize(
        mtl.pairwise_log_loss(U, V, t) + 0.1 * mtl.l1_norm(U) + 0.1 * mtl.half_squared_k_support_norm(V, 2),
        subject_to=[U >= 0],
    )
