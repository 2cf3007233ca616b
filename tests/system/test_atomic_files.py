"""Whole or not there, whatever the disk does: full, gone, a file where a folder should be."""

import errno
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.utils.files import atomic_file, check_writable, remove_leftovers
from tests.faults.disk import largest_file
from tests.loops import for_each
from tests.models import shared, with_weights


@pytest.fixture
def solution():
    tasks, W = with_weights(shared(0))
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, content=b"new"):
    with atomic_file(path) as file:
        file.write(content)


@pytest.fixture
def old(tmp_path):
    """A file with old content; whatever happens in the test, it alone is there afterwards, as it was."""
    write(tmp_path / "a", b"old")
    yield tmp_path / "a"
    assert (tmp_path / "a").read_bytes() == b"old" and names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_breaks_leaves_the_old_file(old, error):
    with pytest.raises(error), atomic_file(old) as file:
        file.write(b"half")
        raise error


def test_a_link_and_permissions_are_kept(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    write(path, b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write(link)
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_new_files_have_the_permissions_of_others(tmp_path):
    (tmp_path / "other").touch()
    write(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_full_disk(old):
    said = r"a: cannot be written \(File too large\); give a path"
    with largest_file(5000), pytest.raises(DataError, match=said):
        write(old, bytes(20_000))


def test_a_disk_that_is_full_when_the_file_is_forced_to_it(old, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mtldsl.utils.files.os.fsync", full)
    with pytest.raises(DataError, match=r"cannot be written \(No space left on device\)"):
        write(old)


def test_places_that_are_none(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path, why in {
        "file/a": "Not a directory",
        "absent/a": "No such file or directory",
        "folder": "it is a folder",
        "x" * 300: "File name too long",
    }.items():
        for ask in (write, check_writable):
            with pytest.raises(DataError) as error:
                ask(tmp_path / path)
            assert f"{path}: cannot be written ({why})" in str(error.value)
    with pytest.raises(DataError, match=r"file/stored: cannot be written"):
        mtl.datasets.store([table()], tmp_path / "file" / "stored")
    assert names(tmp_path) == ["file", "folder"]


def test_a_device_is_not_replaced():
    with pytest.raises(DataError, match=r"/dev/full: cannot be written \(it is not a regular file\)"):
        write("/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_solution_that_cannot_be_saved(tmp_path, solution):
    path = solution.save(tmp_path / "w")
    old = path.read_bytes()
    with largest_file(200), pytest.raises(DataError, match=r"w.npz: cannot be written \(File too large\)"):
        solution.save(path)
    assert path.read_bytes() == old and names(tmp_path) == ["w.npz"]
    with pytest.raises(DataError, match="No such file or directory"):
        solution.save(tmp_path / "absent" / "w")


def test_a_folder_is_no_name_of_a_file(tmp_path, monkeypatch, solution):
    """Nothing is written beside it, as folder.npz."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for write_there in (solution.save, solution.certificate.save, solution.report):
        for place in (".", "folder", tmp_path / "folder"):
            with pytest.raises(DataError, match=r": is a folder; give the name of a file in it"):
                write_there(place)
    assert names(tmp_path) == ["folder"] and not names(tmp_path / "folder")


def table(n=60, d=5):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng.integers(0, 4, n)


@for_each("size", [100, 1000, 2300, 3000])
def test_a_disk_that_is_full_while_tasks_are_stored(tmp_path, size):
    """In the first pass, and while rows are placed; the same call goes on when there is room."""
    folder = tmp_path / "stored"
    with (
        largest_file(size),
        pytest.raises(DataError, match=r"stored/.*: cannot be written \(File too large\)"),
    ):
        mtl.datasets.store([table()], folder)
    with pytest.raises(DataError, match="interrupted there; call it again"):
        mtl.datasets.stored(folder)
    assert mtl.datasets.store([table()], folder).n_samples == 60
    assert names(tmp_path) == ["stored"]


FILE = """
minimize = "squared_loss(W, tasks) + ridge(W)"
data = {dataset = "low_rank", n_tasks = 3, n_samples = 20, n_features = 5, rank = 2}
"""


def test_outputs_are_refused_before_the_solve(tmp_path, command_line, monkeypatch):
    (tmp_path / "p.toml").write_text(FILE)
    monkeypatch.setattr("mtldsl.cli.solve_commands.run_file", lambda file: pytest.fail("solved for nothing"))
    for output in (tmp_path / "p.toml" / "w.npz", tmp_path / "absent" / "r.html"):
        code, _, err = command_line("solve", tmp_path / "p.toml", "--output", output)
        assert code == 2 and f"{output}: cannot be written (" in err


@pytest.mark.slow
@pytest.mark.process
def test_a_report_that_goes_to_a_full_disk():
    """No traceback, neither now nor at the end of the process."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "mtldsl", "words", "--json"]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    said = (
        "mtldsl: standard output cannot be written (No space left on device); print to where there is room\n"
    )
    assert (ran.returncode, ran.stderr) == (2, said)


@pytest.mark.slow
def test_one_output_that_fails_takes_nothing_else_away(tmp_path, command_line, monkeypatch):
    (tmp_path / "p.toml").write_text(FILE)
    outputs = [tmp_path / name for name in ("r.html", "w.npz", "r.txt", "r.json")]
    monkeypatch.setattr(
        "mtldsl.solution.solution.write_fields",
        lambda path, fields: (_ for _ in ()).throw(DataError(f"{path}: full")),
    )
    typed = [word for path in outputs for word in ("--output", path)]
    code, out, err = command_line("solve", tmp_path / "p.toml", *typed)
    assert code == 2 and "w.npz: full" in err and "Certificate" in out
    assert names(tmp_path) == ["p.toml", "r.html", "r.json", "r.txt"]


KILLED = """
import os, sys, pathlib, signal
from mtldsl.utils.files import atomic_file
with atomic_file(sys.argv[1]) as file:
    file.write(b"half")
    print("there", flush=True)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def writer(path, what):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "there\n"
    return child


@pytest.mark.process
def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path):
    """All names of that folder count; what a living process writes, and what only looks like it, stays."""
    writer(tmp_path / "dead.npz", "die").wait()
    (left,) = names(tmp_path)
    assert left.startswith(".dead.npz.") and left.endswith(".partial")
    (tmp_path / ".mine.partial").touch()
    (tmp_path / "other.0123456789ab.partial").touch()
    living = writer(tmp_path / "living.npz", "live")
    write(tmp_path / "next.npz")
    there = names(tmp_path)
    assert left not in there and "next.npz" in there
    assert {".mine.partial", "other.0123456789ab.partial"} <= set(there)
    assert sum(name.startswith(".living.npz.") for name in there) == 1
    living.communicate("", timeout=60)
    assert (tmp_path / "living.npz").read_bytes() == b"half"
    assert not [name for name in names(tmp_path) if name.startswith((".living", ".dead"))]


def test_a_file_that_was_taken_for_left_over_is_begun_again(tmp_path, monkeypatch):
    """Another process may look between the making of the file and its lock."""
    real, seen = os.dup, []

    def dup(number):
        if not seen:
            seen.append(1)
            remove_leftovers(tmp_path / "a")
        return real(number)

    monkeypatch.setattr(os, "dup", dup)
    write(tmp_path / "a")
    assert seen and names(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path, request):
    n = request.config.getoption("--kills")
    command = [sys.executable, "-m", "tests.faults.kills", str(tmp_path), str(n), "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60 + 10 * n)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("killed at work") == 4
    print(ran.stdout)
