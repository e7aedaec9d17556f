"""Packed functions: functions called by name with values of a few kinds, and the registry of their names.

    @register_func("demo.add")
    def add(a, b): ...

    get_global_func("demo.add")(1, 2)

Names are process wide and dotted: area, then action (`target.build.compass`, `device_api.cpu`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, overload

from compass_core.errors.suggest import help_for
from compass_runtime.errors import RuntimeStateError, RuntimeTypeError, RuntimeValueError

F = TypeVar("F", bound=Callable[..., object])

_functions: dict[str, PackedFunc] = {}
_lock = threading.Lock()
_OLDER = "codegen.build_"
_BROUGHT = ("tvm.contrib.", "runtime.assertion")
"""Names under which there are functions that come with the runtime."""
_MAKERS = "compass.functions"
"""The group of entry points by which installed packages make functions on demand: `PREFIX = "module:register"`, where
`register(name)` registers the function of a name that begins with the prefix and a dot, if it can."""
_PLAIN = (bool, int, float, str, bytes, bytearray, BaseException)


class PackedFunc:
    """A function that takes positional values of the kinds `pass_value` knows, and returns one of them or None.

    What a callback raises arrives at the caller as it is. `owner` is kept alive as long as the function.
    """

    def __init__(self, body: Callable[..., Any], name: str = "", owner: object = None) -> None:
        self.body = body
        self.name = name or getattr(body, "__name__", "")
        self.owner = owner

    def __call__(self, *args: object) -> Any:
        passed = [pass_value(arg, self.name, i) for i, arg in enumerate(args, 1)]
        return pass_value(self.body(*passed), self.name, 0)

    def __repr__(self) -> str:
        return f"<PackedFunc {self.name}>"


def pass_value(value: object, function: str, position: int) -> object:
    """`value` as the other side sees it: NumPy scalars as numbers, arrays as NDArray over the same memory, callables
    as packed functions, lists and dicts with their items passed. TypeError for a kind that cannot be passed; position
    0 is the result.
    """
    if getattr(value, "packed_object", False):
        return value
    if value is None or isinstance(value, (*_PLAIN, PackedFunc)):
        return value
    if isinstance(value, (list, tuple)):
        return [pass_value(item, function, position) for item in value]
    if isinstance(value, dict):
        return {key: pass_value(item, function, position) for key, item in value.items()}
    return _pass_object(value, function, position)


def _pass_object(value: object, function: str, position: int) -> object:
    from ctypes import c_void_p

    import numpy as np

    from compass_runtime.devices import Device
    from compass_runtime.module import Module
    from compass_runtime.ndarray import NDArray, from_dlpack

    if isinstance(value, (NDArray, Module, Device, np.dtype, c_void_p)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return NDArray(value)
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    if callable(value):
        return PackedFunc(value)
    what = f"argument {position} of '{function}'" if position else f"the result of '{function}'"
    raise RuntimeTypeError(f"{what} is a {type(value).__name__}, which cannot be passed", code="packed-type")


@overload
def register_func(name: F, f: None = None, override: bool = False) -> F: ...


@overload
def register_func(name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...


@overload
def register_func(name: str, f: F, override: bool = False) -> F: ...


def register_func(
    name: str | Callable[..., object], f: Callable[..., object] | None = None, override: bool = False
) -> object:
    """Registers `f` under a name; without `f` it is a decorator. RuntimeStateError when the name is taken."""
    if not isinstance(name, str) and callable(name):
        f, name = name, name.__name__
    if not isinstance(name, str):
        raise RuntimeValueError(f"the name of a function must be text, not {type(name).__name__}", code="packed-name")

    def register(function: F) -> F:
        with _lock:
            if name in _functions and not override:
                raise RuntimeStateError(
                    f"a global function '{name}' is registered already",
                    code="packed-twice",
                    help="override=True replaces it",
                )
            packed = function if isinstance(function, PackedFunc) else PackedFunc(function, name)
            _functions[name] = packed
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function of that name; else None when that is allowed, or a RuntimeValueError with the nearest name.

    `codegen.build_KIND` is an older name of `target.build.KIND`.
    """
    found = _functions.get(name)
    if found is None and name.startswith(_BROUGHT):
        import_module("compass_runtime.shipped_functions")
        found = _functions.get(name)
    if found is None and name.startswith(_OLDER):
        found = _functions.get(f"target.build.{name.removeprefix(_OLDER)}")
    if found is None and not allow_missing:
        _make(name)
        found = _functions.get(name)
    if found is None and not allow_missing:
        raise RuntimeValueError(
            f"there is no global function '{name}'",
            code="packed-missing",
            help=help_for(name, list(_functions), "functions"),
        )
    return found


def _make(name: str) -> None:
    """Has an installed package register a function, where one makes those of such names."""
    from importlib.metadata import entry_points  # 30 ms

    for maker in entry_points(group=_MAKERS):
        if name.startswith(f"{maker.name}."):
            maker.load()(name)


def list_global_func_names() -> list[str]:
    """All registered names, sorted."""
    return sorted(_functions)


def remove_global_func(name: str) -> None:
    """Forgets a name; one that is not registered is no error."""
    with _lock:
        _functions.pop(name, None)


def convert(value: object) -> object:
    """A value as packed functions see it."""
    return pass_value(value, "convert", 1)
