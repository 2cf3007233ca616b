"""A label that few rows have, as a user meets it: what the report shows of it, and what may be done about it in a problem file."""

import json

import numpy as np
import pytest

from mtldsl.cli.command_line import main

RNG = np.random.default_rng(3)
N = 240
X = RNG.normal(size=(N, 3))
Z = X @ [1.0, -1.0, 0.5] + 0.7 * RNG.normal(size=N)
RARE, COMMON = np.quantile(Z, 0.94) < Z, X[:, 1] + RNG.normal(size=N) > 0


def problem_file(folder, labels, more=""):
    rows = "\n".join(f"{x[0]:.5f},{x[1]:.5f},{x[2]:.5f},{int(a)},{int(b)}" for x, a, b in zip(X, RARE, COMMON, strict=True))  # fmt: skip
    (folder / "t.csv").write_text(f"u,v,w,rare,common\n{rows}\n")
    other = [name for name in ("rare", "common") if name not in labels]
    path = folder / "p.toml"
    path.write_text(
        f'minimize = "logistic_loss(W, tasks) + lam * ridge(W)"\n[data]\npath = "t.csv"\nlabels = {json.dumps(labels)}\ndrop = {json.dumps(other)}\n'
        f"binary = true\n[split]\ntest_size = 0.4\n[weights]\nW = {{intercept = true}}\n[parameters]\nlam = 1.0\n[check]\ncross_check = false\n{more}"
    )
    return path


def solved(path, capsys, *options):
    assert main(["solve", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("labels", "more", "shown"),
    [
        (["rare", "common"], "", ["average_precision"]),
        (["common"], "", []),
        (["rare"], '[validation]\nparameter = "lam"\nvalues = 3\nfolds = 3\nmetric = "f1"\n', ["f1"]),
        (["rare"], '[validation]\nparameter = "lam"\nvalues = 3\nfolds = 3\n', ["average_precision"]),
        (["rare"], '[output]\nmetrics = ["log_loss"]\n', ["log_loss"]),
    ],
)
def test_the_report_shows_what_sees_a_rare_label_or_what_was_chosen_by(labels, more, shown, tmp_path, capsys):
    path = problem_file(tmp_path, labels, more)
    assert list(solved(path, capsys)["scores"]["metrics"]) == shown
    assert main(["solve", str(path)]) == 0
    text = capsys.readouterr().out
    assert all(name in text.partition("Scores on")[2] for name in shown)
