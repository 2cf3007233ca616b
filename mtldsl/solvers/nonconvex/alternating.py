"""Alternating minimisation: learned matrices in closed form, weights by a convex step; or both at once, on the profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.atom import checked_number
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.reductions.block_reductions import SmallerSide
from mtldsl.normal_form.terms.structure_term import (
    Structures,
    StructureTerm,
    learned_matrices,
    structure_terms,
)
from mtldsl.solvers.design.sufficient_statistics import radial_data
from mtldsl.solvers.linear_systems.sylvester import METHODS
from mtldsl.solvers.multistart import bare_start
from mtldsl.solvers.nonconvex.block_updates import (
    accelerate,
    alternate,
    flip_flop,
    smoothed_update,
    starting_matrices,
    update_in_turn,
)
from mtldsl.solvers.nonconvex.majorization_minimization import minimize_reweighted
from mtldsl.solvers.nonconvex.reweighting import (
    algorithm_1,
    fitting_stages,
    relaxed_forms,
    why_not_reweighted,
)
from mtldsl.solvers.nonconvex.spectral_admm import relaxed_start
from mtldsl.solvers.nonconvex.variable_projection import minimize_profile, why_not_smooth
from mtldsl.solvers.nonconvex.weights_step import ConvexStep, weights_step, why_not_linear
from mtldsl.solvers.solver import Point, Solver, Watch

_METHODS = ("auto", "newton", "lbfgs", "joint", "block", "flip_flop", "algorithm_1")

#: Those for tasks and spectrum reweighted in closed form.
_REWEIGHTED = ("newton", "joint", "block", "algorithm_1")


class AlternatingMinimization(Solver):
    """For models that learn matrices beside the weights, or penalise the spectrum or sizes by a concave function that is reweighted.

    method : "newton"    of reweighted models: accelerated steps, then Newton's, by conjugate gradients in the steps' metric
             "lbfgs"     joint steps, then L-BFGS on the profile, where everything is smooth
             "joint"     the weights, then all matrices together, accelerated (Anderson)
             "block"     the weights, then one matrix after another, not accelerated: the papers' algorithms
             "flip_flop" the baseline MTFRL: matrices by their sample estimates + `fudge` times the identity; minimises nothing
             "algorithm_1" the paper's Algorithm 1 for calibrated learning as printed, with its faults, for teaching
             "auto"      "newton" or "lbfgs" where it can be, else "joint", and where a matrix is given; "block", smoothed, where
                         covariances have a bounded trace
    continuation : of reweighted models, how many easier ones are solved before, each with a tenth of the eps of the one before it;
             None: as many as "newton" needs where eps is far below the squares of the singular values, without a warm start
    w_step : how a quadratic weights' step is solved: "simultaneous_diagonalization", "sylvester", "closed_form",
             "gradient_descent", "conjugate_gradient"; "auto" is the fastest that fits
    fudge  : of "flip_flop" alone, 1e-3 unless given
    """

    name = "alternating"
    summary = "alternating minimisation: learned matrices and spectral weights in closed form, the rest by convex, quasi-Newton or Newton steps"
    options: ClassVar[Mapping[str, object]] = {
        "method": "auto",
        "w_step": "auto",
        "fudge": None,
        "continuation": None,
    }
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"method": _METHODS, "w_step": ("auto", *METHODS)}
    max_iter = 10_000
    takes_nonconvex = True

    def refuses(self, form: NormalForm) -> str | None:
        if is_relaxable(form):
            return None
        others = [f for f in form.functions if not (f.atom.convex or isinstance(f, StructureTerm))]
        if others:
            hint = "; with an eps > 0 one does" if hasattr(others[0].atom, "eps") else ""
            return f"{others[0].typed} is not convex, and no quadratic lies above it everywhere{hint}."
        terms = structure_terms(form)
        if not terms:
            return "no term learns a matrix beside the weights, or is reweighted (eps > 0)."
        for term in terms:
            if term.structure.weighs_kernels:
                return f"{term.typed} learns the weights of given matrices, not a matrix."
        reason = why_not_linear(form) if form.is_convex else None
        return None if reason is None else f"beside {terms[0].typed} it solves linear systems only: {reason}"

    def solves_only(self, form: NormalForm) -> str | None:
        is_its_own = structure_terms(form) or is_relaxable(form)
        return None if is_its_own else "models with learned matrices or reweighted penalties"

    def is_nearest(self, form: NormalForm) -> bool:
        return not form.is_convex

    def solve(
        self,
        form: NormalForm,
        *,
        tol: float,
        max_iter: int,
        start: Point | None,
        watch: Watch,
        method: str = "auto",
        w_step: str = "auto",
        fudge: float | None = None,
        continuation: int | None = None,
    ) -> Point:
        if is_relaxable(form):
            asked = {"method": method, "w_step": w_step, "fudge": fudge, "continuation": continuation}
            for option, value in asked.items():
                if value != self.options[option]:
                    raise SolverError(
                        "penalties of sizes are relaxed in stages, which have no such option",
                        term=f"solve(solver='alternating', {option}={value!r})",
                        write_instead="leave it out",
                    )
            return relax_in_stages(form, tol=tol, max_iter=max_iter, start=start, watch=watch)
        method = self._method(form, method, fudge)
        bare = bare_start(form, tol, watch) if start is None and not form.is_convex else None
        if bare is not None:
            lies_lower = form.value(bare.blocks) < form.value(relaxed_start(form, watch))
            if lies_lower and watch(bare):
                return bare
        if method in _REWEIGHTED and why_not_reweighted(form) is None:
            return self._reweighted(form, continuation, method, w_step, tol, max_iter, start, watch)
        if continuation is not None:
            raise SolverError(
                f"only where tasks and spectrum are reweighted in closed "
                f"form; here {why_not_reweighted(form)} Leave continuation out",
                term=f"solve(solver='alternating', continuation={continuation!r})",
            )
        form = SmallerSide().apply(form)[0] if form.is_convex else form
        step = weights_step(form, w_step, watch)
        x, structures = _beginning(step, form, start)
        if method == "lbfgs":
            return minimize_profile(step, form, x, structures, tol=tol, max_iter=max_iter, watch=watch)
        if method == "joint":
            return accelerate(step, form, x, structures, tol=tol, max_iter=max_iter, watch=watch)
        update = update_in_turn if method == "block" else flip_flop(fudge)
        update = smoothed_update() if form.is_convex else update
        return alternate(
            step, form, update, x, structures, max_iter=max_iter, watch=watch, descends=method == "block"
        )

    def _reweighted(self, form, continuation, method, w_step, tol, max_iter, start, watch) -> Point:
        if w_step != "auto":
            raise SolverError(
                "tasks and spectrum are reweighted in closed form",
                term=f"solve(solver='alternating', w_step={w_step!r})",
                write_instead="write w_step='auto'",
            )
        if start is None:  # as in the paper
            x = form.zeros()
            (loss,) = form.losses
            loss.add_adjoint(loss.tasks.targets, x)
        else:
            x = start.blocks
        if method == "algorithm_1":
            if continuation is not None:
                raise SolverError(
                    "the printed algorithm has no continuation",
                    term=f"solve(solver='alternating', method='algorithm_1', continuation={continuation!r})",
                    write_instead="leave it out",
                )
            return algorithm_1(form, x, max_iter=max_iter, watch=watch)
        data = radial_data(form)
        if continuation is None:
            continuation = fitting_stages(form, data, x) if start is None and method == "newton" else 0
        relaxed = relaxed_forms(form, continuation)
        return minimize_reweighted(
            (*relaxed, form), data, x, method=method, tol=tol, max_iter=max_iter, watch=watch
        )

    def _method(self, form: NormalForm, method: str, fudge: float | None) -> str:
        """The method that "auto" stands for; SolverError where the one asked for does not fit."""
        typed = f"solve(solver='alternating', method={method!r})"
        if method not in _METHODS:
            raise SolverError(
                "there is no such method",
                term=typed,
                write_instead=f"write one of {', '.join(map(repr, _METHODS))}",
            )
        if form.is_convex and method not in ("auto", "block"):
            raise SolverError(
                f"{structure_terms(form)[0].typed} is not smooth",
                term=typed,
                write_instead="write method='block'",
            )
        if method in ("newton", "algorithm_1") and why_not_reweighted(form) is not None:
            raise SolverError(f"{why_not_reweighted(form)} Write method='joint'", term=typed)
        if method == "lbfgs" and why_not_smooth(form) is not None:
            raise SolverError(f"{why_not_smooth(form)} Write method='joint'", term=typed)
        if method == "flip_flop":
            for term in structure_terms(form):
                if not term.structure.flip_flops:
                    raise SolverError(
                        f"{term.typed} has no such update",
                        term=typed,
                        write_instead="leave the term out, or write method='joint'",
                    )
        if fudge is not None and method != "flip_flop":
            raise SolverError(
                f"{typed}, fudge={fudge!r}: fudge belongs to method='flip_flop'", write_instead="leave it out"
            )
        if fudge is not None:
            checked_number(
                "solve", "fudge", fudge, lambda v: v >= 0, "a number >= 0, such as 1e-3", SolverError
            )
        if method == "auto":
            return "block" if form.is_convex else self._fastest(form)
        return method

    def _fastest(self, form: NormalForm) -> str:
        """L-BFGS has no metric where a matrix is given, and is slow without; a joint step then is one linear system."""
        if why_not_reweighted(form) is None:
            return "newton"
        given = any(None in term.names for term in structure_terms(form))
        if why_not_smooth(form) is not None or (given and why_not_linear(form) is None):
            return "joint"
        return "lbfgs"


def _beginning(step, form: NormalForm, start: Point | None) -> tuple[Blocks, Structures]:
    """Weights and matrices to begin with: those of a warm start, unless it says nothing.

    Weights that are zero, or all but, leave every matrix at its upper bound, which keeps them there: a path that begins so must
    be able to leave. A start that brings its matrices is taken at its word.
    """
    if start is not None and start.structures is not None and not form.is_convex:
        return start.blocks, start.structures
    structures = starting_matrices(form)
    if start is None or form.is_convex:
        return form.zeros() if start is None else start.blocks, structures
    best: Any = learned_matrices(form, start.blocks)  # these know their eigenvalues
    says_nothing = all(S.eigenvalues()[0] >= (1.0 - 1e-9) * S.eigenvalues()[-1] for S in best.values())
    return start.blocks, structures if says_nothing else best


# --------------------------------------------------------------------------------------------------------------
# Multi-stage convex relaxation of concave penalties of sizes: l1 and l2,1 norms whose weights are the penalty's slopes.
#
# phi is concave, so phi(t) <= phi(s) + phi'(s) (t - s): above the penalty lies a norm with the weights phi'(s), which touches it at the sizes s.
# Every stage solves this convex model, whatever its losses and constraints, and takes the slopes at its solution for the next one. The
# objective never rises. The first stage has the slope at zero, 1, everywhere: the plain l1 or l2,1 norm.
#
# The multipliers of a stage are those of the model where the slopes stay as they are. Slopes of `capped_l1` are 0 or 1, so that stages
# end after finitely many steps.
#
# Source: Zhang, "Analysis of multi-stage convex relaxation for sparse regularization", JMLR 11 (2010); Gong, Ye and Zhang, "Multi-stage
# multi-task feature learning", JMLR 14 (2013), Algorithm 1.


@dataclass(frozen=True)
class RelaxationSettings:
    """Accuracies of stages."""

    stage_tol_share: float = 1e-3  # of tol: the duality gap of the first stages
    stage_tol_factor: float = 1e-2  # by which it falls where stages repeat themselves
    min_stage_tol: float = 1e-13  # below which it does not fall
    same_weights_tol: float = 1e-9  # relative, of two stages in a row


SETTINGS = RelaxationSettings()


def is_relaxable(form: NormalForm) -> bool:
    """Tell whether it has penalties of sizes beside losses with kinks, and norms in their places make it convex.

    Beside smooth losses ADMM settles, which needs no convex solve a step.
    """
    concave = [f.atom for f in form.functions if not f.atom.convex]
    return (
        bool(concave)
        and all(atom.has_tangent_norms for atom in concave)
        and not all(loss.atom.smooth for loss in form.losses)
        and not structure_terms(form)
    )


def relax_in_stages(
    form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> Point:
    """The last stage's point; the first one is at the start, or at zero, where every slope is 1.

    Where a stage ends where it began, and the caller asks for more, the next one is solved to a smaller gap.
    """
    step, x = ConvexStep(form, watch), form.zeros() if start is None else start.blocks
    accuracy = SETTINGS.stage_tol_share * tol
    for stage in range(1, max_iter + 1):
        step.form = _relaxed(form, x)
        point = replace(step.solve({}, x, accuracy), iteration=stage)
        if watch(point):
            break
        if _is_same(point.blocks, x):
            if accuracy <= SETTINGS.min_stage_tol:
                break
            accuracy *= SETTINGS.stage_tol_factor
        x = point.blocks
    return point


def _relaxed(form: NormalForm, x: Blocks) -> NormalForm:
    """The convex model that lies above the form and touches it at x, but for a constant."""
    functions = [
        f if f.atom.convex else replace(f, atom=f.atom.tangent_norm(f.map.forward(x))) for f in form.functions
    ]
    return replace(form, functions=tuple(functions))


def _is_same(new: Blocks, old: Blocks) -> bool:
    return all(
        np.linalg.norm(new[name] - old[name]) <= SETTINGS.same_weights_tol * np.linalg.norm(old[name])
        for name in old
    )


SOLVER = AlternatingMinimization()
