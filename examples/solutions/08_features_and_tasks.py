"""Solutions of lesson 8, and mistakes that its checks have to notice."""

import numpy as np


def update(s, eta, rho, l, u):
    """The derivative eta s^2 - rho / sigma is 0 at rho / (eta s^2); a convex function, so clip."""
    return np.clip(rho / (eta * s**2), l, u)


update.mistakes = [
    lambda s, eta, rho, l, u: rho / (eta * s**2),
    lambda s, eta, rho, l, u: np.clip(rho / (eta * s), l, u),
    lambda s, eta, rho, l, u: np.clip(eta * s**2 / rho, l, u),
]


def second_joins(d, eta, rho, l, u):
    """Sigma1 is at l by then: b = d / (l t) is below u where t = eta s^2 / rho > d / (l u)."""
    return np.sqrt(rho * d / (eta * l * u))


second_joins.mistakes = [
    lambda d, eta, rho, l, u: rho * d / (eta * l * u),
    lambda d, eta, rho, l, u: np.sqrt(d / (l * u)),
    lambda d, eta, rho, l, u: np.sqrt(rho * d / (eta * u)),
]


def same_objective():
    """The trace has c^(p + q), and m d log c^p + d m log c^q must cancel: p = -q, for any d, m."""
    return 1.0, -1.0


same_objective.mistakes = [lambda: (1.0, 1.0), lambda: (1.0, -2.0), lambda: (0.0, 0.0)]
