"""Writer of proofs: the normal form, the point and the multipliers as plain data, saved for `mtldsl verify`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog, minimize, nnls
from scipy.special import logsumexp, softmax

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.inference.cliques import GAP
from mtldsl.atoms.matrix_function import Atom
from mtldsl.atoms.metrics.expected_loss import flip_probabilities
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.atoms.structured_prox.polytope import project
from mtldsl.certificates.certificate import Certificate
from mtldsl.certificates.checker.proof_check import words_without_formula
from mtldsl.certificates.checker.proof_file import DataArrays, as_read, write_proof
from mtldsl.certificates.checker.proof_schema import difference
from mtldsl.certificates.stationarity import NO_GLOBAL
from mtldsl.data.task_data import require_in_memory
from mtldsl.errors import ModelError
from mtldsl.language.scalars import put_back
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.term import LinearMap
from mtldsl.normal_form.terms.joint_losses import WorstTaskTerm
from mtldsl.normal_form.terms.label_graph_term import LabelDual, LabelGraphTerm, label_flip_probabilities
from mtldsl.normal_form.terms.structured_term import StructuredTerm
from mtldsl.utils.validation import as_flag

# --------------------------------------------------------------------------------------------------------------
# Writing a proof as plain data: the normal form, the point, the multipliers of the bound with their witnesses, and the claim.


def save_proof(
    path,
    form: NormalForm,
    blocks: Blocks,
    loss_duals,
    function_duals,
    claimed: dict,
    region: dict,
    *,
    data: bool = False,
) -> Path:
    """Write what `mtldsl verify` reads. loss_duals and function_duals: the final multipliers of the bound, stationary and scaled.

    region: {block: B}, weights up to which the bound holds where no term bounds a block; data: keep the data in the file as well
    """
    sets: list[DataArrays] = []
    described = describe_form(form, sets)
    for loss, one, dual in zip(form.losses, described["losses"], loss_duals, strict=True):
        one |= _multipliers(loss, dual)
    kept = [dual for f, dual in zip(form.functions, function_duals, strict=True) if _has_entries(f.map.shape)]
    for one, dual in zip(described["functions"], kept, strict=True):
        one["multipliers"] = None if dual is None else np.array(dual, dtype=float)
    region = {
        name: np.array(np.broadcast_to(B, form.shapes[name]), dtype=float)
        for name, B in region.items()
        if _has_entries(form.shapes[name])
    }
    point = {
        name: np.array(array, dtype=float) for name, array in blocks.items() if _has_entries(array.shape)
    }
    lacking = words_without_formula(described, sets)
    if lacking:
        warnings.warn(
            f"certificate.save({str(path)!r}): `mtldsl verify` has no formula for {', '.join(lacking)}, and can confirm nothing of this proof",
            stacklevel=3,
        )
    return write_proof(
        path, {**described, "point": point, "claimed": claimed, "region": region}, sets if data else None
    )


def _has_entries(shape: tuple[int, ...]) -> bool:
    """Tell whether there is anything of it to prove: a graph without edges has weights (d, 0)."""
    return 0 not in shape


def describe_form(form: NormalForm, sets: list[DataArrays] | None = None) -> dict:
    """The normal form as plain data, without what has no entries; `sets` is filled with the data that its losses are of, each once."""
    sets = [] if sets is None else sets
    hashes: list[dict] = []
    losses = []
    for loss in form.losses:
        data = _data_of(loss)
        own = data.hashes()
        if own not in hashes:
            hashes.append(own)
            sets.append(data)
        losses.append(
            {
                "word": loss.atom.name, "typed": loss.typed, "parameters": _parameters_of_loss(loss),
                "coefficients": np.array(loss.coefficients, dtype=float)[: 1 if isinstance(loss, LabelGraphTerm) else None],
                "data": hashes.index(own), "map": _map(loss.map), "intercepts": list(loss.intercepts),
            }
        )  # fmt: skip
    functions = [
        {
            "word": f.atom.name, "typed": f.typed, "parameters": _parameters(f.atom.stated(f.map.shape)), "coefficient": float(f.coefficient),
            "map": _map(f.map), "convex": bool(f.atom.convex),
        }
        for f in form.functions if _has_entries(f.map.shape)
    ]  # fmt: skip
    return {
        "model": form.typed,
        "constant": float(form.constant),
        "blocks": [
            {"name": b.name, "shape": list(b.shape), "intercept_of": b.intercept_of}
            for b in form.blocks
            if _has_entries(b.shape)
        ],
        "data": [{"hashes": own, "shared": one.shared} for own, one in zip(hashes, sets, strict=True)],
        "losses": losses,
        "functions": functions,
    }


def describe_family(problem: Any, parameter: Any, sets: list[DataArrays] | None = None) -> tuple[dict, str]:
    """(the normal form at the parameter's value 1, what grows with it: "loss", "ridge", or "" where neither is all that does)."""
    with put_back([parameter]):
        parameter.value = 1.0
        form = describe_form(problem.form(), sets)
        # which no formula but a multiple multiplies by, as 2 does lam^2 + 2 by that of 3 lam
        parameter.value = np.pi
        other = describe_form(problem.form())

    def ratios(terms: str, coefficient: str) -> set[float]:
        pairs = zip(form[terms], other[terms], strict=True)
        found = (np.divide(b[coefficient], a[coefficient]) for a, b in pairs)
        return {round(float(ratio), 12) for each in found for ratio in np.ravel(each)}

    found, grown = (ratios("losses", "coefficients"), ratios("functions", "coefficient")), {round(np.pi, 12)}
    return form, "ridge" if found == ({1.0}, grown) else "loss" if found == (grown, {1.0}) else ""


def _data_of(loss) -> DataArrays:
    if not isinstance(loss, LabelGraphTerm):
        return DataArrays.of_tasks(loss.tasks)
    truth, weights = loss.truth, loss.tasks.sample_weights
    n, K = truth.shape
    observed = truth != GAP
    y = np.where(truth.T > 0, 1.0, -1.0)[observed.T]  # label after label, as the tasks of labels have it
    own = None if weights is None else np.tile(weights[:n], K)[observed.T.ravel()]
    return DataArrays(loss.tasks.X, y, observed.sum(axis=0), True, None if observed.all() else observed, own)


def _map(map: LinearMap) -> dict:
    return {
        "entries": [
            {
                "block": e.block,
                "coefficient": float(e.coefficient),
                "left": _matrix(e.left),
                "right": _matrix(e.right),
            }
            for e in map.entries
            if all(_has_entries(np.shape(factor)) for factor in (e.left, e.right))
        ],
        "shape": list(map.shape),
        "offset": None
        if map.offset is None
        else np.array(np.broadcast_to(map.offset, map.shape), dtype=float),
    }


def _matrix(factor):
    if factor is None:
        return None
    return sparse.csr_array(factor, dtype=float) if sparse.issparse(factor) else np.array(factor, dtype=float)


def _parameters_of_loss(loss) -> dict:
    if isinstance(loss, StructuredTerm):
        metrics = loss.atom.metric if isinstance(loss.atom.metric, tuple) else (loss.atom.metric,)
        return {"metrics": [_plain(metric) for metric in metrics]}
    if isinstance(loss, LabelGraphTerm):
        cliques = loss.cliques
        own = {"loss": _plain_loss(loss.atom.loss)} if hasattr(loss.atom, "loss") else {}
        return {"n_labels": cliques.n_labels, "members": [list(clique) for clique in cliques.members], **own}
    return _parameters(loss.atom)


def _plain_loss(loss):
    """Return what labellings cost, as JSON can hold it."""
    if isinstance(loss, Metric):
        return _plain(loss)
    if isinstance(loss, tuple) and isinstance(loss[0], tuple):
        return [[list(clique), [list(row) for row in table]] for clique, table in loss]
    return loss


def _plain(metric: Metric) -> dict:
    """A metric as plain data; one of one's own, which the checker does not know, is its name alone."""
    known = REGISTRY.get(metric.name) is type(metric)
    return metric.plain() if known else {"metric": f"{metric.name} (your own)"}


def _parameters(atom) -> dict:
    found: dict[str, Any] = {}
    for field in fields(atom):
        value = getattr(atom, field.name)
        if isinstance(value, Atom):  # the norm of a ball
            found[field.name] = {"word": value.name, "parameters": _parameters(value)}
        elif isinstance(value, SpectralMatrix):
            found[field.name] = 0.5 * (value.dense() + value.dense().T)
        elif hasattr(value, "trace") and not isinstance(value, np.ndarray):  # the range of a covariance
            found["trace"] = float(value.trace)
        elif value is None or isinstance(value, (bool, int, float, str, np.ndarray, np.generic)):
            found[field.name] = value
        elif sparse.issparse(value):
            found[field.name] = value.toarray()
        elif isinstance(value, (tuple, list)) and all(isinstance(one, (tuple, list)) for one in value):
            found[field.name] = [[int(k) for k in one] for one in value]
    return found


def _multipliers(loss, dual) -> dict:
    """The multipliers, and what shows what their conjugate is at most."""

    if isinstance(loss, StructuredTerm):
        dual = loss.dual_project(dual)
        laws = [law_of_flips(*task, dual, i) for i, task in enumerate(loss.tasks_apart)]
        return {"multipliers": np.array(dual.u), "witness": laws}
    if isinstance(loss, LabelGraphTerm):
        return {"multipliers": None, "witness": labellings_of(loss, dual)}
    if isinstance(loss, WorstTaskTerm):
        dual = loss.dual_project(dual)
        return {"multipliers": dual, "witness": {"shares": loss.shares(dual)}}
    return {"multipliers": np.array(dual, dtype=float), "witness": None}


@dataclass(frozen=True, eq=False)
class SolutionCertificate:
    """Proof about a solution, with all its parts: `save` writes it for others to check.

    `objective`, `dual_bound`, `violation` as on the solution; `reach` says for which weights the bound holds, "" for all; `rounding` by
    how much float64 may have misplaced objective and bound.
    """

    certificate: Certificate
    form: NormalForm | None  # None in a copy, which has no multipliers either
    blocks: Blocks
    tol: float
    status: str

    @property
    def objective(self) -> float:
        return self.certificate.objective

    @property
    def dual_bound(self) -> float:
        return self.certificate.dual_bound

    @property
    def violation(self) -> float:
        return self.certificate.violation

    @property
    def reach(self) -> str:
        return self.certificate.reach

    @property
    def rounding(self) -> float:
        return self.certificate.rounding

    def save(self, path, *, data: bool = False) -> Path:
        """Write the proof to one .npz file, which `mtldsl verify` and `verify_proof` check. Returns the path written.

        data : keep the data in the file too; otherwise only their SHA-256 hashes, and who checks must have the data

        ModelError where the model is not convex, or no bound was formed. A warning where `mtldsl verify` has no formula for a term.
        """
        data = as_flag(data, "certificate.save(path, data", ModelError)
        if self.form is not None and not self.form.is_convex:
            raise ModelError(
                "the model is not convex, and a saved proof is of a convex one", term=f"certificate.save({str(path)!r})",
                write_instead="print(certificate), which tells how far the point is stationary, and bounds where some are known",
            )  # fmt: skip
        proof = self.certificate.proof
        if self.form is None or proof is None or len(proof.loss_duals) < len(self.form.losses):
            raise ModelError(
                f"there is no bound to save: {self.certificate.note or 'none was formed'}",
                term=f"certificate.save({str(path)!r})",
            )
        for loss in self.form.losses:
            require_in_memory(
                loss.tasks, "a saved proof has the hashes of all rows", f"certificate.save({str(path)!r})", ModelError,
                write_instead="save(path) the proof of a model on tasks.subsample(rows)",
            )  # fmt: skip
        claimed = {
            "objective": self.objective, "dual_bound": self.dual_bound, "violation": self.violation, "tol": self.tol,
            "status": self.status, "scale": self.certificate.scale,
        }  # fmt: skip
        return save_proof(
            path,
            self.form,
            self.blocks,
            proof.loss_duals,
            proof.function_duals,
            claimed,
            proof.region,
            data=data,
        )

    def __repr__(self) -> str:
        if self.certificate.stationarity is not None and self.status != "optimal":
            residual = f"residual {self.certificate.stationarity.residual:.1e}"
            words = NO_GLOBAL if self.status == "stationary" else "not proven stationary"
            return f"<certificate: {self.dual_bound:.10g} <= optimum <= {self.objective:.10g}; {residual}, {words}>"
        return f"<certificate: {self.dual_bound:.10g} <= optimum <= {self.objective:.10g}>"

    def __reduce__(self):
        """Copies and pickles keep the numbers, not the data."""
        return _numbers_only, (self.objective, self.dual_bound, self.violation, self.tol, self.status)


def _numbers_only(objective, dual_bound, violation, tol, status) -> SolutionCertificate:
    note = "it was not kept in a copy of the solution; solve again"
    return SolutionCertificate(
        Certificate(objective, dual_bound, violation, 0.0, note), None, {}, tol, status
    )


def same_model(form: NormalForm, proof: dict) -> bool:
    """Tell whether a proof that was read is of this normal form: the same words, numbers, maps and data."""
    return difference(as_read(describe_form(form)), proof) is None


# --------------------------------------------------------------------------------------------------------------
# What shows the conjugate of a loss of labellings to be no larger than claimed: random labellings, found where a solver keeps none.


#: Most labels of which all labellings are listed.
ENUMERATION_LABELS = 14

#: Probability below which labellings are left to the true one.
RARE_SHARE = 1e-17


def law_of_flips(rows, c, metric, y, classes, dual, i: int):
    """[b, c, weights] of task i, the tables of a random labelling that its multipliers stand for; None where a closed form needs none."""
    if metric.exact_conjugate:
        return None
    law = dual.laws[i] if dual.laws else None
    if law is None and metric.tells_orders:
        law = metric.law_of_slope(dual.u[rows] / c, y)
    elif law is None:
        p = flip_probabilities(dual.u[rows] / c, y)
        law = None if p is None else metric.law(p[classes.positive], p[classes.negative])
    return None if law is None else [np.asarray(part) for part in law]


def labellings_of(loss: LabelGraphTerm, dual: LabelDual) -> dict | None:
    """{"labels", "weights", "starts"}; None where a graph has too many labels to find them."""
    dual = loss.dual_project(dual)
    random = dual.labellings
    if random is not None:
        labels, weights, starts = random.labels, np.maximum(random.weights, 0.0), np.asarray(random.starts)
        return {
            "labels": np.asarray(labels, np.uint8),
            "weights": dual.share * weights,
            "starts": starts.astype(np.int64),
        }
    K = loss.cliques.n_labels
    if ENUMERATION_LABELS < K:
        return None
    every = ((np.arange(2**K)[:, None] >> np.arange(K)[::-1]) & 1).astype(np.uint8)
    own, known = loss.cliques.indicators(loss.truth), {}
    means, scores = own, None if loss.atom.max_affine else dual.scores
    if scores is None:
        whole = dual.whole()
        whole = whole.toarray() if hasattr(whole, "toarray") else np.asarray(whole)
        means = project(loss.cliques, whole / loss.weights[:, None], loss.truth) + own
    labels, weights, counts = [], [], [0]
    for i, truth in enumerate(loss.truth):
        gaps = truth == GAP
        if gaps.tobytes() not in known:
            beside = np.where(gaps, np.uint8(GAP), every[~every[:, gaps].any(axis=1)])
            known[gaps.tobytes()] = beside, loss.cliques.indicators(beside)
        beside, vertices = known[gaps.tobytes()]
        if scores is not None:
            share = softmax(vertices @ scores[i])
            if dual.flips is not None:
                p = label_flip_probabilities(dual.flips, truth[None])[0]
                share = _with_flips(share, beside, truth, p, dual.flips[0])
        elif loss.atom.max_affine and loss.atom.whole is not None:
            costs = loss.atom.delta(beside, np.broadcast_to(truth, beside.shape))
            share = _dearest_mixture(vertices, means[i], costs)
        else:
            find = _mixture if loss.atom.max_affine else _of_largest_entropy
            share = find(vertices, means[i])
        kept = np.flatnonzero(share > RARE_SHARE)
        labels.append(beside[kept])
        weights.append(dual.share * share[kept])
        counts.append(len(kept))
    return {
        "labels": np.concatenate(labels),
        "weights": np.concatenate(weights),
        "starts": np.cumsum(counts).astype(np.int64),
    }


def _with_flips(share, every, truth, p, s) -> np.ndarray:
    """The law of labellings with flips of single labels of the truth mixed in."""
    law = (1.0 - s) * share
    for k, chance in enumerate(p):
        if truth[k] == GAP:
            continue
        flipped = truth.copy()
        flipped[k] = 1 - flipped[k]
        law[np.all(every == flipped, axis=1)] += s * chance
    law[np.all(every == truth, axis=1)] += s * max(1.0 - p.sum(), 0.0)
    return law


def _mixture(vertices, mean) -> np.ndarray:
    """Weights of labellings whose mean it is."""
    return nnls(np.vstack([vertices.T, np.ones(len(vertices))]), np.append(mean, 1.0))[0]


def _dearest_mixture(vertices, mean, costs) -> np.ndarray:
    """The same with the largest expected cost: of the labellings of the linear program's solution, weighted to more digits than it has."""
    equations, right = np.vstack([vertices.T, np.ones(len(vertices))]), np.append(mean, 1.0)
    found = linprog(-costs, A_eq=equations, b_eq=right, method="highs")
    if found.status != 0:
        return _mixture(vertices, mean)
    kept = np.flatnonzero(found.x > 0.0)
    weights, rest = nnls(equations[:, kept], right)
    if rest > 1e-10:
        return _mixture(vertices, mean)
    law = np.zeros(len(vertices))
    law[kept] = weights
    return law


def _of_largest_entropy(vertices, mean) -> np.ndarray:
    """The law of labellings of the largest entropy with this mean, near it."""

    def value(x):
        values = vertices @ x
        return logsumexp(values) - mean @ x, softmax(values) @ vertices - mean

    found = minimize(
        value,
        np.zeros(mean.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "gtol": 1e-12, "ftol": 1e-16},
    )
    return softmax(vertices @ found.x)
