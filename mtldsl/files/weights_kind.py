"""What a kind of weights is in the [weights] table of a problem file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mtldsl.files.rules import Rules
from mtldsl.language.expressions.weights import Weights
from mtldsl.tasks import Tasks

__all__ = ["WeightsKind"]


@dataclass(frozen=True)
class WeightsKind:
    """A kind of weights, written U = "NodeWeights", or V = {kind = "EdgeWeights", edges = "all"}.

    rules      : option -> what it must be
    make       : the weights for the training tasks, of a name, with these options
    implied_by : the option that tells the kind where it is not written
    lacks      : option of another kind -> why this one has none
    """

    name: str
    rules: Rules
    make: Callable[[Tasks, str, dict], Weights]
    implied_by: str | None = None
    lacks: dict[str, str] = field(default_factory=dict)
