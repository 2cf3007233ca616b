"""The file of a proven choice: fits on folds as weights and multipliers, and intervals of a parameter with the two fits that bound each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mtldsl.certificates.checker.loss_formulas import SCALAR_LOSSES
from mtldsl.certificates.checker.proof_file import DataArrays, parts_as_read, read_parts, write_parts
from mtldsl.certificates.checker.proof_kinds import (
    array,
    each,
    fields,
    list_of,
    number,
    one_of,
    text,
    wholes,
)
from mtldsl.certificates.checker.proof_schema import checked_form

FORMAT = "mtldsl-choice-1"

#: losses whose scores are the numbers that they predict
LOSSES_OF_NUMBERS = frozenset(
    {"squared_loss", "sum_of_squares", "absolute_loss", "quantile_loss", "epsilon_insensitive_loss", "huber_loss"}
)  # fmt: skip

#: measure -> (of what, the labels of a task that have a number)
METRICS = {
    "accuracy": ("labels", "any"), "balanced_accuracy": ("labels", "two"), "f1": ("labels", "positive"),
    "precision": ("labels", "positive"), "recall": ("labels", "positive"), "roc_auc": ("scores", "two"),
    "mse": ("values", "any"), "mae": ("values", "any"), "r2": ("values", "two"), "nmse": ("values", "two"),
}  # fmt: skip


def write_choice(path, choice: dict) -> Path:
    """One file, written whole or not at all. Returns the path written."""
    return write_parts(path, FORMAT, choice, {})


def read_choice(path) -> dict:
    """A choice whose parts are of their kinds and fit each other. DataError for a file of another kind."""
    return read_parts(path, _choice)


def choice_as_read(choice: dict) -> dict:
    """A choice as it is where it was written and read."""
    return parts_as_read(choice, _choice)


def unsupported(form: dict, metric: str) -> str:
    """Return why a choice of such a model by such a measure is not checked; "" where it is."""
    losses, functions = form["losses"], form["functions"]
    weights = [one["name"] for one in form["blocks"] if one["intercept_of"] is None]
    if metric not in METRICS:
        return f"{metric} is not among the measures that are checked: {', '.join(METRICS)}"
    if (
        len(losses) != 1
        or len(functions) != 1
        or len(weights) != 1
        or len(form["blocks"]) > 2
        or functions[0]["word"] != "ridge"
    ):
        return "the model is not one loss and one ridge of one matrix of weights"
    (loss,), (ridge,) = losses, functions
    if loss["word"] not in SCALAR_LOSSES:
        return f"{loss['word']} is not a sum over samples"
    if ridge["parameters"]["weights"] is not None:
        return "the ridge has weights"
    if not (_is_identity(loss["map"], weights[0]) and _is_identity(ridge["map"], weights[0])):
        return "a term is not of the weights as they are"
    if METRICS[metric][0] == "values" and loss["word"] not in LOSSES_OF_NUMBERS:
        return f"{metric} is of numbers, and the scores of {loss['word']} are none"
    return ""


def _is_identity(described: dict, block: str) -> bool:
    one = {"block": block, "coefficient": 1.0, "left": None, "right": None}
    return described["entries"] == [one] and described["offset"] is None


def rows_of(data: DataArrays, kept: np.ndarray) -> DataArrays:
    """The data in some rows: of the shared inputs, or of the labelled rows, task after task."""
    m = len(data.counts)
    task = np.repeat(np.arange(m), data.counts)
    chosen, mask = kept, None if data.mask is None else data.mask[kept]
    if data.shared:
        there = np.ones((m, len(kept)), dtype=bool) if data.mask is None else data.mask.T
        chosen = np.broadcast_to(kept, there.shape)[there]
    counts = np.bincount(task[chosen], minlength=m)
    return DataArrays(data.inputs[kept], data.targets[chosen], counts, data.shared, mask)


def _choice(value, where: str) -> dict:
    """Read the parts of a file; ValueError that says which is not of its kind."""
    found = fields(
        {
            "form": each(lambda x, _: x), "parameter": text, "grows": one_of("loss", "ridge"), "metric": text,
            "folds": list_of(fields({"train": wholes((None,), 0, 1), "held_out": wholes((None,), 0, 1)}), 1),
            "values": array((None,), 5e-324), "weights": list_of(array((None, None, None)), 1), "multipliers": list_of(array((None, None)), 1),
            "intervals": array((None, 4), 0.0),
            "claimed": fields({"low": number(5e-324), "high": number(5e-324), "chosen": number(5e-324), "score": number(), "regret": number(0.0)}),
        },
        {"intercepts": list_of(array((None, None)), 1)},
    )(value, where)  # fmt: skip
    found["form"] = form = checked_form(found["form"])
    if why := unsupported(form, found["metric"]):
        raise ValueError(why)
    values, folds = found["values"], found["folds"]
    shape = next(tuple(one["shape"]) for one in form["blocks"] if one["intercept_of"] is None)
    sizes = {
        "weights": (len(values), *shape),
        "multipliers": (len(values),),
        "intercepts": (len(values), shape[1]),
    }
    has_intercepts = any(one["intercept_of"] is not None for one in form["blocks"])
    if (found["intercepts"] is not None) != has_intercepts or bool(
        form["losses"][0]["intercepts"]
    ) != has_intercepts:
        raise ValueError(f"{where} has intercepts that its model has not, or lacks them")
    for name, size in sizes.items():
        parts = found[name]
        if parts is None:
            continue
        if len(parts) != len(folds) or any(one.shape[: len(size)] != size for one in parts):
            raise ValueError(f"{where} has {name} that do not fit its folds and values")
    for k, fold in enumerate(folds):
        train, held_out = (fold[name].astype(bool) for name in ("train", "held_out"))
        if train.shape != held_out.shape or (train & held_out).any() or not (train.any() and held_out.any()):
            raise ValueError(f"fold {k} learns on rows that it scores, or has a side without rows")
    _require_cover(found, where)
    return found


def _require_cover(found: dict, where: str) -> None:
    """ValueError where intervals are not one after the other from end to end, or are of fits that are not there."""
    low, high, *fits = found["intervals"].T
    claimed, count = found["claimed"], len(found["values"])
    if claimed["chosen"] not in found["values"]:
        raise ValueError(f"{where} chooses {claimed['chosen']:g}, of which it has no fit")
    if not low.size or low[0] != claimed["low"] or high[-1] != claimed["high"]:
        raise ValueError(f"the intervals do not reach from {claimed['low']:g} to {claimed['high']:g}")
    if not (low < high).all():
        raise ValueError("an interval has no length")
    holes = np.flatnonzero(high[:-1] != low[1:])
    if holes.size:
        k = holes[0]
        raise ValueError(f"there is a hole between the intervals, from {high[k]:.17g} to {low[k + 1]:.17g}")
    wholes((2, None), 0, count - 1)(np.array(fits), "the fits of intervals")
