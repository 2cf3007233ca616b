"""Models stated by the names of their loss and their penalty: what `loss=` and `penalty=` of an estimator may be."""

from __future__ import annotations

import inspect
from functools import lru_cache

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.errors import ModelError
from mtldsl.language.suggestions import advice, meant
from mtldsl.language.vocabulary import WORDS
from mtldsl.utils.validation import quoted

#: the penalties that an error lists, the most useful first
_USEFUL = (
    "l21_norm", "trace_norm", "l1_norm", "ridge", "mean_regularizer", "l1_inf_norm", "l12_norm", "squared_trace_norm", "total_variation",
    "log_rank", "l1_norm + ridge", "mean_regularizer + ridge",
)  # fmt: skip

#: what others write for no penalty
NAMES_OF_NO_PENALTY = ("none", "no", "null", "zero", "")


@lru_cache(maxsize=256)
def statement_of(loss: str, penalty: str, typed: str) -> str:
    """Return the statement `loss(W, tasks) + lam * penalty(W)`; a penalty may be a sum, such as "l1_norm + ridge".

    ModelError for other names, and for words that need more than the weights, with what to write instead.

    >>> statement_of("logistic_loss", "trace_norm", "MultiTaskClassifier")
    'logistic_loss(W, tasks) + lam * trace_norm(W)'
    >>> statement_of("squared_loss", "l1_norm + ridge", "MultiTaskRegressor")
    'squared_loss(W, tasks) + lam * (l1_norm(W) + ridge(W))'
    """
    if penalty.strip().lower() in NAMES_OF_NO_PENALTY:
        raise no_penalty(penalty, typed)
    fit = _called("loss", loss, True, typed)
    parts = [_called("penalty", one.strip(), False, typed) for one in penalty.split("+")]
    return f"{fit} + lam * {parts[0] if len(parts) == 1 else '(' + ' + '.join(parts) + ')'}"


def no_penalty(penalty: str | None, typed: str) -> ModelError:
    """The error of a penalty that is none."""
    return ModelError(
        "there is no penalty of that name",
        term=f"{typed}(penalty={quoted(penalty)})",
        write_instead=f"write {typed.removesuffix('CV')}(lam=0.0) for none, or a name, such as penalty='l21_norm'",
    )


def _called(argument: str, name: str, wants_loss: bool, typed: str) -> str:
    """The call of a word with the weights alone."""
    arguments = "(W, tasks)" if wants_loss else "(W)"
    word = WORDS.get(name)
    needed = _needed(word) if word is not None and _is_of(name, wants_loss) else None
    if needed is not None and needed[0] == "W" and needed[1:] in ([], ["tasks"]):
        return name + arguments
    if needed is not None:
        more = ", ".join(needed)
        raise ModelError(
            f"{name} needs {' and '.join(one for one in needed if one not in ('W', 'tasks'))}",
            term=f"{typed}({argument}={quoted(name)})",
            write_instead=f"write a function, model=lambda W, tasks, lam=1.0: ... + lam * mtl.{name}({more})",
        )
    known = [one for one in WORDS if _is_of(one, wants_loss) and set(_needed(WORDS[one])) <= {"W", "tasks"}]
    near = meant(name, known)
    listed = known if wants_loss else _USEFUL
    hint = None if near is None else near.replace("(W, tasks)", "").replace("(W)", "")
    said = advice(name) if wants_loss else None  # of a penalty's other names the word is enough
    instead = (
        said or (f"{argument}={hint!r}" if hint else advice(name)) or f"one of {', '.join(map(repr, listed))}"
    )
    raise ModelError(
        f"there is no {argument} of that name",
        term=f"{typed}({argument}={quoted(name)})",
        write_instead=f"write {instead}",
    )


def _is_of(name: str, wants_loss: bool) -> bool:
    found = REGISTRY.get(name)
    return found is not None and issubclass(found, Loss if wants_loss else (Regularizer, Structure))


def _needed(word) -> list[str]:
    """The arguments of a word that have no default."""
    found = inspect.signature(word).parameters.values()
    return [one.name for one in found if one.default is one.empty]
