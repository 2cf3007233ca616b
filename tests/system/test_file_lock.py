"""One at a time: a second user is told, and a dead one does not stand in the way."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.utils.files import sole_use

TAKEN = KeyError("taken")

HOLDS = """
import sys, time
from mtldsl.utils.files import sole_use
with sole_use(sys.argv[1], KeyError("taken")):
    print("held", flush=True)
    time.sleep(600)
"""


def held_by_another(path):
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.process
def test_another_process(tmp_path):
    path = tmp_path / "a"
    process = held_by_another(path)
    try:
        with pytest.raises(KeyError, match="taken"), sole_use(path, TAKEN):
            pytest.fail("two at once")
        with sole_use(tmp_path / "b", TAKEN):  # another path
            pass
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / ".a.lock").exists()  # nobody was there to remove it
    with sole_use(path, TAKEN):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_another_thread_and_other_ways_to_write_the_path(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    refused = []

    def second(path):
        try:
            with sole_use(path, TAKEN):
                pass
        except KeyError:
            refused.append(path)

    paths = [tmp_path / "a", "a", tmp_path / "link"]
    with sole_use(tmp_path / "a", TAKEN):
        for path in paths:
            thread = threading.Thread(target=second, args=(path,))
            thread.start()
            thread.join()
    assert refused == paths


def test_errors_let_go(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), sole_use(tmp_path / "a", TAKEN):
            raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_used_without_a_lock(tmp_path):
    (tmp_path / "file").touch()
    with sole_use(tmp_path / "file" / "a", TAKEN):
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_never_two_at_once(tmp_path):
    """Removing the lock's file lets no second one in."""
    inside, most, entered = [0], [0], [0]

    def many(_):
        for _ in range(60):
            try:
                with sole_use(tmp_path / "a", TAKEN):
                    inside[0] += 1
                    entered[0] += 1
                    most[0] = max(most[0], inside[0])
                    inside[0] -= 1
            except KeyError:
                pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(many, range(4)))
    assert most[0] == 1 and entered[0] > 60


STORES = """
import sys, numpy as np, mtldsl as mtl
def chunks():
    for k in range(3):
        print("reading", flush=True)
        sys.stdin.readline()
        yield np.eye(3), [1.0, 2.0, 3.0], [0, 1, 0]
print(mtl.datasets.store(chunks(), sys.argv[1]).n_samples)
"""


@pytest.mark.process
@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_store_to_one_folder(tmp_path, killed):
    """The second is told to wait, or goes on where the first was killed."""
    folder, chunk = tmp_path / "stored", (np.eye(3), [1.0, 2.0, 3.0], [0, 1, 0])
    command = [sys.executable, "-c", STORES, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "reading\n"
        if killed:
            first.kill()
            first.wait()
            assert mtl.datasets.store([chunk], folder).n_samples == 3
        else:
            said = r"another process is storing to .*stored; wait for its end, or give"
            with pytest.raises(DataError, match=said):
                mtl.datasets.store([chunk], folder)
            # and the first was not disturbed
            assert first.communicate("\n\n\n", timeout=120)[0].split() == ["reading", "reading", "9"]
    assert mtl.datasets.stored(folder, check=True).n_samples == (3 if killed else 9)
    assert [path.name for path in tmp_path.iterdir()] == ["stored"]
