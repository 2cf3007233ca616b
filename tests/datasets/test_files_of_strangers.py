"""Files of data that claim what is not there, or would end the process of who reads them."""

import io
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from mtldsl import datasets
from mtldsl.data.readers import array_files
from mtldsl.data.readers.array_files import mat_variables
from mtldsl.errors import DataError
from mtldsl.utils.files import read_archive, read_array
from tests.datasets.mat_here import cells, sparse_arrays
from tests.loops import for_each


def npy(shape, dtype="<f8", data=b"") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue() + data


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


CLAIMS = {
    "a terabyte": (npy((2**37,)), "claims 1,099,511,627,776 bytes, and has 0"),
    "more numbers than can be counted": (npy((2**62, 2**62)), "claims"),
    "less than nothing": (npy((-1,)), "claims the shape"),
    "fewer than there are": (npy((1,), data=bytes(16)), "claims 8 bytes, and has 16"),
    "Python objects": (npy((1,), "|O", b"cos\nsystem\n(S'true'\ntR."), "Python objects"),
    "records": (npy((1,), [("a", "<f8")], bytes(8)), "Python objects or records"),
    "no array": (b"PK what", "magic string"),
    "a header that never ends": (b"\x93NUMPY\x01\x00\xff\xff{'descr':" + b"(" * 60_000, "cannot be read"),
}


@for_each("name", CLAIMS)
def test_what_an_array_claims_is_compared_with_what_is_there(name, tmp_path):
    content, message = CLAIMS[name]
    with pytest.raises(DataError, match=message):
        read_archive(archive(tmp_path / "a.npz", X=content))
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_array(tmp_path / "a.npy")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    """A thousandth of its size on the disk; the memory that is there is said to be less than that size."""
    path = archive(
        tmp_path / "a.npz", X=npy((2_000_000,), data=bytes(16_000_000)), Y=npy((1,), data=bytes(8))
    )
    assert path.stat().st_size < 50_000
    monkeypatch.setattr("mtldsl.utils.files.available_memory", lambda: 1e6)
    with pytest.raises(DataError, match=r"its arrays have 0.016 GB, and 0.001 GB of memory are there"):
        read_archive(path)
    assert read_archive(path, names=["Y"])["Y"].tolist() == [0.0]  # what is not asked for is not unpacked


def test_a_member_longer_than_it_says_is_not_unpacked_beyond(tmp_path):
    path = archive(tmp_path / "a.npz", X=npy((1000,), data=bytes(8000)))
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (8).to_bytes(4, "little")  # its size, in the directory
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be read"):
        read_archive(path)


def test_sound_archives_are_read_as_numpy_reads_them(tmp_path):
    arrays = {
        "a": np.arange(6).reshape(2, 3), "b": np.asfortranarray(np.ones((3, 4)) * np.arange(4)), "c": np.array("hé"),
        "d": np.zeros((0, 3)), "e": np.array(["x", "yy"]), "f": np.array(True), "g": np.float32([1.5]),
    }  # fmt: skip
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = read_archive(tmp_path / "a.npz")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype and found[name].flags.writeable


def test_sparse_indices_that_point_outside_are_refused(tmp_path):
    X = sparse.csr_array(np.eye(3))
    arrays = sparse_arrays(X) | {"indices": np.array([0, 1, 10**6])}
    np.savez(tmp_path / "a.npz", y=np.ones(3), task=np.zeros(3), **arrays)
    with pytest.raises(DataError, match=r"a\.npz: cannot be read"):
        datasets.store(tmp_path / "a.npz", tmp_path / "there")


@pytest.fixture
def mat(tmp_path):
    content = {
        "X": np.arange(6).reshape(2, 3),
        "S": sparse.csc_matrix(np.eye(3)),
        "c": cells([np.eye(3), [[1.0, 2.0]]]),
        "t": "text",
        "s": {"a": 1},
    }
    scipy.io.savemat(tmp_path / "a.mat", content)
    return tmp_path / "a.mat"


@pytest.mark.slow
def test_the_child_gives_what_scipy_reads(mat):
    found, expected = mat_variables(mat), scipy.io.loadmat(mat)
    np.testing.assert_array_equal(found["X"], expected["X"])
    np.testing.assert_array_equal(found["S"].toarray(), np.eye(3))
    assert found["c"].shape == (1, 2) and found["c"].dtype == object
    np.testing.assert_array_equal(found["c"][0, 1], [[1.0, 2.0]])
    assert found["t"].item() == "text" and isinstance(found["s"], array_files.OtherVariable)


def child(monkeypatch, tmp_path, program):
    path = tmp_path / "child.py"
    path.write_text(program)
    monkeypatch.setattr(array_files, "_CHILD", path)


CHILDREN = {
    "crashes": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"crashed on it \(signal 11\)"),
    "fails": ("raise MemoryError('too much')", "scipy's reader failed .MemoryError: too much"),
    "says nothing": ("", "cannot be read as a MATLAB file"),
    "says nonsense": ("print('x' * 1000)", "cannot be read as a MATLAB file"),
    "claims more than it gives": (
        "import sys, json; t = json.dumps({'variables': {'X': {'kind': 'array', 'dtype': '<f8', 'shape': [9], 'at': 0}}}).encode();"
        "sys.stdout.buffer.write(len(t).to_bytes(8, 'little') + t)",
        "cannot be read as a MATLAB file",
    ),
}  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@for_each("name", CHILDREN)
def test_the_end_of_the_child_is_not_that_of_the_process(name, mat, monkeypatch, tmp_path):
    program, message = CHILDREN[name]
    child(monkeypatch, tmp_path, program)
    with pytest.raises(DataError, match=message):
        mat_variables(mat)


@pytest.mark.slow
def test_a_child_that_does_not_end_is_ended(mat, monkeypatch, tmp_path):
    child(monkeypatch, tmp_path, "import time; time.sleep(600)")
    limits = replace(array_files.SETTINGS, base_seconds=0.2, megabyte_seconds=0)
    monkeypatch.setattr(array_files, "SETTINGS", limits)
    with pytest.raises(DataError, match=r"did not end within 0\.4 s"):
        mat_variables(mat)


@pytest.mark.slow
def test_a_matlab_file_that_claims_a_terabyte_is_refused(mat):
    """The size of the first variable's numbers, in its own header."""
    data = mat.read_bytes()
    at = data.index(np.array([2, 3], np.int32).tobytes())
    mat.write_bytes(data[:at] + np.array([2**30, 2**27], np.int32).tobytes() + data[at + 8 :])
    with pytest.raises(DataError, match=r"a\.mat: cannot be read as a MATLAB file"):
        mat_variables(mat)


def test_an_entity_bomb_in_a_label_list_is_not_expanded(tmp_path):
    (tmp_path / "a.arff").write_text(
        "@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n1,0\n2,1\n"
    )
    lol = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
    (tmp_path / "bomb.xml").write_text(
        f'<?xml version="1.0"?><!DOCTYPE labels [<!ENTITY l0 "lol">{lol}]><labels><label name="&l9;"/></labels>'
    )
    with pytest.raises(DataError, match=r"bomb\.xml: declares an entity"):
        datasets.read_arff(tmp_path / "a.arff", tmp_path / "bomb.xml")


@for_each(
    ("name", "change", "message"),
    [
        ("indices", lambda a: a + 10**8, "indices.npy points outside"),
        ("indices", lambda a: a - 1, "indices.npy points outside"),
        ("indptr", lambda a: np.where(a == a[1], 10**12, a), "indptr.npy does not ascend"),
        ("offsets", lambda a: a[::-1].copy(), "does not ascend"),
        ("data", lambda a: np.where(a == a[0], np.nan, a), "data.npy holds NaN"),
        ("y", lambda a: np.where(a == a[0], np.inf, a), "y.npy holds NaN"),
    ],
    ids=["beyond", "below", "pointers", "tasks", "values", "labels"],
)
def test_stored_arrays_that_cannot_be_followed_are_refused(name, change, message, tmp_path):
    (tmp_path / "a.svm").write_text("1 qid:1 1:0.5 3:2\n-1 qid:2 2:1\n1 qid:1 3:4\n")
    datasets.store(tmp_path / "a.svm", tmp_path / "there")
    path = tmp_path / "there" / f"{name}.npy"
    array = np.load(path)
    np.save(path, change(array).astype(array.dtype))
    with pytest.raises(DataError, match=message):
        datasets.stored(tmp_path / "there")
