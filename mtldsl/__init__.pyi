"""State a multi-task model as loss + regularizer + constraints; get its solution with a proof, and an independent check."""

# Written by `python -m mtldsl.cli.type_stub`: words are made from one table, which type checkers cannot follow.

from collections.abc import Callable, Iterable, Mapping

from numpy.typing import ArrayLike

from mtldsl import datasets, estimators, metrics, report, similarities
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.certificates.verify_proof import verify_proof
from mtldsl.data.label_table import AcrossLabels
from mtldsl.data.tasks import Tasks
from mtldsl.errors import CrossCheckError, DataError, InfeasibleError, Interrupted, MTLError, MissingExtraError, ModelError, ProofError, SolverError
from mtldsl.extending.registration import register, register_solver, unregister
from mtldsl.language.constraints import Constraint
from mtldsl.language.expressions import Affine, Transposed
from mtldsl.language.factories import worst_task
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.learned_unknowns import FeatureCovariance, FeaturePrecision, KernelWeights, TaskCovariance, TaskPrecision, p_norm
from mtldsl.language.objective import Objective
from mtldsl.language.scalars import Parameter
from mtldsl.language.task_similarity import TaskSimilarity
from mtldsl.language.weights import Weights
from mtldsl.problems.method_comparison import compare
from mtldsl.problems.named_models import model, models
from mtldsl.problems.problem import Problem, minimize
from mtldsl.solution.solution import Solution
from mtldsl.utils.progress import defaults

__all__ = [
    "AcrossLabels",
    "CrossCheckError",
    "DataError",
    "EdgeWeights",
    "FeatureCovariance",
    "FeaturePrecision",
    "InfeasibleError",
    "Interrupted",
    "KernelWeights",
    "MTLError",
    "Metric",
    "MissingExtraError",
    "ModelError",
    "NodeWeights",
    "Parameter",
    "Problem",
    "ProofError",
    "Solution",
    "SolverError",
    "TaskCovariance",
    "TaskPrecision",
    "TaskSimilarity",
    "Tasks",
    "Weights",
    "absolute_loss",
    "capped_l1",
    "capped_trace_norm",
    "clique_hinge",
    "column_group_norm",
    "columns_on_simplex",
    "compare",
    "cox_loss",
    "crammer_singer_loss",
    "datasets",
    "defaults",
    "epsilon_insensitive_loss",
    "estimators",
    "exclusive_lasso",
    "exponential_loss",
    "feature_covariance_norm",
    "frobenius_norm",
    "gamma_loss",
    "graph_laplacian",
    "group_norm",
    "half_squared_group_norm",
    "half_squared_k_support_norm",
    "hinge_loss",
    "huber_loss",
    "kronecker_ridge",
    "l12_norm",
    "l1_inf_norm",
    "l1_norm",
    "l21_norm",
    "latent_group_norm",
    "log_rank",
    "logistic_loss",
    "matrix_normal",
    "max_norm",
    "mcp",
    "mean_regularizer",
    "metrics",
    "minimize",
    "mkl_norm",
    "model",
    "models",
    "p_norm",
    "pairwise_log_loss",
    "poisson_loss",
    "quantile_loss",
    "rank",
    "register",
    "register_solver",
    "report",
    "ridge",
    "scad",
    "schatten_norm",
    "similarities",
    "softmax_loss",
    "sorted_l1_norm",
    "spectral_norm",
    "spectral_penalty",
    "square_root_loss",
    "squared_cluster_norm",
    "squared_hinge_loss",
    "squared_loss",
    "squared_trace_norm",
    "structured_hinge",
    "sum_of_squares",
    "task_covariance_norm",
    "total_variation",
    "trace_norm",
    "tree_norm",
    "unregister",
    "verify_proof",
    "worst_task",
]

__version__: str

def squared_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""Half the sum of squared residuals: 1/2 sum_j s_j (z_j - y_j)^2, with z = X_i w_i the predictions of a
    task."""

def sum_of_squares(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The sum of squared residuals: sum_j s_j (z_j - y_j)^2, with z = X_i w_i the predictions of a task; no
    1/2."""

def square_root_loss(W: Affine, tasks: Tasks, eps: float = 0.0, *, mean: bool = False) -> Objective:
    r"""The norm of a task's residuals: sqrt(sum_j s_j (z_j - y_j)^2 + eps^2), with z = X_i w_i its predictions."""

def absolute_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The sum of absolute residuals: sum_j s_j |z_j - y_j|, with z = X_i w_i the predictions of a task. Fits
    the median."""

def quantile_loss(W: Affine, tasks: Tasks, q: float = 0.5, *, mean: bool = False) -> Objective:
    r"""The quantile (pinball) loss: sum_j s_j max(q (y_j - z_j), (q - 1) (y_j - z_j)), with z = X_i w_i the
    predictions of a task. Fits the q-quantile: too low a prediction costs q, too high a one 1 - q."""

def epsilon_insensitive_loss(W: Affine, tasks: Tasks, epsilon: float = 0.1, *, mean: bool = False) -> Objective:
    r"""The epsilon-insensitive loss of support vector regression: sum_j s_j max(0, |z_j - y_j| - epsilon), with
    z = X_i w_i the predictions of a task. Residuals up to epsilon cost nothing."""

def huber_loss(W: Affine, tasks: Tasks, delta: float = 1.0, *, mean: bool = False) -> Objective:
    r"""The Huber loss: sum_j s_j h(z_j - y_j), with z = X_i w_i the predictions of a task and h(r) = r^2 / 2
    where |r| <= delta, else delta |r| - delta^2 / 2. Squared for small residuals, absolute for large ones."""

def hinge_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The hinge loss: sum_j s_j max(0, 1 - y_j z_j), with z = X_i w_i the predictions of a task and labels
    in {-1, +1}."""

def squared_hinge_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The squared hinge loss: sum_j s_j max(0, 1 - y_j z_j)^2, with z = X_i w_i the predictions of a task
    and labels in {-1, +1}; no 1/2."""

def logistic_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The logistic loss: sum_j s_j log(1 + exp(-y_j z_j)), with z = X_i w_i the predictions of a task and
    labels in {-1, +1}. `predict_proba` gives P(y = +1) = 1 / (1 + exp(-z))."""

def exponential_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The exponential loss: sum_j s_j exp(-y_j z_j), with z = X_i w_i the predictions of a task and labels
    in {-1, +1}. `predict_proba` gives P(y = +1) = 1 / (1 + exp(-2 z))."""

def poisson_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The Poisson loss: sum_j s_j (exp(z_j) - y_j z_j), with z = X_i w_i the predictions of a task and
    counts y in {0, 1, 2, ...}. z is the logarithm of the expected count."""

def gamma_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The Gamma loss, half the Gamma deviance: sum_j s_j (y_j exp(-z_j) + z_j - log(y_j) - 1), with
    z = X_i w_i the predictions of a task and labels y > 0. z is the logarithm of the expected amount."""

def cox_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""Cox's negative log partial likelihood of times that may be censored: sum over events j of s_j (log sum_{k: |y_k| >= y_j} s_k exp(z_k) - z_j),
    with z = X_i w_i the predictions of a task, the logarithms of relative risks."""

def softmax_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""Multinomial logistic regression: sum_j s_j (log sum_k exp(z_jk) - z_j,c(j)), with z_jk = x_j^T w_k the score of class k and c(j) the
    class of row j. Every class is a task, labelled +1 in its own rows and -1 in all others: `Tasks.from_classes(X, classes)`."""

def crammer_singer_loss(W: Affine, tasks: Tasks, *, mean: bool = False) -> Objective:
    r"""The hinge loss of several classes: sum_j s_j max_k ([k != c(j)] + z_jk - z_j,c(j)), with z_jk = x_j^T w_k the score of class k and c(j)
    the class of row j. Every class is a task, labelled +1 in its own rows and -1 in all others: `Tasks.from_classes(X, classes)`."""

def structured_hinge(W: Affine, tasks: Tasks, metric: Metric | Iterable[Metric] | Mapping[str, Metric] = ..., *, mean: bool = False) -> Objective:
    r"""The structured hinge of a metric: max over labellings y' of Delta(y, y') - <y - y', z>, with z = X_i w_i the predictions of
    a task and labels y in {-1, +1}. An upper bound of Delta at the labels sign(z), convex in z."""

def clique_hinge(U: Affine, V: Affine, tasks: Tasks, loss: str | tuple | Metric = 'hamming') -> Objective:
    r"""The structured hinge over a graph of labels: the mean over samples of
    max over labellings y of Delta(y, y_i) + s_i(y) - s_i(y_i), the true labelling y_i among them."""

def pairwise_log_loss(U: Affine, V: Affine, tasks: Tasks) -> Objective:
    r"""The negative log-likelihood of labellings over a graph of labels: the mean over samples of
    log sum over all labellings y of exp s_i(y), minus s_i(y_i)."""

def ridge(W: Affine | Transposed, weights: float | ArrayLike | None = None) -> Objective:
    r"""Ridge: 1/2 sum over entries of a_ij W_ij^2, which is 1/2 ||W||_F^2 without weights."""

def frobenius_norm(W: Affine | Transposed) -> Objective:
    r"""The Frobenius norm ||W||_F = sqrt(sum of squared entries), not squared."""

def l1_norm(W: Affine | Transposed | FeaturePrecision | TaskPrecision, weights: float | ArrayLike | None = None) -> Objective:
    r"""The l1 norm: sum over entries of a_ij |W_ij|."""

def sorted_l1_norm(W: Affine | Transposed, weights: float | ArrayLike | None = None, q: float | None = None) -> Objective:
    r"""The sorted l1 norm (SLOPE, OWL): sum over k of a_k |W|_(k), |W|_(k) the k-th largest of all entries' absolute values."""

def l21_norm(W: Affine | Transposed, weights: float | ArrayLike | None = None) -> Objective:
    r"""The l2,1 norm: sum over rows r of a_r ||W_r||_2."""

def l12_norm(W: Affine | Transposed, weights: float | ArrayLike | None = None) -> Objective:
    r"""Group norm with one group per task: sum over columns i of a_i ||W_i||_2."""

def l1_inf_norm(W: Affine, weights: float | ArrayLike | None = None) -> Objective:
    r"""The l1,inf norm: sum over rows r of a_r max_i |W_ri|."""

def exclusive_lasso(W: Affine, groups: Iterable[Iterable[int | str]] | None = None) -> Objective:
    r"""The exclusive lasso: sum over rows j of (sum_i |W_ji|)^2, the squared l1 norm of every row; no 1/2."""

def tree_norm(W: Affine, rows: Iterable[Iterable[int | str]] | None = None, columns: Iterable[Iterable[int | str]] | None = None, weights: float | ArrayLike | None = None) -> Objective:
    r"""Norm of the groups of a tree: sum over groups g of a_g ||W[g, :]||_F, or, of columns, sum over rows j and groups g of a_g ||W[j, g]||_2."""

def group_norm(W: Affine | Transposed, groups: Iterable[Iterable[int | str]], weights: float | ArrayLike | None = None) -> Objective:
    r"""Norm of groups of rows: sum over groups g of a_g ||W[g, :]||_F."""

def latent_group_norm(W: Affine, groups: Iterable[Iterable[int | str]], weights: float | ArrayLike | None = None) -> Objective:
    r"""Latent group norm: the least sum over groups g of a_g ||V_g||_F, where W is the sum of the V_g and V_g is zero outside of the rows g."""

def column_group_norm(W: Affine | Transposed, columns: Iterable[Iterable[int | str]] | None = None, weights: float | ArrayLike | None = None) -> Objective:
    r"""Norm of disjoint groups of columns: sum over groups c of a_c ||W_c||_F."""

def half_squared_group_norm(W: Affine, columns: Iterable[Iterable[int | str]] | None = None) -> Objective:
    r"""Half the squared group norm: 1/2 (sum over groups c of columns ||W_c||_F)^2."""

def half_squared_k_support_norm(W: Affine, r: int, columns: Iterable[Iterable[int | str]] | None = None) -> Objective:
    r"""Half the squared group k-support norm: min over eta in [0, 1]^q, sum eta <= r, of 1/2 sum over groups c ||W_c||_F^2 / eta_c."""

def trace_norm(W: Affine | Transposed) -> Objective:
    r"""The trace norm (nuclear norm): sum of the singular values of W."""

def spectral_norm(W: Affine | Transposed) -> Objective:
    r"""The spectral norm (operator norm): the largest singular value of W."""

def max_norm(W: Affine | Transposed) -> Objective:
    r"""The max norm (gamma_2 norm): min over W = A B^T, factors of any rank, of (largest row norm of A) times (largest row norm of B)."""

def squared_trace_norm(W: Affine | Transposed) -> Objective:
    r"""The squared trace norm: (sum of the singular values of W)^2, no 1/2."""

def squared_cluster_norm(W: Affine, lower: float, upper: float, trace: float) -> Objective:
    r"""The squared cluster norm (spectral box norm): min tr(W S^-1 W^T) over covariances S of the tasks, lower I <= S <= upper I, tr S <= trace."""

def graph_laplacian(W: Affine | Transposed, L: ArrayLike) -> Objective:
    r"""Tasks on a graph: 1/2 tr(W L W^T), with L the graph's Laplacian."""

def mean_regularizer(W: Affine | Transposed) -> Objective:
    r"""Tasks near their mean: 1/2 sum over columns i of ||W_i - mean of the columns||^2."""

def total_variation(W: Affine) -> Objective:
    r"""Total variation over tasks in their order: sum over i < q of ||W_{i+1} - W_i||_1."""

def kronecker_ridge(W: Affine | Transposed, rows: ArrayLike, columns: ArrayLike) -> Objective:
    r"""Ridge between correlated features and tasks: 1/2 tr(A W B W^T), A (p, p) and B (q, q) given."""

def mcp(W: Affine | Transposed, gamma: float = 3.0, rows: bool = False) -> Objective:
    r"""The minimax concave penalty (MCP), not convex: sum over entries of phi(|W_ij|), phi(t) = t - t^2 / (2 gamma) up to gamma, then gamma / 2."""

def scad(W: Affine | Transposed, a: float = 3.7, rows: bool = False) -> Objective:
    r"""The smoothly clipped absolute deviation (SCAD), not convex: sum over entries of phi(|W_ij|), phi'(t) = 1 up to 1, falling to 0 at a."""

def capped_l1(W: Affine | Transposed, tau: float, rows: bool = False) -> Objective:
    r"""The capped l1 penalty, not convex: sum over entries of min(|W_ij|, tau)."""

def rank(W: Affine | Transposed) -> Objective:
    r"""The rank of W, not convex: how many of its singular values are not zero (above 1e-10 of the largest)."""

def log_rank(W: Affine, eps: float = 0.01) -> Objective:
    r"""Log-rank, not convex: sum_{j=1..d} log(1 + sqrt(sigma_j(W)^2 + eps)); with eps=0, sum_j log(1 + sigma_j(W))."""

def capped_trace_norm(W: Affine, tau: float, eps: float = 0.0) -> Objective:
    r"""Capped trace norm, not convex: sum_j min(sigma_j(W), tau); with eps > 0, sum_{j=1..d} min(sqrt(sigma_j(W)^2 + eps), tau)."""

def schatten_norm(W: Affine, p: float, eps: float = 0.01) -> Objective:
    r"""Schatten quasi-norm to the power p, not convex: sum_{j=1..d} (sigma_j(W)^2 + eps)^(p/2), 0 < p < 1, without the root 1/p."""

def spectral_penalty(W: Affine, function: Callable[..., ArrayLike], derivative: Callable[..., ArrayLike], eps: float = 0.01) -> Objective:
    r"""A user's own concave penalty of the spectrum: sum_{j=1..d} r(sigma_j(W)^2 + eps), not convex unless r makes it so."""

def mkl_norm(W: Affine, similarities: Iterable[TaskSimilarity | ArrayLike], theta: KernelWeights | ArrayLike | None = None, p: float | None = None) -> Objective:
    r"""Multi-task multiple kernel learning: 1/2 sum_m ||W_m||^2_{Q_m} / theta_m over the best parts W = sum_m W_m, theta learned."""

def matrix_normal(W: Affine, Sigma1: FeaturePrecision | ArrayLike, Sigma2: TaskPrecision | ArrayLike, eta: float = 1.0, rho: float = 1.0) -> Objective:
    r"""Matrix-normal prior of W with learned precisions: eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|)."""

def feature_covariance_norm(W: Affine | Transposed, D: FeatureCovariance) -> Objective:
    r"""Multi-task feature learning (MTFL): tr(W^T D^{-1} W) with a covariance D of the features that is learned, tr D <= c."""

def task_covariance_norm(W: Affine | Transposed, Omega: TaskCovariance) -> Objective:
    r"""Multi-task relationship learning (MTRL): tr(W Omega^{-1} W^T) with a covariance Omega of the tasks, learned, tr Omega <= c."""

def columns_on_simplex(W: Affine, total: float = 1.0) -> Constraint:
    r"""The matrices whose columns are >= 0 and each sum to `total`: every task's weights are shares."""

