"""The first 200 damaged files of data and solutions (`--fuzz-bytes N`: N of them) are read, or refused by an error of mtldsl."""

import shutil
from collections import Counter

import pytest

from tests.fuzz.damaged import judge
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
        wrong, end = judge(seed, sound)
        ends[end.split(": ")[1]] += 1
        found += [f"tests.fuzz.damaged.judge({seed}, ...): {wrong}"] if wrong else []
    assert not found, "\n".join(found)
    assert ends["refused"] >= ends.total() / 2 and ends["read"] > 0


@pytest.mark.slow
@for_each("kind", sorted(READERS))
def test_the_files_are_sound_before_they_are_damaged(kind, sound, tmp_path):
    READERS[kind](shutil.copytree(sound / kind, tmp_path / "copy"))
