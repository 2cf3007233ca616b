"""What numba finds out again and again while it compiles one function, found out once.

Which implementation an operator has for given types, it seeks at every place where the operator stands, through some twenty candidates
and with the whole set of compiler options compared for each; it also optimises functions that a module only declares. Both change
nothing of the machine code, and take a tenth of the time of compiling.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.ir import Inst, Var
from numba.core.targetconfig import ConfigStack
from numba.core.types import BaseFunction

__all__ = ["remembering"]

_depth = 0


@contextmanager
def remembering() -> Iterator[None]:
    """In the outermost block of this name: what is remembered holds for what is compiled in it, and is forgotten afterwards."""
    global _depth
    with global_compiler_lock:
        replaced = _replaced() if _depth == 0 else []
        before = [(where, name, getattr(where, name)) for where, name, _ in replaced]
        for where, name, new in replaced:
            setattr(where, name, new)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
            for where, name, old in before:
                setattr(where, name, old)


def _replaced() -> list[tuple]:
    new: list[tuple] = [(BaseFunction, "get_call_type", _call_types()), (Inst, "_rec_list_vars", _variables)]
    if numba.version_info.short >= (0, 62):  # before, one manager of passes served all functions of a module
        new.append((CPUCodeLibrary, "_optimize_functions", _optimize_defined))
    return new


def _call_types():
    """`BaseFunction.get_call_type` with a memory: the signature that a function has for types of arguments, under the options of now.

    An implementation compiled under other options takes the place of the one before, as it does in numba: so it does here.
    """
    seek = BaseFunction.get_call_type
    found: dict[tuple, tuple] = {}
    now: list[Any] = [None, None]  # the options on top of the stack, and their values

    def get_call_type(self, context, args, kws):
        options = ConfigStack.top_or_none()
        if kws or options is None:
            return seek(self, context, args, kws)
        if options is not now[0]:
            now[:] = options, options.values()
        key = (self, tuple(args))
        known = found.get(key)
        if known is not None and (known[0] is now[1] or known[0] == now[1]):
            return known[1]
        values = now[1]
        signature = seek(self, context, args, kws)
        found[key] = values, signature
        return signature

    return get_call_type


def _optimize_defined(self, ll_module):
    ll_module.data_layout = self._codegen._data_layout
    for function in ll_module.functions:
        if not function.is_declaration:
            passes, builder = self._codegen._function_pass_manager()
            passes.run(function, builder)


def _variables(self, value) -> list:
    """The variables in a value, in their order: as numba's own, which asks the many values that are none for six types each."""
    kind = type(value)
    if kind is Var:
        return [value]
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return value.list_vars() if isinstance(value, Inst) else [value] if isinstance(value, Var) else []
    found = []
    for each in value:
        kind = type(each)
        if kind is Var:
            found.append(each)
        elif kind not in _PLAIN:
            found += self._rec_list_vars(each)
    return found


_PLAIN = frozenset((str, int, float, bool, type(None)))
