"""Plugins: modules that register words and solvers of their own when they are imported.

A problem file is data, and a plugin is code. So a file can only *name* what it needs, and code runs only if who reads the file
has said so before: by installing a package that offers the name under the entry point group "mtldsl.plugins", or by allowing the
module by name (`--allow-plugins`, `load_problem(..., allow_plugins=[...])`). No path in a problem file is ever imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from mtldsl.errors import ModelError
from mtldsl.language.words.did_you_mean import nearest

__all__ = ["GROUP", "installed_plugins", "use_plugins"]

#: the group of entry points under which packages offer plugins
GROUP = "mtldsl.plugins"


def installed_plugins() -> dict[str, EntryPoint]:
    """name -> entry point of every plugin that an installed package offers."""
    return {point.name: point for point in entry_points(group=GROUP)}


def use_plugins(names: Iterable[str], allowed: Iterable[str] = ()) -> None:
    """Import plugins by name, so that their words and solvers can be typed.

    allowed : names of modules, and paths of .py files, that may be imported besides installed plugins; a file's name without .py
              is the name of its plugin

    ModelError where a name is neither installed nor allowed, or where the import fails.

    >>> use_plugins(["my_words"])
    Traceback (most recent call last):
    mtldsl.errors.ModelError: the plugin 'my_words' is not installed and not allowed. A plugin runs code: if you trust it, write --allow-plugins my_words (Python: allow_plugins=["my_words"]), or install a package that offers it
    """
    may = {(Path(one).stem if str(one).endswith(".py") else str(one)): str(one) for one in allowed}
    installed = installed_plugins()
    for name in names:
        if name not in may and name not in installed:
            raise ModelError(
                f"the plugin {name!r} is not installed and not allowed{nearest(name, [*may, *installed])}. A plugin runs code: if you "
                f'trust it, write --allow-plugins {name} (Python: allow_plugins=["{name}"]), or install a package that offers it'
            )
        try:
            if name not in may:
                found = installed[name].load()
                if callable(found):
                    found()
            elif may[name].endswith(".py"):
                _import_file(name, Path(may[name]))
            else:
                importlib.import_module(name)
        except Exception as error:  # whatever a plugin raises is a mistake in it
            raise ModelError(
                f"the plugin {name!r} cannot be used: {type(error).__name__}: {error}"
            ) from error


def _import_file(name: str, path: Path) -> None:
    """A module from a file, once."""
    path = path.resolve()
    known = sys.modules.get(name)
    found = (
        getattr(known, "__file__", None) if known else getattr(importlib.util.find_spec(name), "origin", None)
    )
    if found is not None or known is not None:
        if found is None or Path(found).resolve() != path:
            raise ImportError(f"there is a module {name!r} already; give the file another name")
        if known is not None:
            return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # its name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
