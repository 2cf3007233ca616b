"""What a reduction is: a form that is easier, and the way back to the one that was typed."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Protocol, TypeVar

from mtldsl.compile.normal_form import Blocks, NormalForm

__all__ = ["Point", "Promise", "Reduction"]


class Promise(Enum):
    """What a point of the easier form says of the form as given, where `invert` takes it."""

    EXACT = "the same objective and violation; an optimum becomes an optimum, and multipliers become multipliers that prove it"
    RESTRICTION = "the same objective but for a constant, and the same violation; points that it cannot reach may be lower"
    MAJORIZATION = "an objective that is no higher, and the same violation"


class PointOfForm(Protocol):
    """What a reduction reads and exchanges in a point, a dataclass, that a solver or the reference returns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    blocks: Blocks
    loss_duals: list | None
    function_duals: list | None


Point = TypeVar("Point", bound=PointOfForm)


class Reduction(Protocol):
    """Objects with these members. What a reduction needs beside the form - a point, matrices, rows - it is made with."""

    promise: ClassVar[Promise]

    def accepts(self, form: NormalForm) -> str | None:
        """None where it makes this form easier, else one sentence that says why not."""
        ...

    def apply(self, form: NormalForm) -> tuple[NormalForm, Any]:
        """(the easier form, the recipe for the way back). Nothing is promised where the form is not accepted."""
        ...

    def invert(self, point: Point, recipe) -> Point:
        """A point of the easier form as one of the form; the point itself is not changed. Multipliers that have no counterpart are
        None, and the certificate makes its own."""
        ...
