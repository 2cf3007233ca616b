"""The method of multipliers with semismooth Newton steps: losses with kinks beside anything that has an exact prox."""

from __future__ import annotations

from typing import ClassVar

from mtldsl.atoms.prox.composition import unsupported_reason
from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm, single_block
from mtldsl.solvers.augmented_lagrangian.at_rank import concave_of
from mtldsl.solvers.augmented_lagrangian.equality_constraints import TiedRun, takes
from mtldsl.solvers.augmented_lagrangian.interior_point import near_pays
from mtldsl.solvers.augmented_lagrangian.low_rank import SpectralRun
from mtldsl.solvers.augmented_lagrangian.prox_parts import is_piecewise_linear
from mtldsl.solvers.augmented_lagrangian.proximal_multipliers import Run, are_plain_ridges, is_by_rows
from mtldsl.solvers.augmented_lagrangian.semismooth_newton import STACKED
from mtldsl.solvers.cutting_planes.oracle import are_tried_first
from mtldsl.solvers.solver import Point, Solver, Watch

__all__ = [
    "SOLVER",
    "Multipliers",
]

#: iterations without progress that structured losses have: the first phase takes up to 420
_SHORT_STEPS = 1000

#: rows over features up to which ADMM goes first where tasks are tied by more features than so many, by rows and by the spectrum, whose
#: Newton steps take conjugate gradients: measured on generated data from 3 to 12, and on real data at 2 to 5, and 20 to 70
_FEW_ROWS, _FEW_ROWS_BY_SPECTRUM, _MANY_FEATURES = 4, 6, 40
#: the same beside functions whose derivative is found by differences, with few features too: measured, ADMM takes a seventh of the time at 15, and
#: more than Newton steps from 60 on
_FEW_ROWS_BY_DIFFERENCES = 30

#: tasks from which on, by rows, it goes first up to so many rows a feature, however few features: systems are taken one by one (measured on 50 and
#: 120 tasks: Newton steps take 1.1 to 4 times as long at 2.5 to 7, .9 to 2.2 times at 10, a third at 67)
_MANY_TASKS, _FEW_ROWS_OF_MANY = 40, 10
#: features of sparse inputs from which on ADMM goes first whatever the rows: its systems hold no more than theirs, Newton's all tasks'
_MANY_OF_SPARSE = 200
#: a first turn in iterations of ADMM, which waits, by the work that Newton's systems take: after one of ADMM's, and before it
_SHIFT, _LONG_SHIFT = 1000, 4000


class Multipliers(Solver):
    """The proximal method of multipliers, with Newton steps in the weights.

    Scores z = X W + b and a copy of W are split off; an outer step minimises the augmented Lagrangian over the weights (`newton`), in
    which losses with kinks are smooth, and the multipliers step. No step is a step of first order: badly conditioned data cost no more.
    Where tasks are not tied, interior points (`interior`) do the same. One function of the spectrum may be not convex (`spectral`).

    Source: Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming", Math. Oper. Res. 1
    (1976); Li, Sun and Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", SIAM J. Optim.
    28 (2018).
    """

    name = "multipliers"
    summary = "method of multipliers with Newton steps: losses with kinks, functions whose sum has an exact proximal step"
    max_iter: ClassVar[int] = 10_000
    takes_spans = True
    takes_nonconvex = True

    def refuses(self, form: NormalForm) -> str | None:
        facts = single_block(form)
        if isinstance(facts, str):
            return None if takes(form) else facts
        if not _has_kinks(facts.loss):
            missing = (
                "has no exact step in its scores" if facts.loss.atom.max_affine else "is not piecewise linear"
            )
            return f"{facts.loss.typed} {missing}."
        if not form.functions:
            return "there is no regularizer."
        if not form.is_convex:
            concave = concave_of(form)
            return concave if isinstance(concave, str) else None
        return unsupported_reason([(f.coefficient, f.atom) for f in form.functions]) or None

    def solves_only(self, form: NormalForm) -> str | None:
        return None if any(map(_has_kinks, form.losses)) else "models with piecewise linear losses"

    def yields(self, form: NormalForm) -> str | None:
        """Return where planes have a first try: not of `admm` beside a ridge, which those of `dual_ascent` suit better."""
        if isinstance(single_block(form), str):  # equations beside it, which only interior points take
            return None
        loss = form.losses[0]
        if not form.is_convex:
            return None
        if loss.has_score_steps and are_tried_first(loss) and not are_plain_ridges(form):
            return f"a few rounds of planes show whether they settle {loss.typed}"
        ties = None if loss.has_score_steps else _what_ties(form)
        if ties is not None:
            # measured: ADMM takes a tenth to a half of its time there, and gives way where it does not
            (d, m), rows = form.weight_blocks[0].shape, max(loss.tasks.counts)
            by_rows = is_by_rows(form)
            few = _FEW_ROWS if by_rows else _FEW_ROWS_BY_SPECTRUM
            goes_first = (
                (d > _MANY_FEATURES and rows < few * d)
                or (d > _MANY_OF_SPARSE and loss.tasks.is_sparse)
                or (d > STACKED and not by_rows)
                or (by_rows and m >= _MANY_TASKS and rows < _FEW_ROWS_OF_MANY * d)
                # by differences, a prox a product
                or (not by_rows and ties.atom.separable != "spectrum" and rows < _FEW_ROWS_BY_DIFFERENCES * d)
            )
            if goes_first:
                return f"{ties.typed} of {d} features ties {m} tasks in Newton's systems, which ADMM factorizes once"
        return None

    def patience(self, form: NormalForm) -> int:
        """Newton steps; those of the first phase, which structured losses have, are short ones. Beside norms that tie tasks see `shift`."""
        if _counts_work(form):
            return _SHIFT
        return _SHORT_STEPS if form.losses[0].has_score_steps else 200

    def shift(self, form: NormalForm) -> float:
        """Beside norms that tie tasks, where ADMM takes the model too: from where it stands, Newton steps are few, or far too dear."""
        if not _counts_work(form):
            return super().shift(form)
        return _LONG_SHIFT if self.yields(form) is None else _SHIFT

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        if isinstance(single_block(form), str):
            return TiedRun(form, tol).run(max_iter, watch)
        if not form.is_convex:
            return SpectralRun(form, tol, start).run(max_iter, watch)
        run = Run(form, tol, start)
        tasks, point = run.tasks_by_features(), None
        if tasks is not None:
            point = run.by_features(tasks, max_iter, watch)
        if point is None and run.has_interior:
            near = None if start is None else Run(form, tol, start, is_near=True)
            if near is not None and near_pays(near.designs, near.scores, near.part):
                point = near.from_neighbour(max_iter, watch)
            point = point or run.by_interior_points(max_iter, watch)
        return run.run(max_iter, watch) if point is None else point


def _counts_work(form: NormalForm) -> bool:
    """Tell whether what a run has done is counted in iterations of ADMM (`Run`), not in Newton steps."""
    if isinstance(single_block(form), str) or not form.is_convex:
        return False
    return not form.losses[0].has_score_steps and _what_ties(form) is not None


def _what_ties(form: NormalForm) -> FunctionTerm | None:
    """A function by which tasks are tied; None where each is a model by itself."""
    if form.weight_blocks[0].shape[1] == 1 or are_plain_ridges(form):
        return None
    by_rows = is_by_rows(form)
    ties = (
        f for f in form.functions if not by_rows or (f.atom.profile and f.atom.profile.length is not None)
    )
    return next(ties, None)


def _has_kinks(loss: LossTerm) -> bool:
    return is_piecewise_linear(loss) or loss.has_score_steps


SOLVER = Multipliers()
