"""What a student, or somebody with a solver of their own, asks of a model: values, bounds and conditions, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtldsl.errors import ModelError
from mtldsl.values.number import as_float, quoted
from mtldsl.values.option import as_flag

if TYPE_CHECKING:
    from mtldsl.analysis.bound_check import BoundCheck
    from mtldsl.analysis.kkt import Conditions

__all__ = ["Taught"]


class Taught:
    """Part of `Problem`."""

    form: Any

    def value(self, W, tol: float = 1e-6) -> float:
        """The objective at weights: a matrix (d, m), {block: array} where there are several or an intercept (W.intercept; 0 if not given), or a
        Solution.

        tol : by how much, relative to the largest weight, a constraint may be violated, as in `solve`; above, the value is inf
        ModelError for other shapes.

        >>> import numpy as np, mtldsl as mtl
        >>> tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0], [0.0]]))
        >>> W = mtl.Weights(tasks)
        >>> mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).value([[1.0], [0.0]])
        1.5
        """
        from mtldsl.analysis.by_hand import value_at

        allowed = as_float(tol)
        if allowed is None or not 0.0 <= allowed < 1.0:
            raise ModelError(
                "tol is what a constraint may be violated by, 0 or more and below 1, such as 1e-6",
                term=f"value(W, tol={quoted(tol)})",
            )
        return value_at(self.form(), W, allowed)

    def dual_value(self, u) -> float:
        """The dual function at multipliers u of the loss: a lower bound on the optimum, -inf where a condition fails (`check_bound` says which)."""
        return self.check_bound(u).value

    def check_bound(self, u, functions: Mapping[str, Any] | None = None, repair: bool = False) -> BoundCheck:
        """Whether multipliers prove a lower bound on the optimum: every condition, where it fails and by how much.

            minimize f(X w) + g(w) >= -f*(u) - g*(v),  u in dom f*,  X^T u + v = 0,  v in dom g*;  with an intercept sum_j u_j = 0 in every task

        u         : of the loss: flat (N,) task after task, a list of (n_i,) a task, or (n, m) beside shared inputs; {term as typed: ...} of several.
                    At the optimum it is a gradient of the loss at the predictions. Or a solution: the multipliers that its certificate rests on
        functions : {term as typed: v} of regularizers and constraints; those that are not given take what X^T u leaves, several of them in the
                    division that proves most
        repair    : tell too what bound they prove once they are made feasible, and what has to be done for it

        ModelError for other shapes, solutions of other models, models that are not convex, and rows that are elsewhere.

        >>> import numpy as np, mtldsl as mtl
        >>> tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0], [0.0]]))
        >>> W = mtl.Weights(tasks)
        >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
        >>> problem.check_bound([-1.0, 0.0]).value
        1.5
        >>> print(problem.check_bound([-2.0, 0.0], repair=True))
        holds  multipliers of squared_loss(W, tasks) lie in the domain of its conjugate
        holds  stationary in W: X^T u and the multipliers of the functions add up to 0
        FAILS  multipliers of l1_norm(W): their dual norm is at most 1: by 1.0e+00, at a dual norm of 2
        A condition fails: these multipliers, as they are, prove nothing.
        All were multiplied by 0.5, so that the dual norms hold.
        So mended, they prove the bound 1.5.
        """
        from mtldsl.analysis.by_hand import check_bound

        return check_bound(self.form(), str(self), u, functions, as_flag(repair, "check_bound(u, repair"))

    def conditions(self, solution) -> Conditions:
        """The optimality system of a solution, term by term: value, conjugate, Fenchel gap; stationarity of every block; every constraint.

        The gaps of the terms add up to the duality gap, so that the table says where it comes from.
        """
        from mtldsl.analysis.kkt import conditions_of

        return conditions_of(solution, self.form())
