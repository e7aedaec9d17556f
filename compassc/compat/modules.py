"""The modules behind the vendor's import names: made when they are imported, from the table in `names`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from compass_core import vendor
from compass_core.errors import CompassError, UsageError

from .names import MISSING, MODULES

if TYPE_CHECKING:
    from compassc.relay.builders import Builder

CHILDREN = Path(__file__).with_name("children")
"""A folder for PYTHONPATH: programs that a program starts find the names too."""
_ROOT = "tvm"
_HELP = "dir(MODULE) lists the names that a module has here"


class MissingName(UsageError, AttributeError):
    """A name of the vendor's packages that does not exist here was looked up."""


class MissingModule(UsageError, ModuleNotFoundError):
    """A name of the vendor's packages that does not exist here was imported."""


def _missing(kind: type[CompassError], full: str) -> CompassError:
    """The error for a full name that does not exist, with the table's reason for it or for a module around it."""
    parts = full.split(".")
    whys = (MISSING.get(".".join(parts[:n])) for n in range(len(parts), 0, -1))
    why = next(filter(None, whys), "")
    if why:
        return kind(f"{full} does not exist here: {why}", code="compat-name", help=_HELP)
    parent, _, name = full.rpartition(".")
    return kind(f"module '{parent}' has no attribute '{name}'", code="compat-name", help=_close(full) or _HELP)


def _close(full: str) -> str:
    import difflib

    parent, _, name = full.rpartition(".")
    found = difflib.get_close_matches(name, _names(parent), 1) if parent in MODULES else []
    return f"did you mean {parent}.{found[0]}?" if found else ""


def _names(module: str) -> list[str]:
    """The names that a module offers."""
    entry = MODULES[module]
    children = (name.rpartition(".") for name in MODULES)
    found = {*entry.given, *(child for parent, _, child in children if parent == module)}
    for like in map(importlib.import_module, entry.like):
        found |= {name for name in _public(like) if not name.startswith("_")}
    found |= set(_operators(entry.operators))
    return sorted(name for name in found if f"{module}.{name}" not in MISSING)


def _public(module: ModuleType) -> Collection[str]:
    """The names that a module of ours offers: those that it lists itself, or all."""
    listed = vars(module).get("__dir__")
    found: Collection[str] = listed() if listed is not None else vars(module).get("__all__", dir(module))
    return found


def _operators(prefix: str | None) -> dict[str, Builder]:
    """What makes calls of the operators of Relay below a prefix, by name."""
    if prefix is None:
        return {}
    from ..relay.builders import namespace

    return namespace(prefix)


def _homes(module: str, name: str) -> Iterator[tuple[str, str]]:
    """Candidates for the object of a name as (module, name), best first."""
    entry = MODULES[module]
    if name in entry.given:
        home, _, there = entry.given[name].partition(":")
        yield home, there or name
    elif not name.startswith("_"):
        yield from ((like, name) for like in entry.like)


def offered(module: str, name: str) -> object:
    """What a module of the framework has by a name that is no module below it; None for nothing."""
    for home, there in _homes(module, name):
        found = importlib.import_module(home)
        restricted = "__all__" in vars(found) and there not in _public(found)
        if (name in MODULES[module].given or not restricted) and hasattr(found, there):
            made: object = getattr(found, there)
            if not (isinstance(made, ModuleType) and f"{module}.{name}" in MODULES):
                return made
    return None


def _lookup(module: ModuleType, name: str) -> object:
    """The object behind `module.name`."""
    full = f"{module.__name__}.{name}"
    if name == "__all__":  # of `from MODULE import *`
        return _names(module.__name__)
    if full not in MISSING:
        found = offered(module.__name__, name)
        if found is not None:
            return found
    if full in MODULES:
        return importlib.import_module(full)
    if full not in MISSING:
        operators = _operators(MODULES[module.__name__].operators)
        if name in operators:
            return operators[name]
    if name.startswith("__"):  # requested by Python itself, which has a fallback
        raise AttributeError(name)
    raise _missing(MissingName, full)


class _Module(ModuleType):
    """A module in which a function hides a module below it of the same name, as `tvm.topi.nn.conv2d`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and offered(self.__name__, name) is not None):
            super().__setattr__(name, value)


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        from .nodes import add_fields

        vendor.names_in_use = True
        if module.__name__ == _ROOT:
            add_fields()
        module.__doc__ = f"{module.__name__}, as compassc offers it."
        module.__getattr__ = partial(_lookup, module)  # type: ignore[method-assign]
        module.__dir__ = partial(_names, module.__name__)  # type: ignore[method-assign]
        if MODULES[module.__name__].own:
            vars(module).update((name, _lookup(module, name)) for name in _names(module.__name__))


class _Program(_Loader):
    """What `python -m MODULE` runs, of a module that has a `main`."""

    def get_code(self, name: str) -> CodeType:
        module = name.removesuffix(_MAIN)
        return compile(f"from {module} import main; main()", module, "exec")


_MAIN = ".__main__"


class _Finder(importlib.abc.MetaPathFinder):
    """The first finder, so that a folder called `tvm` is not imported in its place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in MODULES:
            return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)
        if name.endswith(_MAIN) and "main" in getattr(MODULES.get(name.removesuffix(_MAIN)), "given", ()):
            return importlib.machinery.ModuleSpec(name, _Program())
        if name.startswith(f"{_ROOT}."):
            raise _missing(MissingModule, name)
        return None


_FINDER = _Finder()


def installed() -> bool:
    """Whether the names are ours in this process."""
    return _FINDER in sys.meta_path


def real_package() -> str | None:
    """The path of an installed package of this name; None if there is none."""
    loaded = sys.modules.get(_ROOT)
    spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(_ROOT)
    origin = spec.origin if spec is not None else None  # a folder without __init__.py has none
    return None if origin is None or Path(origin).is_relative_to(CHILDREN) else origin


def take_names() -> None:
    """Make the names ours in this process."""
    for name in [n for n in list(sys.modules) if n == _ROOT or n.startswith(f"{_ROOT}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _FINDER)


def give_back_names() -> None:
    """Undo `take_names`."""
    from .nodes import remove_fields

    sys.meta_path.remove(_FINDER)
    remove_fields()
    for name in [n for n in list(sys.modules) if n == _ROOT or n.startswith(f"{_ROOT}.")]:
        del sys.modules[name]
    vendor.names_in_use = False
