"""Dual ascent on the labellings of samples: the models it takes, its state and its epochs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.inference.decoder import Decoder, changes_times, rows_at_once
from mtldsl.atoms.prox.shrinkage import half_squared_k_support
from mtldsl.normal_form.form import Block, Blocks, NormalForm, single_loss
from mtldsl.normal_form.terms.label_graph_term import (
    Flips,
    LabelGraphTerm,
    RandomLabelings,
    balancing_flips,
    each_flipped,
    label_flip_probabilities,
    mixed_with_flips,
)
from mtldsl.solvers.design.kernel_arguments import (
    CliqueArrays,
    InferencePlan,
    LabelingMixtures,
    LabelingWeights,
    LabelledRows,
    PenaltyScales,
)
from mtldsl.utils.arrays import read_only
from mtldsl.utils.memory import gib


@dataclass(frozen=True)
class LabelingSettings:
    """Limits of the ascent on labellings.

    dense_entries        : of sparse inputs that are made dense
    proximal_start_ratio : of the proximal term's weight to that of the penalty on the cliques, at first
    proximal_min_ratio   : the same at least
    sample_steps         : on one sample before the next has its turn
    mixed_labellings     : that a sample can mix, to begin with
    labelling_tol        : a labelling this little higher than the lowest one of a sample, relatively, is no higher
    """

    dense_entries: int = 200_000_000
    proximal_start_ratio: float = 5.0
    proximal_min_ratio: float = 0.05
    sample_steps: int = 5
    mixed_labellings: int = 12
    labelling_tol: float = 1e-14


SETTINGS = LabelingSettings()


# --------------------------------------------------------------------------------------------------------------
# The models that dual ascent on labellings takes, read from the normal form.


@dataclass(frozen=True)
class CliqueForm:
    """minimize  a / 2 ||U||^2 + b Omega_r(norms of the cliques' columns of V) + sum_i w_i H_i(U, V), over intercepts of labels too.

    r is the number of cliques where the penalty on V is a ridge: then Omega_r is 1/2 ||V||^2.
    """

    loss: LabelGraphTerm
    nodes: str
    edges: str | None  # None: there is no clique
    a: float
    b: float
    r: int
    unused: tuple[Block, ...] = ()  # those of a graph without edges
    intercept: str | None = None  # the block of the labels' intercepts, which are the last feature

    @property
    def n_cliques(self) -> int:
        return self.loss.cliques.n_cliques

    @property
    def selects(self) -> bool:
        """Tell whether the penalty leaves cliques out, so that not all need to be there."""
        return self.r < self.n_cliques


def clique_form(form: NormalForm) -> CliqueForm | str:
    """The model, or the reason why it is none of these."""
    for term in form.losses:
        if term.atom.labels != "indicators" or not term.atom.max_affine:
            return f"{term.typed} is not a clique_hinge."
    found = single_loss(form)
    if isinstance(found, str):
        return found
    loss: Any = found  # of such an atom: a LabelGraphTerm
    width = 2 * loss.cliques.n_labels
    places = [0, width] if loss.cliques.n_cliques else [0]
    constants = {block.name: block.intercept_of for block in form.blocks if block.intercept_of is not None}
    entries = [entry for entry in loss.map.entries if entry.block not in constants]
    intercept = next((entry.block for entry in loss.map.entries if entry.block in constants), None)
    plain = len(entries) == len(places) and loss.map.offset is None
    for entry in entries:
        whole = entry.left is None if intercept is None else _is_first(entry.left)
        plain = plain and entry.coefficient == 1.0 and whole and _is_slice(entry.right)
    starts = [int(entry.right.indices[0]) for entry in entries] if plain else []
    if starts != places:
        return f"{loss.typed} is not of NodeWeights and EdgeWeights themselves, but of expressions of them."
    names = [entry.block for entry in entries]
    if loss.tasks.is_sparse and loss.tasks.n_features * len(loss.truth) > SETTINGS.dense_entries:
        return f"{loss.typed} has sparse inputs that would take {gib(8.0 * loss.tasks.n_features * len(loss.truth))} as dense ones."
    nodes, edges = names[0], names[1] if len(names) > 1 else None
    coefficients: dict[str, float] = {}
    r = loss.cliques.n_cliques
    for f in form.functions:
        block = f.map.identity_of
        if f.is_constraint or block is None or block not in names:
            return f"{f.typed} is not a penalty of the loss's weights alone."
        if (squares := f.atom.entry_quadratic) is not None:
            if np.ptp(squares) > 0:
                return f"{f.typed} has unequal weights."
            own = float(np.ravel(squares)[0])
        elif f.atom.k_support is not None and block == edges:
            if not _is_by_clique(f.atom, loss.cliques):
                return f"{f.typed} has other groups of columns than the cliques."
            own, r = 1.0, min(f.atom.k_support, r)
        else:
            return f"{f.typed} is neither a ridge nor, on the weights of edges, half a squared group or k-support norm."
        if block in coefficients and (block == edges and r < loss.cliques.n_cliques):
            return f"{f.typed} is a second penalty on {block}."
        coefficients[block] = coefficients.get(block, 0.0) + f.coefficient * own
    missing = [name for name in names if not coefficients.get(name, 0.0) > 0.0]
    if missing:
        return f"there is no penalty on {missing[0]}; add lam * ridge({missing[0]})."
    unused = tuple(block for block in form.blocks if block.name not in (*names, intercept))
    return CliqueForm(
        loss,
        nodes,
        edges,
        coefficients[nodes],
        1.0 if edges is None else coefficients[edges],
        r,
        unused,
        intercept,
    )


def _is_first(left) -> bool:
    """Tell whether it keeps all rows of a matrix and puts one more below them, as weights have it beside intercepts."""
    return left is not None and left.shape[0] == left.shape[1] + 1 and _is_slice(left.T)


def _is_slice(right) -> bool:
    """Tell whether a selector puts the columns, all of them, side by side into neighbouring places."""
    right = None if right is None else sparse.csr_array(right)
    return (
        right is not None
        and right.nnz == right.shape[0]
        and np.array_equal(right.indices, right.indices[0] + np.arange(right.nnz))
        and bool(np.all(right.data == 1.0))
    )


def _is_by_clique(atom, cliques) -> bool:
    if atom.columns is None:
        return False
    return [tuple(group) for group in atom.columns] == [
        tuple(cliques.columns(c).tolist()) for c in range(cliques.n_cliques)
    ]


# --------------------------------------------------------------------------------------------------------------
# The intercepts of labels in dual ascent: the last feature, without a penalty, whose multipliers a proof has to balance.


class LabelIntercepts:
    """X (n, d + 1) with ones as its last column, which become `unit`, of the size of a sample: a ridge of that feature, around `centre` (2K,),
    which follows the intercepts, is the proximal term that makes the dual one of free multipliers.

    What multipliers leave of "their sums are zero" is balanced by flips of single labels of the truth (`balancing_flips`), for a proof.
    """

    def __init__(self, X: np.ndarray, truth: np.ndarray, weights: np.ndarray, known: np.ndarray | None):
        self.truth, self.weights, self.n_nodes = truth, weights, 2 * truth.shape[1]
        self.lengths_seen = np.einsum("ij,ij->i", X[:, :-1], X[:, :-1])
        self.unit = float(np.sqrt(self.lengths_seen.mean())) or 1.0
        self.X = np.ascontiguousarray(np.hstack([X[:, :-1], self.unit * X[:, -1:]]))
        fits = known is not None and known.shape == (self.n_nodes,)
        self.centre = np.asarray(known) / self.unit if fits else np.zeros(self.n_nodes)

    def seen_by_edges(self, rows: np.ndarray) -> np.ndarray:
        """(S, d + 1) with zeros where edges would have intercepts."""
        rows[self.n_nodes :, -1] = 0.0
        return rows

    def flips(self, multipliers: np.ndarray) -> Flips | None:
        """Return what balances them; None where nothing has to be."""
        sums = -multipliers[1 : self.n_nodes : 2, -1] / self.unit
        return balancing_flips(sums, [self.truth], [self.weights])

    def mixed(self, random: RandomLabelings, multipliers: np.ndarray) -> RandomLabelings:
        flips = self.flips(multipliers)
        return random if flips is None else mixed_with_flips(random, flips, self.truth)

    def balanced(self, multipliers: np.ndarray, of, cliques) -> np.ndarray:
        """Multipliers `of` all entries of some cliques, balanced by what balances `multipliers`."""
        flips = self.flips(multipliers)
        if flips is None:
            return of
        chances = label_flip_probabilities(flips, self.truth)
        rows, places = np.nonzero(chances)
        labels = self.truth[rows]
        labels[np.arange(len(rows)), places] ^= 1
        starts = np.concatenate([[0], np.cumsum((chances > 0.0).sum(axis=1))])
        shares = -(chances * self.weights[:, None])[rows, places]
        of_flips = changes_times(cliques, self.truth, labels, shares, starts, self.X)
        return (1.0 - flips[0]) * of + flips[0] * self.seen_by_edges(of_flips)

    def promised(self, multipliers: np.ndarray, promised: float, of_flips) -> float:
        """sum of w_i E[Delta], balanced; of_flips (n, K): what a single wrong label of a sample costs."""
        flips = self.flips(multipliers)
        if flips is None:
            return promised
        chances = label_flip_probabilities(flips, self.truth)
        return (1.0 - flips[0]) * promised + flips[0] * float(self.weights @ (chances * of_flips).sum(axis=1))


# --------------------------------------------------------------------------------------------------------------
# Dual ascent on labellings with a given set of cliques: random labellings of samples, and the weights that they stand for.


class LabelingDual:
    """The dual of  min a/2 ||U||^2 + b Omega_r(V) + sum_i w_i H_i(U, V), V being zero outside the active cliques.

    A sample's multiplier is a random labelling; they are improved one sample at a time (block-coordinate Frank-Wolfe, pairwise steps
    with exact line search). Where Omega_r leaves cliques out its conjugate is not smooth: b tau / 2 ||V - centre||^2 is added, and the
    centre follows V.

    Source: CGM, section 4; Lacoste-Julien, Jaggi, Schmidt and Pletscher, "Block-coordinate Frank-Wolfe optimization for structural
    SVMs", ICML 2013; Rockafellar, "Monotone operators and the proximal point algorithm", SIAM J. Control Optim. 14 (1976).
    """

    def __init__(self, model: CliqueForm, seed: int = 0, state: dict | None = None):
        self.model, loss = model, model.loss
        X = loss.tasks.X
        atom: Any = loss.atom  # clique_form lets through only a clique_hinge
        self.X = np.ascontiguousarray(X.toarray() if loss.tasks.is_sparse else X)
        self.lengths = self.lengths_seen = np.einsum("ij,ij->i", self.X, self.X)
        self.truth, self.weights, self.costs = loss.truth, loss.weights, atom.costs
        self.atom = atom
        self.dear = (None, None) if atom.whole is None else atom.whole.beside(loss.truth)
        self.constants = None
        if model.intercept is not None:
            known = None if state is None else state.get("constants")
            self.constants = LabelIntercepts(self.X, self.truth, self.weights, known)
            self.X, self.lengths_seen = self.constants.X, self.constants.lengths_seen
            self.lengths = np.einsum("ij,ij->i", self.X, self.X)
        self.X = read_only(self.X)
        self.rng = np.random.default_rng(seed)
        self.epochs = 0
        n, K = self.truth.shape
        if state is not None and _belongs(state, self.truth):
            self.labels, self.alpha, self.counts = (
                state[key].copy() for key in ("labels", "alpha", "counts")
            )
        else:
            self.labels = np.zeros((n, SETTINGS.mixed_labellings, K), dtype=np.uint8)
            self.alpha = np.zeros((n, SETTINGS.mixed_labellings))
            self.labels[:, 0], self.alpha[:, 0] = self.truth, 1.0
            self.counts = np.ones(n, dtype=np.int64)
        self.activate(np.empty(0, dtype=np.int64))

    def start_from(self, state: dict) -> None:
        """The proximal centre of a warm start, where it has one of the active cliques."""
        if state["members"] == list(self.cliques.members) and state["centre"].shape == self.centre.shape:
            self.centre = state["centre"].copy()
            self.recompute()

    # --------------------------------------------------------------------------------------- the active cliques

    def activate(self, active) -> None:
        """Let these cliques, by position, and no others have weights; random labellings stay, the centre where it was."""
        before = getattr(self, "active", None)
        centre = None if before is None or self.model.edges is None else self.centre_of_all()
        self.active = np.asarray(active, dtype=np.int64)
        self.cliques = self.model.loss.cliques.subset(self.active)
        self.decoder, self._seen = self.atom.decoder_of(self.cliques), None
        self.r = min(self.model.r, self.cliques.n_cliques)
        self.is_smooth = self.cliques.n_cliques <= self.r
        self.tau = 0.0 if self.is_smooth else SETTINGS.proximal_start_ratio
        self.order = np.arange(self.cliques.n_cliques, dtype=np.int64)
        self.centre = np.zeros((self.cliques.n_entries - self._nodes, self.X.shape[1]))
        if centre is not None and self.cliques.n_cliques:
            columns = np.concatenate([self.model.loss.cliques.columns(c) for c in self.active])
            self.centre = centre[columns]
        self._refresh()

    @property
    def _nodes(self) -> int:
        return 2 * self.truth.shape[1]

    def centre_of_all(self) -> np.ndarray:
        """(columns of V, d) the centre, zero for cliques that are not active."""
        every = np.zeros((self.model.loss.cliques.n_entries - self._nodes, self.X.shape[1]))
        for c, begin, end in zip(self.active, self.cliques.starts[:-1], self.cliques.starts[1:], strict=True):
            every[self.model.loss.cliques.columns(c)] = self.centre[begin - self._nodes : end - self._nodes]
        return every

    def _refresh(self) -> None:
        """Everything that follows from the random labellings and the centre, computed anew."""
        self.multipliers = self._multipliers_of(self.cliques)
        self.recompute()

    def _multipliers_of(self, cliques) -> np.ndarray:
        """(S, d) minus the weighted expected changes of what is chosen, times the inputs."""
        mixture = self._random()
        shares = -mixture.weights * np.repeat(self.weights, np.diff(mixture.starts))
        return self.seen_by_edges(
            changes_times(cliques, self.truth, mixture.labels, shares, mixture.starts, self.X)
        )

    def seen_by_edges(self, rows) -> np.ndarray:
        """(S, d) without the constant, which edges have no weights of."""
        return rows if self.constants is None else self.constants.seen_by_edges(rows)

    def recompute(self) -> None:
        """Return what follows from the multipliers and the centre."""
        Z = np.empty_like(self.multipliers)
        Z[: self._nodes] = self.multipliers[: self._nodes] / self.model.a
        if self.constants is not None:
            Z[: self._nodes, -1] += self.constants.centre
        Z[self._nodes :] = self.multipliers[self._nodes :] / self.model.b + self.tau * self.centre
        self.Z = np.ascontiguousarray(Z)
        self.squares = self._group_squares(self.Z[self._nodes :])

    def _group_squares(self, rows) -> np.ndarray:
        if not self.cliques.n_cliques:
            return np.zeros(0)
        return np.add.reduceat(np.einsum("ij,ij->i", rows, rows), self.cliques.starts[:-1] - self._nodes)

    # ------------------------------------------------------------------------------------------------- ascent

    def epoch(self) -> float:
        """Every sample once, in random order. Returns the sum of the samples' gaps as they were visited."""
        from mtldsl.solvers.label_graphs.labeling_kernels import ascend

        _, entries, decoder = self._inference()
        gap, full = 0.0, 0
        for visits in self.visits(decoder):
            search = InferencePlan(entries, *decoder.choice, decoder.plan, *decoder.scratch(), *self.dear)  # type: ignore[call-arg]  # two and two
            gap_of_these, full_of_these = ascend(
                visits,
                *self.arguments(),
                tuple(search),
                SETTINGS.sample_steps,
                SETTINGS.labelling_tol,
            )
            gap, full = gap + gap_of_these, full + full_of_these
        self._settle(full)
        return float(gap)

    @property
    def n_features(self) -> int:
        """Without the constant."""
        return self.X.shape[1] - (self.constants is not None)

    def arguments(self) -> tuple[tuple, ...]:
        """(rows, cliques, penalty, weights, mixtures) of a compiled pass, which changes the last two in place."""
        return (
            tuple(LabelledRows(self.X, self.lengths, self.lengths_seen, self.n_features, self.weights, self.truth, self.costs)),
            tuple(CliqueArrays(self.cliques.table, self.cliques.sizes, self.cliques.starts)),
            tuple(PenaltyScales(1.0 / self.model.a, 1.0 / self.model.b, self.tau, self.r)),
            tuple(LabelingWeights(self.Z, self.squares, self.order)),
            tuple(LabelingMixtures(self.labels, self.alpha, self.counts)),
        )  # fmt: skip

    def visits(self, decoder: Decoder) -> list[np.ndarray]:
        """Every sample once, in random order; no more of them together than one call of compiled code may take."""
        order = self.rng.permutation(len(self.truth))
        most = rows_at_once(decoder.operations + self.Z.size)
        return [order[begin : begin + most] for begin in range(0, len(order), most)]

    def _settle(self, full: int) -> None:
        """After a pass: room for what samples may mix, where some had none left, and all that follows from Z."""
        self.epochs += 1
        if full:
            n, slots, K = self.labels.shape
            self.labels = np.concatenate([self.labels, np.zeros((n, slots, K), np.uint8)], axis=1)
            self.alpha = np.concatenate([self.alpha, np.zeros((n, slots))], axis=1)
        self.multipliers[: self._nodes] = self.Z[: self._nodes] * self.model.a
        if self.constants is not None:
            self.multipliers[: self._nodes, -1] -= self.constants.centre * self.model.a
        self.multipliers[self._nodes :] = (self.Z[self._nodes :] - self.tau * self.centre) * self.model.b
        self.squares = self._group_squares(self.Z[self._nodes :])  # rounding does not add up

    def _inference(self) -> tuple:
        """(the cliques that inference sees, their entries, their decoder): all; or, where that is not exact, those that have
        weights now. Others may get some during an epoch; labellings are valued with all of them.
        """
        kept = np.arange(self.cliques.n_cliques)
        if not self.decoder.is_exact:
            kept = np.flatnonzero(self.shares() > 0.0)
        key = kept.tobytes()
        if self._seen is None or self._seen[0] != key:
            cliques, starts = self.cliques.subset(kept), self.cliques.starts
            entries = np.concatenate(
                [np.arange(self._nodes), *(np.arange(starts[c], starts[c + 1]) for c in kept)]
            )
            decoder = self.decoder if len(kept) == self.cliques.n_cliques else Decoder(cliques)
            self._seen = key, (cliques, entries, decoder)
        return self._seen[1]

    def recentre(self) -> None:
        """The centre follows the weights, and the intercepts."""
        if self.is_smooth and self.constants is None:
            return
        if self.constants is not None:
            self.constants.centre = self.Z[: self._nodes, -1].copy()
        if not self.is_smooth:
            self.centre = self.edge_rows()
        self.recompute()

    def loosen(self) -> None:
        """A smaller proximal term: the centre then moves further, and what is solved between is less smooth."""
        if self.tau > 0.0:
            self.tau = max(0.5 * self.tau, SETTINGS.proximal_min_ratio)
            self.recompute()

    def shares(self, squares=None) -> np.ndarray:
        """(active,) eta, for the squared norms of multipliers."""
        from mtldsl.solvers.label_graphs.labeling_kernels import shares

        eta = np.empty(self.cliques.n_cliques)
        shares(np.sqrt(self.squares if squares is None else squares), self.order, self.r, self.tau, eta)
        return eta

    def raised(self, multipliers=None, promised: float = 0.0) -> float:
        """Return what the epochs raise: the dual value with the proximal term, up to a constant; of other multipliers, with promises added."""
        multipliers = self.multipliers if multipliers is None else multipliers
        nodes, edges = (
            multipliers[: self._nodes],
            multipliers[self._nodes :] / self.model.b + self.tau * self.centre,
        )
        squares = self._group_squares(edges)
        eta = self.shares(squares)
        conjugate = 0.5 * self.model.b * float(np.sum(squares * eta / (1.0 + self.tau * eta)))
        if self.constants is not None:
            conjugate += float(self.constants.centre @ nodes[:, -1])
        return self.promised() + promised - 0.5 * float(np.sum(nodes**2)) / self.model.a - conjugate

    def entry_factors(self) -> np.ndarray:
        """(S,) what turns multipliers into weights, the centre aside."""
        return np.concatenate([np.full(self._nodes, 1.0 / self.model.a), self._edge_factors() / self.model.b])

    def _edge_factors(self) -> np.ndarray:
        """(entries of the active cliques,) by how much Z is larger than the weights."""
        eta = self.shares()
        return np.repeat(eta / (1.0 + self.tau * eta), 2**self.cliques.sizes)

    def weight_rows(self) -> np.ndarray:
        """(S, d) the weights of all entries."""
        return np.vstack([self.Z[: self._nodes], self.edge_rows()])

    # ------------------------------------------------------------------------------------------ what it stands for

    def edge_rows(self) -> np.ndarray:
        """(columns of the active cliques, d) the weights V."""
        return self.Z[self._nodes :] * self._edge_factors()[:, None]

    def blocks(self) -> Blocks:
        """The weights U and V."""
        blocks = {block.name: np.zeros(block.shape) for block in self.model.unused}
        d = self.n_features
        blocks[self.model.nodes] = self.Z[: self._nodes, :d].T.copy()
        if self.constants is not None:
            blocks[str(self.model.intercept)] = self.constants.unit * self.Z[: self._nodes, d:].T
        if self.model.edges is not None:
            V = np.zeros((d, self.model.loss.cliques.n_entries - self._nodes))
            rows = self.edge_rows()
            for c, begin, end in zip(
                self.active, self.cliques.starts[:-1], self.cliques.starts[1:], strict=True
            ):
                V[:, self.model.loss.cliques.columns(c)] = rows[begin - self._nodes : end - self._nodes, :d].T
            blocks[self.model.edges] = V
        return blocks

    def _random(self) -> RandomLabelings:
        used = self.alpha > 0.0
        used[:, 0] = False  # the true labelling has the rest
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        return RandomLabelings(self.labels[used], self.alpha[used], starts)

    def mixture(self, share: float = 1.0) -> RandomLabelings:
        """The random labellings, balanced, mixed with the true ones where share < 1."""
        random = self._random()
        if self.constants is not None:
            random = self.constants.mixed(random, self.multipliers)
        return RandomLabelings(random.labels, share * random.weights, random.starts)

    def primal(self) -> float:
        """The objective, with an upper bound of the maximum where inference is not exact."""
        rows = self.edge_rows()
        cliques, entries, decoder = self._inference()
        W = self.weight_rows()[entries]
        atom = self.atom.with_cliques(cliques)
        losses = atom.value_of_samples(np.ascontiguousarray(self.X @ W.T), self.truth, decoder)
        return (
            float(self.weights @ losses)
            + 0.5 * self.model.a * float(np.sum(self.Z[: self._nodes, : self.n_features] ** 2))
            + self._penalty(rows)
        )

    def _penalty(self, rows) -> float:
        if not self.cliques.n_cliques:
            return 0.0
        return self.model.b * half_squared_k_support(np.sqrt(self._group_squares(rows)), self.r)

    def clique_norms(self) -> np.ndarray:
        """(q,) norms of the multipliers of all cliques, active or not: their dual scores."""
        nodes = self._nodes
        if not self.model.n_cliques:
            return np.zeros(0)
        Z = self._balanced(self._multipliers_of(self.model.loss.cliques), self.model.loss.cliques)[nodes:]
        return np.sqrt(
            np.add.reduceat(np.einsum("ij,ij->i", Z, Z), self.model.loss.cliques.starts[:-1] - nodes)
        )

    def _balanced(self, multipliers, cliques) -> np.ndarray:
        """Multipliers of these cliques, their sums zero where there are intercepts."""
        if self.constants is None:
            return multipliers
        return self.constants.balanced(self.multipliers, multipliers, cliques)

    def dual(self, norms=None) -> tuple[float, float]:
        """(the best dual value along the segment to the true labellings, its share): of the active cliques, or of all, given their norms."""
        multipliers = self._balanced(self.multipliers, self.cliques)
        norms = np.sqrt(self._group_squares(multipliers[self._nodes :])) if norms is None else norms
        largest = np.sort(norms**2)[::-1][: self.model.r].sum()
        promised = self.promised()
        if self.constants is not None:
            promised = self.constants.promised(self.multipliers, promised, self.of_flips)
        quadratic = (
            0.5 * float(np.sum(multipliers[: self._nodes] ** 2)) / self.model.a + 0.5 * largest / self.model.b
        )
        share = min(1.0, 0.5 * promised / quadratic) if quadratic > 0.0 else 1.0
        return share * promised - share**2 * quadratic, share

    @cached_property
    def of_flips(self) -> np.ndarray:
        """(n, K) what a single wrong label of a sample costs."""
        flipped = each_flipped(self.truth)
        beside = np.broadcast_to(self.truth[:, None, :], flipped.shape).reshape(-1, self.truth.shape[1])
        return self.atom.delta(flipped.reshape(beside.shape), beside).reshape(self.truth.shape)

    def promised(self) -> float:
        """sum of w_i E[Delta] of the random labellings."""
        if self.atom.whole is not None:
            samples, slots = np.nonzero(self.alpha > 0.0)
            delta = self.atom.delta(self.labels[samples, slots], self.truth[samples])
            return float((self.weights[samples] * self.alpha[samples, slots]) @ delta)
        wrong = self.labels != self.truth[:, None, :]
        return float(self.weights @ np.einsum("ijk,k,ij->i", wrong, self.costs, self.alpha))

    @property
    def state(self) -> dict:
        """Return what a warm start goes on from."""
        own = {"labels": self.labels, "alpha": self.alpha, "counts": self.counts}
        if self.constants is not None:
            own["constants"] = self.constants.unit * self.Z[: self._nodes, -1]
        return {**own, "active": self.active, "centre": self.edge_rows()}


def _belongs(state: dict | None, truth) -> bool:
    """Tell whether a warm start is of the same samples: random labellings start from the true ones."""
    return (
        state is not None
        and state["labels"].shape[::2] == truth.shape
        and np.array_equal(state["labels"][:, 0], truth)
    )
