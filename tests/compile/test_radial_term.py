"""A loss of the norms of residuals takes all tasks at once: the same numbers as its atom gives task by task, with sample weights too."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.matrix_function import Loss
from mtldsl.normal_form.terms.joint_losses import RadialTerm
from tests.loops import for_each
from tests.models import separate, shared, with_weights


@for_each("make", [separate, lambda seed: shared(seed, sample_weights=True)])
def test_all_tasks_at_once_are_the_tasks_one_by_one(make):
    tasks, W = with_weights(make(3))
    form = mtl.minimize(2.5 * mtl.square_root_loss(W, tasks, mean=True) + mtl.trace_norm(W)).form()
    (loss,) = form.losses
    assert isinstance(loss, RadialTerm)
    rng = np.random.default_rng(0)
    z = loss.tasks.targets + rng.normal(size=tasks.n_samples)
    u = loss.dual_project(rng.normal(size=tasks.n_samples))
    inner = 0.7 * u
    apart = list(loss._tasks_apart())
    assert loss.value(z) == pytest.approx(sum(c * loss.atom.value(z[r], y, s) for r, c, y, s in apart))
    assert loss.conjugate(inner) == pytest.approx(
        sum(c * loss.atom.conjugate(inner[r] / c, y, s) for r, c, y, s in apart)
    )
    assert np.isfinite(loss.conjugate(inner)) and loss.conjugate(3.0 * u + 1.0) == np.inf
    for r, c, y, s in apart:
        np.testing.assert_allclose(loss.gradient(z)[r], c * loss.atom.gradient(z[r], y, s), rtol=1e-12)
        np.testing.assert_allclose(u[r], c * loss.atom.dual_project(u[r] / c, y, s), rtol=1e-12)
    assert loss.value(z) + loss.conjugate(loss.gradient(z)) == pytest.approx(z @ loss.gradient(z))


def test_a_radial_loss_that_is_not_the_norm_has_its_own_prox():
    class Halfway(Loss):
        radial = True

        def prox(self, z, y, step, s=None):
            return 0.5 * (z + y)

    tasks, W = with_weights(separate(3))
    (loss,) = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.trace_norm(W)).form().losses
    z = np.random.default_rng(1).normal(size=tasks.n_samples)
    found = replace(loss, atom=Halfway()).prox(z, 0.3)
    np.testing.assert_array_equal(found, 0.5 * (z + tasks.targets))
