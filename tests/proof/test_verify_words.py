"""Weak duality of the checker, word by word: whatever the point and the multipliers, and however the data are scaled, the lower end is
below the upper one; and the ends in fractions are those of float64, but for rounding.
"""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses import LabelGraphLoss
from mtldsl.atoms.matrix_function import Set
from mtldsl.certificates.checker.function_formulas import FUNCTIONS
from mtldsl.certificates.checker.proof_file import read_proof, write_proof
from mtldsl.certificates.proof_writer import save_proof
from mtldsl.errors import DataError
from mtldsl.normal_form.form import FunctionTerm
from mtldsl.normal_form.term import LinearMap, MapEntry
from tests import models
from tests.loops import for_each
from tests.models import with_weights

CLAIM = {"objective": 0.0, "dual_bound": 0.0, "violation": 0.0, "tol": 1e-6, "status": "", "scale": 0.0}
SCALES = ("ordinary", "columns from 1e-6 to 1e6")


def _scaled_tasks(scale, labels, seed):
    tasks = models.shared(seed, n=9, labels=labels)
    X = np.array(tasks.X)
    if scale != "ordinary":
        X = X * 10.0 ** np.random.default_rng(seed).uniform(-6, 6, X.shape[1])
    return mtl.Tasks.shared(X, tasks.targets.reshape(tasks.n_tasks, -1).T)


def _form(loss_word, tasks, functions, intercept=False, **parameters):
    W = mtl.Weights(tasks, intercept=intercept)
    form = mtl.minimize(getattr(mtl, loss_word)(W, tasks, **parameters) + mtl.ridge(W)).form()
    return form if functions is None else replace(form, functions=tuple(functions))


def _random_proof(path, form, rng, size):
    blocks = {b.name: rng.normal(size=b.shape) * size for b in form.blocks}
    u = [rng.normal(size=loss.tasks.n_samples) for loss in form.losses]
    v = [f.atom.dual_project(rng.normal(size=f.map.shape)) for f in form.functions]
    return save_proof(path, form, blocks, u, v, CLAIM, {})


def _holds(path, tasks, exact=True, balanced_tol=1e-9):
    """balanced_tol: of lower ends whose multipliers are moved until they obey stationarity, by systems solved apart in either arithmetic."""
    coarse = mtl.verify_proof(path, tasks)
    fine = mtl.verify_proof(path, tasks, exact=True) if exact else coarse
    assert not coarse.unchecked and not fine.unchecked
    for verdict in (coarse, fine):
        assert verdict.low <= verdict.high or verdict.violation > 0
    assert fine.high <= coarse.high
    # one scaling of the multipliers is as good as another: the lower ends may differ either way, by rounding
    assert abs(coarse.low - fine.low) <= balanced_tol * (abs(fine.low) + abs(fine.high))
    return coarse


@pytest.mark.parametrize("scale", SCALES)
def test_functions(tmp_path, scale, every_case):
    """Every other word has ordinary columns, the others those of all sizes."""
    for word in sorted(FUNCTIONS)[SCALES.index(scale) :: 2] if every_case else ["l1_norm"]:
        _hold_a_function(tmp_path, word, scale)


def _hold_a_function(tmp_path, word, scale):
    for k, atom in enumerate(REGISTRY[word].examples()):
        rng = np.random.default_rng(k)
        tasks = _scaled_tasks(scale, "real", k)
        # the examples of atoms are for matrices of 5 x 4: the first rows of W
        rows = LinearMap(
            (MapEntry("W", 1.0 if k % 2 else 0.5, np.eye(6)[:5]),),
            (5, 4),
            None if k % 3 else rng.normal(size=(5, 4)),
        )
        ridge = FunctionTerm(REGISTRY["ridge"](), 0.3, LinearMap((MapEntry("W"),), (6, 4)), "ridge(W)")
        f = FunctionTerm(atom, 1.0 if isinstance(atom, Set) else 0.7, rows, word)
        for functions in ([f, ridge], [f]):
            # a random proof is far from stationary, and columns of 1e-6 to 1e6 amplify how far it is moved
            verdict = _holds(
                _random_proof(tmp_path / "proof", _form("squared_loss", tasks, functions), rng, 0.01),
                tasks,
                k == 0,
                1e-9 if scale == SCALES[0] else 1e-7,
            )
            if word != "kronecker_ridge":  # semidefinite but for rounding: proven for stated weights
                # the last row has no term but the loss, whose multipliers are balanced there
                assert not verdict.region or (ridge not in functions and scale != "ordinary")


LOSSES = sorted(n for n, c in REGISTRY.items() if issubclass(c, Loss) and not issubclass(c, LabelGraphLoss))


@pytest.mark.parametrize("scale", SCALES)
def test_losses(tmp_path, scale, every_case):
    """Every other loss has an intercept with ordinary columns, the others with those of all sizes."""
    for word in LOSSES if every_case else ["absolute_loss"]:
        _hold_a_loss(tmp_path, word, scale)


def _hold_a_loss(tmp_path, word, scale):
    intercept = (LOSSES.index(word) + SCALES.index(scale)) % 2 == 1
    for k, atom in enumerate(REGISTRY[word].examples()):
        if k > 5 and k % 2 != SCALES.index(scale):  # the many metrics take turns
            continue
        if intercept and not atom.takes_intercept:
            continue
        rng = np.random.default_rng(k)
        tasks = _scaled_tasks(scale, atom.labels, k)
        form = _form(word, tasks, None, intercept, **atom.arguments())
        size = 1.0 if scale == "ordinary" else 1e-6
        verdict = _holds(_random_proof(tmp_path / "proof", form, rng, size), tasks, k == 0)
        if scale == "ordinary":
            assert not verdict.region or word == "structured_hinge" or intercept


@pytest.mark.slow
def test_graphs_of_labels_and_wide_matrices(tmp_path):
    for word in ("clique_hinge", "pairwise_log_loss"):
        t, U, V = models.label_graph(5, n=6, edges=[(0, 1), (1, 2, 3)])
        form = mtl.minimize(getattr(mtl, word)(U, V, t) + mtl.ridge(U) + mtl.trace_norm(V)).form()
        _holds(_random_proof(tmp_path / "graph", form, np.random.default_rng(0), 0.3), t)


@pytest.mark.slow
@for_each(
    "word, labels, intercept",
    [("squared_loss", "real", False), ("hinge_loss", "sign", True), ("logistic_loss", "sign", False)],
)
def test_the_largest_loss_with_shares_as_a_witness(tmp_path, word, labels, intercept):
    tasks, W = with_weights(models.shared(3, n=9, labels=labels), intercept=intercept)
    problem = mtl.minimize(mtl.worst_task(getattr(mtl, word)(W, tasks)) + 0.3 * mtl.ridge(W))
    form, rng = problem.form(), np.random.default_rng(0)
    for size in (0.01, 1.0):  # any multipliers prove some bound
        _holds(_random_proof(tmp_path / "random", form, rng, size), tasks)
    solution = problem.solve(tol=1e-7)  # what `confirmed` holds the file to
    verdict = mtl.verify_proof(solution.certificate.save(tmp_path / "solved"), tasks)
    assert verdict.confirmed, str(verdict)
    assert verdict.low <= solution.objective * (1 + 1e-6)


def test_shares_that_are_not_the_best_never_prove_too_much(tmp_path):
    tasks, W = with_weights(models.shared(3, n=9, labels="real"))
    problem = mtl.minimize(mtl.worst_task(mtl.squared_loss(W, tasks)) + 0.3 * mtl.ridge(W))
    solution = problem.solve(tol=1e-8)  # so that shares that are not the best show
    path = solution.certificate.save(tmp_path / "solved")
    best = mtl.verify_proof(path, tasks)
    assert best.confirmed and best.low <= solution.objective <= best.high * (1.0 + 1e-12)
    proof, _ = read_proof(path)
    for shares in (
        np.ones(tasks.n_tasks),
        np.arange(tasks.n_tasks) == 0.0,
        5.0 * (np.arange(tasks.n_tasks) == 0),
    ):
        proof["losses"][0]["witness"] = {"shares": np.asarray(shares, float)}
        write_proof(tmp_path / "changed", proof, None)
        changed = mtl.verify_proof(tmp_path / "changed.npz", tasks)
        assert changed.low < best.low <= changed.high
        assert not changed.confirmed
    proof["losses"][0]["witness"] = {"shares": 5.0 - 6.0 * (np.arange(tasks.n_tasks) > 0)}
    with pytest.raises(DataError, match="shares"):
        mtl.verify_proof(write_proof(tmp_path / "negative", proof, None), tasks)
