r"""26. One of several classes
==========================

A digit is a 3 or an 8, not both: losses that compare all scores of a row.

Row j has the class c(j). The scores of the classes k are

.. math::

    z_{jk} = x_j^T w_k + b_k

A loss plus lam times the trace norm of W is minimised. It is ``softmax_loss``,

.. math::

    \sum_j \left( \log \sum_k e^{z_{jk}} - z_{j c(j)} \right)

or ``crammer_singer_loss``:

.. math::

    \sum_j \left( \max_k \left( [k \ne c(j)] + z_{jk} \right) - z_{j c(j)} \right)

Handwritten digits, ten classes, each a task: column k of W scores class k, and the highest score
is the answer. ONE AGAINST THE REST learns every column by itself: is this a 3, or any other digit?
It may say yes twice or never. The SOFTMAX loss (multinomial logistic regression) and the loss of
CRAMMER AND SINGER (2001), a hinge, look at all ten scores of a row together: only by how much the
right score is above the others counts.

The classes share what they need: ||W||_*, the trace norm, asks for few patterns that all classes
are made of, and ||W||_{2,1} for few pixels that serve all.

WHAT IS COMPARED. Four losses beside both norms, learned from 150 digits, judged on 1647 others;
lam by folds of the 150 in which every class has its share.

WHAT CAME OF IT. Softmax is right on 0.918 of the new digits beside the trace norm, one logistic
loss against the rest on 0.901; with few pixels 0.911 and 0.897. The hinge of Crammer and Singer
gains nothing over hinges against the rest (0.896 and 0.900). One against the rest said yes to
exactly one class for 84 % of the digits; among ten noes, or several yeses, the highest decides.

Run: ``python examples/26_classes.py``
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

import mtldsl as mtl

# %%
# Classes as tasks
# ----------------
#
# `Tasks.from_classes` makes a task of every class: +1 in its own rows, -1 in all others.

X, digits = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, digits = X[order][:, X.std(axis=0) > 0], digits[order]
n_train = 150
X = (X - X[:n_train].mean(axis=0)) / (X[:n_train].std(axis=0) + 1e-1)
train = mtl.Tasks.from_classes(X[:n_train], digits[:n_train])
X_new, truth = X[n_train:], digits[n_train:]
print(train)

# %%
# One model
# ---------

lam = mtl.Parameter(1.0)
W = mtl.Weights(train, intercept=True)
softmax = mtl.minimize(mtl.softmax_loss(W, train) + lam * mtl.trace_norm(W))
critical = softmax.lambda_max(lam)
print(f"{softmax}\n\nW is zero from lam = {critical:.4g} on")
lam.value = 0.03 * critical
solution = softmax.solve()
print(solution)

# %%
# Predictions are +1 for one class and -1 for all others; probabilities of a row sum to one.

labels, chances = solution.predict(X_new), solution.predict_proba(X_new)
print(f"\nclasses said of a row: {set((labels > 0).sum(axis=1).tolist())}")
print(f"probabilities of a row sum to {chances.sum(axis=1).min():.12f} at least")
right = labels.argmax(axis=1) == truth
sure = chances.max(axis=1) > 0.9
print(f"right: {right.mean():.3f}; where the chance is above 0.9: {right[sure].mean():.3f}")

# %%
# Beside one against the rest
# ---------------------------
#
# The same folds for all. Their rows are drawn class by class: a fold that lacked a class could not
# be trained on.

folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X[:n_train], digits[:n_train]))
losses = {
    "one against the rest, logistic": mtl.logistic_loss,
    "softmax": mtl.softmax_loss,
    "one against the rest, hinge": mtl.hinge_loss,
    "Crammer and Singer": mtl.crammer_singer_loss,
}
norms = {"trace": mtl.trace_norm, "l21": mtl.l21_norm}


def answers(model, strength):
    """The classes that the model says, its lam chosen by the folds."""
    found = model.cross_validate(strength, np.geomspace(30, 0.3, 5), folds=folds, tol=1e-3)
    scores = found.solution.decision_function(X_new)
    return scores.argmax(axis=1), scores, found.solution


print(f"\n{'right, of new digits':32s}" + "".join(f"{name:>9s}" for name in norms))
kept = {}
for name, loss in losses.items():
    line = []
    for norm, word in norms.items():
        strength = mtl.Parameter(1.0)
        model = mtl.minimize(loss(W, train) + strength * word(W))
        said, scores, found = answers(model, strength)
        assert found.is_optimal
        kept[name, norm] = said, scores, found
        line.append(np.mean(said == truth))
    print(f"{name:32s}" + "".join(f"{share:9.3f}" for share in line))

# %%
# Yes twice, or never
# -------------------
#
# One against the rest answers ten questions. Where not one score is above zero, or two are, the
# highest is the answer all the same, but no single question was answered so.

_, scores, _ = kept["one against the rest, logistic", "trace"]
yes = (scores > 0).sum(axis=1)
print("\nof new digits, one against the rest says")
for count, said in ((0, "no to every class"), (1, "yes to one class")):
    print(f"  {said:22s} {np.mean(yes == count):6.1%}")
print(f"  {'yes to several':22s} {np.mean(yes > 1):6.1%}")

# %%
# What the scores of softmax have in common
# -----------------------------------------
#
# A number added to all scores of a row changes nothing: the losses see differences alone. A norm
# chooses among all W with the same differences the smallest, whose columns sum to zero: ten
# classes, nine directions at most.

_, _, found = kept["softmax", "trace"]
values = np.linalg.svd(found.W, compute_uv=False)
print(f"\nsum of the columns: {np.abs(found.W.sum(axis=1)).max():.0e}")
print(f"singular values: {values.round(2)}")

# %%
# The proof
# ---------
#
# The multipliers of a row are probabilities less the truth: numbers on a simplex, whose conjugate
# is the entropy (softmax) or linear (Crammer and Singer). An independent formulation agrees.

check = softmax.cross_check(solution)
print(f"\n{solution.status}, gap {solution.gap:.1e}, the cross-check agrees: {check.agrees}")
assert solution.is_optimal and check.agrees
