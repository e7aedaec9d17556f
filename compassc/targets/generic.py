"""Functions that do something else for each kind of target: the one of the first key of the current target that has one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from compassc.ir.errors import ExpressionError
from compassc.targets.target import Target

F = TypeVar("F", bound=Callable[..., object])


class GenericFunc:
    """A function by the keys of targets. `default`: what is called without a target, and for those of which no key has one. `native`:
    functions of keys are replaced without being told."""

    def __init__(self, name: str, default: Callable[..., object] | None = None, native: bool = False) -> None:
        self.name, self.default, self.native = name, default, native
        self._by_key: dict[str, Callable[..., object]] = {}
        if default is not None:
            functools.update_wrapper(self, default)

    def set_default(self, func: F, allow_override: bool = False) -> F:
        """Give the default. ExpressionError where there is another one, unless it may be replaced."""
        if self.default is not None and not allow_override:
            raise _twice(self.name, "default")
        self.default = func
        functools.update_wrapper(self, func)
        return func

    def register(self, key: Any, func: Any = None, override: bool | None = None, allow_override: bool = False) -> Any:
        """Give the function of a key, or of several: `@register(keys)`, `register(keys, function)` or `register(function, keys)`.
        ExpressionError where a key has another one, unless it may be replaced."""
        if callable(key):
            key, func = func, key
        if func is None:
            return lambda f: self.register(key, f, override, allow_override)
        replace = allow_override or (self.native if override is None else override)
        for name in [key] if isinstance(key, str) else list(key or ()):
            if name in self._by_key and not replace:
                raise _twice(self.name, name)
            self._by_key[name] = func
        return func

    def get_packed_func(self) -> GenericFunc:
        """The function itself, which can be called from anywhere."""
        return self

    def __call__(self, *args: object, **named: object) -> Any:
        target = Target.current()
        keys = target.keys if target is not None else []
        found = next((self._by_key[k] for k in keys if k in self._by_key), self.default)
        if found is None:
            raise ExpressionError(
                f"{self.name} has no function for {target or 'no target'}", "register one, or a default"
            )
        return found(*args, **named)


def _twice(name: str, key: str) -> ExpressionError:
    return ExpressionError(f"{name} has a function for {key} already", "replace it with override=True")


_NATIVE: dict[str, GenericFunc] = {}


def get_native_generic_func(name: str) -> GenericFunc:
    """The function of a name, the same object each time."""
    return _NATIVE.setdefault(name, GenericFunc(name, native=True))


def generic_func(fdefault: Callable[..., object]) -> GenericFunc:
    """Decorates the default of a new function."""
    return GenericFunc(fdefault.__name__, fdefault)


def override_native_generic_func(func_name: str) -> Callable[[Callable[..., object]], GenericFunc]:
    """Decorates the default of the function of a name, which replaces the one that there is."""

    def decorate(fdefault: Callable[..., object]) -> GenericFunc:
        found = get_native_generic_func(func_name)
        found.set_default(fdefault, allow_override=True)
        return found

    return decorate
