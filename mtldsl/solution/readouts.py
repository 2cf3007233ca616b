"""What solutions tell beside their weights, one file each. A new kind adds its file, its line here, and its field in `Solution`."""

from __future__ import annotations

from mtldsl.solution.calibration import CALIBRATION
from mtldsl.solution.kernel_weights import LearnedWeights
from mtldsl.solution.label_graph import LABEL_GRAPH
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.solution.readout import Parts, Readout, Run

__all__ = ["READOUTS"]

#: What `solution.learned` holds: each kind finds its own in a solve.
_LEARNED = (LearnedWeights, LearnedMatrix)


def _learned(run: Run) -> dict[str, object]:
    return {"learned": {name: one for kind in _LEARNED for name, one in kind.read(run).items()}}


READOUTS: tuple[Readout, ...] = (
    Readout(_learned, (Parts("learned", "learned:", _LEARNED),)),
    LABEL_GRAPH,
    CALIBRATION,
)
