"""Every registered solver has all that the protocol states, with the signatures that it states; nobody asks for a member that it does not."""

import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

import mtldsl
from mtldsl.solvers.routes import SOLVERS, get_solver
from mtldsl.solvers.solver import Solver
from tests.loops import for_each

#: What a solver is asked for, but for its methods, and of which kind it is.
FACTS = {name: hint.__args__[0] for name, hint in get_type_hints(Solver).items() if not name.startswith("_")}

METHODS = [name for name, member in vars(Solver).items() if inspect.isfunction(member) and name[0] != "_"]


@for_each("name", SOLVERS)
def test_facts(name):
    solver = get_solver(name)
    assert solver.name == name
    for fact, kind in FACTS.items():
        assert isinstance(getattr(solver, fact), getattr(kind, "__origin__", kind)), fact
    assert solver.summary and solver.max_iter >= 1
    assert solver.choices.keys() <= solver.options.keys() and set(solver.writes) <= solver.options.keys()
    for option, words in solver.choices.items():
        assert solver.options[option] in words


@for_each("method", METHODS)
@for_each("name", SOLVERS)
def test_signatures(name, method):
    """The protocol's own parameters as it has them; what comes after them are the options, with the defaults that are stated."""
    solver = get_solver(name)
    asked = dict(list(inspect.signature(getattr(Solver, method)).parameters.items())[1:])  # without self
    own = dict(inspect.signature(getattr(solver, method)).parameters)
    for parameter, stated in asked.items():
        found = own.pop(parameter)
        assert (found.kind, found.default) == (stated.kind, stated.default), parameter
    if method == "solve" and not any(p.kind is p.VAR_KEYWORD for p in own.values()):
        assert {option: p.default for option, p in own.items()} == solver.options
    elif method != "solve":
        assert not own


def test_classes_inherit_the_protocol_but_for_requirements():
    """A class takes from the protocol all that it leaves out; a member without a default is missed."""

    class Least(Solver):
        name, summary = "least", "takes nothing"

        def refuses(self, form):
            return "it takes nothing."

        def solve(self, form, *, tol, max_iter, start, watch):
            raise NotImplementedError

    least = Least()
    assert (least.options, least.choices, least.writes) == ({}, {}, ())
    assert not (least.takes_nonconvex or least.takes_spans or least.below_guesses)
    assert least.max_iter == 100_000 and least.solves_only(None) is None

    class Half(Solver):
        name, summary = "half", "cannot solve"

        def refuses(self, form):
            return None

    with pytest.raises(TypeError, match="solve"):
        Half()


def test_nobody_asks_whether_a_solver_has_a_member():
    asked = [f'getattr({who}, "{fact}"' for fact in [*FACTS, *METHODS] for who in ("solver", "chosen", "way")]
    for file in Path(mtldsl.__file__).parent.rglob("*.py"):
        text = file.read_text()
        assert not [call for call in asked if call in text], file
