"""Writing a proof as plain data: the normal form, the point, the multipliers of the bound with their witnesses, and the claim."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.function import REGISTRY, Atom
from mtldsl.atoms.metrics import Metric
from mtldsl.compile.normal_form import Blocks, LinearMap, NormalForm
from mtldsl.compile.terms.label_graph import LabelGraphTerm
from mtldsl.compile.terms.structured import StructuredTerm
from mtldsl.compile.terms.worst_task import WorstTaskTerm
from mtldsl.errors import ModelError
from mtldsl.inference import GAP
from mtldsl.proof.certificate import Certificate
from mtldsl.proof.checker.check import words_without_formula
from mtldsl.proof.checker.compared import difference
from mtldsl.proof.checker.data_arrays import DataArrays
from mtldsl.proof.checker.proof_file import as_read, write_proof
from mtldsl.proof.stationarity import NO_GLOBAL

__all__ = ["SolutionCertificate", "describe_form", "same_model", "save_proof"]


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
    for one, dual in zip(described["functions"], function_duals, strict=True):
        one["multipliers"] = None if dual is None else np.array(dual, dtype=float)
    region = {
        name: np.array(np.broadcast_to(B, form.shapes[name]), dtype=float) for name, B in region.items()
    }
    point = {name: np.array(array, dtype=float) for name, array in blocks.items()}
    lacking = words_without_formula(described, sets)
    if lacking:
        warnings.warn(
            f"certificate.save({str(path)!r}): `mtldsl verify` has no formula for {', '.join(lacking)}, and can confirm nothing of this proof",
            stacklevel=3,
        )
    return write_proof(
        path, {**described, "point": point, "claimed": claimed, "region": region}, sets if data else None
    )


def describe_form(form: NormalForm, sets: list[DataArrays] | None = None) -> dict:
    """The normal form as plain data; `sets` is filled with the data that its losses are of, each once."""
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
        for f in form.functions
    ]  # fmt: skip
    return {
        "model": form.typed,
        "constant": float(form.constant),
        "blocks": [
            {"name": b.name, "shape": list(b.shape), "intercept_of": b.intercept_of} for b in form.blocks
        ],
        "data": [{"hashes": own, "shared": one.shared} for own, one in zip(hashes, sets, strict=True)],
        "losses": losses,
        "functions": functions,
    }


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
    """What labellings cost, as JSON can hold it."""
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
            continue
        if isinstance(value, SpectralMatrix):
            value = 0.5 * (value.dense() + value.dense().T)
        elif hasattr(value, "trace") and not isinstance(value, np.ndarray):  # the range of a covariance
            field_name, value = "trace", value.trace
            found[field_name] = float(value)
            continue
        if value is None or isinstance(value, (bool, int, float, str, np.ndarray, np.generic)):
            found[field.name] = value
        elif sparse.issparse(value):
            found[field.name] = value.toarray()
        elif isinstance(value, (tuple, list)) and all(isinstance(one, (tuple, list)) for one in value):
            found[field.name] = [[int(k) for k in one] for one in value]
    return found


def _multipliers(loss, dual) -> dict:
    """The multipliers, and what shows what their conjugate is at most."""
    from mtldsl.proof.witnesses import labellings_of, law_of_flips  # slow to import

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
    """What was proven about a solution, with all that a proof is made of: `save` writes it for others to check.

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
        if self.form is not None and not self.form.is_convex:
            raise ModelError(
                "the model is not convex, and a saved proof is of a convex one", term=f"certificate.save({str(path)!r})",
                write_instead="print(certificate), which tells how far the point is stationary, and bounds where some are known",
            )  # fmt: skip
        proof = self.certificate.proof
        if self.form is None or proof is None or not proof.loss_duals:
            raise ModelError(
                f"there is no bound to save: {self.certificate.note or 'none was formed'}",
                term=f"certificate.save({str(path)!r})",
            )
        claimed = {
            "objective": self.objective, "dual_bound": self.dual_bound, "violation": self.violation, "tol": self.tol,
            "status": self.status, "scale": float(self.certificate.scale),
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
    """Whether a proof that was read is of this normal form: the same words, numbers, maps and data."""
    return difference(as_read(describe_form(form)), proof) is None
