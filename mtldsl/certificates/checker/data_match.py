"""Match of a saved proof with the data that are given, and the check of both."""

from __future__ import annotations

import numpy as np

from mtldsl.certificates.checker.choice_check import ChoiceVerdict, check_choice
from mtldsl.certificates.checker.choice_file import read_choice
from mtldsl.certificates.checker.limits import SETTINGS
from mtldsl.certificates.checker.proof_check import Check, Verdict
from mtldsl.certificates.checker.proof_file import MISFITS, DataArrays, as_read, fitting, read_proof
from mtldsl.certificates.checker.proof_schema import difference
from mtldsl.errors import DataError
from mtldsl.utils.parallel import one_blas_thread


def check_against_arrays(
    path,
    *data,
    model: dict | None = None,
    where: str = "",
    exact: bool = False,
    tol: float | None = None,
) -> Verdict:
    """Check a saved proof, as `verify_proof` says, against the data: `Tasks` or `DataArrays`.

    model : the normal form that the proof must be of, as plain data; None: that of the file, which the verdict states
    """
    typed = f"verify({str(path)!r})"
    _require_gap(tol, typed)
    proof, stored = read_proof(path)
    given = [_as_data(one, typed) for one in data]
    matched = match_data(proof, given, stored, typed, where)
    if exact:
        work = sum(
            matched[loss["data"]].inputs.shape[0] * loss["map"]["shape"][0] * loss["map"]["shape"][1]
            for loss in proof["losses"]
        )
        if work > SETTINGS.exact_flops:
            raise DataError(
                f"{work:,} products of rational numbers are too many (up to {SETTINGS.exact_flops:,})",
                term=f"verify({str(path)!r}, exact=True)",
                write_instead="leave out exact",
            )
    try:
        # an overflow is an infinite end, which is said
        with np.errstate(all="ignore"), one_blas_thread():
            found = Check(proof, matched, exact, tol).verdict()
    except MISFITS as error:
        beyond = _beyond_float64(proof, error)
        raise DataError(
            beyond or f"parts of the proof do not fit each other ({error})",
            term=typed,
            write_instead="solve again, and save that proof" if beyond else "",
        ) from error
    found.data_are_named = bool(given)
    if model is not None:
        _hold_to_model(found, difference(as_read(model), proof), f"in {where or 'the problem'}")
    return found


def _hold_to_model(found: Verdict | ChoiceVerdict, other: str | None, where: str) -> None:
    """Note that the model was compared, and in what the proof is of another one."""
    found.model_is_compared, found.model_is_named = True, other is None
    if other is not None:
        found.confirmed = False
        found.notes.append(f"the proof is not of the model {where}, as it stands there now: {other}")


def check_choice_against_arrays(
    path, *data, family: tuple[dict, str] | None = None, exact: bool = False, tol: float | None = None
) -> ChoiceVerdict:
    """Check a saved choice of a parameter, as `verify_proof` says, against the data: `Tasks` or `DataArrays`.

    family : the model at 1 and what grows with its parameter, which the choice must be of; None: those of the file
    """
    typed = f"verify({str(path)!r})"
    _require_gap(tol, typed)
    if exact:
        raise DataError(
            "a choice is checked in float64 intervals", term=f"verify({str(path)!r}, exact=True)", write_instead="leave out exact"
        )  # fmt: skip
    choice = read_choice(path)
    given = [_as_data(one, typed) for one in data]
    (matched,) = match_data(choice["form"], given, [], typed, "")
    found = check_described_choice(choice, matched, typed, tol)
    found.data_are_named = bool(given)
    if family is not None:
        form, grows = family
        other = difference(as_read(form), choice["form"])
        if other is None and grows != choice["grows"]:
            of_one = (
                f"multiplies its {grows}"
                if grows
                else "multiplies neither its loss alone nor its ridge alone"
            )
            other = f"{choice['parameter']} {of_one}"
        _hold_to_model(found, other, "of the problem")
    return found


def check_described_choice(
    choice: dict, data: DataArrays, typed: str, tol: float | None = None
) -> ChoiceVerdict:
    """Check a choice as `read_choice` gives it, of its data."""
    with fitting(typed, "do not fit each other"), np.errstate(all="ignore"), one_blas_thread():
        found = check_choice(choice, data, SETTINGS.default_tol if tol is None else tol, typed)
    return found


def _require_gap(tol: float | None, typed: str) -> None:
    if tol is not None and not (isinstance(tol, (int, float)) and not isinstance(tol, bool) and 0 < tol < 1):
        raise DataError(
            f"tol={tol!r} is not a relative gap", term=typed, write_instead="write a number above 0 and below 1, such as tol=1e-6"
        )  # fmt: skip


def _beyond_float64(proof: dict, error: Exception) -> str:
    """Return why the numbers of a proof cannot be reckoned with, in words; "" where something else is wrong with it."""
    largest = max((float(np.abs(x).max(initial=0.0)) for x in proof["point"].values()), default=0.0)
    with np.errstate(over="ignore"):
        squares = np.square(largest)
    if np.isfinite(squares) and not isinstance(error, OverflowError):
        return ""
    return f"the objective at its point is beyond float64, which ends at 1.8e308; entries there are as large as {largest:.3g}"


def _as_data(named, typed: str) -> DataArrays:
    if hasattr(named, "is_shared"):
        return DataArrays.of_tasks(named)
    if not isinstance(named, DataArrays):
        raise DataError(
            f"{type(named).__name__} is neither a problem nor Tasks",
            term=typed,
            write_instead="name what was solved, verify_proof(path, problem), or its data, verify_proof(path, tasks)",
        )
    return named


def match_data(proof, given, stored, typed: str, where: str) -> list[DataArrays]:
    """The data of every entry of proof["data"]: of those given where any are, else of the file's; DataError that names what differs."""
    pool = [(one, one.hashes()) for one in given or stored]
    found = []
    for k, described in enumerate(proof["data"]):
        wanted = described["hashes"]
        suited = [one for one, hashes in pool if hashes == wanted and one.shared == described["shared"]]
        if not suited:
            if not pool:
                raise DataError(
                    f"the proof does not hold its data ({', '.join(wanted)})",
                    term=typed,
                    write_instead="give the tasks, the problem file, or a file with the data",
                )
            nearest = max(
                (hashes for _, hashes in pool), key=lambda h: sum(h.get(n) == v for n, v in wanted.items())
            )
            wrong = sorted(n for n in wanted.keys() | nearest.keys() if wanted.get(n) != nearest.get(n)) or [
                "the layout"
            ]
            of = f" of data set {k + 1} of {len(proof['data'])}" if len(proof["data"]) > 1 else ""
            place = f" in {where}" if where else ""
            raise DataError(
                f"{', '.join(wrong)}{of}{place} differs from what the proof is about (SHA-256)", term=typed
            )
        found.append(suited[0])
    wanted = [one["hashes"] for one in proof["data"]]
    for k, (_, hashes) in enumerate(pool):
        if hashes not in wanted:
            raise DataError(
                f"the proof is not about data set {k + 1} of the {len(pool)} that are given", term=typed
            )
    return found
