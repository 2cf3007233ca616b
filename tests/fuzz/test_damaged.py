"""Damaged files of data (`--fuzz-bytes N`) and problem files of strangers (`--fuzz-files N`) end as the pages say."""

import shutil
import warnings
from collections import Counter

import pytest

from tests.fuzz import damaged, files
from tests.fuzz.sound_files import READERS, write_sound_files
from tests.loops import for_each


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    pytest.importorskip("pyarrow")
    write_sound_files(folder := tmp_path_factory.mktemp("sound"))
    return folder


@pytest.mark.slow
def test_damaged_files_raise_errors_of_mtldsl(sound, request):
    ends, found = Counter(), []
    for seed in range(request.config.getoption("--fuzz-bytes")):
        wrong, end = damaged.judge(seed, sound)
        ends[end.split(": ")[1]] += 1
        found += [f"tests.fuzz.damaged.judge({seed}, ...): {wrong}"] if wrong else []
    assert not found, "\n".join(found)
    assert ends["refused"] >= ends.total() / 2 and ends["read"] > 0


@pytest.mark.slow
@for_each("kind", sorted(READERS))
def test_the_files_are_sound_before_they_are_damaged(kind, sound, tmp_path):
    READERS[kind](shutil.copytree(sound / kind, tmp_path / "copy"))


@pytest.mark.slow
def test_files_of_strangers_end_with_a_known_exit_code(request):
    codes, found = [], []
    with files.data_folder() as folder, warnings.catch_warnings():
        # of numbers such as 1e308, typed as parameters; here it is about files, and models have a judge of their own
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(request.config.getoption("--fuzz-files")):
            wrong, code = files.judge(seed, folder)
            codes.append(code)
            found += [f"tests.fuzz.files.judge({seed}, ...): {wrong}"] if wrong else []
    assert not found, "\n".join(found)
    assert codes.count("0") >= len(codes) / 20 and codes.count("2") >= len(codes) / 2  # some are models still
