"""Counts of what solves do, for tests that would otherwise read a clock: a slow machine takes as many looks as a fast one."""

import logging
from contextlib import contextmanager


class _Counting(logging.Handler):
    def __init__(self):
        super().__init__()
        self.count = 0

    def emit(self, record):
        self.count += 1


@contextmanager
def counted_looks():
    """Count the lines that `mtldsl` logs here, one for every look at a certificate: `.count` of what is yielded."""
    log, handler = logging.getLogger("mtldsl"), _Counting()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
