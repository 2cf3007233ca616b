"""What the MT-MKL paper claims in section 4, judged by the rows: each method at the C chosen for it, on the same draws."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.claim import UNTESTED, Claim, Pair, judged, verdict
from benchmarks.papers.mt_mkl_paper import PAPER_AUC

__all__ = ["claims", "in_general"]

_COMMAND = "python -m benchmarks.papers.mt_mkl"
_OF_ALL = (
    "Individual performs worst by a large margin", "Non-sparse MT-MKL (p = 2, 3) is the most accurate of all methods",
    "The larger p, the better: p = 3 above p = 2 above p = 1",
)  # fmt: skip
_P = ("MT-MKL p=1", "MT-MKL p=2", "MT-MKL p=3")


def claims(studies: dict) -> list[Claim]:
    """studies : "corrected", "printed" -> `Runs`, as far as they were run"""
    runs, printed = studies.get("corrected"), studies.get("printed")
    figure = _figure(runs, "true", _COMMAND)
    return judged([*_as_printed(printed), *figure, *_levels(runs), *_other_trees(runs)])


def _as_printed(runs) -> list[Claim]:
    says = "The data as printed (standard deviation 20, depth 4) give AUCs of .68 to .83"
    command = f"{_COMMAND} --study printed --seeds 5"
    if runs is None:
        return [Claim("Section 4", says, verdict(None), "", command)]
    found = [max(float(unit.chosen["auc"]) for unit in runs.units(name, "true")) for name in PAPER_AUC if runs.units(name, "true")]  # fmt: skip
    bayes = runs.part(runs.seeds[0]).bayes_auc
    seen = f"No classifier can have more than {bayes:.3f} on these data (Bayes); the highest seen is {max(found):.3f}, over {runs.count} draws."
    return [Claim("Section 4", says, verdict(bayes > max(PAPER_AUC.values())), seen, command)]


def _differences(runs, one, other, hierarchy):
    return runs.differences(one, other, hierarchy) if runs is not None else np.array([])


def _compared(runs, pairs, hierarchy) -> tuple[Pair, ...]:
    tested = runs.tested_share if runs is not None else 0.0
    found = [
        Pair(f"{one} - {other}", _differences(runs, one, other, hierarchy), tested) for one, other in pairs
    ]
    return tuple(pair for pair in found if pair.differences.size > 1)


def in_general(runs, hierarchy: str, command: str) -> list[Claim]:
    """Those of Figure 1(b), which can be asked of any data."""
    return judged(_figure(runs, hierarchy, command))


def _figure(runs, hierarchy: str, command: str) -> list[Claim]:
    found = []
    for says, pairs in (
        ("Individual performs worst by a large margin", [(name, "Individual") for name in (*_P, "Vanilla", "Union")]),
        ("Union already considerably improves on Individual", [("Union", "Individual")]),
        ("Non-sparse MT-MKL (p = 2, 3) improves on Vanilla", [(name, "Vanilla") for name in _P[1:]]),
        ("Non-sparse MT-MKL (p = 2, 3) is the most accurate of all methods", [
            (name, other) for name in _P[1:] for other in ("MT-MKL p=1", "Vanilla", "Union", "Individual")
        ]),
        ("The larger p, the better: p = 3 above p = 2 above p = 1", [(_P[2], _P[1]), (_P[1], _P[0])]),
        ("Vanilla is below Union", [("Union", "Vanilla")]),
    ):  # fmt: skip
        found.append(
            Claim(
                "Figure 1(b)",
                says,
                UNTESTED,
                "",
                command,
                False,
                _compared(runs, pairs, hierarchy),
                says in _OF_ALL,
            )
        )
    return found


def _levels(runs) -> list[Claim]:
    says = "The AUCs are those of Figure 1(b)"
    if runs is None:
        return [Claim("Figure 1(b)", says, verdict(None), "", _COMMAND)]
    means = {
        name: np.mean([float(unit.chosen["auc"]) for unit in runs.units(name, "true")])
        for name in PAPER_AUC
        if runs.units(name, "true")
    }
    off = {name: mean - PAPER_AUC[name] for name, mean in means.items()}
    bayes = runs.part(runs.seeds[0]).bayes_auc
    seen = (
        f"Variance 20 and depth 5 (no classifier has more than {bayes:.3f}), {runs.count} draws, here minus the paper: "
        + "; ".join(f"{name} {mean:.3f} ({off[name]:+.3f})" for name, mean in means.items())
        + ". Not judged: the paper's data are not published, and those that it describes cannot give its figures."
    )
    return [Claim("Figure 1(b)", says, UNTESTED, seen, _COMMAND)]


def _other_trees(runs) -> list[Claim]:
    """Two things that the paper does not try: other scales of the kernels, and a tree that is not given."""
    found = []
    for hierarchy, says in (
        ("unit trace", "With kernels of trace 1, p = 2 and 3 improve on Vanilla"),
        ("inferred", "With a tree inferred from the training rows, p = 2 and 3 improve on Vanilla"),
    ):
        pairs = _compared(runs, [(name, "Vanilla") for name in _P[1:]], hierarchy)
        found.append(Claim("Section 4", says, UNTESTED, "", _COMMAND, True, pairs))
    return found
