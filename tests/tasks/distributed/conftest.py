"""Where parts are computed: threads of this process, or workers that are reached by sockets."""

import pytest

pytest.importorskip("dask.array", reason="pip install -e .[dask]")
pytest.importorskip("distributed", reason="pip install -e .[dask]")


@pytest.fixture(params=["threads", "workers"])
def engine(request):
    return None if request.param == "threads" else request.getfixturevalue("client")
