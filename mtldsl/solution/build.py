"""Construction of a `Solution` from the point, the certificate and the facts of a solve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.certificates.proof_writer import SolutionCertificate
from mtldsl.certificates.stationarity import NO_GLOBAL
from mtldsl.language.objective import Term
from mtldsl.normal_form.statement import Statement, formula_of
from mtldsl.solution.fields import SolvedModel
from mtldsl.solution.learned import LearnedMatrix, LearnedWeights, calibration_fields
from mtldsl.solution.learned_label_graph import label_graph_fields
from mtldsl.solution.solution import Solution
from mtldsl.utils.caching import Lazy


def solution_of(run: SolvedModel, tol: float) -> Solution:
    """The point with its certificate, all that is told of it, and what the data were like."""
    statement, outcome = run.statement, run.outcome
    certificate, tasks = outcome.certificate, statement.data
    scaling, filled = tasks.scaling, tasks.imputation
    values = {p.name: p.value for p in statement.parameters}
    # of its own, so that no solution holds the problem that holds it
    objective, constraints = statement.objective, list(statement.constraints)
    return Solution(
        blocks=run.blocks,
        coef=run.coef,
        intercept=run.intercept,
        objective=certificate.objective,
        dual_bound=certificate.dual_bound,
        relative_gap=certificate.relative_gap,
        violation=certificate.violation,
        status=outcome.status,
        solver=outcome.solver,
        reason=outcome.reason,
        seconds=outcome.seconds,
        iterations=outcome.iterations,
        tol=tol,
        note=NO_GLOBAL if outcome.status == "stationary" else certificate.remark(tol),
        model=str(statement),
        loss=facts_of_loss(statement),
        parameters=values,
        task_names=tuple(tasks.task_names),
        feature_names=tuple(tasks.feature_names),
        scaling=None if scaling is None else {"mean": scaling.mean, "scale": scaling.scale},
        imputation=None if filled is None else {"strategy": filled.strategy, "values": filled.values},
        description=replace(tasks.description, signs=tasks.has_signs),
        kernel_map=tasks.kernel_map,
        history=outcome.history,
        stationarity=certificate.stationarity,
        multipliers=cast(Any, Lazy(lambda: _multipliers(run))),
        majorizations=outcome.last_point.majorizations if outcome.last_point else (),
        state=outcome.last_point,
        formula=cast(Any, Lazy(lambda: formula_of(Statement(objective, constraints), values))),
        trained_on=tasks,
        proof=SolutionCertificate(certificate, run.form, run.blocks, tol, outcome.status),
        starts=outcome.starts,
        unattained=outcome.unattained,
        interrupted=outcome.interrupted,
        learned={**LearnedWeights.read(run), **LearnedMatrix.read(run)},
        **label_graph_fields(run),
        **calibration_fields(run),
    )


def facts_of_loss(statement: Statement) -> dict[str, Any]:
    """`Solution.loss`: word, parameters and labels of the loss that predicts; of several, each for tasks of its own, those of the first, and `kinds`."""
    facts = _facts_of(statement.first_loss)
    if statement.shares is None:
        return facts
    kinds = [
        {**_facts_of(term), "columns": columns.tolist()}
        for term, columns in zip(statement.shares.terms, statement.shares.columns, strict=True)
    ]
    labels = {kind["labels"] for kind in kinds}
    return {**facts, "labels": labels.pop() if len(labels) == 1 else "mixed", "kinds": kinds}


def _facts_of(term: Term) -> dict[str, Any]:
    atom = term.atom
    assert isinstance(atom, Loss)
    return {
        "word": atom.name,
        "parameters": atom.arguments(),
        "labels": "sign" if term.source is not None or atom.labels == "classes" else atom.labels,
    }


def _multipliers(run: SolvedModel) -> dict[str, np.ndarray]:
    """Those that came with the point, by term as typed; for a loss without, its gradient."""
    losses, functions = run.outcome.duals
    found = {}
    for t, loss in enumerate(run.form.losses):
        shown = loss.shown_at(run.blocks, None if losses is None else losses[t])
        if shown is not None:
            found[loss.typed] = shown
    for k, f in enumerate(run.form.functions):
        if functions is not None and functions[k] is not None:
            found[f.typed] = np.asarray(functions[k])
    return found
