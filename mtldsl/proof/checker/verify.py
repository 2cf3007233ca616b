"""A saved proof and the data that it is about, matched and checked."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.proof.checker.check import Check
from mtldsl.proof.checker.data_arrays import DataArrays
from mtldsl.proof.checker.proof_file import read_proof
from mtldsl.proof.checker.verdict import Verdict
from mtldsl.system.threads import one_blas_thread

__all__ = ["verify_proof"]

#: products of numbers that the exact check makes at most
_MOST_EXACT = 20_000_000


def verify_proof(path, *data, exact: bool = False) -> Verdict:
    """Check a saved proof against the data: `Tasks`, `DataArrays` or a list of these; none where the proof holds its data.

    exact: in rational numbers, for small problems

    DataError where the file is not a proof, the data are not those that the proof is about (the message names the array), or `exact`
    is asked of a large problem.

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import mtldsl as mtl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3))
    >>> tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, 2)))
    >>> W = mtl.Weights(tasks)
    >>> solution = mtl.minimize(mtl.squared_loss(W, tasks) + 3 * mtl.trace_norm(W)).solve()
    >>> path = solution.certificate.save(pathlib.Path(tempfile.mkdtemp()) / "proof.npz")
    >>> verdict = mtl.verify_proof(path, tasks)
    >>> verdict.confirmed, verdict.low <= solution.objective <= verdict.high + 1e-12
    (True, True)
    """
    proof, stored = read_proof(path)
    given = [DataArrays.of_tasks(one) if hasattr(one, "is_shared") else one for one in _flat(data)]
    matched = _matched(proof, stored, given, path)
    if exact:
        work = sum(
            one.inputs.shape[0] * one.inputs.shape[1] * max(1, proof["blocks"][0]["shape"][1])
            for one in matched
        )
        if work > _MOST_EXACT:
            raise DataError(
                f"verify({str(path)!r}, exact=True): {work:,} products of rational numbers are too many (up to {_MOST_EXACT:,}); "
                "leave out exact"
            )
    try:
        # an overflow is an infinite end, which is said
        with np.errstate(all="ignore"), one_blas_thread():
            return Check(proof, matched, exact).verdict()
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        ArithmeticError,
        np.linalg.LinAlgError,
    ) as error:
        raise DataError(
            f"verify({str(path)!r}): parts of the proof do not fit each other ({error})"
        ) from error


def _flat(data) -> list:
    return [one for item in data for one in (item if isinstance(item, (list, tuple)) else [item])]


def _matched(proof, stored, given, path) -> list[DataArrays]:
    """The data of every entry of proof["data"]; DataError that names the array which differs."""
    pool = [(one, one.hashes()) for one in [*given, *stored]]
    found = []
    for k, described in enumerate(proof["data"]):
        wanted = described["hashes"]
        fitting = [one for one, hashes in pool if hashes == wanted and one.shared == described["shared"]]
        if not fitting:
            if not pool:
                raise DataError(
                    f"verify({str(path)!r}): the proof does not hold its data; give the tasks, or a file with them "
                    f"({', '.join(wanted)})"
                )
            nearest = max(
                (hashes for _, hashes in pool), key=lambda h: sum(h.get(n) == v for n, v in wanted.items())
            )
            wrong = sorted(n for n in wanted.keys() | nearest.keys() if wanted.get(n) != nearest.get(n)) or [
                "the layout"
            ]
            of = f" of data set {k + 1} of {len(proof['data'])}" if len(proof["data"]) > 1 else ""
            raise DataError(
                f"verify({str(path)!r}): {', '.join(wrong)}{of} differs from what the proof is about (SHA-256)"
            )
        found.append(fitting[0])
    return found
