"""docs/choosing.md: what its table says to write can be written, with the bounds that stand beside it."""

import re
from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.language.constraints import Constraint, RangeConstraint
from mtldsl.language.objective import Objective
from tests.loops import for_each

PAGE = Path(__file__).parents[2] / "docs" / "choosing.md"
WHAT_IS_SHARED = PAGE.read_text().split("## 2.")[1].split("## 3.")[0]
CELLS = [line.split(" | ")[1] for line in WHAT_IS_SHARED.splitlines() if line.startswith("| ")][2:]

TASKS = mtl.Tasks.shared(np.eye(6, 4), np.eye(6, 3), task_names=list("abc"))
W, P, Q, L_, S = (mtl.Weights(TASKS, name=name) for name in "WPQLS")
NAMES = {
    "mtl": mtl, "W": W, "P": P, "Q": Q, "L": np.eye(3), "S": S, "r": 2, "groups": [[0, 1], [2, 3]],
    "lower": 0.1, "upper": 1.0, "trace": 2.0, "parents": {"a": "x", "b": "x", "c": "all", "x": "all"},
    "loss": mtl.squared_loss(W, TASKS, mean=True), "Omega": mtl.TaskCovariance(TASKS),
    "Sigma1": mtl.FeaturePrecision(TASKS), "Sigma2": mtl.TaskPrecision(TASKS),
}  # fmt: skip
TREES = {"rows": [[0, 1], [2, 3], [0, 1, 2, 3]], "columns": [[0, 1], [0, 1, 2]]}


def value_of(text):
    """What is written, with `L` a matrix of weights where it is penalised, and a tree of rows or of columns."""
    side = re.search(r"(rows|columns)=tree", text)
    names = NAMES | {"tree": TREES[side[1]]} if side else NAMES
    names = names | {"L": L_} if "(L)" in text else names
    words = {name: getattr(mtl, name) for name in re.findall(r"(?<![.\w])\w+(?=\()", text)}
    return eval(text, {**words, **names})  # our own page


@for_each("cell", CELLS)
def test_what_the_table_says_can_be_written(cell):
    spans = re.findall(r"`([^`]+)`", cell)
    values = [value_of(text) for text in spans if re.search(r"\(|[<>]", text)]
    kept = [one for one in values if isinstance(one, Constraint | RangeConstraint)]
    for term in [one for one in values if isinstance(one, Objective)] or [mtl.ridge(W)]:
        of = {"P": P + Q, "L": L_ + S}.get(next((n for n in "PL" if f"({n})" in term.text), ""), W)
        lossless = not any(one.is_loss for one in term.terms)
        whole = mtl.squared_loss(of, TASKS) + term if lossless else term
        learned = [
            one
            for one in kept
            if not isinstance(one, RangeConstraint) or str(one).split()[0].split(".")[0] in term.text
        ]
        mtl.minimize(whole, subject_to=learned).form()
