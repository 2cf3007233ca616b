"""scikit-learn's checks of one estimator, all in one call."""

from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator


def checks_that_fail(estimator: BaseEstimator) -> dict[str, str]:
    """Return {name of a check of scikit-learn: what it says} of those that an estimator does not pass."""
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(results) > 30
    return {
        str(one["check_name"]): f"{type(one['exception']).__name__}: {one['exception']}"
        for one in results
        if one["status"] not in ("passed", "skipped")
    }
