"""Schema of a proof's file: the names it may hold, their kinds and their ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.certificates.checker.proof_kinds import (
    Kind,
    array,
    each,
    fields,
    flag,
    list_of,
    matrix,
    number,
    one_of,
    optional,
    spread,
    text,
    whole,
    wholes,
)

# --------------------------------------------------------------------------------------------------------------
# Two normal forms as plain data, compared: the one that a proof is about, and the one that the user names.

#: what of a term is of the model; the rest is of the proof, or text for people
_OF_LOSSES = ("word", "parameters", "coefficients", "data", "map", "intercepts")
_OF_FUNCTIONS = ("word", "parameters", "coefficient", "map", "convex")


def difference(own: dict, other: dict) -> str | None:
    """The first thing in which `other` is not `own`, up to the order of blocks, terms and data; None where they are the same.

    Both are canonical: `checked_form` made them.
    """
    if own["constant"] != other["constant"]:
        return f"the constant is {other['constant']:.17g}, not {own['constant']:.17g}"
    parts = {
        "the block": (own["blocks"], other["blocks"]),
        "the data set": (own["data"], other["data"]),
        "the loss": (_losses(own), _losses(other)),
        "the function": (_functions(own), _functions(other)),
    }
    for what, (mine, its) in parts.items():
        left = list(its)
        for one in mine:
            k = next((k for k, candidate in enumerate(left) if _equal(one, candidate)), None)
            if k is None:
                return f"{what} {_called(one)} is not in it, or with other numbers"
            del left[k]
        if left:
            return f"{what} {_called(left[0])} is in it besides"
    return None


def _losses(form) -> list[dict]:
    return [
        {name: one[name] for name in _OF_LOSSES} | {"data": form["data"][one["data"]]}
        | {"intercepts": sorted(one["intercepts"]), "map": _sorted_map(one["map"])}
        for one in form["losses"]
    ]  # fmt: skip


def _functions(form) -> list[dict]:
    return [
        {name: one[name] for name in _OF_FUNCTIONS} | {"map": _sorted_map(one["map"])}
        for one in form["functions"]
    ]


def _sorted_map(map: dict) -> dict:
    return map | {"entries": sorted(map["entries"], key=lambda e: e["block"])}


def _called(one: dict) -> str:
    return str(one.get("word") or one.get("name") or ", ".join(sorted(one["hashes"])))


def _equal(a: Any, b: Any) -> bool:
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.issparse(a) and sparse.issparse(b) and a.shape == b.shape and (a != b).nnz == 0
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and bool(np.array_equal(a, b))
    return type(a) is type(b) and a == b


# --------------------------------------------------------------------------------------------------------------
# The model that a proof is about, in words: made of the numbers that are checked, and not of the text that the file has beside them.


def in_words(proof: dict) -> str:
    """The terms of a normal form, with their coefficients and parameters.

    A number stands as it is, an array as its range, and the matrices of a map as A and B.
    """
    terms = [_loss(one) for one in proof["losses"]]
    terms += [_function(one) for one in proof["functions"] if not _is_set(one)]
    if proof["constant"]:
        terms.append(f"{proof['constant']:.10g}")
    held = [_function(one) for one in proof["functions"] if _is_set(one)]
    subject_to = f" subject to {', '.join(held)}" if held else ""
    blocks = ", ".join(
        f"{one['name']} ({one['shape'][0]:,} x {one['shape'][1]:,})" for one in proof["blocks"]
    )
    return f"minimize {' + '.join(terms)}{subject_to} over {blocks}"


def _is_set(one: dict) -> bool:
    return one["word"] in ("norm_ball", "at_least", "at_most", "equal_to", "columns_on_simplex")


def _loss(one: dict) -> str:
    arguments = [
        _map(one["map"], one["intercepts"]),
        f"data {one['data'] + 1}",
        *_parameters(one["parameters"]),
    ]
    return f"{_range(one['coefficients'])} {one['word']}({', '.join(arguments)})"


def _function(one: dict) -> str:
    text = f"{one['word']}({', '.join([_map(one['map'], []), *_parameters(one['parameters'])])})"
    return text if _is_set(one) else f"{one['coefficient']:.10g} {text}"


def _map(map: dict, intercepts: list[str]) -> str:
    parts = []
    for e in map["entries"]:
        text = e["block"] if e["coefficient"] == 1.0 else f"{e['coefficient']:.10g} {e['block']}"
        text = text if e["left"] is None else f"A @ {text}"
        parts.append(text if e["right"] is None else f"{text} @ B")
    parts += intercepts
    return " + ".join(parts if map["offset"] is None else [*parts, f"an offset of {_range(map['offset'])}"])


def _parameters(parameters: dict) -> list[str]:
    return [f"{name}={_value(value)}" for name, value in parameters.items() if value is not None]


def _value(value) -> str:
    if isinstance(value, dict):
        inside = {name: one for name, one in value.items() if name not in ("word", "metric", "parameters")}
        return f"{value.get('word') or value.get('metric')}({', '.join(_parameters(value.get('parameters') or inside))})"
    if isinstance(value, np.ndarray):
        return _range(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]" if len(value) <= 4 else f"{len(value):,} entries"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _range(array: np.ndarray) -> str:
    least, most = float(np.min(array)), float(np.max(array))
    return f"{least:.10g}" if least == most else f"{least:.6g} to {most:.6g}"


# --------------------------------------------------------------------------------------------------------------
# The whole of what a proof's file may hold: the names, the kinds and the ranges. Read once, before any formula sees it.
#
# Everything in the file may be forged. What is returned here has the shapes that the formulas take for granted, equal and never broadcast; it has
# finite numbers, blocks that are there once, and no names but those below. What only the data can tell (`terms.CheckedLossTerm`, `DataArrays.checked`)
# and the ranges that make a word convex (the words' own classes) are looked at there.

#: Most rows and columns of a block.
_MAX_BLOCK_ROWS = 2**40


def _free(value, where: str):
    """A part that is held to its kind later, once its shape is known."""
    return value


_POSITIVE = number(5e-324)
_ANY = number(finite=False)
#: metric -> the kinds of its arguments, and what those stand at that the file leaves out
_METRICS = {
    "FScore": ({"beta": _POSITIVE}, {"beta": 1.0}),
    "PartialAUC": ({"max_fpr": number(0.0, 1.0), "min_fpr": number(0.0, 1.0)}, {"max_fpr": 0.1, "min_fpr": 0.0}),
    **dict.fromkeys(("AUC", "ErrorRate", "BalancedError", "AveragePrecision", "NDCG", "Jaccard", "GMean", "ROCArea"), ({}, {})),
}  # fmt: skip


def _share_or_count(value, where: str):
    """k of the metrics of the k best: a whole number, or a share."""
    return (
        whole(1, _MAX_BLOCK_ROWS)(value, where)
        if isinstance(value, int)
        else number(5e-324, 1.0)(value, where)
    )


def _metric(value, where: str) -> dict:
    name = text(value.get("metric") if isinstance(value, dict) else None, f"{where}.metric")
    if name in ("PrecisionAt", "RecallAt"):
        return fields({"metric": text, "k": _share_or_count})(value, where)
    if name not in _METRICS:  # a metric of one's own: not checked
        return value
    kinds, defaults = _METRICS[name]
    return fields({"metric": text, **kinds})({**defaults, **value}, where)


def _label_costs(value, where: str):
    """Return what labellings cost: a word, a metric, a number a label, or a table a clique."""
    if isinstance(value, dict):
        return _metric(value, where)
    if isinstance(value, str):
        return one_of("hamming", "zero_one")(value, where)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [_table_of_costs(one, f"{where}[{k}]") for k, one in enumerate(value)]
    return list_of(number(0.0), 1)(value, where)


def _table_of_costs(value, where: str) -> list:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{where} is not a clique and its table")
    clique = _distinct(_MAX_BLOCK_ROWS)(value[0], where)
    table = list_of(list_of(number(0.0), 1), 1)(value[1], where)
    if len(clique) > 14 or {len(table), *map(len, table)} != {2 ** len(clique)}:
        raise ValueError(f"{where}: the table does not fit the clique")
    return [clique, table]


def _distinct(below: int):
    def read(value, where: str) -> list[int]:
        found = list_of(whole(0, below - 1), 1)(value, where)
        if len(set(found)) < len(found):
            raise ValueError(f"{where} names one twice")
        return found

    return read


def _without(name: str, kind: Kind) -> Kind:
    """The same less a parameter that no formula reads: it would be told in words, and nothing held to it."""

    def read(value, where: str) -> dict:
        found = dict(kind(value, where))
        del found[name]
        return found

    return read


_CLASSES = _without("n_classes", fields({}, {"n_classes": whole(2, _MAX_BLOCK_ROWS)}))
#: word -> its parameters in a saved proof, and what each may be
LOSSES = {
    **{word: fields({}) for word in (
        "squared_loss", "sum_of_squares", "absolute_loss", "hinge_loss", "squared_hinge_loss", "logistic_loss", "exponential_loss",
        "poisson_loss", "gamma_loss", "cox_loss",
    )},
    "quantile_loss": fields({"q": number(5e-324, 1.0 - 2**-53)}), "huber_loss": fields({"delta": _POSITIVE}),
    "epsilon_insensitive_loss": fields({"epsilon": number(0.0)}),
    "square_root_loss": fields({}, {"eps": number(0.0)}), "structured_hinge": fields({"metrics": list_of(_metric, 1)}),
    **dict.fromkeys(("softmax_loss", "crammer_singer_loss"), _CLASSES),
    "clique_hinge": fields({"n_labels": whole(1, _MAX_BLOCK_ROWS), "members": list_of(_distinct(_MAX_BLOCK_ROWS)), "loss": _label_costs}),
    "pairwise_log_loss": fields({"n_labels": whole(1, _MAX_BLOCK_ROWS), "members": list_of(_distinct(_MAX_BLOCK_ROWS))}),
}  # fmt: skip


def _around(parameters: Callable[[str, str], Kind], **beside: Kind) -> Kind:
    """A word around another one, whose own parameters are read by its name."""

    def read(value, where: str) -> dict:
        found = fields({"of": fields({"word": text, "parameters": each(_free)}), **beside})(value, where)
        own = found["of"]
        return found | {"of": own | {"parameters": parameters(own["word"], where)(own["parameters"], where)}}

    return read


def _loss_parameters(word: str):
    if word == "worst_task":
        return _around(lambda inner, where: _loss_parameters(inner))
    return LOSSES.get(word, each(_free))


def _groups(**lines: int):
    """Groups of so many lines, each line by itself where there are none, and a weight a group; where groups of rows and of columns may be
    named, those of either."""

    def read(value, where: str) -> dict:
        kinds = {name: list_of(_distinct(count), 1) for name, count in lines.items()}
        found = fields({}, kinds | {"weights": _free})(value, where)
        named = [found[name] for name in lines if found[name] is not None]
        if len(lines) > 1 and len(named) != 1:
            raise ValueError(f"{where} has groups of rows and of columns, or of neither")
        size = len(named[0]) if named else max(lines.values())
        return found | {"weights": optional(spread((size,), 0.0))(found["weights"], f"{where}.weights")}

    return read


def _function_parameters(word: str, shape: tuple[int, int]):
    d, m = shape
    none = fields({})
    kinds = {
        **dict.fromkeys(("frobenius_norm", "trace_norm", "spectral_norm", "total_variation", "mean_regularizer", "squared_trace_norm"), none),
        "l1_norm": fields({}, {"weights": spread(shape, 0.0)}), "ridge": fields({}, {"weights": spread(shape, 0.0)}),
        "l21_norm": fields({}, {"weights": spread((d,), 0.0)}), "l1_inf_norm": fields({}, {"weights": spread((d,), 0.0)}),
        "l12_norm": fields({}, {"weights": spread((m,), 0.0)}),
        "sorted_l1_norm": _without("q", fields({"weights": spread((d * m,), 0.0)}, {"q": number(0.0, 1.0)})),
        "group_norm": _groups(groups=d), "column_group_norm": _groups(columns=m), "latent_group_norm": _groups(groups=d), "tree_norm": _groups(rows=d, columns=m),
        "exclusive_lasso": fields({}, {"groups": list_of(_distinct(d), 1)}),
        "half_squared_group_norm": fields({}, {"columns": list_of(_distinct(m), 1)}),
        "half_squared_k_support_norm": fields({"r": whole(1, _MAX_BLOCK_ROWS)}, {"columns": list_of(_distinct(m), 1)}),
        **dict.fromkeys(("feature_covariance_norm", "task_covariance_norm"), fields({"trace": _POSITIVE})),
        "squared_cluster_norm": fields({"lower": number(0.0), "upper": _ANY, "trace": _POSITIVE}),
        "graph_laplacian": fields({"L": array((m, m))}),
        "kronecker_ridge": fields({}, {"rows": array((d, d)), "columns": array((m, m))}),
        # -inf and inf stand for no bound: on the one side on which they are none
        "at_least": fields({"bound": spread(shape, high=np.finfo(float).max, finite=False)}),
        "at_most": fields({"bound": spread(shape, low=-np.finfo(float).max, finite=False)}),
        "equal_to": fields({"bound": spread(shape)}),
        "columns_on_simplex": fields({"total": _POSITIVE}), "norm_ball": _ball(shape),
        **dict.fromkeys(("l1_ball", "l21_ball", "trace_norm_ball", "frobenius_ball"), fields({"radius": number(0.0)})),
    }  # fmt: skip
    return kinds.get(word, each(_free))


def _ball(shape):
    def of_norm(word: str, where: str) -> Kind:
        if word == "norm_ball":
            raise ValueError(f"{where} is a ball of balls")
        return _function_parameters(word, shape)

    return _around(of_norm, radius=number(0.0))


# ------------------------------------------------------------------------------------------------ the parts

_SHAPE = list_of(whole(1, _MAX_BLOCK_ROWS), 2)


def _shape(value, where: str) -> list[int]:
    if len(found := _SHAPE(value, where)) != 2:
        raise ValueError(f"{where} is not the shape of a matrix")
    return found


def _blocks(value, where: str) -> list[dict]:
    found = list_of(fields({"name": text, "shape": _shape}, {"intercept_of": text}), 1)(value, where)
    shapes = {one["name"]: one["shape"] for one in found}
    if len(shapes) < len(found):
        raise ValueError(f"{where} names one twice")
    for one in found:
        of = one["intercept_of"]
        if of is not None and (of not in shapes or one["shape"] != [1, one["shape"][1]] or of == one["name"]):
            raise ValueError(f"{where}: {one['name']!r} is not an intercept of a block")
    return found


def _map_schema(shapes: dict):
    """A map whose parts fit its blocks, each to the very shape of the map."""

    def read(value, where: str) -> dict:
        entry = {"block": text, "coefficient": number(), "left": optional(matrix), "right": optional(matrix)}
        found = fields({"entries": list_of(fields(entry), 1), "shape": _shape}, {"offset": _free})(
            value, where
        )
        shape = tuple(found["shape"])
        for e in found["entries"]:
            if e["block"] not in shapes:
                raise ValueError(f"{where} is of a block {e['block']!r} that is not there")
            image = list(shapes[e["block"]])
            for k, side in ((0, "left"), (1, "right")):
                if e[side] is not None:
                    if e[side].shape[1 - k] != image[k]:
                        raise ValueError(f"{where}.{side} does not fit {e['block']}")
                    image[k] = e[side].shape[k]
            if tuple(image) != shape:
                raise ValueError(f"{where} makes a matrix of {image}, not {list(shape)}")
        return found | {"offset": optional(array(shape))(found["offset"], f"{where}.offset")}

    return read


def _hashes(value, where: str) -> dict:
    names = {"y", "rows_of_tasks"} | (
        {"X"} if "X" in value else {"X.data", "X.indices", "X.indptr", "X.shape"}
    )
    found = fields(dict.fromkeys(names, text), dict.fromkeys(("labelled", "sample_weights"), text))(
        value, where
    )
    for name, one in found.items():
        if one is not None and (len(one) != 64 or not set(one) <= set("0123456789abcdef")):
            raise ValueError(f"{where}.{name} is not a SHA-256")
    return {name: one for name, one in found.items() if one is not None}


_CLAIMED = fields(
    {"objective": _ANY, "dual_bound": _ANY, "tol": _ANY}, {"violation": _ANY, "status": text, "scale": _ANY}
)


def checked_form(form: dict) -> dict:
    """The normal form of a description, in its one canonical shape; ValueError that says which part is not of its kind."""
    return _checked(form, is_proof=False)


def checked_proof(proof: dict) -> dict:
    """A normal form with what proves a bound of it: a point, multipliers and a claim; ValueError as of `checked_form`."""
    found = _checked(proof, is_proof=True)
    shapes = {one["name"]: tuple(one["shape"]) for one in found["blocks"]}
    points = fields({name: array(shape) for name, shape in shapes.items()})
    regions = fields({}, {name: array(shape, 0.0) for name, shape in shapes.items()})
    return found | {
        "point": points(found["point"], "the point"),
        "region": regions(found["region"] or {}, "the region"),
    }


def _checked(value: dict, is_proof: bool) -> dict:
    """The parts that both have, with the multipliers and witnesses of a proof."""
    kinds = {
        "model": text, "constant": number(), "blocks": _blocks, "data": list_of(fields({"hashes": _hashes, "shared": flag})),
        "losses": list_of(each(_free)), "functions": list_of(each(_free)),
    }  # fmt: skip
    more = ({"point": each(_free), "claimed": _CLAIMED}, {"region": each(_free)}) if is_proof else ({}, {})
    found = fields(kinds | more[0], more[1])(value, "the proof")
    if any(one in found["data"][:k] for k, one in enumerate(found["data"])):
        raise ValueError("a data set is listed twice")
    shapes = {one["name"]: tuple(one["shape"]) for one in found["blocks"]}
    intercepts = {one["name"] for one in found["blocks"] if one["intercept_of"] is not None}
    map_ = _map_schema(shapes)

    def loss(value: dict, where: str) -> dict:
        word = text(value.get("word"), f"{where}.word")
        own = {
            "word": text, "typed": text, "parameters": _loss_parameters(word), "coefficients": array((None,), 5e-324),
            "data": whole(0, len(found["data"]) - 1), "map": map_, "intercepts": list_of(one_of(*intercepts)),
        }  # fmt: skip
        multipliers: dict[str, Kind] = {"multipliers": optional(array((None,)))} if is_proof else {}
        witness: dict[str, Kind] = {"witness": _free} if is_proof else {}
        read = fields(own | multipliers, witness)(value, where)
        if len(set(read["intercepts"])) < len(read["intercepts"]):
            raise ValueError(f"{where} has an intercept twice")
        if any(shapes[name] != (1, read["map"]["shape"][1]) for name in read["intercepts"]):
            raise ValueError(f"{where} has an intercept of other tasks")
        return read

    def function(value: dict, where: str) -> dict:
        word, own_map = text(value.get("word"), f"{where}.word"), map_(value.get("map"), f"{where}.map")
        shape = tuple(own_map["shape"])
        # where it is not convex there is no bound, and no formula reads its parameters
        parameters = each(_free) if value.get("convex") is False else _function_parameters(word, shape)
        own = {
            "word": text, "typed": text, "parameters": parameters, "coefficient": number(5e-324), "convex": flag, "map": _free,
        }  # fmt: skip
        multipliers = {"multipliers": optional(array(shape))} if is_proof else {}
        return fields(own | multipliers)(value, where) | {"map": own_map}

    losses = [loss(one, f"losses[{k}]") for k, one in enumerate(found["losses"])]
    apart = {name for one in losses for name in one["intercepts"]}
    if any(e["block"] in apart for one in losses for e in one["map"]["entries"]):
        raise ValueError("a loss is of an intercept as of weights")
    if {one["data"] for one in losses} != set(range(len(found["data"]))):
        raise ValueError("there are data that no loss is of")
    functions = [function(one, f"functions[{k}]") for k, one in enumerate(found["functions"])]
    return found | {"losses": losses, "functions": functions}


def witness_of_shares(m: int):
    return fields({"shares": array((m,), 0.0)})


def witness_of_labellings(n: int, K: int):
    """Labellings, a weight each, and where those of every sample start."""

    def read(value, where: str) -> dict:
        found = fields(
            {
                "labels": wholes((None, K), 0, 2),
                "weights": array((None,), 0.0),
                "starts": wholes((n + 1,), 0, _MAX_BLOCK_ROWS),
            }
        )(value, where)
        L = len(found["labels"])
        starts = found["starts"]
        if len(found["weights"]) != L or starts[0] != 0 or starts[-1] != L or (np.diff(starts) < 0).any():
            raise ValueError(f"{where}: labellings, weights and starts do not fit")
        return found

    return read
