"""`check_word`: nothing is missing of the words of the language, and all that is of a new one is named, with its file."""

import sys
import types
from itertools import combinations

import pytest

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.certificates.checker.loss_formulas import SCALAR_LOSSES
from mtldsl.certificates.checker.proof_schema import LOSSES
from mtldsl.certificates.plain.plain_formula import DEFINITIONS, defined
from mtldsl.extending.check_word import WordReport
from mtldsl.extending.checks import solver_cases
from mtldsl.extending.law import LawError
from mtldsl.extending.laws.solver_laws import LAWS
from mtldsl.reference.registry import FORMULAS
from mtldsl.solvers.routes import SOLVERS
from mtldsl.testing import check_word
from tests.loops import for_each
from tests.models import shared, with_weights
from tests.pairs import pairwise_cases
from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "extending" / "a_loss.md"


@pytest.fixture
def own(monkeypatch):
    """The module of the page, which registers `boosting_loss`; the word is taken out afterwards."""
    module = types.ModuleType("my_words")
    monkeypatch.setitem(sys.modules, "my_words", module)
    exec(compile(blocks(PAGE, "python"), str(PAGE), "exec"), vars(module))
    yield module
    mtl.unregister("boosting_loss")


def pieces(report: WordReport) -> dict[str, str]:
    return {piece.what: piece.file for piece in report.missing}


def test_check_word_finds_every_word_complete():
    """The laws run over all words in tests/atoms/test_registry.py."""
    lacking = [
        str(report)
        for name in REGISTRY
        if not (report := check_word(name, laws=False, solvers=False)).complete
    ]
    assert not lacking, "\n\n".join(lacking)


@pytest.mark.slow
def test_check_word_names_what_a_word_loses_and_why():
    lost = {one.solver: one for one in check_word("absolute_loss", laws=False).lost}
    assert lost["proximal_gradient"].trait == "smooth = False" and "admm" not in lost
    assert lost["closed_form"].trait == "quadratic = None"
    assert {one.solver: one.trait for one in check_word("max_norm", laws=False).lost}[
        "admm"
    ] == "exact_prox = False"
    assert not {one.solver for one in check_word("squared_loss", laws=False).lost} & {
        "closed_form",
        "admm",
        "lbfgs",
    }


@pytest.mark.slow
def test_check_word_of_an_own_loss_asks_for_nothing_more(own):
    """All laws hold, and a model with it is solved and cross-checked."""
    report = check_word("boosting_loss")
    assert report.complete and report.own and report.checks > 50
    said = "dual_ascent: the conjugate of boosting_loss is neither quadratic on an interval nor an entropy. The trait: entropic = False."
    assert said in str(report)
    assert {one.solver for one in report.lost} < set(SOLVERS)
    tasks, W = with_weights(shared(0, n=12, labels="sign"))
    problem = mtl.minimize(own.boosting_loss(W, tasks, rate=0.2) + 0.5 * mtl.l21_norm(W))
    solution = problem.solve()
    assert solution.status == "optimal" and problem.cross_check(solution).agrees


def test_check_word_names_all_that_a_package_word_lacks(own, monkeypatch):
    """The class says that it is of the package: formulas of its second evaluation, checker, stub and page are asked for."""
    monkeypatch.setattr(own.BoostingLoss, "__module__", "mtldsl.atoms.losses.regression")
    report = check_word("boosting_loss", laws=False, solvers=False)
    assert not report.own and not report.complete
    assert pieces(report) == {
        "plain formula": "mtldsl/certificates/plain/plain_losses.py",
        "parameters in proofs": "mtldsl/certificates/checker/proof_schema.py",
        "checker formula": "mtldsl/certificates/checker/loss_formulas.py",
        "types": "mtldsl/__init__.pyi",
        "row of words": "docs/words.md",
    }
    assert '@defined("boosting_loss", "samples") def boosting_loss(z, y, atom)' in str(report)
    assert "python -m mtldsl.cli.type_stub" in str(report)

    monkeypatch.setitem(SCALAR_LOSSES, "boosting_loss", None)
    monkeypatch.setitem(LOSSES, "boosting_loss", None)
    monkeypatch.setattr(
        "mtldsl.certificates.plain.plain_formula.DEFINITIONS", {**DEFINITIONS, "boosting_loss": defined}
    )
    assert set(pieces(check_word("boosting_loss", laws=False, solvers=False))) == {"types", "row of words"}


def test_check_word_names_a_reference_that_is_missing(own, monkeypatch):
    with monkeypatch.context() as without:
        without.delitem(FORMULAS, "boosting_loss")
        report = check_word("boosting_loss", laws=False, solvers=False)
    assert pieces(report) == {"reference function": "reference/losses.py"}


@pytest.mark.slow
def test_check_word_tells_of_laws_that_do_not_hold(own, monkeypatch):
    monkeypatch.setattr(own.BoostingLoss, "pointwise_conjugate", lambda self, u, y: 0.0 * u)
    report = check_word("boosting_loss", solvers=False)
    assert not report.complete and report.checks == 0 and not report.missing
    assert "conjugate" in report.broken and "checks fail" in str(report)


@for_each(
    ("name", "says"),
    [
        ("absolut_loss", "did you mean 'absolute_loss'?"),
        ("nuclear_norm", "did you mean 'trace_norm'?"),
        (3, "as text"),
    ],
)
def test_check_word_refuses_what_is_no_word(name, says):
    with pytest.raises(mtl.ModelError) as caught:
        check_word(name)
    assert says in str(caught.value)


CASES = {name: solver_cases(name) for name in SOLVERS}

#: Solvers that take seconds for a model twice, and the model that each takes longest for.
DEAR = {
    "admm": "labels that depend on each other",
    "newton_by_passes": "absolute residuals beside a ridge",
    "consensus": "absolute residuals beside a ridge",
    "cvxpy": "structured hinge and a ridge",
}


def is_dear(case) -> bool:
    model, _ = case.arguments.get("model", ("", None))
    twice = case.law.name == "the_same_model_gives_the_same_bits"
    return case.about in DEAR and (twice or model == DEAR[case.about])


@pytest.mark.parametrize(
    ("name", "dear"),
    [(name, False) for name in SOLVERS] + [pytest.param(name, True, marks=pytest.mark.slow) for name in DEAR],
)
def test_laws(name, dear):
    """Every model that it takes is tried, though one before it fails."""
    cases, broken = [case for case in CASES[name] if is_dear(case) == dear], []
    assert cases
    for case in cases:
        try:
            case.run()
        except LawError as error:
            broken.append(str(error))
    assert not broken, "\n\n".join(broken)


def test_every_law_is_checked_on_some_solver():
    run = {id(case.law) for cases in CASES.values() for case in cases}
    assert len(LAWS) >= 6 and {law.name for law in LAWS if id(law) not in run} == set()


def test_every_two_values_meet():
    lists = ["abcd", [1, 2, 3], [True, False], "xyz"]
    cases = pairwise_cases(*lists)
    for i, k in combinations(range(len(lists)), 2):
        met = {(case[i], case[k]) for case in cases}
        assert met == {(a, b) for a in lists[i] for b in lists[k]}
    assert len(cases) < 20  # of 72


def test_two_lists_are_their_product():
    assert sorted(pairwise_cases("ab", [1, 2])) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert pairwise_cases("abc") == [("a",), ("b",), ("c",)]
