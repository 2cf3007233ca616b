"""Every solver on every model that it takes, each of its options on some, against the reference; and the page that shows all of it."""

from pathlib import Path

import pytest

from mtldsl.cli.solver_matrix import LEFT_OUT, ROUTES, cells, models, takes
from mtldsl.solvers.routes import SOLVERS, get_solver
from tests.loops import for_each

PAGE = Path(__file__).parents[2] / "docs" / "solver_matrix.md"
WAYS = [(solver, way) for solver, ways in ROUTES.items() for way in ways]
#: Ways for study that need seconds a model, and the models that each is tried on. OSQP settles the last two.
SLOW_WAYS = {
    ("admm", "frank_wolfe"): ["StructSVM"],
    ("clique_generation", "spdca"): ["CGM"],
    ("cvxpy", "osqp"): ["MTL-CLS(l11)", "StructSVM", "hinge loss and a ridge"],
}
#: Iterations with which ways for study come near the reference, where 2,000 are too few.
STUDY_ITERATIONS = {"osqp": 100_000}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(models()))
def test_every_solver_of_a_model_agrees_with_the_reference(name):
    found = list(cells(name, without=[way for _, way in WAYS]))
    assert {cell.solver for cell in found} == {solver for solver in SOLVERS if takes(solver, name)}
    assert [cell for cell in found if not cell.agrees] == []
    chosen = models()[name].explain().chosen
    assert next(cell for cell in found if cell.solver == chosen).certified


@pytest.mark.slow
@pytest.mark.parametrize("solver, way", WAYS, ids=str)
def test_a_way_to_call_a_solver_agrees_with_the_reference(solver, way):
    """Each model meets one way of a solver, the next one the next; where none of a way's models suits it, the others are asked."""
    without = [{}, *(other for _, other in WAYS if other != way)]
    taken, place, found = [name for name in models() if takes(solver, name)], ROUTES[solver].index(way), []
    own = taken[place :: len(ROUTES[solver])]
    limits = {"max_iter": STUDY_ITERATIONS.get(way.get("backend"), 2_000)}
    slow = SLOW_WAYS.get((solver, *way.values()))
    for name in slow or [*own, *(name for name in taken if name not in own)]:
        if found and not slow and name not in own:
            break
        found += [cell for cell in cells(name, without, limits) if cell.solver == solver]
    assert found and [cell for cell in found if not cell.agrees] == []


@for_each("solver", list(SOLVERS))
def test_every_option_is_in_a_way_or_left_out_with_a_reason(solver):
    options = set(get_solver(solver).options)
    ways = ROUTES.get(solver, [])
    assert {name for way in ways for name in way} == options - set(LEFT_OUT)
    for name, words in get_solver(solver).choices.items():
        default = get_solver(solver).options[name]
        assert {way[name] for way in ways if name in way} >= set(words) - {default}


def test_the_page_has_every_model_and_says_who_takes_it():
    table = PAGE.read_text().partition("## Without the proof")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    said = {
        name: shown.replace("`", "").split(", ") for names, shown, _ in rows for name in names.split("; ")
    }
    assert said == {name: [one for one in SOLVERS if takes(one, name)] for name in models()}
