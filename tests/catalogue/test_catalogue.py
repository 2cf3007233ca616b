"""The catalogue follows from the registry: whole, true, and without a line of its own for any word; every solver on all it takes."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics import Metric
from mtldsl.cli import catalogue_pages as words
from mtldsl.cli.catalogue import catalogue, entry
from mtldsl.cli.catalogue_pages import HELPERS
from mtldsl.cli.solver_matrix import LEFT_OUT, ROUTES, cells, models, takes
from mtldsl.errors import ModelError
from mtldsl.language.vocabulary import WORDS
from mtldsl.reference.registry import SPECTRA
from mtldsl.solvers.routes import SOLVERS, get_solver
from tests.loops import for_each

ENTRIES = catalogue()


def test_every_atom_stands_once_in_the_vocabulary_order():
    names = [item.name for item in ENTRIES]
    assert sorted(names) == sorted(REGISTRY) and len(set(names)) == len(names)
    assert [name for name in names if name in WORDS] == list(WORDS)
    assert [item.kind for item in ENTRIES] == sorted(
        (item.kind for item in ENTRIES),
        key=["loss", "regularizer", "structure", "constraint", "metric"].index,
    )


@for_each("item", ENTRIES, ids=lambda item: item.name)
def test_what_it_says_is_so(item):
    cls = REGISTRY[item.name]
    assert item.reference
    assert item.documentation.startswith(item.summary.split()[0])
    assert item.kind == "metric" or item.traits["convex"] is (item.name not in {"matrix_normal", *SPECTRA})
    assert set(item.parameters) == set(cls.__dataclass_fields__) - {
        name
        for name, field in cls.__dataclass_fields__.items()
        if "ClassVar" in str(field.type)
        or "matrix" in field.metadata  # what the model says of learned matrices
        or "told" in field.metadata  # read from another argument
        or name == "kernels"  # typed as the similarities that make them
    }
    assert set(item.solvers) <= set(SOLVERS)
    if item.traits.get("convex", True):
        assert "cvxpy" in item.solvers and ("admm" in item.solvers) is (
            issubclass(cls, (Loss, Metric)) or cls.examples()[0].exact_prox
        )
    else:
        assert item.solvers and set(item.solvers) <= {"alternating", "admm"}
        assert ("admm" in item.solvers) is cls.examples()[0].exact_prox


def test_values_known_by_hand():
    huber = entry("huber_loss")
    assert huber.typed == "huber_loss(W, tasks, delta=1.0, *, mean=False)" and huber.parameters == {
        "delta": "1.0"
    }
    assert huber.formula == "Σⱼ h_δ(zᵢⱼ − yᵢⱼ)"
    traits = {"convex": True, "smooth": True, "curvature": 1.0, "separable": True, "of_residuals": True}
    assert huber.traits == traits | {"piecewise_quadratic": True}
    assert entry("group_norm").parameters == {"groups": "required", "weights": "None"}
    assert entry("at_least").typed == "W >= bound" and entry("at_least").traits["absorbs"] is False
    assert entry("norm_ball").typed == "norm(W) <= radius"
    assert entry("ridge").traits["strong_convexity"] == "by its parameters"
    with pytest.raises(KeyError):
        entry("no_such_word")


def printed(name: str | None) -> str:
    console = Console(width=120, file=StringIO())
    console.print(words.page(name))
    return console.file.getvalue()


def test_the_terminal_says_the_same():
    everything = printed(None)
    assert "Metrics\nWhat structured_hinge(W, tasks, metric=...) optimises" in everything
    assert re.search(r"\n *ErrorRate\(\) +‖y' − yᵢ‖₁", everything)
    area = printed("ROCArea")
    assert re.search(r"kind +metric", area) and re.search(
        r"traits +of rankings, scored by order, exact conjugate", area
    )
    assert "in the smallest model with this metric" in area
    assert re.search(r"traits +exact prox", printed("FScore"))
    assert re.search(r"traits +convex, labels: sign, no sample weights", printed("structured_hinge"))


@pytest.mark.slow
def test_a_metric_of_ones_own_is_in_no_catalogue():
    class Mine(Metric):
        def delta(self, b, c, positives, negatives):
            return b / negatives

    assert Mine.name not in [item.name for item in catalogue()]
    with pytest.raises(ModelError, match="there is no word 'Mine'"):
        words.page("Mine")


def test_the_page_has_a_row_for_every_atom():
    page = words.markdown()
    for item in ENTRIES:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{words._short(item)}` |"))
        cells = row.replace("\\|", "").split("|")
        has_solvers = item.kind in words.WITH_SOLVERS
        assert len(cells) == 5 + has_solvers and (not has_solvers or item.solvers[0] in cells[4]), row
    assert page.count("\n| `") == len(REGISTRY)
    language = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
    assert all(f"`{name}`" in page and f"`{name}(" in language for name in HELPERS)
    assert "- `quantile_loss`: pinball, tilted loss, check loss\n" in page


def test_json_is_plain():
    everything = json.loads(json.dumps(words.as_plain(None), allow_nan=False))
    assert [item["name"] for item in everything] == [*(item.name for item in ENTRIES), *HELPERS]


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
    for name, chosen in get_solver(solver).choices.items():
        default = get_solver(solver).options[name]
        assert {way[name] for way in ways if name in way} >= set(chosen) - {default}


def test_the_page_has_every_model_and_says_who_takes_it():
    table = PAGE.read_text().partition("## Without the proof")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    said = {
        name: shown.replace("`", "").split(", ") for names, shown, _ in rows for name in names.split("; ")
    }
    assert said == {name: [one for one in SOLVERS if takes(one, name)] for name in models()}
