"""A name that is not known brings the word that was meant, from one table."""

from traceback import format_exception_only

import pytest

import mtldsl as mtl
from mtldsl.language.suggestions import SYNONYMS, meant, nearest
from mtldsl.language.vocabulary import CALLABLE
from tests.loops import for_each

TASKS = mtl.Tasks.shared([[1.0], [2.0]], [[0.0], [3.0]])
OTHERS = [(other, word) for word, others in SYNONYMS.items() for other in others.split(", ")]


@for_each("word", SYNONYMS)
def test_every_word_of_the_table_is_public(word):
    known = [*CALLABLE, *mtl.__all__]
    assert word in known or all(part.split("(")[0] in known for part in word.split(" + "))


@pytest.mark.slow
def test_every_other_name_leads_to_its_word_and_is_none_itself():
    known = [*mtl.__all__, *mtl._MOVED]
    assert {other: meant(other, known) for other, _ in OTHERS} == dict(OTHERS)
    assert not {other for other, _ in OTHERS} & set(known)
    assert len(OTHERS) == len(dict(OTHERS))


#: Names with their capitals, endings and slips of the pen -> the word that is meant.
MEANT = {
    "nuclear_norm": "trace_norm", "NuclearNorm": "trace_norm", "nucler_norm": "trace_norm", "ElasticNet": "l1_norm(W) + ridge(W)", "l2_penalty": "ridge", "mse_loss": "squared_loss",
    "CrossEntropyLoss": "logistic_loss", "huber": "huber_loss", "l12": "l12_norm", "fscore": "FScore", "sqared_loss": "squared_loss", "zebra": None, "__wrapped__": None,
}  # fmt: skip


@for_each("typed, word", MEANT.items())
def test_what_is_meant(typed, word):
    assert meant(typed, CALLABLE) == word


@for_each(
    "typed, says",
    [
        ("ordinal_loss", "there is no ordinal loss"),
        ("ranking", "structured_hinge(W, tasks, metric=ROCArea())"),
        ("SharedWeights", "shared=True"),
        ("Dirty", "l1_inf_norm(P)"),
        ("tolerance", "tol="),
        ("probit", "there is no probit loss"),
        ("l0_norm", "mcp, scad or capped_l1"),
    ],
)
def test_a_name_without_a_word_says_what_is_near(typed, says):
    with pytest.raises(AttributeError) as error:
        getattr(mtl, typed)
    assert says in str(error.value)
    assert says in nearest(typed, CALLABLE)


@for_each(("owner", "hidden", "shown"), [
    (mtl, {"FScore", "identity"}, {"metrics", "similarities", "estimators", "trace_norm"}),
    (mtl.metrics, {"classes_of"}, {"FScore", "AUC"}),
    (mtl.similarities, {"np"}, {"identity", "clusters"}),
    (mtl.Tasks, {"adjoint", "gram"}, {"shared", "separate", "grouped"}),
    (mtl.Weights(TASKS), {"precedence", "tree", "parts"}, {"shape", "T", "sum"}),
    (TASKS, {"adjoint", "gram", "sums_of", "kernel_map"}, {"split", "n_tasks"}),
    (mtl.minimize(mtl.squared_loss(mtl.Weights(TASKS), TASKS)), {"form", "first_loss"}, {"solve", "weights"}),
])  # fmt: skip
def test_dir_lists_what_is_typed(owner, hidden, shown):
    assert shown <= set(dir(owner)) and not hidden & set(dir(owner))
    assert all(hasattr(owner, name) for name in shown)


@for_each("typed, word", [("minimise", "minimize"), ("Variable", "Weights")])
def test_python(typed, word):
    with pytest.raises(AttributeError) as caught:
        getattr(mtl, typed)
    assert str(caught.value) == f"module 'mtldsl' has no attribute {typed!r}; did you mean {word!r}?"
    # once: Python's own guess is not added to it
    assert "".join(format_exception_only(caught.value)).count("mean") == 1


def test_python_says_nothing_more_where_nothing_is_near():
    for name in ("zebra", "_private", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"^module 'mtldsl' has no attribute '{name}'$"):
            getattr(mtl, name)
    assert not hasattr(mtl, "lasso")
