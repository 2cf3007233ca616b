"""A disk that is full, without one."""

import resource
from contextlib import contextmanager


@contextmanager
def largest_file(size):
    """The system refuses files larger than `size` bytes, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
