"""A recipe, typed in the language."""

from scipy import sparse

import mtldsl as mtl
from tests.fuzz.label_graphs import GRAPH_LOSSES
from tests.fuzz.recipes import Constraint, Data, Expression, Model

#: what is learned beside the weights, with a bound on its trace
LEARNED = {"feature_covariance_norm": mtl.FeatureCovariance, "task_covariance_norm": mtl.TaskCovariance}


def problem_of(model: Model) -> mtl.Problem:
    tasks = [_tasks(data) for data in model.data]
    if model.losses[0].word in GRAPH_LOSSES:
        return _over_label_graph(model, tasks[0])
    blocks = {name: mtl.Weights(tasks[0], intercept=has, name=name) for name, has in model.blocks.items()}
    objective = sum(
        t.coefficient
        * getattr(mtl, t.word)(
            _typed(t.argument, blocks), tasks[t.data], **_own(t.options), **({"mean": True} if t.mean else {})
        )
        for t in model.losses
    )
    constraints = [_constraint(c, blocks) for c in model.constraints]
    for p in model.penalties:
        options, matrix = _own(p.options), ()
        if p.word in LEARNED:
            matrix = (LEARNED[p.word](tasks[0]),)
            constraints.append(matrix[0].trace() <= options.pop("trace"))
        objective = objective + p.coefficient * getattr(mtl, p.word)(
            _typed(p.argument, blocks), *matrix, **options
        )
    return mtl.minimize(objective, subject_to=constraints)


def _over_label_graph(model: Model, tasks: mtl.Tasks) -> mtl.Problem:
    blocks = {"U": mtl.NodeWeights(tasks), "V": mtl.EdgeWeights(tasks, edges="all")}
    (loss,) = model.losses
    objective = loss.coefficient * getattr(mtl, loss.word)(*blocks.values(), tasks)
    for p in model.penalties:
        objective = objective + p.coefficient * getattr(mtl, p.word)(_typed(p.argument, blocks), **p.options)
    return mtl.minimize(objective, subject_to=[_constraint(c, blocks) for c in model.constraints])


def _tasks(data: Data) -> mtl.Tasks:
    make = mtl.Tasks.shared if data.is_shared else mtl.Tasks.separate
    X = data.X
    if data.sparse:
        X = sparse.csr_array(X) if data.is_shared else [sparse.csr_array(part) for part in X]
    return make(X, data.Y, sample_weights=data.weights)


def _own(options: dict) -> dict:
    """Options as the words take them: a metric is named."""
    metrics = {"PrecisionAt": {"k": 1}, "RecallAt": {"k": 1}}
    return {
        name: getattr(mtl, value)(**metrics.get(value, {})) if name == "metric" else value
        for name, value in options.items()
    }


def _typed(expression: Expression, blocks: dict):
    return eval(expression.text, {"__builtins__": {}}, blocks | expression.constants)


def _constraint(c: Constraint, blocks: dict):
    argument = _typed(c.argument, blocks)
    if c.kind == "at_least":
        return argument >= c.bound
    if c.kind == "at_most":
        return argument <= c.bound
    if c.kind == "equal_to":
        return argument == c.bound
    if c.kind == "columns_on_simplex":
        return mtl.columns_on_simplex(argument, total=c.bound)
    return getattr(mtl, c.kind)(argument) <= c.bound
