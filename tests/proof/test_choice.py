"""Saved choices of a parameter: confirmed as they are, refused with a reason once forged, and right whatever fits they hold."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.checker.choice_check import CheckedFold, possible_score
from mtldsl.certificates.checker.choice_file import read_choice, write_choice
from mtldsl.certificates.checker.proof_file import DataArrays
from mtldsl.cli.command_line import main
from mtldsl.data.labels import OneClassWarning
from mtldsl.errors import DataError, ModelError
from mtldsl.problems import proven_choice
from mtldsl.solution.measures import measure
from tests.loops import for_each
from tests.models import separate, shared

RIDGE = "lam ridge"
#: loss, labels, intercept, metric, tasks, what lam multiplies
CASES = [
    (mtl.logistic_loss, "sign", True, "accuracy", shared, RIDGE),
    (mtl.squared_loss, "real", True, "r2", separate, "lam loss"),
    (mtl.hinge_loss, "sign", False, "f1", shared, "lam loss"),
    (mtl.squared_hinge_loss, "sign", True, "roc_auc", separate, RIDGE),
    (mtl.absolute_loss, "real", True, "mae", shared, RIDGE),
    (mtl.huber_loss, "real", False, "mse", separate, RIDGE),
    (mtl.exponential_loss, "sign", True, "balanced_accuracy", shared, RIDGE),
    (mtl.logistic_loss, "sign", True, "precision", "sparse", RIDGE),
    (mtl.logistic_loss, "sign", False, "recall", "missing", RIDGE),
    (mtl.squared_loss, "real", True, "nmse", "missing", "lam loss"),
]


def model(loss, labels, intercept, metric, data, grows, seed=0):
    """(problem, parameter, tasks)"""
    if data in ("sparse", "missing"):
        tasks = shared(seed, 40, labels, density=0.6 if data == "sparse" else None, missing=0.2 * (data == "missing"))  # fmt: skip
    else:
        tasks = data(seed=seed, labels=labels)
    W, lam = mtl.Weights(tasks, intercept=intercept), mtl.Parameter(1.0)
    first, second = loss(W, tasks), 0.5 * mtl.ridge(W)
    return mtl.minimize(first + lam * second if grows == RIDGE else lam * first + second), lam, tasks


def choose(problem, lam, metric, between=(0.3, 3.0), regret=1.0, folds=2, **options):
    return problem.cross_validate(
        lam, between=between, regret=regret, metric=metric, folds=folds, refit=False, **options
    )


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """(the problem, its tasks, the choice as its file holds it)"""
    problem, lam, tasks = model(*CASES[0])
    path = choose(problem, lam, "accuracy", regret=0.1, between=(0.7, 1.4)).proof.save(
        tmp_path_factory.mktemp("choice") / "choice"
    )
    assert mtl.verify_proof(path, problem).holds
    return problem, tasks, read_choice(path)


@pytest.mark.slow
@for_each("case", CASES)
def test_saved_choices_are_confirmed(tmp_path, case):
    """The checker proves what the search did, to a little more: it finds intercepts and rounding in its own way."""
    problem, lam, tasks = model(*case)
    metric = case[3]
    found = choose(problem, lam, metric, regret=0.1, max_fits=3)
    verdict = mtl.verify_proof(found.proof.save(tmp_path / "choice.npz"), problem)
    assert verdict.holds and verdict.model_is_named and not verdict.notes
    low, high = verdict.score
    assert low - 1e-12 <= found.mean[found._best] <= high + 1e-12
    assert verdict.regret <= 1.1 * found.proof.value + 1e-9
    assert mtl.verify_proof(tmp_path / "choice.npz", tasks).confirmed


@pytest.mark.slow
@for_each("case", CASES)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_scores_lie_in_the_boxes_of_any_fits(tmp_path, case, noise):
    """Weights, multipliers and intercepts with noise in them prove wider boxes, never wrong ones."""
    problem, lam, tasks = model(*case, seed=1)
    path = choose(problem, lam, case[3], regret=5.0, max_fits=2).proof.save(tmp_path / "choice.npz")
    choice, rng, by = read_choice(path), np.random.default_rng(0), measure(case[3])
    for name in ("weights", "intercepts"):
        for one in choice[name] or []:
            one += noise * np.abs(one).max() * rng.normal(size=one.shape)
    for one in choice["multipliers"]:
        one *= 1.0 - noise  # they sum to zero still
    for low, high in ((0.3, 3.0), (0.9, 1.1)):
        folds = [CheckedFold(choice, k, DataArrays.of_tasks(tasks)) for k in range(2)]
        boxes = [fold.box(low, high, 0, len(choice["values"]) - 1) for fold in folds]
        for value in (low, np.sqrt(low * high), high):
            lam.value = float(value)
            for k, box in enumerate(boxes):
                fold = choice["folds"][k]
                train, held_out = (tasks.take_rows(rows_of(tasks, fold[side] > 0)) for side in fold)
                exact = problem.with_tasks(train).solve(tol=1e-11)
                z = np.concatenate(held_out.per_task(held_out.forward(exact.W)))
                if exact.intercept is not None:
                    z = z + np.repeat(exact.intercept, held_out.counts)
                slack = 2e-4 * (1.0 + np.abs(z))  # what a fit to 1e-11 may be off
                assert (box.low - slack <= z).all() and (z <= box.high + slack).all()
                truth, possible = held_out.per_task(held_out.targets), possible_score(folds[k], case[3], box)
                own = [by.of_task(y, answers(by, one)) for y, one in zip(truth, held_out.per_task(z), strict=True)]  # fmt: skip
                assert possible.low - 1e-3 <= np.nanmean(own) <= possible.high + 1e-3
    assert np.isfinite([*boxes[0].low, *boxes[0].high]).all()


def answers(by, z):
    return np.where(z >= 0.0, 1.0, -1.0) if by.needs == "labels" else z


def rows_of(tasks, mask):
    if tasks.is_shared:
        return np.flatnonzero(mask)
    return [np.flatnonzero(own) for own in tasks.per_task(mask)]


def test_an_optimum_at_the_end_of_the_diameter_is_just_inside(tmp_path):
    """One row that hardly counts, and weights of 1 without multipliers: the optimum is 0, the other end."""
    tasks = mtl.Tasks.shared(np.array([[1e-3], [1e-3], [1.0]]), np.zeros((3, 1)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.ridge(W))
    found = choose(problem, lam, "mse", folds=[([0, 1], [2])], max_fits=2)
    choice = read_choice(found.proof.save(tmp_path / "choice.npz"))
    choice["weights"][0][:] = 1.0
    choice["multipliers"][0][:] = 0.0
    fold = CheckedFold(choice, 0, DataArrays.of_tasks(tasks))
    box = fold.box(1.0, 1.0, 0, 1)
    assert -1e-5 < box.low[0] <= 0.0 and 1.0 <= box.high[0] < 1.0 + 1e-5
    assert -1e-5 < fold.linear_bound(box, 0, np.ones(1)) <= 0.0
    assert -2.0 - 1e-5 < fold.linear_bound(box, 0, np.full(1, -2.0)) <= -2.0


def test_intercepts_lie_where_they_are_bounded(tmp_path):
    """The row in the middle of those learned on has the intercept beside centred rows as its score, which moves with lam."""
    X = np.array([0.0, 0.1, 0.2, 0.3, 4.0, 9.0])
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    tasks = mtl.Tasks.shared(np.append(X, X.mean())[:, None], np.append(y, 1.0)[:, None])
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.ridge(W))
    folds = [(np.arange(6), [6])]
    found = choose(problem, lam, "accuracy", (0.25, 4.0), folds=folds, max_fits=2, tol=1e-12)
    choice = read_choice(found.proof.save(tmp_path / "choice.npz"))
    box = CheckedFold(choice, 0, DataArrays.of_tasks(tasks)).box(1.0, 1.0, 0, 1)
    learned = tasks.take_rows(np.arange(6))
    exact = problem.with_tasks(learned).solve(tol=1e-12).decision_function(tasks.X[6:])[0, 0]
    assert box.low[0] <= exact <= box.high[0] < box.low[0] + 3.0
    ends = [choice["intercepts"][0][k, 0] + X.mean() * choice["weights"][0][k, 0, 0] for k in range(2)]
    assert min(abs(exact - end) for end in (np.mean(ends), box.low[0], box.high[0])) > 0.05


def _wider(choice):
    choice["claimed"]["low"] = 0.1


def _stretched(choice):
    choice["claimed"]["low"] = choice["intervals"][0, 0] = 0.01


def _hole(choice):
    choice["intervals"] = np.delete(choice["intervals"], 1, axis=0)


def _overlap(choice):
    choice["folds"][0]["held_out"] |= choice["folds"][0]["train"]


def _better_weights(choice):
    """The chosen fit is moved to what a fit with fewer mistakes on the held-out rows has."""
    k = _chosen(choice)
    for one in choice["weights"]:
        one[k] *= 20.0


def _weights_beyond_float64(choice):
    """The gap of the last fold is NaN, which a maximum of Python passes over."""
    choice["weights"][-1][_chosen(choice)][0, 0] = 1e170


def _other_multipliers(choice):
    for one in choice["multipliers"]:
        one *= 0.9


def _larger_multipliers(choice):
    for one in choice["multipliers"]:
        one *= 1e6


def _stronger_ridge(choice):
    choice["form"]["functions"][0]["coefficient"] *= 1.5


def _grows(choice):
    choice["grows"] = "loss"


def _chosen(choice):
    return int(np.flatnonzero(choice["values"] == choice["claimed"]["chosen"])[0])


def _other_value(choice):
    k = _chosen(choice)
    choice["values"][k] *= 1.3
    choice["claimed"]["chosen"] = choice["values"][k]


def _swapped_folds(choice):
    choice["weights"].reverse()


def _other_folds(choice):
    """One row that was learned on is scored in place of another."""
    fold = choice["folds"][0]
    a, b = np.flatnonzero(fold["train"])[0], np.flatnonzero(fold["held_out"])[0]
    for side in fold.values():
        side[[a, b]] = side[[b, a]]


def _fewer_rows(choice):
    """A fold that learns on a row less, of which its fits have multipliers."""
    choice["folds"][0]["train"][np.flatnonzero(choice["folds"][0]["train"])[0]] = 0


def _claim(**changed):
    return lambda choice: choice["claimed"].update(
        {name: change(choice["claimed"][name]) for name, change in changed.items()}
    )


#: forgery of what is claimed or of the intervals, what the checker says of it
FORGED_CLAIMS = [
    (_wider, "do not reach from 0.1 "),
    (_claim(high=lambda x: 2.0 * x), "do not reach"),
    (_stretched, "regret of .* is below"),
    (_hole, "hole between the intervals"),
    (_overlap, "rows that it scores"),
    (_claim(regret=lambda x: 0.5 * x), "regret of .* is below"),
    (_claim(score=lambda x: x + 1e-3), "is not that of the chosen fit"),
    (_claim(chosen=lambda x: 1.1 * x), "of which it has no fit"),
]  # fmt: skip

#: the same of weights, multipliers, folds and of what the file says
FORGED_PARTS = [
    (_better_weights, "relative gap"),
    (_weights_beyond_float64, "relative gap of inf"),
    (_other_multipliers, "regret of .* is below"),
    (_larger_multipliers, "do not sum to zero"),
    (_stronger_ridge, "regret of .* is below"),
    (_grows, "regret of .* is below"),
    (_other_value, "relative gap"),
    (_swapped_folds, "regret of .* is below|relative gap"),
    (_other_folds, "do not sum to zero"),
    (_fewer_rows, "has multipliers of"),
    (lambda choice: choice.update(metric="log_loss"), "is not among the measures"),
    (lambda choice: choice.update(metric="mse"), "scores of logistic_loss are none"),
    (lambda choice: choice.update(metric="f1"), "not that of the chosen fit"),
    (lambda choice: choice["form"]["functions"][0].update(word="l1_norm"), "not one loss and one ridge"),
    (lambda choice: choice["intervals"].__setitem__((0, 2), 99.0), "the fits of intervals"),
    (lambda choice: choice["intervals"].__setitem__((0, 2), 0.5), "not whole"),
    (lambda choice: choice.update(weights=choice["weights"][:1]), "weights that do not fit"),
    (lambda choice: choice.update(intercepts=None), "intercepts"),
    (lambda choice: choice.update(more=1), "unknown 'more'"),
]  # fmt: skip


def refusal(path, *named):
    """Return why a file is refused, or not confirmed."""
    try:
        verdict = mtl.verify_proof(path, *named)
    except DataError as error:
        return str(error)
    assert not verdict.confirmed and not verdict.holds
    return "; ".join(verdict.notes)


def check_refused(honest, folder, forge, reason):
    _, tasks, choice = honest
    forged = copy.deepcopy(choice)
    forge(forged)
    said = refusal(write_choice(folder / "forged", forged), tasks)
    assert re.search(reason, said), said


@for_each("forge,reason", FORGED_CLAIMS)
def test_forged_claims_are_refused(honest, tmp_path, forge, reason):
    check_refused(honest, tmp_path, forge, reason)


@for_each("forge,reason", FORGED_PARTS)
def test_forged_parts_are_refused(honest, tmp_path, forge, reason):
    check_refused(honest, tmp_path, forge, reason)


def test_choices_are_of_the_data_and_model_that_are_named(honest, tmp_path):
    problem, tasks, choice = honest
    path = write_choice(tmp_path / "choice", choice)
    assert "does not hold its data" in refusal(path)
    X = tasks.X.copy()
    X[0, 0] += 1e-12
    labels = tasks.targets.reshape(tasks.n_tasks, -1).T.copy()
    assert "X differs" in refusal(path, mtl.Tasks.shared(X, labels))
    labels[0, 0] *= -1.0
    assert "y differs" in refusal(path, mtl.Tasks.shared(tasks.X, labels))
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    loss, ridge = mtl.logistic_loss(W, tasks), 0.5 * mtl.ridge(W)
    assert "the function ridge is not in it" in refusal(path, mtl.minimize(loss + lam * mtl.ridge(W)))
    assert "lam multiplies its loss" in refusal(path, mtl.minimize(lam * loss + ridge))
    square = (lam * lam + 2.0) / 3.0 * ridge  # lam times the ridge at 1 and at 2
    assert "lam multiplies neither" in refusal(path, mtl.minimize(loss + square))
    mu = mtl.Parameter(1.0, name="mu")
    assert "no such parameter" in refusal(path, mtl.minimize(loss + mu * ridge))
    assert "leave out exact" in refusal_of(lambda: mtl.verify_proof(path, tasks, exact=True))
    assert "every row once" in str(mtl.verify_proof(path, problem))


def refusal_of(work):
    with pytest.raises((DataError, ModelError)) as error:
        work()
    return str(error.value)


def test_the_choice_is_not_the_tolerance_of_its_fits(honest, tmp_path):
    _, tasks, choice = honest
    path = write_choice(tmp_path / "choice", choice)
    verdict = mtl.verify_proof(path, tasks)
    assert verdict.confirmed and 0.0 < verdict.gap < 1e-6
    assert not mtl.verify_proof(path, tasks, tol=0.5 * verdict.gap).confirmed


def test_the_command_checks_a_choice(honest, tmp_path, capsys):
    problem, _, choice = honest
    forged = copy.deepcopy(choice)
    forged["claimed"]["regret"] *= 0.5
    whole = problem.solve().certificate.save(tmp_path / "whole.npz", data=True)
    codes = [
        main(["verify", str(write_choice(tmp_path / "one", one)), str(whole)]) for one in (choice, forged)
    ]
    assert codes == [0, 1]
    assert "the claim is NOT confirmed" in capsys.readouterr().out


def test_choices_that_no_checker_reads_are_not_saved(tmp_path, monkeypatch):
    path = tmp_path / "choice.npz"

    def said(problem, lam, metric="accuracy", **options):
        proof = choose(problem, lam, metric, max_fits=2, **options).proof
        return refusal_of(lambda: proof.save(path))

    tasks = shared(labels="sign")
    W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
    loss, ridge = mtl.logistic_loss(W, tasks), mtl.ridge(W)
    assert "not one loss and one ridge" in said(mtl.minimize(loss + lam * mtl.l1_norm(W) + ridge), lam)
    assert "log_loss is not among" in said(mtl.minimize(loss + lam * ridge), lam, "log_loss")
    assert "write mean=False" in said(mtl.minimize(mtl.logistic_loss(W, tasks, mean=True) + lam * ridge), lam)
    weighted = shared(labels="sign", sample_weights=True)
    W = mtl.Weights(weighted)
    assert "sample weights" in said(mtl.minimize(mtl.logistic_loss(W, weighted) + lam * mtl.ridge(W)), lam)
    scaled = shared(labels="sign").standardize(each_fold=True)
    W = mtl.Weights(scaled)
    assert "scaled or filled in anew" in said(
        mtl.minimize(mtl.logistic_loss(W, scaled) + lam * mtl.ridge(W)), lam
    )
    rare = mtl.Tasks.shared(
        tasks.X, np.where(np.arange(30)[:, None] < [15, 1], 1.0, -1.0), task_names=["a", "b"]
    )
    W = mtl.Weights(rare)
    with pytest.warns(OneClassWarning):
        assert "leaves out the tasks 'b'" in said(
            mtl.minimize(mtl.logistic_loss(W, rare) + lam * mtl.ridge(W)), lam
        )
    problem, lam, _ = model(*CASES[0])
    monkeypatch.setattr(proven_choice, "SETTINGS", replace(proven_choice.SETTINGS, kept_bytes=1000))
    large = choose(problem, lam, "accuracy", max_fits=2).proof
    assert "they are too large" in refusal_of(lambda: large.save(path))
    monkeypatch.undo()
    copied = copy.deepcopy(choose(problem, lam, "accuracy", max_fits=2).proof)
    assert "were not kept" in refusal_of(lambda: copied.save(path))
    assert not path.exists()
