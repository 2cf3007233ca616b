"""Figures as printed of systems that are not here, their code or features being others' own: with the paper's table, and what is known of the data.

LSG21, MLF, MLLS, MLRF: the CGM paper's Table 4 takes them from Cai, Nie, Cai and Huang, "New graph structured sparsity model for multi-label
image annotations" (2013). Scene has the features used here; PASCAL07 has GIST features there, which are not those of the other tables.
The authors say that with the source code of LSG21 they did not come to its published figures either.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRINTED", "Printed", "printed"]


@dataclass(frozen=True)
class Printed:
    """One figure: of a paper ("CGM"), its table, the system, the data set, the measure."""

    paper: str
    table: int
    system: str
    data: str
    measure: str
    value: float


#: system -> (Scene, PASCAL07) of each measure, the CGM paper's Table 4
_TABLE_4 = {
    "macro-F1": {"LSG21": (0.675, 0.407), "MLF": (0.684, 0.332), "MLLS": (0.472, 0.322), "MLRF": (0.682, 0.326)},
    "micro-F1": {"LSG21": (0.682, 0.307), "MLF": (0.690, 0.221), "MLLS": (0.472, 0.215), "MLRF": (0.686, 0.214)},
    "precision": {"LSG21": (0.706, 0.309), "MLF": (0.687, 0.221), "MLLS": (0.473, 0.215), "MLRF": (0.705, 0.220)},
}  # fmt: skip

PRINTED = (
    Printed("CGM", 2, "LSG21", "star", "hamming", 0.059),
    *(
        Printed("CGM", 4, system, data, measure, value)
        for measure, systems in _TABLE_4.items()
        for system, values in systems.items()
        for data, value in zip(("scene", "PASCAL07"), values, strict=True)
    ),
)


def printed(paper: str, data: str) -> dict[str, dict[str, float]]:
    """{system: {measure: value}} of a paper's tables on one data set, to stand beside what is measured.

    >>> printed("CGM", "scene")["MLLS"]
    {'macro-F1': 0.472, 'micro-F1': 0.472, 'precision': 0.473}
    """
    found: dict[str, dict[str, float]] = {}
    for each in PRINTED:
        if (each.paper, each.data) == (paper, data):
            found.setdefault(each.system, {})[each.measure] = each.value
    return found
