"""scikit-learn's solvers, LIBLINEAR among them: ridge, lasso, elastic net, multi-task lasso, logistic regression, support vector machines."""

from __future__ import annotations

from .peer import Peer, PeerProblem, all_at_once, column_by_column

__all__ = ["peers"]

_FINE = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
_GAPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
_NEVER = 1_000_000


def _peer(rungs, pair) -> Peer:
    prepare, fit = pair
    return Peer("scikit-learn", rungs, fit, prepare)


def peers(problem: PeerProblem) -> dict[str, Peer]:
    found = {}
    for part in (_squares, _logistic, _margins, _counts):
        found.update(part(problem))
    return found


def _squares(problem: PeerProblem) -> dict[str, Peer]:
    from sklearn.linear_model import ElasticNet, Lasso, MultiTaskLasso, Ridge

    if not problem.squares:
        return {}
    b, lam = problem.b, problem.lam
    if problem.penalized_by("ridge"):
        way = all_at_once if problem.shared else column_by_column
        found = {}
        if not problem.sparse or not b:
            solver = "sparse_cg" if problem.sparse else "cholesky"
            found[f"sklearn-{solver}"] = _peer(
                _FINE if problem.sparse else (1e-6,),
                way(
                    problem, lambda n, tol: Ridge(lam["ridge"], fit_intercept=b, solver=solver, tol=tol), "C"
                ),
            )
        found["sklearn-auto"] = _peer(
            _FINE, way(problem, lambda n, tol: Ridge(lam["ridge"], fit_intercept=b, tol=tol), "C")
        )
        return found
    if problem.penalized_by("l1"):
        return {
            "sklearn-lasso": _peer(
                _GAPS,
                column_by_column(
                    problem, lambda n, tol: Lasso(lam["l1"] / n, fit_intercept=b, tol=tol, max_iter=_NEVER)
                ),
            )
        }
    if problem.penalized_by("l1", "ridge"):
        both = lam["l1"] + lam["ridge"]
        return {
            "sklearn-elastic_net": _peer(
                _GAPS,
                column_by_column(
                    problem,
                    lambda n, tol: ElasticNet(
                        both / n, l1_ratio=lam["l1"] / both, fit_intercept=b, tol=tol, max_iter=_NEVER
                    ),
                ),
            )
        }
    if problem.penalized_by("l21") and problem.shared and not problem.sparse:
        return {
            "sklearn-multi_task_lasso": _peer(
                _GAPS,
                all_at_once(
                    problem,
                    lambda n, tol: MultiTaskLasso(lam["l21"] / n, fit_intercept=b, tol=tol, max_iter=_NEVER),
                ),
            )
        }
    return {}


def _logistic(problem: PeerProblem) -> dict[str, Peer]:
    from sklearn.linear_model import LogisticRegression

    if problem.loss != "logistic":
        return {}
    ladder = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)

    def of(C, solver, **options):
        def make(n, tol):
            return LogisticRegression(
                C=C, solver=solver, tol=tol, fit_intercept=problem.b, max_iter=100_000, **options
            )

        return _peer(ladder, column_by_column(problem, make, "C"))

    if problem.penalized_by("ridge"):
        C = 1 / problem.lam["ridge"]
        found = {"sklearn-lbfgs": of(C, "lbfgs")}
        if not problem.sparse and problem.d <= 3000:
            found["sklearn-newton"] = of(C, "newton-cholesky")
        if not problem.b:  # LIBLINEAR penalizes the intercept
            found["liblinear"] = of(C, "liblinear")
        return found
    if problem.penalized_by("l1") and not problem.b:
        return {"liblinear": of(1 / problem.lam["l1"], "liblinear", **_l1())}
    return {}


def _l1() -> dict:
    """How an l1 norm is asked for: the word changed in scikit-learn 1.8."""
    import inspect

    from sklearn.linear_model import LogisticRegression

    old = inspect.signature(LogisticRegression).parameters["penalty"].default == "l2"
    return {"penalty": "l1"} if old else {"l1_ratio": 1.0}


def _margins(problem: PeerProblem) -> dict[str, Peer]:
    from sklearn.svm import LinearSVC

    if problem.loss not in ("hinge", "squared_hinge") or not problem.penalized_by("ridge") or problem.b:
        return {}
    C = 1 / problem.lam["ridge"]
    ways = {
        "hinge": {"liblinear": True},
        "squared_hinge": {"liblinear-dual": True, "liblinear-primal": False},
    }

    def of(dual):
        def make(n, tol):
            return LinearSVC(C=C, loss=problem.loss, dual=dual, tol=tol, fit_intercept=False, max_iter=_NEVER)

        return _peer((1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8), column_by_column(problem, make, "C"))

    return {name: of(dual) for name, dual in ways[problem.loss].items()}


def _counts(problem: PeerProblem) -> dict[str, Peer]:
    from sklearn.linear_model import GammaRegressor, PoissonRegressor

    if problem.loss not in ("poisson", "gamma") or not problem.penalized_by("ridge"):
        return {}
    kind = PoissonRegressor if problem.loss == "poisson" else GammaRegressor
    found = {}
    for solver in ("lbfgs", "newton-cholesky"):
        # the loop's variable is bound as a default: every maker has its own solver
        def make(n, tol, solver=solver):
            return kind(
                alpha=problem.lam["ridge"] / n,
                solver=solver,
                tol=tol,
                fit_intercept=problem.b,
                max_iter=100_000,
            )

        found[f"sklearn-{solver}"] = _peer(
            (1e-1, 1e-2, 1e-4, 1e-6, 1e-8), column_by_column(problem, make, "C")
        )
    return found
