"""What the CGM paper claims in section 5, judged by the rows of its studies."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.cgm_data import FOLDS
from benchmarks.papers.cgm_paper import PAPER_SCENE, PAPER_TABLE_2
from benchmarks.papers.claim import UNTESTED, Claim, Pair, by_share, judged, verdict
from benchmarks.papers.printed import printed
from mtldsl.data.synthetic import STAR

__all__ = ["claims", "in_general", "mean", "of"]

_TRUE = {f"y{i}--y{j}" for i, j in STAR}
_COMMAND = "python -m benchmarks.papers.cgm --study"
#: measure -> whether less is better
_LESS = {"hamming": True, "macro_f1": False, "micro_f1": False, "micro_precision": False}


def of(rows, method) -> list[dict]:
    return [row for row in rows if row["method"] == method]


def mean(rows, measure) -> float:
    return float(np.mean([float(row[measure]) for row in rows]))


def claims(studies: dict, history) -> list[Claim]:
    """studies : name -> its rows; history : of the study "convergence" """
    star = studies.get("star", [])
    found = [*_star(star, studies.get("star, noise", [])), _first_edges(studies.get("scores", []))]
    found += _convergence(history)
    found += _figures(studies.get("scene", []))
    for name in ("scene", "emotions", "flags"):
        found += _against_rivals(name, studies.get(name, []), f"{_COMMAND} {name}")
    found += _growth(studies.get("growth", []), "Scene", f"{_COMMAND} growth")
    return judged([*found, *_elsewhere(studies.get("scene", []))])


def _star(rows, noisy) -> list[Claim]:
    found, command = [], f'{_COMMAND} star "star, noise"'
    for says, some, ours in (
        ("CGM finds the true edges of the synthetic star, and no others", rows, False),
        ("The same with 5 % of the training labels turned", noisy, True),
    ):
        runs = of(some, "CGM")
        exact = sum(set(filter(None, row["edges"].split(";"))) == _TRUE for row in runs)
        seen = f"The four true edges and no other on {exact} of {len(runs)} draws." if runs else ""
        found.append(Claim("Section 5.2", says, by_share(exact, len(runs)), seen, command, ours))
    trees = [len(set(row["edges"].split(";")) & _TRUE) for row in of(rows, "Chow-Liu tree")]
    none = sum(count == 0 for count in trees)
    found.append(
        Claim(
            "Section 5.2", "The Chow-Liu tree has none of the true edges", by_share(none, len(trees)),
            f"None of them on {none} of {len(trees)} draws, {np.mean(trees):.1f} of four in the mean." if trees else "", command,
        )
    )  # fmt: skip
    others = [m for m in PAPER_TABLE_2 if m != "CGM" and of(rows, m)]
    means = {m: mean(of(rows, m), "hamming") for m in ("CGM", "CGM, refit", *others) if of(rows, m)}
    lowest = all(means["CGM"] < means[m] for m in others) if "CGM" in means and others else None
    text = "; ".join(
        f"{m} {v:.4f}" + (f" (paper {PAPER_TABLE_2[m]:.3f})" if m in PAPER_TABLE_2 else "")
        for m, v in means.items()
    )
    seen = f"Hamming loss over {len(of(rows, 'CGM'))} draws: {text}." if means else ""
    found.append(Claim("Table 2", "CGM has the lowest Hamming loss", verdict(lowest), seen, command))
    order = [m for m in ("all edges", "Chow-Liu tree", "no edges") if m in means]
    if len(order) == 3:
        right = means["CGM"] < means["all edges"] < means["Chow-Liu tree"] < means["no edges"]
        ratio = "; ".join(f"{m} {means[m] / means['CGM']:.1f} times CGM's" for m in order)
        found.append(
            Claim(
                "Table 2",
                "The order is CGM, all edges, Chow-Liu tree, no edges",
                verdict(right),
                f"{ratio}.",
                command,
            )
        )
        off = max(abs(means[m] - v) for m, v in PAPER_TABLE_2.items() if m in means)
        found.append(
            Claim("Table 2", "The figures are those printed", UNTESTED, f"Farthest by {off:.3f}; the paper's one draw is not published.", command)
        )  # fmt: skip
    return found


def _first_edges(rows) -> Claim:
    right = [set(row["edges"].split(";")[:4]) == _TRUE for row in rows]
    seen = f"So on {sum(right)} of {len(right)} draws, with and without noise." if right else ""
    says = "The first edges that the dual asks for are the true ones"
    return Claim("Section 5.2", says, by_share(sum(right), len(right)), seen, f"{_COMMAND} scores", True)


def _convergence(history) -> list[Claim]:
    command = f"{_COMMAND} convergence"
    says = "CGM achieves the lowest objective value, and converges fastest"
    last = {name: of(history, name)[-1] for name in dict.fromkeys(row["method"] for row in history)}
    if "CGM" not in last or "all edges" not in last:
        return [Claim("Figure 2", says, verdict(None), "", command)]
    values = {name: (float(row["objective"]), int(row["epoch"])) for name, row in last.items()}
    lowest = min(values, key=lambda name: values[name][0])
    text = "; ".join(f"{name} {v:.3f} after {epoch} epochs" for name, (v, epoch) in values.items())
    seen = f"Last objective: {text}. More edges cannot raise the least objective, so that all of them have the lowest; the penalties differ."
    found = [Claim("Figure 2", says, verdict(lowest == "CGM"), seen, command)]
    if "CGM, SPDCA" in last:
        slow = last["CGM, SPDCA"]
        # beside what the other solver has after no more epochs
        fast = [row for row in of(history, "CGM") if int(row["epoch"]) <= int(slow["epoch"])][-1]
        says = "The stochastic proximal dual method (corrected) gets there"
        holds = float(slow["objective"]) <= 1.1 * float(fast["objective"])
        seen = "; ".join(
            f"{name} {float(row['objective']):.3f} with {row['edges']} edges after {row['epoch']} epochs"
            for name, row in (("SPDCA", slow), ("CGM's other solver", fast))
        )
        found.append(Claim("Algorithm 2", says, verdict(holds), f"Objective: {seen}.", command))
    return found


def _figures(rows) -> list[Claim]:
    found = []
    for method, says in (
        ("CGM", "CGM's figures on Scene are at least as good as printed"),
        ("binary relevance", "Binary relevance (LIBLINEAR, C = 1) has the figures printed"),
    ):
        runs = of(rows, method)
        if not runs:
            continue
        means = {m: mean(runs, m) for m in _LESS}
        printed = dict(zip(_LESS, PAPER_SCENE[method], strict=True))
        if method == "CGM":
            holds = all(
                (means[m] <= printed[m]) == less or means[m] == printed[m] for m, less in _LESS.items()
            )
        else:
            holds = all(abs(means[m] - printed[m]) <= 0.01 for m in _LESS)
        text = ", ".join(f"{m} {means[m]:.3f} ({printed[m]:.3f})" for m in _LESS)
        found.append(
            Claim("Table 3", says, verdict(holds), f"{len(runs)} folds: {text}.", f"{_COMMAND} scene")
        )
    return found


_RIVALS = (
    "binary relevance", "binary relevance, C chosen", "Chow-Liu tree", "PLST", "MMOC", "LEAD", "PLEM", "HLLM-L1", "no edges", "all edges",
)  # fmt: skip


#: Rivals that are as good by the paper: HLLM-L1 by its text, MMOC by its micro-F1 in Table 3.
_COMPARABLE = ("MMOC", "HLLM-L1")


def in_general(name: str, rows, command: str) -> list[Claim]:
    """Those of Table 3 that can be asked of any labels."""
    return judged(_against_rivals(name, rows, command))


def _against_rivals(name: str, rows, command: str) -> list[Claim]:
    """CGM beside every rival in the four measures of Table 3, fold by fold."""
    found = []
    ours = of(rows, "CGM")
    for rival in _RIVALS:
        theirs = of(rows, rival)
        printed = name == "scene" and rival in PAPER_SCENE
        where = "Table 3" if printed else f"as Table 3, {name}"
        pairs = []
        for measure, less in _LESS.items():
            a, b = ({row["seed"]: float(row[measure]) for row in some} for some in (ours, theirs))
            d = np.array([a[s] - b[s] for s in sorted(set(a) & set(b))])
            if d.size > 1:
                pairs.append(Pair(measure, -d if less else d, 1 / FOLDS))
        if pairs or printed:
            equal = printed and rival in _COMPARABLE
            says = f"CGM is {'better than, or comparable to,' if equal else 'better than'} {rival} on {name.capitalize()}"
            found.append(Claim(where, says, UNTESTED, "", command, not printed, tuple(pairs), or_equal=equal))
    return found


def _growth(rows, name: str, command: str) -> list[Claim]:
    means = {
        int(m.split()[0]): mean(of(rows, m), "hamming") for m in dict.fromkeys(row["method"] for row in rows)
    }
    says = f"Edges improve the measures on {name}, and more than ten no further"
    if len(means) < 4 or not {0, 10} <= set(means):
        return [Claim("Figure 3", says, verdict(None), "", command)]
    gain, rest = means[0] - means[10], means[10] - min(v for k, v in means.items() if k >= 10)
    text = ", ".join(f"{k}: {v:.4f}" for k, v in sorted(means.items()))
    holds = gain > 0 and rest < 0.1 * gain
    return [Claim("Figure 3", says, verdict(holds), f"Hamming loss by edges at most: {text}.", command)]


def _elsewhere(rows) -> list[Claim]:
    found = [
        Claim(
            "Table 3, Figure 4", "The figures on PASCAL VOC 2007 and 2012, and their flattening at 12 edges", verdict(None),
            "The features are not published with the paper; `--data` takes them from a file.",
            f"{_COMMAND.removesuffix(' --study')} --data FILE",
        ),
    ]  # fmt: skip
    says, command = "CGM outperforms LSG21, MLF, MLLS and MLRF on Scene in F1", f"{_COMMAND} scene"
    ours = of(rows, "CGM")
    if not ours:
        return [*found, Claim("Table 4", says, verdict(None), "", command)]
    means = mean(ours, "macro_f1"), mean(ours, "micro_f1")
    theirs = {name: (found["macro-F1"], found["micro-F1"]) for name, found in printed("CGM", "scene").items()}
    held = [mine > other for both in theirs.values() for mine, other in zip(means, both, strict=True)]
    text = "; ".join(f"{name} {macro:.3f}, {micro:.3f}" for name, (macro, micro) in theirs.items())
    seen = f"Macro- and micro-F1 {means[0]:.3f}, {means[1]:.3f}; theirs as printed, of other folds: {text}."
    return [*found, Claim("Table 4", says, verdict(all(held)), seen, command)]
