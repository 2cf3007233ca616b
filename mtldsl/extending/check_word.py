"""Report on one word: the pieces it still lacks, and the solvers that do not take it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

import mtldsl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.learned_structures.structure import Structure
from mtldsl.atoms.loss import Loss, SeparableLoss
from mtldsl.atoms.losses.label_graph_losses import LabelGraphLoss
from mtldsl.atoms.losses.multiclass import RowLoss
from mtldsl.atoms.losses.structured_hinge import StructuredHinge
from mtldsl.atoms.matrix_function import Atom, Set
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.labels import LABEL_KINDS
from mtldsl.data.tasks import Tasks
from mtldsl.errors import ModelError
from mtldsl.extending.checks import check_atom
from mtldsl.extending.law import LawError
from mtldsl.extending.registration import kind_of_class, plain_kind
from mtldsl.language.arguments import unknown_of
from mtldsl.language.constraints import Constraint
from mtldsl.language.label_graph import EdgeWeights, NodeWeights
from mtldsl.language.objective import Objective, Term
from mtldsl.language.scalars import Number, Operation
from mtldsl.language.suggestions import nearest
from mtldsl.language.vocabulary import METRICS, SIMILARITIES, WORDS, squared_loss
from mtldsl.language.weights import Weights
from mtldsl.normal_form.form import NormalForm
from mtldsl.problems.problem import minimize
from mtldsl.utils.validation import as_flag

# --------------------------------------------------------------------------------------------------------------
# The smallest model with a word, as solvers see it.


def smallest_form(atom: Atom) -> NormalForm:
    """Return the smallest model with an atom as solvers see it."""
    return _smallest_model(atom).form()


def _smallest_model(atom: Atom):
    """A loss with a ridge beside it on all its weights, a metric in such a structured hinge; anything else beside the squared loss."""
    if isinstance(atom, Metric):
        atom = StructuredHinge(metric=atom)
    rng = np.random.default_rng(0)
    kind = atom.labels if isinstance(atom, Loss) else "real"
    labels = LABEL_KINDS["sign" if kind in ("indicators", "classes") else kind].suiting
    from mtldsl.extending.laws.law_examples import N_SAMPLES, WEIGHTS_SHAPE

    (n_features, n_tasks), n_rows = WEIGHTS_SHAPE, N_SAMPLES
    Y = np.resize(labels, n_rows * n_tasks).reshape(n_tasks, n_rows).T
    tasks = Tasks.shared(rng.normal(size=(n_rows, n_features)), Y)
    W = Weights(tasks)
    if isinstance(atom, RowLoss):
        classes = Tasks.from_classes(tasks.X, np.arange(n_rows) % atom.n_classes)
        W = Weights(classes)
        return minimize(WORDS[atom.name](W, classes) + WORDS["ridge"](W))
    if isinstance(atom, Set):
        typed = Operation("in", (atom, W.tree))
        return minimize(squared_loss(W, tasks), [Constraint(atom, W, atom.name, atom.latex("W"), typed)])
    if isinstance(atom, Structure):
        return _smallest_structured(atom, W, tasks)
    if isinstance(atom, LabelGraphLoss):
        U, V = NodeWeights(tasks), EdgeWeights(tasks, atom.cliques.members)
        return minimize(WORDS[atom.name](U, V, tasks) + WORDS["ridge"](U) + WORDS["ridge"](V))
    if isinstance(atom, Loss):
        return minimize(Objective([Term(Number(1.0), atom, W, atom.name, "", tasks)]) + WORDS["ridge"](W))
    return minimize(squared_loss(W, tasks) + Objective([Term(Number(1.0), atom, W, atom.name, "")]))


def _smallest_structured(atom: Structure, W: Weights, tasks: Tasks):
    """The word with fresh unknowns, within bounds that all its examples would have; of kernels, with the two simplest."""
    if atom.weighs_kernels:
        similarities = [SIMILARITIES["union"](), SIMILARITIES["individual"]()]
        return minimize(squared_loss(W, tasks) + WORDS[atom.name](W, similarities, p=2.0))
    unknowns = [unknown_of(matrix).declared(tasks, matrix.name) for matrix in atom.learns]
    bounds = []
    for unknown in unknowns:
        if unknown.kind == "precision":
            bounds += [unknown >> 0.01, unknown << 100.0]
        else:
            bounds.append(unknown.trace() <= 1.0)
    return minimize(squared_loss(W, tasks) + WORDS[atom.name](W, *unknowns, **atom.arguments()), bounds)


# --------------------------------------------------------------------------------------------------------------
# A report on one word: the laws, all that it lacks, and the solvers that it loses with the trait that each wants.


@dataclass(frozen=True)
class MissingPiece:
    """One thing that a word lacks, the file where it goes, and the text to write there."""

    what: str
    file: str
    write: str

    def __str__(self) -> str:
        return f"{self.what}: in {self.file}, {self.write}"


@dataclass(frozen=True)
class LostSolver:
    """A solver that takes other words of this kind, its own sentence of refusal, and the trait that would change its answer.

    trait : "name = value" of the class, "" where no one trait decides
    """

    solver: str
    says: str
    trait: str

    def __str__(self) -> str:
        return f"{self.solver}: {self.says}" + (f" The trait: {self.trait}." if self.trait else "")


@dataclass(frozen=True)
class WordReport:
    """All that `check_word` found out about a word.

    checks  : how many checks of laws hold, 0 where some fail or where they were not run
    broken  : the message of the laws that do not hold, "" where all do
    missing : what is still to write
    lost    : solvers that take other words of its kind, but not this one
    own     : it was registered outside the package, so that its formulas in the package and pages are not asked for
    """

    name: str
    checks: int
    broken: str
    missing: tuple[MissingPiece, ...]
    lost: tuple[LostSolver, ...]
    own: bool

    @property
    def complete(self) -> bool:
        """Tell whether all laws that were run hold, and nothing is missing."""
        return not (self.broken or self.missing)

    def __str__(self) -> str:
        held = f"{self.checks} checks hold" if self.checks else "its laws were not run"
        lines = [f"{self.name}: {self.broken or held}"]
        lines += (
            ["missing:", *(f"  {piece}" for piece in self.missing)]
            if self.missing
            else ["nothing is missing"]
        )
        if self.lost:
            lines += ["solvers that do not take it:", *(f"  {one}" for one in self.lost)]
        return "\n".join(lines)


def check_word(name: str, *, laws: bool = True, solvers: bool = True) -> WordReport:
    """Return all that a word still lacks, and the solvers that it loses; `print` shows it.

    Parameters
    ----------
    name : the word, as it is typed
    laws : run `check_atom` too
    solvers : ask every solver about the smallest model with the word

    Returns
    -------
    WordReport. A word of the package needs a reference function, a plain formula, a formula in the checker of proofs, and its
    line in the vocabulary, the stub and docs/words.md. A word of one's own (`mtldsl.register`) needs a reference function.

    Raises
    ------
    ModelError
        Where there is no word of that name; the message suggests the nearest.

    Examples
    --------
    >>> from mtldsl.testing import check_word
    >>> print(check_word("absolute_loss", laws=False).missing)
    ()
    >>> check_word("absolut_loss")
    Traceback (most recent call last):
    mtldsl.errors.ModelError: check_word('absolut_loss'): there is no such word; did you mean 'absolute_loss'?
    """
    laws, solvers = (as_flag(value, f"check_word(name, {flag}", ModelError) for flag, value in (("laws", laws), ("solvers", solvers)))  # fmt: skip
    if not isinstance(name, str) or name not in REGISTRY:
        hint = nearest(name, REGISTRY) if isinstance(name, str) else "; write the word as text"
        raise ModelError(f"check_word({name!r}): there is no such word{hint}")
    cls = REGISTRY[name]
    own = not cls.__module__.startswith("mtldsl.")
    checks, broken = 0, ""
    if laws:
        try:
            checks = check_atom(cls)
        except LawError as error:
            broken = str(error)
    missing = [*_class(cls), *_reference(cls)]
    if not own:
        missing += [*_definition(cls), *_checker(cls), *_vocabulary(cls), *_pages(cls)]
    return WordReport(name, checks, broken, tuple(missing), _lost(cls) if solvers else (), own)


def _class(cls: type[Atom]) -> Iterator[MissingPiece]:
    text, file = cls.__doc__ or "", cls.__module__.replace(".", "/") + ".py"
    if ">>>" not in text or len(text.splitlines()) <= 3:
        yield MissingPiece("documentation", file, f"a docstring of {cls.__name__} with Source and >>>")
    if "{}" not in cls.formula:
        yield MissingPiece("LaTeX", file, 'formula = r"..." with {} for the argument')
    if not cls.examples():
        yield MissingPiece("examples", file, "examples(): the instances that the laws run over")


def _reference(cls: type[Atom]) -> Iterator[MissingPiece]:
    import mtldsl.reference.compile  # noqa: F401  (it enters the formulas)
    from mtldsl.reference.registry import FORMULAS, SPECTRA, STRUCTURES

    name, tables = cls.name, []
    if issubclass(cls, Structure) and cls.learns:
        tables.append((STRUCTURES, "structure", "structures", "W, matrices, atom"))
    if issubclass(cls, Metric):
        tables.append((FORMULAS, "formula", "metrics", "b, c, positives, negatives, atom"))
    elif issubclass(cls, Loss):
        tables.append((FORMULAS, "formula", "losses", "z, y, s, atom"))
    elif cls.convex is True:
        tables.append((FORMULAS, "formula", "regularizers", "W, atom"))
    elif not tables:
        tables.append((SPECTRA, "spectrum", "spectral", "x, atom"))
    for table, mark, file, arguments in tables:
        if name not in table:
            write = f'@{mark}("{name}") def {name}({arguments})'
            yield MissingPiece("reference function", f"reference/{file}.py", write)


def _definition(cls: type[Atom]) -> Iterator[MissingPiece]:
    from mtldsl.certificates.plain import plain_values as typed_values  # noqa: F401  (it enters all formulas)
    from mtldsl.certificates.plain.plain_formula import DEFINITIONS

    if cls.name in DEFINITIONS or issubclass(cls, NormBall):  # a ball is typed as a comparison with its norm
        return
    kind, arguments = plain_kind(cls)
    file = "losses" if issubclass(cls, Loss) else "metrics" if issubclass(cls, Metric) else "penalties"
    write = f'@defined("{cls.name}", "{kind}") def {cls.name}({arguments})'
    yield MissingPiece("plain formula", f"mtldsl/certificates/plain/plain_{file}.py", write)


def _checker(cls: type[Atom]) -> Iterator[MissingPiece]:
    from mtldsl.certificates.checker.function_formulas import FUNCTIONS
    from mtldsl.certificates.checker.loss_formulas import SCALAR_LOSSES
    from mtldsl.certificates.checker.proof_schema import LOSSES

    name, place = cls.name, "mtldsl/certificates/checker"
    if issubclass(cls, Metric) or cls.unchecked or not cls.examples() or not cls.examples()[0].convex:
        return  # a metric is checked inside structured_hinge; of what is not convex no bound is claimed
    if issubclass(cls, Loss):
        if name not in LOSSES:
            parameters = ", ".join(f'"{field.name}": number(...)' for field in cls.typed_fields())
            write = f'"{name}": fields({{{parameters}}}) in LOSSES'
            yield MissingPiece("parameters in proofs", f"{place}/proof_schema.py", write)
        if name not in SCALAR_LOSSES and (issubclass(cls, SeparableLoss) or name not in LOSSES):
            write = f'"{name}" in SCALAR_LOSSES: enclosures of value and conjugate'
            yield MissingPiece("checker formula", f"{place}/loss_formulas.py", write)
    elif name not in FUNCTIONS:
        write = f'"{name}" in FUNCTIONS, with its class in the file of its family'
        yield MissingPiece("checker formula", f"{place}/function_formulas.py", write)


def _vocabulary(cls: type[Atom]) -> Iterator[MissingPiece]:
    # some sets have no word, and their documentation says how they are typed
    if cls.name not in WORDS and "typed `" not in " ".join((cls.__doc__ or "").split()):
        kind = "constraint" if issubclass(cls, Set) else "loss" if issubclass(cls, Loss) else "regularizer"
        line = f"{cls.name} = {kind}({cls.__name__})"
        yield MissingPiece("line in the vocabulary", "mtldsl/language/vocabulary.py", line)


def _pages(cls: type[Atom]) -> Iterator[MissingPiece]:
    """The stub and the page of words; a package that is installed has no docs to look into."""
    package = Path(mtldsl.__file__).parent
    if cls.name not in WORDS:
        return
    stub, page = package / "__init__.pyi", package.parent / "docs" / "words.md"
    # type checkers read the classes of metrics where they stand
    if cls.name not in METRICS and f'"{cls.name}",' not in stub.read_text(encoding="utf-8"):
        yield MissingPiece("types", "mtldsl/__init__.pyi", "run python -m mtldsl.cli.type_stub")
    if page.is_file() and f"\n| `{cls.name}" not in page.read_text(encoding="utf-8"):
        yield MissingPiece("row of words", "docs/words.md", "run mtldsl words --markdown > docs/words.md")


# ---------------------------------------------------------------------------------------------------- solvers


def _lost(cls: type[Atom]) -> tuple[LostSolver, ...]:
    """Solvers that take the smallest model of some other word of the kind, and refuse this one's."""
    from mtldsl.solvers.routes import SOLVERS, get_solver, refusal

    if not cls.examples():
        return ()
    form = _form_of(cls)
    refused = {name: says for name in SOLVERS if (says := refusal(get_solver(name), form)) is not None}
    others = [
        other
        for other in REGISTRY.values()
        if other is not cls and other.examples()
        and (kind_of_class(other).what, getattr(other, "labels", "")) == (kind_of_class(cls).what, getattr(cls, "labels", ""))
    ]  # fmt: skip
    forms = [_form_of(other) for other in others]
    return tuple(
        LostSolver(name, says, _deciding(cls, others, get_solver(name)))
        for name, says in refused.items()
        if any(refusal(get_solver(name), other) is None for other in forms)
    )


@lru_cache(maxsize=256)
def _form_of(cls: type[Atom]) -> NormalForm:
    """The smallest model with a word, which all words of its kind are compared with."""
    return smallest_form(cls.examples()[0])


def _deciding(cls: type[Atom], others: list[type[Atom]], solver) -> str:
    """The trait with which the solver takes the word's smallest model once it is as some other word's, as "name = value"."""
    from mtldsl.solvers.routes import refusal

    for name, value in _traits(cls).items():
        found = [getattr(other.examples()[0], name, value) for other in others]
        elsewhere = [one for one in found if isinstance(one, bool | int | float) and one != value]
        if not elsewhere:
            continue  # no word of its kind has this trait, so that it tells of another kind
        changed = copy(cls.examples()[0])
        object.__setattr__(changed, "__class__", type(cls.__name__, (cls,), {name: elsewhere[0]}))
        try:
            if refusal(solver, smallest_form(changed)) is None:
                return f"{name} = {value}"
        except Exception:  # an atom that belies its traits may fail anywhere: this is not the trait
            continue
    return ""


def _traits(cls: type[Atom]) -> dict[str, bool | float | None]:
    """Switches of its protocol, and numbers that it does not have: an infinite curvature, no quadratic."""
    atom, found = cls.examples()[0], {}
    for name in dict.fromkeys(
        name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")
    ):
        value = getattr(atom, name, None)
        if name == "curvature":
            if isinstance(value, float) and np.isinf(value):
                found[name] = value
        elif isinstance(value, bool) or (name == "quadratic" and value is None):
            found[name] = value
    return found
