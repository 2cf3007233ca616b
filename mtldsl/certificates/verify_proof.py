"""Check of a saved proof against what the user names: data, or a problem with its data and its model."""

from __future__ import annotations

from mtldsl.certificates.checker.data_match import check_against_arrays
from mtldsl.certificates.checker.proof_check import Verdict
from mtldsl.certificates.proof_writer import describe_form
from mtldsl.errors import DataError
from mtldsl.utils.validation import as_flag


def verify_proof(path, *named, exact: bool = False, tol: float | None = None, where: str = "") -> Verdict:
    """Check a saved proof against what is named: the problem, whose model and data it must be of, or `Tasks`, or a list of these.

    named : a `Problem`: the proof must be of its model, every number of it, and of its data; or `Tasks`: the proof must be of these
            data, and the model is the file's, which the verdict states; nothing where the proof holds its data, which are the file's too
    exact : in rational numbers, for small problems
    where : how the verdict calls the problem
    tol   : the relative gap up to which the claim is confirmed; None: 1e-4, or the tolerance of the file where that is smaller

    DataError where the file is not a proof, where it is not of the data that are named (the message says which array differs), or where
    `exact` is asked of a large problem. A proof of another model is not confirmed, and the verdict says in what it differs.

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3))
    >>> tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, 2)))
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + 3 * mtl.trace_norm(W))
    >>> solution = problem.solve()
    >>> path = solution.certificate.save(pathlib.Path(tempfile.mkdtemp()) / "proof.npz")
    >>> verdict = mtl.verify_proof(path, problem)
    >>> verdict.confirmed, verdict.low <= solution.objective <= verdict.high + 1e-12
    (True, True)
    """
    exact = as_flag(exact, "verify_proof(path, exact")
    models, data = [], []
    for one in [one for item in named for one in (item if isinstance(item, (list, tuple)) else [item])]:
        if callable(getattr(one, "form", None)):
            models.append(describe_form(one.form(), data))
        else:
            data.append(one)
    if len(models) > 1:
        raise DataError(
            "two problems are named, and a proof is of one",
            term=f"verify_proof({str(path)!r}, ...)",
            write_instead="name the problem that was solved",
        )
    return check_against_arrays(
        path, *data, model=models[0] if models else None, where=where, exact=exact, tol=tol
    )
