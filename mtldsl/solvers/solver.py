"""Protocol of a solver: it takes a normal form, and reports primal-dual points until it is told to stop."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.terms.structure_term import MajorizationStep, Structures
from mtldsl.solvers.route_table import ModelFacts

# --------------------------------------------------------------------------------------------------------------
# What a solver shows and returns: weights with their multipliers.


@dataclass
class Point:
    """A primal point and, where the solver has them, its multipliers.

    Signs: at an optimum, loss_duals[t] is a subgradient of loss t (coefficients included) at its predictions, flat (N,);
    function_duals[k] is a subgradient of coefficient * atom of `form.functions[k]` at the image of its map; and
    sum_t A_t^T u_t + sum_k B_k^T v_k = 0 on every block. None: the certificate makes its own from the primal point.
    `state` is whatever the same solver can be warm-started from; nobody else reads it. `notes` are the solver's own counts
    (oracle calls, planes, ...), written beside the certificate into the history. `structures` are learned matrices that belong
    to the point; None: the best ones for its weights. `work` is what the run has done so far, in flops, where iterations differ
    (None: so many times `Solver.flops`). `majorizations` are steps of a majorisation-minimisation, for the reference to repeat.
    """

    blocks: Blocks
    loss_duals: list[Any] | None = None  # of arrays; of a structured loss, mixtures or random labellings
    function_duals: list[Any] | None = None  # of arrays, or None where the certificate makes its own
    iteration: int = 0
    state: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    structures: Structures | None = None
    majorizations: tuple[MajorizationStep, ...] = ()
    work: float | None = None
    stopped: str = ""  # the status, where a rule of the solver's own ended it before tol


# --------------------------------------------------------------------------------------------------------------
# What a solver shows its points to, and what may stand between: a solver that runs inside another one has a watch of its own.


class Watch(Protocol):
    """Callable that the caller hands to a solver. The outermost one, which certifies every point, is `mtldsl.solvers.monitor.Monitor`."""

    @property
    def expired(self) -> bool:
        """The time is up: cheap enough to ask at every iteration; then show the last point and return."""
        ...

    def __call__(self, point: Point) -> bool:
        """Look at a point, where that is worth its price (about two matrix products). True: stop - certified, or out of time."""
        ...


class _InnerWatch:
    """A watch in another one: it is out of time where that is."""

    def __init__(self, outer: Watch):
        self.outer = outer

    @property
    def expired(self) -> bool:
        return self.outer.expired


class MappedWatch(_InnerWatch):
    """Shows another watch what a point means there."""

    def __init__(self, outer: Watch, translate: Callable[[Point], Point]):
        super().__init__(outer)
        self.translate = translate

    def __call__(self, point: Point) -> bool:
        return self.outer(self.translate(point))


class StoppingWatch(_InnerWatch):
    """For points that another watch is not shown: stops where they are `enough`, or once it was asked `asks` times for its time. It remembers
    the last point, and whether that was enough.

    Without either it stops at nothing but the other's time. Steps are counted, not seconds: the same input goes the same way.
    """

    def __init__(
        self,
        outer: Watch,
        enough: Callable[[Point], bool] | None = None,
        asks: float = math.inf,
    ):
        super().__init__(outer)
        self.enough, self.asks = enough, asks
        self.last: Point | None = None
        self.satisfied = False

    @property
    def expired(self) -> bool:
        self.asks -= 1
        return self.outer.expired or self.asks < 0

    def __call__(self, point: Point) -> bool:
        self.last = point
        self.satisfied = self.enough is not None and self.enough(point)
        return self.satisfied or self.expired


class GeometricSchedule(_InnerWatch):
    """Shows another watch the first ten points, the last, and in between one after every tenth of the way: a look costs a pass over
    the data."""

    def __init__(self, outer: Watch, max_iter: int):
        super().__init__(outer)
        self.max_iter, self.shown = max_iter, 0

    def __call__(self, point: Point) -> bool:
        now, expired = point.iteration, self.expired
        if not (now <= 10 or now >= 1.1 * self.shown or now == self.max_iter or expired):
            return False
        self.shown = now
        return self.outer(point) or self.expired


#: Flops in the time that the calls of an iteration take beside their arithmetic: a tenth of a millisecond.
FLOPS_PER_CALL = 1e5

#: Flops of products of matrices, and of factors, in the time of one flop of a product with a vector.
MATRIX_SPEEDUP = 8.0


def product_flops(facts: ModelFacts) -> float:
    """Flops of a product of all inputs with the weights, as those of products with a vector: of dense inputs that tasks share it is one of matrices."""
    is_of_matrices = facts.shares_inputs and not facts.is_sparse
    return facts.product / (min(float(facts.tasks), MATRIX_SPEEDUP) if is_of_matrices else 1.0)


class Solver(Protocol):
    """All that is asked of a solver. A class that inherits from it says only where it differs; objects with all these members will do.

    name            : as in solve(solver=...)
    summary         : one line for explain() and the docs
    options         : option -> its default, each a further keyword argument of `solve`; others are refused by the caller
    choices         : of options that are one of some words, these words
    writes          : options that name a file to write
    max_iter        : the iterations that a run has where nobody says how many
    takes_nonconvex : whether it is asked about forms with functions that are not convex
    needs_rows      : whether it is asked only about losses whose rows are in this process
    takes_spans     : whether models of few samples go to it in the coordinates of their span
    below_guesses   : whether no point that it ends at lies above its start, zero or the best constants by more than the accuracy asked for;
                      then these are not even looked at where it ends with a proof
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[Mapping[str, object]] = {}
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    writes: ClassVar[tuple[str, ...]] = ()
    max_iter: ClassVar[int] = 100_000
    takes_nonconvex: ClassVar[bool] = False
    needs_rows: ClassVar[bool] = True
    takes_spans: ClassVar[bool] = False
    below_guesses: ClassVar[bool] = False

    @abstractmethod
    def refuses(self, form: NormalForm) -> str | None:
        """None where this solver takes the form, otherwise one sentence that a user understands."""

    def solves_only(self, form: NormalForm) -> str | None:
        """The kind of models that it is for ("models with smooth losses"), where the form is of another one; None where it is of that
        kind, and `refuses` says what stands in the way."""
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        """Tell whether its refusal is among those that are told where no solver takes the form; asked of the package's own solvers."""
        return False

    def flops(self, form: NormalForm) -> float:
        """Flops of an iteration, about: two products with the data and the price of the calls. Whose iterations differ counts
        them in `Point.work`."""
        return FLOPS_PER_CALL + (2.0 * product_flops(ModelFacts.of(form)) if form.in_memory else 0.0)

    def expected_flops(self, form: NormalForm) -> float:
        """Flops of a whole run, where it takes about as many iterations whatever the data are: the first slot of a route before it ends there. Else
        no limit."""
        return math.inf

    def work(self, form: NormalForm, point: Point) -> float:
        """Flops that a run has taken when it shows the point."""
        counted = getattr(
            point, "work", None
        )  # which the reference's points, a class of its own, do not have
        return point.iteration * self.flops(form) if counted is None else counted

    @abstractmethod
    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        """Run until `watch` returns True or max_iter is reached; return the last point.

        tol is the relative duality gap the caller is after: it may steer inner accuracies and how often `watch` is called.
        A solver calls `watch` at its first point, at its last, and in between at a rhythm that costs it little."""


# --------------------------------------------------------------------------------------------------------------
# Solvers that have several algorithms.


@dataclass(frozen=True)
class Method:
    """A named algorithm of a solver that has several: `solve("proximal_gradient.ridge_newton")`.

    summary : one line for explain()
    refuses : None where it takes a form that its solver takes, otherwise one sentence that a user understands
    run     : (form, tol, max_iter, start, watch, **options) -> (its last point, whether the run ends with it): where it gives up, the
              next method goes on from there
    """

    name: str
    summary: str
    refuses: Callable[[NormalForm], str | None]
    run: Callable[..., tuple[Point | None, bool]]


class MethodSolver(Solver):
    """A solver that runs the first of its `methods` that takes the form; where that gives up, the next goes on."""

    methods: ClassVar[tuple[Method, ...]]

    def method_for(self, form: NormalForm, after: Method | None = None) -> Method | None:
        """Return the first method that takes the form, behind that one; None where there is none. A path asks but once."""
        known = form.remembered.setdefault(("methods", self.name), {})
        if after not in known:
            coming = self.methods if after is None else self.methods[self.methods.index(after) + 1 :]
            known[after] = next((one for one in coming if one.refuses(form) is None), None)
        return known[after]

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, **options
    ) -> Point:
        method, point = self.method_for(form), start
        while method is not None:
            found, is_done = method.run(form, tol, max_iter, point, watch, **options)
            point = found or point
            if is_done or watch.expired:
                break
            method = self.method_for(form, after=method)
        if point is None:
            raise SolverError(
                f"{self.name} found no point on this model", write_instead="name another solver"
            )
        return point


def single_method(solver: MethodSolver, method: Method) -> Solver:
    """Return the solver with one of its methods alone, under the name of both."""
    kind = type(solver)

    def refuses(self: MethodSolver, form: NormalForm) -> str | None:
        return kind.refuses(self, form) or method.refuses(form)

    members = {
        "name": f"{solver.name}.{method.name}", "summary": method.summary, "methods": (method,), "below_guesses": False, "refuses": refuses,
    }  # fmt: skip
    return type(kind.__name__, (kind,), members)()


@contextmanager
def breakdowns(name: str):
    """Return what linear algebra and arithmetic refuse inside, as SolverError: a model with numbers far apart is not a fault of the program.

    An overflow, a division by zero and a NaN that comes of numbers count among it, which numpy would only warn about: what a
    solver makes of them is worth nothing. Where one is meant (the exponential of a large score, in a step that is then refused),
    `np.errstate(over="ignore")` says so.

    >>> with breakdowns("admm"):
    ...     np.linalg.inv(np.zeros((2, 2)))
    Traceback (most recent call last):
    mtldsl.errors.SolverError: admm broke down numerically (Singular matrix); bring parameters and data to similar sizes
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        raise SolverError(
            f"{name} broke down numerically ({error})",
            write_instead="bring parameters and data to similar sizes",
        ) from error
