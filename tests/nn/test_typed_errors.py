"""What is refused before anything is trained, and what a user meets where PyTorch is not installed. Needs no PyTorch."""

import sys

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.covariance_norms import TaskCovarianceNorm
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.nn import MultiTaskNetwork, SingleTaskNetworks
from tests.fresh import loaded_by
from tests.loops import for_each
from tests.models import D, shared

BOUNDS = [Range(0.01, 100.0), Range(0.01, 100.0)]


@for_each("network", [MultiTaskNetwork, SingleTaskNetworks])
@for_each(
    "options, message",
    [
        ({"hidden": (10, 0)}, r"hidden=0\): hidden must be a whole number of at least 1"),
        ({"hidden": 10}, r"hidden=10\): write the sizes of the layers"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"batch_size": True}, "batch_size must be a whole number"),
        ({"weight_decay": -1.0}, "weight_decay must be a number >= 0"),
        ({"weight_decay": float("nan")}, "weight_decay must be a number >= 0"),
        ({"learning_rate": 0}, "learning_rate must be a number > 0"),
        ({"random_state": "zero"}, "random_state='zero'"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"patience": -1}, "patience must be a whole number"),
    ],
)
def test_options_are_checked_where_they_are_typed(network, options, message):
    with pytest.raises(mtl.ModelError, match=f"{network.__name__}.*{message}"):
        network(**options)


@for_each("structure, message", [
    ("fetr", r"structure='fetr' is not a learned structure; write structure=MatrixNormal"),
    (MatrixNormal(), r"says nothing of Sigma1; write structure.bound"),
    (MatrixNormal().bound([Range(0.01), BOUNDS[1]]), "Sigma1 has no upper bound: the objective is unbounded below"),
    (MatrixNormal().bound([BOUNDS[0], Range(0.0, 100.0)]), "Sigma2 has no lower bound"),
    (MatrixNormal().bound([SpectralMatrix.of(np.eye(D)), BOUNDS[1]]), "Sigma1 is given as 6 x 6, .* 5 features"),
    (MatrixNormal().bound([BOUNDS[0], SpectralMatrix.of(np.eye(3))]), "Sigma2 is given as 3 x 3, .* 4 tasks"),
    (MatrixNormal().bound([BOUNDS[0], SpectralMatrix.of(np.diag([1.0, 2, 3, -1]))]), "not positive definite"),
    (TaskCovarianceNorm().bound([Range(trace=1.0)]), "task_covariance_norm has no gradient"),
])  # fmt: skip
def test_structures_that_cannot_stand_on_the_last_layer(structure, message):
    with pytest.raises(mtl.ModelError, match=message):
        MultiTaskNetwork(hidden=(5,), structure=structure).fit(shared())


@for_each("network", [MultiTaskNetwork(), SingleTaskNetworks()])
def test_data_that_no_network_takes(network):
    with pytest.raises(mtl.DataError, match=r"dense inputs; write Tasks.shared\(X.toarray\(\), Y\)"):
        network.fit(shared(density=0.5))
    with pytest.raises(mtl.DataError, match=r"fit\(ndarray\): give a Tasks object"):
        network.fit(np.eye(3))
    with pytest.raises(mtl.DataError, match="validation: the tasks are 6 features x 3 tasks"):
        network.fit(shared(), validation=shared().select([0, 1, 2]))
    for method, argument in (("predict", np.zeros((2, D))), ("scores", shared()), ("score", shared())):
        with pytest.raises(mtl.ModelError, match=r"not trained yet; call fit\(tasks\) first"):
            getattr(network, method)(argument)


@pytest.mark.slow
@pytest.mark.parametrize("network", [MultiTaskNetwork(), SingleTaskNetworks()])
def test_without_pytorch_the_line_to_type_is_named(network, monkeypatch):
    """Importing torch fails, as it does where it is not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(mtl.MissingExtraError, match=r'write pip install "\.\[torch\]"'):
        network.fit(shared())


@pytest.mark.process
def test_importing_brings_no_pytorch():
    assert "torch" not in loaded_by("networks")
