"""benchmarks/papers: files of a user, whatever their kind, and what a report says of few rows."""

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.claim import (
    OPEN,
    PARTLY,
    REFUTED,
    REPRODUCED,
    UNTESTED,
    Claim,
    Pair,
    by_share,
    by_significance,
    judged,
    paired,
    reading,
    verdict,
)
from benchmarks.papers.given_data import Source, data_lines, row_folds
from mtldsl import DataError, Tasks
from tests.loops import for_each

ROOT = Path(__file__).resolve().parents[1]
FEATURES = ("alpha", "beta", "gamma", "delta")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One problem in many files: shared labels and numbers, tasks apart by a column, holes, classes; and what no reader takes."""
    import scipy.io

    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)).round(4)
    numbers = (X @ rng.normal(size=(4, 3)) + 0.5 * rng.normal(size=(90, 3))).round(4)
    labels = (numbers > 0).astype(int)
    places = np.repeat(["north", "south", "east"], 30)
    head = ",".join(FEATURES)

    def table(name, columns, rows):
        lines = (",".join(map(str, row)) for row in rows)
        (folder / name).write_text(f"{head},{columns}\n" + "\n".join(lines) + "\n")

    table("labels.csv", "label_a,label_b,label_c", np.column_stack([X, labels]))
    table("numbers.csv", "y1,y2,y3", np.column_stack([X, numbers]))
    table(
        "schools.csv", "school,score", ([*x, p, z] for x, p, z in zip(X, places, numbers[:, 0], strict=True))
    )
    yes = np.where(labels[:, 0], "yes", "no")
    table("places.csv", "task,label", ([*x, p, y] for x, p, y in zip(X, places, yes, strict=True)))
    table("classes.csv", "kind", ([*x, int(z.argmax())] for x, z in zip(X, numbers, strict=True)))
    holes = [[*x, *y[:1], "" if i % 5 == 0 else y[1]] for i, (x, y) in enumerate(zip(X, labels, strict=True))]
    table("holes.csv", "label_a,label_b", holes)
    rare = np.column_stack([labels[:, 0], np.arange(90) < 3])
    table("rare.csv", "label_a,label_b", np.column_stack([X, rare.astype(int)]))
    attributes = [f"@attribute {name} numeric" for name in FEATURES]
    attributes += [f"@attribute {name} {{0,1}}" for name in ("hot", "cold", "wet")]
    body = [",".join(map(str, [*x, *y])) for x, y in zip(X, labels, strict=True)]
    (folder / "mulan.arff").write_text("\n".join(["@relation mulan", *attributes, "@data", *body]))
    names = "".join(f'<label name="{name}"></label>' for name in ("hot", "cold", "wet"))
    (folder / "names.xml").write_text(f"<labels>{names}</labels>")
    np.savez(folder / "shared.npz", X=X, Y=labels)
    np.savez(folder / "apart.npz", X=X, Y=numbers[:, 0], task=np.repeat([1, 2, 3], 30))
    cells = np.empty((2, 1, 3), object)
    for i in range(3):
        cells[0, 0, i], cells[1, 0, i] = X[30 * i : 30 * i + 30], labels[30 * i : 30 * i + 30, :1]
    scipy.io.savemat(folder / "cells.mat", {"X": cells[0], "Y": cells[1]})
    scipy.io.savemat(folder / "radar.mat", {"radar": cells[0], "mines": cells[1]})
    (folder / "broken.csv").write_text("a,b,y\n1,2,0\n1,2\n")
    (folder / "notes.xyz").write_text("?")
    return folder


@pytest.mark.slow
@for_each(
    ("name", "options", "tasks", "shared", "kind"),
    [
        ("labels.csv", {}, 3, True, "labels"),
        ("numbers.csv", {}, 3, True, "numbers"),
        ("schools.csv", {"task": "school", "labels": ("score",)}, 3, False, "numbers"),
        ("places.csv", {}, 3, False, "labels"),
        ("classes.csv", {"classes": True}, 3, True, "labels"),
        ("holes.csv", {}, 2, False, "labels"),
        ("mulan.arff", {}, 3, True, "labels"),
        ("shared.npz", {}, 3, True, "labels"),
        ("apart.npz", {}, 3, False, "numbers"),
        ("cells.mat", {}, 3, False, "labels"),
        ("radar.mat", {"inputs": "radar", "labels": ("mines",)}, 3, False, "labels"),
        ("numbers.csv", {"median": True}, 3, True, "labels"),
    ],
)
def test_every_kind_of_file_becomes_tasks(files, name, options, tasks, shared, kind):
    source = Source(files / name, **options)
    assert source.tasks.n_features == 4
    if kind == "labels":
        found = source.labelled
        assert set(np.unique(found.targets)) == {-1.0, 1.0}
    else:
        found = source.tasks
        with pytest.raises(DataError, match="--median makes labels"):
            _ = source.labelled
    assert (found.n_tasks, found.is_shared) == (tasks, shared)


def test_numbers_and_classes_mean_what_the_file_says(files):
    classes = Source(files / "classes.csv", classes=True).labelled
    table = np.genfromtxt(files / "classes.csv", delimiter=",", skip_header=1)
    assert np.array_equal(classes.targets.reshape(3, -1) > 0, [table[:, -1] == kind for kind in range(3)])
    halves = Source(files / "numbers.csv", median=True)
    numbers = halves.tasks.per_task(halves.tasks.targets)
    for y, z in zip(halves.labelled.per_task(halves.labelled.targets), numbers, strict=True):
        assert np.array_equal(y > 0, z > np.median(z))
    assert "above the task's median" in halves.left_out[0]


def test_rare_labels_are_left_out_by_name(files):
    source = Source(files / "rare.csv")
    assert source.labelled.task_names == ("label_a",)
    assert "label_b (3 positive of 90)" in source.left_out[0]
    assert Source(files / "rare.csv", rare=3).labelled.n_tasks == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("notes.xyz", "is none of .arff"),
        pytest.param(
            "radar.mat", "holds radar, mines; write --inputs NAME --labels NAME", marks=pytest.mark.process
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_of_ours(files, name, says):
    with pytest.raises(DataError, match=says):
        _ = Source(files / name).tasks


@for_each("script", ["smtl", "calibrated", "cgm", "mt_mkl", "fetr"])
@for_each(("name", "says"), [("broken.csv", "broken.csv:3"), ("nothere.csv", "there is no such file")])
def test_a_script_ends_with_one_line_about_a_wrong_file(
    files, script, name, says, tmp_path, monkeypatch, capsys
):
    from importlib import import_module

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.papers.{script}").main(["--data", str(files / name)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert says in said and "usage" not in said


@for_each(("script", "fewest"), [("smtl", 4), ("cgm", 6), ("mt_mkl", 5)])
def test_a_label_too_rare_is_named_with_the_option(files, script, fewest, tmp_path, monkeypatch, capsys):
    from importlib import import_module

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        import_module(f"benchmarks.papers.{script}").main(["--data", str(files / "rare.csv"), "--rare", "3"])
    said = capsys.readouterr().err
    assert "'label_b' has 3 rows of one class" in said and f"--rare {fewest} leaves" in said


def test_folds_are_stratified_where_no_shuffle_will_do():
    labels = np.where(np.arange(200)[:, None] < 5, 1.0, -1.0)
    parts = row_folds(Tasks.shared(np.ones((200, 1)), labels), 5, 1, np.random.default_rng(0))
    assert [int((labels[rows] > 0).sum()) for rows in parts] == [1] * 5


def test_a_graph_of_labels_asks_for_labels_of_the_same_rows(files, tmp_path, monkeypatch, capsys):
    from benchmarks.papers.cgm import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["--data", str(files / "places.csv")])
    assert "rows of their own" in capsys.readouterr().err


def test_rows_of_another_file_of_the_same_name_are_not_mixed(files, tmp_path):
    lines = data_lines(tmp_path, "smtl", [Source(files / "labels.csv")])
    assert lines == data_lines(tmp_path, "smtl")
    assert "labels.csv" in lines[0]
    other = tmp_path / "labels.csv"
    other.write_text((files / "labels.csv").read_text().replace("0.", "1.", 1))
    with pytest.raises(SystemExit, match="other data of the name labels"):
        data_lines(tmp_path, "smtl", [Source(other)])


def test_verdicts():
    assert [by_share(k, 6) for k in (0, 2, 3, 4, 6)] == [REFUTED, REFUTED, PARTLY, REPRODUCED, REPRODUCED]
    assert by_share(0, 0) == verdict(None) == UNTESTED
    assert reading([Claim("Table 1", "A is better", UNTESTED, "", "")]) == []
    assert [by_significance(held, against, 6) for held, against in ((4, 2), (3, 3), (2, 3), (0, 2))] == [
        REPRODUCED, PARTLY, REFUTED, OPEN
    ]  # fmt: skip


def test_a_test_knows_that_partitions_share_rows():
    """The same ten differences: of new data they decide, of partitions that test 40 % of the rows they do not."""
    d = np.array([0.4, 1.1, -0.2, 0.9, 0.6, 0.1, 1.3, 0.5, -0.1, 0.8])
    of_draws, of_partitions, comparable = judged(
        [
            Claim("Table 1", "drawn anew", UNTESTED, "", "", pairs=(Pair("d", d),)),
            Claim("Table 2", "partitions", UNTESTED, "", "", pairs=(Pair("d", d, 0.4),)),
            Claim("Table 3", "comparable", UNTESTED, "", "", pairs=(Pair("d", -d, 0.4),), or_equal=True),
        ]
    )
    assert [claim.verdict for claim in (of_draws, of_partitions, comparable)] == [
        REPRODUCED,
        OPEN,
        REPRODUCED,
    ]


def test_two_partitions_prove_nothing(files, tmp_path):
    """Few rows: no claim is judged, and no "0 of 0" is printed."""
    from benchmarks.papers.smtl_claims import claims
    from benchmarks.papers.smtl_tables import Runs

    rows = [
        {"method": method, "select": "own: f1", "seed": str(seed), "macro_f1": value, "micro_f1": value, "auc": value,
         "fit_seconds": "1"}
        for method, value in (("SMTL(l21+F1)", "70"), ("MTL-CLS(l21)", "60"))
        for seed in range(2)
    ]  # fmt: skip
    settings = {"folds": "2", "intercept": "1", "refine": "1"}
    found = claims([Runs("mine", 0, settings, rows)], [])
    assert {claim.verdict for claim in found if "Table 9" not in claim.where} == {UNTESTED}
    assert not any("0 of 0" in claim.seen for claim in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("smtl", ["labels.csv", "--methods", "SMTL(l21+F1)", "LP", "BR"]),
        ("cgm", ["mulan.arff", "--xml", "names.xml", "--methods", "CGM", "MMOC", "PLST"]),
        ("mt_mkl", ["cells.mat", "--hierarchies", "inferred"]),
        ("fetr", ["schools.csv", "--task", "school", "--labels", "score"]),
        ("calibrated", ["apart.npz", "--study", "table"]),
    ],
)
def test_a_script_reports_on_a_file(files, script, arguments, tmp_path, monkeypatch):
    from importlib import import_module

    monkeypatch.chdir(tmp_path)
    arguments = [str(files / a) if (files / a).is_file() else a for a in arguments]
    main = import_module(f"benchmarks.papers.{script}").main
    main(["--quick", "--folder", str(tmp_path), "--data", *arguments])
    page = (tmp_path / f"{script}.md").read_text()
    assert Path(arguments[0]).name in page and "0 of 0" not in page
    assert page.count("|---") > 0


@pytest.mark.slow
def test_the_page_of_claims_is_made_of_the_rows_that_lie_here():
    """docs/papers.md says what the rows say: `python -m benchmarks.papers.claims --write` makes it."""
    from benchmarks.machine import RESULTS
    from benchmarks.papers.claims import page

    text = page(RESULTS)
    assert (ROOT / "docs" / "papers.md").read_text() == text
    assert "see below" not in text  # the summary rests on the verdicts


def test_a_folder_without_rows_judges_nothing(tmp_path):
    from benchmarks.papers.claims import PAPERS

    for heading, _, _, claims in PAPERS:
        found = claims(tmp_path)
        assert {claim.verdict for claim in found} <= {UNTESTED}, heading


@pytest.mark.process
def test_workers_change_no_row(files, tmp_path):
    """Two processes, in another order of time: the same rows in the same order."""
    from argparse import Namespace

    from benchmarks.papers.many import grow, workers
    from benchmarks.papers.rows import rows_of

    for jobs in (None, 2):
        with workers(Namespace(dask=None, jobs=jobs)):
            grow(tmp_path / f"{jobs}.csv", ("unit", "size"), _sized, [(k,) for k in range(4)])
    rows = rows_of(tmp_path / "None.csv")
    assert rows == rows_of(tmp_path / "2.csv")
    assert [row["unit"] for row in rows] == ["0", "1", "2"]  # of the fourth there is only a line


def _sized(k: int):
    time.sleep(0.1 * (3 - k))
    return [{"unit": k, "size": k**2}] if k < 3 else [], f"{k} done"


def test_fits_on_one_partition_are_one_row_of_a_test():
    ours = {(part, size): 0.1 * part + size for part in range(3) for size in (10, 20)}
    theirs = {key: value + (0.2 if key[1] == 10 else 0.4) for key, value in ours.items()}
    del theirs[2, 20], theirs[2, 10]
    np.testing.assert_allclose(paired(ours, theirs), [0.3, 0.3])
