"""Check of a word, or of a solver, by every law: one's own, or one of the language."""

from __future__ import annotations

from mtldsl.atoms.matrix_function import Atom
from mtldsl.errors import ModelError
from mtldsl.extending.law import Case, LawError


def check_atom(cls: type[Atom]) -> int:
    """Run every law on every example of an atom's class; how many checks there were.

    cls : a registered class (`mtldsl.register`), or the word that registering it returned

    The laws compare the class with its reference function, with cvxpy's minimisers and suprema, and with finite differences. A
    metric is checked inside structured_hinge. LawError, which is an AssertionError, names every law that does not hold, the
    example, and the two numbers; ModelError where the class is not registered.

    >>> import mtldsl as mtl
    >>> from mtldsl.testing import check_atom
    >>> check_atom(mtl.l1_norm) > 50
    True
    """
    return _run(atom_cases(getattr(cls, "atom", cls)))


def check_solver(solver) -> int:
    """Run a solver on small models of every kind; how many it took.

    solver : a registered solver (`mtldsl.register_solver`), or its name

    Its answer to every model that it does not refuse must be certified, and agree with the reference; it must stop when it is told
    to, refuse options it does not know, leave the data as they are, and refuse with a sentence. LawError names all that is wrong.

    >>> from mtldsl.testing import check_solver
    >>> check_solver("closed_form") > 3
    True
    """
    return _run(solver_cases(solver))


def atom_cases(cls: type[Atom], example: int | None = None) -> list[Case]:
    """Every law on every example of a class (or on one of them), not yet run: for parametrised tests."""
    from mtldsl.atoms.atom import REGISTRY
    from mtldsl.atoms.losses.structured_hinge import StructuredHinge
    from mtldsl.atoms.metrics.metric import Metric
    from mtldsl.extending.law import cases_of
    from mtldsl.extending.laws import loss_laws as losses
    from mtldsl.extending.laws import matrix_function_laws as matrix_functions
    from mtldsl.extending.laws import trait_laws as traits

    if REGISTRY.get(getattr(cls, "name", "")) is not cls:
        shown = getattr(cls, "__name__", repr(cls))
        raise ModelError(
            f"check_atom({shown}): it is not a registered class; call mtldsl.register({shown}, ...) first"
        )
    found = []
    for i, atom in enumerate(cls.examples()):
        if example is None or i == example:
            subject = StructuredHinge(metric=atom) if isinstance(atom, Metric) else atom
            about = repr(atom) if isinstance(atom, Metric) else f"{atom.name}-{getattr(atom, 'metric', i)}"
            found += cases_of([*losses.LAWS, *matrix_functions.LAWS, *traits.LAWS], subject, about)
    return found


def solver_cases(solver) -> list[Case]:
    """Return what is asked of a solver, model by model, not yet run: for parametrised tests."""
    from mtldsl.extending.law import cases_of
    from mtldsl.extending.laws.solver_laws import LAWS
    from mtldsl.solvers.routes import get_solver

    found = get_solver(solver if isinstance(solver, str) else solver.name)
    return cases_of(LAWS, found, found.name)


def _run(cases: list[Case]) -> int:
    broken = []
    for case in cases:
        try:
            case.run()
        except LawError as error:
            broken.append(str(error))
    if broken:
        names = dict.fromkeys(text.split("\n")[0].split(" (")[0].split(":")[0] for text in broken)
        more = f"\n... and {len(broken) - 10} more" if len(broken) > 10 else ""
        raise LawError(
            f"{len(broken)} of {len(cases)} checks fail: {', '.join(names)}\n\n"
            + "\n\n".join(broken[:10])
            + more
        )
    return len(cases)
