"""The law of every reduction that promises exactness: what is claimed of a point taken back is true of the data as given, digit by digit.

Columns and labels have sizes from 1e-9 to 1e9, and offsets. Objectives are evaluated by formulas of their own: residuals in fractions, the
rest in extended precision.
"""

import importlib
import pkgutil
from fractions import Fraction

import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.normal_form.reductions as folder
from mtldsl.certificates.certificate import certify
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.normal_form.reductions.block_reductions import LossesOfWeights, SmallerSide
from mtldsl.normal_form.reductions.coordinates import (
    CenterLabels,
    SampleSpan,
    WhitenedLosses,
    shift_intercepts,
)
from mtldsl.normal_form.reductions.from_statistics import FromStatistics
from mtldsl.normal_form.reductions.null_space import NullSpace
from mtldsl.normal_form.reductions.reduction import Promise
from mtldsl.solvers.cutting_planes.lifted_admm import plane_function
from mtldsl.solvers.routes import accepting_routes, get_solver
from mtldsl.solvers.solver import Point
from tests.loops import for_each

L = np.longdouble
#: every loss, penalty and layout of a kind is in one of these
SEEDS = (0, 4, 5)

#: Powers of ten that labels lie from zero, where `CenterLabels` has come before.
NEAR = (-3.0, 3.5)


def exact(numbers):
    return [Fraction(float(one)) for one in np.asarray(numbers, float)]


def scores(X, w, b, y):
    """X w + b - y of every row, each rounded once."""
    w, b = exact(w), Fraction(float(b))
    rows = zip(np.asarray(X, float), exact(y), strict=True)
    return np.array(
        [L(float(sum((x * v for x, v in zip(exact(row), w, strict=True)), b) - t)) for row, t in rows]
    )


def f_score(z, y):
    """The most violated labelling's Delta + 2 (scores flipped), over all numbers of flips."""
    positive, negative = np.sort(z[y > 0]), np.sort(z[y < 0])[::-1]
    P, found = len(positive), []
    for c in range(P + 1):
        for b in range(len(negative) + 1):
            a = P - c
            delta = 1.0 - L(2.0) * a / (a + b + P)
            found.append(delta - 2 * positive[:c].sum() + 2 * negative[:b].sum())
    return max(found)


LOSSES = {
    "squared_loss": lambda r: (r * r).sum() / 2,
    "sum_of_squares": lambda r: (r * r).sum(),
    "square_root_loss": lambda r: np.sqrt((r * r).sum()),
    "absolute_loss": lambda r: np.abs(r).sum(),
}


class Model:
    """A model, and its objective by formulas of this file."""

    def __init__(self, tasks, own, loss, penalties, intercept, subject_to=None):
        self.own, self.loss, self.intercept = own, loss, intercept
        self.W = mtl.Weights(tasks, intercept=intercept)
        term = getattr(mtl, loss)(self.W, tasks)
        self.values = [value for _, value in penalties]
        whole = term + sum(words(self.W, tasks) for words, _ in penalties)
        self.problem = mtl.minimize(whole, subject_to=subject_to(self.W) if subject_to else [])
        self.form = self.problem.form()

    def value(self, blocks):
        W = next(blocks[name] for name in self.form.shapes if not name.endswith("intercept"))
        b = next(
            (blocks[name][0] for name in self.form.shapes if name.endswith("intercept")), np.zeros(W.shape[1])
        )
        total = L(0)
        for (X, y), w, own in zip(self.own, W.T, b, strict=True):
            if self.loss == "structured_hinge":
                total += f_score(scores(X, w, own, np.zeros(len(y))), y)
            else:
                total += LOSSES[self.loss](scores(X, w, own, y))
        return total + sum(value(W) for value in self.values)


def ridge(c):
    return lambda W, tasks: c * mtl.ridge(W), lambda W: L(c) / 2 * (L(W) ** 2).sum()


def trace_norm(c):
    return (
        lambda W, tasks: c * mtl.trace_norm(W),
        lambda W: L(c) * L(np.linalg.svd(W, compute_uv=False).sum()),
    )


def log_rank(c):
    def value(W):
        singular = np.zeros(len(W))
        singular[: min(W.shape)] = np.linalg.svd(W, compute_uv=False)
        return L(c) * np.log1p(np.sqrt(L(singular) ** 2 + L(1e-2))).sum()

    return lambda W, tasks: c * mtl.log_rank(W), value


def l21(c):
    return lambda W, tasks: c * mtl.l21_norm(W), lambda W: L(c) * np.sqrt((L(W) ** 2).sum(axis=1)).sum()


def between(A):
    def value(W):
        return sum((L(w) @ L(A) @ L(w)) for w in W.T) / 2

    return lambda W, tasks: mtl.kronecker_ridge(W, A, np.eye(tasks.n_tasks)), value


def table(rng, n, d, m, same_size=False, labels="real", far=(-3.0, 6.0)):
    """(X, Y) with columns of sizes 1e-9 to 1e9 and offsets as large again, or a thousand times."""
    size = 10.0 ** (rng.uniform(-9, 9) if same_size else rng.uniform(-9, 9, d))
    offset = size * np.where(rng.random(d) < 0.5, 0.0, 10.0 ** rng.uniform(0, 6, d))
    Z = rng.normal(size=(n, d))
    Y = Z @ rng.normal(size=(d, m)) + 0.3 * rng.normal(size=(n, m))
    if labels == "sign":
        Y = np.where(np.median(Y, axis=0) < Y, 1.0, -1.0)
    else:
        Y = 10.0 ** rng.uniform(-9, 9) * Y
        Y = Y + np.abs(Y).max() * 10.0 ** rng.uniform(*far)
    return size * Z + offset, Y, size


def columns_of(X, Y):
    return [(X, y) for y in Y.T]


def draw(key, seed):
    """Return the model of the kind that a reduction takes."""
    rng = np.random.default_rng([seed, sorted(KEYS).index(key)])

    def of(X, Y, loss, penalties, intercept, subject_to=None, tasks=None):
        tasks = mtl.Tasks.shared(X, Y) if tasks is None else tasks
        return Model(tasks, columns_of(X, Y), loss, penalties, intercept, subject_to)

    residuals = ["squared_loss", "absolute_loss", "square_root_loss"]
    if key in ("gathered", "reflected", "few rows"):
        X, Y, size = table(rng, 60, 4, 2)
        c = float(np.median(size)) ** 2
        tasks = None if key == "few rows" else DistributedTasks.cut(mtl.Tasks.shared(X, Y), 3)
        loss = ["squared_loss", "sum_of_squares", "square_root_loss"][seed % (2 if key == "few rows" else 3)]
        penalty = ridge(c) if seed % 2 else l21(np.sqrt(c))
        return of(X, Y, loss, [penalty], seed % 2 == 0 or seed > 3, tasks=tasks)
    if key == "centred":
        X, Y, size = table(rng, 30, 3, 2, far=(4.5, 7.0))
        return of(X, Y, residuals[seed % 3], [l21(float(np.median(size)))], True)
    if key == "years":
        X, Y, size = table(rng, 30, 4, 2, far=(-3.0, 3.0))
        X = X + size * 10.0 ** rng.uniform(1.5, 12.0, 4)
        X[:, 3] = 2.0 ** rng.integers(-30, 54)
        loss, penalty = residuals[seed % 3], [l21(float(np.median(size[:3])))]
        if seed % 2 == 0:
            return of(X, Y, loss, penalty, True)
        own = [(X[rng.random(30) < 0.8], y) for y in Y.T]
        own = [(A, y[: len(A)]) for A, y in own]
        return Model(mtl.Tasks.separate(*zip(*own, strict=True)), own, loss, penalty, True)
    if key == "spanned":
        X, Y, size = table(rng, 6, 14, 3, same_size=seed % 2 == 0, far=NEAR)
        return of(X, Y, residuals[seed % 2], [trace_norm(float(np.median(size)))], seed > 2)
    if key == "whitened":
        X, Y, size = table(rng, 25, 4, 2, far=NEAR)
        M = rng.normal(size=(4, 4))
        scale = np.median(size) * np.diag(10.0 ** rng.uniform(-2, 2, 4))
        return of(X, Y, residuals[1 - seed % 2], [between(scale @ (M @ M.T + np.eye(4)) @ scale)], seed > 2)
    if key == "smaller side":
        X, Y, size = table(rng, 20, 5, 2)
        c, made = float(np.median(size)), {}

        def penalty(W, tasks):
            made["D"] = mtl.FeatureCovariance(tasks)
            return c * mtl.feature_covariance_norm(W, made["D"])

        def value(W):
            return L(c) * L(np.linalg.svd(W, compute_uv=False).sum()) ** 2

        return of(X, Y, "squared_loss", [(penalty, value)], False, lambda W: [made["D"].trace() <= 1])
    if key == "without equations":
        X, Y, size = table(rng, 20, 4, 3, same_size=True, far=NEAR)
        c = float(np.median(size))
        equations = (lambda W: W[1, :] == 0, lambda W: W.sum(axis=0) == 0, lambda W: W[:, 0] == W[:, 2])
        held = lambda W: [equations[seed % 3](W), equations[2](W)]  # noqa: E731
        return of(X, Y, residuals[seed % 3], [log_rank(c), ridge(c)], seed > 2, held)
    assert key == "lifted"
    X, Y, size = table(rng, 14, 3, 2, labels="sign")
    return of(X, Y, "structured_hinge", [ridge(float(np.median(size)) ** 2)], seed % 2 == 0)


#: key -> makes the reduction; "few rows" are those of rows that are here
MADE = {
    "gathered": FromStatistics, "reflected": lambda: FromStatistics(reflected=True), "centred": CenterLabels, "years": CenterLabels, "spanned": SampleSpan,
    "whitened": WhitenedLosses, "smaller side": SmallerSide, "lifted": lambda: LossesOfWeights(plane_function), "without equations": NullSpace,
}  # fmt: skip
KEYS = ["few rows", *MADE]


def reduced(key, form):
    """(easier form, point -> the point of the form, what the claim is off by beside its own certificate at a point of the form, blocks of
    the form -> those of the easier one: intercepts are rounded where they are moved)."""
    made = FromStatistics() if key == "few rows" else MADE[key]()
    assert key == "few rows" or made.accepts(form) is None
    easier, recipe = made.apply(form)

    def hidden(blocks):
        return sum(recipe.misplaced(blocks)) if isinstance(made, FromStatistics) else 0.0

    down = (lambda blocks: shift_intercepts(blocks, recipe, -1.0)) if isinstance(made, CenterLabels) else None
    return easier, lambda point: made.invert(point, recipe), hidden, down


def test_no_exact_reduction_is_left_out():
    modules = [
        importlib.import_module(f"{folder.__name__}.{one.name}")
        for one in pkgutil.iter_modules(folder.__path__)
    ]
    found = {
        kind for module in modules for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and getattr(kind, "promise", None) is Promise.EXACT
    }  # fmt: skip
    assert found == {type(make()) for make in MADE.values()}


class Ended:
    """Stops where the point, taken back, is proven."""

    expired = False

    def __init__(self, prove):
        self.prove, self.found = prove, None

    def __call__(self, point):
        known = self.prove(point)
        if self.found is None or known[1].relative_gap < self.found[1].relative_gap:
            self.found = known
        return known[1].within(1e-6)


@pytest.mark.by_default("whitened")
@for_each("seed", SEEDS)
@pytest.mark.parametrize("key", KEYS)
def test_no_bound_lies_above_and_no_objective_beside(key, seed):
    model = draw(key, seed)
    easier, back, hidden, down = reduced(key, model.form)
    summed = key in ("gathered", "reflected", "few rows") or down  # proven of the easier form

    def prove(point):
        whole = back(point)
        if summed:
            blocks = down(whole.blocks) if down else point.blocks
            seen = certify(easier, blocks, point.loss_duals, point.function_duals)
            return whole.blocks, seen, hidden(whole.blocks)
        duals = whole.loss_duals, whole.function_duals
        known = certify(model.form, whole.blocks, *duals, bound_optimum=model.form.is_convex)
        return whole.blocks, known, 0.0

    watch = Ended(prove)
    solver = get_solver("admm" if key == "lifted" else next(accepting_routes(easier)))
    most = 300 if easier.is_convex else 3  # whose iterations are convex models
    solver.solve(easier, tol=1e-7, max_iter=most, start=None, watch=watch)
    blocks, known, off = watch.found
    truth, rng = model.value(blocks), np.random.default_rng(seed)
    off += known.rounding
    if not known.within(1e-6):  # rounding is that of multipliers, which are none of this point
        off += 1e-12 * abs(truth)
    assert abs(truth - known.objective) <= off + 4e-16 * abs(truth), (float(truth), known, off)
    # the bound lies below the value of every point: the one found, and its neighbours
    lowest = truth
    for step in (1e-9, 1e-6, 1e-3, 1e-1):
        for _ in range(3):
            near = {name: V * (1.0 + step * rng.normal(size=V.shape)) for name, V in blocks.items()}
            lowest = min(lowest, model.value(near))
    assert known.dual_bound <= lowest + off, (known, float(lowest), off)


#: constraint -> (as typed, by how much W (d, m) misses it, in extended precision), both with a number r
CONSTRAINTS = {
    "lower": (lambda W, r: r <= W, lambda W, r: (r - W).max()),
    "sum": (lambda W, r: W.sum(axis=1) == r, lambda W, r: np.abs(W.sum(axis=1) - r).max()),
    "difference": (lambda W, r: W @ np.array([[1.0], [-1.0]] + [[0.0]] * (W.shape[1] - 2)) == r,
     lambda W, r: np.abs(W[:, 0] - W[:, 1] - r).max()),
    "l21_norm": (lambda W, r: mtl.l21_norm(W) <= r, lambda W, r: np.sqrt((W * W).sum(axis=1)).sum() - r),
    "trace_norm": (lambda W, r: mtl.trace_norm(W) <= r,
     lambda W, r: L(np.linalg.svd(W.astype(float), compute_uv=False).sum()) - r),
}  # fmt: skip

#: Those that hold of W as of what stands for it; a reduction that moves W otherwise refuses the others.
KEPT = {key: set(CONSTRAINTS) for key in KEYS} | {"spanned": {"trace_norm"}, "whitened": set()}


@pytest.mark.slow
@for_each("name", CONSTRAINTS)
@pytest.mark.parametrize("key", KEYS)
def test_a_violation_is_that_of_the_point_taken_back(key, name):
    """Weights of sizes from 1e-9 to 1e9, each near to its side and far from it."""
    typed, missed = CONSTRAINTS[name]
    for seed in (0, 3):
        model = draw(key, seed)
        for size in (1e-9, 1.0, 1e9):
            rng = np.random.default_rng(seed)
            r = size * float(rng.uniform(0.5, 2.0))
            both = [*model.problem.constraints, typed(model.W, r)]
            form = mtl.minimize(model.problem.objective, subject_to=both).form()
            if name not in KEPT[key]:
                with pytest.raises(AssertionError):
                    reduced(key, form)
                continue
            easier, back, *_ = reduced(key, form)
            for far in (1e-6, 1.0, 1e6):
                blocks = {one: far * size * rng.normal(size=shape) for one, shape in easier.shapes.items()}
                lifted = back(Point(blocks)).blocks
                W = L(next(lifted[one] for one in form.shapes if not one.endswith("intercept")))
                truth = max(missed(W, L(r)), L(0))
                # terms that are rotated, and norms, are sums of all entries
                rounding = 64 * np.finfo(float).eps * float(np.abs(W).sum() + r)
                claims = [easier.violation(blocks), form.violation(lifted)]
                if key != "lifted":  # whose functions have no conjugate of their own
                    claims.append(certify(easier, blocks).violation)
                for claimed in claims:
                    assert abs(truth - claimed) <= rounding, (float(truth), claimed, far, size)
