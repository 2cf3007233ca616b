"""benchmarks/corpus: what could be wrong there without anybody seeing it."""

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def _path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def every():
    from corpus.problems import problems

    return problems()


@pytest.mark.slow
def test_every_data_set_is_in_one_half_of_both_kinds(every):
    """Each half has real and generated ones, and each problem a name of its own."""
    assert len({problem.id for problem in every}) == len(every) >= 400
    from corpus.data import SETS
    from corpus.problems import FAMILIES, HALVES

    assert {problem.data for problem in every} == set(SETS)
    assert all(problem.half == SETS[problem.data].half for problem in every)
    for half in HALVES:
        assert {each.real for each in SETS.values() if each.half == half} == {True, False}
        for family in FAMILIES:
            used = {problem.data for problem in every if (problem.family, problem.half) == (family, half)}
            assert len(used) >= (2 if family == "lasso_csr" else 5), (family, half)


@pytest.mark.slow
def test_every_loss_meets_every_common_regularizer(every):
    from corpus.models import TARGETS

    met = {(p.model.loss, word, p.model.intercept) for p in every for word, _ in p.model.penalties}
    for loss in set(TARGETS) - {"sum_of_squares"}:
        for word in ("l1", "l21", "trace", "ridge"):
            assert {(loss, word, True), (loss, word, False)} & met, (loss, word)


@pytest.mark.slow
def test_a_run_that_is_cut_short_has_seen_every_family(every):
    from corpus.problems import FAMILIES, interleaved

    first = interleaved(every)[: 2 * len(FAMILIES)]
    assert {problem.family for problem in first} == set(FAMILIES)


def test_profile_of_a_known_table():
    from corpus.profiles import profile, ratios

    inf = np.inf
    seconds = np.array([[1.0, 2.0], [3.0, 1.0], [inf, 5.0], [inf, inf]])
    np.testing.assert_array_equal(ratios(seconds), [[1, 2], [3, 1], [inf, 1], [inf, inf]])
    np.testing.assert_array_equal(profile(seconds, [1.0, 2.0, 3.0]), [[0.25, 0.5], [0.25, 0.75], [0.5, 0.75]])


def _row(route, kind, seconds, objective, tol=1e-4, status="optimal", bound=np.nan):
    return {
        "problem": "p", "route": route, "kind": kind, "tol": tol, "status": status, "seconds": seconds, "objective": objective,
        "bound": bound, "violation": 0.0, "solver": route, "machine": "here", "limit": 60.0,
    }  # fmt: skip


def test_regret_counts_only_what_reached_the_accuracy():
    from corpus.regret import collect, regrets

    rows = [
        _row("auto", "own", 4.0, 1.00001, bound=0.99999),
        _row("admm", "own", 1.0, 1.00001, bound=0.99999),
        _row("optimum", "optimum", 9.0, 1.0, 1e-9, bound=1.0),
        _row("good", "peer", 2.0, 1.00005),
        _row("bad", "peer", 0.5, 1.01),
    ]
    measured = collect(rows, "here").values()
    (own,), (peer,) = regrets(measured, 1e-4, "own"), regrets(measured, 1e-4, "peer")
    assert (own.ratio, own.route, peer.ratio, peer.route) == (4.0, "admm", 2.0, "good")
    late = [_row("auto", "own", 60.0, 1.2, status="time_limit"), *rows[1:]]
    (own,) = regrets(collect(late, "here").values(), 1e-4, "own")
    assert own.floor and own.ratio == 60.0


def test_rows_come_back_and_a_broken_line_is_left_out(tmp_path):
    from corpus.rows import append, done_keys, read

    path = tmp_path / "rows.csv"
    append(path, [_row("auto", "own", 0.25, 3.0) | {"version": "v"}])
    path.write_text(path.read_text() + "p,auto,own,1e-")
    (row,) = read(path)
    assert (row["seconds"], row["objective"], np.isnan(row["accuracy"])) == (0.25, 3.0, True)
    assert done_keys([row]) == {("p", "auto", "0.0001", "v", "here")}


# one problem of each kind that peers are told in their own terms
_TOLD = {
    "ridge": "squared+ridge+b", "lasso": "squared+l1+b,one", "lasso_csr": "squared+l1,one",
    "group_lasso": "squared+group,one", "elastic_net": "squared+l1+ridge",
    "multi_task_lasso": "sum_of_squares+l21+b", "sparse_logistic": "logistic+l1,one",
    "ridge_logistic": "logistic+ridge", "svm": "squared_hinge+ridge", "trace_squares": "squared+trace+b",
    "kinks": "quantile+l1+b", "kinks_plain": "hinge+l1", "smooth": "poisson+ridge",
}  # fmt: skip


@pytest.mark.by_default("kinks_plain-hinge+l1")
@pytest.mark.parametrize(("family", "model"), _TOLD.items())
@pytest.mark.slow
def test_peers_solve_the_same_problem(every, family, model):
    """A peer's weights have, by the model's own objective, the optimum that our certificate proves."""
    from corpus.instance import tiny
    from corpus.peers import peers_for

    problem = next(p for p in every if p.family == family and p.model.name == model)
    instance = tiny(problem)
    optimum = instance.fresh().problem.solve(tol=1e-8)
    assert optimum.status == "optimal"
    goal = optimum.objective + 1e-7 * abs(optimum.objective)
    peers = {
        name: peer
        for name, peer in peers_for(instance).items()
        if peer.package not in ("scs", "skglm", "celer")
    }
    assert peers
    for name, peer in peers.items():
        peer.prepare()
        blocks = instance.blocks(*peer.fit(peer.rungs[-1], goal))
        assert abs(instance.value(blocks) - optimum.objective) <= 1e-5 * abs(optimum.objective), name


def test_files_of_a_user_become_problems_or_are_left_out(tmp_path):
    from corpus.user_data import sets_of

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)).round(3)
    rows, signs = (
        [",".join(map(str, row)) for row in np.column_stack([X, y])] for y in (X.sum(axis=1), X[:, 0] > 0)
    )
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,target", *signs]))
    (tmp_path / "bare.csv").write_text("\n".join(rows))
    lines = [
        f"{c} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x))
        for c, x in zip(rng.integers(1, 4, 20), X, strict=True)
    ]
    (tmp_path / "classes.svm").write_text("\n".join(lines))
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n1,2,3\n")
    (tmp_path / "notes.xyz").write_text("?")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "bare.csv").write_text("\n".join(rows))

    said: list[str] = []
    found = sets_of(tmp_path, said.append)
    shapes = {name: (each.n, each.d, each.m, each.layout, each.labels) for name, each in found.items()}
    assert shapes == {
        "table": (20, 3, 1, "dense", True), "classes": (20, 3, 3, "csr", True),
        "bare": (20, 3, 1, "dense", False), "bare.csv": (20, 3, 1, "dense", False),
    }  # fmt: skip
    assert set(np.unique(found["table"].load().Y)) == {-1.0, 1.0}
    left_out = [line for line in said if line.startswith("skipped")]
    assert len(left_out) == 2 and any("broken.csv" in line for line in left_out)


@pytest.mark.by_default("arguments0-there is no such folder")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data", "no-such-folder"], "there is no such folder"),
        (["--data", "."], "no file in it holds data"),
        (["--problem", "nobody-knows"], "--list prints them all"),
    ],
)
def test_a_command_that_asks_for_nothing_says_so(arguments, says, tmp_path, monkeypatch, capsys):
    from corpus.command import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(arguments)
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_a_page_is_made_of_rows_alone(tmp_path, every):
    from corpus.page import write

    problem = next(p for p in every if p.family == "lasso" and p.half == "judging")
    rows = [
        _row("auto", "own", 0.5, 1.0, bound=1.0),
        _row("admm", "own", 0.1, 1.0, bound=1.0),
        _row("celer", "peer", 0.2, 1.0),
        _row("auto", "own", 0.5, 1.0, 1e-6, "time_limit"),
    ]
    write([row | {"problem": problem.id, "version": "v"} for row in rows], every, tmp_path)
    page = (tmp_path / "corpus.md").read_text()
    assert f"5 x  `{problem.id}`: 0.5 s against 0.1 s (admm)" in page
    assert f"2.5 x  `{problem.id}`: 0.5 s against 0.2 s (celer)" in page
    assert f"`{problem.id}` to 1e-06: time_limit; nobody does" in page
    assert (tmp_path / "corpus_judging.png").stat().st_size > 0


@pytest.mark.slow
def test_the_route_table_is_the_fit_s(every):
    """No other order and no other number is better by more than one percent, by the rows of single routes on the tuning half."""
    from corpus.fit import Table, fitted_numbers, fitted_order
    from corpus.rows import read

    table = Table(every, read(BENCHMARKS / "results" / "corpus_own_routes.csv"))
    present = table.mean_cost(table.first_routes(table.routes, table.holds))
    _, least = fitted_order(table)
    assert present <= 1.01 * least
    worse = [row for row in fitted_numbers(table) if row[3] > 1.01 * row[5]]
    assert not worse
    assert present <= 1.15
