"""A model as typed: an objective, its constraints, and the normal form that they stand for."""

from __future__ import annotations

from mtldsl.compile.checks import check_model, learned_of, on_weights, parameters_of, weights_of
from mtldsl.compile.from_tree import known_map, to_normal_form, with_coefficients
from mtldsl.compile.normal_form import LinearMap, NormalForm
from mtldsl.compile.symbols import latex_of, panel_of
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constraint import Constraint
from mtldsl.language.expressions.objective import Objective, Term
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.language.expressions.weights import Weights
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint
from mtldsl.language.words.shares import Shares, shares_of
from mtldsl.shown.panel import Panel
from mtldsl.shown.shown import Shown
from mtldsl.system.kept import cached_property
from mtldsl.tasks import Tasks
from mtldsl.values.option import as_flag

__all__ = ["Statement"]


class Statement(Shown):
    """What a model says, before anybody solves or checks it. ModelError where it is not convex or not well formed."""

    def __init__(self, objective: Objective, constraints: list[Constraint | RangeConstraint]):
        check_model(objective, constraints)
        self.objective, self.constraints = objective, tuple(constraints)
        self._known: dict[Term, tuple] = {}
        self._maps: dict[Term, tuple] = {}
        self._made: tuple[tuple[float, ...], NormalForm] | None = None
        self._remembered: dict[tuple, dict] = {}

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        lines = [f"minimize    {self.objective.text}"]
        for i, constraint in enumerate(self.constraints):
            lines.append(f"{'subject to  ' if i == 0 else ' ' * 12}{constraint.text}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}\n{self}>"

    def latex(self, where: bool = False) -> str:
        r"""The model in LaTeX's math mode (amsmath's `aligned`, without dollars around it).

        where : a displayed formula, and below it a list that says what every symbol is, as text for a paper

        >>> import numpy as np, mtldsl as mtl
        >>> tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
        >>> W = mtl.Weights(tasks)
        >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.Parameter(0.5) * mtl.l21_norm(W))
        >>> print(problem.latex())
        \begin{aligned} \min_{W}\quad & \sum_i \tfrac12\|X_i w_i-y_i\|_2^2 + \lambda \, \|W\|_{2,1} \end{aligned}
        """
        return latex_of(self, as_flag(where, "latex(where", ModelError))

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"

    def _panel(self) -> Panel:
        return panel_of(self)

    @property
    def weights(self) -> list[Weights]:
        """Every weight matrix of the model, in the order typed."""
        return weights_of(self.objective, self.constraints)

    @property
    def learned(self) -> list[LearnedUnknown]:
        """Every matrix that is learned beside the weights, in the order typed."""
        return list(self._learned)

    @cached_property
    def _learned(self) -> list[LearnedUnknown]:
        return learned_of(self.objective)

    @property
    def parameters(self) -> list[Parameter]:
        """Every parameter of the model, in the order typed."""
        return list(self._parameters)

    @cached_property
    def _parameters(self) -> list[Parameter]:
        return parameters_of(self.objective, list(self.constraints))

    @property
    def first_loss(self) -> Term:
        """The loss whose predictions are the model's."""
        return self._first_loss

    @cached_property
    def _first_loss(self) -> Term:
        return next(term for term in self.objective.terms if term.is_loss)

    @cached_property
    def shares(self) -> Shares | None:
        """Where every loss takes tasks of its own, `W[:, a]` and `W[:, b]`, which are whose; else None."""
        return shares_of([term for term in self.objective.terms if term.is_loss])

    @property
    def data(self) -> Tasks:
        """The tasks whose labels are learned, as typed: of all losses where each has tasks of its own, else of the first."""
        tasks = self.first_loss.data if self.shares is None else self.shares.tasks
        assert tasks is not None  # of a loss
        return tasks

    @property
    def is_convex(self) -> bool:
        """Whether every term is convex with a coefficient >= 0 at the parameters' present values."""
        return all(t.coefficient.value >= 0 for t in self.objective.terms) and self.form().is_convex

    def _shape(self, values: tuple[float, ...]) -> tuple:
        """What of the parameters' values is more than the size of a coefficient: that it is 0, and what stands inside an argument or is a radius."""
        inside = self._inside_arguments
        return tuple(v if p in inside else v == 0 for p, v in zip(self._parameters, values, strict=True))

    @cached_property
    def _inside_arguments(self) -> frozenset[Parameter]:
        arguments = [t.argument for t in self.objective.terms] + [
            c.argument for c in on_weights(self.constraints)
        ]
        inside = [part.coefficient.parameters for one in arguments for part in one.parts]
        radii = [c.of_radius for c in on_weights(self.constraints)]
        return frozenset().union(*inside, *radii)

    def map_of(self, term: Term) -> LinearMap:
        """The map of a term's argument at the parameters' present values, made once."""
        return known_map(term, self._maps)

    def form(self) -> NormalForm:
        """The normal form at the parameters' present values: what solvers, certificate and reference see.

        The same object while these values are the same; where they change, losses that do not depend on them are those of before, with
        what is known of their data.
        """
        values = tuple(p.value for p in self._parameters)
        if self._made is None or self._made[0] != values:
            shape, form = self._shape(values), None
            if (
                self._made is not None
                and self._scales_penalties_alone
                and shape == self._shape(self._made[0])
            ):
                form = with_coefficients(self._made[1], self.objective.terms)
            if form is None:
                form = to_normal_form(self.objective, self.constraints, str(self), self._known, self._maps)
            form.share(self._remembered.setdefault(shape, {}))
            self._made = values, form
        return self._made[1]

    @cached_property
    def _scales_penalties_alone(self) -> bool:
        """Whether all that parameters do is to multiply regularizers."""
        losses = any(term.coefficient.parameters for term in self.objective.terms if term.is_loss)
        return not (losses or self._inside_arguments or self.constraints)
