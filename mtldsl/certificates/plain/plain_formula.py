"""The table of plain formulas: one a word, entered by a decorator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PlainSettings:
    """Limits of plain formulas.

    labelling_entries   : most entries of all tables of labellings together: about a tenth of a second
    table_entries       : tables of a metric that are looked at together: 16 MB
    own_tables          : most tables of a task of a user's metric, as where it is checked while it is used
    kernel_tasks        : most tasks of a kernel that is written out: 30 MB, and a second for its factor
    pivot_share         : pivots that tell that a kernel has full rank, of the largest
    bound_steps         : after which a minimum is known to lie between two bounds, however far these are apart
    rounding_directions : random signs of rounding errors that a function of many numbers is tried with
    """

    labelling_entries: int = 50_000_000
    table_entries: int = 1 << 21
    own_tables: int = 4_000_000
    kernel_tasks: int = 2_000
    pivot_share: float = 1e-5
    bound_steps: int = 200
    rounding_directions: int = 4


SETTINGS = PlainSettings()


@dataclass(frozen=True)
class Definition:
    """Meaning of a word, as a function of arrays; `atom` holds what was typed beside the argument, such as its weights.

    kind  : of a loss "samples": f(z, y, atom), entry by entry, which is weighted and added up; "task": f(z, y, s, atom) of one task;
            "classes": f(scores (n, K), true class (n,), atom), one number a row; "labellings": see `plain_labellings`
            of a penalty "matrix": f(W, atom); "spectrum": f(s, atom) of singular values s (rows of W of them), to be added up;
            "kept": f(W, matrices, atom) with what it learns beside; "between": f(W, atom) -> two bounds of it
            of a set "set": f(W, atom), how far W is outside; of a metric "tables": f(b, c, positives, negatives, atom) -> Delta, or
            "order": f(z of positives, z of negatives, atom) -> the whole hinge
    of_sum  : of "samples" a function h(sum, atom) of every task's sum, such as a root
    hinge   : of "tables" where its structured hinge is known in closed form: as of "order"
    concave : of "tables": Delta is concave in b
    most    : of "tables": no Delta is larger
    size    : where a formula's summands may nearly cancel: the same with their absolute values
    within  : by so much of its value the word itself may be off, where it is an iteration
    """

    function: Callable[..., Any]
    kind: str
    of_sum: Callable[..., Any] | None = None
    hinge: Callable[..., Any] | None = None
    concave: bool = False
    most: float = float("inf")
    size: Callable[..., Any] | None = None
    within: float = 0.0


#: word -> its plain formula
DEFINITIONS: dict[str, Definition] = {}


def defined(word: str, kind: str, **more: Any) -> Callable[[Callable], Callable]:
    """Enter a function as the plain formula of a word."""

    def enter(function: Callable) -> Callable:
        DEFINITIONS[word] = Definition(function, kind, **more)
        return function

    return enter
