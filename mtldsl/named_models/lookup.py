"""`mtl.model("Robust-MTL", tasks, rho1=50.0, rho2=15.0)`, and `mtl.models()`, which lists them."""

from __future__ import annotations

from collections.abc import Mapping

from mtldsl.errors import ModelError
from mtldsl.language.words.did_you_mean import meant
from mtldsl.named_models.named_model import NamedModel
from mtldsl.named_models.papers import MODELS
from mtldsl.problem import Problem
from mtldsl.tasks import Tasks
from mtldsl.values.arguments import complete
from mtldsl.values.number import quoted

__all__ = ["ModelTable", "find", "model", "models"]


#: the models that an error lists
_USUAL = (
    "'Lasso'", "'L21'", "'NN-MTL'", "'Robust-MTL'", "'Dirty model'", "'MTFL'", "'MTRL'", "'FETR'", "'NC-CMTL'", "'MT-MKL'", "'SMTL(l21+F1)'", "'CGM'",
)  # fmt: skip


class ModelTable(dict[str, NamedModel]):
    """Name -> model; printed, a table of their statements."""

    def __str__(self) -> str:
        width = max(map(len, self))
        lines, family = [], None
        for each in self.values():
            if each.family != family:
                family = each.family
                lines += ["", family] if lines else [family]
            lines.append(f"  {each.name:<{width}}  {each.statement}")
            if each.subject_to:
                lines.append(f"  {'':<{width}}  subject to {', '.join(each.subject_to)}")
        return "\n".join(lines)

    __repr__ = __str__


@complete("write models()['MT-MKL'] for its statement, or model('MT-MKL', tasks, ...) for a problem")
def models() -> Mapping[str, NamedModel]:
    """Every named model, by name; it prints as a table of their statements.

    >>> import mtldsl as mtl
    >>> print(mtl.models()["Robust-MTL"])
    minimize    sum_of_squares(L + S, tasks) + rho1 * trace_norm(L) + rho2 * l12_norm(S)
    """
    return ModelTable({each.name: each for each in MODELS})


def find(name: str) -> NamedModel:
    """The model of that name, or of that other name. ModelError, with the nearest name, where there is none."""
    known = {known: each for each in MODELS for known in (each.name, *each.also)}
    if isinstance(name, str) and name in known:
        return known[name]
    if not isinstance(name, str):
        raise ModelError(
            "the first argument is a name, such as 'Robust-MTL'", term=f"model({quoted(name)}, ...)"
        )
    if "(" in name and name.partition("(")[0].strip() not in known:
        raise ModelError(f"{quoted(name)} is a formula, and `model` takes the name of a model", write_instead="write it as `minimize`")  # fmt: skip
    right = meant(name, known)
    hint = (
        f"did you mean {right!r}?"
        if right
        else f"write one of {', '.join(_USUAL)}, ...; `mtldsl models` lists all {len(MODELS)}"
    )
    raise ModelError(f"there is no model {name!r}", write_instead=hint)


@complete("write model('Lasso', tasks, rho=0.1)")
def model(name: str, tasks: Tasks, /, *, intercept: bool = False, edges=None, **parameters: float) -> Problem:
    """A model of a paper as a problem: its statement, typed for you; `models()` and docs/models.md list them.

    name       : such as "Robust-MTL"
    tasks      : the data
    intercept  : learn one number per task as well (beside the first weight matrix)
    edges      : of a model over a graph of labels, the edges that there may be, in place of its own ("all", or none at all): a list of
                 pairs of labels, or a networkx graph, as in `EdgeWeights`
    parameters : of the model, by name: numbers. What stands before a word is a `Parameter` of that name afterwards, among
                 `problem.parameters`, so that `problem.path` can change it; what is an argument of a word stays as it is

    Raises ModelError for a name that no model has, and for parameters that are missing, unknown or do not fit; DataError where
    the data do not suit the loss.

    More terms and constraints are added as to any other model: mtl.minimize(problem.objective + 0.1 * mtl.ridge(W), [W >= 0])
    with W = problem.weights[0].

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> problem = mtl.model("Robust-MTL", tasks, rho1=50.0, rho2=1.0)
    >>> print(problem)
    minimize    sum_of_squares(L + S, tasks) + rho1 * trace_norm(L) + rho2 * l12_norm(S)
    >>> solution = problem.solve()
    >>> solution.status, solution["S"].round(4) + 0.0
    ('optimal', array([[2.5, 0. ], [0. , 0.5], [0. , 0. ]]))
    >>> rho1, rho2 = problem.parameters
    >>> [round(each.objective, 4) for each in problem.path(rho2, [1.0, 0.0])]
    [3.5, 0.0]
    """
    found = find(name)
    if not isinstance(tasks, Tasks):
        raise ModelError(
            "the second argument must be a Tasks object",
            term=f"model({name!r}, {type(tasks).__name__})",
            write_instead=f"write {found.usage} with tasks = Tasks.shared(X, Y)",
        )
    return found.on(tasks, parameters, intercept, edges)
