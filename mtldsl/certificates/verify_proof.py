"""Check of a saved proof against what the user names: data, or a problem with its data and its model."""

from __future__ import annotations

from mtldsl.certificates.checker.choice_check import ChoiceVerdict
from mtldsl.certificates.checker.choice_file import FORMAT as CHOICE
from mtldsl.certificates.checker.choice_file import read_choice
from mtldsl.certificates.checker.data_match import check_against_arrays, check_choice_against_arrays
from mtldsl.certificates.checker.proof_check import Verdict
from mtldsl.certificates.checker.proof_file import format_of
from mtldsl.certificates.proof_writer import describe_family, describe_form
from mtldsl.errors import DataError
from mtldsl.utils.validation import as_flag


def verify_proof(
    path, *named, exact: bool = False, tol: float | None = None, where: str = ""
) -> Verdict | ChoiceVerdict:
    """Check a saved proof, or a saved choice of a parameter, against what is named: the problem, whose model and data it must be of, or `Tasks`, or a list of these.

    named : a `Problem`: the proof must be of its model, every number of it, and of its data; or `Tasks`: the proof must be of these
            data, and the model is the file's, which the verdict states; nothing where the proof holds its data, which are the file's too
    exact : in rational numbers, for small problems
    where : how the verdict calls the problem
    tol   : the relative gap up to which the claim is confirmed; None: 1e-4, or the tolerance of the file where that is smaller

    The verdict on a choice, `cross_validate(..., regret=...).proof.save(path)`, has the `regret` by which no value is better than the chosen one.

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
    is_choice = format_of(path) == CHOICE
    models, data = [], []
    for one in [one for item in named for one in (item if isinstance(item, (list, tuple)) else [item])]:
        if callable(getattr(one, "form", None)):
            models.append(_described(one, path, data) if is_choice else describe_form(one.form(), data))
        else:
            data.append(one)
    if len(models) > 1:
        raise DataError(
            "two problems are named, and a proof is of one",
            term=f"verify_proof({str(path)!r}, ...)",
            write_instead="name the problem that was solved",
        )
    if is_choice:
        family = models[0] if models else None
        return check_choice_against_arrays(path, *data, family=family, exact=exact, tol=tol)
    return check_against_arrays(
        path, *data, model=models[0] if models else None, where=where, exact=exact, tol=tol
    )


def _described(problem, path, data: list) -> tuple[dict, str]:
    """(the model at 1, what grows) for the parameter that a choice is of; DataError where the problem has none of this name."""
    name = read_choice(path)["parameter"]
    own = next((one for one in problem.parameters if one.name == name), None)
    if own is None:
        raise DataError(
            f"the choice is of {name}, and the problem has no such parameter", term=f"verify({str(path)!r})", write_instead="name the problem that was solved"
        )  # fmt: skip
    return describe_family(problem, own, data)
