"""Compiled functions: kept where they can be, compiled anew where they cannot, and their time counted apart."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

import mtldsl
from mtldsl.utils import compilation
from mtldsl.utils import numba_internals as module
from tests.faults.disk import largest_file

HELPER = """
from mtldsl.utils.jit import compiled

@compiled(nogil=True)
def by(x):
    return {factor} * x
"""

CALLER = """
from mtldsl.utils.jit import compiled
from {helper} import by

@compiled()
def scaled(x):
    return by(x) + 1

@compiled("f8(f8[::1])", error_model="numpy")
def total(x):
    result = 0.0
    for i in range(len(x)):
        result += x[i]
    return result
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of its own for the cache, and the warning not yet given."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_said", False)
    return tmp_path / "cache"


def load(path, name=None):
    """The module at that path as a new process would find it."""
    name = name or path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    # not by its .pyc, which stands for a file of the same size that was written within the same second
    exec(compile(path.read_text(), str(path), "exec"), found.__dict__)
    return found


def write(folder, factor=2.0):
    helper, caller = folder / "faults_helper.py", folder / "faults_caller.py"
    helper.write_text(HELPER.format(factor=factor))
    caller.write_text(CALLER.format(helper="faults_helper"))
    return lambda: (load(helper), load(caller))[1]


def hits(function):
    return sum(function.stats.cache_hits.values())


def files(cache):
    return sorted(cache.rglob("*.nbc"))


@pytest.mark.slow
def test_the_second_process_finds_what_the_first_compiled(tmp_path, cache):
    loaded = write(tmp_path)
    first = loaded()
    assert first.scaled(3.0) == 7.0 and first.total(np.ones(4)) == 4.0
    assert hits(first.scaled) == hits(first.total) == 0 and len(files(cache)) == 3
    second = loaded()
    assert second.scaled(3.0) == 7.0 and second.total(np.ones(4)) == 4.0
    assert hits(second.scaled) == hits(second.total) == 1
    assert second.scaled(3) == 7 and hits(second.scaled) == 1  # another signature


@pytest.mark.slow
def test_a_callee_that_changed_in_another_file(tmp_path, cache):
    """The caller's own file is the same, and holds the old callee's code."""
    assert write(tmp_path)().scaled(3.0) == 7.0
    assert write(tmp_path, factor=5.0)().scaled(3.0) == 16.0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cut", "empty", "changed", "exchanged", "folder"])
def test_a_damaged_cache_is_compiled_anew(tmp_path, cache, how):
    loaded = write(tmp_path)
    loaded().scaled(3.0)
    rng = np.random.default_rng(0)
    for _ in range(2):
        contents = [path.read_bytes() for path in files(cache)]
        for i, path in enumerate(files(cache)):
            content = bytearray(contents[i])
            if how == "cut":
                content = content[: rng.integers(len(content))]
            elif how == "empty":
                content = b""
            elif how == "changed":
                content[rng.integers(len(content))] ^= rng.integers(1, 256)
            elif how == "exchanged":
                content = contents[i - 1]
            path.unlink()
            if how == "folder":
                path.mkdir()
            else:
                path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error" if how != "folder" else "ignore")
            again = loaded()
            assert again.scaled(3.0) == 7.0 and again.total(np.ones(4)) == 4.0
        assert hits(again.scaled) == hits(again.total) == 0
        if how == "folder":
            break
    if how != "folder":  # and what was damaged has been replaced
        assert loaded().scaled(3.0) == 7.0
        again = loaded()
        assert again.scaled(3.0) == 7.0 and hits(again.scaled) == 1


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path, cache):
    loaded = write(tmp_path)
    with largest_file(100), pytest.warns(UserWarning) as said:
        found = loaded()
        assert found.scaled(3.0) == 7.0 and found.total(np.ones(4)) == 4.0
    assert ["File too large" in str(warning.message) for warning in said] == [True]
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_without_numba(tmp_path, cache, monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", True)
    assert write(tmp_path)().scaled(3.0) == 7.0


@pytest.fixture(scope="module")
def sealed_package(tmp_path_factory):
    """A copy of the package that nothing can be written to, and a program's environment without a home."""
    folder = tmp_path_factory.mktemp("package")
    source = Path(mtldsl.__file__).parent
    skip = shutil.ignore_patterns("__pycache__", "*.nb?")
    shutil.copytree(source, folder / "mtldsl", ignore=skip)
    if not (folder / "mtldsl" / "reference").is_dir():
        shutil.copytree(source.parent / "reference", folder / "mtldsl" / "reference", ignore=skip)
    for room in [path for path in folder.rglob("*") if path.is_dir()]:
        (room / "__pycache__").touch()  # a file where the folder would be: this stops root too
    nowhere = {name: str(folder / "mtldsl" / "py.typed" / "none") for name in ("HOME", "XDG_CACHE_HOME")}
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    return env | nowhere | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_OPT": "0"}


SOLVE = """
import warnings
import numpy as np
import mtldsl as mtl
assert "package" in mtl.__file__, mtl.__file__
rng = np.random.default_rng(0)
tasks = mtl.Tasks.shared(rng.normal(size=(20, 5)), rng.normal(size=(20, 3)))
W = mtl.Weights(tasks)
problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.total_variation(W))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(problem.solve().status)
print([str(w.message)[:47] for w in said])
"""


@pytest.mark.process
def test_no_folder_can_be_written(sealed_package):
    """Neither the folder that is asked for nor those that stand in for it."""
    env, where = sealed_package | {"NUMBA_CACHE_DIR": sealed_package["HOME"]}, sealed_package["PYTHONPATH"]
    ran = subprocess.run(
        [sys.executable, "-c", SOLVE], env=env, cwd=where, capture_output=True, text=True, timeout=300
    )
    said = ["optimal", "['compiled code cannot be kept on the disk (canno']"]
    assert (ran.returncode, ran.stdout.splitlines()) == (0, said), ran.stderr


NAMED = """
from typing import NamedTuple

class Pair(NamedTuple):
    {first}: float
    {second}: float
"""

NAMER = """
from mtldsl.utils.jit import compiled
from {arguments} import Pair

@compiled()
def difference(pair):
    named = Pair(*pair)
    return named.a - named.b
"""


@pytest.mark.parametrize("first, second, expected", [("a", "b", 2.0), ("b", "a", -2.0)])
def test_fields_that_changed_places(tmp_path, cache, first, second, expected):
    """Machine code knows the fields of a named tuple by their places: those that another file says."""
    caller = tmp_path / "faults_namer.py"
    for a, b in (("a", "b"), (first, second)):
        arguments = f"faults_arguments_{a}_{b}"  # a name of its own: Python's cache is not what is tested
        (tmp_path / f"{arguments}.py").write_text(NAMED.format(first=a, second=b))
        sys.modules["faults_arguments"] = load(tmp_path / f"{arguments}.py", "faults_arguments")
        caller.write_text(NAMER.format(arguments="faults_arguments"))
        found = load(caller)
        value = found.difference((3.0, 1.0))
    assert value == expected
    assert hits(found.difference) == (first == "a")
    del sys.modules["faults_arguments"]


DECLARED = """
from mtldsl.utils.jit import compiled

@compiled("f8(f8[::1])", inside=True, error_model="numpy")
def _total(x):
    result = 0.0
    for i in range(len(x)):
        result += x[i]
    return result

@compiled("f8(f8[::1], i8)", error_model="numpy")
def mean(x, n):
    return _total(x) / n

@compiled("f8(f8)")
def unused(x):
    return x
"""


@pytest.fixture
def declared(tmp_path, cache):
    """Loads the module anew."""
    path = tmp_path / "faults_declared.py"
    path.write_text(DECLARED)
    return lambda: load(path)


def test_a_declared_signature_is_compiled_when_needed(declared, cache):
    found = declared()
    assert not files(cache)
    assert found.mean(np.array([1.0, 2.0]), 2) == 1.5 and found.mean(np.ones(3), np.int64(4)) == 0.75
    assert len(found.mean.signatures) == len(found._total.signatures) == 1 and not found.unused.signatures
    assert len(files(cache)) == 2
    for wrong in (np.array([1, 2]), np.array([1.0, 2.0], np.float32), np.ones((2, 2)), np.ones(4)[::2]):
        with pytest.raises(TypeError, match="No matching definition"):
            found.mean(wrong, 2)
    again = declared()
    with pytest.raises(TypeError, match="No matching definition"):  # the first call of all, too
        again.mean(np.array([1, 2]), 2)
    assert again.mean(np.ones(2), 2) == 1.0 and hits(again.mean) == 1
    assert declared().mean(np.ones(2), 2) == 1.0


@pytest.mark.slow
def test_threads_that_call_it_first_all_have_its_answer(declared):
    """One compiles, the others wait: workers of Dask with several threads begin like that."""
    found = declared()
    with ThreadPoolExecutor(4) as pool:
        with global_compiler_lock:  # so that all of them have begun before one compiles
            answers = [pool.submit(found.mean, np.array([1.0, 2.0]), 2) for _ in range(4)]
            time.sleep(0.1)
        assert [answer.result() for answer in answers] == [1.5] * 4
    assert len(found.mean.signatures) == 1


def test_python_cannot_call_what_is_compiled_for_others(declared):
    found = declared()
    for _ in range(2):  # before and after it is compiled
        with pytest.raises(TypeError, match=r"_total is compiled for other compiled functions alone"):
            found._total(np.ones(3))
        found.mean(np.ones(3), 3)


INNER = """
import numpy as np
from mtldsl.utils.jit import compiled

@compiled(inside=True, error_model="numpy")
def _tail(x, n):
    rest = np.empty(n)
    for i in range(n):
        rest[i] = x[x.size - n + i]
    return rest

@compiled(inside=True, error_model="numpy")
def _sum_of_tail(x, n):
    rest = _tail(x, n)
    total = 0.0
    for i in range(n):
        total += rest[i]
    return total

@compiled(error_model="numpy")
def first(x, n):
    return _sum_of_tail(x, n)

@compiled(error_model="numpy")
def second(x, n):
    return _sum_of_tail(x, n) + _tail(x, n)[0]
"""


@pytest.mark.slow
def test_inner_functions_are_read_for_another_caller(tmp_path, cache):
    """They are kept as what callers link, not as machine code; what they allocate is theirs to hand on."""
    path = tmp_path / "faults_inner.py"
    path.write_text(INNER)
    x = np.arange(6.0)
    assert load(path).first(x, 3) == 12.0 and len(files(cache)) == 3
    again = load(path)
    assert again.second(x, 2) == 13.0 and hits(again.second) == 0
    assert hits(again._tail) == 1 and hits(again._sum_of_tail) == 1
    assert again.first(x, 3) == 12.0 and hits(again.first) == 1
    third = load(path)
    assert third.second(x, 2) == 13.0 and hits(third.second) == 1


UNTESTED = """
import logging
logging.basicConfig(level=logging.DEBUG, format="%(message)s", filename="log.txt")
logging.getLogger("numba").setLevel(logging.WARNING)
import numba
numba.version_info = numba.version_info._replace(short=(0, 999))
import numpy as np
import mtldsl as mtl
rng = np.random.default_rng(0)
tasks = mtl.Tasks.shared(rng.normal(size=(20, 5)), rng.normal(size=(20, 3)))
W = mtl.Weights(tasks)
print(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.total_variation(W)).solve().status)
import sys
print("mtldsl.utils.numba_internals" in sys.modules, open("log.txt").read().count("plain njit"))
"""


@pytest.mark.slow
@pytest.mark.process
def test_a_version_of_numba_that_was_not_tested(tmp_path):
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "0"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", UNTESTED], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["optimal", "False", "1"]
    assert list((tmp_path / "cache").rglob("*.nbi"))  # numba's own cache


TIMED = """
import numpy as np, mtldsl as mtl
from mtldsl.utils import compilation as compiling
tasks = mtl.Tasks.shared(np.random.default_rng(0).normal(size=(30, 6)), np.arange(60.0).reshape(30, 2))
W = mtl.Weights(tasks)
problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.total_variation(W))
first, second = problem.solve(verbose=True), problem.solve()
assert second.compile_seconds == 0.0 and "compiling" not in str(second), second
assert first.compile_seconds == compiling.spent() > 0.0 and first.seconds > 0.0, first
assert f"{first.seconds:.3f} s + {first.compile_seconds:.3f} s compiling" in str(first), first
assert first.history[-1]["seconds"] <= first.seconds
"""


def test_blocks_in_blocks_count_once_and_where_one_fails():
    before = compilation.spent()
    started = time.perf_counter()
    with compilation.busy():
        with pytest.raises(ZeroDivisionError), compilation.busy():
            time.sleep(0.02)
            raise ZeroDivisionError
        with compilation.busy():
            time.sleep(0.01)
        assert compilation.spent() == before
    assert 0.03 <= compilation.spent() - before <= time.perf_counter() - started


def test_who_is_told():
    outer, inner = [], []
    with compilation.announce_compilation(outer.append):
        compilation.begins("a")
        with compilation.announce_compilation(inner.append):
            compilation.begins("b")
        with compilation.announce_compilation(None):
            compilation.begins("c")
    compilation.begins("d")
    assert outer == ["a"] and inner == ["b"]


@pytest.mark.process
def test_a_solve_leaves_it_out_and_says_so(tmp_path):
    """Nothing is said where compiled code is read from the disk."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for cold in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", TIMED], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert ("compiling denoise_rows ..." in map(str.strip, done.stderr.splitlines())) == cold
