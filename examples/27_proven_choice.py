r"""27. A lam that is proven best
=============================

A grid of lam says nothing of the values between its points. A circle does.

Two features say whether a tumour is malignant. The model is

.. math::

    \min_w \; \sum_j \log \left( 1 + e^{-y_j x_j^T w} \right) + \frac{\lambda}{2} \|w\|^2

and lam is chosen by how many answers are right on rows that were held out. Everybody tries ten or
a hundred values. Is there a better one in between?

WHAT ONE FIT SAYS OF ALL OTHERS. Let w0 be the fit at lam0. The gradient of the loss there is
-lam0 w0. For any other lam the best w has the gradient -lam w, and gradients of a convex function
never turn against the step:

.. math::

    (\lambda_0 w_0 - \lambda w)^T (w - w_0) \ge 0

Divide by lam. This is the circle of Thales: w sees the way from w0 to (lam0 / lam) w0 under an
angle of at least 90 degrees, so it lies in the circle that has this way as a diameter.

WHAT TWO FITS SAY. Weights and gradients may be mixed: half of one fit and half of another is not a
fit, but its circle is as valid once a small gap is added, and it is far smaller.

WHAT IT IS GOOD FOR. All w of a circle give a row scores within the row's length times the radius.
Where that is on one side of zero, the answer is known for every lam of an interval, without a fit.

WHAT CAME OF IT. Fits at 19 values prove for all lam from 0.01 to 10,000: none is right on more rows
than the one that is chosen by as many as one in a hundred.

Run: ``python examples/27_proven_choice.py`` (picture: ``examples/output/27_proven_choice.png``)
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import mtldsl as mtl

OUTPUT = Path(globals().get("__file__", "lesson")).parent / "output"  # a notebook has no file

# %%
# The circle of one fit
# ---------------------

cancer = load_breast_cancer()
names = ["worst radius", "worst texture"]
X = cancer.data[:, [list(cancer.feature_names).index(name) for name in names]]
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.where(cancer.target == 0, 1.0, -1.0)
tasks = mtl.Tasks.shared(X, y[:, None], feature_names=names)
W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
problem = mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.ridge(W))


def fitted(value):
    """The weights at a value of lam, and the multipliers of the rows: slopes of losses."""
    lam.value = value
    w = problem.solve(tol=1e-12).W[:, 0]
    return w, -y / (1 + np.exp(y * (X @ w)))


def circle(w, u, value):
    """(middle, radius) for the best weights at a value, from any weights and multipliers."""
    v = -X.T @ u / value
    a = -y * u  # in [0, 1]; the conjugate of the loss is its negative entropy
    conjugate = a * np.log(a) + (1 - a) * np.log1p(-a)
    gap = np.sum(np.logaddexp(0, -y * (X @ w)) + conjugate - u * (X @ w))
    return 0.5 * (w + v), np.sqrt(0.25 * np.sum((w - v) ** 2) + max(gap, 0.0) / value)


low, high, wanted = 10.0, 1000.0, 100.0
one, other, truth = fitted(low), fitted(high), fitted(wanted)[0]
circles = {
    f"circle of the fit at lam = {low:g}": circle(*one, wanted),
    f"circle of the fit at lam = {high:g}": circle(*other, wanted),
    "circle of half of each": circle(0.5 * (one[0] + other[0]), 0.5 * (one[1] + other[1]), wanted),
}
print(f"THE BEST WEIGHTS AT lam = {wanted:g} ARE {truth.round(3)}, INSIDE EVERY CIRCLE\n")
for name, (middle, radius) in circles.items():
    far = np.linalg.norm(truth - middle)
    print(f"  {name:31s} radius {radius:.3f}, the best weights are {far:.3f} from its middle")
    assert far <= radius + 1e-9
radii = [radius for _, radius in circles.values()]
assert radii[2] < 0.5 * min(radii[:2])

# %%
# A choice with its proof
# -----------------------
#
# `cross_validate` does this for every fold and row. It fits where circles are too large, until no
# value can be better by more than the regret.

found = problem.cross_validate(lam, between=(1e-2, 1e4), regret=0.01, folds=5, refit=False)
print(f"\n{found}")
proof = found.proof
assert proof.is_reached

# %%
# A grid of 100 values, each fitted, finds nothing that is better by more.

grid = problem.cross_validate(lam, np.geomspace(1e4, 1e-2, 100), folds=5, refit=False, tol=1e-4)
chosen = found.mean[found._best]
print(f"\nchosen: {chosen:.4f}; the best of 100 values: {grid.mean.max():.4f}")
assert grid.mean.max() <= chosen + proof.value

# %%
# A picture
# ---------

try:
    import matplotlib.pyplot as plt
except ImportError:
    print("\nno picture: pip install 'mtldsl[plots]'")
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8))
    path = np.array([fitted(value)[0] for value in np.geomspace(3.0, 3e4, 40)])
    left.plot(*path.T, color="0.6", linewidth=1.5, label="best weights at all lam")
    colours = ("C0", "C2", "C1")
    for (name, (middle, radius)), colour in zip(circles.items(), colours, strict=True):
        style = {"color": colour, "fill": False, "linewidth": 1.6, "label": name}
        left.add_patch(plt.Circle(middle, radius, **style))
    for (w, _), colour in ((one, "C0"), (other, "C2")):
        left.plot(*w, "o", color=colour, markersize=6)
    left.plot(*truth, "*", color="black", markersize=11, label=f"best weights at lam = {wanted:g}")
    left.set_aspect("equal")
    left.set_xlabel(f"weight of {names[0]}")
    left.set_ylabel(f"weight of {names[1]}")
    left.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    found.plot(ax=right)
    figure.tight_layout()
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / "27_proven_choice.png", dpi=120)
    print(f"\npicture: {OUTPUT / '27_proven_choice.png'}")
