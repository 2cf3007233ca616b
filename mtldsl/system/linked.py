"""Inner compiled functions as their callers link them: neither optimised nor made machine code by themselves.

numba optimises an inner function, makes machine code of it that nobody calls, and optimises it once more in every caller: here, the
first two are left out, a quarter of what a kernel of several functions takes to compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock

__all__ = ["only"]


class _Linked(JITCodeLibrary):
    """Code that is never called by its address: it is in no engine, and has no environment there."""

    @property
    def codegen(self):
        return self

    def set_env(self, name, env):
        """Only functions that hold Python's objects read it."""

    def _optimize_final_module(self):
        """Callers do, with what they know of the arguments."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        return 0

    def serialize_using_object_code(self):
        return self.serialize_using_bitcode()


@contextmanager
def only(codegen, name: str) -> Iterator[None]:
    """In this block, `codegen` makes the library called `name` such a one."""
    with global_compiler_lock:
        before = codegen.create_library

        def create(wanted, **options):
            return _Linked(codegen, wanted, **options) if wanted == name else before(wanted, **options)

        codegen.create_library = create
        try:
            yield
        finally:
            codegen.create_library = before
