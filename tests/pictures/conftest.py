"""Pictures are drawn into memory, and no figure is left for the next test."""

import pytest


@pytest.fixture(autouse=True)
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra mtldsl[plots]")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")
