"""The first 300 problem files of strangers (`--fuzz-files N`: N of them) end as the page of exit codes says."""

import warnings

import pytest

from tests.fuzz.files import data_folder, judge


@pytest.mark.slow
def test_files_of_strangers_end_with_a_known_exit_code(request):
    codes, found = [], []
    with data_folder() as folder, warnings.catch_warnings():
        # of numbers such as 1e308, typed as parameters; here it is about files, and models have a judge of their own
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(request.config.getoption("--fuzz-files")):
            wrong, code = judge(seed, folder)
            codes.append(code)
            found += [f"tests.fuzz.files.judge({seed}, ...): {wrong}"] if wrong else []
    assert not found, "\n".join(found)
    assert codes.count("0") >= len(codes) / 20 and codes.count("2") >= len(codes) / 2  # some are models still
