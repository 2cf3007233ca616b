"""What the corpus says, of its judging half to 1e-4: our solvers beside each other, and `auto` beside other packages, from the recorded rows."""

from __future__ import annotations

from functools import cache

import matplotlib.pyplot as plt
import numpy as np

from mtldsl.display.pictures.axes import COLOURS, GREY, plain

from . import ROWS

TOL = 1e-4
FACTORS = np.logspace(0, np.log10(30), 120)

#: solver -> colour, dashes
STYLES = {
    "auto": ("black", "-"),
    "proximal_gradient": (COLOURS[5], "--"),
    "admm": (COLOURS[0], "-"),
    "coordinate_descent": (COLOURS[2], "-."),
    "multipliers": (COLOURS[3], (0, (5, 1))),
    "dual_ascent": (COLOURS[1], ":"),
    "closed_form": (COLOURS[4], (0, (3, 1, 1, 1))),
    "cvxpy": (GREY, "-"),
}

#: what is drawn together, and the corpus families in it
KINDS = {
    "squares + ridge": ("ridge",),
    "squares + l1, l21, groups": ("lasso", "lasso_csr", "group_lasso", "elastic_net", "multi_task_lasso"),
    "squares + trace norm": ("trace_squares",),
    "logistic + l1, l21, ridge": ("sparse_logistic", "ridge_logistic", "multi_logistic"),
    "logistic + trace norm": ("trace_logistic",),
    "hinge + ridge": ("svm",),
    "hinge, absolute, quantile": ("kinks", "kinks_plain"),
    "F-score and AUC": ("structured",),
    "sums and constraints": ("penalties", "constraints"),
}


@cache
def judged() -> dict:
    """family -> what was measured of each of its problems in the judging half."""
    from benchmarks.corpus.data import SETS
    from benchmarks.corpus.regret import collect
    from benchmarks.corpus.rows import read

    rows = read(ROWS)
    (machine,) = {row["machine"] for row in rows}
    found: dict[str, list] = {}
    for name, each in collect(rows, machine).items():
        family, data = name.split("/")[:2]
        if SETS[data].half == "judging":
            found.setdefault(family, []).append(each)
    return found


def solvers():
    """Performance profiles (Dolan and More): the share of the problems that a solver solves within a factor of the fastest of ours."""
    from benchmarks.corpus.profiles import profile
    from benchmarks.corpus.regret import TIE

    figure, axes = plt.subplots(3, 3, figsize=(10, 9), layout="constrained", sharex=True, sharey=True)
    shown = {}
    for ax, (kind, families) in zip(axes.flat, KINDS.items(), strict=True):
        problems = [each for family in families for each in judged()[family]]
        routes = [route for route in STYLES if any((route, TOL) in each.own for each in problems)]
        seconds = np.array([[each.own.get((route, TOL), np.inf) for route in routes] for each in problems])
        for route, share in zip(routes, profile(seconds, FACTORS, TIE).T, strict=True):
            colour, dash = STYLES[route]
            (shown[route],) = ax.plot(
                FACTORS, share, color=colour, linestyle=dash, linewidth=2.8 if route == "auto" else 2.0
            )
        ax.set_xscale("log")
        ax.set_xlim(1, 30)
        ax.set_ylim(-0.02, 1.03)
        ax.set_xticks([1, 2, 4, 10, 30], ["1", "2", "4", "10", "30"])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.tick_params(labelsize=10.5)
        plain(ax, f"{kind} ({len(problems)})")
    for ax in axes[-1]:
        ax.set_xlabel("CPU seconds over the fastest's", fontsize=11)
    for ax in axes[:, 0]:
        ax.set_ylabel("share of problems", fontsize=11)
    names = [route for route in STYLES if route in shown]
    figure.legend(
        [shown[name] for name in names], names, loc="outside lower center", ncol=4, frameon=False, fontsize=11
    )
    return figure


#: peers as the rows name them -> package
PACKAGES = {
    "sklearn": "scikit-learn", "liblinear": "scikit-learn", "celer": "celer", "skglm": "skglm", "clarabel": "Clarabel, SCS", "scs": "Clarabel, SCS", "highs": "HiGHS",
}  # fmt: skip


def package_of(route: str) -> str | None:
    return next((name for start, name in PACKAGES.items() if route.startswith(start)), None)


def ratios() -> dict[str, list[float]]:
    """package -> auto's seconds over the package's best, for every problem on which both arrive."""
    found: dict[str, list[float]] = {name: [] for name in PACKAGES.values()}
    for problems in judged().values():
        for each in problems:
            best: dict[str, float] = {}
            for (route, tol), seconds in each.peers.items():
                package = package_of(route)
                if tol == TOL and package and np.isfinite(seconds):
                    best[package] = min(best.get(package, np.inf), seconds)
            for package, seconds in best.items():
                if np.isfinite(each.auto(TOL)):
                    found[package].append(each.auto(TOL) / seconds)
    return found


def packages():
    """A dot a problem: auto's CPU seconds over those of a package."""
    figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
    found = ratios()
    rng = np.random.default_rng(0)
    for row, values in enumerate(reversed(found.values())):
        ax.scatter(
            values,
            row + rng.uniform(-0.28, 0.28, len(values)),
            s=14,
            color=COLOURS[0],
            alpha=0.55,
            linewidths=0,
        )
        mean = float(np.exp(np.mean(np.log(values))))
        ax.plot([mean, mean], [row - 0.4, row + 0.4], color=COLOURS[1], linewidth=3)
        ax.text(
            130,
            row,
            f"{mean:.2f}\n{sum(v > 1 for v in values)} of {len(values)} slower",
            va="center",
            fontsize=11,
        )
    ax.axvline(1.0, color="black", linewidth=1)
    ax.set_yticks(range(len(found)), list(reversed(found)), fontsize=12)
    ax.set_xscale("log")
    ax.set_xlim(1e-3, 100)
    ax.set_xticks([0.001, 0.01, 0.1, 1, 10, 100], ["1/1000", "1/100", "1/10", "1", "10", "100"])
    ax.tick_params(labelsize=11)
    ax.set_xlabel("mtldsl's CPU seconds over the package's; left of 1 mtldsl is faster", fontsize=12)
    return plain(ax).figure


DRAWINGS = {"solvers": solvers, "packages": packages}
