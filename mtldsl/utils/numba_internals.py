"""Parts of numba that are not public, for sealed files of compiled functions and a shorter compile: used by `utils.jit` alone."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from mtldsl.utils import compilation

# --------------------------------------------------------------------------------------------------------------
# Functions compiled by numba, kept on the disk between processes where the disk allows it, and only where what is there can be vouched for.
#
# numba's own cache ends a program where no folder can be written to, where the disk is full, and where a file of the cache is damaged;
# machine code with a wrong byte it runs. It also goes on with an old callee that a caller in another file was compiled with. Here, each file
# begins with a SHA-256 of what follows and of all it was made from: a file that does not fit is compiled anew and overwritten.

_SEAL_BYTES = 32  # bytes of a SHA-256
_KEPT = "inner functions as bitcode"  # what is in the files, apart from what it was made of
_said = False


def compiled(signature: str | None = None, *, inside: bool = False, **options):
    """`utils.jit.compiled`, uncached with one warning per process where nothing can be kept."""
    options["no_cfunc_wrapper"] = True  # which C would call
    if inside:
        options["no_cpython_wrapper"] = True

    def decorate(function):
        made = cast(Any, numba.njit)(**options)(function)
        if not isinstance(made, Dispatcher):  # NUMBA_DISABLE_JIT
            return made
        made.__class__ = _InternalFunction if inside else _CompiledFunction
        cast(Any, made)._cache = _cache_of(function)
        cast(Any, made).declared = signature
        return made

    return decorate


class _CompiledFunction(CPUDispatcher):
    """Compiled function of numba, with the time that it takes; a declared signature is the only one, compiled when it is first needed."""

    declared: str | None = None
    _can_compile: bool  # numba's own

    def compile(self, sig):
        with compilation.busy():
            if self.declared is None or not self._can_compile:
                return super().compile(sig)
            entry = super().compile(self.declared)
            self.disable_compile()
            return entry

    def _compile_for_args(self, *args, **kwargs):
        if self.declared is None:
            return cast(Any, super())._compile_for_args(*args, **kwargs)
        with compilation.busy(), global_compiler_lock:
            if self._can_compile:  # or another thread has compiled it meanwhile
                self.compile(self.declared)
        return self  # called with the same arguments, which are held against that signature


class _InternalFunction(_CompiledFunction):
    """Machine code that Python has no way into: a call would end the process."""

    def compile(self, sig):
        with only(cast(Any, self.targetctx).codegen(), self.py_func.__qualname__):
            return super().compile(sig)

    def __call__(self, *args, **kwargs):
        raise TypeError(f"{self.__name__} is compiled for other compiled functions alone (inside=True)")


def _cache_of(function):
    try:
        return _Cache(function)
    except (OSError, RuntimeError) as error:  # numba: no locator available
        _say_once(error)
        return _NoCache(function)


class _NoCache(NullCache):
    """The cache of a function that nothing can be kept of."""

    def __init__(self, function):
        self._name = function.__name__

    def load_overload(self, sig, target_context):
        compilation.begins(self._name)


class _Cache(FunctionCache):
    """The cache of one function. Neither reading nor writing it can make a call fail."""

    def __init__(self, function):
        super().__init__(function)
        stamp = _stamp(function, self._impl.locator.get_source_stamp())
        self._cache_file = _SignatureFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        found = None
        with suppress(Exception):  # whole, but not for this numba: then the function is compiled anew
            found = super().load_overload(sig, target_context)
        if found is None:
            compilation.begins(self._py_func.__name__)
        return found

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except (OSError, pickle.PicklingError) as error:
            _say_once(error)


class _SignatureFiles(IndexDataCacheFile):
    """A file for each signature, named by it, without numba's index: two processes that write at once cannot mix up their entries."""

    def flush(self):
        for path in Path(self._cache_path).glob(f"{self._name}*"):
            path.unlink(missing_ok=True)

    def load(self, key):
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        seal, data = content[:_SEAL_BYTES], content[_SEAL_BYTES:]
        return pickle.loads(data) if seal == self._seal(key, data) else None

    def save(self, key, data):
        data = self._dump(data)
        with self._open_for_write(str(self._path(key))) as file:
            file.write(self._seal(key, data) + data)

    @property
    def _name(self) -> str:
        return self._index_name.removesuffix(".nbi")

    def _path(self, key) -> Path:
        which = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return Path(self._cache_path, f"{self._name}.{which}.nbc")

    def _seal(self, key, data: bytes) -> bytes:
        return hashlib.sha256(repr((self._version, self._source_stamp, key)).encode() + data).digest()


def _stamp(function, source) -> str:
    """A fingerprint of what the code of a function follows from: its own source file, and those of the compiled functions, the constants
    and the named tuples that this file has from others.
    """
    facts = [repr(source), _KEPT]
    for name, value in sorted(function.__globals__.items()):
        if isinstance(value, Dispatcher):
            facts.append(
                f"{name} {getattr(getattr(cast(Any, value)._cache, '_cache_file', None), '_source_stamp', '')}"
            )
        elif isinstance(value, (int, float, tuple)):
            facts.append(f"{name} {value!r}")
        elif isinstance(value, type) and issubclass(
            value, tuple
        ):  # machine code knows fields by their places
            facts.append(f"{name} {getattr(value, '_fields', ())!r}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _say_once(error: Exception) -> None:
    global _said
    if not _said:
        _said = True
        warnings.warn(
            f"compiled code cannot be kept on the disk ({error}); every new process compiles what it uses, which takes seconds. "
            "Set NUMBA_CACHE_DIR to a folder that can be written to",
            stacklevel=4,
        )


# --------------------------------------------------------------------------------------------------------------
# Inner compiled functions as their callers link them: neither optimised nor made machine code by themselves.
#
# numba optimises an inner function, makes machine code of it that nobody calls, and optimises it once more in every caller: here, the
# first two are left out, a quarter of what a kernel of several functions takes to compile.


class _LinkedCode(JITCodeLibrary):
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
            return _LinkedCode(codegen, wanted, **options) if wanted == name else before(wanted, **options)

        codegen.create_library = create
        try:
            yield
        finally:
            codegen.create_library = before
