"""The smooth part of a form: losses with a gradient and quadratic penalties, seen through their images under linear maps.

Images combine linearly, so that an accelerated method, which moves along lines between points it knows, needs one pass over the
data for a new point and none for an extrapolated one.
"""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks, FunctionTerm, LossTerm, NormalForm

__all__ = ["GramPart", "ImagePart", "smooth_part"]

Images = list[np.ndarray]


def smooth_part(form: NormalForm, penalties: list[FunctionTerm]):
    """`GramPart` for a quadratic loss of one block with fewer features than rows, else `ImagePart`."""
    return GramPart(form.losses[0], form) if _gram_pays(form, penalties) else ImagePart(form, penalties)


def _gram_pays(form: NormalForm, penalties) -> bool:
    if len(form.losses) != 1 or penalties:
        return False
    (loss,) = form.losses
    if loss.atom.quadratic is None or loss.map.identity_of is None or loss.intercepts:
        return False
    tasks = loss.tasks
    shared = loss.is_shared_complete and loss.uniform_scale is not None
    work = tasks.n_features * (1 if shared else tasks.n_tasks) * tasks.n_features
    return work < (tasks.X.shape[0] * tasks.n_features if shared else tasks.n_samples * tasks.n_features)


class GramPart:
    """q/2 sum_i ||X_i w_i - y_i||^2 of one block through G_i = q X_i^T S_i X_i: iterations whose cost does not depend on n."""

    def __init__(self, loss: LossTerm, form: NormalForm):
        self.block = loss.map.identity_of
        q, scale = loss.atom.quadratic, loss.uniform_scale
        self.shared = loss.is_shared_complete and scale is not None
        self.gram = q * (
            scale * loss.tasks.gram() if self.shared else loss.tasks.gram(self._per_sample(loss))
        )
        self.cross = q * loss.tasks.cross(loss.scale)
        self.idle = [name for name in form.shapes if name != self.block]

    @staticmethod
    def _per_sample(loss):
        return np.ones(loss.tasks.n_samples) if loss.scale is None else loss.scale

    def images(self, x: Blocks) -> Images:
        W = x[self.block]
        if self.shared:
            return [self.gram @ W]
        return [np.matmul(self.gram, W.T[:, :, None])[:, :, 0].T]

    def gradient(self, images: Images, x: Blocks) -> Blocks:
        gradient = {name: np.zeros_like(x[name]) for name in self.idle}
        gradient[self.block] = images[0] - self.cross
        return gradient

    def excess(
        self, new: Images, x_new: Blocks, old: Images, x_old: Blocks, gradient: Blocks
    ) -> tuple[float, float]:
        """(f(new) - f(old) - <gradient(old), new - old>, its rounding error): here 1/2 <D, G D>, without cancellation."""
        return 0.5 * float(np.vdot(x_new[self.block] - x_old[self.block], new[0] - old[0])), 0.0

    def lipschitz(self) -> float:
        return float(np.linalg.eigvalsh(self.gram)[..., -1].max())


class ImagePart:
    """Any smooth losses and smooth penalties, through their predictions and the images of their maps."""

    def __init__(self, form: NormalForm, penalties: list[FunctionTerm]):
        self.form, self.losses, self.penalties = form, form.losses, penalties

    def images(self, x: Blocks) -> Images:
        return [loss.predictions(x) for loss in self.losses] + [f.map.forward(x) for f in self.penalties]

    def gradient(self, images: Images, x: Blocks) -> Blocks:
        gradient = self.form.zeros()
        for loss, z in zip(self.losses, images, strict=False):
            loss.add_adjoint(loss.gradient(z), gradient)
        for f, V in zip(self.penalties, images[len(self.losses) :], strict=True):
            f.map.add_adjoint(f.coefficient * f.atom.gradient(V), gradient)
        return gradient

    def value(self, images: Images) -> float:
        value = sum(loss.value(z) for loss, z in zip(self.losses, images, strict=False))
        penalties = zip(self.penalties, images[len(self.losses) :], strict=True)
        return value + sum(f.coefficient * f.atom.value(V) for f, V in penalties)

    def excess(
        self, new: Images, x_new: Blocks, old: Images, x_old: Blocks, gradient: Blocks
    ) -> tuple[float, float]:
        """(f(new) - f(old) - <gradient(old), new - old>, what rounding may have added to it)."""
        f_new, f_old = self.value(new), self.value(old)
        slope = sum(float(np.vdot(gradient[name], x_new[name] - x_old[name])) for name in gradient)
        return f_new - f_old - slope, 8 * np.finfo(float).eps * (abs(f_new) + abs(f_old) + abs(slope))

    def lipschitz(self) -> float:
        """An estimate from below of the gradient's Lipschitz constant: power iteration on A^T diag(curvature) A."""
        rng = np.random.default_rng(0)
        x = {name: rng.normal(size=shape) for name, shape in self.form.shapes.items()}
        largest = 0.0
        for _ in range(12):
            norm = np.sqrt(sum(float(np.vdot(W, W)) for W in x.values()))
            x = self._hessian_bound({name: W / norm for name, W in x.items()})
            largest = np.sqrt(sum(float(np.vdot(W, W)) for W in x.values()))
            if largest == 0.0:
                return 1.0
        return float(largest)

    def _hessian_bound(self, x: Blocks) -> Blocks:
        image = self.form.zeros()
        for loss in self.losses:
            zero_offset = (
                loss.predictions(x)
                if loss.map.offset is None
                else loss.predictions(x) - loss.offset_predictions()
            )
            curvature = loss.atom.curvature if np.isfinite(loss.atom.curvature) else 1.0
            scale = 1.0 if loss.scale is None else loss.scale
            loss.add_adjoint(curvature * scale * zero_offset, image)
        for f in self.penalties:
            f.map.add_adjoint(f.coefficient * f.atom.curvature * f.map.linear(x), image)
        return image
