"""The models over a graph of labels: the one that learns which edges there are, and the ones whose graph is given."""

from __future__ import annotations

from mtldsl.named_models.named_model import NamedModel

__all__ = ["LABEL_GRAPHS"]

_CGM = 'Tan, Shi, van den Hengel, Shen, Gao, Hu and Zhang, "Learning graph structure for multi-label image classification via clique generation", CVPR 2015'
_FAMILY = "Graphs of labels"
_EDGES = "edges=[...] gives the edges that there may be: pairs of labels, or a networkx graph."
_INPUTS = (
    "Labels are -1 and +1 over a shared X. Where some are missing, a row has the loss of its observed labels and the edges between them. intercept=True gives "
    "labels intercepts without a penalty, a column of ones in X all of them with one."
)

LABEL_GRAPHS: tuple[NamedModel, ...] = (
    NamedModel(
        name="CGM",
        statement="clique_hinge(U, V, tasks) + lam * ridge(U) + lam * half_squared_k_support_norm(V, r)",
        about="A few pairs of labels depend on each other, and which ones is learned.",
        source=f"{_CGM}, equation (6)",
        family=_FAMILY,
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
        family=_FAMILY,
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
        family=_FAMILY,
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
        family=_FAMILY,
        weights=("U", "V"),
        edges="all",
        also=("Pairwise CRF",),
        note=f"The normaliser is exact: the graph has a treewidth of at most about 15, or 16 labels. {_EDGES} {_INPUTS}",
    ),
)
