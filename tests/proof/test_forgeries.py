"""Directed forgeries: whatever was done to a proof, field by field, it is refused, or not confirmed, or its interval holds the optimum of the
model and the data that the user names. The truth is the honest proof's own interval.
"""

import copy

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.certificates.checker.proof_file import read_proof, write_proof
from mtldsl.cli.command_line import main
from mtldsl.errors import DataError
from tests import models
from tests.loops import for_each
from tests.models import with_weights
from tests.optima import solution_of
from tests.proof.test_rank_deficient import model

#: forgeries of a kind and a model, and those that fractions judge
_MANY, _FEW = 2, 1


def _equal_to():
    t, W = with_weights(models.shared(3))
    return mtl.minimize(mtl.squared_loss(W, t) + 0.1 * mtl.ridge(W), subject_to=[W == 0.5])


def _worst_task():
    t, W = with_weights(models.shared(4), intercept=True)
    return mtl.minimize(mtl.worst_task(mtl.squared_loss(W, t)) + 0.3 * mtl.ridge(W))


def _orders():
    t, W = with_weights(models.shared(6, n=10, labels="sign"))
    return mtl.minimize(mtl.structured_hinge(W, t, metric=mtl.metrics.AveragePrecision()) + mtl.ridge(W))


def _groups():
    t = models.shared(7)
    L, S, K = (mtl.Weights(t, name=name) for name in "LSK")
    terms = mtl.latent_group_norm(L, [[0, 1, 2], [2, 3, 4, 5]]) + mtl.squared_cluster_norm(S, 0.1, 1.1, 2.4)
    return mtl.minimize(
        mtl.squared_loss(L + S + K, t) + terms + mtl.tree_norm(K, [[0, 1], [0, 1, 2, 3], [4], [5]])
    )


def _free():
    t, W = with_weights(models.shared(8), intercept=True)
    return mtl.minimize(mtl.squared_loss(W, t) + 2.0 * mtl.mean_regularizer(W))


def levels(loss):
    """Three tasks with all levels of a category, one of which the first lacks."""
    return model(loss, "dummies", "nothing", False).form().losses[0].tasks


def _parts():
    t, W = with_weights(levels("squared_loss"))
    held = [W[:2] >= 0.1, W[:, 0] == W[:, 1], np.array([[0.0, 1, 1, 0, 1]]) @ W <= 0.3]
    return mtl.minimize(
        mtl.squared_loss(W, t) + mtl.ridge(W @ np.array([[1.0], [-1.0], [0.0]])), subject_to=held
    )


def _balls():
    t = levels("squared_hinge_loss")
    W, S = mtl.Weights(t, intercept=True), mtl.Weights(t, name="S")
    held = [mtl.l21_norm(W[:3]) <= 0.5, mtl.trace_norm(S) <= 0.7, W + S <= 0.6]
    return mtl.minimize(
        mtl.squared_hinge_loss(W + S, t) + mtl.mean_regularizer(W) + 0.1 * mtl.ridge(S), subject_to=held
    )


def _classes():
    t, W = with_weights(models.shared(15, labels="classes"), intercept=True)
    return mtl.minimize(mtl.softmax_loss(W, t) + mtl.mean_regularizer(W))


OWN = {
    "dummies": lambda: model("squared_loss", "dummies", "mean", True),
    "kinks": lambda: model("absolute_loss", "dummies", "variation", True), "equal_to": _equal_to,
    "worst_task": _worst_task, "classes": _classes, "orders": _orders, "groups": _groups, "free": _free,
    "parts": _parts, "balls": _balls,
}  # fmt: skip
NAMES = (
    *OWN, "robust_multi_task_low_rank_plus_outlier_tasks", "logistic_group_sparse_low_rank_columns_on_the_simplex",
    "sparse_group_lasso_nonnegative", "quantile_loss_in_a_trace_norm_ball", "huber_graph_laplacian_sparse", "l21_ball_and_linear_equality",
    "f_score_low_rank_plus_sparse_with_intercept", "a_metric_of_its_own_for_every_task_group_sparse",
    "label_graph_of_two_edges_with_costs_and_sample_weights", "precision_in_a_trace_norm_ball_with_total_variation", "two_losses_on_one_matrix",
    "square_root_loss_around_known_weights_sparse", "hinge_low_rank_with_intercept_and_missing_labels", "absolute_loss_total_variation_over_tasks",
    "square_root_loss_low_rank", "poisson_group_sparse_ridge", "feature_groups_mean_regularizer", "label_graph_of_low_rank_with_a_triple",
    "label_likelihood_with_a_group_norm_of_edges", "cox_group_sparse_with_missing_labels_and_sample_weights",
)  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """name -> (problem, its proof, its data, the honest verdict), each solved once."""
    folder, kept = tmp_path_factory.mktemp("honest"), {}

    def of(name):
        if name not in kept:
            problem = OWN[name]() if name in OWN else None
            problem, solution = (problem, problem.solve(tol=1e-6)) if problem else solution_of(name)
            path = solution.certificate.save(folder / name, data=True)
            verdict = mtl.verify_proof(path, problem)
            assert verdict.confirmed and verdict.model_is_named, str(verdict)
            kept[name] = problem, *read_proof(path), verdict
        return kept[name]

    return of


# ------------------------------------------------------------------------------------------------ what is forged
_NUMBERS = (0.0, -1.0, 1e-300, 1e-12, 0.5, 3.0, 1e9, 1e300, -1e300)
_WRONG = (
    None, True, False, "1", "inf", [], {}, [1.0], np.zeros(0), np.zeros((1, 1)), np.array([True]),
    float("nan"), float("inf"), 10**30,
)  # fmt: skip


def _pick(rng, values):
    return values[int(rng.integers(len(values)))]


def _other(array, rng):
    """An array changed: one entry or all, its shape, or its kind."""
    array = np.array(array, dtype=float)
    how, j = int(rng.integers(9)), int(rng.integers(max(array.size, 1)))
    if how == 0:
        return array * _pick(rng, (-1.0, 0.0, 0.5, 2.0, 1e6))
    if how == 1:
        return array + rng.normal(size=array.shape) * 10.0 ** rng.uniform(-15, 3)
    if how == 2 and array.size:
        array.flat[j] = _pick(rng, _NUMBERS)
        return array
    if how == 3 and array.size:
        array.flat[j] = _pick(rng, (np.nan, np.inf, -np.inf))
        return array
    if how == 4:
        return array.reshape(-1)[: max(array.size - 1, 0)]
    if how == 5:
        return array.reshape(1, -1) if array.ndim == 1 else array.T.reshape(-1)
    if how == 6:
        return array.reshape(-1)[:1].reshape((1,) * array.ndim)
    if how == 7:
        return array.astype(bool)
    return np.repeat(array, 2, axis=0)


def _term(proof, rng, kinds=("losses", "functions")):
    found = [one for kind in kinds for one in proof[kind]]
    return _pick(rng, found) if found else None


def _point(proof, rng):
    name = _pick(rng, sorted(proof["point"]))
    proof["point"][name] = _other(proof["point"][name], rng)
    if rng.random() < 0.2:
        proof["point"][name + "x"] = proof["point"][name]


def _multipliers(proof, rng):
    one = _term(proof, rng)
    if one["multipliers"] is not None:
        one["multipliers"] = _other(one["multipliers"], rng)
        if rng.random() < 0.1:
            one["multipliers"] = _pick(rng, _WRONG)


def _witness(proof, rng):
    """Every array of a witness is changed: counts beyond their range, halves, weights below 0 and above 1, labels that are not there."""

    def changed(value):
        if isinstance(value, np.ndarray):
            how = int(rng.integers(6))
            own = value.astype(float)
            forged = (own + 0.5, -own - 1.0, own * 1e6, own * 0.999 + 0.3, _other(value, rng), value)[how]
            return forged
        if isinstance(value, list):
            return [changed(one) for one in value]
        return {key: changed(one) for key, one in value.items()} if isinstance(value, dict) else value

    for one in proof["losses"]:
        one["witness"] = changed(one["witness"])
        if rng.random() < 0.1:
            one["witness"] = _pick(rng, (*_WRONG, {"shares": np.ones(4)}, [None], [[np.zeros(1)] * 3] * 4))


def _at_least(name, shape, multiplier):
    """A constraint of a block, [block] >= 5, with the same multiplier for every entry."""
    entry = {"block": name, "coefficient": 1.0, "left": None, "right": None}
    own = {"entries": [entry], "shape": list(shape), "offset": None}
    stated = {
        "word": "at_least",
        "typed": "",
        "parameters": {"bound": 5.0},
        "coefficient": 1.0,
        "convex": True,
    }
    return stated | {"map": own, "multipliers": np.full(shape, multiplier)}


def _functions(proof, rng):
    """A term or a constraint left out, doubled, made another, or another coefficient or flag."""
    functions = proof["functions"]
    if not functions:
        return
    how, k = int(rng.integers(6)), int(rng.integers(len(functions)))
    if how == 0:
        del functions[k]
    elif how == 1:
        functions.append(copy.deepcopy(functions[k]))
    elif how == 2:
        functions[k]["coefficient"] = _pick(rng, (*_NUMBERS, *_WRONG))
    elif how == 3:
        functions[k]["convex"] = _pick(rng, (False, 1, 0, "true", None))
    elif how == 4:
        functions[k]["word"] = _pick(rng, ("at_least", "trace_norm", "ridge", "log_rank", "", 3))
    else:
        name = _pick(rng, sorted(proof["point"]))
        functions.append(_at_least(name, proof["point"][name].shape, -(10.0 ** rng.uniform(-3, 6))))


def _parameters(proof, rng):
    own = _term(proof, rng)["parameters"]
    while isinstance(own.get("of"), dict) and rng.random() < 0.7:
        own = own["of"].get("parameters", own["of"])
    if own and rng.random() < 0.8:
        name = _pick(rng, sorted(own))
        value = own[name]
        own[name] = _other(value, rng) if isinstance(value, np.ndarray) else _pick(rng, (*_NUMBERS, *_WRONG))
        if isinstance(value, list) and value:
            own[name] = _pick(
                rng, ([*value, value[0]], value[:-1], [[0, 0]], [[-1]], [[10**9]], [[True]], [[0.5]])
            )
    else:
        own["another"] = _pick(rng, _WRONG)


def _coefficients(proof, rng):
    one = _term(proof, rng, ("losses",))
    one["coefficients"] = _pick(rng, (_other(one["coefficients"], rng), one["coefficients"][:1], *_WRONG))


def _maps(proof, rng):
    own = _term(proof, rng)["map"]
    e, how = _pick(rng, own["entries"]), int(rng.integers(8))
    d, m = proof["point"][e["block"]].shape
    if how == 0:
        e["coefficient"] = _pick(rng, (*_NUMBERS, *_WRONG))
    elif how == 1:
        thrice = sparse.csr_array(np.eye(d) * 3)
        e["left"] = _pick(rng, (np.eye(d) * 2, np.ones((1, d)), np.zeros((d, d)), np.ones(d), thrice, "I"))
    elif how == 2:
        forged = (np.eye(m)[:, ::-1], np.ones((m, 1)), np.zeros((m, m)), np.ones(m), np.ones((0, m)))
        e["right"] = _pick(rng, forged)
    elif how == 3:
        forged = ([1, 1], [d, 1], [m, d], [0, 0], [d, m, 1], [d], "x", [float(d), m], [True, m])
        own["shape"] = _pick(rng, forged)
    elif how == 4:
        ones, unknown = np.ones(own["shape"]), np.full(own["shape"], np.nan)
        own["offset"] = _pick(rng, (ones, np.ones((1, 1)), unknown, 3.0, []))
    elif how == 5:
        own["entries"] = _pick(rng, ([], [*own["entries"], own["entries"][0]], None))
    elif how == 6:
        e["block"] = _pick(rng, (*sorted(proof["point"]), "nothing", 0))
    else:
        e["also"] = 1.0


def _regions(proof, rng):
    for name, x in proof["point"].items():
        tiny, unknown = np.full(x.shape, 1e-300), np.full(x.shape, np.nan)
        forged = (np.zeros(x.shape), np.abs(x), x, tiny, 1.0, np.zeros((1, 1)), unknown)
        proof["region"][name] = _pick(rng, forged)
    if rng.random() < 0.7:  # beside a point and multipliers that leave everything to be paid
        for x in proof["point"].values():
            x *= _pick(rng, (0.0, 0.5, 1.0))
        one = _term(proof, rng)
        if one["multipliers"] is not None:
            one["multipliers"] = one["multipliers"] * rng.uniform(0, 3)


def _hashes(proof, rng):
    one = _pick(rng, proof["data"])
    how, name = int(rng.integers(6)), _pick(rng, sorted(one["hashes"]))
    if how == 0:
        del one["hashes"][name]
    elif how == 1:
        one["hashes"][name] = _pick(rng, ("0" * 64, "", None, one["hashes"][name].upper(), 3))
    elif how == 2:
        one["hashes"]["more"] = "0" * 64
    elif how == 3:
        one["shared"] = _pick(rng, (not one["shared"], None, 1, "true"))
    elif how == 4:
        proof["data"].append(copy.deepcopy(one))
    else:
        proof["losses"][0]["data"] = _pick(rng, (True, -1, 1, 7, 0.0, "0", None))


def _claims(proof, rng):
    key = _pick(rng, ("objective", "dual_bound", "tol", "scale", "violation", "status"))
    proof["claimed"][key] = _pick(rng, (*_NUMBERS, *_WRONG))
    for x in proof["point"].values():
        x *= _pick(rng, (0.0, 0.9, 1.0))


def _blocks(proof, rng):
    one, how = _pick(rng, proof["blocks"]), int(rng.integers(5))
    if how == 0:
        proof["blocks"].append(dict(one))
    elif how == 1:
        one["shape"] = _pick(rng, ([1, 1], one["shape"][::-1], [0, 3], [10**30, 1], [1.0, 2.0], "x"))
    elif how == 2:
        one["intercept_of"] = _pick(rng, (None, one["name"], "nothing", sorted(proof["point"])[0]))
    elif how == 3:
        one["name"] = _pick(rng, ("other", "", 3, None))
    else:
        proof["losses"][0]["intercepts"] = _pick(rng, ([one["name"]], [one["name"]] * 2, ["x"], None, []))


def _tops(proof, rng):
    key = _pick(
        rng,
        ("constant", "model", "losses", "functions", "data", "blocks", "point", "claimed", "region", "more"),
    )
    proof[key] = _pick(rng, (*_NUMBERS, *_WRONG))


KINDS = {
    "point": _point, "multipliers": _multipliers, "witness": _witness, "functions": _functions, "parameters": _parameters,
    "coefficients": _coefficients, "maps": _maps, "regions": _regions, "hashes": _hashes, "claims": _claims, "blocks": _blocks, "tops": _tops,
}  # fmt: skip


def _greedy(proof, rng, sound):
    """The claims that a liar makes: a scale and a tolerance beyond all, and the numbers that suit what was forged."""
    if isinstance(proof.get("claimed"), dict) and rng.random() < 0.7:
        proof["claimed"] |= {
            "scale": 1e300,
            "tol": _pick(rng, (0.9, 1e300)),
            "objective": sound.high,
            "dual_bound": sound.low,
        }


def _judge(path, problem, sound, exact=False) -> str:
    """What came of a forgery; an assertion where it is a lie that was believed."""
    try:
        verdict = mtl.verify_proof(path, problem, exact=exact)
    except DataError:
        return "refused"
    assert not verdict.confirmed or verdict.model_is_named, str(verdict)
    if verdict.unchecked or not verdict.model_is_named:
        return "not confirmed"
    assert verdict.low <= sound.high, str(verdict)
    assert verdict.violation > 0 or verdict.high >= sound.low, str(verdict)
    assert not verdict.confirmed or verdict.relative_gap <= 1e-4
    return "confirmed" if verdict.confirmed else "not confirmed"


def _forge(honest, tmp_path, name, kind, many, exact=False):
    problem, proof, _, sound = honest(name)
    rng, came = np.random.default_rng([len(name), *kind.encode()]), []
    for _ in range(many):
        forged = copy.deepcopy(proof)
        KINDS[kind](forged, rng)
        _greedy(forged, rng, sound)
        came.append(_judge(write_proof(tmp_path / "forged", forged, None), problem, sound, exact))
    return came


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4), ids=lambda k: ", ".join(list(KINDS)[k::4]))
def test_no_forgery_is_believed(honest, tmp_path, first):
    for kind in list(KINDS)[first::4]:
        came = [one for name in NAMES for one in _forge(honest, tmp_path, name, kind, _MANY)]
        assert len(came) == _MANY * len(NAMES) and came.count("confirmed") < len(came), kind


@pytest.mark.slow
@for_each("kind", ["point", "multipliers", "witness", "regions", "claims"])
def test_no_forgery_is_believed_in_fractions(honest, tmp_path, kind):
    f_score = "f_score_low_rank_plus_sparse_with_intercept"
    for name in ("equal_to", "orders", f_score, "sparse_group_lasso_nonnegative"):
        _forge(honest, tmp_path, name, kind, _FEW, exact=True)


def test_arrays_of_the_data_are_held_to_their_kinds(honest, tmp_path):
    _, proof, data, _ = honest("sparse_group_lasso_nonnegative")
    path = write_proof(tmp_path / "whole", proof, data)
    with np.load(path) as stored:
        arrays = dict(stored)
    y = arrays["data:0:y"]
    for name, forged in {
        "data:0:y": y[:-1], "data:0:X": arrays["data:0:X"] > 0, "data:0:rows_of_tasks": np.array([len(y), 0, 0, 0]), "data:0:more": y, "more": y,
        "data:1:y": y,
    }.items():  # fmt: skip
        np.savez(tmp_path / "forged.npz", **(arrays | {name: forged}))
        with pytest.raises(DataError):
            mtl.verify_proof(tmp_path / "forged.npz")


def test_a_tolerance_is_the_users(honest, tmp_path):
    problem, proof, _, sound = honest("robust_multi_task_low_rank_plus_outlier_tasks")
    rough = copy.deepcopy(proof)
    for x in rough["point"].values():
        x *= 1.05
    rough["claimed"] |= {"tol": 0.5, "scale": 1e300}
    path = write_proof(tmp_path / "rough", rough, None)
    verdict = mtl.verify_proof(path, problem)
    assert not verdict.confirmed and 1e-4 < verdict.relative_gap < 0.1
    assert mtl.verify_proof(path, problem, tol=0.1).confirmed
    for tol in (0.0, -1.0, 1.0, "1", float("nan"), True):
        with pytest.raises(DataError, match="tol="):
            mtl.verify_proof(path, problem, tol=tol)


def test_the_exit_code_is_zero_only_for_claims_of_all_weights(honest, tmp_path, capsys):
    """A functions' multiplier that is not orthogonal to what it does not see is made so, and what it proves then is little."""
    problem, proof, data, sound = honest("free")
    path = str(write_proof(tmp_path / "free", proof, data))
    assert not mtl.verify_proof(path).region and main(["verify", path]) == 0
    forged = copy.deepcopy(proof)
    for one in forged[
        "losses"
    ]:  # multipliers that leave one equation as it is, and a point and claims that suit
        one["multipliers"] = one["multipliers"] * 0.5
    forged["claimed"] |= {"scale": 1e300, "tol": 0.9}
    path = str(write_proof(tmp_path / "half", forged, data))
    assert main(["verify", path]) == 1 and "NOT confirmed" in capsys.readouterr().out
    assert mtl.verify_proof(path).low <= sound.high


@pytest.mark.slow
def test_counts_of_a_labelling_are_whole_numbers_of_samples(honest, tmp_path):
    """Beyond their range Delta has no bound: a weight as small as one likes would prove any bound."""
    problem, proof, _, sound = honest("f_score_low_rank_plus_sparse_with_intercept")
    y = problem.form().losses[0].tasks.targets
    for b, c in ((0.0, 2.0 * np.sum(y > 0) - 1e-9), (-1.0, 0.0), (0.5, 0.0), (0.0, 1e6), (1e6, 0.0)):
        for weight in (1e-12, 1e-3, 1.0):
            forged = copy.deepcopy(proof)
            forged["losses"][0]["witness"] = [[np.array([b]), np.array([c]), np.array([weight])]] * 4
            assert _judge(write_proof(tmp_path / "counts", forged, None), problem, sound) == "refused"


@for_each("exact", [False, True])
@for_each("name", ["sparse_group_lasso_nonnegative", "balls", "l21_ball_and_linear_equality"])
@for_each("entry", [1e308, -1e308, 1e300])
def test_a_point_whose_squares_overflow_is_refused(honest, tmp_path, name, exact, entry):
    problem, proof, _, _ = honest(name)
    forged = copy.deepcopy(proof)
    for x in forged["point"].values():
        x[...] = entry
    path = write_proof(tmp_path / "huge", forged, None)
    with pytest.raises(
        DataError, match=rf"beyond float64.* as large as {abs(entry):.3g}".replace("+", r"\+")
    ):
        mtl.verify_proof(path, problem, exact=exact)


def test_nothing_is_said_of_a_constrained_intercept(honest, tmp_path):
    problem, proof, _, _ = honest("free")
    proof = copy.deepcopy(proof)
    proof["functions"].append(_at_least("W.intercept", (1, models.M), -1e4))
    verdict = mtl.verify_proof(write_proof(tmp_path / "bound", proof, None), problem)
    assert verdict.unchecked == ["at_least of an intercept"] and not verdict.confirmed


# ------------------------------------------------------------------------------------------------ what is said of all weights
@pytest.mark.slow
@for_each("held", ["a row", "a sum", "a difference", "two blocks"])
def test_alike_directions_that_a_constraint_tells_apart(tmp_path, held):
    """One of two equal columns has to be large: the other takes it back, and no multiplier may prove otherwise."""
    own = models.shared(13)
    X = np.column_stack([own.X, own.X[:, 0]])
    tasks = mtl.Tasks.shared(X, own.targets.reshape(models.M, -1).T)
    W, S = mtl.Weights(tasks), mtl.Weights(tasks, name="S")
    A = np.zeros((1, 7))
    A[0, :2] = 1.0, 2.0
    constraint = {
        "a row": [W[:1] >= 5],
        "a sum": [A @ W >= 5],
        "a difference": [W[:1] - W[6:] >= 5],
        "two blocks": [W + S >= 5],
    }[held]
    predicted = W + S if held == "two blocks" else W
    problem = mtl.minimize(mtl.squared_loss(predicted, tasks), subject_to=constraint)
    free = mtl.minimize(mtl.squared_loss(W, tasks)).solve(tol=1e-9)
    proof = read_proof(problem.solve(tol=1e-6).certificate.save(tmp_path / "honest"))[0]
    for size, exact in ((1e-12, False), (1.0, False), (1.0, True)):
        forged = copy.deepcopy(proof)
        (one,) = forged["functions"]
        one["multipliers"] = np.full(one["multipliers"].shape, -size)
        verdict = mtl.verify_proof(write_proof(tmp_path / "forged", forged, None), problem, exact=exact)
        assert verdict.region or verdict.low <= free.objective * (1 + 1e-9), str(verdict)
        assert not verdict.holds or verdict.relative_gap <= 1e-4


@pytest.mark.slow
@for_each("noise", [0.0, 1e-16, 1e-13, 1e-10])
def test_columns_that_nearly_depend_prove_nothing_false(tmp_path, noise):
    """The infimum fits the noise, with weights as large as that takes: what is said of all weights holds of these too."""
    own = models.shared(14, n=9)
    rng = np.random.default_rng(0)
    X = np.column_stack([own.X, own.X[:, 0] * (1.0 + noise * rng.normal(size=9))])
    tasks, W = with_weights(mtl.Tasks.shared(X, own.targets.reshape(models.M, -1).T))
    problem = mtl.minimize(mtl.squared_loss(W, tasks))
    solution = problem.solve(tol=1e-6, max_iter=3000)  # more iterations change no digit
    verdict = mtl.verify_proof(solution.certificate.save(tmp_path / "near"), problem)
    Q = np.linalg.qr(np.column_stack([own.X, (X[:, 6] - X[:, 0]) / (noise or 1.0)]))[0][
        :, : 6 + bool((X[:, 6] != X[:, 0]).any())
    ]
    Y = tasks.targets.reshape(models.M, -1).T
    infimum = 0.5 * np.sum(np.square(Y - Q @ (Q.T @ Y)))
    assert verdict.region or verdict.low <= infimum * (1 + 1e-9), str(verdict)
