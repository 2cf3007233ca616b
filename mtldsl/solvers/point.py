"""What a solver shows and returns: weights with their multipliers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mtldsl.compile.majorization import MajorizationStep
from mtldsl.compile.normal_form import Blocks
from mtldsl.compile.terms.structure import Structures

__all__ = ["Point", "effort_of"]


@dataclass
class Point:
    """A primal point and, where the solver has them, its multipliers.

    Signs: at an optimum, loss_duals[t] is a subgradient of loss t (coefficients included) at its predictions, flat (N,);
    function_duals[k] is a subgradient of coefficient * atom of `form.functions[k]` at the image of its map; and
    sum_t A_t^T u_t + sum_k B_k^T v_k = 0 on every block. None: the certificate makes its own from the primal point.
    `state` is whatever the same solver can be warm-started from; nobody else reads it. `notes` are the solver's own counts
    (oracle calls, planes, ...), written beside the certificate into the history. `structures` are learned matrices that belong
    to the point; None: the best ones for its weights. `effort` is what the solver has done so far, in rounds
    of the first one's price, where later ones are dearer (None: as `iteration` says). `majorizations` are steps of a majorisation-minimisation, for the reference to
    repeat.
    """

    blocks: Blocks
    loss_duals: list[Any] | None = None  # of arrays; of a structured loss, mixtures or random labellings
    function_duals: list[Any] | None = None  # of arrays, or None where the certificate makes its own
    iteration: int = 0
    state: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    structures: Structures | None = None
    majorizations: tuple[MajorizationStep, ...] = ()
    effort: float | None = None
    stopped: str = ""  # the status, where a rule of the solver's own ended it before tol


def effort_of(point: Any) -> float:
    """What a solver had done when it showed the point, in rounds of the first one's price."""
    effort = getattr(point, "effort", None)  # which the reference's points, a class of its own, do not have
    return point.iteration if effort is None else effort
