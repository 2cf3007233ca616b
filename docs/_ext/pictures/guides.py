"""One picture for a guide, drawn from what the guide's own session has computed."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from example_page import session

from mtldsl.display.pictures.axes import COLOURS, plain
from mtldsl.report import plot_path

GUIDES = Path(__file__).parents[2] / "guides"


def names_of(guide: str, until: str) -> dict:
    """Run the guide's examples down to the words `until`; return their names."""
    text, found, _ = (GUIDES / f"{guide}.md").read_text(encoding="utf-8").partition(until)
    assert found, f"{guide}.md: {until} is not there"
    return session(text, guide)


def beyond_one_machine():
    path = names_of("beyond_one_machine", "## What to look at")["path"]
    figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    plot_path(path, ax=ax)
    return figure


def low_rank():
    solution = names_of("low_rank", "## Less shrinkage")["solution"]
    figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    spectrum = np.linalg.svd(solution.W, compute_uv=False)
    ax.bar(np.arange(1, spectrum.size + 1), spectrum, color=COLOURS[0])
    ax.set_xlabel("singular value of the learned weights", fontsize=12)
    ax.set_ylabel("size", fontsize=12)
    return plain(ax).figure


def missing_labels():
    observed = names_of("missing_labels", "## The model")["observed"]
    figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.imshow(~np.isnan(observed.T), cmap="Greys", aspect="auto", interpolation="nearest")
    ax.set_xlabel("row", fontsize=12)
    ax.set_ylabel("task", fontsize=12)
    return figure


def covariances():
    solution = names_of("covariances", "## What to look at")["solution"]
    return solution.Sigma2.plot().figure


def groups():
    solution = names_of("groups", "Beside it every group")["solution"]
    return solution.plot_weights(order=None).figure


def imbalanced_labels():
    names = names_of("imbalanced_labels", "**3. Weigh")
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    test, places = names["test"], np.arange(10)
    for k, (label, solution) in enumerate({"threshold 1/2": names["plain"], "tuned": names["cut"]}.items()):
        scores = solution.scores(test, "f1")
        ax.bar(places + 0.4 * k - 0.2, scores, 0.38, label=label, color=COLOURS[k])
    ax.set_xticks(places, [f"is {digit}" for digit in range(10)], fontsize=11)
    ax.set_ylabel("F1 on held-out rows", fontsize=12)
    ax.legend(frameon=False, fontsize=11)
    return plain(ax).figure


def label_graphs():
    solution = names_of("label_graphs", "`score` is the share")["solution"]
    figure, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
    solution.label_graph.plot(ax=ax)
    return figure


def proven_choice():
    found = names_of("proven_choice", "Thirty values")["found"]
    figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
    found.plot(ax=ax)
    return figure


DRAWINGS = {
    f"guide_{make.__name__}": make
    for make in (
        beyond_one_machine,
        covariances,
        groups,
        imbalanced_labels,
        label_graphs,
        low_rank,
        missing_labels,
        proven_choice,
    )
}
