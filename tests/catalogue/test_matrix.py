"""Every solver, with every option, on every model that it takes, against the reference - slow ways on five models -; and the page that shows it."""

from pathlib import Path

import pytest

from mtldsl.catalogue.matrix import LEFT_OUT, ROUTES, cells, models, takes
from mtldsl.solvers.registry import SOLVERS, get_solver
from tests.loops import for_each

PAGE = Path(__file__).parents[2] / "docs" / "solver_matrix.md"
#: Ways for study that need seconds a model, and the models on which they are tried: every kind of loss and of norm.
SLOW_WAYS = ({"inner": "frank_wolfe"}, {"method": "spdca"})
STUDIED = ("MT-MKL", "SMTL(l21+F1)", "MTL-CLS(trace)", "structured hinge and a ridge", "CGM")


def test_ways_left_out_are_tried_on_some_models():
    assert set(STUDIED) <= set(models())
    assert all(any(way in ways for ways in ROUTES.values()) for way in SLOW_WAYS)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(models()))
def test_every_solver_of_a_model_agrees_with_the_reference(name):
    """Every solver that takes a model agrees with the reference."""
    found = list(cells(name, without=() if name in STUDIED else SLOW_WAYS))
    assert {cell.solver for cell in found} == {solver for solver in SOLVERS if takes(solver, name)}
    assert [cell for cell in found if not cell.agrees] == []
    chosen = models()[name].explain().chosen
    assert next(cell for cell in found if cell.solver == chosen and not cell.options).certified


@for_each("solver", list(SOLVERS))
def test_every_option_is_in_a_way_or_left_out_with_a_reason(solver):
    options = set(get_solver(solver).options)
    ways = ROUTES.get(solver, [])
    assert {name for way in ways for name in way} == options - set(LEFT_OUT)
    for name, words in get_solver(solver).choices.items():
        default = get_solver(solver).options[name]
        assert {way[name] for way in ways if name in way} >= set(words) - {default}


def test_the_page_has_every_model_and_says_who_refuses():
    table = PAGE.read_text().partition("## Without the proof")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    head, _, *body = rows
    solvers = [cell.strip("`") for cell in head[1:]]
    assert [row[0] for row in body] == list(models())
    for name, *shown in body:
        assert [cell != "-" for cell in shown] == [takes(solver, name) for solver in solvers], name
