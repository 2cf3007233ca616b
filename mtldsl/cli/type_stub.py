"""`mtldsl/__init__.pyi`: what editors and type checkers see of the package, since words are made when it is imported.

    python -m mtldsl.cli.type_stub

writes it anew from the table of words; a test says where it is out of date.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import mtldsl
from mtldsl.atoms.learned_structures.structure import Learned
from mtldsl.atoms.matrix_function import Atom, MatrixFunction, Set
from mtldsl.display.html import template
from mtldsl.language.arguments import unknown_of
from mtldsl.language.vocabulary import WORDS

PATH = Path(mtldsl.__file__).with_suffix(".pyi")

#: What the lines below name beside what is public.
_USED = {
    "mtldsl": ["datasets", "estimators", "metrics", "report", "similarities"],
    "mtldsl.atoms.metrics.metric": ["Metric"],
    "mtldsl.language.task_similarity": ["TaskSimilarity"],
    "mtldsl.language.constraints": ["Constraint"],
    "mtldsl.language.expressions": ["Affine", "Transposed"],
    "mtldsl.language.objective": ["Objective"],
}

#: What a parameter of that name takes where a word does not have it from its class: what stands before the parameters.
_ARGUMENTS = {
    "W": "Affine",
    "U": "Affine",
    "V": "Affine",
    "tasks": "Tasks",
    "mean": "bool",
    "similarities": "Iterable[TaskSimilarity | ArrayLike]",
}

#: What a parameter's class says of it -> what a user may write for it.
_WRITTEN = {
    "np.ndarray": "ArrayLike",
    "SpectralMatrix": "ArrayLike",
    "Metric | tuple[Metric, ...]": "Metric | Iterable[Metric] | Mapping[str, Metric]",
    "str | tuple[float, ...]": "str | Mapping[str, float] | Iterable[float]",
    "list[list[int]]": "Iterable[Iterable[int | str]]",
    "Callable": "Callable[..., ArrayLike]",
}


def stub() -> str:
    """The text of the stub: every public name, each word with its parameters and the first paragraph of its documentation."""
    modules: dict[str, set[str]] = {module: set(names) for module, names in _USED.items()}
    for name in filter(_stands_in_a_file, mtldsl.__all__):
        modules.setdefault(getattr(mtldsl, name).__module__, set()).add(name)
    return template("stub.pyi.jinja", "cli").render(
        doc=inspect.cleandoc(mtldsl.__doc__ or "").split("\n")[0],
        modules=modules,
        names={*dir(mtldsl), *mtldsl.__all__} - {"__version__"},
        words=[_word(name) for name in mtldsl.__all__ if not _stands_in_a_file(name)],
    )


def _stands_in_a_file(name: str) -> bool:
    """Tell whether a type checker finds a name where it says that it is from; words other than classes are made from the table."""
    return name not in WORDS or isinstance(WORDS[name], type)


def _word(name: str) -> dict[str, Any]:
    word = WORDS[name]
    types = {field.name: field.type for field in word.atom.typed_fields()}
    learned = {matrix.name: _learned(matrix) for matrix in getattr(word.atom, "learns", ())}
    parameters, named_only = [], False
    for parameter in inspect.signature(word).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named_only:
            parameters.append("*")
            named_only = True
        if parameter.name in learned:
            kind = learned[parameter.name]
        elif parameter.name in types:
            kind = _written(types[parameter.name])
        else:
            kind = _ARGUMENTS[parameter.name]
            if _takes_transposes(word.atom) and parameter.name == "W":
                kind += " | Transposed"
            if getattr(word.atom, "of_precisions", False):
                kind += " | FeaturePrecision | TaskPrecision"
        if parameter.default is None and "None" not in kind:
            kind += " | None"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parameters.append(f"{parameter.name}: {kind}{default}")
    about = inspect.cleandoc(word.__doc__).split("\n\n")[0]
    result = "Constraint" if issubclass(word.atom, Set) else "Objective"
    return {"name": name, "parameters": parameters, "result": result, "about": about}


def _takes_transposes(cls: type[Atom]) -> bool:
    """Tell whether some word of the class has a word for its transpose."""
    if not issubclass(cls, MatrixFunction):
        return False
    return bool(cls.transpose_invariant) or cls.of_transpose is not MatrixFunction.of_transpose


def _learned(matrix: Learned) -> str:
    """Return what may be given for it: a covariance is always learned."""
    name = unknown_of(matrix).__name__
    return name if matrix.kind == "covariance" else f"{name} | ArrayLike"


def _written(declared: str) -> str:
    """Return what a user may write for a parameter that is declared as that."""
    for kind, written in _WRITTEN.items():
        declared = re.sub(rf"(?<![\w.\]]){re.escape(kind)}(?![\w.\[])", written, declared)
    return declared


def _default(value) -> str:
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else "..."


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
