"""What a class, a reference function and a solver of one's own must have: everything that is missing, in one message."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass

from mtldsl.atoms.function import Atom, Loss, MatrixFunction, Regularizer, SeparableLoss, Set
from mtldsl.atoms.metrics import Metric
from mtldsl.atoms.regularizers.norm import Norm
from mtldsl.atoms.structures import Structure
from mtldsl.errors import ModelError
from mtldsl.tasks.labels import LABEL_KINDS

__all__ = ["Kind", "check_class", "check_reference", "kind_of_class"]


@dataclass(frozen=True)
class Kind:
    """One kind of word: its base class, the methods that a class must give, and the arguments of its reference function."""

    base: type[Atom]
    what: str
    methods: tuple[str, ...]
    reference: str
    page: str


#: the most special first
KINDS = (
    Kind(SeparableLoss, "loss", ("pointwise", "slope", "pointwise_prox"), "z, y, s, atom", "a_loss.md"),
    Kind(
        Loss, "loss", ("value", "gradient", "prox", "conjugate", "dual_project"), "z, y, s, atom", "a_loss.md"
    ),
    Kind(
        Structure,
        "structure",
        ("value", "value_at", "update", "update_one", "quadratic", "start", "conjugate", "dual_gauge"),
        "W, matrices, atom",
        "a_structure.md",
    ),
    Kind(Set, "constraint", ("violation", "project", "support", "dual_gauge"), "W, atom", "a_constraint.md"),
    Kind(
        Regularizer,
        "regularizer",
        ("value", "prox", "conjugate", "dual_gauge"),
        "W, atom",
        "a_regularizer.md",
    ),
    Kind(Metric, "metric", ("delta",), "b, c, positives, negatives, atom", "a_metric.md"),
)


def kind_of_class(cls) -> Kind:
    """The kind of a class; ModelError where it is of none."""
    if isinstance(cls, type):
        for kind in KINDS:
            if issubclass(cls, kind.base) and cls is not kind.base:
                return kind
    bases = ", ".join(dict.fromkeys(kind.base.__name__ for kind in KINDS))
    raise ModelError(
        f"register({_shown(cls)}): it is not a class of a word; write a subclass of one of {bases} (from mtldsl.extending)"
    )


def check_class(cls: type[Atom], kind: Kind) -> None:
    """ModelError that lists all that the class lacks."""
    missing = [f"the method {name}" for name in _missing_methods(cls, kind)]
    if not (isinstance(cls.name, str) and cls.name.isidentifier() and not keyword.iskeyword(cls.name)):
        missing.insert(0, "name: ClassVar[str], the word as it is typed")
    own = [n for n, kind_of in vars(cls).get("__annotations__", {}).items() if "ClassVar" not in str(kind_of)]
    if own and "__dataclass_fields__" not in vars(cls):
        missing.append(f"@dataclass(frozen=True, eq=False) above the class, for its parameter {own[0]}")
    if issubclass(cls, Loss) and cls.labels not in LABEL_KINDS:
        missing.append(f"labels that are one of {', '.join(map(repr, LABEL_KINDS))}, not {cls.labels!r}")
    if not missing:
        missing += _wrong_examples(cls)
    if missing:
        raise ModelError(
            f"register({cls.__name__}): the class lacks {'; '.join(missing)}. docs/extending/{kind.page} says what each is for"
        )


def _missing_methods(cls: type[Atom], kind: Kind) -> list[str]:
    def own(name: str) -> bool:
        """Whether the method is more than what a protocol declares."""
        given = getattr(cls, name)
        protocols = (Loss, SeparableLoss, MatrixFunction, Regularizer, Set, Structure, Metric)
        bare = [vars(base)[name] for base in protocols if name in vars(base) and _is_bare(vars(base)[name])]
        return not any(given is method for method in bare)

    by_iteration = issubclass(cls, (Loss, MatrixFunction)) and cls.exact_prox is False
    wanted = [name for name in kind.methods if name != "prox" or not by_iteration]
    missing = [name for name in wanted if not own(name)]
    if by_iteration and issubclass(cls, Norm) and cls.dual_gauge is Norm.dual_gauge:
        missing.append("dual_gauge (or a prox, which it follows from)")
    if issubclass(cls, SeparableLoss):
        if cls.pointwise_conjugate is SeparableLoss.pointwise_conjugate and (
            cls.dual_quadratic is SeparableLoss.dual_quadratic
        ):
            missing.append("pointwise_conjugate")
        replaced = {
            "pointwise": "value",
            "slope": "gradient",
            "pointwise_prox": "prox",
            "pointwise_conjugate": "conjugate",
        }
        missing = [
            name for name in missing if getattr(cls, replaced[name]) is getattr(SeparableLoss, replaced[name])
        ]
    return missing


def _is_bare(method) -> bool:
    code = getattr(method, "__code__", None)
    return code is not None and "NotImplementedError" in code.co_names


def _wrong_examples(cls: type[Atom]) -> list[str]:
    try:
        found = cls.examples()
    except Exception as error:  # whatever it is, it stands in somebody's class
        return [f"examples() that makes instances to check (it raises {type(error).__name__}: {error})"]
    if not (isinstance(found, list) and found and all(isinstance(one, cls) for one in found)):
        return ["examples() that returns a list of its instances"]
    return []


def check_reference(cls: type[Atom], kind: Kind, reference) -> Callable:
    """The reference function; ModelError where it is not there or takes other arguments."""
    wanted = kind.reference
    if issubclass(cls, Metric) and not cls.labellings:
        wanted = "z, y, atom"
    if isinstance(reference, type) or not callable(reference):
        given = "" if reference is None else f"={_shown(reference)}"
        raise ModelError(
            f"register({cls.__name__}, reference{given}): give the definition a second time, as a function f({wanted}) in cvxpy; "
            f"without it nothing could be checked (docs/extending/{kind.page})"
        )
    try:
        inspect.signature(reference).bind(*wanted.split(", "))
    except TypeError:
        raise ModelError(
            f"register({cls.__name__}, reference={_shown(reference)}): a reference function of a {kind.what} takes ({wanted}), this "
            f"one takes {inspect.signature(reference)}"
        ) from None
    return reference


def _shown(value) -> str:
    return getattr(value, "__name__", None) or repr(value)[:40]
