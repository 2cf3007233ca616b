"""What will not fit is refused before it is allocated, with what it needs, what there is, and what to write instead."""

import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.errors import DataError, ModelError, SolverError
from mtldsl.utils import memory

REFUSED = r"needs [0-9.e+]+ GiB of memory, and [0-9.e+]+ GiB are there; "


@cache
def shared(n, d, m=2):
    """Sparse inputs that are small, whatever their shape."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), 5)
    X = sparse.csr_array((rng.normal(size=5 * n), (rows, rng.integers(0, d, 5 * n))), shape=(n, d))
    return mtl.Tasks.shared(X, rng.normal(size=(n, m)))


@cache
def many(m):
    return mtl.Tasks.separate([np.eye(2)] * m, [np.array([1.0, -1.0])] * m)


def solved(word, tasks, **options):
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks) + word(W)).solve(**options)


datasets = mtl.datasets
LARGE = {
    "low_rank": (lambda: datasets.make_low_rank(n_tasks=10**6, n_features=10**6), DataError, "n_tasks=1000000, n_samples"),
    "density": (lambda: datasets.make_low_rank(n_samples=10**7, n_features=10**6, density=0.5), DataError, "make_low"),
    "group_sparse": (lambda: datasets.make_group_sparse(n_features=10**10), DataError, "make_group_sparse"),
    "calibrated": (lambda: datasets.make_calibrated(n_samples=10**9), DataError, "make_calibrated"),
    "task_tree": (lambda: datasets.make_task_tree(depth=40), DataError, r"depth=40.*of 2\^40 tasks"),
    "label_graph": (lambda: datasets.make_label_graph(n_labels=10**7), DataError, "n_labels=10000000"),
    "sample": (
        lambda: datasets.make_label_graph(n_train=20, n_test=20, random_state=0).sample(10**11), DataError, "sample"
    ),
    "names": (lambda: shared(5, 10**11), DataError, "100,000,000,000 columns.*hash them to fewer"),
    "labels": (
        lambda: mtl.Tasks.shared(np.ones((10**6, 1)), sparse.csr_array((10**6, 10**7))), DataError, "labels"
    ),
    "gram": (lambda: shared(9, 10**6).gram(), SolverError, "the Gram matrix of 1,000,000 features"),
    "co_occurrence": (
        lambda: datasets.co_occurrence(mtl.Tasks.shared(np.ones((2, 1)), np.outer([1.0, -1.0], np.ones(20_000)))),
        DataError, "each pair of 20,000 labels",
    ),
    "edges": (
        lambda: mtl.EdgeWeights(mtl.Tasks.shared(np.ones((2, 1)), np.outer([1.0, -1.0], np.ones(40_000)))),
        ModelError, "EdgeWeights.*799,980,000 pairs of 40,000 labels",
    ),
    "weights": (
        lambda: solved(mtl.l21_norm, shared(9, 10**6, 10**5)), SolverError, "a model with 1,000,000 x 100,000 unknowns"
    ),
    "lambda_max": (
        lambda: of_parameter(shared(9, 10**6, 10**5)), SolverError, "a model with 1,000,000 x 100,000 unknowns"
    ),
    "constraint": (lambda: mtl.Weights(shared(9, 10**6, 10**5)) >= 0, ModelError, "W >= 0: a constant of shape"),
    "mean_regularizer": (
        lambda: solved(mtl.mean_regularizer, many(20_000), solver="admm"), SolverError, "a quadratic between 20,000 tasks"
    ),
    "reference": (
        lambda: solved(mtl.mean_regularizer, many(20_000), solver="cvxpy"), SolverError, "reference's.*between 20,000 tasks"
    ),
    "graph_laplacian": (
        lambda: mtl.graph_laplacian(mtl.Weights(many(9)), sparse.csr_array((10**6, 10**6))), ModelError, "1,000,000 x"
    ),
    "kernel": (lambda: of_kernel(shared(2000, 3)).predict(np.ones((2 * 10**6, 3))), DataError, "the kernel of 2,000,000"),
    "from_kernel": (lambda: mtl.similarities.from_kernel(sparse.csr_array((60_000, 60_000))), ModelError, "60,000 rows and columns"),
    "predict": (
        lambda: solved(mtl.ridge, shared(9, 3, 300)).predict(sparse.csr_array((2 * 10**6, 3))), DataError, "part by part"
    ),
}  # fmt: skip


def of_parameter(tasks):
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0, name="lam")
    return mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.trace_norm(W)).lambda_max(lam)


def of_kernel(tasks):
    return solved(mtl.ridge, tasks.take_rows(range(600)).with_kernels([("rbf", {"gamma": 1.0})]), max_iter=3)


@pytest.fixture
def limited(monkeypatch):
    """No more than 8 GiB, on whichever machine."""
    monkeypatch.setattr(memory, "_of_system", lambda: 8 * 2.0**30)


@pytest.mark.by_default("edges")
@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_is_refused(name, limited):
    ask, error, words = LARGE[name]
    with pytest.raises(error, match=f"(?s){words}.*") as refusal:
        ask()
    assert type(refusal.value) is error
    assert re.search(REFUSED, str(refusal.value))


def test_copies_of_stored_tasks_are_asked_for_their_size(tmp_path, monkeypatch):
    """Data larger than memory can be solved with, not copied."""
    X = sparse.random_array((400, 50), density=0.5, format="csr", rng=np.random.default_rng(0))
    tasks = mtl.datasets.store([(X, np.arange(400.0), np.arange(400) % 3)], tmp_path / "stored")
    monkeypatch.setattr(memory, "_of_system", lambda: 100_000.0)
    for ask in (
        lambda: tasks.split(test_size=0.25, random_state=0),
        lambda: tasks.select([0, 1]),
        lambda: tasks.standardize(center=False),
    ):
        with pytest.raises(DataError, match=r"a copy of \d+ rows needs .* GiB .*; take fewer: subsample"):
            ask()
    assert tasks.subsample(20, random_state=0).n_samples == 60
    assert tasks.forward(np.ones((50, 3))).size == 400


def test_sizes_in_problem_files(tmp_path, limited, command_line):
    sizes = 'dataset = "low_rank"\nn_tasks = 1_000_000\nn_features = 1_000_000'
    (tmp_path / "p.toml").write_text(f'minimize = "squared_loss(W, tasks) + ridge(W)"\n[data]\n{sizes}')
    code, _, err = command_line("solve", tmp_path / "p.toml")
    said = r"p.toml:4:.* GiB of memory, and 8 GiB are there; write smaller numbers"
    assert code == 2 and re.search(said, err), err


@pytest.mark.slow
def test_many_tasks_need_no_matrix_of_pairs_of_tasks(limited):
    assert solved(mtl.trace_norm, many(20_000), solver="admm", max_iter=2).W.shape == (2, 20_000)


def test_what_was_not_foreseen_is_a_typed_error(monkeypatch):
    """The next solver is asked; where it is the last, this is the answer."""
    from mtldsl.solvers.admm.admm import SOLVER

    def greedy(self, form, **options):
        np.empty((10**9, 10**9))

    monkeypatch.setattr(type(SOLVER), "solve", greedy)
    with pytest.raises(SolverError, match=r"admm needs more memory than .* \(Unable to allocate"):
        solved(mtl.trace_norm, many(3), solver="admm")


def group(root, version, path, **files):
    """A control group, and the process in it."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    line = f"0::/{path}\n" if version == 2 else f"9:cpu:/x\n4:hugetlb,memory:/{path}\n0::/\n"
    (root / "proc/self/cgroup").write_text(line)
    folder = root / "sys/fs/cgroup" / ("memory" if version == 1 else "") / files.pop("at", path)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("memory_", "memory.")).write_text(content)


def test_a_group_of_version_2_and_those_above_it(tmp_path):
    full = {"memory_max": "max\n", "memory_current": "50\n", "memory_stat": "anon 7\ninactive_file 3\n"}
    above = {"memory_max": "1000\n", "memory_current": "600\n", "memory_stat": "inactive_file 100\n"}
    group(tmp_path, 2, "a/b", **full)
    assert memory._of_groups(tmp_path) == np.inf
    group(tmp_path, 2, "a/b", at="a", **above)
    memory._groups.cache_clear()
    assert memory._of_groups(tmp_path) == 500.0


def test_a_group_of_version_1_in_a_container(tmp_path):
    """Its path is that of the host; what is mounted is the group itself."""
    files = {
        "memory_limit_in_bytes": "1000\n",
        "memory_usage_in_bytes": "1100\n",
        "memory_stat": "total_inactive_file 300\n",
    }
    group(tmp_path, 1, "docker/4711", at="", **files)
    assert memory._of_groups(tmp_path) == 200.0


def test_no_groups_at_all(tmp_path):
    assert memory._of_groups(tmp_path) == np.inf


@pytest.mark.process
def test_the_limit_of_the_process_counts():
    code = (
        "import resource; from mtldsl.utils.memory import available_memory; import mtldsl\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "assert 0 < available_memory() < 3 << 30\n"
        "try: mtldsl.datasets.make_low_rank(n_samples=10**7)\n"
        "except mtldsl.errors.DataError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "make_low_rank(n_tasks=20, n_samples=10000000, n_features=30) needs" in ran.stdout, ran.stderr
