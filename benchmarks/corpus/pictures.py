"""Performance profiles, a panel a family: our routes solid, peers dashed, "auto" black; colours that colour-blind readers tell apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .profiles import profile
from .regret import TIE, Measured

__all__ = ["draw"]

#: Okabe and Ito's colours
_BLUE, _ORANGE, _GREEN, _RED, _SKY, _PINK, _GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#888888",
)  # fmt: skip
_OWN_SOLVERS = {
    "auto": ("black", "o"),
    "admm": (_BLUE, "s"),
    "proximal_gradient": (_ORANGE, "^"),
    "coordinate_descent": (_GREEN, "v"),
    "dual_ascent": (_RED, "D"),
    "multipliers": (_PINK, "P"),
    "closed_form": (_SKY, "X"),
    "alternating": (_SKY, "<"),
    "clique_generation": (_GREEN, ">"),
    "cvxpy": (_GREY, "*"),
}
_PEERS = {
    "scikit-learn": (_BLUE, ""),
    "LIBLINEAR": (_ORANGE, ""),
    "celer": (_GREEN, ""),
    "skglm": (_RED, ""),
    "HiGHS": (_SKY, ""),
    "Clarabel": (_PINK, ""),
    "SCS": (_GREY, ""),
    "plain gradient": ("black", ""),
}
_FACTORS = np.logspace(0, np.log10(30), 200)


def _package(route: str) -> str:
    for start, name in (
        ("sklearn", "scikit-learn"), ("liblinear", "LIBLINEAR"), ("highs", "HiGHS"), ("clarabel", "Clarabel"), ("scs", "SCS"),
        ("fista", "plain gradient"),
    ):  # fmt: skip
        if route.startswith(start):
            return name
    return route


def _table(measured: list[Measured], tol: float) -> dict[str, np.ndarray]:
    """Route, or package of a peer -> seconds of every problem; inf where it did not arrive or does not take it."""
    found: dict[str, np.ndarray] = {}
    for i, each in enumerate(measured):
        for table in (each.own, each.peers):
            for (route, t), seconds in table.items():
                if t == tol:
                    name = route if table is each.own else _package(route)
                    column = found.setdefault(name, np.full(len(measured), np.inf))
                    column[i] = min(column[i], seconds)
    return found


def draw(families: dict[str, list[Measured]], tol: float, title: str, path: Path) -> None:
    """One picture, a panel a family. A route that takes few of a family's problems ends low: that is what the profile says of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    families = {name: found for name, found in families.items() if found}
    if not families:
        return
    columns = 4
    lines = -(-len(families) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(16, 3.1 * lines + 1.3), sharex=True, sharey=True, squeeze=False
    )
    shown: dict[str, object] = {}
    for axis, (name, measured) in zip(axes.flat, families.items(), strict=False):
        table = _table(measured, tol)
        order = [route for route in (*_OWN_SOLVERS, *_PEERS) if route in table] + sorted(
            set(table) - set(_OWN_SOLVERS) - set(_PEERS)
        )
        shares = profile(np.column_stack([table[route] for route in order]), _FACTORS, TIE) if order else None
        for k, route in reversed(list(enumerate(order))):
            colour, marker = (_OWN_SOLVERS | _PEERS).get(route, (_GREY, "."))
            (line,) = axis.plot(
                _FACTORS, shares[:, k], color=colour, marker=marker or None, markevery=(7 + 5 * k, 60), markersize=5,
                linestyle="-" if marker else "--", linewidth=2.4 if route == "auto" else 1.3, zorder=9 if route == "auto" else 2,
            )  # fmt: skip
            shown[route] = line
        axis.set_title(f"{name} ({len(measured)})", fontsize=11)
        axis.set_xscale("log")
        axis.set_xlim(1, 30)
        axis.set_ylim(-0.02, 1.03)
        axis.set_xticks([1, 2, 4, 10, 30], ["1", "2", "4", "10", "30"])
        axis.minorticks_off()
        axis.grid(alpha=0.25)
        axis.tick_params(labelbottom=True)
    for axis in axes.flat[len(families) :]:
        axis.set_visible(False)
    order = [route for route in (*_OWN_SOLVERS, *_PEERS) if route in shown] + [
        r for r in shown if r not in _OWN_SOLVERS | _PEERS
    ]
    figure.legend([shown[r] for r in order], order, loc="lower center", ncol=9, frameon=False, fontsize=11)
    figure.suptitle(title, fontsize=14)
    figure.supxlabel("CPU seconds over those of the fastest", y=0.05 + 0.02 * (lines < 4), fontsize=11)
    figure.supylabel("share of the problems", x=0.005, fontsize=11)
    figure.tight_layout(rect=(0.012, 0.062 if lines > 3 else 0.1, 1, 0.985))
    figure.savefig(path, dpi=75)
    plt.close(figure)
